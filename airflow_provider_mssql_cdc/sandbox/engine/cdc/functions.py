"""The rows of the generated functions fn_cdc_get_all_changes_... and fn_cdc_get_net_changes_..."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mssql_cdc.sandbox.engine.cdc.changes import (
    CHUNK_ROWS,
    FIRST_CAPTURED,
    OPERATION,
    SEQVAL,
    START_LSN,
    UPDATE_MASK,
)
from airflow_provider_mssql_cdc.sandbox.engine.cdc.instance import CaptureInstance
from airflow_provider_mssql_cdc.sandbox.engine.cdc.keys import comparable
from airflow_provider_mssql_cdc.sandbox.engine.cdc.lsn import fixed_binary
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import columns as described
from airflow_provider_mssql_cdc.sandbox.engine.cdc.segment import DELETE, INSERT, UPDATE_NEW, UPDATE_OLD, Ints
from airflow_provider_mssql_cdc.sandbox.protocol import Column, SqlError

MERGE = 5
_HEAD = described("__$start_lsn binary(10), __$seqval binary(10)")
_TAIL = described("__$operation int, __$update_mask varbinary(128)")


def all_columns(instance: CaptureInstance) -> list[Column]:
    """What fn_cdc_get_all_changes_<ci> returns: no __$end_lsn and no __$command_id."""
    return [*_HEAD, *_TAIL, *_captured(instance)]


def net_columns(instance: CaptureInstance) -> list[Column]:
    """What fn_cdc_get_net_changes_<ci> returns: no __$seqval either."""
    return [_HEAD[0], *_TAIL, *_captured(instance)]


def _captured(instance: CaptureInstance) -> list[Column]:
    return [Column(column.name, column.type) for column in instance.columns]


def check_range(
    function: str, from_lsn: bytes | None, to_lsn: bytes | None, low: bytes, high: bytes | None, option: str | None
) -> str:
    """The row filter option, trimmed and in lower case.

    :param function: 'all' or 'net'
    :param low: min LSN of the instance
    :param high: max LSN of the database
    :raises SqlError: 313 where the range is not within [low, high], is empty or NULL, or the option is unknown
    """
    options = ("all", "all update old") if function == "all" else ("all", "all with mask", "all with merge")
    wanted = "" if option is None else option.strip().lower()
    known = from_lsn is not None and to_lsn is not None and high is not None and wanted in options
    if not known or not low <= from_lsn <= to_lsn <= high:  # type: ignore[operator]
        # The odd spaces are SQL Server's: the text names a placeholder function, not the instance's own.
        raise SqlError.of(313, f"cdc.fn_cdc_get_{function}_changes_ ... ")
    return wanted


def all_changes(columns: list[Column], rows: list[pa.RecordBatch], option: str) -> Iterator[pa.RecordBatch]:
    """The rows of fn_cdc_get_all_changes_<ci>; before images only for 'all update old'.

    :param columns: of the function
    :param rows: of the change table, within the range
    """
    names = [column.name for column in columns]
    captured = slice(FIRST_CAPTURED, FIRST_CAPTURED + len(columns) - len((*_HEAD, *_TAIL)))
    for batch in rows:
        arrays = batch.columns
        selected = [arrays[i] for i in (START_LSN, SEQVAL, OPERATION, UPDATE_MASK)] + arrays[captured]
        result = pa.RecordBatch.from_arrays(selected, names)
        if option == "all":
            result = _without_before_images(result, 2)
        if result.num_rows:
            yield result


def _without_before_images(batch: pa.RecordBatch, operation: int) -> pa.RecordBatch:
    wanted = pc.not_equal(batch.column(operation), UPDATE_OLD)
    return batch if pc.all(wanted).as_py() else batch.filter(wanted)


def net_changes(
    instance: CaptureInstance, columns: list[Column], rows: list[pa.RecordBatch], option: str
) -> Iterator[pa.RecordBatch]:
    """The rows of fn_cdc_get_net_changes_<ci>: one per key at most, with the values of its last change.

    :param columns: of the function
    :param rows: of the change table, within the range, in clustered order
    """
    batches = [_without_before_images(batch, OPERATION) for batch in rows]
    window = pa.Table.from_batches(batches) if batches else None
    if window is None or not window.num_rows:
        return
    operations = window.column(OPERATION).to_numpy().astype(np.int64)
    groups = _groups(instance, window)
    by_group = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[by_group], prepend=-1))
    ends = np.append(starts[1:], len(by_group)) - 1
    first, last = operations[by_group[starts]], operations[by_group[ends]]
    net = np.where(last == DELETE, DELETE, np.where(first == INSERT, INSERT, UPDATE_NEW))
    # One row keeps its operation, which the rule above gives too; insert and delete leave nothing.
    shown = ~((first == INSERT) & (last == DELETE))
    masks = pa.nulls(len(net), pa.binary())
    if option == "all with mask" and instance.masks:
        masks = _net_masks(window, by_group, starts, net)
    elif option == "all with merge":
        net = np.where(net == DELETE, DELETE, MERGE)
    order = np.argsort(by_group[ends[shown]])
    chosen = np.flatnonzero(shown)[order]
    picked = window.take(pa.array(by_group[ends[chosen]]))
    arrays = [
        picked.column(START_LSN),
        pa.array(net[chosen].astype(np.int32)),
        masks.take(pa.array(chosen)),
        *picked.columns[FIRST_CAPTURED : FIRST_CAPTURED + len(instance.columns)],
    ]
    result = pa.Table.from_arrays(arrays, [column.name for column in columns]).combine_chunks()
    yield from result.to_batches(max_chunksize=CHUNK_ROWS)


def _net_masks(window: pa.Table, by_group: Ints, starts: Ints, net: Ints) -> pa.Array:
    """The OR of each key's masks, NULL where the net operation is not an update."""
    values = pa.concat_arrays(window.column(UPDATE_MASK).chunks)
    matrix = _matrix(values)
    merged = np.bitwise_or.reduceat(matrix[by_group], starts, axis=0)
    return pc.if_else(pa.array(net == UPDATE_NEW), fixed_binary(merged), pa.scalar(None, pa.binary()))


def _matrix(values: pa.Array) -> npt.NDArray[np.uint8]:
    # All masks of an instance have one width, so the values lie in the buffer as a matrix.
    width = len(values[0].as_py())
    data = np.frombuffer(values.buffers()[2], np.uint8)
    return data[values.offset * width :][: len(values) * width].reshape(-1, width)


def _groups(instance: CaptureInstance, window: pa.Table) -> Ints:
    """For each row the number of its key."""
    codes = np.zeros(window.num_rows, np.int64)
    for key in instance.key:
        index = next(i for i, column in enumerate(instance.columns) if column.column_id == key.column_id)
        values = comparable(instance.columns[index], window.column(FIRST_CAPTURED + index))
        encoded = pc.dictionary_encode(values, null_encoding="encode").combine_chunks()
        parts = encoded.chunks if isinstance(encoded, pa.ChunkedArray) else [encoded]
        numbers = np.concatenate([part.indices.to_numpy(zero_copy_only=False) for part in parts]).astype(np.int64)
        codes = codes * (int(numbers.max()) + 1) + numbers
        # Numbered anew after each column, so that keys of many columns do not overflow.
        codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    return codes
