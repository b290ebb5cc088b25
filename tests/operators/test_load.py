"""The load operator under Airflow, with spark-submit, against the sandbox."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import os
import runpy
import stat
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.changes import HistoryOptions
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Identity
from airflow_provider_mssql_cdc.core.codec import from_json
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.hooks.parameters import LOAD_ONLY
from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator
from airflow_provider_mssql_cdc.sandbox import Sandbox
from airflow_provider_mssql_cdc.sensors.mssql_cdc import MsSqlCdcSensor
from airflow_provider_mssql_cdc.triggers.mssql_cdc import MsSqlCdcEventTrigger
from tests.conftest import spark_starts
from tests.support.harsh import harsh_sandbox
from tests.support.lake import add_catalog, catalog

CANARY = "C4nary-pass\\word é="
SALT = "C4nary-salt, long\\é="
MASKS = {"tables": ["lab.*", {"table": "lab.items", "mask": {"name": "hash"}}], "salt_conn_id": "salt"}

SHOP = {"tables": ["lab.*"], "target": "iceberg://lake/shop", "shapes": ["mirror", "history"]}

DAG_FILE = """
from airflow.sdk import DAG

from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator

with DAG({dag_id!r}, schedule=None) as dag:
    MsSqlCdcLoadOperator(task_id="load", conn_id="spark_default", **{arguments!r})
"""


class World:
    """A server, a lake, and an Airflow that runs DAGs with one load."""

    def __init__(self, server: Sandbox, home: Path, folder: Path, spark) -> None:
        self.server, self.home, self.folder, self.spark = server, home, folder, spark
        self.catalog = f"lake_{folder.name.replace('-', '_')}"
        add_catalog(spark, self.catalog, folder / "lake")

    def sql(self, text: str) -> list[dict[str, Any]]:
        tables = self.server.execute(text, database="shop")
        return tables[-1].to_pylist() if tables else []

    def arguments(self, **given: Any) -> dict[str, Any]:
        conf = {
            **catalog("lake", self.folder / "lake"),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": str(self.folder / "events"),
            "spark.sql.shuffle.partitions": "2",
            # as Spark does where nothing is said of it
            "spark.sql.codegen.wholeStage": "true",
            "spark.sql.codegen.factoryMode": "FALLBACK",
        }
        return {**SHOP, "conf": conf, "work_dir": str(self.folder / "work"), **given}

    def run(self, dag_id: str, **given: Any) -> tuple[str, dict[str, Any]]:
        """Run a load as a DAG; the run's state, and the summary that it pushed."""
        path = self.home / "dags" / f"{dag_id}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(DAG_FILE.format(dag_id=dag_id, arguments=self.arguments(**given)))
        run = runpy.run_path(str(path))["dag"].test()
        (instance,) = run.get_task_instances()
        return str(run.state), instance.xcom_pull(task_ids="load", key="summary")

    def lake_rows(self, table: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in self.spark.table(f"{self.catalog}.shop.{table}").collect())

    def checkpoint(self, table: str) -> Checkpoint | None:
        from airflow.models import Variable

        identity = Identity("mssql_default", "shop", TableName("lab", table), "iceberg://lake/shop")
        text = Variable.get(identity.variable, default_var=None)
        return from_json(Checkpoint, text) if text else None


def hashed(text: str) -> str:
    """The hash of a masked text."""
    return hashlib.sha256((SALT + text).encode()).hexdigest()


@pytest.fixture(scope="module")
def world(airflow_db, tmp_path_factory, spark):
    folder = tmp_path_factory.mktemp("load")
    (folder / "events").mkdir()
    with harsh_sandbox(database="shop", password=CANARY) as server:
        patch = pytest.MonkeyPatch()
        connection = {
            "conn_type": "mssql",
            "host": server.host,
            "port": server.port,
            "login": server.user,
            "password": CANARY,
            "schema": "shop",
            "extra": {"trustServerCertificate": "true"},
        }
        patch.setenv("AIRFLOW_CONN_MSSQL_DEFAULT", json.dumps(connection))
        patch.setenv("AIRFLOW_CONN_SALT", json.dumps({"conn_type": "generic", "password": SALT}))
        patch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[2]"}))
        for statement in (
            "CREATE SCHEMA lab",
            "CREATE TABLE lab.items (id int NOT NULL PRIMARY KEY, name nvarchar(40) NULL)",
            "CREATE TABLE lab.keyless (a int NULL)",
            "INSERT INTO lab.items VALUES (1, N'one'), (2, N'two')",
            "EXEC sys.sp_cdc_enable_db",
            "EXEC sys.sp_cdc_enable_table @source_schema = N'lab', @source_name = N'items', @role_name = NULL",
            "EXEC sys.sp_cdc_enable_table @source_schema = N'lab', @source_name = N'keyless', @role_name = NULL",
        ):
            server.execute(statement, database="shop")
        # as if the capture had been idle for minutes: a first load waits until an LSN is mapped
        server.capture.step(server.cdc("shop"), dummy=True)
        yield World(server, airflow_db, folder, spark)
        patch.undo()


class Watch:
    """Keeps what can be seen of a load while it runs: command lines of all processes, specs, properties files."""

    def __init__(self, work_dir: Path) -> None:
        self._work_dir, self._end = work_dir, threading.Event()
        self.commands: set[str] = set()
        self.specs: set[str] = set()
        self.modes: set[int] = set()

    def __enter__(self) -> Watch:
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._end.wait(0.05):
            for process in Path("/proc").glob("[0-9]*/cmdline"):
                self._note(self.commands, process)
            # not rglob: a folder that is removed while it is walked is an error in Python 3.11
            for spec in self._work_dir.glob("*/spec.json"):
                self._note(self.specs, spec)
            # others that run beside this one have files of their own
            for command in [c for c in self.commands if "--properties-file" in c and str(self._work_dir) in c]:
                words = command.split("\0")
                path = Path(words[words.index("--properties-file") + 1])
                if path.exists():
                    self.modes.add(stat.S_IMODE(path.stat().st_mode))

    @staticmethod
    def _note(notes: set[str], path: Path) -> None:
        with contextlib.suppress(OSError):
            notes.add(path.read_text(errors="replace"))


@pytest.mark.xdist_group("airflow")
def test_the_life_of_a_load(world, capfd):
    with Watch(world.folder / "work") as watch:
        state, summary = world.run("first", **MASKS)
    printed = capfd.readouterr()

    # the table without a key failed alone, and for good
    assert state == "failed"
    rows = {row["table"]: row for row in summary["tables"]}
    assert rows["lab.keyless"]["status"] == "failed"
    assert "mirror needs a key" in rows["lab.keyless"]["error"]
    assert rows["lab.items"]["sinks"] == {"mirror": "first_load", "history": "first_load"}
    assert rows["lab.items"]["copied"] == 2
    assert world.lake_rows("lab_items") == [(1, hashed("one")), (2, hashed("two"))]
    assert str(world.checkpoint("items").position(["mirror", "history"])) == rows["lab.items"]["position"]
    assert "mirror needs a key" in world.checkpoint("keyless").failure().reason

    # password and salt are nowhere to be seen
    assert [c for c in watch.commands if "--properties-file" in c]
    assert watch.modes == {0o600}
    assert [spec for spec in watch.specs if "sqlserver" in spec]
    seen = [*watch.commands, *watch.specs, printed.out, printed.err]
    seen += [path.read_bytes().decode("utf-8", "replace") for path in files(world.home)]
    seen += [path.read_bytes().decode("utf-8", "replace") for path in files(world.folder)]
    for name in ("password", "salt"):
        assert [text for text in seen if f"mssql_cdc.{name}" in text], "the event log names the property"
    assert [text for text in seen if "sha2(" in text], "the event log has the plans"
    for text in seen:
        assert CANARY not in text
        assert json.dumps(CANARY)[1:-1] not in text
        assert SALT not in text
        assert "C4nary" not in text
    # the other test leaves a copy, with which a next run would go on
    left = [path for path in (world.folder / "work").glob("*") if path.name != "copies"]
    assert not left, "spec, code and staged rows are removed"

    # nothing to load: no Spark
    starts = spark_starts()
    state, summary = world.run("quiet", exclude=["lab.keyless"], **MASKS)
    assert state == "success"
    assert [(row["table"], row["status"]) for row in summary["tables"]] == [("lab.items", "quiet")]
    assert spark_starts() == starts

    # a window, up to the cut that was handed on
    world.sql("UPDATE lab.items SET name = N'eins' WHERE id = 1; DELETE FROM lab.items WHERE id = 2")
    world.server.step("shop")
    cut = "0x" + world.sql("SELECT sys.fn_cdc_get_max_lsn() AS lsn")[0]["lsn"].hex().upper()
    world.sql("INSERT INTO lab.items VALUES (3, N'later')")
    world.server.step("shop")
    state, summary = world.run("window", exclude=["lab.keyless"], upto=cut, **MASKS)
    assert state == "success"
    (row,) = summary["tables"]
    assert (row["inserted"], row["updated"], row["deleted"], row["position"]) == (0, 1, 1, cut)
    assert world.lake_rows("lab_items") == [(1, hashed("eins"))]
    assert str(world.checkpoint("items").position(["mirror", "history"])) == cut
    assert asset_events(world)[-1]["extra"]["tables"] == {
        "lab.items": {
            "after": summary_position(world, "first"),
            "upto": cut,
            "feed": "lab_items",
            "schema_hash": row["schema_hash"],
        }
    }


REPLAY = {"replay": True, "shapes": ["history"]}


def files(folder: Path):
    return [path for path in folder.rglob("*") if path.is_file()]


def asset_events(world: World) -> list[dict[str, Any]]:
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        query = select(AssetEvent.extra, AssetModel.uri).join(AssetModel, AssetModel.id == AssetEvent.asset_id)
        return [{"extra": extra, "uri": uri} for extra, uri in session.execute(query.order_by(AssetEvent.id))]


def summary_position(world: World, dag_id: str) -> str:
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        query = select(XComModel.value).where(XComModel.dag_id == dag_id, XComModel.key == "summary")
        (value,) = session.scalars(query)
    summary = json.loads(value) if isinstance(value, str) else value
    return next(row["position"] for row in summary["tables"] if row["table"] == "lab.items")


@pytest.mark.xdist_group("airflow")
def test_killing_a_load_ends_spark_and_removes_what_it_staged(world):
    # in a schema that the other test's pattern does not match
    world.sql("CREATE SCHEMA slow")
    world.sql("CREATE TABLE slow.items (id int NOT NULL PRIMARY KEY)")
    world.sql("EXEC sys.sp_cdc_enable_table @source_schema = N'slow', @source_name = N'items', @role_name = NULL")
    world.sql("INSERT INTO slow.items VALUES (1)")
    world.server.step("shop")
    operator = MsSqlCdcLoadOperator(
        task_id="load", conn_id="spark_default", **world.arguments(tables=["slow.*"], shapes=["mirror"])
    )
    context = {"task_state_store": State(), "ti": None}
    failures: list[Exception] = []

    def execute() -> None:
        try:
            operator.execute(context)
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=execute)
    # while the capture is held, a first load waits for it
    world.server.capture.hold()
    try:
        thread.start()
        staged = wait_for(lambda: failures or list((world.folder / "work").rglob("_SUCCESS")))
        assert failures == []
        (spec,) = (world.folder / "work").rglob("spec.json")
        assert [command for command in command_lines() if str(spec) in command]
        operator.on_kill()
        thread.join(60)
    finally:
        world.server.capture.release()
    assert not thread.is_alive()
    assert staged
    assert failures
    # but for the copy, with which the next run goes on
    assert [path.name for path in (world.folder / "work").iterdir()] == ["copies"]
    assert wait_for(lambda: not [command for command in command_lines() if str(spec) in command])


class State(dict):
    """The task's state store."""

    def set(self, key: str, value: Any) -> None:
        self[key] = value

    def delete(self, key: str) -> None:
        self.pop(key, None)


def command_lines() -> list[str]:
    found: set[str] = set()
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        if process.parent.name != str(os.getpid()):
            Watch._note(found, process)
    return list(found)


def wait_for(condition, seconds: float = 120):
    pause, waited = threading.Event(), 0.0
    while not (found := condition()):
        assert waited < seconds
        pause.wait(0.1)
        waited += 0.1
    return found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"shapes": ["nope"]}, "shapes="),
        ({"shapes": []}, "shapes="),
        ({"deletes": "maybe"}, "deletes='maybe'"),
        ({"changes": "some"}, "changes='some'"),
        ({"history_form": "wide", "changes": "net"}, "has the values before each change"),
        (
            {"history_form": "wide", "tables": [{"table": "lab.a", "partition_by": ["id"]}]},
            "load it by a task of its own",
        ),
        ({"operations": ["upsert"]}, "operations="),
        ({"operations": ["insert"], "shapes": ["mirror"]}, "belong to shapes"),
        ({"replay": True, "shapes": ["history"], "changes": "net"}, "a replay cannot tell"),
        ({"on_disabled": "ignore"}, "on_disabled='ignore'"),
        ({"on_gap": "ignore"}, "on_gap='ignore'"),
        ({"on_gap": ["copy", "ct"]}, "on_gap=.*: expected .fail., .copy., .ct. or"),
        ({"on_gap": "ct", "source": "ct"}, "heals gaps of CDC.*beside source=.ct."),
        ({"on_schema_change": "ignore"}, "on_schema_change='ignore'"),
        ({"enable_lock_timeout": 0}, "enable_lock_timeout=0"),
        ({"propose_timeout": 0}, "propose_timeout=0: expected seconds or a timedelta of more than 0 s, or None"),
        ({"propose_timeout": "soon"}, "propose_timeout='soon'"),
        ({"replay": True}, 'a replay needs shapes=\\["history"\\]'),
        ({"replay": True, "shapes": ["history"], "upto": "0x" + "0" * 20}, "exclude each other"),
        ({"interval": ("2026-01-01", "2026-01-02")}, "belong to replay"),
        ({**REPLAY, "interval": "2026-01-01T00:00:00Z"}, "is not two times"),
        ({**REPLAY, "interval": ("2026-01-01T00:00:00Z",)}, "is not two times"),
        ({**REPLAY, "interval": ("2026-01-01T00:00:00Z", None)}, "is not two times"),
        ({**REPLAY, "interval": ("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z")}, "before its start"),
        ({**REPLAY, "interval": ("2026-01-01", "2026-01-02")}, "has no time zone"),
        ({"target_suffix": "_x"}, "belong to replay"),
        ({"max_rows": 0}, "max_rows=0"),
        ({"small_window": -1}, "small_window=-1"),
        ({"max_lag": "30"}, "max_lag='30'"),
        ({"max_lag": None}, "max_lag=None"),
        ({"max_lag": float("nan")}, "max_lag=nan"),
        ({"max_lag": timedelta.max}, "max_lag="),
        ({"max_transactions": -1}, "max_transactions=-1"),
        ({"deploy_mode": "cluster"}, "name a work_dir"),
        ({"deploy_mode": "cluster", "work_dir": "/tmp/x"}, "name a work_dir"),
        ({"target": "lake/shop"}, "iceberg://catalog/namespace"),
        ({"target": "parquet+file:///lake"}, 'hold shapes=\\["history", "transactions"\\] alone'),
        (
            {"target": "parquet+file:///{{ ds }}", "shapes": ["history"], "table_properties": {"a": "b"}},
            "have no table_properties",
        ),
        (
            {"target": "postgresql://warehouse/shop", "shapes": ["scd2"]},
            'hold shapes=\\["mirror", "history", "transactions"\\] alone',
        ),
        (
            {"target": "postgresql://warehouse/{{ ds }}", "tables": {"table": "a.b", "partition_by": ["c"]}},
            "have no partition_by",
        ),
        ({"target": "postgresql://warehouse/shop", "table_properties": {"a": "b"}}, "have no table_properties"),
        ({"target": "postgresql://warehouse"}, "or postgresql://connection_id/schema"),
        ({"target": "postgresql://warehouse/" + "s" * 64}, "at most 63 bytes"),
        ({"target": "delta+file:///lake/../x"}, "without '..'"),
        ({"target": "iceberg://lake/../x"}, "is no name of a namespace"),
        ({"tables": []}, "tables is empty"),
        ({"tables": ["a.b.c"]}, "table pattern"),
        ({"exclude": "[x"}, "table pattern"),
        ({"table_name": "{nope}"}, "table_name='{nope}'"),
        ({"replay": True, "shapes": ["history"], "target_suffix": "/x"}, "makes a path"),
        ({"tables": [{"table": "lab.*", "key": []}]}, "at least one name"),
        ({**REPLAY, "tables": [{"table": "a", "shapes": ["mirror"]}]}, "a replay needs"),
        ({"tables": [{"table": "lab."}]}, "table pattern"),
        ({"application": "x.py"}, "application is the load's own"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_arguments_that_make_no_sense_are_refused_when_the_dag_is_parsed(given, message):
    with pytest.raises(ValueError, match=message):
        MsSqlCdcLoadOperator(task_id="load", **{**SHOP, **given})


def test_what_a_history_is_to_hold_comes_to_the_plan():
    given = {"changes": "all", "operations": ["delete", "insert"], "shapes": ["history", "transactions"]}
    options = MsSqlCdcLoadOperator(task_id="load", **{**SHOP, **given}).request().defaults
    assert (options.shapes, options.history) == (
        ("history", "transactions"),
        HistoryOptions("all", "events", ("insert", "delete")),
    )


def test_what_is_said_of_tables_and_steps_comes_to_the_plan():
    given = {
        "deletes": "ignore",
        "table_properties": {"format-version": "2"},
        "tables": {"table": "lab.items", "partition_by": ("bucket(4, id)",), "key": ("id",)},
        "on_gap": "copy",
        "on_schema_change": "fail",
        "fill": "none",
        "history_fill": "all",
        "widen_list": True,
        "incompatible_types": "string",
        "dropped_columns": "drop",
        "on_disabled": "skip",
        "max_transactions": 7,
        "max_rows": 8,
        "small_window": 9,
    }
    request = MsSqlCdcLoadOperator(task_id="load", **{**SHOP, **given}).request()
    (entry,) = request.entries
    options = entry.options(request.defaults)
    assert (options.deletes, options.table_properties, options.copies_on_gap) == (
        "ignore",
        {"format-version": "2"},
        True,
    )
    assert (options.fails_on_schema_change, options.leaves_null) == (True, True)
    assert (options.history_fill, options.widen_list, options.incompatible_types) == ("all", True, "string")
    assert options.dropped_columns == "drop"
    assert (options.partition_by, options.key) == (("bucket(4, id)",), ("id",))
    assert (request.on_disabled, request.max_transactions, request.max_rows) == ("skip", 7, 8)
    assert request.small_window == 9


def test_each_run_of_a_replay_can_build_a_table_of_its_own():
    replay = MsSqlCdcLoadOperator(
        task_id="replay", **{**SHOP, "shapes": ["history"]}, replay=True, target_suffix="_{{ ds_nodash }}"
    )
    replay.render_template_fields({"ds_nodash": "20260105"})
    assert replay.target_suffix == "_20260105"


def test_what_says_how_to_load_can_be_given_to_sensor_and_watcher_too():
    """One group of parameters for all of them: each that does not say which run of a load is meant."""
    taken = {p for one in (MsSqlCdcSensor, MsSqlCdcEventTrigger) for p in inspect.signature(one.__init__).parameters}
    of_a_run = {"self", "kwargs", "upto", "replay", "interval", "target_suffix", "name", "packages"}

    assert set(inspect.signature(MsSqlCdcLoadOperator.__init__).parameters) - of_a_run - taken == LOAD_ONLY


def test_the_parameters_of_spark_submit_are_kept():
    operator = MsSqlCdcLoadOperator(
        task_id="load", executor_memory="3g", conf={"spark.x": "1"}, capture_timeout=timedelta(minutes=1), **SHOP
    )
    assert operator._executor_memory == "3g"
    assert operator.conf == {"spark.x": "1"}
    assert "iceberg-spark-runtime-4.1" in operator.packages
    assert {"tables", "target", "upto", "exclude", "interval", "conf", "packages"} <= set(operator.template_fields)


@pytest.mark.parametrize(
    ("target", "jar"),
    [
        ("iceberg://lake/shop", "org.apache.iceberg:"),
        ("iceberg://lake/{{ params.shop }}", "org.apache.iceberg:"),
        ("delta://spark_catalog/shop", "io.delta:"),
        ("delta+file:///lake/{{ ds }}", "io.delta:"),
    ],
)
def test_the_jars_are_those_of_the_format(target, jar):
    operator = MsSqlCdcLoadOperator(task_id="load", **{**SHOP, "target": target})
    format_, driver = operator.packages.split(",")
    assert format_.startswith(jar)
    assert driver.startswith("com.microsoft.sqlserver:mssql-jdbc:")
    assert MsSqlCdcLoadOperator(task_id="load", packages="", **{**SHOP, "target": target}).packages == ""
