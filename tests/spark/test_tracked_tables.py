"""Tables that Change Tracking tracks, loaded into mirrors: exact under SNAPSHOT, else right once writers rest."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator

import pytest

from airflow_provider_mssql_cdc.core.position import Version
from airflow_provider_mssql_cdc.core.table_options import Choice
from tests.support import harsh
from tests.support.spark.origin import Origin
from tests.support.spark.tracked_origin import PlannedRuns, TrackedOrigin, Writers

pytestmark = [pytest.mark.xdist_group(__name__), pytest.mark.timeout(900)]

NAME, COLUMNS = "lab.things", ("id", "a", "note")


def tracked(origin: Origin, *, snapshots: bool) -> TrackedOrigin:
    found = TrackedOrigin(origin, snapshots=snapshots)
    found.sql("CREATE SCHEMA lab")
    found.sql("CREATE TABLE lab.things (id int NOT NULL PRIMARY KEY, a int, note nvarchar(max))")
    found.sql("INSERT INTO lab.things VALUES " + ", ".join(f"({id}, 1, N'old')" for id in range(1, 41)))
    found.track(NAME)
    return found


def drawn(rng: random.Random) -> Iterator[str]:
    """Transactions on the table."""
    for number in range(1_000_000):
        id = rng.randrange(60)
        insert = f"INSERT INTO lab.things SELECT {id}, {number}, N'in {number}' WHERE NOT EXISTS"
        yield "; ".join(
            rng.sample(
                (
                    f"UPDATE lab.things SET a = {number}, note = N'n{number}' WHERE id BETWEEN {id} AND {id + 3}",
                    f"{insert} (SELECT 1 FROM lab.things WHERE id = {id})",
                    f"DELETE FROM lab.things WHERE id = {(id * 7) % 60}",
                    f"UPDATE lab.things SET id = id + 100 WHERE id = {id} AND NOT EXISTS"
                    f" (SELECT 1 FROM lab.things WHERE id = {id + 100})",
                ),
                rng.choice((1, 1, 2)),
            )
        )


@pytest.mark.parametrize("connections", [pytest.param(1, marks=pytest.mark.thorough), 4])
def test_each_commit_is_the_source_at_its_version_while_others_write(origin, connections):
    found = tracked(origin, snapshots=True)
    rng = random.Random(harsh.SEED)
    options = {"connections": connections, "copy_rows": 10, "slice_rows": 5}
    with Writers(found, NAME, COLUMNS, drawn(rng)) as writers:
        reached = []
        for _ in range(3):
            # planned before, as by a scheduler: the read is of a later moment
            cut = found.current()
            (table,) = found.load(found.table(NAME), upto=cut, **options).tables
            assert (table.error, table.reads) == (None, "exact")
            assert found.reached(NAME) >= cut
            reached.append((found.reached(NAME), found.mirror(NAME, COLUMNS)))
    assert [at for at, _ in reached] == sorted({at for at, _ in reached})
    for at, mirror in reached:
        # a version of another table's is none of this one's: the newest state at or below it
        assert mirror == writers.state(at), at


def test_without_snapshots_a_mirror_is_right_once_writers_rest(origin):
    found = tracked(origin, snapshots=False)
    with Writers(found, NAME, COLUMNS, drawn(random.Random(harsh.SEED))):
        for _ in range(3):
            (table,) = found.load(found.table(NAME), connections=4, copy_rows=10, slice_rows=5).tables
            assert (table.error, table.reads) == (None, "converging")
    (table,) = found.load(found.table(NAME), isolation="snapshot").tables
    assert table.error.kind == "ConnectionSettingError"
    assert "ALLOW_SNAPSHOT_ISOLATION ON" in table.error.message
    found.sql("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON")
    (table,) = found.load(found.table(NAME), connections=3, slice_rows=5, isolation="read_committed").tables
    assert table.reads == "converging"
    assert found.mirror(NAME, COLUMNS) == found.source(NAME, COLUMNS)


def test_the_join_decides_and_a_row_that_leaves_the_filter_is_deleted(origin):
    found = tracked(origin, snapshots=True)
    found.sql("CREATE TABLE lab.[odd t] ([k 1] nvarchar(20) NOT NULL, k2 datetime2 NOT NULL, v decimal(9, 2), f float,"
              " hidden int, PRIMARY KEY (k2, [k 1]))")  # fmt: skip
    moment = "'2026-03-04 05:06:07.1234567'"
    found.sql(
        f"INSERT INTO lab.[odd t] VALUES (N'a', {moment}, 1.5, 0.1, 1), (N'b', {moment}, 2.5, NULL, 2),"
        f" (N'c', {moment}, 3.5, 1e300, 3), (N'é', '0001-01-01', NULL, -1, 4)"
    )
    found.sql("ALTER TABLE lab.[odd t] ENABLE CHANGE_TRACKING")
    name, columns = "lab.odd t", ("k 1", "k2", "v", "f")
    choice = Choice(columns=("k 1", "k2", "v", "f"), where=(("hidden", "<", 10),))

    def load():
        return found.load(found.table(name, choice)).tables[0]

    def right():
        quoted = [f"[{column}]" for column in columns]
        rows = found.sql(f"SELECT {', '.join(quoted)} FROM lab.[odd t] WHERE hidden < 10")
        mirror = {row["k 1"]: (row["v"], row["f"]) for row in found.origin.lake(name)}
        assert mirror == {row["k 1"]: (row["v"], row["f"]) for row in rows}

    assert load().sinks[0].outcome == "first_load"
    right()
    found.sql(
        "UPDATE lab.[odd t] SET hidden = 10 WHERE [k 1] = N'a'; UPDATE lab.[odd t] SET v = 9 WHERE [k 1] = N'b';"
        "DELETE FROM lab.[odd t] WHERE [k 1] = N'c'; INSERT INTO lab.[odd t] VALUES (N'c', '0002-01-01', 4, 4, 4);"
        f"INSERT INTO lab.[odd t] VALUES (N'never', {moment}, 4, 4, 11), (N'gone', {moment}, 4, 4, 4);"
        "DELETE FROM lab.[odd t] WHERE [k 1] = N'gone'"
    )
    assert load().sinks[0].outcome == "loaded"
    right()
    # a delete and an insert of one key: its letter is not what decides
    found.sql(
        "BEGIN TRANSACTION; DELETE FROM lab.[odd t] WHERE [k 1] = N'b';"
        f"INSERT INTO lab.[odd t] VALUES (N'b', {moment}, 7, 7, 7); COMMIT"
    )
    load()
    right()
    # a quiet table is not read, and goes on
    before = found.reached(name)
    found.sql("UPDATE lab.things SET a = 5 WHERE id = 1")
    (table,) = found.load(found.table(name, choice)).tables
    assert (table.error, table.counts["events"]) == (None, 0)
    assert found.at[name]["mirror"][0] > before
    right()


def test_version_zero_is_a_position(origin):
    found = tracked(origin, snapshots=True)
    assert found.current() == Version(0)
    found.load(found.table(NAME))
    assert (found.reached(NAME), found.mirror(NAME, COLUMNS)) == (Version(0), found.source(NAME, COLUMNS))
    found.sql("DELETE FROM lab.things WHERE id < 10")
    found.load(found.table(NAME))
    assert (found.reached(NAME), found.mirror(NAME, COLUMNS)) == (Version(1), found.source(NAME, COLUMNS))


@pytest.mark.parametrize("how", ["truncated", "switched off and on"])
def test_another_tracking_of_a_quiet_table_is_told_though_the_version_is_valid(origin, how):
    found = tracked(origin, snapshots=True)
    found.sql("UPDATE lab.things SET a = 2 WHERE id = 1")
    found.load(found.table(NAME))
    # nothing happened, which is no other tracking
    assert found.load(found.table(NAME)).tables[0].error is None
    before = found.mirror(NAME, COLUMNS)
    if how == "truncated":
        found.sql("TRUNCATE TABLE lab.things")
    else:
        found.sql("ALTER TABLE lab.things DISABLE CHANGE_TRACKING; DELETE FROM lab.things")
        found.track(NAME)
    table = found.table(NAME)
    assert table.feed.min_valid_version == found.reached(NAME) == found.current()
    (error,) = found.load(table).tables[0].errors
    assert error.kind == "GapError"
    assert "truncated, or Change Tracking switched off and on" in error.message
    assert found.mirror(NAME, COLUMNS) == before
    (sink,) = table.sinks
    anew = dataclasses.replace(sink, expects=None, read_through=None, lost_after=sink.read_through)
    (told,) = found.load(dataclasses.replace(table, sinks=(anew,))).tables
    assert (told.error, told.sinks[0].outcome) == (None, "first_load")
    assert found.mirror(NAME, COLUMNS) == found.source(NAME, COLUMNS)
    # and it goes on from there
    found.sql("INSERT INTO lab.things VALUES (5, 5, N'after')")
    assert found.load(found.table(NAME)).tables[0].error is None
    assert found.mirror(NAME, COLUMNS) == found.source(NAME, COLUMNS) != []


def test_runs_are_planned_as_for_change_tables_on_a_database_without_them(origin):
    """Two tables, one of which is quiet; the checkpoints hold versions."""
    found = tracked(origin, snapshots=True)
    found.sql("EXEC sys.sp_cdc_disable_db")
    found.sql(
        "CREATE TABLE lab.quiet (id int NOT NULL PRIMARY KEY, v int); INSERT INTO lab.quiet VALUES (1, 1), (2, 2)"
    )
    found.track("lab.quiet")
    runs = PlannedRuns(found, "things", "quiet", on_gap=("copy",))
    assert runs.run() == {"lab.things": ["first_load"], "lab.quiet": ["first_load"]}
    found.sql("UPDATE lab.things SET a = 7, note = NULL WHERE id < 5; DELETE FROM lab.things WHERE id = 9")
    assert runs.run() == {"lab.things": ["loaded"]}
    assert runs.position("things") == found.current()
    assert runs.run() == {}
    found.sql("INSERT INTO lab.quiet VALUES (3, NULL); INSERT INTO lab.things VALUES (9, 9, N'again')")
    assert runs.run() == {"lab.things": ["loaded"], "lab.quiet": ["loaded"]}
    assert found.mirror(NAME, COLUMNS) == found.source(NAME, COLUMNS)
    assert [row["v"] for row in sorted(origin.lake("lab.quiet"), key=lambda row: row["id"])] == [1, 2, None]
    # no change tells which rows went, also while nothing else happens
    found.sql("TRUNCATE TABLE lab.quiet")
    assert runs.run() == {"lab.quiet": ["first_load"]}
    assert origin.lake("lab.quiet") == []
    assert runs.run() == {}
    found.sql("INSERT INTO lab.quiet VALUES (7, 7)")
    assert runs.run() == {"lab.quiet": ["loaded"]}
    assert origin.lake("lab.quiet") == [{"id": 7, "v": 7}]
