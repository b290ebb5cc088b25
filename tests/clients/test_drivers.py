"""What Python clients get from the sandbox: types, parameters, errors, transactions, cancelling, TLS."""

from __future__ import annotations

import contextlib
import datetime as dt
import threading
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, get_args

import pyarrow as pa
import pytest

from airflow_provider_mssql_cdc.sandbox import Sandbox
from tests.support.clients.drivers import CLIENTS, Client, Encrypt, MssqlPython, PyodbcFreetds, SqlAlchemy
from tests.support.clients.relay import Relay

ROWS = 100_000
Connect = Callable[..., Client]


@pytest.fixture(scope="module")
def server() -> Iterator[Sandbox]:
    with Sandbox(user="driver tester", database="shop", capture_interval=None) as server:
        server.execute("ALTER DATABASE shop SET ALLOW_SNAPSHOT_ISOLATION ON")
        server.execute(
            "CREATE TABLE dbo.many (id int NOT NULL PRIMARY KEY, big bigint NULL, d decimal(19,4) NULL,"
            " f float NOT NULL, n nvarchar(40) NULL, v varbinary(10) NULL, t datetime2(6) NULL)"
        )
        table = pa.table({name: list(values) for name, values in zip(NAMES, zip(*many(), strict=True), strict=True)})
        assert server.seed("shop", "dbo.many", _as_stored(table)) == ROWS
        yield server


@pytest.fixture(params=CLIENTS, ids=lambda kind: kind.__name__)
def connect(request: pytest.FixtureRequest, server: Sandbox) -> Iterator[Connect]:
    opened: list[Client] = []

    def connect(**options: Any) -> Client:
        opened.append(request.param(server, **options))
        return opened[-1]

    yield connect
    for each in opened:
        each.close()


@pytest.fixture
def client(connect: Connect) -> Client:
    return connect()


NAMES = ("id", "big", "d", "f", "n", "v", "t")
START = dt.datetime(1999, 12, 31, 23, 59, 59, 999_999)


def many() -> Iterator[tuple[Any, ...]]:
    """The rows of dbo.many, each NULL in a rhythm of its own."""
    for i in range(ROWS):
        yield (
            i,
            None if i % 3 == 1 else (i - 50_000) * 184_467_440_737_000,
            None if i % 5 == 2 else Decimal((0 if i % 2 else 1, tuple(map(int, str(i * 99_991))), -4)),
            i / 7,
            None if i % 7 == 3 else f"é漢😀{i}" if i % 11 else "",
            None if i % 4 == 0 else i.to_bytes(4, "big")[: i % 5],
            None if i % 9 == 4 else START + dt.timedelta(seconds=i * 3607, microseconds=i),
        )


def _as_stored(table: pa.Table) -> pa.Table:
    kinds = {"id": pa.int32(), "d": pa.decimal128(19, 4), "v": pa.binary(), "t": pa.int64()}
    zero = dt.datetime(1, 1, 1)
    ticks = [None if t is None else (t - zero) // dt.timedelta(microseconds=1) * 10 for t in table["t"].to_pylist()]
    table = table.set_column(table.column_names.index("t"), "t", pa.array(ticks, pa.int64()))
    return table.cast(pa.schema([(field.name, kinds.get(field.name, field.type)) for field in table.schema]))


def test_100_000_rows_compared_in_full(client: Client) -> None:
    rows = client.run("SELECT id, big, d, f, n, v, t FROM dbo.many ORDER BY id")
    assert len(rows) == ROWS
    # row by row: the difference of two such lists takes pytest minutes to show
    for found, wanted in zip(rows, many(), strict=True):
        assert found == wanted


# Columns


def at(minutes: int, *parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.timezone(dt.timedelta(minutes=minutes)))  # type: ignore[misc,arg-type]


GUID = "6F9619FF-8B86-D011-B42D-00C04FC964FF"
NINES = "9" * 38

# Type: values by their T-SQL literals, as the type's definition has them (docs: data types).
COLUMNS: dict[str, dict[str, Any]] = {
    "bit": {"0": False, "1": True},
    "tinyint": {"0": 0, "255": 255},
    "smallint": {"-32768": -32768, "32767": 32767},
    "int": {"-2147483648": -2147483648, "2147483647": 2147483647},
    "bigint": {"-9223372036854775808": -9223372036854775808, "9223372036854775807": 9223372036854775807},
    "decimal(5,2)": {"-999.99": Decimal("-999.99"), "0.1": Decimal("0.10")},
    "decimal(18,4)": {"-1.5": Decimal("-1.5000"), "0": Decimal("0.0000")},
    "numeric(28,10)": {"123456789012345678.0123456789": Decimal("123456789012345678.0123456789")},
    "decimal(38,0)": {NINES: Decimal(NINES), f"-{NINES}": Decimal(f"-{NINES}")},
    "decimal(38,38)": {f"'0.{NINES}'": Decimal(f"0.{NINES}"), f"'-0.{NINES}'": Decimal(f"-0.{NINES}")},
    "money": {
        "-922337203685477.5808": Decimal("-922337203685477.5808"),
        "922337203685477.5807": Decimal("922337203685477.5807"),
        "-0.0001": Decimal("-0.0001"),
    },
    "smallmoney": {"-214748.3648": Decimal("-214748.3648"), "214748.3647": Decimal("214748.3647")},
    "real": {"1.5": 1.5, "-3.4028235E38": -3.4028234663852886e38, "1.1754944E-38": 1.1754943508222875e-38},
    "float": {"0.1": 0.1, "-1.7976931348623157E308": -1.7976931348623157e308, "2.2250738585072014E-308": 2**-1022},
    "date": {
        "'0001-01-01'": dt.date(1, 1, 1),
        "'1582-10-10'": dt.date(1582, 10, 10),
        "'2024-02-29'": dt.date(2024, 2, 29),
        "'9999-12-31'": dt.date(9999, 12, 31),
    },
    "time(0)": {"'23:59:59'": dt.time(23, 59, 59)},
    "time(3)": {"'13:50:01.123'": dt.time(13, 50, 1, 123_000)},
    # Python has no seventh digit.
    "time(7)": {"'00:00:00'": dt.time(0), "'23:59:59.9999999'": dt.time(23, 59, 59, 999_999)},
    "smalldatetime": {
        "'1900-01-01T00:00:00'": dt.datetime(1900, 1, 1),
        "'2079-06-06T23:59:00'": dt.datetime(2079, 6, 6, 23, 59),
    },
    "datetime": {
        "'1753-01-01T00:00:00'": dt.datetime(1753, 1, 1),
        "'9999-12-31T23:59:59.997'": dt.datetime(9999, 12, 31, 23, 59, 59, 997_000),
        "'2024-02-29T12:34:56.005'": dt.datetime(2024, 2, 29, 12, 34, 56, 7_000),
    },
    "datetime2(0)": {"'2024-02-29T12:34:56'": dt.datetime(2024, 2, 29, 12, 34, 56)},
    "datetime2(3)": {"'2024-02-29T12:34:56.123'": dt.datetime(2024, 2, 29, 12, 34, 56, 123_000)},
    "datetime2(7)": {
        "'0001-01-01T00:00:00'": dt.datetime(1, 1, 1),
        "'9999-12-31T23:59:59.9999999'": dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),
    },
    "datetimeoffset(0)": {"'2024-02-29T12:34:56 -00:30'": at(-30, 2024, 2, 29, 12, 34, 56)},
    "datetimeoffset(7)": {
        "'0001-01-01T14:00:00 +14:00'": at(840, 1, 1, 1, 14),
        "'9999-12-31T09:59:59.9999999 -14:00'": at(-840, 9999, 12, 31, 9, 59, 59, 999_999),
        "'2024-02-29T12:34:56.1234567 +05:30'": at(330, 2024, 2, 29, 12, 34, 56, 123_456),
    },
    "char(5)": {"'ab'": "ab   ", "''": "     ", "'é€'": "é€   "},
    "varchar(20)": {"''": "", "'it''s é€'": "it's é€"},
    "varchar(8000)": {"REPLICATE('x', 8000)": "x" * 8000},
    "varchar(max)": {"''": "", "REPLICATE(CAST('ab' AS varchar(max)), 50000)": "ab" * 50_000},
    "nchar(5)": {"N'äb'": "äb   ", "N'😀'": "😀   "},
    "nvarchar(20)": {"N''": "", "N'é漢😀'": "é漢😀"},
    "nvarchar(4000)": {"REPLICATE(N'漢', 4000)": "漢" * 4000},
    "nvarchar(max)": {"N''": "", "REPLICATE(CAST(N'漢a' AS nvarchar(max)), 50000)": "漢a" * 50_000},
    "sysname": {"N'a name'": "a name"},
    "text": {"'é€'": "é€", "REPLICATE(CAST('ab' AS varchar(max)), 5000)": "ab" * 5000},
    "ntext": {"N'漢😀'": "漢😀"},
    "xml": {"N'<a b=\"1\">é漢</a>'": '<a b="1">é漢</a>'},
    "binary(4)": {"0x01FF": b"\x01\xff\0\0"},
    "varbinary(10)": {"0x": b"", "0x00FF00": b"\0\xff\0"},
    "varbinary(8000)": {"CAST(REPLICATE('x', 8000) AS varbinary(8000))": b"x" * 8000},
    "varbinary(max)": {
        "0x": b"",
        "CAST(REPLICATE(CAST('ab' AS varchar(max)), 50000) AS varbinary(max))": b"ab" * 50_000,
    },
    "image": {"0x00FF00": b"\0\xff\0"},
    "uniqueidentifier": {f"'{GUID}'": uuid.UUID(GUID)},
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_type_as_column(client: Client, kind: str) -> None:
    """NOT NULL and nullable columns, which are declared in different ways, and expressions."""
    client.run(f"CREATE TABLE #t (id int NOT NULL, always {kind} NOT NULL, maybe {kind} NULL)")
    wanted = []
    for i, (literal, value) in enumerate(COLUMNS[kind].items()):
        client.run(f"INSERT INTO #t VALUES ({2 * i}, {literal}, {literal}), ({2 * i + 1}, {literal}, NULL)")
        seen = client.seen(value)
        wanted += [(2 * i, seen, seen), (2 * i + 1, seen, None)]
        assert client.run(f"SELECT CAST({literal} AS {kind}), CAST(NULL AS {kind})") == [(seen, None)]
    found = client.run("SELECT id, always, maybe FROM #t ORDER BY id")
    assert found == wanted
    assert [list(map(type, row)) for row in found] == [list(map(type, row)) for row in wanted]


def test_rowversion_as_column(client: Client) -> None:
    literal = "0x00000000000007D1"
    assert client.run(f"SELECT CAST({literal} AS rowversion), CAST(NULL AS rowversion)") == [
        (bytes.fromhex(literal[2:]), None)
    ]
    client.run("CREATE TABLE #t (id int NOT NULL, v rowversion)")
    client.run("INSERT INTO #t (id) VALUES (1), (2)")
    (first,), (second,) = client.run("SELECT v FROM #t ORDER BY id")
    assert len(first) == len(second) == 8
    assert int.from_bytes(second, "big") == int.from_bytes(first, "big") + 1


# Parameters

PARAMETERS: dict[str, list[Any]] = {
    "bit": [True, False],
    "tinyint": [0, 255],
    "smallint": [-32768, 32767],
    "int": [-(2**31), 2**31 - 1],
    "bigint": [-(2**63), 2**63 - 1],
    "decimal(38,0)": [Decimal(NINES), Decimal(f"-{NINES}")],
    "decimal(29,9)": [Decimal("-12345678901234567890.123456789"), Decimal("0E-9")],
    "money": [Decimal("922337203685477.5807"), Decimal("-922337203685477.5808")],
    "real": [1.5, -3.4028234663852886e38],
    "float": [0.1, -1.7976931348623157e308, 2.2250738585072014e-308],
    "date": [dt.date(1, 1, 1), dt.date(1753, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)],
    "time(6)": [dt.time(0), dt.time(23, 59, 59), dt.time(23, 59, 59, 999_999)],
    "datetime": [dt.datetime(1753, 1, 1), dt.datetime(2024, 2, 29, 12, 34, 56, 7_000)],
    "datetime2(6)": [
        dt.datetime(1, 1, 1),
        dt.datetime(1753, 1, 1),
        dt.datetime(9999, 12, 31, 23, 59, 59),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999_000),
    ],
    "datetimeoffset(6)": [at(330, 2024, 2, 29, 12, 34, 56), at(-840, 9999, 12, 31, 9, 59, 59)],
    "varchar(20)": ["", "it's é€"],
    "char(5)": ["ab   "],
    "nvarchar(20)": ["", "é漢😀'"],
    "nvarchar(4000)": ["漢" * 4000],
    "varchar(max)": ["x" * 9000],
    "nvarchar(max)": ["漢" * 9000],
    "text": ["é€"],
    "ntext": ["漢😀"],
    "xml": ["<a>é漢</a>"],
    "binary(4)": [b"\x01\xff\0\0"],
    "varbinary(20)": [b"", b"\0\xff"],
    "varbinary(max)": [b"xy" * 10_000],
    "image": [b"\0\xff"],
    "uniqueidentifier": [uuid.UUID(GUID)],
}

# The client's own doing, whatever the server.
CANNOT: dict[type[Client], dict[Any, str]] = {
    MssqlPython: {dt.date(1, 1, 1): "mssql-python refuses dates before 1753"},
    PyodbcFreetds: {
        dt.date(1, 1, 1): "FreeTDS 1.3.17 sends the day before",
        dt.datetime(1, 1, 1): "FreeTDS 1.3.17 sends the day before",
        dt.time(23, 59, 59, 999_999): "ODBC's time has no fraction",
        at(330, 2024, 2, 29, 12, 34, 56): "pyodbc drops the offset",
        at(-840, 9999, 12, 31, 9, 59, 59): "pyodbc drops the offset",
    },
}
EACH_PARAMETER = [(kind, value) for kind, values in PARAMETERS.items() for value in values]


@pytest.mark.parametrize(("kind", "value"), EACH_PARAMETER, ids=lambda part: str(part)[:30])
def test_a_type_as_parameter(client: Client, kind: str, value: Any) -> None:
    if reason := CANNOT.get(type(client), {}).get(value):
        pytest.skip(reason)
    found = client.value(f"SELECT CAST(? AS {kind})", value)
    assert found == client.seen(value)
    assert type(found) is type(client.seen(value))


@pytest.mark.parametrize("kind", PARAMETERS)
def test_null_as_parameter(client: Client, kind: str) -> None:
    assert client.value(f"SELECT CAST(? AS {kind})", None) is None


def test_one_statement_with_parameters_of_changing_types(client: Client) -> None:
    values = [True, 255, -(2**31), "x", 5, "é", Decimal("1.5"), b"x", None, 1.5, "xyz" * 500, 2**62]
    for value in values:
        assert client.value("SELECT ? AS v", value) == value


def test_many_rows_by_one_prepared_statement(client: Client) -> None:
    client.run("CREATE TABLE #t (id int NOT NULL, n nvarchar(20) NULL, d decimal(9,3) NULL)")
    rows = [(i, None if i % 3 == 0 else f"é{i}", None if i % 5 == 1 else Decimal(i) / 8) for i in range(200)]
    client.run_many("INSERT INTO #t VALUES (?, ?, ?)", rows)
    assert client.run("SELECT id, n, d FROM #t ORDER BY id") == rows
    assert client.run("SELECT id FROM #t WHERE n = ? AND d < ?", "é7", 0.9) == [(7,)]


# Errors


@pytest.mark.parametrize(
    ("statement", "number", "text"),
    [
        ("SELECT 1/0", 8134, "Divide by zero error encountered."),
        ("SELECT * FROM dbo.nothing", 208, "Invalid object name 'dbo.nothing'."),
        ("SELECT nothing FROM dbo.many", 207, "Invalid column name 'nothing'."),
        ("EXEC dbo.nothing", 2812, "Could not find stored procedure 'dbo.nothing'."),
        ("SELECT 1 +", 102, "Incorrect syntax near '+'."),
        ("RAISERROR(N'told é漢', 16, 1)", 50000, "told é漢"),
        ("THROW 51000, N'thrown', 1", 51000, "thrown"),
        (
            "INSERT INTO dbo.many (id) VALUES (99999)",
            515,
            "Cannot insert the value NULL into column 'f', table 'shop.dbo.many'; column does not allow nulls."
            " INSERT fails.",
        ),
    ],
)
def test_errors(client: Client, statement: str, number: int, text: str) -> None:
    assert client.error(statement) == (number if client.tells_numbers else None, text)
    client.rollback()
    assert client.value("SELECT 1") == 1


def test_a_duplicate_key_leaves_the_transaction_open(client: Client, server: Sandbox) -> None:
    name = f"dbo.k{uuid.uuid4().hex}"
    server.execute(f"CREATE TABLE {name} (id int NOT NULL CONSTRAINT pk_{name[4:]} PRIMARY KEY)")
    client.run(f"INSERT INTO {name} VALUES (1)")
    number, text = client.error(f"INSERT INTO {name} VALUES (?)", 1)
    assert number == (2627 if client.tells_numbers else None)
    assert text == (
        f"Violation of PRIMARY KEY constraint 'pk_{name[4:]}'. Cannot insert duplicate key in object '{name}'."
        " The duplicate key value is (1)."
    )
    client.run(f"INSERT INTO {name} VALUES (2)")
    client.commit()
    assert server.execute(f"SELECT id FROM {name} ORDER BY id")[0]["id"].to_pylist() == [1, 2]


def test_an_error_after_rows(client: Client) -> None:
    with pytest.raises(client.error_type) as raised:
        client.run("SELECT 1 / (id - 70000) FROM dbo.many ORDER BY id")
    assert "Divide by zero error encountered." in client.told(raised.value)[1]
    client.rollback()
    assert client.value("SELECT COUNT(*) FROM dbo.many") == ROWS


# Transactions


def test_commit_and_rollback_and_what_others_see(connect: Connect, server: Sandbox) -> None:
    name = f"dbo.t{uuid.uuid4().hex}"
    server.execute(f"CREATE TABLE {name} (id int NOT NULL)")
    writer, other = connect(), connect()
    other.run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT")

    def seen_by_other() -> list[int]:
        other.commit()
        return [value for (value,) in other.run(f"SELECT id FROM {name} ORDER BY id")]

    writer.run(f"INSERT INTO {name} VALUES (1)")
    assert writer.value(f"SELECT COUNT(*) FROM {name}") == 1
    assert seen_by_other() == []
    writer.commit()
    assert other.value(f"SELECT COUNT(*) FROM {name}") == 0, "a snapshot stays as it was"
    assert seen_by_other() == [1]
    writer.run(f"UPDATE {name} SET id = 5")
    writer.run(f"INSERT INTO {name} VALUES (2)")
    writer.rollback()
    assert seen_by_other() == [1]
    writer.run(f"INSERT INTO {name} VALUES (?)", 3)
    writer.commit()
    assert seen_by_other() == [1, 3]
    writer.run(f"DELETE FROM {name}")
    writer.close()
    assert seen_by_other() == [1, 3]


# Cancelling


def test_a_result_that_is_left_unread(client: Client) -> None:
    for _ in range(3):
        assert client.first("SELECT id, n FROM dbo.many ORDER BY id") == (0, "")
        assert client.value("SELECT COUNT(*) FROM dbo.many") == ROWS


def test_a_statement_that_takes_too_long(connect: Connect, server: Sandbox) -> None:
    name = f"dbo.w{uuid.uuid4().hex}"
    server.execute(f"CREATE TABLE {name} (id int NOT NULL)")
    client = connect(timeout=1)
    client.run(f"INSERT INTO {name} VALUES (1)")
    with pytest.raises(client.error_type, match=r"(?i)timeout|timed out"):
        client.run("WAITFOR DELAY '00:05:00'")
    if client.usable_after_timeout:
        assert client.run(f"SELECT id, @@TRANCOUNT FROM {name}") == [(1, 1)]
        client.commit()
    after = server.execute(f"SELECT id FROM {name}")[0]["id"].to_pylist()
    assert after == ([1] if client.usable_after_timeout else [])


@pytest.mark.parametrize("statement", ["WAITFOR DELAY '00:05:00'", "WHILE 1 = 1 SELECT id FROM dbo.many"])
def test_a_statement_that_another_thread_cancels(server: Sandbox, statement: str) -> None:
    # the only one of these clients that offers it
    client = PyodbcFreetds(server)
    client.run("CREATE TABLE #t (id int NOT NULL) INSERT INTO #t VALUES (1)")
    cursor, ended = client.connection.cursor(), threading.Event()

    def cancel() -> None:
        while not ended.wait(0.05):
            cursor.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    # a cancel between two results ends them without an error
    ended_by = pytest.raises if statement.startswith("WAITFOR") else contextlib.suppress
    try:
        with ended_by(client.error_type):
            _read_all(cursor.execute(statement))
    finally:
        ended.set()
        thread.join()
    # FreeTDS takes the answer to a cancel of the last moment with the cursor that it was for
    cursor.close()
    assert client.run("SELECT id, @@TRANCOUNT FROM #t") == [(1, 1)]
    client.close()


def _read_all(cursor: Any) -> None:
    while cursor.fetchall() and cursor.nextset():
        pass


# TLS


@pytest.mark.parametrize("encrypt", get_args(Encrypt))
def test_tls(connect: Connect, server: Sandbox, encrypt: Encrypt) -> None:
    with Relay(server.port) as relay:
        client = connect(port=relay.port, encrypt=encrypt)
        question, answer = "asked in the clear", "ASKED IN THE CLEAR"
        assert client.value(f"SELECT UPPER(N'{question}')") == answer
        assert client.value("SELECT COUNT(*) FROM dbo.many") == ROWS
        rows = client.run("SELECT id, n FROM dbo.many WHERE id < 20000 ORDER BY id")
        assert rows == [(row[0], row[4]) for row, _ in zip(many(), range(20_000), strict=False)]
        client.close()
    assert len(relay.replies) > 20_000
    assert (question.encode("utf-16-le") in relay.requests) == (encrypt != "all")
    assert (answer.encode("utf-16-le") in relay.replies) == (encrypt != "all")
    assert (server.user.encode("utf-16-le") in relay.requests) == (encrypt == "nothing")


# SQLAlchemy's own


def test_sqlalchemy_reflects_and_binds_by_type(server: Sandbox) -> None:
    import sqlalchemy as sa

    client = SqlAlchemy(server)
    name = f"r{uuid.uuid4().hex}"
    made = sa.Table(
        name,
        sa.MetaData(),
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Unicode(20)),
        sa.Column("at", sa.DateTime),
        sa.Column("data", sa.LargeBinary),
    )
    made.create(client.connection)
    row = {"id": 1, "name": "é漢", "at": dt.datetime(2024, 2, 29, 12, 34, 56, 997_000), "data": b"\0\xff"}
    client.connection.execute(sa.insert(made), [row])
    client.commit()
    found = sa.Table(name, sa.MetaData(), schema="dbo", autoload_with=client.connection)
    assert [column.name for column in found.columns] == list(row)
    assert [column.name for column in found.primary_key] == ["id"]
    assert [dict(item._mapping) for item in client.connection.execute(sa.select(found))] == [row]
    client.close()
