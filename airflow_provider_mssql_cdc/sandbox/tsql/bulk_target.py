"""What INSERT BULK has announced: the table and the columns of the rows that the client sends next."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_mssql_cdc.sandbox.engine.schema import ColumnDef, TableDef
from airflow_provider_mssql_cdc.sandbox.types import SqlType


@dataclass(frozen=True, slots=True)
class Declared:
    """A column as INSERT BULK lists it.

    :param type: of the values that are sent
    """

    name: str
    type: SqlType
    collation: str = ""


@dataclass(frozen=True, slots=True)
class Announced:
    """What an INSERT BULK has announced.

    :param table: the target as it was then
    :param targets: its columns that are listed, as ``columns``
    :param keep_nulls: NULL stays NULL where a column has a default
    :param lock_table: readers with locks wait until the transaction ends
    :param order: places in ``columns`` of the clustered index's key, in whose order the rows are said to come
    """

    parts: tuple[str, str, str]
    table: TableDef
    columns: tuple[Declared, ...]
    targets: tuple[ColumnDef, ...]
    keep_nulls: bool
    lock_table: bool
    order: tuple[int, ...]

    @property
    def keeps_identity(self) -> bool:
        """Whether identity values are sent: a listed identity column keeps them."""
        return any(column.identity for column in self.targets)
