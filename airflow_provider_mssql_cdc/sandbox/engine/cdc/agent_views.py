"""SQL Server Agent as clients see it: its service, jobs, sessions and job activity."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from airflow_provider_mssql_cdc.sandbox.engine.cdc.jobs import Job
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation, relation

_STATES = {True: (4, "Running"), False: (1, "Stopped")}


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
    description = (
        "servicename nvarchar(256)!, startup_type int, startup_type_desc nvarchar(256)!, status int, "
        "status_desc nvarchar(256)!, process_id int, last_startup_time datetimeoffset(7), "
        "service_account nvarchar(256)!, filename nvarchar(256)!, is_clustered nvarchar(1)!, "
        "cluster_nodename nvarchar(256)"
    )
    running = {} if agent_running is None else {"SQL Server": True, "SQL Server Agent": agent_running}
    rows = [
        (f"{name} (MSSQLSERVER)", 2, "Automatic", *_STATES[state], None, None, "LocalSystem", "", "N", None)
        for name, state in running.items()
    ]
    return relation(description, rows)


def sysjobs(jobs: Sequence[Job], created: datetime.datetime) -> Relation:
    """msdb.dbo.sysjobs"""
    description = (
        "job_id uniqueidentifier!, originating_server_id int!, name sysname!, enabled tinyint!, "
        "description nvarchar(512), start_step_id int!, date_created datetime!, date_modified datetime!, "
        "version_number int!"
    )
    rows = [(job.job_id, 0, job.name, 1, f"CDC {job.job_type} job", 1, created, created, 1) for job in jobs]
    return relation(description, rows)


def sysjobactivity(activities: Sequence[Activity]) -> Relation:
    """msdb.dbo.sysjobactivity"""
    description = (
        "session_id int!, job_id uniqueidentifier!, run_requested_date datetime, run_requested_source sysname, "
        "queued_date datetime, start_execution_date datetime, last_executed_step_id int, "
        "last_executed_step_date datetime, stop_execution_date datetime, job_history_id int, "
        "next_scheduled_run_date datetime"
    )
    rows = [
        (each.session_id, each.job_id, each.start, None, None, each.start, None, None, each.stop, None, None)
        for each in activities
    ]
    return relation(description, rows)


def syssessions(starts: Sequence[datetime.datetime]) -> Relation:
    """msdb.dbo.syssessions"""
    return relation("session_id int!, agent_start_date datetime!", list(enumerate(starts, 1)))
