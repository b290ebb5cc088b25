"""Types that change what rows hold, without an event: targets that hold the new type read the values again."""

from __future__ import annotations

import pytest

from airflow_provider_mssql_cdc.core.entry_values import EVOLVE
from airflow_provider_mssql_cdc.spark import filling
from airflow_provider_mssql_cdc.spark.sources.cdc.table import CapturedTable
from tests.support.spark.loads import Loads
from tests.support.spark.origin import Origin
from tests.support.spark.stop import Killed

pytestmark = [pytest.mark.xdist_group("tests.spark.test_filled_columns"), pytest.mark.timeout(900)]

NAME = "lab.words"
COLUMNS = ("id", "c", "n", "t", "b", "s", "p")
SHAPES = ("mirror", "history", "scd2")
BEFORE = {
    id_: (
        id_,
        f"w{id_}",
        f"naïve {id_}",
        f"2024-03-01 10:00:0{id_}.003",
        bytes([id_, 0]),
        id_,
        f"1999-12-31 0{id_}:00:00.007",
    )
    for id_ in range(1, 6)
}


@pytest.fixture
def words(live: Origin) -> Origin:
    live.sql("CREATE SCHEMA lab")
    live.sql(
        "CREATE TABLE lab.words (id int NOT NULL PRIMARY KEY, c varchar(9), n nvarchar(20), t datetime,"
        " b varbinary(2), s smallint, p datetime)"
    )
    for id_, _, n, t, b, s, p in BEFORE.values():
        live.sql(f"INSERT INTO lab.words VALUES ({id_}, 'w{id_}', N'{n}', '{t}', 0x{b.hex()}, {s}, '{p}')")
    live.enable(NAME)
    live.wait_captured()
    return live


def source(words: Origin) -> list[tuple]:
    rows = words.sql(
        "SELECT id, c, n, CONVERT(varchar(30), t, 121) AS t, b, s, CONVERT(varchar(30), p, 121) AS p FROM lab.words"
    )
    return sorted(said(row) for row in rows)


def said(row: dict) -> tuple:
    """A row with times as text, to the microsecond and to the last digit."""
    values = dict(row)
    if "p__text" in row:
        assert row["p__text"] is None or row["p"].strftime("%Y-%m-%d %H:%M:%S.%f") == row["p__text"][:26]
        values["p"] = row["p__text"]
    time = values["t"]
    text = time if isinstance(time, str) else time.strftime("%Y-%m-%d %H:%M:%S.%f")
    values["t"] = f"{text:0<26}"[:26]
    values["b"] = bytes(values["b"])
    return tuple(values[name] for name in COLUMNS)


@pytest.mark.parametrize(
    ("file_format", "shapes"),
    [
        ("iceberg", ("mirror", "history")),
        pytest.param("iceberg", SHAPES, marks=pytest.mark.thorough),
        pytest.param("postgresql", ("mirror", "history"), marks=pytest.mark.thorough),
        pytest.param("delta", (*SHAPES, "transactions"), marks=pytest.mark.thorough),
        pytest.param("parquet", ("history",), marks=pytest.mark.thorough),
    ],
)
def test_rows_that_no_event_has_touched_have_the_values_of_now(words, file_format, shapes, request, monkeypatch):
    words.format = file_format
    if file_format == "postgresql":
        words.into(request.getfixturevalue("postgresql"))
    loads = Loads(words, shapes, ("words",))
    loads.say(on_schema_change=EVOLVE)
    loads.load_all()
    first = max(row["_lsn"] for row in words.lake(NAME, "history"))
    words.sql("UPDATE lab.words SET s = 7 WHERE id = 1; DELETE FROM lab.words WHERE id = 5")
    words.sql(
        "BEGIN TRAN; UPDATE lab.words SET s = 8 WHERE id = 2; ALTER TABLE lab.words ALTER COLUMN c char(9);"
        " ALTER TABLE lab.words ALTER COLUMN n varchar(20); ALTER TABLE lab.words ALTER COLUMN t datetime2(6);"
        " ALTER TABLE lab.words ALTER COLUMN b binary(4); ALTER TABLE lab.words ALTER COLUMN s tinyint;"
        " ALTER TABLE lab.words ALTER COLUMN p datetime2; COMMIT"
    )
    words.sql(
        "UPDATE lab.words SET c = 'new', t = '2024-03-01 10:00:00.123456', p = '2024-03-01 10:00:00.1234567'"
        " WHERE id = 3"
    )
    words.sql("INSERT INTO lab.words VALUES (6, 'six', 'plain', '2024-03-01', 0x06, 6, NULL)")
    words.wait_captured()
    before = {row[0]: row for row in source(words)}
    assert before[4][1:5] != BEFORE[4][1:5]

    # the rows are loaded, and it ends before what they had is read again
    with monkeypatch.context() as patch:

        def killed(*given: object) -> None:
            raise Killed

        patch.setattr(filling, "_filled", killed)
        with pytest.raises(Killed):
            loads.load()
    warned = loads.load_all()
    assert "b, c, n, p, s, t: filled by a copy of" in "".join(warned)

    assert loads.load_all() == []
    now = source(words)
    if "mirror" in shapes:
        assert sorted(said(row) for row in words.lake(NAME)) == now
    if "scd2" in shapes:
        versions = loads.versions("words")
        assert sorted(said(row) for row in versions if row["_to_lsn"] is None) == now
        ended = [row for row in versions if row["_to_lsn"] is not None]
        assert {row["id"] for row in ended} == {1, 2, 3, 5}
        # what was loaded of a version stays its value; the text of a time in the digits of now is no column of then
        assert [row["_unknown"] for row in ended] == [["p__text"]] * 4
    # of rows that an event tells of no other is needed: the change table has altered what it had captured, too
    again = [said(row) for row in words.lake(NAME, "history") if row["_op"] == "R" and row["_lsn"] > first]
    assert again == [row for row in now if row[0] == 4]

    # a later change is an event like any other, and a type may change beside no event at all
    words.sql("UPDATE lab.words SET c = 'last' WHERE id = 4")
    words.wait_captured()
    loads.load_all()
    words.sql("ALTER TABLE lab.words ALTER COLUMN c char(12); ALTER TABLE lab.words ALTER COLUMN t datetime2(0)")
    # what this one leaves differs in nothing from what was loaded, and the fractions are gone
    words.sql("ALTER TABLE lab.words ALTER COLUMN t datetime2(6)")
    # over several runs, of which only the last one commits anything
    loads.options = {"copy_rows": 2, "copy_seconds": 0.001}
    words.wait_captured()
    told = [loads.load_all() for _ in range(4)]
    filled = [any(text.startswith("c, t: filled by a copy of") for text in texts) for texts in told]
    assert filled[:2] == [True, True]
    assert not filled[-1]
    if "mirror" in shapes:
        assert sorted(said(row) for row in words.lake(NAME)) == source(words)


@pytest.mark.parametrize(
    ("step", "back"),
    [pytest.param("read", "", marks=pytest.mark.thorough), ("read", "datetime"), ("state", "datetime")],
)
def test_a_window_is_read_again_whose_change_table_is_altered_once_it_is_planned(words, monkeypatch, step, back):
    """Also where the type is the same again: what the first statement has rounded stays so."""
    loads = Loads(words, ("mirror", "history"), ("words",))
    loads.say(on_schema_change=EVOLVE)
    loads.load_all()
    words.sql("UPDATE lab.words SET s = 7, t = '2024-03-01 10:00:00.653' WHERE id < 4")
    words.wait_captured()
    before = words.lake(NAME), words.lake(NAME, "history")
    go_on, done = getattr(CapturedTable, step), []

    def meanwhile(*given, **named):
        if done:
            return go_on(*given, **named)
        done.append(step)
        words.sql("ALTER TABLE lab.words ALTER COLUMN t datetime2(0)")
        if back:
            words.sql(f"ALTER TABLE lab.words ALTER COLUMN t {back}")
        words.wait_captured()
        return go_on(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(CapturedTable, step, meanwhile)
        _, receipt = loads.load(failing=("words",), checkpoint=False)
    (error,) = receipt.tables[0].errors
    assert (error.kind, error.permanent) == ("InstanceChangedError", False)
    assert "the capture has come to an ALTER TABLE at 0x" in error.message
    assert (words.lake(NAME), words.lake(NAME, "history")) == before
    for _ in range(2):
        loads.load_all()
    rows = words.sql("SELECT id, c, s, CONVERT(varchar(19), t, 121) AS t FROM lab.words")
    mirror = [(row["id"], row["c"], row["s"], str(row["t"])[:19]) for row in words.lake(NAME)]
    assert sorted(mirror) == sorted((row["id"], row["c"], row["s"], row["t"]) for row in rows)


def test_a_column_that_got_a_type_which_targets_do_not_hold_and_was_dropped_holds_nothing_up(words):
    """The change table has the later type, and the load goes on with the one of before, where nothing is read into."""
    loads = Loads(words, ("mirror", "history"), ("words",))
    loads.say(on_schema_change=EVOLVE)
    loads.load_all()
    before = {row["id"]: row["s"] for row in words.lake(NAME)}
    words.sql("ALTER TABLE lab.words ALTER COLUMN s varchar(20); ALTER TABLE lab.words DROP COLUMN s")
    words.sql("UPDATE lab.words SET c = 'after' WHERE id = 2")
    words.wait_captured()
    for _ in range(2):
        loads.load_all()
    assert {row["id"]: row["c"] for row in words.lake(NAME)} == {
        row["id"]: row["c"] for row in words.sql("SELECT id, c FROM lab.words")
    }
    assert {row["id"]: row["s"] for row in words.lake(NAME)} == before | {2: None}
