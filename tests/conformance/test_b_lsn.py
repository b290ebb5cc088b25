"""Section B: commit LSNs, sequence values, command ids, masks and the LSN-time mapping."""

from __future__ import annotations

import threading

import pytest

from tests.support.conformance.client import literal
from tests.support.conformance.database import ORDER, Database
from tests.support.conformance.servers import Server, wait_for


@pytest.fixture
def tu(t: Database) -> Database:
    """Tables dbo.t and dbo.u, both tracked, and a second instance of dbo.t."""
    t.run("CREATE TABLE dbo.u (id int PRIMARY KEY)")
    t.track("u")
    t.track("t", capture_instance="second")
    return t


def test_1_rows_of_a_transaction_share_its_commit_lsn(tu: Database) -> None:
    tu.commit(
        "BEGIN TRAN INSERT INTO dbo.u VALUES (1) INSERT INTO dbo.t VALUES (1, 'x', 1) UPDATE dbo.t SET b = 2"
        " DELETE FROM dbo.u COMMIT",
        "INSERT INTO dbo.u VALUES (2)",
    )
    first, second = tu.commits("dbo_u")
    assert first < second
    assert tu.changes("__$start_lsn, __$operation, id", "dbo_u") == [(first, 2, 1), (first, 1, 1), (second, 2, 2)]
    for instance in ("dbo_t", "second"):
        assert tu.changes("__$start_lsn, __$operation, b", instance) == [(first, 2, 1), (first, 3, 1), (first, 4, 2)]
    assert tu.transactions() == [first, second]


def test_1_order_is_that_of_the_commits(t: Database) -> None:
    long, short = t.connect(), t.connect()
    long.run("BEGIN TRAN SELECT COUNT(*) FROM dbo.t")
    short.run("INSERT INTO dbo.t VALUES (1, 'short', 1)")
    long.run("INSERT INTO dbo.t VALUES (2, 'long', 2) COMMIT")
    t.capture()
    assert t.run("SELECT id FROM cdc.dbo_t_CT ORDER BY __$start_lsn") == [(1,), (2,)]


def test_1_order_is_that_of_the_commits_and_not_of_the_writes(tu: Database) -> None:
    long, short = tu.connect(), tu.connect()
    long.run("BEGIN TRAN INSERT INTO dbo.t VALUES (1, 'long', 1)")
    short.run("SET LOCK_TIMEOUT 100 INSERT INTO dbo.u VALUES (1)")
    long.run("INSERT INTO dbo.t VALUES (2, 'long', 2) COMMIT")
    tu.capture()
    (committed, sequence), _ = tu.changes("__$start_lsn, __$seqval")
    between = tu.commits("dbo_u")[0]
    assert sequence < between < committed


def test_2_rows_and_mapping_appear_together(tu: Database) -> None:
    tu.run("EXEC sys.sp_cdc_change_job @pollinginterval = 0")
    tu.stop_capture()
    wait_for(lambda: not tu.job_runs())
    tu.run("EXEC sys.sp_cdc_start_job")
    writer, count = tu.connect(), 40

    def write() -> None:
        for i in range(count):
            writer.run(f"BEGIN TRAN INSERT INTO dbo.u VALUES ({i}) INSERT INTO dbo.t VALUES ({i}, 'x', 1) COMMIT")

    writing = threading.Thread(target=write)
    seen = []

    def look() -> bool:
        newest = literal(tu.max_lsn())
        rows = tu.run(
            " UNION ALL ".join(
                f"SELECT COUNT(*) FROM {name} WHERE {column} <= {newest}"
                for name, column in (
                    ("cdc.dbo_t_CT", "__$start_lsn"),
                    ("cdc.dbo_u_CT", "__$start_lsn"),
                    ("cdc.second_CT", "__$start_lsn"),
                    ("cdc.lsn_time_mapping", "tran_id <> 0x00 AND start_lsn"),
                )
            )
        )
        seen.append({n for (n,) in rows})
        return seen[-1] == {count}

    with tu.server.at_large():
        writing.start()
        wait_for(look)
    writing.join()
    assert [numbers for numbers in seen if len(numbers) > 1] == []


def test_6_max_lsn_is_null_until_something_is_mapped(db: Database) -> None:
    assert db.mapping() == []
    assert db.max_lsn() is None
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    db.track("t")
    db.commit("INSERT INTO dbo.t VALUES (1)")
    assert db.max_lsn() == db.value("SELECT MAX(start_lsn) FROM cdc.lsn_time_mapping")
    assert db.max_lsn() >= db.commits()[0]


def test_7_idle_database_gets_dummy_rows_every_five_minutes(server: Server, t: Database) -> None:
    embedded = server.only_embedded("it takes five minutes for that")
    t.run("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    embedded.idle_scan(t.name)
    assert t.mapping() == t.commits()
    newest = t.max_lsn()
    embedded.advance(minutes=4)
    embedded.idle_scan(t.name)
    assert t.max_lsn() == newest
    for number in (1, 2):
        embedded.advance(minutes=6)
        embedded.idle_scan(t.name)
        assert t.max_lsn() > newest
        newest = t.max_lsn()
        assert t.value("SELECT COUNT(*) FROM cdc.lsn_time_mapping WHERE tran_id = 0x00") == number
    assert t.value("SELECT COUNT(*) FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00") == 1
    assert len(t.changes()) == 1
    assert t.value("SELECT tran_end_time FROM cdc.lsn_time_mapping WHERE start_lsn = sys.fn_cdc_get_max_lsn()") == (
        embedded.clock.now
    )


def test_b_transaction_without_tracked_tables_is_not_mapped_memory(t: Database) -> None:
    t.run("CREATE TABLE dbo.untracked (id int)")
    t.commit("INSERT INTO dbo.untracked VALUES (1)", "INSERT INTO dbo.t VALUES (1, 'x', 1)")
    assert t.transactions() == t.commits()


def test_13_lsns_are_ten_bytes_and_rise_with_the_commits(t: Database) -> None:
    t.commit(*(f"INSERT INTO dbo.t VALUES ({i}, 'x', 1)" for i in range(20)))
    sizes = "DATALENGTH(__$start_lsn), DATALENGTH(__$seqval)"
    rows = t.run(f"SELECT id, __$start_lsn, __$seqval, {sizes} FROM cdc.dbo_t_CT")
    rows.sort()
    commits = [row[1] for row in rows]
    assert commits == sorted(set(commits))
    assert all(sequence < commit for _, commit, sequence, _, _ in rows)
    assert {row[3:] for row in rows} == {(10, 10)}
    assert t.run("SELECT DISTINCT __$end_lsn FROM cdc.dbo_t_CT") == [(None,)]


def test_13_mapping_of_a_transaction(t: Database) -> None:
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    lsn, sequence = t.changes("__$start_lsn, __$seqval")[0]
    begin, end, number, begin_lsn = t.run(
        "SELECT tran_begin_time, tran_end_time, tran_id, tran_begin_lsn FROM cdc.lsn_time_mapping"
        f" WHERE start_lsn = {literal(lsn)}"
    )[0]
    assert begin <= end
    assert begin_lsn < sequence < lsn
    assert number.strip(b"\x00")


def test_16_order_is_that_of_execution(t: Database) -> None:
    t.commit(
        """
        BEGIN TRAN
        INSERT INTO dbo.t VALUES (1, 'a', 1)
        INSERT INTO dbo.t VALUES (2, 'b', 2)
        UPDATE dbo.t SET b = 10 WHERE id = 1
        DELETE FROM dbo.t WHERE id = 2
        INSERT INTO dbo.t VALUES (2, 'c', 3)
        UPDATE dbo.t SET a = 'd' WHERE id = 2
        UPDATE dbo.t SET b = 11 WHERE id = 1
        COMMIT
        """
    )
    rows = t.changes("__$operation, __$command_id, id, a, b")
    assert rows == [
        (2, 1, 1, "a", 1),
        (2, 2, 2, "b", 2),
        (3, 3, 1, "a", 1),
        (4, 3, 1, "a", 10),
        (1, 4, 2, "b", 2),
        (2, 5, 2, "c", 3),
        (3, 6, 2, "c", 3),
        (4, 6, 2, "d", 3),
        (3, 7, 1, "a", 10),
        (4, 7, 1, "a", 11),
    ]
    pairs = t.run(
        "SELECT COUNT(DISTINCT __$seqval), COUNT(DISTINCT __$command_id) FROM cdc.dbo_t_CT"
        " WHERE __$operation IN (3, 4) GROUP BY __$command_id"
    )
    assert pairs == [(1, 1)] * 3


def test_16_command_ids_count_each_row_once_for_each_instance(tu: Database) -> None:
    """Measured on 2017 and 2022."""
    tu.commit(
        "BEGIN TRAN INSERT INTO dbo.t VALUES (1, 'x', 1) UPDATE dbo.t SET b = 2 DELETE FROM dbo.t COMMIT",
    )
    assert tu.changes("__$operation, __$command_id") == [(2, 1), (3, 3), (4, 3), (1, 5)]
    assert tu.changes("__$operation, __$command_id", "second") == [(2, 2), (3, 4), (4, 4), (1, 6)]


def test_13_rows_of_a_longer_transaction_lie_below_commits_before_its_own(tu: Database) -> None:
    other = tu.connect()
    other.run("BEGIN TRAN INSERT INTO dbo.u VALUES (1)")
    tu.server.tick(tu)
    tu.run("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    tu.server.tick(tu)
    other.run("INSERT INTO dbo.u VALUES (2) COMMIT")
    tu.capture()
    ((first,),) = tu.changes("__$start_lsn")
    (row, _), (late, _) = tu.changes("__$seqval, id", "dbo_u")
    (commit,) = tu.commits("dbo_u")
    assert row < first < late < commit
    times = "tran_begin_time, tran_end_time, tran_begin_lsn"
    select = f"SELECT {times} FROM cdc.lsn_time_mapping WHERE start_lsn = "
    (begin, _, begin_lsn), (_, end, _) = (tu.run(select + literal(lsn))[0] for lsn in (commit, first))
    assert begin_lsn < row
    assert begin < end


def test_10_update_is_a_pair(t: Database) -> None:
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1), (2, 'y', 2)", "UPDATE dbo.t SET b = b + 10")
    shared = "__$start_lsn, __$seqval, __$command_id, __$update_mask"
    rows = t.run(f"SELECT {shared}, __$operation, id, a, b FROM cdc.dbo_t_CT WHERE __$operation > 2 ORDER BY {ORDER}")
    assert [row[4:] for row in rows] == [(3, 1, "x", 1), (4, 1, "x", 11), (3, 2, "y", 2), (4, 2, "y", 12)]
    assert rows[0][:4] == rows[1][:4]
    assert rows[2][:4] == rows[3][:4]
    assert rows[0][1:3] != rows[2][1:3]
    assert {row[3] for row in rows} == {b"\x04"}


@pytest.mark.parametrize(
    ("columns", "full"),
    [(1, "01"), (5, "1F"), (8, "FF"), (9, "01FF"), (16, "FFFF"), (17, "01FFFF"), (300, "0F" + "FF" * 37)],
)
def test_11_masks_of_narrow_and_wide_tables(db: Database, columns: int, full: str) -> None:
    others = "".join(f", c{i} int" for i in range(2, columns + 1))
    db.run(f"CREATE TABLE dbo.w (id int PRIMARY KEY{others})")
    db.track("w")
    db.commit("INSERT INTO dbo.w (id) VALUES (1)")
    assert db.changes("__$operation, __$update_mask", "dbo_w") == [(2, bytes.fromhex(full))]
    size = (columns + 7) // 8
    picked = sorted({2, 7, 8, 9, 10, columns} & set(range(2, columns + 1)))
    for ordinal in picked:
        db.run(f"UPDATE dbo.w SET c{ordinal} = 1")
    db.run("DELETE FROM dbo.w")
    db.capture()
    masks = [(1 << (ordinal - 1)).to_bytes(size, "big") for ordinal in picked]
    found = db.changes("__$operation, __$update_mask", "dbo_w")[1:]
    assert found == [(op, mask) for mask in masks for op in (3, 4)] + [(1, bytes.fromhex(full))]


def test_11_mask_has_only_what_changed(t: Database) -> None:
    t.commit(
        "INSERT INTO dbo.t VALUES (1, 'x', 1), (2, 'y', 5)",
        "UPDATE dbo.t SET a = 'x', b = 5",
        "UPDATE dbo.t SET a = NULL WHERE id = 1",
        "UPDATE dbo.t SET a = NULL, b = NULL WHERE id = 1",
    )
    rows = t.run(f"SELECT __$update_mask, id, a, b FROM cdc.dbo_t_CT WHERE __$operation = 4 ORDER BY {ORDER}")
    assert rows == [(b"\x04", 1, "x", 5), (b"\x02", 2, "x", 5), (b"\x02", 1, None, 5), (b"\x04", 1, None, None)]


def test_b_lsn_as_text_and_compared(t: Database) -> None:
    assert t.run(
        "SELECT CONVERT(varchar(22), 0x0000002D00000580001D, 1), CONVERT(varchar(22), 0x0000002D00000580001D, 2),"
        " CONVERT(binary(10), '0x0000002d00000580001d', 1),"
        " CASE WHEN 0x80000000000000000000 > 0x7FFFFFFFFFFFFFFFFFFF THEN 1 ELSE 0 END"
    ) == [("0x0000002D00000580001D", "0000002D00000580001D", bytes.fromhex("0000002d00000580001d"), 1)]
