"""One source table's columns, events and copied rows, as the shapes see them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import TEMPORARY, TRAN_ID, ColumnMapping, TargetColumn, key_columns
from airflow_provider_mssql_cdc.core.exceptions import CopyUncertainError
from airflow_provider_mssql_cdc.core.position import Position, Window
from airflow_provider_mssql_cdc.core.shapes import event_columns, position_column
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.spark.copies.copy import Copy
from airflow_provider_mssql_cdc.spark.files import write_rows
from airflow_provider_mssql_cdc.spark.server_time import to_utc
from airflow_provider_mssql_cdc.spark.session import broadcast_bytes
from airflow_provider_mssql_cdc.spark.shapes.copied_rows import CopiedRows
from airflow_provider_mssql_cdc.spark.shapes.fold import (
    by_keys_of,
    column,
    first_per_key,
    is_delete,
    is_old_image,
    last_per_key,
    no_names,
    renamed,
    same_key,
)
from airflow_provider_mssql_cdc.spark.shapes.lobs import SINCE, may_set, resolve, told_after
from airflow_provider_mssql_cdc.spark.shapes.unenforced_key import UnenforcedKey
from airflow_provider_mssql_cdc.spark.staging import Counts, Staged

_HELD, _NUMBER = TEMPORARY + "held", TEMPORARY + "number"
_WIDTH = 32
"""Bytes that a value takes in memory beside those of its text."""


@dataclass(frozen=True, slots=True)
class TableRows:
    """One source table's columns, events and copied rows.

    :param timezone: IANA zone of the server's clock; None where it is not known
    :param scratch: folder for rows that take long to compute and are needed more than once; None computes them again
    """

    spec: TableSpec
    mappings: tuple[ColumnMapping, ...]
    timezone: str | None
    scratch: str | None = None
    _found: dict[tuple[object, ...], tuple[DataFrame, DataFrame | None]] = field(
        default_factory=dict, init=False, compare=False
    )

    @property
    def position_kind(self) -> type[Position]:
        """The kind of the feed's positions."""
        return self.spec.feed.POSITION

    @property
    def position(self) -> str:
        """The column of an event's position."""
        return position_column(self.position_kind)

    @property
    def key(self) -> tuple[str, ...]:
        """The target columns that identify a row."""
        return key_columns(self.spec.schema, self.mappings)

    @property
    def nullable_key(self) -> bool:
        """Whether a key column may be NULL."""
        return any(self.spec.schema.column(name).nullable for name in self.spec.schema.key)

    def tells(self, names: Collection[str]) -> bool:
        """Whether the source table has the values of all these target columns."""
        return {*names}.isdisjoint(each.name for each in self._kept)

    @property
    def unenforced_key(self) -> UnenforcedKey | None:
        """The key, where the user named it and the server does not enforce it."""
        if self.spec.unique_key or not self.key:
            return None
        # a row from before a column was dropped has a value where its later images have none
        kept = [target.name for target in self._kept]
        not_image = {*self.key, *self.lobs, *kept}
        image = [target.name for target in self.data_columns if target.name not in not_image]
        return UnenforcedKey(self.spec.name, self.key, image, self.position, bool(self.lobs or kept), self.lobs)

    @property
    def lobs(self) -> tuple[str, ...]:
        """The columns that CDC may leave out of an image."""
        return tuple(mapping.name for mapping in self.mappings if mapping.is_lob)

    @property
    def data_columns(self) -> tuple[TargetColumn, ...]:
        """The columns of a mirror."""
        return tuple(target for mapping in self.mappings for target in mapping.targets)

    @property
    def data(self) -> list[Column]:
        """The columns of a mirror, as Spark selects them."""
        return [column(target.name) for target in self.data_columns]

    @property
    def commit_ts_utc(self) -> Column:
        """An event's ``_commit_ts`` in UTC; NULL where the server's zone is not known."""
        return F.lit(None).cast("timestamp") if self.timezone is None else to_utc(F.col("_commit_ts"), self.timezone)

    def events(
        self,
        staged: Staged,
        window: Window,
        known: DataFrame | None,
        *,
        once: bool = False,
        exact: bool = True,
        told: Callable[[DataFrame], DataFrame] | None = None,
    ) -> DataFrame:
        """The window's events, with the LOBs that CDC left out as far as they are known.

        :param known: key, LOBs and ``_unknown`` of each key as they were before the window
        :param once: they are gone through but once, so that it does not pay to write them down
        :param exact: whether what is known is of before the window, as of a target; not of a copy's rows
        :param told: fills in LOBs that are known otherwise
        """
        events, counts = self.read(staged, window), staged.count(window)
        if not counts.unknown:
            return events
        events = events if told is None else told(events)
        of_key = {"enforced": self.spec.unique_key, "moves": counts.key_changed > 0, "exact": exact}
        events = resolve(events, known, self.key, self.lobs, self.position, **of_key)
        if once or self.scratch is None:
            return events
        return write_rows(events, f"{self.scratch}/{secrets.token_hex(8)}").rows()

    def events_beside(self, copy: Copy, window: Window, staged: Staged, known: DataFrame) -> DataFrame | None:
        """The window's events, with the LOBs that a copy tells where a target should, and does not.

        :param staged: the window
        :param known: what the target knows at the window's beginning
        :return: None where copy and window do not meet
        """
        whole = Window(min(window.after, copy.low), window.upto)
        if copy.low <= window.after:
            if copy.high != window.upto:
                return None
            staged = copy.events
        elif copy.high > window.upto:
            return None
        held = self.known_of(known, staged, whole)
        copied = by_keys_of(self.known_in_copy(copy.rows(), staged, whole), held, self.key, "left_anti")
        told = None if self.unenforced_key else partial(self._told_beside, copy, known, window.after)
        events = self.events(staged, whole, held.unionByName(copied), exact=False, told=told)
        return events.where(F.col(self.position) > window.after.sort_key)

    def _told_beside(self, copy: Copy, known: DataFrame, after: Position, events: DataFrame) -> DataFrame:
        """Events with the LOBs that a copy and a target tell, each as of its own moment.

        :param known: what the target knows at a position
        """
        low, since = F.lit(copy.low.sort_key), F.lit(after.sort_key)
        rows = copy.rows().select(*map(column, (*self.key, *self.lobs)))
        if copy.again is None:
            seen = rows.withColumn(SINCE, low)
        else:
            asked = copy.again.asked().select(*renamed(self.key), F.col(SINCE).alias(_HELD))
            seen = rows.join(asked, same_key(self.key), "left").withColumn(SINCE, F.coalesce(_HELD, low))
        of_target = known.where(F.size("_unknown") == 0).withColumn(SINCE, since)
        for values in (seen, of_target):
            events = told_after(events, values, self.key, self.lobs, self.position)
        return events

    def known_of(self, known: DataFrame, staged: Staged, window: Window) -> DataFrame:
        """What of a target's rows is known of the keys that have events, where CDC left a LOB out of some."""
        if not self.key or not staged.count(window).unknown:
            return known
        return by_keys_of(known, staged.rows(window), self.key, "left_semi", broadcast=self.few(staged, window))

    def few_keys(self, staged: Staged, window: Window) -> DataFrame | None:
        """The keys that have events, each once; None if they are too many to be sent somewhere."""
        if not self.key or not self.few(staged, window):
            return None
        return staged.rows(window).select(*map(column, self.key)).distinct()

    def few(self, staged: Staged, window: Window) -> bool:
        """Whether the keys of the window's events can be broadcast, so that a table need not be shuffled for them."""
        rows = staged.rows(window)
        keys = rows.agg(F.count("*"), F.sum(sum((_key_bytes(name) for name in self.key), F.lit(0)))).collect()[0]
        return bool(keys[0] == 0 or keys[1] <= broadcast_bytes(rows.sparkSession))

    def read(self, staged: Staged, window: Window) -> DataFrame:
        """The window's events as they were staged, with all columns of events: NULL where the source does not say."""
        events = staged.rows(window)
        columns = {**event_columns(self.position_kind), TRAN_ID: "STRING"}
        values = {name: F.lit(None).cast(type_) for name, type_ in columns.items()} | {"_unknown": no_names()}
        missing = {name: value for name, value in values.items() if name not in events.columns}
        return events.withColumns(missing) if missing else events

    def known_now(self, rows: DataFrame) -> DataFrame:
        """What rows with all values, one per key, know of each key."""
        return rows.select(*map(column, (*self.key, *self.lobs)), no_names().alias("_unknown"))

    def known_in_copy(self, copied: DataFrame, staged: Staged, window: Window) -> DataFrame:
        """What a copy tells of each key as it was before the window that begins at its low.

        Each row was copied at a moment within the window that nobody knows. So a copied LOB is that of before the
        window only if no event of its key in the window may have set it: no insert, no row that came from another key,
        no update with its mask bit on. Where such an event lies before the one that left the LOB out, its value is
        carried forward and the copy's is not needed; where it lies after, the copy may hold the newer value.
        """
        if not staged.count(window).unknown:
            return self.known_now(copied)
        if self.unenforced_key:
            # rows on the move may be met twice under one key
            copied = self.unenforced_key.alone(copied)
        after_images = staged.rows(window).where(F.col("_op").isin("I", "U"))
        changed = F.array_distinct(F.flatten(F.collect_set(may_set(self.lobs)))).alias("_unknown")
        by_key = after_images.groupBy(*renamed(self.key)).agg(changed)
        names = F.coalesce("_unknown", no_names()).alias("_unknown")
        return copied.join(by_key, same_key(self.key), "left").select(*map(column, (*self.key, *self.lobs)), names)

    def copied(self, copy: Copy, staged: Staged | None, window: Window) -> CopiedRows:
        """What begins a sink.

        :param window: from the copy's low on
        :raises KeyRequiredError: if the key, which the user named, is not unique
        :raises CopyUncertainError: if rows passed such a key on while they were copied
        """
        copied, unenforced = self._without_kept(copy.rows()), self.unenforced_key
        if staged is None or not staged.count(window).events:
            if unenforced:
                unenforced.refuse_duplicates(copied)
            return CopiedRows(copied)
        events, sure = self.beside(copy, staged, window)
        if unenforced:
            return self._copied_by_image(unenforced, copied, events, sure)
        stay, last = by_keys_of(copied, events, self.key, "left_anti"), last_per_key(events, self.key)
        if not self.spec.feed.CAN.before_images:
            # nothing tells what was there at the low
            there = last.where(~is_delete()).select(*self.data)
            return CopiedRows(stay.select(*self.data).unionAll(there), gone=last.where(is_delete()))
        return CopiedRows(
            stay=stay,
            was=first_per_key(events, self.key).where(is_old_image()),
            events=events,
            left=last.where(~is_delete()),
            gone=last.where(is_delete()),
        )

    def counts_from(self, window: Window) -> Position:
        """The position from which the rows count that begin a sink: their low; their end, where nothing tells what was
        there at the low.

        :param window: from the copy's low on
        """
        return window.after if self.spec.feed.CAN.before_images else window.upto

    def unsure(self, copy: Copy) -> DataFrame | None:
        """The keys of which a copy and its events do not tell what is there at their end: to be read again.

        :return: each once; None where there are none
        """
        unenforced, window = self.unenforced_key, copy.window
        counts = Counts() if window.is_empty else copy.events.count(window)
        # of rows that a copy by conditions does not have nothing is to be known
        if copy.conditions or not (counts.unknown or (counts.events and unenforced is not None)):
            return None
        events, sure = self.beside(copy, copy.events, window)
        found = [] if unenforced is None else [unenforced.unsure(self._without_kept(copy.rows()), events, sure)]
        if counts.unknown:
            left = unenforced.left(events) if unenforced else last_per_key(events, self.key).where(~is_delete())
            found.append(left.where(F.size("_unknown") > 0).select(*map(column, self.key)))
        keys = reduce(DataFrame.unionAll, found).distinct().localCheckpoint()
        return None if keys.isEmpty() else keys

    def _copied_by_image(
        self, unenforced: UnenforcedKey, copied: DataFrame, events: DataFrame, sure: DataFrame | None
    ) -> CopiedRows:
        found = unenforced.first_rows(copied, events, sure)
        if not unenforced.has_lobs:
            return CopiedRows(found.stay.unionAll(found.through), found.was, events, found.left, found.gone)
        left = found.through.unionAll(found.others)
        # as it is at the end; what was there at the low looked the same but for its LOBs
        there = left.select(*self.data, F.lit("U").alias("_op"), no_names().alias("_unknown"))
        lobs = F.array(*map(F.lit, self.lobs)).cast("array<string>")
        values = {name: F.lit(None).cast(type_) for name, type_ in there.dtypes if name in self.lobs}
        was = found.through.withColumns({**values, "_op": F.lit("B"), "_unknown": lobs})
        return CopiedRows(
            found.stay,
            found.was.unionByName(was, allowMissingColumns=True),
            events,
            found.left.unionByName(there, allowMissingColumns=True),
            found.gone,
        )

    def beside(self, copy: Copy, staged: Staged, window: Window) -> tuple[DataFrame, DataFrame | None]:
        """The events beside a copy, with the LOBs that are known; and the keys behind the read of whose rows there is
        no event, None where no row was read again.

        :param window: from the copy's low on
        """
        moment = (copy.id, window, len(copy.again.entries) if copy.again is not None else 0)
        if (found := self._found.get(moment)) is not None:
            return found
        copied, told, sure = self._without_kept(copy.rows()), None, None
        if copy.again is not None:
            since = copy.again.asked()
            asked = since.select(*renamed(self.key), SINCE)
            again = copied.join(asked, same_key(self.key)).select(*self.data, SINCE)
            if unenforced := self.unenforced_key:
                behind = staged.rows(window).join(asked, same_key(self.key)).where(F.col(self.position) > F.col(SINCE))
                keys = since.select(*map(column, self.key))
                sure = by_keys_of(keys, behind, self.key, "left_anti").localCheckpoint()
                told = partial(unenforced.told_at_end, by_keys_of(again.drop(SINCE), sure, self.key, "left_semi"))
            else:
                told = partial(told_after, values=again, key=self.key, lobs=self.lobs, position=self.position)
        known = self.known_in_copy(copied, staged, window)
        found = self.events(staged, window, known, exact=False, told=told), sure
        if self.scratch is not None:
            self._found[moment] = found
        return found

    def _without_kept(self, copied: DataFrame) -> DataFrame:
        """Copied rows, which have NULL in the columns that the table no longer has, whenever they were read."""
        return copied.withColumns({each.name: F.lit(None).cast(each.type) for each in self._kept})

    @property
    def _kept(self) -> list[TargetColumn]:
        """The columns that the table no longer has, or not in their type; not those that show one value for all."""
        return [
            target
            for mapping in self.mappings
            for target in mapping.targets
            if target.former or (mapping.column.kept and mapping.select)
        ]

    def _with_kept(self, rows: DataFrame, now: DataFrame) -> DataFrame:
        """The table's rows with what a target holds in the columns that the table no longer has."""
        if not (names := [each.name for each in self._kept]):
            return rows
        held = now.groupBy(*renamed(self.key)).agg(F.first(F.struct(*map(column, names))).alias(_HELD))
        values = {name: F.col(_HELD).getField(name) for name in names}
        return rows.join(held, same_key(self.key), "left").withColumns(values).select(*self.data)

    def at_end(self, copied: CopiedRows, now: DataFrame, *, of_all: bool = True) -> DataFrame:
        """The table's rows at the end of a copy's window.

        :param of_all: whether all rows were copied; else those of which a value cannot be known are left out
        :param now: the rows of a target that is loaded up to there: theirs are the values that CDC left out
        :raises CopyUncertainError: if it has no row of such a key
        """
        return self._with_kept(self._at_end(copied, now, of_all=of_all), now)

    def _at_end(self, copied: CopiedRows, now: DataFrame, *, of_all: bool) -> DataFrame:
        rows = copied.stay.select(*self.data)
        if copied.left is None:
            return rows
        lacking = copied.left.where(F.size("_unknown") > 0) if "_unknown" in copied.left.columns else None
        if lacking is None:
            return rows.unionAll(copied.left.select(*self.data))
        # of a key that the target has twice, or of which it lacks a value itself, it tells nothing
        lobs, number = F.first(F.struct(*map(column, self.lobs))).alias(_HELD), F.count("*").alias(_NUMBER)
        sure = now.where(F.size("_unknown") == 0) if "_unknown" in now.columns else now
        held = sure.groupBy(*map(column, self.key)).agg(lobs, number).where(F.col(_NUMBER) == 1)
        missing = by_keys_of(lacking, held, self.key, "left_anti").limit(1).collect() if of_all else []
        if missing:
            key = ", ".join(f"{name}={missing[0][name]!r}" for name in self.key)
            raise CopyUncertainError(
                f"CDC left out a value of {key}, which changed while the table was copied; the target has no such row.",
                table=str(self.spec.name),
                advice="Run the task again: these rows are read again. A quiet moment of the table is best.",
            )
        known = copied.left.where(F.size("_unknown") == 0)
        values = {
            lob: F.when(F.array_contains("_unknown", F.lit(lob)), F.col(_HELD).getField(lob)).otherwise(column(lob))
            for lob in self.lobs
        }
        filled = lacking.join(held.select(*renamed(self.key), _HELD), same_key(self.key)).withColumns(values)
        return rows.unionAll(known.select(*self.data)).unionAll(filled.select(*self.data))


def _key_bytes(name: str) -> Column:
    """The bytes that a key's value takes in a broadcast, more or less."""
    return F.coalesce(F.octet_length(column(name).cast("string")), F.lit(0)) + _WIDTH
