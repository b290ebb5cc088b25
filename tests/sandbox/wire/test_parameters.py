"""RPC requests: parameters of every type as a session gets them, and what comes back from a call."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from airflow_provider_mssql_cdc.sandbox.protocol import Parameter
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType
from tests.support.sandbox.wire.layout import COLLATION, declared, in_row
from tests.support.sandbox.wire.rawclient import EMPTY_HEADERS, TYPE_RPC, Answer, ColumnInfo, RawClient
from tests.support.sandbox.wire.samples import SAMPLES, Sample
from tests.support.sandbox.wire.toy import SP_EXECUTESQL, ToyBackend

TEXT_INFO = bytes.fromhex("e7401f" + COLLATION)
OLD_LARGE = ("text", "ntext", "image")


def named(name: str, status: int = 0) -> bytes:
    return bytes([len(name)]) + name.encode("utf-16-le") + bytes([status])


def text_parameter(value: str) -> bytes:
    data = value.encode("utf-16-le")
    return named("") + TEXT_INFO + len(data).to_bytes(2, "little") + data


def by_number(number: int, *parameters: bytes, options: int = 0) -> bytes:
    return struct.pack("<HHH", 0xFFFF, number, options) + b"".join(parameters)


def by_name(name: str, *parameters: bytes) -> bytes:
    return struct.pack("<H", len(name)) + name.encode("utf-16-le") + bytes(2) + b"".join(parameters)


def call(raw: RawClient, *calls: bytes) -> Answer:
    raw.send(TYPE_RPC, EMPTY_HEADERS + b"\xff".join(calls))
    return raw.answer()


def info_of(kind: SqlType) -> bytes:
    # Columns of the old large types name their table behind the TYPE_INFO.
    return declared(kind, nullable=True)[: -3 if kind.name in OLD_LARGE else None]


def value_of(sample: Sample) -> bytes:
    if sample.type.name in OLD_LARGE:
        data = bytes.fromhex(sample.wire)
        return len(data).to_bytes(4, "little") + data
    return in_row(sample.type, sample.wire, nullable=True)


def null_of(kind: SqlType) -> bytes:
    if kind.name in OLD_LARGE:
        return b"\xff" * 4
    if kind.length == MAX or kind.name == "xml":
        return b"\xff" * 8
    return b"\xff\xff" if kind.length or kind.name in ("rowversion", "sysname") else b"\0"


def seen_as(kind: SqlType) -> SqlType:
    """The wire does not tell sysname from nvarchar(128), nor rowversion from binary(8)."""
    return {"sysname": SqlType("nvarchar", 128), "rowversion": SqlType("binary", 8)}.get(kind.name, kind)


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_a_value_and_a_null_of_each_type(sample: Sample, backend: ToyBackend, raw: RawClient) -> None:
    info = info_of(sample.type)
    head = (text_parameter("echo"), text_parameter("@v"))
    value, null = named("@v") + info + value_of(sample), named("@n") + info + null_of(sample.type)
    answer = call(raw, by_number(SP_EXECUTESQL, *head, value, null))
    kind = seen_as(sample.type)
    python = tuple(sample.arrow.values()) if isinstance(sample.arrow, dict) else sample.arrow
    ((number, parameters),) = backend.calls
    assert number == SP_EXECUTESQL
    assert parameters[2:] == [Parameter("@v", kind, python), Parameter("@n", kind, None)]
    assert type(parameters[2].value) is type(python)
    wire = bytes.fromhex(sample.wire)
    prefixed = not (sample.type.length == MAX or sample.type.name in (*OLD_LARGE, "xml"))
    length = (2 if sample.type.length or sample.type.name in ("rowversion", "sysname") else 1) if prefixed else 0
    assert answer.rows == [(wire[length:], None)]
    assert answer.tokens[2:] == [("doneinproc", 0x11, 0xC1, 1), ("status", 0), ("doneproc", 0, 0, 0)]


@pytest.mark.parametrize(
    ("info", "value", "kind", "python"),
    [
        ("38", "fbffffff", SqlType("int"), -5),
        ("7f", "0000000000000080", SqlType("bigint"), -(2**63)),
        ("32", "01", SqlType("bit"), True),
        ("3e", "000000000000f83f", SqlType("float"), 1.5),
        ("6c 05 05 02", "05 00 7b000000", SqlType("decimal", precision=5, scale=2), None),
        # A large value of unknown total length in two chunks.
        ("a5 ffff", "feffffffffffffff 01000000 aa 02000000 bbcc 00000000", SqlType("varbinary", MAX), b"\xaa\xbb\xcc"),
        ("a7 0a00 0904 d004 00", "0300 c3a921", SqlType("varchar", 10), "é!"),
        ("a7 0a00 0000 0000 00", "0100 80", SqlType("varchar", 10), "€"),
        ("e7 0400" + COLLATION, "0200 3dd8", SqlType("nvarchar", 2), "\ud83d"),
        ("f1 00", "0200000000000000 02000000 fffe 00000000", SqlType("xml"), ""),
    ],
)
def test_other_layouts(info: str, value: str, kind: SqlType, python: Any, backend: ToyBackend, raw: RawClient) -> None:
    call(raw, by_name("p", named("@a") + bytes.fromhex(info) + bytes.fromhex(value)))
    ((name, (parameter,)),) = backend.calls
    assert (name, parameter.type) == ("p", kind)
    assert parameter.value == python or str(parameter.value) == "-1.23"


@pytest.mark.parametrize("sample", [item for item in SAMPLES if item.type.name not in OLD_LARGE], ids=str)
def test_output_parameters(sample: Sample, raw: RawClient) -> None:
    info = info_of(sample.type)
    answer = call(
        raw,
        by_name(
            "p",
            named("@a") + info + value_of(sample),
            named("@out", 1) + info + value_of(sample),
            named("@null", 1) + info + null_of(sample.type),
        ),
    )
    values = answer.of("returnvalue")
    assert [item[:3] for item in values] == [(1, "@out", 1), (2, "@null", 1)]
    kind: ColumnInfo = values[0][3]
    assert kind.token == info[0]
    wire = bytes.fromhex(sample.wire)
    assert wire.endswith(values[0][4])
    assert len(wire) - len(values[0][4]) <= 2
    assert values[1][4] is None
    assert answer.tokens[-1] == ("doneproc", 0, 0, 0)


def test_default_flag_and_names(backend: ToyBackend, raw: RawClient) -> None:
    call(raw, by_name("sys.sp_x", named("@a", 2) + b"\x26\x04\x00", named("", 1) + b"\x26\x01\x01\x07"))
    expected = [
        Parameter("@a", SqlType("int"), None, output=False, default=True),
        Parameter("", SqlType("tinyint"), 7, output=True),
    ]
    assert backend.calls == [("sys.sp_x", expected)]


def test_several_calls_in_one_request(backend: ToyBackend, raw: RawClient) -> None:
    answer = call(raw, by_name("a"), by_number(15, named("") + b"\x38\x01\0\0\0"), by_name("b"))
    assert [name for name, _ in backend.calls] == ["a", 15, "b"]
    end, last = ("doneproc", 1, 0, 0), ("doneproc", 0, 0, 0)
    assert answer.tokens == [("status", 0), end, ("status", 0), end, ("status", 0), last]


def test_columns_are_described_though_the_client_would_do_without(raw: RawClient) -> None:
    # A handle that is prepared again for another type: msodbcsql asks for no metadata, and needs it.
    for info, token in (("38 01000000", 0x26), ("32 01", 0x68)):
        value = named("@v") + bytes.fromhex(info)
        answer = call(raw, by_number(SP_EXECUTESQL, text_parameter("echo"), text_parameter(""), value, options=2))
        ((columns,),) = answer.of("columns")
        assert [column.token for column in columns] == [token]


@pytest.mark.parametrize(
    ("info", "name"),
    [
        ("62 401f0000", "sql_variant"),
        ("f0 ffff", "CLR"),
        ("f3 00", "table-valued"),
        ("f4", "json"),
        ("f5", "vector"),
        ("26 03", "0x26"),
        ("1f", "0x1F"),
        ("6a 11 27 00", "0x6A"),
        ("29 08", "0x29"),
        ("a7 0a00 1104 d000 00", "collation"),
        ("f1 01", "schema collection"),
    ],
)
def test_types_the_sandbox_does_not_have_are_refused(info: str, name: str, backend: ToyBackend, raw: RawClient) -> None:
    answer = call(raw, by_name("p", named("@a") + bytes.fromhex(info) + bytes(20)))
    ((number, _, severity, text, *_),) = answer.of("error")
    assert (number, severity, answer.tokens[-1], backend.calls) == (50000, 16, ("done", 2, 0, 0), [])
    assert name in text
    assert raw.batch("again").tokens == [("done", 0, 0, 0)]


@pytest.mark.parametrize(
    "broken",
    [
        "28 04 00000000",
        "29 07 06 000000000000",
        "24 10 02 0000",
        "6d 08 03 000000",
        "29 07 04 00000000",
        "26 04 02 0000",
        "a5 ffff 0500000000000000 01000000 aa 00000000",
    ],
)
def test_a_value_of_a_wrong_length_ends_the_connection(broken: str, backend: ToyBackend, raw: RawClient) -> None:
    answer = call(raw, by_name("p", named("@a") + bytes.fromhex(broken)))
    assert answer.of("error")[0][0] == 4002
    assert raw.ended()
    assert not backend.calls


@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        # what tdsodbc 1.3.17 makes of 0001-01-01: the day before
        ("28 03 ffffff", "date"),
        ("28 03 dbb937", "date"),
        ("29 07 05 00c0692ac9", "time"),
        ("29 00 03 805101", "time"),
        ("2a 07 08 0000000000 dbb937", "datetime2"),
        ("2b 07 0a 0000000000 000000 4903", "datetimeoffset"),
        ("2b 07 0a 0000000000 dbb937 0000", "datetimeoffset"),
        ("6f 08 08 452effff 00000000", "datetime"),
        ("6f 08 08 ffffff7f 00000000", "datetime"),
        ("6d 08 08 000000000000f87f", "float"),
        ("6d 08 08 000000000000f0ff", "float"),
        ("6d 04 04 0000807f", "real"),
        ("6a 05 02 01 05 01 64000000", "decimal"),
        ("e7 0400" + COLLATION + "0300 610062", "nvarchar"),
    ],
)
def test_a_value_that_its_type_has_not_fails_the_call_alone_memory(
    broken: str, kind: str, backend: ToyBackend, raw: RawClient
) -> None:
    answer = call(raw, by_name("p", named("@a") + b"\x38\x01\0\0\0", named("@b") + bytes.fromhex(broken)))
    ((number, state, severity, text, *_),) = answer.of("error")
    assert (number, state, severity, backend.calls) == (8023, 1, 16, [])
    assert f'Parameter 2 ("@b"): The supplied value is not a valid instance of data type {kind}.' in text
    assert raw.batch("again").tokens == [("done", 0, 0, 0)]
