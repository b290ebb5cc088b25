"""The job over real JDBC and real Iceberg tables, compared with plain SELECTs on the source."""

import json
from pathlib import Path

import pytest

from airflow_provider_mssql_cdc.core.spec import Receipt, from_json
from tests.spark.origin import positions

pytestmark = pytest.mark.xdist_group("spark")


def rows(origin, name, columns):
    return sorted(tuple(row.values()) for row in origin.sql(f"SELECT {columns} FROM {name}"))


def mirror(origin, name, *columns):
    return sorted(tuple(row[c] for c in columns) for row in origin.lake(name))


@pytest.fixture
def orders(live):
    live.sql("CREATE TABLE dbo.orders (id int NOT NULL PRIMARY KEY, note nvarchar(40), doc nvarchar(max))")
    live.sql("INSERT INTO dbo.orders VALUES " + ", ".join(f"({n}, N'n{n}', N'doc {n}')" for n in range(1, 201)))
    live.enable("dbo.orders")
    live.sql("UPDATE dbo.orders SET note = N'changed' WHERE id = 1")
    live.wait_captured()
    return live


def test_first_load_and_next_load(orders):
    first = orders.load(orders.table("dbo.orders"))

    (table,) = first.tables
    assert table.error is None
    assert table.counts["copied"] == 200
    assert [s.outcome for s in table.sinks] == ["first_load", "first_load"]
    assert mirror(orders, "dbo.orders", "id", "note", "doc") == rows(orders, "dbo.orders", "id, note, doc")
    assert {row["_op"] for row in orders.lake("dbo.orders", "history")} == {"R"}

    orders.sql("UPDATE dbo.orders SET note = N'x' WHERE id BETWEEN 10 AND 20")
    orders.sql(
        "BEGIN TRAN; DELETE FROM dbo.orders WHERE id = 5; INSERT INTO dbo.orders VALUES (5, N'again', NULL); COMMIT"
    )
    orders.sql("UPDATE dbo.orders SET id = 1000 WHERE id = 7")
    orders.sql("DELETE FROM dbo.orders WHERE id > 190 AND id < 1000")
    orders.wait_captured()
    second = orders.load(orders.table("dbo.orders", at=positions(first)))

    (table,) = second.tables
    assert table.error is None
    assert table.counts == {"events": 25, "inserted": 2, "updated": 11, "deleted": 12, "copied": 0}
    assert mirror(orders, "dbo.orders", "id", "note", "doc") == rows(orders, "dbo.orders", "id, note, doc")
    history = [row for row in orders.lake("dbo.orders", "history") if row["_op"] != "R"]
    captured = orders.sql(
        "SELECT CONVERT(varchar(22), [__$start_lsn], 1) AS l, [__$command_id] AS c, [__$operation] AS o, id"
        f" FROM cdc.dbo_orders_CT WHERE [__$start_lsn] > {table.sinks[0].before}"
    )
    kinds = {1: "D", 2: "I", 3: "B", 4: "U"}
    assert sorted((h["_lsn"], h["_command_id"], h["_op"], h["id"]) for h in history) == sorted(
        (c["l"], c["c"], kinds[c["o"]], c["id"]) for c in captured
    )
    assert from_json(Receipt, Path(orders.work_dir, second.spec_id, "receipt.json").read_text()) == second
    assert json.loads(Path(orders.work_dir, second.spec_id, "receipt.json").read_text())["version"] == 1
    assert not Path(orders.work_dir, second.spec_id, "staged").exists()
