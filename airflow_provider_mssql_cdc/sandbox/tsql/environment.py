"""What a session knows while its statements run: names, rights, variables, and as of when it reads."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.collations.identifiers import system
from airflow_provider_mssql_cdc.sandbox.engine.cdc.reading import ChangeReader
from airflow_provider_mssql_cdc.sandbox.engine.harshness import Point
from airflow_provider_mssql_cdc.sandbox.engine.instance import Instance, Principal, SessionInfo
from airflow_provider_mssql_cdc.sandbox.engine.local_tables import LocalTable
from airflow_provider_mssql_cdc.sandbox.engine.local_writer import LocalWriter
from airflow_provider_mssql_cdc.sandbox.engine.rights import permitted, roles_of, sees
from airflow_provider_mssql_cdc.sandbox.engine.rows import RowWriter
from airflow_provider_mssql_cdc.sandbox.engine.storage import SYSTEM_DATABASES, Catalog, Database, TableEntry
from airflow_provider_mssql_cdc.sandbox.engine.transactions import TransactionManager
from airflow_provider_mssql_cdc.sandbox.protocol import Column, IsolationLevel, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import row_security
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr
from airflow_provider_mssql_cdc.sandbox.tsql.languages import US_ENGLISH, Dates, apply
from airflow_provider_mssql_cdc.sandbox.tsql.relation import Relation, Rows
from airflow_provider_mssql_cdc.sandbox.tsql.results import table
from airflow_provider_mssql_cdc.sandbox.tsql.statement_rows import StatementRows
from airflow_provider_mssql_cdc.sandbox.tsql.typing import TABLE
from airflow_provider_mssql_cdc.sandbox.types import SqlType


def denied(right: str, name: str, database: Database, schema: str) -> SqlError:
    """What is raised where a right on an object is missing."""
    return SqlError.of(229, right, name, database.name, schema)


class Environment(StatementRows):
    """What one session knows.

    :ivar views: what the statement has read of the catalogue, by database, schema and view
    """

    def __init__(self, instance: Instance, principal: Principal, info: SessionInfo) -> None:
        super().__init__(TransactionManager(instance.storage))
        self.instance, self.principal, self.info = instance, principal, info
        self.variables: dict[str, tuple[SqlType, Any]] = {}
        self.isolation = IsolationLevel.READ_COMMITTED
        self.trancount = 0
        self.dates = Dates.of(US_ENGLISH)
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
        info.holder = self.manager
        self.manager.cancelled = self.cancelled.is_set
        self._reverted: list[tuple[int, Principal]] = []
        self.frozen_changes: dict[Database, ChangeReader] = {}  # of the moment that the statement reads
        self.met: set[tuple[Database, str]] = set()  # tables of schema cdc that the statement has read by locks
        # of what the statement has met, the tables of each database; None among them stands for schema cdc
        self.standing: dict[Database, set[int | None]] = {}
        self.undisturbed = False  # the statement has a lock that ends with it
        self.newest_version: int | None = None  # what the version function answers beside older rows
        self.views: dict[tuple[str, str, str], Relation] = {}
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

    def enter(self, database: Database, changes: int | None = None) -> Catalog:
        """Be ready to change a database; its catalogue as this session's transaction sees it.

        :param changes: see ``TransactionManager.enter``
        """
        self.manager.enter(database, changes=changes)
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
        if system(*parts[1:])[0] in ("sys", "information_schema", "cdc"):
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
            raise denied(permission, found[1].table.name, found[0], found[1].table.schema)
        if found[1].table.has_column_set:
            raise unsupported("rows of a table with a column set")
        row_security.check_block(self.catalog(found[0]), found[1])
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

    def may_see(self, database: Database, schema: str, name: str) -> bool:
        """Whether the catalogue shows an object to the session: to who has any right on it, or on a column of it
        (docs: metadata visibility configuration)."""
        if self.is_owner(database):
            return True
        catalog, user = self.catalog(database), self.user_name(database)
        return sees(catalog.roles, catalog.rights, user, schema, name)

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

    # Reading

    def read_dates(self, dates: Dates) -> None:
        """Read dates so from now on."""
        if dates != self.dates:
            self.dates = dates
            apply(dates, self.manager.connection)

    def arrow_relation(self, columns: list[Column], rows: pa.Table, found: Rows | None = None) -> Relation:
        """Arrow rows as something to read from in this statement.

        :param found: the rows with what is known of their order
        """
        named = [(column, f"x{i}") for i, column in enumerate(columns, 1)]
        batches = rows.to_batches()
        return Relation(self.register(table(named, batches)), named, found or Rows(lambda within: batches))

    @property
    def mixing(self) -> int:
        """A number of this statement's that mixes rows which no ORDER BY puts in order; 0 leaves them as they lie."""
        if self._mixing is None:
            source = self.instance.harshness.drawn(Point.ORDER)
            self._mixing = 0 if source is None else source.choice((0, source.randrange(1, 1 << 30)))
        return self._mixing

    def see_snapshot(self, database: Database) -> None:
        """Read in a SNAPSHOT transaction as of its first read, which this may be.

        :raises SqlError: 3952
        """
        allowed = database.snapshot_isolation or database.name in SYSTEM_DATABASES
        if self.isolation is IsolationLevel.SNAPSHOT and not allowed:
            raise SqlError.of(3952, database.name)
        if self.trancount and self.isolation is IsolationLevel.SNAPSHOT:
            self.manager.snapshot()

    def forget(self) -> None:
        """The statement is over: close its results, and drop what was read for it."""
        super().forget()
        self.views.clear()
        self.frozen_changes.clear()
        self.met.clear()
        self.standing.clear()
        self.undisturbed = False
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

    def evaluate(self, expr: Expr) -> Any:
        """The value of a constant expression in Arrow form."""
        if expr.untyped:
            return None
        ((value,),) = self.fetchall(f"SELECT {expr.sql}")
        if isinstance(value, dict):
            return value["utc_ticks"], value["offset_minutes"]
        return value
