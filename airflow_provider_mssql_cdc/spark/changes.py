"""What a history's options make of a window's events: one of the five ways to look at them, and the wide form."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.changes import (
    ALL,
    DELETE,
    INSERT,
    NET_CHANGES,
    NET_MASK,
    NET_MERGE,
    UPDATE,
    WIDE,
    HistoryOptions,
)
from airflow_provider_mssql_cdc.core.columns import AFTER, BEFORE, TEMPORARY, TRAN_ID, shown, wide_columns
from airflow_provider_mssql_cdc.core.marker import Gap
from airflow_provider_mssql_cdc.core.position import Window
from airflow_provider_mssql_cdc.core.spec import SinkSpec
from airflow_provider_mssql_cdc.spark.fold import by_keys_of, column
from airflow_provider_mssql_cdc.spark.shapes import TableShape
from airflow_provider_mssql_cdc.spark.staging import Staged

_FIRST, _LAST, _NET, _MASK, _OLD = (TEMPORARY + name for name in ("first", "last", "net", "mask", "old"))

_LETTERS = {INSERT: ("I", "M"), UPDATE: ("U", "B", "M"), DELETE: ("D",)}


def history_rows(
    shape: TableShape, sink: SinkSpec, staged: Staged, window: Window, known: DataFrame | None
) -> DataFrame:
    """Return what a window adds to a history.

    :param known: key, LOBs and ``_unknown`` of each key as they were before the window
    """
    options = sink.history
    once = not options.is_net and options.form != WIDE
    events = seen_as(options.changes, shape, shape.history_events(staged, window, known, once=once))
    events = events.where(F.col("_op").isin(*letters(options)))
    return _wide(shape, events) if options.form == WIDE else events


def letters(options: HistoryOptions) -> list[str]:
    """Return what ``_op`` says of the changes that are not left out."""
    return [letter for operation in options.operations for letter in _LETTERS[operation]]


def events_held(shape: TableShape, sink: SinkSpec, staged: Staged, window: Window) -> DataFrame:
    """Return the events of the keys that a history of some kinds of changes holds, or that came and went: a copied row
    does not give way to what is left out.

    The key is one that the server enforces.
    """
    events = staged.rows(window)
    if not sink.history.is_net:
        return events.where(F.col("_op").isin(*letters(sink.history)) | F.col("_moved"))
    left_out = seen_as(sink.history.changes, shape, events).where(~F.col("_op").isin(*letters(sink.history)))
    return by_keys_of(events, left_out, shape.key, "left_anti")


def known_in_history(
    shape: TableShape, sink: SinkSpec, held: DataFrame, window: Window, gaps: Sequence[Gap] = ()
) -> DataFrame | None:
    """Return what a history knows of each key as it was before a window; None where it cannot know.

    :param held: the rows of the target
    :param gaps: what it lacks: images of before one say nothing of what comes after it
    """
    if not shape.key or not sink.history.has_latest:
        return None
    images = _images(shape, held) if sink.history.form == WIDE else held
    if since := max((gap.upto for gap in gaps if gap.upto <= window.after), default=None):
        images = images.where(F.col("_lsn") >= since.sort_key)
    return shape.known_in_history(images, window)


def identified(sink: SinkSpec, rows: DataFrame) -> DataFrame:
    """Return a history's rows with the columns that identify their events."""
    if sink.history.form != WIDE:
        return rows
    return rows.withColumns({"_lsn": _plain_lsn(), "_op": _letter()})


def seen_as(changes: str, shape: TableShape, events: DataFrame) -> DataFrame:
    """Return a window's events as one of the five ways shows them.

    :param changes: as ``core.changes`` names it
    :param events: of the window, with all before images, their LOBs filled in
    """
    if changes in NET_CHANGES:
        return _net(changes, shape, events)
    return events.where("_op != 'B'") if changes == ALL else events


def _net(changes: str, shape: TableShape, events: DataFrame) -> DataFrame:
    """Return one row for each key that is not as it was: its last event, and the operation that all of them make.

    It is what ``cdc.fn_cdc_get_net_changes_<instance>`` says: the first and the last operation of a key tell, a row
    that came and went is left out, and only an update has a mask, with the columns of all changes of the key. That
    function takes the images of a key that was changed in place (trace flag 8207) for one row's; here they are the end
    of the old key and the beginning of the new one. It compares keys by the collation, and this by their values.
    """
    moved = F.col("_moved")
    kind = F.when(moved & (F.col("_op") == "B"), "D").when(moved, "I").otherwise(F.col("_op"))
    rows = events.where((F.col("_op") != "B") | moved).withColumn("_op", kind)
    found = [F.min_by("_op", "_n").alias(_FIRST), F.max_by("_op", "_n").alias(_LAST), F.max("_n").alias("_n")]
    if changes == NET_MASK:
        found.append(_all_changed(shape, moved).alias(_MASK))
    by_key = rows.groupBy(*map(column, shape.key)).agg(*found)
    net = F.when(F.col(_LAST) == "D", "D").when(F.col(_FIRST) == "I", "I").otherwise("U")
    by_key = by_key.where((F.col(_FIRST) != "I") | (F.col(_LAST) != "D")).withColumn(_NET, net)
    mask = F.when(F.col(_NET) == "U", F.col(_MASK)) if changes == NET_MASK else F.lit(None).cast("array<string>")
    operation = F.when(F.col(_NET) == "D", "D").otherwise("M") if changes == NET_MERGE else F.col(_NET)
    answer = by_key.select("_n", operation.alias(_NET), mask.alias("_changed"))
    return rows.drop("_changed").join(answer, "_n").withColumn("_op", F.col(_NET)).select(*map(column, events.columns))


def _all_changed(shape: TableShape, moved: Column) -> Column:
    """Return the columns that a key's changes name, in the order of the mask; all where another row took the key."""
    names = F.array(*(F.lit(mapping.name) for mapping in shown(shape.mappings)))
    found = F.flatten(F.collect_set(F.when(moved, names).otherwise(F.col("_changed"))))
    return F.array_intersect(names, found)


def _wide(shape: TableShape, events: DataFrame) -> DataFrame:
    """Return one record for each event, with the values before and after it."""
    names = [target.name for target in shape.data_columns]
    pair = ("_lsn", "_command_id", "_seqval")
    old = events.where("_op = 'B'").select(
        *(F.col(name).alias(f"{_OLD}{name}") for name in pair),
        F.struct("_unknown", F.struct(*map(column, names)).alias("data")).alias(_OLD),
    )
    same = F.lit(True)
    for name in pair:
        same &= F.col(name).eqNullSafe(F.col(f"{_OLD}{name}"))
    rows = events.where("_op != 'B'").join(old, same, "left")
    op = F.col("_op")
    unknown = F.when(op == "D", _prefixed(BEFORE, F.col("_unknown"))).otherwise(
        F.concat(
            F.coalesce(_prefixed(BEFORE, F.col(_OLD)["_unknown"]), F.array().cast("array<string>")),
            _prefixed(AFTER, F.col("_unknown")),
        )
    )
    missing = F.raise_error(
        F.concat(
            F.lit(f"{shape.spec.name}: the change table has an update without its before image, at "),
            F.col("_lsn"),
            F.lit(", so rows of it were removed by hand: load the table anew after `mssql-cdc checkpoint reset`"),
        )
    )
    type_ = F.when(op == "I", INSERT).when(op == "D", DELETE).when(F.col(_OLD).isNull(), missing).otherwise(UPDATE)
    values = {
        "type": type_,
        "schema": F.lit(shape.spec.name.schema),
        "table": F.lit(shape.spec.name.table),
        "lsn": _colon_lsn(),
        "ts": F.col("_commit_ts"),
        "_unknown": unknown,
        **{BEFORE + name: F.when(op == "D", column(name)).otherwise(F.col(_OLD)["data"][name]) for name in names},
        **{AFTER + name: F.when(op != "D", column(name)) for name in names},
    }
    return rows.select(
        *(
            values.get(target.name, column(target.name)).alias(target.name)
            for target in wide_columns(shape.data_columns)
        ),
        TRAN_ID,
    )


def _images(shape: TableShape, records: DataFrame) -> DataFrame:
    """Return wide records as events: what each left of its row, or took."""
    took = F.col("type") == DELETE
    known = F.when(took, _unprefixed(BEFORE)).otherwise(_unprefixed(AFTER))
    data = [
        F.when(took, column(BEFORE + target.name)).otherwise(column(AFTER + target.name)).alias(target.name)
        for target in shape.data_columns
    ]
    return records.select(*data, _letter().alias("_op"), _plain_lsn().alias("_lsn"), "_seq", known.alias("_unknown"))


def _prefixed(prefix: str, names: Column) -> Column:
    return F.transform(names, lambda name: F.concat(F.lit(prefix), name))


def _unprefixed(prefix: str) -> Column:
    mine = F.filter("_unknown", lambda name: name.startswith(prefix))
    return F.transform(mine, lambda name: F.substring(name, len(prefix) + 1, 128))


def _letter() -> Column:
    return F.when(F.col("type") == INSERT, "I").when(F.col("type") == UPDATE, "U").otherwise("D")


def _colon_lsn() -> Column:
    parts = (F.substring("_lsn", start, length) for start, length in ((3, 8), (11, 8), (19, 4)))
    return F.lower(F.concat_ws(":", *parts))


def _plain_lsn() -> Column:
    return F.concat(F.lit("0x"), F.upper(F.replace(F.col("lsn"), F.lit(":"), F.lit(""))))
