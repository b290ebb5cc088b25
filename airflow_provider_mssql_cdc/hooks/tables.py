"""What a run asks SQL Server about tables, whether their changes are captured or not."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Collection

from airflow_provider_mssql_cdc.core.protection import Protection
from airflow_provider_mssql_cdc.core.table import TableName, quote
from airflow_provider_mssql_cdc.hooks import statements
from airflow_provider_mssql_cdc.hooks.connection import ConnectedHook

_AT_ONCE = 50
"""Masked columns of which one statement asks."""

_NEAR = 5
"""Names of other tables that are given where one is missing."""


class TablesHook(ConnectedHook):
    """Metadata of tables; never row data.

    :param mssql_conn_id: Airflow connection of type ``mssql``
    :param kwargs: as for ``ConnectedHook``
    """

    def protection(self, tables: Collection[int], *, captured: bool = True) -> Protection:
        """Masks and policies between the login and what tables hold: two statements, more where columns are masked.

        :param tables: object ids of source tables
        :param captured: whether CDC is on for the database, so that there may be change tables
        """
        ids = tuple(sorted(tables))
        if not ids:
            return Protection()
        ((unmask, known),) = self.query(statements.RIGHTS_TO_READ)
        masked: dict[int, dict[str, None]] = defaultdict(dict)
        filtered: dict[int, dict[str, None]] = defaultdict(dict)
        columns = []
        asked = (statements.PROTECTED, (ids,) * 3) if captured else (statements.PROTECTED_TABLES, (ids,) * 2)
        for kind, table, schema, name, of in self.query(*asked):
            if kind == statements.FILTERED:
                filtered[table][of] = None
            elif not unmask:
                columns.append((table, f"{quote(schema)}.{quote(name)}", of))
        for start in range(0, len(columns), _AT_ONCE):
            some = columns[start : start + _AT_ONCE]
            parameters = [part for _, name, column in some for part in (name, column)]
            may = {row[0]: row[1] for row in self.query(statements.may_unmask(len(some)), parameters)}
            for number, (table, _, column) in enumerate(some):
                if not may[number]:
                    masked[table][column] = None
        return Protection(
            {table: tuple(sorted(found)) for table, found in masked.items()},
            {table: tuple(sorted(found)) for table, found in filtered.items()},
            bool(known),
        )

    def similar_tables(self, table: TableName) -> list[TableName]:
        """Up to five tables that the login sees and whose names are near this one, the nearest first."""
        seen: dict[str, list[TableName]] = defaultdict(list)
        for schema, name in self.query(statements.NAMES):
            seen[name.casefold()].append(TableName(schema, name))
        near = difflib.get_close_matches(table.table.casefold(), seen, n=_NEAR)
        return [found for name in near for found in seen[name]][:_NEAR]

    def table_of(self, object_id: int) -> TableName | None:
        """The table of this ``object_id``, which a rename does not change; None if the login sees none."""
        rows = self.query(statements.NAME_OF, (object_id,))
        return TableName(*rows[0]) if rows else None

    def row_counts(self, object_ids: Collection[int]) -> dict[int, int]:
        """How many rows tables have, as ``sys.partitions`` says, which is about right (docs: sys.partitions).

        :param object_ids: of the tables
        :return: by object_id; without those that the login does not see
        """
        return {row[0]: int(row[1]) for row in self.query(statements.ROW_COUNTS, (tuple(object_ids),))}

    def is_dropped(self, object_id: int) -> bool:
        """Whether there is no table of this ``object_id`` any more: the login sees none, and no capture instance, which
        goes with its table (docs: sys.sp_cdc_disable_table), is of it. One that it may no longer see has its instance.
        """
        return self.table_of(object_id) is None and not self.query(statements.INSTANCE_OF, (object_id,))
