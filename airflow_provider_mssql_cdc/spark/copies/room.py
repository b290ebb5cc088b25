"""Whether a table's rows have room where they are to be copied to."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from airflow_provider_mssql_cdc.core.exceptions import NoRoomError
from airflow_provider_mssql_cdc.core.table import TableName, literal
from airflow_provider_mssql_cdc.spark import files
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc

log = logging.getLogger(__name__)

_GIB = 2**30
_SCARCE = 1 / 5
"""What is left of a disk that runs full."""

_LITTLE = _GIB
"""Changes that take less never fill a disk."""


def check_room(jdbc: Jdbc, table: TableName, place: str, rows: int, *, is_whole: bool) -> None:
    """Say how large a table is, and refuse a disk that has less room. Of another place than a disk nothing is known.

    :param place: folder or URL
    :param rows: that the table is said to have
    :param is_whole: all of it is copied; of a part it is not known how large that is
    :raises NoRoomError: if there is less
    """
    size = _bytes(jdbc, table)
    log.info("%s: a copy begins, of about %d rows in %.2f GiB", table, rows, size / _GIB)
    folder = _local(place)
    if folder is None:
        return
    free = shutil.disk_usage(folder).free
    if free < size and not is_whole:
        log.warning("%s: %s has %.1f GiB left; what is selected of the table may take more", table, place, free / _GIB)
    elif free < size:
        raise NoRoomError(
            f"{place} has {free / _GIB:.1f} GiB left, and its rows, which are copied to there first, take "
            f"{size / _GIB:.1f} GiB in SQL Server.",
            table=str(table),
            advice="Make room, or name another work_dir.",
        )


def check_kept(jdbc: Jdbc, table: TableName, place: str, kept: Sequence[str], warn: Callable[[str], None]) -> None:
    """Refuse changes that outgrow the table beside which they are kept, while the disk runs full.

    :param place: folder or URL
    :param kept: the files of the changes
    :param warn: is told from half-way on
    :raises NoRoomError: if they take more than the table and 1 GiB, and less than a fifth of the disk is left
    """
    folder = _local(place)
    if folder is None or not kept:
        return
    disk = shutil.disk_usage(folder)
    if disk.free >= disk.total * _SCARCE * 2:
        return
    taken, size = sum(files.local_path(file).stat().st_size for file in kept), _bytes(jdbc, table)
    if taken <= max(size, _LITTLE) / 2:
        return
    text = (
        f"the changes that are kept beside its copy take {taken / _GIB:.2f} GiB, the table {size / _GIB:.2f} GiB, and "
        f"{place} has {disk.free / _GIB:.1f} of {disk.total / _GIB:.1f} GiB left"
    )
    if taken <= max(size, _LITTLE) or disk.free >= disk.total * _SCARCE:
        warn(f"{table}: {text}; the copy ends where they take more than the table and less than a fifth is left.")
        return
    raise NoRoomError(
        f"{text}: the copy ended.",
        table=str(table),
        advice="Make room, or name another work_dir, and give copies more time (copy_seconds).",
    )


def _bytes(jdbc: Jdbc, table: TableName) -> int:
    """What the rows and their large values take, without other indexes (docs: sys.allocation_units)."""
    (row,) = jdbc.rows(
        "SELECT SUM(a.used_pages) * 8192 AS size FROM sys.partitions p JOIN sys.allocation_units a"
        " ON a.container_id = CASE a.type WHEN 2 THEN p.partition_id ELSE p.hobt_id END"
        f" WHERE p.object_id = OBJECT_ID({literal(table.quoted)}) AND p.index_id < 2",
        "size BIGINT",
    )
    return row["size"] or 0


def _local(place: str) -> Path | None:
    """The nearest folder of a place that is there; None where it is on no disk of this machine."""
    if not files.is_local(place):
        return None
    path = files.local_path(place)
    return next((parent for parent in (path, *path.parents) if parent.exists()), None)
