"""The task group, and the ways on which entries of tables come to a task."""

from __future__ import annotations

import dataclasses
import datetime
import json
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from airflow.models.trigger import Trigger
from airflow.sdk import DAG
from airflow.sdk.bases.xcom import BaseXCom
from airflow.serialization.serialized_objects import DagSerialization

from airflow_provider_mssql_cdc.core.choice import choose
from airflow_provider_mssql_cdc.core.selection import salt_check
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema
from airflow_provider_mssql_cdc.core.table_options import Entry, read_entries
from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator
from airflow_provider_mssql_cdc.operators.task_group import MsSqlCdcTaskGroup
from airflow_provider_mssql_cdc.sensors.mssql_cdc import MsSqlCdcSensor
from airflow_provider_mssql_cdc.triggers.mssql_cdc import MsSqlCdcTrigger, watch_request

TARGET = "iceberg://lake/shop"
TABLES: list[Any] = [
    "sales.*",
    {
        "table": "sales.people",
        "columns": ("id", "email", "ssn", "born"),
        "where": [("status", "<>", "draft"), ("born", "<", datetime.date(2000, 1, 1)), ("kind", "in", (1, 2))],
        "rename": {"email": "mail"},
        "mask": {"ssn": "hash"},
        "key": ("id",),
        "shapes": ("mirror", "scd2"),
    },
]
PEOPLE = TableSchema(
    (
        Column(1, 1, "id", "int", nullable=False),
        Column(2, 2, "email", "varchar", 40),
        Column(3, 3, "ssn", "char", 11),
        Column(4, 4, "born", "date"),
        Column(5, 5, "status", "varchar", 9),
        Column(6, 6, "kind", "tinyint"),
    ),
    ("id",),
)


def group(**given: Any) -> MsSqlCdcTaskGroup:
    with DAG("shop"):
        return MsSqlCdcTaskGroup("shop", **{"tables": TABLES, "target": TARGET, "salt_conn_id": "salt", **given})


def test_sensor_and_load_are_made_from_one_set_of_parameters() -> None:
    made = group(
        shapes=["mirror", "history"],
        exclude=["sales.log"],
        on_disabled="skip",
        max_rows=7,
        tooltip="of the shop",
        wait={"poll_interval": 5, "max_idle": 60},
        load={"retries": 4},
        spark={"conf": {"spark.a": "b"}, "conn_id": "spark_big"},
    )
    wait, load = made.wait, made.load
    assert isinstance(wait, MsSqlCdcSensor)
    assert (wait.task_id, load.task_id, load.upstream_task_ids) == ("shop.wait", "shop.load", {"shop.wait"})
    for task in (wait, load):
        assert (task.tables, task.target, task.exclude) == (TABLES, TARGET, ["sales.log"])
        assert (task.shapes, task.on_disabled) == (("mirror", "history"), "skip")
    assert load.upto.operator is wait  # type: ignore[attr-defined]
    assert (wait.poll_interval, wait.max_idle) == (5, 60)
    assert (load.max_rows, load.retries, load.conf, load._conn_id) == (7, 4, {"spark.a": "b"}, "spark_big")
    assert made.tooltip == "of the shop"


HALF_A_DAY = datetime.timedelta(hours=12)


@pytest.mark.parametrize(
    "given",
    [
        {"max_idle": HALF_A_DAY},
        {"wait": {"max_idle": HALF_A_DAY}},
        {"load": {"max_idle": HALF_A_DAY}},
        {"wait": {"max_idle": HALF_A_DAY}, "load": {"max_idle": 43200}},
        {"max_idle": 43200.0, "load": {"max_idle": HALF_A_DAY}},
    ],
)
def test_sensor_and_load_have_one_max_idle(given: dict[str, Any]) -> None:
    """Else each run that the one calls for is none in which the other tries again what failed."""
    made = group(**given)
    assert made.wait is not None
    assert (made.wait.max_idle, made.load.max_idle) == (43200, 43200)


@pytest.mark.parametrize(
    "given",
    [
        {"wait": {"max_idle": 60}, "load": {"max_idle": 61}},
        {"max_idle": 60, "load": {"max_idle": HALF_A_DAY}},
        {"max_idle": 60, "wait": {"max_idle": None}},
    ],
)
def test_two_values_of_max_idle_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"max_idle is given as .*: sensor and load need one"):
        group(**given)


def test_without_a_sensor_each_run_loads() -> None:
    made = group(wait=None, load={"upto": "{{ params.upto }}"})
    assert (made.wait, made.load.upstream_task_ids, made.load.upto) == (None, set(), "{{ params.upto }}")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tables": [{"table": "t", "colums": ["a"]}]}, "did you mean columns"),
        ({"salt_conn_id": None}, "salt_conn_id"),
        ({"wait": {"poll_interval": 0}}, "poll_interval"),
        ({"load": {"max_rows": 0}}, "max_rows"),
        ({"poke_intervall": 5}, "poke_intervall"),
    ],
)
def test_what_cannot_be_right_is_refused_when_the_dag_is_parsed(given: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        group(**given)


def chosen(entries: tuple[Entry, ...]) -> tuple[Any, ...]:
    """What entries say, and the hash of what is chosen of the people."""
    (people,) = (entry for entry in entries if entry.said is not None)
    options = people.options(MsSqlCdcLoadOperator(task_id="x", tables="a", target=TARGET).request().defaults)
    selection = choose(TableName("sales", "people"), PEOPLE, options.choice, check=salt_check("a salt of 16 letters"))
    kept = dataclasses.replace(options, choice=type(options.choice)())
    return [entry.text for entry in entries], kept, selection.hash


def load(tables: Any, **given: Any) -> MsSqlCdcLoadOperator:
    return MsSqlCdcLoadOperator(task_id="load", tables=tables, target=TARGET, salt_conn_id="salt", **given)


def through_xcom(value: Any) -> Any:
    """The value as another task pulls it."""
    pushed = json.dumps(BaseXCom.serialize_value(value))
    return BaseXCom.deserialize_value(SimpleNamespace(value=json.loads(pushed)))


def rendered(tables: Any, *, native: bool = False, **params: Any) -> Any:
    """What Jinja makes of the tables."""
    with DAG("shop", render_template_as_native_obj=native):
        task = load(tables)
    task.render_template_fields({"params": params})
    return task.tables


def expanded(tables: Any) -> dict[str, Any]:
    """What a mapped load is given: as the worker expands it, and as the serialized DAG holds it."""
    with DAG("shop", schedule=None) as dag:
        mapped = MsSqlCdcLoadOperator.partial(task_id="load", target=TARGET, salt_conn_id="salt").expand(
            tables=["sales.orders", tables]
        )
    context: Any = {"ti": SimpleNamespace(map_index=1), "dag": dag, "dag_run": SimpleNamespace(conf={}), "params": {}}
    mapped.render_template_fields(context)
    kept = DagSerialization.from_dict(json.loads(json.dumps(DagSerialization.to_dict(dag))))
    resolved = kept.get_task("load").expand_input.value["tables"][1]
    return {"expanded": context["task"].tables, "serialized": mapped.unmap({"tables": resolved}).tables}


def triggered(tables: Any) -> dict[str, Any]:
    """The arguments of the sensor's trigger, as the triggerer takes them from Airflow's database."""
    path, arguments = MsSqlCdcTrigger(tables=tables, target=TARGET, shapes=("mirror",), waiting_since=0.0).serialize()
    kept: dict[str, Any] = Trigger(path, arguments).kwargs
    return kept


def test_entries_mean_the_same_on_each_way_to_a_task() -> None:
    text = json.dumps(TABLES, default=str)
    templated = json.loads(text)
    templated[1]["where"][1][2] = "{{ params.day }}"
    templated[1]["table"] = "{{ params.table }}"
    ways = {
        "as it is": TABLES,
        "tuples": tuple(TABLES),
        "JSON": json.loads(text),
        "YAML": yaml.safe_load(yaml.safe_dump(json.loads(text))),
        "YAML with dates": yaml.full_load(yaml.dump(TABLES)),
        "XCom": through_xcom(TABLES),
        "XCom of JSON": through_xcom(json.loads(text)),
        "Jinja": rendered(templated, day="2000-01-01", table="sales.people"),
        "Jinja, native": rendered("{{ params.entries }}", native=True, entries=TABLES),
        **expanded(TABLES),
    }
    expected = chosen(read_entries(TABLES, salted=True))
    # no values of rows, and no restart of a trigger for a changed mask
    watched = ["sales.*", {"table": "sales.people", "shapes": ["mirror", "scd2"]}]
    for way, tables in ways.items():
        assert chosen(read_entries(load(tables).tables, salted=True)) == expected, way
        arguments = triggered(tables)
        assert json.loads(json.dumps(arguments["tables"])) == watched, way
        request = watch_request(MsSqlCdcTrigger(**arguments))
        assert request.patterns == ("sales.*", "sales.people"), way
        shapes = [request.options(TableName("sales", name)).shapes for name in ("people", "orders")]
        assert shapes == [("mirror", "scd2"), ("mirror",)], way
