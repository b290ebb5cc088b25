"""What the sandbox does itself: commits of one client, capture, the memory of change rows, and reads of them."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import json
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pymssql

from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from tests.benchmarks import source
from tests.benchmarks.timing import report, spread
from tests.support.clients import statements, tap_mssql
from tests.support.clients.statements import Place
from tests.support.harsh import CLOCK_RATE

_COMMITS = 2_000
# with the clock of the tests' own servers: what a commit takes on a harsh one counts by it
_HARSH = ("--harsh", "--harsh-seed", "7", "--clock-rate", str(CLOCK_RATE))


def commits(rounds: int, beside: Path | None = None) -> None:
    """(e) Single-row commits over the socket: a plain and a harsh server, each a process of its own, by turns.

    :param beside: another checkout with an environment in ``.venv``, whose plain server takes its turn too
    """
    here = Path(sys.executable).with_name("mssql-cdc")
    servers: dict[str, list[str]] = {"plain": [str(here)], "harsh": [str(here), *_HARSH]}
    if beside is not None:
        servers["other"] = [str(beside / ".venv" / "bin" / "mssql-cdc")]
    found: dict[str, list[float]] = {name: [] for name in servers}
    with contextlib.ExitStack() as stack:
        addresses = {name: stack.enter_context(_served(*words)) for name, words in servers.items()}
        for number in range(rounds + 1):
            for name, address in addresses.items():
                # a process of its own, the same for all: it would share the interpreter lock with this one
                done = subprocess.run(
                    [
                        sys.executable, "-m", "tests.benchmarks", "commit",
                        str(address["port"]), address["user"], str(number * _COMMITS),
                    ],
                    input=address["password"],
                    capture_output=True,
                    text=True,
                    check=True,
                )  # fmt: skip
                found[name].append(_COMMITS / float(done.stdout))
    rates = {name: of[1:] for name, of in found.items()}
    lines = {
        "plain, commits/s": spread(rates["plain"], digits=0),
        "harsh, commits/s (aim 200)": spread(rates["harsh"], digits=0),
    }
    if beside is not None:
        lines[f"plain of {beside}, commits/s"] = spread(rates["other"], digits=0)
        pairs = zip(rates["plain"], rates["other"], strict=True)
        lines["plain beside that (aim 1)"] = spread([ours / other for ours, other in pairs])
    report(f"(e) the sandbox: {_COMMITS:,} commits of one row each", lines)


@contextlib.contextmanager
def _served(command: str, *words: str) -> Iterator[dict[str, Any]]:
    """A sandbox in a process of its own, with a tracked table; its address."""
    process = subprocess.Popen(
        [command, "sandbox", "--port", "0", "--database", source.DATABASE, "--capture-interval", "0.2", *words],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())
        given = {"user": address["user"], "password": address["password"], "database": source.DATABASE}
        with pymssql.connect(server="127.0.0.1", port=str(address["port"]), autocommit=True, **given) as connection:
            cursor = connection.cursor()
            cursor.execute("CREATE TABLE dbo.small (id int NOT NULL PRIMARY KEY, a int NULL, b nvarchar(20) NULL)")
            cursor.execute("EXEC sys.sp_cdc_enable_db EXEC sys.sp_cdc_enable_table 'dbo', 'small', @role_name = NULL")
        yield address
    finally:
        process.terminate()
        process.wait()


def measure(rows: int, rounds: int) -> None:
    """(e) Rows captured, and the memory that change rows take."""
    captured = [rows / _capture(rows)[0] for _ in range(rounds + 1)]
    tracemalloc.start()
    try:
        _, taken, own = _capture(rows)
    finally:
        tracemalloc.stop()
    report(
        f"(e) the sandbox: {rows:,} rows of 12 columns captured",
        {
            "rows/s captured (aim 200,000)": spread(captured[1:], digits=0),
            "memory of change rows beside Arrow's": f"{taken / own:.2f} ({taken / rows:.0f} bytes a row)",
        },
    )


def reads(rows: int, rounds: int) -> None:
    """(e) Change rows that the sandbox serves to a client that only counts bytes, by what reads them."""
    from airflow_provider_mssql_cdc.core.columns import map_columns
    from airflow_provider_mssql_cdc.core.position import Lsn, Window
    from airflow_provider_mssql_cdc.spark.sources.cdc.query import slice_sql
    from airflow_provider_mssql_cdc.spark.sources.cdc.slices import Slice
    from tests.benchmarks.loads import Loads

    with tempfile.TemporaryDirectory() as name, Sandbox(database=source.DATABASE, agent_running=False) as server:
        source.create(server, 0)
        (table,) = Loads(server, (source.TABLE,), "iceberg://lake/none", Path(name)).plan().specs
        source.change(server, 0, rows)
        low, high = server.cdc().min_lsn(source.INSTANCE), server.cdc().max_lsn()
        assert low is not None
        assert high is not None
        columns = [column.name for column in table.schema.columns]
        mappings = map_columns(table.name, table.schema)
        before = Lsn(low).previous()
        part = Slice(Window(before, Lsn(high)), rows)
        slices = (table.feed, table.schema, mappings, part)
        by_text = (table.feed, dataclasses.replace(table.schema, key=("region",)), mappings, part)
        everything = f"SELECT * FROM {source.DATABASE}.cdc.{source.INSTANCE}_CT"
        chosen = {
            "SELECT *": everything,
            "our reader, for a history": slice_sql(*slices, history=True),
            "our reader, for a mirror": slice_sql(*slices, history=False),
            "our reader, for a mirror by a text": slice_sql(*by_text, history=False),
            "Debezium, direct": statements.debezium_direct(source.DATABASE, source.INSTANCE, columns, Place(), high),
            "Debezium, function": statements.debezium_function(
                source.DATABASE, source.INSTANCE, columns, low, Place(), high
            ),
            "tap-mssql": tap_mssql.increment(source.INSTANCE, columns, before.value, high),
            "SELECT *, sorted by another column": f"{everything} ORDER BY total",
        }
        seconds: dict[str, list[float]] = {reader: [] for reader in chosen}
        for _ in range(rounds + 1):
            for reader, sql in chosen.items():
                taken, size = counted(server, sql)
                if size < 50 * rows:
                    raise RuntimeError(f"an error instead of rows: {sql}")
                seconds[reader].append(taken)
    report(
        f"(e) {rows:,} change rows of 12 columns, served to a client that counts: million rows/s",
        {reader: spread([rows / each / 1e6 for each in all_taken[1:]]) for reader, all_taken in seconds.items()},
    )


def counted(server: Sandbox, sql: str) -> tuple[float, int]:
    """Seconds and bytes of a batch, by a client in a process of its own: it would share the interpreter lock."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "count", str(server.port), server.user],
        input=f"{server.password}\n{sql}",
        capture_output=True,
        text=True,
        check=True,
    )
    taken, size = done.stdout.split()
    return float(taken), int(size)


def commit(port: int, user: str, password: str, first: int) -> None:
    """Insert rows by one connection, each by a statement that commits."""
    with pymssql.connect(
        server="127.0.0.1", port=str(port), user=user, password=password, database=source.DATABASE, autocommit=True
    ) as connection:
        cursor = connection.cursor()
        started = time.perf_counter()
        for n in range(first, first + _COMMITS):
            cursor.execute("INSERT INTO dbo.small VALUES (%d, %d, %s)", (n, n % 7, f"row {n}"))
        print(time.perf_counter() - started)


def _capture(rows: int) -> tuple[float, int, int]:
    """Capture inserted rows: seconds, the bytes that they take until they are read, and those of what is read."""
    with Sandbox(database=source.DATABASE, agent_running=False) as server:
        source.create(server, 0)
        for first in range(0, rows, 50_000):
            server.seed(None, source.TABLE, source.rows(first, min(50_000, rows - first)))
        gc.collect()
        started = time.perf_counter()
        server.step()
        seconds = time.perf_counter() - started
        gc.collect()
        taken = pa.total_allocated_bytes() + tracemalloc.get_traced_memory()[0]
        own = sum(batch.nbytes for batch in server.cdc().change_rows(source.INSTANCE, None, None))
        server.cdc().disable()
        gc.collect()
        taken -= pa.total_allocated_bytes() + tracemalloc.get_traced_memory()[0]
    return seconds, taken, own
