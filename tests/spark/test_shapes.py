"""All shapes of a table in one run, in each format, compared with what the source and its change table say."""

from __future__ import annotations

import dataclasses
import datetime

import pytest

from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.shapes import event_columns
from airflow_provider_mssql_cdc.core.spec import ReplaySpec
from tests.support.spark.origin import Origin, positions

pytestmark = pytest.mark.xdist_group(__name__)

SHAPES = ("mirror", "history", "scd2")
COLUMNS = ("id", "note", "doc")
KINDS = {1: "D", 2: "I", 3: "B", 4: "U"}
DOC = 0b100
"""The bit of ``doc`` in an update mask."""

IN_BUCKETS = {"partition_by": ("bucket(4, id)",), "properties": {"write.merge.mode": "copy-on-write"}}


# how a table of one more format takes what these load, the others tell
ICEBERG_OFTEN = ["iceberg", pytest.param("delta", marks=pytest.mark.thorough)]


@pytest.fixture(params=["iceberg", "delta"])
def orders(request, live: Origin) -> Origin:
    if request.param == "iceberg in a JDBC catalog":
        live.catalog = request.getfixturevalue("jdbc_catalog")
    elif request.param == "delta in the catalog":
        live.format, live.catalog = "delta", request.getfixturevalue("delta_catalog")
    elif request.param == "postgresql":
        live.into(request.getfixturevalue("postgresql"))
    else:
        live.format = request.param
    live.sql("CREATE TABLE dbo.orders (id int NOT NULL PRIMARY KEY, note nvarchar(40), doc nvarchar(max))")
    live.sql("INSERT INTO dbo.orders VALUES " + ", ".join(f"({n}, N'n{n}', N'doc {n}')" for n in range(1, 31)))
    live.enable("dbo.orders")
    live.sql("UPDATE dbo.orders SET note = N'early' WHERE id = 1")
    live.wait_captured()
    return live


def work(origin: Origin) -> None:
    """Change rows several times, within a transaction and over several; delete; let one come and go; change a key."""
    for batch in (
        "UPDATE dbo.orders SET note = N'a' WHERE id BETWEEN 2 AND 4",
        "UPDATE dbo.orders SET note = N'b' WHERE id = 2; UPDATE dbo.orders SET note = N'c' WHERE id = 2",
        "DELETE FROM dbo.orders WHERE id IN (3, 5); INSERT INTO dbo.orders VALUES (3, N'again', NULL)",
        "INSERT INTO dbo.orders VALUES (100, N'short', NULL); DELETE FROM dbo.orders WHERE id = 100",
        "UPDATE dbo.orders SET id = 200 WHERE id = 6",
        "UPDATE dbo.orders SET doc = NULL WHERE id = 7; UPDATE dbo.orders SET note = N'x' WHERE id = 7",
        "UPDATE dbo.orders SET note = N'last' WHERE id = 8; DELETE FROM dbo.orders WHERE id = 8",
        "INSERT INTO dbo.orders VALUES (101, N'stays', N'd')",
    ):
        origin.sql(f"BEGIN TRAN; {batch}; COMMIT")
    origin.wait_captured()


def events(origin: Origin, copied: dict[int, dict], low: str, times: dict) -> list[dict]:
    """The changes since the copy as a history holds them, worked out one after the other.

    The rows are followed, since CDC leaves a LOB that did not change out of images: what a row was before a change is
    never what the change table says of it, and what an update changed is what tells the two apart.
    """
    rows, found = dict(copied), []
    transactions = {
        row["lsn"]: row["transaction"]
        for row in origin.sql(
            "SELECT CONVERT(varchar(22), start_lsn, 1) AS lsn, CONVERT(varchar(22), tran_id, 1) AS [transaction]"
            " FROM cdc.lsn_time_mapping"
        )
    }
    assert len({*transactions.values()}) > 3
    for change in origin.sql(
        "SELECT *, CONVERT(varchar(22), [__$start_lsn], 1) AS lsn, CONVERT(varchar(22), [__$seqval], 1) AS seqval,"
        " ROW_NUMBER() OVER (PARTITION BY [__$start_lsn] ORDER BY [__$command_id], [__$seqval], [__$operation]) AS seq"
        f" FROM cdc.dbo_orders_CT WHERE [__$start_lsn] > {low} ORDER BY [__$start_lsn], seq"
    ):
        id_, kind, changed = change["id"], KINDS[change["__$operation"]], list(COLUMNS)
        was = rows.pop(id_, None)
        row = was if kind in "BD" else {name: change[name] for name in COLUMNS}
        if kind == "U":
            if not change["__$update_mask"][-1] & DOC:
                row["doc"] = was["doc"]
            changed = found[-1]["_changed"] = [name for name in COLUMNS if row[name] != was[name]]
        if kind != "D":
            rows[id_] = row
        time = times[change["lsn"]]
        event = {
            "_op": kind,
            "_lsn": change["lsn"],
            "_command_id": change["__$command_id"],
            "_seqval": change["seqval"],
            "_seq": change["seq"],
            "_commit_ts": time,
            # the zone of the server's clock
            "_commit_ts_utc": time.replace(tzinfo=datetime.UTC),
            "_changed": changed,
            "_unknown": [],
            "_tran_id": transactions[change["lsn"]],
            "_healed": False,
        }
        found.append({**row, **event})
    return found


def versions(happened: list[dict], copied: dict[int, dict], low: str) -> set[tuple]:
    """The versions that events and copy make, worked out one event after the other."""
    rows = {row["id"]: (row["note"], row["doc"], low) for row in copied.values()}
    found = set()
    for event in happened:
        if event["_op"] == "B":
            continue
        was = rows.pop(event["id"], None)
        if was is not None and was[2] != event["_lsn"]:
            found.add((event["id"], *was, event["_lsn"]))
        if event["_op"] != "D":
            rows[event["id"]] = (event["note"], event["doc"], event["_lsn"])
    return found | {(id_, *row, None) for id_, row in rows.items()}


def in_order(history: list[dict]) -> list[dict]:
    return sorted(history, key=lambda row: (row["_lsn"], row["_seq"] or 0, row["id"]))


def made_with(origin: Origin, shape: str) -> tuple[list[str], dict[str, str]]:
    """A target's partition expressions and properties."""
    session, name = origin.spark.newSession(), origin.sql_name("dbo.orders", shape)
    described = session.sql(f"DESCRIBE TABLE {name}").collect()
    partitions = [row["data_type"] for row in described if row["col_name"].startswith("Part ")]
    return partitions, {row["key"]: row["value"] for row in session.sql(f"SHOW TBLPROPERTIES {name}").collect()}


@pytest.mark.parametrize(
    ("orders", "made"),
    [
        ("iceberg", IN_BUCKETS),
        pytest.param("delta", {}, marks=pytest.mark.thorough),
        pytest.param("delta in the catalog", {}, marks=pytest.mark.thorough),
        pytest.param("iceberg in a JDBC catalog", {}, marks=pytest.mark.thorough),
    ],
    indirect=["orders"],
)
@pytest.mark.every_run
def test_all_shapes_of_one_run_hold_what_the_source_says(orders: Origin, made: dict) -> None:
    copied = {row["id"]: row for row in orders.sql("SELECT id, note, doc FROM dbo.orders")}
    first = orders.load(orders.table("dbo.orders", SHAPES, **made))
    (table,) = first.tables
    assert table.error is None
    assert [sink.outcome for sink in table.sinks] == ["first_load"] * 3
    low = min(row["_from_lsn"] for row in orders.lake("dbo.orders", "scd2"))

    work(orders)
    cut = orders.max_lsn()
    second = orders.load(orders.table("dbo.orders", SHAPES, at=positions(first), **made), upto=cut)
    again = orders.load(orders.table("dbo.orders", SHAPES, at=positions(first), **made), upto=cut)

    assert [table.error for receipt in (second, again) for table in receipt.tables] == [None, None]
    assert [sink.outcome for sink in again.tables[0].sinks] == ["already"] * 3
    source = sorted(tuple(row.values()) for row in orders.sql("SELECT id, note, doc FROM dbo.orders"))
    assert sorted(tuple(row[c] for c in COLUMNS) for row in orders.lake("dbo.orders")) == source
    times = {
        row["lsn"]: row["time"]
        for row in orders.sql(
            "SELECT CONVERT(varchar(22), start_lsn, 1) AS lsn, tran_end_time AS time FROM cdc.lsn_time_mapping"
        )
    }
    happened = events(orders, copied, low, times)
    scd2 = orders.lake("dbo.orders", "scd2")
    assert {(*(row[c] for c in COLUMNS), row["_from_lsn"], row["_to_lsn"]) for row in scd2} == versions(
        happened, copied, low
    )
    assert len(scd2) == len({(row["id"], row["_from_lsn"]) for row in scd2})
    assert sorted(tuple(row[c] for c in COLUMNS) for row in scd2 if row["_to_lsn"] is None) == source
    for row in scd2:
        assert row["_from_ts"] == (times[row["_from_lsn"]] if row["_from_lsn"] != low else None)
        assert row["_to_ts"] == (times[row["_to_lsn"]] if row["_to_lsn"] else None)
    copy = {**dict.fromkeys([*event_columns(Lsn), "_tran_id"]), "_op": "R", "_lsn": low, "_changed": [], "_unknown": []}
    copy["_healed"] = False
    history = orders.lake("dbo.orders", "history")
    for row in history:
        # PySpark gives instants in the zone of its process
        row["_commit_ts_utc"] = row["_commit_ts_utc"] and row["_commit_ts_utc"].astimezone(datetime.UTC)
    assert in_order(history) == in_order([{**row, **copy} for row in copied.values()] + happened)
    for shape in SHAPES:
        partitions, properties = made_with(orders, shape)
        assert partitions == list(made.get("partition_by", ()))
        assert made.get("properties", {}).items() <= properties.items()


@pytest.mark.parametrize("orders", ICEBERG_OFTEN, indirect=True)
def test_a_shape_that_is_added_begins_by_itself(orders: Origin) -> None:
    first = orders.load(orders.table("dbo.orders", ("mirror",)))
    orders.sql("DELETE FROM dbo.orders WHERE id = 1; UPDATE dbo.orders SET note = N'later' WHERE id = 2")
    orders.wait_captured()

    both = orders.load(orders.table("dbo.orders", ("mirror", "scd2"), at=positions(first)))

    (table,) = both.tables
    assert table.error is None
    assert {sink.shape: sink.outcome for sink in table.sinks} == {"mirror": "loaded", "scd2": "first_load"}
    source = sorted(tuple(row.values()) for row in orders.sql("SELECT id, note, doc FROM dbo.orders"))
    for shape in ("mirror", "scd2"):
        assert sorted(tuple(row[c] for c in COLUMNS) for row in orders.lake("dbo.orders", shape)) == source


@pytest.mark.parametrize(
    ("orders", "deletes"),
    [
        ("iceberg", "soft"),
        pytest.param("delta", "soft", marks=pytest.mark.thorough),
        ("postgresql", "soft"),
        ("iceberg", "ignore"),
        pytest.param("delta", "ignore", marks=pytest.mark.thorough),
        pytest.param("postgresql", "ignore", marks=pytest.mark.thorough),
    ],
    indirect=["orders"],
)
def test_a_mirror_that_keeps_deleted_rows(orders: Origin, deletes: str) -> None:
    first = orders.load(orders.table("dbo.orders", ("mirror",), deletes=deletes))
    work(orders)

    second = orders.load(orders.table("dbo.orders", ("mirror",), at=positions(first), deletes=deletes))

    assert [receipt.tables[0].error for receipt in (first, second)] == [None, None]
    there = orders.sql("SELECT id, note, doc, CAST(NULL AS datetime) AS _deleted_at FROM dbo.orders")
    gone = orders.sql(
        "SELECT c.id, c.note, c.doc, m.tran_end_time AS _deleted_at FROM cdc.dbo_orders_CT c"
        " JOIN cdc.lsn_time_mapping m ON m.start_lsn = c.[__$start_lsn]"
        " WHERE c.[__$operation] = 1 AND c.id NOT IN (SELECT id FROM dbo.orders)"
    )
    assert sorted((row["id"], row["note"]) for row in gone) == [(5, "n5"), (6, "n6"), (8, "last"), (100, "short")]
    expected = sorted([*there, *gone], key=lambda row: row["id"])
    if deletes == "ignore":
        expected = [{name: row[name] for name in COLUMNS} for row in expected]
    assert sorted(orders.lake("dbo.orders"), key=lambda row: row["id"]) == expected


@pytest.mark.parametrize("orders", ICEBERG_OFTEN, indirect=True)
def test_a_gap_in_versions_is_closed_at_the_new_low(orders: Origin) -> None:
    first = orders.load(orders.table("dbo.orders", ("scd2",)))
    at = positions(first)
    orders.sql("DELETE FROM dbo.orders WHERE id = 10; UPDATE dbo.orders SET note = N'missed' WHERE id = 11")
    orders.wait_captured()
    mark = str(orders.max_lsn())
    orders.sql(f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_orders', {mark}, 1000")
    orders.sql("UPDATE dbo.orders SET note = N'seen' WHERE id = 12")
    orders.wait_captured()
    failed = orders.load(orders.table("dbo.orders", ("scd2",), at=at))
    assert failed.tables[0].error.kind == "GapError"

    table = orders.table("dbo.orders", ("scd2",))
    (position,) = (read for read, _ in at.values())
    sinks = tuple(dataclasses.replace(sink, lost_after=position) for sink in table.sinks)
    receipt = orders.load(dataclasses.replace(table, sinks=sinks))

    (done,) = receipt.tables
    assert done.error is None
    (gap,) = done.sinks[0].after.gaps
    rows = orders.lake("dbo.orders", "scd2")
    assert gap.after == position
    low = str(gap.upto)
    ended = {(row["id"], row["note"]): row["_to_lsn"] for row in rows if row["_to_lsn"] is not None}
    assert ended == {(id_, f"n{id_}"): low for id_ in (10, 11, 12)}
    current = sorted(tuple(row[c] for c in COLUMNS) for row in rows if row["_to_lsn"] is None)
    assert current == sorted(tuple(row.values()) for row in orders.sql("SELECT id, note, doc FROM dbo.orders"))
    begun = {row["id"] for row in rows if row["_to_lsn"] is None and row["_from_lsn"] >= low}
    assert begun == {11, 12}


@pytest.mark.parametrize("orders", ICEBERG_OFTEN, indirect=True)
def test_a_replay_into_versions_is_refused(orders: Origin) -> None:
    first = orders.load(orders.table("dbo.orders", ("scd2",)))
    window = ReplaySpec(first.tables[0].sinks[0].read_through.previous(), first.tables[0].sinks[0].read_through)

    again = orders.load(orders.table("dbo.orders", ("scd2",), at=positions(first)), replay=window)

    assert "a replay into the scd2" in again.tables[0].error.message
