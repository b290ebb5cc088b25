"""The world of faults with tables whose columns change: loads that fill columns, copies that take several runs."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

from airflow_provider_mssql_cdc.cli import checkpoint as cli
from airflow_provider_mssql_cdc.core.entry_values import ALL, EVOLVE
from airflow_provider_mssql_cdc.core.exceptions import GapError, InstanceChangedError
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.position import Position, Window, is_gap, merged
from airflow_provider_mssql_cdc.core.receipt import CopyingReceipt
from airflow_provider_mssql_cdc.core.spec import JobSpec, TableSpec
from airflow_provider_mssql_cdc.core.target import Target
from airflow_provider_mssql_cdc.operators import checkpoints, job_files
from airflow_provider_mssql_cdc.operators.evolving import forget_unwanted, make_instances
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.intents import Intents
from airflow_provider_mssql_cdc.operators.outcome import Outcome
from airflow_provider_mssql_cdc.operators.request import Request
from airflow_provider_mssql_cdc.spark import filling, job, sink
from airflow_provider_mssql_cdc.spark.copies.copy import CopyOrder, Unfinished
from airflow_provider_mssql_cdc.spark.shapes.table import TableRows
from airflow_provider_mssql_cdc.spark.sources.base import SourceState
from tests.support.faults import world as plain
from tests.support.faults.changes_table import ChangesTable, HeldChanges
from tests.support.faults.evolving_source import EvolvingHook, EvolvingSource
from tests.support.faults.evolving_targets import EvolvingRows, EvolvingTarget, Values, check
from tests.support.faults.job_source import JobSource
from tests.support.faults.parts import PlainHistory, PlainMirror, PlainVersions, WorldParts
from tests.support.faults.source import TABLES, Event, fold, lsn, number
from tests.support.faults.targets import (
    OPEN,
    Rows,
    Staged,
    TargetTable,
    Write,
    as_dict,
    as_rows,
    next_versions,
    versions_anew,
)

_PARTS = 3
"""In so many chunks a table is copied."""
_LAST = 1 << 30
"""The number in the transaction of what was there behind it."""


@dataclass
class Folder:
    """A copy that may take several runs.

    :param kind: of what: other columns, types or another instance are another copy
    :param kept: up to here its events are kept
    :param common: the values that most rows had when it was begun: rows with them are left out; None leaves out none
    """

    id: str
    kind: object
    low: Position
    kept: Position
    parts: int = 0
    rows: dict[int, Values] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    common: Values | None = None


class EvolvingJobSource(JobSource):
    """What a job asks a table's source."""

    world: EvolvingWorld

    def __init__(self, world: EvolvingWorld, table: TableSpec) -> None:
        super().__init__(world, table, None, sees_fork=False)
        self._of, self._place, self._folder = table.name.table, "", cast(Folder | None, None)
        held = [column for column in table.schema.loaded if table.selection.holds(column.name)]
        self._columns = [column for column in held if column.name not in table.schema.key]
        self._database = world.source
        self._altered_at = table.altered_at

    def state(self, witnesses: Collection[Witness] = ()) -> SourceState:
        found = super().state(witnesses)
        altered = max(
            (each.lsn for each in self._database.ddl(self._table.feed) if each.requires_column_update), default=None
        )  # type: ignore[arg-type]
        assert self._altered_at is not None
        if altered is not None and altered > self._altered_at:
            raise InstanceChangedError("was altered since the run was planned.", table=str(self._table.name))
        return found

    def _named(self, image: object) -> Values:
        known = dict(cast(tuple[tuple[int, int], ...], image))
        values = ((c.name, known[c.column_id]) for c in self._columns if c.column_id in known and not c.absent)
        return tuple(sorted(values))

    def _events(self, after: Position, upto: Position) -> list[Event]:
        found = self._database.changes(self._table.feed.object_id, number(after), number(upto))
        return [(*event[:4], self._named(event[4])) for event in found]  # type: ignore[misc]

    def read(self, windows: Sequence[Window], *_: Any, **__: Any) -> Staged:
        found: list[Event] = []
        for window in merged(windows):
            middle = lsn((number(window.after) + number(window.upto)) // 2)
            found += self._events(window.after, middle)
            self.world.at("in mid-read")
            found += self._events(middle, window.upto)
        return Staged(found, [*windows, *merged(windows)])

    def copy(self, order: CopyOrder) -> Any:  # type: ignore[override]
        world, before = self.world, self.state()
        low = self.low(before)
        folder = world.folders.get(order.place)
        table = self._table
        kind = table.feed.object_id, tuple((c.column_id, c.type, c.kept) for c in self._columns), table.altered_upto
        kind += (order.leaves_out,)
        is_old = folder is not None and (order.above is not None and folder.low < order.above)
        if folder is None or folder.kind != kind or is_old or is_gap(folder.kept, before.readable_from):
            folder = Folder(f"copy-{next(world.copy_ids)}", kind, low, low)
            now = [only(self._named(image), order.leaves_out) for image in self._database.rows[self._of].values()]
            if order.leaves_out and now:
                folder.common = max(now, key=now.count)
            world.folders[order.place] = folder
        self._place, self._folder = order.place, folder
        while folder.parts < _PARTS:
            world.at("in mid-copy")
            part = folder.parts
            rows = cast(dict[int, Any], self._database.rows[self._of])
            read = {key: self._named(image) for key, image in rows.items() if key % _PARTS == part}
            folder.rows |= {k: v for k, v in read.items() if only(v, order.leaves_out) != folder.common}
            folder.parts = max(folder.parts, part + 1)
            if folder.parts < _PARTS and world.pauses:
                world.pauses -= 1
                self._keep(folder)
                receipt = CopyingReceipt(folder.id, (), folder.low, folder.kept, folder.parts, len(folder.rows))
                return Unfinished(receipt)
        self._database.capture()
        self._keep(folder)
        high = folder.kept
        held = EvolvingRows((number(folder.low), _LAST, "R", key, values) for key, values in folder.rows.items())  # type: ignore[misc]
        window = Window(folder.low, high)
        seen = (
            *before.lineage.witnesses(),
            Witness(cast(Any, high), self._database.commits[number(high)][0], None),
        )
        at_low = self._database.state(self._of, number(folder.low))
        return SimpleNamespace(
            id=folder.id,
            was={key: self._named(image) for key, image in at_low.items()},
            low=folder.low,
            high=high,
            window=window,
            rows_copied=len(held),
            held=held,
            rows=lambda: held,
            events=Staged(list(folder.events), [window]),
            witnesses=seen,
            warnings=(),
            conditions=(),
            again=None,
            changed_after=None,
            common=None if folder.common is None else SimpleNamespace(rows=lambda: folder.common),
        )

    def _keep(self, folder: Folder) -> None:
        """Keep the events of meanwhile beside a copy."""
        upto = lsn(self._database.captured)
        if upto > folder.kept:
            events = self._events(folder.kept, upto)
            if is_gap(folder.kept, (readable := self.state().readable_from)):
                self.world.folders.pop(self._place, None)
                raise GapError(str(self._table.name), folder.kept, readable, advice="")
            folder.events += events
            folder.kept = upto

    def respelled(self, staged: Any, window: Window, known: Any, folder: str, *, is_sure: bool | None) -> Any:
        return staged

    def has_lost_copy(self) -> bool:
        return self._folder is not None and self.world.folders.get(self._place) is not self._folder

    def remove_copy(self) -> None:
        if self.world.folders.get(self._place) is self._folder:
            self.world.folders.pop(self._place, None)

    def remove_copies(self, place: str) -> None:
        self.world.folders.pop(place, None)


class EvolvingParts(WorldParts):
    """The parts of a load in plain Python."""

    _world: EvolvingWorld

    @property
    def salt(self) -> str | None:
        return None

    def source(self, table: TableSpec, mappings: Any) -> JobSource:
        return EvolvingJobSource(self._world, table)

    def kinds(self) -> dict[str, Any]:
        return {"mirror": _Mirror, "history": _History, "scd2": _Versions}


class _Filling:
    """How columns are filled, shape by shape."""

    def laid_out(self, write: Write, layout: int) -> Write:
        return Write(write.fold, write.low)


class _Mirror(_Filling, PlainMirror):
    def filled(
        self,
        target_rows: Any,
        there: Mapping[int, Values],
        events: Any,
        names: Sequence[str],
        window: Window,
        common: Any,
        known_at: Any = None,
    ) -> Any:
        return Write(
            lambda rows: as_rows(
                {k: put(v, there.get(k, v if common is None else common), names) for k, v in as_dict(rows).items()}
            )  # type: ignore[misc, arg-type]
        )


class _Versions(_Filling, PlainVersions):
    def first(self, begun: Any, target_rows: Any) -> Any:
        events = begun.staged.rows(begun.window) if begun.staged is not None else Rows()
        # before images tell of the copy's low, where rows have changed since
        first = {event[3]: event[2] for event in reversed(events)}
        there = {key: values for key, values in as_dict(begun.copy.held).items() if key not in first}
        there |= {key: begun.copy.was[key] for key, op in first.items() if op != "I"}
        low = number(begun.window.after)
        return Write(lambda rows: next_versions(versions_anew(rows, there, low, Rows()), events), low)

    def filled(
        self,
        target_rows: Any,
        there: Mapping[int, Values],
        events: Any,
        names: Sequence[str],
        window: Window,
        common: Any,
        known_at: Any = None,
    ) -> Any:
        told = {(e[0], e[3]): e[4] for e in events or ()}

        def fill(rows: Rows) -> Iterator[Event]:
            for begun, end, op, key, values in rows:
                if end == OPEN:
                    values = put(values, there.get(key, values if common is None else common), names)  # type: ignore[arg-type, call-overload]
                elif (begun, key) in told:
                    values = put(values, told[begun, key], names)  # type: ignore[arg-type]
                yield begun, end, op, key, values  # type: ignore[misc]

        return Write(fill)


class _History(_Filling, PlainHistory):
    def filled(
        self,
        target_rows: Any,
        there: Mapping[int, Values],
        events: Any,
        names: Sequence[str],
        window: Window,
        common: Any,
        known_at: Any = None,
    ) -> Any:
        at, of_all = number(window.upto), self.table.spec.history_fill == ALL

        def fill(rows: Rows) -> list[Event]:
            now = newest_images(rows)
            filled = {
                key: put(values, there.get(key, values if common is None else common), names)
                for key, values in now.items()
                # behind a gap the history has keys that the table has no more
                if key in there or common is not None
            }
            return [*rows, *((at, _LAST, "R", k, v) for k, v in filled.items() if of_all or v != now[k])]  # type: ignore[misc, list-item]

        return Write(fill)


class _CopiedTable(TableRows):
    """What is copied to fill columns: rows by key."""

    def copied(self, copy: Any, staged: Staged | None, window: Window) -> Any:
        return SimpleNamespace(held=copy.held, events=staged.rows(window) if staged is not None else None)

    def at_end(self, copied: Any, now: Any, *, of_all: bool = True) -> Any:
        return fold(as_dict(copied.held), copied.events or ())


def put(values: Values, others: Values, names: Collection[str]) -> Values:
    """A row's values with those of some columns taken from another."""
    taken = [(name, value) for name, value in others if name in names]
    return tuple(sorted([*((name, value) for name, value in values if name not in names), *taken]))


def only(values: Values, names: Collection[str]) -> Values:
    """A row's values in some columns."""
    return tuple((name, value) for name, value in values if name in names)


def newest_images(rows: Sequence[Event]) -> dict[int, Values]:
    """The rows that a history tells of as the last ones, by key."""
    return cast(dict[int, Values], fold({}, sorted(rows, key=lambda row: row[:2])))


class EvolvingWorld(plain.World):
    """All of it.

    :ivar folders: copies that are under way, by their place
    :ivar pauses: so many chunks are the last ones of their runs
    :ivar locked: transactions keep instances from being made
    :ivar may_make: the login may make instances
    :ivar said: what the DAG author says beside
    :ivar schema_changes: what the tables of schema changes hold, by source table
    :ivar warnings: of all receipts that were not looked at yet
    :ivar killed_at: the point at which the process is gone when it is next come to
    """

    source: EvolvingSource

    def __init__(self) -> None:
        self.schema_changes: dict[str, HeldChanges] = {}
        self.warnings: list[str] = []
        self.killed_at: str | None = None
        self.folders: dict[str, Folder] = {}
        self.copy_ids = itertools.count(1)
        self.pauses, self.locked, self.may_make = 0, False, True
        self.said: dict[str, Any] = {}
        super().__init__()
        self.shapes = list(plain.SHAPES)

    def beside(self) -> EvolvingWorld:
        """Another DAG's loads of the same tables into targets of its own."""
        other = EvolvingWorld()
        other.source, other.variables, other.store = self.source, self.variables, self.store
        other.into = Target.parse("iceberg://lake/y")
        for table in TABLES:
            other.drop(table)
        return other

    def new_source(self) -> EvolvingSource:
        return EvolvingSource()

    def hook(self) -> EvolvingHook:
        return EvolvingHook(self)

    def parts(self, spec: JobSpec) -> EvolvingParts:
        return EvolvingParts(self, spec)

    def new_target(self, name: Sequence[str], table: str, shape: str) -> EvolvingTarget:
        return EvolvingTarget(self, name, table, shape)

    def at(self, point: str) -> None:
        if point == self.killed_at:
            self.point, self.killed_at = point, None
            raise plain.Killed
        super().at(point)

    def request(self, shapes: Sequence[str], **given: Any) -> Request:
        asked = super().request(shapes, **given)
        # also beside an instance that lacks what was there before the first sight
        said = dataclasses.replace(asked.defaults, **{"on_schema_change": EVOLVE, "widen_list": True, **self.said})
        return dataclasses.replace(asked, defaults=said)

    def load(
        self,
        *,
        copy_on_gap: bool = False,
        limit: int | None = None,
        upto: int | None = None,
        asked: bool = False,
    ) -> plain.Failures:
        """Plan, make the instances that are asked for, run the job, move the checkpoints; what failed."""
        with self._history():
            plan = self.plan(copy_on_gap=copy_on_gap, limit=limit, upto=upto, asked=asked)
            return self.finish(plan)

    def finish(self, plan: RunPlan) -> plain.Failures:
        """Do what was planned."""
        with self._history():
            intents = Intents(self.store, plan)
            forget_unwanted(plan, intents)
            make_instances(plan, self.hook(), intents, lock_timeout=5)  # type: ignore[arg-type]
            with mock.patch.object(job_files, "remove_copy", self.forget_folder):
                checkpoints.store_given_up(self.store, plan)
            outcome = self.outcome(plan)
            self.at("checkpoint")
            now = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=self.source.clock % 2)
            checkpoints.save(self.store, outcome.checkpoints(now), outcome)
        return outcome.failures()

    def forget_folder(self, place: str, id_: str) -> None:
        """Remove the folder of a copy."""
        if (folder := self.folders.get(place)) is not None and folder.id == id_:
            del self.folders[place]

    def outcome(self, plan: RunPlan) -> Outcome:
        outcome = super().outcome(plan)
        tables = outcome.receipt.tables if outcome.receipt is not None else ()
        self.warnings += [warning for table in tables for warning in table.warnings]
        return outcome

    def reset(self, table: str) -> None:
        """Say ``mssql-cdc checkpoint reset``, and drop the targets."""
        identity = self.identity(table)
        if self.checkpoint(table) is not None:
            cli._forget(self.store, identity)
        left = self.variables.get(identity.variable)
        self.drop(table)
        if left is not None:
            self.variables[identity.variable] = left

    def judge(self, target: TargetTable) -> None:
        try:
            check(cast(EvolvingTarget, target), self.source)
        except AssertionError as error:
            self.wrong.append(error)

    def judge_changes(self, kept: HeldChanges) -> None:
        """Look whether a table of schema changes says each thing once. What is wrong is remembered."""
        try:
            kept.check()
        except AssertionError as error:
            self.wrong.append(error)


@contextmanager
def patched() -> Iterator[None]:
    """Put a world where the job would find Spark and the server."""
    with (
        plain.patched(),
        mock.patch.multiple(sink, with_nulls=lambda rows, _: rows),
        mock.patch.multiple(filling, with_nulls=lambda rows, _: rows, TableRows=_CopiedTable),
        mock.patch.multiple(job, SchemaChanges=ChangesTable),
    ):
        yield
