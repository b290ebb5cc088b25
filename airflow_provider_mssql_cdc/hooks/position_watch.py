"""Waits until something is above a position: for people with a job of their own."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from airflow_provider_mssql_cdc.core.exceptions import CdcDisabledError, CutError
from airflow_provider_mssql_cdc.core.position import Cut, Lsn, is_gap
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.table_options import read_entries, watched
from airflow_provider_mssql_cdc.core.wake import Call, Reason, Wake
from airflow_provider_mssql_cdc.hooks.change_source import ChangeSource, check_readable
from airflow_provider_mssql_cdc.hooks.lag_watch import LagWatch
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.hooks.parameters import excluded, lag_allowed


class PositionWatch:
    """Looks for changes of some tables above a position; without tables, whether max LSN is above it.

    :param patterns: of the tables; none for the whole database
    :param exclude: patterns of tables to leave out
    :ivar lag: says that the capture is late
    """

    def __init__(self, after: Lsn, patterns: Sequence[str], exclude: Sequence[str], lag: LagWatch) -> None:
        self._after, self._patterns, self._exclude = after, patterns, exclude
        self.lag = lag

    @classmethod
    def of(
        cls,
        *,
        after: str,
        tables: Sequence[str | Mapping[str, Any]] | str | None,
        exclude: Sequence[str] | str,
        max_lag: float,
        on_lag: str,
    ) -> PositionWatch:
        """The watch that these parameters of a sensor or trigger make.

        :param max_lag: seconds
        :raises CutError: if ``after`` is no LSN
        :raises ParameterError: if another one of them has no meaning
        """
        try:
            position = Lsn.parse(after)
        except (ValueError, TypeError) as error:
            raise CutError(
                f"after={after!r} is no LSN.",
                advice="Write it as 0x0000002D00000580001D or 0000002d:00000580:001d; this sensor returns it so.",
            ) from error
        patterns = [entry.text for entry in read_entries(watched(tables), salted=True)] if tables else []
        return cls(position, patterns, excluded(exclude), LagWatch(lag_allowed(max_lag, on_lag), on_lag))

    def poll(self, hook: MsSqlCdcHook, sources: Sequence[ChangeSource], now: datetime.datetime) -> Wake | None:
        """Look once.

        :param sources: of which the one counts that has LSNs
        :raises CdcDisabledError: if change data capture is off for the database, or for all of the tables
        :raises MsSqlCdcError: what the hook raises; if no table can be read at all
        """
        if not self._patterns:
            status = hook.database_status()
            _check_enabled(status.name, enabled=status.cdc_enabled)
            self.lag.look(hook, status, now)
            return Wake(Cut.at(status.max_lsn), {}) if status.max_lsn and status.max_lsn > self._after else None
        survey = hook.survey(self._patterns, self._exclude)
        _check_enabled(survey.status.name, enabled=survey.status.cdc_enabled)
        self.lag.look(hook, survey.status, now)
        source = next(source for source in sources if source.kind.POSITION is type(self._after))
        feeds = {name: found[-1] for name, found in source.discover(survey).items()}
        if not feeds:
            raise CdcDisabledError(
                f"change data capture is off for all tables that {', '.join(self._patterns)} match.",
                advice="Enable it with sys.sp_cdc_enable_table, or grant the login SELECT on the schema cdc.",
            )
        after = {feed.name: self._after for feed in feeds.values()}
        probe = source.probe(after)
        check_readable(source, after)
        if probe.cut is None:
            return None
        calls: dict[TableName, Call] = {}
        for name, feed in feeds.items():
            readable_from = probe.readable_from.get(feed.object_id)
            if feed.name in probe.newest:
                calls[name] = Call(Reason.EVENTS, probe.newest[feed.name])
            elif readable_from is not None and is_gap(self._after, readable_from) and readable_from < probe.cut:
                # what came may be purged already: whoever waits has to know of it
                calls[name] = Call(Reason.PURGED)
        return Wake(Cut.at(probe.cut), calls) if calls else None


def _check_enabled(database: str, *, enabled: bool) -> None:
    if not enabled:
        raise CdcDisabledError(
            f"change data capture is off in database {database}.", advice="Run EXEC sys.sp_cdc_enable_db there."
        )
