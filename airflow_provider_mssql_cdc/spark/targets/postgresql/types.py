"""How values travel between Spark and PostgreSQL: as text, wherever a JDBC type would change them.

java.sql.Date and Timestamp follow the hybrid calendar and the zone of the JVM, and real and numeric would be converted
on the way. Both sides write and read the same texts exactly; instants are written as UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_NUMERIC = re.compile(r"numeric\((\d+),(\d+)\)")


@dataclass(frozen=True, slots=True)
class ColumnType:
    """One type on both sides.

    :param spark: Spark SQL type, as ``core.columns`` writes it
    :param postgresql: type, as PostgreSQL's ``format_type`` writes it
    :param is_text: whether its values travel as text
    :param select: SQL for PostgreSQL that reads a column, which stands for ``{}``
    :param write: makes of a column what the JDBC driver sends
    :param read: makes of what the driver returns the column
    """

    spark: str
    postgresql: str
    is_text: bool
    select: str
    write: Callable[[Column], Column]
    read: Callable[[Column], Column]

    @property
    def read_type(self) -> str:
        """Spark SQL type of what the JDBC driver returns for ``select``."""
        return "STRING" if self.is_text else self.spark

    @property
    def staged_type(self) -> str:
        """PostgreSQL's type of what the driver sends."""
        return "text" if self.is_text else self.postgresql

    def of_staged(self, sql: str) -> str:
        """The value of a staged column.

        :param sql: the column in PostgreSQL's SQL
        """
        return f"{sql}::{self.postgresql}" if self.is_text else sql


def _same(column: Column) -> Column:
    return column


def _native(spark: str, postgresql: str) -> ColumnType:
    return ColumnType(spark, postgresql, False, "{}", _same, _same)


def _as_text(spark: str, postgresql: str) -> ColumnType:
    return ColumnType(
        spark,
        postgresql,
        True,
        "{}::text",
        lambda column: column.cast("string"),
        lambda column: column.cast(spark),
    )


def _instant() -> ColumnType:
    return ColumnType(
        "TIMESTAMP",
        "timestamp with time zone",
        True,
        "({} AT TIME ZONE 'UTC')::text || 'Z'",
        # the session of a table runs in UTC
        lambda column: F.concat(column.cast("string"), F.lit("Z")),
        lambda column: column.cast("timestamp"),
    )


def _texts() -> ColumnType:
    return ColumnType(
        "ARRAY<STRING>",
        "text[]",
        True,
        "to_json({})::text",
        _array_literal,
        lambda column: F.from_json(column, "ARRAY<STRING>"),
    )


def _array_literal(column: Column) -> Column:
    escaped = F.transform(
        column, lambda text: F.concat(F.lit('"'), F.regexp_replace(text, r'(["\\])', r"\\$1"), F.lit('"'))
    )
    return F.concat(F.lit("{"), F.array_join(escaped, ","), F.lit("}"))


_TYPES = (
    _native("BOOLEAN", "boolean"),
    _native("SMALLINT", "smallint"),
    _native("INT", "integer"),
    _native("BIGINT", "bigint"),
    _native("STRING", "text"),
    _native("BINARY", "bytea"),
    _as_text("FLOAT", "real"),
    _as_text("DOUBLE", "double precision"),
    _as_text("DATE", "date"),
    _as_text("TIMESTAMP_NTZ", "timestamp without time zone"),
    _instant(),
    _texts(),
)
_BY_SPARK = {type_.spark: type_ for type_ in _TYPES}
_BY_POSTGRESQL = {type_.postgresql: type_ for type_ in _TYPES}


def of_spark(spark: str) -> ColumnType:
    """The type for one of Spark's, of those that ``core.columns`` names."""
    if found := _DECIMAL.fullmatch(spark):
        return _as_text(spark, f"numeric({found[1]},{found[2]})")
    return _BY_SPARK[spark]


def of_postgresql(postgresql: str) -> ColumnType | None:
    """The type for one of PostgreSQL's, None for one that this package does not write."""
    if found := _NUMERIC.fullmatch(postgresql):
        return _as_text(f"DECIMAL({found[1]},{found[2]})", postgresql)
    return _BY_POSTGRESQL.get(postgresql)


def equality(target: str, staged: str, postgresql: str, *, nullable: bool) -> str:
    """The condition that two values are the same, in a form that PostgreSQL can hash.

    ``IS NOT DISTINCT FROM`` alone it can only try for each pair of rows.
    """
    if not nullable:
        return f"{target} = {staged}"
    some = "epoch" if postgresql.startswith(("date", "timestamp")) else "0"
    default = f"'{some}'::{postgresql}"
    return f"COALESCE({target}, {default}) = COALESCE({staged}, {default}) AND {target} IS NOT DISTINCT FROM {staged}"
