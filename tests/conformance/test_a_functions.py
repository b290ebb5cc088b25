"""Section A4: the generated functions and the functions of schema sys."""

from __future__ import annotations

import contextlib
import datetime

import pytest

from tests.support.conformance.client import SqlServerError, literal
from tests.support.conformance.database import ORDER, ZERO, Database
from tests.support.conformance.servers import Server

_ALL = "cdc.fn_cdc_get_all_changes_dbo_t"
_NET = "cdc.fn_cdc_get_net_changes_dbo_t"
_EDGES = "DECLARE @min binary(10) = sys.fn_cdc_get_min_lsn('dbo_t'), @max binary(10) = sys.fn_cdc_get_max_lsn() "


@pytest.fixture
def three(t: Database) -> Database:
    """Three captured transactions: two inserts, an update of one row, a delete of the other."""
    t.commit(
        "INSERT INTO dbo.t VALUES (1, 'x', 1), (2, 'y', 2)",
        "UPDATE dbo.t SET b = 5 WHERE id = 1",
        "DELETE FROM dbo.t WHERE id = 2",
    )
    return t


def _read(option: str, low: str = "@min", high: str = "@max", columns: str = "__$operation, id, a, b") -> str:
    order = "ORDER BY __$start_lsn, __$seqval, __$operation"
    return f"{_EDGES} SELECT {columns} FROM {_ALL}({low}, {high}, {option}) {order}"


@pytest.mark.parametrize("option", ["N'all'", "'all'", "N'ALL'", "N'  all  '", "N' All '"])
def test_4_all_gives_1_2_and_4(three: Database, option: str) -> None:
    assert three.run(_read(option)) == [(2, 1, "x", 1), (2, 2, "y", 2), (4, 1, "x", 5), (1, 2, "y", 2)]


@pytest.mark.parametrize("option", ["N'all update old'", "N' ALL Update OLD '"])
def test_4_all_update_old_gives_3_too(three: Database, option: str) -> None:
    assert three.run(_read(option)) == [
        (2, 1, "x", 1),
        (2, 2, "y", 2),
        (3, 1, "x", 1),
        (4, 1, "x", 5),
        (1, 2, "y", 2),
    ]


def test_4_both_bounds_are_inclusive(three: Database) -> None:
    first, second, third = three.commits()
    wanted = {first: [(2, 1), (2, 2)], second: [(4, 1)], third: [(1, 2)]}
    for low in wanted:
        for high in wanted:
            if low <= high:
                rows = three.run(_read("'all'", literal(low), literal(high), "__$operation, id"))
                assert rows == [row for lsn, each in wanted.items() if low <= lsn <= high for row in each]


def test_4_function_gives_what_the_change_table_holds(three: Database) -> None:
    columns = "__$start_lsn, __$seqval, __$operation, __$update_mask, id, a, b"
    assert three.run(_read("'all update old'", columns=columns)) == three.changes(columns)


def test_20_columns_of_the_functions(three: Database) -> None:
    everything = f"{_EDGES} SELECT * FROM "
    assert three.names(f"{everything} {_ALL}(@min, @max, 'all')") == [
        "__$start_lsn", "__$seqval", "__$operation", "__$update_mask", "id", "a", "b",
    ]  # fmt: skip
    assert three.names(f"{everything} {_NET}(@min, @max, 'all')") == [
        "__$start_lsn", "__$operation", "__$update_mask", "id", "a", "b",
    ]  # fmt: skip


def test_19_no_net_function_without_net_changes(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    db.track("t")
    db.commit("INSERT INTO dbo.t VALUES (1)")
    error = db.error(f"{_EDGES} SELECT * FROM {_NET}(@min, @max, 'all')")
    assert (error.number, error.text) == (208, f"Invalid object name '{_NET}'.")
    assert db.run(f"{_EDGES} SELECT id FROM {_ALL}(@min, @max, 'all')") == [(1,)]


_BAD_RANGES = [
    pytest.param("sys.fn_cdc_decrement_lsn(@min)", "@max", id="from-below-min"),
    pytest.param("@min", "sys.fn_cdc_increment_lsn(@max)", id="to-above-max"),
    pytest.param("@max", "@min", id="from-above-to"),
    pytest.param("sys.fn_cdc_increment_lsn(@max)", "@max", id="nothing-new"),
    pytest.param("sys.fn_cdc_increment_lsn(@max)", "sys.fn_cdc_increment_lsn(@max)", id="both-above-max"),
    pytest.param("NULL", "@max", id="from-null"),
    pytest.param("@min", "NULL", id="to-null"),
    pytest.param("NULL", "NULL", id="both-null"),
    pytest.param("0x00000000000000000000", "0x00000000000000000000", id="zeros"),
    pytest.param("0x00000000000000000000", "@max", id="from-zero"),
]


def _check_313(error: SqlServerError, kind: str) -> None:
    text = (
        "An insufficient number of arguments were supplied for the procedure or function"
        f" cdc.fn_cdc_get_{kind}_changes_ ... ."
    )
    assert (error.number, error.severity, error.state, error.text) == (313, 16, 3, text)
    # whether column names come before the error is not known for certain; rows never do
    assert [result.rows for result in error.results] in ([], [[]])


@pytest.mark.parametrize(("low", "high"), _BAD_RANGES)
@pytest.mark.parametrize(("kind", "function"), [("all", _ALL), ("net", _NET)])
def test_5_bad_range(three: Database, kind: str, function: str, low: str, high: str) -> None:
    _check_313(three.error(f"{_EDGES} SELECT * FROM {function}({low}, {high}, N'all')"), kind)


@pytest.mark.parametrize(("kind", "function"), [("all", _ALL), ("net", _NET)])
@pytest.mark.parametrize("option", ["N'nonsense'", "N''", "NULL"])
def test_5_bad_option_memory(three: Database, kind: str, function: str, option: str) -> None:
    _check_313(three.error(f"{_EDGES} SELECT * FROM {function}(@min, @max, {option})"), kind)


def test_5_options_of_the_other_function_memory(three: Database) -> None:
    for option in ("all with mask", "all with merge"):
        _check_313(three.error(f"{_EDGES} SELECT * FROM {_ALL}(@min, @max, N'{option}')"), "all")
    _check_313(three.error(f"{_EDGES} SELECT * FROM {_NET}(@min, @max, N'all update old')"), "net")


def test_5_whole_range_and_single_point_are_good(three: Database) -> None:
    assert len(three.run(_read("'all'"))) == 4
    assert three.run(_read("'all'", "@max", "@max")) == [(1, 2, "y", 2)]
    assert three.run(_read("'all'", "@min", "@min")) == []


def test_5_before_anything_is_captured(server: Server, t: Database) -> None:
    server.only_embedded("its capture cannot be held")
    assert t.max_lsn() is None
    _check_313(t.error(f"{_EDGES} SELECT * FROM {_ALL}(@min, @max, N'all')"), "all")


def test_5_function_under_another_isolation_level_and_joined(three: Database) -> None:
    rows = three.run(
        f"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE {_EDGES} SELECT c.__$operation, c.id, t.b FROM"
        f" {_ALL}(@min, @max, 'all') AS c LEFT JOIN dbo.t AS t ON t.id = c.id ORDER BY c.__$start_lsn, c.id"
    )
    assert rows == [(2, 1, 5), (2, 2, None), (4, 1, 5), (1, 2, None)]


# Functions of schema sys


def test_a4_max_lsn_without_cdc(plain: Database) -> None:
    error = plain.error("SELECT sys.fn_cdc_get_max_lsn()")
    assert (error.number, error.text) == (208, "Invalid object name 'cdc.lsn_time_mapping'.")


def test_a4_max_lsn_is_the_largest_mapped(three: Database) -> None:
    assert three.max_lsn() == three.value("SELECT MAX(start_lsn) FROM cdc.lsn_time_mapping")
    assert len(three.max_lsn()) == 10


@pytest.mark.parametrize("name", ["'nosuch'", "N'nosuch'", "''"])
def test_9_min_lsn_of_an_unknown_instance_is_zero(three: Database, name: str) -> None:
    assert three.value(f"SELECT sys.fn_cdc_get_min_lsn({name})") == ZERO


def test_8_min_lsn_of_a_new_instance_open(t: Database) -> None:
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    t.run("CREATE TABLE dbo.u (id int)")
    t.track("u")
    # NULL was seen while max LSN was below the new instance's start
    assert t.min_lsn("dbo_u") in (None, t.value("SELECT MAX(start_lsn) FROM cdc.change_tables"))
    t.commit("INSERT INTO dbo.u VALUES (1)")
    assert t.min_lsn("dbo_u") == t.value("SELECT start_lsn FROM cdc.change_tables WHERE capture_instance = 'dbo_u'")


@pytest.mark.parametrize(
    ("lsn", "following"),
    [
        ("0000002D00000580001D", "0000002D00000580001E"),
        ("00000000000000000005", "00000000000000000006"),
        ("0000002D000005800000", "0000002D000005800001"),
        ("0000002D0000058000FF", "0000002D000005800100"),
        ("0000002D00000580FFFF", "0000002D000005810000"),
        ("0000002DFFFFFFFFFFFF", "0000002E000000000000"),
        ("00000000FFFFFFFFFFFF", "00000001000000000000"),
        ("00FFFFFFFFFFFFFFFFFF", "01000000000000000000"),
        ("7FFFFFFFFFFFFFFFFFFF", "80000000000000000000"),
        ("FFFFFFFFFFFFFFFFFFFE", "FFFFFFFFFFFFFFFFFFFF"),
        ("00000000000000000000", "00000000000000000001"),
    ],
)
def test_37_increment_and_decrement_carry(db: Database, lsn: str, following: str) -> None:
    assert db.value(f"SELECT sys.fn_cdc_increment_lsn(0x{lsn})") == bytes.fromhex(following)
    assert db.value(f"SELECT sys.fn_cdc_decrement_lsn(0x{following})") == bytes.fromhex(lsn)


def test_37_null_stays_null(db: Database) -> None:
    assert db.run("SELECT sys.fn_cdc_increment_lsn(NULL), sys.fn_cdc_decrement_lsn(NULL)") == [(None, None)]


@pytest.mark.parametrize(
    ("function", "lsn", "wrapped"), [("increment", b"\xff" * 10, ZERO), ("decrement", ZERO, b"\xff" * 10)]
)
def test_37_wrap_open(db: Database, function: str, lsn: bytes, wrapped: bytes) -> None:
    found = None
    with contextlib.suppress(SqlServerError):
        found = db.value(f"SELECT sys.fn_cdc_{function}_lsn({literal(lsn)})")
    # what happens here is not known for certain, but no other position may come out
    assert found in (None, wrapped)


def test_37_short_binary_is_padded_on_the_right_and_int_on_the_left(db: Database) -> None:
    assert db.value("SELECT sys.fn_cdc_increment_lsn(0x01)") == bytes.fromhex("01000000000000000001")
    assert db.value("SELECT sys.fn_cdc_increment_lsn(CAST(5 AS binary(10)))") == bytes.fromhex("00000000000000000006")


def _times(db: Database) -> dict[bytes, datetime.datetime]:
    return dict(db.run("SELECT start_lsn, tran_end_time FROM cdc.lsn_time_mapping ORDER BY start_lsn"))


def _lsn_at(db: Database, operator: str, time: datetime.datetime) -> bytes | None:
    text = time.isoformat(sep=" ", timespec="milliseconds")
    return db.value(f"SELECT sys.fn_cdc_map_time_to_lsn('{operator}', CONVERT(datetime, '{text}', 121))")


_LESS, _LESS_EQUAL = "largest less than", "largest less than or equal"
_GREATER, _GREATER_EQUAL = "smallest greater than", "smallest greater than or equal"


def test_35_map_time_to_lsn_at_and_between_the_times(three: Database) -> None:
    times = _times(three)
    lsns = list(times)
    moments = list(times.values())
    assert len(set(moments)) == len(moments)
    for i, time in enumerate(moments):
        before, after = lsns[i - 1] if i else None, lsns[i + 1] if i + 1 < len(lsns) else None
        assert _lsn_at(three, _LESS, time) == before
        assert _lsn_at(three, _LESS_EQUAL, time) == lsns[i]
        assert _lsn_at(three, _GREATER, time) == after
        assert _lsn_at(three, _GREATER_EQUAL, time) == lsns[i]
        between = time + datetime.timedelta(milliseconds=10)
        if after is None or moments[i + 1] > between:
            assert _lsn_at(three, _LESS, between) == lsns[i]
            assert _lsn_at(three, _GREATER_EQUAL, between) == after


def test_35_map_time_to_lsn_beyond_the_edges(three: Database) -> None:
    times = _times(three)
    early = min(times.values()) - datetime.timedelta(days=1)
    late = max(times.values()) + datetime.timedelta(days=1)
    assert _lsn_at(three, _LESS, early) is None
    assert _lsn_at(three, _LESS_EQUAL, early) is None
    assert _lsn_at(three, _GREATER, late) is None
    assert _lsn_at(three, _GREATER_EQUAL, late) is None
    assert _lsn_at(three, _GREATER, early) == min(times)
    assert _lsn_at(three, _LESS, late) == max(times)


def test_35_map_time_to_lsn_among_equal_times(server: Server, t: Database) -> None:
    embedded = server.only_embedded("its clock cannot be held")
    embedded.advance(seconds=1)
    for i in range(3):
        t.run(f"INSERT INTO dbo.t VALUES ({i}, 'x', 1)")
    t.capture()
    times = _times(t)
    assert len(times) == 3
    assert len(set(times.values())) == 1
    moment = next(iter(times.values()))
    assert _lsn_at(t, _LESS_EQUAL, moment) == max(times)
    assert _lsn_at(t, _GREATER_EQUAL, moment) == min(times)
    assert _lsn_at(t, _LESS, moment) is None
    assert _lsn_at(t, _GREATER, moment) is None


def test_35_bad_operator_memory(three: Database) -> None:
    assert three.value("SELECT sys.fn_cdc_map_time_to_lsn('nonsense', GETDATE())") is None


def test_35_time_of_null_memory(three: Database) -> None:
    assert three.value("SELECT sys.fn_cdc_map_time_to_lsn('largest less than', NULL)") is None


def test_36_map_lsn_to_time_is_the_end_of_the_transaction(three: Database) -> None:
    for lsn, time in _times(three).items():
        assert three.value(f"SELECT sys.fn_cdc_map_lsn_to_time({literal(lsn)})") == time


def test_36_unmapped_lsn_has_no_time_memory(three: Database) -> None:
    between = three.value(f"SELECT sys.fn_cdc_increment_lsn({literal(three.commits()[0])})")
    for lsn in (between, ZERO, None):
        assert three.value(f"SELECT sys.fn_cdc_map_lsn_to_time({literal(lsn)})") is None


@pytest.mark.parametrize(
    ("micros", "text"),
    [(0, "000"), (1000, "000"), (2000, "003"), (4000, "003"), (5000, "007"), (8000, "007"), (9000, "010")],
)
def test_36_times_are_server_local_in_steps_of_a_300th_second(
    server: Server, t: Database, micros: int, text: str
) -> None:
    embedded = server.only_embedded("its clock cannot be set")
    moment = embedded.clock.now.replace(microsecond=micros) + datetime.timedelta(seconds=1)
    embedded.clock.now = moment
    t.run("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    t.capture()
    found = t.value("SELECT CONVERT(varchar(23), sys.fn_cdc_map_lsn_to_time(sys.fn_cdc_get_max_lsn()), 121)")
    assert found == f"{moment:%Y-%m-%d %H:%M:%S}.{text}"


# Masks


@pytest.fixture
def wide(db: Database) -> Database:
    """A table of twenty columns, of which all but c3 are captured."""
    columns = ", ".join(f"c{i} int" for i in range(1, 20))
    db.run(f"CREATE TABLE dbo.w (id int PRIMARY KEY, {columns})")
    db.track("w", captured_column_list="id, " + ", ".join(f"c{i}" for i in range(1, 20) if i != 3))
    return db


def test_60_column_ordinal_is_the_position_in_the_change_table(wide: Database) -> None:
    names = wide.run("SELECT column_name, column_ordinal FROM cdc.captured_columns ORDER BY column_ordinal")
    assert [name for name, _ in names] == ["id", "c1", "c2", *(f"c{i}" for i in range(4, 20))]
    for name, ordinal in names:
        assert wide.value(f"SELECT sys.fn_cdc_get_column_ordinal('dbo_w', '{name}')") == ordinal


def test_60_functions_of_a_column_take_their_names_from_rows(wide: Database) -> None:
    wide.commit("INSERT INTO dbo.w (id) VALUES (1)", "UPDATE dbo.w SET c1 = 1, c19 = 3")
    assert (
        wide.run(
            "SELECT t.capture_instance, c.column_name FROM cdc.change_tables AS t"
            " JOIN cdc.captured_columns AS c ON c.object_id = t.object_id"
            " WHERE c.column_ordinal <> sys.fn_cdc_get_column_ordinal(t.capture_instance, c.column_name)"
        )
        == []
    )
    assert wide.run(
        "SELECT c.column_name FROM cdc.dbo_w_CT AS w CROSS JOIN cdc.captured_columns AS c WHERE w.__$operation = 4"
        " AND sys.fn_cdc_has_column_changed('dbo_w', c.column_name, w.__$update_mask) = 1 ORDER BY c.column_ordinal"
    ) == [("c1",), ("c19",)]


def test_8_min_lsn_takes_its_instance_from_rows(t: Database) -> None:
    t.run("CREATE TABLE dbo.u (id int)")
    t.track("u")
    assert t.run("SELECT name, sys.fn_cdc_get_min_lsn(name) FROM (VALUES ('dbo_t'), ('DBO_U'), ('x')) AS n (name)") == [
        ("dbo_t", t.min_lsn()),
        ("DBO_U", t.min_lsn("dbo_u")),
        ("x", ZERO),
    ]


def test_35_a_time_is_counted_from_now(t: Database) -> None:
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    first, last = t.mapping()[0], t.mapping()[-1]
    assert t.run(
        "SELECT sys.fn_cdc_map_time_to_lsn('smallest greater than', GETDATE() - 1),"
        " sys.fn_cdc_map_time_to_lsn('largest less than', GETDATE() + 1)"
    ) == [(first, last)]


def test_60_unknown_column_has_no_ordinal_memory(wide: Database) -> None:
    for arguments in ("'dbo_w', 'c3'", "'dbo_w', 'nosuch'", "'nosuch', 'id'"):
        assert wide.value(f"SELECT sys.fn_cdc_get_column_ordinal({arguments})") is None


@pytest.mark.parametrize(("mask", "bits"), [("0x01FF", range(1, 10)), ("0x0100", [9]), ("0x80", [8]), ("0x06", [2, 3])])
def test_60_is_bit_set(db: Database, mask: str, bits: list[int]) -> None:
    count = (len(mask) - 2) * 4
    found = [i for i in range(1, count + 1) if db.value(f"SELECT sys.fn_cdc_is_bit_set({i}, {mask})")]
    assert found == list(bits)


def test_60_mask_functions_agree_with_what_was_updated(wide: Database) -> None:
    wide.commit("INSERT INTO dbo.w (id) VALUES (1)", "UPDATE dbo.w SET c1 = 1, c8 = 2, c19 = 3")
    mask = wide.value("SELECT __$update_mask FROM cdc.dbo_w_CT WHERE __$operation = 4")
    # ordinals: c1 is 2, c8 is 8, c19 is 19
    assert mask == bytes([0b100, 0, 0b10000010])
    names = [name for (name,) in wide.run("SELECT column_name FROM cdc.captured_columns")]
    changed = [
        name
        for name in names
        if wide.value(f"SELECT sys.fn_cdc_has_column_changed('dbo_w', '{name}', {literal(mask)})")
    ]
    assert sorted(changed) == ["c1", "c19", "c8"]
    by_query = wide.run(
        "SELECT sys.fn_cdc_has_column_changed('dbo_w', 'c8', __$update_mask),"
        " sys.fn_cdc_is_bit_set(sys.fn_cdc_get_column_ordinal('dbo_w', 'c9'), __$update_mask) FROM cdc.dbo_w_CT"
        f" ORDER BY {ORDER}"
    )
    assert [tuple(map(int, row)) for row in by_query] == [(1, 1), (1, 0), (1, 0)]


def test_59_three_part_names_from_another_database(three: Database) -> None:
    other = three.connect()
    other.run("USE master")
    sys, lsn = f"[{three.name}].sys", literal(three.max_lsn())
    assert other.value(f"SELECT {sys}.fn_cdc_get_max_lsn()") == three.max_lsn()
    assert other.value(f"SELECT {sys}.fn_cdc_get_min_lsn(N'dbo_t')") == three.min_lsn()
    assert other.value(f"SELECT {sys}.fn_cdc_increment_lsn({lsn})") > three.max_lsn()
    assert other.value(f"SELECT {sys}.fn_cdc_map_lsn_to_time({lsn})") == _times(three)[three.max_lsn()]
    assert other.value(f"SELECT {sys}.fn_cdc_map_time_to_lsn('largest less than', '99991231')") == three.max_lsn()
    assert other.value(f"SELECT {sys}.fn_cdc_get_column_ordinal('dbo_t', 'b')") == 3
    edges = f"{sys}.fn_cdc_get_min_lsn('dbo_t'), {sys}.fn_cdc_get_max_lsn()"
    rows = other.run(
        f"SELECT id FROM [{three.name}].cdc.[fn_cdc_get_all_changes_dbo_t]({edges}, N'all') ORDER BY __$start_lsn, id"
    )
    assert rows == [(1,), (2,), (1,), (2,)]
