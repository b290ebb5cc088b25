"""One log scan: committed transactions become change rows, DDL history and rows of the LSN-time mapping."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mssql_cdc.sandbox.engine.cdc.alter import converted
from airflow_provider_mssql_cdc.sandbox.engine.cdc.changes import FIRST_CAPTURED, ChangeRows
from airflow_provider_mssql_cdc.sandbox.engine.cdc.ddl import ddl_time
from airflow_provider_mssql_cdc.sandbox.engine.cdc.instance import (
    CapturedColumn,
    CaptureInstance,
    DdlRow,
    change_table_type,
    is_lob,
    is_text_pointer,
)
from airflow_provider_mssql_cdc.sandbox.engine.cdc.lsn import encode, encode_all, fixed_binary
from airflow_provider_mssql_cdc.sandbox.engine.cdc.mapping import MappingRow, to_datetime
from airflow_provider_mssql_cdc.sandbox.engine.cdc.segment import (
    DELETE,
    UPDATE_NEW,
    UPDATE_OLD,
    Commands,
    Flags,
    Ints,
    LoggedImages,
    OrderedRows,
    Segment,
)
from airflow_provider_mssql_cdc.sandbox.engine.cdc.switches import Switches
from airflow_provider_mssql_cdc.sandbox.engine.cdc.unfinished import Unfinished, View, Write
from airflow_provider_mssql_cdc.sandbox.engine.log import LoggedTransaction, RowImages, TableAltered
from airflow_provider_mssql_cdc.sandbox.engine.schema import TableDef
from airflow_provider_mssql_cdc.sandbox.system_types import system_type


@dataclass(slots=True)
class Draft:
    """What a capture instance will be when the scan commits."""

    instance: CaptureInstance
    columns: tuple[CapturedColumn, ...]
    changes: ChangeRows
    ddl: list[DdlRow] = field(default_factory=list)

    def alter(self, altered: TableAltered, lsn: bytes, time: datetime.datetime) -> None:
        """Follow an ALTER TABLE: a captured column takes its new type, whatever else happened is only noted.

        :raises SqlError: 22976 where the rows captured so far do not fit the new type
        """
        after = {column.column_id: column for column in altered.after.columns}
        required = False
        for i, column in enumerate(self.columns):
            source = after.get(column.column_id)
            if source is not None and source.mask != column.mask:
                column = replace(column, mask=source.mask)
                self.columns = (*self.columns[:i], column, *self.columns[i + 1 :])
            if source is None or change_table_type(source.type) == column.type:
                continue
            required = True
            after_type = change_table_type(source.type)
            changed = replace(column, type=after_type, source_type=system_type(source.type).name)
            convert = converted(self.instance.capture_instance, column, changed)
            self.changes = self.changes.with_column(FIRST_CAPTURED + i, column.name, convert)
            self.columns = (*self.columns[:i], changed, *self.columns[i + 1 :])
        self.ddl.append(DdlRow(required, altered.statement, lsn, time))


@dataclass(frozen=True, slots=True)
class ScanResult:
    """What a scan found."""

    drafts: list[Draft]
    mapping: list[MappingRow]
    change_rows: int
    schema_changes: int


def capture(
    transactions: Sequence[LoggedTransaction], instances: Iterable[CaptureInstance], switches: Switches
) -> ScanResult:
    """Turn transactions into what a scan of them commits; nothing is changed here.

    :raises SqlError: where a change cannot be captured; then nothing of the scan is delivered
    """
    drafts = [Draft(each, each.columns, each.changes) for each in instances]
    by_table: dict[int, list[Draft]] = {}
    for draft in drafts:
        by_table.setdefault(draft.instance.source_object_id, []).append(draft)
    streams, records, starts = _streams(transactions, by_table.keys(), switches)
    commits = np.array([each.commit for each in transactions], np.int64)
    of_all_tables = np.zeros(records, np.int64)
    counted: dict[int, Ints] = {}
    parts: dict[int, list[_Part | _Altered]] = {}
    for object_id, stream in streams.items():
        counts = of_all_tables if switches.command_ids_count_across_tables else np.zeros(records, np.int64)
        counted[object_id] = counts
        parts[object_id] = [
            _Part.of(item, by_table[object_id], commits, counts) if isinstance(item, Segment) else item
            for item in stream
        ]

    captured = np.zeros(len(transactions), np.int64)
    schema_changes = 0
    for object_id, items in parts.items():
        commands_before = np.cumsum(counted[object_id]) - counted[object_id]
        # A transaction without records has no rows either, so whatever stands for it is not read.
        first_command = np.append(commands_before, 0)[starts]
        for item in items:
            if isinstance(item, _Part):
                for place, draft in enumerate(by_table[object_id]):
                    command_ids = item.commands.ids(place, commands_before, first_command)
                    captured += _append(draft, item, place, command_ids, commits)
            else:
                altered, number = item
                transaction = transactions[number]
                schema_changes += 1
                for draft in by_table[object_id]:
                    if draft.instance.enabled_at < transaction.commit:
                        time = ddl_time(to_datetime(transaction.end_time), rounds=switches.ddl_time_rounds)
                        draft.alter(altered, encode(transaction.commit), time)
                        captured[number] += 1
    mapping = [_mapping_row(transactions[i]) for i in np.flatnonzero(captured).tolist()]
    rows = sum(len(draft.changes) - len(draft.instance.changes) for draft in drafts)
    return ScanResult(drafts, mapping, rows, schema_changes)


def unfinished_scan(result: ScanResult, commit: Callable[[], None]) -> Unfinished:
    """A scan's transaction: it writes one change table after the other, each in two parts, and then the mapping."""
    writes = [
        Write(f"{draft.instance.capture_instance}_ct".casefold(), functools.partial(_show, draft, rows))
        for draft in result.drafts
        for rows in _parts(draft)
    ]
    if result.mapping:
        writes.append(Write("lsn_time_mapping", functools.partial(_show_mapping, result.mapping)))
    return Unfinished(writes, commit, removes=False)


def _parts(draft: Draft) -> list[int]:
    """How many rows of its change table are there after each write of a scan."""
    before, after = len(draft.instance.changes), len(draft.changes)
    return sorted({before + (after - before + 1) // 2, after} - {before})


def _show(draft: Draft, rows: int, view: View) -> None:
    view.show_changes(draft.instance.capture_instance, draft.changes.until(rows), draft.columns)


def _show_mapping(rows: list[MappingRow], view: View) -> None:
    view.show_mapping(rows)


_Altered = tuple[TableAltered, int]
_Stream = list[Segment | _Altered]


@dataclass(frozen=True, slots=True)
class _Part:
    """A segment, and which of its rows each instance of the table captures."""

    segment: Segment
    rows: OrderedRows
    wanted: list[Flags]
    commands: Commands

    @classmethod
    def of(cls, segment: Segment, drafts: list[Draft], commits: Ints, counts: Ints) -> _Part:
        """Compare a segment's images.

        :param counts: gets, at each record's number, how many commands it has
        """
        segment.prepare()
        rows = segment.ordered()
        wanted = []
        for draft in drafts:
            changed = segment.changed([i for i in _captured(draft, segment) if i is not None])
            taken = commits[rows.transaction] > draft.instance.enabled_at
            updated = rows.update >= 0
            taken[updated] &= changed[rows.update[updated]]
            wanted.append(taken)
        commands = Commands(rows, wanted)
        commands.count(counts)
        return cls(segment, rows, wanted, commands)


def _streams(
    transactions: Sequence[LoggedTransaction], tracked: Iterable[int], switches: Switches
) -> tuple[dict[int, _Stream], int, Ints]:
    """Per tracked table its records in log order; how many records there are; and each transaction's first record."""
    streams: dict[int, _Stream] = {object_id: [] for object_id in tracked}
    count = 0
    starts = []
    for number, transaction in enumerate(transactions):
        starts.append(count)
        for logged in transaction.records:
            record = logged.record
            table = record.table if isinstance(record, RowImages) else record.after
            stream = streams.get(table.object_id)
            if stream is None:
                continue
            if isinstance(record, TableAltered):
                stream.append((record, number))
                continue
            if not stream or not isinstance(stream[-1], Segment) or not _same_table(stream[-1].table, table):
                stream.append(Segment(table, switches))
            segment = stream[-1]
            assert isinstance(segment, Segment)
            segment.records.append(LoggedImages(count, number, logged, record))
            count += 1
    return streams, count, np.array(starts, np.int64)


def _same_table(one: TableDef, other: TableDef) -> bool:
    return one is other or (one.columns == other.columns and one.indexes == other.indexes)


def _mapping_row(transaction: LoggedTransaction) -> MappingRow:
    return MappingRow(
        encode(transaction.commit),
        to_datetime(transaction.begin_time),
        to_datetime(transaction.end_time),
        transaction.tran_id.to_bytes(6, "big"),
        encode(transaction.begin),
    )


def _captured(draft: Draft, segment: Segment) -> list[int | None]:
    """For each captured column, its place in the table; None where it has no values."""
    sources = {column.column_id: i for i, column in enumerate(segment.table.columns)}
    return [None if column.computed else sources.get(column.column_id) for column in draft.columns]


def _append(draft: Draft, part: _Part, place: int, command_ids: Ints, commits: Ints) -> Ints:
    """Add to a draft what it captures of a segment; returns the number of rows per transaction.

    :param place: of the draft among those of the table
    """
    wanted = part.wanted[place]
    rows = part.rows.where(wanted)
    if len(rows.operation):
        batch = _change_rows(draft, part.segment, rows, command_ids[wanted], commits)
        draft.changes = draft.changes.appended(batch)
    return np.bincount(rows.transaction, minlength=len(commits)).astype(np.int64)


def _change_rows(draft: Draft, segment: Segment, rows: OrderedRows, command_ids: Ints, commits: Ints) -> pa.RecordBatch:
    count, captured = len(rows.operation), _captured(draft, segment)
    if not draft.instance.has_command_ids:
        rows = rows.by_seqval()
    names = [column.name for column in draft.instance.change_columns]
    in_place = count == segment.pool_rows and bool((rows.pool == np.arange(count)).all())
    picked = None if in_place else pa.array(rows.pool)
    values = [
        _values(column, segment, source, rows, picked) for column, source in zip(draft.columns, captured, strict=True)
    ]
    arrays = [
        encode_all(commits[rows.transaction]),
        pa.nulls(count, pa.binary()),
        encode_all(rows.position),
        pa.array(rows.operation.astype(np.int32)),
        _update_masks(segment, captured, rows),
        *values,
        *([pa.array(command_ids.astype(np.int32))] if draft.instance.has_command_ids else []),
    ]
    return pa.RecordBatch.from_arrays(arrays, names)


def _values(
    column: CapturedColumn, segment: Segment, source: int | None, rows: OrderedRows, picked: pa.Array | None
) -> pa.Array:
    """A captured column of the change rows.

    :param picked: the rows of the pool; None for all of them as they are
    """
    if source is None:
        return pa.nulls(len(rows.pool), column.type.arrow)
    pool = segment.pool(source)
    values = pool if picked is None else pool.take(picked)
    if not is_lob(column.type):
        return values
    unknown = rows.operation == UPDATE_OLD
    if segment.switches.after_images_leave_lobs_out:
        unknown |= rows.operation == UPDATE_NEW
    # docs: an old (max) or xml value is in the log only where the update changed it
    changed = segment.changed_column(source)
    if changed is not None:
        unknown[unknown] = ~changed[rows.update[unknown]]
    if is_text_pointer(column.type.name):
        unknown |= (rows.operation == DELETE) | (rows.operation == UPDATE_OLD)
    if not unknown.any():
        return values
    return pc.if_else(pa.array(unknown), pa.scalar(None, values.type), values)


def _update_masks(segment: Segment, captured: list[int | None], rows: OrderedRows) -> pa.Array:
    width = (len(captured) + 7) // 8
    full = np.frombuffer(((1 << len(captured)) - 1).to_bytes(width, "big"), np.uint8)
    masks = np.tile(full, (len(rows.operation), 1))
    paired = rows.operation >= UPDATE_OLD
    if paired.any():
        update = rows.update[paired]
        bits = np.zeros((len(update), width), np.uint8)
        for i, source in enumerate(captured):
            changed = None if source is None else segment.masked_column(source)
            if changed is not None:
                bits[:, width - 1 - i // 8] |= changed[update].astype(np.uint8) << (i % 8)
        masks[paired] = bits
    return fixed_binary(masks)
