"""Tables of twelve columns, their changes in bulk, and the Spark session that reads them."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from airflow_provider_mssql_cdc.core import formats
from airflow_provider_mssql_cdc.core.formats import ICEBERG
from airflow_provider_mssql_cdc.operators import jars
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from tests.support.logins import TARGET_PASSWORD, TARGET_USER

DRIVER = "com.microsoft.sqlserver.jdbc.SQLServerDriver"
DATABASE, TABLE, INSTANCE = "bench", "dbo.wide", "dbo_wide"
CONNECTION_ID = "bench"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_STEP = 50_000
_EXTENSIONS = "spark.sql.extensions"

_DDL = """CREATE TABLE {table} (
  id int NOT NULL, customer int NULL, region varchar(12) NULL, name nvarchar(30) NULL,
  amount decimal(18,4) NULL, quantity smallint NULL, rate float NULL, active bit NULL, at datetime2(3) NULL,
  due date NULL, code varchar(8) {null}, total bigint NULL{more}, PRIMARY KEY ({key}))"""


def rows(first: int, count: int) -> pa.Table:
    """Rows with these keys, always the same ones."""
    return rows_of(np.arange(first, first + count, dtype=np.int64))


def document(ids: np.ndarray) -> pa.Array:
    """A text of 4,096 characters for each key, of which one sixteenth says something."""
    parts = ([hashlib.md5(f"{n} {part}".encode()).hexdigest() for part in range(8)] for n in ids)
    return pa.array(["".join(each) * 16 for each in parts])


def rows_of(ids: np.ndarray) -> pa.Table:
    """Rows with these keys, always the same ones."""
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


def ddl(table: str, key: str = "id", more: str = "") -> str:
    """The CREATE TABLE statement of a table.

    :param key: columns of the primary key
    :param more: further columns, with a comma before them
    """
    return _DDL.format(table=table, key=key, more=more, null="NOT NULL" if "code" in key else "NULL")


def create(
    server: Sandbox, keys: int, tables: Sequence[str] = (TABLE,), *, key: str = "id", documents: bool = False
) -> None:
    """Make tables with their first rows, and enable CDC.

    :param tables: in the schema dbo
    :param key: columns of the primary key: ``id``, or ``id, code``
    :param documents: they have a column ``document``, which is NULL in these rows
    """
    for table in tables:
        server.execute(ddl(table, key, ", document nvarchar(max) NULL" if documents else ""))
        _insert(server, table, 0, keys)
    server.execute("EXEC sys.sp_cdc_enable_db")
    for table in tables:
        server.execute(
            "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo',"
            f" @source_name = N'{table.removeprefix('dbo.')}', @role_name = NULL"
        )
    # else a load would wait until something is captured behind the start of the last instance
    server.capture.step(server.cdc(), dummy=True)


def change(server: Sandbox, keys: int, change_rows: int) -> None:
    """Make so many change rows: half of them inserts, half of them the two images of updates."""
    _insert(server, TABLE, keys, change_rows // 2)
    for statement in _statements(UPDATE.format(table=TABLE), 0, change_rows // 4):
        server.execute(statement)
    server.step()


def change_all_ways(server: Sandbox, table: str, first: int, changes: int, *, one_transaction: bool = False) -> None:
    """Make so many changes: four of eight are inserts, three are updates, of old and of inserted rows, one is a delete.

    :param first: the rows of half as many keys from here on are there; those of the following keys are inserted
    :param one_transaction: else each 50,000 rows of a kind are one
    """
    half, deletes = changes // 2, changes // 8
    statements = [
        *_statements(UPDATE.format(table=table), first + half // 2, changes - half - deletes),
        *_statements(f"DELETE FROM {table}", first, deletes),
    ]
    if one_transaction:
        server.execute(ddl(_COMING))
        _insert(server, _COMING, first + half, half)
        server.execute(f"BEGIN TRAN INSERT INTO {table} SELECT * FROM {_COMING} {' '.join(statements)} COMMIT")
        server.execute(f"DROP TABLE {_COMING}")
    else:
        _insert(server, table, first + half, half)
        for statement in statements:
            server.execute(statement)
    server.step()


UPDATE = "UPDATE {table} SET amount = amount + 1, name = N'changed', total = total + 1"
# what is seeded is a transaction by itself
_COMING = "dbo.coming"


def insert_first(server: Sandbox, table: str, count: int) -> None:
    """Insert so many rows, from key 0 on."""
    _insert(server, table, 0, count)


def insert(server: Sandbox, table: str, ids: np.ndarray, *, documents: bool = False) -> None:
    """Insert rows with these keys, each 50,000 in one transaction.

    :param documents: the table has a column ``document``
    """
    for start in range(0, len(ids), _STEP):
        some = ids[start : start + _STEP]
        more = rows_of(some)
        server.seed(None, table, more.append_column("document", document(some)) if documents else more)


def execute_for(server: Sandbox, statement: str, ids: np.ndarray) -> None:
    """Run a statement for the rows with these keys, each 1,000 in one transaction."""
    for start in range(0, len(ids), 1000):
        server.execute(f"{statement} WHERE id IN ({', '.join(map(str, ids[start : start + 1000]))})")


def _insert(server: Sandbox, table: str, first: int, count: int) -> None:
    insert(server, table, np.arange(first, first + count, dtype=np.int64))


def _statements(statement: str, first: int, count: int) -> list[str]:
    return [
        f"{statement} WHERE id >= {start} AND id < {min(start + _STEP, first + count)}"
        for start in range(first, first + count, _STEP)
    ]


def jdbc_url(server: Sandbox) -> str:
    """The server's JDBC URL."""
    return (
        f"jdbc:sqlserver://{server.host}:{server.port};databaseName={DATABASE};encrypt=true;trustServerCertificate=true"
    )


def settings(server: Sandbox, folder: Path, targets: Sequence[str] = tuple(formats.FORMATS)) -> dict[str, str]:
    """Spark's settings: what these formats need, a lake in the folder, the logins of source and PostgreSQL."""
    packages, extensions, conf = [formats.JDBC_DRIVER], [], {}
    for needs in (formats.FORMATS[target] for target in targets):
        packages += needs.packages
        conf.update(needs.conf)
        extensions += [needs.conf[_EXTENSIONS]] if _EXTENSIONS in needs.conf else []
    if extensions:
        conf[_EXTENSIONS] = ",".join(extensions)
    if ICEBERG in targets:
        conf |= {
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": str(folder / "lake"),
        }
    return {
        **conf,
        "spark.master": "local[2]",
        **jars.spark_settings(packages),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.mssql_cdc.user": server.user,
        "spark.mssql_cdc.password": server.password,
        "spark.mssql_cdc.target_user": TARGET_USER,
        "spark.mssql_cdc.target_password": TARGET_PASSWORD,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
    }


def properties_file(folder: Path, given: Mapping[str, str]) -> Path:
    """Write Spark's settings, and that its scratch files go to this folder, where only this user can read them.

    A command line, which all can read, would show the passwords.
    """
    java = f"-Djava.io.tmpdir={folder} {given.get(JAVA_OPTIONS, '')}".strip()
    scratch = {"spark.local.dir": str(folder), JAVA_OPTIONS: java}
    path = folder / "spark.conf"
    path.touch(mode=0o600)
    path.write_text("".join(f"{name} {value}\n" for name, value in {**given, **scratch}.items()))
    return path


@contextlib.contextmanager
def spark_session(server: Sandbox, folder: Path, conf: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A Spark session with these settings, for all formats.

    :param conf: further ones
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # what it prepares is not measured, and Delta would make 50 parts of each log
    given = {
        **settings(server, folder),
        "spark.driver.memory": "4g",
        "spark.databricks.delta.snapshotPartitions": "2",
        **(conf or {}),
    }
    # the JVM, with its scratch files, outlives the session: the next one runs in it, too
    path = properties_file(Path(tempfile.mkdtemp()), given)
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--properties-file {shlex.quote(str(path))} pyspark-shell"
    # starts the JVM where there is none; getOrCreate() would hand over what it is given on the command line
    SparkContext.setSystemProperty("spark.app.name", "benchmarks")
    del os.environ["PYSPARK_SUBMIT_ARGS"]
    path.unlink()
    options: dict[str, str | int | bool | float | None] = {**given}
    session = SparkSession.builder.config(map=options).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        # a signal to the whole group has ended the JVM, too
        with contextlib.suppress(ConnectionError, Py4JNetworkError):
            session.stop()
