"""Random reads of a change table: those that are read as they lie have the rows and types that a query gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.sandbox.protocol import Message, ResultSet
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from airflow_provider_mssql_cdc.sandbox.tsql import direct, query
from tests.sandbox.tsql.conftest import Client
from tests.support.sandbox.kinds import CHANGE_TABLE, COLUMNS, changes, compiled_queries, create

KEY = ("__$start_lsn", "__$command_id", "__$seqval", "__$operation")
FUNCTION_KEY = ("__$start_lsn", "__$seqval", "__$operation")
COMPUTED = (
    "{c}id + 1", "CAST(NULL AS varchar(5))", "NULL", "N'constant'", "CONVERT(varchar(27), {c}at, 121)", "{c}amount * 2",
    "CASE {c}[__$operation] WHEN 1 THEN 'D' WHEN 2 THEN 'I' END", "UPPER({c}name)", "SUBSTRING({c}raw, 1, 2)",
    "sys.fn_cdc_map_lsn_to_time({c}[__$start_lsn])", "ISNULL({c}note, 'none')", "{c}zoned",
    "TODATETIMEOFFSET({c}at, 60)", "sys.fn_cdc_is_bit_set(2, {c}[__$update_mask])", "{c}flag",
)  # fmt: skip
CONDITIONS = (
    "{c}[__$operation] <> 3", "{c}[__$operation] IN (2, 4)", "{c}id > 2", "{c}name IS NOT NULL", "{c}name = N'X'",
    "({c}flag = 1 OR {c}amount < 0)", "NOT {c}id = 1", "1 = 1", "1 = 0", "{c}raw = 0x00FF",
    "CONVERT(int, SUBSTRING({c}[__$update_mask], DATALENGTH({c}[__$update_mask]), 1)) & 2 <> 0",
)  # fmt: skip


@pytest.fixture(scope="module")
def server(sandbox: Sandbox) -> Sandbox:
    create(sandbox)
    return sandbox


@st.composite
def conditions(draw: st.DrawFn, qualifier: str, lsns: list[bytes], others: tuple[str, ...] = CONDITIONS) -> str:
    """A condition of a row's LSN, of its place, or of anything else."""
    column = f"{qualifier}[__$start_lsn]"

    def lsn() -> str:
        literal = draw(st.sampled_from([*(f"0x{lsn.hex()}" for lsn in lsns), "0x00", "0xFFFFFFFFFFFFFFFFFFFF", "@low"]))
        return draw(st.sampled_from([literal, f"CAST({literal} AS binary(10))"]))

    operator = draw(st.sampled_from(["<", "<=", "=", ">=", ">", "<>"]))
    match draw(st.integers(0, 5)):
        case 0 | 1:
            return f"{column} {operator} {lsn()}"
        case 2:
            return f"{lsn()} {operator} {column}"
        case 3:
            return f"{column} BETWEEN {lsn()} AND {lsn()}"
        case 4:
            place = f"{column} = {lsn()} AND {qualifier}[__$operation] > 2"
            return f"({place} OR {column} > {lsn()})"
    return draw(st.sampled_from(others)).format(c=qualifier)


@st.composite
def statements(draw: st.DrawFn, lsns: list[bytes]) -> tuple[str, bool]:
    """A SELECT, and whether the order of its rows is known."""
    function = draw(st.booleans()) and draw(st.booleans())
    key = FUNCTION_KEY if function else KEY
    source = f"cdc.fn_cdc_get_all_changes_dbo_kinds(0x{lsns[0].hex()}, 0x{lsns[-1].hex()}, N'all update old')"
    joined = draw(st.sampled_from(["", "", "LEFT", "INNER"]))
    alias = "c" if joined or function else draw(st.sampled_from(["", "c"]))
    qualifier = f"{alias}." if alias else ""
    names = [*COLUMNS, *key, "__$update_mask"]
    items = [f"{qualifier}[{name}]" for name in draw(st.lists(st.sampled_from(names), max_size=4))]
    items += [item.format(c=qualifier) for item in draw(st.lists(st.sampled_from(COMPUTED), max_size=2))]
    items += [f"{qualifier}*"] if draw(st.integers(0, 4)) == 0 or not items else []
    items += ["m.tran_end_time"] if joined else []
    items = draw(st.permutations([f"{item} AS v{n}" if "*" not in item else item for n, item in enumerate(items)]))
    columns = [f"{qualifier}[{name}]" for name in key]
    if draw(st.booleans()):
        within = draw(st.integers(0, len(key) - 1))
        partition = f"PARTITION BY {', '.join(draw(st.permutations(columns[:within])))} " if within else ""
        items.append(f"ROW_NUMBER() OVER ({partition}ORDER BY {', '.join(columns[within:])}) AS number")
    text = f"SELECT {', '.join(items)} FROM {source if function else CHANGE_TABLE} {alias}"
    text += f" {joined} JOIN cdc.lsn_time_mapping m ON m.start_lsn = {columns[0]}" if joined else ""
    if joined and draw(st.booleans()):
        text += f" AND m.start_lsn > 0x{lsns[1].hex()}"
    wanted = draw(st.lists(conditions(qualifier, lsns), max_size=3))
    text += f" WHERE {' AND '.join(wanted)}" if wanted else ""
    sorted_by = draw(st.sampled_from([0, len(key), len(key)]))
    if sorted_by and draw(st.booleans()):
        top = draw(st.integers(0, 12))
        if draw(st.booleans()):
            return f"SELECT TOP ({top}) {text[7:]} ORDER BY {', '.join(columns)}", True
        return f"{text} ORDER BY {', '.join(columns)} OFFSET {top} ROWS FETCH NEXT 5 ROWS ONLY", True
    text += f" ORDER BY {', '.join(columns)}" if sorted_by else ""
    return text, bool(sorted_by)


@st.composite
def nested(draw: st.DrawFn, lsns: list[bytes]) -> tuple[str, bool]:
    """A SELECT over another one, which is a derived table or a common table expression."""
    within = draw(st.sampled_from(["", "PARTITION BY __$start_lsn ", "PARTITION BY __$start_lsn, __$command_id "]))
    number = f"ROW_NUMBER() OVER ({within}ORDER BY {', '.join(KEY)}) AS n"
    shown = draw(st.sampled_from([f"*, {number}", "*", f"id, __$start_lsn, __$operation, {number}"]))
    inner = f"SELECT {shown} FROM {CHANGE_TABLE}"
    inner += f" WHERE {draw(conditions('', lsns))}" if draw(st.booleans()) else ""
    if draw(st.integers(0, 3)) == 0:
        inner = f"SELECT TOP 7 {inner[7:]} ORDER BY {', '.join(KEY)}"
    others = ("{c}[__$operation] <> 3", "{c}id > 2")
    wanted = draw(st.lists(conditions("", lsns, (*others, "n > 1") if " AS n" in shown else others), max_size=2))
    where = f" WHERE {' AND '.join(wanted)}" if wanted else ""
    items = draw(st.sampled_from(["*", "id + 1, [__$operation] AS o", "id, __$start_lsn AS l"]))
    if draw(st.booleans()):
        return f"SELECT {items} FROM ({inner}) AS q{where}", False
    return f"WITH q AS ({inner}) SELECT {items} FROM q{where}", False


def answered(client: Client, sql: str) -> tuple[list[Any], list[tuple[Any, ...]]]:
    """The described columns, with the Arrow types of what came, and the rows; and that it was no error."""
    described, rows = [], []
    for outcome in client.session.batch(sql):
        assert not isinstance(outcome, Message), outcome
        if isinstance(outcome, ResultSet):
            described = [(c.name, c.type, c.nullable) for c in outcome.columns]
            for batch in outcome.batches:
                assert batch.schema.types == [c.type.arrow for c in outcome.columns]
                rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return described, rows


def compare(client: Client, lsns: list[bytes], statement: tuple[str, bool], piece: int) -> bool:
    """Run a statement both ways; whether its rows were read as they lie."""
    text, in_order = statement
    sql = f"DECLARE @low binary(10) = 0x{lsns[2].hex()} {text}"
    note(sql)
    with compiled_queries() as queries, mock.patch.object(direct, "_PIECE", piece):
        columns, rows = answered(client, sql)
    with mock.patch.object(query, "direct", return_value=None):
        expected_columns, expected = answered(client, sql)
    assert columns == expected_columns
    assert Counter(map(repr, rows)) == Counter(map(repr, expected))
    assert not in_order or rows == expected
    return queries[-1][1].direct is not None


@pytest.mark.parametrize("kind", [statements, nested], ids=["plain", "nested"])
def test_both_ways_give_the_same(
    server: Sandbox, client: Client, kind: Callable[[list[bytes]], st.SearchStrategy[tuple[str, bool]]]
) -> None:
    lsns = sorted({row["__$start_lsn"] for row in changes(server)})

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(statement=kind(lsns), piece=st.sampled_from([1, 3, 10, 65_536]))
    def run(statement: tuple[str, bool], piece: int) -> None:
        assert compare(client, lsns, statement, piece)

    run()
