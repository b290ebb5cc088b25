"""The copy operator: asks for copies of tables that a load loads, and waits until the load has done them."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.common.compat.sdk import AirflowFailException, BaseOperator, Variable, conf

from airflow_provider_mssql_cdc.core.checkpoint import Identity
from airflow_provider_mssql_cdc.core.copy_asking import ACTIONS, START, CopyAsking
from airflow_provider_mssql_cdc.core.exceptions import CopyAskedError, MsSqlCdcError
from airflow_provider_mssql_cdc.core.lag import MAX_LAG
from airflow_provider_mssql_cdc.core.position import Version
from airflow_provider_mssql_cdc.core.shapes import HISTORY
from airflow_provider_mssql_cdc.core.table_entry import TableEntry
from airflow_provider_mssql_cdc.core.table_options import is_said
from airflow_provider_mssql_cdc.core.target import TABLE_NAME, check_template
from airflow_provider_mssql_cdc.hooks.copies_asked import COMPLETED, CopiesAsked
from airflow_provider_mssql_cdc.hooks.copy_params import are_of_one_task, conditions_for, copy_id, identities_of
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.hooks.parameters import check_literals, seconds
from airflow_provider_mssql_cdc.hooks.watch import WatchRequest
from airflow_provider_mssql_cdc.triggers.copy import MsSqlCdcCopyTrigger

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context


class MsSqlCdcCopyOperator(BaseOperator):
    """
    Ask for a copy of tables that a load has loaded, and wait until that load has done it.

    It reads no rows and starts no Spark: it leaves a request beside the checkpoint of each table, as ``mssql-cdc copy``
    does. The next run of the load copies the table, compares its targets with it, and writes what differs. Put it into
    a DAG of its own: the load's next run may be what it waits for.

    Its tries ask for one copy; a task that is cleared asks for another. If the task ends early the request stays:
    ``mssql-cdc copy stop`` takes it back.

    :param tables: as for the load: patterns, or entries with ``table_name`` where the load's have one (templated)
    :param target: as for the load (templated)
    :param table_name: as for the load
    :param mssql_conn_id: as for the load
    :param exclude: patterns of tables to leave out (templated)
    :param where: of ``start``: conditions of the rows that are compared, as an entry of the load's ``tables`` has them;
        None for all rows (templated)
    :param action: ``start``, ``pause``, ``resume`` or ``stop`` (templated)
    :param wait_for_completion: of ``start``: until all copies have ended; else the task ends when they are asked for
    :param poll_interval: seconds between two looks at Airflow Variables
    :param deferrable: wait in the triggerer, for as long as ``execution_timeout``; by default ``[operators]
        default_deferrable``

    :return: table to how its copy ended, ``COMPLETED``; of a task that does not wait, to the id of its copy
    """

    template_fields: Sequence[str] = ("tables", "target", "exclude", "where", "action")

    def __init__(
        self,
        *,
        tables: Sequence[str | TableEntry],
        target: str,
        table_name: str = TABLE_NAME,
        mssql_conn_id: str = "mssql_default",
        exclude: Sequence[str] = (),
        where: Sequence[Sequence[Any]] | None = None,
        action: Literal["start", "pause", "resume", "stop"] = "start",
        wait_for_completion: bool = True,
        poll_interval: datetime.timedelta | float = 60.0,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        check_literals(tables, exclude, target)
        check_template(table_name)
        if is_said(action) and action not in ACTIONS:
            raise ValueError(f"action={action!r}: expected one of {', '.join(ACTIONS)}")
        interval = seconds(poll_interval) or 0.0
        if interval <= 0:
            raise ValueError(f"poll_interval={poll_interval}: expected more than 0 s")
        super().__init__(**kwargs)
        self.tables = tables
        self.target = target
        self.table_name = table_name
        self.mssql_conn_id = mssql_conn_id
        self.exclude = exclude
        self.where = where
        self.action = action
        self.wait_for_completion = wait_for_completion
        self.poll_interval = interval
        self.deferrable = deferrable

    def execute(self, context: Context) -> dict[str, str]:
        """Leave the requests; wait.

        :raises AirflowFailException: if there is nothing to do, a request stands in the way, or a copy ended otherwise
        """
        try:
            if self.action not in ACTIONS:
                raise CopyAskedError(f"action={self.action!r}: expected one of {', '.join(ACTIONS)}.")
            copies = self._ask(context)
            if self.action != START or not self.wait_for_completion:
                return {str(each.table): id_ for each, id_ in copies.ids.items()}
            if self.deferrable:
                self._defer(copies)
            return self._ended(self._wait(copies))
        except MsSqlCdcError as error:
            if not error.permanent:
                raise
            raise AirflowFailException(str(error)) from error

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, str]:
        """What the trigger saw.

        :raises AirflowFailException: if a copy ended otherwise than ``COMPLETED``, or is no longer asked for
        """
        if event["status"] != "success":
            raise AirflowFailException(event["message"])
        return self._ended(event["endings"])

    def _ask(self, context: Context) -> CopiesAsked:
        asking = CopyAsking(Variable)
        tables, where = self._tables(asking)
        if self.action == START:
            name = self._name(context, asking)
            ids = {each: name(each) for each in tables}
            asking.ask_once(tables, ids.__getitem__, where)
            self.log.info("a copy is asked for of %s", ", ".join(str(each.table) for each in tables))
            return CopiesAsked(ids)
        try:
            asked = asking.ask(self.action, tables)
        except CopyAskedError as error:
            if context["ti"].try_number <= 1:
                raise
            # an earlier try may have asked, and ended before it could say so
            self.log.warning("%s: %s", self.action, error)
            asked = []
        for each in tables:
            if each not in asked:
                self.log.warning("%s: nothing to %s", each, self.action)
        self.log.info("%s: asked for %s", self.action, ", ".join(str(each.table) for each in asked))
        standing = map(asking.standing, asked)
        return CopiesAsked({each.identity: each.request.id if each.request else "" for each in standing})

    def _tables(self, asking: CopyAsking) -> tuple[list[Identity], str]:
        """The tables, each of which a load has loaded, or tried to, and the conditions of their rows.

        :raises CopyAskedError: naming those that no load has; for conditions that cannot be judged
        """
        request = WatchRequest.of(
            mssql_conn_id=self.mssql_conn_id,
            tables=self.tables,
            exclude=self.exclude,
            target=self.target,
            # a target that takes no other takes this one; checkpoints do not tell shapes apart
            shapes=(HISTORY,),
            table_name=self.table_name,
            on_disabled="fail",
            max_idle=None,
            max_lag=MAX_LAG.total_seconds(),
            on_lag="warn",
        )
        with closing(MsSqlCdcHook(self.mssql_conn_id)) as hook:
            survey = hook.survey(request.patterns, request.exclude, captured=request.captured)
        if survey.missing:
            names = ", ".join(str(each) for each in survey.missing)
            raise CopyAskedError(f"{names}: there is no such table, or the login does not see it.")
        found = identities_of(
            survey,
            None,
            lambda name, numbers: request.of_table(survey.status.name, name, numbers),
            f"task {self.task_id}",
        )
        known = {each: asking.standing(each).checkpoint for each in found}
        sinks = [sink for checkpoint in known.values() if checkpoint for sink in checkpoint.loaded.values()]
        if not survey.status.cdc_enabled and not any(isinstance(sink.position, Version) for sink in sinks):
            raise CopyAskedError(
                f"change data capture is off for {survey.status.name}: no load can copy beside changes."
            )
        unknown = [each for each, checkpoint in known.items() if checkpoint is None]
        if unknown:
            raise CopyAskedError(
                f"no load has {', '.join(map(str, unknown))} by connection {self.mssql_conn_id}.",
                advice="Give tables, target, table_name and mssql_conn_id as the load has them. A table that no load "
                "has begun is copied by its first load.",
            )
        return found, conditions_for(survey, found, self.where if self.action == START else None)

    def _name(self, context: Context, asking: CopyAsking) -> Callable[[Identity], str]:
        """The ids of the copies: the same for all tries of a task; others once it was cleared and they have ended."""
        ti = context["ti"]

        def name(table: Identity) -> str:
            # clearing a task gives it all of its retries anew, on top of the tries that it had
            id_ = copy_id(ti.dag_id, ti.task_id, ti.run_id, ti.map_index, table.short, ti.max_tries)
            found = asking.standing(table)
            if found.request is not None and found.ending is None and are_of_one_task(found.request.id, id_):
                return found.request.id
            return id_

        return name

    def _wait(self, copies: CopiesAsked) -> Mapping[str, str]:
        said = ""
        while not (found := copies.look(Variable)).have_ended:
            if (text := str(found)) != said:
                self.log.info("waiting for %s", text)
                said = text
            time.sleep(self.poll_interval)
        return found.endings

    def _defer(self, copies: CopiesAsked) -> None:
        """Leave the waiting to the triggerer, unless nothing is to be waited for."""
        if copies.look(Variable).have_ended:
            return
        self.defer(
            trigger=MsSqlCdcCopyTrigger(copies=copies.to_data(), poll_interval=self.poll_interval),
            method_name="execute_complete",
            # Airflow heeds ``execution_timeout`` of a deferred task in no other way
            timeout=self.execution_timeout,
        )

    def _ended(self, endings: Mapping[str, str]) -> dict[str, str]:
        """How the copies ended.

        :raises AirflowFailException: if one of them was stopped or aborted: another try would find the same
        """
        for table, how in endings.items():
            self.log.info("%s: %s", table, how)
        failed = {table: how for table, how in endings.items() if how != COMPLETED}
        if failed:
            raise AirflowFailException("; ".join(f"the copy of {table} ended: {how}" for table, how in failed.items()))
        return dict(endings)
