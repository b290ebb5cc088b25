"""Tables that do not go on with a change of columns: what a person wants of their copies is done all the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from airflow_provider_mssql_cdc.core.copy_wanted import COPY, PAUSE, STOP, AskedCopy
from airflow_provider_mssql_cdc.core.exceptions import SchemaChangedError
from airflow_provider_mssql_cdc.core.steps import TableSteps
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.stopping import stop_copies_at_changes

A = TableName("dbo", "a")


class Refused:
    """A change of columns with which the table is not to go on."""

    def error(self, name: TableName) -> SchemaChangedError:
        return SchemaChangedError("a column was added.", table=str(name))


@pytest.mark.parametrize(("wanted", "fails"), [(None, False), (COPY, True), (PAUSE, False), (STOP, False)])
def test_a_copy_is_stopped_or_paused_though_the_table_does_not_go_on(wanted: str | None, fails: bool) -> None:
    asked = AskedCopy("c1", wanted=wanted) if wanted is not None else None
    spec = cast(Any, SimpleNamespace(name=A, asked=asked, fills=False))
    plan = RunPlan("lab", "shop")
    plan.specs.append(spec)
    plan.steps[A], plan.refused_changes[A], plan.sights[A] = TableSteps(), cast(Any, Refused()), cast(Any, None)
    stop_copies_at_changes(plan)
    assert (plan.specs == [], [*plan.failures]) == (fails, [A] if fails else [])
