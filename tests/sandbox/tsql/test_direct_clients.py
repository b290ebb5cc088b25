"""What clients send to read a change table along its key is read as it lies, whoever sends it, and is all there."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from airflow_provider_mssql_cdc.core.columns import map_columns
from airflow_provider_mssql_cdc.core.position import Lsn, Window
from airflow_provider_mssql_cdc.core.table import Column
from airflow_provider_mssql_cdc.sandbox.engine.cdc.changes import SEQVAL
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from airflow_provider_mssql_cdc.sandbox.tsql import direct
from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment
from airflow_provider_mssql_cdc.spark.sources.cdc.query import slice_sql
from airflow_provider_mssql_cdc.spark.sources.cdc.slices import Slice
from tests.sandbox.tsql.conftest import Client
from tests.support.clients import statements, tap_mssql
from tests.support.clients.statements import Place, literal
from tests.support.sandbox.kinds import CHANGE_TABLE, COLUMNS, Row, changes, compiled_queries, create
from tests.support.spark.model import table_spec


@pytest.fixture(scope="module")
def rows(sandbox: Sandbox) -> list[Row]:
    create(sandbox)
    return changes(sandbox)


@pytest.fixture(scope="module")
def times(sandbox: Sandbox, rows: list[Row]) -> dict[bytes, tuple[Any, ...]]:
    """Begin, end and id of each transaction."""
    _, mapping = sandbox.cdc().relation("lsn_time_mapping")
    return {
        row["start_lsn"]: (row["tran_begin_time"], row["tran_end_time"], row["tran_id"]) for row in mapping.to_pylist()
    }


def sent(client: Client, sql: str) -> tuple[list[tuple[Any, ...]], list[bool]]:
    """The last result set of a batch, and of each of its SELECTs whether it read rows as they lie."""
    with compiled_queries() as queries:
        found = client.run(sql)
    return found, [query.direct is not None for _, query in queries]


def picked(rows: list[Row], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def at(moment: datetime.datetime) -> dict[str, int]:
    """A datetimeoffset of the server's own offset, as it is held."""
    ticks = (moment - datetime.datetime(1, 1, 1)) // datetime.timedelta(microseconds=1) * 10
    return {"utc_ticks": ticks, "offset_minutes": 0}


META = ("__$start_lsn", "__$seqval", "__$operation", "__$update_mask")


@pytest.mark.parametrize("number", [0, 4, 12, 30])
def test_debezium_direct(client: Client, rows: list[Row], times: Any, number: int) -> None:
    place = Place(*(rows[number][name] for name in META[:3]))
    left = [row for row in picked(rows, *META, *COLUMNS) if row[:3] > place]
    expected = [(*row, at(times[row[0]][0])) for row in left]
    sql = statements.debezium_direct("shop", "dbo_kinds", COLUMNS, place, rows[-1]["__$start_lsn"])
    assert sent(client, sql) == (expected, [True])
    assert sent(client, sql.replace("SELECT ", "SELECT TOP 3 ", 1)) == (expected[:3], [True])
    skipping = sql.replace(" order by", " AND [__$operation] NOT IN (1,3) order by")
    assert sent(client, skipping) == ([row for row in expected if row[2] not in (1, 3)], [True])


def test_debezium_function(client: Client, rows: list[Row], times: Any) -> None:
    low, high = rows[0]["__$start_lsn"], rows[-1]["__$start_lsn"]
    expected = [(*row, at(times[row[0]][1])) for row in picked(rows, *META, *COLUMNS)]
    sql = statements.debezium_function("shop", "dbo_kinds", COLUMNS, low, Place(), high)
    assert sent(client, sql) == (expected, [True])
    assert sent(client, statements.debezium_everything("shop", "dbo_kinds", low, high)) == (expected, [True])


def test_tap_mssql(client: Client, rows: list[Row], times: Any) -> None:
    low, high = rows[0]["__$start_lsn"], rows[-1]["__$start_lsn"]
    expected = [
        (
            *values, {1: "D", 2: "I", 4: "U"}[row["__$operation"]], times[row["__$start_lsn"]][1],
            times[row["__$start_lsn"]][1] if row["__$operation"] == 1 else None,
            row["__$start_lsn"], row["__$seqval"], row["__$operation"],
        )
        for row, values in zip(rows, picked(rows, *COLUMNS), strict=True)
        if row["__$start_lsn"] > low and row["__$operation"] != 3
    ]  # fmt: skip
    assert sent(client, tap_mssql.increment("dbo_kinds", COLUMNS, low, high)) == (expected, [True])


@pytest.mark.parametrize("history", [True, False])
@pytest.mark.parametrize(("after_command", "upto_command"), [(None, None), (None, 5), (2, 7)])
def test_our_reader(
    client: Client, rows: list[Row], times: Any, history: bool, after_command: int | None, upto_command: int | None
) -> None:
    """The statement of a slice: of a whole window, or of part of its largest transaction."""
    whole = upto_command is None
    low, high = (rows[0], rows[-1]) if whole else (rows[3], rows[7])
    part = Slice(
        Window(Lsn(low["__$start_lsn"]), Lsn(high["__$start_lsn"])), 0, after_command, upto_command, seq_offset=0
    )
    name, moment = Column(2, 2, "name", "nvarchar", length=40), Column(4, 4, "at", "datetime2", scale=3)
    spec = table_spec("kinds", (Column(1, 1, "id", "int"), name, moment), ("id",))
    sql = slice_sql(spec.feed, spec.schema, map_columns(spec.name, spec.schema), part, history=history)
    expected, numbers = [], dict[bytes, int]()
    for row in rows:
        lsn, command = row["__$start_lsn"], row["__$command_id"]
        if not low["__$start_lsn"] < lsn <= high["__$start_lsn"]:
            continue
        if not whole and not (after_command or 0) < command <= upto_command:
            continue
        numbers[lsn] = numbers.get(lsn, 0) + 1
        if not history and row["__$operation"] == 3:
            continue  # the mask has no key column
        _, end, transaction = times[lsn] if history else (None, None, None)
        text = None if end is None else end.isoformat(sep=" ", timespec="milliseconds")
        when = row["at"] and "2026-01-02 03:04:05.678"
        expected.append((
            lsn, command, row["__$seqval"], row["__$operation"], row["__$update_mask"], numbers[lsn], text, transaction,
            row["id"], row["name"], when,
        ))  # fmt: skip
    assert sent(client, sql) == (expected, [True])


NUMBER = "ROW_NUMBER() OVER (PARTITION BY __$start_lsn ORDER BY __$command_id, __$seqval, __$operation)"
EVERYTHING = ("__$start_lsn", "__$end_lsn", "__$seqval", "__$operation", "__$update_mask", *COLUMNS, "__$command_id")


@pytest.mark.parametrize(
    ("sql", "wanted", "names"),
    [
        ("SELECT * FROM {table}", lambda row: True, EVERYTHING),
        ("SELECT t.* FROM [shop].[cdc].[dbo_kinds_CT] AS t WITH (NOLOCK)", lambda row: True, EVERYTHING),
        ("select NAME as [the name], ID, id from {table} where __$operation in (2, 4)",
         lambda row: row["__$operation"] in (2, 4), ("name", "id", "id")),
        ("SELECT * FROM {table} WHERE __$start_lsn BETWEEN {low} AND {high} ORDER BY __$start_lsn, __$seqval",
         lambda row: row["within"], EVERYTHING),
        ("SELECT id FROM {table} WHERE {low} <= __$start_lsn AND __$start_lsn < {next}",
         lambda row: row["within"], ("id",)),
        ("SELECT id FROM {table} WHERE __$start_lsn = {high} ORDER BY 1 OFFSET 0 ROWS", None, ("id",)),
        ("SELECT id FROM {table} WHERE __$start_lsn = {high} ORDER BY __$seqval",
         lambda row: row["last"], ("id",)),
        ("SELECT q.id, q.[__$seqval] FROM (SELECT id, [__$start_lsn] AS l, [__$seqval] FROM {table}) AS q"
         " WHERE q.l >= {low} AND q.l <= {high} ORDER BY q.l",
         lambda row: row["within"], ("id", "__$seqval")),
        ("WITH c AS (SELECT * FROM {table} WHERE __$start_lsn <= {high}) SELECT id FROM c WHERE __$start_lsn >= {low}",
         lambda row: row["within"], ("id",)),
        ("DECLARE @low binary(10) = {low}, @high binary(10) = {high}"
         " SELECT id FROM {table} WHERE __$start_lsn >= @low AND __$start_lsn <= @high",
         lambda row: row["within"], ("id",)),
        ("EXEC sp_executesql N'SELECT id FROM {table} WHERE [__$start_lsn] >= @low AND [__$start_lsn] <= @high"
         " ORDER BY [__$start_lsn]', N'@low varbinary(10), @high binary(10)', @low = {low}, @high = {high}",
         lambda row: row["within"], ("id",)),
        ("SELECT id FROM {table} WHERE (__$start_lsn > {high} OR __$start_lsn = {high} AND __$command_id >= 1)"
         " OR __$start_lsn = {low}", lambda row: row["last"] or row["first"] or row["beyond"], ("id",)),
    ],
)  # fmt: skip
def test_plain_reads(
    client: Client, rows: list[Row], sql: str, wanted: Callable[[Row], bool] | None, names: tuple[str, ...]
) -> None:
    commits = sorted({row["__$start_lsn"] for row in rows})
    low, high, following = commits[1], commits[4], commits[5]
    filled = sql.format(table=CHANGE_TABLE, low=literal(low), high=literal(high), next=literal(following))
    marked = [
        {
            **row, "within": low <= row["__$start_lsn"] <= high, "first": row["__$start_lsn"] == low,
            "last": row["__$start_lsn"] == high, "beyond": row["__$start_lsn"] > high,
        }
        for row in rows
    ]  # fmt: skip
    found, lie = sent(client, filled)
    if wanted is None:  # in another order than the rows lie
        assert lie == [False]
        assert found == sorted(picked([row for row in marked if row["last"]], *names))
        return
    assert (found, lie) == (picked([row for row in marked if wanted(row)], *names), [True])


@pytest.mark.parametrize(
    ("over", "begins_anew"),
    [
        ("PARTITION BY __$start_lsn ORDER BY __$command_id, __$seqval, __$operation", ("__$start_lsn",)),
        ("PARTITION BY [__$start_lsn] ORDER BY [__$seqval], [__$operation]", ("__$start_lsn",)),
        ("PARTITION BY __$start_lsn, __$start_lsn ORDER BY __$start_lsn, __$command_id, __$seqval, __$operation",
         ("__$start_lsn",)),
        ("PARTITION BY __$command_id, __$start_lsn ORDER BY __$seqval, __$operation",
         ("__$start_lsn", "__$command_id")),
        ("PARTITION BY __$start_lsn, __$seqval ORDER BY __$operation", ("__$start_lsn", "__$seqval")),
        ("ORDER BY __$start_lsn, __$command_id, __$seqval, __$operation", ()),
        ("ORDER BY __$start_lsn, __$seqval, __$operation", ()),
        ("ORDER BY (SELECT NULL)", ()),
    ],
)  # fmt: skip
def test_numbers(client: Client, rows: list[Row], over: str, begins_anew: tuple[str, ...]) -> None:
    expected, last, number = [], None, 0
    for row in rows:
        if row["id"] == 2:
            continue  # not even the first row of a transaction is one that all numbers begin with
        values = tuple(row[name] for name in begins_anew)
        number = number + 1 if values == last else 1
        last = values
        expected.append((row["id"], number))
    sql = f"SELECT id, ROW_NUMBER() OVER ({over}) AS n FROM {CHANGE_TABLE} WHERE id <> 2"
    assert sent(client, sql) == (expected, [True])
    outer = f"SELECT q.n * 2, q.id FROM ({sql}) AS q WHERE q.n > 1"
    assert sent(client, outer) == ([(2 * n, key) for key, n in expected if n > 1], [True])


def test_numbers_are_an_order(client: Client, rows: list[Row]) -> None:
    number = "ROW_NUMBER() OVER (ORDER BY __$start_lsn, __$command_id, __$seqval, __$operation)"
    inner = f"SELECT id, __$start_lsn AS l, {number} AS n, {NUMBER} AS m FROM {CHANGE_TABLE}"
    expected = picked(rows, "id")
    assert sent(client, f"SELECT id FROM ({inner}) q ORDER BY n") == (expected, [True])
    assert sent(client, f"SELECT id FROM ({inner}) q ORDER BY l, m") == (expected, [True])
    assert sent(client, f"SELECT TOP 2 id FROM ({inner}) q WHERE n > 3 ORDER BY n") == (expected[3:5], [True])
    by_place = sorted(zip(rows, range(len(rows)), strict=True), key=lambda each: (each[0]["__$command_id"], each[1]))
    found, lie = sent(client, f"SELECT id, l FROM ({inner}) q ORDER BY m, l")
    assert lie == [False]
    assert len(found) == len(by_place)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM {table} ORDER BY __$start_lsn DESC",
        "SELECT id FROM {table} ORDER BY __$operation",
        "SELECT id FROM {table} ORDER BY __$start_lsn, id",
        "SELECT id AS [__$start_lsn] FROM {table} ORDER BY [__$start_lsn]",
        "SELECT DISTINCT id FROM {table}",
        "SELECT COUNT(*) FROM {table}",
        "SELECT id, COUNT(*) FROM {table} GROUP BY id",
        "SELECT id, COUNT(*) OVER (PARTITION BY __$start_lsn) FROM {table}",
        "SELECT id, RANK() OVER (PARTITION BY __$start_lsn ORDER BY __$command_id) FROM {table}",
        "SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY __$start_lsn) FROM {table}",
        "SELECT id, ROW_NUMBER() OVER (PARTITION BY __$start_lsn ORDER BY __$command_id DESC) FROM {table}",
        "SELECT id, ROW_NUMBER() OVER (ORDER BY id) FROM {table}",
        "SELECT id, 1 + ROW_NUMBER() OVER (ORDER BY __$start_lsn) FROM {table}",
        "SELECT id FROM {table} WHERE id IN (SELECT id FROM dbo.kinds)",
        "SELECT c.id FROM {table} c JOIN dbo.kinds k ON k.id = c.id",
        "SELECT c.id FROM {table} c RIGHT JOIN cdc.lsn_time_mapping m ON m.start_lsn = c.__$start_lsn",
        "SELECT c.id FROM {table} c FULL JOIN cdc.lsn_time_mapping m ON m.start_lsn = c.__$start_lsn",
        "SELECT c.id FROM {table} c CROSS JOIN cdc.lsn_time_mapping m",
        "SELECT id FROM {table} UNION ALL SELECT id FROM {table}",
        "SELECT name FROM sys.tables WHERE name = 'kinds'",
    ],
)
def test_what_takes_a_query(client: Client, rows: list[Row], sql: str) -> None:
    assert sent(client, sql.format(table=CHANGE_TABLE))[1] == [False]


def test_what_is_joined_is_not_looked_through_for_every_few_rows(client: Client, rows: list[Row], times: Any) -> None:
    joined = "LEFT JOIN cdc.lsn_time_mapping m ON m.start_lsn = c.__$start_lsn"
    sql = f"SELECT c.id, m.tran_id FROM {CHANGE_TABLE} c {joined}"
    with (
        mock.patch.object(direct, "_PIECE", 1),
        mock.patch.object(Environment, "fetch", autospec=True, side_effect=Environment.fetch) as fetch,
    ):
        found = client.run(sql)
    assert found == [(row["id"], times[row["__$start_lsn"]][2]) for row in rows]
    assert 1 < fetch.call_count <= 1 + len(rows) // (2 * len(times))


def test_an_alias_that_hides_the_key_is_what_rows_are_sorted_by(client: Client, rows: list[Row]) -> None:
    found = client.run(f"SELECT id AS [__$start_lsn] FROM {CHANGE_TABLE} ORDER BY [__$start_lsn]")
    assert found == sorted(picked(rows, "id"))


def test_rows_that_do_not_lie_in_the_order_are_sorted(sandbox: Sandbox, client: Client, rows: list[Row]) -> None:
    """Sequence values that go back within a transaction, as those of deferred updates do (DBZ-8858)."""
    instance = sandbox.cdc().instance("dbo_kinds")
    assert instance is not None
    kept = instance.changes

    def turned(values: pa.Array) -> pa.Array:
        return pa.array([bytes(255 - byte for byte in value) for value in values.to_pylist()], pa.binary())

    instance.changes = kept.with_column(SEQVAL, "__$seqval", turned)
    try:
        turned_rows = changes(sandbox)
        numbered = "ROW_NUMBER() OVER (PARTITION BY __$start_lsn ORDER BY __$seqval, __$operation)"
        in_order = sorted(turned_rows, key=lambda row: (row["__$start_lsn"], row["__$seqval"], row["__$operation"]))
        columns = ("id", "__$seqval", "__$operation")
        low, high = literal(rows[0]["__$start_lsn"]), literal(rows[-1]["__$start_lsn"])
        order = "ORDER BY __$start_lsn, __$seqval, __$operation"
        for source in (CHANGE_TABLE, f"cdc.fn_cdc_get_all_changes_dbo_kinds({low}, {high}, N'all update old')"):
            found = sent(client, f"SELECT id, __$seqval, __$operation FROM {source} {order}")
            assert found == (picked(in_order, *columns), [False])
        found, lie = sent(client, f"SELECT id, {numbered} FROM {CHANGE_TABLE} {order}")
        assert ([row[0] for row in found], lie) == ([row["id"] for row in in_order], [False])
        found = sent(client, f"SELECT id, __$seqval, __$operation FROM {CHANGE_TABLE} ORDER BY __$start_lsn")
        assert found == (picked(turned_rows, *columns), [True])
    finally:
        instance.changes = kept
