"""How transactions are written to the log that the capture reads."""

from __future__ import annotations

import datetime

from airflow_provider_mssql_cdc.sandbox.engine.cdc import lsn
from airflow_provider_mssql_cdc.sandbox.engine.cdc.state import CdcState
from airflow_provider_mssql_cdc.sandbox.engine.harshness import Point
from airflow_provider_mssql_cdc.sandbox.engine.log import (
    LoggedTransaction,
    LogRecord,
    RowImages,
    TableAltered,
    Transaction,
    log_records,
)
from airflow_provider_mssql_cdc.sandbox.engine.schema import TableDef

_NEIGHBOURS = datetime.timedelta(seconds=1)


class LogWriter(CdcState):
    """The writing side of ``CdcDatabase``."""

    def table_changed(self, after: TableDef) -> None:
        """Note a tracked table's new name, schema or definition for the metadata that shows it."""
        with self._lock:
            for each in self._instances.values():
                if each.source_object_id == after.object_id:
                    each.source = after

    def begin(self) -> int:
        """Write to the log that a transaction begins to write; its position."""
        with self._lock:
            return self._log.reserve(1) if self._instances else self._log.end

    def write(self, record: RowImages | TableAltered) -> int | None:
        """Write a record of an open transaction to the log.

        :returns: the position of its first log record, or None where it is nothing that the capture would read
        """
        table = record.after if isinstance(record, TableAltered) else record.table
        with self._lock:
            count = log_records(record)
            return self._log.reserve(count) if count and table.object_id in self.tracked() else None

    def append(self, transaction: Transaction) -> bytes | None:
        """Write to the log that a transaction has committed.

        :returns: its commit LSN, or None where it did nothing that the capture would read
        """
        with self._lock:
            if not self._instances:
                return None
            for record, _ in transaction.records:
                if isinstance(record, TableAltered):
                    self.table_changed(record.after)
            if not transaction.records:
                self._log.commit()
                return None
            return lsn.encode(self._commit(transaction, self._end_time()))

    def _end_time(self) -> datetime.datetime:
        """The time of a commit: what the clock shows, or a little less, down to below that of the commit before."""
        now, last = self._clock(), self._last_end_time
        source = self.harshness.drawn(Point.CLOCK)
        if source is not None and last is not None and abs(now - last) < _NEIGHBOURS:
            earlier = min(now, last) - datetime.timedelta(milliseconds=source.choice((0, 0, 3, 7, 10)))
            now = source.choice((now, earlier))
        self._last_end_time = now
        return now

    def _commit(self, transaction: Transaction, time: datetime.datetime) -> int:
        """Write a transaction to the log; the position of its commit."""
        overlap = self.harshness.drawn(Point.OVERLAP)
        records = tuple(LogRecord(each, position, seed=self._seed(each)) for each, position in transaction.records)
        begin, begin_time = transaction.begin, min(transaction.begin_time, time)
        if overlap is not None:
            begin, begin_time, records = self._holes.filled(begin, begin_time, records, overlap)
            self._holes.leave(self._log, time, overlap)
            self._holes.written(records)
        commit = self._log.commit()
        self._pending.append(LoggedTransaction(transaction.tran_id, begin, commit, begin_time, time, records))
        return commit

    def _seed(self, record: RowImages | TableAltered) -> int | None:
        """What draws the order of a key update's deletes and inserts, so that it is the same when it is read again."""
        is_update = isinstance(record, RowImages) and record.before is not None and record.after is not None
        source = self.harshness.drawn(Point.SEQVAL) if is_update else None
        return None if source is None or source.random() < 0.5 else source.getrandbits(32)

    def log_space(self) -> tuple[int, int]:
        """How many bytes the log has, and how many of them it keeps for the capture."""
        with self._lock:
            end = self._log.end
            return lsn.size(end), lsn.length(min((each.begin for each in self._pending), default=end), end)
