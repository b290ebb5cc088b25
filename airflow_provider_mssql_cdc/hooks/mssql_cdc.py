"""The hook: asks SQL Server about its change data capture, and switches it on and off."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from airflow.providers.microsoft.mssql.hooks.mssql import MsSqlHook

from airflow_provider_mssql_cdc.core.checkpoint import Witness
from airflow_provider_mssql_cdc.core.database import (
    AgentHealth,
    DatabaseStatus,
    Matches,
    Probe,
    Snapshot,
    TimeOperator,
    Transaction,
)
from airflow_provider_mssql_cdc.core.lsn import Lsn
from airflow_provider_mssql_cdc.core.table import CaptureInstance, DdlChange, TableName


class MsSqlCdcHook(MsSqlHook):
    """Metadata of SQL Server change data capture; never row data.

    One connection, opened at the first statement and kept until ``close``; autocommit, so that nothing is locked
    between statements. One thread at a time. Use it as a context manager. Every method raises the errors of
    ``core.exceptions``: LoginError, ServerUnreachableError, DatabaseUnavailableError, CdcPermissionError,
    CdcDisabledError, SqlServerError.

    :param mssql_conn_id: Airflow connection of type ``mssql``
    :param connection: the resolved connection, where looking it up by id would block (keyword ``connection``)
    :param schema: database that overrides the connection's
    """

    def __init__(self, mssql_conn_id: str = "mssql_default", *, schema: str | None = None, **kwargs: Any) -> None:
        super().__init__(mssql_conn_id=mssql_conn_id, schema=schema, log_sql=False, **kwargs)

    # --- a whole run's questions, one statement each unless said
    def snapshot(self, patterns: Sequence[str], exclude: Sequence[str] = ()) -> Snapshot:
        """Read status, matched tables and their capture instances: three statements, for any number of tables.

        With CDC off for the database, ``instances`` is empty; nothing is raised for that.

        :raises TableNotFoundError: if no pattern matches any table
        """
        raise NotImplementedError

    def ddl_history(self, instances: Iterable[CaptureInstance], after: Lsn) -> list[DdlChange]:
        """Return the DDL on these instances' tables above this LSN, ordered by LSN."""
        raise NotImplementedError

    def probe(
        self, after: Mapping[str, Lsn], *, upto: Lsn | None = None, witnesses: Collection[Lsn] = ()
    ) -> Probe:
        """Look for events in many change tables, then read min LSNs and mapping: one statement.

        :param after: capture instance name to position; ``tables_with_events`` in the form that polls use
        :param upto: the cut; None takes the max LSN, read first under READ COMMITTED
        :param witnesses: LSNs whose mapping is wanted
        """
        raise NotImplementedError

    # --- single questions
    def database_status(self) -> DatabaseStatus:
        """Read the database's status."""
        raise NotImplementedError

    def resolve_tables(self, patterns: Sequence[str], exclude: Sequence[str] = ()) -> Matches:
        """Return the user tables that the patterns match, by the database's collation, without the excluded ones.

        :raises TableNotFoundError: if there is none
        """
        raise NotImplementedError

    def capture_instances(self, tables: Iterable[TableName]) -> list[CaptureInstance]:
        """Return all capture instances of these tables, complete: two statements."""
        raise NotImplementedError

    def max_lsn(self) -> Lsn | None:
        """Return ``sys.fn_cdc_get_max_lsn``; None while nothing is captured."""
        raise NotImplementedError

    def min_lsn(self, capture_instance: str) -> Lsn | None:
        """Return the instance's min LSN; None while it has none.

        :raises CdcDisabledError: if there is no such instance
        """
        raise NotImplementedError

    def increment(self, lsn: Lsn) -> Lsn:
        """Return ``sys.fn_cdc_increment_lsn``; the server's answer, where ``Lsn.next`` is ours."""
        raise NotImplementedError

    def decrement(self, lsn: Lsn) -> Lsn:
        """Return ``sys.fn_cdc_decrement_lsn``."""
        raise NotImplementedError

    def lsn_to_time(self, lsn: Lsn) -> datetime.datetime | None:
        """Return the commit time in the server's local time; None for an LSN that is not mapped."""
        raise NotImplementedError

    def time_to_lsn(self, operator: TimeOperator, time: datetime.datetime) -> Lsn | None:
        """Return the LSN that stands in this relation to the server-local time; None if there is none.

        :raises ValueError: for a time with a zone
        """
        raise NotImplementedError

    def witness(self, position: Lsn) -> Witness | None:
        """Return the largest mapped LSN at or below the position, with its time."""
        raise NotImplementedError

    def witnesses(self, lsns: Collection[Lsn]) -> dict[Lsn, datetime.datetime]:
        """Return those of the LSNs that are mapped, with their times."""
        raise NotImplementedError

    def transactions_between(self, after: Lsn, upto: Lsn, limit: int = 1000) -> list[Transaction]:
        """Return the first captured transactions of (after, upto], in LSN order, without the dummy ones."""
        raise NotImplementedError

    def cut_by_transactions(self, after: Mapping[str, Lsn], upto: Lsn, transactions: int) -> Lsn:
        """Return the LSN of the n-th transaction that has events in the windows (after[instance], upto] together.

        :return: ``upto`` if there are not more than that many
        """
        raise NotImplementedError

    def cut_by_rows(self, after: Mapping[str, Lsn], upto: Lsn, rows: int) -> Lsn:
        """Return the LSN of the last transaction up to which all windows together have at most that many change
        rows; at least the first transaction.

        :return: ``upto`` if there are not more than that many
        """
        raise NotImplementedError

    def agent_health(self) -> AgentHealth:
        """Return whether Agent and capture job run, as far as the login can see."""
        raise NotImplementedError

    def server_timezone(self) -> str | None:
        """Return the server's zone: ``UTC``, or its Windows name; None where the server cannot say (before 2022)."""
        raise NotImplementedError

    def retention_minutes(self) -> int | None:
        """Return the cleanup job's retention; None where the login cannot see it."""
        raise NotImplementedError

    def max_text_repl_size(self) -> int | None:
        """Return ``max text repl size`` in bytes, -1 for no limit; None where the login cannot see it."""
        raise NotImplementedError

    # --- switching on and off
    def enable_database(self, *, timeout: float = 60.0) -> None:
        """Enable CDC for the database; nothing happens where it is on.

        :param timeout: seconds to wait until the new state can be seen
        :raises CaptureLagError: if it cannot be seen by then
        """
        raise NotImplementedError

    def disable_database(self, *, timeout: float = 60.0) -> None:
        """Disable CDC for the database, with all capture instances and what they captured."""
        raise NotImplementedError

    def enable_table(
        self,
        table: TableName,
        *,
        capture_instance: str | None = None,
        role_name: str | None = None,
        captured_columns: Sequence[str] | None = None,
        index_name: str | None = None,
        supports_net_changes: bool = False,
        filegroup_name: str | None = None,
        allow_partition_switch: bool = True,
        timeout: float = 60.0,
    ) -> list[CaptureInstance]:
        """Enable CDC for a table. A table that is tracked already is left alone.

        :param role_name: gating role; None for none
        :param captured_columns: None for all
        :param index_name: unique index that identifies rows; None for the primary key
        :return: the table's capture instances
        :raises CaptureLagError: if the new instance cannot be seen in time
        """
        raise NotImplementedError

    def disable_table(self, table: TableName, *, capture_instance: str = "all", timeout: float = 60.0) -> None:
        """Drop one capture instance of a table, or all of them, with what they captured."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connection; the next statement opens another."""
        raise NotImplementedError
