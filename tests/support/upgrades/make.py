"""Writes the samples of the formats as this checkout has them: ``python -m tests.support.upgrades.make v1``.

The samples that are there are never written anew, and nothing in them is edited.
"""

from __future__ import annotations

import dataclasses
import json
import lzma
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from airflow_provider_mssql_cdc.cli.demo.postgres import find_programs
from airflow_provider_mssql_cdc.core.checkpoint import SinkState
from airflow_provider_mssql_cdc.core.codec import to_json
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from tests import conftest
from tests.support.logins import SPARK_PASSWORD, SPARK_USER, TARGET_PASSWORD, TARGET_USER
from tests.support.spark import postgres
from tests.support.upgrades import place, source
from tests.support.upgrades.cases import CASES, DATABASE, FORMATS, with_gap_closed
from tests.support.upgrades.loads import Loads, configure


def main(version: str) -> None:
    """Make the samples of all formats from one source."""
    folder = place.SAMPLES / version
    folder.mkdir()
    conftest.pytest_configure(None)  # type: ignore[arg-type]
    with (
        place.alone(),
        Sandbox(user=SPARK_USER, password=SPARK_PASSWORD, database=None, capture_interval=0.1) as server,
        postgres.running() as warehouse,
    ):
        spark = conftest.spark_session(conftest.ROOT)
        configure(spark)
        loads = {f: Loads(spark, server, f, warehouse if f == "postgresql" else None) for f in FORMATS}
        begin(server)
        for each in loads.values():
            each.load({case.name: each.request(case) for case in each.cases}, max_lsn(server))
        server.execute("EXEC sys.sp_cdc_stop_job @job_type = N'capture'", DATABASE)
        rng = random.Random(15)
        change(server, rng)
        purge(server, "gap")
        change(server, rng)
        server.execute("EXEC sys.sp_cdc_start_job @job_type = N'capture'", DATABASE)
        server.step(DATABASE)
        kept = {f: sample(each, max_lsn(server)) for f, each in loads.items()}
        server.execute("EXEC sys.sp_cdc_stop_job @job_type = N'capture'", DATABASE)
        dump(warehouse, folder / "postgresql.sql")
        place.pack(folder / "files.tar.xz")
        cuts = []
        for _ in range(2):
            change(server, rng)
            server.step(DATABASE)
            cuts.append(max_lsn(server))
        write(folder / "source", source.take(server, list(map(str, cuts))))
        for file_format, each in loads.items():
            expected = [go_on(each, cut) for cut in cuts]
            write(folder / file_format, {**kept[file_format], "expected": expected})
        spark.stop()


def begin(server: Sandbox) -> None:
    """Make the tables, fill them, and enable capture."""
    server.create_database(DATABASE)
    server.execute("CREATE SCHEMA lab", DATABASE)
    server.execute("EXEC sys.sp_cdc_enable_db", DATABASE)
    for case in CASES:
        server.execute(case.ddl, DATABASE)
        notes = {n: "NULL" if n % 3 else f"REPLICATE(N'{n}', 50)" for n in range(1, 13)}
        values = ", ".join(
            f"({n}, N'name {n}', {note}, {n}.25, '2026-01-{n:02d}T10:00:00', 'm{n}@example.org')"
            for n, note in notes.items()
        )
        server.execute(f"INSERT INTO {case.table} VALUES {values}", DATABASE)
        server.execute(
            f"EXEC sys.sp_cdc_enable_table @source_schema = N'lab', @source_name = N'{case.name}', @role_name = NULL,"
            " @supports_net_changes = 0",
            DATABASE,
        )
    server.cdc(DATABASE).scan(dummy=True)


def change(server: Sandbox, rng: random.Random) -> None:
    """Some transactions in each table."""
    for _ in range(4):
        for case in CASES:
            first, second, third = rng.sample(range(1, 13), 3)
            fresh = rng.randrange(20, 10_000_000)
            server.execute(
                f"""
                BEGIN TRANSACTION
                UPDATE {case.table} SET amount = amount - {rng.randint(1, 4)}, name = N'ä {fresh}' WHERE id = {first}
                UPDATE {case.table} SET note = N'{fresh}', email = NULL WHERE id = {second}
                DELETE FROM {case.table} WHERE id = {third}
                INSERT INTO {case.table} VALUES ({fresh}, N'new', NULL, 1.5, '2026-02-03T04:05:06.007', 'x@example.org')
                UPDATE {case.table} SET note = N'again', amount = -1 WHERE id = {fresh}
                COMMIT
                UPDATE {case.table} SET amount = 7 WHERE id = {fresh}
                INSERT INTO {case.table} SELECT {third}, N'back', NULL, 2, NULL, 'b@example.org'
                WHERE NOT EXISTS (SELECT * FROM {case.table} WHERE id = {third})
                UPDATE {case.table} SET id = {fresh + 1} WHERE id = {fresh} AND {fresh} % 2 = 0
                """,
                DATABASE,
            )
    server.step(DATABASE)


def purge(server: Sandbox, name: str) -> None:
    """Let a table's changes be gone."""
    mark = server.execute("SELECT sys.fn_cdc_get_max_lsn() AS lsn", DATABASE)[0].to_pylist()[0]["lsn"]
    server.execute(
        f"EXEC sys.sp_cdc_cleanup_change_table @capture_instance = N'lab_{name}', @low_water_mark = {Lsn(mark)}",
        DATABASE,
    )


def sample(loads: Loads, upto: Lsn) -> dict[str, Any]:
    """Load what has changed; what Airflow keeps of it."""
    requests = {case.name: loads.request(case) for case in loads.cases}
    requests["gap"] = with_gap_closed(requests["gap"])
    spec, receipt = loads.load({name: each for name, each in requests.items() if name != "property"}, upto)
    for case in loads.cases:
        request, name = requests[case.name], TableName("lab", case.name)
        identity = request.identity(DATABASE, name, request.options(name))
        stored = loads.store.load(identity)
        assert stored is not None
        assert all(sink.position >= upto for sink in stored.sinks.values()) != (case.name == "property")
        if case.name == "asserted":
            sinks = {shape: SinkState(upto, upto, asserted="5eed5eed5eed5eed") for shape in stored.sinks}
            loads.store.overwrite(dataclasses.replace(stored, sinks=sinks))
        elif case.name == "lost":
            loads.store.delete(identity)
        elif case.name == "property":
            for shape in case.shapes_in(loads.file_format):
                FORGET[loads.file_format](loads, loads.sql_name(case, shape), loads.table(case, shape))
    return {
        "variables": dict(loads.variables),
        "spec": to_json(spec),
        "receipt": to_json(receipt),
    }


def forget_snapshots(loads: Loads, name: str, table: str) -> None:
    """Rewrite an Iceberg table's files, and expire all snapshots but that."""
    session = loads.spark.newSession()
    short = name.removeprefix("upgrades.")
    options = "options => map('rewrite-all', 'true', 'min-input-files', '1')"
    session.sql(f"CALL upgrades.system.rewrite_data_files(table => '{short}', {options})").collect()
    now = session.sql("SELECT CAST(current_timestamp() AS STRING)").collect()[0][0]
    session.sql(
        f"CALL upgrades.system.expire_snapshots(table => '{short}', older_than => TIMESTAMP '{now}', retain_last => 1)"
    ).collect()


def forget_commits(loads: Loads, name: str, table: str) -> None:
    """Let a Delta table's log be old, and cleaned up."""
    session = loads.spark.newSession()
    session.sql(
        f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.checkpointInterval' = '1',"
        " 'delta.logRetentionDuration' = 'interval 7 days')"
    )
    session.sql(f"OPTIMIZE {name}").collect()
    session.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('note' = 'before the log was cleaned up')")
    old = time.time() - 40 * 86_400
    log = place.TABLES / table / "_delta_log"
    newest = max(log.glob("*.json")).name
    for number, path in enumerate(sorted(log.iterdir())):
        if path.is_file() and path.name < newest and path.name[0].isdigit():
            os.utime(path, (old + number, old + number))
    session.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('note' = 'the log was cleaned up')")
    kept = session.sql(f"DESCRIBE HISTORY {name}").select("userMetadata").collect()
    assert not any(row[0] for row in kept), kept


FORGET = {"iceberg": forget_snapshots, "delta": forget_commits}


def go_on(loads: Loads, cut: Lsn) -> dict[str, Any]:
    """Load up to a cut; the rows of all targets then."""
    loads.load({case.name: loads.request(case) for case in loads.cases}, cut)
    return {
        case.name: {
            shape: [{name: source.plain(v) for name, v in row.items()} for row in loads.rows(case, shape)]
            for shape in case.shapes_in(loads.file_format)
        }
        for case in loads.cases
    }


def dump(warehouse: postgres.Postgres, path: Path) -> None:
    """Write the schema of PostgreSQL's targets as SQL text."""
    programs = find_programs()
    assert programs is not None
    path.write_text(
        subprocess.run(
            [programs / "pg_dump", "--schema=kept", "--no-owner", "--inserts", warehouse.spec.database],
            env={
                **os.environ,
                "PGHOST": "127.0.0.1",
                "PGPORT": str(warehouse.port),
                "PGUSER": TARGET_USER,
                "PGPASSWORD": TARGET_PASSWORD,
            },
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    )


def write(path: Path, data: dict[str, Any]) -> None:
    """Write JSON, compressed."""
    path.with_suffix(".json.xz").write_bytes(lzma.compress(json.dumps(data, separators=(",", ":")).encode()))


def max_lsn(server: Sandbox) -> Lsn:
    """The newest position."""
    return Lsn(server.execute("SELECT sys.fn_cdc_get_max_lsn() AS lsn", DATABASE)[0].to_pylist()[0]["lsn"])


if __name__ == "__main__":
    main(sys.argv[1])
