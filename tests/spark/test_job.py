"""The job over real JDBC and real Iceberg tables, compared with plain SELECTs on the source."""

import dataclasses
import datetime
import json
import uuid
from pathlib import Path

import pytest

from airflow_provider_mssql_cdc.core.codec import from_json, to_json
from airflow_provider_mssql_cdc.core.columns import map_columns
from airflow_provider_mssql_cdc.core.exceptions import (
    CommitConflictError,
    InstanceChangedError,
)
from airflow_provider_mssql_cdc.core.lineage import LogHistory, Witness
from airflow_provider_mssql_cdc.core.marker import Gap
from airflow_provider_mssql_cdc.core.position import Lsn, Window
from airflow_provider_mssql_cdc.core.receipt import Receipt
from airflow_provider_mssql_cdc.core.spec import JobSpec, ReplaySpec
from airflow_provider_mssql_cdc.spark import files
from airflow_provider_mssql_cdc.spark.copies.copy import CopyOrder
from airflow_provider_mssql_cdc.spark.copies.pace import CopyTime
from airflow_provider_mssql_cdc.spark.jdbc import Credentials, Jdbc
from airflow_provider_mssql_cdc.spark.job import describe, run
from airflow_provider_mssql_cdc.spark.load import TableLoad
from airflow_provider_mssql_cdc.spark.parts import SparkParts
from airflow_provider_mssql_cdc.spark.session import credentials, table_session, target_credentials
from airflow_provider_mssql_cdc.spark.sources.cdc import capture
from airflow_provider_mssql_cdc.spark.sources.cdc import table as cdc_table
from airflow_provider_mssql_cdc.spark.sources.cdc.query import read_slices
from airflow_provider_mssql_cdc.spark.sources.cdc.state import read_progress, read_state
from tests.support.harsh import harsh_sandbox
from tests.support.lake import catalog
from tests.support.logins import SPARK_PASSWORD, SPARK_USER
from tests.support.spark.origin import Origin, positions

pytestmark = pytest.mark.xdist_group(__name__)


def rows(origin, name, columns):
    found = [tuple(row.values()) for row in origin.sql(f"SELECT {columns} FROM {name}")]
    return sorted(found, key=lambda row: [(value is not None, value) for value in row])


def to_its_end(load):
    """Load a table's windows and copies."""
    load.load_windows()
    load.load_copies(CopyTime())


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


@pytest.mark.every_run
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
    assert (
        json.loads(Path(orders.work_dir, second.spec_id, "receipt.json").read_text())["version"]
        == Receipt.FORMAT.version
    )
    assert list(Path(orders.work_dir, second.spec_id, "staged").iterdir()) == []


@pytest.mark.thorough
def test_columns_whose_names_are_no_words(live):
    """A dot would name a field of a structure, and a backtick ends a name."""
    columns = ["i.d", "a`b", "x.`y`.z", "`", "two words", "[b]", "'q\"", "é.ü", "select"]
    quoted = ["[" + name.replace("]", "]]") + "]" for name in columns]
    live.sql(
        f"CREATE TABLE dbo.odd ({quoted[0]} int NOT NULL, {quoted[1]} varchar(9) NOT NULL, "
        + ", ".join(f"{name} nvarchar(max) NULL" for name in quoted[2:])
        + f", PRIMARY KEY ({quoted[0]}, {quoted[1]}))"
    )
    row = "({0}, 'k{0}'" + ", N'v{0}'" * len(columns[2:]) + ")"
    live.sql("INSERT INTO dbo.odd VALUES " + ", ".join(row.format(n) for n in range(1, 6)))
    live.enable("dbo.odd")
    live.wait_captured()
    # an event that the copy holds too
    live.sql(f"UPDATE dbo.odd SET {quoted[2]} = N'early' WHERE {quoted[0]} = 1")
    selected = ", ".join(quoted)

    first = live.load(live.table("dbo.odd"))

    assert error(first) is None
    assert mirror(live, "dbo.odd", *columns) == rows(live, "dbo.odd", selected)
    assert {row["i.d"]: row["x.`y`.z"] for row in live.lake("dbo.odd", "history")} == {
        1: "early",
        **{n: f"v{n}" for n in range(2, 6)},
    }

    live.sql(f"UPDATE dbo.odd SET {quoted[3]} = N'late' WHERE {quoted[0]} = 2")
    live.sql(f"UPDATE dbo.odd SET {quoted[1]} = 'moved' WHERE {quoted[0]} = 3")
    live.sql(f"DELETE FROM dbo.odd WHERE {quoted[0]} = 4")
    live.sql("INSERT INTO dbo.odd VALUES " + row.format(9))
    live.wait_captured()
    second = live.load(live.table("dbo.odd", at=positions(first)))

    assert error(second) is None
    assert mirror(live, "dbo.odd", *columns) == rows(live, "dbo.odd", selected)
    images = [row for row in live.lake("dbo.odd", "history") if row["_lsn"] > str(positions(first)["history"][0])]
    assert sorted((row["_op"], row["i.d"], row["a`b"], row["`"]) for row in images) == [
        ("B", 2, "k2", "v2"),
        ("D", 3, "k3", "v3"),
        ("D", 4, "k4", "v4"),
        ("I", 3, "moved", "v3"),
        ("I", 9, "k9", "v9"),
        ("U", 2, "k2", "late"),
    ]


def error(receipt):
    (table,) = receipt.tables
    return table.error


def test_a_run_again_does_nothing(orders):
    first = orders.load(orders.table("dbo.orders"))
    orders.sql("UPDATE dbo.orders SET note = N'x' WHERE id < 50")
    orders.wait_captured()
    cut = orders.max_lsn()
    spec = orders.table("dbo.orders", at=positions(first))
    orders.load(spec, upto=cut)

    again = orders.load(spec, upto=cut)

    assert [s.outcome for s in again.tables[0].sinks] == ["already", "already"]
    assert [s.after.position for s in again.tables[0].sinks] == [cut, cut]
    # a task that was killed before it read the receipt has told nobody: the next one does
    (start, _) = positions(first)["mirror"]
    told = {"inserted": 0, "updated": 49, "deleted": 0, "copied": 0}
    assert again.tables[0].windows == (f"({start}, {cut}]",)
    assert again.tables[0].counts == {"events": 49, **told}
    orders.sql("DELETE FROM dbo.orders WHERE id = 100")
    orders.wait_captured()
    after = orders.max_lsn()
    both = orders.load(spec, upto=after)
    assert both.tables[0].windows == (f"({start}, {cut}]", f"({cut}, {after}]")
    assert both.tables[0].counts == {"events": 50, **told, "deleted": 1}
    # once the checkpoint has moved, nothing is told again
    quiet = orders.load(orders.table("dbo.orders", at=positions(both)), upto=after)
    assert (quiet.tables[0].windows, quiet.tables[0].counts["events"]) == ((), 0)
    assert len(orders.lake("dbo.orders", "history")) == 200 + 2 * 49 + 1
    assert mirror(orders, "dbo.orders", "id", "note", "doc") == rows(orders, "dbo.orders", "id, note, doc")


@pytest.mark.thorough
def test_what_another_sink_reads_again_is_counted_once(orders):
    first = orders.load(orders.table("dbo.orders"))
    orders.sql("UPDATE dbo.orders SET note = N'x' WHERE id < 50")
    orders.wait_captured()
    cut = orders.max_lsn()
    # killed after the mirror's commit
    orders.load(orders.table("dbo.orders", shapes=["mirror"], at=positions(first)), upto=cut)

    again = orders.load(orders.table("dbo.orders", at=positions(first)), upto=cut)

    assert [s.outcome for s in again.tables[0].sinks] == ["already", "loaded"]
    assert again.tables[0].counts == {"events": 49, "inserted": 0, "updated": 49, "deleted": 0, "copied": 0}
    assert len(again.tables[0].windows) == 1


def test_a_first_load_whose_task_was_killed_is_told_by_the_next_run(orders):
    first = orders.load(orders.table("dbo.orders"))
    again = orders.load(orders.table("dbo.orders"), upto=positions(first)["mirror"][0])
    assert [s.outcome for s in again.tables[0].sinks] == ["already", "already"]
    assert again.tables[0].counts == first.tables[0].counts
    assert again.tables[0].windows == (f"(, {positions(first)['mirror'][0]}]",)


def test_a_place_that_cannot_be_written_to_is_found_before_the_copy(orders):
    conf = orders.spark.sparkContext._jsc.sc().conf()
    for name, value in catalog("unwritable", Path("/proc/unwritable")).items():
        conf.set(name, value)
    table = orders.table("dbo.orders")
    sinks = tuple(dataclasses.replace(s, table=("unwritable", "x", s.shape), format="iceberg") for s in table.sinks)

    receipt = orders.load(dataclasses.replace(table, sinks=sinks))

    assert "/proc/unwritable" in error(receipt).message
    assert "copy" not in receipt.tables[0].seconds


def test_a_lost_checkpoint_is_found_in_the_target(orders):
    orders.load(orders.table("dbo.orders"))
    orders.sql("DELETE FROM dbo.orders WHERE id < 50")
    orders.wait_captured()

    receipt = orders.load(orders.table("dbo.orders"))

    assert [s.outcome for s in receipt.tables[0].sinks] == ["loaded", "loaded"]
    assert len(orders.lake("dbo.orders")) == 151
    assert len(orders.lake("dbo.orders", "history")) == 200 + 49


def on_a_word(origin, position, **given):
    """The table of orders, after a person said that both shapes stand for a position."""
    return origin.table("dbo.orders", at=dict.fromkeys(("mirror", "history"), (position, position)), **given)


@pytest.mark.parametrize(
    "how",
    ["no marker", *(pytest.param(n, marks=pytest.mark.thorough) for n in ("restored", "another name of the server"))],
)
def test_a_target_goes_on_from_the_position_that_a_person_names(orders, how):
    first = orders.load(orders.table("dbo.orders"))
    position = positions(first)["mirror"][0]
    if how == "no marker":
        for shape in ("mirror", "history"):
            table = ".".join(f"`{part}`" for part in orders.target("dbo.orders", shape))
            copy = f"{table[:-1]}_copied`"
            orders.spark.sql(f"CREATE TABLE {copy} USING iceberg AS SELECT * FROM {table}")
            orders.spark.sql(f"DROP TABLE {table}")
            orders.spark.sql(f"CREATE TABLE {table} USING iceberg AS SELECT * FROM {copy}")
    elif how == "restored":
        orders.fork()
    orders.sql(
        "UPDATE dbo.orders SET note = N'later', doc = N'new' WHERE id <= 20; DELETE FROM dbo.orders WHERE id > 190"
    )
    orders.wait_captured()
    cut = orders.max_lsn()

    def load(table):
        spec = orders.spec(table, upto=cut)
        if how == "another name of the server":
            spec = dataclasses.replace(spec, source=dataclasses.replace(spec.source, server="db.example.com:1433"))
        return run(orders.spark, spec)

    assert error(load(on_a_word(orders, position))).kind == ("RestoredError" if how == "restored" else "TargetError")
    receipt = load(on_a_word(orders, position, asserted="word"))

    assert error(receipt) is None
    assert [(s.outcome, s.after.position, s.after.asserted) for s in receipt.tables[0].sinks] == [
        ("loaded", cut, "word")
    ] * 2
    assert "as `checkpoint set` said" in " ".join(receipt.tables[0].warnings)
    # the same again, as after a lost write of the checkpoint, and without any checkpoint
    for table in (on_a_word(orders, position, asserted="word"), orders.table("dbo.orders")):
        assert [s.outcome for s in load(table).tables[0].sinks] == ["already"] * 2
    assert mirror(orders, "dbo.orders", "id", "note", "doc") == rows(orders, "dbo.orders", "id, note, doc")
    changed = [(row["_op"], row["id"]) for row in orders.lake("dbo.orders", "history") if row["_lsn"] > str(position)]
    assert sorted(changed) == sorted(
        [(op, n) for op in "BU" for n in range(1, 21)] + [("D", n) for n in range(191, 201)]
    )
    orders.sql("UPDATE dbo.orders SET note = N'last' WHERE id = 30")
    orders.wait_captured()
    cut = orders.max_lsn()
    following = load(orders.table("dbo.orders", at=positions(receipt)))
    assert [(s.outcome, s.after.asserted) for s in following.tables[0].sinks] == [("loaded", "word")] * 2


@pytest.mark.thorough
def test_a_word_is_kept_by_a_commit_though_nothing_happened_since(orders):
    first = orders.load(orders.table("dbo.orders"))
    orders.sql("CREATE TABLE dbo.other (id int NOT NULL PRIMARY KEY); INSERT INTO dbo.other VALUES (1)")
    orders.enable("dbo.other")
    orders.sql("INSERT INTO dbo.other VALUES (2)")
    orders.wait_captured()
    orders.fork()
    position = positions(first)["mirror"][0]
    cut = orders.max_lsn()

    receipt = orders.load(on_a_word(orders, position, asserted="word"), upto=cut)

    assert [(s.outcome, s.after.position) for s in receipt.tables[0].sinks] == [("loaded", cut)] * 2
    assert error(orders.load(orders.table("dbo.orders"))) is None


def test_a_history_that_holds_more_than_a_person_says_is_refused(orders):
    first = orders.load(orders.table("dbo.orders"))
    orders.sql("DELETE FROM dbo.orders WHERE id = 3")
    orders.wait_captured()
    orders.load(orders.table("dbo.orders", at=positions(first)))
    orders.sql("DELETE FROM dbo.orders WHERE id = 4")
    orders.wait_captured()

    refused = orders.load(on_a_word(orders, positions(first)["mirror"][0], asserted="word"))

    assert error(refused).kind == "TargetError"
    assert "checkpoint set` names" in error(refused).message
    assert [row["_op"] for row in orders.lake("dbo.orders", "history") if row["id"] in (3, 4)].count("D") == 1


def test_a_large_transaction_is_read_in_parts_and_numbered_as_one(orders):
    first = orders.load(orders.table("dbo.orders"))
    orders.sql("UPDATE dbo.orders SET note = N'small' WHERE id = 3")
    orders.sql("UPDATE dbo.orders SET note = N'large'")
    orders.sql("DELETE FROM dbo.orders WHERE id = 4")
    orders.wait_captured()
    spec = orders.table("dbo.orders", at=positions(first))
    job = orders.spec(spec, upto=orders.max_lsn())
    session = table_session(orders.spark)
    jdbc = Jdbc(session, job.source, credentials(session))

    parts = read_slices(jdbc, spec.feed, Window(positions(first)["mirror"][0], job.upto.of(Lsn)), 50, 2)
    orders.load(spec)

    assert sum(part.command_upto is not None for part in parts) > 1
    assert mirror(orders, "dbo.orders", "id", "note", "doc") == rows(orders, "dbo.orders", "id, note, doc")
    numbered = orders.sql(
        "SELECT CONVERT(varchar(22), [__$start_lsn], 1) AS l, id, [__$operation] AS o, ROW_NUMBER() OVER"
        " (PARTITION BY [__$start_lsn] ORDER BY [__$command_id], [__$seqval], [__$operation]) AS n"
        f" FROM cdc.dbo_orders_CT WHERE [__$start_lsn] > {positions(first)['mirror'][0]}"
    )
    kinds = {1: "D", 2: "I", 3: "B", 4: "U"}
    history = [row for row in orders.lake("dbo.orders", "history") if row["_op"] != "R"]
    assert sorted((h["_lsn"], h["id"], h["_op"], h["_seq"]) for h in history) == sorted(
        (c["l"], c["id"], kinds[c["o"]], c["n"]) for c in numbered
    )


def test_attempts_of_one_job_do_not_touch_each_others_rows(spark, orders):
    first = positions(orders.load(orders.table("dbo.orders")))
    orders.sql("UPDATE dbo.orders SET note = N'x' WHERE id < 50")
    orders.wait_captured()
    job = orders.spec(orders.table("dbo.orders", at=first), upto=orders.max_lsn())
    session, window = table_session(spark), Window(first["mirror"][0], job.upto.of(Lsn))
    other = TableLoad(job, job.tables[0], parts(session, job)).stage_windows([window], before_images=True)

    receipt = run(spark, job)

    assert error(receipt) is None
    assert [sink.outcome for sink in receipt.tables[0].sinks] == ["loaded", "loaded"]
    assert other.rows(window).count() == 2 * 49
    assert len(list(Path(job.staging_path).iterdir())) == 1


def test_several_windows_are_read_with_no_more_connections_than_one(spark, orders):
    start = orders.max_lsn()
    cuts = []
    for note in ("a", "b", "c"):
        orders.sql(f"UPDATE dbo.orders SET note = N'{note}'")
        orders.wait_captured()
        cuts.append(orders.max_lsn())
    job = orders.spec(orders.table("dbo.orders"), upto=cuts[-1])
    session = table_session(spark)
    load = TableLoad(job, job.tables[0], parts(session, job))

    staged = load.stage_windows([Window(start, cuts[0]), Window(cuts[0].next(), cuts[2])], before_images=True)

    assert len(staged.files.files) == 2
    found = staged.rows(Window(start, cuts[2])).orderBy("_n").collect()
    assert [row["note"] for row in found if row["_op"] == "U"] == ["a"] * 200 + ["b"] * 200 + ["c"] * 200
    assert [row["_n"] for row in sorted(found, key=lambda row: (row["_lsn"], row["_seq"]))] == [r["_n"] for r in found]


def test_what_ends_within_a_slice_is_not_loaded_by_halves(orders):
    """First a connection that ends, then a cleanup that comes between the count of the rows and their read."""

    def reads_rows(text):
        return "ROW_NUMBER()" in text and "cdc].[dbo_orders_CT" in text

    def load(loaded):
        return orders.load(orders.table("dbo.orders", shapes=["mirror"], at=positions(loaded) if loaded else None))

    first, before = load(None), rows(orders, "dbo.orders", "id, note, doc")
    orders.sql("UPDATE dbo.orders SET note = N'x' WHERE id < 50")
    orders.wait_captured()
    with orders.sandbox.faults.drop(reads_rows, rows=20) as dropped:
        failed = load(first)
    held = mirror(orders, "dbo.orders", "id", "note", "doc")
    second, after = load(first), rows(orders, "dbo.orders", "id, note, doc")

    assert dropped.count > 0
    assert error(failed).kind == "SqlServerError"
    assert not error(failed).permanent
    assert held == before
    assert error(second) is None
    assert mirror(orders, "dbo.orders", "id", "note", "doc") == after

    for value in ("y", "z"):
        orders.sql(f"UPDATE dbo.orders SET note = N'{value}' WHERE id < 50")
        orders.wait_captured()
    low, purged = orders.max_lsn(), []

    def purges(text):
        if reads_rows(text) and not purged:
            purged.append(text)
            orders.sql(f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_orders', {low}")
        return False

    with orders.sandbox.faults.delay(purges, seconds=0):
        failed = load(second)

    assert purged
    assert error(failed).kind == "GapError"
    assert mirror(orders, "dbo.orders", "id", "note", "doc") == after


def test_a_copy_that_takes_longer_than_changes_are_kept_says_so(orders):
    purged = []

    def purges(text):
        if "FROM [dbo].[orders]" in text and "[doc]" in text and not purged:
            purged.append(text)
            orders.sql("UPDATE dbo.orders SET note = N'beside the copy' WHERE id < 50")
            orders.wait_captured()
            orders.sql(f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_orders', {orders.max_lsn()}")
        return False

    with orders.sandbox.faults.delay(purges, seconds=0):
        failed = orders.load(orders.table("dbo.orders"))

    assert purged
    assert error(failed).kind == "GapError"
    assert "while the table was copied, which took longer than changes are kept" in error(failed).message
    assert error(orders.load(orders.table("dbo.orders"))) is None
    assert mirror(orders, "dbo.orders", "id", "note", "doc") == rows(orders, "dbo.orders", "id, note, doc")


@pytest.mark.parametrize("word", [pytest.param(None, marks=pytest.mark.thorough), "word"])
def test_purged_changes_are_a_gap_and_a_new_copy_closes_it(orders, word):
    first = orders.load(orders.table("dbo.orders"))
    orders.sql("DELETE FROM dbo.orders WHERE id < 50")
    orders.sql("UPDATE dbo.orders SET note = N'later' WHERE id = 100")
    orders.wait_captured()
    mark = orders.max_lsn()
    orders.sql(f"EXEC sys.sp_cdc_cleanup_change_table @capture_instance = N'dbo_orders', @low_water_mark = {mark}")

    failed = orders.load(orders.table("dbo.orders", at=positions(first)))

    assert error(failed).kind == "GapError"
    assert error(failed).permanent
    assert 'on_gap="copy"' in error(failed).message
    assert len(orders.lake("dbo.orders")) == 200

    lost = positions(first)["mirror"][0]
    if word:
        # then the marker proves nothing any more
        orders.fork()
    closed = orders.load(orders.table("dbo.orders", lost_after=lost, asserted=word))

    assert error(closed) is None
    assert [s.outcome for s in closed.tables[0].sinks] == ["first_load", "first_load"]
    assert mirror(orders, "dbo.orders", "id", "note", "doc") == rows(orders, "dbo.orders", "id, note, doc")
    copied = [r for r in orders.lake("dbo.orders", "history") if r["_op"] == "R"]
    assert len(copied) == 200 + 151
    assert len(closed.tables[0].warnings) == (4 if word else 2)
    assert {s.after.asserted for s in closed.tables[0].sinks} == {word}
    gap = Gap(lost, Lsn.parse(max(row["_lsn"] for row in copied)))
    assert {s.shape: s.after.gaps for s in closed.tables[0].sinks} == {"mirror": (), "history": (gap,)}

    orders.sql("UPDATE dbo.orders SET note = N'after the gap' WHERE id = 100")
    orders.wait_captured()
    later = orders.load(orders.table("dbo.orders", shapes=["history"], at=positions(closed)))
    assert later.tables[0].sinks[0].after.gaps == (gap,)


def test_a_table_that_fails_does_not_keep_the_others(live):
    live.sql("CREATE TABLE dbo.good (id int NOT NULL PRIMARY KEY)")
    live.sql("CREATE TABLE dbo.bad (id int NOT NULL PRIMARY KEY, _op int)")
    live.sql("INSERT INTO dbo.good VALUES (1), (2)")
    live.enable("dbo.good")
    live.enable("dbo.bad")
    live.sql("INSERT INTO dbo.good VALUES (3)")
    live.wait_captured()

    receipt = live.load(live.table("dbo.bad"), live.table("dbo.good"))

    bad, good = receipt.tables
    assert (bad.error.kind, bad.error.permanent) == ("NameTakenError", True)
    assert good.error is None
    assert mirror(live, "dbo.good", "id") == [(1,), (2,), (3,)]


def test_a_history_without_key_starts_without_a_copy(live):
    live.sql("CREATE TABLE dbo.log (line nvarchar(20))")
    live.sql("INSERT INTO dbo.log VALUES (N'before')")
    live.enable("dbo.log")
    live.sql("INSERT INTO dbo.log VALUES (N'captured')")
    live.wait_captured()
    first = live.load(live.table("dbo.log", shapes=["history"]))
    begun = first.tables[0].sinks[0].after
    assert begun.witness == live.witness(begun.position)
    live.sql("INSERT INTO dbo.log VALUES (N'one'), (N'one')")
    live.sql("UPDATE dbo.log SET line = N'two' WHERE line = N'one'")
    live.wait_captured()

    second = live.load(live.table("dbo.log", shapes=["history"], at=positions(first)))

    assert error(first) is None
    assert "has no key" in first.tables[0].warnings[0]
    assert error(second) is None
    found = [(row["_op"], row["line"]) for row in live.lake("dbo.log", "history")]
    assert sorted(found) == [("B", "one"), ("B", "one"), ("I", "one"), ("I", "one"), ("U", "two"), ("U", "two")]

    refused = live.load(live.table("dbo.log", shapes=["mirror"]))
    assert error(refused).kind == "KeyRequiredError"


@pytest.mark.parametrize(
    "type_",
    [
        "varchar(20) COLLATE Latin1_General_CI_AS",
        # cut by plain Python in tests/core/test_chunks.py
        *(pytest.param(type_, marks=pytest.mark.thorough) for type_ in ("nvarchar(20)", "uniqueidentifier")),
    ],
)
def test_a_table_is_copied_by_several_connections_and_each_row_once(spark, live, tmp_path, type_):
    live.sql(f"CREATE TABLE dbo.wide (k {type_} NULL, n int); CREATE INDEX of_key ON dbo.wide (k, n)")
    digits = [format(n * 2654435761 % 2**32, "032x") for n in range(200)]
    texts = [f"{d[:8]}-{d[8:12]}-{d[12:16]}-{d[16:20]}-{d[20:]}" for d in digits]
    if type_ != "uniqueidentifier":
        texts = [f"{text[-8:].replace('a', chr(39) * 2).replace('b', 'É')}" for text in texts]
    live.sql("INSERT INTO dbo.wide VALUES (NULL, -1), (NULL, -2), " + ", ".join(f"(N'{t}', 1)" for t in texts))
    live.enable("dbo.wide")
    live.sql("INSERT INTO dbo.wide VALUES (NULL, -3)")
    live.wait_captured()
    table = live.table("dbo.wide", shapes=["history"], key=["k", "n"])
    session, job = table_session(spark), live.spec(table, upto=live.max_lsn(), copy_rows=50)
    source = parts(session, job, connections=3).source(table, map_columns(table.name, table.schema))

    copy = source.copy(CopyOrder(str(tmp_path / "copy"), 60.0, CopyTime()))

    assert len(copy.files.files) > 3
    found = [(row["k"], row["n"]) for row in copy.rows().collect()]
    assert sorted(found, key=repr) == sorted(rows(live, "dbo.wide", "k, n"), key=repr)


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("k varchar(12) COLLATE Latin1_General_CI_AS", "CONCAT(N'é''', n)"),
        pytest.param(
            "k datetime",
            "DATEADD(millisecond, 10 * (n % 7) + 3, DATEADD(day, n / 7, CAST('17530101' AS datetime)))",
            marks=pytest.mark.thorough,
        ),
        pytest.param("k binary(3)", "CONVERT(binary(3), n * 77)", marks=pytest.mark.thorough),
    ],
)
@pytest.mark.parametrize("first", ["", "g int NOT NULL, "])
def test_a_table_is_copied_in_chunks_of_its_key(spark, live, tmp_path, first, key, values):
    name, group = ("g, k", "n % 3, ") if first else ("k", "")
    live.sql(
        f"CREATE TABLE dbo.parted ({first}{key} NOT NULL, n int NOT NULL, PRIMARY KEY ({name}{' DESC' * bool(first)}))"
    )
    live.enable("dbo.parted")
    live.sql(
        "WITH d AS (SELECT v FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS t (v)),"
        " n AS (SELECT a.v * 10 + b.v AS n FROM d a CROSS JOIN d b UNION ALL SELECT 100 + v FROM d)"
        f" INSERT INTO dbo.parted SELECT {group}{values}, n FROM n"
    )
    live.wait_captured()
    table = live.table("dbo.parted", shapes=["history"])
    session, job = table_session(spark), live.spec(table, upto=live.max_lsn(), copy_rows=50)
    source = parts(session, job, connections=3).source(table, map_columns(table.name, table.schema))

    copy = source.copy(CopyOrder(str(tmp_path / "copy"), 60.0, CopyTime()))

    _, *others = sorted(session.read.parquet(file).count() for file in copy.files.files)
    assert others
    assert all(size >= 50 for size in others), "but the last one"
    columns = f"{name}, n"
    found = [tuple(row[column] for column in columns.split(", ")) for row in copy.rows().collect()]
    assert sorted(found, key=repr) == sorted(rows(live, "dbo.parted", columns), key=repr)


def test_a_key_of_the_users_choice_follows_updates_and_must_be_unique(live):
    live.sql("CREATE TABLE dbo.k (code nvarchar(10), v int)")
    live.sql("INSERT INTO dbo.k VALUES (N'a', 1), (N'b', 2), (NULL, 3)")
    live.enable("dbo.k")
    live.sql("UPDATE dbo.k SET v = 10 WHERE code = N'a'")
    live.wait_captured()
    first = live.load(live.table("dbo.k", shapes=["mirror"], key=["code"]))
    live.sql("UPDATE dbo.k SET code = N'z' WHERE code = N'a'")
    live.sql("UPDATE dbo.k SET v = 30 WHERE code IS NULL")
    live.wait_captured()

    second = live.load(live.table("dbo.k", shapes=["mirror"], key=["code"], at=positions(first)))

    assert error(second) is None
    assert {(row["code"], row["v"]) for row in live.lake("dbo.k")} == {("z", 10), ("b", 2), (None, 30)}
    live.sql("INSERT INTO dbo.k VALUES (N'b', 7)")
    live.wait_captured()
    live.spark.sql(f"DROP TABLE lake.`{live.namespace}`.dbo_k PURGE")
    refused = live.load(live.table("dbo.k", shapes=["mirror"], key=["code"]))
    assert error(refused).kind == "KeyRequiredError"
    assert "code='b'" in error(refused).message


def test_rows_that_pass_on_a_key_of_the_users_choice_all_stay(live):
    live.sql("CREATE TABLE dbo.q (place int, name nvarchar(10))")
    live.sql("INSERT INTO dbo.q VALUES (1, N'a'), (2, N'b'), (3, N'c')")
    live.enable("dbo.q")
    live.sql("UPDATE dbo.q SET name = N'A' WHERE place = 1")
    live.wait_captured()
    first = live.load(live.table("dbo.q", shapes=["mirror"], key=["place"]))
    live.sql("UPDATE dbo.q SET place = place + 1")
    live.wait_captured()

    second = live.load(live.table("dbo.q", shapes=["mirror"], key=["place"], at=positions(first)))

    assert error(second) is None
    assert mirror(live, "dbo.q", "place", "name") == [(2, "A"), (3, "b"), (4, "c")]
    live.sql("INSERT INTO dbo.q VALUES (3, N'second')")
    live.wait_captured()
    refused = live.load(live.table("dbo.q", shapes=["mirror"], key=["place"], at=positions(second)))
    assert error(refused).kind == "KeyRequiredError"
    assert "several rows have place=3" in error(refused).message
    assert mirror(live, "dbo.q", "place", "name") == [(2, "A"), (3, "b"), (4, "c")]


@pytest.mark.thorough
def test_a_mirror_with_a_key_of_the_users_choice_keeps_rows_that_come_and_go(live):
    """As one does whose key the server enforces."""
    keys = {"dbo.chosen": ["k"], "dbo.enforced": None}
    at = dict.fromkeys(keys)
    for name, key in keys.items():
        live.sql(f"CREATE TABLE {name} (k int NOT NULL{'' if key else ' PRIMARY KEY'}, v nvarchar(10))")
        live.sql(f"INSERT INTO {name} VALUES (1, N'one'), (8, N'eight')")
        live.enable(name)
        live.sql(f"INSERT INTO {name} VALUES (5, N'five')")

    def load(*statements):
        for statement in statements:
            for name in keys:
                live.sql(f"BEGIN TRAN; {statement.format(name)}; COMMIT")
        live.wait_captured()
        asked = [
            live.table(name, shapes=["mirror"], at=at[name], key=key, deletes="soft") for name, key in keys.items()
        ]
        for name, table in zip(keys, live.load(*asked).tables, strict=True):
            assert table.error is None
            at[name] = {sink.shape: (sink.read_through, sink.after.position) for sink in table.sinks}
        return [
            [(k, v, went(name, k, deleted)) for k, v, deleted in mirror(live, name, "k", "v", "_deleted_at")]
            for name in keys
        ]

    def went(name, k, deleted):
        gone = live.sql(
            f"SELECT MAX(m.tran_end_time) AS time FROM cdc.{name.replace('.', '_')}_CT c JOIN cdc.lsn_time_mapping m"
            f" ON m.start_lsn = c.[__$start_lsn] WHERE c.k = {k} AND c.[__$operation] IN (1, 3)"
        )
        assert deleted in (None, gone[0]["time"])
        return deleted is None

    load()
    load("DELETE FROM {} WHERE k = 1")
    chosen, enforced = load(
        "INSERT INTO {} VALUES (1, N'again')",
        "DELETE FROM {} WHERE k = 1",
        "INSERT INTO {} VALUES (9, N'nine')",
        "DELETE FROM {} WHERE k = 9",
    )
    assert chosen == enforced == [(1, "again", False), (5, "five", True), (8, "eight", True), (9, "nine", False)]

    # of what was there between transactions; not of a row that only goes through
    load("INSERT INTO {} VALUES (9, N'more')")
    chosen, _ = load(
        "DELETE FROM {0} WHERE k = 9; UPDATE {0} SET k = 9 WHERE k = 8; UPDATE {0} SET k = 10 WHERE k = 9",
        "INSERT INTO {0} VALUES (2, N'x'); DELETE FROM {0} WHERE k = 2",
    )
    assert chosen == [
        (1, "again", False),
        (5, "five", True),
        (8, "eight", False),
        (9, "more", False),
        (10, "eight", True),
    ]


def test_a_replay_adds_to_a_history_what_it_lacks_and_builds_new_tables(orders):
    first = orders.load(orders.table("dbo.orders"))
    low = positions(first)["mirror"][0]
    orders.sql("UPDATE dbo.orders SET note = N'x' WHERE id < 10")
    orders.wait_captured()
    cut = orders.max_lsn()
    loaded = orders.load(orders.table("dbo.orders", at=positions(first)), upto=cut)
    whole = sorted(map(repr, orders.lake("dbo.orders", "history")))
    name = ".".join(f"`{part}`" for part in orders.target("dbo.orders", "history"))
    orders.spark.newSession().sql(f"DELETE FROM {name} WHERE id IN (3, 4) AND _op <> 'R'")

    replay = ReplaySpec(low, cut)
    history = orders.table("dbo.orders", shapes=["history"], at=positions(loaded))
    receipts = [orders.load(history, upto=cut, replay=replay) for _ in range(2)]

    assert [error(receipt) for receipt in receipts] == [None, None]
    assert sorted(map(repr, orders.lake("dbo.orders", "history"))) == whole
    assert receipts[0].tables[0].sinks[0].after == loaded.tables[0].sinks[1].after

    into_mirror = orders.load(orders.table("dbo.orders", shapes=["mirror"]), upto=cut, replay=replay)
    assert error(into_mirror).kind == "TargetError"
    later = orders.load(history, upto=cut, replay=ReplaySpec(low, cut.next()))
    assert (error(later).kind, error(later).permanent) == ("NotLoadedYetError", False)

    again = ReplaySpec(low, cut, suffix="_again")
    built = orders.load(history, upto=cut, replay=again)
    assert error(built) is None
    events = sorted(map(repr, orders.lake("dbo.orders", "history", suffix="_again")))
    assert len(events) == 18
    # a try that was killed after its commit, or a person who deleted some
    for where in ("false", "id IN (3, 4)"):
        orders.spark.newSession().sql(f"DELETE FROM {name[:-1]}_again` WHERE {where}")
        repeated = orders.load(history, upto=cut, replay=again)
        assert error(repeated) is None
        assert sorted(map(repr, orders.lake("dbo.orders", "history", suffix="_again"))) == events
    last = max(row["_lsn"] for row in orders.lake("dbo.orders", "history"))
    smaller = ReplaySpec(low, Lsn.parse(last).previous(), suffix="_again")
    other = orders.load(history, upto=cut, replay=smaller)
    assert "dbo_orders_history_again has rows from outside of" in error(other).message
    loads_own = orders.load(orders.table("dbo.orders", shapes=["history"], at=positions(loaded)), upto=cut)
    assert error(loads_own) is None
    new_mirror = orders.load(orders.table("dbo.orders", shapes=["mirror"]), upto=cut, replay=again)
    assert error(new_mirror).kind == "TargetError"


def test_what_tells_that_a_database_was_restored(spark, orders):
    orders.sql("UPDATE dbo.orders SET note = N'again' WHERE id = 1")
    orders.wait_captured()
    spec = orders.spec(orders.table("dbo.orders"), upto=orders.max_lsn())
    session = table_session(spark)
    jdbc, instance = Jdbc(session, spec.source, credentials(session)), spec.tables[0].feed
    mapped = {Lsn(r["start_lsn"]): r["tran_end_time"] for r in orders.sql("SELECT * FROM cdc.lsn_time_mapping")}
    first, newest = min(mapped), max(mapped)

    seen = read_state(jdbc, instance, sees_fork=True)[0].lineage
    history = read_state(jdbc, instance)[0].lineage
    asked = read_state(jdbc, instance, [first, first.next()])[0].lineage

    assert history == LogHistory(newest, first, {newest: mapped[newest]})
    assert asked == LogHistory(newest, first, {newest: mapped[newest], first: mapped[first]})
    assert seen == dataclasses.replace(history, recovery_fork=orders.recovery_fork)
    assert seen.witnesses() == [spec.witness] == [Witness(newest, mapped[newest], orders.recovery_fork)]


def test_what_a_login_may_not_see_is_not_known(spark, orders):
    login = f"l{uuid.uuid4().hex[:8]}"
    orders.sql(f"CREATE LOGIN {login} WITH PASSWORD = 'Secret-1'")
    orders.sql(f"CREATE USER {login}; GRANT SELECT ON SCHEMA::cdc TO {login}")
    job = orders.spec(orders.table("dbo.orders"), upto=orders.max_lsn())
    session = table_session(spark)
    seen = read_progress(Jdbc(session, job.source, credentials(session)))

    unseen = read_progress(Jdbc(session, job.source, Credentials(login, "Secret-1")))

    assert seen.empty_scans is not None
    assert unseen.empty_scans is None
    assert unseen.max_lsn == seen.max_lsn


def test_a_server_that_lags_behind_the_cut_is_waited_for(orders):
    first = positions(orders.load(orders.table("dbo.orders")))
    # an idle server's max LSN moves on by itself
    ahead = Lsn(b"\xff" + bytes(9))

    for options in ({}, {"replay": ReplaySpec(first["history"][0].previous(), ahead, suffix="_again")}):
        shapes = {"shapes": ["history"]} if options else {}
        spec = orders.table("dbo.orders", at=first, **shapes)
        receipt = orders.load(spec, upto=ahead, **options)
        assert (error(receipt).kind, error(receipt).permanent) == ("CaptureLagError", False)
        assert f"and the cut is {ahead}" in error(receipt).message

    # no copy tells how far the server is, either
    orders.sql("CREATE TABLE dbo.heap (line nvarchar(20))")
    orders.enable("dbo.heap")
    for shape, name in (("history", "dbo.heap"), ("transactions", "dbo.orders")):
        receipt = orders.load(orders.table(name, shapes=[shape]), upto=ahead)
        assert (error(receipt).kind, error(receipt).permanent) == ("CaptureLagError", False)


def test_a_replay_is_checked_as_a_load_is(orders):
    first = orders.load(orders.table("dbo.orders", shapes=["history"]))
    cut = orders.max_lsn()
    job = orders.spec(orders.table("dbo.orders", shapes=["history"], at=positions(first)), upto=cut)
    replay = ReplaySpec(positions(first)["history"][0].previous(), cut)
    elsewhere = dataclasses.replace(job.source, server="other:1433")
    refused = run(orders.spark, dataclasses.replace(job, replay=replay, source=elsewhere))
    orders.fork()
    planned = orders.spec(*job.tables, upto=cut, replay=replay)
    restored = run(orders.spark, planned)

    assert error(refused).kind == "TargetError"
    assert "is loaded from" in error(refused).message
    assert error(restored).kind == "RestoredError"
    (named,) = job.tables
    (sink,) = named.sinks
    named = dataclasses.replace(named, sinks=(dataclasses.replace(sink, asserted="word"),))
    waits = run(orders.spark, dataclasses.replace(job, replay=replay, tables=(named,)))
    assert (error(waits).kind, error(waits).permanent) == ("NotLoadedYetError", False)
    assert "Run the load first" in error(waits).message


def test_a_column_dropped_between_plan_and_first_load_leaves_nothing_in_the_way_of_the_next(orders):
    planned = orders.table("dbo.orders")
    orders.sql("ALTER TABLE dbo.orders DROP COLUMN note")

    failed = orders.load(planned)
    following = orders.load(orders.table("dbo.orders"))

    assert error(failed).kind == "InstanceChangedError"
    assert "Invalid column name 'note'" in error(failed).message
    assert error(following) is None
    assert mirror(orders, "dbo.orders", "id", "doc") == rows(orders, "dbo.orders", "id, doc")


def test_another_instance_goes_on_where_it_reaches_back_far_enough(orders):
    orders.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'orders', @role_name = NULL,"
        " @capture_instance = N'second'"
    )
    orders.sql("UPDATE dbo.orders SET note = N'x' WHERE id < 10")
    orders.wait_captured()
    first = orders.load(orders.table("dbo.orders"))
    orders.sql("UPDATE dbo.orders SET note = N'y' WHERE id < 20")
    orders.wait_captured()
    orders.sql(
        "EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'orders',"
        " @capture_instance = N'dbo_orders'"
    )

    second = orders.load(orders.table("dbo.orders", at=positions(first), capture_instance="second"))

    assert error(second) is None
    assert [s.outcome for s in second.tables[0].sinks] == ["loaded", "loaded"]
    said = "was loaded from capture instance dbo_orders"
    assert [said in warning for warning in second.tables[0].warnings] == [True, True]
    assert second.tables[0].sinks[0].after.feed.name == "second"
    assert mirror(orders, "dbo.orders", "id", "note", "doc") == rows(orders, "dbo.orders", "id, note, doc")
    assert len([row for row in orders.lake("dbo.orders", "history") if row["_op"] == "U"]) == 19


def test_with_a_lost_checkpoint_the_instance_of_the_markers_is_read(orders):
    orders.load(orders.table("dbo.orders"))
    orders.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'orders', @role_name = NULL,"
        " @capture_instance = N'second'"
    )
    orders.sql("UPDATE dbo.orders SET note = N'y' WHERE id < 20")
    orders.wait_captured()
    known = orders.table("dbo.orders")
    newest = orders.table("dbo.orders", capture_instance="second")

    again = orders.load(dataclasses.replace(newest, alternatives=(known,)))

    assert error(again) is None
    assert [(s.outcome, s.after.feed.name) for s in again.tables[0].sinks] == [("loaded", "dbo_orders")] * 2
    assert again.tables[0].warnings == ()
    assert mirror(orders, "dbo.orders", "id", "note", "doc") == rows(orders, "dbo.orders", "id, note, doc")


def test_a_shape_that_the_markers_instance_does_not_suit_fails_alone(orders):
    """As one whose key that instance does not capture: the plan by it knows no such sink."""
    orders.load(orders.table("dbo.orders", ("history",)))
    orders.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'orders', @role_name = NULL,"
        " @capture_instance = N'second'"
    )
    orders.sql("UPDATE dbo.orders SET note = N'y' WHERE id < 20")
    orders.wait_captured()
    known = orders.table("dbo.orders", ("history",))
    newest = orders.table("dbo.orders", ("mirror", "history"), capture_instance="second")

    (again,) = orders.load(dataclasses.replace(newest, alternatives=(known,))).tables

    assert [(s.shape, s.outcome, s.after.feed.name) for s in again.sinks] == [("history", "loaded", "dbo_orders")]
    assert {shape: failed.kind for shape, failed in again.failed.items()} == {"mirror": "TargetError"}
    assert "cannot be loaded from capture instance dbo_orders" in again.failed["mirror"].message


def test_another_instance_that_begins_too_late_leaves_a_gap(orders):
    first = orders.load(orders.table("dbo.orders"))
    orders.sql("UPDATE dbo.orders SET note = N'y' WHERE id < 20")
    orders.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'orders', @role_name = NULL,"
        " @capture_instance = N'second'"
    )
    orders.sql("UPDATE dbo.orders SET note = N'z' WHERE id < 30")
    orders.wait_captured()

    refused = orders.load(orders.table("dbo.orders", at=positions(first), capture_instance="second"))

    assert error(refused).kind == "GapError"
    assert "was loaded from capture instance dbo_orders" in error(refused).message


def test_the_captures_progress_is_that_of_the_newest_commit_where_the_clock_was_set_back(spark, tmp_path, namespace):
    clock = [datetime.datetime(2026, 10, 25, 2, 59, 59)]
    with harsh_sandbox(user=SPARK_USER, password=SPARK_PASSWORD, clock=lambda: clock[0]) as server:
        origin = Origin(spark, server, tmp_path, namespace)
        origin.sql("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY)")
        origin.enable("dbo.t")
        origin.sql("INSERT INTO dbo.t VALUES (1)")
        clock[0] = datetime.datetime(2026, 10, 25, 2, 0, 1)
        origin.sql("INSERT INTO dbo.t VALUES (2)")
        newest = origin.scan()
        job = origin.spec(origin.table("dbo.t"), upto=newest)
        session = table_session(spark)

        found = read_progress(Jdbc(session, job.source, credentials(session)))

    assert (found.now, found.max_lsn, found.max_time) == (clock[0], newest, clock[0])


def parts(session, job, login=None, connections=2):
    """What the loads of a job's tables are put together from."""
    return SparkParts(session, job, Jdbc(session, job.source, login or credentials(session)), connections)


def login_of(origin) -> Credentials:
    """A login that may read change tables and tables, as docs/operations.md asks, and nothing else."""
    login = f"l{uuid.uuid4().hex[:8]}"
    origin.sql(f"CREATE LOGIN {login} WITH PASSWORD = 'Secret-1'")
    origin.sql(f"CREATE USER {login}; GRANT SELECT ON SCHEMA::cdc TO {login}; GRANT SELECT ON SCHEMA::dbo TO {login}")
    return Credentials(login, "Secret-1")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N't', @capture_instance = N'all'",
            "was dropped, or enabled anew",
        ),
        ("ALTER TABLE dbo.t DROP COLUMN v", r"column v int\(4,10,0\) was dropped\n"),
        ("ALTER TABLE dbo.t ALTER COLUMN v bigint", "column v was int.*, and is bigint"),
    ],
)
def test_a_first_load_whose_table_changes_meanwhile_stops(spark, origin, tmp_path, monkeypatch, statement, said):
    login = login_of(origin)
    origin.sql("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, v int)")
    origin.enable("dbo.t")
    origin.sql("INSERT INTO dbo.t VALUES (1, 10)")
    table = origin.table("dbo.t")
    job, session = origin.spec(table, upto=origin.scan()), table_session(spark)
    source = parts(session, job, login, connections=1).source(table, map_columns(table.name, table.schema))
    looks, done = [], []

    def progress(jdbc):
        found = read_progress(jdbc)
        looks.append(found)
        # after the table was copied, while the first load waits for the capture
        if len(looks) == 3 and not done:
            done.append(statement)
            origin.sql(statement)
        origin.scan()
        return found

    monkeypatch.setattr(cdc_table, "read_progress", progress)
    monkeypatch.setattr(capture, "read_progress", progress)
    with pytest.raises(InstanceChangedError, match=said):
        source.copy(CopyOrder(str(tmp_path / "copy"), 3.0, CopyTime()))


def test_a_login_outside_of_the_gating_role_loads(spark, live):
    login = login_of(live)
    # sees empty scans, so that the first load need not wait for the next dummy row
    live.sql(f"GRANT VIEW DATABASE STATE TO {login.user}")
    live.sql("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, v int)")
    live.sql("EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N't', @role_name = N'cdc_readers'")
    live.sql("INSERT INTO dbo.t VALUES (1, 10)")
    live.wait_captured()

    def load(**at):
        table, session = live.table("dbo.t", shapes=["mirror"], **at), table_session(spark)
        job = live.spec(table, upto=live.max_lsn())
        loading = TableLoad(job, table, parts(session, job, login, connections=1))
        to_its_end(loading)
        return loading.notes.receipt(table.name)

    first = load()
    live.sql("UPDATE dbo.t SET v = 11; INSERT INTO dbo.t VALUES (2, 20)")
    live.wait_captured()
    second = load(at={s.shape: (s.read_through, s.after.position) for s in first.sinks})

    assert [s.outcome for s in (*first.sinks, *second.sinks)] == ["first_load", "loaded"]
    assert mirror(live, "dbo.t", "id", "v") == rows(live, "dbo.t", "id, v")


def test_an_instance_enabled_anew_is_noticed(orders):
    spec = orders.table("dbo.orders")
    orders.sql(
        "EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'orders', @capture_instance = N'all'"
    )
    orders.enable("dbo.orders")
    orders.wait_captured()

    receipt = orders.load(spec)

    assert (error(receipt).kind, error(receipt).permanent) == ("InstanceChangedError", False)


def test_a_catalog_that_is_not_configured_is_named(orders):
    table = orders.table("dbo.orders")
    sinks = tuple(dataclasses.replace(sink, table=("nowhere", *sink.table[1:])) for sink in table.sinks)

    receipt = orders.load(dataclasses.replace(table, sinks=sinks))

    assert error(receipt).message.startswith(
        "dbo.orders: catalog nowhere is not configured in Spark. For Iceberg set conf spark."
    )
    assert (error(receipt).kind, error(receipt).permanent) == ("TargetError", True)


def test_the_password_appears_nowhere(spark, orders, capfd):
    spec = orders.spec(orders.table("dbo.orders"), upto=orders.max_lsn())
    source = dataclasses.replace(spec.source, jdbc_url=spec.source.jdbc_url + ";loginTimeout=5")
    Path(spec.path).parent.mkdir(parents=True)
    Path(spec.path).write_text(to_json(dataclasses.replace(spec, source=source)))

    receipt = run(spark, from_json(JobSpec, files.read_text(spark, spec.path)))
    wrong = table_session(spark)
    wrong.conf.set("spark.mssql_cdc.password", SPARK_PASSWORD + "-wrong")
    refused = describe(_failure(wrong, source), credentials(wrong), target_credentials(wrong), table="dbo.orders")

    assert error(receipt) is None
    out, err = capfd.readouterr()
    for text in (to_json(receipt), refused.message, repr(credentials(wrong)), out, err, Path(spec.path).read_text()):
        assert SPARK_PASSWORD not in text
    assert (refused.kind, refused.permanent) == ("LoginError", True)
    assert refused.message == (
        f"dbo.orders: SQL Server error 18456: Login failed for user '{SPARK_USER}'. "
        "Check login and password of the Airflow connection."
    )


def _failure(session, source):
    with pytest.raises(Exception, match="Login failed") as caught:
        Jdbc(session, source, credentials(session)).rows("SELECT 1 AS one", "one INT")
    return caught.value


class OthersFirst(TableLoad):
    """Another run commits the same window after this one has read it, and before it commits."""

    def _settle(self, sink, state, todo):
        if not self.notes.done:
            job, session = dataclasses.replace(self._job, id="other"), table_session(self._parts.session)
            to_its_end(TableLoad(job, self._table, parts(session, job, connections=1)))
        return super()._settle(sink, state, todo)


@pytest.mark.thorough
@pytest.mark.parametrize("first_load", [True, False])
def test_two_runs_side_by_side_load_once(spark, orders, first_load):
    at = {}
    if not first_load:
        at = positions(orders.load(orders.table("dbo.orders")))
        orders.sql("UPDATE dbo.orders SET note = N'x' WHERE id < 10; DELETE FROM dbo.orders WHERE id = 1")
    orders.sql("INSERT INTO dbo.orders VALUES (-1, N'new', NULL)")
    orders.wait_captured()
    table = orders.table("dbo.orders", at=at)
    job = orders.spec(table, upto=orders.max_lsn())
    session = table_session(spark)
    load = OthersFirst(job, table, parts(session, job))

    to_its_end(load)

    assert [s.outcome for s in load.notes.receipt(table.name).sinks] == ["already", "already"]
    assert mirror(orders, "dbo.orders", "id", "note", "doc") == rows(orders, "dbo.orders", "id, note, doc")
    history = orders.lake("dbo.orders", "history")
    identities = [(r["_lsn"], r["_command_id"], r["_op"], r["id"]) for r in history]
    assert len(set(identities)) == len(identities)


class RolledBackMeanwhile(TableLoad):
    """Someone rolls the target back, and changes it, after this run has read its window and before it commits."""

    snapshot: int

    def _settle(self, sink, state, todo):
        name, session = ".".join(sink.spec.table[1:]), self._parts.session
        session.sql(f"CALL lake.system.rollback_to_snapshot('{name}', {self.snapshot})").collect()
        session.sql(f"DELETE FROM {sink.target.sql_name} WHERE id = 1")
        return super()._settle(sink, state, todo)


def test_a_target_that_was_rolled_back_meanwhile_is_named_with_what_moved_it(spark, orders):
    first = orders.load(orders.table("dbo.orders", shapes=["mirror"]))
    name = ".".join(f"`{part}`" for part in orders.target("dbo.orders", "mirror"))
    snapshot = orders.spark.sql(f"SELECT snapshot_id FROM {name}.refs WHERE name = 'main'").collect()[0][0]
    receipt = first
    for id_ in (2, 3):
        orders.sql(f"DELETE FROM dbo.orders WHERE id = {id_}")
        orders.wait_captured()
        table = orders.table("dbo.orders", shapes=["mirror"], at=positions(receipt))
        job, session = orders.spec(table, upto=orders.max_lsn()), table_session(spark)
        if id_ == 2:
            receipt = run(spark, job)
    load = RolledBackMeanwhile(job, table, parts(session, job, connections=1))
    load.snapshot = snapshot

    to_its_end(load)
    ((error, _),) = load.notes.failed.values()
    assert isinstance(error, CommitConflictError)

    missing = Window(positions(first)["mirror"][0], job.upto.of(Lsn))
    assert str(error).startswith(
        f"dbo.orders: {'.'.join(orders.target('dbo.orders', 'mirror'))} was changed so that {missing} is missing, "
        "which this run has not read as a whole; last changed by delete of application local-"
    )
    assert not error.permanent
