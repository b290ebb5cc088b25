"""What a decision writes into a sink: the events of a window, or the copy with the events that came meanwhile."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame

from airflow_provider_mssql_cdc.core.target import HISTORY
from airflow_provider_mssql_cdc.core.window import Window
from airflow_provider_mssql_cdc.spark.first_load import Copy
from airflow_provider_mssql_cdc.spark.fold import column
from airflow_provider_mssql_cdc.spark.shapes import TableShape
from airflow_provider_mssql_cdc.spark.staging import Staged
from airflow_provider_mssql_cdc.spark.targets import Append, Merge, Replace, Write


def next_window(shape: TableShape, sink: str, window: Window, staged: Staged, held: DataFrame) -> Write:
    """Return what a window adds to a sink that is loaded up to its start.

    :param sink: the sink's shape
    :param held: the rows of the target
    :raises TargetError: if the value of a mirror's column cannot be known
    :raises KeyRequiredError: if a mirror's key, which the user chose, is not unique
    """
    if sink == HISTORY:
        known = shape.known_in_history(held, window) if shape.spec.schema.key else None
        return Append(shape.history_events(staged, window, known))
    rows = shape.mirror_changes(staged, window, held)
    return Merge(rows, shape.key, shape.nullable_key)


def first_rows(
    shape: TableShape,
    sink: str,
    window: Window,
    staged: Staged | None,
    copy: Copy | None,
    held: DataFrame,
    *,
    anew: bool,
) -> Write:
    """Return what begins a sink: the copied rows, with the events from its low to its high position in their place.

    :param sink: the sink's shape
    :param staged: None if the window is empty
    :param copy: None for a history without key
    :param held: the rows of the target
    :param anew: the target has rows of before a gap; a mirror's are replaced
    :raises TargetError: if the value of a mirror's column cannot be known
    :raises KeyRequiredError: if a mirror's key, which the user chose, is not unique
    """
    if sink == HISTORY:
        return Append(_first_events(shape, window, staged, copy, held))
    assert copy is not None
    rows = shape.mirror_rows(staged, window, copy.rows())
    return Replace(rows) if anew else Append(rows)


def _first_events(
    shape: TableShape, window: Window, staged: Staged | None, copy: Copy | None, held: DataFrame
) -> DataFrame:
    names = [column(target.name) for target in shape.columns(HISTORY)]
    parts = []
    if copy is not None:
        parts.append(shape.history_copy(copy.rows(), window.after, staged, window).select(*names))
    if staged is not None and not window.is_empty:
        known = shape.known_in_copy(copy.rows(), staged, window) if copy is not None else None
        parts.append(shape.history_events(staged, window, known).select(*names))
    return reduce(DataFrame.unionAll, parts) if parts else held.limit(0)
