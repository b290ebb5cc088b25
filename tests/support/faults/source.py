"""A database in plain Python: its commits, what of them is captured and was purged, and its capture instances."""

from __future__ import annotations

import datetime
import functools
import itertools
import random
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from airflow_provider_mssql_cdc.core.database import (
    ChangeTables,
    DatabaseStatus,
    Matches,
    SourceTable,
    Survey,
    Transaction,
)
from airflow_provider_mssql_cdc.core.exceptions import CdcPermissionError
from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.interval import Crossing
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.protection import Protection
from airflow_provider_mssql_cdc.core.table import Column, TableName
from airflow_provider_mssql_cdc.hooks.errors import INVALID_OBJECT
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook

if TYPE_CHECKING:
    from tests.support.faults.world import World

TABLES = ("a", "b")
KEYS = range(5)
START = datetime.datetime(2026, 1, 1)

Rows = dict[int, int]
Event = tuple[int, int, str, int, int]
"""Position, number in the transaction, operation, key, value."""
Commits = dict[int, tuple[datetime.datetime, dict[str, list[Event]]]]
"""By position, in order: time, and events by table."""

_NARROW = (
    Column(1, 1, "id", "int", 4, 10, 0, nullable=False, collation=None),
    Column(2, 2, "value", "int", 4, 10, 0, nullable=True, collation=None),
)
_WIDE = (*_NARROW, Column(3, 3, "note", "int", 4, 10, 0, nullable=True, collation=None))


@functools.lru_cache(4096)
def lsn(number: int) -> Lsn:
    """A position as an LSN."""
    return Lsn(number.to_bytes(10, "big"))


def number(position: Lsn) -> int:
    """An LSN as a position."""
    return int.from_bytes(position.value, "big")


def name_of(table: str) -> TableName:
    """The table's name."""
    return TableName("dbo", table)


def fold(rows: Mapping[int, int], events: Iterable[Event]) -> Rows:
    """The rows after some events."""
    found = dict(rows)
    for _, _, op, key, value in events:
        if op == "D":
            found.pop(key, None)
        else:
            found[key] = value
    return found


def events_of(commits: Commits, table: str, after: int, upto: int) -> list[Event]:
    """All events of a table, whether they were purged or not."""
    return [e for p, (_, events) in commits.items() if after < p <= upto for e in events.get(table, ())]


@dataclass
class Instance:
    """A capture instance.

    :param start: the first position that it captures
    :param end: the last one, once it is dropped
    """

    name: str
    table: str
    object_id: int
    created: datetime.datetime
    start: int
    wide: bool
    end: int | None = None


@dataclass
class Source:
    """The database.

    :param fork: the recovery fork; None where the login cannot see it
    :param before: what was committed before each restore
    """

    commits: Commits = field(default_factory=dict)
    rows: dict[str, Rows] = field(default_factory=lambda: {table: {} for table in TABLES})
    captured: int = 0
    min_lsn: int = 10
    clock: int = 0
    position: int = 10
    fork: str | None = None
    before: list[Commits] = field(default_factory=list)
    instances: dict[str, list[Instance]] = field(default_factory=lambda: {table: [] for table in TABLES})

    def __post_init__(self) -> None:
        self._ids = itertools.count(100)
        for table in TABLES:
            self.enable(table, wide=False)

    def commit(self, rng: random.Random) -> set[str]:
        """Commit a transaction of one to four changes.

        :return: the tables that it changed
        """
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
        self.commits[self.position] = (START + datetime.timedelta(seconds=self.clock), events)
        return set(events)

    def capture(self) -> None:
        """Capture all that is committed."""
        self.captured = self.position if self.commits else 0

    def cleanup(self, part: float) -> None:
        """Purge a part of what is captured."""
        known = [p for p in self.commits if p <= self.captured]
        if known:
            self.min_lsn = max(self.min_lsn, known[int(part * (len(known) - 1))])

    def enable(self, table: str, *, wide: bool) -> None:
        """Add a capture instance, with a column more or without, where there are less than two."""
        names = {instance.name for instance in self.alive(table)}
        if len(names) < 2:
            name = min({f"dbo_{table}", f"dbo_{table}_2"} - names)
            self.clock += 1
            created = START + datetime.timedelta(seconds=self.clock)
            self.instances[table].append(Instance(name, table, next(self._ids), created, self.position + 1, wide))

    def drop_older(self, table: str) -> None:
        """Drop the older of two capture instances."""
        first, *others = self.alive(table)
        if others:
            first.end = self.position

    def enable_anew(self, table: str, *, wide: bool) -> None:
        """Drop the capture instances and enable one of the same name."""
        for instance in self.alive(table):
            instance.end = self.position
        self.enable(table, wide=wide)

    def alive(self, table: str) -> list[Instance]:
        """The capture instances that are there, oldest first."""
        return [instance for instance in self.instances[table] if instance.end is None]

    def restore(self, part: float) -> None:
        """Go back to an earlier moment."""
        known = list(self.commits)
        if not known:
            return
        last = known[int(part * (len(known) - 1))]
        self.before.append(self.commits)
        self.commits = {p: c for p, c in self.commits.items() if p <= last}
        self.rows = {table: fold({}, events_of(self.commits, table, 0, last)) for table in TABLES}
        self.captured, self.position = min(self.captured, last), last
        # what was purged since is there again
        self.min_lsn = min(self.min_lsn, last)
        for table, instances in self.instances.items():
            self.instances[table] = [instance for instance in instances if instance.start <= last + 1]
            for instance in self.instances[table]:
                if instance.end is not None and instance.end > last:
                    instance.end = None
        self.clock += 100
        if self.fork is not None:
            self.fork = f"fork {self.clock}"

    def low(self, instance: Instance) -> int:
        """The instance's min LSN."""
        return max(self.min_lsn, instance.start)

    def changes(self, object_id: int, after: int, upto: int) -> list[Event]:
        """What a change table still has."""
        for instance in itertools.chain.from_iterable(self.instances.values()):
            if instance.object_id == object_id and instance.end is None:
                after = max(after, self.low(instance) - 1)
                return events_of(self.commits, instance.table, after, min(upto, self.captured))
        return []

    def mapped(self) -> list[int]:
        """``cdc.lsn_time_mapping``."""
        return [p for p in self.commits if self.min_lsn <= p <= self.captured]

    def catalogue(self, table: str) -> list[CaptureInstance]:
        """The capture instances, as the catalogue tells them."""
        return [
            CaptureInstance(
                i.name, i.object_id, name_of(table), 200 + TABLES.index(table), i.created,
                _WIDE if i.wide else _NARROW, ("id",), start_lsn=lsn(i.start), min_lsn=lsn(self.low(i)),
            )
            for i in self.alive(table)
        ]  # fmt: skip


class Hook:
    """What the planner asks the source."""

    def __init__(self, world: World) -> None:
        self._world, self._source = world, world.source

    def database_status(self) -> DatabaseStatus:
        source, mapped = self._source, self._source.mapped()
        return DatabaseStatus(
            "db", "dbo", True, lsn(source.captured) if source.captured else None,
            source.commits[mapped[-1]][0] if mapped else None, None, 60, START, 0, "", "16.0", "", 3, source.fork, None,
        )  # fmt: skip

    def survey(self, *_: Any, captured: bool = True) -> Survey:
        source, listed, status = self._source, self._world.listed, self.database_status()
        tables = tuple(SourceTable(name_of(t), 200 + n, tracked=True) for n, t in enumerate(TABLES) if t in listed)
        places = {name_of(table): (place,) for place, table in enumerate(self._world.listed)}
        matches = Matches(tables, by=places)
        return Survey(status, matches, tuple(i for table in listed for i in source.catalogue(table)))

    def instance_names(self) -> dict[str, int]:
        found = (instance for table in TABLES for instance in self._source.catalogue(table))
        return {instance.name: instance.source_object_id for instance in found}

    def row_counts(self, object_ids: Collection[int]) -> dict[int, int]:
        return dict.fromkeys(object_ids, 0)

    def protection(self, _: Any, *, captured: bool = True) -> Protection:
        """Nothing is masked or filtered."""
        return Protection()

    def lag(self, *_: Any) -> None:
        """The capture is in time."""

    def probe(
        self, after: Mapping[str, Lsn], *, upto: Lsn | None = None, witnesses: Collection[Lsn] = ()
    ) -> ChangeTables:
        self._world.at("plan")
        source, restores = self._source, len(self._source.before)
        below = [p for p in source.mapped() if upto is None or p <= number(upto)]
        cut = max(below, default=number(upto) if upto else 0)
        alive = {instance.name: instance for table in TABLES for instance in source.alive(table)}
        newest = {}
        for name, position in after.items():
            if name not in alive:
                raise CdcPermissionError(f"Invalid object name 'cdc.{name}_CT'.", number=INVALID_OBJECT)
            found = source.changes(alive[name].object_id, number(position), cut)
            if found:
                newest[name] = lsn(found[-1][0])
        # cleanup may come before the min LSNs are read
        self._world.at("probe")
        if len(source.before) > restores:
            # the connection was closed, and the hook asks once more
            return self.probe(after, upto=upto, witnesses=witnesses)
        mapped = source.mapped()
        return ChangeTables(
            lsn(cut) if cut else None,
            newest,
            {i.object_id: lsn(source.low(i)) for table in TABLES for i in source.alive(table)},
            Witness(lsn(cut), source.commits[cut][0]) if cut in mapped else None,
            lsn(mapped[0]) if mapped else None,
            {w: source.commits[number(w)][0] for w in witnesses if number(w) in mapped},
        )

    def ddl_history(self, *_: Any) -> list[Any]:
        return []

    def cut_by_transactions(self, windows: Mapping[str, Lsn], upto: Lsn, limit: int) -> Lsn:
        low = number(min(windows.values()))
        ids = {instance.name: instance.object_id for table in TABLES for instance in self._source.alive(table)}
        with_events = {
            event[0]
            for name, position in windows.items()
            for event in self._source.changes(ids.get(name, 0), number(position), number(upto))
        }
        counted = sorted(p for p in with_events if p > low)
        return upto if len(counted) <= limit else lsn(counted[limit - 1])

    # as the hook itself does, by what this one answers
    server_zone = MsSqlCdcHook.server_zone
    position_before = MsSqlCdcHook.position_before

    def server_timezone(self) -> str:
        return "UTC"

    def agent_health(self) -> Any:
        return SimpleNamespace(detail="It runs.")

    def crossing(self, moment: datetime.datetime) -> Crossing | None:
        source = self._source
        at = next((p for p in source.mapped() if source.commits[p][0] >= moment), None)
        before = [p for p in source.mapped() if at is not None and p < at]
        return None if at is None else Crossing(lsn(at), lsn(before[-1]) if before else None, None)

    def transactions_between(self, after: Lsn, upto: Lsn, limit: int) -> list[Transaction]:
        found = [p for p in self._source.mapped() if number(after) < p <= number(upto)]
        return [Transaction(lsn(p), None, self._source.commits[p][0], b"") for p in found[:limit]]
