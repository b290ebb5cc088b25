"""Target tables in plain Python, whose commits can be gone back to, and what each must hold."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.exceptions import TargetError
from airflow_provider_mssql_cdc.core.marker import Marker
from airflow_provider_mssql_cdc.core.position import Position, Window, merged
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.selection import salt_check
from airflow_provider_mssql_cdc.spark.staging import Counts
from airflow_provider_mssql_cdc.spark.targets import Difference, State
from tests.support.faults.source import Commits, Event, events_of, fold, number

if TYPE_CHECKING:
    from tests.support.faults.world import World

SALTS = ("the salt of the first years", "another salt that is long enough")
_CHECKS = {f"salt {salt_check(salt)}": n for n, salt in enumerate(SALTS)}
OPEN = 1 << 40
"""Where a version ends that counts now."""


class Rows(list[Event]):
    """What stands for a DataFrame of events."""

    columns = ("_tran_id", "_healed")

    def coalesce(self, _: int) -> Rows:
        return self

    def where(self, holds: Callable[[Event], bool]) -> Rows:
        return Rows(filter(holds, self))

    def isEmpty(self) -> bool:
        return not self


@dataclass(frozen=True)
class Within:
    """Whether an event lies in a window, or, turned round, outside of it."""

    window: Window
    inside: bool = True

    def __call__(self, event: Event) -> bool:
        return (number(self.window.after) < event[0] <= number(self.window.upto)) is self.inside

    def __invert__(self) -> Within:
        return Within(self.window, not self.inside)


@dataclass(frozen=True)
class Write:
    """What a load commits.

    :param low: where the rows begin that were copied; None where none were
    :param adds: columns that the table gets
    :param key_before: by which the table's rows were told apart, where that was another key
    """

    fold: Callable[[Rows], Iterable[Event]]
    low: int | None = None
    adds: tuple[TargetColumn, ...] = ()
    key_before: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kept:
    """A commit of a target table."""

    rows: Rows
    marker: Marker | None = None
    low: int | None = None


class TargetTable:
    """A sink's table."""

    def __init__(self, world: World, name: Sequence[str], table: str, shape: str) -> None:
        self._world, self._name, self.table, self.shape = world, name, table, shape
        self.commits: list[Kept] = []
        self.line: list[int] = []
        # the oldest commit that has not expired, and the one whose marker the table's properties hold
        self.oldest, self.remembered = 0, None
        self.exists = False
        # somebody has taken a column away
        self.broken = False
        self.schemas: set[str] = set()

    @property
    def name(self) -> str:
        return ".".join(self._name)

    @property
    def rows_now(self) -> Rows:
        return self.commits[self.line[-1]].rows if self.line else Rows()

    @property
    def marked(self) -> list[Kept]:
        """The commits of the present line that carry a marker, whether they have expired or not."""
        return [self.commits[n] for n in self.line if self.commits[n].marker is not None]

    @property
    def has_forgotten(self) -> bool:
        """Whether the table's properties remember less than it holds."""
        marked = self.marked
        return bool(marked) and self.state_now().marker != marked[-1].marker

    def check_place(self) -> None:
        """Here every table can be made."""

    def create(self, columns: Any) -> None:
        self.exists = True

    def check(self, columns: Any) -> Difference | None:
        if self.broken:
            raise TargetError(f"{self.name} lacks columns", table=f"dbo.{self.table}")
        return None

    def expect(self, columns: Any) -> None:
        """Here columns are nothing."""

    def finish(self, columns: Any) -> None:
        """Here columns are nothing."""

    def rename(self, columns: Any) -> None:
        """Here columns are nothing."""

    def drop(self, columns: Any) -> None:
        """Here columns are nothing."""

    def keep_schema(self, schema: KeptSchema) -> bool:
        self.schemas.add(schema.hash)
        return True

    def kept_schema(self, hash_: str) -> KeptSchema | None:
        """The world knows schemas by their hash alone."""
        return None

    def state(self) -> State:
        self._world.here = self
        self._world.at("look")
        found = self._found()
        self.remembered = self.remembered if found is None else found
        return self.state_now()

    def state_now(self) -> State:
        """The state, without being struck."""
        snapshot = self.line[-1] if self.line else None
        found, remembered = self._found(), self.remembered
        if found is not None:
            return State(self.exists, snapshot, self.commits[found].marker, not self.rows_now)
        if remembered is None or snapshot is None:
            return State(self.exists, snapshot, None, not self.rows_now)
        if remembered in self.line and self.rows_now:
            return State(self.exists, snapshot, self.commits[remembered].marker, False, True)
        doubt = TargetError("its properties remember another line, or rows")
        return State(self.exists, snapshot, None, not self.rows_now, doubt=doubt)

    def _found(self) -> int | None:
        """The last commit of the present line that has not expired and has a marker."""
        return next((n for n in reversed(self.line) if n >= self.oldest and self.commits[n].marker is not None), None)

    def rows(self, state: State) -> Rows:
        return self.commits[state.snapshot].rows if state.snapshot is not None else Rows()

    def rows_of(self, state: State, keys: object) -> Rows:
        return self.rows(state)

    def commit(self, state: State, write: Write, marker: Marker | None) -> bool:
        self._world.here = self
        self._world.at("before the commit")
        if (self.line[-1] if self.line else None) != state.snapshot:
            return False
        assert marker is None or (marker.schema_kept and marker.schema_hash in self.schemas)
        self._add(Kept(Rows(write.fold(self.rows_now)), marker, write.low))
        if marker is not None:
            self.remembered = self.line[-1]
        self._world.judge(self)
        self._world.at("after the commit")
        return True

    def _add(self, kept: Kept) -> None:
        self.commits.append(kept)
        self.line.append(len(self.commits) - 1)

    def compact(self) -> None:
        if self.line:
            self._add(Kept(self.rows_now))

    def roll_back(self, steps: int) -> None:
        """Go back to an earlier commit that has not expired."""
        left = self.line[: len(self.line) - steps]
        if left and left[-1] >= self.oldest:
            self.line = left

    def expire(self, *, late: bool) -> None:
        """Let the commits expire.

        :param late: the table's properties remember the marker before the last one of the present line
        """
        if marked := [n for n in self.line if self.commits[n].marker is not None]:
            self.compact()
            self.oldest = self.line[-1]
            if late and len(marked) > 1:
                self.remembered = marked[-2]

    def drop_leftovers(self) -> None:
        """Nothing is left over."""

    def changed_by(self) -> str:
        return "another"


class Staged:
    """Events that were read."""

    def __init__(self, events: list[Event], windows: Iterable[Window]) -> None:
        self._events = events
        self.counts = {window: self.count(window) for window in windows}

    def rows(self, window: Window) -> Rows:
        return Rows(filter(Within(window), self._events))

    def total(self) -> Counts:
        return sum((self.counts[window] for window in merged([*self.counts])), Counts())

    def holds(self, window: Window) -> bool:
        return any(asked.holds(window) for asked in self.counts)

    def reached(self, window: Window) -> Position:
        return window.upto

    def count(self, window: Window) -> Counts:
        ops = [e[2] for e in self.rows(window)]
        return Counts(ops.count("I"), ops.count("U"), ops.count("D"))


@functools.lru_cache
def chosen(selection: tuple[str, ...]) -> Callable[[Event], Event | None]:
    """What a selection, as it is described, makes of an event; None where it is left out."""
    few = any(line.startswith("rows with") for line in selection)
    salt = next((_CHECKS[line] for line in selection if line in _CHECKS), None)

    def choose(event: Event) -> Event | None:
        if few and event[3] >= 3:
            return None
        return event if salt is None else (*event[:4], hashed(event[4], salt))

    return choose


def hashed(value: int, salt: int) -> int:
    """What stands for the hash of a value."""
    return value + 10_000 * (salt + 1)


def as_rows(rows: dict[int, int]) -> Rows:
    """A mirror's rows."""
    return Rows((0, 0, "", key, value) for key, value in sorted(rows.items()))


def as_dict(rows: Iterable[Event]) -> dict[int, int]:
    """Rows by key."""
    return {e[3]: e[4] for e in rows}


def next_versions(target_rows: Rows, events: Rows) -> Rows:
    """Versions after some events: they begin and end instead of having an operation."""
    done = Rows(v for v in target_rows if v[1] != OPEN)
    now = {v[3]: v for v in target_rows if v[1] == OPEN}
    last = {(e[0], e[3]): e for e in events}
    for (position, key), event in sorted(last.items()):
        if key in now:
            done.append((now[key][0], position, "V", key, now.pop(key)[4]))
        if event[2] != "D":
            now[key] = (position, OPEN, "V", key, event[4])
    return Rows([*done, *now.values()])


def versions_anew(target_rows: Rows, copied: dict[int, int], low: int, events: Rows) -> Rows:
    """Versions after a gap: what vanished or differs ends, what differs begins."""
    touched = {e[3] for e in events}
    kept = Rows()
    for version in target_rows:
        begun, end, _, key, value = version
        gone = end == OPEN and key not in touched and copied.get(key) != value
        kept.append((begun, low, "V", key, value) if gone else version)
    same = {v[3] for v in kept if v[1] == OPEN}
    kept += [(low, OPEN, "V", key, value) for key, value in copied.items() if key not in touched | same]
    return next_versions(kept, events)


def check(target: TargetTable, commits: Commits, *, whole: bool = False) -> None:
    """Prove that a target is what the source was at its marker's position.

    :param commits: of the source
    :param whole: versions of before the last commit too
    :raises AssertionError: if it is not
    """
    marked = target.marked
    marker = marked[-1].marker
    assert marker is not None
    assert len({kept.marker.schema_hash for kept in marked if kept.marker}) == 1, "other columns"
    position, choose = number(marker.position), chosen(marker.selection)
    known = [e for e in map(choose, events_of(commits, target.table, 0, position)) if e is not None]
    rows = target.rows_now
    if target.shape == "mirror":
        assert as_dict(rows) == fold({}, known)
        assert len(rows) == len({e[3] for e in rows})
    elif target.shape == "history":
        _check_history(marked, rows, known)
    else:
        # what lies before the last commit was compared with that
        since = number(marked[-2].marker.position) if len(marked) > 1 and marked[-2].marker else 0
        check_versions(marked, rows, known, position, 0 if whole else since)


def _check_history(marked: list[Kept], rows: Rows, known: list[Event]) -> None:
    marker, lows = marked[-1].marker, [kept.low for kept in marked if kept.low is not None]
    assert marker is not None
    events = [e for e in rows if e[2] != "R"]
    # what an expired marker knew of gaps, an asserted position does not say
    known_gaps = [gap for kept in marked if kept.marker for gap in kept.marker.gaps] if marker.asserted else marker.gaps
    gaps = [(number(gap.after), number(gap.upto)) for gap in known_gaps]
    assert len(events) == len(set(events)), "doubled"
    assert set(events) <= set(known), "never happened"
    # what lies before its first low can come from replays alone
    missing = set(known) - set(events)
    assert all(e[0] <= lows[0] or any(a < e[0] <= u for a, u in gaps) for e in missing), "lost"
    begun = as_dict(e for e in rows if e[2] == "R" and e[0] == lows[-1])
    assert fold(begun, sorted(e for e in events if e[0] > lows[-1])) == fold({}, known)


def check_versions(marked: list[Kept], rows: Rows, known: list[Event], position: int, since: int) -> None:
    """Prove that versions tell what the source was at each of its commits.

    :param known: all events up to the position
    :param since: what lies before that was compared before
    :raises AssertionError: if they do not
    """
    hidden = []
    for kept in marked:
        if kept.low is not None and kept.marker is not None:
            # what markers say is lacking; of a first load, all that was before its end
            gaps = [(number(gap.after) + 1, number(gap.upto)) for gap in kept.marker.gaps]
            hidden += gaps or [(0, number(kept.marker.position))]
    assert len({(v[0], v[3]) for v in rows}) == len(rows), "doubled"
    truth: dict[int, int] = {}
    points = [(p, list(group)) for p, group in itertools.groupby(known, key=lambda e: e[0])]
    for at, events in [*points, (position, [])]:
        truth = fold(truth, events)
        if at >= since and not any(a <= at < u for a, u in hidden):
            then = [v for v in rows if v[0] <= at < v[1]]
            assert as_dict(then) == truth, at
            assert len(then) == len(truth), at
