"""The submission of a load: its job spec, what spark-submit is told beside what the author says, and its receipt."""

from __future__ import annotations

import datetime
import os
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.configuration import AIRFLOW_HOME
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowNotFoundException, mask_secret

from airflow_provider_mssql_cdc.core import formats
from airflow_provider_mssql_cdc.core.exceptions import ConnectionSettingError, MsSqlCdcError, ReceiptMissingError
from airflow_provider_mssql_cdc.core.marker import TaskRun
from airflow_provider_mssql_cdc.core.position import Cut
from airflow_provider_mssql_cdc.core.receipt import Receipt
from airflow_provider_mssql_cdc.core.spec import DatabaseSpec, JobSpec, SourceSpec
from airflow_provider_mssql_cdc.core.table_entry import TableEntry
from airflow_provider_mssql_cdc.core.table_options import hashes, read_entries
from airflow_provider_mssql_cdc.core.target import Target
from airflow_provider_mssql_cdc.hooks import postgresql
from airflow_provider_mssql_cdc.hooks.extras import DEFAULT_PORT
from airflow_provider_mssql_cdc.hooks.jdbc import jdbc_url
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.hooks.parameters import seconds
from airflow_provider_mssql_cdc.operators import class_archive, installed, jars, job_files
from airflow_provider_mssql_cdc.operators.copying import seconds_of_run
from airflow_provider_mssql_cdc.operators.credentials import REDACTION, properties_file, property_of, redaction
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.schema_events import dropped_tables
from airflow_provider_mssql_cdc.operators.task_state import FOUND_KEY, TaskState

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Connection, Context

SPEC_KEY = "mssql_cdc_spec"
"""What a task keeps the path of its job spec by."""

_OURS = ("application", "application_args", "java_class")
"""Parameters of ``SparkSubmitOperator`` that the load says itself."""


@dataclass(frozen=True, slots=True)
class Call:
    """How spark-submit is called.

    :param connection: what Airflow's connection and the operator say in its place
    :param conf: settings on the command line
    :param properties: text of the properties file
    """

    connection: Mapping[str, Any]
    environment: Mapping[str, str]
    conf: Mapping[str, Any]
    properties: str

    def setting(self, name: str) -> str | None:
        """A Spark setting, as conf says or else the properties file."""
        return str(self.conf[name]) if name in self.conf else property_of(self.properties, name)

    @property
    def is_cluster(self) -> bool:
        """Whether the driver runs on another machine: of all that say so, that counts which counts for Spark."""
        said = self.connection["deploy_mode"] or self.setting("spark.submit.deployMode")
        return (said or self.environment.get("DEPLOY_MODE")) == "cluster"


class LoadSubmission(SparkSubmitOperator):
    """
    A ``SparkSubmitOperator`` of the load's job, one for each plan.

    Its parameters are those of ``MsSqlCdcLoadOperator`` that the job, its logins and its jars depend on, and those of
    ``SparkSubmitOperator``.
    """

    template_fields: Sequence[str] = (
        *(f for f in SparkSubmitOperator.template_fields if f not in _OURS),
        "tables",
        "target",
        "work_dir",
    )

    def __init__(
        self,
        *,
        tables: Sequence[str | TableEntry],
        target: str,
        mssql_conn_id: str,
        salt_conn_id: str | None,
        capture_timeout: datetime.timedelta,
        work_dir: str | None,
        connections: int,
        tables_at_once: int,
        slice_rows: int,
        copy_rows: int,
        copy_chunk_seconds: float | None,
        copy_seconds: datetime.timedelta | float | str | None,
        copy_rows_per_second: float | None,
        throttle_lag: datetime.timedelta | float | None,
        isolation: str,
        fetch_size: int,
        packages: str | None,
        **kwargs: Any,
    ) -> None:
        for refused in _OURS:
            if refused in kwargs:
                raise ValueError(f"{refused} is the load's own; it cannot be given")
        if kwargs.get("deploy_mode") == "cluster" and (work_dir is None or job_files.is_local(work_dir)):
            raise ValueError(
                "in cluster mode the driver runs on another machine: name a work_dir that Airflow and Spark both "
                "read, for instance s3a://bucket/mssql_cdc"
            )
        super().__init__(packages=formats.packages(str(target)) if packages is None else packages, **kwargs)
        self._own_packages = packages is None
        self.tables = tables
        self.target, self.mssql_conn_id = target, mssql_conn_id
        self.salt_conn_id = salt_conn_id
        self.capture_timeout = capture_timeout
        self.work_dir = work_dir
        self.connections, self.tables_at_once = connections, tables_at_once
        self.slice_rows = slice_rows
        self.copy_rows, self.copy_chunk_seconds = copy_rows, copy_chunk_seconds
        self.copy_seconds, self.isolation = copy_seconds, isolation
        self.copy_rows_per_second, self.throttle_lag = copy_rows_per_second, seconds(throttle_lag)
        self.fetch_size = fetch_size
        self._spec: JobSpec | None = None

    def _check_spark_connection(self) -> None:
        """Prove that there is the Airflow connection of Spark, in whose place spark-submit would be sent to YARN.

        :raises ConnectionSettingError: if there is none
        """
        try:
            MsSqlCdcHook.get_connection(self._conn_id)
        except AirflowNotFoundException as error:
            raise ConnectionSettingError(
                f"there is no Airflow connection {self._conn_id!r}, which says where Spark runs.",
                advice=f"Make it, for instance with `airflow connections add {self._conn_id} --conn-type spark "
                "--conn-host 'local[*]'`, or name another one by conn_id.",
            ) from error

    def _freeze(self, plan: RunPlan, upto: Cut, timezone: str | None, context: Context) -> JobSpec:
        """Write the job spec."""
        connection = MsSqlCdcHook.get_connection(self.mssql_conn_id)
        url, options = jdbc_url(connection)
        work_dir = self.work_dir or os.path.join(AIRFLOW_HOME, "mssql_cdc")
        job_files.remove_old(work_dir)
        job_files.remove_old_copies(work_dir)
        spec = JobSpec(
            id=uuid.uuid4().hex[:12],
            source=SourceSpec(
                server=f"{(connection.host or '').lower()}:{connection.port or DEFAULT_PORT}",
                database=plan.database,
                jdbc_url=url,
                options=options,
                timezone=timezone,
            ),
            tables=tuple(plan.specs),
            upto=upto,
            work_dir=work_dir,
            replay=plan.replay,
            connections=self.connections,
            tables_at_once=self.tables_at_once,
            slice_rows=self.slice_rows,
            copy_rows=self.copy_rows,
            copy_chunk_seconds=self.copy_chunk_seconds,
            copy_seconds=seconds_of_run(self.copy_seconds, context),
            copy_rows_per_second=self.copy_rows_per_second,
            throttle_lag=self.throttle_lag,
            isolation=self.isolation,
            fetch_size=self.fetch_size,
            capture_timeout=self.capture_timeout.total_seconds(),
            database=self._database(),
            witness=plan.witness,
            recovery_fork=plan.recovery_fork,
            run=_task_run(context),
            dropped=dropped_tables(plan),
        )
        job_files.write_spec(spec)
        return spec

    def submit_job(self, context: Context) -> str | None:
        """Submit the job, and remember its spec beside its id for the tries that follow."""
        submitted = super().submit_job(context)
        if self.durable and self._spec is not None:
            TaskState(context).set(SPEC_KEY, self._spec.path)
        return submitted

    def _submit(self, spec: JobSpec, context: Context, *, small: bool = False) -> Receipt:
        """Run the job, and return its receipt: that decides, not the exit code.

        :param small: the JVM is to start quickly
        """
        self._spec, secrets = spec, self._secrets()
        failure: Exception | None = None
        try:
            with self._submitting(spec, secrets, small=small):
                super().execute(context)
        except Exception as error:
            failure = self._explained(error)
        try:
            receipt = job_files.read_receipt(spec)
        except ReceiptMissingError as missing:
            may_still_run = failure is not None and TaskState(context).get(self.external_id_key) is not None
            if not may_still_run:
                self._forget_job(context, spec)
                job_files.remove(spec)
            raise failure or missing from None
        if failure is not None:
            self.log.warning("spark-submit failed after the job had written its receipt: %s", failure)
        self._forget_job(context, spec)
        job_files.remove(spec)
        return receipt

    def _explained(self, failure: Exception) -> Exception:
        """The failure of a submission; what is missing on this worker in its place, if something is."""
        if isinstance(failure, MsSqlCdcError) or self._hook is None:
            return failure
        connection = self._hook._connection
        found = installed.missing(connection["spark_binary"], self._environment(connection))
        missing = found or jars.unfetched(str(failure))
        if missing is not None:
            missing.__cause__ = failure
        return missing or failure

    def _database_connection(self) -> Connection | None:
        """The Airflow connection of the target, None where no connection names it."""
        target = Target.parse(self.target)
        return MsSqlCdcHook.get_connection(target.place[0]) if formats.FORMATS[target.format].in_database else None

    def _database(self) -> DatabaseSpec | None:
        connection = self._database_connection()
        return None if connection is None else postgresql.database(connection)

    def _salt(self) -> str | None:
        """The salt; None where nothing is hashed.

        :raises ConnectionSettingError: for a connection without one
        """
        if self.salt_conn_id is None or not hashes(read_entries(self.tables, salted=True)):
            return None
        salt: str | None = MsSqlCdcHook.get_connection(self.salt_conn_id).password
        if not salt:
            raise ConnectionSettingError(
                f"connection {self.salt_conn_id!r} has no password, which is to be the salt of hashes."
            )
        mask_secret(salt)
        return salt

    def _secrets(self) -> dict[str, str]:
        """The Spark properties that the logins of source and target, and the salt of hashes, come by."""
        connections = {"": MsSqlCdcHook.get_connection(self.mssql_conn_id), "target_": self._database_connection()}
        secrets = {}
        for prefix, connection in connections.items():
            if connection is None:
                continue
            if connection.password:
                mask_secret(connection.password)
            secrets[f"spark.mssql_cdc.{prefix}user"] = connection.login or ""
            secrets[f"spark.mssql_cdc.{prefix}password"] = connection.password or ""
        if salt := self._salt():
            secrets["spark.mssql_cdc.salt"] = salt
        return secrets

    def _forget_job(self, context: Context, spec: JobSpec | None = None) -> None:
        """Forget the submitted job: else each further try, also of a cleared task, would take it for its own.

        :param spec: of the job that has ended; one that another try has submitted meanwhile is not forgotten
        """
        state = TaskState(context)
        if spec is None or state.get(SPEC_KEY) == spec.path:
            state.forget(self.external_id_key, self._K8S_DRIVER_STATUS_KEY, SPEC_KEY, FOUND_KEY)

    @contextmanager
    def _submitting(self, spec: JobSpec, secrets: Mapping[str, str], *, small: bool = False) -> Iterator[None]:
        """Set what spark-submit is told for this job, and put back what the author gave.

        :param secrets: Spark properties that nobody else may read
        """
        changed = ("application_args", "py_files", "conf", "jars", "packages", "properties_file", "env_vars")
        given = {name: getattr(self, name) for name in changed}
        connection = self._get_hook()._connection
        environment = self._environment(connection)
        inherited = self.properties_file or installed.spark_defaults(connection["spark_binary"], environment)
        try:
            with properties_file(secrets, inherited) as path:
                self._set(spec, path, connection, environment, small=small)
                self._hook = None
                yield
        finally:
            for name, value in given.items():
                setattr(self, name, value)

    def _set(
        self,
        spec: JobSpec,
        properties: str,
        connection: Mapping[str, Any],
        environment: Mapping[str, str],
        *,
        small: bool,
    ) -> None:
        """Set what spark-submit is told for this job.

        :param properties: path of the properties file
        """
        self.application = str(job_files.JOB)
        self.application_args = ["--spec", spec.path]
        self.py_files = ",".join(filter(None, (self.py_files, job_files.code_path(spec))))
        self.properties_file = properties
        target = Target.parse(self.target)
        self.conf = {**formats.FORMATS[target.format].conf, **(self.conf or {})}
        if REDACTION in self.conf:
            # on the command line it would count more than what the properties file says
            self.conf[REDACTION] = redaction(str(self.conf[REDACTION]))
        call = Call(connection, environment, self.conf, Path(properties).read_text(encoding="utf-8"))
        if call.setting("spark.log.level") is None:
            self.conf["spark.log.level"] = "WARN"
        if str(connection["master"]).startswith("local"):
            # else Spark's Python is the first one on the PATH, which may lack pyspark
            self.conf.setdefault("spark.pyspark.python", sys.executable)
            self._listen_on_loopback(call)
        if not call.is_cluster and not _chooses_java(call):
            options = [class_archive.QUICK_START] if small else []
            if (archive := class_archive.found(connection["spark_binary"], environment)) is not None:
                options.append(class_archive.option(archive))
            if options:
                self.conf["spark.driver.extraJavaOptions"] = " ".join(options)
        if call.is_cluster and job_files.is_local(spec.work_dir):
            raise MsSqlCdcError(
                f"the job is submitted (by connection {self._conn_id!r}) in cluster mode, where the driver cannot "
                f"read {spec.work_dir}.",
                advice="Name a work_dir that Airflow and Spark both read, for instance s3a://bucket/mssql_cdc.",
            )
        if self._own_packages:
            self._add_jars(target, call)

    def _environment(self, connection: Mapping[str, Any]) -> dict[str, str]:
        """The environment of spark-submit: for Kubernetes, Airflow gives ``env_vars`` to the driver alone."""
        return {**os.environ, **({} if "k8s" in connection["master"] else self.env_vars or {})}

    def _listen_on_loopback(self, call: Call) -> None:
        """Keep driver and Spark UI of a local Spark from the network, where the author says nothing of them."""
        names = ("spark.driver.host", "spark.driver.bindAddress")
        if "SPARK_LOCAL_IP" not in call.environment and not any(map(call.setting, names)):
            self.env_vars = {**(self.env_vars or {}), "SPARK_LOCAL_IP": "127.0.0.1"}

    def _add_jars(self, target: Target, call: Call) -> None:
        """Hand the load's jars on by path, beside the author's; as packages where that is not possible."""
        needed = (*formats.FORMATS[target.format].packages, formats.JDBC_DRIVER)
        given = {name: value for name in jars.READ if (value := call.setting(name))}
        theirs = [package for each in given.get("spark.jars.packages", "").split(",") if (package := each.strip())]
        # what goes on the command line stands for what the settings say, not beside it
        self.packages = ",".join(dict.fromkeys((*theirs, *(package.coordinate for package in needed))))
        # the paths are of this machine; and beside packages, Ivy sees to it that no jar comes twice
        if call.is_cluster or theirs:
            return
        ivy = jars.Ivy(
            call.connection["spark_binary"],
            given,
            self._repositories or "",
            self.exclude_packages or "",
            call.environment,
        )
        if (ours := jars.paths(needed, ivy)) is not None:
            self.packages = None
            self.jars = ",".join(filter(None, (self.jars or given.get("spark.jars"), *ours)))

    def on_kill(self) -> None:
        """End the Spark application, and remove what it staged."""
        if self._hook is not None:
            super().on_kill()
        if self._spec is not None:
            job_files.remove(self._spec)


def _chooses_java(call: Call) -> bool:
    """Whether somebody sets options of the driver's JVM: a second choice of a garbage collector would end it."""
    if any(map(call.setting, jars.JAVA_OPTIONS)):
        return True
    # a file that is named with @ has options, too
    given = "".join(call.environment.get(name, "") for name in class_archive.JAVA_VARIABLES)
    if "-XX" in given or "@" in given:
        return True
    script = installed.spark_env(call.connection["spark_binary"], call.environment)
    text = script.read_text(encoding="utf-8", errors="replace") if script else ""
    return any(name in text for name in class_archive.JAVA_VARIABLES)


def _task_run(context: Context) -> TaskRun | None:
    return None if (ti := context.get("ti")) is None else TaskRun(ti.dag_id, ti.task_id, ti.run_id, ti.try_number)
