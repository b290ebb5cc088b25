"""``scd2``: one version of a row per key and transaction, from one position up to the next."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import TEMPORARY
from airflow_provider_mssql_cdc.core.marker import Gap
from airflow_provider_mssql_cdc.core.position import Position, Window
from airflow_provider_mssql_cdc.spark.shapes.base import Beginning, Differences, SinkRows
from airflow_provider_mssql_cdc.spark.shapes.fills import LACKS, any_value, values_of, with_values
from airflow_provider_mssql_cdc.spark.shapes.fold import (
    by_keys_of,
    column,
    is_delete,
    lacks_any,
    last_per_key,
    renamed,
    same_key,
    unknown,
)
from airflow_provider_mssql_cdc.spark.staging import Staged
from airflow_provider_mssql_cdc.spark.targets import OldRows, Write

_NEXT, _NEXT_TIME = f"{TEMPORARY}next", f"{TEMPORARY}next_time"


class Versions(SinkRows):
    """Versions of rows: the one that counts now has no end."""

    @property
    def begins(self) -> str:
        """The column of the position from which a version counts."""
        return f"_from{self.table.position}"

    @property
    def ends(self) -> str:
        """The column of the position at which it ends."""
        return f"_to{self.table.position}"

    @property
    def version_key(self) -> tuple[str, ...]:
        """The columns that identify a version."""
        return (*self.table.key, self.begins)

    def first(self, begun: Beginning, target_rows: DataFrame) -> Write:
        """Versions of the table's rows at the copy's low from there on, and of the events since.

        In a gap the versions that vanished, or differ at the copy's low, end there, and what differs begins.
        """
        assert begun.copy is not None
        low = self.table.counts_from(begun.window)
        copied = self.table.copied(begun.copy, begun.staged, begun.window)
        at_low = [self._begun(rows, low) for rows in (copied.stay, copied.was) if rows is not None]
        if begun.key_before is not None:
            rows = reduce(DataFrame.unionByName, at_low)
            return self._by_another_key(rows, low, copied.events, target_rows, begun.added)
        if begun.anew:
            rows, now, others = reduce(DataFrame.unionByName, at_low), self.still_open(target_rows), None
            if begun.asked is not None:
                # the other keys go on as they were, with their events
                others = by_keys_of(now, begun.asked, self.table.key, "left_anti")
                rows, now = (by_keys_of(each, begun.asked, self.table.key, "left_semi") for each in (rows, now))
            return self._anew(rows, low, copied.events, now, others)
        parts = at_low[:1]
        if copied.events is not None:
            parts += [self._ended(was, copied.events) for was in at_low[1:]]
            parts.append(self._of_events(copied.events))
        return Write(reduce(DataFrame.unionByName, parts))

    def next(self, window: Window, staged: Staged, target_rows: DataFrame, gaps: Sequence[Gap]) -> Write:
        """The versions that a window begins, and those that it ends."""
        now = self.still_open(target_rows)
        known = now.select(*map(column, (*self.table.key, *self.table.lobs)), "_unknown")
        events = self.table.events(staged, window, self.table.known_of(known, staged, window))
        return self._puts([self._of_events(events), self._ended(now, events, few=self.table.few(staged, window))])

    @property
    def is_comparable(self) -> bool:
        """Always."""
        return True

    def now(self, target_rows: DataFrame) -> DataFrame:
        """The versions that count now."""
        return self.still_open(target_rows)

    def mended(
        self, found: Differences, target_rows: DataFrame, at: Position, known_at: datetime.datetime | None
    ) -> Write:
        """Versions that differ end, and others begin, in the place of one that begins at ``at`` itself."""
        time = F.lit(known_at.isoformat() if known_at else None).cast("timestamp_ntz")
        begun = self._begun(found.rows, at)
        ended = found.old.withColumns({self.ends: F.lit(at.sort_key), "_to_ts": time})
        return self._puts([by_keys_of(ended, begun, self.version_key, "left_anti"), begun])

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
        """The open versions get the values of now, and those that began within the window what their event says. Of
        older ones that have ended nobody knows: ``_unknown`` names the columns, but for those of which they were loaded
        with a value, in the type of then.
        """
        key, ended = self.table.key, target_rows.where(F.col(self.ends).isNotNull())
        of_now = with_values(self.still_open(target_rows), values_of(there, key, names), key, names, common=common)
        all_unknown = F.array(*map(F.lit, names))
        told = None
        if events is not None:
            left = self._last_of_transactions(events).withColumn(self.begins, F.col(self.table.position))
            left = left.withColumn(LACKS, F.array_intersect(unknown(left), all_unknown))
            told = with_values(ended, values_of(left, self.version_key, (*names, LACKS)), self.version_key, names)
            ended = by_keys_of(ended, left, self.version_key, "left_anti")
        lacked = F.array_compact(F.array(*(F.when(column(name).isNull(), F.lit(name)) for name in names)))
        ended = ended.withColumn("_unknown", F.array_union("_unknown", lacked))
        of_now = of_now.where(any_value(names))
        parts = [of_now, ended, *([told] if told is not None else [])]
        if self._alike(target_rows).isEmpty():
            return self._puts(parts)
        # a merge would find several by one key, or none
        parts.append(by_keys_of(self.still_open(target_rows), of_now, key, "left_anti"))
        return Write(reduce(DataFrame.unionByName, parts), old=OldRows.ALL, of_target=True)

    def _alike(self, target_rows: DataFrame) -> DataFrame:
        """What several versions have that are to be told apart by it, or lack: versions of before another key."""
        number = f"{TEMPORARY}number"
        counted = target_rows.groupBy(*map(column, self.version_key)).agg(F.count("*").alias(number))
        is_alike = F.col(number) > 1
        return counted.where(is_alike if self.table.nullable_key else is_alike | lacks_any(self.table.key)).drop(number)

    def newest(self, target_rows: DataFrame) -> str | int | None:
        """The newest position at which a version begins or ends."""
        found = target_rows.agg(F.max(self.begins), F.max(self.ends)).collect()[0]
        return max(filter(None, found), default=None)

    def still_open(self, target_rows: DataFrame) -> DataFrame:
        """The versions that count now, one per key."""
        return target_rows.where(F.col(self.ends).isNull())

    def _anew(
        self, at_low: DataFrame, low: Position, events: DataFrame | None, now: DataFrame, others: DataFrame | None
    ) -> Write:
        """What closes a gap.

        :param at_low: versions of the table's rows at the copy's low, from there on
        :param events: after ``low``; None where there are none
        :param now: the versions that counted before the gap
        :param others: those that count on, of other keys; None where there are none
        """
        data = [target.name for target in self.table.data_columns]
        # of what lacks a value nobody knows whether it is the same
        same = by_keys_of(now, at_low.where(F.size("_unknown") == 0), data, "left_semi")
        gone = by_keys_of(now, same, self.table.key, "left_anti").withColumn(self.ends, F.lit(low.sort_key))
        begun = by_keys_of(at_low, same, self.table.key, "left_anti")
        # another row may stand at the very position of before
        gone = by_keys_of(gone, begun, self.version_key, "left_anti")
        if events is None:
            return self._puts([gone, begun])
        there = same.unionByName(begun)
        ended = self._ended(there if others is None else there.unionByName(others), events)
        begun = by_keys_of(begun, events, self.table.key, "left_anti")
        return self._puts([gone, begun, ended, self._of_events(events)])

    def _by_another_key(
        self,
        at_low: DataFrame,
        low: Position,
        events: DataFrame | None,
        target_rows: DataFrame,
        added: Sequence[str],
    ) -> Write:
        """The same where the versions of before are told apart by another key: all are written anew, since several may
        have one key, or lack it.

        :param added: columns that these lack
        """
        now, data = self.still_open(target_rows), [target.name for target in self.table.data_columns]
        same = by_keys_of(now, at_low.where(F.size("_unknown") == 0), data, "left_semi")
        # one that ended must not be taken for this one when that ends
        same = by_keys_of(same, self._alike(target_rows), self.version_key, "left_anti")
        gone = by_keys_of(now, same, (*data, self.begins), "left_anti")
        # one that would end where it begins never counted
        gone = gone.where(F.col(self.begins) != low.sort_key).withColumn(self.ends, F.lit(low.sort_key))
        ended = target_rows.where(F.col(self.ends).isNotNull()).unionByName(gone)
        if added:
            ended = ended.withColumn("_unknown", F.array_union("_unknown", F.array(*map(F.lit, added))))
        begun = same.unionByName(by_keys_of(at_low, same, self.table.key, "left_anti"))
        parts = [ended, begun]
        if events is not None:
            stay = by_keys_of(begun, events, self.table.key, "left_anti")
            parts = [ended, stay, self._ended(begun, events), self._of_events(events)]
        return Write(reduce(DataFrame.unionByName, parts), old=OldRows.ALL, of_target=True)

    def _of_events(self, events: DataFrame) -> DataFrame:
        """A version for each key and transaction that left a row; the next of the key ends it, a delete too."""
        following = Over.partitionBy(*map(column, self.table.key)).orderBy(self.table.position)
        left = self._last_of_transactions(events).withColumns(
            {
                _NEXT: F.lead(self.table.position).over(following),
                _NEXT_TIME: F.lead("_commit_ts").over(following),
            }
        )
        return left.where(~is_delete()).select(
            *self.table.data,
            F.col(self.table.position).alias(self.begins),
            F.col(_NEXT).alias(self.ends),
            F.col("_commit_ts").alias("_from_ts"),
            F.col(_NEXT_TIME).alias("_to_ts"),
            "_unknown",
        )

    def _ended(self, now: DataFrame, events: DataFrame, *, few: bool = False) -> DataFrame:
        """The open versions whose key has events, ended by the first of them.

        :param few: the keys of the events can be broadcast
        """
        first = (
            self._last_of_transactions(events)
            .groupBy(*renamed(self.table.key))
            .agg(
                F.min(self.table.position).alias(_NEXT),
                F.min_by("_commit_ts", self.table.position).alias(_NEXT_TIME),
            )
        )
        ended = now.join(F.broadcast(first) if few else first, same_key(self.table.key))
        return ended.withColumns({self.ends: F.col(_NEXT), "_to_ts": F.col(_NEXT_TIME)}).select(
            *map(column, now.columns)
        )

    def _last_of_transactions(self, events: DataFrame) -> DataFrame:
        return last_per_key(events, (*self.table.key, self.table.position))

    def _begun(self, rows: DataFrame, low: Position) -> DataFrame:
        """Rows as versions from ``low``, of whose time nothing is known."""
        values: dict[str, Column] = {self.begins: F.lit(low.sort_key), "_unknown": unknown(rows)}
        return rows.select(
            *self.table.data,
            *(values.get(name, F.lit(None)).cast(type_).alias(name) for name, type_ in self.system_columns.items()),
        )

    def _puts(self, parts: list[DataFrame]) -> Write:
        rows = reduce(DataFrame.unionByName, parts).withColumn("_op", F.lit("U"))
        return Write(rows, self.version_key, OldRows.OF_KEY, nullable_key=self.table.nullable_key, of_target=True)
