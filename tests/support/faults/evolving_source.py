"""A database whose tables get, drop and alter columns, and the capture instances that have some of them."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_mssql_cdc.core.database import DatabaseStatus
from airflow_provider_mssql_cdc.core.exceptions import CdcPermissionError, SqlServerError
from airflow_provider_mssql_cdc.core.feed import CaptureInstance, DdlChange
from airflow_provider_mssql_cdc.core.proposal import NewInstance
from airflow_provider_mssql_cdc.core.rights import CopiedRights
from airflow_provider_mssql_cdc.core.table import Column
from airflow_provider_mssql_cdc.hooks import statements
from airflow_provider_mssql_cdc.hooks.errors import INVALID_OBJECT
from airflow_provider_mssql_cdc.hooks.mssql_cdc import LOCK_TIMEOUT
from tests.support.faults.source import (
    START,
    TABLES,
    Event,
    Hook,
    Instance,
    Source,
    events_of,
    lsn,
    name_of,
)

KEY, BASE = 1, 2
"""The column_ids of the key, and of the column that is never dropped or altered."""
KEYS = range(8)
FIRST_MIN_LSN = Source.min_lsn
_NOT_OWNER = 22904
"""Only members of db_owner may make an instance (docs: sys.sp_cdc_enable_table)."""

Image = tuple[tuple[int, int], ...]
"""The values of a row by column_id, but for the key's; what is NULL is left out."""

_FACTS = {
    "int": ("int", 4, 10, 0),
    "bigint": ("bigint", 8, 19, 0),
    "varchar": ("varchar", 20, 0, 0),
    "char": ("char", 20, 0, 0),
    "nvarchar": ("nvarchar", 40, 0, 0),
}
"""Type to name, length, precision and scale."""
_ALTERS = {"int": "bigint", "varchar": "char", "char": "nvarchar"}


def converted(value: int, type_: str) -> int:
    """What an ALTER makes of a value that a row has, without an event."""
    return value if type_ == "bigint" else value + 1000


@dataclass
class Altered:
    """A statement that has given a column another type.

    :param at: position and number in the transaction
    """

    at: tuple[int, int]
    then: str
    now: str


@dataclass
class SourceColumn:
    """A column of a table.

    :param added: position of the statement that added it; 0 where it was there from the beginning
    :param dropped: the same of the one that dropped it
    """

    id: int
    name: str
    first_type: str
    added: int = 0
    dropped: int | None = None
    altered: list[Altered] = field(default_factory=list)

    def type_at(self, position: int) -> str:
        """Its type behind a position."""
        found = self.first_type
        for each in self.altered:
            if each.at[0] <= position:
                found = each.now
        return found


@dataclass
class Statement:
    """A row of ``cdc.ddl_history``, but for its instance.

    :param altered: column_id of the column that got another type
    """

    position: int
    command: str
    altered: int | None


@dataclass
class EvolvingInstance(Instance):
    """A capture instance of some columns.

    :param ids: their column_ids, in mask order
    :param is_readable: whether those may read it who read the one beside it
    """

    ids: tuple[int, ...] = ()
    is_readable: bool = True


@dataclass
class EvolvingSource(Source):
    """The database.

    :param columns: of each table, also those that are dropped
    :param states: by position, the rows of each table behind it
    :param touched: by position, number in the transaction and table, the column_ids that an update names
    :param statements: by table
    """

    columns: dict[str, list[SourceColumn]] = field(default_factory=dict)
    states: dict[int, dict[str, dict[int, Image]]] = field(default_factory=dict)
    touched: dict[tuple[int, int, str], frozenset[int]] = field(default_factory=dict)
    statements: dict[str, list[Statement]] = field(default_factory=lambda: {table: [] for table in TABLES})

    def __post_init__(self) -> None:
        self.columns = {
            table: [SourceColumn(KEY, "id", "int"), SourceColumn(BASE, "value", "int"), SourceColumn(3, "note", "int")]
            for table in TABLES
        }
        super().__post_init__()

    def there(self, table: str) -> list[SourceColumn]:
        """The columns that a table has now, without the key."""
        return [column for column in self.columns[table] if column.dropped is None and column.id != KEY]

    def column(self, table: str, id_: int) -> SourceColumn:
        """The column of this column_id."""
        return next(column for column in self.columns[table] if column.id == id_)

    def commit(self, rng: random.Random) -> set[str]:
        self._begin(rng)
        events: dict[str, list[Event]] = {}
        for n in range(rng.randint(1, 4)):
            self._write(rng, rng.choice(TABLES) if rng.random() < 0.7 else TABLES[0], n, events)
        self._end(events)
        return set(events)

    def _begin(self, rng: random.Random) -> None:
        self.clock += rng.randint(1, 5)
        self.position += rng.randint(1, 3)

    def _end(self, events: dict[str, list[Event]]) -> None:
        self.commits[self.position] = (START + datetime.timedelta(seconds=self.clock), events)
        self.states[self.position] = {table: dict(rows) for table, rows in self.rows.items()}  # type: ignore[misc]

    def _write(self, rng: random.Random, table: str, n: int, events: dict[str, list[Event]]) -> None:
        rows: dict[int, Any] = self.rows[table]
        key, ids = rng.choice(KEYS), [column.id for column in self.there(table)]
        op = "I" if key not in rows else rng.choice("UUUD")
        if op == "D":
            image = rows.pop(key)
        else:
            some = ids if op == "I" else [id_ for id_ in ids if rng.random() < 0.4] or [rng.choice(ids)]
            # the column that all compare by is not NULL
            drawn = {id_: rng.randrange(1000) for id_ in some if id_ == BASE or rng.random() < 0.8}
            kept = {} if op == "I" else {id_: value for id_, value in rows[key] if id_ not in some}
            rows[key] = image = tuple(sorted((kept | drawn).items()))
            self.touched[self.position, n, table] = frozenset(some)
        events.setdefault(table, []).append((self.position, n, op, key, image))

    def alter(
        self,
        rng: random.Random,
        table: str,
        kind: str,
        of: str | None = None,
        *,
        to: str | None = None,
        alone: bool = False,
    ) -> str:
        """Add, drop or alter a column, alone or in a transaction with rows.

        :param kind: ``add``, ``again`` (a column with a dropped one's name), ``drop`` or ``alter``; ``add`` where there
            is nothing to drop or alter
        :param of: the column's name; any
        :param to: the type that it gets; the next one
        :param alone: in a transaction without rows
        :return: the statement
        """
        self._begin(rng)
        events: dict[str, list[Event]] = {}
        before, after = (0, 0) if alone else rng.choice(((0, 0), (0, 0), (1, 1), (0, 2), (2, 0)))
        for n in range(before):
            self._write(rng, table, n, events)
        said = self._alter(rng, table, kind, before, of, to)
        for n in range(before + 1, before + 1 + after):
            self._write(rng, table, n, events)
        self._end(events)
        return said

    def alter_and_back(self, rng: random.Random, table: str) -> list[str]:
        """Give a column another type and the one of before again, in two transactions: values are others then."""
        said = [self.alter(rng, table, "alter")]
        column = max(self.there(table), key=lambda column: [each.at for each in column.altered][-1:])
        if column.altered and column.altered[-1].at[0] == self.position:
            said.append(self.alter(rng, table, "alter", column.name, to=column.altered[-1].then))
        return said

    def _alter(self, rng: random.Random, table: str, kind: str, n: int, of: str | None, to: str | None) -> str:
        rows: dict[int, Any] = self.rows[table]
        others = [column for column in self.there(table) if column.id != BASE and of in (None, column.name)]
        alterable = [column for column in others if column.type_at(self.position) in _ALTERS]
        altered = None
        if kind == "drop" and others:
            column = rng.choice(others)
            column.dropped = self.position
            for key, image in rows.items():
                rows[key] = tuple((id_, value) for id_, value in image if id_ != column.id)
            said = f"DROP COLUMN {column.name}"
        elif kind == "alter" and alterable:
            column = rng.choice(alterable)
            then = column.type_at(self.position)
            now = to or _ALTERS[then]
            column.altered.append(Altered((self.position, n), then, now))
            altered = column.id
            for key, image in rows.items():
                rows[key] = tuple((i, converted(v, now) if i == altered else v) for i, v in image)
            said = f"ALTER COLUMN {column.name} {now}"
        else:
            known = self.columns[table]
            id_ = max(column.id for column in known) + 1
            names = {column.name for column in self.there(table)}
            gone = [column.name for column in known if column.name not in names and column.id != KEY]
            name = rng.choice(gone) if gone and (kind == "again" or rng.random() < 0.2) else f"c{id_}"
            column = SourceColumn(id_, name, rng.choice(("int", "varchar")), added=self.position)
            known.append(column)
            said = f"ADD {name} {column.first_type}"
            # NULL, a constant, or a value of each row
            if default := rng.choice((None, "5 WITH VALUES", "NEXT VALUE FOR dbo.numbers")):
                said = f"{said} DEFAULT {default}"
                numbers = itertools.count(100) if "NEXT" in default else itertools.repeat(5)
                for key, image in rows.items():
                    rows[key] = (*image, (id_, next(numbers)))
        said = f"ALTER TABLE dbo.{table} {said}"
        self.statements[table].append(Statement(self.position, said, altered))
        return said

    def enable(
        self, table: str, *, wide: bool = False, name: str | None = None, ids: Iterable[int] | None = None
    ) -> None:
        """Add a capture instance where there are less than two.

        :param ids: of its columns; all that the table has
        """
        taken = {instance.name for instance in self.alive(table)}
        if len(taken) < 2:
            there = [column.id for column in self.there(table)]
            chosen = (KEY, *(id_ for id_ in there if ids is None or id_ in ids))
            name = name or min({f"dbo_{table}", f"dbo_{table}_2", f"dbo_{table}_3"} - taken)
            self.clock += 1
            created = START + datetime.timedelta(seconds=self.clock)
            made = EvolvingInstance(name, table, next(self._ids), created, self.position + 1, wide, ids=chosen)
            self.instances[table].append(made)

    def restore(self, part: float) -> None:
        raise NotImplementedError("columns that a restore takes back are not modelled")

    def changes(self, object_id: int, after: int, upto: int) -> list[Event]:
        for instance in itertools.chain.from_iterable(self.instances.values()):
            if instance.object_id == object_id and instance.end is None:
                return self.captured_by(instance, max(after, self.low(instance) - 1), min(upto, self.captured))
        return []

    def captured_by(self, instance: Instance, after: int, upto: int) -> list[Event]:
        """What an instance has captured, whether it was purged or not: no update of columns that it lacks."""
        assert isinstance(instance, EvolvingInstance)
        ids, table, found = {*instance.ids}, instance.table, []
        for at, n, op, key, image in events_of(self.commits, table, max(after, instance.start - 1), upto):
            if op != "U" or self.touched[at, n, table] & ids:
                of_instance = tuple(
                    (id_, self._as_captured(instance, id_, value, (at, n)))
                    for id_, value in image  # type: ignore[attr-defined]
                    if id_ in ids
                )
                found.append((at, n, op, key, of_instance))
        return found  # type: ignore[return-value]

    def _as_captured(self, instance: Instance, id_: int, value: int, at: tuple[int, int]) -> int:
        """A captured value in the type that the change table has by now, in which the capture has put it."""
        for altered in self.column(instance.table, id_).altered:
            if altered.at > at and instance.start <= altered.at[0] <= self.captured:
                value = converted(value, altered.now)
        return value

    def catalogue(self, table: str) -> list[CaptureInstance]:
        found = []
        for each in self.alive(table):
            assert isinstance(each, EvolvingInstance)
            # the capture alters its change table where it meets the statement
            seen = max(self.captured, each.start - 1)
            columns = [self.column(table, id_) for id_ in each.ids]
            others = [column for column in self.there(table) if column.id not in each.ids]
            found.append(
                CaptureInstance(
                    each.name,
                    each.object_id,
                    name_of(table),
                    200 + TABLES.index(table),
                    each.created,
                    tuple(_column(n, column, column.type_at(seen)) for n, column in enumerate(columns, 1)),
                    ("id",),
                    ("id",),
                    tuple(column.name for column in others),
                    tuple(_column(0, column, column.type_at(self.position)) for column in others),
                    start_lsn=lsn(each.start),
                    min_lsn=lsn(self.low(each)),
                )
            )
        return found

    def ddl(self, feed: CaptureInstance) -> list[DdlChange]:
        """The rows of ``cdc.ddl_history`` of an instance."""
        (instance,) = (each for each in self.instances[feed.source.table] if each.object_id == feed.object_id)
        assert isinstance(instance, EvolvingInstance)
        return [
            DdlChange(
                instance.name,
                each.command,
                lsn(each.position),
                self.commits[each.position][0],
                each.altered in instance.ids,
            )
            for each in self.statements[instance.table]
            if instance.start <= each.position <= self.captured
        ]

    @property
    def has_lost(self) -> bool:
        """Whether something that was captured was purged, or dropped with its instance."""
        instances = itertools.chain.from_iterable(self.instances.values())
        return self.min_lsn > FIRST_MIN_LSN or any(instance.end is not None for instance in instances)

    def images(self, table: str, key: int, begun: int, end: int) -> Iterator[Image]:
        """What a row was at its beginning, and up to its end."""
        first = max((known for known in self.states if known <= begun), default=begun)
        for at, rows in self.states.items():
            if first <= at < end and key in rows[table]:
                yield rows[table][key]

    def state(self, table: str, position: int) -> dict[int, Image]:
        """The rows of a table behind a position."""
        at = max((known for known in self.states if known <= position), default=None)
        return {} if at is None else self.states[at][table]


def _column(ordinal: int, column: SourceColumn, type_: str) -> Column:
    name, length, precision, scale = _FACTS[type_]
    is_key = column.id == KEY
    return Column(
        ordinal,
        column.id,
        column.name,
        name,
        length,
        precision,
        scale,
        nullable=not is_key,
        dropped=column.dropped is not None,
    )


class EvolvingHook(Hook):
    """What the planner asks the source, and whom a load makes capture instances with."""

    def database_status(self) -> DatabaseStatus:
        now = START + datetime.timedelta(seconds=self._source.clock)
        return dataclasses.replace(super().database_status(), server_time=now)

    def ddl_history(self, feeds: Iterable[CaptureInstance]) -> list[Any]:
        source = self._source
        assert isinstance(source, EvolvingSource)
        found = [change for feed in feeds for change in source.ddl(feed)]
        return sorted(found, key=lambda change: change.lsn)

    def has_instance(self, instance: NewInstance) -> bool:
        self._world.at("look for the instance")
        alive = self._source.alive(instance.beside.source.table)
        return instance.name in [each.name for each in alive]

    def add_instance(self, instance: NewInstance, *, lock_timeout: float) -> None:
        self._world.at("make the instance")
        source, table = self._source, instance.beside.source.table
        assert isinstance(source, EvolvingSource)
        if not self._world.may_make:
            raise CdcPermissionError("the login is not in db_owner.", number=_NOT_OWNER)
        if self._world.locked:
            raise SqlServerError("Lock request time out period exceeded.", number=LOCK_TIMEOUT)
        if len(source.alive(table)) == 2:
            raise SqlServerError("another session has made one.", number=22926)
        ids = {column.name: column.id for column in source.there(table)}
        if gone := [name for name in instance.columns if name != "id" and name not in ids]:
            raise SqlServerError(f"column {gone[0]} is not there.", number=INVALID_OBJECT)
        source.enable(table, name=instance.name, ids=[ids[name] for name in instance.columns if name != "id"])
        self._alive(instance).is_readable = False
        self._world.at("made the instance")

    def copy_rights(self, instance: NewInstance, user: str) -> CopiedRights:
        self._world.at("before the rights")
        made = self._alive(instance)
        new = [] if made.is_readable else ["reader"]
        made.is_readable = True
        self._world.at("after the rights")
        return CopiedRights(new, [], [], [])

    def query(self, statement: str, given: tuple[Any, ...] = (), **_: Any) -> list[Any]:
        """Who is in the way while an instance cannot be made."""
        if statement == statements.LOCKED_BY:
            assert given[0] in [200 + number for number in range(len(TABLES))]
            return [(57, "billing", "app01", "invoices", 75)] if self._world.locked else []
        assert (statement, given) == (statements.LAST_SENT, (57,))
        return [("Language Event", "BEGIN TRAN UPDATE dbo.a SET value = 3")]

    def _alive(self, instance: NewInstance) -> EvolvingInstance:
        alive = self._source.alive(instance.beside.source.table)
        (found,) = (each for each in alive if each.name == instance.name)
        assert isinstance(found, EvolvingInstance)
        return found
