"""Harsh servers for the tests: one seed for all of a run, and draws that each test begins anew."""

from __future__ import annotations

import os
import weakref
from typing import Any

from airflow_provider_mssql_cdc.sandbox.server import Sandbox

SEED = int(os.environ.get("MSSQL_CDC_TEST_SEED", "0"))

_servers: weakref.WeakSet[Sandbox] = weakref.WeakSet()


def harsh_sandbox(**options: Any) -> Sandbox:
    """A sandbox that does all that SQL Server may do.

    :param options: of ``Sandbox``
    """
    server = Sandbox(**{"harsh": True, "seed": SEED, **options})
    _servers.add(server)
    return server


def begin(test: str) -> None:
    """Let all servers draw anew, for a test."""
    for server in _servers:
        server.harshness.begin(test)


def any_is_running() -> bool:
    """Whether there is a harsh server."""
    return bool(_servers)
