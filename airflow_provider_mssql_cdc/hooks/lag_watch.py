"""Says while somebody waits whether the capture is late."""

from __future__ import annotations

import datetime
import logging
from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.database import DatabaseStatus
from airflow_provider_mssql_cdc.core.exceptions import CaptureLateError
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook

log = logging.getLogger(__name__)


@dataclass(slots=True)
class LagWatch:
    """Looks when the wait begins, and once per ``max_lag``.

    :param on_lag: ``warn`` or ``fail``
    :param told_at: when it was last told of; None before the first time
    """

    max_lag: datetime.timedelta
    on_lag: str
    told_at: datetime.datetime | None = None

    def look(self, hook: MsSqlCdcHook, status: DatabaseStatus, now: datetime.datetime) -> None:
        """Say that the capture is late.

        :raises CaptureLateError: if that is to be an error
        """
        told = self.told_at
        if self.on_lag == "warn" and told is not None and now - told < self.max_lag:
            return
        lag = hook.lag(status, self.max_lag)
        if lag is None:
            return
        self.told_at = now
        if not lag.late:
            if told is None:
                log.info(lag.text)
        elif self.on_lag == "fail":
            raise CaptureLateError(lag.text)
        else:
            log.warning("waiting goes on, but %s", lag.text)
