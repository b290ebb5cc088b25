"""The hook: asks SQL Server about Change Tracking, and switches it on and off."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Any

from airflow_provider_mssql_cdc.core.change_tracking import (
    DEFAULT_RETENTION,
    READ_WRITE,
    Cleanup,
    DatabaseTracking,
    DatabaseVersions,
    LackingRight,
    Retention,
    Standing,
    TrackedChange,
    TrackedTable,
    TrackingSize,
    restored,
)
from airflow_provider_mssql_cdc.core.exceptions import (
    CdcPermissionError,
    ChangeTrackingDisabledError,
    GapError,
    KeyRequiredError,
    MsSqlCdcError,
    ParameterError,
    RestoredError,
    SqlServerError,
    TableNotFoundError,
)
from airflow_provider_mssql_cdc.core.position import Version, is_gap
from airflow_provider_mssql_cdc.core.table import TableName, quote
from airflow_provider_mssql_cdc.hooks import tracking_statements as statements
from airflow_provider_mssql_cdc.hooks.connection import ConnectedHook, Row
from airflow_provider_mssql_cdc.hooks.errors import INVALID_OBJECT, on_a_secondary
from airflow_provider_mssql_cdc.hooks.tracking_catalog import (
    change_of,
    cleanups_of,
    database_of,
    disabled,
    made_anew,
    not_found,
    schemas_of,
    sizes_of,
    tables_of,
    version,
    versions_of,
)
from airflow_provider_mssql_cdc.hooks.tracking_rights import denied, grant_select, grant_state, lacking_rights

MOST_CHANGES = 10_000
"""Changes that are listed at most: they are for people, not for loads."""

_DATABASE_OFF, _TABLE_ON, _NO_KEY, _KEY_IS_STAMP, _TABLE_OFF = 1718, 4996, 4997, 4999, 4998
_ALREADY_ON, _ALREADY_OFF, _TABLES_LEFT = 5088, 5089, 22115
_MAY_NOT_ALTER = frozenset({1088, 4902})
# each error of ALTER DATABASE is followed by 5069; the driver keeps one of the highest severity, so 5011 is never seen
_MAY_NOT_ALTER_DATABASE, _ALTER_FAILED = 5011, 5069
_LOCK_TIMEOUT, _NO_SUCH_COLUMN = 1222, 207
_SELECT_DENIED = frozenset({229, 230})
_CLEANUPS = TableName("dbo", "MSchange_tracking_history")
# the second follows the first, and the driver keeps that
_NO_STATE = frozenset({262, 297})


class MsSqlChangeTrackingHook(ConnectedHook):
    """Metadata of SQL Server Change Tracking, and the statements that switch it on and off. It reads no rows: of what
    changed it lists keys, for people.

    One connection, opened at the first statement and kept until ``close``; autocommit, so that nothing is locked
    between statements. Use it as a context manager. Every method raises the errors of ``core.exceptions``:
    LoginError, ServerUnreachableError, DatabaseUnavailableError, CdcPermissionError, ChangeTrackingDisabledError,
    SqlServerError. A secondary replica answers ``status`` alone; what asks for versions there, or in a database that is
    read-only, is error 22117.

    :param mssql_conn_id: Airflow connection of type ``mssql``, with the extras that ``MsSqlCdcHook`` uses
    :param schema: database that overrides the connection's
    :param kwargs: as for ``MsSqlHook``; ``connection`` gives the resolved connection where a lookup would block
    """

    def __enter__(self) -> MsSqlChangeTrackingHook:
        """The hook itself."""
        return self

    # The database

    def status(self) -> DatabaseTracking:
        """What the database says of Change Tracking, and of what exact reads need: one statement."""
        return database_of(self.query(statements.STATUS)[0])

    def enable_database(
        self, *, retention: datetime.timedelta = DEFAULT_RETENTION, auto_cleanup: bool = True
    ) -> DatabaseTracking:
        """Track changes of the database, by ALTER DATABASE. Where it is on nothing happens: see ``set_options``.

        :param retention: for how long changes are kept at least, in whole minutes
        :param auto_cleanup: whether older ones are removed
        :return: what it is now
        :raises CdcPermissionError: for a login that may not alter the database
        """
        wanted = Retention.of(retention)
        now = self.status()
        if now.enabled:
            return now
        self._alter(statements.enable_database(wanted, auto_cleanup=auto_cleanup), settled_by=_ALREADY_ON)
        return self.status()

    def set_options(
        self, *, retention: datetime.timedelta | None = None, auto_cleanup: bool | None = None
    ) -> DatabaseTracking:
        """Change the options of a tracked database, by ALTER DATABASE; None leaves one as it is.

        :return: what it is now
        :raises ChangeTrackingDisabledError: if Change Tracking is off
        """
        wanted = None if retention is None else Retention.of(retention)
        if wanted is not None or auto_cleanup is not None:
            self._alter(statements.set_options(wanted, auto_cleanup=auto_cleanup))
        return self.status()

    def disable_database(self) -> None:
        """Track changes of the database no longer. Where it is off nothing happens.

        :raises SqlServerError: with number 22115 while tables are tracked
        """
        if not self.status().enabled:
            return
        try:
            self._alter(statements.DISABLE_DATABASE, settled_by=_ALREADY_OFF)
        except SqlServerError as error:
            if error.number != _TABLES_LEFT:
                raise
            left = [str(TableName(*row)) for row in self.query(statements.TRACKED)]
            raise SqlServerError(
                f"Change Tracking of {self.where.database} stays on: tables are tracked by it.",
                number=error.number,
                advice=f"Call disable_table for each: {', '.join(left) or 'this login does not see them'}.",
            ) from None

    def _alter(self, sql: str, *, settled_by: int = 0) -> None:
        """:param settled_by: number of the error that says that it is so already"""
        try:
            self.query(sql, repeatable=False)
        except SqlServerError as error:
            if error.number == settled_by:
                return
            if error.number == _ALREADY_OFF:
                raise disabled(self.where.database) from None
            if error.number not in (_MAY_NOT_ALTER_DATABASE, _ALTER_FAILED):
                raise
            ((user, may),) = self.query(statements.MAY_ALTER)
            if may:
                raise
            raise CdcPermissionError(
                f"{self.where.login!r} may not alter {self.where.database}.",
                number=_MAY_NOT_ALTER_DATABASE,
                advice=f"ALTER DATABASE is needed: GRANT ALTER TO {quote(user)};",
            ) from None

    # Tables

    def tracked_tables(self, tables: Iterable[TableName] | None = None) -> list[TrackedTable]:
        """Those of the tables that are tracked, with columns and key, in the order given: two statements.

        :param tables: None for all that the login sees, by name: one statement more
        """
        if tables is None:
            tables = [TableName(*row) for row in self.query(statements.TRACKED)]
        rows, _ = self._asked(tables)
        found = [row for row in rows if row[5] is not None]
        if not found:
            return []
        ids = tuple(sorted({row[1] for row in found}))
        return tables_of(found, self.query(statements.COLUMNS, (ids, ids)))

    def tracked_table(self, table: TableName) -> TrackedTable:
        """One tracked table, with columns and key.

        :raises TableNotFoundError: if the login sees no such table
        :raises ChangeTrackingDisabledError: if it is not tracked
        """
        found = self.tracked_tables([table])
        if found:
            return found[0]
        raise self._untracked(table)

    def _untracked(self, table: TableName) -> ChangeTrackingDisabledError | TableNotFoundError:
        found = self.versions([table])
        if found.tables[table].standing is Standing.UNKNOWN:
            return not_found(table, self.where.login)
        return disabled(self.where.database, None if found.current is None else table)

    def enable_table(self, table: TableName, *, columns_updated: bool = False, lock_timeout: float = 10.0) -> None:
        """Track changes of a table. A table that is tracked already is left alone.

        It waits for transactions that use the table, and all other readers and writers wait behind.

        :param columns_updated: whether to track which columns an update names
        :param lock_timeout: seconds to wait for those transactions, and to keep others waiting
        :raises ChangeTrackingDisabledError: while Change Tracking is off for the database
        :raises KeyRequiredError: if it has no primary key, or one of type rowversion
        :raises TableNotFoundError: if the login sees no such table
        :raises CdcPermissionError: for a login that may not alter it
        :raises SqlServerError: with number 1222 if those transactions do not end in time
        :raises ParameterError: for a wait below 0 or without an end
        """
        text = statements.enable_table(table, columns_updated=columns_updated, lock_timeout=lock_timeout)
        self._alter_table(table, text, lock_timeout, settled_by=_TABLE_ON)

    def disable_table(self, table: TableName, *, lock_timeout: float = 10.0) -> None:
        """Track changes of a table no longer: those that were tracked are gone. One that is not tracked is left alone.

        :param lock_timeout: as ``enable_table``
        """
        text = statements.disable_table(table, lock_timeout=lock_timeout)
        self._alter_table(table, text, lock_timeout, settled_by=_TABLE_OFF)

    def _alter_table(self, table: TableName, text: str, lock_timeout: float, *, settled_by: int) -> None:
        try:
            self.query(statements.EXECUTE, (text,), repeatable=False)
        except SqlServerError as error:
            if error.number == settled_by:
                return
            if error.number == _DATABASE_OFF:
                raise disabled(self.where.database) from None
            if error.number in (_NO_KEY, _KEY_IS_STAMP):
                raise KeyRequiredError(
                    "Change Tracking needs a primary key that is no rowversion.",
                    table=str(table),
                    advice="Give the table one, or read it by change data capture.",
                ) from None
            if error.number in _MAY_NOT_ALTER:
                if self.versions([table]).tables[table].standing is Standing.UNKNOWN:
                    raise not_found(table, self.where.login) from None
                raise CdcPermissionError(
                    f"{self.where.login!r} may not alter {table}: {error}",
                    number=error.number,
                    advice=f"Run: GRANT ALTER ON {table.quoted} TO {quote(self.status().user)};",
                ) from None
            if error.number != _LOCK_TIMEOUT:
                raise
            raise SqlServerError(
                f"{table} stays as it is: a transaction that uses it did not end within {lock_timeout:g} s.",
                number=error.number,
                advice="Run it again when no long transaction uses the table: while it waits, all other sessions that "
                "use the table wait behind it.",
            ) from None

    # Versions

    def current_version(self) -> Version | None:
        """The version of the last transaction that changed a tracked table; None while Change Tracking is off."""
        return self._current(self.query(statements.CURRENT_VERSION))

    def _current(self, rows: Sequence[Row]) -> Version | None:
        """Read the row of ``statements.CURRENT_VERSION``.

        :raises SqlServerError: with number 22117 where this is no primary
        """
        ((current, updateability),) = rows
        if updateability != READ_WRITE:
            raise on_a_secondary(self.where, f"Updateability is {updateability}.")
        return version(current)

    def versions(self, tables: Iterable[TableName]) -> DatabaseVersions:
        """The current version, and those of the tables: one statement for any number.

        Where a table has no lowest valid version, it is told whether it is not tracked, unknown, or not permitted.
        """
        wanted = list(dict.fromkeys(tables))
        rows, current = self._asked(wanted)
        return DatabaseVersions(current, versions_of(rows, wanted))

    def _asked(self, tables: Iterable[TableName]) -> tuple[list[Row], Version | None]:
        wanted = list(dict.fromkeys(tables))
        if not wanted:
            return [], self.current_version()
        parameters: list[Any] = []
        for ordinal, table in enumerate(wanted):
            parameters += [ordinal, table.schema, table.table]
        current, rows = self.query_sets(statements.versions(len(wanted)), parameters)
        return rows, self._current(current)

    # Changes

    def changes(
        self, table: TrackedTable, after: Version, upto: Version | None = None, *, limit: int = 100
    ) -> list[TrackedChange]:
        """The first changed keys of (after, upto], by version and key, for people to look at.

        Each key is listed once, with what all its changes since come to; one that changed again behind ``upto`` is not
        listed. The server sorts all changes for that, however few are asked for.

        :param table: of ``tracked_table``, whose columns say what is in a mask
        :param after: a version that is valid; all before is removed, and nobody could tell
        :param upto: None for all that there is
        :param limit: of keys, at most 10,000
        :raises ParameterError: for another limit, or a version above ``upto``
        :raises RestoredError: if the database has not reached ``after``
        :raises GapError: if changes after the version were removed
        :raises ChangeTrackingDisabledError: if the table is not tracked any more
        :raises TableNotFoundError: if it is not there any more
        :raises InstanceChangedError: if it was made anew, or its key changed
        :raises CdcPermissionError: for a login that lacks what the advice grants
        """
        if not 1 <= limit <= MOST_CHANGES:
            raise ParameterError(f"limit={limit!r}: expected 1 to {MOST_CHANGES}")
        if upto is not None and after > upto:
            raise ParameterError(f"nothing lies after {after} and up to {upto}")
        last = Version.LARGEST if upto is None else upto.value
        given = (statements.changes(table), limit, after.value, last, table.object_id)
        try:
            first, rows, ((lowest,),) = self.query_sets(statements.EXECUTE_CHANGES, given)
        except (ChangeTrackingDisabledError, SqlServerError) as error:
            raise self._unreadable(table.source, error) from None
        current = self._current(first)
        if current is not None and after > current:
            raise RestoredError(restored(after, current), table=str(table.source), advice="Read the table anew.")
        # asked for after the rows were read: cleanup raises it before it removes anything
        min_valid = version(lowest)
        if min_valid is None:
            raise made_anew(table.source)
        if is_gap(after, min_valid):
            raise GapError(str(table.source), after, min_valid, advice="Read the table anew.")
        asked = statements.updatable(table) if table.columns_updated else ()
        return [change_of(table, row, asked) for row in rows]

    def _unreadable(self, table: TableName, error: ChangeTrackingDisabledError | SqlServerError) -> MsSqlCdcError:
        """What an error of CHANGETABLE means for the table that it was asked for."""
        if isinstance(error, ChangeTrackingDisabledError):
            return self._untracked(table)
        if error.number == INVALID_OBJECT:
            return not_found(table, self.where.login)
        if error.number == _NO_SUCH_COLUMN:
            return made_anew(table)
        if isinstance(error, CdcPermissionError) and error.number in _SELECT_DENIED:
            grants = [right.grant for right in self.lacking_rights([table]) if right.table]
            return denied(error, grants) if grants else error
        return error

    def columns_in_mask(self, table: TrackedTable, mask: bytes | None) -> tuple[str, ...]:
        """The columns beside the key that ``SYS_CHANGE_COLUMNS`` names, as CHANGE_TRACKING_IS_COLUMN_IN_MASK says.

        :param mask: NULL has all of them
        """
        asked = statements.updatable(table)
        if not asked:
            return ()
        given = (statements.in_mask(table), None if mask is None else bytearray(mask))
        (row,) = self.query(statements.EXECUTE_MASK, given)
        return tuple(column.name for column, found in zip(asked, row, strict=True) if found)

    # Housekeeping

    def sizes(self) -> list[TrackingSize]:
        """How large the commit table is, and each side table, ordered by table: one statement.

        :raises CdcPermissionError: for a login without VIEW DATABASE STATE
        """
        try:
            found = self.query(statements.SIZES)
        except CdcPermissionError as error:
            if error.number not in _NO_STATE:
                raise
            raise denied(error, [grant_state(self.status().user)]) from None
        return sizes_of(found)

    def cleanups(self, limit: int = 100) -> list[Cleanup]:
        """What cleanup did, the last first; empty where it never ran, or keeps no record (before 2014 SP2)."""
        try:
            rows = self.query(statements.CLEANUPS, (limit,))
        except CdcPermissionError as error:
            if error.number == INVALID_OBJECT:
                return []
            if error.number not in _SELECT_DENIED:
                raise
            raise denied(error, [grant_select(_CLEANUPS, self.status().user)]) from None
        return cleanups_of(rows)

    # Permissions

    def lacking_rights(self, tables: Sequence[TableName]) -> list[LackingRight]:
        """What the login lacks to read the changes of tables, each with its GRANT: four statements, more for many."""
        wanted = list(dict.fromkeys(tables))
        keys = self._keys(wanted)
        return lacking_rights(self.query, wanted, keys)

    def _keys(self, wanted: Sequence[TableName]) -> dict[TableName, tuple[str, ...]]:
        """The primary keys of those of the tables that the login sees, tracked or not, by the names that were given."""
        seen, _ = self._asked(wanted)
        ids = tuple(sorted({row[1] for row in seen}))
        found = schemas_of(self.query(statements.COLUMNS, (ids, ids))) if ids else {}
        return {wanted[ordinal]: found[object_id][1] for ordinal, object_id, *_ in seen if object_id in found}
