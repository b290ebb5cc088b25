"""Gaps of CDC that Change Tracking heals: what targets hold then, and which rows were read for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.changes import DEFAULT
from airflow_provider_mssql_cdc.core.entry_values import CDC
from airflow_provider_mssql_cdc.core.healing import MOST_NOTED
from airflow_provider_mssql_cdc.spark.copies.again import RowsAgain
from airflow_provider_mssql_cdc.spark.copies.table_copy import TableCopy
from airflow_provider_mssql_cdc.spark.load import TableLoad
from tests.support.spark.tracked_origin import PlannedRuns, TrackedOrigin

pytestmark = [pytest.mark.xdist_group("tests.spark.test_healed_gaps"), pytest.mark.timeout(900)]

NAME, COLUMNS, SHAPES = "lab.things", ("id", "a", "note"), ("mirror", "history", "scd2")


def _place(row: Any) -> tuple[Any, ...]:
    # copied rows are behind the events of their position
    return row["_lsn"], row["_seqval"] is None, row["_seqval"], row["_command_id"]


class Healed:
    """A table with CDC and Change Tracking, and the runs that load it."""

    def __init__(self, live: Any, *, rows: int = 40, shapes: Sequence[str] = SHAPES, **said: Any) -> None:
        self.live, self.tracked = live, TrackedOrigin(live, snapshots=True)
        self.sql = live.sql
        self.sql("CREATE SCHEMA lab")
        self.sql("CREATE TABLE lab.things (id int NOT NULL PRIMARY KEY, a int, note nvarchar(max))")
        self.sql("INSERT INTO lab.things VALUES " + ", ".join(f"({id}, 1, N'old {id}')" for id in range(1, rows + 1)))
        live.enable(NAME)
        self.tracked.track(NAME)
        self.runs = PlannedRuns(
            self.tracked, "things", **{"shapes": shapes, "source": CDC, "history": DEFAULT, "on_gap": ("ct",), **said}
        )

    def run(self, **how: Any) -> list[str]:
        self.live.wait_captured()
        return self.runs.run(**how).get(NAME, [])

    def purge(self) -> None:
        """Remove all that is captured by now."""
        self.live.wait_captured()
        low = self.live.max_lsn()
        self.sql(f"EXEC sys.sp_cdc_cleanup_change_table N'lab_things', {low}, 5000")

    def shown(self, shape: str, columns: Sequence[str] = COLUMNS) -> list[tuple[Any, ...]]:
        """The table's rows as a target tells them."""
        rows = self.live.lake(NAME, shape)
        if shape == "history":
            newest: dict[Any, Any] = {}
            # what a copy of all rows does not have was not there
            since = max((row["_lsn"] for row in rows if row["_op"] == "R" and not row["_healed"]), default="")
            rows = [row for row in rows if row["_lsn"] >= since]
            for row in sorted((row for row in rows if row["_op"] != "B"), key=_place):
                newest[row[columns[0]]] = row
            rows = [row for row in newest.values() if row["_op"] != "D"]
        elif shape == "scd2":
            rows = [row for row in rows if row["_to_lsn"] is None]
        assert len({row[columns[0]] for row in rows}) == len(rows)
        return sorted(tuple(row[column] for column in columns) for row in rows)

    def check(self, shapes: Sequence[str] = SHAPES) -> None:
        for shape in shapes:
            assert self.shown(shape) == self.tracked.source(NAME, COLUMNS), shape

    @property
    def copied(self) -> int:
        assert self.runs.receipt is not None
        return self.runs.receipt.tables[0].counts["copied"]


CHANGES = (
    "UPDATE lab.things SET a = 2, note = N'new' WHERE id IN (3, 4); DELETE FROM lab.things WHERE id IN (5, 6);"
    " INSERT INTO lab.things VALUES (50, 5, N'in'), (51, 5, N'short'); DELETE FROM lab.things WHERE id = 51;"
    " UPDATE lab.things SET id = 60 WHERE id = 7; DELETE FROM lab.things WHERE id = 8;"
    " INSERT INTO lab.things VALUES (8, 8, N'again')"
)


def test_a_gap_is_healed_by_the_rows_that_changed(live):
    found = Healed(live)
    assert found.run() == ["first_load"] * 3
    found.sql("UPDATE lab.things SET a = 9 WHERE id = 1")
    assert found.run() == ["loaded"] * 3
    found.sql("UPDATE lab.things SET a = 10 WHERE id = 2")
    assert found.run() == ["loaded"] * 3
    found.sql(CHANGES)
    found.purge()
    found.sql("UPDATE lab.things SET a = 3 WHERE id = 9; DELETE FROM lab.things WHERE id = 10")
    assert found.run() == ["healed"] * 3
    found.check()
    assert found.copied < 12
    rows = [row for row in live.lake(NAME, "history") if row["_healed"]]
    told = {(row["id"], row["_op"]) for row in rows}
    assert {(3, "R"), (4, "R"), (50, "R"), (60, "R"), (8, "R"), (5, "D"), (6, "D"), (7, "D"), (51, "D")} <= told
    ((alone,),) = [[row] for row in rows if row["id"] == 51]
    assert (alone["a"], sorted(alone["_unknown"])) == (None, ["a", "note"])
    found.sql("UPDATE lab.things SET a = a + 1 WHERE id < 20")
    assert found.run() == ["loaded"] * 3
    found.check()


def settled(found: Healed) -> None:
    """A first load, and runs until its sinks have a version."""
    found.run()
    for number in range(2):
        found.sql(f"UPDATE lab.things SET a = {number + 100} WHERE id = 1")
        found.run()
    stored = found.runs.stored("things")
    assert stored is not None
    assert all(sink.positions for sink in stored.sinks.values())


@pytest.mark.thorough
def test_why_a_gap_is_not_healed_is_said_and_another_way_is_taken_where_one_is_named(live):
    found = Healed(live, shapes=("mirror",))
    found.run()
    found.sql("UPDATE lab.things SET a = 2 WHERE id = 1")
    found.purge()
    found.run(may_fail=True)
    assert "no version is known for 0x" in found.runs.failures[NAME]
    assert 'It takes on_gap=["ct", "copy"] to copy the table then.' in found.runs.failures[NAME]
    both = PlannedRuns(found.tracked, "things", shapes=("mirror",), source=CDC, history=DEFAULT, on_gap=("ct", "copy"))
    both._store, found.runs = found.runs._store, both
    assert found.run() == ["first_load"]
    found.check(("mirror",))
    settled(found)

    found.sql("ALTER TABLE lab.things DISABLE CHANGE_TRACKING")
    found.sql("UPDATE lab.things SET a = 3 WHERE id = 2")
    found.tracked.track(NAME)
    found.sql("UPDATE lab.things SET a = 4 WHERE id = 3")
    found.purge()
    assert found.run() == ["first_load"]
    found.check(("mirror",))
    settled(found)

    found.sql("UPDATE lab.things SET a = 5 WHERE id = 3; ALTER TABLE lab.things DISABLE CHANGE_TRACKING")
    found.purge()
    assert found.run() == ["first_load"]
    assert any('on_gap names "ct", and Change Tracking is off for it' in text for text in found.runs.warnings)
    found.check(("mirror",))


@pytest.mark.thorough
def test_a_target_that_was_rolled_back_is_healed_from_where_it_stands(live):
    found = Healed(live, shapes=("mirror",))
    settled(found)
    table = ".".join(live.target(NAME, "mirror"))
    snapshots = live.spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").collect()
    for number in range(2):
        found.sql(
            f"UPDATE lab.things SET a = {number + 200} WHERE id = {number + 2}; DELETE FROM lab.things WHERE id = 20"
        )
        found.run()
    found.purge()
    live.spark.sql(f"CALL lake.system.rollback_to_snapshot('{table.removeprefix('lake.')}', {snapshots[-1][0]})")
    assert {row["a"] for row in live.lake(NAME) if row["id"] in (2, 3)} == {1}
    found.sql("UPDATE lab.things SET a = 7 WHERE id = 5")
    assert found.run() == ["healed"]
    found.check(("mirror",))
    assert found.copied < 8


@pytest.mark.thorough
def test_keys_that_are_spelled_otherwise_behind_a_gap_are_one_row(live):
    key = "k varchar(9) COLLATE Latin1_General_CI_AS NOT NULL PRIMARY KEY"
    live.sql(f"CREATE SCHEMA lab; CREATE TABLE lab.named ({key}, v int)")
    live.sql("INSERT INTO lab.named VALUES ('abc', 1), ('Gone', 2), ('stays', 3), ('other', 4)")
    live.enable("lab.named")
    tracked = TrackedOrigin(live, snapshots=True)
    tracked.track("lab.named")
    runs = PlannedRuns(tracked, "named", shapes=SHAPES, source=CDC, history=DEFAULT, on_gap=("ct",))

    def run() -> list[str]:
        live.wait_captured()
        return runs.run().get("lab.named", [])

    for number in range(3):
        live.sql(f"UPDATE lab.named SET v = {number} WHERE k = 'stays'")
        run()
    live.sql("UPDATE lab.named SET k = 'ABC' WHERE k = 'abc'; UPDATE lab.named SET k = 'GONE' WHERE k = 'gone'")
    live.sql("DELETE FROM lab.named WHERE k = 'gone'")
    live.wait_captured()
    live.sql(f"EXEC sys.sp_cdc_cleanup_change_table N'lab_named', {live.max_lsn()}, 5000")
    live.sql("UPDATE lab.named SET v = 9 WHERE k = 'other'")
    assert run() == ["healed"] * 3
    expected = tracked.source("lab.named", ("k", "v"))
    assert sorted((row["k"], row["v"]) for row in live.lake("lab.named")) == expected
    versions = live.lake("lab.named", "scd2")
    assert sorted((row["k"], row["v"]) for row in versions if row["_to_lsn"] is None) == expected
    told = {(row["k"], row["_op"]) for row in live.lake("lab.named", "history") if row["_healed"]}
    assert {("abc", "D"), ("Gone", "D"), ("ABC", "R")} <= told
    assert ("other", "D") not in told


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["instance", "cdc"])
def test_what_was_switched_off_and_on_is_healed(live, how):
    found = Healed(live)
    settled(found)
    found.sql(CHANGES)
    if how == "instance":
        found.sql("EXEC sys.sp_cdc_disable_table N'lab', N'things', N'all'")
    else:
        found.sql("EXEC sys.sp_cdc_disable_db")
    found.sql("UPDATE lab.things SET a = 77 WHERE id = 11")
    if how == "cdc":
        found.sql("EXEC sys.sp_cdc_enable_db")
    live.enable(NAME)
    found.sql("UPDATE lab.things SET a = 78 WHERE id = 12")
    assert found.run() == ["healed"] * 3
    found.check()
    assert found.copied < 14


@pytest.mark.thorough
def test_a_filter_is_heeded(live):
    found = Healed(live)
    entry = {"table": NAME, "where": (("a", "<", 50),), "columns": ["id", "a"], "rename": {"id": "number", "a": "b"}}
    found.runs = PlannedRuns(found.tracked, entry, shapes=SHAPES, source=CDC, history=DEFAULT, on_gap=("ct",))
    for number in range(3):
        found.sql(f"UPDATE lab.things SET a = {number + 2} WHERE id = 1; UPDATE lab.things SET a = 60 WHERE id = 20")
        found.run()
    changes = "UPDATE lab.things SET a = 51 WHERE id = 2; UPDATE lab.things SET a = 3 WHERE id = 20;"
    found.sql(f"{changes} INSERT INTO lab.things VALUES (70, 70, NULL); DELETE FROM lab.things WHERE id = 4")
    found.purge()
    found.sql("UPDATE lab.things SET a = 52 WHERE id = 3")
    assert found.run() == ["healed"] * 3
    expected = sorted(row for row in found.tracked.source(NAME, ("id", "a")) if row[1] < 50)
    for shape in SHAPES:
        assert found.shown(shape, ("number", "b")) == expected, shape
    told = {row["number"] for row in live.lake(NAME, "history")}
    assert 70 not in told, "it never was one of these rows"


class Killed(BaseException):
    """Ends a run as a kill does."""


@pytest.mark.thorough
@pytest.mark.parametrize("point", [(RowsAgain, "read"), (TableCopy, "_finished"), (TableLoad, "_commit")])
def test_a_heal_that_was_killed_is_gone_on_with_by_the_next_run(live, monkeypatch, point):
    found = Healed(live)
    settled(found)
    found.sql(CHANGES)
    found.purge()
    owner, name = point
    real, calls = getattr(owner, name), []

    def killed(*given: Any, **named: Any) -> Any:
        calls.append(name)
        if len(calls) == (2 if name == "_commit" else 1):
            raise Killed
        return real(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, killed)
        with pytest.raises(Killed):
            found.run()
    found.sql("UPDATE lab.things SET a = 90 WHERE id IN (3, 11); DELETE FROM lab.things WHERE id IN (4, 12)")
    outcomes = found.run()
    assert "healed" in outcomes
    assert {*outcomes} <= {"healed", "loaded"}
    found.check()
    found.sql("UPDATE lab.things SET a = 91 WHERE id IN (5, 13)")
    found.run()
    found.check()


@pytest.mark.thorough
def test_changes_and_a_second_gap_while_a_heal_waits_for_the_capture(live, monkeypatch):
    found = Healed(live)
    settled(found)
    # the second sink has a version of before
    found.runs.options["capture_timeout"] = 0.5
    found.sql(CHANGES)
    found.purge()
    found.sql("EXEC sys.sp_cdc_stop_job @job_type = N'capture'; UPDATE lab.things SET a = 33 WHERE id = 14")
    found.runs.run(may_fail=True)
    assert "did not pass the end of the copy" in found.runs.failures[NAME]
    found.sql("DELETE FROM lab.things WHERE id = 15; EXEC sys.sp_cdc_start_job @job_type = N'capture'")
    found.purge()
    found.runs.options["capture_timeout"] = 60.0
    found.sql("UPDATE lab.things SET a = 34 WHERE id = 16")
    assert found.run() == ["healed"] * 3
    found.check()


@pytest.mark.thorough
def test_values_that_cdc_leaves_out_beside_a_heal_are_read(live, monkeypatch):
    found = Healed(live)
    settled(found)
    found.sql(CHANGES)
    found.purge()
    finished, left = (
        TableCopy._finished,
        ["UPDATE lab.things SET a = 55 WHERE id IN (3, 17); DELETE FROM lab.things WHERE id = 18"],
    )

    def run(self: TableCopy, folder: Any) -> Any:
        while left:
            found.sql(left.pop())
        return finished(self, folder)

    monkeypatch.setattr(TableCopy, "_finished", run)
    assert found.run() == ["healed"] * 3
    found.check()


@pytest.mark.thorough
def test_rows_that_no_change_tells_of_go_where_the_table_was_truncated_while_cdc_was_off(live):
    found = Healed(live)
    live.sql("CREATE TABLE lab.other (id int NOT NULL PRIMARY KEY, v int)")
    live.enable("lab.other")
    found.run()
    for number in range(2):
        # no version is drawn: the one that is kept is that of the beginning
        live.sql(f"INSERT INTO lab.other VALUES ({number}, 1)")
        found.run()
    stored = found.runs.stored("things")
    assert stored is not None
    assert all(sink.positions[0].position["at"] == "0" for sink in stored.sinks.values())
    found.sql("EXEC sys.sp_cdc_disable_db; TRUNCATE TABLE lab.things")
    found.sql("INSERT INTO lab.things VALUES (1, 7, N'anew'), (70, 8, NULL)")
    found.sql("EXEC sys.sp_cdc_enable_db")
    live.enable(NAME)
    found.sql("UPDATE lab.things SET a = 9 WHERE id = 70")
    assert found.run() == ["healed"] * 3
    found.check()


@pytest.mark.thorough
def test_a_target_that_is_rolled_back_while_it_is_healed_is_left_alone(live, monkeypatch):
    found = Healed(live, shapes=("mirror",))
    settled(found)
    then = snapshots(live, "mirror")[-1]
    for number in range(2):
        found.sql(f"UPDATE lab.things SET a = {number + 500} WHERE id = {number + 21}")
        found.run()
    found.sql(CHANGES)
    found.purge()
    finished, left = TableCopy._finished, [then]

    def run(self: TableCopy, folder: Any) -> Any:
        while left:
            roll_back(live, "mirror", left.pop())
        return finished(self, folder)

    monkeypatch.setattr(TableCopy, "_finished", run)
    found.run(may_fail=True)
    assert "changed while its gap was healed: it lacks changes after version" in found.runs.failures[NAME]
    assert found.run() == ["healed"]
    found.check(("mirror",))


def snapshots(live: Any, shape: str) -> list[int]:
    table = ".".join(live.target(NAME, shape))
    rows = live.spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").collect()
    return [row[0] for row in rows]


def roll_back(live: Any, shape: str, snapshot: int) -> None:
    table = ".".join(live.target(NAME, shape)).removeprefix("lake.")
    live.spark.sql(f"CALL lake.system.rollback_to_snapshot('{table}', {snapshot})")


def moved_on(found: Healed) -> int:
    """Let the sinks go on by two runs; the mirror's snapshot of before."""
    before = snapshots(found.live, "mirror")[-1]
    for number in range(2):
        found.sql(
            f"UPDATE lab.things SET a = {number + 300} WHERE id = {number + 20}; DELETE FROM lab.things WHERE id = 25"
        )
        found.run()
    return before


@pytest.mark.thorough
def test_a_sink_with_an_older_version_that_comes_to_a_heal_lets_it_begin_again(live):
    found = Healed(live, shapes=("mirror", "history"))
    settled(found)
    older = moved_on(found)
    newer = snapshots(live, "history")[-2]
    found.sql(CHANGES)
    found.purge()
    roll_back(live, "history", newer)
    found.sql("EXEC sys.sp_cdc_stop_job @job_type = N'capture'; UPDATE lab.things SET a = 33 WHERE id = 14")
    found.runs.options["capture_timeout"] = 0.5
    found.runs.run(may_fail=True)
    assert "did not pass the end of the copy" in found.runs.failures[NAME]
    roll_back(live, "mirror", older)
    found.sql("EXEC sys.sp_cdc_start_job @job_type = N'capture'")
    found.runs.options["capture_timeout"] = 60.0
    assert found.run() == ["healed"] * 2
    found.check(("mirror", "history"))
    assert any("begins again: it has the rows that changed after" in text for text in found.runs.warnings)


@pytest.mark.thorough
def test_a_gap_behind_limited_runs_is_healed_though_each_version_is_noted_far_ahead(live):
    found = Healed(live, shapes=("mirror",))
    found.run()
    # two transactions for each that is loaded
    for number in range(100):
        found.sql(f"UPDATE lab.things SET a = {number + 400} WHERE id = {number % 30 + 1}")
        if number % 2:
            found.run(limit=1)
    stored = found.runs.stored("things")
    assert stored is not None
    (sink,) = stored.sinks.values()
    assert 20 < len(stored.noted) <= MOST_NOTED
    assert 40 < int(sink.positions[0].position["at"]) < found.tracked.current().value - 40
    found.sql(CHANGES)
    found.purge()
    assert found.run() == ["healed"]
    found.check(("mirror",))


@pytest.mark.thorough
def test_what_a_run_with_a_newer_version_has_read_is_not_taken_for_all(live, monkeypatch):
    found = Healed(live, shapes=("mirror", "history"))
    settled(found)
    older = moved_on(found)
    found.sql(CHANGES)
    found.purge()
    roll_back(live, "mirror", older)
    read = RowsAgain.read

    def killed(*given: Any, **named: Any) -> Any:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(RowsAgain, "read", killed)
        with pytest.raises(Killed):
            found.run()
    # the folder was begun for both; the next run is one of the history alone
    alone = PlannedRuns(found.tracked, "things", shapes=("history",), source=CDC, history=DEFAULT, on_gap=("ct",))
    alone._store = found.runs._store
    alone.options["capture_timeout"] = 0.5
    found.sql("EXEC sys.sp_cdc_stop_job @job_type = N'capture'; UPDATE lab.things SET a = 33 WHERE id = 14")
    alone.run(may_fail=True)
    assert "did not pass the end of the copy" in alone.failures[NAME]
    assert RowsAgain.read is read
    found.sql("EXEC sys.sp_cdc_start_job @job_type = N'capture'")
    assert found.run() == ["healed"] * 2
    found.check(("mirror", "history"))
