"""The sandbox as a pytest fixture: import it into a conftest.py or a test module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_provider_mssql_cdc.sandbox.server import Sandbox


@pytest.fixture
def mssql_sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A SQL Server stand-in of the test's own, with an empty database ``shop``.

    The Agent runs, but its jobs are held: nothing is captured until the test calls ``step``, or
    ``capture.release`` lets the jobs go on by themselves. The marker ``mssql_sandbox`` takes options of ``Sandbox``,
    as in ``@pytest.mark.mssql_sandbox(harsh=True, seed=7, build="2016")``. A failing test of a harsh server prints
    the seed.
    """
    marker = request.node.get_closest_marker("mssql_sandbox")
    with Sandbox(**(marker.kwargs if marker else {})) as server:
        if server.harshness.points:
            said = f"harsh, seed={server.harshness.seed}, SQL Server {server.instance.version.name}"
            request.node.add_report_section("setup", "mssql_sandbox", said)
        server.capture.hold()
        yield server
