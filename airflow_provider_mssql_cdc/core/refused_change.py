"""A change of columns with which a table is not to go on: where it lies, and what people are told of it."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.exceptions import SchemaChangedError
from airflow_provider_mssql_cdc.core.feed import DdlChange
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.table import TableName


@dataclass(frozen=True, slots=True)
class RefusedChange:
    """A change of columns with which a table is not to go on.

    :param changes: for people, a line each
    :param statements: those of the table since its columns were seen last, as far as they are captured
    :param is_passed: the capture has passed the moment at which it was seen
    """

    changes: str
    statements: tuple[DdlChange, ...]
    is_passed: bool

    def lies_within(self, cut: Position) -> bool:
        """Whether windows up to a cut may hold it: any of the statements may have made it. Without one it lies
        anywhere below the moment at which it was seen.
        """
        if self.statements:
            return min(statement.lsn for statement in self.statements) <= cut
        return self.is_passed

    def error(self, table: TableName) -> SchemaChangedError:
        """What fails the table."""
        said = "".join(f"  {row.lsn}: {row.command.strip()}\n" for row in self.statements)
        return SchemaChangedError(
            f"the source table's columns are not those that were seen last.\n{self.changes}{said}",
            table=str(table),
            advice='on_schema_change="fail" stops the table before the window that holds the change. Runs with "warn" '
            "go on without a column that was added, and with NULL in place of one that was dropped; once one of them "
            'has told the change, "fail" takes it for known.',
        )
