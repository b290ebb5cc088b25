"""From a window's events to what a mirror needs: the last event of each key, as one row to put or to delete."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import TEMPORARY, TRAN_ID


def last_per_key(events: DataFrame, key: Sequence[str]) -> DataFrame:
    """The last row of each key.

    A before image whose key changed is the end of its old key. ``_n`` is unique, so that finding the largest per key
    and then the rows with these numbers moves only keys and numbers, not rows. The events are read twice.

    :param events: staged rows
    :param key: columns that identify a row
    """
    if "_key_changed" in events.columns:
        # The other before images change nothing: their after images follow.
        events = events.where((F.col("_op") != "B") | F.col("_key_changed"))
    last = events.groupBy(*map(column, key)).agg(F.max("_n").alias("_n")).select("_n")
    return events.join(last, "_n", "left_semi")


def first_per_key(events: DataFrame, key: Sequence[str]) -> DataFrame:
    """The first row of each key: an old image where the key was there before, a new one where it begins.

    :param events: staged rows, with all before images
    :param key: columns that identify a row
    """
    first = events.groupBy(*map(column, key)).agg(F.min("_n").alias("_n")).select("_n")
    return events.join(first, "_n", "left_semi")


def is_old_image() -> Column:
    """The condition that a row of events tells what was there before."""
    return F.col("_op").isin("D", "B")


def is_delete() -> Column:
    """The condition that a row of ``last_per_key`` ends its key."""
    return F.col("_op").isin("D", "B")


def key_changed(events: DataFrame) -> Column:
    """The condition that an update changed the key; no event's where the source ends the old key by a delete."""
    return F.col("_key_changed") if "_key_changed" in events.columns else F.lit(False)


def by_keys_of(
    rows: DataFrame, events: DataFrame, key: Sequence[str], how: str, *, broadcast: bool = False
) -> DataFrame:
    """The rows whose key has an event, or has none. Keys compare NULL-safe.

    :param how: ``left_semi`` or ``left_anti``
    :param broadcast: the keys of the events, so that the rows need not be shuffled
    """
    keys = events.select(*renamed(key)).distinct()
    return rows.join(F.broadcast(keys) if broadcast else keys, same_key(key), how)


def lacks_any(names: Sequence[str]) -> Column:
    """Whether a row lacks a value in one of the columns."""
    return reduce(Column.__or__, (column(name).isNull() for name in names))


def renamed(key: Sequence[str]) -> list[Column]:
    """The key's columns under the names that ``same_key`` compares with."""
    return [column(name).alias(f"{TEMPORARY}key_{i}") for i, name in enumerate(key)]


def same_key(key: Sequence[str]) -> Column:
    """The condition that a key, NULL-safe, is the renamed one."""
    condition = F.lit(True)
    for i, name in enumerate(key):
        condition &= column(name).eqNullSafe(F.col(f"{TEMPORARY}key_{i}"))
    return condition


def column(name: str) -> Column:
    """The column of exactly this name, whatever it contains."""
    return F.col("`" + name.replace("`", "``") + "`")


def tran_id(rows: DataFrame) -> Column:
    """The id of the transaction that made a row; NULL in rows that tell of none."""
    return F.col(TRAN_ID) if TRAN_ID in rows.columns else F.lit(None)


def unknown(rows: DataFrame) -> Column:
    """What rows lack; nothing in those that were copied."""
    return F.col("_unknown") if "_unknown" in rows.columns else no_names()


def no_names() -> Column:
    """An empty ``_unknown``."""
    return F.array().cast("array<string>")
