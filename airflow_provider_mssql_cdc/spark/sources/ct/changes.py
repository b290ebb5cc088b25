"""The statement that reads what changed since a version, with the rows as they are, and how its rows become events."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import Window as Frame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import TEMPORARY, ColumnMapping, map_column, shown
from airflow_provider_mssql_cdc.core.conditions import pushed_filter
from airflow_provider_mssql_cdc.core.position import Position, Version, Window
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.core.table import quote
from airflow_provider_mssql_cdc.spark.files import Parquet, write_rows
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.selecting import fulfils, with_salt
from airflow_provider_mssql_cdc.spark.shapes.fold import by_keys_of, column, renamed, same_key
from airflow_provider_mssql_cdc.spark.staging import Counts

LEVEL_OF_SNAPSHOTS = 5
"""``transaction_isolation_level`` of a session under SNAPSHOT (docs: sys.dm_exec_sessions)."""

_LEVEL, _MIN_VALID, _READ_AT = (TEMPORARY + name for name in ("level", "min_valid", "read_at"))
_HERE, _LETTER, _AT, _MASK = (TEMPORARY + name for name in ("here", "letter", "at", "mask"))
_PART, _PLACE = (TEMPORARY + name for name in ("part", "place"))


@dataclass(frozen=True, slots=True)
class ReadChanges:
    """What one statement has read, or several together.

    :param rows: one for each key that changed
    :param newest: of the versions of its rows; None where there are none
    :param level: isolation level that it ran by
    :param min_valid: the lowest valid version that it saw
    :param read_at: when it ran, by the server's clock
    :param times: ``_commit_ts`` of each version; None where nobody asks, or the login does not see them
    :param gone: keys that a target has and the table does not, though no change names them, with a version of the
        changes; None where none were looked for
    :param is_whole: all rows that the table has are among them, so that a target has no others
    :param is_net: the letters are those of the whole window; else of parts of it
    """

    rows: DataFrame
    counts: Counts
    newest: Version | None
    level: int | None
    min_valid: Version | None
    read_at: datetime.datetime | None = None
    times: DataFrame | None = None
    gone: DataFrame | None = None
    is_whole: bool = False
    is_net: bool = True

    def events(self) -> DataFrame:
        """One row for each key that changed, as it is spelled by now, and a delete of each that went without one."""
        rows = self.rows
        if self.gone is not None:
            deletes = self.gone.withColumns({"_n": F.col("_version"), "_op": F.lit("D")})
            rows = rows.unionByName(deletes, allowMissingColumns=True)
        if self.times is not None:
            rows = rows.join(self.times, "_version", "left")
        at = self.read_at.isoformat() if self.read_at is not None else None
        # each key has one row, and what is copied at its version comes after it
        return rows.withColumns({"_read_at": F.lit(at).cast("timestamp_ntz"), "_seq": F.lit(0).cast("bigint")})

    def closed_by(
        self, closing: ReadChanges, upto: Position, key: Sequence[str], other: DataFrame | None
    ) -> ReadChanges:
        """What slices have read, each of a moment of its own, as of that of a statement behind them, whose rows win.

        :param closing: with all that has changed after a version
        :param upto: this version, of before the slices
        :param key: of targets
        :param other: keys of the slices' rows that ``closing`` spells otherwise; None where none can be
        """
        rows = replaced(self.rows.where(F.col("_version") <= upto.sort_key), closing.rows, key, other)
        return replace(closing, rows=rows, counts=counted(rows))


def replaced(earlier: DataFrame, later: DataFrame, key: Sequence[str], other: DataFrame | None) -> DataFrame:
    """Rows of changes with later ones in the place of those that have the same keys.

    :param key: of targets
    :param other: keys of the earlier rows that the later ones spell otherwise; None where none can be
    """
    left = by_keys_of(earlier, later, key, "left_anti")
    if other is not None:
        left = by_keys_of(left, other, key, "left_anti")
    # of versions before that kept no columns of updates
    return left.unionByName(later, allowMissingColumns=True)


def lettered(rows: DataFrame, known: DataFrame, key: Sequence[str], *, hides: bool, has_columns: bool) -> DataFrame:
    """Rows of changes as inserts of the keys that are not known, and updates of the others; deletes remain.

    :param hides: rows may be there that do not fulfil the filter: a delete of a key that is not known is none
    :param has_columns: whether the updates name the columns of the whole window
    """
    there = known.select(*renamed(key)).distinct().withColumn(_HERE, F.lit(True))
    found = rows.join(there, same_key(key), "left").withColumn(_HERE, F.coalesce(_HERE, F.lit(False)))
    operation = F.when(F.col("_op") == "D", "D").when(F.col(_HERE), "U").otherwise("I")
    if hides:
        found = found.where((F.col("_op") != "D") | F.col(_HERE))
    names = [name for name in rows.columns if name != "_changed" or has_columns]
    return found.withColumn("_op", operation).select(*map(column, names))


def newest_of(parts: Sequence[DataFrame], key: Sequence[str]) -> DataFrame:
    """The row of each key that the last of some parts has.

    :param key: of targets, whose spelling does not change
    """
    numbered = [part.withColumn(_PART, F.lit(number)) for number, part in enumerate(parts)]
    order = Frame.partitionBy(*map(column, key)).orderBy(F.col(_PART).desc())
    joined = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), numbered)
    rows = joined.withColumn(_PLACE, F.row_number().over(order))
    return rows.where(F.col(_PLACE) == 1).drop(_PART, _PLACE)


def read_changes(
    jdbc: Jdbc,
    table: TableSpec,
    mappings: Sequence[ColumnMapping],
    after: Position,
    folder: str,
    salt: str | None,
    *,
    within: str = "",
    above: Position | None = None,
) -> ReadChanges:
    """Read what changed after a version in one statement, which returns one row at least.

    Whether a row is there decides what became of a key, not the letter of the change: an update of a unique index may
    have deleted and inserted it. A row that does not fulfil the filter is none.

    :param folder: for the rows; must not exist yet
    :param salt: of hashes
    :param within: a condition on the columns of the primary key; '' for all keys
    :param above: only keys whose newest change has a version above it; None for all
    """
    conditions = table.selection.conditions
    judged = {condition.column for condition in conditions}
    read = [mapping for mapping in mappings if mapping.select and not mapping.column.kept]
    known = {mapping.column.name for mapping in read}
    read += [map_column(table.name, table.schema.column(name)) for name in sorted(judged - known)]
    key = [mapping for mapping in read if mapping.column.name in table.schema.key]
    query, schema = _statement(table, mappings, read, key, after, within, above)
    rows = jdbc.frame(query, schema)
    here = F.col(_HERE).isNotNull()
    if conditions:
        here &= fulfils(read, conditions)
    rows = rows.withColumn(_HERE, here)
    values = {m.alias: F.when(F.col(_HERE), F.col(m.alias)) for m in read if m not in key}
    values |= {m.alias: F.coalesce(F.when(F.col(_HERE), F.col(m.alias)), F.col(_of_change(m))) for m in key}
    # what the table no longer has is NULL from then on
    values |= {m.alias: F.lit(None).cast(m.read_type) for m in mappings if m.select and m.column.kept}
    rows = with_salt(rows.withColumns(values), mappings, salt)
    operation = F.when(~F.col(_HERE), "D").when(F.col(_LETTER) == "I", "I").otherwise("U")
    targets = [
        F.expr(target.expression.replace("{}", mapping.alias)).alias(target.name)
        for mapping in mappings
        for target in mapping.targets
    ]
    own = [F.col(_AT).alias("_version"), F.col(_AT).alias("_n"), operation.alias("_op")]
    if table.feed.lacks_masks is None:
        own.append(F.when(operation == "U", _named(mappings)).alias("_changed"))
    files = write_rows(rows.select(*targets, *own, _LEVEL, _MIN_VALID, _READ_AT), folder)
    return _told(files)


def _named(mappings: Sequence[ColumnMapping]) -> Column:
    """The columns that a mask names, a letter for each of ``shown``: those of all updates of the key."""
    names = [F.when(F.substring(_MASK, at, 1) == "1", F.lit(m.name)) for at, m in enumerate(shown(mappings), start=1)]
    return F.when(F.col(_MASK).isNotNull(), F.array_compact(F.array(*names)))


def _told(files: Parquet) -> ReadChanges:
    said = files.rows().agg(
        F.max("_version").alias("newest"), F.max(_LEVEL).alias("level"), F.max(_MIN_VALID).alias("min_valid"),
        F.max(_READ_AT).alias("read_at"), *_counters(),
    ).collect()[0]  # fmt: skip

    def version(value: int | None) -> Version | None:
        return None if value is None else Version(value)

    rows = files.rows().where(F.col("_version").isNotNull()).drop(_LEVEL, _MIN_VALID, _READ_AT)
    newest, min_valid = version(said["newest"]), version(said["min_valid"])
    read_at = datetime.datetime.fromisoformat(said["read_at"])
    return ReadChanges(rows, _counts(said), newest, said["level"], min_valid, read_at)


def together(read: Sequence[ReadChanges]) -> ReadChanges:
    """What several statements have read, of keys that differ."""
    counts = reduce(Counts.__add__, (each.counts for each in read))
    newest = max((each.newest for each in read if each.newest is not None), default=None)
    # a statement by another level, or one that saw fewer changes, counts for all
    level = next((each.level for each in read if each.level != LEVEL_OF_SNAPSHOTS), LEVEL_OF_SNAPSHOTS)
    valid = [each.min_valid for each in read]
    min_valid = None if None in valid else max(each for each in valid if each is not None)
    rows = reduce(DataFrame.unionByName, (each.rows for each in read))
    # each row is of that moment or a later one
    read_at = min((each.read_at for each in read if each.read_at is not None), default=None)
    return ReadChanges(rows, counts, newest, level, min_valid, read_at)


_KINDS = {"inserted": "I", "updated": "U", "deleted": "D"}


def _counters() -> list[Column]:
    is_event, op = F.col("_version").isNotNull(), F.col("_op")
    return [F.count_if(is_event & (op == letter)).alias(name) for name, letter in _KINDS.items()]


def _counts(row: Row) -> Counts:
    return Counts(**{name: row[name] for name in _KINDS})


def counted(rows: DataFrame) -> Counts:
    """What rows of changes come to."""
    return _counts(rows.agg(*_counters()).collect()[0])


def _of_change(mapping: ColumnMapping) -> str:
    """The name of what CHANGETABLE says of a key column."""
    return f"k{mapping.alias}"


def _mask(table: TableSpec, mappings: Sequence[ColumnMapping]) -> str:
    """T-SQL that says of each of ``shown`` whether an update named it: 1 or 0, a letter each; NULL where nobody knows.

    What is in the mask itself is the server's own affair (docs: CHANGE_TRACKING_IS_COLUMN_IN_MASK).
    """
    if table.feed.lacks_masks is not None:
        return "CAST(NULL AS varchar(1))"
    ids = [mapping.column.column_id for mapping in shown(mappings)]
    letters = [f"CAST(CHANGE_TRACKING_IS_COLUMN_IN_MASK({id}, SYS_CHANGE_COLUMNS) AS varchar(1))" for id in ids]
    return f"CASE WHEN SYS_CHANGE_COLUMNS IS NOT NULL THEN {' + '.join(letters)} END"


def _statement(
    table: TableSpec,
    mappings: Sequence[ColumnMapping],
    read: Sequence[ColumnMapping],
    key: Sequence[ColumnMapping],
    after: Position,
    within: str,
    above: Position | None,
) -> tuple[str, str]:
    """The statement, and the Spark types of its columns."""
    joined = [f"j{number}" for number in range(len(table.feed.primary_key))]
    raw = ", ".join(f"{quote(n)} AS {j}" for n, j in zip(table.feed.primary_key, joined, strict=True))
    changed = ", ".join(f"{m.select} AS {_of_change(m)}" for m in key)
    values = ", ".join(f"{m.select} AS {m.alias}" for m in read)
    where = _all([pushed_filter(table.schema, table.selection.conditions), within])
    some = _all(["" if above is None else f"SYS_CHANGE_VERSION > {above.sort_key}", within])
    same = " AND ".join(f"v.{j} = c.{j}" for j in joined)
    names = ", ".join([*(f"c.{_of_change(m)}" for m in key), *(f"v.{m.alias}" for m in read)])
    mask = _mask(table, mappings)
    changes = (
        f"SELECT c.at, c.letter, c.mask, v.here, {names} FROM (SELECT SYS_CHANGE_VERSION AS at,"
        f" SYS_CHANGE_OPERATION AS letter, {mask} AS mask, {raw}, {changed}"
        f" FROM CHANGETABLE(CHANGES {table.name.quoted}, {after.sort_key}) AS ct{some}) AS c"
        f" LEFT JOIN (SELECT 1 AS here, {raw}, {values} FROM {table.name.quoted}{where})"
        f" AS v ON {same}"
    )
    # the level comes with the rows: a driver that sets it otherwise, or not at all, is found out
    said = (
        "SELECT (SELECT CAST(transaction_isolation_level AS int) FROM sys.dm_exec_sessions"
        " WHERE session_id = @@SPID) AS level,"
        f" CHANGE_TRACKING_MIN_VALID_VERSION({table.feed.object_id}) AS min_valid,"
        " CONVERT(varchar(23), GETDATE(), 121) AS read_at"
    )
    columns = {_LEVEL: ("s.level", "INT"), _MIN_VALID: ("s.min_valid", "BIGINT"), _READ_AT: ("s.read_at", "STRING")}
    columns |= {_AT: ("d.at", "BIGINT"), _LETTER: ("d.letter", "STRING"), _HERE: ("d.here", "INT")}
    columns |= {_MASK: ("d.mask", "STRING")}
    columns |= {_of_change(m): (f"d.{_of_change(m)}", m.read_type) for m in key}
    columns |= {m.alias: (f"d.{m.alias}", m.read_type) for m in read}
    selected = ", ".join(f"{sql} AS {name}" for name, (sql, _) in columns.items())
    schema = ", ".join(f"{name} {type_}" for name, (_, type_) in columns.items())
    return f"SELECT {selected} FROM ({said}) AS s LEFT JOIN ({changes}) AS d ON 1 = 1", schema


def _all(conditions: Iterable[str | None]) -> str:
    """The WHERE of what fulfils all of some conditions; '' where there are none."""
    found = " AND ".join(f"({condition})" for condition in conditions if condition)
    return f" WHERE {found}" if found else ""


@dataclass(frozen=True, slots=True)
class StagedChanges:
    """Net changes, staged for each window. The end of such a window is one, too: of a key that changed within it the
    newest change tells; not whether the key was there at its beginning.

    :param read: by window
    :param proven: the position that the rows of each window prove
    """

    read: Mapping[Window, ReadChanges]
    proven: Mapping[Window, Version]
    _parts: dict[Window, ReadChanges] = field(default_factory=dict, init=False, compare=False)

    def of(self, window: Window) -> ReadChanges:
        """What was read of a window, or of the end of one."""
        if window in self.read:
            return self.read[window]
        if window not in self._parts:
            around = self._around(window)
            whole, rows = self.read[around], self.read[around].rows.where(F.col("_version") > window.after.sort_key)
            if window.upto < around.upto:
                # to be counted: of other keys nobody knows what they were there
                rows = rows.where(F.col("_version") <= window.upto.sort_key)
            part = replace(whole, rows=rows, counts=counted(rows), gone=None, is_whole=False, is_net=False)
            self._parts[window] = part
        return self._parts[window]

    def _around(self, window: Window) -> Window:
        """The window that was read and holds this one; else one that ends with it, where nothing happened before."""
        if window in self.read:
            return window
        ending = [each for each in self.read if window.upto <= self.proven[each]] or [*self.read]
        holding = [each for each in ending if each.after <= window.after] or ending
        return max(holding, key=lambda each: each.after)

    def rows(self, window: Window) -> DataFrame:
        """The window's rows."""
        return self.of(window).events()

    def count(self, window: Window) -> Counts:
        """What the window holds."""
        return self.of(window).counts

    def total(self) -> Counts:
        """What the longest window holds: all end at the same cut."""
        return self.read[min(self.read, key=lambda window: window.after)].counts

    def holds(self, window: Window) -> bool:
        """Whether this window was read, or one that ends with it."""
        return window in self.read or any(
            each.after <= window.after and each.upto <= window.upto <= self.proven[each] for each in self.read
        )

    def reached(self, window: Window) -> Position:
        """The position that the window's rows prove, at its end or above it."""
        return max(window.upto, self.proven[self._around(window)])
