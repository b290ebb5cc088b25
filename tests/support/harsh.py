"""Harsh servers for the tests: one seed for all of a run, and draws that each test begins anew."""

from __future__ import annotations

import os
import weakref
from typing import Any

from airflow_provider_mssql_cdc.sandbox import Sandbox

CLOCK_RATE = 50
"""Seconds of the servers' clocks in one second: what takes ten seconds there takes a fifth of one."""

SEED = int(os.environ.get("MSSQL_CDC_TEST_SEED", "703571"))
"""The same for all runs, so that two versions are judged by the same draws; the variable takes another one."""

BUILD = os.environ.get("MSSQL_CDC_TEST_BUILD", "2022")
"""Of SQL Server, where a test does not name one; the variable takes another one."""

_test = ""
_servers: weakref.WeakSet[Sandbox] = weakref.WeakSet()


def harsh_sandbox(**options: Any) -> Sandbox:
    """A sandbox that does all that SQL Server may do, with a clock that runs fast.

    :param options: of ``Sandbox``
    """
    fast = {} if "clock" in options else {"clock_rate": CLOCK_RATE, "capture_interval": None}
    server = Sandbox(**{"harsh": True, "seed": SEED, "build": BUILD, **fast, **options})
    server.harshness.begin(_test)
    _servers.add(server)
    return server


def begin(test: str) -> None:
    """Let all servers draw anew, for a test; and those that are started in it."""
    global _test
    _test = test
    for server in _servers:
        server.harshness.begin(test)


def any_is_running() -> bool:
    """Whether there is a harsh server."""
    return bool(_servers)
