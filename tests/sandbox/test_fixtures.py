"""The fixture, and the example of the documentation that uses it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_mssql_cdc.sandbox.fixtures import mssql_sandbox  # noqa: F401
from airflow_provider_mssql_cdc.sandbox.server import Sandbox

PAGE = Path(__file__).parents[2] / "docs" / "sandbox.md"


def test_the_example_of_the_readme(mssql_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    section = PAGE.read_text().partition("## Try it without a SQL Server")[2].partition("\n## ")[0]
    (example,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(example, str(PAGE), "exec"), names)
    names["test_orders"](mssql_sandbox, monkeypatch)


def test_a_new_one_for_each_test(mssql_sandbox: Sandbox) -> None:  # noqa: F811
    assert mssql_sandbox.execute("SELECT * FROM sys.tables")[0].num_rows == 0
    assert mssql_sandbox.capture.running


def test_nothing_is_captured_until_the_jobs_go_on(mssql_sandbox: Sandbox) -> None:  # noqa: F811
    mssql_sandbox.execute(
        "CREATE TABLE dbo.s (i int PRIMARY KEY) EXEC sys.sp_cdc_enable_db"
        " EXEC sys.sp_cdc_enable_table 'dbo', 's', @role_name = NULL"
    )
    mssql_sandbox.execute("INSERT INTO dbo.s VALUES (1)")
    captured = "SELECT * FROM cdc.dbo_s_CT"
    assert mssql_sandbox.execute(captured)[0].num_rows == 0
    mssql_sandbox.capture.release()
    while not mssql_sandbox.execute(captured)[0].num_rows:
        pass
