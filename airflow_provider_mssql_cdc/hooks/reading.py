"""What a run asks SQL Server about its change data capture."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from airflow_provider_mssql_cdc.core.catalog import lsn
from airflow_provider_mssql_cdc.core.database import (
    ChangeTables,
    DatabaseStatus,
    Matches,
    SourceTable,
    Survey,
    TimeOperator,
    Transaction,
)
from airflow_provider_mssql_cdc.core.exceptions import CdcDisabledError, SqlServerError, TableNotFoundError
from airflow_provider_mssql_cdc.core.feed import CaptureInstance, DdlChange
from airflow_provider_mssql_cdc.core.interval import Crossing
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.patterns import TablePattern, literal, parse_pattern
from airflow_provider_mssql_cdc.core.patterns import matches as matches_name
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.hooks import statements
from airflow_provider_mssql_cdc.hooks.catalog import instances_of, matches_of, probe_of, status_of
from airflow_provider_mssql_cdc.hooks.connection import Row
from airflow_provider_mssql_cdc.hooks.tables import TablesHook

log = logging.getLogger(__name__)


class ReadingHook(TablesHook):
    """Metadata of SQL Server change data capture; never row data.

    :param mssql_conn_id: Airflow connection of type ``mssql``
    :param kwargs: as for ``TablesHook``
    """

    def __init__(self, mssql_conn_id: str = "mssql_default", **kwargs: Any) -> None:
        super().__init__(mssql_conn_id, **kwargs)
        self._warned_of: set[int] = set()

    # A whole run's questions, one statement each unless said.

    def survey(self, patterns: Sequence[str], exclude: Sequence[str] = (), *, captured: bool = True) -> Survey:
        """Read status, matched tables and their capture instances: three statements, for any number of tables.

        With CDC off for the database there are no instances; nothing is raised for that. With ``captured=False`` it
        is not asked, as if it were off.

        :raises TableNotFoundError: if no pattern matches any table
        """
        status = self.database_status(captured=captured)
        wanted = [parse_pattern(pattern) for pattern in patterns]
        unwanted = [parse_pattern(pattern) for pattern in exclude]
        rows = self._table_rows(wanted, unwanted, with_instances=status.cdc_enabled)
        matches = matches_of(rows, wanted, self.where.database)
        instances = tuple(self._instances(rows, matches.tables, status.user)) if status.cdc_enabled else ()
        return Survey(status, matches, instances, self._missing(matches, wanted, unwanted))

    def ddl_history(self, instances: Iterable[CaptureInstance], after: Lsn | None = None) -> list[DdlChange]:
        """The DDL on these instances' tables above an LSN, by default all, ordered by LSN."""
        ids = tuple(instance.object_id for instance in instances)
        if not ids:
            return []
        rows = self.query(statements.DDL_HISTORY, (ids, bytearray(after.value if after is not None else 10)))
        return [
            DdlChange(name, command or "", Lsn(bytes(at)), when, bool(required))
            for name, command, at, when, required in rows
        ]

    def probe(
        self, after: Mapping[str, Lsn], *, upto: Lsn | None = None, witnesses: Collection[Lsn] = ()
    ) -> ChangeTables:
        """Look for events in many change tables, then read min LSNs and mapping: one statement.

        Its text is constant for a set of instances, so that the server compiles it once.

        :param after: capture instance to position
        :param upto: the cut, which is taken down to a commit; None takes the max LSN, read first, under READ COMMITTED
        :param witnesses: LSNs whose mapping is wanted
        """
        names = tuple(after)
        text = statements.probe(names, len(witnesses))
        cut = None if upto is None else bytearray(upto.value)
        parameters = [text, cut, statements.packed(list(after.values()))]
        if witnesses:
            results = self.query_sets(
                statements.EXECUTE_PROBE_WITH_WITNESSES, [*parameters, statements.packed(witnesses)]
            )
        else:
            results = self.query_sets(statements.EXECUTE_PROBE, parameters)
        return probe_of(results, names)

    def cut_by_transactions(self, after: Mapping[str, Lsn], upto: Lsn, transactions: int) -> Lsn:
        """The LSN of the n-th transaction that has events in the windows (after[instance], upto] together.

        :return: ``upto`` if there are fewer
        :raises ValueError: for less than one transaction
        """
        if transactions < 1:
            raise ValueError("a limit admits at least one transaction")
        if not after:
            return upto
        ((found, last),) = self._limit(statements.nth_transaction(tuple(after)), after, upto, transactions)
        return upto if found < transactions else Lsn(bytes(last))

    def cut_by_rows(self, after: Mapping[str, Lsn], upto: Lsn, rows: int) -> Lsn:
        """The LSN of the last transaction up to which all windows together have at most that many change rows,
        before images included; at least that of the first transaction.

        :return: ``upto`` if there are not more rows
        :raises ValueError: for less than one row
        """
        if rows < 1:
            raise ValueError("a limit admits at least one row")
        if not after:
            return upto
        ((total, last),) = self._limit(statements.transaction_at_row(tuple(after)), after, upto, rows)
        return upto if total is None or total <= rows else Lsn(bytes(last))

    def count_rows(self, after: Mapping[str, Lsn], upto: Lsn, most: int) -> int:
        """The number of change rows of the windows (after[instance], upto] together, before images included.

        :param most: of each window no more than one row above this number is counted
        """
        if not after:
            return 0
        ((total, _),) = self._limit(statements.transaction_at_row(tuple(after)), after, upto, most)
        return int(total or 0)

    def _limit(self, text: str, after: Mapping[str, Lsn], upto: Lsn, limit: int) -> list[Row]:
        positions = statements.packed(list(after.values()))
        return self.query(statements.EXECUTE_LIMIT, (text, bytearray(upto.value), positions, limit))

    # Tables and instances.

    def database_status(self, *, captured: bool = True) -> DatabaseStatus:
        """Read the database's status, with ``captured`` as for ``survey``: one statement, or some more where the login
        may not see all of it."""
        first, second = statements.STATUS_TEXTS[captured]
        try:
            return status_of(self.query(first)[0])
        except SqlServerError:
            # Which of msdb, server state and configuration may be read differs by login and platform; if the rest
            # cannot be read either, the second statement says so.
            row = self.query(second)[0]
        facts = status_of(row)
        retention = self.retention_minutes() if facts.cdc_enabled else None
        return status_of((*row[:9], retention, self._recovery_fork(), *row[11:]))

    def _recovery_fork(self) -> object:
        try:
            rows = self.query(statements.RECOVERY_FORK)
        except SqlServerError:
            return None
        return rows[0][0] if rows else None

    def resolve_tables(self, patterns: Sequence[str], exclude: Sequence[str] = ()) -> Matches:
        """The user tables that the patterns match, by the database's collation, without the excluded ones.

        :param patterns: ``schema.table`` or ``table`` (in the login's default schema); ``*`` stands for any characters,
            brackets or double quotes enclose names with dots
        :raises TableNotFoundError: if there is none
        """
        wanted = [parse_pattern(pattern) for pattern in patterns]
        rows = self._table_rows(wanted, [parse_pattern(pattern) for pattern in exclude], with_instances=False)
        return matches_of(rows, wanted, self.where.database)

    def _missing(
        self, matches: Matches, wanted: Sequence[TablePattern], exclude: Sequence[TablePattern]
    ) -> tuple[TableName, ...]:
        """The tables that patterns name, as the first of them spells it, and that were not found."""
        named = [pattern.parts for pattern in wanted if pattern.text in matches.empty_patterns and pattern.names_one]
        default = None
        if any(schema is None for schema, _ in named):
            default = self.query(statements.DEFAULT_SCHEMA)[0][0]
        # where a login has no default schema, dbo is (docs: CREATE USER)
        found: dict[tuple[str, str], TableName] = {}
        for schema, table in named:
            name = TableName(schema or default or "dbo", table)
            if not any(matches_name(pattern, name.schema, name.table) for pattern in exclude):
                found.setdefault((name.schema.casefold(), name.table.casefold()), name)
        return tuple(found.values())

    def instance_names(self) -> dict[str, int]:
        """The names of all capture instances, also of those that it may not read, with the source table's object_id."""
        return dict(self.query(statements.INSTANCE_NAMES))

    def capture_instances(self, tables: Iterable[TableName]) -> list[CaptureInstance]:
        """All capture instances of these tables, complete: two statements. Unknown tables have none."""
        wanted = [literal(table.schema, table.table) for table in tables]
        if not wanted:
            return []
        rows = self._table_rows(wanted, [], with_instances=True)
        try:
            found = matches_of(rows, wanted, self.where.database).tables
        except TableNotFoundError:
            return []
        return self._instances(rows, found, self.where.login)

    def is_tracked(self, table: TableName) -> bool:
        """Whether the table has a capture instance, as ``sys.tables.is_tracked_by_cdc`` says.

        :raises TableNotFoundError: if the login sees no such table
        """
        wanted = [literal(table.schema, table.table)]
        rows = self._table_rows(wanted, [], with_instances=False)
        return any(found.tracked for found in matches_of(rows, wanted, self.where.database).tables)

    def _table_rows(
        self,
        wanted: Sequence[TablePattern],
        exclude: Sequence[TablePattern],
        *,
        with_instances: bool,
    ) -> list[Row]:
        if not wanted:
            raise TableNotFoundError("no table is named.", advice='Give tables, such as ["sales.*"].')
        parameters: list[str | int | None] = []
        purposes = {statements.WANTED: wanted, statements.EXCLUDED: exclude}
        for purpose, patterns in purposes.items():
            for ordinal, pattern in enumerate(patterns):
                parameters += [ordinal, purpose, pattern.schema, pattern.table]
        sql = statements.tables(len(parameters) // 4, with_instances=with_instances)
        return self.query(sql, parameters)

    def _instances(self, rows: list[Row], tables: Iterable[SourceTable], user: str) -> list[CaptureInstance]:
        tables = [table for table in tables if table.tracked]
        ids = tuple(sorted(table.object_id for table in tables))
        if not ids:
            return []
        columns = self.query(statements.COLUMNS, (ids,) * 5)
        found = instances_of(rows, columns, tables, user)
        for instance in found:
            if not instance.has_command_id and instance.object_id not in self._warned_of:
                self._warned_of.add(instance.object_id)
                log.warning(
                    "%s has no __$command_id: changes of one transaction are ordered by __$seqval, which may put the "
                    "insert of a key update before its delete (KB3030352). Update SQL Server, or run "
                    "sys.sp_cdc_vupgrade.",
                    instance,
                )
        return found

    def retention_minutes(self) -> int | None:
        """The cleanup job's retention; None where the login cannot see it."""
        for sql, kind, value in (
            (statements.HELP_JOBS, statements.HELP_JOBS_TYPE, statements.HELP_JOBS_RETENTION),
            (statements.AZURE_RETENTION, 0, 1),
        ):
            try:
                rows = self.query(sql)
            except SqlServerError:
                continue
            for row in rows:
                if row[kind] == "cleanup":
                    return int(row[value])
        return None

    def max_text_repl_size(self) -> int | None:
        """``max text repl size`` in bytes, -1 for no limit; None where the login cannot see it."""
        return self.database_status().max_text_repl_size

    # Positions and times.

    def max_lsn(self) -> Lsn | None:
        """The newest captured LSN, of ``sys.fn_cdc_get_max_lsn``; None while nothing is captured."""
        return lsn(self.query(statements.MAX_LSN)[0][0])

    def min_lsn(self, capture_instance: str) -> Lsn | None:
        """The instance's min LSN; None while it has none.

        :raises CdcDisabledError: if there is no such instance
        """
        rows = self.query(statements.MIN_LSN, (capture_instance,))
        if not rows:
            raise CdcDisabledError(f"{self.where.database} has no capture instance {capture_instance!r}.")
        return lsn(rows[0][0])

    def increment(self, position: Lsn) -> Lsn:
        """The next LSN, of ``sys.fn_cdc_increment_lsn``: the server's answer, where ``Lsn.next`` is ours."""
        return Lsn(bytes(self.query(statements.INCREMENT, (bytearray(position.value),))[0][0]))

    def decrement(self, position: Lsn) -> Lsn:
        """The LSN before, of ``sys.fn_cdc_decrement_lsn``."""
        return Lsn(bytes(self.query(statements.DECREMENT, (bytearray(position.value),))[0][0]))

    def lsn_to_time(self, position: Lsn) -> datetime.datetime | None:
        """The commit time in the server's local time; None for an LSN that is not mapped."""
        ((found,),) = self.query(statements.LSN_TO_TIME, (bytearray(position.value),))
        return found if isinstance(found, datetime.datetime) else None

    def time_to_lsn(self, operator: TimeOperator, moment: datetime.datetime) -> Lsn | None:
        """The LSN that stands in this relation to the time, of ``sys.fn_cdc_map_time_to_lsn``; None if there is none.

        Which it takes is not known where the clock went back, or commits have the same time.

        :param moment: in the server's local time, compared as ``datetime``, which counts in 1/300 s
        :raises ValueError: for a time with a zone
        """
        return lsn(self.query(statements.TIME_TO_LSN, (operator.value, _datetime(moment)))[0][0])

    def crossing(self, moment: datetime.datetime) -> Crossing | None:
        """Where the log reaches a time; None until it does.

        :param moment: in the server's local time, compared as ``datetime``
        """
        ((at, before, back_to),) = self.query(statements.CROSSING, (_datetime(moment),) * 2)
        found = lsn(at)
        return None if found is None else Crossing(found, lsn(before), back_to)

    def witness(self, position: Lsn) -> Witness | None:
        """The largest mapped LSN at or below the position, with its time."""
        rows = self.query(statements.WITNESS, (bytearray(position.value),))
        return Witness(Lsn(bytes(rows[0][0])), rows[0][1]) if rows else None

    def witnesses(self, lsns: Collection[Lsn]) -> dict[Lsn, datetime.datetime]:
        """Those of the LSNs that are mapped, with their times: one statement."""
        return self.probe({}, witnesses=lsns).mapped

    def transactions_between(self, after: Lsn, upto: Lsn, limit: int = 1000) -> list[Transaction]:
        """The first captured transactions of (after, upto], in LSN order, without the dummy ones."""
        rows = self.query(statements.TRANSACTIONS, (limit, bytearray(after.value), bytearray(upto.value)))
        return [Transaction(Lsn(bytes(at)), begin, end, bytes(number)) for at, begin, end, number in rows]


def _datetime(moment: datetime.datetime) -> str:
    if moment.tzinfo is not None:
        raise ValueError("the server maps its own local times; give one without a zone")
    # datetime takes three digits of a second; milliseconds keep "less than" on the right side of a moment.
    return moment.isoformat(timespec="milliseconds")
