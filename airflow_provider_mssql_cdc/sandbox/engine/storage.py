"""Databases and their tables: an immutable catalogue per database over one DuckDB instance in memory."""

from __future__ import annotations

import datetime
import itertools
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import duckdb

from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.collations.macros import create_collations
from airflow_provider_mssql_cdc.sandbox.collations.names import COLLATIONS, DEFAULT
from airflow_provider_mssql_cdc.sandbox.engine.cdc.database import CdcDatabase
from airflow_provider_mssql_cdc.sandbox.engine.cdc.switches import Switches
from airflow_provider_mssql_cdc.sandbox.engine.harshness import Harshness, Point
from airflow_provider_mssql_cdc.sandbox.engine.locks import Locks
from airflow_provider_mssql_cdc.sandbox.engine.macros import create_macros
from airflow_provider_mssql_cdc.sandbox.engine.rights import Right
from airflow_provider_mssql_cdc.sandbox.engine.row_security import PredicateFunction, SecurityPolicy
from airflow_provider_mssql_cdc.sandbox.engine.schema import TableDef
from airflow_provider_mssql_cdc.sandbox.engine.tracking.rows import CREATE_COMMITS
from airflow_provider_mssql_cdc.sandbox.engine.tracking.state import ChangeTracking, TrackedTable
from airflow_provider_mssql_cdc.sandbox.engine.visibility import Visibility
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError

ROW_ID = "_rid"
# READ_COMMITTED_SNAPSHOT and ALLOW_SNAPSHOT_ISOLATION
_ISOLATIONS = ((False, False), (True, False), (False, True))
SYSTEM_DATABASES = ("master", "tempdb", "model", "msdb")


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A user table with what ``TableDef`` does not say.

    :param identity: seed and increment of the identity column
    :param default_names: constraint name of the default of each column
    :param unique_constraints: names of the indexes that are UNIQUE constraints
    :param made_names: of the constraints that were given none
    """

    table: TableDef
    created: datetime.datetime
    modified: datetime.datetime
    next_column_id: int
    identity: tuple[int, int] = (1, 1)
    default_names: Mapping[str, str] = field(default_factory=dict)
    unique_constraints: frozenset[str] = frozenset()
    made_names: frozenset[str] = frozenset()

    @property
    def storage(self) -> str:
        """The table's name in DuckDB."""
        return f"t_{self.table.object_id}"


@dataclass(frozen=True, slots=True)
class Catalog:
    """What a database holds; replaced as a whole when a transaction that changed it commits.

    :param encrypted: (object id, column id) of columns of Always Encrypted; a fact, which changes no read
    :param functions: by object id
    :param tracked: by object id the tables with Change Tracking
    """

    schemas: Mapping[str, int] = field(
        default_factory=lambda: {"dbo": 1, "guest": 2, "INFORMATION_SCHEMA": 3, "sys": 4}
    )
    tables: Mapping[int, TableEntry] = field(default_factory=dict)
    users: Mapping[str, str] = field(default_factory=dict)
    roles: Mapping[str, frozenset[str]] = field(default_factory=dict)
    rights: frozenset[Right] = frozenset()
    encrypted: frozenset[tuple[int, int]] = frozenset()
    functions: Mapping[int, PredicateFunction] = field(default_factory=dict)
    policies: tuple[SecurityPolicy, ...] = ()
    tracked: Mapping[int, TrackedTable] = field(default_factory=dict)

    def find(self, schema: str, name: str) -> TableEntry | None:
        """A user table by name; names compare as the current database does it."""
        wanted = (fold(schema), fold(name))
        return next((e for e in self.tables.values() if (fold(e.table.schema), fold(e.table.name)) == wanted), None)

    def schema_name(self, name: str) -> str | None:
        """A schema's name as it was created."""
        return next((known for known in self.schemas if fold(known) == fold(name)), None)


@dataclass(frozen=True, slots=True)
class Counters:
    """The last rowversion and row identifier, and the last identity value of each table."""

    rowversion: int
    row_id: int
    identities: Mapping[int, int | None]


class Database:
    """One SQL Server database.

    :ivar committing: held while a transaction writes its commit to the log, and while its rows become visible
    :ivar version: how many transactions have written to it
    """

    def __init__(self, name: str, database_id: int, storage: Storage, collation: str = DEFAULT) -> None:
        self.name, self.database_id, self.collation = name, database_id, collation
        self.duck = f"db{database_id}"
        self.created = storage.clock()
        self.catalog = Catalog()
        self.locks = Locks()
        self.committing = threading.Lock()
        self.version = 0
        self.recovery_fork_guid = str(uuid.uuid4()).upper()
        self.single_user = False
        drawn = None if name in SYSTEM_DATABASES else storage.harshness.drawn(Point.ISOLATION)
        by_versions, by_snapshots = (True, False) if drawn is None else drawn.choice(_ISOLATIONS)
        self.snapshot_isolation = by_snapshots
        self.read_committed_snapshot = by_versions and name not in SYSTEM_DATABASES
        self.delayed_durability = "DISABLED"
        self.recovery_model = "SIMPLE" if name in ("master", "tempdb", "msdb") else "FULL"
        self.cdc = CdcDatabase(
            name,
            database_id,
            clock=storage.clock,
            new_object_id=storage.new_object_id,
            switches=storage.switches,
            harshness=storage.harshness,
            case_sensitive=COLLATIONS[collation].case_sensitive,
        )
        self.tracking = ChangeTracking(storage.harshness)
        self._last_rowversion = 2000
        self._row_id = 0
        self._identities: dict[int, int | None] = {}
        self._counters = threading.Lock()

    def note_write(self) -> None:
        """Something of the database is another in DuckDB from now on."""
        with self._counters:
            self.version += 1

    @property
    def counters(self) -> Counters:
        """What the database counts; set when it is restored."""
        with self._counters:
            return Counters(self._last_rowversion, self._row_id, dict(self._identities))

    @counters.setter
    def counters(self, counters: Counters) -> None:
        with self._counters:
            self._last_rowversion, self._row_id = counters.rowversion, counters.row_id
            self._identities = dict(counters.identities)

    def new_row_ids(self, count: int) -> range:
        """Row identifiers for new rows, ascending."""
        with self._counters:
            start = self._row_id
            self._row_id += count
        return range(start, start + count)

    def new_rowversions(self, count: int) -> list[bytes]:
        """The next values of the database's rowversion counter."""
        with self._counters:
            first = self._last_rowversion + 1
            self._last_rowversion += count
        return [number.to_bytes(8) for number in range(first, first + count)]

    @property
    def last_rowversion(self) -> bytes:
        """The last value of the rowversion counter (@@DBTS)."""
        return self._last_rowversion.to_bytes(8)

    def identities(self, entry: TableEntry, count: int) -> list[int]:
        """The next identity values of a table; a rollback does not give them back."""
        seed, increment = entry.identity
        with self._counters:
            last = self._identities.get(entry.table.object_id)
            first = seed if last is None else last + increment
            if count:
                self._identities[entry.table.object_id] = first + increment * (count - 1)
        return [first + increment * i for i in range(count)]

    def note_identity(self, entry: TableEntry, value: int) -> None:
        """An identity value was given explicitly: the counter goes on from it if it lies ahead."""
        increment = entry.identity[1]
        with self._counters:
            last = self._identities.get(entry.table.object_id)
            if last is None or (value > last if increment > 0 else value < last):
                self._identities[entry.table.object_id] = value

    def last_identity(self, object_id: int) -> int | None:
        """The last identity value a table gave out."""
        with self._counters:
            return self._identities.get(object_id)

    def reset_identity(self, object_id: int, last: int | None = None) -> None:
        """Let a table go on after an identity value; without one, from the seed, as TRUNCATE TABLE does."""
        with self._counters:
            self._identities[object_id] = last


class Storage:
    """The DuckDB instance and the databases in it.

    :param clock: the server's local time, naive
    :param switches: how CDC behaves in new databases
    :param harshness: what is drawn for them
    :param rate: seconds of the server's clock in one second
    """

    def __init__(
        self, clock: Callable[[], datetime.datetime], switches: Switches, harshness: Harshness, rate: float
    ) -> None:
        self.clock, self.switches, self.harshness = clock, switches, harshness
        self.visibility = Visibility(harshness, rate)
        # each session has a thread of its own; for small statements, waiting for workers costs more than the work
        self._connection = duckdb.connect(config={"threads": 1})
        create_macros(self._connection)
        create_collations(self._connection)
        self._object_ids = itertools.count(901578250, 16)
        self._lock = threading.Lock()
        self._transactions = itertools.count(1000)
        self.databases: dict[str, Database] = {}
        for name in SYSTEM_DATABASES:
            self.create_database(name)

    def new_object_id(self) -> int:
        """An object id that nothing else has."""
        return next(self._object_ids)

    def new_transaction_id(self) -> int:
        """A transaction id."""
        return next(self._transactions)

    def connect(self) -> duckdb.DuckDBPyConnection:
        """A connection of its own to the DuckDB instance."""
        return self._connection.cursor()

    def create_database(self, name: str, collation: str = DEFAULT) -> Database:
        """Create a database.

        :param collation: of its texts, where they have none of their own
        :raises SqlError: 1801 if there is one of that name
        """
        with self._lock:
            if name.casefold() in self.databases:
                raise SqlError.of(1801, name)
            used = {database.database_id for database in self.databases.values()}
            database = Database(name, next(i for i in itertools.count(1) if i not in used), self, collation)
            self._connection.cursor().execute(f"ATTACH ':memory:' AS {database.duck}")
            self._connection.cursor().execute(CREATE_COMMITS.format(database.duck))
            self.databases = {**self.databases, name.casefold(): database}
            return database

    def drop_database(self, name: str) -> None:
        """Drop a database and all it holds.

        :raises SqlError: 3701 unknown database, 3708 system database
        """
        with self._lock:
            database = self.databases.get(name.casefold())
            if database is None:
                raise SqlError.of(3701, "database", name, state=1)
            if name.casefold() in SYSTEM_DATABASES:
                raise SqlError.of(3708, name)
            if database.cdc.enabled:
                database.cdc.disable()
            self.databases = {key: value for key, value in self.databases.items() if key != name.casefold()}
            self._connection.cursor().execute(f"DETACH {database.duck}")

    def database(self, name: str) -> Database:
        """A database by name.

        :raises SqlError: 911
        """
        found = self.databases.get(name.casefold())
        if found is None:
            raise SqlError.of(911, name)
        return found

    def close(self) -> None:
        """Let go of DuckDB."""
        self._connection.close()
