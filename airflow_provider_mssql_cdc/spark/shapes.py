"""What each shape holds, and the rows that a window adds to it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.changes import WIDE
from airflow_provider_mssql_cdc.core.columns import (
    DELETED_AT,
    EVENT_COLUMNS,
    TEMPORARY,
    TRAN_ID,
    TRANSACTION_COLUMNS,
    VERSION_COLUMNS,
    ColumnMapping,
    TargetColumn,
    added_columns,
    key_columns,
    wide_columns,
)
from airflow_provider_mssql_cdc.core.exceptions import CopyMovedError, TargetError, UnsupportedColumnError
from airflow_provider_mssql_cdc.core.marker import LAYOUT, Marker
from airflow_provider_mssql_cdc.core.position import Position, Window
from airflow_provider_mssql_cdc.core.spec import SinkSpec, TableSpec
from airflow_provider_mssql_cdc.core.target import HARD, HISTORY, SCD2, SOFT, TRANSACTIONS
from airflow_provider_mssql_cdc.spark.chosen_keys import ChosenKey
from airflow_provider_mssql_cdc.spark.files import write_rows
from airflow_provider_mssql_cdc.spark.fold import (
    by_keys_of,
    column,
    is_delete,
    last_per_key,
    renamed,
    same_key,
)
from airflow_provider_mssql_cdc.spark.lobs import resolve
from airflow_provider_mssql_cdc.spark.server_time import to_utc
from airflow_provider_mssql_cdc.spark.staging import Staged

IDENTITY = ("_lsn", "_command_id", "_seqval", "_op")
"""What identifies an event; it is compared NULL-safe."""


_LATEST = TEMPORARY + "latest"


@dataclass(frozen=True, slots=True)
class TableShape:
    """One source table's columns in the targets.

    :param timezone: IANA zone of the server's clock; None where it is not known
    :param scratch: folder for rows that take long to compute and are needed more than once; None computes them again
    """

    spec: TableSpec
    mappings: tuple[ColumnMapping, ...]
    timezone: str | None
    scratch: str | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """The target columns that identify a row."""
        return key_columns(self.spec.schema, self.mappings)

    @property
    def nullable_key(self) -> bool:
        """Whether a key column may be NULL."""
        return any(self.spec.schema.column(name).nullable for name in self.spec.schema.key)

    @property
    def lobs(self) -> tuple[str, ...]:
        """The columns that CDC may leave out of an image."""
        return tuple(mapping.name for mapping in self.mappings if mapping.is_lob)

    @property
    def data_columns(self) -> tuple[TargetColumn, ...]:
        """The columns of a mirror."""
        return tuple(target for mapping in self.mappings for target in mapping.targets)

    def columns(self, sink: SinkSpec, layout: int = LAYOUT) -> tuple[TargetColumn, ...]:
        """Return the columns of a target table.

        :param layout: version of its system columns
        """
        added = tuple(TargetColumn(name, type_, "{}") for name, type_ in added_columns(sink.shape, layout).items())
        if sink.shape == TRANSACTIONS:
            return (*(TargetColumn(name, type_, "{}") for name, type_ in TRANSACTION_COLUMNS.items()), *added)
        if sink.history.form == WIDE:
            return (*wide_columns(self.data_columns), *added)
        mirror = DELETED_AT if sink.deletes == SOFT else {}
        more = {HISTORY: EVENT_COLUMNS, SCD2: VERSION_COLUMNS}.get(sink.shape, mirror)
        return (*self.data_columns, *(TargetColumn(name, type_, "{}") for name, type_ in more.items()), *added)

    def new_layout(self, sink: SinkSpec) -> int:
        """The layout of a table that is made: version 1 where the source has a column with the name of a later one."""
        return self.layout_of(sink, [*added_columns(sink.shape, LAYOUT)])

    def marked_layout(self, sink: SinkSpec, name: str, marker: Marker) -> int:
        """The layout that a table's marker names.

        :param name: of the table, for people
        :raises TargetError: if a later version of this package has made it
        :raises UnsupportedColumnError: if a column of the source would take the place of a system column
        """
        if marker.layout > LAYOUT:
            raise TargetError(
                f"{name} has system columns of version {marker.layout}, and this package knows those of version "
                f"{LAYOUT}.",
                table=str(self.spec.name),
                advice="Upgrade airflow-provider-mssql-cdc where the task and its Spark job run.",
            )
        system = added_columns(sink.shape, marker.layout).keys()
        if taken := [column for column in self._data_names(sink) if column.lower() in system]:
            raise UnsupportedColumnError(
                f"column {taken[0]!r} has the name of a system column of {name}.",
                table=str(self.spec.name),
                advice="Give it another name (rename), or leave it out (columns).",
            )
        return marker.layout

    def layout_of(self, sink: SinkSpec, names: Sequence[str]) -> int:
        """The layout of a table without marker, by the names of its columns."""
        added = added_columns(sink.shape, LAYOUT).keys()
        taken = {name.lower() for name in self._data_names(sink)}
        return LAYOUT if added <= {*names} and not taken & added else 1

    def _data_names(self, sink: SinkSpec) -> list[str]:
        if sink.shape == TRANSACTIONS or sink.history.form == WIDE:
            return []
        return [target.name for target in self.data_columns]

    def mirror_changes(self, staged: Staged, window: Window, held: DataFrame, deletes: str = HARD) -> DataFrame:
        """Return one row per key that changed in the window, to put or to delete.

        :param held: the mirror's rows, those of before the window
        :param deletes: what becomes of deleted rows
        :raises TargetError: if a value cannot be known
        :raises KeyRequiredError: if the key, which the user chose, is not unique
        """
        if deletes == SOFT:
            held = held.where("_deleted_at IS NULL")
        events = self.events(staged, window, self.known_in_mirror(held))
        chosen = self.chosen_key
        changes = _kept(chosen.changes(events, held) if chosen else last_per_key(events, self.key), deletes)
        if unknown := self._unknown(staged, window, changes):
            raise TargetError(
                f"CDC left out the value of {unknown}, and neither the window nor the target holds it.",
                table=str(self.spec.name),
                advice="To load the mirror anew, drop it and run `mssql-cdc checkpoint reset --shape mirror`.",
            )
        return changes

    def mirror_rows(self, staged: Staged | None, window: Window, copied: DataFrame) -> DataFrame:
        """Return the rows of a new mirror: the copied ones, with those in their place that changed meanwhile.

        :raises KeyRequiredError: if the key, which the user chose, is not unique
        :raises CopyMovedError: if a value cannot be known, or rows passed such a key on while they were copied
        """
        if staged is None or not staged.count(window).events:
            if self.chosen_key:
                self.chosen_key.refuse_duplicates(copied)
            return copied
        events = self.events(staged, window, self.known_in_copy(copied, staged, window))
        stay, changes = self.first_rows(copied, events)
        if unknown := self._unknown(staged, window, changes):
            raise CopyMovedError(
                f"CDC left out the value of {unknown}, which changed while the table was copied.",
                table=str(self.spec.name),
                advice="Run the task again, at a quiet moment of the table: a copy during which "
                "these rows do not change has all values.",
            )
        changed = changes.where(~is_delete())
        return stay.select(*self._data()).unionAll(changed.select(*self._data()))

    def transactions(self, staged: Staged, window: Window) -> DataFrame:
        """Return a row for each transaction of the window that changed the table, with the number of its events."""
        kinds = {"inserted": "I", "updated": "U", "deleted": "D"}
        counted = {name: F.count_if(F.col("_op") == kind).alias(name) for name, kind in kinds.items()}
        same = [F.min(name).alias(name) for name in ("_commit_ts", TRAN_ID)]
        rows = staged.rows(window).groupBy("_lsn").agg(*same, *counted.values())
        name = self.spec.name
        return rows.withColumns(
            {
                "_commit_ts_utc": self._utc(),
                "schema": F.lit(name.schema),
                "table": F.lit(name.table),
                "events": F.col("inserted") + F.col("updated") + F.col("deleted"),
            }
        )

    def history_events(
        self, staged: Staged, window: Window, known: DataFrame | None, *, once: bool = True
    ) -> DataFrame:
        """Return the window's events as a history holds them.

        :param known: key, LOBs and ``_unknown`` of each key as they were before the window
        :param once: whether they are gone through but once
        """
        events = self._resolved(staged, window, known) if once else self.events(staged, window, known)
        return events.withColumn("_commit_ts_utc", self._utc())

    def events(self, staged: Staged, window: Window, known: DataFrame | None) -> DataFrame:
        """Return the window's events, with the LOBs that CDC left out as far as they are known.

        :param known: key, LOBs and ``_unknown`` of each key as they were before the window
        """
        events = self._resolved(staged, window, known)
        if self.scratch is None or not staged.count(window).unknown:
            return events
        return write_rows(events, f"{self.scratch}/{secrets.token_hex(8)}").rows()

    def history_copy(
        self, copied: DataFrame, low: Position, staged: Staged | None, window: Window, held: DataFrame | None = None
    ) -> DataFrame:
        """Return the copied rows as a history holds them; those whose key changed meanwhile give way.

        :param held: the events whose keys give way, where the history does not hold all kinds of changes
        """
        if held is not None:
            copied = by_keys_of(copied, held, self.key, "left_anti")
        elif staged is not None and staged.count(window).events:
            copied, _ = self.first_rows(copied, staged.rows(window))
        elif self.chosen_key:
            self.chosen_key.refuse_duplicates(copied)
        event = {
            name: F.lit(None).cast(type_)
            for name, type_ in {**EVENT_COLUMNS, TRAN_ID: "STRING"}.items()
            if name not in ("_op", "_lsn", "_changed", "_unknown")
        }
        return copied.withColumns(
            {**event, "_op": F.lit("R"), "_lsn": F.lit(low.sort_key), "_changed": _no_names(), "_unknown": _no_names()}
        )

    def known_in_mirror(self, rows: DataFrame) -> DataFrame:
        """Return what a mirror, whose rows are those of before a window, knows of each key."""
        return rows.select(*map(column, (*self.key, *self.lobs)), _no_names().alias("_unknown"))

    def known_in_versions(self, versions: DataFrame) -> DataFrame:
        """Return what versions, one per key, know of each key."""
        return versions.select(*map(column, (*self.key, *self.lobs)), "_unknown")

    def known_in_copy(self, copied: DataFrame, staged: Staged, window: Window) -> DataFrame:
        """Return what a first load's copy tells of each key as it was before the window.

        Each row was copied at a moment within the window that nobody knows. So a copied LOB is that of before the
        window only if no event of its key in the window may have set it: no insert, no row that came from another key,
        no update with its mask bit on. Where such an event lies before the one that left the LOB out, its value is
        carried forward and the copy's is not needed; where it lies after, the copy may hold the newer value.
        """
        if not staged.count(window).unknown:
            return self.known_in_mirror(copied)
        if self.chosen_key:
            # rows on the move may be met twice under one key
            copied = self.chosen_key.alone(copied)
        lobs = F.array(*map(F.lit, self.lobs))
        begins = (F.col("_op") == "I") | F.col("_moved")
        may_set = F.when(begins, lobs).otherwise(F.array_intersect("_changed", lobs))
        after_images = staged.rows(window).where(F.col("_op").isin("I", "U"))
        changed = F.array_distinct(F.flatten(F.collect_set(may_set))).alias("_unknown")
        by_key = after_images.groupBy(*renamed(self.key)).agg(changed)
        names = F.coalesce("_unknown", _no_names()).alias("_unknown")
        return copied.join(by_key, same_key(self.key), "left").select(*map(column, (*self.key, *self.lobs)), names)

    def known_in_history(self, history: DataFrame, window: Window) -> DataFrame:
        """Return what a history knows of each key before a window: its latest image, if that is not an old one."""
        images = history.where((F.col("_lsn") <= window.after.sort_key) & (F.col("_op") != "B"))
        needed = (*map(column, self.lobs), F.col("_unknown"), F.col("_op"))
        order = F.struct("_lsn", F.coalesce("_seq", F.lit(0)))
        latest = images.groupBy(*map(column, self.key)).agg(F.max_by(F.struct(*needed), order).alias(_LATEST))
        return latest.select(*map(column, self.key), f"{_LATEST}.*").where("_op != 'D'").drop("_op")

    @property
    def chosen_key(self) -> ChosenKey | None:
        """The key, where the user chose it and the server does not enforce it."""
        if self.spec.unique_key or not self.key:
            return None
        not_image = {*self.key, *self.lobs}
        image = [target.name for target in self.data_columns if target.name not in not_image]
        return ChosenKey(self.spec.name, self.key, image, has_lobs=bool(self.lobs))

    def first_rows(self, copied: DataFrame, events: DataFrame) -> tuple[DataFrame, DataFrame]:
        """Return the copied rows that stay, and the last row of each key that has events."""
        if self.chosen_key:
            return self.chosen_key.first_rows(copied, events)
        return by_keys_of(copied, events, self.key, "left_anti"), last_per_key(events, self.key)

    def _resolved(self, staged: Staged, window: Window, known: DataFrame | None) -> DataFrame:
        events, counts = staged.rows(window), staged.count(window)
        if not counts.unknown:
            return events
        moves = counts.moved > 0
        return resolve(events, known, self.key, self.lobs, enforced=self.spec.unique_key, moves=moves)

    def _data(self) -> Sequence[Column]:
        return [column(target.name) for target in self.data_columns]

    def _utc(self) -> Column:
        return F.lit(None).cast("timestamp") if self.timezone is None else to_utc(F.col("_commit_ts"), self.timezone)

    def _unknown(self, staged: Staged, window: Window, last: DataFrame) -> str:
        """Examples of values that cannot be known; empty where there are none."""
        if not staged.count(window).unknown:
            return ""
        rows = last.where(~is_delete() & (F.size("_unknown") > 0)).limit(3).collect()
        return "; ".join(
            f"{', '.join(row['_unknown'])} of {', '.join(f'{name}={row[name]!r}' for name in self.key)}" for row in rows
        )


def _kept(changes: DataFrame, deletes: str) -> DataFrame:
    """Return deletes as rows to put, where the mirror keeps deleted rows."""
    if deletes == HARD:
        return changes
    if deletes == SOFT:
        # without a time it would look as if it were still there
        missing = F.raise_error(F.concat(F.lit("cdc.lsn_time_mapping has no time of "), "_lsn")).cast("timestamp_ntz")
        changes = changes.withColumn("_deleted_at", F.when(is_delete(), F.coalesce("_commit_ts", missing)))
    return changes.withColumn("_op", F.when(is_delete(), "U").otherwise(F.col("_op")))


def _no_names() -> Column:
    return F.array().cast("array<string>")
