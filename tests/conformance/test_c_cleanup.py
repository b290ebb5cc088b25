"""Sections A3.12 and C: what cleanup removes, raises and refuses."""

from __future__ import annotations

import pytest

from tests.support.conformance.client import literal
from tests.support.conformance.database import Database
from tests.support.conformance.not_built import right_or_refused
from tests.support.conformance.servers import Server


def _insert(*ids: int) -> list[str]:
    return [f"INSERT INTO dbo.t VALUES ({i}, 'x', {i})" for i in ids]


@pytest.fixture
def four(t: Database) -> Database:
    """Four captured transactions, each the insert of its own row."""
    t.commit(*_insert(1, 2, 3, 4))
    return t


def _cleanup(db: Database, mark: bytes | None, instance: str = "dbo_t") -> str:
    return f"EXEC sys.sp_cdc_cleanup_change_table '{instance}', {literal(mark)}"


def _all_changes(db: Database, low: bytes, high: bytes) -> list[int]:
    rows = db.run(
        f"SELECT id FROM cdc.fn_cdc_get_all_changes_dbo_t({literal(low)}, {literal(high)}, 'all') ORDER BY __$start_lsn"
    )
    return [number for (number,) in rows]


def test_8_32_rows_below_the_mark_go_and_min_lsn_rises(four: Database) -> None:
    commits, first = four.commits(), four.min_lsn()
    assert first == four.value("SELECT start_lsn FROM cdc.change_tables")
    assert first < commits[0]
    assert four.value(f"DECLARE @r int {_cleanup(four, commits[2]).replace('EXEC', 'EXEC @r =')} SELECT @r") == 0
    assert four.changes("__$start_lsn, id") == [(commits[2], 3), (commits[3], 4)]
    assert four.min_lsn() == commits[2]
    assert four.value("SELECT start_lsn FROM cdc.change_tables") == commits[2]
    assert four.mapping()[:2] == commits[2:]
    assert _all_changes(four, commits[2], commits[3]) == [3, 4]
    for low in (first, commits[0], commits[1]):
        read = f"SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_t({literal(low)}, {literal(commits[3])}, 'all')"
        assert four.number(read) == 313


def test_32_mark_of_null_changes_nothing(four: Database) -> None:
    commits = four.commits()
    four.run(_cleanup(four, commits[1]))
    before = four.changes(), four.min_lsn(), four.mapping()
    four.run(_cleanup(four, None))
    assert (four.changes(), four.min_lsn(), four.mapping()) == before


def test_32_mapping_is_trimmed_below_the_lowest_mark(t: Database) -> None:
    t.track("t", capture_instance="second")
    t.commit(*_insert(1, 2, 3))
    commits = t.commits()
    assert t.transactions() == commits
    t.run(_cleanup(t, commits[2]))
    assert t.transactions() == commits
    t.run(_cleanup(t, commits[1], "second"))
    assert t.transactions() == commits[1:]
    assert min(t.mapping()) == commits[1]
    assert t.changes("id") == [(3,)]
    assert t.changes("id", "second") == [(2,), (3,)]


def test_32_mark_is_never_lowered(t: Database) -> None:
    t.track("t", capture_instance="second")
    t.commit(*_insert(1, 2, 3))
    commits = t.commits()
    t.run(_cleanup(t, commits[2]))
    error = t.error(_cleanup(t, commits[0]))
    assert (error.number, error.severity) == (22957, 16)
    # the LSN, then the instance; low and high end of its validity follow
    assert error.text.upper().index(commits[0].hex().upper()) < error.text.upper().index("DBO_T")
    assert t.min_lsn() == commits[2]
    assert t.changes("id") == [(3,)]


@pytest.mark.parametrize("position", ["increment", "zero", "above"])
def test_33_mark_must_be_mapped(four: Database, position: str) -> None:
    commits, before = four.commits(), four.changes()
    increment = four.value(f"SELECT sys.fn_cdc_increment_lsn({literal(commits[1])})")
    mark = {"increment": increment, "zero": bytes(10), "above": b"\xff" * 10}[position]
    error = four.error(_cleanup(four, mark))
    assert (error.number, error.severity) == (22964, 16)
    assert mark.hex().upper() in error.text
    assert four.changes() == before


def test_a3_12_unknown_instance_open(four: Database) -> None:
    error = four.error(_cleanup(four, four.commits()[1], "nosuch"))
    # which of the two is not known for certain
    assert error.number in (22956, 22920)
    assert "nosuch" in error.text


def test_a3_12_outcome_as_output_parameter(four: Database) -> None:
    call = _cleanup(four, four.commits()[1])
    assert four.value(f"DECLARE @f bit {call}, @fCleanupFailed = @f OUTPUT SELECT @f") is False
    assert four.changes("id") == [(2,), (3,), (4,)]


def test_a3_12_small_threshold_cleans_all_the_same(four: Database) -> None:
    four.run(f"{_cleanup(four, four.commits()[3])}, @threshold = 1")
    assert four.changes("id") == [(4,)]


def test_a3_12_rows_that_cannot_be_deleted_stay_below_the_mark(server: Server, four: Database) -> None:
    """A failure is reported at severity 10 and changes nothing of the mark (docs)."""
    embedded = server.only_embedded("its deletes do not fail")
    commits = four.commits()
    with embedded.sandbox.faults.cleanup(four.name, step=3) as fault:
        call = _cleanup(four, commits[3]).replace("EXEC", "DECLARE @r int, @f bit EXEC @r =")
        assert four.run(f"{call}, 1, @f OUTPUT SELECT @r, @f") == [(1, True)]
        assert any("dbo_t_CT" in each.text and each.severity <= 10 for each in four.messages)
        assert fault.count == 1
    assert four.min_lsn() == commits[3]
    assert four.changes("id") == [(2,), (3,), (4,)]
    assert four.mapping()[:4] == commits
    assert four.number(
        f"SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_t({literal(commits[2])}, {literal(commits[3])}, 'all')"
    ) == 313  # fmt: skip
    # docs: NULL tries again
    call = _cleanup(four, None).replace("EXEC", "DECLARE @r int, @f bit EXEC @r =")
    assert four.run(f"{call}, 1, @f OUTPUT SELECT @r, @f") == [(0, False)]
    assert four.changes("id") == [(4,)]
    assert four.mapping()[0] == commits[3]


def test_a3_12_rollback_of_a_cleanup(four: Database) -> None:
    before = four.changes(), four.min_lsn(), four.mapping()
    right_or_refused(four, f"BEGIN TRAN {_cleanup(four, four.commits()[3])}, 1 SELECT @@TRANCOUNT", 1)
    four.run("ROLLBACK")
    assert (four.changes(), four.min_lsn(), four.mapping()) == before


def test_a3_12_mark_moves_down_to_commits_of_the_same_time(server: Server, t: Database) -> None:
    embedded = server.only_embedded("its clock cannot be held")
    for batch in _insert(1):
        t.run(batch)
    embedded.advance(seconds=1)
    for batch in _insert(2, 3):
        t.run(batch)
    embedded.advance(seconds=1)
    t.commit(*_insert(4))
    commits = t.commits()
    t.run(_cleanup(t, commits[2]))
    assert t.min_lsn() == commits[1]
    left = [number for (number,) in t.changes("id")]
    # whether the row of the other commit at that time goes is not said
    assert left in ([2, 3, 4], [3, 4])


# The cleanup job. The retention is 4320 minutes, three days.


def test_34_retention_is_counted_from_the_last_mapped_time(server: Server, t: Database) -> None:
    embedded = server.only_embedded("its clock cannot be set")
    t.commit(*_insert(1))
    embedded.advance(days=1)
    t.commit(*_insert(2))
    embedded.advance(days=1)
    t.commit(*_insert(3))
    embedded.advance(days=2.5)
    t.commit(*_insert(4))
    commits = t.commits()
    t.run("EXEC sys.sp_cdc_start_job 'cleanup'")
    # three days before the last commit is after the second one: that is the largest before, and the new mark
    assert t.min_lsn() == commits[1]
    assert t.changes("id") == [(2,), (3,), (4,)]
    assert t.mapping() == commits[1:]


def test_34_stopped_capture_stops_expiry(server: Server, t: Database) -> None:
    embedded = server.only_embedded("its clock cannot be set")
    t.commit(*_insert(1, 2))
    before = t.changes(), t.min_lsn(), t.mapping()
    embedded.advance(days=100)
    t.run("INSERT INTO dbo.t VALUES (3, 'x', 3)")
    t.run("EXEC sys.sp_cdc_start_job 'cleanup'")
    assert (t.changes(), t.min_lsn(), t.mapping()) == before


def test_34_idle_capture_lets_rows_expire(server: Server, t: Database) -> None:
    embedded = server.only_embedded("its clock cannot be set")
    t.commit(*_insert(1, 2))
    commits = t.commits()
    embedded.advance(days=100)
    embedded.idle_scan(t.name)
    t.run("EXEC sys.sp_cdc_start_job 'cleanup'")
    assert t.min_lsn() == commits[1]
    assert t.changes("id") == [(2,)]


def test_34_every_instance_gets_the_mark_and_none_is_lowered(server: Server, t: Database) -> None:
    embedded = server.only_embedded("its clock cannot be set")
    t.commit(*_insert(1, 2))
    commits = t.commits()
    embedded.advance(days=4)
    t.run("ALTER TABLE dbo.t ADD c int")
    t.track("t", capture_instance="second")
    t.commit("INSERT INTO dbo.t VALUES (3, 'x', 3, 3)")
    second = t.min_lsn("second")
    t.run("EXEC sys.sp_cdc_start_job 'cleanup'")
    assert t.min_lsn() == commits[1]
    assert t.changes("id") == [(2,), (3,)]
    assert t.min_lsn("second") == second
    assert t.changes("id, c", "second") == [(3, 3)]


def test_34_the_job_works_in_steps(server: Server, t: Database) -> None:
    embedded = server.only_embedded("nobody can act between its steps")
    t.track("t", capture_instance="second")
    t.run("EXEC sys.sp_cdc_change_job 'cleanup', @threshold = 2")
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1), (2, 'x', 1), (3, 'x', 1)")
    embedded.advance(days=4)
    t.commit(*_insert(4))
    embedded.advance(days=4)
    t.commit(*_insert(5))
    commits, seen = t.commits(), []

    def look() -> None:
        rows = [[number for (number,) in t.changes("id", name)] for name in ("dbo_t", "second")]
        seen.append((t.min_lsn(), t.min_lsn("second"), *rows, t.mapping()[0]))

    embedded.sandbox.cleanup(t.name, between=look)
    look()
    marks, everything = (commits[1], commits[1]), [1, 2, 3, 4, 5]
    assert seen == [
        (*marks, everything, everything, commits[0]),
        (*marks, [3, 4, 5], everything, commits[0]),
        (*marks, [4, 5], everything, commits[0]),
        (*marks, [4, 5], [3, 4, 5], commits[0]),
        (*marks, [4, 5], [4, 5], commits[0]),
        (*marks, [4, 5], [4, 5], commits[1]),
    ]


def test_34_retention_can_be_set(server: Server, t: Database) -> None:
    embedded = server.only_embedded("its clock cannot be set")
    t.run("EXEC sys.sp_cdc_change_job 'cleanup', @retention = 10")
    t.commit(*_insert(1))
    embedded.advance(minutes=1)
    t.commit(*_insert(2))
    embedded.advance(minutes=11)
    t.commit(*_insert(3))
    t.run("EXEC sys.sp_cdc_start_job 'cleanup'")
    assert t.changes("id") == [(2,), (3,)]
