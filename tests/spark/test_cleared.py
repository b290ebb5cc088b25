"""A task that is cleared while its Spark job runs: two tries of the operator, and their two jobs, beside each other."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.common.compat.sdk import AssetAlias

from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.operators import job_files
from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator
from airflow_provider_mssql_cdc.spark.job import run
from airflow_provider_mssql_cdc.spark.targets.iceberg import IcebergTable
from tests.support import histories
from tests.support.operators.tries import EVENT, State, TaskInstance
from tests.support.spark.kill_points import AFTER, BEFORE, NO_RECEIPT, ONE_SINK_COMMITTED, Point
from tests.support.spark.loads import Loads, check, prepare, write
from tests.support.spark.stop import Stop

pytestmark = pytest.mark.xdist_group(__name__)

HELD = {
    # so that Iceberg has to refuse it
    "about to commit, where main is looked up": Point(IcebergTable, "_where_main_is", AFTER),
    "one shape committed": ONE_SINK_COMMITTED,
    "no receipt": NO_RECEIPT,
    "before the checkpoints": Point(CheckpointStore, "save", BEFORE),
}


class Task:
    """A task that loads what ``Loads`` loads; its jobs run in the Spark of the tests."""

    def __init__(self, loads: Loads, monkeypatch: pytest.MonkeyPatch) -> None:
        self.loads, self.state = loads, State()
        monkeypatch.setenv("AIRFLOW_CONN_LAB", loads.origin.sandbox.connection_uri(loads.origin.database))
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[2]"}))
        monkeypatch.setattr("airflow_provider_mssql_cdc.operators.load_run.Variable", loads.variables)
        spark = loads.origin.spark

        def submit(hook: SparkSubmitHook, application: str) -> None:
            """Run the job that ``spark-submit`` would start."""
            _, spec = hook._application_args
            run(spark, job_files.read_spec(spec))

        monkeypatch.setattr(SparkSubmitHook, "submit", submit)

    def run(self) -> Try:
        """One try; what it has told."""
        this, alias = Try(), AssetAlias("loaded")
        operator = MsSqlCdcLoadOperator(
            task_id="load",
            tables=[f"lab.{table}" for table in self.loads.tables],
            target=self.loads.request.defaults.target.address,
            shapes=self.loads.shapes,
            mssql_conn_id="lab",
            work_dir=str(self.loads.origin.work_dir),
            packages="",
            outlets=[alias],
        )
        context = {"task_state_store": self.state, "ti": TaskInstance(), "outlet_events": {alias: this}}
        this.summary = operator.execute(context)
        return this


class Try:
    """What a try returned, and the asset event that it emitted."""

    summary: dict[str, Any]
    told: dict[str, Any] | None = None

    def add(self, asset: object, extra: dict[str, Any]) -> None:
        """Take an asset event, as Airflow's ``outlet_events`` do."""
        assert self.told is None
        self.told = extra


OFTEN = ("about to commit, where main is looked up",)


@pytest.mark.parametrize(
    "point", [each if each in OFTEN else pytest.param(each, marks=pytest.mark.thorough) for each in HELD]
)
def test_a_task_that_is_cleared_while_its_job_runs_loads_once(live, monkeypatch, point):
    rng, models = random.Random(8), [histories.Model(h) for h in range(5)]
    prepare(live)
    loads = Loads(live, ("mirror", "history"), tables=("items",))
    task = Task(loads, monkeypatch)

    def go_on() -> None:
        write(live, models, rng, 20)
        live.wait_captured()

    go_on()
    task.run()
    task.state.clear()
    before = loads.position("items")
    go_on()
    newest = str(live.max_lsn())
    tries: list[Try] = []
    with monkeypatch.context() as patched:
        stop = Stop(patched, HELD[point])
        with stop.meanwhile(lambda: tries.append(task.run())):
            # it goes on while its task, which was cleared, is at work again
            tries.append(task.run())
            check(loads, models)
            cut = loads.position("items")
    second, first = tries
    check(loads, models)
    # an idle server's max LSN moves on by itself
    assert loads.position("items") == cut >= newest
    assert first.summary["upto"] == second.summary["upto"] == cut
    # Airflow hears of the second alone
    assert second.told is not None
    assert {"after": before, "upto": cut}.items() <= second.told["tables"]["lab.items"].items()
    assert set(task.state) == {EVENT}
    assert list(live.work_dir.iterdir()) == []

    # the next run goes on from there
    task.state.clear()
    go_on()
    newest = str(live.max_lsn())
    third = task.run()
    check(loads, models)
    assert third.told is not None
    assert loads.position("items") >= newest
    assert {"after": cut, "upto": loads.position("items")}.items() <= third.told["tables"]["lab.items"].items()
