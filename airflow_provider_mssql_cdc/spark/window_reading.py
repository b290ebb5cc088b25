"""Windows of a table, staged, each change once, and proven to be whole."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.position import Window, is_gap
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.spark.decide import gap
from airflow_provider_mssql_cdc.spark.sources.base import SourceState, TableSource
from airflow_provider_mssql_cdc.spark.staging import Staged


def stage_windows(
    source: TableSource,
    table: TableSpec,
    windows: Sequence[Window],
    folder: str,
    *,
    before_images: bool,
    witnesses: Collection[Witness] = (),
) -> tuple[Staged, SourceState]:
    """Stage windows, each change once, and prove that none was purged meanwhile.

    :param folder: for the rows; must not exist yet
    :param before_images: with all of them, and the times of commits
    :param witnesses: by which positions of before are judged
    :return: with the state of after the read
    :raises GapError: if changes were purged before they were read
    """
    staged = source.read(windows, folder, before_images=before_images)
    # Cleanup raises the mark before it deletes, so an unmoved mark after the read proves that all was there.
    state = source.state(witnesses)
    first = min(window.after for window in windows)
    if is_gap(first, state.readable_from):
        raise gap(table, first, state.readable_from)
    return staged, state
