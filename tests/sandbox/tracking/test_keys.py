"""Keys of each type: what CHANGETABLE answers of them finds the rows, and equal keys are one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.sandbox.tsql.conftest import Client

# type, three values in ascending order, and one that equals the first
_TYPES = (
    ("tinyint", "0", "7", "255", "0"),
    ("bigint", "-9223372036854775808", "0", "9223372036854775807", "-9223372036854775808"),
    ("bit", "0", None, "1", "0"),
    ("decimal(38, 4)", "-1.5", "0", "99999999999999999999.0001", "-1.50"),
    ("money", "-0.0001", "0", "922337203685477.5807", "-0.0001"),
    ("float", "-1e300", "0.1", "1e300", "-1e300"),
    ("char(5)", "'abc'", "'abd'", "'z'", "'ABC  '"),
    ("varchar(10)", "'abc'", "'abd'", "'z'", "'ABC '"),
    ("nvarchar(10)", "N'Ärger'", "N'Zoë'", "N'zz'", "N'ÄRGER '"),
    ("varchar(10) COLLATE Latin1_General_BIN2", "'ABC'", "'abc'", "'abd'", "'ABC'"),
    ("binary(4)", "0x00", "0x01", "0xFF", "0x0000"),
    ("varbinary(8)", "0x01", "0x0101", "0xFF", "0x0100"),
    ("uniqueidentifier", f"'{'0' * 8}-0000-0000-0000-{'0' * 11}1'", f"'{'0' * 8}-0000-0000-0000-{'0' * 11}2'",
     f"'{'F' * 8}-0000-0000-0000-{'0' * 11}3'", f"'{'0' * 8}-0000-0000-0000-{'0' * 11}1'"),
    ("date", "'0001-01-01'", "'2026-01-01'", "'9999-12-31'", "'0001-01-01'"),
    ("datetime", "'1753-01-01'", "'2026-01-01T00:00:00.003'", "'9999-12-31'", "'1753-01-01'"),
    ("datetime2(7)", "'0001-01-01'", "'2026-01-01'", "'9999-12-31T23:59:59.9999999'", "'0001-01-01'"),
    ("datetimeoffset(0)", "'2026-01-01T12:00:00+00:00'", "'2026-01-01T12:30:00+00:00'", "'2026-02-01T00:00:00+14:00'",
     "'2026-01-01T13:00:00+01:00'"),
    ("time(3)", "'00:00'", "'12:00'", "'23:59:59.999'", "'00:00'"),
)  # fmt: skip


@pytest.mark.parametrize(("type_", "low", "middle", "high", "equal"), _TYPES, ids=[each[0] for each in _TYPES])
def test_keys_of_a_type(
    connect: Callable[..., Client], type_: str, low: str, middle: str | None, high: str, equal: str
) -> None:
    client = connect()
    client.run(f"CREATE TABLE dbo.k (k {type_} NOT NULL PRIMARY KEY, n int) ALTER TABLE dbo.k ENABLE CHANGE_TRACKING")
    given = [value for value in (high, low, middle) if value is not None]
    for number, value in enumerate(given):
        client.run(f"INSERT INTO dbo.k VALUES ({value}, {number})")
    client.run(f"DELETE FROM dbo.k WHERE k = {equal}")
    client.run(f"INSERT INTO dbo.k VALUES ({equal}, 9)")
    client.run(f"DELETE FROM dbo.k WHERE k = {high}")
    joined = (
        "SELECT c.SYS_CHANGE_VERSION, c.SYS_CHANGE_CREATION_VERSION, c.SYS_CHANGE_OPERATION, t.n"
        " FROM CHANGETABLE(CHANGES dbo.k, 0) AS c LEFT JOIN dbo.k AS t ON t.k = c.k ORDER BY c.k"
    )
    count = len(given)
    told = [(count + 2, count + 2, "I", 9), (3, 3, "I", 2), (count + 3, 1, "D", None)]
    assert client.run(joined) == (told if middle is not None else [told[0], told[2]])
    assert client.run(f"SELECT SYS_CHANGE_VERSION FROM CHANGETABLE(VERSION dbo.k, (k), ({low})) AS c") == [(count + 2,)]
    unordered = client.run("SELECT SYS_CHANGE_VERSION FROM CHANGETABLE(CHANGES dbo.k, 0) AS c")
    assert unordered == [row[:1] for row in client.run(joined)]  # observed: the key's order
    assert client.run("SELECT COUNT(*) FROM dbo.k AS t JOIN CHANGETABLE(CHANGES dbo.k, 0) AS c ON c.k = t.k") == [
        (count - 1,)
    ]


def test_a_key_of_several_columns(connect: Callable[..., Client]) -> None:
    client = connect()
    client.run(
        "CREATE TABLE dbo.k (a int, b varchar(5), c datetime2(0), n int, CONSTRAINT pk_k PRIMARY KEY (b, c, a))\n"
        "ALTER TABLE dbo.k ENABLE CHANGE_TRACKING\n"
        "INSERT INTO dbo.k VALUES (2, 'x', '2026-01-01', 0), (1, 'X', '2026-01-01', 0), (1, 'w', '2026-01-02', 0)"
    )
    client.run("UPDATE dbo.k SET b = 'v' WHERE a = 2 UPDATE dbo.k SET a = 3 WHERE a = 1 AND b = 'x'")
    told = "SELECT SYS_CHANGE_VERSION, SYS_CHANGE_OPERATION, b, a FROM CHANGETABLE(CHANGES shop.dbo.k, 1) AS c"
    assert client.run(told) == [(2, "I", "v", 2), (3, "D", "X", 1), (2, "D", "x", 2), (3, "I", "X", 3)]
    asked = "SELECT SYS_CHANGE_VERSION, a FROM CHANGETABLE(VERSION dbo.k, (a, b, c), (3, 'x', '2026-01-01')) AS c"
    assert client.run(asked) == [(3, 3)]
