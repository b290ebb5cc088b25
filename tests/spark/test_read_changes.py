"""``read_changes`` over real JDBC, compared with the functions that the source itself has for each way."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from airflow_provider_mssql_cdc.core.exceptions import (
    CaptureLagError,
    CdcDisabledError,
    GapError,
    KeyRequiredError,
    ParameterError,
    SchemaChangedError,
)
from airflow_provider_mssql_cdc.core.position import Lsn, Window
from airflow_provider_mssql_cdc.spark.read_changes import read_changes
from tests.support.logins import SPARK_PASSWORD, SPARK_USER
from tests.support.spark.origin import Origin

PAGE = Path(__file__).parents[2] / "docs" / "shapes.md"

pytestmark = pytest.mark.xdist_group(__name__)

OPERATIONS = {1: "D", 2: "I", 3: "B", 4: "U", 5: "M"}
WAYS = {
    "all": ("all", "all"),
    "all_old": ("all", "all update old"),
    "net": ("net", "all"),
    "net_mask": ("net", "all with mask"),
    "net_merge": ("net", "all with merge"),
}
# more than eight columns, so that the mask has two bytes
COLUMNS = ("id", "part", *(f"c{n}" for n in range(3, 11)), "doc")


def read(origin: Origin, window, **how):
    """Read changes into a folder of their own."""
    given = {
        "table": "dbo.items",
        "url": f"jdbc:sqlserver://{origin.sandbox.host}:{origin.sandbox.port};databaseName={origin.database}",
        "folder": str(origin.work_dir / uuid.uuid4().hex),
        "user": SPARK_USER,
        "password": SPARK_PASSWORD,
        "options": {"encrypt": "true", "trustServerCertificate": "true"},
        "connections": 2,
        "slice_rows": 10,
        **how,
    }
    return read_changes(origin.spark, window, **given)


@pytest.fixture
def items(origin: Origin) -> Origin:
    columns = ", ".join(f"c{n} int" for n in range(3, 11))
    origin.sql(
        f"CREATE TABLE dbo.items (id int NOT NULL, part int NOT NULL, {columns}, doc nvarchar(max),"
        " PRIMARY KEY (id, part))"
    )
    # without it the functions of the source know no masks of net changes
    origin.sql("EXEC sp_configure 'clr enabled', 1; RECONFIGURE")
    origin.enable("dbo.items", supports_net_changes=1)
    return origin


def insert(id_: int, doc: str = "N'd'") -> str:
    return f"INSERT INTO dbo.items VALUES ({id_}, 1, {', '.join(str(n) for n in range(3, 11))}, {doc})"


def work(origin: Origin) -> list[Lsn]:
    """Everything that the nine cases of net changes name, within transactions and over several; the cuts between."""
    cuts = []
    for batches in (
        ["; ".join(insert(n) for n in range(1, 21))],
        [
            "UPDATE dbo.items SET c3 = 0 WHERE id = 1",
            "UPDATE dbo.items SET c10 = 0, doc = N'new' WHERE id <= 2",
            "UPDATE dbo.items SET doc = NULL WHERE id = 3",
            "DELETE FROM dbo.items WHERE id = 4",
            f"BEGIN TRAN; DELETE FROM dbo.items WHERE id = 5; {insert(5, 'NULL')}; COMMIT",
            "BEGIN TRAN; UPDATE dbo.items SET c9 = 0 WHERE id = 6; DELETE FROM dbo.items WHERE id = 6; COMMIT",
            f"BEGIN TRAN; {insert(31)}; UPDATE dbo.items SET c4 = 0 WHERE id = 31; COMMIT; {insert(32)}",
        ],
        [
            f"BEGIN TRAN; {insert(33)}; DELETE FROM dbo.items WHERE id = 33; COMMIT",
            "DELETE FROM dbo.items WHERE id = 31",
            "UPDATE dbo.items SET part = 2 WHERE id = 7",
            "UPDATE dbo.items SET part = part + 1 WHERE id IN (8, 9)",
            f"DELETE FROM dbo.items WHERE id = 32; {insert(32)}",
            f"DELETE FROM dbo.items WHERE id = 2; {insert(2)}; DELETE FROM dbo.items WHERE id = 2",
            "UPDATE dbo.items SET c3 = 1 WHERE id = 1; UPDATE dbo.items SET c3 = 2, c8 = 9 WHERE id = 1",
        ],
    ):
        for batch in batches:
            origin.sql(batch)
        cuts.append(origin.scan())
    return cuts


def of_source(origin: Origin, changes: str, window: Window) -> list[tuple]:
    """What the function of the source returns: operation, LSN, mask as bits by ordinal, values."""
    kind, option = WAYS[changes]
    rows = origin.sql(
        f"SELECT * FROM cdc.fn_cdc_get_{kind}_changes_dbo_items({window.after.next()}, {window.upto}, N'{option}')"
    )
    found = []
    for row in rows:
        mask = row["__$update_mask"]
        bits = None if mask is None else int.from_bytes(mask, "big")
        values = tuple(row[name] for name in COLUMNS)
        found.append((OPERATIONS[row["__$operation"]], str(Lsn(row["__$start_lsn"])), bits, values))
    return sorted(found, key=repr)


def test_each_way_is_what_the_function_of_the_source_returns(items: Origin) -> None:
    first, _, third = work(items)
    start = items.instance("dbo.items").start_lsn.previous()
    later, whole = Window(first, third), Window(start, third)
    for changes, window in [*((changes, later) for changes in WAYS), ("net_mask", whole)]:
        frame = read(items, window if changes == "all" else (str(window.after), str(window.upto)), changes=changes)
        found = []
        for row in frame.collect():
            names = row["_changed"]
            bits = None if names is None else sum(1 << COLUMNS.index(name) for name in names)
            values = [row[name] for name in COLUMNS]
            if row["_op"] == "B" and "doc" not in row["_changed"]:
                # the source leaves it out, which is no NULL
                values[-1] = None
            found.append((row["_op"], row["_lsn"], bits, tuple(values)))
        assert sorted(found, key=repr) == of_source(items, changes, window), (changes, window)
    nothing = read(items, Window(third, third), changes="net_mask")
    assert nothing.collect() == []


def test_the_rows_are_read_once_and_are_those_of_the_callers_session(items: Origin) -> None:
    _, second, third = work(items)
    folder = items.work_dir / "kept"
    frame = read(items, Window(second, third), changes="net", folder=str(folder), timezone="UTC")
    rows = sorted(map(repr, frame.collect()))
    items.sql("DELETE FROM dbo.items")
    items.scan()

    assert sorted(map(repr, frame.collect())) == rows
    assert frame.sparkSession is items.spark
    assert [path.name for path in folder.iterdir()] == ["changes"]
    times = {row["_lsn"]: row["_commit_ts"] for row in frame.collect()}
    mapped = items.sql(
        "SELECT CONVERT(varchar(22), start_lsn, 1) AS lsn, tran_end_time AS time FROM cdc.lsn_time_mapping"
    )
    assert times.items() <= {row["lsn"]: row["time"] for row in mapped}.items()


def test_the_example_of_the_readme_runs(items: Origin) -> None:
    first, _, third = work(items)
    section = PAGE.read_text().partition("of your own the same changes are a DataFrame:\n\n```python\n")[2]
    example = section.partition("```")[0]
    url = f"jdbc:sqlserver://{items.sandbox.host}:{items.sandbox.port};trustServerCertificate=true;databaseName="
    for placeholder, value in {
        "0x0000002D000005800001": str(first),
        "0x0000002D00000F100003": str(third),
        "sales.orders": "dbo.items",
        "jdbc:sqlserver://db.example.com:1433;databaseName=shop": url + items.database,
        "/data/changes": str(items.work_dir / "changes"),
        'user="airflow"': f'user="{SPARK_USER}"',
    }.items():
        assert example.count(placeholder) == 1
        example = example.replace(placeholder, value)
    names = {"spark": items.spark, "password": SPARK_PASSWORD}

    exec(compile(example, str(PAGE), "exec"), names)

    window = Window(first, third)
    rows = [(r["_op"], r["_lsn"], tuple(r[name] for name in COLUMNS)) for r in names["changes"].collect()]
    assert sorted(rows, key=repr) == [(op, lsn, values) for op, lsn, _, values in of_source(items, "net", window)]


def test_a_before_image_has_what_the_update_left_as_it_was(items: Origin) -> None:
    first, second, _ = work(items)
    rows = read(items, Window(first, second)).where("_op = 'B'").collect()
    assert sorted(row["id"] for row in rows) == [1, 1, 2, 3, 6, 31]
    assert {(row["doc"], tuple(row["_unknown"])) for row in rows} == {("d", ())}


def test_a_row_that_leaves_the_filter_has_what_the_update_left_as_it_was(origin: Origin) -> None:
    origin.sql("CREATE TABLE dbo.items (id int NOT NULL PRIMARY KEY, n int, doc nvarchar(max), old ntext)")
    origin.enable("dbo.items")
    origin.sql("INSERT INTO dbo.items VALUES (1, 1, N'one', N'old'), (2, 1, NULL, NULL), (3, 1, N'three', N'old')")
    after = origin.scan()
    origin.sql(
        "UPDATE dbo.items SET n = 0 WHERE id < 3; UPDATE dbo.items SET n = 0, doc = N'other', old = N'new' WHERE id = 3"
    )

    rows = read(origin, Window(after, origin.scan()), where=[("n", ">", 0)]).collect()

    assert sorted((r["_op"], r["id"], r["n"], r["doc"], r["old"], r["_unknown"]) for r in rows) == [
        ("D", 1, 1, "one", "old", []),
        # its NULLs may as well have been left out
        ("D", 2, 1, None, None, ["doc", "old"]),
        ("D", 3, 1, "three", None, ["old"]),
    ]


def test_what_cannot_be_right_is_refused(items: Origin) -> None:
    first, second, third = work(items)
    whole = Window(first, third)
    with pytest.raises(ParameterError, match="expected one of all, all_old, net, net_mask, net_merge"):
        read(items, whole, changes="nett")
    with pytest.raises(ParameterError, match="two commit LSNs"):
        read(items, (str(third), str(first)))
    with pytest.raises(ParameterError, match="two commit LSNs"):
        read(items, (None, str(first)))
    with pytest.raises(ParameterError, match="give it as password"):
        read(items, whole, url="jdbc:sqlserver://h:1;password=x")
    with pytest.raises(CdcDisabledError, match=r"dbo\.nothing: there is no capture instance of it"):
        read(items, whole, table="dbo.nothing")
    with pytest.raises(CdcDisabledError, match="there is no capture instance other of it"):
        read(items, whole, capture_instance="other")
    with pytest.raises(CaptureLagError, match="the window ends at"):
        read(items, Window(first, third.next()))
    items.sql("ALTER TABLE dbo.items ALTER COLUMN c3 bigint")
    items.sql("DELETE FROM dbo.items WHERE id = 20")
    with pytest.raises(SchemaChangedError, match="ALTER COLUMN c3 bigint"):
        read(items, Window(first, items.scan()))
    items.sql(f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_items', {third}, 1000")
    # commits of the same time are purged together with the mark's, or stay with it
    (row,) = items.sql("SELECT sys.fn_cdc_get_min_lsn(N'dbo_items') AS lsn")
    with pytest.raises(GapError, match=f"Begin the window at {Lsn(row['lsn']).previous()} or later"):
        read(items, Window(first, second))


def test_a_table_without_key_has_changes_but_no_net_changes(origin: Origin) -> None:
    origin.sql("CREATE TABLE dbo.items (id int, c3 int)")
    origin.enable("dbo.items")
    origin.sql("INSERT INTO dbo.items VALUES (1, 1), (1, 1); UPDATE dbo.items SET c3 = 2")
    upto = origin.scan()
    window = Window(origin.instance("dbo.items").start_lsn.previous(), upto)

    assert sorted(row["_op"] for row in read(origin, window).collect()) == ["B", "B", "I", "I", "U", "U"]
    for key in ((), ("id",)):
        with pytest.raises(KeyRequiredError, match="needs a key that SQL Server enforces"):
            read(origin, window, changes="net", key=key)
