"""The logins of the servers that the tests start, and the salt of their hashes."""

SPARK_USER, SPARK_PASSWORD = "reader", "canary-S3cret!"
TARGET_USER, TARGET_PASSWORD = "loader", "other-canary-S3cret!"
SALT = "salt-canary-S3cret!"
