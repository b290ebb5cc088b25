"""Values and types of expressions, worked out by hand from the T-SQL rules."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from airflow_provider_mssql_cdc.sandbox.types import SqlType
from tests.sandbox.tsql.conftest import Client

_DAY_2024_01_05 = 738889 * 864_000_000_000  # date.toordinal() - 1 days of 100 ns ticks


def _dec(precision: int, scale: int) -> SqlType:
    return SqlType("decimal", 0, precision, scale)


_INT, _BIGINT = SqlType("int"), SqlType("bigint")

CASES: list[tuple[str, Any, SqlType]] = [
    ("1 + 1", 2, _INT),
    ("7 / 2", 3, _INT),
    ("-7 / 2", -3, _INT),
    ("-7 % 2", -1, _INT),
    ("3000000000", Decimal(3000000000), _dec(10, 0)),
    ("CAST(1 AS bigint) + 1", 2, _BIGINT),
    ("1.50", Decimal("1.50"), _dec(3, 2)),
    ("1.5 + 2.25", Decimal("3.75"), _dec(4, 2)),
    ("1.5 * 2.25", Decimal("3.375"), _dec(6, 3)),
    ("1.0 / 3", Decimal("0.333333"), _dec(7, 6)),
    ("2.0 / 3", Decimal("0.666666"), _dec(7, 6)),
    ("-2.0 / 3", Decimal("-0.666666"), _dec(7, 6)),
    ("CAST(10 AS decimal(10,2)) / CAST(4 AS int)", Decimal("2.5"), _dec(21, 13)),
    ("CAST(1.25 AS decimal(10,2)) * CAST(3 AS int)", Decimal("3.75"), _dec(21, 2)),
    ("1e3", 1000.0, SqlType("float")),
    ("CAST(1.9 AS int)", 1, _INT),
    ("CAST(-1.9 AS int)", -1, _INT),
    ("CAST(CAST(1.5 AS money) AS int)", 2, _INT),
    ("CAST(1.255 AS decimal(5,2))", Decimal("1.26"), _dec(5, 2)),
    ("CAST('' AS int)", 0, _INT),
    ("CAST(' 12 ' AS int)", 12, _INT),
    ("TRY_CAST('x' AS int)", None, _INT),
    ("TRY_CONVERT(date, '2024-02-30')", None, SqlType("date")),
    ("'a' + 'bc'", "abc", SqlType("varchar", 3)),
    ("N'a' + 'bc'", "abc", SqlType("nvarchar", 3)),
    ("'a' + NULL", None, SqlType("varchar", 1)),
    ("'5' + 1", 6, _INT),
    ("CONCAT('a', NULL, 1)", "a1", SqlType("varchar", 41)),
    ("CAST('abc' AS char(5))", "abc  ", SqlType("char", 5)),
    ("CAST('abcdef' AS varchar(3))", "abc", SqlType("varchar", 3)),
    ("CAST('a' AS varchar)", "a", SqlType("varchar", 30)),
    ("CAST(N'a€漢' AS varchar(5))", "a€?", SqlType("varchar", 5)),
    ("LEN('ab  ')", 2, _INT),
    ("LEN(N'a😀')", 3, _INT),
    ("DATALENGTH(N'a😀')", 6, _INT),
    ("DATALENGTH('ab ')", 3, _INT),
    *(
        (f"CONVERT(varchar(30), CAST('2024-02-09T13:04:05.677' AS datetime), {style})", shown, SqlType("varchar", 30))
        for style, shown in {
            1: "02/09/24", 101: "02/09/2024", 2: "24.02.09", 102: "2024.02.09", 103: "09/02/2024", 104: "09.02.2024",
            105: "09-02-2024", 106: "09 Feb 2024", 107: "Feb 09, 2024", 108: "13:04:05", 110: "02-09-2024",
            111: "2024/02/09", 12: "240209", 113: "09 Feb 2024 13:04:05:677", 114: "13:04:05:677",
        }.items()
    ),
    ("CONVERT(char(10), CAST('2024-02-09' AS date), 103)", "09/02/2024", SqlType("char", 10)),
    ("CONVERT(varchar(8), CAST('13:04:05.9' AS time), 108)", "13:04:05", SqlType("varchar", 8)),
    ("UPPER('aé') + LOWER('B')", "AÉb", SqlType("varchar", 3)),
    ("SUBSTRING('abcdef', 2, 3)", "bcd", SqlType("varchar", 3)),
    ("SUBSTRING('abc', 0, 2)", "a", SqlType("varchar", 2)),
    ("SUBSTRING(0x0102030405, 2, 2)", b"\x02\x03", SqlType("varbinary", 2)),
    ("LEFT('abc', 2) + RIGHT('abc', 1)", "abc", SqlType("varchar", 6)),
    ("LTRIM('  a') + RTRIM('b  ')", "ab", SqlType("varchar", 6)),
    ("REPLACE('aAb', 'a', 'x')", "xxb", SqlType("varchar", 8000)),
    ("CHARINDEX('B', 'abc')", 2, _INT),
    ("0x0A", b"\n", SqlType("varbinary", 1)),
    ("CAST(0x01 AS binary(3))", b"\x01\x00\x00", SqlType("binary", 3)),
    ("CAST(0x010203 AS binary(2))", b"\x01\x02", SqlType("binary", 2)),
    ("CAST(1 AS binary(10))", bytes(9) + b"\x01", SqlType("binary", 10)),
    ("CAST(-1 AS binary(4))", b"\xff" * 4, SqlType("binary", 4)),
    ("CAST(0xFFFFFFFF AS int)", -1, _INT),
    ("CAST(0x0100 AS int)", 256, _INT),
    ("CONVERT(varchar(22), 0x0000002D00000580001D, 1)", "0x0000002D00000580001D", SqlType("varchar", 22)),
    ("CONVERT(varchar(20), 0x0000002D00000580001D, 2)", "0000002D00000580001D", SqlType("varchar", 20)),
    ("CONVERT(binary(2), '0x0aFf', 1)", b"\x0a\xff", SqlType("binary", 2)),
    ("ISNULL(CAST(NULL AS varchar(2)), 'abcd')", "ab", SqlType("varchar", 2)),
    ("COALESCE(NULL, 'abcd', N'x')", "abcd", SqlType("nvarchar", 4)),
    ("COALESCE(NULL, 1, 2.5)", Decimal("1.0"), _dec(11, 1)),
    ("NULLIF(1, 1)", None, _INT),
    ("IIF('a' = 'A ', 1, 2)", 1, _INT),
    ("CASE 2 WHEN 1 THEN 'a' WHEN 2 THEN 'bcd' END", "bcd", SqlType("varchar", 3)),
    ("CASE WHEN 1 = 1 THEN 1 ELSE 2.5 END", Decimal("1.0"), _dec(11, 1)),
    ("CASE WHEN 0x01 = 0x0100 THEN 1 ELSE 0 END", 1, _INT),
    ("CASE WHEN CAST(0x00 AS binary(10)) <> 0x00 THEN 1 ELSE 0 END", 0, _INT),
    ("CASE WHEN NULL = NULL THEN 1 ELSE 0 END", 0, _INT),
    ("CASE WHEN 'abc' LIKE '[a-c]B%' THEN 1 ELSE 0 END", 1, _INT),
    ("CASE WHEN 'a_c' LIKE 'a!_c' ESCAPE '!' THEN 1 ELSE 0 END", 1, _INT),
    ("CASE WHEN 'axc' LIKE 'a!_c' ESCAPE '!' THEN 1 ELSE 0 END", 0, _INT),
    ("CASE WHEN 'a' COLLATE Latin1_General_BIN2 = 'A' THEN 1 ELSE 0 END", 0, _INT),
    ("CAST('2024-01-05' AS date)", datetime.date(2024, 1, 5), SqlType("date")),
    ("CAST('20240105' AS datetime)", datetime.datetime(2024, 1, 5), SqlType("datetime")),
    (
        "CAST('2024-01-05 10:11:12.998' AS datetime)",
        datetime.datetime(2024, 1, 5, 10, 11, 12, 997000),
        SqlType("datetime"),
    ),
    ("CAST('2024-01-05 23:59:59.999' AS datetime)", datetime.datetime(2024, 1, 6), SqlType("datetime")),
    (
        "CAST('2024-01-05 10:11:12.1234567' "
        "AS datetime2(7))"
    , _DAY_2024_01_05 + 366721234567, SqlType("datetime2", 0, 0, 7)),
    ("CAST('2024-01-05 10:11:12.1235' AS datetime2(3))", _DAY_2024_01_05 + 366721240000, SqlType("datetime2", 0, 0, 3)),
    ("CAST('9999-12-31 23:59:59.9999999' AS datetime2)", 3155378975999999999, SqlType("datetime2", 0, 0, 7)),
    (
        "CAST('2024-01-05 02:00:00 +02:00' AS datetimeoffset(0))",
        {"utc_ticks": _DAY_2024_01_05, "offset_minutes": 120},
        SqlType("datetimeoffset", 0, 0, 0),
    ),
    (
        "CAST('0001-01-01 14:00:00 +14:00' AS datetimeoffset)",
        {"utc_ticks": 0, "offset_minutes": 840},
        SqlType("datetimeoffset", 0, 0, 7),
    ),
    ("0.12345678901234567890123456789012345678", Decimal("0.12345678901234567890123456789012345678"), _dec(38, 38)),
    ("12345678901234567890123456789012345678", Decimal("12345678901234567890123456789012345678"), _dec(38, 0)),
    ("PARSE('2024-01-05' AS date)", datetime.date(2024, 1, 5), SqlType("date")),
    ("TRY_PARSE('12' AS int)", 12, _INT),
    (
        "TRY_CAST('2024-01-05 10:11:31' AS smalldatetime)",
        datetime.datetime(2024, 1, 5, 10, 12),
        SqlType("smalldatetime"),
    ),
    ("TRY_CAST('1752-12-31' AS datetime)", None, SqlType("datetime")),
    ("TRY_CAST('x' AS datetimeoffset(0))", None, SqlType("datetimeoffset", 0, 0, 0)),
    ("TRY_CAST('0001-01-01 00:00:00 +01:00' AS datetimeoffset)", None, SqlType("datetimeoffset", 0, 0, 7)),
    ("DATENAME(quarter, '2024-01-05')", "1", SqlType("nvarchar", 30)),
    ("CAST('10:11:12.1234567' AS time)", 366721234567, SqlType("time", 0, 0, 7)),
    ("CAST('2024-01-05 10:11:30' AS smalldatetime)", datetime.datetime(2024, 1, 5, 10, 12), SqlType("smalldatetime")),
    ("CONVERT(varchar(10), CAST('2024-01-05' AS date), 23)", "2024-01-05", SqlType("varchar", 10)),
    (
        "CONVERT(varchar(23), CAST('2024-01-05 10:11:12.997' "
        "AS datetime), 121)"
    , "2024-01-05 10:11:12.997", SqlType("varchar", 23)),
    (
        "CONVERT(varchar(19), CAST('2024-01-05 10:11:12.997' "
        "AS datetime), 120)"
    , "2024-01-05 10:11:12", SqlType("varchar", 19)),
    (
        "CONVERT(varchar(30), CAST('2024-01-05 10:11:12.997' "
        "AS datetime), 126)"
    , "2024-01-05T10:11:12.997", SqlType("varchar", 30)),
    (
        "CAST(CAST('2024-01-05 10:11:12' AS "
        "datetime2(3)) AS varchar(30))"
    , "2024-01-05 10:11:12.000", SqlType("varchar", 30)),
    ("CAST(CAST('2024-01-05 01:02:00' AS datetime) AS varchar(30))", "Jan  5 2024  1:02AM", SqlType("varchar", 30)),
    ("DATEADD(month, 1, CAST('2024-01-31' AS date))", datetime.date(2024, 2, 29), SqlType("date")),
    (
        "DATEADD(second, -1, CAST('2024-01-05' "
        "AS datetime))"
    , datetime.datetime(2024, 1, 4, 23, 59, 59), SqlType("datetime")),
    ("DATEDIFF(day, '2024-01-05 23:59:59', '2024-01-06 00:00:01')", 1, _INT),
    ("DATEDIFF(year, '2023-12-31', '2024-01-01')", 1, _INT),
    ("DATEPART(weekday, CAST('2024-01-05' AS date))", 6, _INT),
    ("DATEPART(tzoffset, CAST('2024-01-05 00:00:00 -03:30' AS datetimeoffset))", -210, _INT),
    (
        "CAST('{6F9619FF-8B86-D011-B42D-00C04FC964FF}' AS "
        "uniqueidentifier)"
    , "6F9619FF-8B86-D011-B42D-00C04FC964FF", SqlType("uniqueidentifier")),
    (
        "CAST(CAST('6F9619FF-8B86-D011-B42D-00C04FC964FF' AS uniqueidentifier) AS binary(16))",
        bytes.fromhex("FF19966F868B11D0B42D00C04FC964FF"),
        SqlType("binary", 16),
    ),
    ("sys.fn_cdc_increment_lsn(0x0000002D00000580FFFF)", bytes.fromhex("0000002D000005810000"), SqlType("binary", 10)),
    ("sys.fn_cdc_decrement_lsn(0x0000002D000005810000)", bytes.fromhex("0000002D00000580FFFF"), SqlType("binary", 10)),
    *(
        (f"sys.fn_cdc_is_bit_set({place}, {mask})", wanted, SqlType("bit"))
        for mask, bits in (("0x0104", (3, 9)), ("0x01", (1,)), ("0x0100000000000000000000000000000000", (129,)))
        for place in (0, 1, 2, 3, 8, 9, 16, 17, 129, 200)
        for wanted in (place in bits,)
    ),
    ("sys.fn_cdc_is_bit_set(1, NULL)", None, SqlType("bit")),
    ("sys.fn_cdc_is_bit_set(NULL, 0x01)", None, SqlType("bit")),
    ("CAST(5 & 3 AS int) + (5 | 3) + (5 ^ 3)", 1 + 7 + 6, _INT),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "value", "type_"), CASES, ids=[case[0] for case in CASES])
def test_expression(client: Client, expression: str, value: Any, type_: SqlType) -> None:
    assert client.value(expression) == value
    assert client.columns[0][0].type == type_


@pytest.mark.parametrize(("expression", "value", "type_"), CASES[:60], ids=[case[0] for case in CASES[:60]])
def test_expression_over_rows(client: Client, expression: str, value: Any, type_: SqlType) -> None:
    """The same where nothing can be folded: once per row, under a condition that only the rows decide."""
    rows = client.run(f"SELECT CASE WHEN v.n > 0 THEN {expression} END FROM (VALUES (1), (0), (2)) AS v(n)")
    assert rows == [(value,), (None,), (value,)]


ERRORS = [
    ("SELECT 1 / 0", 8134),
    ("SELECT CAST('abc' AS int)", 245),
    ("SELECT CAST('1.5' AS int)", 245),
    ("SELECT CAST('x' AS decimal(5,2))", 8114),
    ("SELECT CAST(300 AS tinyint)", 220),
    ("SELECT CAST(-1 AS tinyint)", 220),
    ("SELECT CAST(32768 AS smallint)", 220),
    ("SELECT CAST('300' AS tinyint)", 244),
    ("SELECT CAST('-32769' AS smallint)", 244),
    ("SELECT CAST('99999999999' AS int)", 248),
    ("SELECT CAST('9223372036854775808' AS bigint)", 8115),
    ("SELECT 1e308 * 10", 8115),
    ("SELECT SUM(a) FROM (VALUES (1e308), (1e308)) AS v(a)", 8115),
    ("SELECT CAST('1e999' AS float)", 8115),
    ("SELECT CONVERT(varbinary(8), '0xZZ', 1)", 8114),
    ("SELECT DATEADD(year, 9000, CAST('2020-01-01' AS datetime))", 517),
    ("SELECT DATEADD(day, 1, CAST('9999-12-31' AS date))", 517),
    ("SELECT DATEADD(day, -1, CAST('0001-01-01' AS datetime2))", 517),
    ("SELECT DATEADD(day, -1, CAST('1753-01-01' AS datetime))", 517),
    ("SELECT CAST(CAST('1752-12-31' AS date) AS datetime)", 242),
    ("SELECT CAST(CAST('2079-06-07' AS date) AS smalldatetime)", 242),
    ("SELECT DATEDIFF(second, '1900-01-01', '2020-01-01')", 535),
    ("SELECT 2147483647 + 1", 8115),
    ("SELECT CAST(1000 AS decimal(4,2))", 8115),
    ("SELECT CAST('2024-02-30' AS date)", 241),
    ("SELECT CAST('2024-01-05 10:11:12.9985' AS datetime)", 241),
    ("SELECT TRY_CAST(1 / 0 AS int)", 8134),
    ("SELECT CAST('x' AS uniqueidentifier)", 8169),
    ("SELECT GETDATE() AT TIME ZONE 'Nowhere Standard Time'", 50000),
    ("SELECT CAST('2008-12-31' AS datetime2) AT TIME ZONE 'Romance Standard Time'", 50000),
    ("SELECT 'x' AT TIME ZONE 'UTC'", 8116),
    ("SELECT CAST(1e10 AS smallmoney)", 8115),
    ("SELECT CAST(214748.3648 AS smallmoney)", 8115),
    ("SELECT CAST(922337203685477.5808 AS money)", 8115),
    ("SELECT CAST('-922337203685477.5809' AS money)", 8115),
    ("SELECT nosuch", 207),
    ("SELECT nosuch()", 50000),
    ("SELECT @@FETCH_STATUS", 50000),
    ("EXEC sp_executesql 'SELECT 1'", 214),
    ("EXEC sp_executesql N'SELECT @a', '@a int', 1", 214),
    ("SELECT dbo.nosuch()", 4121),
    ("SELECT x.y FROM (SELECT 1 AS y) AS t", 4104),
    ("SELECT y FROM (SELECT 1 AS y) AS t, (SELECT 2 AS y) AS u", 209),
    ("SELECT * FROM nosuch", 208),
    ("SELECT @x", 137),
    ("SELECT 'a", 105),
    ("SELECT 1 /* x", 113),
    ("SELECT FROM", 102),
    ("SELECT 1 WHERE 1", 4145),
    ("SELECT (SELECT 1 AS a UNION ALL SELECT 2)", 512),
    ("SELECT (SELECT 1, 2)", 116),
    ("SELECT 1 UNION ALL SELECT 1, 2", 205),
    ("SELECT TOP (1) PERCENT 1", 50000),
    ("SELECT CAST(1 AS nosuch)", 2715),
    ("SELECT CAST(1 AS sql_variant)", 50000),
    ("SELECT CAST('[]' AS json)", 2715),
    ("SELECT PARSE('5 Jan 2024' AS date)", 50000),
    ("SELECT PARSE('2024-01-05' AS date USING 'de-DE')", 50000),
    ("SELECT CONVERT(datetime, '05.01.2024', 104)", 50000),
    ("SELECT CAST('0001-01-01 13:59:59 +14:00' AS datetimeoffset)", 241),
    ("SELECT CAST('9999-12-31 10:00:00 -14:00' AS datetimeoffset)", 241),
    ("SELECT CAST('a' AS varchar(9000))", 1001),
    ("SELECT CAST(CAST('2024-01-01' AS date) AS time)", 529),
    ("EXEC nosuch", 2812),
    ("USE nosuch", 911),
    ("COMMIT", 3902),
    ("ROLLBACK", 3903),
    ("SAVE TRAN x", 628),
    ("WAITFOR TIME '10:00'", 50000),
    ("WAITFOR DELAY 'soon'", 148),
    ("SELECT a, COUNT(*) FROM (SELECT 1 AS a, 2 AS b) AS t GROUP BY b", 8120),
]


@pytest.mark.parametrize(("sql", "number"), ERRORS, ids=[case[0] for case in ERRORS])
def test_error(client: Client, sql: str, number: int) -> None:
    assert client.error(sql) == number


def test_error_line(client: Client) -> None:
    client.sets("SELECT 1\nSELECT 2\n\nSELECT nosuch")
    assert [(message.number, message.line) for message in client.messages] == [(207, 4)]


def test_syntax_error_runs_nothing(client: Client) -> None:
    assert client.sets("SELECT 1\nSELECT 2 +") == []
    assert client.messages[0].number == 102
