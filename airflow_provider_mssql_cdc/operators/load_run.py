"""One run of a load: plan, or take up what an earlier try submitted; believe the receipt, move the checkpoints."""

from __future__ import annotations

import abc
import dataclasses
import datetime
import time
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import (
    AirflowFailException,
    AirflowNotFoundException,
    Asset,
    AssetAlias,
    Variable,
)

from airflow_provider_mssql_cdc.core import formats
from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.exceptions import (
    CaptureLateError,
    CopyAskedError,
    FormatError,
    LoadFailedError,
    MsSqlCdcError,
    NewerFormatError,
)
from airflow_provider_mssql_cdc.core.interval import Edge, edges
from airflow_provider_mssql_cdc.core.receipt import Receipt
from airflow_provider_mssql_cdc.core.spec import JobSpec
from airflow_provider_mssql_cdc.core.summary import Summary, others
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.table_options import read_entries
from airflow_provider_mssql_cdc.core.target import check_template
from airflow_provider_mssql_cdc.hooks.change_source import ChangeSource
from airflow_provider_mssql_cdc.hooks.copy_params import ask_by_params
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.hooks.same_database import check_same_database
from airflow_provider_mssql_cdc.operators import checkpoints, job_files, midway
from airflow_provider_mssql_cdc.operators.agent_state import with_agent_state
from airflow_provider_mssql_cdc.operators.copy_events import KIND
from airflow_provider_mssql_cdc.operators.evolving import forget_unwanted, make_instances, to_make
from airflow_provider_mssql_cdc.operators.finding import RunPlan, plan_of_running_job
from airflow_provider_mssql_cdc.operators.gone import see_gone
from airflow_provider_mssql_cdc.operators.intents import Intents
from airflow_provider_mssql_cdc.operators.outcome import Outcome
from airflow_provider_mssql_cdc.operators.planning import plan_load
from airflow_provider_mssql_cdc.operators.replay import plan_replay
from airflow_provider_mssql_cdc.operators.request import Request, cut_given
from airflow_provider_mssql_cdc.operators.sourcing import sources_for
from airflow_provider_mssql_cdc.operators.submission import SPEC_KEY, LoadSubmission
from airflow_provider_mssql_cdc.operators.task_state import TaskState

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

OPERATIONS_ALIAS = " operations"
"""Ends the name of the alias to which events come that tell of no loaded rows, with ``kind`` in their extra."""


class LoadRun(LoadSubmission):
    """
    What a load does when it runs; ``MsSqlCdcLoadOperator`` says what is asked of it.
    """

    source: str
    table_name: str
    upto: str | None
    on_lag: str
    server_timezone: str | None
    replay: bool
    interval: tuple[Edge, Edge] | None
    target_suffix: str
    admin_conn_id: str | None
    enable_lock_timeout: float

    @abc.abstractmethod
    def request(self) -> Request:
        """What the author asks for."""

    def execute(self, context: Context) -> Summary:  # type: ignore[override]
        """Plan, load, believe the receipt, move the checkpoints.

        :raises LoadFailedError: if some table failed and a retry may help
        :raises AirflowFailException: if a retry is bound to fail again
        """
        try:
            return self._execute(context)
        except MsSqlCdcError as error:
            if not error.permanent:
                raise
            TaskState(context).end(self.external_id_key)
            raise AirflowFailException(str(error)) from error

    def _execute(self, context: Context) -> Summary:
        started = time.monotonic()
        self._check_spark_connection()
        store = CheckpointStore(Variable)
        request = dataclasses.replace(self.request(), asked=TaskState(context).begin())
        outcome = self._resumed(store, request, context) or self._planned(store, request, context)
        outcome = outcome.with_whole_commands()
        late = outcome.late if self.on_lag == "fail" else None
        now = datetime.datetime.now(datetime.UTC)
        succeeds = late is None and outcome.plan.refused is None
        written = [] if self.replay else outcome.checkpoints(now, succeeds=succeeds)
        # before the checkpoints say that all is told: this try may end before Airflow knows that it has succeeded
        ranges = TaskState(context).told(outcome.lsn_ranges(written))
        told = [] if self.replay else outcome.operations()
        operations = TaskState(context).told_operations([{"kind": event.kind, **event.extra} for event in told])
        checkpoints.save(store, written, outcome)
        summary = outcome.summary(time.monotonic() - started)
        context["ti"].xcom_push(key="summary", value=summary)
        for line in outcome.lines():
            self.log.info(line)
        if outcome.plan.lag is not None and not outcome.plan.lag.late:
            self.log.info(outcome.plan.lag.text)
        for warning in summary["warnings"]:
            self.log.warning(warning)
        if failures := outcome.failures():
            TaskState(context).keep_failed(failures)
            raise LoadFailedError(
                {table: reason for table, (reason, _) in failures.items()},
                permanent=all(permanent for _, permanent in failures.values()),
                others=others(summary),
                late=late,
            )
        self._emit(ranges, operations, outcome.plan, context)
        TaskState(context).end(self.external_id_key)
        if outcome.plan.refused is not None:
            # not before all is loaded
            raise outcome.plan.refused
        if late:
            raise CaptureLateError(f"what is there was loaded, but {late}")
        return summary

    def _resumed(self, store: CheckpointStore, request: Request, context: Context) -> Outcome | None:
        """Wait for the job that an earlier try submitted and that may still run, if there is one."""
        state = TaskState(context)
        if not self.durable or state.get(self.external_id_key) is None:
            return None
        path = state.get(SPEC_KEY)
        try:
            spec = job_files.read_spec(str(path))
        except NewerFormatError:
            # its job may still run, and what it does this version does not know
            raise
        except (OSError, FormatError) as error:
            # what it does, if it still runs, another job may do beside it
            self.log.warning("the spec %s of an earlier try cannot be read, so all is planned anew: %s", path, error)
            self._forget_job(context)
            return None
        self.log.info("an earlier try submitted %s; its receipt is waited for", path)
        with closing(MsSqlCdcHook(self.mssql_conn_id)) as hook:
            plan = plan_of_running_job(hook, store, request, spec, self.sources(hook))
        found = state.found()
        return Outcome(plan, spec, self._run(store, plan, spec, context), found)

    def _planned(self, store: CheckpointStore, request: Request, context: Context) -> Outcome:
        with closing(MsSqlCdcHook(self.mssql_conn_id)) as hook:
            refused = None if self.replay else self._ask_for_copies(hook, request, context)
            plan = self._plan(hook, store, request, context)
            plan.refused = refused
            plan.warnings += [str(refused)] if refused is not None else []
            if not self.replay:
                self._make_instances(plan, hook, store)
                checkpoints.store_given_up(store, plan)
                rows = checkpoints.rows_before(context)
                checkpoints.forget_failures(store, request, plan, context, rows)
                names = (name for row in rows for name in TableName.spelled(row["table"]))
                see_gone(plan, hook, store, request, names)
            for waiting in plan.waiting:
                self.log.info("%s: %s", waiting.name, waiting.reason)
            if plan.upto is None or not plan.specs:
                return Outcome(plan)
            spec = self._freeze(plan, plan.upto, self._timezone(hook), context)
            TaskState(context).keep_found(Outcome(plan).with_whole_commands().found())
        return Outcome(plan, spec, self._run(store, plan, spec, context))

    def _run(self, store: CheckpointStore, plan: RunPlan, spec: JobSpec, context: Context) -> Receipt:
        """Run the job; the checkpoints move already where it has loaded the windows and goes on with copies."""
        with midway.watching(spec, lambda found: checkpoints.save_windows(store, Outcome(plan, spec, found))):
            receipt = self._submit(spec, context, small=plan.small)
        return with_agent_state(receipt, self.mssql_conn_id)

    def _make_instances(self, plan: RunPlan, hook: MsSqlCdcHook, store: CheckpointStore) -> None:
        intents = Intents(store, plan)
        forget_unwanted(plan, intents)
        if not (to_make(plan) or intents.begun()):
            return
        if self.admin_conn_id is None:
            make_instances(plan, hook, intents, lock_timeout=self.enable_lock_timeout)
            return
        try:
            with closing(MsSqlCdcHook(self.admin_conn_id)) as admin:
                check_same_database(hook, admin)
                make_instances(plan, admin, intents, lock_timeout=self.enable_lock_timeout)
        except (MsSqlCdcError, AirflowNotFoundException) as error:
            plan.warnings.append(f"no capture instance is made by {self.admin_conn_id}: {error}")

    def _ask_for_copies(self, hook: MsSqlCdcHook, request: Request, context: Context) -> CopyAskedError | None:
        """Leave the requests for copies that the run's params ask for; why that is refused."""
        try:
            ask_by_params(
                context,
                Variable,
                lambda: hook.survey(request.patterns, request.exclude, captured=request.captured),
                request.of_table,
            )
        except CopyAskedError as error:
            self.log.error("no copy is asked for: %s", error)
            return error
        return None

    def _plan(self, hook: MsSqlCdcHook, store: CheckpointStore, request: Request, context: Context) -> RunPlan:
        if self.replay:
            check_template(self.table_name + self.target_suffix)
            return plan_replay(hook, store, request, self._interval(context), self.server_timezone, self.target_suffix)
        state = TaskState(context)
        given = state.cut(None if self.upto is None else cut_given(self.upto))
        plan = plan_load(hook, store, request, given, self.sources(hook))
        state.keep_cut(plan.upto)
        return plan

    def sources(self, hook: MsSqlCdcHook) -> Sequence[ChangeSource]:
        """What tables may be read from, the preferred ones first."""
        said = [entry.said or {} for entry in read_entries(self.tables, salted=True)]
        return sources_for(hook, {str(each.get("source", self.source)) for each in said})

    def _timezone(self, hook: MsSqlCdcHook) -> str | None:
        """The IANA zone of the server's clock, as far as it is known: a server's own name of it is none."""
        return self.server_timezone or ("UTC" if hook.server_timezone() == "UTC" else None)

    def _interval(self, context: Context) -> tuple[Edge, Edge]:
        if self.interval is not None:
            return edges(self.interval)
        return context.get("data_interval_start"), context.get("data_interval_end")

    def _emit(
        self,
        ranges: dict[str, dict[str, str | None]],
        operations: list[dict[str, Any]],
        plan: RunPlan,
        context: Context,
    ) -> None:
        """Emit one asset event with the LSN range of each table that gained rows, none where nothing was loaded.

        What copies went through is an event of another asset, so that it wakes nobody who waits for rows.
        """
        for outlet in self.outlets:
            if operations and isinstance(outlet, AssetAlias) and outlet.name.endswith(OPERATIONS_ALIAS):
                asset = Asset(name=self.target + OPERATIONS_ALIAS, uri=f"x-operations-{self.target}")
                # those that a task of an earlier version has kept tell of copies
                kinds = dict.fromkeys(event.get("kind", KIND) for event in operations)
                for kind in kinds:
                    events = [event for event in operations if event.get("kind", KIND) == kind]
                    told = {"kind": kind, "events": [{k: v for k, v in e.items() if k != "kind"} for e in events]}
                    context["outlet_events"][outlet].add(asset, extra=told)
            if ranges and isinstance(outlet, AssetAlias) and not outlet.name.endswith(OPERATIONS_ALIAS):
                extra: dict[str, Any] = {"tables": ranges, "upto": plan.upto.text if plan.upto else None}
                # the PostgreSQL provider refuses a URI of this scheme that names no table
                prefix = "x-" if self.target.startswith(f"{formats.POSTGRESQL}:") else ""
                context["outlet_events"][outlet].add(Asset(name=self.target, uri=prefix + self.target), extra=extra)
