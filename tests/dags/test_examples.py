from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest
from airflow.sdk.definitions.param import process_params
from jinja2.nativetypes import NativeEnvironment

from airflow_provider_mssql_cdc.cli.demo.targets_lake import SHAPES
from airflow_provider_mssql_cdc.hooks.copy_params import tables_asked

DAGS = Path(__file__).parents[2] / "dags"


@pytest.fixture(scope="module")
def bag(airflow_db):
    from airflow.dag_processing.dagbag import BundleDagBag

    return BundleDagBag(DAGS, bundle_path=DAGS, bundle_name="dags-folder")


def test_every_example_can_be_imported(bag):
    assert bag.import_errors == {}
    assert set(bag.dags) == {
        "shop_approve_columns",
        "shop_copy",
        "shop_incremental",
        "shop_on_change",
        "shop_replay",
        "shop_replay_window",
        "shop_targets",
    }


def test_every_example_survives_serialization(bag):
    from airflow.serialization.serialized_objects import DagSerialization

    for dag in bag.dags.values():
        again = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag))
        assert again.task_ids == dag.task_ids


def test_examples_say_what_they_do_and_how_to_run_them(bag):
    for dag in bag.dags.values():
        assert "To run it:" in dag.doc_md


def test_examples_name_the_default_connections(bag):
    tasks = [task for dag in bag.dags.values() for task in dag.tasks if hasattr(task, "mssql_conn_id")]
    assert {dag.dag_id for dag in bag.dags.values()} - {task.dag_id for task in tasks} == {"shop_approve_columns"}
    assert {task.mssql_conn_id for task in tasks} == {"mssql_default"}
    assert {task._conn_id for task in tasks if task.task_id not in ("wait", "copy")} == {"spark_default"}


def test_the_lake_is_named_once_and_looked_up_only_by_a_running_task(bag, monkeypatch):
    loads = [bag.dags[name].tasks[-1] for name in ("shop_incremental", "shop_on_change", "shop_replay")]
    warehouses = {load.conf["spark.sql.catalog.lake.warehouse"] for load in loads}
    assert warehouses == {"{{ var.value.shop_warehouse }}"}
    monkeypatch.setenv("AIRFLOW_VAR_SHOP_WAREHOUSE", "/data/lake")
    from airflow.sdk import Variable

    context = {"var": {"value": type("Values", (), {"shop_warehouse": Variable.get("shop_warehouse")})}}
    rendered = loads[0].render_template(loads[0].conf, context)
    assert rendered["spark.sql.catalog.lake.warehouse"] == "/data/lake"


def test_the_incremental_load_takes_its_cut_from_the_sensor(bag):
    wait, load = bag.dags["shop_incremental"].tasks
    assert wait.deferrable
    assert load.upstream_task_ids == {"wait"}
    assert load.upto.operator is wait


def test_the_watcher_and_the_load_look_at_the_same_tables(bag):
    dag = bag.dags["shop_on_change"]
    (asset,) = dag.timetable.asset_condition.objects
    _, watched = asset.watchers[0].trigger.serialize()
    (load,) = dag.tasks
    assert {name: watched[name] for name in ("tables", "target", "mssql_conn_id")} == {
        "tables": load.tables,
        "target": load.target,
        "mssql_conn_id": load.mssql_conn_id,
    }


def test_one_table_goes_into_every_target_up_to_one_cut_or_into_those_that_are_chosen(bag):
    dag = bag.dags["shop_targets"]
    wait, choose = dag.get_task("wait"), dag.get_task("choose")
    loads = [task for task in dag.tasks if task not in (wait, choose)]
    assert {load.task_id: load.shapes for load in loads} == SHAPES
    assert {load.task_id: load.target.partition(":")[0].partition("+")[0] for load in loads} == {
        name: name for name in SHAPES
    }
    for load in loads:
        assert (load.tables, load.upto.operator) == (["sales.orders"], wait)
        assert load.upstream_task_ids == {"wait", "choose"}
    assert wait.target == dag.get_task("iceberg").target
    assert dag.params["targets"] == list(SHAPES)
    assert choose.python_callable(params={"targets": ["delta"]}) == ["delta"]


def test_the_replay_has_real_data_intervals(bag):
    import pendulum
    from airflow.serialization.encoders import coerce_to_core_timetable

    timetable = coerce_to_core_timetable(bag.dags["shop_replay"].timetable)
    interval = timetable.infer_manual_data_interval(run_after=pendulum.datetime(2026, 1, 6, 3))
    assert (interval.start, interval.end) == (pendulum.datetime(2026, 1, 5), pendulum.datetime(2026, 1, 6))


def test_the_replay_waits_for_what_its_interval_needs(bag):
    """A run starts at the moment in which its interval ends, and is then too early."""
    (replay,) = bag.dags["shop_replay"].tasks
    # shop_incremental runs every ten minutes
    assert replay.retry_delay >= datetime.timedelta(minutes=10)
    assert replay.retries * replay.retry_delay >= datetime.timedelta(hours=1)


def test_no_example_imports_what_the_workers_may_not_have():
    for path in DAGS.glob("*.py"):
        modules = re.findall(r"^(?:from|import) ([a-z_]+)", path.read_text(), re.MULTILINE)
        assert set(modules) <= {
            "__future__",
            "datetime",
            "typing",
            "airflow",
            "airflow_provider_mssql_cdc",
            "shop_lake",
        }


def test_a_run_by_hand_names_the_window_that_is_replayed(bag):
    from airflow.sdk.exceptions import ParamValidationError

    dag = bag.dags["shop_replay_window"]
    (replay,) = dag.tasks
    edges = {"start": "0x0000002D00000F100003", "end": "0x0000002E000000280005"}
    assert replay.render_template(replay.interval, {"params": edges}) == tuple(edges.values())
    # nothing is replayed that the run does not name
    with pytest.raises(ParamValidationError):
        dag.params.validate()


def test_a_run_by_hand_names_the_tables_that_are_copied(bag):
    dag = bag.dags["shop_copy"]
    (copy,) = dag.tasks
    copy.render_template_fields({"params": {"tables": ["sales.orders", "sales.items"]}}, NativeEnvironment())
    assert copy.tables == ["sales.orders", "sales.items"]
    # as the load has it: the checkpoints are found by that
    (load,) = (task for task in bag.dags["shop_incremental"].tasks if task.task_id == "load")
    assert (copy.target, copy.mssql_conn_id, copy.table_name) == (load.target, load.mssql_conn_id, load.table_name)


def test_what_a_run_is_started_with_are_params_for_its_tasks(bag):
    """A copy is asked for by ``--conf``, though the DAG declares no such param."""
    dag = bag.dags["shop_incremental"]
    (load,) = (task for task in dag.tasks if task.task_id == "load")
    found = process_params(dag, load, {"copy": ["sales.orders"]}, suppress_exception=False)
    context = {"params": found}
    assert [pattern.text for pattern in tables_asked(context)[0]] == ["sales.orders"]
