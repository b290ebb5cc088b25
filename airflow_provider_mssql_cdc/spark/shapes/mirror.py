"""``mirror``: the rows of the source table, as they are now."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import TEMPORARY
from airflow_provider_mssql_cdc.core.exceptions import CopyRefusedError, CopyUncertainError, LostValueError
from airflow_provider_mssql_cdc.core.marker import Gap
from airflow_provider_mssql_cdc.core.position import Position, Window
from airflow_provider_mssql_cdc.core.shapes import DELETED_AT, HARD, IGNORE, SOFT
from airflow_provider_mssql_cdc.spark.copies.copy import Copy
from airflow_provider_mssql_cdc.spark.shapes.base import Beginning, Differences, SinkRows
from airflow_provider_mssql_cdc.spark.shapes.fills import any_value, values_of, with_values
from airflow_provider_mssql_cdc.spark.shapes.fold import by_keys_of, column, is_delete, lacks_any, last_per_key
from airflow_provider_mssql_cdc.spark.shapes.fold import unknown as unknown_of
from airflow_provider_mssql_cdc.spark.staging import Staged
from airflow_provider_mssql_cdc.spark.targets import OldRows, Write


class Mirror(SinkRows):
    """One row per key. Deleted rows go; or they stay, with the time of their delete or without."""

    @property
    def before_images(self) -> bool:
        """Where the server does not enforce the key, they tell which row left it; a soft delete has a time."""
        return not self.table.spec.unique_key or self.sink.deletes == SOFT

    @property
    def system_columns(self) -> dict[str, str]:
        """``_deleted_at``, where deleted rows are kept and marked."""
        return dict(DELETED_AT) if self.sink.deletes == SOFT else {}

    @property
    def keeps_rows(self) -> bool:
        """All rows are replaced by those of the copy."""
        return False

    @property
    def is_unique(self) -> bool:
        """Its key is the source's: unique where the server enforces it and it cannot be NULL."""
        return self.table.spec.unique_key and not self.table.nullable_key

    def first(self, begun: Beginning, target_rows: DataFrame) -> Write:
        """The copied rows, with those in their place that changed meanwhile; what vanished in a gap goes."""
        assert begun.copy is not None
        rows = self._first_rows(begun.window, begun.staged, begun.copy)
        if not begun.anew:
            return Write(rows)
        if begun.asked is not None:
            told = begun.asked
            if begun.staged is not None:
                told = told.unionAll(begun.staged.rows(begun.window).select(*map(column, self.table.key)))
            return self._healed(rows, by_keys_of(target_rows, told, self.table.key, "left_semi"), begun.known_at)
        if self.sink.deletes == HARD:
            return Write(rows, old=OldRows.ALL)
        gone = self._gone(rows, target_rows, begun.known_at, begun.key_before)
        return Write(rows.unionByName(gone), old=OldRows.ALL)

    def _healed(self, rows: DataFrame, told: DataFrame, known_at: datetime.datetime | None) -> Write:
        """Rows to put, and what goes of those rows of the mirror of which a copy of changed rows tells."""
        gone = by_keys_of(told, rows, self.table.key, "left_anti")
        if self.sink.deletes == SOFT:
            time = F.lit(known_at.isoformat() if known_at else None).cast("timestamp_ntz")
            gone = gone.withColumn("_deleted_at", F.coalesce("_deleted_at", time))
        put = rows.withColumn("_op", F.lit("U"))
        if self.sink.deletes != IGNORE:
            ending = F.lit("D" if self.sink.deletes == HARD else "U")
            put = put.unionByName(gone.select(*map(column, rows.columns)).withColumn("_op", ending))
        return self._write(put)

    def next(self, window: Window, staged: Staged, target_rows: DataFrame, gaps: Sequence[Gap]) -> Write:
        """One row per key that changed, to put or to delete."""
        return self._write(self.changes(window, staged, target_rows))

    def next_beside(
        self, copy: Copy, window: Window, staged: Staged, target_rows: DataFrame, gaps: Sequence[Gap]
    ) -> Write:
        """The same, with the values of rows that the mirror has lost."""
        return self._write(self.changes(window, staged, target_rows, copy))

    def _write(self, changes: DataFrame) -> Write:
        return Write(
            changes,
            self.table.key,
            OldRows.OF_KEY,
            nullable_key=self.table.nullable_key,
            of_target=self.table.unenforced_key is not None,
        )

    @property
    def is_comparable(self) -> bool:
        """Always."""
        return True

    def now(self, target_rows: DataFrame) -> DataFrame:
        """Its rows but for those that are marked as deleted."""
        return target_rows.where("_deleted_at IS NULL") if self.sink.deletes == SOFT else target_rows

    def suspects(self, copy: Copy, target_rows: DataFrame) -> DataFrame | None:
        """None of a mirror that keeps deleted rows as they were: nothing tells them from the others."""
        found = super().suspects(copy, target_rows)
        return found if found is None or self.sink.deletes != IGNORE else found.limit(0)

    def mended(
        self, found: Differences, target_rows: DataFrame, at: Position, known_at: datetime.datetime | None
    ) -> Write:
        """Rows that differ are put; those that vanished go, are marked, or stay.

        Where a key is there twice, which a merge would leave so, all rows are written anew.
        """
        if self._has_doubled(target_rows):
            if (rows := found.there) is None:
                raise CopyRefusedError(
                    f"{self.sink.name} has some key twice, which a copy of some rows cannot mend.",
                    table=str(self.table.spec.name),
                    advice="Ask for a copy of all rows: without a condition.",
                )
            if self.sink.deletes == SOFT:
                rows = rows.withColumn("_deleted_at", F.lit(None).cast("timestamp_ntz"))
            if self.sink.deletes != HARD:
                rows = rows.unionByName(self._gone(rows, target_rows, known_at))
            return Write(rows, old=OldRows.ALL)
        names = [column(target.name) for target in self.columns()]
        put, gone = found.rows, found.vanished
        if self.sink.deletes == SOFT:
            time = known_at or datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
            put = put.withColumn("_deleted_at", F.lit(None).cast("timestamp_ntz"))
            gone = gone.withColumn("_deleted_at", F.lit(time.isoformat()).cast("timestamp_ntz"))
        rows = put.select(*names, F.lit("U").alias("_op"))
        if self.sink.deletes != IGNORE:
            ending = F.lit("D" if self.sink.deletes == HARD else "U").alias("_op")
            rows = rows.unionAll(gone.select(*names, ending))
        return Write(rows, self.table.key, OldRows.OF_KEY, nullable_key=self.table.nullable_key)

    def filled(
        self,
        target_rows: DataFrame,
        there: DataFrame,
        events: DataFrame | None,
        names: Sequence[str],
        window: Window,
        common: DataFrame | None = None,
        known_at: datetime.datetime | None = None,
    ) -> Write:
        """The rows whose value is not NULL."""
        values = values_of(there, self.table.key, names)
        rows = with_values(self.now(target_rows), values, self.table.key, names, common=common)
        rows = rows.where(any_value(names)).withColumn("_op", F.lit("U"))
        return Write(rows, self.table.key, OldRows.OF_KEY, nullable_key=self.table.nullable_key, of_target=True)

    def _has_doubled(self, rows: DataFrame) -> bool:
        number = f"{TEMPORARY}number"
        by_key = rows.groupBy(*map(column, self.table.key)).agg(F.count("*").alias(number))
        return not by_key.where(F.col(number) > 1).isEmpty()

    def looks_up(self, window: Window, staged: Staged) -> bool:
        """Also where nobody enforces the key: several rows may have it."""
        return self.table.unenforced_key is not None or super().looks_up(window, staged)

    def lacks(
        self, known: tuple[Gap, ...], after: Position, window: Window, *, healed: bool = False
    ) -> tuple[Gap, ...]:
        """Nothing: all rows were replaced, or those that changed."""
        return ()

    def changes(self, window: Window, staged: Staged, target_rows: DataFrame, copy: Copy | None = None) -> DataFrame:
        """One row per key that changed in the window, to put or to delete.

        :param target_rows: the mirror's rows, those of before the window
        :param copy: that may tell a value of a row which the mirror has lost
        :raises LostValueError: if a value cannot be known
        :raises CopyUncertainError: if the copy does not tell it either
        :raises KeyRequiredError: if the key, which the user named, is not unique
        """
        if self.sink.deletes == SOFT:
            target_rows = target_rows.where("_deleted_at IS NULL")
        known = self.table.known_of(self.table.known_now(target_rows), staged, window)
        changes = self._last(window, staged, target_rows, self.table.events(staged, window, known))
        # one by conditions does not have all rows
        if (unknown := self._unknown(staged, window, changes)) and copy is not None and not copy.conditions:
            events = self.table.events_beside(copy, window, staged, self.table.known_now(target_rows))
            if events is not None:
                changes = self._last(window, staged, target_rows, events)
                if unknown := self._unknown(staged, window, changes):
                    raise self._uncertain(unknown)
        if unknown:
            raise LostValueError(
                f"CDC left out the value of {unknown}, and neither the window nor the target holds it.",
                table=str(self.table.spec.name),
                advice="`mssql-cdc copy start`, without --where, mends the mirror.",
            )
        return changes

    def _last(self, window: Window, staged: Staged, target_rows: DataFrame, events: DataFrame) -> DataFrame:
        """The row to put or to delete of each key that has events."""
        if unenforced := self.table.unenforced_key:
            return self._kept(unenforced.changes(events, target_rows, few=self.table.few(staged, window)))
        return self._kept(last_per_key(events, self.table.key))

    def _first_rows(self, window: Window, staged: Staged | None, copy: Copy) -> DataFrame:
        copied = self.table.copied(copy, staged, window)
        rows = copied.stay.select(*self.table.data)
        if self.sink.deletes == SOFT:
            rows = rows.withColumn("_deleted_at", F.lit(None).cast("timestamp_ntz"))
        if staged is None or copied.left is None or copied.gone is None:
            return rows
        if unknown := self._unknown(staged, window, copied.left):
            raise self._uncertain(unknown)
        last = copied.left
        if self.sink.deletes != HARD and copied.was is not None:
            # of a row that was deleted before it was copied nobody knows a value that CDC leaves out
            last = last.unionByName(copied.gone.where(F.size(unknown_of(copied.gone)) == 0))
        return rows.unionByName(self._kept(last).select(*map(column, rows.columns)))

    def _uncertain(self, unknown: str) -> CopyUncertainError:
        return CopyUncertainError(
            f"CDC left out the value of {unknown}, which changed while the table was copied.",
            table=str(self.table.spec.name),
            advice="Run the task again: these rows are read again. A quiet moment of the table is best.",
        )

    def _kept(self, changes: DataFrame) -> DataFrame:
        """The changes, with deletes as rows to put where the mirror keeps deleted rows."""
        if self.sink.deletes == HARD:
            return changes
        if self.sink.deletes == SOFT:
            # without a time it would look as if it were still there
            position = F.col(self.table.position).cast("string")
            missing = F.raise_error(F.concat(F.lit("cdc.lsn_time_mapping has no time of "), position))
            time = F.coalesce("_commit_ts", missing.cast("timestamp_ntz"))
            changes = changes.withColumn("_deleted_at", F.when(is_delete(), time))
        return changes.withColumn("_op", F.when(is_delete(), "U").otherwise(F.col("_op")))

    def _gone(
        self,
        rows: DataFrame,
        target_rows: DataFrame,
        known_at: datetime.datetime | None,
        key_before: tuple[str, ...] | None = None,
    ) -> DataFrame:
        """The rows that vanished within a gap, of which nobody knows when, for a mirror that keeps deleted rows.

        :param key_before: columns of the key by which the target's rows are told apart, where that was another one
        """
        gone = by_keys_of(target_rows, rows, self.table.key, "left_anti")
        if key_before is not None and self.table.tells(key_before):
            is_live = F.col("_deleted_at").isNull() if self.sink.deletes == SOFT else F.lit(True)
            live = by_keys_of(gone.where(is_live), rows, key_before, "left_anti")
            gone = live.unionByName(gone.where(~is_live))
        elif key_before is not None and not self.table.nullable_key:
            # nobody can tell whether one is there that lacks a value of the key
            is_marked = F.col("_deleted_at").isNotNull() if self.sink.deletes == SOFT else F.lit(False)
            gone = gone.where(is_marked | ~lacks_any(self.table.key))
        if self.sink.deletes == SOFT:
            time = F.lit(known_at.isoformat() if known_at else None).cast("timestamp_ntz")
            gone = gone.withColumn("_deleted_at", F.coalesce("_deleted_at", time))
        return gone if key_before is None else self._one_per_key(gone)

    def _one_per_key(self, gone: DataFrame) -> DataFrame:
        """Rows that vanished, the last one of each key, which another key did not see to; and those that lack a value
        of a key that has one in each row: no other row is ever theirs.
        """
        order = [F.col("_deleted_at").desc_nulls_first()] if self.sink.deletes == SOFT else []
        order += [column(target.name).desc() for target in self.table.data_columns]
        number = f"{TEMPORARY}number"
        of_key = Over.partitionBy(*map(column, self.table.key)).orderBy(*order)
        first = F.col(number) == 1
        if not self.table.nullable_key:
            first |= lacks_any(self.table.key)
        return gone.withColumn(number, F.row_number().over(of_key)).where(first).drop(number)

    def _unknown(self, staged: Staged, window: Window, last: DataFrame) -> str:
        """Examples of values that cannot be known; empty where there are none."""
        if not staged.count(window).unknown:
            return ""
        rows = last.where(~is_delete() & (F.size("_unknown") > 0)).limit(3).collect()
        key = self.table.key
        return "; ".join(
            f"{', '.join(row['_unknown'])} of {', '.join(f'{name}={row[name]!r}' for name in key)}" for row in rows
        )
