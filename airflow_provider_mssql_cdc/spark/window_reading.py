"""Windows of a table, read and staged, each change once, and proven to be whole."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame

from airflow_provider_mssql_cdc.core.columns import ColumnMapping
from airflow_provider_mssql_cdc.core.lsn import Lsn
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.core.window import Window
from airflow_provider_mssql_cdc.spark.decide import gap, is_gap
from airflow_provider_mssql_cdc.spark.reader import read_window
from airflow_provider_mssql_cdc.spark.source import Source, SourceState
from airflow_provider_mssql_cdc.spark.staging import Staged, stage


def stage_windows(
    source: Source,
    table: TableSpec,
    mappings: Sequence[ColumnMapping],
    windows: Sequence[Window],
    folder: str,
    *,
    history: bool,
    slice_rows: int,
    connections: int,
    salt: str | None = None,
    lsns: Sequence[Lsn] = (),
) -> tuple[Staged, SourceState]:
    """Stage all windows, each change once, and prove that none was purged meanwhile.

    :param folder: must not exist yet
    :param history: read all before images and the commit times
    :param salt: of hashes
    :param lsns: whose times are wanted
    :return: with the state of after the read
    :raises GapError: if changes were purged before they were read
    """
    whole = merged(windows)
    parts = [
        read_window(
            source,
            table.instance,
            table.schema,
            mappings,
            window,
            history=history,
            slice_rows=slice_rows,
            connections=connections,
            selection=table.selection,
        )
        for window in whole
    ]
    rows = reduce(DataFrame.unionAll, parts)
    staged = stage(
        # each partition reads over a connection of its own
        rows.coalesce(connections) if len(parts) > 1 else rows,
        table.schema,
        mappings,
        list(dict.fromkeys([*windows, *whole])),
        folder,
        history=history,
        selection=table.selection,
        salt=salt,
    )
    # Cleanup raises the mark before it deletes, so an unmoved mark after the read proves that all was there.
    state = source.state(table.instance, lsns)
    first = min(window.after for window in windows)
    if is_gap(first, state.min_lsn):
        raise gap(table, first, state.min_lsn)
    return staged, state


def merged(windows: Sequence[Window]) -> list[Window]:
    """Return windows that cover the same, in order, without overlap."""
    result: list[Window] = []
    for window in sorted(windows, key=lambda w: (w.after, w.upto)):
        if result and window.after <= result[-1].upto:
            result[-1] = dataclasses.replace(result[-1], upto=max(result[-1].upto, window.upto))
        else:
            result.append(window)
    return result
