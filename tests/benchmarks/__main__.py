"""The benchmarks' command line."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from airflow_provider_mssql_cdc.core.formats import DELTA, ICEBERG, PARQUET, POSTGRESQL
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.shapes import HISTORY, MIRROR, SCD2
from tests.benchmarks import sandbox
from tests.benchmarks.timing import alternate, report, spread

TARGETS = (ICEBERG, DELTA, PARQUET, POSTGRESQL)
_OF_ROWS = ("serve", "load", "copies", "meanwhile")
_OF_ONE_TABLE = ("upserts", "starts", "many", "memory", "tracked")
SHAPES = (MIRROR, HISTORY, SCD2)


def serve(rows: int, rounds: int) -> None:
    """(a) Rows that the sandbox serves to a client that only counts bytes."""
    import pyarrow as pa

    from airflow_provider_mssql_cdc.sandbox.server import Sandbox
    from tests.benchmarks import source

    with Sandbox(database=source.DATABASE, agent_running=False) as server:
        server.execute(
            "CREATE TABLE dbo.plain (id bigint NOT NULL PRIMARY KEY, a int, b float, c varchar(20), d bigint)"
        )
        numbers = pa.array(range(rows), pa.int64())
        text = pa.array([f"row number {n % 1000:06d}" for n in range(rows)])
        columns = {
            "id": numbers,
            "a": numbers.cast(pa.int32()),
            "b": numbers.cast(pa.float64()),
            "c": text,
            "d": numbers,
        }
        server.seed(None, "dbo.plain", pa.table(columns))
        seconds, size = [], 0
        for _ in range(rounds + 1):
            taken, size = sandbox.counted(server, "SELECT * FROM dbo.plain")
            seconds.append(taken)
    report(
        f"(a) {rows:,} rows of {size / rows:.0f} bytes on the wire, served to a client that counts",
        {"million rows/s": spread([rows / s / 1e6 for s in seconds[1:]])},
    )


def count(port: int, user: str, password: str, sql: str) -> None:
    """Log in, send a batch, and count bytes until the server has nothing more to say."""
    from tests.support.sandbox.wire.rawclient import EMPTY_HEADERS, TYPE_BATCH, RawClient

    with RawClient(port) as client:
        client.login(user=user, password=password, database="bench")
        started = time.perf_counter()
        client.send(TYPE_BATCH, EMPTY_HEADERS + sql.encode("utf-16-le"))
        size = _drain(client.socket)
    print(time.perf_counter() - started, size)


def _drain(connection: socket.socket) -> int:
    """Read packets up to the one that ends the message, looking at their headers alone."""
    total, buffer = 0, bytearray()
    while True:
        data = connection.recv(1 << 20)
        if not data:
            return total
        buffer += data
        while len(buffer) >= 8:
            status, length = buffer[1], struct.unpack(">H", buffer[2:4])[0]
            if len(buffer) < length:
                break
            total += length
            del buffer[:length]
            if status & 1:
                return total


def read_and_load(rows: int, rounds: int) -> None:
    """(b) our reader beside one plain JDBC connection, and (c) the whole load beside the job written by hand."""
    from airflow_provider_mssql_cdc.core.columns import map_columns
    from airflow_provider_mssql_cdc.core.position import Window
    from airflow_provider_mssql_cdc.operators.finding import RunPlan
    from airflow_provider_mssql_cdc.sandbox.server import Sandbox
    from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
    from airflow_provider_mssql_cdc.spark.session import credentials
    from airflow_provider_mssql_cdc.spark.sources.cdc.query import read_window
    from tests.benchmarks import source
    from tests.benchmarks.by_hand import merge_changes
    from tests.benchmarks.loads import Loads

    with (
        tempfile.TemporaryDirectory() as name,
        Sandbox(database=source.DATABASE, capture_interval=0.1) as server,
    ):
        folder = Path(name)
        source.create(server, rows)
        with source.spark_session(server, folder) as spark:
            loads = [Loads(server, (source.TABLE,), f"iceberg://lake/ours{n}", folder) for n in range(rounds + 1)]
            for load in loads:
                load.load(spark, load.plan())
            source.change(server, rows, rows)
            plans = [load.plan() for load in loads]
            (table,) = plans[0].specs
            spec, sink = loads[0].spec(plans[0]), table.sinks[0]
            window = Window(sink.read_through, spec.upto.of(Lsn))
            mappings = map_columns(table.name, table.schema)
            reader = Jdbc(spark, spec.source, credentials(spark), spec.fetch_size)

            def ours() -> None:
                frame = read_window(
                    reader,
                    table.feed,
                    table.schema,
                    mappings,
                    window,
                    history=True,
                    slice_rows=200_000,
                    connections=2,
                )
                frame.write.format("noop").mode("overwrite").save()

            def plain() -> None:
                query = (
                    "(SELECT [__$start_lsn] AS lsn, [__$seqval] AS seqval, [__$operation] AS op,"
                    f" [__$update_mask] AS mask, {', '.join(c.name for c in table.schema.columns)}"
                    f" FROM {table.feed.change_table}"
                    f" WHERE [__$start_lsn] > {window.after} AND [__$start_lsn] <= {window.upto}) t"
                )
                properties = {
                    "driver": source.DRIVER,
                    "user": server.user,
                    "password": server.password,
                    "fetchsize": "10000",
                }
                frame = spark.read.jdbc(source.jdbc_url(server), query, properties=properties)
                frame.write.format("noop").mode("overwrite").save()

            seconds = alternate({"ours": ours, "plain": plain}, rounds)
            report(
                f"(b) {rows:,} change rows of 12 columns, read",
                {
                    "ours, rows/s": spread([rows / s for s in seconds["ours"]], digits=0),
                    "plain spark.read.jdbc, rows/s": spread([rows / s for s in seconds["plain"]], digits=0),
                    "ours beside plain (aim 1.3)": spread(
                        [p / o for o, p in zip(seconds["ours"], seconds["plain"], strict=True)]
                    ),
                },
            )

            hands = [f"lake.hand{n}.dbo_wide" for n in range(rounds + 1)]
            for n, hand in enumerate(hands):
                spark.sql(f"CREATE NAMESPACE lake.hand{n}")
                properties = {
                    row["key"]: row["value"]
                    for row in spark.sql(f"SHOW TBLPROPERTIES lake.ours{n}.dbo_wide").collect()
                    if row["key"].startswith(("write.", "format-version"))
                }
                given = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
                spark.sql(
                    f"CREATE TABLE {hand} USING iceberg TBLPROPERTIES ({given}) AS SELECT * FROM lake.ours{n}.dbo_wide"
                )
            receipts = []
            taken: dict[str, list[float]] = {"ours": [], "hand": [], "sandbox": []}
            middle = server.execute(
                f"SELECT CONVERT(varchar(22), MAX(l), 1) AS m FROM (SELECT TOP ({rows // 2}) [__$start_lsn] AS l FROM"
                f" {table.feed.change_table} WHERE [__$start_lsn] > {window.after} ORDER BY [__$start_lsn]) t"
            )[0]["m"][0]
            lsns = [str(window.after), str(middle), str(window.upto)]
            login = (source.jdbc_url(server), server.user, server.password)
            for n, (load, plan, hand) in enumerate(zip(loads, plans, hands, strict=True)):

                def by_us(load: Loads = load, plan: RunPlan = plan) -> None:
                    cpu = time.process_time()
                    receipts.append(load.load(spark, plan))
                    taken["sandbox"].append(time.process_time() - cpu)

                def by_hand(hand: str = hand) -> None:
                    merge_changes(spark, *login, lsns, hand)

                ways = {"ours": by_us, "hand": by_hand}
                # whoever comes second finds a server that has just read the same
                for way in sorted(ways, reverse=n % 2 == 0):
                    started = time.perf_counter()
                    ways[way]()
                    taken[way].append(time.perf_counter() - started)
            for seconds_of in taken.values():
                # the first round warms up
                del seconds_of[0]
            differing = spark.sql(
                f"(SELECT * FROM {hands[-1]} EXCEPT ALL SELECT * FROM lake.ours{rounds}.dbo_wide) UNION ALL "
                f"(SELECT * FROM lake.ours{rounds}.dbo_wide EXCEPT ALL SELECT * FROM {hands[-1]})"
            ).count()
            steps = receipts[-1].tables[0].seconds
            report(
                f"(c) {rows:,} change rows into a table of {rows:,} rows",
                {
                    "ours, seconds": spread(taken["ours"]),
                    "by hand, seconds": spread(taken["hand"]),
                    "ours beside by hand (aim 2)": spread(
                        [h / o for o, h in zip(taken["ours"], taken["hand"], strict=True)]
                    ),
                    "CPU seconds of the sandbox in ours": spread(taken["sandbox"]),
                    "ours by step, seconds": ", ".join(f"{step} {value:.1f}" for step, value in steps.items()),
                    "rows that differ": str(differing),
                },
            )


def copies(rows: int, rounds: int) -> None:
    """(l) a first load beside spark.read.jdbc and one write, after a kill, and beside changes."""
    from tests.benchmarks.copies import measure

    measure(rows, rounds)
    meanwhile(rows, rounds)


def meanwhile(rows: int, rounds: int) -> None:
    """The part of (l) that changes are made beside."""
    from tests.benchmarks.copies_meanwhile import measure

    measure(rows, rounds)


def empty(tables: int, rounds: int) -> None:
    """(d) An empty run over many tables: hook and planner, no Spark."""
    from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, SinkState
    from airflow_provider_mssql_cdc.core.standing import loaded_from
    from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
    from airflow_provider_mssql_cdc.operators.planning import plan_load
    from airflow_provider_mssql_cdc.sandbox.server import Sandbox
    from tests.benchmarks import source
    from tests.benchmarks.loads import Loads

    class Counting(MsSqlCdcHook):
        sent = 0

        def _run(self, sql, parameters):  # type: ignore[no-untyped-def]
            self.sent += 1
            return super()._run(sql, parameters)

    with tempfile.TemporaryDirectory() as name, Sandbox(database=source.DATABASE, capture_interval=0.1) as server:
        server.execute("EXEC sys.sp_cdc_enable_db")
        for n in range(tables):
            server.execute(f"CREATE TABLE dbo.t{n} (id int NOT NULL PRIMARY KEY, a nvarchar(20) NULL)")
            server.execute(
                f"EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N't{n}', @role_name = NULL"
            )
        server.execute("INSERT INTO dbo.t0 VALUES (1, N'a')")
        server.step()
        loads = Loads(server, ("dbo.t*",), "iceberg://lake/empty", Path(name))
        first = loads.plan()
        for table, candidate in first.candidates.items():
            read = loaded_from(candidate, None)
            state = SinkState(first.upto.of(Lsn), first.upto.of(Lsn), first.witness, **read)
            loads.store.save(Checkpoint(loads.request.identity(first.database, table), {"mirror": state}))
        seconds, sent, reads = [], set(), set()
        for _ in range(rounds + 1):
            loads.variables.reads = 0
            hook = Counting(connection=loads.connection)
            started = time.perf_counter()
            plan = plan_load(hook, loads.store, loads.request, None)
            seconds.append(time.perf_counter() - started)
            hook.close()
            sent.add(hook.sent)
            reads.add(loads.variables.reads)
            if plan.specs or plan.failures or len(plan.candidates) != tables:
                raise RuntimeError(f"not an empty run: {plan}")
        report(
            f"(d) an empty run over {tables} tables",
            {
                "hook and planner, seconds (aim below 1)": spread(seconds[1:]),
                "statements (aim at most 5)": ", ".join(map(str, sorted(sent))),
                "Variables read": ", ".join(map(str, sorted(reads))),
            },
        )


def growing_windows(
    sizes: Sequence[int], targets: Sequence[str], shapes: Sequence[str], heap: str, one_transaction: bool
) -> None:
    """(f) Windows of growing size, into each target and shape."""
    from tests.benchmarks import windows

    windows.measure(sizes, targets, shapes, heap, one_transaction=one_transaction)


def small_tables(counts: Sequence[int], targets: Sequence[str], heap: str, rounds: int) -> None:
    """(g) Small tables in one application, into each target."""
    from tests.benchmarks import tables

    tables.measure(counts, targets, heap, rounds)


def upserts(given: argparse.Namespace) -> None:
    """(h) One window into tables of growing size."""
    from airflow_provider_mssql_cdc.spark.session import UPSERT_ROWS
    from tests.benchmarks import upserts

    conf = {} if given.upsert_rows is None else {UPSERT_ROWS: str(given.upsert_rows)}
    (target, *_), (shape, *_), (changes, *_) = given.targets, given.shapes, given.changes
    upserts.measure(
        given.rows,
        changes,
        given.rounds,
        target,
        shape,
        given.json,
        newest=given.newest,
        documents=given.documents,
        layout=given.layout,
        conf=conf,
    )


def starts(given: argparse.Namespace) -> None:
    """(i) A small window from spark-submit to its end, beside an empty application."""
    from tests.benchmarks import starts

    starts.measure(given.rows, given.changes, given.rounds, given.heap)


def many(given: argparse.Namespace) -> None:
    """(j) Many windows, one after the other."""
    from tests.benchmarks import many

    many.measure(given.rows[0], given.changes[0], given.windows, given.heap, given.maintain)


def memory(given: argparse.Namespace) -> None:
    """(k) A large window with a text in its key, in a small heap."""
    from tests.benchmarks import many

    many.memory(given.rows, given.changes[0], given.heap)


def tracked(given: argparse.Namespace) -> None:
    """(m) and (n): Change Tracking."""
    from tests.benchmarks import tracked as of_tracking

    of_tracking.read(given.rows[0], given.rounds)
    of_tracking.poll(200, given.rounds)


def main() -> None:
    """Run the chosen benchmarks, or all."""
    if sys.argv[1:2] == ["count"]:
        count(int(sys.argv[2]), sys.argv[3], sys.stdin.readline().rstrip("\n"), sys.stdin.read())
        return
    if sys.argv[1:2] == ["commit"]:
        sandbox.commit(int(sys.argv[2]), sys.argv[3], sys.stdin.readline(), int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="Benchmarks; aims, not gates.")
    parser.add_argument(
        "which",
        nargs="*",
        default="all",
        choices=[*_OF_ROWS, "empty", "sandbox", "commits", "windows", "tables", *_OF_ONE_TABLE, "all"],
        help="(a), (b) and (c), (l), then (d) to (k); tracked is (m) and (n); commits is a part of sandbox, (e), "
        "meanwhile one of copies, (l)",
    )
    parser.add_argument(
        "--rows",
        type=int,
        nargs="+",
        default=[1_000_000],
        help="of (a), (b), (c), (l), (m), (e), or of the tables of (h), (i)",
    )
    parser.add_argument("--tables", type=int, default=100, help="of (d)")
    parser.add_argument("--rounds", type=int, default=5, help="of all but (f), which goes once through each window")
    parser.add_argument(
        "--changes",
        type=int,
        nargs="+",
        default=[10_000, 100_000, 1_000_000, 5_000_000],
        help="windows of (f) and (i); (h) takes one",
    )
    parser.add_argument("--newest", action="store_true", help="(h) changes the newest keys instead of random ones")
    parser.add_argument(
        "--upsert-rows", type=int, help="(h) from so many rows on a window is two commits, in the place of the default"
    )
    parser.add_argument("--documents", action="store_true", help="(h) with texts that no change has")
    parser.add_argument("--layout", default="mixed", help="(h) mixed, sorted, bucket or compacted")
    parser.add_argument("--windows", type=int, default=200, help="of (j)")
    parser.add_argument("--maintain", type=int, default=0, help="(j) maintains the table after so many windows")
    parser.add_argument("--json", type=Path, help="file for the seconds of (h)")
    parser.add_argument(
        "--beside", type=Path, metavar="DIR", help="another checkout with its .venv, whose commits (e) counts by turns"
    )
    parser.add_argument("--one-transaction", action="store_true", help="each window of (f), instead of many")
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 10, 50], help="tables in one application of (g)")
    parser.add_argument("--targets", nargs="+", default=list(TARGETS), choices=TARGETS, help="of (f) and (g)")
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=SHAPES, help="of (f)")
    parser.add_argument("--heap", default="2g", help="of each application of (f), (g) and (i)")
    given = parser.parse_args()
    chosen: dict[str, Callable[[], None]] = {
        "serve": lambda: serve(given.rows[0], given.rounds),
        "load": lambda: read_and_load(given.rows[0], given.rounds),
        "copies": lambda: copies(given.rows[0], given.rounds),
        **({"meanwhile": lambda: meanwhile(given.rows[0], given.rounds)} if "meanwhile" in given.which else {}),
        "empty": lambda: empty(given.tables, given.rounds),
        "sandbox": lambda: (
            sandbox.commits(given.rounds, given.beside),
            sandbox.measure(given.rows[0], given.rounds),
            sandbox.reads(given.rows[0], given.rounds),
        ),
        **({"commits": lambda: sandbox.commits(given.rounds, given.beside)} if "commits" in given.which else {}),
        "windows": lambda: growing_windows(
            given.changes, given.targets, given.shapes, given.heap, given.one_transaction
        ),
        "tables": lambda: small_tables(given.counts, given.targets, given.heap, given.rounds),
        "upserts": lambda: upserts(given),
        "starts": lambda: starts(given),
        "many": lambda: many(given),
        "memory": lambda: memory(given),
        "tracked": lambda: tracked(given),
    }
    # servers and folders go, too, when a time limit ends this
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    with tempfile.TemporaryDirectory(prefix="mssql_cdc_bench-") as folder:
        # all of them are in one folder, which goes at last
        tempfile.tempdir = folder
        os.environ.setdefault("AIRFLOW_HOME", f"{folder}/airflow")
        for name in chosen if "all" in given.which else given.which:
            chosen[name]()


if __name__ == "__main__":
    main()
