"""``history``: every change of the source table, as the history's options show it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.changes import ALL, ALL_OLD, DELETE, OPERATIONS, check_history_key
from airflow_provider_mssql_cdc.core.columns import TEMPORARY, TRAN_ID, TargetColumn
from airflow_provider_mssql_cdc.core.entry_values import CHANGED
from airflow_provider_mssql_cdc.core.exceptions import NotLoadedYetError, TargetError
from airflow_provider_mssql_cdc.core.marker import LAYOUT, Gap
from airflow_provider_mssql_cdc.core.position import Position, Window
from airflow_provider_mssql_cdc.core.shapes import event_columns
from airflow_provider_mssql_cdc.spark.copies.copy import Copy
from airflow_provider_mssql_cdc.spark.shapes.base import Beginning, Differences, SinkRows
from airflow_provider_mssql_cdc.spark.shapes.fills import any_value, values_of, with_values
from airflow_provider_mssql_cdc.spark.shapes.fold import by_keys_of, column, no_names, tran_id, unknown
from airflow_provider_mssql_cdc.spark.shapes.table import TableRows
from airflow_provider_mssql_cdc.spark.shapes.ways import letters, seen_as
from airflow_provider_mssql_cdc.spark.shapes.wide import identified, images, records, wide_columns
from airflow_provider_mssql_cdc.spark.staging import Staged, within
from airflow_provider_mssql_cdc.spark.targets import Write

_LATEST, _MENDS = (TEMPORARY + name for name in ("latest", "mends"))

_BEHIND_EVENTS = 2**62
"""Number of a row that is no event: it is as of the end of its position."""


def history_events(
    table: TableRows, changes: str, staged: Staged, window: Window, known: DataFrame | None, *, once: bool = True
) -> DataFrame:
    """A window's events as one of the five ways shows them, with the columns of a history.

    :param changes: as ``core.changes`` names the way
    :param known: key, LOBs and ``_unknown`` of each key as they were before the window
    :param once: they are gone through but once
    """
    once = once and changes in (ALL, ALL_OLD)
    events = table.events(staged, window, known, once=once).withColumn("_commit_ts_utc", table.commit_ts_utc)
    return seen_as(changes, table, events)


class History(SinkRows):
    """Rows are only added: the copied ones (``R``), and one or more for each event, or wide records of them."""

    @property
    def identity(self) -> tuple[str, ...]:
        """What identifies an event; it is compared NULL-safe."""
        return (self.table.position, "_command_id", "_seqval", "_op")

    @property
    def is_wide(self) -> bool:
        """Whether a change is one record, with the values before and after it."""
        return self.sink.history.is_wide

    def columns(self, layout: int = LAYOUT) -> tuple[TargetColumn, ...]:
        """The columns of the form that was chosen."""
        if not self.is_wide:
            return super().columns(layout)
        added = (TargetColumn(name, type_, "{}") for name, type_ in self.facts.added_columns(layout).items())
        return (*wide_columns(self.table.data_columns, self.table.position_kind), *added)

    def added_values(self, rows: DataFrame) -> dict[str, Column]:
        """The transaction's id, and whether a row mends a difference."""
        mends = F.col(_MENDS) if _MENDS in rows.columns else F.lit(False)
        return {"_tran_id": tran_id(rows), "_healed": mends}

    @property
    def data_columns(self) -> tuple[TargetColumn, ...]:
        """None in the wide form, whose columns of data have names of their own."""
        return () if self.is_wide else self.table.data_columns

    def check_key(self) -> None:
        """Refuse options that need a key of SQL Server's own where there is none."""
        spec = self.table.spec
        check_history_key(spec.name, self.sink.history, key=spec.schema.key, unique=spec.unique_key)

    def first(self, begun: Beginning, target_rows: DataFrame) -> Write:
        """The table's rows at the copy's low as ``R``, and the events since; before them those that were missed."""
        names = [*(column(target.name) for target in self.columns(layout=1)), F.col(TRAN_ID)]
        window, staged, copy = begun.window, begun.staged, begun.copy
        parts = []
        if begun.missed is not None:
            parts.append(self.rows(*begun.missed, None).select(*names))
        if copy is not None and self.takes_copy:
            copied = self.table.copied(copy, staged, window)
            at_low = [rows for rows in (copied.stay, copied.was) if rows is not None]
            at = self.table.counts_from(window)
            number = self._number(at, target_rows)
            parts += [self.at_low(rows, at, begun.known_at, number).select(*names) for rows in at_low]
            if begun.anew and begun.key_before is None and not self.table.spec.feed.CAN.before_images:
                # else no row would ever tell of these
                gone = by_keys_of(self.now(target_rows), copied.stay, self.table.key, "left_anti")
                ended = self.at_low(gone, at, begun.known_at, number).withColumn("_op", F.lit("D"))
                parts.append(ended.select(*names))
            if begun.asked is not None:
                parts = [by_keys_of(part, begun.asked, self.table.key, "left_semi") for part in parts]
                ended = self._ended_in_gap(copy, begun.asked, at_low, copied.events, target_rows)
                parts.append(self.at_low(ended, at).withColumn("_op", F.lit("D")).select(*names))
                parts = [part.withColumn(_MENDS, F.lit(True)) for part in parts]
            if copied.events is not None:
                events = self.shown(copied.events).select(*names)
                parts.append(events if begun.asked is None else events.withColumn(_MENDS, F.lit(False)))
        elif staged is not None and not window.is_empty:
            rows = (
                self.rows(window, staged, None)
                if copy is None
                else self.shown(self.table.beside(copy, staged, window)[0])
            )
            parts.append(rows.select(*names))
        return Write(reduce(DataFrame.unionAll, parts) if parts else target_rows.limit(0))

    def _ended_in_gap(
        self,
        copy: Copy,
        asked: DataFrame,
        at_low: Sequence[DataFrame],
        events: DataFrame | None,
        target_rows: DataFrame,
    ) -> DataFrame:
        """What a gap has ended: the last images of rows that went, and the keys of those that came and went.

        :param asked: the keys that the copy asked for
        :param at_low: rows that are there behind the gap
        :param events: of behind the gap; None where there are none
        """
        key, live = self.table.key, self.now(target_rows)
        gone, missed = by_keys_of(live, asked, key, "left_semi"), asked.select(*map(column, key))
        if DELETE not in self.sink.history.operations:
            gone, missed = live.limit(0), missed.limit(0)
        if self.table.spec.selection.conditions or self.sink.history.is_net:
            # a row that does not fulfil them may never have been one of these; and net changes have none of such
            missed = missed.limit(0)
        for rows in at_low:
            gone = by_keys_of(gone, rows, key, "left_anti")
        missed = by_keys_of(missed, target_rows, key, "left_anti")
        for rows in (copy.rows(), *([events] if events is not None else [])):
            missed = by_keys_of(missed, rows, key, "left_anti")
        others = [target.name for target in self.data_columns if target.name not in key]
        missed = missed.withColumn("_unknown", F.array(*map(F.lit, others)).cast("array<string>"))
        return gone.unionByName(missed, allowMissingColumns=True)

    def next(self, window: Window, staged: Staged, target_rows: DataFrame, gaps: Sequence[Gap]) -> Write:
        """The window's events."""
        return Write(self.rows(window, staged, self.known(window, target_rows, gaps, staged)))

    @property
    def is_comparable(self) -> bool:
        """Where the newest row of each key shows how it is: all changes of a key that the server enforces."""
        enforced = bool(self.table.key) and self.table.spec.unique_key
        return enforced and self.takes_copy and self.sink.history.operations == OPERATIONS

    def now(self, target_rows: DataFrame) -> DataFrame:
        """The newest image of each key that was not deleted."""
        names = [column(target.name) for target in self.data_columns]
        # not of columns that the table has not got yet
        lacks = F.array_intersect("_unknown", F.array(*(F.lit(target.name) for target in self.data_columns)))
        newest = F.max_by(F.struct(*names, lacks.alias("_unknown"), "_op"), self._order).alias(_LATEST)
        by_key = target_rows.where("_op != 'B'").groupBy(*map(column, self.table.key)).agg(newest)
        return by_key.select(f"{_LATEST}.*").where("_op != 'D'").select(*names, "_unknown")

    @property
    def _order(self) -> Column:
        """In which a key's rows follow each other."""
        return F.struct(self.table.position, F.coalesce("_seq", F.lit(_BEHIND_EVENTS)))

    def _number(self, at: Position, target_rows: DataFrame) -> int | None:
        """The ``_seq`` of rows that are copied at a position; None where that alone tells their place.

        A copy draws no version, so that several may stand at one, behind what changed with it.
        """
        if self.table.spec.feed.CAN.before_images:
            return None
        there = target_rows.where(F.col(self.table.position) == at.sort_key)
        last: int | None = there.agg(F.max("_seq")).collect()[0][0]
        return 1 + (last or 0)

    def keys_there(self, target_rows: DataFrame) -> DataFrame:
        """Those whose newest row is no delete."""
        newest = F.max_by("_op", self._order).alias(_LATEST)
        by_key = target_rows.where("_op != 'B'").groupBy(*map(column, self.table.key)).agg(newest)
        return by_key.where(F.col(_LATEST) != "D").select(*map(column, self.table.key))

    def of_key(self, target_rows: DataFrame, gaps: Sequence[Gap]) -> DataFrame:
        """Without the images of before another key: at its copy's low the history has a row of each key."""
        since = max((gap.upto for gap in gaps if gap.after == gap.upto), default=None)
        return target_rows if since is None else target_rows.where(F.col(self.table.position) >= since.sort_key)

    def mended(
        self, found: Differences, target_rows: DataFrame, at: Position, known_at: datetime.datetime | None
    ) -> Write:
        """Rows that differ as ``R``, and those that vanished as ``D`` with their last image."""
        number = self._number(at, target_rows)
        rows = self.at_low(found.rows, at, known_at, number)
        gone = self.at_low(found.vanished, at, known_at, number).withColumn("_op", F.lit("D"))
        return Write(rows.unionByName(gone).withColumn(_MENDS, F.lit(True)))

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
        """Rows of which the newest image says something else, or all, as ``R``; what a key without an image has in the
        other columns is not known.
        """
        key, now = self.table.key, self.now(target_rows)
        only_others = self.table.spec.history_fill == CHANGED
        rows = with_values(now, values_of(there, key, names), key, names, only_others=only_others, common=common)
        rows = rows.withColumn("_unknown", F.array_except("_unknown", F.array(*map(F.lit, names))))
        # a history that began with changes alone has none of rows that have not changed since
        without = by_keys_of(there, now, key, "left_anti").select(*map(column, (*key, *names)))
        if only_others:
            without = without.where(any_value(names))
        others = [target.name for target in self.data_columns if target.name not in {*key, *names}]
        unknown_now = F.array(*map(F.lit, others)).cast("array<string>")
        rows = rows.unionByName(without.withColumn("_unknown", unknown_now), allowMissingColumns=True)
        number = self._number(window.upto, target_rows)
        return Write(self.at_low(rows, window.upto, known_at, number))

    def newest(self, target_rows: DataFrame) -> str | int | None:
        """The newest event."""
        newest: str | int | None = self._identified(target_rows).agg(F.max(self.table.position)).collect()[0][0]
        return newest

    def check_replay(self, name: str, reached: Position | None, upto: Position, *, anew: bool) -> None:
        """Refuse a replay of what was not loaded yet, and into net changes.

        :raises NotLoadedYetError: if the window was not loaded before
        """
        if self.sink.history.is_net:
            raise TargetError(
                f"{name} holds net changes: its rows are those of the windows that were loaded, and no event's own.",
                table=str(self.table.spec.name),
                advice="Replay into a history of all changes.",
            )
        if not anew and (reached is None or reached < upto):
            raise NotLoadedYetError(
                f"{name} is loaded up to {reached or 'nothing'}, and the window to replay ends at {upto}.",
                table=str(self.table.spec.name),
                advice="Load it first.",
            )

    def missing(self, window: Window, staged: Staged, target_rows: DataFrame, gaps: Sequence[Gap]) -> Write:
        """The window's events that the history does not hold."""
        events = self._identified(self.rows(window, staged, self.known(window, target_rows, gaps, staged)))
        there = self._identified(target_rows).where(within(window))
        present = there.select(*(F.col(name).alias(TEMPORARY + name) for name in self.identity))
        same = F.lit(True)
        for name in self.identity:
            same &= F.col(name).eqNullSafe(F.col(TEMPORARY + name))
        return Write(events.join(present, same, "left_anti"))

    def has_others(self, window: Window, target_rows: DataFrame) -> bool:
        """Whether the history holds events from outside of a window."""
        return not self._identified(target_rows).where(~within(window)).isEmpty()

    def rows(self, window: Window, staged: Staged, known: DataFrame | None) -> DataFrame:
        """What a window adds.

        :param known: key, LOBs and ``_unknown`` of each key as they were before the window
        """
        changes = self.sink.history.changes
        return self._chosen(history_events(self.table, changes, staged, window, known, once=not self.is_wide))

    def shown(self, events: DataFrame) -> DataFrame:
        """What some events add.

        :param events: of a window, with all before images, their LOBs filled in
        """
        with_times = events.withColumn("_commit_ts_utc", self.table.commit_ts_utc)
        return self._chosen(seen_as(self.sink.history.changes, self.table, with_times))

    def _chosen(self, events: DataFrame) -> DataFrame:
        events = self._without(events).where(F.col("_op").isin(*letters(self.sink.history)))
        return records(self.table, events) if self.is_wide else events

    def at_low(
        self,
        rows: DataFrame,
        low: Position,
        read_at: datetime.datetime | None = None,
        number: int | None = None,
    ) -> DataFrame:
        """Rows of the source table as a history holds them: they were there at a copy's low.

        :param rows: with ``_unknown``, where they lack a value
        :param read_at: by the server's clock
        :param number: their ``_seq``; None where they have none
        """
        columns = {**event_columns(self.table.position_kind), TRAN_ID: "STRING"}
        said = {
            "_op": F.lit("R"),
            self.table.position: F.lit(low.sort_key),
            "_changed": no_names(),
            "_unknown": unknown(rows),
            "_seq": F.lit(number),
            "_read_at": F.lit(read_at.isoformat() if read_at is not None else None),
        }
        return self._without(
            rows.withColumns({n: said.get(n, F.lit(None)).cast(type_) for n, type_ in columns.items()})
        )

    def _without(self, rows: DataFrame) -> DataFrame:
        """Rows that name the columns which their feed does not capture: once the table has them, NULL is no value."""
        lacks = self.table.spec.lacks
        return rows.withColumn("_unknown", F.array_union("_unknown", F.array(*map(F.lit, lacks)))) if lacks else rows

    def known(
        self, window: Window, target_rows: DataFrame, gaps: Sequence[Gap] = (), staged: Staged | None = None
    ) -> DataFrame | None:
        """What the history knows of each key as it was before a window; None where it cannot know.

        :param gaps: what it lacks: images of before one say nothing of what comes after it
        :param staged: the keys that have events, where CDC left a LOB out of some; None for all keys
        """
        if not self.table.key or not self.sink.history.has_latest:
            return None
        rows = images(self.table, target_rows) if self.is_wide else target_rows
        for lob in {*self.table.lobs} & {*self.unfilled}:
            lacks = F.array_union("_unknown", F.array(F.lit(lob)))
            rows = rows.withColumn("_unknown", F.when(column(lob).isNull(), lacks).otherwise(F.col("_unknown")))
        if since := max((gap.upto for gap in gaps if gap.upto <= window.after and not gap.healed), default=None):
            rows = rows.where(F.col(self.table.position) >= since.sort_key)
        if staged is not None:
            # before they are grouped, which would exchange the whole history
            rows = self.table.known_of(rows, staged, window)
        return self.latest(window, rows)

    def latest(self, window: Window, events: DataFrame) -> DataFrame:
        """What events tell of each key before a window: its latest image, if that is not an old one."""
        of_before = events.where((F.col(self.table.position) <= window.after.sort_key) & (F.col("_op") != "B"))
        # what is unknown of other columns is no matter here
        lacks = F.array_intersect("_unknown", F.array(*map(F.lit, self.table.lobs)).cast("array<string>"))
        needed = (*map(column, self.table.lobs), lacks.alias("_unknown"), F.col("_op"))
        newest = F.max_by(F.struct(*needed), self._order).alias(_LATEST)
        latest = of_before.groupBy(*map(column, self.table.key)).agg(newest)
        return latest.select(*map(column, self.table.key), f"{_LATEST}.*").where("_op != 'D'").drop("_op")

    def _identified(self, rows: DataFrame) -> DataFrame:
        return identified(self.table, rows) if self.is_wide else rows
