"""The capture and cleanup jobs of one database, as msdb.dbo.cdc_jobs describes them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

from airflow_provider_mssql_cdc.sandbox.engine.cdc.errors import error
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation, relation
from airflow_provider_mssql_cdc.sandbox.engine.cdc.switches import Switches
from airflow_provider_mssql_cdc.sandbox.protocol import Column
from airflow_provider_mssql_cdc.sandbox.types import SqlType

CAPTURE, CLEANUP = "capture", "cleanup"
_LONGEST_POLLING = 86_400  # seconds; not reached
_LONGEST_RETENTION = 52_594_800  # minutes
_DEFAULT_MAXSCANS, _DEFAULT_POLLING, _DEFAULT_RETENTION = 10, 5, 4320

_SETTINGS = [
    Column("maxtrans", SqlType("int")),
    Column("maxscans", SqlType("int")),
    Column("continuous", SqlType("bit")),
    Column("pollinginterval", SqlType("bigint")),
    Column("retention", SqlType("bigint")),
    Column("threshold", SqlType("bigint")),
]
_JOB_ID, _JOB_TYPE = (
    Column("job_id", SqlType("uniqueidentifier")),
    Column("job_type", SqlType("nvarchar", 20)),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What sp_cdc_add_job and sp_cdc_change_job take; None where not given.

    :param pollinginterval: seconds
    :param retention: minutes
    """

    maxtrans: int | None = None
    maxscans: int | None = None
    continuous: int | None = None
    pollinginterval: int | None = None
    retention: int | None = None
    threshold: int | None = None

    def check(self, job_type: str) -> None:
        """:raises SqlError: 22996, 22995, 22998, 22990, 22991, 22970, 22994, 22850"""
        capture = (self.maxtrans, self.maxscans, self.continuous, self.pollinginterval)
        if job_type == CLEANUP and any(value is not None for value in capture):
            raise error(22996)
        if job_type == CAPTURE and (self.retention is not None or self.threshold is not None):
            raise error(22995)
        if self.continuous not in (None, 0, 1):
            raise error(22998)
        if self.pollinginterval is not None and not 0 <= self.pollinginterval < _LONGEST_POLLING:
            raise error(22990)
        if self.maxtrans is not None and self.maxtrans <= 0:
            raise error(22991)
        if self.maxscans is not None and self.maxscans <= 0:
            raise error(22970)
        if self.retention is not None and not 0 < self.retention <= _LONGEST_RETENTION:
            raise error(22994)
        if self.threshold is not None and self.threshold <= 0:
            raise error(22850)


@dataclass(frozen=True, slots=True)
class Job:
    """A row of msdb.dbo.cdc_jobs; the settings of the other kind of job are 0."""

    job_id: str
    job_type: str
    name: str
    maxtrans: int = 0
    maxscans: int = 0
    continuous: bool = False
    pollinginterval: int = 0
    retention: int = 0
    threshold: int = 0

    def settings(self) -> tuple[int, int, bool, int, int, int]:
        """The tunable values, in the order of the table."""
        return (
            self.maxtrans,
            self.maxscans,
            self.continuous,
            self.pollinginterval,
            self.retention,
            self.threshold,
        )


def job_type_of(text: str | None) -> str:
    """A job type as given, trimmed and in lower case.

    :raises SqlError: 22992 where it is neither capture nor cleanup
    """
    job_type = "" if text is None else text.strip().lower()
    if job_type not in (CAPTURE, CLEANUP):
        raise error(22992, text)
    return job_type


def new_job(database: str, job_type: str, given: Settings, switches: Switches) -> Job:
    """A job with SQL Server's defaults for what is not given."""
    given.check(job_type)
    job_id, name = str(uuid.uuid4()).upper(), f"cdc.{database}_{job_type}"
    if job_type == CLEANUP:
        return Job(
            job_id,
            CLEANUP,
            name,
            retention=_or(given.retention, _DEFAULT_RETENTION),
            threshold=_or(given.threshold, switches.default_threshold),
        )
    continuous = given.continuous != 0
    return Job(
        job_id,
        CAPTURE,
        name,
        maxtrans=_or(given.maxtrans, switches.default_maxtrans),
        maxscans=_or(given.maxscans, _DEFAULT_MAXSCANS),
        continuous=continuous,
        pollinginterval=_or(given.pollinginterval, _DEFAULT_POLLING if continuous else 0),
    )


def changed_job(job: Job, given: Settings) -> Job:
    """The job with what was given changed: not continuous means no polling, and polling means continuous."""
    given.check(job.job_type)
    continuous, polling = given.continuous, given.pollinginterval
    if polling and continuous is None:
        continuous = 1
    if continuous == 0:
        polling = 0
    return replace(
        job,
        maxtrans=_or(given.maxtrans, job.maxtrans),
        maxscans=_or(given.maxscans, job.maxscans),
        continuous=job.continuous if continuous is None else bool(continuous),
        pollinginterval=_or(polling, job.pollinginterval),
        retention=_or(given.retention, job.retention),
        threshold=_or(given.threshold, job.threshold),
    )


def _or(given: int | None, default: int) -> int:
    return default if given is None else given


def cdc_jobs(database_id: int, jobs: list[Job]) -> Relation:
    """msdb.dbo.cdc_jobs, the rows of one database."""
    columns = [Column("database_id", SqlType("int"), nullable=False), _JOB_TYPE, _JOB_ID, *_SETTINGS]
    return relation(columns, [(database_id, job.job_type, job.job_id, *job.settings()) for job in jobs])


def help_jobs(jobs: list[Job]) -> Relation:
    """What sp_cdc_help_jobs returns."""
    columns = [_JOB_ID, _JOB_TYPE, Column("job_name", SqlType("sysname")), *_SETTINGS]
    return relation(columns, [(job.job_id, job.job_type, job.name, *job.settings()) for job in jobs])
