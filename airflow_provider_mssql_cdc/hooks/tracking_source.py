"""Change Tracking as a source of changes, beside change data capture."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence

from airflow_provider_mssql_cdc.core.change_tracking import DatabaseTracking, TrackedTable, grant_view
from airflow_provider_mssql_cdc.core.database import DatabaseStatus, Survey
from airflow_provider_mssql_cdc.core.exceptions import (
    CdcPermissionError,
    ChangeTrackingDisabledError,
    KeyRequiredError,
    MsSqlCdcError,
)
from airflow_provider_mssql_cdc.core.feed import DdlChange, Feed, Probe
from airflow_provider_mssql_cdc.core.lineage import VersionHistory, Witness
from airflow_provider_mssql_cdc.core.position import Position, Version
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.hooks import tracking_statements as statements
from airflow_provider_mssql_cdc.hooks.connection import Row
from airflow_provider_mssql_cdc.hooks.errors import INVALID_OBJECT, NOT_TRACKED, SELECT_DENIED
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.hooks.mssql_change_tracking import MsSqlChangeTrackingHook
from airflow_provider_mssql_cdc.hooks.tracking_catalog import version
from airflow_provider_mssql_cdc.hooks.tracking_rights import grant_state

log = logging.getLogger(__name__)

_COLUMN_DENIED = 230
_OF_ONE_TABLE = frozenset({INVALID_OBJECT, SELECT_DENIED, _COLUMN_DENIED})


class _TrackingHook(MsSqlChangeTrackingHook):
    """The hook for Change Tracking, by the connection that another hook has open."""

    def __init__(self, hook: MsSqlCdcHook) -> None:
        super().__init__(hook.mssql_conn_id, schema=hook.schema, connection=hook.connection)
        self._session = hook

    def query_sets(self, sql: str, parameters: Sequence[object] = (), *, repeatable: bool = True) -> list[list[Row]]:
        """Run one statement by the other hook."""
        return self._session.query_sets(sql, parameters, repeatable=repeatable)

    def probe(
        self, after: Sequence[tuple[TrackedTable, Version]]
    ) -> tuple[Version | None, set[int], set[int], list[Row]]:
        """Look whether tables have changes behind versions: one statement, whose text is constant for these tables.

        :return: the current version, read before all else; the places of the tables that have no row left which they
            had at the version, where this is the lowest valid one, and of those that have changes; the lowest valid
            version of each table that is tracked, by object_id, read after all else
        :raises SqlServerError: with number 22117 where this is no primary
        """
        text = statements.probe([(table.source, table.primary_key) for table, _ in after])
        given = (text, statements.packed([position for _, position in after]))
        first, *sets, lows = self.query_sets(statements.EXECUTE_PROBE, given)
        emptied, changed = ({place for (place,) in rows} for rows in sets or ((), ()))
        return self._current(first), emptied, changed, lows


class TrackingSource:
    """Change Tracking. A table that is no longer tracked (error 22105), or may not be read, holds up no other.

    :param hook: whose connection is used
    """

    kind: type[Feed] = TrackedTable

    def __init__(self, hook: MsSqlCdcHook) -> None:
        self._session = hook
        self._opened: _TrackingHook | None = None
        self._known: dict[str, TrackedTable] = {}
        self.unreadable: dict[str, CdcPermissionError] = {}
        self.found_more = False

    @property
    def hook(self) -> _TrackingHook:
        """The hook for Change Tracking, by the same connection."""
        if self._opened is None:
            self._opened = _TrackingHook(self._session)
        return self._opened

    def discover(self, survey: Survey) -> Mapping[TableName, Sequence[Feed]]:
        """The tracked ones of the tables: two statements for any number, none where there are no tables.

        :raises SqlServerError: with number 22117 where this is no primary
        """
        names = [table.name for table in survey.matches.tables]
        if not names:
            return {}
        found = self.hook.tracked_tables(names)
        for table in found:
            self._known[table.name] = table
            if table.min_valid_version is None:
                self.unreadable[table.name] = _denied(table, survey.status.user)
        return {table.source: (table,) for table in found}

    def beside(self, names: Sequence[TableName]) -> tuple[Version | None, list[TrackedTable], DatabaseTracking]:
        """The current version; then those of the tables that are tracked, and what the database says: four statements.

        :raises SqlServerError: with number 22117 where this is no primary
        """
        current = self.hook.current_version()
        return current, self.hook.tracked_tables(names), self.hook.status()

    def enable(
        self, tables: Iterable[TableName], retention: datetime.timedelta, with_columns: Collection[TableName] = ()
    ) -> dict[TableName, MsSqlCdcError]:
        """Track changes of tables, and of the database where it does not; why that failed, by table.

        :param retention: for how long the database keeps changes, where it is switched on
        :param with_columns: tables of which it is to be tracked which columns an update names
        """
        failed: dict[TableName, MsSqlCdcError] = {}
        try:
            self.hook.enable_database(retention=retention)
        except CdcPermissionError as error:
            # it may be on by now
            return dict.fromkeys(tables, error)
        for table in tables:
            log.info("enabling Change Tracking for %s", table)
            try:
                self.hook.enable_table(table, columns_updated=table in with_columns)
            except MsSqlCdcError as error:
                if isinstance(error, KeyRequiredError):
                    error.advice = 'Give the table one, or read it by change data capture (source="cdc").'
                failed[table] = error
        return failed

    def probe(
        self,
        after: Mapping[str, Position],
        *,
        status: DatabaseStatus | None = None,
        upto: Position | None = None,
        witnesses: Collection[Witness] = (),
    ) -> Probe:
        """Probe all tables that can be read: one statement, but for the first time that one cannot.

        The newest position of a table that has changes is that of the cut: which of them is the newest is not asked,
        since that would read all of them.
        """
        self.found_more = False
        self._learn(after)
        versions = {name: Version.of(at) for name, at in after.items() if name not in self.unreadable}
        cut = None if upto is None else Version.of(upto)
        fork = status.recovery_fork_guid if status is not None else None
        try:
            return self._probe(versions, cut, fork)
        except (CdcPermissionError, ChangeTrackingDisabledError) as error:
            if not _is_of_one_table(error) or not versions:
                raise
        faulty = self._faulty(versions)
        rest = {name: at for name, at in versions.items() if name not in faulty}
        probe = self._probe(rest, cut, fork)
        self._leave_out(faulty)
        return probe

    def _probe(self, after: Mapping[str, Version], upto: Version | None, fork: str | None) -> Probe:
        names = [*after]
        current, emptied, changed, lows = self.hook.probe([(self._known[name], after[name]) for name in names])
        readable_from = {object_id: version(low) for object_id, low in lows}
        hidden = {object_id for object_id, low in readable_from.items() if low is None}
        # what is shown, and may not be asked about, says nothing of its changes
        tables = [self._known[name] for name in names if self._known[name].object_id in hidden]
        self._leave_out({table.name: _denied(table, self.hook.where.login) for table in tables})
        cut = current if upto is None else upto
        newest: dict[str, Position] = {}
        for place, name in enumerate(names):
            if cut is not None and place in changed and after[name] < cut and name not in self.unreadable:
                newest[name] = cut
        quiet = frozenset(names[place] for place in emptied - changed)
        return Probe(cut, newest, readable_from, lineage=VersionHistory(current, fork), emptied=quiet)

    def told_of_rights(self) -> list[str]:
        """What is not found out without a right that the login lacks, for people: one statement."""
        ((user, *rights),) = self.hook.query(statements.DATABASE_STATE)
        if any(rights):
            return []
        return [
            "the login lacks VIEW DATABASE STATE: a database that was restored is not told from the one before, once "
            f"its versions have grown beyond those that were loaded. Run: {grant_state(user)}"
        ]

    def _learn(self, names: Iterable[str]) -> None:
        """Find tables that somebody has discovered by another connection, which was lost since."""
        unknown = [name for name in names if name not in self._known and name not in self.unreadable]
        if not unknown:
            return
        self._known |= {table.name: table for table in self.hook.tracked_tables()}
        self._leave_out(
            {name: _gone(f"{name} is not tracked any more.") for name in unknown if name not in self._known}
        )

    def _leave_out(self, faulty: Mapping[str, CdcPermissionError]) -> None:
        for name, reason in faulty.items():
            log.warning("tracked table %s is left out: %s", name, reason)
        self.unreadable.update(faulty)
        self.found_more = self.found_more or bool(faulty)

    def recheck(self, after: Mapping[str, Position]) -> None:
        """Look again at what could not be read."""
        again = {name: Version.of(after[name]) for name in self.unreadable if name in after}
        self.unreadable = {}
        self._learn(again)
        self.unreadable |= self._faulty({name: at for name, at in again.items() if name in self._known})
        self.found_more = False

    def _faulty(self, after: Mapping[str, Version]) -> dict[str, CdcPermissionError]:
        """Why tables cannot be read, each asked for alone."""
        found = {}
        for name, position in after.items():
            try:
                self._probe({name: position}, None, None)
            except ChangeTrackingDisabledError as error:
                found[name] = _gone(error.message, error.advice)
            except CdcPermissionError as error:
                found[name] = error
        return found

    def ddl(self, feeds: Iterable[Feed]) -> list[DdlChange]:
        """Change Tracking keeps no DDL."""
        return []

    def limit(
        self, after: Mapping[str, Position], upto: Position, *, transactions: int | None, rows: int | None
    ) -> Position:
        """Nobody asks: a window ends where its rows say."""
        raise NotImplementedError

    def position_before(self, moment: datetime.datetime, timezone: str | None) -> Position:
        """Nobody asks: a past window cannot be read again."""
        raise NotImplementedError

    def has_at_most(self, after: Mapping[str, Position], upto: Position, rows: int) -> bool:
        """Not known: counting changes reads all of them."""
        return False


def _is_of_one_table(error: MsSqlCdcError) -> bool:
    return not isinstance(error, CdcPermissionError) or error.number in _OF_ONE_TABLE


def _gone(message: str, advice: str | None = None) -> CdcPermissionError:
    error = CdcPermissionError(message, number=NOT_TRACKED, advice=advice)
    # it may be tracked again by now
    error.permanent = False
    return error


def _denied(table: TrackedTable, user: str) -> CdcPermissionError:
    """The error of a table whose changes the login may not ask for."""
    return CdcPermissionError(
        f"{user!r} may not ask about changes of {table.source}.",
        number=SELECT_DENIED,
        advice=f"Run: {grant_view(table.source, user)}",
    )
