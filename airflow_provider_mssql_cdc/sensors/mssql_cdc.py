"""The sensor: waits until there is something to load, and hands on the cut."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow.providers.common.compat.sdk import (
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSkipException,
    BaseSensorOperator,
    PokeReturnValue,
    Variable,
    conf,
)

from airflow_provider_mssql_cdc.core.entry_values import CDC, SOURCES
from airflow_provider_mssql_cdc.core.exceptions import CopyAskedError, MsSqlCdcError
from airflow_provider_mssql_cdc.core.lag import MAX_LAG
from airflow_provider_mssql_cdc.core.shapes import check_shapes
from airflow_provider_mssql_cdc.core.table_entry import TableEntry
from airflow_provider_mssql_cdc.core.target import TABLE_NAME, check_template
from airflow_provider_mssql_cdc.hooks.change_source import ChangeSource
from airflow_provider_mssql_cdc.hooks.copy_params import ask_by_params, loads_of, tables_asked
from airflow_provider_mssql_cdc.hooks.lag_watch import LagWatch
from airflow_provider_mssql_cdc.hooks.looking import poll
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.hooks.parameters import check_literals, lag_allowed, listed, seconds, without_load_only
from airflow_provider_mssql_cdc.hooks.position_watch import PositionWatch
from airflow_provider_mssql_cdc.hooks.watch import ON_DISABLED, Watch
from airflow_provider_mssql_cdc.triggers.mssql_cdc import (
    MsSqlCdcTrigger,
    is_permanent,
    payload,
    watch_of,
    watch_request,
)
from airflow_provider_mssql_cdc.triggers.polling import BackOff, utc_now

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context


_LAG_TOLD = "mssql_cdc_lag_told"
_ASKING = 6
"""Looks that a deferrable task does at most until it has asked for copies: a minute, if all of them fail."""


class MsSqlCdcSensor(BaseSensorOperator):
    """
    Wait until a table of the group has changes that are not loaded yet, or was never loaded.

    Parameters of the load that only say how to load (``salt_conn_id``, ``on_gap``, ``max_rows`` ..; all of
    ``hooks.parameters.LOAD_ONLY``) are accepted and not used, so that both can be given the same ``**group``.

    A table that is named without ``*`` and is not there calls for one load, which says so. One whose last run failed
    for good is named in the log when the sensor begins, and calls for a run only when its capture instance or schema
    changes, or after ``max_idle``; at once where a person asks for the run, who started it by hand or has cleared this
    task. Airflow does not tell of a task that was cleared while it ran: that one goes on waiting.

    While the capture is late the sensor keeps waiting, and says so when it begins to wait and once per ``max_lag``;
    with ``on_lag="fail"`` it fails at once.

    With ``after`` in the place of ``target`` it waits for people with a job of their own, without checkpoints: until a
    table of the group has a change above that position, or, without ``tables``, max LSN is above it. It returns the new
    position, which is the next run's ``after``. What was purged above ``after`` ends the wait, too.

    :param tables: patterns such as ``sales.orders`` or ``sales.*``; a bare name means the default schema (templated)
    :param target: ``iceberg://catalog/namespace``, as for the load (templated)
    :param after: commit LSN, in the place of ``target``: ``0x0000002D00000580001D`` or ``0000002d:00000580:001d``
        (templated)
    :param shapes: as for the load
    :param table_name: as for the load
    :param mssql_conn_id: Airflow connection of type ``mssql``
    :param exclude: patterns of tables to leave out (templated)
    :param source: as for the load
    :param on_disabled: for a matched table that its source does not capture or track: ``fail`` calls for one load,
        which fails, ``skip`` does not wait for it, ``enable`` calls for a load, which enables it. Where all tables are
        to be read by change data capture, and it is off for the whole database, only ``enable`` does not fail at once
    :param max_idle: seconds or timedelta after which the cut is handed on though nothing happened, so that checkpoints
        do not fall behind the retention; by default the smaller of six hours and a tenth of the retention, an hour
        where that is unknown
    :param max_lag: as for the load; seconds or timedelta
    :param on_lag: what to do when the capture is late: ``warn`` or ``fail``
    :param poll_interval: seconds between two looks; also for ``mode="poke"``, unless ``poke_interval`` is given
    :param deferrable: wait in the triggerer; by default ``[operators] default_deferrable``

    :return: the cut, an LSN as text, for the load's ``upto``, with a version of Change Tracking where tables are read
        by that; None where nothing at all was ever captured
    """

    _trigger: ClassVar[type[MsSqlCdcTrigger]] = MsSqlCdcTrigger
    """Waits in its place, and says which sources tables may be read from."""

    template_fields: Sequence[str] = ("tables", "target", "after", "exclude")

    def __init__(
        self,
        *,
        tables: Sequence[str | TableEntry] | None = None,
        target: str | None = None,
        after: str | None = None,
        shapes: Sequence[str] = ("mirror",),
        table_name: str = TABLE_NAME,
        mssql_conn_id: str = "mssql_default",
        exclude: Sequence[str] = (),
        source: Literal["cdc", "ct", "auto"] = "cdc",
        on_disabled: Literal["fail", "skip", "enable"] = "fail",
        max_idle: datetime.timedelta | float | None = None,
        max_lag: datetime.timedelta | float = MAX_LAG,
        on_lag: Literal["warn", "fail"] = "warn",
        poll_interval: float = 5.0,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        kwargs = without_load_only(kwargs)
        if on_disabled not in ON_DISABLED:
            raise ValueError(f"on_disabled={on_disabled!r}: expected one of {', '.join(ON_DISABLED)}")
        if poll_interval <= 0:
            raise ValueError(f"poll_interval={poll_interval}: expected more than 0 s")
        idle = seconds(max_idle)
        if idle is not None and idle <= 0:
            raise ValueError(f"max_idle={max_idle}: expected more than 0 s; it cannot be switched off")
        lag = lag_allowed(max_lag, on_lag)
        if (target is None) == (after is None):
            raise ValueError("give target, whose checkpoints say what is loaded, or after, a position; one of them")
        if source not in SOURCES:
            raise ValueError(f"source={source!r}: expected one of {', '.join(SOURCES)}")
        if after is not None and source != CDC:
            raise ValueError(f'source={source!r}: after is a commit LSN, which only source="cdc" has')
        if after is None and tables is None:
            raise ValueError("tables: name the tables that the load loads")
        check_literals([] if tables is None else tables, exclude, target, named=after is None or tables is not None)
        check_template(table_name)
        super().__init__(**{"poke_interval": poll_interval, **kwargs})
        self.tables = tables
        self.target, self.after = target, after
        self.shapes = check_shapes(shapes)
        self.table_name = table_name
        self.mssql_conn_id = mssql_conn_id
        self.exclude = exclude
        self.source, self.on_disabled = source, on_disabled
        self.max_idle = idle
        self.max_lag = lag.total_seconds()
        self.on_lag = on_lag
        self.poll_interval = poll_interval
        self.deferrable = deferrable
        self._watch: Watch | PositionWatch | None = None
        self._hook: MsSqlCdcHook | None = None
        self._sources: Sequence[ChangeSource] = ()
        self._waiting_since: datetime.datetime | None = None
        self._begun = False
        self._has_asked = False

    def execute(self, context: Context) -> Any:
        """Look once; if there is nothing to load, wait in the triggerer or by poking.

        :raises AirflowFailException: for what a repetition cannot mend
        """
        try:
            if not self.deferrable:
                return super().execute(context)
            found = self._first_look(context)
            back_off = BackOff()
            for _ in range(_ASKING):
                # the triggerer does not ask for copies
                if found or not self._is_to_ask(context):
                    break
                time.sleep(back_off.next())
                found = self._first_look(context)
        finally:
            self._close()
        if found:
            return found.xcom_value
        if self._is_to_ask(context):
            # the next try asks, once the database answers
            raise CopyAskedError(
                "the copies that the run's params ask for could not be asked for, since this look failed.",
                advice="The log says why. Run the task again, or give it retries.",
            )
        self.defer(
            trigger=self._trigger(
                tables=self.tables,
                target=self.target,
                after=self.after,
                shapes=self.shapes,
                table_name=self.table_name,
                mssql_conn_id=self.mssql_conn_id,
                exclude=listed(self.exclude),
                source=self.source,
                on_disabled=self.on_disabled,
                max_idle=self.max_idle,
                max_lag=self.max_lag,
                on_lag=self.on_lag,
                poll_interval=self.poll_interval,
                waiting_since=self._since(context).timestamp(),
                asked=self._is_asked(context),
            ),
            method_name="execute_complete",
            timeout=datetime.timedelta(seconds=self.timeout),
        )
        return None

    def _first_look(self, context: Context) -> PokeReturnValue:
        """Look once without a trigger."""
        try:
            return self.poke(context)
        except AirflowFailException as error:
            if self.soft_fail or self.never_fail:
                raise AirflowSkipException(str(error)) from error
            raise

    def execute_complete(self, context: Context, event: dict[str, Any]) -> str | None:
        """The cut that the trigger found.

        :raises AirflowFailException: if the trigger gave up
        """
        if event["status"] != "success":
            raise AirflowFailException(event["message"])
        self.log.info("Something to load %s", event["message"])
        upto: str | None = event["upto"]
        return upto

    def poke(self, context: Context) -> PokeReturnValue:
        """Look once; what may mend itself, such as a server that is away, is left to the next look.

        :raises AirflowFailException: for what a repetition cannot mend
        """
        since = self._since(context)
        try:
            if self._watch is None:
                self._watch = watch_of(self, asked=self._is_asked(context), begun=self._begun)
            if self._hook is None:
                self._hook = MsSqlCdcHook(self.mssql_conn_id)
                self._sources = self._trigger.sources(self._hook)
            self._ask_for_copies(self._hook, context)
            with self._lag_told_over_reschedules(self._watch.lag, context):
                wake = poll(self._watch, self._hook, self._sources, utc_now(), since)
        except (MsSqlCdcError, AirflowNotFoundException) as error:
            if is_permanent(error):
                raise AirflowFailException(str(error)) from error
            self.log.warning("This look failed, and is repeated: %s", error)
            return PokeReturnValue(is_done=False)
        if wake is None:
            return PokeReturnValue(is_done=False)
        self.log.info("Something to load %s", wake)
        return PokeReturnValue(is_done=True, xcom_value=payload(wake)["upto"])

    def _is_to_ask(self, context: Context) -> bool:
        """Whether the run's params ask for copies that were not asked for yet."""
        return self.target is not None and not self._has_asked and bool(tables_asked(context)[0])

    def _ask_for_copies(self, hook: MsSqlCdcHook, context: Context) -> None:
        """Leave the requests for copies that the run's params ask for: the load is called for then."""
        if self.target is None or self._has_asked:
            return
        request = watch_request(self)
        try:
            ask_by_params(
                context,
                Variable,
                lambda: hook.survey(request.patterns, request.exclude, captured=request.captured),
                request.of_table,
            )
        except CopyAskedError as error:
            if not loads_of(context):
                raise
            # the load says so, too, once it has loaded what is there
            self.log.error("no copy is asked for: %s", error)
        self._has_asked = True

    def _since(self, context: Context) -> datetime.datetime:
        """Since when the task waits: from its first look, over all of its reschedules."""
        if self._waiting_since is None:
            task_instance = context.get("ti")
            first = task_instance.get_first_reschedule_date(context) if self.reschedule and task_instance else None
            self._begun = first is not None
            self._waiting_since = first or utc_now()
        return self._waiting_since

    @contextmanager
    def _lag_told_over_reschedules(self, lag: LagWatch, context: Context) -> Iterator[None]:
        """Keep for the next process when this one has told of a late capture."""
        state = context.get("task_state_store") if self.reschedule else None
        # Airflow tells when the first process began, and not when the last one did
        if state is not None and self._begun and (told := state.get(_LAG_TOLD)):
            lag.told_at = datetime.datetime.fromisoformat(str(told))
        before = lag.told_at
        try:
            yield
        finally:
            if state is not None and lag.told_at is not None and lag.told_at != before:
                state.set(_LAG_TOLD, lag.told_at.isoformat())

    def _is_asked(self, context: Context) -> bool:
        """Whether a person asks for this run: it was started by hand, or the task was cleared."""
        run, task_instance = context.get("dag_run"), context.get("ti")
        if getattr(run, "run_type", None) == "manual":
            return True
        # Clearing a task gives it all of its retries anew, on top of the tries that it had; a retry does not.
        return task_instance is not None and task_instance.max_tries > (self.retries or 0)

    def _close(self) -> None:
        if self._hook is not None:
            self._hook.close()
            self._hook = None
