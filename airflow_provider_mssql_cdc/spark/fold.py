"""From a window's events to what a mirror needs: the last event of each key, as one row to put or to delete."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import TEMPORARY

LEFT, WAS_THERE = f"{TEMPORARY}left", f"{TEMPORARY}was_there"
"""Columns of ``net_images`` and ``net_per_key``."""

_NET, _FIRST, _CAME, _WENT = (TEMPORARY + name for name in ("net", "first", "came", "went"))


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


def net_images(events: DataFrame, key: Sequence[str], image: Sequence[str]) -> DataFrame:
    """Balance for each key the images that came with those that went.

    For a key that the server does not enforce. One statement may pass such a key on from row to row; it is captured row
    by row, so that a row can come to a key before the one that was there leaves it, and the last event of a key says
    nothing of what is left. What a transaction brings and takes away again is no change, and nobody else ever saw it.

    :param events: staged rows, with all before images
    :param key: columns that identify a row
    :param image: columns by which an image is known again
    :return: one row per key and image; ``WAS_THERE`` says whether it was there before the events, ``LEFT`` how many
        rows with it are there after them
    """
    came = F.col("_op").isin("I", "U")
    sign = F.when(came, 1).otherwise(-1)
    numbers = {_CAME: F.when(came, F.col("_n")), _WENT: F.when(~came, F.col("_n"))}
    by_transaction = (
        events.groupBy(*map(column, (*key, *image)), "_lsn")
        .agg(
            F.sum(sign).alias(_NET),
            F.min_by(sign, "_n").alias(_FIRST),
            *(F.max(number).alias(name) for name, number in numbers.items()),
        )
        .where((F.col(_NET) != 0) | (F.col(_FIRST) < 0))
    )
    was_there = F.min_by((F.col(_NET) < 0) | (F.col(_FIRST) < 0), "_lsn")
    return by_transaction.groupBy(*map(column, (*key, *image))).agg(
        was_there.alias(WAS_THERE),
        F.greatest(F.sum(_NET) + was_there.cast("int"), F.lit(0)).alias(LEFT),
        *(F.max(name).alias(name) for name in numbers),
    )


def net_per_key(events: DataFrame, images: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return for each key that changed the row that is there now, or one that says that the key's row is gone.

    :param images: ``net_images`` of the events
    :return: events, with ``LEFT``, the number of rows that have the key now, and ``WAS_THERE``, whether one is known to
        have had it before
    """
    by_key = images.groupBy(*map(column, key)).agg(
        F.sum(LEFT).alias(LEFT),
        F.max(WAS_THERE).alias(WAS_THERE),
        F.coalesce(F.max(F.when(F.col(LEFT) > 0, F.col(_CAME))), F.max(_WENT)).alias("_n"),
    )
    changed = by_key.where((F.col(LEFT) > 0) | F.col(WAS_THERE))
    return events.join(changed.select("_n", LEFT, WAS_THERE), "_n")


def is_delete() -> Column:
    """Return the condition that a row of ``last_per_key`` ends its key."""
    return F.col("_op").isin("D", "B")


def by_keys_of(rows: DataFrame, events: DataFrame, key: Sequence[str], how: str) -> DataFrame:
    """Return the rows whose key has an event, or has none. Keys compare NULL-safe.

    :param how: ``left_semi`` or ``left_anti``
    """
    return rows.join(events.select(*renamed(key)).distinct(), same_key(key), how)


def renamed(key: Sequence[str]) -> list[Column]:
    """Return the key's columns under the names that ``same_key`` compares with."""
    return [column(name).alias(f"{TEMPORARY}key_{i}") for i, name in enumerate(key)]


def same_key(key: Sequence[str]) -> Column:
    """Return the condition that a key, NULL-safe, is the renamed one."""
    condition = F.lit(True)
    for i, name in enumerate(key):
        condition &= column(name).eqNullSafe(F.col(f"{TEMPORARY}key_{i}"))
    return condition


def column(name: str) -> Column:
    """Return the column of exactly this name, whatever it contains."""
    return F.col("`" + name.replace("`", "``") + "`")
