"""What a target must hold, computed in DuckDB from the source alone, beside all that it holds."""

from __future__ import annotations

import tempfile
import urllib.parse
from pathlib import Path

import duckdb
from pyspark.sql import DataFrame, SparkSession

from airflow_provider_mssql_cdc.core.formats import DELTA, PARQUET, POSTGRESQL
from airflow_provider_mssql_cdc.core.shapes import HISTORY, MIRROR, SCD2
from airflow_provider_mssql_cdc.core.spec import DatabaseSpec, SinkSpec, TableSpec
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from airflow_provider_mssql_cdc.spark.targets.parquet import read_history
from tests.benchmarks import source
from tests.benchmarks.by_hand import COLUMNS
from tests.support.logins import TARGET_PASSWORD, TARGET_USER

_NAMES = ", ".join(f'"{name}"' for name in COLUMNS)
_EVENT = "_op, _lsn, _command_id, _seqval, _commit_ts"

# the sandbox holds a datetime2 as ticks of 100 ns since the year 1
_VALUES = _NAMES.replace('"at"', 'make_timestamp(("at" - 621355968000000000) // 10) AS "at"')

_EXPECTED = {
    MIRROR: f"SELECT {_VALUES} FROM rows_now",
    HISTORY: f"""
        SELECT {_EVENT}, {_NAMES} FROM events
        UNION ALL SELECT 'R', '', NULL, NULL, NULL, {_NAMES} FROM rows_before""",
    # a transaction leaves one version of a key, which counts up to the next transaction with that key
    SCD2: f"""
        WITH states AS (
          SELECT _op, _lsn, _commit_ts, {_NAMES} FROM events WHERE _op <> 'B'
          QUALIFY ROW_NUMBER() OVER (PARTITION BY id, _lsn ORDER BY _command_id DESC, _seqval DESC, _op DESC) = 1
          UNION ALL SELECT 'R', '', NULL, {_NAMES} FROM rows_before)
        SELECT _lsn, LEAD(_lsn) OVER of_key AS _to_lsn, _commit_ts, LEAD(_commit_ts) OVER of_key AS _to_ts, {_NAMES}
        FROM states WINDOW of_key AS (PARTITION BY id ORDER BY _lsn) QUALIFY _op <> 'D'""",
}

# copied rows begin at the position of the first load, which only the load knows: before all events
_FOUND = {
    MIRROR: f"SELECT {_NAMES} FROM found",
    HISTORY: f"""
        SELECT _op, CASE WHEN _op = 'R' AND _lsn < (SELECT MIN(_lsn) FROM events) THEN '' ELSE _lsn END,
        _command_id, _seqval, _commit_ts, {_NAMES} FROM found""",
    SCD2: f"""
        SELECT CASE WHEN _from_lsn < (SELECT MIN(_lsn) FROM events) THEN '' ELSE _from_lsn END, _to_lsn,
        _from_ts, _to_ts, {_NAMES} FROM found""",
}


def differing_rows(
    spark: SparkSession, server: Sandbox, table: TableSpec, keys: int, folder: Path, database: DatabaseSpec | None
) -> int:
    """How many rows a table's target lacks or has too many, of all.

    :param table: of ``source.create``, loaded into one sink before its first change and after the last one
    :param keys: with which it was made
    :param folder: for the target's rows, as long as they are compared
    :param database: of the target, where it is one
    """
    (sink,) = table.sinks
    with tempfile.TemporaryDirectory(dir=folder) as name:
        found = Path(name) / "rows"
        _frame(spark, sink, database).write.parquet(str(found))
        return compare(server, str(table.name), table.feed.change_table, sink.shape, keys, found)


def compare(server: Sandbox, table: str, change_table: str, shape: str, keys: int, found: Path) -> int:
    """How many rows a folder of Parquet files lacks or has too many, of all.

    Where columns have other types than in the source, which is printed, all do.

    :param table: of ``source.create``
    :param change_table: that has all of its changes
    :param keys: with which it was made
    :param found: all rows of its target; where memory does not do, DuckDB writes beside it
    """
    with duckdb.connect(config={"temp_directory": str(found.parent / "duckdb")}) as connection:
        connection.register("rows_before", source.rows(0, keys))
        if shape == MIRROR:
            connection.register("rows_now", server.execute(f"SELECT {_NAMES} FROM {table}")[0])
        else:
            changes = (
                "SELECT c.[__$operation] AS operation, c.[__$start_lsn] AS lsn, c.[__$command_id] AS _command_id,"
                f" c.[__$seqval] AS seqval, {_NAMES} FROM {change_table} c"
            )
            connection.register("changes", server.execute(changes)[0])
            times = "SELECT start_lsn AS lsn, tran_end_time AS _commit_ts FROM cdc.lsn_time_mapping"
            connection.register("times", server.execute(times)[0])
            connection.execute(
                "CREATE VIEW events AS SELECT ['D', 'I', 'B', 'U'][operation] AS _op, '0x' || hex(lsn) AS _lsn,"
                f" _command_id, '0x' || hex(seqval) AS _seqval, _commit_ts, {_VALUES}"
                " FROM changes JOIN times USING (lsn)"
            )
        connection.execute(f"CREATE VIEW found AS SELECT * FROM read_parquet('{found}/*.parquet')")
        # DuckDB would cast both sides, which could then look alike
        types = [_types(connection, query) for query in (_EXPECTED[shape], _FOUND[shape])]
        if types[0] != types[1]:
            print(f"all rows of {table} differ: columns are {', '.join(types[1])}, not {', '.join(types[0])}")
            return sum(len(connection.sql(query)) for query in (_EXPECTED[shape], _FOUND[shape]))
        answer = connection.execute(
            f"WITH sides AS (SELECT *, 1 AS side FROM ({_EXPECTED[shape]}) UNION ALL"
            f" SELECT *, -1 FROM ({_FOUND[shape]})),"
            " differing AS (SELECT * EXCLUDE (side), SUM(side) AS n FROM sides GROUP BY ALL)"
            " SELECT COALESCE(SUM(ABS(n)), 0) FROM differing"
        ).fetchone()
    assert answer is not None
    return int(answer[0])


def _types(connection: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    # Iceberg has no smaller integer
    return [str(type_).replace("SMALLINT", "INTEGER") for type_ in connection.sql(query).types]


def _frame(spark: SparkSession, sink: SinkSpec, database: DatabaseSpec | None) -> DataFrame:
    """A target's rows as another reader sees them."""
    *place, name = sink.table
    if sink.format == PARQUET:
        return read_history(spark, place[0], name)
    if sink.format == DELTA:
        return spark.read.format("delta").load(f"{place[0]}/{name}")
    if sink.format != POSTGRESQL:
        return spark.table(".".join(sink.table))
    assert database is not None
    event = f"{_EVENT}, " if sink.shape == HISTORY else ""
    return spark.read.jdbc(
        f"jdbc:postgresql://{database.host}:{database.port}/{urllib.parse.quote(database.database)}",
        f'(SELECT {event}{_NAMES} FROM "{place[-1]}"."{name}") found',
        properties={
            "driver": "org.postgresql.Driver",
            "user": TARGET_USER,
            "password": TARGET_PASSWORD,
            "preferTimestampNTZ": "true",
            # else the driver holds all rows at once
            "fetchsize": "10000",
        },
    )
