"""Two loads go on from each sample; all targets are compared in full."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_mssql_cdc.cli.demo.postgres import find_programs
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from tests.support.logins import SPARK_PASSWORD, SPARK_USER, TARGET_PASSWORD, TARGET_USER
from tests.support.spark import postgres
from tests.support.upgrades import place, source
from tests.support.upgrades.cases import FORMATS, LOADED
from tests.support.upgrades.loads import Loads, configure

pytestmark = pytest.mark.xdist_group(__name__)


@pytest.fixture
def folder():
    """The folder of the samples, for this test alone."""
    with place.alone() as found:
        yield found


@pytest.fixture
def warehouse(request):
    """A PostgreSQL for the format that needs one."""
    if request.node.callspec.params["file_format"] != "postgresql":
        yield None
    else:
        with postgres.running() as server:
            yield server


@pytest.fixture
def server():
    """A source whose capture stands still."""
    with Sandbox(user=SPARK_USER, password=SPARK_PASSWORD, database=None, agent_running=False) as server:
        yield server


def restore(warehouse: postgres.Postgres, sample: Path) -> None:
    """Bring a sample's dump back as docs/upgrade.md says."""
    programs = find_programs()
    assert programs is not None
    subprocess.run(
        [programs / "psql", "--quiet", "--set=ON_ERROR_STOP=1", f"--dbname={warehouse.spec.database}"],
        stdin=sample.open(),
        env={
            **os.environ,
            "PGHOST": "127.0.0.1",
            "PGPORT": str(warehouse.port),
            "PGUSER": TARGET_USER,
            "PGPASSWORD": TARGET_PASSWORD,
        },
        check=True,
        capture_output=True,
    )
    (statement,) = re.findall(r"```sql\n(.*?)```", place.PAGE.read_text(), re.DOTALL)
    warehouse.sql(statement.replace("shop", "kept"))


# each version once; how versions are read is the same for all formats
OFTEN = {("v1", "postgresql"), ("v2", "parquet")}


@pytest.mark.parametrize(
    ("version", "file_format"),
    [
        pytest.param(version, name, marks=() if (version, name) in OFTEN else pytest.mark.thorough)
        for version in place.VERSIONS
        for name in FORMATS
    ],
)
def test_loads_go_on_from_what_a_version_left(spark, server, folder, warehouse, version, file_format):
    samples = place.SAMPLES / version
    sample, data = place.read(version, file_format), place.read(version, "source")
    configure(spark)
    source.put(server, data)
    place.unpack(samples / "files.tar.xz")
    if warehouse:
        restore(warehouse, samples / "postgresql.sql")
    loads = Loads(spark, server, file_format, warehouse, only=LOADED.get(version))
    loads.variables.update(sample["variables"])

    for cut, expected in zip(data["cuts"], sample["expected"], strict=True):
        loads.load({case.name: loads.request(case) for case in loads.cases}, Lsn.parse(cut))
        for case in loads.cases:
            for shape in case.shapes_in(file_format):
                found = [{name: source.plain(v) for name, v in row.items()} for row in loads.rows(case, shape)]
                assert found == expected[case.name][shape], f"{case.name} {shape}"

    of_source = data["tables"]["plain"]
    if "mirror" in expected["plain"]:
        assert ordered([row[name] for name in source.COLUMNS] for row in expected["plain"]["mirror"]) == ordered(
            of_source["rows"]
        )
    history = expected["plain"]["history"]
    low = next(row["_lsn"] for row in history if row["_op"] == "R")
    operations = {1: "D", 2: "I", 3: "B", 4: "U"}
    captured = [
        (f"0x{row[0]['bytes'].upper()}", operations[row[3]], row[-1], *row[5:7], *row[8:11])
        for row in of_source["changes"]
        if f"0x{row[0]['bytes'].upper()}" > low
    ]
    names = ("_lsn", "_op", "_command_id", "id", "name", "amount", "seen", "email")
    assert ordered([row[name] for name in names] for row in history if row["_op"] != "R") == ordered(captured)


def ordered(rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """Rows in the order of their texts."""
    return sorted((list(row) for row in rows), key=repr)
