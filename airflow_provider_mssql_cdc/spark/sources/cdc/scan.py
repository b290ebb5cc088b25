"""Refuses scans of a table in which rows may move without a change that is captured."""

from __future__ import annotations

from airflow_provider_mssql_cdc.core.copy_wanted import SNAPSHOT
from airflow_provider_mssql_cdc.core.exceptions import CopyRefusedError
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.spark.copies.chunks import TableScan


def check_scan(table: TableName, scan: TableScan, isolation: str) -> None:
    """Refuse a scan in which rows may move without a change that is captured.

    :param isolation: one of ``ISOLATIONS``
    :raises CopyRefusedError: if there is no other way to read the table
    """
    if isolation == SNAPSHOT and not scan.by_snapshots:
        raise CopyRefusedError(
            'isolation="snapshot", and the database does not allow it.',
            table=str(table),
            advice="ALTER DATABASE .. SET ALLOW_SNAPSHOT_ISOLATION ON, or write another isolation.",
        )
    if scan.pin is None and not (scan.by_versions or scan.by_snapshots):
        raise CopyRefusedError(
            "its rows lie in the order of columns that are not captured, and are read by locks: a row that moves "
            "meanwhile would be missing, or there twice, and no change would tell.",
            table=str(table),
            advice="Let the database read by row versions (ALTER DATABASE .. SET ALLOW_SNAPSHOT_ISOLATION ON, with "
            'isolation="auto"), or give the key an index of its own.',
        )
