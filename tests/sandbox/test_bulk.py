"""Bulk loads byte by byte: what clients send, what is stored and captured, and what a server of 2022 answered.

Numbers, states, severities and DONE tokens are those that the authors of msduck measured on 16.0.4236.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType
from tests.support.sandbox.wire.bulk import (
    DONE,
    INT,
    INTN,
    NVARCHAR_20,
    NVARCHAR_MAX,
    TYPE_BULK,
    VARCHAR_10,
    column,
    logged_in,
    maybe,
    message,
    null,
    number,
    short,
    wide,
)
from tests.support.sandbox.wire.layout import declared, in_row
from tests.support.sandbox.wire.rawclient import TYPE_ATTENTION, TYPE_BATCH, Answer, RawClient
from tests.support.sandbox.wire.samples import SAMPLES, Sample

OLD_LARGE = ("text", "ntext", "image")
PREMATURE_END = "While reading current row from host, a premature end-of-message was encountered"


@pytest.fixture(scope="module")
def server() -> Iterator[Sandbox]:
    with Sandbox(database="shop", agent_running=False) as running:
        yield running


@pytest.fixture
def raw(server: Sandbox) -> Iterator[RawClient]:
    with logged_in(server) as client:
        yield client
    for name in rows(server, "SELECT name FROM sys.tables WHERE schema_id = 1"):
        server.execute(f"DROP TABLE dbo.{name[0]}")


def rows(server: Sandbox, query: str) -> list[tuple[Any, ...]]:
    table = server.execute(query)[-1]
    return [tuple(row.values()) for row in table.to_pylist()]


def load(raw: RawClient, statement: str, data: bytes, *, packet: int = 4088) -> Answer:
    announced = raw.batch(statement)
    assert announced.of("error") == []
    raw.send(TYPE_BULK, data, packet=packet)
    return raw.answer()


def error(answer: Answer) -> tuple[Any, ...]:
    """Number, state and severity of the only error; the answer's last DONE says that there was one."""
    (found,) = answer.of("error")
    assert answer.of("done")[-1][0] & 2
    return found[:3]


def shown(kind: SqlType) -> str:
    """A type as T-SQL writes it."""
    if kind.name == "decimal":
        return f"decimal({kind.precision}, {kind.scale})"
    if kind.name in ("time", "datetime2", "datetimeoffset"):
        return f"{kind.name}({kind.scale})"
    return f"{kind.name}({'max' if kind.length == MAX else kind.length})" if kind.length else kind.name


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.type.name != "rowversion"], ids=str)
def test_each_type(server: Sandbox, raw: RawClient, sample: Sample, nullable: bool) -> None:
    server.execute(f"CREATE TABLE dbo.t (id int NOT NULL, v {shown(sample.type)} {'' if nullable else 'NOT '}NULL)")
    # xml travels as nvarchar(max)
    sent = SqlType("nvarchar", MAX) if sample.type.name == "xml" else sample.type
    large = sample.type.name in OLD_LARGE
    # clients leave the number of the table name's parts out
    info = declared(sent, nullable=nullable)[: -3 if large else None]
    columns = [
        column("id", INT, nullable=False),
        column("v", info, nullable=nullable, table="dbo.t" if large else None),
    ]
    given = [number(1) + in_row(sent, sample.wire, nullable=nullable)]
    given += [number(2) + null(sent)] if nullable else []
    answer = load(raw, f"INSERT BULK dbo.t ([id] int, [v] {shown(sample.type)})", message(columns, *given))
    assert answer.tokens == [("done", 0x10, 240, len(given))]
    found = rows(server, "SELECT id, v FROM dbo.t ORDER BY id")
    assert found == [(1, sample.arrow), (2, None)][: len(given)]


def test_the_example_of_the_specification(server: Sandbox, raw: RawClient) -> None:
    # MS-TDS 4.12
    server.execute("CREATE TABLE dbo.t (c1 bit NULL)")
    raw.batch("INSERT BULK dbo.t (c1 bit)")
    raw.write(
        bytes.fromhex(
            "07 01 00 26 00 00 01 00 81 01 00 00 00 00 00 05 00 32 02 63 00 31 00 D1 00 FD 00 00 00 00 00 00"
            "00 00 00 00 00 00"
        )
    )
    assert raw.answer().tokens == [("done", 0x10, 240, 1)]
    assert rows(server, "SELECT c1 FROM dbo.t") == [(False,)]


def test_rows_of_a_stream_as_mssql_jdbc_sends_it(server: Sandbox, raw: RawClient) -> None:
    server.execute("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, price money NULL, note varchar(10) NULL, g date)")
    described = raw.batch("sp_executesql N'SET FMTONLY ON SELECT * FROM dbo.t '")
    assert [(c.name, c.flags) for c in described.of("columns")[0][0]] == [
        ("id", 8),
        ("price", 9),
        ("note", 9),
        ("g", 9),
    ]
    collations = raw.batch(
        "select collation_name from sys.columns where object_id=OBJECT_ID('dbo.t') order by column_id ASC"
    )
    assert [row[0] for row in collations.rows] == [None, None, "SQL_Latin1_General_CP1_CI_AS".encode("utf-16-le"), None]
    # the types are those of the source: money as decimal, a date of a file as text
    statement = (
        "INSERT BULK dbo.t ([id] INT , [price] DECIMAL(10, 4) , [note] VARCHAR(10) COLLATE "
        "SQL_Latin1_General_CP1_CI_AS , [g] VARCHAR(10) )  with (CHECK_CONSTRAINTS, FIRE_TRIGGERS, "
        "KEEP_NULLS, ROWS_PER_BATCH = 1000, TABLOCK)"
    )
    columns = [
        column("id", INTN, nullable=False),
        column("price", bytes.fromhex("6a 11 0a 04"), nullable=True),
        column("note", VARCHAR_10, nullable=True),
        column("g", VARCHAR_10, nullable=True),
    ]
    price = bytes.fromhex("09 01 3930000000000000")
    data = message(
        columns,
        maybe(1) + price + short("naïve") + short("2024-02-29"),
        maybe(2) + b"\0" + short(None) + short(None),
    )
    assert load(raw, statement, data, packet=11).tokens == [("done", 0x10, 240, 2)]
    found = rows(
        server,
        "SELECT id, CAST(price AS varchar(20)) AS p, note, CONVERT(varchar(10), g, 120) AS g FROM dbo.t ORDER BY id",
    )
    assert found == [(1, "1.23", "naïve", "2024-02-29"), (2, None, None, None)]


def test_rows_of_a_stream_as_go_mssqldb_sends_it(server: Sandbox, raw: RawClient) -> None:
    server.execute("CREATE TABLE dbo.t (id bigint NOT NULL, name nvarchar(20) NULL, doc ntext NULL, f float NULL)")
    raw.batch("SET FMTONLY ON")
    (described,) = raw.batch("select * from dbo.t SET FMTONLY OFF").of("columns")
    infos = {each.name: each for each in described[0]}
    assert {name: each.token for name, each in infos.items()} == {"id": 0x7F, "name": 0xE7, "doc": 0x63, "f": 0x6D}
    assert raw.batch("SELECT 1 AS one").rows == [(b"\1\0\0\0",)]
    # it sends the columns back as it got them
    columns = [
        column("f", bytes.fromhex("6d 08"), nullable=True),
        column("id", bytes.fromhex("7f"), nullable=False),
        column("doc", bytes.fromhex("63 feffff7f") + infos["doc"].collation, nullable=True, table="dbo.t"),
        column("name", NVARCHAR_20, nullable=True),
    ]
    document = bytes.fromhex("10" + "ff" * 16 + "ff" * 8 + "04000000") + "n中".encode("utf-16-le")
    data = message(
        columns,
        bytes.fromhex("08 00000000000004c0") + (5).to_bytes(8, "little") + document + wide("é漢"),
        b"\0" + (6).to_bytes(8, "little") + b"\0" + wide(None),
    )
    statement = "INSERT BULK dbo.t ([f] float(53), [id] bigint, [doc] ntext, [name] nvarchar(20)) "
    assert load(raw, statement, data).tokens == [("done", 0x10, 240, 2)]
    found = rows(server, "SELECT id, name, CAST(doc AS nvarchar(max)) AS doc, f FROM dbo.t ORDER BY id")
    assert found == [(5, "é漢", "n中", -2.5), (6, None, None, None)]


TWO = [column("id", INT, nullable=False), column("v", VARCHAR_10, nullable=True)]
TWO_COLUMNS = "INSERT BULK dbo.t ([id] int, [v] varchar(10))"


def test_rows_are_captured_one_by_one_as_inserts() -> None:
    with Sandbox(database="shop", agent_running=False) as server, logged_in(server) as raw:
        server.execute("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, v varchar(10) NULL)")
        server.execute("EXEC sys.sp_cdc_enable_db EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL")
        for first in (1, 4):
            given = [number(first + i) + short("abc"[i]) for i in range(3)]
            assert load(raw, TWO_COLUMNS, message(TWO, *given)).tokens == [("done", 0x10, 240, 3)]
        while server.step():
            pass
        found = rows(
            server,
            "SELECT DENSE_RANK() OVER (ORDER BY __$start_lsn) AS t, __$operation, id, v FROM cdc.dbo_t_CT"
            " ORDER BY __$start_lsn, __$seqval",
        )
    assert found == [(1, 2, 1, "a"), (1, 2, 2, "b"), (1, 2, 3, "c"), (2, 2, 4, "a"), (2, 2, 5, "b"), (2, 2, 6, "c")]


def test_defaults_and_identity(server: Sandbox, raw: RawClient) -> None:
    server.execute(
        "CREATE TABLE dbo.t (id int IDENTITY(10, 5) NOT NULL, v varchar(10) NULL DEFAULT 'none', w int DEFAULT 7)"
    )
    one = [column("v", VARCHAR_10, nullable=True)]
    load(raw, "INSERT BULK dbo.t (v varchar(10))", message(one, short("a"), short(None)))
    load(raw, "INSERT BULK dbo.t (v varchar(10)) WITH (KEEP_NULLS)", message(one, short(None)))
    # a listed identity column keeps what is sent
    load(raw, TWO_COLUMNS, message(TWO, number(100) + short("b")))
    load(raw, "INSERT BULK dbo.t (v varchar(10))", message(one, short("c")))
    assert rows(server, "SELECT id, v, w FROM dbo.t ORDER BY id") == [
        (10, "a", 7),
        (15, "none", 7),
        (20, None, 7),
        (100, "b", 7),
        (105, "c", 7),
    ]
    server.execute("INSERT INTO dbo.t (v) VALUES ('d')")
    assert rows(server, "SELECT MAX(id) AS last FROM dbo.t") == [(110,)]
    assert error(raw.batch("INSERT INTO dbo.t (id) VALUES (1)"))[0] == 544


STATEMENTS = {
    "no such table": ("INSERT BULK dbo.nosuch (id int)", (208, 1, 16)),
    "no such column": ("INSERT BULK dbo.t (nosuch int)", (207, 1, 16)),
    "a column twice": ("INSERT BULK dbo.t (id int, ID int)", (264, 1, 16)),
    "a computed column": ("INSERT BULK dbo.t (twice int)", (271, 1, 16)),
    "a rowversion": ("INSERT BULK dbo.t (ver binary(8))", (273, 1, 16)),
    "no such type": ("INSERT BULK dbo.t (id notatype)", (2715, 1, 16)),
    "no such option": ("INSERT BULK dbo.t (id int) WITH (KEEP_IDENTITY)", (102, 1, 15)),
    "no columns": ("INSERT BULK dbo.t", (102, 1, 15)),
    "after a statement": ("SELECT 1; INSERT BULK dbo.t (id int)", (428, 1, 16)),
    "before a statement": ("INSERT BULK dbo.t (id int); SELECT 1", (428, 1, 16)),
    "order by an unknown column": ("INSERT BULK dbo.t (id int) WITH (ORDER (x))", (4817, 1, 16)),
    "order by a column twice": ("INSERT BULK dbo.t (id int) WITH (ORDER (v, V))", (4818, 1, 16)),
    "order by a part of the clustered index": ("INSERT BULK dbo.t (id int) WITH (ORDER (id, v))", (50000, 1, 16)),
    "order by a column that is not sent": ("INSERT BULK dbo.t (v varchar(10)) WITH (ORDER (id))", (50000, 1, 16)),
    "descending order": ("INSERT BULK dbo.t (id int) WITH (ORDER (v DESC))", (50000, 1, 16)),
    "encrypted values": ("INSERT BULK dbo.t (id int) WITH (ALLOW_ENCRYPTED_VALUE_MODIFICATIONS)", (50000, 1, 16)),
    "another collation": ("INSERT BULK dbo.t (v varchar(10) COLLATE Latin1_General_CI_AS)", (50000, 1, 16)),
    "not null": ("INSERT BULK dbo.t (id int NOT NULL)", (50000, 1, 16)),
    "in a called batch": ("EXEC ('INSERT BULK dbo.t (id int)')", (50000, 1, 16)),
}


@pytest.mark.parametrize(("statement", "wanted"), STATEMENTS.values(), ids=STATEMENTS)
def test_statements_that_fail(server: Sandbox, raw: RawClient, statement: str, wanted: tuple[int, int, int]) -> None:
    server.execute(
        "CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, v varchar(10) NULL, twice AS id * 2, ver rowversion NOT NULL)"
    )
    assert error(raw.batch(statement)) == wanted
    assert raw.batch("SELECT 1 AS one").rows == [(b"\1\0\0\0",)]


ID = column("id", INT, nullable=False)
STREAMS = {
    "a column that is not nullable as one that is": ("id int", [column("id", INTN, nullable=True)], b"", (4816, 1, 16)),
    "a nullable column as one that is not": ("n int", [column("n", INT, nullable=False)], b"", (4816, 1, 16)),
    "another type": ("n int", [column("n", VARCHAR_10, nullable=True)], b"", (4816, 1, 16)),
    "another scale": ("d decimal(9,2)", [column("d", bytes.fromhex("6a 05 09 03"), nullable=True)], b"", (4816, 1, 16)),
    "a limited type for max": ("m nvarchar(20)", [column("m", NVARCHAR_20, nullable=True)], b"", (4816, 2, 16)),
    "max for a limited type": ("v nvarchar(20)", [column("v", NVARCHAR_MAX, nullable=True)], b"", (4816, 1, 16)),
    "xml": ("x xml", [column("x", bytes.fromhex("f1 00"), nullable=True)], b"", (4816, 1, 16)),
    "more columns": ("id int", [ID, column("n", INTN, nullable=True)], b"", (4804, 3, 16)),
    "fewer columns": ("id int, n int", [ID], b"", (4804, 3, 16)),
    "a short row": ("id int", [ID], b"\xd1\x01\x00" + DONE, (4804, 1, 17)),
    "half an end": ("id int", [ID], b"\xd1" + number(1) + DONE[:-1], (4804, 1, 17)),
    "another token": ("id int", [ID], b"\xd2" + number(1) + DONE, (4804, 1, 17)),
    "more after the end": ("id int", [ID], DONE + b"\0", (4804, 1, 17)),
    "a longer value": ("v varchar(10)", [TWO[1]], b"\xd1" + short("elevenchars") + DONE, (4815, 1, 17)),
    "a wide int": ("n int", [column("n", INTN, nullable=True)], b"\xd1\x08" + bytes(8) + DONE, (4815, 1, 17)),
    "a number too large": (
        "d decimal(9,2)",
        [column("d", bytes.fromhex("6a 05 09 02"), nullable=True)],
        b"\xd1" + bytes.fromhex("05 01 ffffffff") + DONE,
        (9803, 1, 16),
    ),
    "NULL": ("id int", [column("id", INTN, nullable=False)], b"\xd1\0" + DONE, (515, 2, 16)),
    "a key twice": ("id int", [ID], 2 * (b"\xd1" + number(1)) + DONE, (2627, 1, 14)),
    "no number": (
        "n varchar(10)",
        [column("n", VARCHAR_10, nullable=True)],
        b"\xd1" + short("zzz") + DONE,
        (245, 1, 16),
    ),
    "cut": ("s varchar(10)", [column("s", VARCHAR_10, nullable=True)], b"\xd1" + short("abcdef") + DONE, (2628, 1, 16)),
}


@pytest.mark.parametrize(("listed", "columns", "rest", "wanted"), STREAMS.values(), ids=STREAMS)
def test_streams_that_fail(
    server: Sandbox, raw: RawClient, listed: str, columns: list[bytes], rest: bytes, wanted: tuple[int, int, int]
) -> None:
    server.execute(
        "CREATE TABLE dbo.t (id int NOT NULL DEFAULT 0 PRIMARY KEY, n int NULL, d decimal(9,2) NULL,"
        " m nvarchar(max) NULL, v nvarchar(20) NULL, x xml NULL, s varchar(5) NULL)"
    )
    if listed == "id int" and wanted[0] == 515:
        listed += ") WITH (KEEP_NULLS"
    head = message(columns)[: -len(DONE)]
    answer = load(raw, f"INSERT BULK dbo.t ({listed})", head + (rest or DONE))
    assert error(answer) == wanted
    if wanted[0] == 4804:
        assert answer.of("error")[0][3].startswith(PREMATURE_END)
    assert rows(server, "SELECT id FROM dbo.t") == []
    # the connection goes on
    assert load(raw, "INSERT BULK dbo.t (id int)", message([ID], number(5))).tokens == [("done", 0x10, 240, 1)]


@pytest.mark.parametrize(
    ("key", "keys", "fails"),
    [
        ("CLUSTERED", [1, 2, 5], False),
        ("CLUSTERED", [1, 5, 2], True),
        ("CLUSTERED", [1, 2, 2], True),
        ("NONCLUSTERED", [1, 5, 2], False),
    ],
)
def test_the_order_in_which_rows_come(server: Sandbox, raw: RawClient, key: str, keys: list[int], fails: bool) -> None:
    server.execute(f"CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY {key})")
    answer = load(raw, "INSERT BULK dbo.t (id int) WITH (ORDER (id ASC))", message([ID], *map(number, keys)))
    assert (answer.of("error") != []) is fails
    if fails:
        assert error(answer) == (4819, 1, 16)
    stored = [] if fails else [(each,) for each in sorted(keys)]
    assert rows(server, "SELECT id FROM dbo.t ORDER BY id") == stored


def test_rows_without_columns_and_columns_without_rows(server: Sandbox, raw: RawClient) -> None:
    server.execute("CREATE TABLE dbo.t (id int NOT NULL)")
    assert error(load(raw, "INSERT BULK dbo.t (id int)", DONE)) == (4804, 2, 16)
    assert load(raw, "INSERT BULK dbo.t (id int)", message([ID])).tokens == [("done", 0x10, 240, 0)]


def test_another_request_than_the_rows(server: Sandbox, raw: RawClient) -> None:
    server.execute("CREATE TABLE dbo.t (id int NOT NULL)")
    raw.batch("INSERT BULK dbo.t (id int)")
    assert error(raw.batch("INSERT INTO dbo.t VALUES (1)")) == (4022, 1, 16)
    assert raw.batch("INSERT INTO dbo.t VALUES (2)").of("error") == []
    assert rows(server, "SELECT id FROM dbo.t") == [(2,)]
    raw.send(TYPE_BULK, message([ID], number(3)))
    assert "without INSERT BULK" in raw.answer().of("error")[0][3]


def test_half_a_character_ends_the_connection(server: Sandbox, raw: RawClient) -> None:
    server.execute("CREATE TABLE dbo.t (v nvarchar(20) NULL)")
    statement, columns = "INSERT BULK dbo.t (v nvarchar(20))", [column("v", NVARCHAR_20, nullable=True)]
    answer = load(raw, statement, message(columns, b"\x03\x00abc"))
    assert error(answer) == (4895, 1, 21)
    assert raw.ended()


@pytest.mark.parametrize("ended_by", ["attention", "ignore"])
def test_a_load_that_is_given_up_in_its_middle(server: Sandbox, raw: RawClient, ended_by: str) -> None:
    server.execute("CREATE TABLE dbo.t (id int NOT NULL)")
    raw.batch("BEGIN TRAN INSERT INTO dbo.t VALUES (1)")
    raw.batch("INSERT BULK dbo.t (id int)")
    begun = message([ID], *map(number, range(5000)))[: -len(DONE)]
    if ended_by == "attention":
        raw.send(TYPE_BULK, begun, status=0)
        raw.send(TYPE_ATTENTION, b"")
        assert raw.answer().tokens == [("done", 0x24, 0, 0)]
    else:
        raw.send(TYPE_BULK, begun, status=3)
        assert raw.answer().tokens == [("done", 0x06, 0, 0)]
    raw.batch("INSERT INTO dbo.t VALUES (2) COMMIT")
    assert rows(server, "SELECT id FROM dbo.t ORDER BY id") == [(1,), (2,)]


def test_an_attention_after_the_statement(server: Sandbox, raw: RawClient) -> None:
    server.execute("CREATE TABLE dbo.t (id int NOT NULL)")
    raw.batch("INSERT BULK dbo.t (id int)")
    raw.send(TYPE_ATTENTION, b"")
    assert raw.answer().tokens == [("done", 0x20, 0, 0)]
    assert raw.batch("SELECT 1 AS one").rows == [(b"\1\0\0\0",)]


def test_an_attention_while_a_load_waits_for_a_lock(server: Sandbox, raw: RawClient) -> None:
    server.execute("CREATE TABLE dbo.t (id int NOT NULL)")
    with logged_in(server) as other:
        other.batch("BEGIN TRAN INSERT INTO dbo.t VALUES (1)")
        raw.batch("INSERT BULK dbo.t (id int)")
        raw.send(TYPE_BULK, message([ID], number(2)))
        raw.send(TYPE_ATTENTION, b"")
        raw.answer()
        assert raw.answer().tokens == [("done", 0x20, 0, 0)]
        other.batch("COMMIT")
    assert rows(server, "SELECT id FROM dbo.t") == [(1,)]


@pytest.mark.parametrize("hint", ["", " WITH (TABLOCK)"])
def test_the_lock_of_a_load(server: Sandbox, raw: RawClient, hint: str) -> None:
    server.execute("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY) INSERT INTO dbo.t VALUES (1)")
    read = "SELECT id FROM dbo.t WITH (READCOMMITTEDLOCK) WHERE id = 1"
    with logged_in(server) as other:
        raw.batch("BEGIN TRAN")
        load(raw, f"INSERT BULK dbo.t (id int){hint}", message([ID], number(5)))
        other.batch("SET LOCK_TIMEOUT 0")
        assert error(other.batch("INSERT INTO dbo.t VALUES (6)"))[0] == 1222
        if hint:
            assert error(other.batch(read))[0] == 1222
        else:
            assert other.batch(read).rows == [(number(1),)]
        raw.batch("COMMIT")
        assert other.batch("SELECT id FROM dbo.t ORDER BY id").rows == [(number(1),), (number(5),)]


def test_transactions(server: Sandbox, raw: RawClient) -> None:
    server.execute("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY)")
    statement = "INSERT BULK dbo.t (id int)"
    state = "SELECT CAST(@@TRANCOUNT AS int) AS n, CAST(XACT_STATE() AS int) AS s, (SELECT COUNT(*) FROM dbo.t) AS c"

    def numbers() -> tuple[int, ...]:
        (row,) = raw.batch(state).rows
        return tuple(int.from_bytes(value or b"", "little") for value in row)

    raw.batch("BEGIN TRAN INSERT INTO dbo.t VALUES (50)")
    assert error(load(raw, statement, message([ID], number(1), number(1)))) == (2627, 1, 14)
    assert numbers() == (1, 1, 1)
    assert load(raw, statement, message([ID], number(2), number(3))).tokens == [("done", 0x14, 240, 2)]
    assert numbers() == (1, 1, 3)
    raw.batch("ROLLBACK")
    assert numbers() == (0, 0, 0)
    raw.batch("SET XACT_ABORT ON BEGIN TRAN INSERT INTO dbo.t VALUES (60)")
    assert error(load(raw, statement, message([ID], number(9), number(9)))) == (2627, 1, 14)
    assert numbers() == (0, 0, 0)


def test_implicit_transactions(server: Sandbox, raw: RawClient) -> None:
    server.execute("CREATE TABLE dbo.t (id int NOT NULL)")
    raw.batch("set implicit_transactions on")
    load(raw, "INSERT BULK dbo.t (id int)", message([ID], number(1)))
    raw.batch("IF @@TRANCOUNT > 0 ROLLBACK TRAN")
    assert rows(server, "SELECT id FROM dbo.t") == []
    load(raw, "INSERT BULK dbo.t (id int)", message([ID], number(2)))
    raw.batch("IF @@TRANCOUNT > 0 COMMIT TRAN")
    assert rows(server, "SELECT id FROM dbo.t") == [(2,)]


def test_counts(server: Sandbox, raw: RawClient) -> None:
    server.execute("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY)")
    raw.batch("SET NOCOUNT ON")
    assert load(raw, "INSERT BULK dbo.t (id int)", message([ID], number(1), number(2))).tokens == [("done", 0, 240, 0)]
    assert raw.batch("SELECT @@ROWCOUNT AS n").rows == [(b"\2\0\0\0",)]
    load(raw, "INSERT BULK dbo.t (id int)", message([ID], number(1)))
    assert raw.batch("SELECT @@ERROR AS e").rows == [((2627).to_bytes(4, "little"),)]


def test_names(server: Sandbox, raw: RawClient) -> None:
    server.execute("CREATE TABLE dbo.[we]]ird] ([c]]ol] int NULL)")
    one = [column("elsewhere", INTN, nullable=True)]
    for name in ("[dbo].[we]]ird]", "shop.dbo.[we]]ird]", "DBO . [WE]]IRD]"):
        load(raw, f"INSERT BULK {name} ([c]]ol] int)", message(one, maybe(7)))
    raw.batch("CREATE TABLE #local (k int NULL)")
    load(raw, "INSERT BULK #local (k int)", message(one, maybe(8)))
    assert raw.batch("SELECT k FROM #local").rows == [((8).to_bytes(4, "little"),)]
    assert rows(server, "SELECT [c]]ol] FROM dbo.[we]]ird]") == [(7,)] * 3
    server.execute("DROP TABLE dbo.[we]]ird]")


def test_a_table_that_changes_meanwhile(server: Sandbox, raw: RawClient) -> None:
    server.execute("CREATE TABLE dbo.t (id int NOT NULL)")
    raw.batch("INSERT BULK dbo.t (id int)")
    server.execute("ALTER TABLE dbo.t ADD n int NULL")
    raw.send(TYPE_BULK, message([ID], number(1)))
    assert error(raw.answer()) == (4891, 1, 16)


def test_rights(server: Sandbox, raw: RawClient) -> None:
    server.execute("CREATE TABLE dbo.t (id int IDENTITY NOT NULL, v varchar(10) NULL)")
    server.execute("CREATE LOGIN copier WITH PASSWORD = 'Pw-copier1'; CREATE USER copier FOR LOGIN copier")
    with RawClient(server.port) as client:
        client.login(user="copier", password="Pw-copier1", database="shop")
        assert error(client.batch("INSERT BULK dbo.t (v varchar(10))")) == (229, 5, 14)
        server.execute("GRANT INSERT ON dbo.t TO copier")
        assert load(client, "INSERT BULK dbo.t (v varchar(10))", message([TWO[1]], short("a"))).of("error") == []
        assert error(client.batch(TWO_COLUMNS))[0] == 1088
        server.execute("GRANT ALTER ON dbo.t TO copier")
        assert load(client, TWO_COLUMNS, message(TWO, number(5) + short("b"))).of("error") == []
    assert rows(server, "SELECT id, v FROM dbo.t ORDER BY id") == [(1, "a"), (5, "b")]


def test_random_streams_get_an_error_or_are_stored(server: Sandbox) -> None:
    server.execute("CREATE TABLE dbo.fuzz (id int NOT NULL, n int NULL, v varchar(10) NULL, m nvarchar(max) NULL)")
    columns = [
        ID,
        column("n", INTN, nullable=True),
        TWO[1],
        column("m", NVARCHAR_MAX, nullable=True),
    ]
    large = (6).to_bytes(8, "little") + (6).to_bytes(4, "little") + "abc".encode("utf-16-le") + bytes(4)
    whole = message(
        columns, number(1) + maybe(5) + short("abc") + large, number(2) + maybe(None) + short(None) + b"\xff" * 8
    )
    rng = random.Random(11)
    for _ in range(200):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        with logged_in(server) as raw:
            raw.batch("INSERT BULK dbo.fuzz (id int, n int, v varchar(10), m nvarchar(max))")
            raw.send(TYPE_BULK, bytes(data[: rng.choice((len(data), rng.randrange(len(data))))]))
            for found in raw.answer().of("error"):
                assert not re.match(r"\w+(Error|Exception|Invalid)\b", found[3]), found
    server.execute("DROP TABLE dbo.fuzz")


def test_a_batch_that_is_not_bulk_after_an_ignored_packet(raw: RawClient) -> None:
    raw.send(TYPE_BATCH, b"x", status=3)
    assert raw.answer().tokens == [("done", 2, 0, 0)]
    assert raw.batch("SELECT 1 AS one").rows == [(b"\1\0\0\0",)]


def test_computed_columns_are_described_as_such(server: Sandbox, raw: RawClient) -> None:
    server.execute("CREATE TABLE dbo.t (id int IDENTITY NOT NULL, n int NULL, v AS n * 2)")
    (described,) = raw.batch("SELECT id, n, v FROM dbo.t").of("columns")
    assert [each.flags for each in described[0]] == [0x18, 0x09, 0x21]
