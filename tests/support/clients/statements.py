"""What clients send to read changes, with their parameters as literals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_HEAD = "SELECT [__$start_lsn], [__$seqval], [__$operation], [__$update_mask]"
_OFFSET = "DATEPART(TZOFFSET, SYSDATETIMEOFFSET())"


class Place(NamedTuple):
    """Where a reader resumes: behind this row."""

    lsn: bytes = bytes(10)
    seqval: bytes = bytes(10)
    operation: int = 0


def literal(value: bytes) -> str:
    """Bytes as T-SQL has them."""
    return f"0x{value.hex()}"


def _behind(place: Place, high: bytes) -> str:
    lsn, seqval = literal(place.lsn), literal(place.seqval)
    return (
        f"(([__$start_lsn] = {lsn} AND [__$seqval] = {seqval} AND [__$operation] > {place.operation})"
        f" OR ([__$start_lsn] = {lsn} AND [__$seqval] > {seqval}) OR ([__$start_lsn] > {lsn}))"
        f" AND [__$start_lsn] <= {literal(high)}"
    )


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(f"[{column}]" for column in columns)


def debezium_direct(database: str, instance: str, columns: Sequence[str], place: Place, high: bytes) -> str:
    """Debezium 3.6.1, data.query.mode = direct."""
    return (
        f"{_HEAD}, {_listed(columns)}, TODATETIMEOFFSET(ltm.tran_begin_time, {_OFFSET})"
        f" FROM [{database}].cdc.[{instance}_CT] AS cdc_data"
        f" LEFT JOIN [{database}].cdc.lsn_time_mapping ltm ON ltm.start_lsn = cdc_data.[__$start_lsn]"
        f" WHERE {_behind(place, high)}"
        " order by [__$start_lsn] ASC, [__$command_id] ASC, [__$seqval] ASC, [__$operation] ASC"
    )


def debezium_function(
    database: str, instance: str, columns: Sequence[str], low: bytes, place: Place, high: bytes
) -> str:
    """Debezium 3.6.1, data.query.mode = function."""
    return (
        f"{_HEAD}, {_listed(columns)}, {_mapped(database)} {_all_changes(database, instance, low, high)}"
        f" WHERE {_behind(place, high)} {_ORDER}"
    )


def debezium_everything(database: str, instance: str, low: bytes, high: bytes) -> str:
    """Debezium 2, which selects every column; Flink CDC sends the same."""
    return f"SELECT *, {_mapped(database)} {_all_changes(database, instance, low, high)} {_ORDER}"


_ORDER = "order by [__$start_lsn] ASC, [__$seqval] ASC, [__$operation] ASC"


def _mapped(database: str) -> str:
    return f"TODATETIMEOFFSET([{database}].sys.fn_cdc_map_lsn_to_time([__$start_lsn]), {_OFFSET})"


def _all_changes(database: str, instance: str, low: bytes, high: bytes) -> str:
    function = f"[{database}].cdc.[fn_cdc_get_all_changes_{instance}]"
    return f"FROM {function}({literal(low)}, {literal(high)}, N'all update old')"
