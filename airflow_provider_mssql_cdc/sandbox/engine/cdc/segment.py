"""The row images of one table in log order, compared and put into the order of their change rows, by whole columns."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mssql_cdc.sandbox.engine.cdc.instance import CapturedColumn
from airflow_provider_mssql_cdc.sandbox.engine.cdc.keys import comparable, key_columns, keys_of
from airflow_provider_mssql_cdc.sandbox.engine.cdc.switches import Switches
from airflow_provider_mssql_cdc.sandbox.engine.log import LogRecord, RowImages
from airflow_provider_mssql_cdc.sandbox.engine.schema import TableDef

DELETE, INSERT, UPDATE_OLD, UPDATE_NEW = 1, 2, 3, 4
NOT_AN_UPDATE = -1

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LoggedImages:
    """One statement's images in one table.

    :param number: of the record among all records of the scan
    :param transaction: index of its transaction within the scan
    """

    number: int
    transaction: int
    logged: LogRecord
    images: RowImages


@dataclass(frozen=True, slots=True)
class OrderedRows:
    """Change rows in the order of their commands, before any instance has picked what it captures.

    :param record: for each row, the number of its record
    :param step: for each row, which of its record's row changes it belongs to; a row change is one command
    :param pool: for each row, the row of ``Segment.pool`` that holds its values
    :param update: for each row, the number of its updated row, or NOT_AN_UPDATE
    """

    transaction: Ints
    record: Ints
    step: Ints
    position: Ints
    operation: Ints
    pool: Ints
    update: Ints

    def where(self, wanted: Flags) -> OrderedRows:
        """The rows that are wanted."""
        if wanted.all():
            return self
        return OrderedRows(*(getattr(self, name)[wanted] for name in self.__slots__))

    def by_seqval(self) -> OrderedRows:
        """The rows of each transaction as they lie in the log: their order where they have no command ids."""
        order = np.lexsort((self.operation, self.position, self.transaction))
        return OrderedRows(*(getattr(self, name)[order] for name in self.__slots__))


class Commands:
    """The commands of a segment: a row change is one for each instance that captures it, in the instances' order.

    Measured on 2017 and 2022 with two instances of a table: 1, 3, 3, 5 and 2, 4, 4, 6.

    :param captured: per instance, which rows it captures; of a row change all or none
    """

    def __init__(self, rows: OrderedRows, captured: Sequence[Flags]) -> None:
        self._rows = rows
        lead = np.ones(len(rows.step), np.bool_)
        lead[1:] = (np.diff(rows.record) != 0) | (np.diff(rows.step) != 0)
        self._change = np.cumsum(lead) - 1
        self._captured = np.array([flags[lead] for flags in captured], np.int64)
        self._counts = self._captured.sum(axis=0)
        self._records = rows.record[lead]

    def count(self, commands: Ints) -> None:
        """Add how many commands each record has, at its number."""
        np.add.at(commands, self._records, self._counts)

    def ids(self, instance: int, commands_before: Ints, first_command: Ints) -> Ints:
        """For each row its ``__$command_id`` in an instance, if that captures it.

        :param instance: which of the instances
        :param commands_before: at each record's number, the commands of the scan before it
        :param first_command: for each transaction of the scan, the commands of the scan before it
        """
        if not len(self._records):
            return np.zeros(0, np.int64)
        running = np.cumsum(self._counts) - self._counts
        new = np.diff(self._records, prepend=-1) != 0
        in_record = running - running[new][np.cumsum(new) - 1]
        of_change = commands_before[self._records] + in_record + self._captured[:instance].sum(axis=0)
        return np.asarray(of_change[self._change] - first_command[self._rows.transaction] + 1, np.int64)


@dataclass(slots=True)
class Segment:
    """Consecutive records of one table, all with the same definition of it."""

    table: TableDef
    switches: Switches
    records: list[LoggedImages] = field(default_factory=list)
    _pools: dict[int, pa.Array] = field(default_factory=dict)
    _changed: dict[int, Flags | None] = field(default_factory=dict)
    _inserts: _Group = field(init=False)
    _deletes: _Group = field(init=False)
    _updates: _Group = field(init=False)
    _deferred: Flags = field(init=False)  # per updated row: captured as delete and insert
    _logged: Flags = field(init=False)  # per updated row: any value changed

    def prepare(self) -> None:
        """Compare the images."""
        self._inserts = _Group([r for r in self.records if r.images.before is None])
        self._deletes = _Group([r for r in self.records if r.images.after is None])
        self._updates = _Group([r for r in self.records if r.images.before is not None and r.images.after is not None])
        updates = self._updates
        self._logged = self.changed(range(len(self.table.columns)))
        self._deferred = self.changed(self._key_columns())
        if self.switches.equal_keys_are_captured != "as delete and insert" and self._deferred.any():
            unequal = np.zeros(updates.rows, np.bool_)
            for flags in map(self._unequal, self._key_columns()):
                unequal |= False if flags is None else flags
            self._deferred &= unequal
        if self.switches.trace_flag_8207:
            self._deferred &= updates.counts[updates.owner] > 1

    def _key_columns(self) -> list[int]:
        # docs: an update of the primary key, of a unique index or of the clustered key is a deferred update
        return sorted({place for places in key_columns(self.table) for place in places})

    def _separate_inserts(self) -> Flags:
        """The deferred updates whose insert is a command of its own."""
        if not self.switches.deferred_pair_shares_command_id:
            return self._deferred
        return self._deferred & (self._updates.sums(self._deferred) > 1)[self._updates.owner]

    def changed_column(self, index: int) -> Flags | None:
        """Per updated row, whether a column's value changed; None where it changed in no row.

        :param index: of the column in the table
        """
        if index not in self._changed:
            rows, pool = self._updates.rows, self.pool(index)
            self._changed[index] = _differences(pool.slice(0, rows), pool.slice(rows, rows))
        return self._changed[index]

    def masked_column(self, index: int) -> Flags | None:
        """Per updated row, whether a column's bit is in the mask; None where it is in no row's."""
        if self.switches.equal_keys_are_captured == "unmasked" and index in self._key_columns():
            return self._unequal(index)
        return self.changed_column(index)

    def _unequal(self, index: int) -> Flags | None:
        """Per updated row, whether a column's values differ for SQL Server; None where they do in no row."""
        if self.changed_column(index) is None:
            return None
        rows, pool, column = self._updates.rows, self.pool(index), CapturedColumn.of(self.table.columns[index])
        old, new = (
            comparable(column, pa.chunked_array([pool.slice(begin, rows)])).combine_chunks() for begin in (0, rows)
        )
        return _differences(old, new)

    def changed(self, indexes: range | list[int]) -> Flags:
        """Per updated row, whether any of some columns changed, or is a key that counts as changed once assigned."""
        found = np.zeros(self._updates.rows, np.bool_)
        for index in indexes:
            flags = self.changed_column(index)
            if flags is not None:
                found |= flags
        if self.switches.unchanged_keys_are_captured:
            keys = {self.table.columns[i].name.casefold() for i in set(indexes) & set(self._key_columns())}
            found |= self._updates.each([not keys.isdisjoint(r.images.assigned) for r in self._updates.records])
        return found

    @property
    def pool_rows(self) -> int:
        """How many values each column's pool has."""
        return 2 * self._updates.rows + self._deletes.rows + self._inserts.rows

    def pool(self, index: int) -> pa.Array:
        """All values of one column: of updates old, then new; of deletes; of inserts."""
        if index not in self._pools:
            tables = [
                *(r.images.before for r in self._updates.records),
                *(r.images.after for r in self._updates.records),
                *(r.images.before for r in self._deletes.records),
                *(r.images.after for r in self._inserts.records),
            ]
            chunks = [chunk for table in tables if table is not None for chunk in table.column(index).chunks]
            column_type = self.table.columns[index].type.arrow
            if len(chunks) == 1:
                self._pools[index] = chunks[0]
            else:
                self._pools[index] = pa.concat_arrays(chunks) if chunks else pa.array([], column_type)
        return self._pools[index]

    def ordered(self) -> OrderedRows:
        """The change rows of the segment."""
        updates, rows = self._updates, self._updates.rows
        parts = [
            self._part(self._deletes, DELETE, 2 * rows),
            self._part(self._inserts, INSERT, 2 * rows + self._deletes.rows),
        ]
        if rows:
            # All deletes of a statement precede its inserts: they may take each other's keys.
            first, follow = updates.rank(self._logged), updates.sums(self._logged)[updates.owner]
            separate = self._separate_inserts()
            second = np.where(separate, follow + updates.rank(separate), first)
            at, later = (updates.at(offsets) for offsets in self._offsets())
            # Where the two share a command, the lower position comes first.
            insert = np.where(later < at, 0, INSERT)
            plain, deferred = np.flatnonzero(self._logged & ~self._deferred), np.flatnonzero(self._deferred)
            for chosen, operation, new, step, position, place in (
                (plain, UPDATE_OLD, 0, first, at, None),
                (plain, UPDATE_NEW, rows, first, at, None),
                (deferred, DELETE, 0, first, at, None),
                (deferred, INSERT, rows, second, later, insert),
            ):
                operations = np.full(len(chosen), operation)
                places = operations if place is None else place[chosen]
                moved = (step[chosen], position[chosen], operations, chosen + new, chosen, places)
                parts.append((updates.transaction[chosen], updates.number[chosen], *moved))
        *columns, places = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        ordered = OrderedRows(*columns)
        steps = int(ordered.step.max(initial=0)) + 1
        order = (ordered.record * steps + ordered.step) * 8 + places
        if len(order) > 1 and (np.diff(order) < 0).any():
            by = np.argsort(order, kind="stable")
            ordered = OrderedRows(*(getattr(ordered, name)[by] for name in OrderedRows.__slots__))
        return ordered

    def _part(self, group: _Group, operation: int, offset: int) -> tuple[Ints, ...]:
        operations = np.full(group.rows, operation)
        pool = np.arange(offset, offset + group.rows)
        updates = np.full(group.rows, NOT_AN_UPDATE)
        position = group.at(group.within)
        return (group.transaction, group.number, group.within, position, operations, pool, updates, operations)

    def _offsets(self) -> tuple[Ints, Ints]:
        """Per updated row, which log records of its statement are its update or delete, and its insert."""
        updates = self._updates
        first, second = updates.within.copy(), updates.counts[updates.owner] + updates.within
        for place, record in enumerate(updates.records):
            rows = updates.slice(place)
            if record.logged.seed is None or not self._deferred[rows].any():
                continue
            order = _merged(record.images, self._logged[rows], self._deferred[rows], random.Random(record.logged.seed))
            lies = {each: offset for offset, each in enumerate(order)}
            for row in range(rows.stop - rows.start):
                first[rows.start + row] = lies.get((row, False), 0)
                second[rows.start + row] = lies.get((row, True), 0)
        return first, second


def _merged(images: RowImages, logged: Flags, deferred: Flags, source: random.Random) -> list[tuple[int, bool]]:
    """The row changes of an UPDATE in the order in which they lie in the log, each as its row and whether it inserts.

    The insert of a key update may lie before deletes (KB3030352), but none before the delete of one of its keys;
    otherwise they lie in the order of the commands.
    """
    assert images.before is not None
    assert images.after is not None
    order = [(int(row), False) for row in np.flatnonzero(logged)]
    old, new = (keys_of(images.table, rows) for rows in (images.before, images.after))
    behind = {key: place for place, (row, _) in enumerate(order, 1) if deferred[row] for key in old[row]}
    least = max((place for place, (row, _) in enumerate(order, 1) if not deferred[row]), default=0)
    inserts: list[tuple[int, int]] = []
    for row in np.flatnonzero(deferred).tolist():
        least = max(least, *(behind.get(key, 0) for key in new[row]))
        inserts.append((source.randint(least, len(order)), row))
    places, rows = sorted(place for place, _ in inserts), [row for _, row in inserts]
    # each insert goes behind so many of the others; of equal places the others come first
    placed = [(place, 0, change) for place, change in enumerate(order, 1)]
    placed += [(place, 1, (row, True)) for place, row in zip(places, rows, strict=True)]
    return [change for _, _, change in sorted(placed)]


class _Group:
    """The records of one kind, and for each of their rows the record it belongs to and its place there."""

    def __init__(self, records: list[LoggedImages]) -> None:
        self.records = records
        images = [r.images.before if r.images.after is None else r.images.after for r in records]
        self.counts = np.array([0 if rows is None else rows.num_rows for rows in images], np.int64)
        self.rows = int(self.counts.sum())
        self.numbers = np.array([r.number for r in records], np.int64)
        self.owner = np.repeat(np.arange(len(records)), self.counts)
        self._ends = np.cumsum(self.counts)
        self._starts = self._ends - self.counts
        self.within = np.arange(self.rows) - self._starts[self.owner]
        self.number = self.numbers[self.owner]
        self.transaction = np.array([r.transaction for r in records], np.int64)[self.owner]

    def slice(self, record: int) -> slice:
        """The rows of a record."""
        return slice(int(self._starts[record]), int(self._ends[record]))

    def at(self, offsets: Ints) -> Ints:
        """Per row, a position in the log.

        :param offsets: which of its record's log records it is
        """
        early = np.array([r.logged.early for r in self.records], np.int64)
        position = np.array([r.logged.position for r in self.records], np.int64)[self.owner] + offsets
        if early.any():
            hole = np.array([r.logged.hole for r in self.records], np.int64)[self.owner]
            position = np.where(offsets < early[self.owner], hole + offsets, position)
        return np.asarray(position, np.int64)

    def each(self, flags: list[bool]) -> Flags:
        """Per row, the flag of its record."""
        return np.array(flags, np.bool_)[self.owner]

    def sums(self, flags: Flags) -> Ints:
        """Per record, how many of its rows are flagged."""
        running = np.zeros(len(flags) + 1, np.int64)
        np.cumsum(flags, out=running[1:])
        return np.asarray(running[self._ends] - running[self._starts], np.int64)

    def rank(self, flags: Flags) -> Ints:
        """Per row, how many rows of its record before it are flagged."""
        running: Ints = np.cumsum(flags) - flags
        return np.asarray(running - running[self._starts[self.owner]], np.int64)


def _differences(old: pa.Array, new: pa.Array) -> Flags | None:
    if old.equals(new):
        return None
    if pa.types.is_struct(old.type):
        found = [_differences(old.field(i), new.field(i)) for i in range(old.type.num_fields)]
        parts = [flags for flags in found if flags is not None]
    else:
        unequal = pc.fill_null(pc.not_equal(old, new), False)
        parts = [unequal.to_numpy(zero_copy_only=False)]
    nulls = old.is_null().to_numpy(zero_copy_only=False) != new.is_null().to_numpy(zero_copy_only=False)
    return np.asarray(np.logical_or.reduce([nulls, *parts]), np.bool_)
