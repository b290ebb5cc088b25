"""A source, its change tables and targets in plain Python, for the real planner, job, markers and checkpoints.

Rows are folded by this model; that Spark folds them alike is shown where Spark runs. Whatever is done here comes to
``World.at`` on its way, where faults strike.
"""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest import mock

from airflow_provider_mssql_cdc.core.checkpoint import SAME_TIME, CheckpointStore, Witness
from airflow_provider_mssql_cdc.core.database import DatabaseStatus, Matches, Probe, Snapshot, SourceTable
from airflow_provider_mssql_cdc.core.exceptions import RestoredError
from airflow_provider_mssql_cdc.core.lsn import Lsn
from airflow_provider_mssql_cdc.core.plan import SinkOptions
from airflow_provider_mssql_cdc.core.spec import JobSpec, Marker, Receipt, SourceSpec, from_json, to_json
from airflow_provider_mssql_cdc.core.table import CaptureInstance, Column, TableName
from airflow_provider_mssql_cdc.core.target import Target
from airflow_provider_mssql_cdc.operators.outcome import Outcome
from airflow_provider_mssql_cdc.operators.planning import Request, plan_load
from airflow_provider_mssql_cdc.spark import job, load
from airflow_provider_mssql_cdc.spark.decide import gap, is_gap
from airflow_provider_mssql_cdc.spark.source import Credentials, SourceState
from airflow_provider_mssql_cdc.spark.staging import Counts
from airflow_provider_mssql_cdc.spark.targets import State
from tests.core.variables import Variables

TABLES = ("a", "b")
SHAPES = ("mirror", "history")
KEYS = range(5)
_START = datetime.datetime(2026, 1, 1)

Rows = dict[int, int]
Event = tuple[int, int, str, int, int]
"""Position, number in the transaction, operation, key, value."""


class Killed(BaseException):
    """The process is gone."""


def lsn(number: int) -> Lsn:
    """Return a position as an LSN."""
    return Lsn(number.to_bytes(10, "big"))


def number(position: Lsn) -> int:
    """Return an LSN as a position."""
    return int.from_bytes(position.value, "big")


@dataclass
class Source:
    """A database: what was committed, how far it is captured, what was purged."""

    commits: dict[int, tuple[datetime.datetime, dict[str, list[Event]]]] = field(default_factory=dict)
    rows: dict[str, Rows] = field(default_factory=lambda: {table: {} for table in TABLES})
    captured: int = 0
    min_lsn: int = 10
    clock: int = 0
    position: int = 10
    fork: str | None = None

    def commit(self, rng: random.Random) -> None:
        """Commit a transaction of one to four changes."""
        self.clock += rng.randint(1, 5)
        self.position += rng.randint(1, 3)
        events: dict[str, list[Event]] = {}
        for n in range(rng.randint(1, 4)):
            table = rng.choice(TABLES) if rng.random() < 0.7 else TABLES[0]
            rows, key, value = self.rows[table], rng.choice(KEYS), rng.randrange(1000)
            op = "I" if key not in rows else rng.choice("UUD")
            if op == "D":
                value = rows.pop(key)
            else:
                rows[key] = value
            events.setdefault(table, []).append((self.position, n, op, key, value))
        self.commits[self.position] = (_START + datetime.timedelta(seconds=self.clock), events)

    def capture(self) -> None:
        """Capture all that is committed."""
        self.captured = self.position if self.commits else 0

    def cleanup(self, part: float) -> None:
        """Purge a part of what is captured."""
        known = [p for p in self.commits if p <= self.captured]
        if known:
            self.min_lsn = max(self.min_lsn, known[int(part * (len(known) - 1))])

    def restore(self, part: float, *, fork: bool) -> None:
        """Go back to an earlier moment."""
        known = sorted(self.commits)
        if not known:
            return
        last = known[int(part * (len(known) - 1))]
        self.commits = {p: c for p, c in self.commits.items() if p <= last}
        self.rows = {table: self.at(table, last) for table in TABLES}
        self.captured, self.position = min(self.captured, last), last
        # what was purged since is there again
        self.min_lsn = min(self.min_lsn, last)
        self.clock += 100
        if fork:
            self.fork = f"fork {self.clock}"

    def at(self, table: str, position: int) -> Rows:
        """The rows of a table as of a position."""
        return fold({}, self.events(table, 0, position))

    def events(self, table: str, after: int, upto: int) -> list[Event]:
        """All events of a table, whether they were purged or not."""
        return [
            e for p, (_, events) in sorted(self.commits.items()) if after < p <= upto for e in events.get(table, ())
        ]

    def changes(self, table: str, after: int, upto: int) -> list[Event]:
        """What the change table still has."""
        return [e for e in self.events(table, after, min(upto, self.captured)) if e[0] >= self.min_lsn]

    def witness(self, position: Lsn) -> Witness | None:
        """The largest mapped LSN at or below a position."""
        found = max((p for p in self.mapped() if p <= number(position)), default=None)
        return None if found is None else Witness(lsn(found), self.commits[found][0], self.fork)

    def mapped(self) -> list[int]:
        """``cdc.lsn_time_mapping``."""
        return [p for p in sorted(self.commits) if self.min_lsn <= p <= self.captured]


def fold(rows: Mapping[int, int], events: Sequence[Event]) -> Rows:
    """The rows after some events."""
    found = dict(rows)
    for _, _, op, key, value in events:
        if op == "D":
            found.pop(key, None)
        else:
            found[key] = value
    return found


def instances(source: Source) -> tuple[CaptureInstance, ...]:
    """The capture instances, as the catalogue tells them."""
    columns = (
        Column(1, 1, "id", "int", 4, 10, 0, nullable=False, collation=None),
        Column(2, 2, "value", "int", 4, 10, 0, nullable=True, collation=None),
    )
    return tuple(
        CaptureInstance(
            f"dbo_{table}",
            100 + n,
            TableName("dbo", table),
            200 + n,
            _START,
            lsn(source.min_lsn),
            lsn(source.min_lsn),
            columns,
            index_key=("id",),
        )
        for n, table in enumerate(TABLES)
    )


class Hook:
    """What the planner asks the source."""

    def __init__(self, world: World) -> None:
        self._world, self._source = world, world.source

    def snapshot(self, *_: Any) -> Snapshot:
        source, max_lsn = self._source, self._source.captured
        status = DatabaseStatus(
            "db", "dbo", True, lsn(max_lsn) if max_lsn else None, _START, None, 60, _START, 0, "", "16.0", "", 3,
            source.fork, None,
        )  # fmt: skip
        tables = tuple(SourceTable(TableName("dbo", t), 200 + n, tracked=True) for n, t in enumerate(TABLES))
        return Snapshot(status, Matches(tables), instances(source))

    def probe(self, after: Mapping[str, Lsn], *, upto: Lsn | None = None, witnesses: Any = ()) -> Probe:
        source = self._source
        cut = number(upto) if upto else source.captured
        newest = {}
        for instance, position in after.items():
            found = source.changes(instance.removeprefix("dbo_"), number(position), cut)
            if found:
                newest[instance] = lsn(found[-1][0])
        # cleanup may come before the min LSNs are read
        self._world.at("probe")
        mapped = source.mapped()
        return Probe(
            lsn(cut) if cut else None,
            newest,
            {100 + n: lsn(source.min_lsn) for n in range(len(TABLES))},
            source.witness(lsn(cut)) if cut else None,
            lsn(mapped[0]) if mapped else None,
            {w: source.commits[number(w)][0] for w in witnesses if number(w) in mapped},
        )

    def ddl_history(self, *_: Any) -> list[Any]:
        return []

    def cut_by_transactions(self, windows: Mapping[str, Lsn], upto: Lsn, limit: int) -> Lsn:
        low = number(min(windows.values()))
        with_events = sorted(
            {
                event[0]
                for instance, position in windows.items()
                for event in self._source.changes(instance.removeprefix("dbo_"), number(position), number(upto))
            }
        )
        counted = [p for p in with_events if p > low]
        return upto if len(counted) <= limit else lsn(counted[limit - 1])


class JobSource:
    """What a job asks the source."""

    def __init__(self, world: World) -> None:
        self._world, self._source = world, world.source

    def state(self, instance: CaptureInstance) -> SourceState:
        captured = self._source.captured
        return SourceState(lsn(self._source.min_lsn), lsn(captured) if captured else None)

    def witness(self, position: Lsn) -> Witness | None:
        return self._source.witness(position)

    def check_witness(self, table: TableName, position: Lsn, witness: Witness | None) -> None:
        source, mapped = self._source, self._source.mapped()
        lost = not mapped or max(position, witness.lsn if witness else position) > lsn(source.captured)
        if not lost and witness is not None:
            lost = witness.recovery_fork is not None and source.fork not in (None, witness.recovery_fork)
            if witness.lsn >= lsn(mapped[0]):
                known = number(witness.lsn) in mapped
                lost |= not known or abs(source.commits[number(witness.lsn)][0] - witness.time) >= SAME_TIME
        if lost:
            raise RestoredError("restored", table=str(table))


@dataclass
class Kept:
    """A commit of a target table."""

    rows: list[Event]
    marker: Marker | None


class TargetTable:
    """A sink's table, whose commits can be gone back to."""

    def __init__(self, world: World, table: str, shape: str) -> None:
        self._world, self.table, self.shape = world, table, shape
        self.commits: list[Kept] = []
        self.line: list[int] = []
        self.forgotten = -1
        self.exists = False

    @property
    def name(self) -> str:
        return f"lake.dbo_{self.table}_{self.shape}"

    @property
    def rows_now(self) -> list[Event]:
        return self.commits[self.line[-1]].rows if self.line else []

    def create(self, columns: Any) -> None:
        self.exists = True

    def state(self) -> State:
        self._world.at("look")
        marked = [n for n in self.line if self.commits[n].marker is not None]
        marker = self.commits[marked[-1]].marker if marked else None
        forgotten = bool(marked) and marked[-1] <= self.forgotten
        snapshot = self.line[-1] if self.line else None
        return State(self.exists, snapshot, marker, not self.rows_now, from_property=forgotten)

    def rows(self, state: State) -> list[Event]:
        return self.commits[state.snapshot].rows if state.snapshot is not None else []

    def commit(self, state: State, write: Callable[[list[Event]], list[Event]], marker: Marker | None) -> bool:
        self._world.at("before the commit")
        if (self.line[-1] if self.line else None) != state.snapshot:
            return False
        self._add(Kept(write(self.rows_now), marker))
        try:
            self._world.check(self)
        except AssertionError as error:
            # the job would take it for a failure of its own
            self._world.wrong.append(error)
        self._world.at("after the commit")
        return True

    def _add(self, kept: Kept) -> None:
        self.commits.append(kept)
        self.line.append(len(self.commits) - 1)

    def compact(self) -> None:
        if self.line:
            self._add(Kept(self.rows_now, None))

    def roll_back(self, steps: int) -> None:
        if len(self.line) > steps:
            self.line = self.line[: len(self.line) - steps]

    def forget(self) -> None:
        """Let the commits expire; the table's properties remember the last marker."""
        if self.line:
            self.compact()
            self.forgotten = self.line[-1]

    def drop_leftovers(self) -> None:
        """Nothing is left over."""

    def moved_by(self) -> str:
        return "another"


class Staged:
    """Events that were read."""

    def __init__(self, events: list[Event], windows: Sequence[Any]) -> None:
        self._events = events
        self.counts = {window: self.count(window) for window in windows}

    def rows(self, window: Any) -> list[Event]:
        return [e for e in self._events if number(window.after) < e[0] <= number(window.upto)]

    def count(self, window: Any) -> Counts:
        ops = [e[2] for e in self.rows(window)]
        return Counts(ops.count("I"), ops.count("U"), ops.count("D"))


class World:
    """All of it, with the Airflow Variables that hold the checkpoints."""

    def __init__(self) -> None:
        self.source = Source()
        self.variables = Variables()
        self.store = CheckpointStore(self.variables)
        self.targets = {(t, s): TargetTable(self, t, s) for t in TABLES for s in SHAPES}
        self.faults: dict[int, Callable[[], None]] = {}
        self.wrong: list[AssertionError] = []
        self.points = itertools.count()
        self.request = Request(
            connection="db",
            patterns=("dbo.*",),
            exclude=(),
            options=SinkOptions(Target.parse("iceberg://lake/x"), SHAPES, "{schema}_{table}"),
        )
        self._ids = itertools.count(1)
        self._receipts: dict[str, str] = {}

    def at(self, point: str) -> None:
        """Come to a point of a load, where a fault may strike."""
        fault = self.faults.pop(next(self.points), None)
        if fault is not None:
            fault()

    def load(self, *, resnapshot: bool = False, max_transactions: int | None = None) -> dict[str, tuple[str, bool]]:
        """Plan, run the job, move the checkpoints; what failed."""
        options = dataclasses.replace(self.request.options, resnapshot=resnapshot)
        request = dataclasses.replace(self.request, options=options, max_transactions=max_transactions)
        hook: Any = Hook(self)
        plan = plan_load(hook, self.store, request, None)
        spec = receipt = None
        if plan.specs:
            assert plan.upto is not None
            where = SourceSpec("server", "db", "jdbc", {}, "UTC")
            spec = JobSpec(f"{next(self._ids):012}", where, tuple(plan.specs), plan.upto, "/nowhere", tables_at_once=1)
            spec = from_json(JobSpec, to_json(spec))
            with self._patched():
                job.run(None, spec)  # type: ignore[arg-type]
            receipt = from_json(Receipt, self._receipts[spec.receipt_path])
        outcome = Outcome(plan, spec, receipt)
        for written in outcome.checkpoints(request, datetime.datetime.now(datetime.UTC)):
            self.at("checkpoint")
            self.store.save(written, plan.checkpoints.get(written.identity.table))
        return outcome.failures()

    @contextmanager
    def _patched(self) -> Iterator[None]:
        """Put this world where the job would find Spark and the server."""
        nobody, world = Credentials(None, None), self
        with (
            mock.patch.multiple(
                job,
                credentials=lambda _: nobody,
                target_credentials=lambda _: nobody,
                salt=lambda _: None,
                table_session=lambda _: None,
                Source=lambda *_: JobSource(world),
                _application_id=lambda _: "",
                files=SimpleNamespace(write_text=self._write_text, remove=lambda *_: self.at("clean-up")),
            ),
            mock.patch.multiple(
                load,
                open_table=lambda session, job, shape, sink, name, connections: world.targets[
                    shape.spec.name.table, sink.shape
                ],
                stage_windows=self._stage,
                copy_table=self._copy,
                first_rows=self._first_rows,
                next_window=self._next_window,
                identified=lambda sink, rows: SimpleNamespace(
                    agg=lambda *_: SimpleNamespace(collect=lambda: [(_newest(rows),)])
                ),
                F=SimpleNamespace(max=lambda name: name),
            ),
        ):
            yield

    def _write_text(self, _: Any, path: str, text: str) -> None:
        self.at("receipt")
        self._receipts[path] = text

    def _stage(
        self, source: JobSource, table: Any, _: Any, windows: Sequence[Any], *__: Any, **___: Any
    ) -> tuple[Staged, Lsn | None]:
        name = table.name.table
        low, high = number(min(w.after for w in windows)), number(max(w.upto for w in windows))
        middle = (low + high) // 2
        found = self.source.changes(name, low, middle)
        self.at("in mid-read")
        found += self.source.changes(name, middle, high)
        self.at("staged")
        min_lsn = source.state(table.instance).min_lsn
        if is_gap(lsn(low), min_lsn):
            raise gap(table, lsn(low), min_lsn)
        return Staged(found, windows), min_lsn

    def _copy(self, source: JobSource, table: Any, *_: Any, **__: Any) -> Any:
        name = table.name.table
        low = load.low_position(table, source.state(table.instance))
        rows = {key: value for key, value in self.source.rows[name].items() if key % 2}
        self.at("in mid-copy")
        rows |= {key: value for key, value in self.source.rows[name].items() if not key % 2}
        self.source.capture()
        return SimpleNamespace(low=low, high=lsn(self.source.captured), rows_copied=len(rows), held=rows)

    def _first_rows(
        self, shape: Any, sink: Any, window: Any, staged: Staged | None, copy: Any, held: Any, *, anew: bool, **_: Any
    ) -> Callable[[list[Event]], list[Event]]:
        events = staged.rows(window) if staged is not None else []
        touched, low = {e[3] for e in events}, number(window.after)
        stays = [(low, 0, "R", key, value) for key, value in copy.held.items() if key not in touched]
        if sink.shape == "history":
            return lambda rows: rows + stays + events
        return lambda rows: _as_rows(fold({e[3]: e[4] for e in stays}, events))

    def _next_window(
        self, shape: Any, sink: Any, window: Any, staged: Staged, held: Any
    ) -> Callable[[list[Event]], list[Event]]:
        events = staged.rows(window)
        if sink.shape == "history":
            return lambda rows: rows + events
        return lambda rows: _as_rows(fold({e[3]: e[4] for e in rows}, events))

    def check(self, target: TargetTable) -> None:
        """What was just committed is what the source was at the marker's position."""
        kept = target.commits[target.line[-1]]
        assert kept.marker is not None
        position = number(kept.marker.position)
        truth = self.source.at(target.table, position)
        if target.shape == "mirror":
            assert {e[3]: e[4] for e in kept.rows} == truth
            assert len(kept.rows) == len(truth)
            return
        events = [e for e in kept.rows if e[2] != "R"]
        lows = sorted({e[0] for e in kept.rows if e[2] == "R"})
        gaps = [(number(g.after), number(g.upto)) for g in kept.marker.gaps]
        assert events == sorted(set(events))
        if lows or gaps:
            # the copies of a history begin at its first low, and at the end of each gap
            begin = max([*lows, *(upto for _, upto in gaps)])
            first = [e for e in kept.rows if e[2] == "R" and e[0] == begin]
            after = [e for e in events if e[0] > begin]
            assert fold({e[3]: e[4] for e in first}, after) == truth
            assert after == self.source.events(target.table, begin, position)
        known = self.source.events(target.table, 0, position)
        missing = [e for e in known if e not in events]
        start = min([*lows, *(e[0] - 1 for e in events)], default=position)
        assert set(events) <= set(known)
        assert all(e[0] <= start or any(a < e[0] <= u for a, u in gaps) for e in missing)


def _as_rows(rows: Rows) -> list[Event]:
    return [(0, 0, "", key, value) for key, value in sorted(rows.items())]


def _newest(rows: list[Event]) -> str | None:
    return max((str(lsn(e[0])) for e in rows), default=None)
