"""Columns of every type: their bytes, what pymssql reads, and what is refused."""

from __future__ import annotations

import datetime as dt
import itertools
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_mssql_cdc.sandbox.protocol import Column, ResultSet, RowCount
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType
from tests.support.sandbox.wire.layout import declared, in_row
from tests.support.sandbox.wire.rawclient import EMPTY_HEADERS, TYPE_BATCH, ColumnInfo, RawClient, python_value
from tests.support.sandbox.wire.samples import SAMPLES, Sample
from tests.support.sandbox.wire.toy import ToyBackend, record_batch, result


def metadata(columns: list[tuple[SqlType, bool, str]]) -> bytes:
    parts = [b"\x81" + len(columns).to_bytes(2, "little")]
    for kind, nullable, name in columns:
        user_type = 80 if kind.name == "rowversion" else 0
        flags = 9 if nullable else 8
        parts.append(user_type.to_bytes(4, "little") + flags.to_bytes(2, "little"))
        parts.append(declared(kind, nullable=nullable))
        parts.append(bytes([len(name)]) + name.encode("utf-16-le"))
    return b"".join(parts)


def done(rows: int) -> bytes:
    return b"\xfd\x10\x00\xc1\x00" + rows.to_bytes(8, "little")


def whole_reply(backend: ToyBackend, raw: RawClient, columns: list[Column], batch: pa.RecordBatch) -> bytes:
    backend.scripts["rows"] = lambda session: result(columns, batch)
    raw.send(TYPE_BATCH, EMPTY_HEADERS + "rows".encode("utf-16-le"))
    return raw.read_message()[1]


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_bytes_of_a_nullable_column(sample: Sample, backend: ToyBackend, raw: RawClient) -> None:
    columns = [Column("c", sample.type)]
    reply = whole_reply(backend, raw, columns, record_batch(columns, [sample.arrow]))
    row = b"\xd1" + in_row(sample.type, sample.wire, nullable=True)
    assert reply == metadata([(sample.type, True, "c")]) + row + done(1)


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_bytes_of_a_column_that_is_not_null(sample: Sample, backend: ToyBackend, raw: RawClient) -> None:
    columns = [Column("c", sample.type, nullable=False)]
    reply = whole_reply(backend, raw, columns, record_batch(columns, [sample.arrow, sample.arrow]))
    row = b"\xd1" + in_row(sample.type, sample.wire, nullable=False)
    assert reply == metadata([(sample.type, False, "c")]) + row + row + done(2)


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_null_among_values(sample: Sample, backend: ToyBackend, raw: RawClient) -> None:
    columns = [Column("i", SqlType("int")), Column("c", sample.type)]
    batch = record_batch(columns, [7, None, None, 8], [None, sample.arrow, None, sample.arrow])
    reply = whole_reply(backend, raw, columns, batch)
    value = in_row(sample.type, sample.wire, nullable=True)
    rows = [b"\x02" + b"\x04\x07\0\0\0", b"\x01" + value, b"\x03", b"\x00" + b"\x04\x08\0\0\0" + value]
    head = metadata([(SqlType("int"), True, "i"), (sample.type, True, "c")])
    assert reply == head + b"".join(b"\xd2" + row for row in rows) + done(4)


def test_pymssql_reads_every_sample(backend: ToyBackend, connect: Callable[..., Any]) -> None:
    columns = [Column(f"c{place}", sample.type) for place, sample in enumerate(SAMPLES)]
    batch = record_batch(columns, *([sample.arrow, None] for sample in SAMPLES))
    backend.scripts["rows"] = lambda session: result(columns, batch)
    cursor = connect().cursor()
    cursor.execute("rows")
    assert cursor.fetchall() == [tuple(sample.python for sample in SAMPLES), (None,) * len(SAMPLES)]


def test_identity_and_names(backend: ToyBackend, raw: RawClient) -> None:
    columns = [Column("", SqlType("int")), Column("naïve 😀", SqlType("bigint"), nullable=False, identity=True)]
    backend.scripts["rows"] = lambda session: result(columns)
    (info,) = raw.batch("rows").of("columns")[0]
    assert [(item.name, item.flags) for item in info] == [("", 9), ("naïve 😀", 0x18)]


TEXTS = ["", "a", "é", "€ж", "中文", "😀", "x" * 300, "ab😀é" * 20, "\x7f\x80ÿ"]


def random_column(kind: SqlType, rng: random.Random, rows: int) -> list[Any]:
    """Arbitrary values of a type, a fifth of them NULL, in the form of its Arrow type."""
    makers: dict[str, Callable[[], Any]] = {
        "bit": lambda: rng.random() < 0.5,
        "tinyint": lambda: rng.randrange(256),
        "bigint": lambda: rng.randrange(-(2**63), 2**63),
        "float": lambda: rng.uniform(-1e9, 1e9),
        "decimal": lambda: Decimal(rng.randrange(-(10**18), 10**18)).scaleb(-4),
        "money": lambda: Decimal(rng.randrange(-(2**63), 2**63)).scaleb(-4),
        "date": lambda: dt.date.fromordinal(rng.randrange(1, 3652060)),
        "datetime2": lambda: rng.randrange(3652059 * 864_000_000_000),
        "datetimeoffset": lambda: {
            "utc_ticks": rng.randrange(10**15, 10**18),
            "offset_minutes": rng.randrange(-840, 841),
        },
        "binary": lambda: rng.randbytes(10),
        "varbinary": lambda: rng.randbytes(rng.randrange(40)),
        "nvarchar": lambda: rng.choice(TEXTS),
        "varchar": lambda: rng.choice(TEXTS[:3]),
        "xml": lambda: rng.choice(TEXTS),
        "ntext": lambda: rng.choice(TEXTS),
    }
    return [None if rng.random() < 0.2 else makers[kind.name]() for _ in range(rows)]


MIXED = [
    SqlType("bigint"),
    SqlType("bit"),
    SqlType("nvarchar", 400),
    SqlType("decimal", precision=18, scale=4),
    SqlType("money"),
    SqlType("datetime2", scale=7),
    SqlType("datetimeoffset", scale=7),
    SqlType("date"),
    SqlType("binary", 10),
    SqlType("varbinary", MAX),
    SqlType("varchar", 8),
    SqlType("nvarchar", MAX),
    SqlType("float"),
    SqlType("xml"),
    SqlType("ntext"),
    SqlType("tinyint"),
]


def expected(info: ColumnInfo, value: Any) -> Any:
    if isinstance(value, dict):
        return value["utc_ticks"], value["offset_minutes"]
    return (value - dt.date(1, 1, 1)).days if isinstance(value, dt.date) else value


def test_random_rows_of_many_types_in_slices(backend: ToyBackend, raw: RawClient) -> None:
    rng = random.Random(20)
    columns = [Column(kind.name, kind) for kind in MIXED]
    values = [random_column(kind, rng, 4000) for kind in MIXED]
    whole = record_batch(columns, *values)
    # Batches that begin inside their buffers, some with no rows.
    edges = [0, 0, 1, 7, 8, 1500, 1500, 4000]
    slices = [whole.slice(start, end - start) for start, end in itertools.pairwise(edges)]
    backend.scripts["rows"] = lambda session: result(columns, *slices)
    answer = raw.batch("rows")
    info = answer.of("columns")[0][0]
    received = [tuple(map(python_value, info, row)) for row in answer.rows]
    assert received == [tuple(map(expected, info, row)) for row in zip(*values, strict=True)]
    assert answer.tokens[-1] == ("done", 0x10, 0xC1, 4000)


def test_bytes_under_null_slots_are_not_sent(backend: ToyBackend, raw: RawClient) -> None:
    kinds = [SqlType("nvarchar", 10), SqlType("varbinary", 10), SqlType("char", 3), SqlType("uniqueidentifier")]
    columns = [Column(kind.name, kind) for kind in kinds]
    guid = "6F9619FF-8B86-D011-B42D-00C04FC964FF"
    validity = pa.py_buffer(bytes([0b101]))
    arrays = []
    for kind, items in zip(
        kinds, [["ab", "é", "cd"], [b"12", b"3", b"45"], ["abc", "x", "def"], [guid] * 3], strict=True
    ):
        filled = pa.array(items, kind.arrow)
        arrays.append(pa.Array.from_buffers(kind.arrow, 3, [validity, *filled.buffers()[1:]]))
    backend.scripts["rows"] = lambda session: result(columns, pa.RecordBatch.from_arrays(arrays, names=list("abcd")))
    answer = raw.batch("rows")
    info = answer.of("columns")[0][0]
    first, second, third = (tuple(map(python_value, info, row)) for row in answer.rows)
    assert (first, second, third) == (("ab", b"12", "abc", guid), (None,) * 4, ("cd", b"45", "def", guid))


@pytest.mark.parametrize("count", [8, 9, 17, 300])
def test_null_bitmap_of_wide_rows(count: int, backend: ToyBackend, raw: RawClient) -> None:
    columns = [Column(f"c{place}", SqlType("smallint")) for place in range(count)]
    values = [[place, None] if place % 3 else [None, place] for place in range(count)]
    backend.scripts["rows"] = lambda session: result(columns, record_batch(columns, *values))
    rows = raw.batch("rows").rows
    encoded = [[None if item is None else item.to_bytes(2, "little") for item in pair] for pair in values]
    assert rows == list(zip(*encoded, strict=True))


def test_large_values_cross_packets(backend: ToyBackend, raw: RawClient) -> None:
    columns = [Column("n", SqlType("nvarchar", MAX)), Column("b", SqlType("varbinary", MAX))]
    long_text, long_bytes = "é😀" * 200_000, random.Random(3).randbytes(3_000_000)
    batch = record_batch(columns, [long_text, "", None, "x"], [long_bytes, b"", None, b"y"])
    backend.scripts["rows"] = lambda session: result(columns, batch)
    rows = raw.batch("rows").rows
    assert rows[0] == (long_text.encode("utf-16-le"), long_bytes)
    assert rows[1:] == [(b"", b""), (None, None), ("x".encode("utf-16-le"), b"y")]


def one(kind: SqlType, value: Any, arrow: pa.DataType | None = None) -> tuple[list[Column], pa.RecordBatch]:
    return [Column("c", kind)], pa.RecordBatch.from_arrays([pa.array([value], arrow or kind.arrow)], names=["c"])


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        (SqlType("varchar", 3), "abcd", "4 bytes"),
        (SqlType("nvarchar", 3), "😀😀", "8 bytes"),
        (SqlType("varbinary", 3), b"abcd", "4 bytes"),
        (SqlType("char", 3), "ab", "2 bytes"),
        (SqlType("nchar", 3), "ab", "4 bytes"),
        (SqlType("binary", 10), b"123456789", "9 bytes"),
        (SqlType("rowversion"), b"1234567", "7 bytes"),
        (SqlType("time", scale=3), 1, "does not fit"),
        (SqlType("time", scale=7), 864_000_000_000, "does not fit"),
        (SqlType("datetime2", scale=7), -1, "does not fit"),
        (SqlType("datetime2", scale=7), 3652059 * 864_000_000_000, "does not fit"),
        (SqlType("datetimeoffset", scale=7), {"utc_ticks": 0, "offset_minutes": -1}, "does not fit"),
        (SqlType("datetimeoffset", scale=7), {"utc_ticks": 10**18, "offset_minutes": 841}, "does not fit"),
        (SqlType("datetimeoffset", scale=7), {"utc_ticks": 0, "offset_minutes": None}, "NULL in one"),
        (SqlType("smalldatetime"), dt.datetime(2020, 1, 1, 0, 0, 30), "does not fit"),
        (SqlType("smalldatetime"), dt.datetime(1899, 12, 31), "does not fit"),
        (SqlType("datetime"), dt.datetime(1752, 12, 31), "does not fit"),
        (SqlType("money"), Decimal("922337203685477.5808"), "does not fit"),
        (SqlType("smallmoney"), Decimal("214748.3648"), "does not fit"),
        (SqlType("uniqueidentifier"), "6F9619FF", "36 characters"),
        (SqlType("uniqueidentifier"), "G" * 36, "hexadecimal"),
    ],
)
def test_a_value_that_does_not_fit_is_an_error(
    kind: SqlType, value: Any, reason: str, backend: ToyBackend, raw: RawClient
) -> None:
    columns, batch = one(kind, value)
    backend.scripts["rows"] = lambda session: result(columns, batch)
    answer = raw.batch("rows")
    ((number, _, severity, text, *_),) = answer.of("error")
    assert (number, severity, answer.rows) == (50000, 16, [])
    assert reason in text
    assert raw.batch("again").tokens == [("done", 0, 0, 0)]


def test_columns_that_are_not_as_declared_are_an_error(backend: ToyBackend, raw: RawClient) -> None:
    columns, batch = one(SqlType("int"), 1, pa.int64())
    backend.scripts["type"] = lambda session: result(columns, batch)
    backend.scripts["count"] = lambda session: result(columns * 2, one(SqlType("int"), 1)[1])
    null = one(SqlType("int"), None)[1]
    backend.scripts["null"] = lambda session: result([Column("c", SqlType("int"), nullable=False)], null)
    backend.scripts["unknown"] = lambda session: iter(
        [ResultSet([Column("c", SqlType("sql_variant"))], iter([])), RowCount()]
    )
    texts = [raw.batch(name).of("error")[0][3] for name in ("type", "count", "null", "unknown")]
    assert [text.split(":")[0] for text in texts] == ["TypeError", "TypeError", "ValueError", "TypeError"]
    assert "sql_variant" in texts[3]
