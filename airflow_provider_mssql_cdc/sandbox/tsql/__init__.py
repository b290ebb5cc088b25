"""The language: T-SQL text and procedure calls in, outcomes out; knows SQL, not bytes."""
