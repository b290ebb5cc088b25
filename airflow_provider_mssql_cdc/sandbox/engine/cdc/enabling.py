"""sp_cdc_enable_table: check what was asked for, and settle what was left out."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.engine.cdc.instance import (
    MOST_COLUMNS,
    RESERVED_NAMES,
    CapturedColumn,
    CaptureInstance,
    KeyColumn,
)
from airflow_provider_mssql_cdc.sandbox.engine.schema import IndexDef, TableDef
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError

PROCEDURE = "sp_cdc_enable_table_internal"
_LONGEST_NAME = 100
_MOST_INSTANCES = 2
_MOST_NET_KEY_COLUMNS = 14


@dataclass(frozen=True, slots=True)
class Request:
    """The parameters of sp_cdc_enable_table, as given."""

    capture_instance: str | None = None
    supports_net_changes: bool | None = None
    role_name: str | None = None
    index_name: str | None = None
    captured_column_list: str | None = None
    filegroup_name: str | None = None
    allow_partition_switch: bool = True


@dataclass(frozen=True, slots=True)
class Plan:
    """What a new capture instance will be."""

    capture_instance: str
    columns: tuple[CapturedColumn, ...]
    key: tuple[KeyColumn, ...]
    index_name: str | None
    supports_net_changes: bool


def plan(
    table: TableDef, request: Request, present: tuple[CaptureInstance, ...], database: str, net_changes_by_default: bool
) -> Plan:
    """Check a request in SQL Server's order and settle its defaults.

    :param present: the capture instances of the database
    :raises SqlError: 22974, 22907, 22927, 22932, 22962, 22926, 22973, 22975, 22928, 22929, 22838, 22965, 22942,
        22925, 22939, 22943, 22865, 22854, 22980
    """
    if table.schema.casefold() == "cdc":
        raise SqlError.of(22974, procedure=PROCEDURE)
    if request.role_name == "":
        raise SqlError.of(22907, procedure=PROCEDURE)
    name = _instance_name(table, request, present)
    if request.filegroup_name is not None and request.filegroup_name.casefold() != "primary":
        raise SqlError.of(22973, request.filegroup_name, database, procedure=PROCEDURE)
    if any(column.name in RESERVED_NAMES for column in table.columns):
        raise SqlError.of(22975, table.name, procedure=PROCEDURE)
    if table.has_column_set:
        raise SqlError.of(22854, table.name, procedure=PROCEDURE)
    index = _identifying_index(table, request.index_name)
    columns = _captured_columns(table, request.captured_column_list)
    net_changes = request.supports_net_changes
    if net_changes is None:
        net_changes = index is not None and net_changes_by_default
    if net_changes:
        _check_net_changes(table, index, columns)
    key = () if index is None else tuple(_key_column(table, each) for each in index.columns)
    return Plan(name, columns, key, None if index is None else index.name, net_changes)


def _instance_name(table: TableDef, request: Request, present: tuple[CaptureInstance, ...]) -> str:
    name = f"{table.schema}_{table.name}" if request.capture_instance is None else request.capture_instance
    if not name.strip():
        raise SqlError.of(22932, name, procedure=PROCEDURE)
    if len(name) > _LONGEST_NAME:
        raise SqlError.of(22927, name, procedure=PROCEDURE)
    if any(fold(each.capture_instance) == fold(name) for each in present):
        raise SqlError.of(22926, name, procedure=PROCEDURE)
    if sum(each.source_object_id == table.object_id for each in present) >= _MOST_INSTANCES:
        raise SqlError.of(22962, table.schema, table.name, procedure=PROCEDURE)
    return name


def _identifying_index(table: TableDef, index_name: str | None) -> IndexDef | None:
    if index_name is None:
        index = table.primary_key
        if index is not None and index.disabled:
            raise SqlError.of(22980, index.name, table.schema, table.name, procedure=PROCEDURE)
        return index
    index = next((each for each in table.indexes if fold(each.name) == fold(index_name)), None)
    if index is None:
        raise SqlError.of(22928, index_name, table.schema, table.name, procedure=PROCEDURE)
    if not (index.unique or index.primary_key):
        raise SqlError.of(22929, index.name, table.schema, table.name, procedure=PROCEDURE)
    if index.disabled:
        raise SqlError.of(22980, index.name, table.schema, table.name, procedure=PROCEDURE)
    nullable = {column.name.casefold() for column in table.columns if column.nullable}
    if not index.primary_key and any(name.casefold() in nullable for name in index.columns):
        raise SqlError.of(22838, index.name, table.schema, table.name, procedure=PROCEDURE)
    return index


def _captured_columns(table: TableDef, listed: str | None) -> tuple[CapturedColumn, ...]:
    columns = table.columns
    if listed is not None:
        wanted = {fold(name) for name in parse_column_list(listed)}
        columns = tuple(column for column in table.columns if fold(column.name) in wanted)
        if not wanted or len(columns) != len(wanted):
            raise SqlError.of(22942, table.schema, table.name, procedure=PROCEDURE)
    if len(columns) > MOST_COLUMNS:
        raise SqlError.of(22925, len(columns), MOST_COLUMNS, procedure=PROCEDURE)
    return tuple(CapturedColumn.of(column) for column in columns)


def _check_net_changes(table: TableDef, index: IndexDef | None, columns: tuple[CapturedColumn, ...]) -> None:
    if index is None:
        raise SqlError.of(22939, procedure=PROCEDURE)
    captured = {column.name.casefold() for column in columns}
    if any(name.casefold() not in captured for name in index.columns):
        raise SqlError.of(22943, procedure=PROCEDURE)
    if len(index.columns) > _MOST_NET_KEY_COLUMNS:
        raise SqlError.of(22865, index.name, table.schema, table.name, procedure=PROCEDURE)


def _key_column(table: TableDef, name: str) -> KeyColumn:
    column = table.named(name)
    return KeyColumn(column.column_id, column.name)


def parse_column_list(text: str) -> list[str]:
    """The names in a @captured_column_list: comma-separated, plain, [bracketed] or "double-quoted".

    :raises SqlError: 22965 where a quoted name does not end
    """
    names: list[str] = []
    rest = text.strip()
    while rest:
        if rest[0] in '["':
            name, rest = _quoted_name(rest)
            rest = rest.lstrip()
            # Whatever stands between the closing quote and the comma belongs to no name that exists.
            extra, _, rest = rest.partition(",")
            names.append(name + extra.strip())
        else:
            name, _, rest = rest.partition(",")
            names.append(name.strip())
        rest = rest.lstrip()
    return names


def _quoted_name(text: str) -> tuple[str, str]:
    close = "]" if text[0] == "[" else '"'
    name, at = "", 1
    while (end := text.find(close, at)) >= 0:
        name += text[at:end]
        if text[end + 1 : end + 2] != close:
            return name, text[end + 1 :]
        name += close
        at = end + 2
    raise SqlError.of(22965, procedure=PROCEDURE)
