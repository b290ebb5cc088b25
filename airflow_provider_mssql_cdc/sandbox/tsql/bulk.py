"""Bulk copy: INSERT BULK says where the rows go that the client sends next (docs: INSERT, external tool only syntax).

What a server answers was measured on 2022 (16.0.4236) by the authors of msduck (github.com/mirek/msduck).
Rows are checked and stored as those of an INSERT; there are no triggers, CHECK and FOREIGN KEY constraints here that
a bulk copy could pass by.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.engine.schema import ColumnDef, TableDef
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database
from airflow_provider_mssql_cdc.sandbox.protocol import BulkColumn, BulkLoad, Outcome, RowCount, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import dml
from airflow_provider_mssql_cdc.sandbox.tsql.assignment import assign
from airflow_provider_mssql_cdc.sandbox.tsql.bulk_target import Announced, Declared
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.ddl import data_type
from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment
from airflow_provider_mssql_cdc.sandbox.tsql.executor import Executor
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr
from airflow_provider_mssql_cdc.sandbox.tsql.insert_rows import default_of
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import Cursor, error_near, sub_cursor, syntax_error
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Context
from airflow_provider_mssql_cdc.sandbox.tsql.script import Statement
from airflow_provider_mssql_cdc.sandbox.tsql.typing import is_unicode, kind, nvarchar
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType

_SENT = "sent_rows"
# what changes nothing here: there is nothing to check or to fire, and no batch size to choose
_WITHOUT_EFFECT = ("CHECK_CONSTRAINTS", "FIRE_TRIGGERS")
_SIZES = ("ROWS_PER_BATCH", "KILOBYTES_PER_BATCH")
# how text and uniqueidentifier are sorted is not as Python does it
_NOT_ORDERED = ("str", "guid")
_PADDED: dict[str, Any] = {"char": " ", "nchar": " ", "binary": b"\0"}


def announce(executor: Executor, statement: Statement) -> Iterator[Outcome]:
    """Run INSERT BULK: what the client sends next are the rows.

    :raises SqlError: 102, 207, 208, 229, 264, 271, 273, 1088, 2715, 4817, 4818
    """
    env, cursor = executor.env, statement.cursor()
    if env.procedure_depth:
        raise unsupported("INSERT BULK in a called batch", statement.line)
    cursor.expect("INSERT", "BULK")
    database, schema, name = ("", "", *cursor.dotted())[-3:]
    parts = (database, schema, name)
    if not cursor.at("("):
        raise error_near(statement.tokens[cursor.position - 1].text, statement.line)
    columns = _columns(sub_cursor(cursor, cursor.group()))
    options, order = _options(cursor)
    if executor.settings.fmtonly:
        return
    table = _table(env, parts, keeps_identity=lambda table: any(_column(table, c).identity for c in columns))
    targets = tuple(_column(table, column) for column in columns)
    dml.check_targets([*targets], table, identity_given=True)
    for column, target in zip(columns, targets, strict=True):
        if column.collation and column.collation.casefold() != (target.collation or "").casefold():
            raise unsupported(f"the collation {column.collation} in INSERT BULK", statement.line)
    kept_order = _order_of(order, table, targets)
    executor.bulk = Announced(
        parts, table, tuple(columns), targets, "KEEP_NULLS" in options, "TABLOCK" in options, kept_order
    )
    yield RowCount()


def _columns(cursor: Cursor) -> list[Declared]:
    columns = []
    while True:
        name, type_ = cursor.name(), data_type(cursor)
        collation = cursor.name() if cursor.take("COLLATE") else ""
        if cursor.at("NOT", "NULL"):
            raise unsupported("NOT NULL in INSERT BULK", cursor.token.line)
        cursor.take("NULL")
        columns.append(Declared(name, type_, collation))
        if not cursor.take(","):
            cursor.end()
            return columns


def _options(cursor: Cursor) -> tuple[set[str], list[str]]:
    """The names of the options, and the columns of ORDER."""
    found: set[str] = set()
    order: list[str] = []
    if not cursor.take("WITH"):
        cursor.end()
        return found, order
    inner = sub_cursor(cursor, cursor.group())
    cursor.end()
    while True:
        token = inner.next()
        word = token.upper
        if word == "ORDER":
            order = _order(sub_cursor(inner, inner.group()))
        elif word in _SIZES:
            inner.expect("=")
            if not inner.next().text.isdecimal():
                raise syntax_error(token)
        elif word == "ALLOW_ENCRYPTED_VALUE_MODIFICATIONS":
            raise unsupported(f"{word} of INSERT BULK", token.line)
        elif word not in (*_WITHOUT_EFFECT, "KEEP_NULLS", "TABLOCK"):
            raise syntax_error(token)
        found.add(word)
        if not inner.take(","):
            inner.end()
            return found, order


def _order(cursor: Cursor) -> list[str]:
    columns = []
    while True:
        columns.append(cursor.name())
        if cursor.take("DESC"):
            raise unsupported("DESC in ORDER of INSERT BULK", cursor.token.line)
        cursor.take("ASC")
        if not cursor.take(","):
            cursor.end()
            return columns


def _order_of(order: list[str], table: TableDef, targets: tuple[ColumnDef, ...]) -> tuple[int, ...]:
    """The places of the columns by which rows are sorted; none for an order that a server ignores.

    docs (BULK INSERT): it counts where it is the one of the clustered index
    """
    names = [fold(name) for name in order]
    for name in order:
        if table.column(name) is None:
            raise SqlError.of(4817, name)
        if names.count(fold(name)) > 1:
            raise SqlError.of(4818, name)
    key = next(([fold(name) for name in index.columns] for index in table.indexes if index.clustered), [])
    if not names or names[:1] != key[:1]:
        return ()
    listed = [fold(target.name) for target in targets]
    if names != key or not set(key) <= set(listed) or any(kind(table.named(n).type) in _NOT_ORDERED for n in key):
        raise unsupported("this ORDER of INSERT BULK")
    return tuple(listed.index(name) for name in key)


def _table(env: Environment, parts: tuple[str, str, str], keeps_identity: Callable[[TableDef], bool]) -> TableDef:
    local = env.local(parts[2])
    if local is not None:
        return local.entry.table
    found = env.table(parts)
    if found is None:
        raise SqlError.of(208, ".".join(filter(None, parts)))
    database, table = found[0], found[1].table
    if not env.permitted(database, "INSERT", table.schema, table.name):
        raise SqlError.of(229, "INSERT", table.name, database.name, table.schema)
    # docs (BULK INSERT): identity values take the right to alter the table
    if keeps_identity(table) and not env.permitted(database, "ALTER", table.schema, table.name):
        raise SqlError.of(1088, f"{table.schema}.{table.name}")
    return table


def _column(table: TableDef, declared: Declared) -> ColumnDef:
    column = table.column(declared.name)
    if column is None:
        raise SqlError.of(207, declared.name)  # a server says only that the statement failed
    return column


def load(executor: Executor, announced: Announced, read: Callable[[], BulkLoad]) -> Iterator[Outcome]:
    """Store the rows of a bulk load, all or none."""
    try:
        columns, rows = read()
        _check_columns(announced, columns)
        sent = _table_of(executor.env, announced, rows)
        count = executor.atomically(lambda: _insert(executor, announced, sent), single=True)
    except (SqlError, duckdb.Error) as error:
        yield from executor.failed(error, 1)
        return
    executor.env.last_error = 0
    yield executor.wrote(count, "BULK INSERT")


def _check_columns(announced: Announced, sent: list[BulkColumn]) -> None:
    if len(sent) != len(announced.columns):
        raise SqlError.of(4804, state=3)
    pairs = zip(announced.columns, announced.targets, sent, strict=True)
    for number, (declared, target, column) in enumerate(pairs, 1):
        if not _is_sent_as(declared.type, column.type) or column.nullable != target.nullable:
            raise SqlError.of(4816, number)
        if target.type.length == MAX and kind(column.type) in ("str", "bin") and column.type.length not in (0, MAX):
            raise SqlError.of(4816, number, state=2)


def _is_sent_as(declared: SqlType, sent: SqlType) -> bool:
    if declared.name == "xml":
        return sent.name == "nvarchar"  # docs (MS-TDS 2.2.6.1)
    if declared.name == "sysname":
        return sent.name == "nvarchar"
    same = (declared.name, declared.precision, declared.scale) == (sent.name, sent.precision, sent.scale)
    return same and (declared.length == MAX) == (sent.length == MAX)


def _table_of(env: Environment, announced: Announced, rows: Iterator[list[Any]]) -> pa.Table:
    """The rows as they were sent, columns named k1, k2 and so on.

    :raises SqlError: 4815 for a value that is longer than it was declared; and what reading the rows raises
    """
    values: list[list[Any]] = [[] for _ in announced.columns]
    for row in rows:
        if env.cancelled.is_set():
            raise SqlError.of(3617)
        for column, value in zip(values, row, strict=True):
            column.append(value)
    pairs = zip(announced.columns, values, strict=True)
    arrays = [_array(each.type, column, number) for number, (each, column) in enumerate(pairs, 1)]
    return pa.Table.from_arrays(arrays, [f"k{number}" for number in range(1, len(arrays) + 1)])


def _array(type_: SqlType, values: list[Any], number: int) -> Any:
    if type_.length not in (0, MAX):
        if any(value is not None and _length(type_, value) > type_.length for value in values):
            raise SqlError.of(4815, number)
        filler = _PADDED.get(type_.name)
        if filler is not None:
            lacking = [0 if value is None else type_.length - _length(type_, value) for value in values]
            values = [v if v is None else v + filler * n for v, n in zip(values, lacking, strict=True)]
    if type_.name == "datetimeoffset":
        values = [v if v is None else {"utc_ticks": v[0], "offset_minutes": v[1]} for v in values]
    try:
        return pa.array(values, type_.arrow)
    except UnicodeEncodeError:
        raise unsupported("half a surrogate pair in a bulk load") from None


def _length(type_: SqlType, value: Any) -> int:
    return len(value.encode("utf-16-le", "surrogatepass")) // 2 if is_unicode(type_) else len(value)


def _insert(executor: Executor, announced: Announced, sent: pa.Table) -> int:
    env = executor.env
    database, entry = env.target(announced.parts)
    if entry.table != announced.table:
        raise SqlError.of(4891)
    if announced.lock_table:
        database.locks.close(env.manager, entry.table.object_id)
    context = executor.context()
    exprs = [_value(context, announced, database, number) for number in range(len(announced.columns))]
    names = [exp.to_identifier(column.name, quoted=True) for column in announced.columns]
    table = exp.Table(**dict(zip(("catalog", "db", "this"), map(_identifier, announced.parts), strict=True)))
    identity = env.identity_insert_table
    if announced.keeps_identity:
        env.identity_insert_table = entry.table.object_id
    try:
        with env.staged(_SENT, sent):
            _check_order(context, announced, database, exprs)
            statement = exp.Insert(this=exp.Schema(this=table, expressions=names))
            return dml.insert(context, statement, (exprs, f" FROM {_SENT}")).count
    finally:
        env.identity_insert_table = identity


def _check_order(context: Context, announced: Announced, database: Database, exprs: list[Expr]) -> None:
    """Hold the rows against the order in which they were said to come.

    :raises SqlError: 4819, also for a key that comes twice
    """
    if not announced.order:
        return
    targets, place = announced.targets, _place(announced, database)
    items = ", ".join(assign(exprs[number], targets[number], place) for number in announced.order)
    unique = any(index.clustered and (index.unique or index.primary_key) for index in announced.table.indexes)
    for first, second in itertools.pairwise(context.env.fetchall(f"SELECT {items} FROM {_SENT}")):
        low, high = (tuple(_sortable(value) for value in row) for row in (first, second))
        if low > high or (unique and low == high):
            shown = [f"({', '.join(map(str, row))})" for row in (first, second)]
            raise SqlError.of(4819, *shown)


def _sortable(value: Any) -> tuple[Any, ...]:
    """NULL comes before all others, and a datetimeoffset is its instant."""
    return () if value is None else (value["utc_ticks"],) if isinstance(value, dict) else (value,)


def _place(announced: Announced, database: Database) -> str:
    """The table's full name, for error messages."""
    return f"{database.name}.{announced.table.schema}.{announced.table.name}"


def _identifier(name: str) -> exp.Identifier | None:
    return exp.to_identifier(name, quoted=True) if name else None


def _value(context: Context, announced: Announced, database: Database, number: int) -> Expr:
    """A sent value, or the column's default for NULL where that is wanted."""
    declared, target = announced.columns[number].type, announced.targets[number]
    sent = Expr(f"k{number + 1}", nvarchar(MAX) if declared.name == "xml" else declared)
    if announced.keep_nulls or target.default is None:
        return sent
    place = _place(announced, database)
    default = assign(default_of(context, target), target, place)
    return Expr(f"CASE WHEN {sent.sql} IS NULL THEN {default} ELSE {assign(sent, target, place)} END", target.type)
