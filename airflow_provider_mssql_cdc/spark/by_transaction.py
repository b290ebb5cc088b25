"""What each transaction did in several source tables, from their ``transactions`` tables."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.exceptions import ParameterError
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.shapes import transaction_columns

_NUMBERS = ("events", "inserted", "updated", "deleted")


def by_transaction(*tables: DataFrame, after: str | None = None, upto: str | None = None) -> DataFrame:
    """One row for each transaction: ``_lsn``, ``_commit_ts``, ``_commit_ts_utc``, ``events`` and ``tables``.

    ``events`` is their number in all tables. ``tables`` is a map from the name of a source table that the transaction
    changed, as ``sales.orders``, to ``events``, ``inserted``, ``updated`` and ``deleted`` there. Rows come in no
    promised order.

    Each source table is loaded by itself. A transaction is whole above the position where the last of them began, and
    up to the one to which all of them are loaded: the ``upto`` in the summary of a load without failures.

    :param tables: the rows of ``transactions`` tables of one source database, one for each source table. A table that
        is given twice is an error of Spark when the rows are read (``DUPLICATED_MAP_KEY``)
    :param after: commit LSN above which transactions are wanted, as ``0x0000002D00000580001D`` or
        ``0000002d:00000580:001d``; None for all
    :param upto: commit LSN up to which they are wanted, likewise
    :raises ParameterError: without tables, for rows that are those of no ``transactions`` table, for what is no LSN
    """
    if not tables:
        raise ParameterError("by_transaction needs the rows of one transactions table or more.")
    columns = transaction_columns(Lsn)
    for number, table in enumerate(tables, 1):
        if missing := [name for name in columns if name not in table.columns]:
            raise ParameterError(
                f"the rows given as number {number} are not those of a transactions table: {', '.join(missing)} "
                "is missing."
            )
    rows = reduce(DataFrame.unionAll, (table.select(*columns) for table in tables))
    if after is not None:
        rows = rows.where(F.col("_lsn") > _lsn("after", after).sort_key)
    if upto is not None:
        rows = rows.where(F.col("_lsn") <= _lsn("upto", upto).sort_key)
    of_table = F.struct(F.concat_ws(".", "schema", "table"), F.struct(*_NUMBERS))
    return rows.groupBy("_lsn").agg(
        F.max("_commit_ts").alias("_commit_ts"),
        F.max("_commit_ts_utc").alias("_commit_ts_utc"),
        F.sum("events").alias("events"),
        F.map_from_entries(F.collect_list(of_table)).alias("tables"),
    )


def _lsn(name: str, text: str) -> Lsn:
    try:
        return Lsn.parse(text)
    except (ValueError, TypeError) as error:
        raise ParameterError(f"{name}={text!r}: {error}") from error
