"""The row images of one table in log order, compared and put into the order of their change rows, by whole columns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mssql_cdc.sandbox.engine.cdc.switches import Switches
from airflow_provider_mssql_cdc.sandbox.engine.log import RowImages
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
    :param position: of its first log record
    """

    number: int
    transaction: int
    position: int
    images: RowImages


def log_records(images: RowImages) -> int:
    """How many log records the images take: an update of a key is logged as a delete and an insert."""
    if images.before is not None and images.after is not None:
        return 2 * int(images.after.num_rows)
    rows = images.after if images.after is not None else images.before
    return 0 if rows is None else int(rows.num_rows)


@dataclass(frozen=True, slots=True)
class OrderedRows:
    """Change rows in clustered order, before any instance has picked what it captures.

    :param pool: for each row, the row of ``Segment.pool`` that holds its values
    :param update: for each row, the number of its updated row, or NOT_AN_UPDATE
    """

    transaction: Ints
    command_id: Ints
    position: Ints
    operation: Ints
    pool: Ints
    update: Ints

    def where(self, wanted: Flags) -> OrderedRows:
        """The rows that are wanted."""
        if wanted.all():
            return self
        return OrderedRows(*(getattr(self, name)[wanted] for name in self.__slots__))


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

    def prepare(self, commands: Ints) -> None:
        """Compare the images, and count the commands of each record.

        :param commands: gets, at each record's number, how many commands it has
        """
        self._inserts = _Group([r for r in self.records if r.images.before is None])
        self._deletes = _Group([r for r in self.records if r.images.after is None])
        self._updates = _Group([r for r in self.records if r.images.before is not None and r.images.after is not None])
        updates = self._updates
        self._logged = self.changed(range(len(self.table.columns)))
        self._deferred = self.changed(self._key_columns())
        if self.switches.trace_flag_8207:
            self._deferred &= updates.counts[updates.owner] > 1
        for group in (self._inserts, self._deletes):
            commands[group.numbers] = group.counts
        commands[updates.numbers] = updates.sums(self._logged) + updates.sums(self._separate_inserts())

    def _key_columns(self) -> list[int]:
        # docs: an update of the primary key, of a unique index or of the clustered key is a deferred update
        names = {
            name.casefold()
            for index in self.table.indexes
            if index.primary_key or index.unique or index.clustered
            for name in index.columns
        }
        return [i for i, column in enumerate(self.table.columns) if column.name.casefold() in names]

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

    def ordered(self, commands_before: Ints, first_command: Ints) -> OrderedRows:
        """The change rows of the segment.

        :param commands_before: at each record's number, the commands of the scan before it
        :param first_command: for each transaction of the scan, the commands of the scan before it
        """
        updates, rows = self._updates, self._updates.rows
        parts = [
            self._part(self._deletes, commands_before, DELETE, 2 * rows),
            self._part(self._inserts, commands_before, INSERT, 2 * rows + self._deletes.rows),
        ]
        if rows:
            # All deletes of a statement precede its inserts: they may take each other's keys.
            first = commands_before[updates.number] + updates.rank(self._logged)
            follow = commands_before[updates.number] + updates.sums(self._logged)[updates.owner]
            separate = self._separate_inserts()
            second = np.where(separate, follow + updates.rank(separate), first)
            at, later = updates.position, updates.position + updates.counts[updates.owner]
            plain, deferred = np.flatnonzero(self._logged & ~self._deferred), np.flatnonzero(self._deferred)
            for chosen, operation, new, at_command, at_position in (
                (plain, UPDATE_OLD, 0, first, at),
                (plain, UPDATE_NEW, rows, first, at),
                (deferred, DELETE, 0, first, at),
                (deferred, INSERT, rows, second, later),
            ):
                operations = np.full(len(chosen), operation)
                moved = (at_command[chosen], at_position[chosen], operations, chosen + new, chosen)
                parts.append((updates.transaction[chosen], *moved))
        transaction, command, *others = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        ordered = OrderedRows(transaction, command - first_command[transaction] + 1, *others)
        order = command * 8 + ordered.operation
        if len(order) > 1 and (np.diff(order) < 0).any():
            by = np.argsort(order, kind="stable")
            ordered = OrderedRows(*(getattr(ordered, name)[by] for name in OrderedRows.__slots__))
        return ordered

    def _part(self, group: _Group, commands_before: Ints, operation: int, offset: int) -> tuple[Ints, ...]:
        command = commands_before[group.number] + group.within
        operations = np.full(group.rows, operation)
        pool = np.arange(offset, offset + group.rows)
        return (group.transaction, command, group.position, operations, pool, np.full(group.rows, NOT_AN_UPDATE))


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
        self.position = np.array([r.position for r in records], np.int64)[self.owner] + self.within

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
