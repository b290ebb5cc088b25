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

_LIFE, _HELD, _AT_ONCE, _LATER = (TEMPORARY + name for name in ("life", "held", "at_once", "later"))

SINCE = f"{TEMPORARY}since"
"""The column of the position behind which a row was read: events from there on tell more than it does."""


def resolve(
    events: DataFrame,
    known: DataFrame | None,
    key: Sequence[str],
    lobs: Sequence[str],
    position: str,
    *,
    enforced: bool = True,
    moves: bool = True,
    exact: bool = True,
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
    :param exact: whether what is known is of the moment before the window; copied rows are of some moment within it
    """
    rows = _share_between_images(_wrapped(events, lobs), lobs, position).withColumn(_SHARED, F.lit(False))
    if key:
        if not enforced:
            rows = _with_shared_keys(rows, known, key, position, exact=exact)
        rows = _carry_forward(rows, known, key, lobs)
        if moves and not rows.where(F.col("_key_changed") & _any_unknown(lobs)).isEmpty():
            rows = _follow_key_changes(rows, key, lobs, position)
    return _unwrapped(rows, events, lobs)


def told_after(
    events: DataFrame, values: DataFrame, key: Sequence[str], lobs: Sequence[str], position: str
) -> DataFrame:
    """Fill in the LOBs of events whose row was seen later: as it was then, if nothing that came after may have set it.

    :param events: staged rows of a window, of a key that the server enforces
    :param values: key and LOBs of rows, one for each key, with the position ``SINCE`` behind which each was seen
    :param key: columns that identify a row
    :param position: the column of an event's position
    """
    seen = values.select(*renamed(key), SINCE, F.struct(*map(column, lobs)).alias(_HELD))
    rows = events.join(seen, same_key(key))
    is_behind = F.col(position) > F.col(SINCE)
    last = F.max(F.when(~is_behind, F.col("_n"))).alias("_n")
    later = F.when(is_behind & F.col("_op").isin("I", "U"), may_set(lobs))
    # a target may have a key twice, and then tells nothing of it
    held = F.when(F.min(_HELD).eqNullSafe(F.max(_HELD)), F.first(_HELD)).alias(_HELD)
    by_key = rows.groupBy(*map(column, key)).agg(last, held, F.flatten(F.collect_list(later)).alias(_LATER))
    told = by_key.where(F.col("_n").isNotNull()).select("_n", _HELD, _LATER).localCheckpoint()
    filled = events.join(told, "_n", "left")
    is_told = {
        lob: F.col(_HELD).isNotNull()
        & F.array_contains("_unknown", F.lit(lob))
        & ~F.array_contains(_LATER, F.lit(lob))
        & F.col("_op").isin("I", "U")
        for lob in lobs
    }
    names = F.array_compact(F.array(*(F.when(is_told[lob], F.lit(lob)) for lob in lobs))).cast("array<string>")
    values_of = {lob: F.when(is_told[lob], F.col(_HELD).getField(lob)).otherwise(column(lob)) for lob in lobs}
    filled = filled.withColumns({**values_of, "_unknown": F.array_except("_unknown", names)})
    return _unwrapped(_carry_back(_wrapped(filled, lobs), key, lobs), events, lobs)


def may_set(lobs: Sequence[str]) -> Column:
    """The LOBs that an event with an image of after may have set."""
    names = F.array(*map(F.lit, lobs)).cast("array<string>")
    return F.when(_begins(), names).otherwise(F.array_intersect("_changed", names))


def _carry_back(rows: DataFrame, key: Sequence[str], lobs: Sequence[str]) -> DataFrame:
    """Give a column that is not known the value that a later image of its key has, if it was not set in between."""
    of_key = Window.partitionBy(*map(column, key)).orderBy("_n").rowsBetween(Window.unboundedPreceding, 0)
    for lob in lobs:
        sets = F.col("_op").isin("I", "U") & F.array_contains(may_set(lobs), F.lit(lob))
        rows = rows.withColumn(_LIFE, F.count_if(sets).over(of_key))
        same = Window.partitionBy(*map(column, key), _LIFE)
        value = column(_value(lob))
        rows = rows.withColumn(_value(lob), F.coalesce(value, F.first(value, ignorenulls=True).over(same)))
    return rows.drop(_LIFE)


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


def _with_shared_keys(
    rows: DataFrame, known: DataFrame | None, key: Sequence[str], position: str, *, exact: bool
) -> DataFrame:
    """Mark the events of a key in those transactions in which several rows may have had it at once."""
    of_key = Window.partitionBy(*map(column, key))
    so_far = of_key.orderBy("_n").rowsBetween(Window.unboundedPreceding, 0)
    ends = (F.col("_op") == "D") | ((F.col("_op") == "B") & F.col("_key_changed"))
    step = F.when(_begins(), 1).when(ends, -1).otherwise(0)
    begins = F.first(_begins()).over(so_far)
    transaction = Window.partitionBy(*map(column, key), position)
    if exact:
        held = ~begins
        if known is not None:
            rows = rows.join(known.select(*renamed(key), F.lit(True).alias(_HELD)).distinct(), same_key(key), "left")
            held |= F.coalesce(_HELD, F.lit(False))
    else:
        # between transactions one row has the key, or none: where that is one more than before, none had it
        is_last = F.col("_n") == F.max("_n").over(transaction)
        rows = rows.withColumn(_HELD, F.when(is_last, F.sum(step).over(so_far)))
        rows = rows.withColumn(_HELD, F.max(_HELD).over(of_key))
        held = ~begins | (F.col(_HELD) < 1)
    after = held.cast("int") + F.sum(step).over(so_far)
    # one that leaves a key to others counts, too
    at_once = F.greatest(after, after - step)
    rows = rows.withColumn(_AT_ONCE, at_once)
    return rows.withColumn(_SHARED, F.max(_AT_ONCE).over(transaction) > 1).drop(
        _AT_ONCE, _HELD, *(f"{TEMPORARY}key_{i}" for i in range(len(key)))
    )
