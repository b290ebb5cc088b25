"""The procedures on the rows of msdb.dbo.cdc_jobs."""

from __future__ import annotations

from airflow_provider_mssql_cdc.sandbox.engine.cdc.errors import error
from airflow_provider_mssql_cdc.sandbox.engine.cdc.jobs import Settings, changed_job, help_jobs, job_type_of, new_job
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation
from airflow_provider_mssql_cdc.sandbox.engine.cdc.state import CdcState


class JobTable(CdcState):
    """The job procedures of ``CdcDatabase``."""

    def help_jobs(self) -> Relation:
        """sys.sp_cdc_help_jobs

        :raises SqlError: 22901
        """
        self._require_enabled("sp_cdc_help_jobs")
        return help_jobs(self.jobs)

    def add_job(self, job_type: str | None, settings: Settings | None = None) -> None:
        """sys.sp_cdc_add_job; starting it is up to the Agent.

        :raises SqlError: 22901, 22992, 22836 where the job exists, and what ``Settings.check`` raises
        """
        with self._lock:
            self._require_enabled("sp_cdc_add_job")
            wanted = job_type_of(job_type)
            job = new_job(self.name, wanted, settings or Settings(), self.switches)
            if wanted in self._jobs:
                raise error(22836, wanted, procedure="sp_cdc_add_job_internal")
            self._jobs[wanted] = job

    def change_job(self, job_type: str | None, settings: Settings) -> None:
        """sys.sp_cdc_change_job; a running job keeps what it started with.

        :raises SqlError: 22901, 22992, 22997, and what ``Settings.check`` raises
        """
        with self._lock:
            self._require_enabled("sp_cdc_change_job")
            wanted = job_type_of(job_type)
            self._jobs[wanted] = changed_job(self._job(wanted), settings)

    def drop_job(self, job_type: str | None) -> None:
        """sys.sp_cdc_drop_job

        :raises SqlError: 22901, 22992, 22997
        """
        with self._lock:
            self._require_enabled("sp_cdc_drop_job")
            wanted = job_type_of(job_type)
            self._job(wanted)
            del self._jobs[wanted]
        self._drop_from_runner([wanted])
