"""What clients read of a database's CDC: functions, change rows and metadata."""

from __future__ import annotations

import copy
import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.engine.cdc import functions, jobs, lsn, metadata
from airflow_provider_mssql_cdc.sandbox.engine.cdc.changes import ChangeRows
from airflow_provider_mssql_cdc.sandbox.engine.cdc.instance import CapturedColumn, CaptureInstance
from airflow_provider_mssql_cdc.sandbox.engine.cdc.mapping import COLUMNS as MAPPING_COLUMNS
from airflow_provider_mssql_cdc.sandbox.engine.cdc.mapping import MappingRow, to_datetime
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation
from airflow_provider_mssql_cdc.sandbox.engine.cdc.state import CdcState
from airflow_provider_mssql_cdc.sandbox.engine.schema import TableDef
from airflow_provider_mssql_cdc.sandbox.protocol import Column, SqlError

_METADATA = {
    "change_tables": metadata.change_tables,
    "captured_columns": metadata.captured_columns,
    "index_columns": metadata.index_columns,
}


class ChangeReader(CdcState):
    """The reading side of ``CdcDatabase``."""

    def frozen(self) -> ChangeReader:
        """All that clients read here as it is now, for as long as they keep it; it costs the same however many rows."""
        with self._lock:
            kept = copy.copy(self)
            kept._instances = {key: replace(each) for key, each in self._instances.items()}
            kept._mapping = self._mapping.frozen()
            return kept

    def uncommitted(self) -> ChangeReader:
        """All that clients read here as it is now, with what a scan or a cleanup has written and not committed."""
        with self._lock:
            view = self.frozen()
            if self.unfinished is not None:
                self.unfinished.show(view)
            return view

    def show_changes(
        self, capture_instance: str, changes: ChangeRows, columns: tuple[CapturedColumn, ...] | None = None
    ) -> None:
        """Let a change table have these rows, in a view of one reader."""
        instance = self.instance(capture_instance)
        if instance is not None:
            instance.changes, instance.columns = changes, columns or instance.columns

    def show_mapping(self, rows: Iterable[MappingRow]) -> None:
        """Let lsn_time_mapping have these rows too, in a view of one reader."""
        self._mapping = self._mapping.with_rows(rows)

    def show_trimmed(self, mark: bytes) -> None:
        """Let lsn_time_mapping have no rows below an LSN, in a view of one reader."""
        self._mapping = self._mapping.with_rows(())
        self._mapping.trim(mark)

    def show_marks(self, marks: Mapping[str, bytes]) -> None:
        """Let instances have these low-water marks, in a view of one reader."""
        for name, mark in marks.items():
            instance = self.instance(name)
            if instance is not None:
                instance.start_lsn = mark

    def has_metadata_of(self, then: ChangeReader, capture_instance: str | None = None) -> bool:
        """Whether DDL has left what is read as it was.

        :param then: what was frozen here
        :param capture_instance: whose change table and functions are meant; None for the tables that each database has
        """
        with self._lock:
            # whatever takes CDC away begins with a new list of scans when it comes back
            if self.enabled != then.enabled or self._scans is not then._scans:
                return False
            before, after = then.instance(capture_instance), self.instance(capture_instance)
            if before is None or after is None:
                return before is after
            return (before.change_table_object_id, before.columns) == (after.change_table_object_id, after.columns)

    # Functions

    def max_lsn(self) -> bytes | None:
        """sys.fn_cdc_get_max_lsn; NULL before anything was captured.

        :raises SqlError: 208 without CDC
        """
        with self._lock:
            self._require_object("lsn_time_mapping")
            newest = self._mapping.newest
            return None if newest is None else newest.start_lsn

    def min_lsn(self, capture_instance: str | None) -> bytes | None:
        """sys.fn_cdc_get_min_lsn; ten zero bytes for an unknown instance.

        NULL only where ``Switches.min_lsn_null_until_captured`` says so.
        """
        with self._lock:
            instance = self.instance(capture_instance)
            if instance is None:
                return lsn.ZERO_LSN
            high = self.max_lsn()
            if self.switches.min_lsn_null_until_captured and high is not None and high < instance.start_lsn:
                return None
            return instance.start_lsn

    def map_lsn_to_time(self, position: bytes | None) -> datetime.datetime | None:
        """sys.fn_cdc_map_lsn_to_time: tran_end_time of exactly this LSN, server-local, in 1/300 s; else NULL."""
        with self._lock:
            self._require_object("lsn_time_mapping")
            return None if position is None else self._mapping.time_of(position)

    def map_time_to_lsn(self, op: str | None, t: datetime.datetime | None) -> bytes | None:
        """sys.fn_cdc_map_time_to_lsn; NULL where there is no such row, and for an unknown operator."""
        with self._lock:
            self._require_object("lsn_time_mapping")
            return (
                None
                if op is None or t is None
                else self._mapping.find(op, to_datetime(t), self.switches.time_to_lsn_takes)
            )

    def increment_lsn(self, position: bytes | None) -> bytes | None:
        """sys.fn_cdc_increment_lsn"""
        return lsn.increment_lsn(position, wrap=self.switches.lsn_wraps)

    def decrement_lsn(self, position: bytes | None) -> bytes | None:
        """sys.fn_cdc_decrement_lsn"""
        return lsn.decrement_lsn(position, wrap=self.switches.lsn_wraps)

    def column_ordinal(self, capture_instance: str | None, column: str | None) -> int | None:
        """sys.fn_cdc_get_column_ordinal: from 1; NULL where instance or column are unknown."""
        instance = self.instance(capture_instance)
        return None if instance is None or column is None else instance.ordinal(column)

    # Rows

    def changes(self, capture_instance: str) -> tuple[list[Column], ChangeRows]:
        """The columns and the rows of cdc.<capture_instance>_CT as they are now.

        :raises SqlError: 208
        """
        instance = self._existing(capture_instance, f"{capture_instance}_CT")
        return instance.change_columns, instance.changes

    def change_rows(
        self, capture_instance: str, low: bytes | None = None, high: bytes | None = None
    ) -> list[pa.RecordBatch]:
        """The rows of cdc.<capture_instance>_CT in clustered order, at most 65,536 in a batch.

        :param low: lowest commit LSN wanted; None for all
        :param high: highest commit LSN wanted; None for all
        :raises SqlError: 208
        """
        return self._existing(capture_instance, f"{capture_instance}_CT").changes.between(low, high)

    def all_changes(
        self,
        capture_instance: str,
        from_lsn: bytes | None,
        to_lsn: bytes | None,
        row_filter_option: str | None,
        rows_of: ChangeReader | None = None,
    ) -> tuple[list[Column], Iterator[pa.RecordBatch]]:
        """cdc.fn_cdc_get_all_changes_<capture_instance>; both bounds included.

        :param rows_of: a view that has the rows; None where it is this one
        :raises SqlError: 313 for a range that is not within min and max LSN, and for an unknown option; 208
        """
        with self._lock:
            instance = self._existing(capture_instance, f"fn_cdc_get_all_changes_{capture_instance}")
            columns = functions.all_columns(instance)
            option = functions.check_range(
                "all", from_lsn, to_lsn, instance.start_lsn, self.max_lsn(), row_filter_option
            )
            rows = (rows_of or self).change_rows(capture_instance, from_lsn, to_lsn)
        return columns, functions.all_changes(columns, rows, option)

    def net_changes(
        self,
        capture_instance: str,
        from_lsn: bytes | None,
        to_lsn: bytes | None,
        row_filter_option: str | None,
        rows_of: ChangeReader | None = None,
    ) -> tuple[list[Column], Iterator[pa.RecordBatch]]:
        """cdc.fn_cdc_get_net_changes_<capture_instance>; both bounds included.

        :param rows_of: as for all changes
        :raises SqlError: 313 as for all changes; 208 also where the instance does not support net changes
        """
        with self._lock:
            name = f"fn_cdc_get_net_changes_{capture_instance}"
            instance = self._existing(capture_instance, name)
            if not instance.supports_net_changes:
                raise SqlError.of(208, f"cdc.{name}")
            columns = functions.net_columns(instance)
            option = functions.check_range(
                "net", from_lsn, to_lsn, instance.start_lsn, self.max_lsn(), row_filter_option
            )
            rows = (rows_of or self).change_rows(capture_instance, from_lsn, to_lsn)
        return columns, functions.net_changes(instance, columns, rows, option)

    # Metadata

    def relation(self, name: str) -> Relation:
        """A metadata table by name: those of schema cdc, cdc_jobs of msdb, and the two dm_cdc views.

        :raises SqlError: 208 for a table of schema cdc in a database without CDC, and for an unknown name
        """
        wanted = name.lower()
        with self._lock:
            match wanted:
                case "cdc_jobs":
                    return jobs.cdc_jobs(self.database_id, self.jobs)
                case "dm_cdc_log_scan_sessions":
                    return self._scans.sessions()
                case "dm_cdc_errors":
                    return self._scans.errors()
            self._require_object(name)
            if wanted == "lsn_time_mapping":
                return list(MAPPING_COLUMNS), self._mapping.table()
            if wanted == "ddl_history":
                return metadata.ddl_history(self.instances, self._orphans)
            if wanted not in _METADATA:
                raise SqlError.of(208, f"cdc.{name}")
            return _METADATA[wanted](self.instances)

    def help_change_data_capture(
        self, schema: str | None, name: str | None, visible: Callable[[CaptureInstance], bool] | None = None
    ) -> Relation:
        """sys.sp_cdc_help_change_data_capture, of one table or of all.

        :param visible: whether the caller may see an instance; others are left out silently
        :raises SqlError: 22901; 22972 where only one of schema and name is given
        """
        self._require_enabled("sp_cdc_help_change_data_capture")
        if (schema is None) != (name is None):
            raise SqlError.of(22972, procedure="sp_cdc_help_change_data_capture")
        shown = [
            each
            for each in self.instances
            if (schema is None or name is None or _is_named(each.source, schema, name))
            and (visible is None or visible(each))
        ]
        return metadata.help_change_data_capture(shown, repeats=self.switches.help_repeats_index_columns)

    def get_captured_columns(self, capture_instance: str | None) -> Relation:
        """sys.sp_cdc_get_captured_columns

        :raises SqlError: 22901, 22963, 22981
        """
        instance = self._described(capture_instance, "sp_cdc_get_captured_columns")
        return metadata.get_captured_columns(instance)

    def get_ddl_history(self, capture_instance: str | None) -> Relation:
        """sys.sp_cdc_get_ddl_history

        :raises SqlError: 22901, 22963, 22981
        """
        return metadata.get_ddl_history(self._described(capture_instance, "sp_cdc_get_ddl_history"))

    def _described(self, capture_instance: str | None, procedure: str) -> CaptureInstance:
        self._require_enabled(procedure)
        if not capture_instance:
            raise SqlError.of(22963, "@capture_instance", procedure=procedure)
        instance = self.instance(capture_instance)
        if instance is None:
            raise SqlError.of(22981, procedure=procedure)
        return instance


def _is_named(table: TableDef, schema: str, name: str) -> bool:
    return (fold(table.schema), fold(table.name)) == (fold(schema), fold(name))
