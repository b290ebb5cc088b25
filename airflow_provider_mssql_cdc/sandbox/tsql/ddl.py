"""The grammar of table definitions: columns, constraints and indexes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from airflow_provider_mssql_cdc.sandbox.collations import comparing
from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.collations.names import COLLATIONS, Collation
from airflow_provider_mssql_cdc.sandbox.collations.names import named as known
from airflow_provider_mssql_cdc.sandbox.engine.schema import ColumnDef
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import Cursor, sub_cursor, syntax_error
from airflow_provider_mssql_cdc.sandbox.tsql.mask_functions import mask_of
from airflow_provider_mssql_cdc.sandbox.tsql.typing import named
from airflow_provider_mssql_cdc.sandbox.types import SqlType

_MOST_COLUMNS, _MOST_WITH_SET = 1024, 30_000
# docs: use sparse columns
_NEVER_SPARSE = ("text", "ntext", "image", "rowversion")
_TWO_WORD_TYPES = ("DOUBLE PRECISION", "CHARACTER VARYING", "CHAR VARYING", "NATIONAL CHAR", "NATIONAL CHARACTER")


@dataclass(slots=True)
class KeySpec:
    """PRIMARY KEY, UNIQUE or an index; the name '' asks for a made-up one.

    :param descending: for each column, whether DESC was written
    """

    name: str
    columns: list[str]
    primary_key: bool = False
    unique: bool = False
    clustered: bool | None = None
    constraint: bool = True
    descending: tuple[bool, ...] = field(kw_only=True)


@dataclass(slots=True)
class ColumnSpec:
    """A column as written; ``type`` is None for a computed one.

    :param with_values: rows that are there get the default, too
    """

    name: str
    type: SqlType | None
    nullable: bool | None = None
    identity: tuple[int, int] | None = None
    computed: str | None = None
    default: str | None = None
    default_name: str = ""
    with_values: bool = False
    collation: str | None = None
    sparse: bool = False
    column_set: bool = False
    mask: str | None = None


@dataclass(slots=True)
class DefaultSpec:
    """ADD CONSTRAINT ... DEFAULT expression FOR column."""

    name: str
    expression: str
    column: str


@dataclass(slots=True)
class TableSpec:
    """What stands between the parentheses of CREATE TABLE, or after ADD."""

    columns: list[ColumnSpec] = field(default_factory=list)
    keys: list[KeySpec] = field(default_factory=list)
    defaults: list[DefaultSpec] = field(default_factory=list)


def data_type(cursor: Cursor, default_length: int = 1) -> SqlType:
    """Read a data type."""
    line = cursor.token.line
    parts = cursor.dotted()
    name = parts[-1]
    if f"{name} {cursor.token.text}".upper() in _TWO_WORD_TYPES:
        name = f"{name} {cursor.next().text}"
    arguments = [token.text for token in cursor.group() if token.text != ","] if cursor.at("(") else []
    return named(name, arguments, default_length=default_length, line=line)


def elements(cursor: Cursor) -> TableSpec:
    """Read columns and constraints, separated by commas, to the end of the cursor."""
    spec = TableSpec()
    while True:
        _element(cursor, spec)
        if not cursor.take(","):
            break
    cursor.end()
    return spec


def _element(cursor: Cursor, spec: TableSpec) -> None:
    name = cursor.name() if cursor.take("CONSTRAINT") else ""
    if cursor.at("PRIMARY", "KEY") or cursor.at("UNIQUE"):
        spec.keys.append(_key(cursor, name, None))
    elif cursor.take("DEFAULT"):
        expression = _expression(cursor)
        cursor.expect("FOR")
        spec.defaults.append(DefaultSpec(name, expression, cursor.name()))
    elif cursor.at("CHECK") or cursor.at("FOREIGN") or cursor.at("INDEX") or cursor.at("PERIOD"):
        raise unsupported(f"{cursor.token.upper} in a table definition", cursor.token.line)
    elif name:
        raise syntax_error(cursor.token)
    else:
        _column(cursor, spec)


def key_columns(cursor: Cursor) -> tuple[list[str], tuple[bool, ...]]:
    """Read (column [ASC | DESC], ...): the names, and for each whether it is DESC."""
    inner = Cursor([*cursor.group(), cursor.tokens[-1]], cursor.text)
    columns, descending = [], []
    while True:
        columns.append(inner.name())
        descending.append(inner.take("DESC"))
        if not descending[-1]:
            inner.take("ASC")
        if not inner.take(","):
            return columns, tuple(descending)


def _key(cursor: Cursor, name: str, column: str | None) -> KeySpec:
    primary = cursor.take("PRIMARY", "KEY")
    if not primary:
        cursor.expect("UNIQUE")
    clustered = True if cursor.take("CLUSTERED") else False if cursor.take("NONCLUSTERED") else None
    columns, descending = key_columns(cursor) if cursor.at("(") else ([column or ""], (False,))
    if cursor.take("WITH"):
        cursor.group()
    if cursor.take("ON"):
        cursor.name()
    if not all(columns):
        raise syntax_error(cursor.token)
    return KeySpec(name, columns, primary, True, clustered, descending=descending)


def _expression(cursor: Cursor) -> str:
    """The text of a default: a group, or a literal, variable-free function call or name."""
    start = cursor.token.start
    if cursor.at("NEXT", "VALUE", "FOR"):
        raise unsupported("NEXT VALUE FOR", cursor.token.line)
    if cursor.at("("):
        return cursor.source(_with_parentheses(cursor))
    if cursor.at("-") or cursor.at("+"):
        cursor.next()
    cursor.next()
    while cursor.take("."):
        cursor.next()
    if cursor.at("("):
        cursor.group()
    return cursor.text[start : cursor.tokens[cursor.position - 1].end]


def _with_parentheses(cursor: Cursor) -> list:  # type: ignore[type-arg]
    start = cursor.position
    cursor.group()
    return cursor.tokens[start : cursor.position]


def _computed(cursor: Cursor) -> str:
    start = end = cursor.position
    after = (",", "PERSISTED", "CONSTRAINT", "PRIMARY", "UNIQUE")
    while cursor.token.kind != "end" and cursor.token.upper not in after:
        if not cursor.at("("):
            cursor.next()
        else:
            cursor.group()
            end = end if end > start else cursor.position
    text = cursor.source(cursor.tokens[start : cursor.position])
    if not text:
        raise syntax_error(cursor.token)
    return text if cursor.tokens[start].text == "(" and end == cursor.position else f"({text})"


def collation_of(cursor: Cursor) -> Collation:
    """The collation that a COLLATE clause names.

    :raises SqlError: 50000 for one that is not simulated, 448 for a name that is none
    """
    line, name = cursor.token.line, cursor.name()
    return COLLATIONS[comparing.DATABASE.get()] if name.lower() == "database_default" else known(name, line)


def _column(cursor: Cursor, spec: TableSpec) -> None:
    column = ColumnSpec(cursor.name(), None)
    if cursor.take("AS"):
        column.computed = _computed(cursor)
        cursor.take("PERSISTED")
        column.nullable = False if cursor.take("NOT", "NULL") else None
    elif cursor.at(",") or cursor.token.kind == "end":
        if column.name.lower() != "timestamp":
            raise syntax_error(cursor.token)
        column.type = named("rowversion", [])
    else:
        column.type = data_type(cursor)
    spec.columns.append(column)
    while not cursor.at(",") and cursor.token.kind != "end":
        _column_constraint(cursor, column, spec)


def _column_constraint(cursor: Cursor, column: ColumnSpec, spec: TableSpec) -> None:
    name = cursor.name() if cursor.take("CONSTRAINT") else ""
    if cursor.take("NOT", "NULL"):
        column.nullable = False
    elif cursor.take("NULL"):
        column.nullable = True
    elif cursor.take("IDENTITY"):
        column.identity = _identity(cursor) if cursor.at("(") else (1, 1)
        if cursor.at("NOT", "FOR"):
            raise unsupported("NOT FOR REPLICATION", cursor.token.line)
    elif cursor.take("DEFAULT"):
        column.default, column.default_name = _expression(cursor), name
        column.with_values = cursor.take("WITH", "VALUES")
    elif cursor.at("PRIMARY", "KEY") or cursor.at("UNIQUE"):
        spec.keys.append(_key(cursor, name, column.name))
    elif cursor.take("COLLATE"):
        column.collation = collation_of(cursor).name
    elif cursor.take("MASKED"):
        column.mask = mask_of(cursor, column.type)
    elif cursor.take("ROWGUIDCOL"):
        pass
    elif cursor.take("SPARSE"):
        column.sparse = True
    elif cursor.take("COLUMN_SET"):
        cursor.expect("FOR")
        cursor.expect("ALL_SPARSE_COLUMNS")
        column.column_set = True
    else:
        raise unsupported(f"{cursor.token.text.upper()} in a column definition", cursor.token.line)


def _identity(cursor: Cursor) -> tuple[int, int]:
    """(seed, increment)"""
    inner = sub_cursor(cursor, cursor.group())
    seed = _integer(inner)
    inner.expect(",")
    increment = _integer(inner)
    inner.end()
    return seed, increment


def _integer(cursor: Cursor) -> int:
    sign = -1 if cursor.take("-") else 1
    cursor.take("+")
    token = cursor.next()
    if not token.text.isdecimal():
        raise syntax_error(token)
    return sign * int(token.text)


def check_number(columns: Sequence[ColumnSpec | ColumnDef], table: str, verb: str) -> None:
    """Refuse a table with too many columns; one with a column set may have more (docs: maximum capacity).

    :param verb: CREATE TABLE or ALTER TABLE
    :raises SqlError: 1702 with the first column that is too much
    """
    most = _MOST_WITH_SET if any(column.column_set for column in columns) else _MOST_COLUMNS
    if len(columns) > most:
        raise SqlError.of(1702, verb, columns[most].name, table, most)


def check_single(columns: Sequence[ColumnSpec | ColumnDef], table: str) -> None:
    """Refuse a second column of what a table has once.

    :raises SqlError: 2744 two identity columns, 2738 two rowversions
    """
    if sum(bool(column.identity) for column in columns) > 1:
        raise SqlError.of(2744, table)
    versions = [column.name for column in columns if column.type is not None and column.type.name == "rowversion"]
    if len(versions) > 1:
        raise SqlError.of(2738, table, versions[-1])


def check_columns(columns: list[ColumnSpec], table: str) -> None:
    """Refuse definitions that no table can have.

    :raises SqlError: 1702 too many, 2705 a name twice, 2744 and 2738 two of what a table has once, 1731 a sparse
        column of what cannot be sparse
    """
    check_number(columns, table, "CREATE TABLE")
    for column in columns:
        fixed = column.nullable is False or column.identity is not None or column.default is not None
        if column.sparse and (fixed or column.type is None or column.type.name in _NEVER_SPARSE):
            raise SqlError.of(1731, column.name, table)
    seen: dict[str, str] = {}
    for column in columns:
        known_as = seen.get(column.name.casefold(), "")
        if known_as and fold(known_as) != fold(column.name):
            raise unsupported(f"columns whose names differ in case alone, {known_as} and {column.name}")
        if known_as:
            raise SqlError.of(2705, column.name, table)
        seen[column.name.casefold()] = column.name
    check_single(columns, table)
