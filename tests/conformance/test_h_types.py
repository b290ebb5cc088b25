"""Section H: every type as a column, through the change table, and as a parameter."""

from __future__ import annotations

import datetime
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from tests.support.conformance.database import Database


@dataclass(frozen=True)
class Kind:
    """A type and values of it.

    :param described: max_length, precision and scale in sys.columns
    :param values: by literal: what pymssql returns, and the text that the server makes of it (None: not compared)
    """

    name: str
    described: tuple[int, int, int]
    values: dict[str, tuple[Any, str | None]] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def _day(*parts: int) -> datetime.datetime:
    return datetime.datetime(*parts)


def _at(minutes: int, *parts: int) -> datetime.datetime:
    return datetime.datetime(*parts, tzinfo=datetime.timezone(datetime.timedelta(minutes=minutes)))


_MANY = "REPLICATE(CAST('ab' AS varchar(max))"
_GUID = "6F9619FF-8B86-D011-B42D-00C04FC964FF"

KINDS = [
    Kind("bit", (1, 1, 0), {"0": (False, "0"), "1": (True, "1"), "7": (True, "1")}),
    Kind("tinyint", (1, 3, 0), {"0": (0, "0"), "127": (127, "127"), "128": (128, "128"), "255": (255, "255")}),
    Kind("smallint", (2, 5, 0), {"-32768": (-32768, "-32768"), "32767": (32767, "32767")}),
    Kind("int", (4, 10, 0), {"-2147483648": (-(2**31), "-2147483648"), "2147483647": (2**31 - 1, "2147483647")}),
    Kind(
        "bigint",
        (8, 19, 0),
        {
            "-9223372036854775808": (-(2**63), "-9223372036854775808"),
            "9223372036854775807": (2**63 - 1, "9223372036854775807"),
        },
    ),
    Kind(
        "decimal(9,2)",
        (5, 9, 2),
        {"-9999999.99": (Decimal("-9999999.99"), "-9999999.99"), "0": (Decimal("0.00"), "0.00")},
    ),
    Kind("decimal(10,10)", (9, 10, 10), {"0.0123456789": (Decimal("0.0123456789"), None)}),
    Kind("decimal(20,0)", (13, 20, 0), {"'-12345678901234567890'": (Decimal(-12345678901234567890), None)}),
    Kind(
        "decimal(38,10)",
        (17, 38, 10),
        {
            "'9999999999999999999999999999.9999999999'": (
                Decimal("9999999999999999999999999999.9999999999"),
                "9999999999999999999999999999.9999999999",
            ),
            "'-1234567890123456789012345678.0123456789'": (
                Decimal("-1234567890123456789012345678.0123456789"),
                "-1234567890123456789012345678.0123456789",
            ),
        },
    ),
    Kind("decimal(38,0)", (17, 38, 0), {"'" + "9" * 38 + "'": (Decimal("9" * 38), "9" * 38)}),
    Kind(
        "money",
        (8, 19, 4),
        {
            "922337203685477.5807": (Decimal("922337203685477.5807"), None),
            "-922337203685477.5808": (Decimal("-922337203685477.5808"), None),
            "0.0001": (Decimal("0.0001"), None),
        },
    ),
    Kind(
        "smallmoney",
        (4, 10, 4),
        {"214748.3647": (Decimal("214748.3647"), None), "-214748.3648": (Decimal("-214748.3648"), None)},
    ),
    Kind("real", (4, 24, 0), {"1.5": (1.5, "1.5"), "-3.4028235E38": (-3.4028234663852886e38, None)}),
    Kind(
        "float",
        (8, 53, 0),
        {
            "0.1": (0.1, None),
            "-1.7976931348623157E308": (-1.7976931348623157e308, None),
            "2.2250738585072014E-308": (2.2250738585072014e-308, None),
        },
    ),
    Kind(
        "date",
        (3, 10, 0),
        {
            "'0001-01-01'": (datetime.date(1, 1, 1), "0001-01-01"),
            "'1582-10-10'": (datetime.date(1582, 10, 10), "1582-10-10"),
            "'2024-02-29'": (datetime.date(2024, 2, 29), "2024-02-29"),
            "'9999-12-31'": (datetime.date(9999, 12, 31), "9999-12-31"),
        },
    ),
    Kind(
        "time(7)",
        (5, 16, 7),
        {
            "'00:00:00'": (datetime.time(0), "00:00:00.0000000"),
            "'23:59:59.9999999'": (datetime.time(23, 59, 59, 999999), "23:59:59.9999999"),
            "'13:50:01.1234567'": (datetime.time(13, 50, 1, 123456), "13:50:01.1234567"),
        },
    ),
    Kind("time(3)", (4, 12, 3), {"'13:50:01.123'": (datetime.time(13, 50, 1, 123000), "13:50:01.123")}),
    Kind("time(0)", (3, 8, 0), {"'13:50:01'": (datetime.time(13, 50, 1), "13:50:01")}),
    Kind(
        "datetime",
        (8, 23, 3),
        {
            "'1753-01-01'": (_day(1753, 1, 1), "1753-01-01 00:00:00.000"),
            "'9999-12-31 23:59:59.997'": (_day(9999, 12, 31, 23, 59, 59, 997000), "9999-12-31 23:59:59.997"),
            "'2024-02-29 12:34:56.003'": (_day(2024, 2, 29, 12, 34, 56, 3000), "2024-02-29 12:34:56.003"),
            "'2024-02-29 12:34:56.005'": (_day(2024, 2, 29, 12, 34, 56, 7000), "2024-02-29 12:34:56.007"),
            # a literal .999 rounds to the next second
            "'2024-02-29 23:59:59.999'": (_day(2024, 3, 1), "2024-03-01 00:00:00.000"),
        },
    ),
    Kind(
        "smalldatetime",
        (4, 16, 0),
        {
            "'1900-01-01'": (_day(1900, 1, 1), None),
            "'2079-06-06 23:59'": (_day(2079, 6, 6, 23, 59), None),
        },
    ),
    Kind(
        "datetime2(7)",
        (8, 27, 7),
        {
            "'0001-01-01'": (_day(1, 1, 1), "0001-01-01 00:00:00.0000000"),
            "'1582-10-10 01:02:03'": (_day(1582, 10, 10, 1, 2, 3), "1582-10-10 01:02:03.0000000"),
            "'2024-02-29 12:34:56.1234567'": (_day(2024, 2, 29, 12, 34, 56, 123456), "2024-02-29 12:34:56.1234567"),
            "'9999-12-31 23:59:59.9999999'": (
                _day(9999, 12, 31, 23, 59, 59, 999999),
                "9999-12-31 23:59:59.9999999",
            ),
        },
    ),
    Kind(
        "datetime2(3)",
        (7, 23, 3),
        {"'2024-02-29 12:34:56.123'": (_day(2024, 2, 29, 12, 34, 56, 123000), "2024-02-29 12:34:56.123")},
    ),
    Kind("datetime2(0)", (6, 19, 0), {"'2024-02-29 12:34:56'": (_day(2024, 2, 29, 12, 34, 56), "2024-02-29 12:34:56")}),
    Kind(
        "datetimeoffset(7)",
        (10, 34, 7),
        {
            "'2024-02-29 12:34:56.1234567 -05:30'": (
                _at(-330, 2024, 2, 29, 12, 34, 56, 123456),
                "2024-02-29 12:34:56.1234567 -05:30",
            ),
            "'0001-01-01 14:00:00 +14:00'": (_at(840, 1, 1, 1, 14), "0001-01-01 14:00:00.0000000 +14:00"),
            "'9999-12-31 09:59:59.9999999 -14:00'": (
                _at(-840, 9999, 12, 31, 9, 59, 59, 999999),
                "9999-12-31 09:59:59.9999999 -14:00",
            ),
        },
    ),
    Kind(
        "datetimeoffset(0)",
        (8, 26, 0),
        {"'2024-02-29 12:34:56 +00:00'": (_at(0, 2024, 2, 29, 12, 34, 56), "2024-02-29 12:34:56 +00:00")},
    ),
    Kind("char(5)", (5, 0, 0), {"'ab'": ("ab   ", "ab   "), "''": ("     ", "     ")}),
    Kind("varchar(10)", (10, 0, 0), {"''": ("", ""), "'it''s'": ("it's", "it's"), "'é'": ("é", "é")}),
    Kind("varchar(max)", (-1, 0, 0), {f"{_MANY}, 20000)": ("ab" * 20000, None), "''": ("", "")}),
    Kind("nchar(5)", (10, 0, 0), {"N'ab'": ("ab   ", "ab   ")}),
    Kind("nvarchar(10)", (20, 0, 0), {"N''": ("", ""), "N'é漢😀'": ("é漢😀", "é漢😀")}),
    Kind("nvarchar(max)", (-1, 0, 0), {"REPLICATE(CAST(N'漢a' AS nvarchar(max)), 15000)": ("漢a" * 15000, None)}),
    Kind("text", (16, 0, 0), {"'plain'": ("plain", None)}),
    Kind("ntext", (16, 0, 0), {"N'漢'": ("漢", None)}),
    Kind("binary(5)", (5, 0, 0), {"0x0102": (b"\x01\x02\x00\x00\x00", None)}),
    Kind("varbinary(10)", (10, 0, 0), {"0x": (b"", None), "0x00FF00": (b"\x00\xff\x00", None)}),
    Kind("varbinary(max)", (-1, 0, 0), {f"CAST({_MANY}, 25000) AS varbinary(max))": (b"ab" * 25000, None)}),
    Kind("image", (16, 0, 0), {"0x00FF00": (b"\x00\xff\x00", None)}),
    Kind("uniqueidentifier", (16, 0, 0), {f"'{_GUID.lower()}'": (uuid.UUID(_GUID), _GUID)}),
    Kind("xml", (-1, 0, 0), {"'<a b=\"1\">é</a>'": ('<a b="1">é</a>', None)}),
]  # fmt: skip

_TEXT_POINTERS = ("text", "ntext", "image")


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_78_79_column(plain: Database, kind: Kind) -> None:
    plain.run(f"CREATE TABLE dbo.t (id int PRIMARY KEY, v {kind.name} NULL, w {kind.name} NULL)")
    literals = [*kind.values, "NULL"]
    for i, literal in enumerate(literals):
        plain.run(f"INSERT INTO dbo.t (id, v) VALUES ({i}, {literal})")
    wanted = [(i, value, None) for i, (value, _) in enumerate(kind.values.values())]
    assert plain.run("SELECT id, v, w FROM dbo.t ORDER BY id") == [*wanted, (len(wanted), None, None)]
    for i, (_, text) in enumerate(kind.values.values()):
        if text is not None:
            style = ", 121" if "time" in kind.name or kind.name == "date" else ""
            assert plain.value(f"SELECT CONVERT(nvarchar(100), v{style}) FROM dbo.t WHERE id = {i}") == text


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_78_change_table(db: Database, kind: Kind) -> None:
    db.run(f"CREATE TABLE dbo.t (id int PRIMARY KEY, v {kind.name} NULL)")
    db.track("t")
    literals = [*kind.values, "NULL"]
    for i, literal in enumerate(literals):
        db.run(f"INSERT INTO dbo.t VALUES ({i}, {literal})")
    db.commit("DELETE FROM dbo.t")
    values = [*(value for value, _ in kind.values.values()), None]
    deleted = [None if kind.name in _TEXT_POINTERS else value for value in values]
    rows = db.changes("__$operation, id, v")
    assert rows[: len(values)] == [(2, i, value) for i, value in enumerate(values)]
    assert sorted(rows[len(values) :], key=lambda row: row[1]) == [(1, i, value) for i, value in enumerate(deleted)]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_78_description(db: Database, kind: Kind) -> None:
    db.run(f"CREATE TABLE dbo.t (id int PRIMARY KEY, v {kind.name} NULL, w {kind.name} NOT NULL)")
    db.track("t")
    columns = "TYPE_NAME(user_type_id), max_length, precision, scale, is_nullable"
    name = kind.name.split("(")[0]
    described = (name, *kind.described)
    rows = db.run(f"SELECT {columns} FROM sys.columns WHERE object_id = OBJECT_ID('dbo.t') AND name IN ('v', 'w')")
    assert rows == [(*described, True), (*described, False)]
    captured = db.run(
        f"SELECT {columns} FROM sys.columns WHERE object_id = OBJECT_ID('cdc.dbo_t_CT') AND name IN ('v', 'w')"
    )
    assert captured == [(*described, True)] * 2
    types = db.run("SELECT column_type FROM cdc.captured_columns WHERE column_name IN ('v', 'w')")
    assert types == [(name,)] * 2


def test_78_rowversion_goes_by_its_old_name(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY, v rowversion)")
    db.track("t")
    assert db.value("SELECT column_type FROM cdc.captured_columns WHERE column_name = 'v'") == "timestamp"
    assert (
        db.value("SELECT DATA_TYPE FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_NAME = 't' AND COLUMN_NAME = 'v'")
        == "timestamp"
    )


def test_78_sysname_is_captured_as_its_base_type_memory(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY, v sysname)")
    db.track("t")
    db.commit("INSERT INTO dbo.t VALUES (1, N'a name')")
    assert db.changes("id, v") == [(1, "a name")]
    described = (
        "SELECT TYPE_NAME(user_type_id), max_length FROM sys.columns WHERE name = 'v' AND object_id = OBJECT_ID('{}')"
    )
    assert db.run(described.format("dbo.t")) == [("sysname", 256)]
    assert db.run(described.format("cdc.dbo_t_CT")) == [("nvarchar", 256)]


def test_78_decimal_below_one_as_text(plain: Database) -> None:
    assert plain.value("SELECT CAST(CAST(0.5 AS decimal(10,10)) AS varchar(20))") == "0.5000000000"


def test_78_numeric_keeps_its_name(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (v numeric(5, 1))")
    assert (
        plain.value("SELECT TYPE_NAME(user_type_id) FROM sys.columns WHERE object_id = OBJECT_ID('dbo.t')") == "numeric"
    )


@pytest.mark.parametrize(
    ("declared", "stored"), [("float(24)", "real"), ("float(25)", "float"), ("timestamp", "timestamp")]
)
def test_78_types_by_other_names(plain: Database, declared: str, stored: str) -> None:
    plain.run(f"CREATE TABLE dbo.t (id int PRIMARY KEY, v {declared})")
    rows = plain.run(
        "SELECT TYPE_NAME(user_type_id) FROM sys.columns WHERE object_id = OBJECT_ID('dbo.t') AND name = 'v'"
    )
    assert rows == [(stored,)]


def test_78_rowversion_counts_the_changes_of_a_database(db: Database) -> None:
    db.run(
        "CREATE TABLE dbo.t (id int PRIMARY KEY, v rowversion) CREATE TABLE dbo.u (id int PRIMARY KEY, v rowversion)"
    )
    db.run("INSERT INTO dbo.t (id) VALUES (1) INSERT INTO dbo.u (id) VALUES (1) UPDATE dbo.t SET id = 1")
    (second,), (third,) = db.run("SELECT v FROM dbo.u UNION ALL SELECT v FROM dbo.t")
    assert len(second) == len(third) == 8
    assert int.from_bytes(third, "big") - int.from_bytes(second, "big") == 1


def test_79_decimal_literal_of_38_digits(plain: Database) -> None:
    digits = "-1234567890123456789012345678.0123456789"
    assert plain.value(f"SELECT {digits}") == Decimal(digits)


@pytest.mark.parametrize(
    ("declared", "value", "number"),
    [
        ("tinyint", "256", 220),
        ("tinyint", "-1", 220),
        ("smallint", "32768", 220),
        ("int", "2147483648", 8115),
        ("decimal(4,2)", "100", 8115),
        ("varchar(2)", "'abc'", 2628),
        ("binary(2)", "0x010203", 2628),
        ("datetime", "'1752-12-31'", 242),
        ("date", "'2023-02-29'", 241),
        ("uniqueidentifier", "'nonsense'", 8169),
        ("xml", "'<a>'", None),
    ],
)
def test_78_values_that_do_not_fit_memory(plain: Database, declared: str, value: str, number: int | None) -> None:
    plain.run(f"CREATE TABLE dbo.t (v {declared})")
    found = plain.number(f"INSERT INTO dbo.t VALUES ({value})")
    assert number is None or found == number
    assert plain.run("SELECT v FROM dbo.t") == []


# Parameters


_DIGITS = "-1234567890123456789012345678.0123456789"
_PARAMETERS: dict[str, tuple[str, Any]] = {
    "bit": ("1", True),
    "tinyint": ("255", 255),
    "bigint": ("-9223372036854775808", -(2**63)),
    "decimal(38,10)": (f"'{_DIGITS}'", Decimal(_DIGITS)),
    "money": ("-922337203685477.5808", Decimal("-922337203685477.5808")),
    "real": ("1.5", 1.5),
    "float": ("-1.7976931348623157E308", -1.7976931348623157e308),
    "date": ("'0001-01-01'", datetime.date(1, 1, 1)),
    "datetime": ("'2024-02-29 12:34:56.007'", _day(2024, 2, 29, 12, 34, 56, 7000)),
    "datetime2(7)": ("'9999-12-31 23:59:59.999999'", _day(9999, 12, 31, 23, 59, 59, 999999)),
    "datetimeoffset(7)": ("'2024-02-29 12:34:56 +14:00'", _at(840, 2024, 2, 29, 12, 34, 56)),
    "nvarchar(20)": ("N'é漢😀'", "é漢😀"),
    "varbinary(20)": ("0x00FF", b"\x00\xff"),
    "uniqueidentifier": (f"'{_GUID}'", uuid.UUID(_GUID)),
}  # fmt: skip


@pytest.mark.parametrize(("declared", "given"), _PARAMETERS.items(), ids=_PARAMETERS)
def test_78_parameter_of_a_prepared_statement(plain: Database, declared: str, given: tuple[str, Any]) -> None:
    literal, value = given
    inner = f"N'SELECT @p, @n', N'@p {declared}, @n {declared}'"
    call = f"DECLARE @v {declared} = {literal} EXEC sp_executesql {inner}, @v, NULL"
    assert plain.run(call) == [(value, None)]


_PYTHON: dict[str, list[Any]] = {
    "bigint": [True, 255, -(2**63), None],
    "decimal(20,5)": [Decimal("-12345.67800")],
    "float": [1.5],
    # what is compared has known weights
    "nvarchar(20)": ["é€ß'", ""],
    "date": [datetime.date(2024, 2, 29)],
    "datetime": [_day(2024, 2, 29, 12, 34, 56, 7000)],
}


@pytest.mark.parametrize(("declared", "values"), _PYTHON.items(), ids=_PYTHON)
def test_78_parameter_as_the_driver_writes_it(plain: Database, declared: str, values: list[Any]) -> None:
    plain.run(f"CREATE TABLE dbo.t (id int PRIMARY KEY, v {declared})")
    for i, value in enumerate(values):
        plain.run("INSERT INTO dbo.t VALUES (%s, %s)", i, value)
        found = [] if value is None else [(i,)]
        assert plain.run("SELECT id FROM dbo.t WHERE v = %s", value) == found
    assert plain.run("SELECT v FROM dbo.t ORDER BY id") == [(value,) for value in values]


def test_78_many_rows_compared_in_full(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY, n nvarchar(20), d decimal(12,3), t datetime2(3))")
    count, size = 5000, 1000
    start = _day(2000, 1, 1)

    def row(i: int) -> tuple:
        return (
            i,
            None if i % 7 == 0 else f"é{i}",
            None if i % 11 == 0 else Decimal(i * 1001) / 1000,
            start + datetime.timedelta(milliseconds=i * 86_400_123),
        )

    for first in range(0, count, size):
        values = ", ".join(
            f"({i}, {'NULL' if n is None else f'N{n!r}'}, {'NULL' if d is None else d}, '{t:%Y-%m-%dT%H:%M:%S.%f}')"
            for i, n, d, t in map(row, range(first, first + size))
        ).replace("000')", "')")
        plain.run(f"INSERT INTO dbo.t VALUES {values}")
    assert plain.run("SELECT * FROM dbo.t ORDER BY id") == [row(i) for i in range(count)]
