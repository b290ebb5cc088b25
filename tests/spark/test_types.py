"""Extreme values of every type, from the change table and from the copy, into both shapes, unchanged."""

import datetime
from decimal import Decimal

import pytest

from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.shapes import event_columns
from tests.support.spark.origin import positions

pytestmark = [pytest.mark.xdist_group(__name__), pytest.mark.usefixtures("careless_cluster")]

U = datetime.UTC
D = datetime.datetime

# column, T-SQL type, [(T-SQL value, what the lake holds)]
TYPES = [
    ("bit", "bit", [("1", True), ("0", False)]),
    ("tiny", "tinyint", [("255", 255), ("0", 0)]),
    ("small", "smallint", [("-32768", -32768), ("32767", 32767)]),
    ("int", "int", [("-2147483648", -(2**31)), ("2147483647", 2**31 - 1)]),
    ("big", "bigint", [("-9223372036854775808", -(2**63)), ("9223372036854775807", 2**63 - 1)]),
    (
        "dec38",
        "decimal(38,10)",
        [(f"'-{'9' * 28}.{'9' * 10}'", Decimal(f"-{'9' * 28}.{'9' * 10}")), ("0", Decimal("0E-10"))],
    ),
    ("money", "money", [("-922337203685477.5808", Decimal("-922337203685477.5808")), ("0.0001", Decimal("0.0001"))]),
    ("smallmoney", "smallmoney", [("214748.3647", Decimal("214748.3647")), ("-0.5", Decimal("-0.5000"))]),
    ("real", "real", [("3.4028235E38", 3.4028234663852886e38), ("-1.5", -1.5)]),
    ("float", "float", [("1.7976931348623157E308", 1.7976931348623157e308), ("0.1", 0.1)]),
    ("date", "date", [("'0001-01-01'", datetime.date(1, 1, 1)), ("'9999-12-31'", datetime.date(9999, 12, 31))]),
    ("julian", "date", [("'1582-10-10'", datetime.date(1582, 10, 10)), ("'1500-02-28'", datetime.date(1500, 2, 28))]),
    ("time7", "time(7)", [("'23:59:59.9999999'", "23:59:59.9999999"), ("'00:00:00'", "00:00:00.0000000")]),
    ("time0", "time(0)", [("'23:59:59'", "23:59:59"), ("'01:02:03'", "01:02:03")]),
    (
        "datetime",
        "datetime",
        [
            ("'1753-01-01T00:00:00'", D(1753, 1, 1)),
            ("'9999-12-31T23:59:59.997'", D(9999, 12, 31, 23, 59, 59, 997000)),
        ],
    ),
    ("smalldt", "smalldatetime", [("'2079-06-06T23:59:00'", D(2079, 6, 6, 23, 59)), ("'1900-01-01'", D(1900, 1, 1))]),
    (
        "dt2_6",
        "datetime2(6)",
        [
            ("'0001-01-01T00:00:00.000001'", D(1, 1, 1, microsecond=1)),
            ("'9999-12-31T23:59:59.999999'", D(9999, 12, 31, 23, 59, 59, 999999)),
        ],
    ),
    (
        "dt2_7",
        "datetime2(7)",
        [
            ("'9999-12-31T23:59:59.9999999'", D(9999, 12, 31, 23, 59, 59, 999999)),
            # an hour that does not exist in many zones
            ("'2021-03-28T02:30:00.1234567'", D(2021, 3, 28, 2, 30, 0, 123456)),
        ],
    ),
    (
        "dto",
        "datetimeoffset(7)",
        [
            ("'2020-01-01T00:30:00.1234567+14:00'", D(2019, 12, 31, 10, 30, 0, 123456, U)),
            ("'2020-06-01T12:00:00.0000001-03:30'", D(2020, 6, 1, 15, 30, tzinfo=U)),
        ],
    ),
    ("char", "char(5)", [("'ab'", "ab   "), ("' x'", " x   ")]),
    ("varchar", "varchar(20)", [("'a b  '", "a b  "), ("''", "")]),
    ("nchar", "nchar(3)", [("N'ż'", "ż  "), ("N'😀'", "😀 ")]),
    ("nvarchar", "nvarchar(30)", [("N'𝄞 Ω \\ '' \" %'", "𝄞 Ω \\ ' \" %"), ("N'null'", "null")]),
    ("nmax", "nvarchar(max)", [("REPLICATE(CONVERT(nvarchar(max), N'ß'), 9000)", "ß" * 9000), ("N''", "")]),
    ("vmax", "varbinary(max)", [("0x" + "00FF" * 5000, b"\x00\xff" * 5000), ("0x", b"")]),
    ("bin", "binary(4)", [("0x01", b"\x01\0\0\0"), ("0xFFFFFFFF", b"\xff" * 4)]),
    ("varbin", "varbinary(10)", [("0x00", b"\0"), ("0x8000", b"\x80\0")]),
    (
        "guid",
        "uniqueidentifier",
        [
            ("'6f9619ff-8b86-d011-b42d-00c04fc964ff'", "6F9619FF-8B86-D011-B42D-00C04FC964FF"),
            ("'00000000-0000-0000-0000-000000000001'", "00000000-0000-0000-0000-000000000001"),
        ],
    ),
    ("xml", "xml", [("N'<a>ä</a>'", "<a>ä</a>"), ("N'<b/>'", "<b/>")]),
    ("odd ]name", "int", [("1", 1), ("-1", -1)]),
]
TEXTS = {
    "dt2_7__text": ["9999-12-31 23:59:59.9999999", "2021-03-28 02:30:00.1234567"],
    "dto__text": ["2020-01-01 00:30:00.1234567 +14:00", "2020-06-01 12:00:00.0000001 -03:30"],
}


def expected(position):
    data = {name: values[position][1] for name, _, values in TYPES}
    return {**data, **{name: texts[position] for name, texts in TEXTS.items()}}


def plain(row):
    """The data of a row: bytes instead of bytearray, and in UTC the instant, for which PySpark takes the local zone."""
    data = {name: value for name, value in row.items() if name not in (*event_columns(Lsn), "_tran_id", "_healed")}
    data["dto"] = data["dto"] and data["dto"].astimezone(U)
    return {name: bytes(value) if isinstance(value, bytearray) else value for name, value in data.items()}


@pytest.mark.parametrize(
    ("format_", "shapes"),
    [
        ("iceberg", ("mirror", "history")),
        pytest.param("delta", ("mirror", "history"), marks=pytest.mark.thorough),
        ("parquet", ("history",)),
    ],
)
def test_values_arrive_as_they_are(live, format_, shapes):
    live.format = format_
    declared = ", ".join(f"[{name.replace(']', ']]')}] {type_} NULL" for name, type_, _ in TYPES)
    live.sql(f"CREATE TABLE dbo.types (id int NOT NULL PRIMARY KEY, {declared}, rv rowversion)")
    names = ", ".join(f"[{name.replace(']', ']]')}]" for name, _, _ in TYPES)

    def insert(id_, position):
        values = ", ".join("NULL" if position is None else v[position][0] for _, _, v in TYPES)
        live.sql(f"INSERT INTO dbo.types (id, {names}) VALUES ({id_}, {values})")

    for id_, position in enumerate([0, 1, None]):
        insert(id_, position)
    live.enable("dbo.types")
    insert(10, 0)
    live.wait_captured()
    first = live.load(live.table("dbo.types", shapes))
    for id_, position in enumerate([0, 1, None], start=20):
        insert(id_, position)
    live.wait_captured()
    second = live.load(live.table("dbo.types", shapes, at=positions(first)))

    assert [receipt.tables[0].error for receipt in (first, second)] == [None, None]
    versions = {row["id"]: row["rv"] for row in live.sql("SELECT id, rv FROM dbo.types")}
    nothing = dict.fromkeys(expected(0))
    wanted = {0: expected(0), 1: expected(1), 2: nothing, 10: expected(0)}
    wanted |= {20: expected(0), 21: expected(1), 22: nothing}
    wanted = {id_: {"id": id_, **values, "rv": versions[id_]} for id_, values in wanted.items()}
    for shape in shapes:
        rows = [plain(row) for row in live.lake("dbo.types", shape)]
        found = {row["id"]: row for row in rows}
        assert len(rows) == len(found)
        assert found.keys() == wanted.keys()
        for id_, values in wanted.items():
            assert found[id_].keys() == values.keys()
            for name, value in values.items():
                assert (shape, id_, name, found[id_][name]) == (shape, id_, name, value)
                assert type(found[id_][name]) is type(value)
