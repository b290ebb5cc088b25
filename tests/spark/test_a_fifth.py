"""A fifth shape and a fifth target format are a file each, and a line in a registry."""

import dataclasses
from collections import Counter

import pytest

from airflow_provider_mssql_cdc.core.exceptions import ParameterError
from airflow_provider_mssql_cdc.core.formats import FORMATS, check_format
from airflow_provider_mssql_cdc.core.shapes import SHAPES, check_shapes
from airflow_provider_mssql_cdc.core.target import Target
from tests.support.spark.a_fifth_format import LINES
from tests.support.spark.a_fifth_shape import TALLIES
from tests.support.spark.origin import Origin, positions

pytestmark = pytest.mark.xdist_group(__name__)


@pytest.fixture
def orders(live: Origin, monkeypatch: pytest.MonkeyPatch) -> Origin:
    monkeypatch.setitem(SHAPES, TALLIES.name, TALLIES)
    monkeypatch.setitem(FORMATS, LINES.name, LINES)
    live.sql("CREATE TABLE dbo.orders (id int PRIMARY KEY, v int, note nvarchar(20))")
    live.sql("INSERT INTO dbo.orders VALUES (1, 10, N'a'), (2, 20, NULL), (3, 30, N'c')")
    live.enable("dbo.orders")
    live.wait_captured()
    return live


def changed(orders: Origin) -> None:
    orders.sql("UPDATE dbo.orders SET v = v + 1 WHERE id < 3; UPDATE dbo.orders SET note = N'x' WHERE id = 1")
    orders.sql("DELETE FROM dbo.orders WHERE id = 2; INSERT INTO dbo.orders VALUES (4, 40, N'd')")
    orders.wait_captured()


@pytest.mark.parametrize("format_", ["iceberg", "lines"])
def test_a_fifth_shape_and_format_are_loaded_as_the_others_are(orders: Origin, format_: str) -> None:
    shapes = ("mirror", "history", "scd2", "tallies")

    def table(at=None):
        spec = orders.table("dbo.orders", shapes, at=at)
        if format_ == "iceberg":
            return spec
        place = Target.parse(f"lines+file://{orders.work_dir}/lines")
        sinks = [
            dataclasses.replace(sink, format=place.format, table=place.table("{schema}_{table}", spec.name, sink.shape))
            for sink in spec.sinks
        ]
        return dataclasses.replace(spec, sinks=tuple(sinks))

    def rows(shape: str) -> list[dict]:
        if format_ == "iceberg":
            return orders.lake("dbo.orders", shape)
        folder = orders.work_dir / "lines" / f"dbo_orders{SHAPES[shape].suffix}"
        newest = max(int(file.stem) for file in folder.glob("*.json"))
        return [row.asDict() for row in orders.spark.read.json(str(folder / str(newest) / "rows")).collect()]

    first = orders.load(table())
    assert [sink.outcome for sink in first.tables[0].sinks] == ["first_load"] * 4
    changed(orders)
    cut = orders.max_lsn()
    second = orders.load(table(positions(first)), upto=cut)
    again = orders.load(table(positions(first)), upto=cut)

    assert (first.tables[0].failed, second.tables[0].failed, again.tables[0].failed) == ({}, {}, {})
    assert [sink.outcome for sink in again.tables[0].sinks] == ["already"] * 4
    source = sorted((row["id"], row["v"], row["note"]) for row in orders.sql("SELECT id, v, note FROM dbo.orders"))
    assert sorted((row["id"], row["v"], row["note"]) for row in rows("mirror")) == source
    events = [row for row in rows("history") if row["_op"] not in ("R", "B")]
    last = {event["id"]: event for event in sorted(events, key=lambda event: (event["_lsn"], event["_seq"]))}
    counts = Counter(event["id"] for event in events)
    said = ("_changes", "_last_op", "_last_lsn", "_last_ts")
    assert {row["id"]: tuple(row[name] for name in said) for row in rows("tallies")} == {
        id_: (counts[id_], event["_op"], event["_lsn"], event["_commit_ts"]) for id_, event in last.items()
    }
    assert counts == {1: 2, 2: 2, 4: 1}
    open_now = sorted((row["id"], row["v"], row["note"]) for row in rows("scd2") if row["_to_lsn"] is None)
    assert open_now == source


def test_what_the_records_say_is_asked_where_a_dag_is_read(orders: Origin) -> None:
    assert check_shapes(["tallies"]) == ("tallies",)
    assert Target.parse("lines+file:///data/shop").place == ("file:///data/shop",)
    with pytest.raises(ParameterError, match="lines of JSON have no partition_by"):
        check_format("lines+file:///data/shop", ["tallies"], partition_by=["id"])
    with pytest.raises(ParameterError, match=r"postgresql.*hold shapes=\[.*\] alone"):
        check_format("postgresql://warehouse/shop", ["tallies"])
    with pytest.raises(ParameterError, match=r"lines\+file:///folder"):
        Target.parse("nothing://of/these")
