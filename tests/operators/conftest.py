"""The same servers and databases as for the hook, and a task that loads from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hooks.conftest import sandbox, server, source
from tests.support.hooks.source import Source
from tests.support.operators.group import A, B, Group
from tests.support.operators.master import Master, write_receipt
from tests.support.operators.tries import Task

__all__ = ["sandbox", "server", "source"]


@pytest.fixture
def task(source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Task]:
    """Two loaded tables, the first of which has changed since."""
    group = Group(source)
    group.make("dbo.a", "dbo.b")
    group.loaded(A, B)
    group.change("INSERT INTO dbo.a (id) VALUES (2)")
    with Master(tmp_path) as master:
        for name, value in source.environment().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", master.connection)
        monkeypatch.setenv("PATH", master.path)
        # outside of a task, Airflow's own can only be read
        monkeypatch.setattr("airflow_provider_mssql_cdc.operators.load_run.Variable", group.variables)
        master.job = write_receipt
        yield Task(group, master)
