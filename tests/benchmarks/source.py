"""A table of twelve columns with a million change rows, and the Spark session that reads it."""

from __future__ import annotations

import contextlib
import datetime
import os
import sys
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
DRIVER = "com.microsoft.sqlserver.jdbc.SQLServerDriver"
DATABASE, TABLE, INSTANCE = "bench", "dbo.wide", "dbo_wide"
CONNECTION_ID = "bench"
_STEP = 50_000

DDL = """CREATE TABLE dbo.wide (
  id int NOT NULL PRIMARY KEY, customer int NULL, region varchar(12) NULL, name nvarchar(30) NULL,
  amount decimal(18,4) NULL, quantity smallint NULL, rate float NULL, active bit NULL, at datetime2(3) NULL,
  due date NULL, code varchar(8) NULL, total bigint NULL)"""


def rows(first: int, count: int) -> pa.Table:
    """Return rows with these keys, always the same ones."""
    ids = np.arange(first, first + count, dtype=np.int64)
    mixed = (ids * 2_654_435_761) % 1_000_003
    start = np.datetime64(datetime.datetime(2026, 1, 1), "us")
    return pa.table(
        {
            "id": pa.array(ids.astype(np.int32)),
            "customer": pa.array(mixed.astype(np.int32)),
            "region": pa.array([f"region-{m % 100}" for m in mixed]),
            "name": pa.array([f"name of {m}" for m in mixed]),
            "amount": pa.array([Decimal(int(m)).scaleb(-4) for m in mixed], pa.decimal128(18, 4)),
            "quantity": pa.array((mixed % 1000).astype(np.int16)),
            "rate": pa.array(mixed / 7),
            "active": pa.array(mixed % 2 == 0),
            "at": pa.array(start + mixed.astype("timedelta64[s]")),
            "due": pa.array((mixed % 20_000).astype(np.int32)).cast(pa.date32()),
            "code": pa.array([f"{m:08d}" for m in mixed]),
            "total": pa.array(mixed * 1_000_003),
        }
    )


def create(server: Sandbox, keys: int) -> None:
    """Make the table with its first rows, and enable CDC."""
    server.execute(DDL)
    for first in range(0, keys, _STEP):
        server.seed(None, TABLE, rows(first, min(_STEP, keys - first)))
    server.execute("EXEC sys.sp_cdc_enable_db")
    server.execute("EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'wide', @role_name = NULL")
    server.step()


def change(server: Sandbox, keys: int, change_rows: int) -> None:
    """Make so many change rows: half of them inserts, half of them the two images of updates."""
    for first in range(0, change_rows // 2, _STEP):
        server.seed(None, TABLE, rows(keys + first, min(_STEP, change_rows // 2 - first)))
        server.step()
    for first in range(0, change_rows // 4, _STEP):
        last = min(first + _STEP, change_rows // 4)
        server.execute(
            "UPDATE dbo.wide SET amount = amount + 1, name = N'changed', total = total + 1 "
            f"WHERE id >= {first} AND id < {last}"
        )
        server.step()


def jdbc_url(server: Sandbox) -> str:
    """Return the server's JDBC URL."""
    return (
        f"jdbc:sqlserver://{server.host}:{server.port};databaseName={DATABASE};encrypt=true;trustServerCertificate=true"
    )


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
