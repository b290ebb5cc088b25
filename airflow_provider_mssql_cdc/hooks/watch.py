"""Watches the tables of one group: which they are, where their checkpoints stand, and whether to wake."""

from __future__ import annotations

import dataclasses
import datetime
import logging
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from airflow_provider_mssql_cdc.core.checkpoint import Identity
from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.copy_requests import CopyRequests
from airflow_provider_mssql_cdc.core.database import DatabaseStatus
from airflow_provider_mssql_cdc.core.entry_values import CDC, CT, SOURCES
from airflow_provider_mssql_cdc.core.exceptions import (
    CdcDisabledError,
    CheckpointError,
    FeedError,
    MsSqlCdcError,
    NewerCheckpointError,
    ParameterError,
    SqlServerError,
    unnamed,
)
from airflow_provider_mssql_cdc.core.feed import Feed, is_captured
from airflow_provider_mssql_cdc.core.lag import MAX_LAG
from airflow_provider_mssql_cdc.core.patterns import matches
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.resting import default_max_idle, without_absence
from airflow_provider_mssql_cdc.core.shapes import check_shapes
from airflow_provider_mssql_cdc.core.source_choice import feeds_to_read
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.table_options import Entry, TableOptions, deciding, read_entries, watched
from airflow_provider_mssql_cdc.core.target import Target, check_template
from airflow_provider_mssql_cdc.core.wake import (
    Seen,
    Wake,
    WakeRules,
    Watched,
    decide,
    positions_to_probe,
)
from airflow_provider_mssql_cdc.hooks.change_source import ChangeSource, discover
from airflow_provider_mssql_cdc.hooks.lag_watch import LagWatch
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.hooks.parameters import excluded, lag_allowed

log = logging.getLogger(__name__)

ON_DISABLED = ("fail", "skip", "enable")

REFRESH = datetime.timedelta(minutes=1)
"""How long a list of tables, instances and checkpoints is believed, unless something shows earlier that it is old."""


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What a sensor or trigger is asked to watch.

    :param connection: id of the Airflow connection, as in the checkpoints
    :param target: ``iceberg://catalog/namespace``, as in the checkpoints
    :param table_name: as for the load
    :param max_idle: None for ``default_max_idle``
    :param max_lag: as for the load
    :param on_lag: ``warn`` or ``fail``
    :param asked: a person asks for this run
    """

    connection: str
    entries: tuple[Entry, ...]
    exclude: tuple[str, ...]
    defaults: TableOptions
    on_disabled: str = "fail"
    max_idle: datetime.timedelta | None = None
    max_lag: datetime.timedelta = MAX_LAG
    on_lag: str = "warn"
    asked: bool = False

    @classmethod
    def of(
        cls,
        *,
        mssql_conn_id: str,
        tables: Sequence[str | Mapping[str, Any]] | str,
        exclude: Sequence[str] | str,
        target: str,
        shapes: Sequence[str],
        table_name: str,
        on_disabled: str,
        max_idle: float | None,
        max_lag: float,
        on_lag: str,
        source: str = CDC,
        asked: bool = False,
    ) -> WatchRequest:
        """The request that these parameters of a sensor or trigger make.

        :param max_idle: seconds
        :param max_lag: seconds
        :raises ParameterError: if one of them has no meaning
        """
        check_template(table_name)
        if source not in SOURCES:
            raise ParameterError(f"source={source!r}: expected one of {', '.join(SOURCES)}")
        if on_disabled not in ON_DISABLED:
            raise ParameterError(f"on_disabled={on_disabled!r}: expected one of {', '.join(ON_DISABLED)}")
        if max_idle is not None and max_idle <= 0:
            raise ParameterError(f"max_idle={max_idle}: expected more than 0 s; it cannot be switched off")
        return cls(
            connection=mssql_conn_id,
            entries=read_entries(watched(tables), salted=True),
            exclude=excluded(exclude),
            defaults=TableOptions(Target.parse(target), check_shapes(shapes), table_name, source=source),
            on_disabled=on_disabled,
            max_idle=None if max_idle is None else datetime.timedelta(seconds=max_idle),
            max_lag=lag_allowed(max_lag, on_lag),
            on_lag=on_lag,
            asked=asked,
        )

    @property
    def patterns(self) -> tuple[str, ...]:
        """Of the entries, in their order."""
        return tuple(entry.text for entry in self.entries)

    @property
    def captured(self) -> bool:
        """Whether some table may be read by change data capture."""
        return any((entry.said or {}).get("source", self.defaults.source) != CT for entry in self.entries)

    def options(self, name: TableName, matching: Sequence[int] = ()) -> TableOptions:
        """The record of a table; the defaults where two entries decide, which the load refuses.

        :param matching: the places of the patterns that match it
        """
        found = [self.entries[n] for n in matching]
        found = found or [entry for entry in self.entries if matches(entry.pattern, name.schema, name.table)]
        try:
            return deciding(name, found).options(self.defaults)
        except ParameterError:
            return self.defaults

    def of_table(self, database: str, name: TableName, matching: Sequence[int]) -> Identity:
        """The identity of a table's checkpoint.

        :param matching: the places of the patterns that match it
        """
        return self.identity(database, name, self.options(name, matching))

    def identity(self, database: str, name: TableName, options: TableOptions) -> Identity:
        """The identity of a table's checkpoint."""
        return Identity.of(self.connection, database, name, options.target.address, options.table_name)


class Watch:
    """The tables of one request, what they are read by, and their checkpoints, as last seen.

    Hook and sources are given to each method that needs them, so that several watches can share a connection.

    :param store: reads the checkpoints
    :param begun: an earlier process has said what there is to say of the tables when a wait begins
    :ivar lag: says that the capture is late
    :ivar trouble: why the last ``refresh`` failed
    """

    def __init__(self, request: WatchRequest, store: CheckpointStore, *, begun: bool = False) -> None:
        self.request = request
        self._store = store
        self._status: DatabaseStatus | None = None
        self._tables: list[Watched] = []
        self._options: dict[TableName, TableOptions] = {}
        self._seen_at: datetime.datetime | None = None
        self._feed_ids: dict[str, frozenset[int]] = {}
        self._mentioned: set[str] = set()
        self._earlier, self._begun = begun, begun
        self.lag = LagWatch(request.max_lag, request.on_lag)
        # Refreshed and judged from different threads when several watches share a poll.
        self._lock = threading.RLock()
        self.trouble: MsSqlCdcError | None = None

    @property
    def rules(self) -> WakeRules:
        """The rules by which to wake."""
        retention = self._status.retention_minutes if self._status else None
        max_idle = self.request.max_idle or default_max_idle(retention)
        return WakeRules(max_idle, self.request.on_disabled, self.request.asked)

    @property
    def enabled(self) -> bool:
        """Whether CDC is on for the database, and some table may be read by it."""
        return self._status is not None and self._status.cdc_enabled

    @property
    def kinds(self) -> set[str]:
        """The kinds of feeds that its tables are read by."""
        return {feed.KIND for table in self._tables for feed in table.feeds}

    def positions(self, kind: type[Feed]) -> dict[str, Position]:
        """From where events count, by feed of a kind."""
        return positions_to_probe(self._tables, kind)

    def is_old(self, now: datetime.datetime) -> bool:
        """Whether it is time to look at tables, feeds and checkpoints again."""
        # what the server did not answer is asked again at once; what a person has to mend, only now and then
        unanswered = isinstance(self.trouble, SqlServerError)
        return self._seen_at is None or unanswered or now - self._seen_at >= REFRESH

    def contradicts(self, seen: Seen) -> bool:
        """Whether the database has other feeds than when the tables were last looked at.

        To be asked about every look: the first one after a ``refresh`` says which feeds there were.
        """
        ids = {kind: frozenset(probe.readable_from) for kind, probe in seen.probes.items()}
        self._feed_ids = {**ids, **self._feed_ids}
        return any(self._feed_ids[kind] != found for kind, found in ids.items())

    def refresh(self, hook: MsSqlCdcHook, sources: Sequence[ChangeSource], now: datetime.datetime) -> None:
        """Look at tables, feeds and checkpoints: three statements, and a Variable for each table.

        :param sources: of two that have feeds of a table the first one counts
        :raises CdcDisabledError: if CDC is off for the database, unless a run is to enable it
        :raises TableNotFoundError: if no table matches
        :raises CaptureLateError: if the capture is late, and that is to be an error
        """
        with self._lock:
            # Also after a failure: who polls ten times a second should not ask for everything as often.
            self._seen_at, self._feed_ids, self.trouble = now, {}, None
            try:
                self._look_at_everything(hook, sources, now)
            except MsSqlCdcError as error:
                self.trouble = error
                raise

    def _look_at_everything(self, hook: MsSqlCdcHook, sources: Sequence[ChangeSource], now: datetime.datetime) -> None:
        survey = hook.survey(self.request.patterns, self.request.exclude, captured=self.request.captured)
        self._status = status = survey.status
        by = survey.matches.by
        options = {table.name: self.request.options(table.name, by[table.name]) for table in survey.matches.tables}
        named = {name: each.source for name, each in options.items()}
        feeds = discover(sources, survey, named)
        may_go_on = status.cdc_enabled or feeds or {*named.values()} != {CDC}
        if not may_go_on and self.request.on_disabled != "enable":
            # what they were read by is gone, and cannot be looked at
            self._tables = []
            raise CdcDisabledError(
                f"change data capture is off in database {status.name}.",
                advice='Run EXEC sys.sp_cdc_enable_db there, or choose on_disabled="enable".',
            )
        self._options = {}
        self._tables = [
            *(self._watched(name, feeds.get(name, []), each) for name, each in options.items()),
            *(self._watched(name, [], self.request.options(name), missing=True) for name in survey.missing),
        ]
        self._mention_failed()
        self._mention_untracked(status)
        if is_captured(table.feeds for table in self._tables if table.feeds):
            self.lag.look(hook, status, now)

    def judge(self, seen: Seen, now: datetime.datetime, waiting_since: datetime.datetime) -> Wake | None:
        """The wake that is due. What seems to call for one is judged by checkpoints that are read anew.

        :param seen: from ``positions``
        """
        with self._lock:
            wake = decide(self._tables, seen, self.rules, now=now, waiting_since=waiting_since)
            if wake is None:
                return None
            self._tables = [
                self._with_checkpoint(table) if table.name in wake.calls else table for table in self._tables
            ]
            return decide(self._tables, seen, self.rules, now=now, waiting_since=waiting_since)

    def _watched(
        self, name: TableName, found: Sequence[Sequence[Feed]], options: TableOptions, *, missing: bool = False
    ) -> Watched:
        """:param found: its feeds by source, the preferred one first"""
        self._options[name] = options
        watched = Watched(name, (), None, missing=missing, shapes=options.shapes, source=options.source)
        watched = self._with_checkpoint(watched)
        feeds: Sequence[Feed] = found[0] if found else ()
        # of one whose feeds of before are gone the load says so
        with suppress(FeedError):
            feeds = feeds_to_read(name, found, options.source, watched.checkpoint) if found else ()
        return dataclasses.replace(watched, feeds=tuple(feeds))

    def _with_checkpoint(self, table: Watched) -> Watched:
        """The table with its checkpoint read anew."""
        options, database = self._options[table.name], self._status.name if self._status else ""
        try:
            identity = self.request.identity(database, table.name, options)
            checkpoint = self._store.load(identity)
            request = CopyRequests(self._store.variables).load(identity)
        except NewerCheckpointError:
            # another version of the package loads this table: what it waits for is not known here
            raise
        except CheckpointError as error:
            if self._is_news(str(error)):
                log.warning("left out: %s", error)
            return dataclasses.replace(table, checkpoint=None, unreadable=True)
        there = checkpoint if table.missing else without_absence(checkpoint)
        return dataclasses.replace(table, checkpoint=there, request=request, unreadable=False)

    def _is_news(self, text: str) -> bool:
        """Whether nobody has mentioned it, and if so, remember it as mentioned."""
        news = not self._earlier and text not in self._mentioned
        self._mentioned.add(text)
        return news

    def _mention_failed(self) -> None:
        """Say when the watch begins which tables have failed for good."""
        rules = self.rules
        again = "now, since a person asks for this run"
        if not rules.asked:
            again = "when its capture instance or schema changes, when you clear the task or start a run by hand, or "
            again += f"after {rules.max_idle}"
        for table in self._tables if not self._begun else ():
            failed = table.checkpoint.failure(table.shapes) if table.checkpoint else None
            if failed is not None:
                began = failed.began.isoformat(" ", "seconds")
                why = unnamed(failed.reason, table.name)
                log.warning("%s fails since %s; it is tried again %s: %s", table.name, began, again, why)
        self._begun = True

    def _mention_untracked(self, status: DatabaseStatus) -> None:
        for table in self._tables:
            if not table.feeds and not table.missing and self._is_news(str(table.name)):
                log.warning(
                    "%s %s that %s can see (on_disabled=%s)",
                    table.name,
                    {CDC: "has no capture instance", CT: "has no Change Tracking"}.get(table.source, "has neither"),
                    status.user,
                    self.request.on_disabled,
                )
