"""What the benchmarks say is true: each row that a target has too many, lacks or has wrong is counted."""

from __future__ import annotations

import datetime
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_mssql_cdc.core.shapes import HISTORY, MIRROR, SCD2
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from tests.benchmarks import source
from tests.benchmarks.contents import compare
from tests.benchmarks.windows import Measured, growth, steps

KEYS, CHANGES = 8, 16
CHANGE_TABLE = "cdc.dbo_wide_CT"
TIME = pa.timestamp("us")
FIELDS = {
    MIRROR: {},
    HISTORY: {
        "_op": pa.string(),
        "_lsn": pa.string(),
        "_command_id": pa.int32(),
        "_seqval": pa.string(),
        "_commit_ts": TIME,
    },
    SCD2: {"_from_lsn": pa.string(), "_to_lsn": pa.string(), "_from_ts": TIME, "_to_ts": TIME},
}
OTHERS = {
    int: lambda value: value + 1,
    float: lambda value: value * (1 + 1e-15),
    str: lambda value: value[:-1] + ("0" if value[-1] != "0" else "1"),
    bool: lambda value: not value,
    Decimal: lambda value: value + Decimal("0.0001"),
    datetime.datetime: lambda value: value + datetime.timedelta(microseconds=1000),
    datetime.date: lambda value: value + datetime.timedelta(days=1),
}

Row = dict[str, Any]


@pytest.fixture(scope="module")
def server() -> Iterator[Sandbox]:
    """A source whose keys are changed in several transactions."""
    with Sandbox(database=source.DATABASE, agent_running=False) as server:
        source.create(server, KEYS)
        source.change_all_ways(server, source.TABLE, 0, CHANGES)
        source.change_all_ways(server, source.TABLE, KEYS, CHANGES)
        source.change_all_ways(server, source.TABLE, 2 * KEYS, CHANGES, one_transaction=True)
        yield server


def events(server: Sandbox) -> list[Row]:
    """The change rows in their order, as a history holds them."""
    times = {
        row["start_lsn"]: row["tran_end_time"]
        for row in server.execute("SELECT * FROM cdc.lsn_time_mapping")[0].to_pylist()
    }
    names = ("__$start_lsn", "__$command_id", "__$seqval", "__$operation")
    found = server.execute(f"SELECT * FROM {CHANGE_TABLE}")[0].to_pylist()
    return [
        {
            "_op": " DIBU"[row["__$operation"]],
            "_lsn": f"0x{row['__$start_lsn'].hex().upper()}",
            "_command_id": row["__$command_id"],
            "_seqval": f"0x{row['__$seqval'].hex().upper()}",
            "_commit_ts": times[row["__$start_lsn"]],
            **values(row),
        }
        for row in sorted(found, key=lambda row: tuple(row[name] for name in names))
    ]


def values(row: Row) -> Row:
    """The source's columns of a row of the sandbox, which counts ticks of 100 ns since the year 1."""
    at = datetime.datetime(1, 1, 1) + datetime.timedelta(microseconds=row["at"] // 10)
    return {name: at if name == "at" else value for name, value in row.items() if not name.startswith("__$")}


def held(server: Sandbox, shape: str) -> list[Row]:
    """What a target must hold, one change after the other."""
    copied = source.rows(0, KEYS).to_pylist()
    if shape == MIRROR:
        return list(map(values, server.execute(f"SELECT * FROM {source.TABLE}")[0].to_pylist()))
    low = f"0x{0:020X}"
    if shape == HISTORY:
        unknown = dict.fromkeys(FIELDS[HISTORY])
        return [*({**unknown, "_op": "R", "_lsn": low, **row} for row in copied), *events(server)]
    versions = [{**dict.fromkeys(FIELDS[SCD2]), "_from_lsn": low, **row} for row in copied]
    for event in events(server):
        if event["_op"] == "B":
            continue
        lsn, time = event["_lsn"], event["_commit_ts"]
        for row in [row for row in versions if row["id"] == event["id"] and row["_to_lsn"] is None]:
            row.update(_to_lsn=lsn, _to_ts=time)
        versions = [row for row in versions if row["_from_lsn"] != row["_to_lsn"]]
        if event["_op"] != "D":
            data = {name: event[name] for name in copied[0]}
            versions.append({"_from_lsn": lsn, "_to_lsn": None, "_from_ts": time, "_to_ts": None, **data})
    return versions


def test_a_window_is_one_transaction_where_that_is_asked_for(server):
    found = [event for event in events(server) if event["_op"] != "B"]
    assert len(found) == 3 * CHANGES
    assert [event["_lsn"] == found[-1]["_lsn"] for event in found] == [False] * 2 * CHANGES + [True] * CHANGES


def test_what_a_change_costs_is_judged_beside_the_window_before():
    before = Measured(1000, 0.004, 100)
    assert growth(before, Measured(10_000, 0.005, 150)) == (
        "the cost of a change grew by 25%; peak memory 1.50 times as much"
    )
    assert growth(before, Measured(10_000, 0.003, 100)) == (
        "the cost of a change did not grow: it fell by 25%; peak memory 1.00 times as much"
    )
    assert steps({"read": 2.0, "fold": 0.1, "commit": 3.0}) == "read 2.0, fold and commit 3.1"


@pytest.mark.thorough
def test_a_window_into_a_table_is_measured_and_compared(tmp_path):
    said = tmp_path / "seconds.json"
    given = ("upserts", "--rows", "2000", "--changes", "100", "--rounds", "1")
    given = (*given, "--upsert-rows", "0", "--json", str(said))
    done = subprocess.run([sys.executable, "-m", "tests.benchmarks", *given], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(r"rows that differ +0$", done.stdout, re.MULTILINE), done.stdout
    (found,) = json.loads(said.read_text())
    assert (found["rows"], found["changes"], len(found["seconds"])) == (2000, 100, 1)
    assert 0 < found["seconds"][0] < found["job_seconds"][0]


@pytest.mark.parametrize("shape", [MIRROR, HISTORY, SCD2])
def test_each_difference_is_counted(server, shape, tmp_path, capsys):
    rows = held(server, shape)
    schema = pa.schema([*FIELDS[shape].items(), *((f.name, f.type) for f in source.rows(0, 1).schema)])

    found = tmp_path / "rows"
    found.mkdir()

    def differing(rows: list[Row], schema: pa.Schema = schema) -> int:
        pq.write_table(pa.Table.from_pylist(rows, schema), found / "part.parquet")
        return compare(server, source.TABLE, CHANGE_TABLE, shape, KEYS, found)

    # one that the changes made and ended: where a copied row begins only the load knows
    row = next(row for row in reversed(rows) if shape != SCD2 or (row["_from_ts"] and row["_to_ts"]))
    rest = [other for other in rows if other is not row]

    assert differing(rows) == 0
    assert differing(rest) == 1
    assert differing([*rows, row]) == 1
    assert differing([*rest, rest[0]]) == 2, "as many rows as there should be"
    for name in schema.names:
        assert differing([*rest, {**row, name: OTHERS[type(row[name])](row[name])}]) == 2, name
        assert differing([*rest, {**row, name: None}]) == 2, name
    as_text = schema.set(schema.get_field_index("total"), pa.field("total", pa.string()))
    assert differing([{**row, "total": str(row["total"])} for row in rows], as_text) == 2 * len(rows)
    assert "DATE, VARCHAR, VARCHAR, not " in capsys.readouterr().out
