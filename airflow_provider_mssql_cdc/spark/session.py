"""One Spark session object per table, since snapshot properties are settings of the session."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from airflow_provider_mssql_cdc.core.exceptions import SpecError
from airflow_provider_mssql_cdc.spark.jdbc import Credentials

USER, PASSWORD = "spark.mssql_cdc.user", "spark.mssql_cdc.password"
SALT = "spark.mssql_cdc.salt"
TARGET_USER, TARGET_PASSWORD = "spark.mssql_cdc.target_user", "spark.mssql_cdc.target_password"
BROADCAST_BYTES = "spark.mssql_cdc.broadcast_bytes"
"""Property of the application: up to so many bytes of a window's changes are broadcast."""

UPSERT_ROWS = "spark.mssql_cdc.upsert_rows"
"""Property of the application: an Iceberg table of at least so many rows takes a window in two commits."""

_UPSERT_ROWS = 3_000_000
_HEAP = "spark.driver.memory"
_MOST_BROADCAST = 32 * 1024**2
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}

_SETTINGS = {
    # instants are written as UTC
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    # a value that cannot be converted is an error, never NULL
    "spark.sql.ansi.enabled": "true",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    # ${..} in a name or a value is itself; else Spark would put settings or environment variables in its place
    "spark.sql.variable.substitute": "false",
    # names and texts are written with escapes
    "spark.sql.parser.escapedStringLiterals": "false",
    # staged rows that are gone, or cannot be read, are an error
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # times keep their microseconds, and days of before 1582 their names
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
}
"""What of a cluster's settings would change rows."""


def table_session(spark: SparkSession) -> SparkSession:
    """A session of its own for one table."""
    # the one name for it that Connect has, and the one that classic Spark has
    session: SparkSession = getattr(spark, "cloneSession" if is_remote() else "newSession")()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    return session


def credentials(spark: SparkSession) -> Credentials:
    """The source's user and password from the properties that only the submitting process can read."""
    return Credentials(spark.conf.get(USER, "") or None, spark.conf.get(PASSWORD, "") or None)


def salt(spark: SparkSession) -> str | None:
    """The salt of hashes from the same properties; None where there is none."""
    return spark.conf.get(SALT, "") or None


def target_credentials(spark: SparkSession) -> Credentials:
    """User and password of the target, where it is a database, from the same properties."""
    return Credentials(spark.conf.get(TARGET_USER, "") or None, spark.conf.get(TARGET_PASSWORD, "") or None)


def broadcast_bytes(spark: SparkSession) -> int:
    """Up to so many bytes of a window's changes are sent to all executors, instead of shuffling the table for them.

    A twentieth of the driver's heap, 32 MiB at most, unless the application's properties name another number.

    :raises SpecError: for a property that is no size
    """
    if said := spark.conf.get(BROADCAST_BYTES, ""):
        return _bytes(BROADCAST_BYTES, said)
    heap = spark.conf.get(_HEAP, None) or "1g"
    return min(_bytes(_HEAP, heap, unit="m") // 20, _MOST_BROADCAST)


def upsert_rows(spark: SparkSession) -> int:
    """From so many rows on the two commits of a window by key cost less than one MERGE that joins all of them.

    :raises SpecError: for a property that is no number
    """
    said = spark.conf.get(UPSERT_ROWS, "") or str(_UPSERT_ROWS)
    if not said.isdecimal():
        raise SpecError(f"the Spark property {UPSERT_ROWS} is {said!r}: expected a number of rows.")
    return int(said)


def _bytes(name: str, text: str, unit: str = "") -> int:
    """A size as Spark's properties have it, such as ``512m`` or ``2gb``.

    :param name: of the property
    :param unit: of a number without one
    """
    found = re.fullmatch(r"(\d+)([kmgt]?)b?", text.strip().lower())
    if found is None:
        raise SpecError(f"the Spark property {name} is {text!r}: expected a whole number of bytes, or one such as 64m.")
    return int(found[1]) * _UNITS[found[2] or unit]
