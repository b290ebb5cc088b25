"""Section G: clocks, log scans, the Agent and sizes, as monitoring asks for them."""

from __future__ import annotations

import datetime
import re

import pytest

from tests.support.conformance.client import Client, SqlServerError
from tests.support.conformance.database import Database
from tests.support.conformance.servers import Server

_SCANS = "sys.dm_cdc_log_scan_sessions"
_LSN_TEXT = re.compile(r"[0-9a-f]{8}:[0-9a-f]{8}:[0-9a-f]{4}\0")
_NO_LSN = "00000000:00000000:0000\0"


def _text(lsn: bytes) -> str:
    digits = lsn.hex()
    return f"{digits[:8]}:{digits[8:16]}:{digits[16:]}\0"


def _newest(db: Database, columns: str) -> tuple:
    return db.run(f"SELECT TOP 1 {columns} FROM {_SCANS} ORDER BY session_id DESC")[0]


def test_62_scan_that_found_transactions(t: Database) -> None:
    t.stop_capture()
    t.scan()
    t.run("INSERT INTO dbo.t VALUES (1, 'x', 1), (2, 'y', 2)")
    t.run("ALTER TABLE dbo.t ADD c int NULL")
    t.run("UPDATE dbo.t SET b = 3")
    t.scan()
    columns = (
        "session_id, tran_count, schema_change_count, empty_scan_count, error_count, failed_sessions_count, scan_phase,"
        " last_commit_lsn, last_commit_cdc_lsn, start_lsn, current_lsn, end_lsn, first_begin_cdc_lsn"
    )
    found = t.run(f"SELECT {columns} FROM {_SCANS} WHERE session_id > 0 AND tran_count > 0")
    assert len(found) == 1
    row = found[0]
    assert row[0] > 0
    assert row[1:6] == (3, 1, 0, 0, 0)
    assert row[6] == "Done"
    newest = _text(t.commits()[-1])
    assert row[7:9] == (newest, newest)
    assert all(_LSN_TEXT.fullmatch(text) for text in row[7:])
    start, current, end, first = row[9:]
    assert start <= first < newest <= end
    assert start <= current <= end


def test_62_scan_times_and_latency(server: Server, t: Database) -> None:
    embedded = server.only_embedded("its clock cannot be set")
    committed = embedded.clock.now
    t.run("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    embedded.advance(seconds=7)
    t.capture()
    columns = "start_time, end_time, duration, last_commit_time, last_commit_cdc_time, latency"
    scanned = embedded.clock.now
    assert t.run(f"SELECT {columns} FROM {_SCANS} WHERE tran_count = 1 AND session_id > 0") == [
        (scanned, scanned, 0, committed, committed, 7)
    ]


def test_62_empty_scans_collapse(t: Database) -> None:
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    t.capture()
    first = _newest(t, "session_id, empty_scan_count")
    t.capture()
    second = _newest(t, "session_id, empty_scan_count")
    assert second[0] == first[0]
    assert second[1] > first[1] >= 1
    assert _newest(t, "tran_count, start_lsn, end_lsn, last_commit_lsn") == (0, _NO_LSN, _NO_LSN, _NO_LSN)
    t.commit("INSERT INTO dbo.t VALUES (2, 'x', 1)")
    counts = t.run(
        f"SELECT tran_count, empty_scan_count FROM {_SCANS} WHERE session_id >= {first[0]} ORDER BY session_id"
    )
    assert [(transactions, empty > 0) for transactions, empty in counts] == [(0, True), (1, False), (0, True)]


def test_62_row_0_is_the_sum(t: Database) -> None:
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    t.commit("INSERT INTO dbo.t VALUES (2, 'x', 1)", "INSERT INTO dbo.t VALUES (3, 'x', 1)")
    t.stop_capture()
    t.scan()
    sums = "SUM(tran_count), SUM(error_count), SUM(schema_change_count), SUM(command_count)"
    single = "tran_count, error_count, schema_change_count, command_count"
    whole = t.run(f"SELECT {single} FROM {_SCANS} WHERE session_id = 0")
    assert whole == t.run(f"SELECT {sums} FROM {_SCANS} WHERE session_id > 0")
    assert whole[0][0] == 3


def test_g_newest_scan_tells_whether_the_capture_has_caught_up(t: Database) -> None:
    t.run("EXEC sys.sp_cdc_change_job @maxtrans = 2, @maxscans = 1")
    t.stop_capture()
    t.scan()
    for i in range(3):
        t.run(f"INSERT INTO dbo.t VALUES ({i}, 'x', 1)")
    t.scan("@maxtrans = 2, @maxscans = 1")
    assert _newest(t, "tran_count") == (2,)
    t.scan("@maxtrans = 2, @maxscans = 1")
    assert _newest(t, "tran_count") == (1,)


def test_62_failed_scans_are_counted(t: Database) -> None:
    t.commit("INSERT INTO dbo.t VALUES (1, 'much wider', 1)", "UPDATE dbo.t SET a = 'abc'")
    t.stop_capture()
    t.scan()
    assert t.run("SELECT * FROM sys.dm_cdc_errors") == []
    t.run("ALTER TABLE dbo.t ALTER COLUMN a varchar(3)")
    with pytest.raises(SqlServerError):
        t.scan()
    failed = t.value(f"SELECT failed_sessions_count FROM {_SCANS} WHERE session_id = 0")
    assert failed >= 1
    sessions = {number for (number,) in t.run("SELECT DISTINCT session_id FROM sys.dm_cdc_errors")}
    assert sessions <= {number for (number,) in t.run(f"SELECT session_id FROM {_SCANS}")}


# The Agent


def _agent(client: Client) -> list[tuple]:
    return client.run(
        "SELECT status, status_desc FROM sys.dm_server_services WHERE servicename LIKE N'SQL Server Agent (%'"
    )


def test_64_agent_runs_or_cannot_be_seen(t: Database) -> None:
    # no row means unknown, as on some Linux installations
    assert _agent(t) in ([(4, "Running")], [])


def test_64_agent_is_stopped_or_hidden(server: Server, t: Database) -> None:
    embedded = server.only_embedded("its Agent cannot be stopped by a statement")
    with embedded.agent_stopped():
        assert _agent(t) == [(1, "Stopped")]
    with embedded.services_hidden():
        assert _agent(t) == []
    assert _agent(t) == [(4, "Running")]


# Clocks


def test_g_lag_is_the_time_since_the_last_mapped_commit(server: Server, t: Database) -> None:
    embedded = server.only_embedded("its clock cannot be set")
    t.run("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    embedded.capture(t.name, t)
    embedded.advance(seconds=90)
    lag = "SELECT DATEDIFF(second, sys.fn_cdc_map_lsn_to_time(sys.fn_cdc_get_max_lsn()), GETDATE())"
    assert t.value(lag) == 90


def test_g_times_of_cdc_are_the_servers_local_time(t: Database) -> None:
    before = t.value("SELECT GETDATE()")
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)", "ALTER TABLE dbo.t ADD c int")
    after = t.value("SELECT GETDATE()")
    times = t.run(
        "SELECT tran_end_time FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00"
        f" UNION ALL SELECT end_time FROM {_SCANS} WHERE session_id > 0 AND tran_count > 0"
    )
    assert len(times) >= 2
    assert all(before <= time <= after for (time,) in times)
    minute = datetime.timedelta(minutes=1)
    assert before - minute < t.value("SELECT ddl_time FROM cdc.ddl_history") < after + minute


def test_g_offset_is_that_of_the_zone_whatever_the_time(server: Server, plain: Database) -> None:
    embedded = server.only_embedded("its clock cannot be set")
    offset = "SELECT DATEPART(TZOFFSET, SYSDATETIMEOFFSET())"
    assert plain.value(offset) == 0
    embedded.advance(days=365, hours=1)
    assert plain.value(offset) == 0
    assert plain.value("SELECT DATEDIFF(minute, GETUTCDATE(), GETDATE())") == 0


def test_g_head_room(server: Server, t: Database) -> None:
    embedded = server.only_embedded("its clock cannot be set")
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    embedded.advance(hours=1)
    t.commit("INSERT INTO dbo.t VALUES (2, 'x', 1)")
    cursor = "sys.fn_cdc_map_lsn_to_time((SELECT MIN(__$start_lsn) FROM cdc.dbo_t_CT))"
    passed = t.value(f"SELECT DATEDIFF(second, {cursor}, (SELECT MAX(tran_end_time) FROM cdc.lsn_time_mapping))")
    assert passed == pytest.approx(datetime.timedelta(hours=1).total_seconds(), abs=3)


# Sizes


def test_g_size_of_a_change_table(t: Database) -> None:
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1), (2, 'y', 2)", "DELETE FROM dbo.t")
    rows = t.run(
        "SELECT SUM(row_count), SUM(reserved_page_count) FROM sys.dm_db_partition_stats"
        " WHERE object_id = OBJECT_ID('cdc.dbo_t_CT') AND index_id < 2"
    )
    assert rows[0][0] == 4
    assert rows[0][1] >= 1
    units = t.run(
        "SELECT a.type_desc, SUM(p.rows), SUM(a.total_pages), SUM(a.used_pages) FROM sys.partitions p"
        " JOIN sys.allocation_units a ON a.container_id = p.partition_id"
        " WHERE p.object_id = OBJECT_ID('cdc.dbo_t_CT') AND p.index_id < 2 AND a.type = 1 GROUP BY a.type_desc"
    )
    assert [row[:2] for row in units] == [("IN_ROW_DATA", 4)]
    assert units[0][2] >= units[0][3] >= 1


def test_g_log_waits_for_a_stopped_capture_memory(t: Database) -> None:
    t.stop_capture()
    t.run("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    assert t.value("SELECT log_reuse_wait_desc FROM sys.databases WHERE name = DB_NAME()") == "REPLICATION"


def test_g_log_space(t: Database) -> None:
    assert len(t.run("SELECT * FROM sys.dm_db_log_space_usage")) == 1


# Restore


def test_65_restore_is_refused_plainly(server: Server, plain: Database) -> None:
    server.only_embedded("it restores")
    error = plain.error("SELECT 1\nRESTORE DATABASE other FROM DISK = 'other.bak' WITH KEEP_CDC")
    assert error.number == 102 or "not supported by the sandbox" in error.text
    assert error.line == 2


def test_65_restore_to_an_earlier_moment_rewinds_the_lsns(server: Server, t: Database) -> None:
    sandbox = server.only_embedded("it needs a place for backups").sandbox
    fork = "SELECT recovery_fork_guid FROM sys.database_recovery_status WHERE database_id = DB_ID()"
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    kept, guid, backup = t.changes(), t.value(fork), sandbox.backup(t.name)
    t.commit("INSERT INTO dbo.t VALUES (2, 'gone', 2)")
    lost = t.max_lsn()
    sandbox.restore(t.name, backup)
    assert (t.changes(), t.run("SELECT id FROM dbo.t")) == (kept, [(1,)])
    assert t.max_lsn() < lost
    assert t.value(fork) != guid
    t.commit("INSERT INTO dbo.t VALUES (3, 'new', 3)")
    assert t.changes("id") == [(1,), (3,)]
    # the positions of what was lost are given out again
    assert t.commits()[-1] <= lost
