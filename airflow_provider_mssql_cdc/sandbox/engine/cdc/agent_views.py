"""SQL Server Agent as clients see it: its service, jobs, sessions and job activity."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from airflow_provider_mssql_cdc.sandbox.engine.cdc.jobs import Job
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation, relation
from airflow_provider_mssql_cdc.sandbox.protocol import Column
from airflow_provider_mssql_cdc.sandbox.types import SqlType

_INT, _TINYINT, _DATETIME = SqlType("int"), SqlType("tinyint"), SqlType("datetime")
_NAME, _UNIQUEIDENTIFIER = SqlType("sysname"), SqlType("uniqueidentifier")
_STOPPED, _RUNNING, _AUTOMATIC = 1, 4, 2


@dataclass(slots=True, eq=False)
class Activity:
    """One run of a job.

    :param session_id: of the Agent, from 1
    :param stop: None while it runs
    """

    job_id: str
    session_id: int
    start: datetime.datetime
    stop: datetime.datetime | None = None


def services(agent_running: bool | None) -> Relation:
    """sys.dm_server_services.

    :param agent_running: None where nothing can be seen
    """
    text = SqlType("nvarchar", 256)
    columns = [
        Column("servicename", text, nullable=False),
        Column("startup_type", _INT),
        Column("startup_type_desc", text, nullable=False),
        Column("status", _INT),
        Column("status_desc", text, nullable=False),
        Column("process_id", _INT),
        Column("last_startup_time", SqlType("datetimeoffset", scale=7)),
        Column("service_account", text, nullable=False),
        Column("filename", text, nullable=False),
        Column("is_clustered", SqlType("nvarchar", 1), nullable=False),
        Column("cluster_nodename", text),
    ]
    if agent_running is None:
        return relation(columns, [])
    rows = []
    for name, running in (("SQL Server", True), ("SQL Server Agent", agent_running)):
        status = (_RUNNING, "Running") if running else (_STOPPED, "Stopped")
        startup = (_AUTOMATIC, "Automatic")
        rows.append((f"{name} (MSSQLSERVER)", *startup, *status, None, None, "LocalSystem", "", "N", None))
    return relation(columns, rows)


def sysjobs(jobs: Sequence[Job], created: datetime.datetime) -> Relation:
    """msdb.dbo.sysjobs"""
    columns = [
        Column("job_id", _UNIQUEIDENTIFIER, nullable=False),
        Column("originating_server_id", _INT, nullable=False),
        Column("name", _NAME, nullable=False),
        Column("enabled", _TINYINT, nullable=False),
        Column("description", SqlType("nvarchar", 512)),
        Column("start_step_id", _INT, nullable=False),
        Column("date_created", _DATETIME, nullable=False),
        Column("date_modified", _DATETIME, nullable=False),
        Column("version_number", _INT, nullable=False),
    ]
    rows = [
        (
            job.job_id,
            0,
            job.name,
            1,
            f"CDC {job.job_type} job",
            1,
            created,
            created,
            1,
        )
        for job in jobs
    ]
    return relation(columns, rows)


def sysjobactivity(activities: Sequence[Activity]) -> Relation:
    """msdb.dbo.sysjobactivity"""
    columns = [
        Column("session_id", _INT, nullable=False),
        Column("job_id", _UNIQUEIDENTIFIER, nullable=False),
        Column("run_requested_date", _DATETIME),
        Column("run_requested_source", SqlType("sysname")),
        Column("queued_date", _DATETIME),
        Column("start_execution_date", _DATETIME),
        Column("last_executed_step_id", _INT),
        Column("last_executed_step_date", _DATETIME),
        Column("stop_execution_date", _DATETIME),
        Column("job_history_id", _INT),
        Column("next_scheduled_run_date", _DATETIME),
    ]
    rows = [
        (each.session_id, each.job_id, each.start, None, None, each.start, None, None, each.stop, None, None)
        for each in activities
    ]
    return relation(columns, rows)


def syssessions(starts: Sequence[datetime.datetime]) -> Relation:
    """msdb.dbo.syssessions"""
    columns = [Column("session_id", _INT, nullable=False), Column("agent_start_date", _DATETIME, nullable=False)]
    return relation(columns, list(enumerate(starts, 1)))
