"""Changes of table definitions: the new definition, and the DuckDB statement that follows it."""

from __future__ import annotations

import dataclasses
import datetime
import zlib
from collections.abc import Callable, Mapping

from airflow_provider_mssql_cdc.sandbox.collations import comparing
from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.engine.schema import ColumnDef, IndexDef, TableDef
from airflow_provider_mssql_cdc.sandbox.engine.storage import ROW_ID, TableEntry
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.convert import convert, unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.ddl import ColumnSpec, DefaultSpec, KeySpec, TableSpec
from airflow_provider_mssql_cdc.sandbox.tsql.default_texts import decoded
from airflow_provider_mssql_cdc.sandbox.tsql.typing import duck, kind
from airflow_provider_mssql_cdc.sandbox.types import SqlType

ComputedType = Callable[[str, list[ColumnDef]], tuple[SqlType, bool]]


def object_id_of(owner: int, name: str) -> int:
    """A stable object id for a constraint, which has no storage of its own."""
    return (zlib.crc32(f"{owner}.{name}".encode()) & 0x3FFFFFFF) + 0x40000000


def _key_name(prefix: str, table: TableDef, columns: list[str], others: int) -> str:
    """A name for a PRIMARY KEY or UNIQUE constraint: 16 digits, of which the first 8 are those of its columns.

    Published scripts have eight characters of a longer table name, and both eight and nine of one of nine.
    """
    of_columns = zlib.crc32(",".join(columns).encode())
    number = zlib.crc32(f"{table.object_id}.{prefix}.{others}.{of_columns}".encode())
    return f"{prefix}__{table.name[:8]}__{of_columns:08X}{number:08X}"


def _default_name(table: TableDef, column: str) -> str:
    """A name for a DEFAULT: 14 characters of table and column, at most 9 of them the table's, and 8 digits."""
    head = table.name[:9]
    return f"DF__{head}__{column[: 14 - len(head)]}__{object_id_of(table.object_id, f'DF.{column}'):08X}"


def _column(spec: ColumnSpec, column_id: int, before: list[ColumnDef], computed_type: ComputedType) -> ColumnDef:
    if spec.computed is not None:
        type_, nullable = computed_type(spec.computed, before)
        return ColumnDef(column_id, spec.name, type_, spec.nullable is None and nullable, computed=spec.computed)
    assert spec.type is not None
    # docs: sysname is NOT NULL by default
    stated = spec.nullable if spec.nullable is not None else spec.type.name != "sysname"
    nullable = stated and spec.identity is None and spec.type.name != "rowversion"
    type_ = collated(spec.type, spec.collation or comparing.DATABASE.get())
    identity = spec.identity is not None
    return ColumnDef(
        column_id,
        spec.name,
        type_,
        nullable,
        identity,
        None,
        None if spec.default is None else decoded(spec.default),
        type_.collation or None,
        spec.sparse,
        spec.column_set,
        spec.mask,
    )


def collated(type_: SqlType, name: str) -> SqlType:
    """The type of a column with a collation.

    :raises SqlError: 50000 for char with UTF-8, whose blanks are counted in bytes
    """
    if kind(type_) != "str" or type_.name == "xml":
        return type_
    result = dataclasses.replace(type_, collation=name)
    if comparing.is_utf8(result) and type_.name != "varchar":
        raise unsupported(f"{type_.name} with the collation {name}")
    return result


def _with_keys(table: TableDef, keys: list[KeySpec]) -> TableDef:
    indexes, columns = list(table.indexes), list(table.columns)
    for key in keys:
        if key.primary_key and any(index.primary_key for index in indexes):
            raise SqlError.of(1779, table.name)
        names = []
        for wanted in key.columns:
            found = next((c for c in columns if fold(c.name) == fold(wanted)), None)
            if found is None:
                raise SqlError.of(1911, wanted)
            names.append(found.name)
            if key.primary_key:
                columns[columns.index(found)] = dataclasses.replace(found, nullable=False)
        name = key.name or _key_name("PK" if key.primary_key else "UQ", table, names, len(indexes))
        if any(index.name.casefold() == name.casefold() for index in indexes):
            message = f"There is already an object named '{name}' in the database."
            raise SqlError(2714 if key.constraint else 1913, message, state=5)
        has_clustered = any(index.clustered for index in indexes)
        clustered = key.clustered if key.clustered is not None else key.primary_key and not has_clustered
        if clustered and has_clustered:
            raise SqlError.of(1902, table.name)
        down = frozenset(name for name, is_down in zip(names, key.descending, strict=True) if is_down)
        indexes.append(IndexDef(name, tuple(names), key.unique, key.primary_key, clustered, descending=down))
    return dataclasses.replace(table, columns=tuple(columns), indexes=tuple(indexes))


def create_table(
    object_id: int, schema: str, name: str, spec: TableSpec, now: datetime.datetime, computed_type: ComputedType
) -> TableEntry:
    """The definition that CREATE TABLE makes."""
    columns: list[ColumnDef] = []
    for column_id, column in enumerate(spec.columns, 1):
        columns.append(_column(column, column_id, columns, computed_type))
    table = _with_keys(TableDef(object_id, schema, name, tuple(columns)), spec.keys)
    names = _default_names(table, spec.columns)
    return TableEntry(
        table,
        now,
        now,
        len(columns) + 1,
        next((c.identity for c in spec.columns if c.identity), (1, 1)),
        names,
        frozenset(_constraint_names(table, spec.keys)),
        _made_names(table, spec, names),
    )


def _made_names(table: TableDef, spec: TableSpec, defaults: Mapping[str, str]) -> frozenset[str]:
    """Which of the constraints that a definition adds were given no name."""
    keys = table.indexes[len(table.indexes) - len(spec.keys) :] if spec.keys else ()
    columns = [column.name for column in spec.columns if column.default is not None and not column.default_name]
    columns += [find_column(table, default.column).name for default in spec.defaults if not default.name]
    return frozenset(
        [index.name for index, key in zip(keys, spec.keys, strict=True) if not key.name]
        + [defaults[column] for column in columns]
    )


def _constraint_names(table: TableDef, keys: list[KeySpec]) -> list[str]:
    added = table.indexes[len(table.indexes) - len(keys) :] if keys else ()
    return [
        index.name
        for index, key in zip(added, keys, strict=True)
        if key.unique and key.constraint and not key.primary_key
    ]


def _default_names(table: TableDef, columns: list[ColumnSpec]) -> dict[str, str]:
    return {c.name: c.default_name or _default_name(table, c.name) for c in columns if c.default is not None}


def storage_columns(table: TableDef) -> str:
    """The column list of the table in DuckDB; the row identifier keeps the order of insertion."""
    columns = [f"c{column.column_id} {duck(column.type)}" for column in table.columns]
    return ", ".join([*columns, f"{ROW_ID} BIGINT"])


def add_elements(entry: TableEntry, spec: TableSpec, now: datetime.datetime, computed_type: ComputedType) -> TableEntry:
    """ALTER TABLE ... ADD: the definition afterwards."""
    table = entry.table
    for column in spec.columns:
        if any(known.name.casefold() == column.name.casefold() for known in table.columns):
            raise SqlError.of(2705, column.name, table.name, state=4)
    columns = list(table.columns)
    for offset, column in enumerate(spec.columns):
        columns.append(_column(column, entry.next_column_id + offset, columns, computed_type))
    changed = _with_keys(dataclasses.replace(table, columns=tuple(columns)), spec.keys)
    names = {**entry.default_names, **_default_names(changed, spec.columns)}
    for default in spec.defaults:
        changed = _with_default(changed, default)
        name = find_column(changed, default.column).name
        names[name] = default.name or _default_name(table, name)
    identity = next((c.identity for c in spec.columns if c.identity), entry.identity)
    return dataclasses.replace(
        entry,
        table=changed,
        modified=now,
        next_column_id=entry.next_column_id + len(spec.columns),
        identity=identity,
        default_names=names,
        unique_constraints=entry.unique_constraints | frozenset(_constraint_names(changed, spec.keys)),
        made_names=entry.made_names | _made_names(changed, spec, names),
    )


def find_column(table: TableDef, name: str) -> ColumnDef:
    """A column of a table that is altered.

    :raises SqlError: 4924
    """
    found = table.column(name)
    if found is None:
        raise SqlError.of(4924, name, table.name)
    return found


def _with_default(table: TableDef, default: DefaultSpec) -> TableDef:
    column = find_column(table, default.column)
    if column.default is not None:
        raise SqlError.of(1781)
    return replace_column(table, column, dataclasses.replace(column, default=decoded(default.expression)))


def replace_column(table: TableDef, old: ColumnDef, new: ColumnDef) -> TableDef:
    """A table with one column exchanged."""
    return dataclasses.replace(table, columns=tuple(new if c is old else c for c in table.columns))


def drop_column(entry: TableEntry, name: str, now: datetime.datetime) -> tuple[TableEntry, str]:
    """ALTER TABLE ... DROP COLUMN: the definition afterwards and the DuckDB change.

    :raises SqlError: 4924 no such column; 5074 something depends on it
    """
    column = find_column(entry.table, name)
    users = [index.name for index in entry.table.indexes if column.name in index.columns]
    users += [entry.default_names[column.name]] if column.name in entry.default_names else []
    if users:
        raise SqlError.of(5074, users[0], column.name)
    table = dataclasses.replace(entry.table, columns=tuple(c for c in entry.table.columns if c is not column))
    return dataclasses.replace(entry, table=table, modified=now), f"DROP COLUMN c{column.column_id}"


def alter_column(
    entry: TableEntry, name: str, type_: SqlType, nullable: bool, now: datetime.datetime
) -> tuple[TableEntry, str]:
    """ALTER TABLE ... ALTER COLUMN: the definition afterwards and the DuckDB change.

    :raises SqlError: 4924, 5074 where a key depends on the column, 4928 for columns that cannot be altered
    """
    column = find_column(entry.table, name)
    if column.computed is not None or column.type.name == "rowversion":
        word = "COMPUTED" if column.computed else "timestamp"
        raise SqlError.of(4928, column.name, word)
    users = [index.name for index in entry.table.indexes if column.name in index.columns]
    if users and (type_ != column.type or type_.collation != (column.collation or "")):
        raise SqlError.of(5074, users[0], column.name)
    physical = f"c{column.column_id}"
    new = dataclasses.replace(column, type=type_, nullable=nullable, collation=type_.collation or None)
    table = replace_column(entry.table, column, new)
    sql = f"ALTER COLUMN {physical} TYPE {duck(type_)} USING {convert(physical, column.type, type_)}"
    return dataclasses.replace(entry, table=table, modified=now), sql if type_ != column.type else ""


def drop_index(entry: TableEntry, name: str, now: datetime.datetime) -> TableEntry | None:
    """The table without an index or constraint; None where it has none of that name."""
    wanted = name.casefold()
    entry = dataclasses.replace(entry, made_names=frozenset(n for n in entry.made_names if n.casefold() != wanted))
    table = entry.table
    kept = tuple(index for index in table.indexes if index.name.casefold() != wanted)
    if len(kept) < len(table.indexes):
        changed = dataclasses.replace(table, indexes=kept)
        unique = frozenset(each for each in entry.unique_constraints if each.casefold() != wanted)
        return dataclasses.replace(entry, table=changed, modified=now, unique_constraints=unique)
    column = next((c for c, constraint in entry.default_names.items() if constraint.casefold() == wanted), None)
    if column is None:
        return None
    old = find_column(table, column)
    changed = replace_column(table, old, dataclasses.replace(old, default=None))
    names = {c: constraint for c, constraint in entry.default_names.items() if c != column}
    return dataclasses.replace(entry, table=changed, modified=now, default_names=names)


def add_index(entry: TableEntry, key: KeySpec, now: datetime.datetime) -> TableEntry:
    """The table with an index more."""
    return dataclasses.replace(entry, table=_with_keys(entry.table, [key]), modified=now)
