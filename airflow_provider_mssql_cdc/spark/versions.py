"""What an ``scd2`` table holds: one version of a row per key and transaction, from one commit LSN up to the next."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import TEMPORARY, VERSION_COLUMNS
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.spark.fold import by_keys_of, column, is_delete, last_per_key, renamed, same_key
from airflow_provider_mssql_cdc.spark.shapes import TableShape
from airflow_provider_mssql_cdc.spark.targets import Merge

_NEXT, _NEXT_TIME = f"{TEMPORARY}next", f"{TEMPORARY}next_time"


def version_key(shape: TableShape) -> tuple[str, ...]:
    """Return the columns that identify a version."""
    return (*shape.key, "_from_lsn")


def still_open(held: DataFrame) -> DataFrame:
    """Return the versions that count now, one per key."""
    return held.where("_to_lsn IS NULL")


def next_versions(shape: TableShape, events: DataFrame, held: DataFrame) -> Merge:
    """Return the versions that a window begins, and those that it ends.

    :param events: of the window, their LOBs filled in
    :param held: the table's versions, those of before the window
    """
    return _puts(shape, [_versions(shape, events), _ended(shape, still_open(held), events)])


def first_versions(shape: TableShape, copied: DataFrame, low: Position, events: DataFrame | None) -> DataFrame:
    """Return the versions with which a table begins: of the copied rows, from ``low``, and of the events after it.

    :param copied: the rows whose keys have no event
    :param events: None where there are none
    """
    begun = _begun(shape, copied, low)
    return begun if events is None else begun.unionByName(_versions(shape, events))


def versions_anew(
    shape: TableShape, copied: DataFrame, low: Position, events: DataFrame | None, held: DataFrame
) -> Merge:
    """Return what closes a gap: versions that vanished or differ at ``low`` end there, and what differs begins.

    :param copied: the rows whose keys have no event
    :param events: after ``low``; None where there are none
    :param held: the table's versions, those of before the gap
    """
    now = still_open(held)
    data = [target.name for target in shape.data_columns]
    same = by_keys_of(now, copied, data, "left_semi")
    gone = by_keys_of(now, same, shape.key, "left_anti")
    parts = [_begun(shape, by_keys_of(copied, same, shape.key, "left_anti"), low)]
    if events is not None:
        parts += [_versions(shape, events), _ended(shape, gone, events)]
        gone = by_keys_of(gone, events, shape.key, "left_anti")
    parts.append(gone.withColumn("_to_lsn", F.lit(low.sort_key)))
    return _puts(shape, parts)


def _versions(shape: TableShape, events: DataFrame) -> DataFrame:
    """Return a version for each key and transaction that left a row; the next of the key ends it, a delete too."""
    following = Window.partitionBy(*map(column, shape.key)).orderBy("_lsn")
    left = last_per_key(events, (*shape.key, "_lsn")).withColumns(
        {_NEXT: F.lead("_lsn").over(following), _NEXT_TIME: F.lead("_commit_ts").over(following)}
    )
    return left.where(~is_delete()).select(
        *_data(shape),
        F.col("_lsn").alias("_from_lsn"),
        F.col(_NEXT).alias("_to_lsn"),
        F.col("_commit_ts").alias("_from_ts"),
        F.col(_NEXT_TIME).alias("_to_ts"),
        "_unknown",
    )


def _ended(shape: TableShape, now: DataFrame, events: DataFrame) -> DataFrame:
    """Return the open versions whose key has events, ended by the first of them."""
    first = (
        last_per_key(events, (*shape.key, "_lsn"))
        .groupBy(*renamed(shape.key))
        .agg(F.min("_lsn").alias(_NEXT), F.min_by("_commit_ts", "_lsn").alias(_NEXT_TIME))
    )
    ended = now.join(first, same_key(shape.key))
    return ended.withColumns({"_to_lsn": F.col(_NEXT), "_to_ts": F.col(_NEXT_TIME)}).select(*map(column, now.columns))


def _begun(shape: TableShape, copied: DataFrame, low: Position) -> DataFrame:
    """Return copied rows as versions from ``low``, of whose time nothing is known."""
    values = {"_from_lsn": F.lit(low.sort_key), "_unknown": F.array()}
    return copied.select(
        *_data(shape),
        *(values.get(name, F.lit(None)).cast(type_).alias(name) for name, type_ in VERSION_COLUMNS.items()),
    )


def _puts(shape: TableShape, parts: list[DataFrame]) -> Merge:
    rows = reduce(DataFrame.unionByName, parts).withColumn("_op", F.lit("U"))
    return Merge(rows, version_key(shape), shape.nullable_key)


def _data(shape: TableShape) -> list[Column]:
    return [column(target.name) for target in shape.data_columns]
