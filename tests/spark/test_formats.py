"""Loads over markers and layouts of other versions, and what a load hands on of what it does not know."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.changes import HistoryOptions
from airflow_provider_mssql_cdc.core.codec import Format, to_json
from airflow_provider_mssql_cdc.core.columns import map_columns
from airflow_provider_mssql_cdc.core.exceptions import FormatError, TargetError, UnsupportedColumnError
from airflow_provider_mssql_cdc.core.feed import FeedRef
from airflow_provider_mssql_cdc.core.marker import Marker, TaskRun
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.spec import JobSpec, SinkSpec
from airflow_provider_mssql_cdc.core.table import Column
from airflow_provider_mssql_cdc.spark import job
from airflow_provider_mssql_cdc.spark.session import table_session
from airflow_provider_mssql_cdc.spark.shapes.base import SinkRows
from airflow_provider_mssql_cdc.spark.shapes.history import History
from airflow_provider_mssql_cdc.spark.shapes.table import TableRows
from airflow_provider_mssql_cdc.spark.shapes.transactions import Transactions
from airflow_provider_mssql_cdc.spark.sink import Sink
from airflow_provider_mssql_cdc.spark.targets import State
from airflow_provider_mssql_cdc.spark.targets.iceberg import IcebergTable
from airflow_provider_mssql_cdc.spark.targets.iceberg_marker import MARKER
from tests.core.test_spec import MARKER as A_MARKER
from tests.support.spark.model import table_spec
from tests.support.spark.origin import Origin, positions

pytestmark = pytest.mark.xdist_group(__name__)


@pytest.fixture
def orders(live: Origin) -> Origin:
    live.sql("CREATE TABLE dbo.orders (id int NOT NULL PRIMARY KEY, _tran_id int NULL, note nvarchar(40) NULL)")
    live.sql("INSERT INTO dbo.orders VALUES (1, 10, N'a'), (2, 20, N'b')")
    live.enable("dbo.orders")
    live.sql("UPDATE dbo.orders SET note = N'c' WHERE id = 1")
    live.wait_captured()
    return live


def target(orders: Origin, shape: str) -> IcebergTable:
    return IcebergTable(table_session(orders.spark), orders.target("dbo.orders", shape), "looks")


def marker_of(orders: Origin, shape: str) -> Marker:
    found = target(orders, shape).state().marker
    assert found is not None
    return found


def written(orders: Origin, shape: str) -> tuple[list, list, list]:
    """Rows, references and properties of a target."""
    session, name = orders.spark.newSession(), orders.sql_name("dbo.orders", shape)
    return (
        sorted(map(repr, session.table(name).collect())),
        sorted(map(repr, session.sql(f"SELECT * FROM {name}.refs").collect())),
        sorted(map(repr, session.sql(f"SHOW TBLPROPERTIES {name}").collect())),
    )


def test_a_source_column_named_as_a_later_system_column_is_loaded_by_the_older_layout(orders: Origin) -> None:
    """It was never refused, and its values are its own."""
    shapes = ("mirror", "history", "transactions")
    first = orders.load(orders.table("dbo.orders", shapes))
    (table,) = first.tables
    assert table.error is None
    (warning,) = table.warnings
    assert "gets no _tran_id, _healed" in warning
    orders.sql("UPDATE dbo.orders SET _tran_id = 11, note = N'd' WHERE id = 1; DELETE FROM dbo.orders WHERE id = 2")
    orders.wait_captured()
    second = orders.load(orders.table("dbo.orders", shapes, at=positions(first)))
    assert second.tables[0].error is None
    assert second.tables[0].warnings == ()
    assert orders.lake("dbo.orders") == [{"id": 1, "_tran_id": 11, "note": "d"}]
    history = orders.lake("dbo.orders", "history")
    assert "_healed" not in history[0]
    assert sorted((row["_op"], row["id"], row["_tran_id"]) for row in history if row["_op"] != "R") == [
        ("B", 1, 10), ("D", 2, 20), ("U", 1, 11)
    ]  # fmt: skip
    transactions = orders.lake("dbo.orders", "transactions")
    ids = orders.sql(
        "SELECT CONVERT(varchar(22), start_lsn, 1) AS lsn, CONVERT(varchar(22), tran_id, 1) AS [transaction]"
        " FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00"
    )
    assert {(row["_lsn"], row["_tran_id"]) for row in transactions} <= {(r["lsn"], r["transaction"]) for r in ids}
    assert len(transactions) == 2
    assert [marker_of(orders, shape).layout for shape in shapes] == [2, 1, 2]


def test_a_load_hands_on_what_it_only_keeps_and_names_its_run_and_feed(orders: Origin) -> None:
    run = TaskRun("shop", "load", "scheduled__1", 2)
    first = orders.load(orders.table("dbo.orders"), run=run)
    found = marker_of(orders, "history")
    feed = FeedRef.of(orders.instance("dbo.orders"))
    assert (found.run, found.feed, found.schema_kept) == (run, feed, True)
    schema = orders.table("dbo.orders").schema
    assert target(orders, "history").kept_schema(found.schema_hash) == KeptSchema.of(schema)
    # as a later version may leave it
    later = dataclasses.replace(found, copies=("c1",), unknown={"later": [1]})
    orders.sql("INSERT INTO dbo.orders VALUES (3, 30, N'z')")
    orders.wait_captured()
    name = orders.sql_name("dbo.orders", "history")
    data = json.dumps(json.loads(to_json(later)))
    session = orders.spark.newSession()
    session.conf.set(f"spark.sql.iceberg.snapshot-property.{MARKER}", data)
    session.sql(f"DELETE FROM {name} WHERE false")
    session.sql(f"INSERT INTO {name} SELECT * FROM {name} WHERE false")
    assert marker_of(orders, "history").unknown == {"later": [1]}
    second = orders.load(orders.table("dbo.orders", at=positions(first)))
    assert second.tables[0].error is None
    after = marker_of(orders, "history")
    assert (after.copies, after.unknown, after.feeds, after.run) == (("c1",), {"later": [1]}, found.feeds, None)
    assert after.position > found.position


@pytest.mark.parametrize("of", ["marker", "layout"])
def test_what_a_later_version_has_made_is_refused_and_nothing_is_changed(
    orders: Origin, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    first = orders.load(orders.table("dbo.orders"))
    orders.sql("INSERT INTO dbo.orders VALUES (3, 30, N'z')")
    orders.wait_captured()
    newer = dataclasses.replace(marker_of(orders, "history"), layout=3 if of == "layout" else 1)
    session, name = orders.spark.newSession(), orders.sql_name("dbo.orders", "history")
    with monkeypatch.context() as later:
        if of == "marker":
            later.setattr(Marker, "FORMAT", Format("marker", 3, "0.9.1", {}))
        data = json.dumps(json.loads(to_json(newer)))
    session.conf.set(f"spark.sql.iceberg.snapshot-property.{MARKER}", data)
    session.sql(f"INSERT INTO {name} SELECT * FROM {name} WHERE false")
    before = written(orders, "history")
    receipt = orders.load(orders.table("dbo.orders", ("history",), at=positions(first)))
    (table,) = receipt.tables
    assert table.error is not None
    assert table.error.permanent
    assert ("version 3" in table.error.message, "pgrade" in table.error.message) == (True, True)
    if of == "marker":
        assert written(orders, "history") == before
    else:
        # that the marker is remembered beside the snapshots is all that a look leaves
        assert written(orders, "history")[:2] == before[:2]


def test_a_spec_of_a_later_version_is_refused_by_the_job(orders: Origin, tmp_path, monkeypatch) -> None:
    first = orders.load(orders.table("dbo.orders"))
    before = written(orders, "mirror")
    orders.sql("INSERT INTO dbo.orders VALUES (3, 30, N'z')")
    orders.wait_captured()
    spec = orders.spec(orders.table("dbo.orders", at=positions(first)), upto=orders.max_lsn())
    with monkeypatch.context() as later:
        later.setattr(JobSpec, "FORMAT", Format("job spec", JobSpec.FORMAT.version + 1, "0.9.1", {}))
        (tmp_path / "spec.json").write_text(to_json(spec))
    # the job would end this process' Spark
    monkeypatch.setattr(type(orders.spark), "stop", lambda session: None)
    with pytest.raises(FormatError, match=f"the job spec has version {JobSpec.FORMAT.version + 1}"):
        job.main(["--spec", str(tmp_path / "spec.json")])
    assert written(orders, "mirror") == before


def test_changed_columns_are_said_with_those_that_the_target_was_loaded_with(orders: Origin) -> None:
    """The schema beside the table tells it, also where the checkpoint is lost."""
    orders.load(orders.table("dbo.orders"))
    table = orders.table("dbo.orders", ("history",))
    columns = tuple(dataclasses.replace(c, length=100) if c.name == "note" else c for c in table.schema.columns)
    feed = dataclasses.replace(table.feed, columns=columns)
    changed = dataclasses.replace(table, feed=feed, schema=dataclasses.replace(table.schema, columns=columns))
    (found,) = orders.load(changed).tables
    assert found.error is not None
    assert found.error.kind == "SchemaChangedError"
    assert "  column note was nvarchar(80,0,0)" in found.error.message
    assert ", and is nvarchar(100,0,0)" in found.error.message


class Named:
    """A target table of which the name and the columns are known."""

    name = "a.b.c"

    def __init__(self, columns: list[str]) -> None:
        self.columns = columns

    def rows(self, state: State) -> Named:
        return self


def layout(rows: SinkRows, columns: list[str] | None = None, marker: Marker | None = None) -> int:
    """The layout of a sink's table, which is there or not, with a marker or without."""
    state = State(columns is not None, None, marker, marker is None)
    sink = Sink(None, rows, lambda *_: Named(columns or []), ("a", "b", "c"), lambda _: None)  # type: ignore[arg-type,return-value]
    return sink.layout(state)


def history(columns: tuple[Column, ...], **options: Any) -> History:
    """A history of a table with these columns."""
    spec = table_spec(columns=columns, key=("id",))
    table = TableRows(spec, map_columns(spec.name, spec.schema), None)
    return History(table, SinkSpec("history", ("a", "b", "c"), None, None, history=HistoryOptions(**options)))


def test_a_history_without_marker_is_read_by_its_columns_unless_they_are_the_sources() -> None:
    def named(*names: str) -> tuple[Column, ...]:
        return tuple(Column(n, n, name, "int") for n, name in enumerate(("id", *names), start=1))

    plain, taken = history(named("note")), history(named("_Tran_Id", "_healed"))
    for version in (1, 2):
        assert layout(plain, [column.name for column in plain.columns(version)]) == version
    assert (layout(plain), layout(taken)) == (2, 1)
    assert layout(taken, [column.name for column in taken.columns(1)]) == 1
    wide = history(named("_Tran_Id", "_healed"), form="wide")
    assert layout(wide) == 2, "its data columns have other names"


@pytest.mark.parametrize("kind", ["history", "transactions", "wide"])
def test_a_source_column_must_not_take_the_place_of_a_system_column(kind: str) -> None:
    columns = (Column(1, 1, "id", "int", 4, 10), Column(2, 2, "_TRAN_ID", "int", 4, 10))
    rows: SinkRows = history(columns, form="wide" if kind == "wide" else "events")
    if kind == "transactions":
        rows = Transactions(rows.table, SinkSpec("transactions", ("a", "b", "c"), None, None))

    def marked(version: int) -> int:
        return layout(rows, [], dataclasses.replace(A_MARKER, layout=version))

    assert marked(1) == 1
    if kind == "history":
        with pytest.raises(UnsupportedColumnError, match=r"'_TRAN_ID' has the name of a system column of a\.b\.c"):
            marked(2)
    else:
        assert marked(2) == 2
    with pytest.raises(TargetError, match="system columns of version 3"):
        marked(3)
