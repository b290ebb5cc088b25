"""What CDC leaves out of an image is not NULL: the value is looked up where it was last seen."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import TEMPORARY
from airflow_provider_mssql_cdc.spark.shapes.fold import by_keys_of, column, renamed, same_key

_BEFORE_ALL = -1
"""``_n`` of what was known of a key before the window."""

_SHARED = f"{TEMPORARY}shared"
"""Column that says of an event that other rows may have had its key in the same transaction: such an event takes no
value from others of its key, and gives none."""

_LIFE, _HELD, _AT_ONCE = (TEMPORARY + name for name in ("life", "held", "at_once"))


def resolve(
    events: DataFrame,
    known: DataFrame | None,
    key: Sequence[str],
    lobs: Sequence[str],
    position: str,
    *,
    enforced: bool = True,
    moves: bool = True,
) -> DataFrame:
    """Fill in the LOBs that ``_unknown`` names, and leave in ``_unknown`` what cannot be known.

    A value that was left out is the one of the other image of the same update, if the column did not change in it;
    else the one that the key had in its latest earlier event; else the one known before the window.

    :param events: staged rows of a window
    :param known: key columns, LOB columns and ``_unknown``, one row per key: what the target, or the copied rows of a
        first load, hold; None if there is nothing
    :param key: columns that identify a row; without one, nothing links an event with what was before it
    :param position: the column of an event's position
    :param enforced: whether the server itself keeps the key unique; else rows may share it within a transaction, and
        there it does not tell whose value a column had
    :param moves: whether some update changed a key
    """
    rows = _share_between_images(_wrapped(events, lobs), lobs, position).withColumn(_SHARED, F.lit(False))
    if key:
        if not enforced:
            rows = _with_shared_keys(rows, known, key, position)
        rows = _carry_forward(rows, known, key, lobs)
        if moves and not rows.where(F.col("_key_changed") & _any_unknown(lobs)).isEmpty():
            rows = _follow_key_changes(rows, key, lobs, position)
    return _unwrapped(rows, events, lobs)


def _follow_key_changes(rows: DataFrame, key: Sequence[str], lobs: Sequence[str], position: str) -> DataFrame:
    """Carry values over from the old key to the new one, link by link, as long as that makes more of them known."""
    left = None
    while True:
        rows = _carry_forward(_share_between_images(rows, lobs, position), None, key, lobs).localCheckpoint()
        now = rows.where(_any_unknown(lobs)).count()
        if now == 0 or now == left:
            return rows
        left = now


def _value(lob: str) -> str:
    return f"{TEMPORARY}known_{lob}"


def _wrapped(rows: DataFrame, lobs: Sequence[str]) -> DataFrame:
    """Put each LOB into a struct, which is NULL while the value is not known: then NULL can be a known value."""
    return rows.withColumns(
        {
            _value(lob): F.when(~F.array_contains("_unknown", F.lit(lob)), F.struct(column(lob).alias("value")))
            for lob in lobs
        }
    )


def _unwrapped(rows: DataFrame, events: DataFrame, lobs: Sequence[str]) -> DataFrame:
    unknown = F.array_compact(
        F.array(*(F.when(column(_value(lob)).isNull(), F.lit(lob)) for lob in lobs)).cast("array<string>")
    )
    values = {lob: column(_value(lob)).getField("value") for lob in lobs}
    return rows.withColumns({**values, "_unknown": unknown}).select(*map(column, events.columns))


def _any_unknown(lobs: Sequence[str]) -> Column:
    condition = F.lit(False)
    for lob in lobs:
        condition |= column(_value(lob)).isNull()
    return condition


def _share_between_images(rows: DataFrame, lobs: Sequence[str], position: str) -> DataFrame:
    """Give an unchanged column of an update the value that its other image has."""
    update = Window.partitionBy(position, "_command_id", "_seqval", F.col("_op").isin("B", "U"))
    shared = {
        _value(lob): F.when(
            F.col("_op").isin("B", "U") & ~F.array_contains("_changed", F.lit(lob)),
            F.coalesce(column(_value(lob)), F.first(column(_value(lob)), ignorenulls=True).over(update)),
        ).otherwise(column(_value(lob)))
        for lob in lobs
    }
    return rows.withColumns(shared)


def _carry_forward(rows: DataFrame, known: DataFrame | None, key: Sequence[str], lobs: Sequence[str]) -> DataFrame:
    """Give a column that is not known the value of the key's latest earlier image."""
    if known is not None:
        needed = by_keys_of(known, rows.where(_any_unknown(lobs)), key, "left_semi")
        base = _wrapped(needed, lobs).withColumns(
            {"_n": F.lit(_BEFORE_ALL).cast("bigint"), _SHARED: F.lit(False)},
        )
        rows = rows.unionByName(base, allowMissingColumns=True)
    by_key = Window.partitionBy(*map(column, key)).orderBy("_n")
    # What a key held before it was deleted, or given away, is nothing to the row that takes the key next.
    life = F.count_if(_begins() | F.col(_SHARED)).over(by_key.rowsBetween(Window.unboundedPreceding, 0))
    by_life = Window.partitionBy(*map(column, key), _LIFE, _SHARED).orderBy("_n")
    earlier = by_life.rowsBetween(Window.unboundedPreceding, 0)
    carried = {_value(lob): F.last(column(_value(lob)), ignorenulls=True).over(earlier) for lob in lobs}
    return rows.withColumn(_LIFE, life).withColumns(carried).where(F.col("_n") != _BEFORE_ALL).drop(_LIFE)


def _begins() -> Column:
    """The condition that an event brings a row to its key."""
    return (F.col("_op") == "I") | ((F.col("_op") == "U") & F.col("_key_changed"))


def _with_shared_keys(rows: DataFrame, known: DataFrame | None, key: Sequence[str], position: str) -> DataFrame:
    """Mark the events of a key in those transactions in which several rows may have had it at once."""
    ends = (F.col("_op") == "D") | ((F.col("_op") == "B") & F.col("_key_changed"))
    by_key = Window.partitionBy(*map(column, key)).orderBy("_n")
    first_begins = F.first(_begins()).over(by_key.rowsBetween(Window.unboundedPreceding, 0))
    held = ~first_begins
    if known is not None:
        rows = rows.join(known.select(*renamed(key), F.lit(True).alias(_HELD)).distinct(), same_key(key), "left")
        held |= F.coalesce(_HELD, F.lit(False))
    step = F.when(_begins(), 1).when(ends, -1).otherwise(0)
    after = held.cast("int") + F.sum(step).over(by_key.rowsBetween(Window.unboundedPreceding, 0))
    # one that leaves a key to others counts, too
    at_once = F.greatest(after, after - step)
    rows = rows.withColumn(_AT_ONCE, at_once)
    transaction = Window.partitionBy(*map(column, key), position)
    return rows.withColumn(_SHARED, F.max(_AT_ONCE).over(transaction) > 1).drop(
        _AT_ONCE, _HELD, *(f"{TEMPORARY}key_{i}" for i in range(len(key)))
    )
