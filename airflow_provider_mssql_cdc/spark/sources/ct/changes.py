"""The statement that reads what changed since a version, with the rows as they are, and how its rows become events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import TEMPORARY, ColumnMapping, map_column
from airflow_provider_mssql_cdc.core.conditions import pushed_filter
from airflow_provider_mssql_cdc.core.position import Position, Version, Window
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.core.table import quote
from airflow_provider_mssql_cdc.spark.files import Parquet, write_rows
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.selecting import fulfils, with_salt
from airflow_provider_mssql_cdc.spark.staging import Counts

LEVEL_OF_SNAPSHOTS = 5
"""``transaction_isolation_level`` of a session under SNAPSHOT (docs: sys.dm_exec_sessions)."""

_LEVEL, _MIN_VALID = (TEMPORARY + name for name in ("level", "min_valid"))
_HERE, _LETTER, _AT = (TEMPORARY + name for name in ("here", "letter", "at"))


@dataclass(frozen=True, slots=True)
class ReadChanges:
    """What one statement has read.

    :param files: its events, with the columns that it says of itself
    :param newest: of the versions of its rows; None where there are none
    :param level: isolation level that it ran by
    :param min_valid: the lowest valid version that it saw
    :param gone: keys that a target spells otherwise than one of the changes, with the version of that; None where none
        were looked for
    """

    files: Parquet
    counts: Counts
    newest: Version | None
    level: int | None
    min_valid: Version | None
    gone: DataFrame | None = None

    def events(self) -> DataFrame:
        """One row for each key that changed, as it is spelled by now, and a delete of each other spelling."""
        events = self.files.rows().where(F.col("_version").isNotNull()).drop(_LEVEL, _MIN_VALID)
        if self.gone is None:
            return events
        deletes = self.gone.withColumns({"_n": F.col("_version"), "_op": F.lit("D")})
        return events.unionByName(deletes, allowMissingColumns=True)


def read_changes(
    jdbc: Jdbc, table: TableSpec, mappings: Sequence[ColumnMapping], after: Position, folder: str, salt: str | None
) -> ReadChanges:
    """Read what changed after a version in one statement, which returns one row at least.

    Whether a row is there decides what became of a key, not the letter of the change: an update of a unique index may
    have deleted and inserted it. A row that does not fulfil the filter is none.

    :param folder: for the rows; must not exist yet
    :param salt: of hashes
    """
    conditions = table.selection.conditions
    judged = {condition.column for condition in conditions}
    read = [mapping for mapping in mappings if mapping.select]
    known = {mapping.column.name for mapping in read}
    read += [map_column(table.name, table.schema.column(name)) for name in sorted(judged - known)]
    key = [mapping for mapping in read if mapping.column.name in table.schema.key]
    query, schema = _statement(table, read, key, after)
    rows = jdbc.frame(query, schema)
    here = F.col(_HERE).isNotNull()
    if conditions:
        here &= fulfils(read, conditions)
    rows = rows.withColumn(_HERE, here)
    values = {m.alias: F.when(F.col(_HERE), F.col(m.alias)) for m in read if m not in key}
    values |= {m.alias: F.coalesce(F.when(F.col(_HERE), F.col(m.alias)), F.col(_of_change(m))) for m in key}
    rows = with_salt(rows.withColumns(values), mappings, salt)
    operation = F.when(~F.col(_HERE), "D").when(F.col(_LETTER) == "I", "I").otherwise("U")
    targets = [
        F.expr(target.expression.replace("{}", mapping.alias)).alias(target.name)
        for mapping in mappings
        for target in mapping.targets
    ]
    own = [F.col(_AT).alias("_version"), F.col(_AT).alias("_n"), operation.alias("_op")]
    files = write_rows(rows.select(*targets, *own, _LEVEL, _MIN_VALID), folder)
    return _told(files)


def _told(files: Parquet) -> ReadChanges:
    is_event, op = F.col("_version").isNotNull(), F.col("_op")
    kinds = {"inserted": "I", "updated": "U", "deleted": "D"}
    found = (
        files.rows()
        .agg(
            F.max("_version").alias("newest"),
            F.max(_LEVEL).alias("level"),
            F.max(_MIN_VALID).alias("min_valid"),
            *(F.count_if(is_event & (op == letter)).alias(name) for name, letter in kinds.items()),
        )
        .collect()[0]
    )

    def version(value: int | None) -> Version | None:
        return None if value is None else Version(value)

    counts = Counts(**{name: found[name] for name in kinds})
    return ReadChanges(files, counts, version(found["newest"]), found["level"], version(found["min_valid"]))


def _of_change(mapping: ColumnMapping) -> str:
    """The name of what CHANGETABLE says of a key column."""
    return f"k{mapping.alias}"


def _statement(
    table: TableSpec, read: Sequence[ColumnMapping], key: Sequence[ColumnMapping], after: Position
) -> tuple[str, str]:
    """The statement, and the Spark types of its columns."""
    joined = [f"j{number}" for number in range(len(table.feed.primary_key))]
    raw = ", ".join(f"{quote(n)} AS {j}" for n, j in zip(table.feed.primary_key, joined, strict=True))
    changed = ", ".join(f"{m.select} AS {_of_change(m)}" for m in key)
    values = ", ".join(f"{m.select} AS {m.alias}" for m in read)
    where = pushed_filter(table.schema, table.selection.conditions)
    same = " AND ".join(f"v.{j} = c.{j}" for j in joined)
    names = ", ".join([*(f"c.{_of_change(m)}" for m in key), *(f"v.{m.alias}" for m in read)])
    changes = (
        f"SELECT c.at, c.letter, v.here, {names} FROM (SELECT SYS_CHANGE_VERSION AS at,"
        f" SYS_CHANGE_OPERATION AS letter, {raw}, {changed}"
        f" FROM CHANGETABLE(CHANGES {table.name.quoted}, {after.sort_key}) AS ct) AS c"
        f" LEFT JOIN (SELECT 1 AS here, {raw}, {values} FROM {table.name.quoted}{f' WHERE {where}' if where else ''})"
        f" AS v ON {same}"
    )
    # the level comes with the rows: a driver that sets it otherwise, or not at all, is found out
    said = (
        "SELECT (SELECT CAST(transaction_isolation_level AS int) FROM sys.dm_exec_sessions"
        " WHERE session_id = @@SPID) AS level,"
        f" CHANGE_TRACKING_MIN_VALID_VERSION({table.feed.object_id}) AS min_valid"
    )
    columns = {_LEVEL: ("s.level", "INT"), _MIN_VALID: ("s.min_valid", "BIGINT")}
    columns |= {_AT: ("d.at", "BIGINT"), _LETTER: ("d.letter", "STRING"), _HERE: ("d.here", "INT")}
    columns |= {_of_change(m): (f"d.{_of_change(m)}", m.read_type) for m in key}
    columns |= {m.alias: (f"d.{m.alias}", m.read_type) for m in read}
    selected = ", ".join(f"{sql} AS {name}" for name, (sql, _) in columns.items())
    schema = ", ".join(f"{name} {type_}" for name, (_, type_) in columns.items())
    return f"SELECT {selected} FROM ({said}) AS s LEFT JOIN ({changes}) AS d ON 1 = 1", schema


@dataclass(frozen=True, slots=True)
class StagedChanges:
    """Net changes, staged for each window: what they come to in a part of a window nobody knows.

    :param read: by window
    :param reached: the position that the rows of each window prove
    """

    read: Mapping[Window, ReadChanges]
    proven: Mapping[Window, Version]

    def rows(self, window: Window) -> DataFrame:
        """The window's rows."""
        return self.read[window].events()

    def count(self, window: Window) -> Counts:
        """What the window holds."""
        return self.read[window].counts

    def total(self) -> Counts:
        """What the longest window holds: all end at the same cut."""
        return self.read[min(self.read, key=lambda window: window.after)].counts

    def holds(self, window: Window) -> bool:
        """Whether exactly this window was read."""
        return window in self.read

    def reached(self, window: Window) -> Position:
        """The position that the window's rows prove, at its end or above it."""
        return max(window.upto, self.proven[window])
