"""A table of twelve columns with a million changes, and the sessions that read it."""

from __future__ import annotations

import contextlib
import datetime
import os
import sys
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from airflow_provider_mssql_cdc.sandbox.server import Sandbox

PACKAGES = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "com.microsoft.sqlserver:mssql-jdbc:13.6.2.jre11",
)
KEYS = 1_000_000
CHANGES = 1_000_000

DDL = """CREATE TABLE dbo.wide (
  id int NOT NULL PRIMARY KEY, customer int NULL, region varchar(12) NULL, name nvarchar(30) NULL, amount decimal(18,4) NULL,
  quantity smallint NULL, rate float NULL, active bit NULL, at datetime2(3) NULL, due date NULL, code char(8) NULL,
  total bigint NULL)"""


def rows(first: int, count: int, salt: int) -> pa.Table:
    """Return rows with these keys, always the same ones."""
    ids = np.arange(first, first + count, dtype=np.int64)
    mixed = (ids * 2654435761 + salt * 97) % 1_000_003
    start = datetime.datetime(2026, 1, 1)
    ticks = (start - datetime.datetime(1, 1, 1)) // datetime.timedelta(microseconds=1) * 10
    return pa.table(
        {
            "id": pa.array(ids.astype(np.int32)),
            "customer": pa.array(mixed.astype(np.int32)),
            "region": pa.array(np.char.add("region-", (mixed % 100).astype(str))),
            "name": pa.array(np.char.add("name of ", mixed.astype(str))),
            "amount": pa.array([Decimal(int(m)).scaleb(-4) for m in mixed], pa.decimal128(18, 4)),
            "quantity": pa.array((mixed % 1000).astype(np.int16)),
            "rate": pa.array(mixed / 7),
            "active": pa.array(mixed % 2 == 0),
            "at": pa.array(ticks + mixed * 10_000_000),
            "due": pa.array((mixed % 20_000).astype(np.int32)).cast(pa.date32()),
            "code": pa.array(np.char.zfill((mixed % 10**8).astype(str), 8)),
            "total": pa.array(mixed * 1_000_003),
        }
    )


def fill(server: Sandbox, changes: int = CHANGES) -> None:
    """Make the table with its first rows, enable CDC, and insert as many rows again as change rows."""
    server.execute(DDL)
    for first in range(0, KEYS, 100_000):
        server.seed(None, "dbo.wide", rows(first, 100_000, 0))
    server.execute("EXEC sys.sp_cdc_enable_db")
    server.execute("EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'wide', @role_name = NULL")
    server.step()
    # half of the changes are updates' pairs, the other half inserts: as many change rows as asked for
    for first in range(0, changes // 2, 50_000):
        server.seed(None, "dbo.wide", rows(KEYS + first, 50_000, 1))
        server.step()
    step = 50_000
    for first in range(0, changes // 4, step):
        server.execute(
            f"UPDATE dbo.wide SET amount = amount + 1, name = N'changed', total = total + 1 "
            f"WHERE id >= {first} AND id < {first + step}"
        )
        server.step()


@contextlib.contextmanager
def spark_session(server: Sandbox, folder: Path) -> Iterator[SparkSession]:
    """A Spark session with a lake in the folder, and the server's credentials."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars.packages", ",".join(PACKAGES))
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.lake.type", "hadoop")
        .config("spark.sql.catalog.lake.warehouse", str(folder / "lake"))
        .config("spark.mssql_cdc.user", server.user)
        .config("spark.mssql_cdc.password", server.password)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.driver.memory", "4g")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


@contextlib.contextmanager
def server_process() -> Iterator[Sandbox]:
    """A server with the table."""
    with Sandbox(database="bench", agent_running=False) as server:
        yield server


def work_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for lake and staged rows."""
    return tempfile.TemporaryDirectory(prefix="mssql_cdc_bench-")
