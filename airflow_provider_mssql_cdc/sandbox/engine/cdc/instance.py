"""A capture instance: what it captures of its table, and the change table that it fills."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from airflow_provider_mssql_cdc.sandbox.engine.cdc.changes import ChangeRows
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import columns
from airflow_provider_mssql_cdc.sandbox.engine.schema import ColumnDef, TableDef
from airflow_provider_mssql_cdc.sandbox.protocol import Column
from airflow_provider_mssql_cdc.sandbox.system_types import system_type
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType

MOST_COLUMNS = 1024  # bits of the update mask

_METADATA = columns(
    "__$start_lsn binary(10)!, __$end_lsn binary(10), __$seqval binary(10)!, __$operation int!, "
    "__$update_mask varbinary(128)"
)
_COMMAND_ID = Column("__$command_id", SqlType("int"))
RESERVED_NAMES = frozenset(column.name for column in _METADATA)


@dataclass(frozen=True, slots=True)
class CapturedColumn:
    """A row of cdc.captured_columns.

    :param column_id: of the source column, kept after that is dropped
    :param type: of the column in the change table: rowversion is binary(8) there
    :param source_type: name of the source column's type
    :param collation: of the source column's texts, by which keys are equal; '' is the server's
    :param mask: function of its dynamic data mask
    """

    column_id: int
    name: str
    type: SqlType
    source_type: str
    computed: bool = False
    collation: str = ""
    mask: str | None = None

    @classmethod
    def of(cls, column: ColumnDef) -> CapturedColumn:
        """How a column of a table is captured."""
        return cls(
            column.column_id,
            column.name,
            change_table_type(column.type),
            system_type(column.type).name,
            column.computed is not None,
            column.collation or "",
            column.mask,
        )


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A row of cdc.index_columns."""

    column_id: int
    name: str


class DdlRow(NamedTuple):
    """A row of cdc.ddl_history, of one instance."""

    required_column_update: bool
    ddl_command: str
    ddl_lsn: bytes
    ddl_time: datetime.datetime


class OrphanedDdl(NamedTuple):
    """A row of cdc.ddl_history whose instance is gone (J of the reference: reported)."""

    source_object_id: int
    object_id: int
    row: DdlRow


@dataclass(slots=True, eq=False)
class CaptureInstance:
    """A capture instance. The database replaces its state as a whole, so that readers never see half a change.

    :param source: the tracked table as it is now
    :param change_table_object_id: object_id of ``cdc.<capture_instance>_CT``
    :param enabled_at: log position from which on commits are captured
    :param start_lsn: where its validity begins: raised by cleanup
    :param columns: by ordinal
    :param key: what identifies a row, in index order; empty where nothing does
    :param masks: whether the net function evaluates update masks
    :param has_command_ids: whether the change table has ``__$command_id``
    """

    capture_instance: str
    source: TableDef
    change_table_object_id: int
    enabled_at: int
    start_lsn: bytes
    create_date: datetime.datetime
    columns: tuple[CapturedColumn, ...]
    key: tuple[KeyColumn, ...] = ()
    index_name: str | None = None
    role_name: str | None = None
    filegroup_name: str | None = None
    supports_net_changes: bool = False
    partition_switch: bool = True
    masks: bool = True
    has_command_ids: bool = True
    changes: ChangeRows = field(default_factory=ChangeRows)
    ddl_history: tuple[DdlRow, ...] = ()

    @property
    def source_object_id(self) -> int:
        """object_id of the tracked table."""
        return self.source.object_id

    @property
    def objects(self) -> tuple[str, ...]:
        """The names of what was made for it in schema cdc."""
        functions = (f"fn_cdc_get_{kind}_changes_{self.capture_instance}" for kind in ("all", "net"))
        return (f"{self.capture_instance}_CT", *functions)

    @property
    def change_columns(self) -> list[Column]:
        """The columns of the change table, in order."""
        captured = [Column(column.name, column.type) for column in self.columns]
        return [*_METADATA, *captured, *([_COMMAND_ID] if self.has_command_ids else [])]

    def with_command_ids(self) -> CaptureInstance:
        """The same instance with ``__$command_id``, which is NULL in the rows that had none (docs: KB3030352)."""
        if self.has_command_ids:
            return self
        changes = self.changes.with_nulls(_COMMAND_ID.name, _COMMAND_ID.type.arrow)
        return replace(self, changes=changes, has_command_ids=True)

    def ordinal(self, column: str) -> int | None:
        """The place of a captured column in the change table and in the mask, from 1."""
        wanted = column.casefold()
        return next((i for i, each in enumerate(self.columns, 1) if each.name.casefold() == wanted), None)


def change_table_type(source: SqlType) -> SqlType:
    """The type of a column in the change table."""
    match source.name:
        case "rowversion":
            return SqlType("binary", 8)
        case "sysname":
            return SqlType("nvarchar", 128)
        case _:
            return source


def is_text_pointer(name: str) -> bool:
    """Whether a type is one of the old LOBs, whose old values the log does not hold."""
    return name in ("text", "ntext", "image")


def is_lob(column_type: SqlType) -> bool:
    """Whether a type is stored as LOB: (max), xml, text, ntext, image."""
    return column_type.length == MAX or column_type.name == "xml" or is_text_pointer(column_type.name)
