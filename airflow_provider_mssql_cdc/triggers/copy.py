"""The trigger that waits until copies have ended that an operator has asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from airflow.providers.common.compat.sdk import Variable
from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_mssql_cdc.core.exceptions import MsSqlCdcError
from airflow_provider_mssql_cdc.hooks.copies_asked import CopiesAsked
from airflow_provider_mssql_cdc.triggers.polling import BackOff, in_thread


class MsSqlCdcCopyTrigger(BaseTrigger):
    """
    Wait until copies have ended, on behalf of ``MsSqlCdcCopyOperator``. Nothing but Airflow Variables is read.

    Fires once: ``{"status": "success", "endings": {table: how}}``, or ``{"status": "error", "message": ..}`` for what a
    repetition cannot mend.

    :param copies: what ``CopiesAsked.to_data`` gives
    :param poll_interval: in seconds
    """

    def __init__(self, *, copies: Mapping[str, Any], poll_interval: float = 60.0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.copies, self.poll_interval = dict(copies), poll_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class path and arguments."""
        arguments = {"copies": self.copies, "poll_interval": self.poll_interval}
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look until all have ended."""
        asked, back_off, said = CopiesAsked.from_data(self.copies), BackOff(), ""
        while True:
            try:
                found = await in_thread(asked.look, Variable)
            except MsSqlCdcError as error:
                yield _event({"status": "error", "message": str(error)})
                return
            except Exception as error:
                delay = back_off.next()
                self.log.warning("The copies could not be looked at; next try in %.0f s: %s", delay, error)
            else:
                if found.have_ended:
                    yield _event({"status": "success", "endings": dict(found.endings)})
                    return
                if (text := str(found)) != said:
                    self.log.info("waiting for %s", text)
                    said = text
                back_off.reset()
                delay = self.poll_interval
            await asyncio.sleep(delay)


def _event(payload: dict[str, Any]) -> TriggerEvent:
    return TriggerEvent(payload)  # type: ignore[no-untyped-call]
