"""What a decision writes into a sink: the events of a window, or the copy with the events that came meanwhile."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.changes import OPERATIONS, WIDE
from airflow_provider_mssql_cdc.core.columns import TRAN_ID, added_columns
from airflow_provider_mssql_cdc.core.marker import Gap
from airflow_provider_mssql_cdc.core.position import Window
from airflow_provider_mssql_cdc.core.spec import SinkSpec
from airflow_provider_mssql_cdc.core.target import HARD, HISTORY, SCD2, SOFT, TRANSACTIONS
from airflow_provider_mssql_cdc.spark.changes import events_held, history_rows, known_in_history
from airflow_provider_mssql_cdc.spark.copying import Copy
from airflow_provider_mssql_cdc.spark.fold import by_keys_of, column
from airflow_provider_mssql_cdc.spark.shapes import TableShape
from airflow_provider_mssql_cdc.spark.staging import Staged
from airflow_provider_mssql_cdc.spark.targets import Append, Merge, Replace, Write
from airflow_provider_mssql_cdc.spark.versions import first_versions, next_versions, still_open, versions_anew


def takes_copy(sink: SinkSpec) -> bool:
    """Whether a sink begins with the copied rows, which are no events."""
    return sink.shape != TRANSACTIONS and sink.history.form != WIDE


def next_window(
    shape: TableShape, sink: SinkSpec, window: Window, staged: Staged, held: DataFrame, gaps: Sequence[Gap]
) -> Write:
    """Return what a window adds to a sink that is loaded up to its start.

    :param held: the rows of the target
    :param gaps: what a history lacks
    :raises TargetError: if the value of a mirror's column cannot be known
    :raises KeyRequiredError: if a mirror's key, which the user chose, is not unique
    """
    if sink.shape == HISTORY:
        return Append(history_rows(shape, sink, staged, window, known_in_history(shape, sink, held, window, gaps)))
    if sink.shape == TRANSACTIONS:
        return Append(shape.transactions(staged, window))
    if sink.shape == SCD2:
        return next_versions(shape, shape.events(staged, window, shape.known_in_versions(still_open(held))), held)
    rows = shape.mirror_changes(staged, window, held, sink.deletes)
    return Merge(rows, shape.key, shape.nullable_key)


def first_rows(
    shape: TableShape,
    sink: SinkSpec,
    window: Window,
    staged: Staged | None,
    copy: Copy | None,
    held: DataFrame,
    *,
    anew: bool,
    known_at: datetime.datetime | None,
) -> Write:
    """Return what begins a sink: the copied rows, with the events from its low to its high position in their place.

    :param staged: None if the window is empty
    :param copy: None for a history without key, and where no sink takes it
    :param held: the rows of the target
    :param anew: the target has rows of before a gap; a mirror's are replaced
    :param known_at: time of the window's end by the server's clock, for rows that were deleted within a gap
    :raises CopyMovedError: if the value of a mirror's column cannot be known, since it changed during the copy
    :raises KeyRequiredError: if a mirror's key, which the user chose, is not unique
    """
    if sink.shape == HISTORY:
        return Append(_first_events(shape, sink, window, staged, copy, held.limit(0)))
    if sink.shape == TRANSACTIONS:
        return Append(held.limit(0) if staged is None or window.is_empty else shape.transactions(staged, window))
    assert copy is not None
    if sink.shape == SCD2:
        return _first_versions(shape, window, staged, copy, held, anew=anew)
    rows = shape.mirror_rows(staged, window, copy.rows())
    if sink.deletes == SOFT:
        rows = rows.withColumn("_deleted_at", F.lit(None).cast("timestamp_ntz"))
    if not anew:
        return Append(rows)
    return Replace(rows if sink.deletes == HARD else rows.unionByName(_gone(shape, sink.deletes, rows, held, known_at)))


def laid_out(sink: SinkSpec, write: Write, layout: int) -> Write:
    """The same with the columns that the layout of the sink's table has since version 1."""
    added = added_columns(sink.shape, layout)
    if not added:
        return write
    values = {"_tran_id": F.col(TRAN_ID) if TRAN_ID in write.rows.columns else F.lit(None), "_healed": F.lit(False)}
    rows = write.rows.withColumns({name: values[name].cast(type_) for name, type_ in added.items()})
    return dataclasses.replace(write, rows=rows)


def _gone(
    shape: TableShape, deletes: str, rows: DataFrame, held: DataFrame, known_at: datetime.datetime | None
) -> DataFrame:
    """Return the rows that vanished within a gap, of which nobody knows when, for a mirror that keeps deleted rows."""
    gone = by_keys_of(held, rows, shape.key, "left_anti")
    if deletes == SOFT:
        time = F.lit(known_at.isoformat() if known_at else None).cast("timestamp_ntz")
        gone = gone.withColumn("_deleted_at", F.coalesce("_deleted_at", time))
    return gone


def _first_versions(
    shape: TableShape, window: Window, staged: Staged | None, copy: Copy, held: DataFrame, *, anew: bool
) -> Write:
    copied, events = copy.rows(), None
    if staged is not None and staged.count(window).events:
        events = shape.events(staged, window, shape.known_in_copy(copied, staged, window))
        copied, _ = shape.first_rows(copied, events)
    if anew:
        return versions_anew(shape, copied, window.after, events, held)
    return Append(first_versions(shape, copied, window.after, events))


def _first_events(
    shape: TableShape, sink: SinkSpec, window: Window, staged: Staged | None, copy: Copy | None, nothing: DataFrame
) -> DataFrame:
    names = [*(column(target.name) for target in shape.columns(sink, layout=1)), F.col(TRAN_ID)]
    parts = []
    if copy is not None and takes_copy(sink):
        held = None
        if staged is not None and sink.history.operations != OPERATIONS:
            held = events_held(shape, sink, staged, window)
        parts.append(shape.history_copy(copy.rows(), window.after, staged, window, held).select(*names))
    if staged is not None and not window.is_empty:
        known = shape.known_in_copy(copy.rows(), staged, window) if copy is not None else None
        parts.append(history_rows(shape, sink, staged, window, known).select(*names))
    return reduce(DataFrame.unionAll, parts) if parts else nothing
