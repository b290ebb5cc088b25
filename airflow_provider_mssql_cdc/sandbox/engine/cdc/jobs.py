"""The capture and cleanup jobs of one database, as msdb.dbo.cdc_jobs describes them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, fields, replace

from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation, relation
from airflow_provider_mssql_cdc.sandbox.engine.cdc.switches import Switches
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError

CAPTURE, CLEANUP = "capture", "cleanup"
_LONGEST_POLLING = 86_400  # seconds; not reached
_LONGEST_RETENTION = 52_594_800  # minutes
_DEFAULT_MAXSCANS, _DEFAULT_POLLING, _DEFAULT_RETENTION = 10, 5, 4320

_SETTINGS = "maxtrans int, maxscans int, continuous bit, pollinginterval bigint, retention bigint, threshold bigint"


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
            raise SqlError.of(22996)
        if job_type == CAPTURE and (self.retention is not None or self.threshold is not None):
            raise SqlError.of(22995)
        for value, low, high, number in (
            (self.continuous, 0, 1, 22998),
            (self.pollinginterval, 0, _LONGEST_POLLING - 1, 22990),
            (self.maxtrans, 1, None, 22991),
            (self.maxscans, 1, None, 22970),
            (self.retention, 1, _LONGEST_RETENTION, 22994),
            (self.threshold, 1, None, 22850),
        ):
            if value is not None and not (low <= value and (high is None or value <= high)):
                raise SqlError.of(number)


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
        capture = self.maxtrans, self.maxscans, self.continuous, self.pollinginterval
        return *capture, self.retention, self.threshold


def job_type_of(text: str | None) -> str:
    """A job type as given, trimmed and in lower case.

    :raises SqlError: 22992 where it is neither capture nor cleanup
    """
    job_type = "" if text is None else text.strip().lower()
    if job_type not in (CAPTURE, CLEANUP):
        raise SqlError.of(22992, text)
    return job_type


def new_job(database: str, job_type: str, given: Settings, switches: Switches) -> Job:
    """A job with SQL Server's defaults for what is not given."""
    given.check(job_type)
    job = Job(str(uuid.uuid4()).upper(), job_type, f"cdc.{database}_{job_type}")
    if job_type == CLEANUP:
        defaults = Settings(retention=_DEFAULT_RETENTION, threshold=switches.default_threshold)
    else:
        continuous = given.continuous != 0
        polling = _DEFAULT_POLLING if continuous else 0
        defaults = Settings(switches.default_maxtrans, _DEFAULT_MAXSCANS, int(continuous), polling)
    return _with(_with(job, defaults), given)


def changed_job(job: Job, given: Settings) -> Job:
    """The job with what was given changed: not continuous means no polling, and polling means continuous."""
    given.check(job.job_type)
    continuous, polling = given.continuous, given.pollinginterval
    if polling and continuous is None:
        continuous = 1
    if continuous == 0:
        polling = 0
    return _with(job, replace(given, continuous=continuous, pollinginterval=polling))


def _with(job: Job, given: Settings) -> Job:
    """The job with what is given changed."""
    values = {each.name: getattr(given, each.name) for each in fields(given)}
    changed = replace(job, **{name: value for name, value in values.items() if value is not None})
    return replace(changed, continuous=bool(changed.continuous))


def cdc_jobs(database_id: int, jobs: list[Job]) -> Relation:
    """msdb.dbo.cdc_jobs, the rows of one database."""
    description = f"database_id int!, job_type nvarchar(20), job_id uniqueidentifier, {_SETTINGS}"
    return relation(description, [(database_id, job.job_type, job.job_id, *job.settings()) for job in jobs])


def help_jobs(jobs: list[Job]) -> Relation:
    """What sp_cdc_help_jobs returns."""
    description = f"job_id uniqueidentifier, job_type nvarchar(20), job_name sysname, {_SETTINGS}"
    return relation(description, [(job.job_id, job.job_type, job.name, *job.settings()) for job in jobs])
