"""Tables, columns and indexes as the engine knows them: immutable values, replaced by each DDL statement."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.types import SqlType


@dataclass(frozen=True, slots=True)
class ColumnDef:
    """A column of a user table; ``column_id`` has gaps after a drop and is never used again.

    :param mask: function of its dynamic data mask, as written
    """

    column_id: int
    name: str
    type: SqlType
    nullable: bool = True
    identity: bool = False
    computed: str | None = None
    default: str | None = None
    collation: str | None = None
    sparse: bool = False
    column_set: bool = False
    mask: str | None = None


@dataclass(frozen=True, slots=True)
class IndexDef:
    """A primary key, unique constraint or index; columns by name in key order.

    :ivar descending: those that run from the highest value to the lowest
    """

    name: str
    columns: tuple[str, ...]
    unique: bool = False
    primary_key: bool = False
    clustered: bool = False
    disabled: bool = False
    descending: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TableDef:
    """A user table; columns in ``column_id`` order."""

    object_id: int
    schema: str
    name: str
    columns: tuple[ColumnDef, ...]
    indexes: tuple[IndexDef, ...] = ()

    @property
    def primary_key(self) -> IndexDef | None:
        """The primary key, if there is one."""
        return next((index for index in self.indexes if index.primary_key), None)

    def column(self, name: str) -> ColumnDef | None:
        """A column by name."""
        return next((column for column in self.columns if fold(column.name) == fold(name)), None)

    def named(self, name: str) -> ColumnDef:
        """A column that is there, by the name that an index or statement checked before gives it."""
        return next(column for column in self.columns if column.name.casefold() == name.casefold())

    @property
    def has_column_set(self) -> bool:
        """Whether a column shows all the sparse ones."""
        return any(column.column_set for column in self.columns)

    @property
    def arrow_schema(self) -> pa.Schema:
        """Row images of this table: one field per column, by name, in ``column_id`` order."""
        return pa.schema([pa.field(column.name, column.type.arrow) for column in self.columns])
