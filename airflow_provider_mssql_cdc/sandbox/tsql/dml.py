"""INSERT, UPDATE and DELETE: which rows they touch and with which values; the engine then writes them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa
from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.engine.schema import ColumnDef, TableDef
from airflow_provider_mssql_cdc.sandbox.engine.storage import ROW_ID, Database, TableEntry
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import masks, query
from airflow_provider_mssql_cdc.sandbox.tsql.assignment import assign
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr, constant
from airflow_provider_mssql_cdc.sandbox.tsql.expressions import predicate, scalar
from airflow_provider_mssql_cdc.sandbox.tsql.insert_rows import (
    check_count,
    default_of,
    known_rows,
    literal_rows,
    query_rows,
    value_row,
)
from airflow_provider_mssql_cdc.sandbox.tsql.parsing import parse
from airflow_provider_mssql_cdc.sandbox.tsql.relation import Relation
from airflow_provider_mssql_cdc.sandbox.tsql.results import plain
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Bounds, Context, Scope, Source, only
from airflow_provider_mssql_cdc.sandbox.tsql.sources import from_clause, table_parts
from airflow_provider_mssql_cdc.sandbox.types import SqlType

_STAGED = "written_rows"
_GIVEN = "given_rows"
_FEW = 100
# what an INSERT is made of: expressions and the FROM text that they read, or rows of constants
Given = tuple[list[Expr], str] | list[list[Expr]]
_COMPUTED = (
    'The column "{}" cannot be modified because it is either a computed column or is the result of a UNION operator.'
)


@dataclasses.dataclass(slots=True)
class Written:
    """What a statement did: how many rows, and what its OUTPUT clause returns."""

    count: int
    output: tuple[list[tuple[str, Expr]], pa.Table] | None = None


def insert(ctx: Context, node: exp.Expr, source: Given | None = None) -> Written:
    """Run an INSERT.

    :param source: what the rows are made of, if the statement does not say it
    """
    only(node, "this", "expression", "default", "returning", "with_", "limit")
    schema = node.this if isinstance(node.this, exp.Schema) else None
    database, entry = ctx.env.target(table_parts(schema.this if schema else node.this))
    table = entry.table
    listed = [_column(table, name.name) for name in schema.expressions] if schema else None
    identity_given = ctx.env.identity_insert(entry)
    columns = listed or [
        c
        for c in table.columns
        if c.computed is None and c.type.name != "rowversion" and (not c.identity or identity_given)
    ]
    check_targets(columns, table, identity_given)
    if node.args.get("default"):
        columns = []
    given = {column.column_id for column in columns}
    stored = [
        c
        for c in table.columns
        if c.computed is None and c.type.name != "rowversion" and (not c.identity or c.column_id in given)
    ]
    full = f"{database.name}.{table.schema}.{table.name}"
    try:
        arrays, number = _new_values(ctx, node, columns, stored, full, source)
    except SqlError as error:
        if error.number in (109, 110) and listed is None:
            raise SqlError.of(213) from None
        raise
    masks.check_output(ctx.env, database, entry, node.args.get("returning"))
    complete = completed(ctx, database, entry, arrays, number)
    count = ctx.env.writer(database, entry).insert(complete)
    identity = next((c for c in table.columns if c.identity), None)
    if identity is not None and count:
        last = int(complete.column(identity.name)[count - 1].as_py())
        if identity.column_id in given:
            database.note_identity(entry, last)
        ctx.env.inserted_identity(last)
    return Written(count, _output(ctx, node, table, None, complete))


def insert_rows(ctx: Context, target: exp.Expr, types: list[SqlType], rows: pa.Table) -> Written:
    """Insert the rows of OUTPUT INTO or of INSERT ... EXEC.

    :raises SqlError: 213 where their columns are not as many as the target's
    """
    names = [f"k{i}" for i in range(1, len(types) + 1)]
    source: Given = ([Expr(name, type_) for name, type_ in zip(names, types, strict=True)], f" FROM {_GIVEN}")
    if 0 < rows.num_rows <= _FEW:  # what is known need not be worked out, which takes DuckDB long for many columns
        values = zip(*(column.to_pylist() for column in rows.columns), strict=True)
        source = [[constant(plain(v), type_) for v, type_ in zip(line, types, strict=True)] for line in values]
    with ctx.env.staged(_GIVEN, rows.rename_columns(names)):
        try:
            return insert(ctx, exp.Insert(this=target), source)
        except SqlError as error:
            if error.number not in (109, 110):
                raise
            raise SqlError.of(213) from None


def _column(table: TableDef, name: str) -> ColumnDef:
    column = table.column(name)
    if column is None:
        raise SqlError.of(207, name)
    return column


def check_targets(columns: list[ColumnDef], table: TableDef, identity_given: bool) -> None:
    """Refuse columns that cannot be given values.

    :raises SqlError: 264, 271, 273, 544
    """
    for column in columns:
        if columns.count(column) > 1:
            raise SqlError.of(264, column.name)
        if column.computed is not None:
            message = _COMPUTED.format(column.name)
            raise SqlError(271, message)
        if column.type.name == "rowversion":
            raise SqlError.of(273)
        if column.identity and not identity_given:
            raise SqlError.of(544, table.name)


def _new_values(
    ctx: Context,
    node: exp.Expr,
    columns: list[ColumnDef],
    stored: list[ColumnDef],
    full: str,
    source: Given | None,
) -> tuple[dict[int, Any], int]:
    """Values of the stored columns by column_id, and the number of rows.

    :param columns: the target columns, in the order of the source's columns
    :param stored: all columns that get a value; those not targeted get their default
    """
    lines = source if isinstance(source, list) else None
    if lines is not None:
        check_count(len(lines[0]), len(columns))
    elif node.args.get("default"):
        lines = [[]]
    elif source is None and isinstance(node.expression, exp.Values):
        lines = [value_row(ctx, row, columns) for row in node.expression.expressions]
    targeted = {column.column_id for column in columns}
    defaults = {c.column_id: default_of(ctx, c) for c in stored if c.column_id not in targeted}
    if lines is not None and not node.args.get("limit"):
        arrays = known_rows(lines, columns, stored, defaults)
        if arrays is not None:
            return arrays, len(lines)
    if isinstance(source, tuple):
        exprs, text = source
    else:
        exprs, text = literal_rows(ctx, lines) if lines is not None else query_rows(ctx, node)
    check_count(len(exprs), len(columns))
    values = {**defaults, **{column.column_id: expr for column, expr in zip(columns, exprs, strict=True)}}
    items = [f"{assign(values[column.column_id], column, full)} AS c{column.column_id}" for column in stored]
    fetched = ctx.env.fetch(query.limited(ctx, node, f"SELECT {', '.join(items) or '1 AS none'}{text}"))
    return {column.column_id: fetched.column(i) for i, column in enumerate(stored)}, fetched.num_rows


def completed(ctx: Context, database: Database, entry: TableEntry, arrays: dict[int, Any], count: int) -> pa.Table:
    """Rows with identity, rowversion and computed columns, in the table's Arrow schema.

    :param arrays: the others by column id
    """
    for column in entry.table.columns:
        if column.column_id in arrays or column.computed is not None:
            continue
        if column.type.name == "rowversion":
            arrays[column.column_id] = pa.array(database.new_rowversions(count), pa.binary())
        else:
            arrays[column.column_id] = pa.array(database.identities(entry, count)).cast(column.type.arrow)
    return computed(ctx, entry.table, arrays, count)


def computed(ctx: Context, table: TableDef, arrays: dict[int, Any], count: int) -> pa.Table:
    """The table's rows from their stored columns; computed ones are worked out."""
    derived = [column for column in table.columns if column.computed is not None]
    if derived:
        stored = [column for column in table.columns if column.computed is None]
        staged = pa.Table.from_arrays([arrays[c.column_id] for c in stored], [f"c{c.column_id}" for c in stored])
        exprs = [compile_computed(ctx, column.computed or "", stored) for column in derived]
        items = ", ".join(f"{expr.to(c.type)} AS c{c.column_id}" for expr, c in zip(exprs, derived, strict=True))
        with ctx.env.staged(_STAGED, staged):
            values = ctx.env.fetch(f"SELECT {items} FROM {_STAGED}")
        for position, column in enumerate(derived):
            arrays[column.column_id] = values.column(position)
    columns = [_typed(arrays[c.column_id], c.type.arrow) for c in table.columns]
    return pa.Table.from_arrays(columns, schema=table.arrow_schema)


def _typed(values: Any, type_: pa.DataType) -> Any:
    return values if values.type == type_ else values.cast(type_)


def compile_computed(ctx: Context, text: str, columns: list[ColumnDef]) -> Expr:
    """A computed column's expression over the stored columns, by their DuckDB names."""
    source = Source("", [(c.name, Expr(f"c{c.column_id}", c.type, c.nullable)) for c in columns])
    return scalar(ctx, Scope([source]), parse(f"SELECT {text}").expressions[0])


def _reads(node: exp.Expr) -> bool:
    """Whether an UPDATE or DELETE reads columns, which takes the right to SELECT (docs: UPDATE, DELETE, OUTPUT)."""
    if any(node.args.get(part) for part in ("where", "from_", "with_", "returning")):
        return True
    values = (item.expression for item in node.expressions if isinstance(item, exp.EQ))
    columns = (column for value in values for column in value.find_all(exp.Column))
    return any(column.name.upper() != "DEFAULT" or column.args.get("table") for column in columns)


def _modified(ctx: Context, node: exp.Expr, right: str) -> tuple[Scope, str, Relation, str]:
    """The scope of an UPDATE or DELETE, its FROM text, the relation it writes to and that relation's alias.

    :param right: what it needs on that relation if it reads nothing of it
    """
    name = node.this
    ctx.right = "SELECT" if _reads(node) else right
    wanted = ctx.target = fold(name.alias_or_name)
    source = node.args["from_"].this if node.args.get("from_") else name
    scope = Scope()
    query.declare_ctes(ctx, scope, node)
    clause = from_clause(ctx, scope, source, [], node.args.get("where"), Bounds())
    for alias, label in clause.labels.items():
        if fold(label) == wanted:
            return scope, clause.sql, clause.relations[alias], alias
    parts = table_parts(name)
    named = [alias for alias, each in clause.relations.items() if each.hidden and fold(each.name) == fold(parts[2])]
    if len(named) == 1:
        return scope, clause.sql, clause.relations[named[0]], named[0]
    if len(named) > 1:
        raise SqlError.of(8154, name.name)
    # docs (UPDATE): a target that FROM does not name is joined to it
    scope = Scope()
    query.declare_ctes(ctx, scope, node)
    clause = from_clause(ctx, scope, name, [exp.Join(this=source)], node.args.get("where"), Bounds())
    return scope, clause.sql, *next((clause.relations[alias], alias) for alias in clause.relations)


def _affected(
    ctx: Context, scope: Scope, node: exp.Expr, text: str, relation: Relation, alias: str, more: list[str]
) -> str:
    if not relation.hidden:
        raise unsupported("changing rows of a view or function")
    where = f" WHERE {predicate(ctx, scope, node.args['where'].this)}" if node.args.get("where") else ""
    head = [f"{alias}.{relation.hidden} AS {ROW_ID}"]
    head += [f"{alias}.{physical} AS {physical}" for _, physical in relation.columns]
    once = f"DISTINCT ON ({alias}.{relation.hidden}) " if "JOIN" in text or ", " in text else ""
    return query.limited(ctx, node, f"SELECT {once}{', '.join(head + more)} FROM {text}{where}")


def _affected_schema(table: TableDef, changed: tuple[int, ...] = ()) -> pa.Schema:
    types = {column.column_id: column.type.arrow for column in table.columns}
    names = [(f"c{number}", type_) for number, type_ in types.items()]
    return pa.schema([(ROW_ID, pa.int64()), *names, *((f"a{number}", types[number]) for number in changed)])


def delete(ctx: Context, node: exp.Expr) -> Written:
    """Run a DELETE."""
    only(node, "this", "from_", "where", "returning", "with_", "limit")
    scope, text, relation, alias = _modified(ctx, node, "DELETE")
    database, entry = ctx.env.target(relation.parts, "DELETE")
    rows = ctx.env.fetch(_affected(ctx, scope, node, text, relation, alias, []), _affected_schema(entry.table))
    before = _images(entry.table, rows, "c")
    masks.check_output(ctx.env, database, entry, node.args.get("returning"))
    count = ctx.env.writer(database, entry).delete(rows.column(ROW_ID), before)
    return Written(count, _output(ctx, node, entry.table, before, None))


def update(ctx: Context, node: exp.Expr) -> Written:
    """Run an UPDATE: all new values are worked out from the old rows before any is written."""
    only(node, "this", "expressions", "from_", "where", "returning", "with_", "limit")
    scope, text, relation, alias = _modified(ctx, node, "UPDATE")
    database, entry = ctx.env.target(relation.parts, "UPDATE")
    table = entry.table
    full = f"{database.name}.{table.schema}.{table.name}"
    sets: dict[int, str] = {}
    for item in node.expressions:
        if not isinstance(item, exp.EQ) or not isinstance(item.this, exp.Column):
            raise unsupported("this form of SET in an UPDATE")
        column = _column(table, item.this.name)
        _check_updated(column, table)
        value = item.expression
        is_default = isinstance(value, exp.Column) and value.name.upper() == "DEFAULT" and not value.args.get("table")
        expr = default_of(ctx, column) if is_default or isinstance(value, exp.Var) else scalar(ctx, scope, value)
        sets[column.column_id] = assign(expr, column, full)
        if masks.uses(ctx, expr.sql):
            raise unsupported("an UPDATE that copies masked columns")
    masks.check_output(ctx.env, database, entry, node.args.get("returning"))
    more = [f"{sql} AS a{column_id}" for column_id, sql in sets.items()]
    rows = ctx.env.fetch(_affected(ctx, scope, node, text, relation, alias, more), _affected_schema(table, tuple(sets)))
    before = _images(table, rows, "c")
    arrays: dict[int, Any] = {}
    for column in table.columns:
        prefix = "a" if column.column_id in sets else "c"
        arrays[column.column_id] = rows.column(f"{prefix}{column.column_id}")
        if column.type.name == "rowversion":
            arrays[column.column_id] = pa.array(database.new_rowversions(rows.num_rows), pa.binary())
    after = computed(ctx, table, arrays, rows.num_rows)
    changed = {
        c.name.casefold()
        for c in table.columns
        if c.column_id in sets or c.computed is not None or c.type.name == "rowversion"
    }
    count = ctx.env.writer(database, entry).update(rows.column(ROW_ID), before, after, changed)
    return Written(count, _output(ctx, node, table, before, after))


def _check_updated(column: ColumnDef, table: TableDef) -> None:
    if column.identity:
        raise SqlError.of(8102, column.name)
    if column.computed is not None:
        message = _COMPUTED.format(column.name)
        raise SqlError(271, message)
    if column.type.name == "rowversion":
        raise SqlError.of(272)


def _images(table: TableDef, rows: pa.Table, prefix: str) -> pa.Table:
    arrays = [_typed(rows.column(f"{prefix}{c.column_id}"), c.type.arrow) for c in table.columns]
    return pa.Table.from_arrays(arrays, schema=table.arrow_schema)


def _output(
    ctx: Context,
    node: exp.Expr,
    table: TableDef,
    before: pa.Table | None,
    after: pa.Table | None,
) -> tuple[list[tuple[str, Expr]], pa.Table] | None:
    clause = node.args.get("returning")
    if clause is None:
        return None
    only(clause, "expressions", "into")
    if clause.find(exp.Query) is not None:
        raise unsupported("a query in OUTPUT")
    scope, arrays, names = Scope(), [], []
    for label, prefix, rows in (("deleted", "d", before), ("inserted", "i", after)):
        if rows is not None:
            scope.sources.append(
                Source(label, [(c.name, Expr(f"{prefix}{c.column_id}", c.type, c.nullable)) for c in table.columns])
            )
            arrays += rows.columns
            names += [f"{prefix}{c.column_id}" for c in table.columns]
    columns = query.projections(ctx, scope, clause)
    with ctx.env.staged(_STAGED, pa.Table.from_arrays(arrays, names)):
        items = ", ".join(f"{expr.to(expr.type)} AS k{i}" for i, (_, expr) in enumerate(columns, 1))
        found = ctx.env.fetch(f"SELECT {items} FROM {_STAGED}")
    if clause.args.get("into"):
        insert_rows(ctx, clause.args["into"], [expr.type for _, expr in columns], found)
        return None
    return columns, found
