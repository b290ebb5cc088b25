"""Section I: what is not known for certain, under both settings of its switch; a real server has one of them."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import pytest

from tests.support.conformance.client import Row, literal
from tests.support.conformance.database import ZERO, Database

_BAD_RANGE = "SELECT * FROM cdc.fn_cdc_get_{}_changes_dbo_t(NULL, NULL, N'all')"
_ALL_BITS = b"\x07"


def _switch(db: Database, **switches: Any) -> None:
    embedded = db.server.only_embedded("which of the settings it has is not known")
    cdc = embedded.sandbox.cdc(db.name)
    cdc.switches = dataclasses.replace(cdc.switches, **switches)


@pytest.mark.parametrize(("wraps", "edges"), [(True, (ZERO, b"\xff" * 10)), (False, (None, None))])
def test_i1_increment_and_decrement_at_the_edges(db: Database, wraps: bool, edges: Row) -> None:
    _switch(db, lsn_wraps=wraps)
    high, low = literal(b"\xff" * 10), literal(ZERO)
    functions = "sys.fn_cdc_increment_lsn({}), sys.fn_cdc_decrement_lsn({})"
    assert db.run(f"SELECT {functions.format(high, low)}") == [edges]
    columns = functions.format("e.high", "e.low")
    assert db.run(f"SELECT {columns} FROM (VALUES ({high}, {low})) AS e (high, low)") == [edges]


@pytest.mark.parametrize(("shared", "commands"), [(True, [(1, 1), (1, 2), (2, 2)]), (False, [(1, 1), (2, 2), (3, 2)])])
def test_i2_command_ids_of_a_key_update(t: Database, shared: bool, commands: list[Row]) -> None:
    _switch(t, deferred_pair_shares_command_id=shared)
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 5)")
    start = t.commits()[0]
    t.commit("BEGIN TRAN UPDATE dbo.t SET id = 2 INSERT INTO dbo.t VALUES (3, 'y', 6) COMMIT")
    rows = t.changes("__$start_lsn, __$command_id, __$operation")
    assert [row[1:] for row in rows if row[0] > start] == commands


@pytest.mark.parametrize(("across", "t_ids", "u_ids"), [(True, [1, 4], [2, 3]), (False, [1, 2], [1, 2])])
def test_16_command_ids_of_several_tables(t: Database, across: bool, t_ids: list[int], u_ids: list[int]) -> None:
    _switch(t, command_ids_count_across_tables=across)
    t.run("CREATE TABLE dbo.u (id int PRIMARY KEY)")
    t.track("u")
    t.commit(
        "BEGIN TRAN INSERT INTO dbo.t VALUES (1, 'x', 1) INSERT INTO dbo.u VALUES (1), (2)"
        " INSERT INTO dbo.t VALUES (2, 'x', 1) COMMIT"
    )
    assert t.changes("__$command_id") == [(each,) for each in t_ids]
    assert t.changes("__$command_id", "dbo_u") == [(each,) for each in u_ids]


@pytest.mark.parametrize(("rounds", "minutes"), [(False, 0), (True, 1)])
def test_28_minute_of_a_ddl(db: Database, rounds: bool, minutes: int) -> None:
    embedded = db.server.only_embedded("its clock cannot be set")
    _switch(db, ddl_time_rounds=rounds)
    begun = embedded.clock.now.replace(second=0, microsecond=0)
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    db.track("t")
    for second in (29, 59):
        embedded.clock.now = begun + datetime.timedelta(seconds=second)
        db.run(f"ALTER TABLE dbo.t ADD c{second} int")
    db.capture()
    expected = [begun, begun + datetime.timedelta(minutes=minutes)]
    assert db.run("SELECT ddl_time FROM cdc.ddl_history ORDER BY ddl_lsn") == [(time,) for time in expected]


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("kind", ["all", "net"])
def test_i3_a_bad_range_is_an_error_whatever_comes_before(t: Database, first: bool, kind: str) -> None:
    _switch(t, columns_before_range_error=first)
    read = _BAD_RANGE.format(kind)
    error = t.error(f"{read} SELECT 1")
    assert (error.number, error.severity, error.state, error.results) == (313, 16, 3, [])
    assert t.run(f"BEGIN TRY {read} END TRY BEGIN CATCH SELECT ERROR_NUMBER(), ERROR_STATE() END CATCH") == [(313, 3)]
    assert t.number(f"DECLARE @id int; {read.replace('*', '@id = id')}") == 313
    assert t.number(f"INSERT INTO dbo.t {read.replace('*', 'id, a, b')}") == 313
    assert t.number(f"IF EXISTS ({read}) PRINT 'rows'") == 313


@pytest.mark.parametrize("number", [22956, 22920])
def test_i4_cleanup_of_an_unknown_instance(t: Database, number: int) -> None:
    _switch(t, cleanup_unknown_instance_error=number)
    assert t.number("EXEC sys.sp_cdc_cleanup_change_table 'nobody', NULL") == number


@pytest.mark.parametrize("hidden", [True, False])
def test_i6_min_lsn_of_an_instance_that_has_nothing_yet(t: Database, hidden: bool) -> None:
    _switch(t, min_lsn_null_until_captured=hidden)
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 5)")
    t.track("t", capture_instance="late")
    (start,) = t.run("SELECT start_lsn FROM cdc.change_tables WHERE capture_instance = 'late'")[0]
    assert t.min_lsn("late") == (None if hidden else start)
    t.commit("INSERT INTO dbo.t VALUES (2, 'x', 5)")
    assert t.min_lsn("late") == start


@pytest.mark.parametrize("supported", [True, False])
def test_i7_net_changes_by_default(db: Database, supported: bool) -> None:
    _switch(db, net_changes_by_default=supported)
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    db.track("t", supports_net_changes=None)
    assert db.run("SELECT supports_net_changes FROM cdc.change_tables") == [(supported,)]


def test_i8_sixth_column_of_get_captured_columns(t: Database) -> None:
    """Documentation of 2017 and later; that of 2008 to 2012 says ordinal_position."""
    assert t.names("EXEC sys.sp_cdc_get_captured_columns 'dbo_t'")[5] == "column_ordinal"


@pytest.mark.parametrize("number", [22836, 14261])
def test_i9_a_second_job(t: Database, number: int) -> None:
    _switch(t, second_job_error=number)
    before = t.run("EXEC sys.sp_cdc_help_jobs")
    for job in ("capture", "cleanup"):
        assert t.number(f"EXEC sys.sp_cdc_add_job '{job}'") == number
    assert t.run("EXEC sys.sp_cdc_help_jobs") == before


@pytest.mark.parametrize(
    ("captured", "changes"),
    [
        (True, [(1, 1, "x", _ALL_BITS), (2, 1, "x", _ALL_BITS), (1, 1, "x", _ALL_BITS), (2, 1, "y", _ALL_BITS)]),
        (False, [(3, 1, "x", b"\x02"), (4, 1, "y", b"\x02")]),
    ],
)
def test_i10_a_key_that_is_assigned_its_own_value(t: Database, captured: bool, changes: list[Row]) -> None:
    _switch(t, unchanged_keys_are_captured=captured)
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 5)")
    start = t.commits()[0]
    t.commit(
        "UPDATE dbo.t SET id = id",
        "UPDATE dbo.t SET id = 1, a = 'y'",
        "UPDATE dbo.t SET b = b",
    )
    columns = "__$start_lsn, __$operation, id, a, __$update_mask"
    assert [row[1:] for row in t.changes(columns) if row[0] > start] == changes


def test_i12_a_tracked_table_that_stays(t: Database) -> None:
    t.run("CREATE SCHEMA moved")
    t.run("CREATE TABLE dbo.free (id int)")
    _switch(t, tracked_tables_stay=True)
    error = t.error("EXEC sp_rename 'dbo.t', 'renamed'")
    assert (error.number, error.procedure.endswith("sp_rename")) == (15051, True)
    assert t.number("ALTER SCHEMA moved TRANSFER dbo.t") == 3724
    assert t.number("DROP TABLE dbo.t") == 3724
    t.run("EXEC sp_rename 'dbo.free', 'other'")
    t.run("ALTER SCHEMA moved TRANSFER dbo.other; DROP TABLE moved.other")
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 5)")
    assert t.changes("id, a, b") == [(1, "x", 5)]


def test_i12_a_tracked_table_that_may_go(t: Database) -> None:
    t.run("CREATE SCHEMA moved")
    _switch(t, tracked_tables_stay=False)
    t.run("EXEC sp_rename 'dbo.t', 'renamed'")
    t.run("ALTER SCHEMA moved TRANSFER dbo.renamed")
    t.commit("INSERT INTO moved.renamed VALUES (1, 'x', 5)")
    assert t.changes("id, a, b") == [(1, "x", 5)]
    t.run("DROP TABLE moved.renamed")
    assert t.run("SELECT capture_instance FROM cdc.change_tables") == []


@pytest.mark.parametrize("length", [1, 6, 10])
def test_i13_length_of_the_tran_id_of_dummy_rows(t: Database, length: int) -> None:
    _switch(t, dummy_tran_id=bytes(length))
    t.capture()
    assert t.run("SELECT tran_id, CASE WHEN tran_id <> 0x00 THEN 1 END FROM cdc.lsn_time_mapping") == [
        (bytes(length), None)
    ]


@pytest.mark.parametrize(("left_out", "after"), [(True, None), (False, "a")])
def test_53_lobs_that_did_not_change_in_after_images(db: Database, left_out: bool, after: str | None) -> None:
    _switch(db, after_images_leave_lobs_out=left_out)
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY, lob nvarchar(max), b int)")
    db.track("t")
    db.commit("INSERT INTO dbo.t VALUES (1, 'a', 1)", "UPDATE dbo.t SET b = 2", "UPDATE dbo.t SET lob = 'c'")
    assert db.changes("__$operation, lob, b") == [(2, "a", 1), (3, None, 1), (4, after, 2), (3, "a", 2), (4, "c", 2)]


@pytest.mark.parametrize(("repeated", "shown"), [(True, "[id]"), (False, None)])
def test_a3_5_index_columns_of_an_instance_without_index(t: Database, repeated: bool, shown: str | None) -> None:
    t.run("CREATE TABLE dbo.keyless (x int)")
    t.track("keyless")
    _switch(t, help_repeats_index_columns=repeated)
    rows = t.run("EXEC sys.sp_cdc_help_change_data_capture")
    assert [(row[2], row[10], row[13]) for row in rows] == [("dbo_t", "pk_t", "[id]"), ("dbo_keyless", None, shown)]


def _taken(rows: list[tuple[bytes, datetime.datetime]], operator: str, time: datetime.datetime, takes: str) -> Any:
    """What fn_cdc_map_time_to_lsn takes, by trying every row."""
    side = {
        "largest less than": lambda t: t < time,
        "largest less than or equal": lambda t: t <= time,
        "smallest greater than": lambda t: t > time,
        "smallest greater than or equal": lambda t: t >= time,
    }[operator]
    largest = operator.startswith("largest")
    found = [row for row in rows if side(row[1])]
    if takes != "extreme" and found:
        nearest = (max if largest else min)(t for _, t in found)
        found = [row for row in found if row[1] == nearest]
    choose = max if largest and takes != "first" else min
    return choose((lsn for lsn, _ in found), default=None)


@pytest.mark.parametrize("takes", ["nearest", "first", "extreme"])
def test_i14_a_time_that_the_clock_showed_twice(t: Database, takes: str) -> None:
    embedded = t.server.only_embedded("its clock stays as it is")
    _switch(t, time_to_lsn_takes=takes)
    begun = embedded.clock.now
    for number, seconds in enumerate((10, 20, 20, 30, 15, 15, 25, 20, 40, 40)):
        embedded.clock.now = begun + datetime.timedelta(seconds=seconds)
        t.run(f"INSERT INTO dbo.t VALUES ({number}, 'x', 1)")
    t.capture()
    rows = t.run("SELECT start_lsn, tran_end_time FROM cdc.lsn_time_mapping")
    edges = {time for _, time in rows}
    edges |= {time + datetime.timedelta(seconds=s) for time in edges for s in (-1, 1)}
    asked = [(operator, edge) for operator in _OPERATORS for edge in sorted(edges)]
    found = {
        (operator, edge): t.value(
            f"SELECT sys.fn_cdc_map_time_to_lsn('{operator}', '{edge.isoformat(timespec='milliseconds')}')"
        )
        for operator, edge in asked
    }
    assert found == {each: _taken(rows, *each, takes) for each in asked}


_OPERATORS = (
    "largest less than",
    "largest less than or equal",
    "smallest greater than",
    "smallest greater than or equal",
)
