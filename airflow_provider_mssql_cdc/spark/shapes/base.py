"""What a load asks of a shape: the columns of its table, and the rows that a load writes into it."""

from __future__ import annotations

import dataclasses
import datetime
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame

from airflow_provider_mssql_cdc.core.columns import TargetColumn, map_columns
from airflow_provider_mssql_cdc.core.exceptions import ConnectionSettingError, KeyRequiredError, TargetError
from airflow_provider_mssql_cdc.core.lineage import CONVERGING, Witness
from airflow_provider_mssql_cdc.core.marker import LAYOUT, Gap
from airflow_provider_mssql_cdc.core.position import Position, Window
from airflow_provider_mssql_cdc.core.shapes import SHAPES, Shape
from airflow_provider_mssql_cdc.core.spec import Chosen, SinkSpec
from airflow_provider_mssql_cdc.spark.copies.copy import Copy
from airflow_provider_mssql_cdc.spark.selecting import fulfils_in_target
from airflow_provider_mssql_cdc.spark.shapes.copied_rows import CopiedRows
from airflow_provider_mssql_cdc.spark.shapes.fold import by_keys_of, column
from airflow_provider_mssql_cdc.spark.shapes.table import TableRows
from airflow_provider_mssql_cdc.spark.staging import Staged
from airflow_provider_mssql_cdc.spark.targets import Write


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a sink begins with.

    :param window: from the copy's low on
    :param staged: None if the window is empty
    :param copy: None where nothing was copied
    :param anew: the target has rows of before a gap
    :param known_at: time of the window's end by the server's clock
    :param key_before: columns of the key by which these are told apart, where that was another one; else None
    :param added: columns that they lack
    :param missed: a window between their position and the copy, for a history by another key; None where it is lost
    :param asked: the keys that a copy of changed rows asked for; None where it has all rows
    """

    window: Window
    staged: Staged | None
    copy: Copy | None
    anew: bool = False
    known_at: datetime.datetime | None = None
    key_before: tuple[str, ...] | None = None
    added: tuple[str, ...] = ()
    missed: tuple[Window, Staged] | None = None
    asked: DataFrame | None = None


@dataclass(frozen=True, slots=True)
class Differences:
    """In what a target and its source table differ, as of one position.

    :param rows: of the source table, which the target does not have so
    :param old: of the target, which the source table does not have so
    :param vanished: those of the target whose key the source table does not have
    :param there: all rows of the source table; None where only some of them are known
    """

    rows: DataFrame
    old: DataFrame
    vanished: DataFrame
    there: DataFrame | None


class SinkRows(ABC):
    """What a sink of one shape holds, and what a load writes into it. Each shape is a class of its own.

    :param table: what the source table has
    :ivar facts: what is known of the shape outside of the job
    :ivar unfilled: columns of which the target lacks the values of before: what is NULL there is not known
    """

    def __init__(self, table: TableRows, sink: SinkSpec) -> None:
        self.table, self.sink = table, sink
        self.unfilled: tuple[str, ...] = ()
        self.facts: Shape = SHAPES[sink.shape]

    @property
    def takes_copy(self) -> bool:
        """Whether the sink begins with the copied rows of a table that has a key."""
        return self.facts.takes_copy(wide=self.sink.history.is_wide)

    @property
    def before_images(self) -> bool:
        """Whether it needs the values before a change, and the times of commits."""
        return True

    @property
    def keeps_rows(self) -> bool:
        """Whether rows of before a gap stay when a copy closes it."""
        return True

    @property
    def data_columns(self) -> tuple[TargetColumn, ...]:
        """The columns of the source table, as the sink has them."""
        return self.table.data_columns if self.facts.has_data else ()

    @property
    def system_columns(self) -> dict[str, str]:
        """Those that the sink has beside them since version 1 of the layout, with their Spark SQL types."""
        return dict(self.facts.system_columns(self.table.spec.feed.POSITION))

    def columns(self, layout: int = LAYOUT) -> tuple[TargetColumn, ...]:
        """The columns of the target table.

        :param layout: version of its system columns
        """
        system = {**self.system_columns, **self.facts.added_columns(layout)}
        return (*self.data_columns, *(TargetColumn(name, type_, "{}") for name, type_ in system.items()))

    def added_values(self, rows: DataFrame) -> dict[str, Column]:
        """The values of all columns that later versions of the layout have added.

        :param rows: that are to be written
        """
        return {}

    def laid_out(self, write: Write, layout: int) -> Write:
        """The same with the columns that the layout has since version 1."""
        added = self.facts.added_columns(layout)
        if not added:
            return write
        values = self.added_values(write.rows)
        rows = write.rows.withColumns({name: values[name].cast(type_) for name, type_ in added.items()})
        return dataclasses.replace(write, rows=rows)

    @property
    def is_unique(self) -> bool:
        """Whether no two of its rows can have one key of the source table."""
        return False

    def check_key(self) -> None:
        """Refuse a table whose key is not what the shape needs.

        :raises KeyRequiredError: saying what it needs
        """
        if self.facts.needs_key and not self.table.spec.schema.key:
            raise KeyRequiredError(
                f"{self.sink.shape} needs a key, and the table has none.", table=str(self.table.spec.name)
            )

    def check_exact(self, witness: Witness | None) -> None:
        """Refuse rows that may be newer than the position which they are to be loaded up to.

        :param witness: of the position
        :raises ConnectionSettingError: if the shape needs others
        """
        tracking = witness.tracking if witness is not None else None
        if self.facts.needs_exact and tracking is not None and tracking.reads == CONVERGING:
            raise ConnectionSettingError(
                f"{self.sink.shape} needs exact reads, and the rows were not read under SNAPSHOT.",
                table=str(self.table.spec.name),
                advice='ALTER DATABASE .. SET ALLOW_SNAPSHOT_ISOLATION ON, and leave isolation at "auto".',
            )

    @abstractmethod
    def first(self, begun: Beginning, target_rows: DataFrame) -> Write:
        """What begins the sink: the copied rows, with the events from the copy's low on in their place.

        :param target_rows: the rows of the target
        :raises CopyUncertainError: if a value cannot be known, since it changed during the copy
        :raises KeyRequiredError: if the key, which the user named, is not unique
        """

    @abstractmethod
    def next(self, window: Window, staged: Staged, target_rows: DataFrame, gaps: Sequence[Gap]) -> Write:
        """What a window adds to a sink that is loaded up to its start.

        :param target_rows: the rows of the target
        :param gaps: what the sink lacks
        :raises LostValueError: if a value cannot be known
        :raises KeyRequiredError: if the key, which the user named, is not unique
        """

    def next_beside(
        self, copy: Copy, window: Window, staged: Staged, target_rows: DataFrame, gaps: Sequence[Gap]
    ) -> Write:
        """The same as ``next``, where a copy may tell a value which the target should hold."""
        return self.next(window, staged, target_rows, gaps)

    @property
    def is_comparable(self) -> bool:
        """Whether it shows each row of the source table as it is at its marker."""
        return False

    def now(self, target_rows: DataFrame) -> DataFrame:
        """The source table's rows as a comparable sink has them, one for each key.

        :param target_rows: the rows of the target
        """
        raise NotImplementedError

    def keys_there(self, target_rows: DataFrame) -> DataFrame:
        """The keys of the source table's rows as the sink shows them, each once.

        :param target_rows: the rows of the target
        """
        return self.now(target_rows).select(*map(column, self.table.key))

    def of_key(self, target_rows: DataFrame, gaps: Sequence[Gap]) -> DataFrame:
        """The rows of the target that are told apart by the key of now.

        :param gaps: what the sink lacks
        """
        return target_rows

    def differences(self, begun: Beginning, target_rows: DataFrame) -> Differences:
        """In what a comparable sink differs from the table, as of the end of a copy's window.

        :param target_rows: the rows of the target, which is loaded up to there
        :raises CopyUncertainError: if a value cannot be known, since it changed during the copy
        :raises KeyRequiredError: if the key, which the user named, is not unique
        """
        assert begun.copy is not None
        now, names = self.now(target_rows), [target.name for target in self.table.data_columns]
        copied = self.table.copied(begun.copy, begun.staged, begun.window)
        there = self.table.at_end(copied, now, of_all=not begun.copy.conditions)
        if begun.copy.conditions:
            return self._differences_of_some(begun.copy, copied, there, now)
        old = by_keys_of(now, there, names, "left_anti")
        vanished = by_keys_of(old, there, self.table.key, "left_anti")
        return Differences(by_keys_of(there, now, names, "left_anti"), old, vanished, there)

    def _differences_of_some(self, copy: Copy, copied: CopiedRows, there: DataFrame, now: DataFrame) -> Differences:
        """In what the rows differ that a copy by conditions tells of: those it has, or has asked for in vain."""
        key, names = self.table.key, [target.name for target in self.table.data_columns]
        old = by_keys_of(by_keys_of(now, there, key, "left_semi"), there, names, "left_anti")
        told = [copied.gone, copy.again.asked() if copy.again is not None else None]
        keys = [rows.select(*map(column, key)) for rows in told if rows is not None]
        vanished = by_keys_of(now, reduce(DataFrame.unionAll, keys), key, "left_semi") if keys else now.limit(0)
        vanished = by_keys_of(vanished, there, key, "left_anti")
        if copied.left is not None:
            # one of which a value is not known is there, too
            vanished = by_keys_of(vanished, copied.left, key, "left_anti")
        rows = by_keys_of(there, now, names, "left_anti")
        return Differences(rows, old.unionAll(vanished), vanished, None)

    def suspects(self, copy: Copy, target_rows: DataFrame) -> DataFrame | None:
        """The keys of rows that fulfil a copy's conditions, and of which neither it nor an event beside it tells.

        :param target_rows: the rows of the target, a comparable sink that is loaded up to the copy's end
        :return: None where the target does not show the columns of the conditions
        """
        spec = self.table.spec
        fulfils = fulfils_in_target(self.table.mappings, spec.selection, copy.conditions)
        if fulfils is None:
            return None
        rows = by_keys_of(self.now(target_rows).where(fulfils), copy.rows(), self.table.key, "left_anti")
        if copy.again is not None:
            rows = by_keys_of(rows, copy.again.asked(), self.table.key, "left_anti")
        if not copy.window.is_empty:
            rows = by_keys_of(rows, copy.events.rows(copy.window), self.table.key, "left_anti")
        return rows.select(*map(column, self.table.key)).distinct()

    def mended(
        self, found: Differences, target_rows: DataFrame, at: Position, known_at: datetime.datetime | None
    ) -> Write:
        """What mends a comparable sink.

        :param target_rows: the rows of the target
        :param at: the position to which both sides were compared
        :param known_at: its time by the server's clock
        """
        raise NotImplementedError

    def narrowed(self, before: Chosen) -> SinkRows:
        """What the sink holds with the columns of before."""
        spec = dataclasses.replace(self.table.spec, schema=before.schema, selection=before.selection)
        mappings = map_columns(spec.name, spec.schema, spec.selection)
        return type(self)(dataclasses.replace(self.table, spec=spec, mappings=mappings), self.sink)

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
        """What fills columns of a comparable sink.

        :param target_rows: the rows of the target, with NULL in these columns
        :param there: key and values of the source table's rows at the position of the target
        :param events: of these columns in the window; None where there are none
        :param names: of the columns
        :param window: from the copy's low to its end
        :param common: one row with the values of all rows that ``there`` does not have; None where it has all
        :param known_at: time of the window's end by the server's clock
        """
        raise NotImplementedError

    def looked_up(self, window: Window, staged: Staged) -> DataFrame | None:
        """The keys by which a window looks into the target; None if it does not, by too many, or by other columns."""
        names = {column.name for column in self.data_columns}
        if not self.looks_up(window, staged) or not {*self.table.key} <= names:
            return None
        return self.table.few_keys(staged, window)

    def looks_up(self, window: Window, staged: Staged) -> bool:
        """Whether a window needs rows of the target: where CDC left a large value out of some event."""
        return bool(staged.count(window).unknown)

    def lacks(
        self, known: tuple[Gap, ...], after: Position, window: Window, *, healed: bool = False
    ) -> tuple[Gap, ...]:
        """What the sink lacks once a copy has closed a gap.

        :param known: what it lacked before
        :param after: up to here it was loaded
        :param window: from the copy's low on
        :param healed: by a copy of changed rows
        """
        return (*known, Gap(after, self.table.counts_from(window), healed))

    def newest(self, target_rows: DataFrame) -> str | int | None:
        """The newest position that the target's rows name; None where they name none."""
        return None

    def check_replay(self, name: str, reached: Position | None, upto: Position, *, anew: bool) -> None:
        """Refuse a replay that would damage the target.

        :param name: of the target table
        :param reached: up to here it is loaded
        :param upto: end of the window to replay
        :param anew: into a table that holds nothing but this window
        :raises TargetError: if old values would overwrite newer ones, or nothing tells which rows are missing
        """
        raise TargetError(
            f"a replay into the {self.sink.shape} {name} would put old values over newer ones.",
            table=str(self.table.spec.name),
            advice="Replay into a history.",
        )

    def missing(self, window: Window, staged: Staged, target_rows: DataFrame, gaps: Sequence[Gap]) -> Write:
        """What the target lacks of a window that was loaded before; of a shape that takes a replay."""
        raise NotImplementedError

    def has_others(self, window: Window, target_rows: DataFrame) -> bool:
        """Whether the target holds rows from outside of a window; of a shape that takes a replay."""
        raise NotImplementedError
