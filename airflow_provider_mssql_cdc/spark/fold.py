"""From a window's events to what a mirror needs: the last event of each key, as one row to put or to delete."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def last_per_key(events: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return the last row of each key.

    A before image whose key changed is the end of its old key. ``_n`` is unique, so that finding the largest per key
    and then the rows with these numbers moves only keys and numbers, not rows. The events are read twice.

    :param events: staged rows
    :param key: columns that identify a row
    """
    if "_moved" in events.columns:
        # The other before images change nothing: their after images follow.
        events = events.where((F.col("_op") != "B") | F.col("_moved"))
    last = events.groupBy(*map(column, key)).agg(F.max("_n").alias("_n")).select("_n")
    return events.join(last, "_n", "left_semi")


def is_delete() -> Column:
    """Return the condition that a row of ``last_per_key`` ends its key."""
    return F.col("_op").isin("D", "B")


def by_keys_of(rows: DataFrame, events: DataFrame, key: Sequence[str], how: str) -> DataFrame:
    """Return the rows whose key has an event, or has none. Keys compare NULL-safe.

    :param how: ``left_semi`` or ``left_anti``
    """
    keys = events.select(*(column(name).alias(f"_key_{i}") for i, name in enumerate(key))).distinct()
    condition = F.lit(True)
    for i, name in enumerate(key):
        condition &= column(name).eqNullSafe(F.col(f"_key_{i}"))
    return rows.join(keys, condition, how)


def column(name: str) -> Column:
    """Return the column of exactly this name, whatever it contains."""
    return F.col("`" + name.replace("`", "``") + "`")
