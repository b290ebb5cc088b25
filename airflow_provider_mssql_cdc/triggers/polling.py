"""Blocking polls beside an event loop: threads of their own, back-off, and what ends a watch."""

from __future__ import annotations

import asyncio
import contextvars
import datetime
import functools
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook

from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook

SHORTEST_BACK_OFF = 1.0
LONGEST_BACK_OFF = 60.0
THREADS = 8
"""Threads, and with them statements at once, of all watches in one triggerer."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="mssql-cdc")


async def in_thread(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Run a blocking function, in the caller's context, without holding up the event loop.

    The loop's own executor is left to others: a server that does not answer would fill it.
    """
    context = contextvars.copy_context()
    call = functools.partial(context.run, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_threads(), call)


class BackOff:
    """Delays from 1 to 60 seconds, doubled after each failure, with jitter so that watches do not fail in step."""

    def __init__(self) -> None:
        self._ceiling = SHORTEST_BACK_OFF

    def next(self) -> float:
        """The seconds to wait after one more failure."""
        ceiling = self._ceiling
        self._ceiling = min(2 * ceiling, LONGEST_BACK_OFF)
        return max(SHORTEST_BACK_OFF, random.uniform(ceiling / 2, ceiling))

    def reset(self) -> None:
        """Begin again with the shortest delay."""
        self._ceiling = SHORTEST_BACK_OFF


async def open_hook(mssql_conn_id: str) -> MsSqlCdcHook:
    """A hook whose connection is resolved, so that nothing looks it up from the event loop later.

    :raises AirflowNotFoundException: if there is no such connection
    """
    try:
        connection = await BaseHook.aget_connection(mssql_conn_id)
    except AirflowNotFoundException:
        # `airflow dags test` runs a trigger where Airflow's database answers lookups that block, and no others
        connection = await in_thread(BaseHook.get_connection, mssql_conn_id)
    return MsSqlCdcHook(mssql_conn_id, connection=connection)


def close_later(hook: MsSqlCdcHook) -> None:
    """Close the hook's connection as soon as no thread uses it, without waiting for that."""
    _threads().submit(hook.close)


def utc_now() -> datetime.datetime:
    """The time of this machine, in UTC."""
    return datetime.datetime.now(datetime.UTC)
