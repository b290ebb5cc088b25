"""Histories and versions by Change Tracking: what was seen of each row at the versions that were loaded."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.changes import NET_MASK, NET_MERGE, HistoryOptions
from airflow_provider_mssql_cdc.core.copy_wanted import AskedCopy
from airflow_provider_mssql_cdc.core.position import Version
from tests.spark.test_tracked_tables import COLUMNS, NAME, drawn, tracked
from tests.support import harsh
from tests.support.spark.tracked_origin import TrackedOrigin, Writers

pytestmark = [pytest.mark.xdist_group("tests.spark.test_tracked_tables"), pytest.mark.timeout(900)]

SHAPES = ("mirror", "history", "scd2")

Rows = list[tuple[Any, ...]]


def history(found: TrackedOrigin) -> list[dict[str, Any]]:
    return found.origin.lake(NAME, "history")


def check_events(events: Sequence[dict[str, Any]], writers: Writers, after: Version, upto: Version) -> None:
    """Each event is what its key came to in the window, and no key that changed is without one."""

    def state(at: Version) -> dict[int, tuple[Any, ...]]:
        return {row[0]: row for row in writers.state(at)}

    before, now = state(after), state(upto)
    assert len({row["id"] for row in events}) == len(events)
    for row in events:
        key, at = row["id"], Version(row["_version"])
        assert after < at <= upto
        expected = "D" if key not in now else "U" if key in before else "I"
        assert row["_op"] == expected, (row, before.get(key), now.get(key))
        steps = [state(version).get(key) for version in writers.states if at <= version <= upto]
        values = tuple(row[column] for column in COLUMNS)
        assert {*steps} == ({None} if row["_op"] == "D" else {values}), row
        assert row["_unknown"] == (["a", "note"] if row["_op"] == "D" else [])
        assert row["_commit_ts"] is not None
    changed = {key for key in {*before, *now} if before.get(key) != now.get(key)}
    assert changed <= {row["id"] for row in events}


@pytest.mark.parametrize("connections", [1, pytest.param(4, marks=pytest.mark.thorough)])
def test_what_was_loaded_is_the_source_at_each_version_while_others_write(origin, connections):
    found = tracked(origin, snapshots=True)
    options = {"connections": connections, "copy_rows": 10, "slice_rows": 5}
    with Writers(found, NAME, COLUMNS, drawn(random.Random(harsh.SEED))) as writers:
        reached = []
        for _ in range(3):
            (table,) = found.load(found.table(NAME, shapes=SHAPES), upto=found.current(), **options).tables
            assert (table.error, table.reads) == (None, "exact")
            reached.append({shape: found.reached(NAME, shape) for shape in SHAPES})
    rows = history(found)
    first = [row for row in rows if row["_op"] == "R"]
    assert {(row["_version"], row["_healed"]) for row in first} == {(reached[0]["history"].value, False)}
    for number, positions in enumerate(reached):
        for shape in ("history", "scd2"):
            at = positions[shape]
            assert found.shown(NAME, shape, COLUMNS, at) == writers.state(at), (shape, at)
        if number:
            after, upto = reached[number - 1]["history"], positions["history"]
            within = [row for row in rows if after.value < row["_version"] <= upto.value]
            check_events(within, writers, after, upto)
    assert {row["_version"] for row in rows} <= {*range(reached[-1]["history"].value + 1)}


def seen(rows: Sequence[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row[name] for name in names) for row in rows), key=repr)


@pytest.mark.parametrize("changes", [NET_MASK, NET_MERGE])
def test_the_other_ways_to_look_at_net_changes(origin, changes):
    found = tracked(origin, snapshots=True)
    found.sql("DELETE FROM lab.things WHERE id > 6")
    how = {"shapes": ("history",), "history": HistoryOptions(changes)}
    found.load(found.table(NAME, **how))
    low = found.current().value
    found.sql("UPDATE lab.things SET a = 2 WHERE id = 1")
    found.sql("UPDATE lab.things SET note = note WHERE id = 1; UPDATE lab.things SET a = 3, note = N'x' WHERE id = 2")
    found.sql("UPDATE lab.things SET a = 4 WHERE id = 3; DELETE FROM lab.things WHERE id = 4")
    found.sql(
        "BEGIN TRANSACTION; DELETE FROM lab.things WHERE id = 5; INSERT INTO lab.things VALUES (5, 5, NULL); COMMIT"
    )
    found.sql("INSERT INTO lab.things VALUES (50, 5, NULL), (51, 5, NULL)")
    found.sql("DELETE FROM lab.things WHERE id = 51; UPDATE lab.things SET a = 6 WHERE id = 50")
    found.load(found.table(NAME, **how))

    events = [row for row in history(found) if row["_version"] > low]
    put = "M" if changes == NET_MERGE else "U"
    named = {1: ["a", "note"], 3: ["a"]} if changes == NET_MASK else {}
    none = (None, None)
    expected = [
        (1, put, 2, "old", named.get(1)),
        # nobody knows where all were named (docs: CHANGETABLE)
        (2, put, 3, "x", None),
        (3, put, 4, "old", named.get(3)),
        (4, "D", *none, None),
        (5, put, 5, None, None),
        (50, "M" if changes == NET_MERGE else "I", 6, None, None),
        (51, "D", *none, None),
    ]
    assert seen(events, "id", "_op", "a", "note", "_changed") == sorted(expected, key=repr)


def test_the_times_of_commits_are_those_of_the_server_where_the_login_sees_them(origin):
    found = tracked(origin, snapshots=True)
    found.load(found.table(NAME, shapes=("history", "scd2")))
    low = found.current().value
    for id in (1, 2, 3):
        found.sql(f"UPDATE lab.things SET a = 9 WHERE id = {id}")
    found.load(found.table(NAME, shapes=("history", "scd2")))
    commits = found.sql("SELECT commit_ts, commit_time FROM sys.dm_tran_commit_table")
    times = {row["commit_ts"]: row["commit_time"] for row in commits if row["commit_ts"] > low}
    events = {row["_version"]: row for row in history(found) if row["_version"] > low}
    assert len(events) == 3
    assert {at: row["_commit_ts"] for at, row in events.items()} == times
    utc = {at: row["_commit_ts_utc"].replace(tzinfo=None) for at, row in events.items()}
    assert utc == times
    versions = found.origin.lake(NAME, "scd2")
    assert {r["_from_version"]: r["_from_ts"] for r in versions if r["_from_version"] > low} == times
    assert {r["_to_version"]: r["_to_ts"] for r in versions if r["_to_version"] is not None} == times
    # of one moment; the server's clock may have gone back since a commit
    (read_at,) = {row["_read_at"] for row in events.values()}
    assert read_at is not None


def test_a_key_that_is_spelled_otherwise_ends_as_it_was_and_begins_anew(origin):
    found = TrackedOrigin(origin, snapshots=True)
    found.sql("CREATE SCHEMA lab")
    found.sql("CREATE TABLE lab.keys (k varchar(9) COLLATE Latin1_General_CI_AS NOT NULL PRIMARY KEY, v int)")
    found.sql("INSERT INTO lab.keys VALUES ('abc', 1), ('stays', 2)")
    found.track("lab.keys")
    found.load(found.table("lab.keys", shapes=SHAPES))
    low = found.current().value
    found.sql("UPDATE lab.keys SET k = 'ABC', v = 3 WHERE k = 'abc'")
    found.load(found.table("lab.keys", shapes=SHAPES))
    at = found.current().value
    events = [row for row in found.origin.lake("lab.keys", "history") if row["_version"] > low]
    assert [row["_op"] for row in events if row["k"] == "abc"] == ["D"]
    assert seen([row for row in events if row["k"] == "ABC"], "v", "_version") == [(3, at)]
    versions = found.origin.lake("lab.keys", "scd2")
    assert seen(versions, "k", "v", "_from_version", "_to_version") == sorted(
        [("abc", 1, low, at), ("ABC", 3, at, None), ("stays", 2, low, None)], key=repr
    )
    assert seen(found.origin.lake("lab.keys"), "k", "v") == [("ABC", 3), ("stays", 2)]


def test_rows_that_a_truncate_took_without_a_word_are_deleted(origin):
    found = tracked(origin, snapshots=True)
    found.load(found.table(NAME, shapes=SHAPES))
    found.sql("TRUNCATE TABLE lab.things; INSERT INTO lab.things VALUES (1, 7, N'new'), (99, 7, NULL)")
    (table,) = found.load(found.table(NAME, shapes=SHAPES)).tables
    assert table.error is None
    at = found.reached(NAME)
    assert [found.shown(NAME, shape, COLUMNS, at) for shape in SHAPES] == [found.source(NAME, COLUMNS)] * 3


def test_rows_that_may_be_newer_than_their_version_are_for_no_history(origin):
    found = tracked(origin, snapshots=True)
    (table,) = found.load(found.table(NAME, shapes=SHAPES), isolation="read_committed").tables
    assert [sink.shape for sink in table.sinks] == ["mirror"]
    assert {shape: error.kind for shape, error in table.failed.items()} == {
        "history": "ConnectionSettingError",
        "scd2": "ConnectionSettingError",
    }
    assert all("needs exact reads" in error.message for error in table.errors)
    assert found.mirror(NAME, COLUMNS) == found.source(NAME, COLUMNS)


def test_what_differs_is_mended_while_others_write(origin):
    """A copy that a person asks for, into targets that have lost and altered rows."""
    found = tracked(origin, snapshots=True)
    found.sql("INSERT INTO lab.things VALUES (70, 1, NULL), (71, 1, NULL), (72, 1, NULL)")
    options = {"connections": 2, "copy_rows": 10, "slice_rows": 5}
    asked = AskedCopy("c1")
    with Writers(found, NAME, COLUMNS, drawn(random.Random(harsh.SEED))) as writers:
        found.load(found.table(NAME, shapes=SHAPES), **options)
        for shape in ("mirror", "scd2"):
            table = ".".join(origin.target(NAME, shape))
            origin.spark.sql(f"DELETE FROM {table} WHERE id = 70")
            origin.spark.sql(f"UPDATE {table} SET a = -1 WHERE id = 71")
            origin.spark.sql(f"UPDATE {table} SET id = -5 WHERE id = 72")
        for _ in range(3):
            (table,) = found.load(dataclasses.replace(found.table(NAME, shapes=SHAPES), asked=asked), **options).tables
            assert table.error is None
            if table.ended_copy is not None:
                break
        assert "COMPLETED" in table.ended_copy
    for shape in SHAPES:
        at = found.reached(NAME, shape)
        assert found.shown(NAME, shape, COLUMNS, at) == writers.state(at), (shape, at)


@pytest.mark.parametrize(
    ("file_format", "shapes"),
    [
        ("postgresql", SHAPES),
        pytest.param("delta", SHAPES, marks=pytest.mark.thorough),
        pytest.param("parquet", ("history",), marks=pytest.mark.thorough),
    ],
)
def test_each_format_holds_what_was_seen(origin, file_format, shapes, request):
    origin.format = file_format
    if file_format == "postgresql":
        origin.into(request.getfixturevalue("postgresql"))
    found = tracked(origin, snapshots=True)
    states = {}
    for change in (
        "UPDATE lab.things SET a = 2 WHERE id < 9",
        "DELETE FROM lab.things WHERE id IN (3, 4); INSERT INTO lab.things VALUES (99, NULL, N'new')",
        "INSERT INTO lab.things VALUES (3, 3, N'again'); UPDATE lab.things SET id = 100 WHERE id = 99",
    ):
        found.sql(f"BEGIN TRANSACTION; {change}; COMMIT")
        (table,) = found.load(found.table(NAME, shapes=shapes)).tables
        assert table.error is None
        states[found.current()] = found.source(NAME, COLUMNS)
    for at, state in states.items():
        for shape in shapes:
            if shape != "mirror" or at == found.current():
                assert found.shown(NAME, shape, COLUMNS, at) == state, (shape, at)
    if "history" in shapes:
        events = [row for row in history(found) if row["_op"] != "R"]
        assert all(row["_commit_ts"] is not None and row["_read_at"] is not None for row in events)
        assert {row["_unknown"] is None or tuple(row["_unknown"]) for row in events} == {(), ("a", "note")}
