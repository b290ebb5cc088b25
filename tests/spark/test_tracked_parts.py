"""What sinks take from the changes that are kept beside a copy, and what the rows of a target tell of changes."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.copy_wanted import AskedCopy
from airflow_provider_mssql_cdc.core.table_options import Choice
from airflow_provider_mssql_cdc.spark.copies.table_copy import TableCopy
from airflow_provider_mssql_cdc.spark.session import table_session
from airflow_provider_mssql_cdc.spark.sources.ct.changes import lettered, newest_of, replaced
from tests.spark.test_tracked_tables import COLUMNS, NAME, tracked
from tests.support.spark.rows import local
from tests.support.spark.tracked_origin import PlannedRuns, TrackedOrigin

pytestmark = [pytest.mark.xdist_group("tests.spark.test_tracked_tables"), pytest.mark.timeout(900)]

SHAPES = ("mirror", "history", "scd2")
KEYS = "lab.things"


def spelled(origin: Any) -> TrackedOrigin:
    """A table whose keys may be spelled otherwise, and another one that moves the database's version."""
    found = TrackedOrigin(origin, snapshots=True)
    found.sql("EXEC sys.sp_cdc_disable_db; CREATE SCHEMA lab")
    found.sql("CREATE TABLE lab.things (k varchar(9) COLLATE Latin1_General_CI_AS NOT NULL PRIMARY KEY, v int)")
    found.sql("CREATE TABLE lab.busy (id int NOT NULL PRIMARY KEY, n int); INSERT INTO lab.busy VALUES (1, 1)")
    found.sql("INSERT INTO lab.things VALUES ('abc', 1), ('gone', 2), ('stays', 3), ('other', 4)")
    found.track(KEYS)
    found.track("lab.busy")
    return found


def at_the_end(monkeypatch: pytest.MonkeyPatch, found: TrackedOrigin, text: str) -> None:
    """Let T-SQL run once all rows of a copy are read, before what was changed meanwhile is."""
    finished, left = TableCopy._finished, [text]

    def run(self: TableCopy, folder: Any) -> Any:
        while left:
            found.sql(left.pop())
        return finished(self, folder)

    monkeypatch.setattr(TableCopy, "_finished", run)


def right(runs: PlannedRuns, found: TrackedOrigin, *columns: str) -> None:
    stored = runs.stored("things")
    assert stored is not None
    for shape in SHAPES:
        assert found.shown(KEYS, shape, columns, stored.loaded[shape].position) == found.source(KEYS, columns), shape


def test_a_fill_beside_other_tables_and_keys_that_change_at_its_end(origin, monkeypatch):
    found = spelled(origin)
    runs = PlannedRuns(found, "things", shapes=SHAPES, on_schema_change="evolve")
    runs.run()
    # nothing happens in the table itself
    found.sql("UPDATE lab.busy SET n = 2; ALTER TABLE lab.things ADD b int NOT NULL DEFAULT 7")
    with monkeypatch.context() as patch:
        at_the_end(patch, found, "UPDATE lab.busy SET n = 3")
        assert runs.run() == {KEYS: ["loaded"] * 3}
    right(runs, found, "k", "v", "b")
    # a history has the column with its next window, and the keys of text are looked for in what it had
    low = runs.position("things").value
    found.sql("ALTER TABLE lab.things ADD c int; UPDATE lab.things SET c = 1, v = 9 WHERE k = 'stays'")
    changes = (
        "UPDATE lab.things SET k = 'ABC' WHERE k = 'abc'; DELETE FROM lab.things WHERE k = 'gone';"
        " INSERT INTO lab.things (k, c) VALUES ('new', 2); UPDATE lab.things SET c = 3 WHERE k = 'other'"
    )
    with monkeypatch.context() as patch:
        at_the_end(patch, found, changes)
        runs.run()
    right(runs, found, "k", "v", "b", "c")
    events = [row for row in origin.lake(KEYS, "history") if row["_version"] > low and row["_op"] != "R"]
    # to the server it is one key, that was deleted and inserted
    letters = {(row["k"], row["_op"]) for row in events}
    assert letters == {("stays", "U"), ("abc", "D"), ("ABC", "U"), ("gone", "D"), ("new", "I"), ("other", "U")}
    assert all(row["_commit_ts"] is not None and row["_read_at"] is not None for row in events if row["k"] != "abc")
    found.sql("UPDATE lab.things SET v = 10")
    runs.run()
    right(runs, found, "k", "v", "b", "c")


def test_what_a_person_asks_for_beside_other_tables(origin, monkeypatch):
    found = spelled(origin)
    found.load(found.table(KEYS, shapes=SHAPES))
    found.sql("UPDATE lab.busy SET n = 2")
    origin.spark.sql(f"UPDATE {'.'.join(origin.target(KEYS, 'mirror'))} SET v = -1 WHERE k = 'stays'")
    at_the_end(monkeypatch, found, "UPDATE lab.busy SET n = 3; UPDATE lab.things SET k = 'ABC' WHERE k = 'abc'")
    asked = dataclasses.replace(found.table(KEYS, shapes=SHAPES), asked=AskedCopy("c1"))
    (table,) = found.load(asked).tables
    assert (table.error, table.ended_copy) == (None, "c1 COMPLETED")
    for shape in SHAPES:
        shown = found.shown(KEYS, shape, ("k", "v"), found.reached(KEYS, shape))
        assert shown == found.source(KEYS, ("k", "v")), shape


@pytest.mark.parametrize("how", ["quiet", "busy"])
def test_a_gap_that_is_closed_ends_what_has_vanished(origin, how, monkeypatch):
    found = tracked(origin, snapshots=True)
    found.sql("EXEC sys.sp_cdc_disable_db; UPDATE lab.things SET a = 2 WHERE id < 20")
    runs = PlannedRuns(found, "things", shapes=SHAPES, on_gap=("copy",))
    runs.run()
    found.sql("ALTER TABLE lab.things DISABLE CHANGE_TRACKING; DELETE FROM lab.things WHERE id IN (1, 30)")
    found.sql("UPDATE lab.things SET a = 5 WHERE id IN (2, 31)")
    found.track(NAME)
    vanished = {1, 30} if how == "quiet" else {1, 4, 30}
    if how == "busy":
        found.sql("UPDATE lab.things SET a = 6 WHERE id = 3")
        at_the_end(
            monkeypatch, found, "DELETE FROM lab.things WHERE id = 4; INSERT INTO lab.things VALUES (70, 1, NULL)"
        )
    assert runs.run() == {NAME: ["first_load"] * 3}
    right(runs, found, *COLUMNS)
    assert {row["id"] for row in origin.lake(NAME, "history") if row["_op"] == "D"} == vanished
    found.sql("UPDATE lab.things SET a = 7 WHERE id = 2")
    runs.run()
    right(runs, found, *COLUMNS)


def test_rows_that_come_to_fulfil_a_filter_are_inserted_and_hidden_ones_are_not_told_of(origin):
    found = tracked(origin, snapshots=True)
    found.sql("UPDATE lab.things SET a = 50 WHERE id IN (1, 2, 3)")
    choice = Choice(where=(("a", "<", 10),))
    found.load(found.table(NAME, choice, ("history", "scd2")))
    low = found.current().value
    found.sql("UPDATE lab.things SET a = 5 WHERE id = 1; UPDATE lab.things SET a = 51 WHERE id = 2")
    found.sql("DELETE FROM lab.things WHERE id = 3; UPDATE lab.things SET a = 52 WHERE id = 4")
    found.sql("UPDATE lab.things SET a = 6 WHERE id = 5")
    found.load(found.table(NAME, choice, ("history", "scd2")))
    rows = origin.lake(NAME, "history")
    assert {(row["id"], row["_op"]) for row in rows if row["_version"] > low} == {(1, "I"), (4, "D"), (5, "U")}
    expected = [row for row in found.source(NAME, COLUMNS) if row[1] < 10]
    for shape in ("history", "scd2"):
        assert found.shown(NAME, shape, COLUMNS, found.reached(NAME, shape)) == expected, shape


def test_windows_of_before_that_kept_no_columns_of_updates_join_those_that_do(spark):
    session = table_session(spark)
    old = local(session, [(1, 5, "U"), (2, 5, "I")], "id INT, _version BIGINT, _op STRING")
    new = local(session, [(1, 6, "U", ["a"])], "id INT, _version BIGINT, _op STRING, _changed ARRAY<STRING>")
    for joined in (newest_of([old, new], ["id"]), replaced(old, new, ["id"], None)):
        found = {tuple(row[name] for name in ("id", "_version", "_changed")) for row in by_tuples(joined)}
        assert found == {(1, 6, ("a",)), (2, 5, None)}


def by_tuples(rows: Any) -> list[dict[str, Any]]:
    return [{**row.asDict(), "_changed": row["_changed"] and tuple(row["_changed"])} for row in rows.collect()]


@pytest.mark.parametrize("hides", [False, True])
def test_letters_are_those_of_what_the_target_has(spark, hides):
    session = table_session(spark)
    ddl = "id INT, _version BIGINT, _op STRING, _changed ARRAY<STRING>"
    rows = local(session, [(1, 5, "I", None), (2, 6, "U", ["a"]), (3, 7, "D", None), (4, 8, "D", None)], ddl)
    known = local(session, [(1,), (3,)], "id INT")
    found = lettered(rows, known, ["id"], hides=hides, has_columns=hides)
    assert found.columns == (rows.columns if hides else rows.columns[:-1])
    expected = {1: "U", 2: "I", 3: "D", 4: "D"}
    if hides:
        del expected[4]
    assert {row["id"]: row["_op"] for row in found.collect()} == expected
