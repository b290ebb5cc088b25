"""Temporary tables and table variables: rows of one session, kept in Arrow beside the databases."""

from __future__ import annotations

import dataclasses

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.engine.storage import TableEntry
from airflow_provider_mssql_cdc.sandbox.engine.stored import staged


@dataclasses.dataclass(frozen=True, slots=True)
class LocalTable:
    """A table that one session sees; replaced as a whole at each write, so that an older one can be taken up again.

    :param rows: columns by their DuckDB names, and the row identifier
    :param depth: how deep in called batches it was created; it goes when that batch ends
    """

    entry: TableEntry
    rows: pa.Table
    depth: int = 0

    @classmethod
    def empty(cls, entry: TableEntry, depth: int = 0) -> LocalTable:
        """A table without rows."""
        return cls(entry, staged(entry.table, entry.table.arrow_schema.empty_table(), pa.array([], pa.int64())), depth)
