"""What a load asks the second source in Airflow, and an operator that knows both sources."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow_provider_mssql_cdc.core.database import DatabaseStatus, Survey
from airflow_provider_mssql_cdc.core.exceptions import CdcPermissionError
from airflow_provider_mssql_cdc.core.feed import DdlChange, Feed, Probe
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.position import Position, Version
from airflow_provider_mssql_cdc.core.table import Column, TableName
from airflow_provider_mssql_cdc.hooks.change_source import CdcSource, ChangeSource
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.operators import job_files
from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator
from tests.support.logged.feed import LoggedTable, Versions

JOB = Path(__file__).with_name("job.py")


class LoggedSource:
    """Tables with logs of their own, all with the key ``id``."""

    kind: type[Feed] = LoggedTable

    def __init__(self, hook: MsSqlCdcHook) -> None:
        self._hook = hook
        self.unreadable: dict[str, CdcPermissionError] = {}
        self.found_more = False

    def discover(self, survey: Survey) -> Mapping[TableName, Sequence[Feed]]:
        logs = {
            name: (name, object_id, created, version)
            for name, object_id, created, version in self._hook.query(
                "SELECT t.name, t.object_id, t.create_date, l.version FROM sys.tables AS t"
                " JOIN logged.low AS l ON l.name = t.name WHERE t.schema_id = SCHEMA_ID(N'logged')"
            )
        }
        return {
            table.name: [self._feed(table.name, table.object_id, logs[table.name.table])]
            for table in survey.matches.tables
            if table.name.table in logs
        }

    def _feed(self, name: TableName, object_id: int, log: tuple[Any, ...]) -> LoggedTable:
        log_name, log_id, created, low = log
        columns = self._hook.query(
            "SELECT column_id, name, TYPE_NAME(system_type_id) AS type_name, max_length, precision, scale, is_nullable,"
            " collation_name FROM sys.columns WHERE object_id = %s",
            (object_id,),
        )
        return LoggedTable(
            log_name,
            log_id,
            name,
            object_id,
            created,
            tuple(
                Column(id_, id_, column, type_, length, precision, scale, bool(nullable), collation)
                for id_, column, type_, length, precision, scale, nullable, collation in sorted(columns)
            ),
            index_key=("id",),
            low=low,
        )

    def probe(
        self,
        after: Mapping[str, Position],
        *,
        status: DatabaseStatus | None = None,
        upto: Position | None = None,
        witnesses: Collection[Witness] = (),
    ) -> Probe:
        (row,) = self._hook.query("SELECT MAX(version) AS newest FROM logged.versions")
        newest = None if row[0] is None else Version(row[0])
        lows = self._hook.query(
            "SELECT t.object_id, l.version FROM logged.low AS l"
            " JOIN sys.tables AS t ON t.name = l.name AND t.schema_id = SCHEMA_ID(N'logged')"
        )
        cut = newest if upto is None else upto
        found: dict[str, Position] = {}
        for name, position in after.items():
            (last,) = self._hook.query(
                f"SELECT MAX(version) AS version FROM logged.[{name}] WHERE version > %s AND version <= %s",
                (position.sort_key, cut.sort_key if cut else 0),
            )
            if last[0] is not None:
                found[name] = Version(last[0])
        return Probe(cut, found, {object_id: Version(low) for object_id, low in lows}, lineage=Versions(newest))

    def recheck(self, after: Mapping[str, Position]) -> None:
        """Everything can be read."""

    def ddl(self, feeds: Iterable[Feed]) -> list[DdlChange]:
        return []

    def limit(
        self, after: Mapping[str, Position], upto: Position, *, transactions: int | None, rows: int | None
    ) -> Position:
        return upto

    def position_before(self, moment: datetime.datetime, timezone: str | None) -> Position:
        raise NotImplementedError

    def has_at_most(self, after: Mapping[str, Position], upto: Position, rows: int) -> bool:
        return False


class LoadOfTwoSources(MsSqlCdcLoadOperator):
    """The load, for tables of both sources."""

    def sources(self, hook: MsSqlCdcHook) -> Sequence[ChangeSource]:
        return (CdcSource(hook), LoggedSource(hook))

    def execute(self, context: Any) -> Any:
        # the job that Spark runs must know the second source, too
        own, job_files.JOB = job_files.JOB, JOB
        try:
            return super().execute(context)
        finally:
            job_files.JOB = own
