"""A small target table in each format, and what tests do with it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame

from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.feed import FeedRef
from airflow_provider_mssql_cdc.core.marker import FeedSpan, Marker
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.spark.targets import OldRows, State, Write
from airflow_provider_mssql_cdc.spark.targets.delta import DeltaTable
from airflow_provider_mssql_cdc.spark.targets.iceberg import IcebergTable
from airflow_provider_mssql_cdc.spark.targets.parquet import ParquetTable
from airflow_provider_mssql_cdc.spark.targets.postgresql.table import PostgresqlTable
from tests.support.spark.model import lsn
from tests.support.spark.rows import local

COLUMNS = (TargetColumn("id", "INT", "{}"), TargetColumn("a `b.c", "STRING", "{}"), TargetColumn("s", "SMALLINT", "{}"))
DDL = "id INT, `a ``b.c` STRING, s SMALLINT"

Table = IcebergTable | DeltaTable | ParquetTable | PostgresqlTable
Maker = Callable[..., Table]


def marker(position: int) -> Marker:
    """The marker of a load up to a position."""
    return Marker(
        position=lsn(position),
        witness=None,
        server="db:1433",
        database="shop",
        table=TableName("dbo", "t"),
        feeds=(FeedSpan(FeedRef("dbo_t", 1), None),),
        schema_hash="1:abc",
        window_after=None,
        events={"inserted": 1},
        spec_id="spec",
    )


def frame(target: Table, rows: list[tuple]) -> DataFrame:
    """Rows for an append."""
    return local(target._session, rows, DDL)


def changes(target: Table, rows: list[tuple]) -> DataFrame:
    """Rows for a merge."""
    return local(target._session, rows, DDL + ", _op STRING, _n BIGINT")


def merge(rows: DataFrame, key: Sequence[str], *, nullable_key: bool = False, of_target: bool = False) -> Write:
    """A write that puts and deletes by key."""
    return Write(rows, key, OldRows.OF_KEY, nullable_key=nullable_key, of_target=of_target)


def replace(rows: DataFrame) -> Write:
    """A write of all that a table is to hold."""
    return Write(rows, old=OldRows.ALL)


def contents(target: Table) -> list[tuple]:
    """What the table holds, in order."""
    if isinstance(target, PostgresqlTable):
        rows = by_hand(target, f"SELECT * FROM {target.sql_name}")
    else:
        rows = target._session.table(target.sql_name).collect()
    return sorted((tuple(row) for row in rows), key=lambda row: (row[0] is not None, *row))


def by_hand(target: Table, statement: str) -> list:
    """Run a statement as others do, in the table's own system; its rows."""
    if not isinstance(target, PostgresqlTable):
        return target._session.sql(statement).collect()
    import psycopg

    with contextlib.closing(target._database._connect(psycopg)) as connection:
        connection.autocommit = True
        cursor = connection.execute(statement, binary=True)
        return cursor.fetchall() if cursor.description else []


def load(target: Table, position: int, rows: list[tuple]) -> None:
    """Append rows with a marker."""
    assert target.commit(target.state(), Write(frame(target, rows)), marker(position))


def commit_one_after_the_other(one: Table, two: Table) -> None:
    """Commit twice from what both saw before: the second is refused."""
    seen_by_one, seen_by_two = one.state(), two.state()
    assert one.commit(seen_by_one, Write(frame(one, [(2, "one", 2)])), marker(5))
    assert not two.commit(seen_by_two, Write(frame(two, [(2, "two", 2)])), marker(5))


def race(targets: Sequence[Table], states: Sequence[State]) -> int:
    """Commit to one table from a thread for each target, at the same instant; one alone succeeds.

    :param states: what each saw before
    :return: the number of the winner, which appended ``(number, "row", 1)`` with marker 10 + number
    """
    barrier, won = threading.Barrier(len(targets)), {}

    def run(number: int) -> None:
        rows = frame(targets[number], [(number, "row", 1)])
        barrier.wait(60)
        won[number] = targets[number].commit(states[number], Write(rows), marker(10 + number))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(targets))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == len(targets)
    (winner,) = (number for number, done in won.items() if done)
    return winner
