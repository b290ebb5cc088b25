"""A session's side of compiling and running statements: names, variables, tables and DuckDB."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.catalog import changes, functions, views
from airflow_provider_mssql_cdc.sandbox.engine.cdc.reading import ChangeReader
from airflow_provider_mssql_cdc.sandbox.engine.harshness import Point
from airflow_provider_mssql_cdc.sandbox.engine.instance import Instance, Principal, SessionInfo
from airflow_provider_mssql_cdc.sandbox.engine.local_tables import LocalTable, LocalWriter
from airflow_provider_mssql_cdc.sandbox.engine.rights import permitted, roles_of
from airflow_provider_mssql_cdc.sandbox.engine.rows import RowWriter, stored_name
from airflow_provider_mssql_cdc.sandbox.engine.storage import ROW_ID, SYSTEM_DATABASES, Catalog, Database, TableEntry
from airflow_provider_mssql_cdc.sandbox.engine.transactions import TransactionManager
from airflow_provider_mssql_cdc.sandbox.protocol import Column, IsolationLevel, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.locked_reads import (
    PieceReader,
    Reads,
    Wanted,
    beside_a_writer,
    how,
    lock_table,
)
from airflow_provider_mssql_cdc.sandbox.tsql.results import table
from airflow_provider_mssql_cdc.sandbox.tsql.scope import EVERYTHING, Expr, Range, Relation, Rows
from airflow_provider_mssql_cdc.sandbox.tsql.typing import TABLE
from airflow_provider_mssql_cdc.sandbox.types import SqlType

_MOST_EMPTY = 256
_FEW_ROWS = 16
_NAMES = re.compile(r"\br\d+\b")


class Environment:
    """What one session knows; implements what expressions, queries and DML ask for."""

    def __init__(self, instance: Instance, principal: Principal, info: SessionInfo) -> None:
        self.instance, self.principal, self.info = instance, principal, info
        self.manager = TransactionManager(instance.storage)
        self.variables: dict[str, tuple[SqlType, Any]] = {}
        self.isolation = IsolationLevel.READ_COMMITTED
        self.trancount = 0
        self.rowcount = 0
        self.last_error = 0
        self.scope_identity: int | None = None
        self.last_insert_identity: int | None = None
        self.identity_insert_table: int | None = None
        self.procedure_depth = 0
        self.doomed = False  # the transaction can only be rolled back
        self.tries: list[int] = []  # the depth of each TRY block that runs
        self.caught: list[SqlError] = []  # the error of each CATCH block that runs
        self.cancelled = threading.Event()
        self.manager.session_id = info.session_id
        self.manager.cancelled = self.cancelled.is_set
        self._reverted: list[tuple[int, Principal]] = []
        self._names = itertools.count(1)
        self._sizes: dict[str, int] = {}  # rows of what is registered for the statement
        self._later: dict[str, Callable[[], pa.Table]] = {}
        self._views: dict[tuple[str, str, str], Relation] = {}
        self._changes: dict[Database, ChangeReader] = {}
        self._empty: dict[pa.Schema, str] = {}
        self._batches: list[pa.RecordBatchReader] = []
        self._mixing: int | None = None

    # Names

    @property
    def current(self) -> Database:
        """The database whose name may be left out; USE sets it."""
        return self.info.database

    @current.setter
    def current(self, database: Database) -> None:
        self.info.database = database

    def database_named(self, name: str) -> Database:
        """A database by name, '' for the current one."""
        if not name or name.casefold() == self.current.name.casefold():
            return self.current
        database = self.instance.storage.database(name)
        if not self.instance.may_use(self.principal, database):
            raise SqlError.of(916, self.principal.name, name)
        if self.instance.is_taken(database):
            raise SqlError.of(924, database.name)
        return database

    def catalog(self, database: Database) -> Catalog:
        """The catalogue as this session's transaction sees it."""
        return self.manager.catalog(database)

    def enter(self, database: Database) -> Catalog:
        """Be ready to change a database; its catalogue as this session's transaction sees it."""
        self.manager.enter(database)
        return self.manager.catalog(database)

    def table(self, parts: tuple[str, str, str]) -> tuple[Database, TableEntry] | None:
        """A user table by name."""
        database = self.database_named(parts[0])
        entry = self.catalog(database).find(parts[1] or "dbo", parts[2])
        return None if entry is None else (database, entry)

    def local(self, name: str) -> LocalTable | None:
        """A temporary table (#) or table variable (@); None where the name is of neither kind.

        :raises SqlError: 208, 1087
        """
        if name.startswith("##"):
            raise unsupported("global temporary tables")
        if name.startswith("#"):
            found = self.manager.temporary.get(name.casefold())
            if found is None:
                raise SqlError.of(208, name)
            return found
        if not name.startswith("@"):
            return None
        type_, value = self.variables.get(name[1:].casefold(), (None, None))
        if type_ != TABLE:
            raise SqlError.of(1087, name)
        return value

    def keep(self, name: str, local: LocalTable | None) -> None:
        """Take a temporary table or table variable with its new rows; None drops a temporary table."""
        if name.startswith("@"):
            self.variables[name[1:].casefold()] = (TABLE, local)
            return
        others = {key: value for key, value in self.manager.temporary.items() if key != name.casefold()}
        self.manager.temporary = others if local is None else {**others, name.casefold(): local}

    def leave(self) -> None:
        """A called batch is over: what it created is dropped."""
        self.revert(self.procedure_depth)
        self.procedure_depth -= 1
        kept = {key: each for key, each in self.manager.temporary.items() if each.depth <= self.procedure_depth}
        self.manager.temporary = kept

    def target(self, parts: tuple[str, str, str], permission: str = "INSERT") -> tuple[Database, TableEntry]:
        """The table to write to; the database of a user table locked for writing.

        :raises SqlError: 208, 1087, 259 for catalogue objects, 229 without the right
        """
        local = self.local(parts[2])
        if local is not None:
            return self.instance.storage.database("tempdb"), local.entry
        if parts[1].casefold() in ("sys", "information_schema", "cdc"):
            raise SqlError.of(259)
        found, alone = self.table(parts), bool(self.trancount) and self.isolation is IsolationLevel.SNAPSHOT
        while found is not None:
            self.manager.enter(found[0], None if alone else found[1].table.object_id)
            known, found = found[1].table.object_id, self.table(parts)
            if found is not None and found[1].table.object_id == known:
                break
        else:
            raise SqlError.of(208, ".".join(filter(None, parts)))
        if not self.permitted(found[0], permission, found[1].table.schema, found[1].table.name):
            raise self._denied(permission, found[1].table.name, found[0], found[1].table.schema)
        if found[1].table.has_column_set:
            raise unsupported("rows of a table with a column set")
        return found

    def is_owner(self, database: Database) -> bool:
        """Whether the session may do everything in a database: sysadmin or db_owner."""
        return self.principal.sysadmin or self.user_in_role(database, "db_owner")

    def user_name(self, database: Database) -> str:
        """The session's user in a database."""
        if self.principal.user:
            return self.principal.user
        if self.principal.sysadmin:
            return "dbo"
        users = self.catalog(database).users
        return next((u for u, login in users.items() if login.casefold() == self.principal.name.casefold()), "guest")

    def user_in_role(self, database: Database, role: str) -> bool:
        """Whether the session's user is a member of a role."""
        return role.casefold() in roles_of(self.catalog(database).roles, self.user_name(database))

    def permitted(
        self, database: Database, permission: str, schema: str = "", name: str = "", columns: Iterable[str] = ("",)
    ) -> bool:
        """Whether the session has a right in a database, on all of the columns."""
        if self.is_owner(database):
            return True
        catalog, user = self.catalog(database), self.user_name(database)
        return all(permitted(catalog.roles, catalog.rights, user, permission, schema, name, each) for each in columns)

    def has_server_right(self, permission: str) -> bool:
        """Whether the session's login has a right on the server."""
        return self.principal.sysadmin or bool({permission, "VIEW SERVER STATE"} & self.principal.rights)

    def may_select(self, database: Database, schema: str, name: str) -> bool:
        """Whether the session may read an object."""
        return self.permitted(database, "SELECT", schema, name)

    def execute_as(self, principal: Principal) -> None:
        """EXECUTE AS: the session acts as somebody else until REVERT or the end of the called batch."""
        self._reverted.append((self.procedure_depth, self.principal))
        self.principal = principal

    def revert(self, depth: int = 0) -> None:
        """REVERT once; with a depth, whatever was begun below it."""
        while self._reverted and self._reverted[-1][0] >= depth:
            self.principal = self._reverted.pop()[1]
            if not depth:
                return

    def _denied(self, right: str, name: str, database: Database, schema: str) -> SqlError:
        return SqlError.of(229, right, name, database.name, schema)

    # Reading

    def relation(
        self, parts: tuple[str, str, str], bounds: Range, right: str = "SELECT", wanted: Wanted | None = None
    ) -> Relation:
        """A table, view or change table to read from.

        :param right: what the session needs on a user table
        :param wanted: what the statement says of it; None where it reads by row versions
        """
        database, schema = self.database_named(parts[0]), parts[1] or "dbo"
        full = ".".join(filter(None, parts))
        local = self.local(parts[2])
        if local is not None:
            return self._stored(self.register(local.rows), local.entry, "tempdb")
        if schema.casefold() not in ("sys", "information_schema"):
            self._see_snapshot(database)
        if schema.casefold() == "cdc":
            by_versions = how(self, database, frozenset() if wanted is None else wanted.hints) is Reads.VERSIONS
            if not by_versions and self.instance.harshness.strikes(Point.SCAN):
                self.instance.agent.interject(database.cdc)
            found = changes.change_relation(self, database, parts[2], bounds, full)
            if self.trancount and self.isolation in (IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE):
                self.manager.keep_locked(database)
            if not self.may_select(database, "cdc", parts[2]):
                raise self._denied("SELECT", parts[2], database, "cdc")
            return found
        self.manager.wait_for_ddl(
            database, lambda catalog: catalog.find(schema, parts[2]) is not database.catalog.find(schema, parts[2])
        )
        self.manager.check_metadata(database, schema, parts[2])
        entry = self.catalog(database).find(schema, parts[2])
        if entry is not None:
            if not self.permitted(database, right, entry.table.schema, entry.table.name):
                raise self._denied(right, entry.table.name, database, entry.table.schema)
            if entry.table.has_column_set:
                raise unsupported("rows of a table with a column set")
            self.manager.see(database, entry.table.object_id)
            stored = self._stored(stored_name(database, entry), entry, database.name)
            return stored if wanted is None else self._read_as(wanted, database, entry, stored)
        key = (database.name, schema.casefold(), parts[2].casefold())
        if key not in self._views:
            self.manager.wait_for_ddl(database, lambda catalog: True)
            view = views.find(self, database, schema, parts[2])
            if view is None:
                raise self._unknown(database, parts, schema)
            if database.name == "msdb" and schema.casefold() == "dbo" and not self.may_select(database, *key[1:]):
                raise self._denied("SELECT", parts[2], database, schema)
            self._views[key] = self.arrow_relation(*view)
        return self._views[key]

    def _read_as(self, wanted: Wanted, database: Database, entry: TableEntry, stored: Relation) -> Relation:
        """A user table by the session's isolation level, the database's options and the hints."""
        number = entry.table.object_id
        reads = how(self, database, wanted.hints)
        if reads is Reads.LOCKS or wanted.hints:
            lock_table(self, database, number, wanted.hints)
        if reads is Reads.VERSIONS or database.locks.writer(number) is self.manager:
            return stored
        if reads in (Reads.NOT_COMMITTED, Reads.PAST_LOCKS):
            rows = beside_a_writer(self, database, entry, reads)
            return stored if rows is None else dataclasses.replace(stored, source=self.register(rows))
        keeps = bool(self.trancount) and (
            self.isolation is IsolationLevel.REPEATABLE_READ or "repeatableread" in wanted.hints
        )
        pieces = PieceReader(self, database, entry, wanted.columns(), keeps)
        name = self.new_name()
        self._later[name] = pieces.read
        return dataclasses.replace(stored, source=name, pieces=pieces)

    def _stored(self, source: str, entry: TableEntry, database: str) -> Relation:
        columns = [(Column(c.name, c.type, c.nullable, c.identity), f"c{c.column_id}") for c in entry.table.columns]
        return Relation(source, columns, hidden=ROW_ID, parts=(database, entry.table.schema, entry.table.name))

    def arrow_relation(self, columns: list[Column], rows: pa.Table, found: Rows | None = None) -> Relation:
        """Arrow rows as something to read from in this statement.

        :param found: the rows with what is known of their order
        """
        named = [(column, f"x{i}") for i, column in enumerate(columns, 1)]
        batches = rows.to_batches()
        return Relation(self.register(table(named, batches)), named, found or Rows(lambda within: batches))

    def later(self, columns: list[tuple[Column, str]], rows: Rows) -> str:
        """Rows that are read once a query of this statement names them; their name."""
        name = self.new_name()
        self._later[name] = lambda: table(columns, rows.read(EVERYTHING))
        return name

    @property
    def mixing(self) -> int:
        """A number of this statement's that mixes rows which no ORDER BY puts in order; 0 leaves them as they lie."""
        if self._mixing is None:
            source = self.instance.harshness.drawn(Point.ORDER)
            self._mixing = 0 if source is None else source.choice((0, source.randrange(1, 1 << 30)))
        return self._mixing

    def new_name(self) -> str:
        """A name for rows of this statement."""
        return f"r{next(self._names)}"

    def supply(self, sql: str) -> int:
        """Read what the query names and is not read yet; the number of rows of all that it names."""
        names = set(_NAMES.findall(sql))
        for name in names & self._later.keys():
            self._register(name, self._later.pop(name)())
        return sum(self._sizes.get(name, 0) for name in names)

    def table_function(
        self, parts: tuple[str, str, str], arguments: list[Any], late: list[SqlError] | None
    ) -> Relation:
        """A table-valued function of the catalogue or of CDC.

        :param late: see ``Context.late``
        """
        database = self.database_named(parts[0])
        found = changes.change_function(self, database, parts[1] or "sys", parts[2], arguments, late)
        if found is None:
            raise self._unknown(database, parts, parts[1] or "sys")
        return self.arrow_relation(*found, changes.rows_of_function(*found))

    def _unknown(self, database: Database, parts: tuple[str, str, str], schema: str) -> SqlError:
        """What is raised for an object that is not there: whether a server has one of the system's is not known."""
        full = ".".join(filter(None, parts))
        of_msdb = database.name == "msdb" and parts[2].casefold().startswith("sys")
        of_system = of_msdb or schema.casefold() in ("sys", "information_schema")
        return unsupported(full) if of_system else SqlError.of(208, full)

    def register(self, rows: pa.Table) -> str:
        """Make Arrow rows readable in this statement's queries; their name."""
        # what polls ask of quiet tables has no rows: those stay registered, one for each list of types
        known = self._empty.get(rows.schema) if not rows.num_rows else None
        if known is not None:
            return known
        name = self.new_name()
        if not rows.num_rows and len(self._empty) < _MOST_EMPTY:
            self.manager.register(name, rows)
            self._empty[rows.schema] = name
        else:
            self._register(name, rows)
        return name

    def _register(self, name: str, rows: pa.Table) -> None:
        self.manager.register(name, rows)
        self._sizes[name] = rows.num_rows

    @contextlib.contextmanager
    def staged(self, name: str, rows: pa.Table) -> Iterator[None]:
        """Make rows readable under a name meanwhile."""
        self.manager.register(name, rows)
        try:
            yield
        finally:
            self.manager.unregister(name)

    def changes(self, database: Database) -> ChangeReader:
        """What this statement reads of a database's CDC: all of one moment where it reads by row versions.

        :raises SqlError: 3952; 3961 where a snapshot is older than CDC's own tables
        """
        self._see_snapshot(database)
        found = self.manager.changes(database)
        if found is not None:
            return found
        if how(self, database, frozenset()) is not Reads.VERSIONS:
            return database.cdc
        if database not in self._changes:
            self._changes[database] = database.cdc.frozen()
        return self._changes[database]

    def _see_snapshot(self, database: Database) -> None:
        allowed = database.snapshot_isolation or database.name in SYSTEM_DATABASES
        if self.isolation is IsolationLevel.SNAPSHOT and not allowed:
            raise SqlError.of(3952, database.name)
        if self.trancount and self.isolation is IsolationLevel.SNAPSHOT:
            self.manager.snapshot()

    def fetch(self, sql: str, schema: pa.Schema | None = None) -> pa.Table:
        """Run a query and take all its rows.

        :param schema: of the rows, where it is known
        """
        if schema is not None:
            few = self.fetchall(f"{sql} LIMIT {_FEW_ROWS + 1}")
            if len(few) <= _FEW_ROWS:
                columns = zip(*few, strict=True) if few else ([] for _ in schema)
                arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
                return pa.Table.from_arrays(arrays, schema=schema)
        self.finish_reading()
        self.supply(sql)
        return self.manager.connection.sql(sql).to_arrow_table()

    def fetchall(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query with few rows and take them as Python values, which costs half of what Arrow does."""
        self.finish_reading()
        self.supply(sql)
        rows: list[tuple[Any, ...]] = self.manager.connection.execute(sql).fetchall()
        return rows

    def read(self, sql: str) -> pa.RecordBatchReader:
        """Run a query whose rows are taken as they come."""
        self.finish_reading()
        self.supply(sql)
        reader = self.manager.connection.sql(sql).to_arrow_reader(65536)
        self._batches.append(reader)
        return reader

    def finish_reading(self) -> None:
        """Close what is still being read: DuckDB runs one query per connection."""
        for reader in self._batches:
            reader.close()
        self._batches.clear()

    def forget(self) -> None:
        """The statement is over: close its results, and drop what was registered for it."""
        self.finish_reading()
        for name in self._sizes:
            self.manager.unregister(name)
        self._sizes.clear()
        self._later.clear()
        self._views.clear()
        self._changes.clear()
        self._mixing = None

    # Writing

    def writer(self, database: Database, entry: TableEntry) -> RowWriter:
        """What applies rows to a table."""
        local = self.local(entry.table.name)
        if local is not None:
            name = self.register(local.rows)
            return LocalWriter(self.manager, database, local, name, lambda after: self.keep(entry.table.name, after))
        return RowWriter(self.manager, database, entry, self.instance.configuration["max text repl size (B)"])

    def identity_insert(self, entry: TableEntry) -> bool:
        """SET IDENTITY_INSERT"""
        return self.identity_insert_table == entry.table.object_id

    def inserted_identity(self, value: int) -> None:
        """Note the last identity value."""
        self.scope_identity = self.last_insert_identity = value

    # Values

    def variable(self, name: str) -> tuple[SqlType, Any]:
        """A variable.

        :raises SqlError: 137
        """
        found = self.variables.get(name.casefold())
        if found is None or found[0] == TABLE:
            raise SqlError.of(137, f"@{name}")
        return found

    def global_variable(self, name: str) -> Expr:
        """@@name"""
        return functions.global_variable(self, name)

    def function(self, parts: tuple[str, ...], arguments: list[Expr]) -> Expr | None:
        """A metadata or system function."""
        return functions.system_function(self, parts, arguments)

    def evaluate(self, expr: Expr) -> Any:
        """The value of a constant expression in Arrow form."""
        if expr.untyped:
            return None
        ((value,),) = self.fetchall(f"SELECT {expr.sql}")
        if isinstance(value, dict):
            return value["utc_ticks"], value["offset_minutes"]
        return value
