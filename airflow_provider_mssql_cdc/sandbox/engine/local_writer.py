"""Writing to temporary tables and table variables."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mssql_cdc.sandbox.engine.local_tables import LocalTable
from airflow_provider_mssql_cdc.sandbox.engine.rows import RowWriter
from airflow_provider_mssql_cdc.sandbox.engine.storage import ROW_ID, Database
from airflow_provider_mssql_cdc.sandbox.engine.stored import staged
from airflow_provider_mssql_cdc.sandbox.engine.transactions import TransactionManager


class LocalWriter(RowWriter):
    """Applies rows to a local table: the constraints are those of any table, but nothing of it is logged.

    :param name: under which DuckDB reads the rows as they are
    :param keep: takes the table with its new rows
    """

    def __init__(
        self,
        manager: TransactionManager,
        tempdb: Database,
        local: LocalTable,
        name: str,
        keep: Callable[[LocalTable], None],
    ) -> None:
        super().__init__(manager, tempdb, local.entry, -1)
        self._local, self._name, self._keep = local, name, keep

    def insert(self, rows: pa.Table) -> int:
        """Insert rows.

        :raises SqlError: 515, 2627, 2601
        """
        self._check(rows, "INSERT")
        self._check_keys(rows, None, self._table.indexes)
        ids = pa.array(self._database.new_row_ids(rows.num_rows), pa.int64())
        self._replace(pa.concat_tables([self._local.rows, staged(self._table, rows, ids)]))
        return int(rows.num_rows)

    def delete(self, ids: pa.Array, before: pa.Table) -> int:
        """Delete rows by their row identifiers."""
        self._replace(self._without(ids))
        return int(before.num_rows)

    def update(self, ids: pa.Array, before: pa.Table, after: pa.Table, changed: set[str]) -> int:
        """Give rows new values.

        :raises SqlError: 515, 2627, 2601
        """
        self._check(after, "UPDATE")
        self._check_keys(after, ids, self._table.indexes)
        self._replace(pa.concat_tables([self._without(ids), staged(self._table, after, ids)]).sort_by(ROW_ID))
        return int(before.num_rows)

    def _without(self, ids: pa.Array) -> pa.Table:
        rows = self._local.rows
        return rows.filter(pc.invert(pc.is_in(rows.column(ROW_ID), value_set=pc.cast(ids, pa.int64()))))

    def _replace(self, rows: pa.Table) -> None:
        self._keep(dataclasses.replace(self._local, rows=rows))
