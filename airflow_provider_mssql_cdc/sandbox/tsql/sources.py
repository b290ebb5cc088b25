"""FROM clauses: tables, views, functions, derived tables, VALUES and joins."""

from __future__ import annotations

import dataclasses
from typing import Any

from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.protocol import Column, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import masks, operators, relations
from airflow_provider_mssql_cdc.sandbox.tsql.changetable import changetable, is_changetable
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr
from airflow_provider_mssql_cdc.sandbox.tsql.expressions import predicate, scalar
from airflow_provider_mssql_cdc.sandbox.tsql.locked_reads import Wanted
from airflow_provider_mssql_cdc.sandbox.tsql.mask_functions import DEFAULT
from airflow_provider_mssql_cdc.sandbox.tsql.ranges import ranges
from airflow_provider_mssql_cdc.sandbox.tsql.relation import EVERYTHING, Range, Relation, tighter
from airflow_provider_mssql_cdc.sandbox.tsql.results import table
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Bounds, Context, Query, Scope, Source, only

_KNOWN_HINTS = frozenset((
    "nolock", "readuncommitted", "readcommitted", "readcommittedlock", "repeatableread", "serializable", "holdlock",
    "rowlock", "paglock", "tablock", "tablockx", "updlock", "xlock", "nowait", "forceseek", "forcescan", "index",
    "noexpand", "keepidentity", "readpast",
))  # fmt: skip

_ROWS_OF_A_PAGE = 100
"""As ``sys.dm_db_partition_stats`` counts pages."""


def bound_source(relation: Relation, alias: str, name: str) -> Source:
    """A relation's columns under a DuckDB alias."""
    columns = [
        (
            column.name,
            Expr(
                f"{alias}.{physical}", column.type, column.nullable, identity=column.identity, computed=column.computed
            ),
        )
        for column, physical in relation.columns
    ]
    return Source(name, columns)


def table_parts(node: exp.Table) -> tuple[str, str, str]:
    """(database, schema, name) of a table as written; '' where it was left out."""

    def text(part: Any) -> str:
        return part.name if isinstance(part, exp.Expr) else str(part or "")

    return text(node.args.get("catalog")), text(node.args.get("db")), node.name


def _lsn_ranges(ctx: Context, where: exp.Expr | None) -> dict[tuple[str, str], Range]:
    """Ranges that the WHERE clause asks of columns, by (folded qualifier, column in lower case)."""

    def key(column: exp.Column) -> tuple[str, str]:
        return (fold(column.args["table"].name) if column.args.get("table") else "", column.name.lower())

    return {} if where is None else ranges(ctx, where, key)[0]


@dataclasses.dataclass(slots=True)
class FromClause:
    """A compiled FROM clause: DuckDB text, and by DuckDB alias the relations in it and the names they go by.

    :param settled: all that it reads stays the same while the statement runs
    """

    sql: str
    relations: dict[str, Relation] = dataclasses.field(default_factory=dict)
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    settled: bool = True


def from_clause(
    ctx: Context, scope: Scope, source: exp.Expr, joins: list[exp.Join], where: exp.Expr | None, bounds: Bounds
) -> FromClause:
    """Compile what a statement reads, a table or the like and its joins, into ``scope``.

    :param where: the WHERE clause, for the ranges that it asks of LSNs
    :param bounds: ranges that the consumer asks of single source columns, already by source column
    """
    asked = _lsn_ranges(ctx, where.this if where else None)
    outer = any(join.side for join in [*joins, *(source.args.get("joins") or [])])
    single = not joins and not source.args.get("joins")
    clause = FromClause("")

    def wanted(alias: str, *, preserved: bool) -> Bounds:
        if not preserved:
            return Bounds()
        result = {column: pair for (name, column), pair in asked.items() if name == alias or (single and not name)}
        if single:
            for column, pair in bounds.ranges.items():
                result[column] = tighter(result.get(column, EVERYTHING), pair)
        return Bounds(result)

    def item(part: exp.Expr, *, preserved: bool) -> str:
        alias = fold(part.alias_or_name) if not isinstance(part, exp.Paren) else ""
        nested = list(part.args.get("joins") or [])
        text = _item(ctx, scope, part, wanted(alias, preserved=preserved), clause)
        for join in nested:
            text = add(text, join)
        return text

    def add(text: str, join: exp.Expr) -> str:
        only(join, "this", "side", "kind", "on", "hint")
        side, kind_ = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
        if kind_ not in ("", "INNER", "OUTER", "CROSS"):
            raise unsupported(f"{kind_} JOIN")
        before = len(scope.sources)
        if isinstance(join.this, exp.Lateral):
            applied = _applied(ctx, scope, join.this, clause)
            if join.this.args.get("cross_apply"):
                return f"{text} CROSS JOIN {applied}"
            _make_nullable(scope.sources[before:])
            return f"{text} LEFT JOIN {applied} ON TRUE"
        right = item(join.this, preserved=side in ("", "RIGHT") and not outer)
        if side in ("LEFT", "FULL"):
            _make_nullable(scope.sources[before:])
        if side in ("RIGHT", "FULL"):
            _make_nullable(scope.sources[:before])
        if join.args.get("on") is None:
            return f"{text} CROSS JOIN {right}"
        condition = predicate(ctx, scope, join.args["on"])
        return f"{text} {side} JOIN {right} ON {condition}".replace("  ", " ")

    text = item(source, preserved=not any(join.side in ("RIGHT", "FULL") for join in joins))
    for join in joins:
        text = add(text, join)
    clause.sql = text
    return clause


def _applied(ctx: Context, scope: Scope, node: exp.Lateral, clause: FromClause) -> str:
    """The right side of APPLY, which sees what stands on its left."""
    if is_changetable(node.this):
        left = Scope(list(scope.sources), scope.parent, scope.ctes)
        return _changes(ctx, scope, left, node.this, clause)
    if not isinstance(node.this, exp.Subquery) or not node.alias:
        raise unsupported("APPLY other than of a query in parentheses with an alias")
    inner = Scope(parent=scope, ctes=scope.ctes)
    if isinstance(node.this.this, exp.Values):
        return _derived(ctx, scope, node, ctx.alias(), values(ctx, inner, node.this.this), clause)
    return _derived(ctx, scope, node, ctx.alias(), ctx.compile_query(ctx, inner, node.this.this), clause)


def _make_nullable(sources: list[Source]) -> None:
    for source in sources:
        source.columns = [(name, dataclasses.replace(expr, nullable=True)) for name, expr in source.columns]


def _item(ctx: Context, scope: Scope, node: exp.Expr, bounds: Bounds, clause: FromClause) -> str:
    alias = ctx.alias()
    if isinstance(node, exp.Subquery):
        only(node, "this", "alias", "joins")
        if not node.alias:
            raise SqlError.of(102, ")")
        # a derived table does not see the other items of its FROM clause
        inner = ctx.compile_query(ctx, Scope(parent=scope.parent, ctes=scope.ctes), node.this, bounds)
        return _derived(ctx, scope, node, alias, inner, clause)
    if isinstance(node, exp.Values):
        return _derived(ctx, scope, node, alias, values(ctx, scope, node), clause)
    if not isinstance(node, exp.Table):
        raise unsupported(f"{node.key} in FROM")
    only(node, "this", "db", "catalog", "alias", "hints", "joins", "sample")
    if is_changetable(node):
        return _changes(ctx, scope, Scope(parent=scope.parent, ctes=scope.ctes), node, clause)
    hints = _hints(node)
    name = node.alias or node.name
    if isinstance(node.this, exp.Anonymous):
        return _function(ctx, scope, node, alias, clause)
    parts = table_parts(node)
    common = scope.cte(parts[2]) if not parts[1] else None
    if common is not None:
        return _derived(ctx, scope, node, alias, common(bounds), clause)
    bound = bounds.ranges.get("__$start_lsn", bounds.ranges.get("start_lsn", EVERYTHING))
    wanted = None if scope.written else Wanted(node, hints)
    relation = relations.relation(ctx.env, parts, bound, ctx.right, wanted)
    masks.note(ctx, alias, relation.masks)
    if node.args.get("sample"):
        relation = _sampled(ctx, relation, node.args["sample"])
    return _place(scope, node, relation, alias, name, clause)


def _changes(ctx: Context, scope: Scope, seen: Scope, node: exp.Table, clause: FromClause) -> str:
    relation = changetable(ctx, seen, node, scalar)
    return _place(scope, node, relation, ctx.alias(), node.alias, clause)


def _sampled(ctx: Context, relation: Relation, sample: exp.Expr) -> Relation:
    """The rows of some pages of a base table; docs (TABLESAMPLE): of a small table it may be all rows or none."""
    only(sample, "percent", "method", "seed")
    if not relation.hidden or sample.args.get("percent") is None:
        raise unsupported("TABLESAMPLE other than of PERCENT of a table")
    seed = sample.args.get("seed")
    drawn = seed.name if seed is not None else str(ctx.env.mixing)
    chosen = f"hash({relation.hidden} // {_ROWS_OF_A_PAGE}, {drawn}) % 1000000 < {sample.args['percent'].name} * 10000"
    return Relation(
        f"(SELECT * FROM {relation.source} WHERE {chosen})",
        relation.columns,
        parts=relation.parts,
        masks=relation.masks,
    )


def _place(scope: Scope, node: exp.Expr, relation: Relation, alias: str, name: str, clause: FromClause) -> str:
    source = bound_source(relation, alias, name)
    _rename(source, node)
    scope.sources.append(source)
    clause.relations[alias] = relation
    clause.labels[alias] = name
    clause.settled = clause.settled and relation.rows is not None
    return f"{relation.source} AS {alias}"


def _function(ctx: Context, scope: Scope, node: exp.Table, alias: str, clause: FromClause) -> str:
    call = node.this
    arguments = [ctx.value(scalar(ctx, scope, argument), "a function argument") for argument in call.expressions]
    database, schema, _ = table_parts(node)
    relation = relations.table_function(ctx.env, (database, schema, call.name), arguments, ctx.late)
    masks.note(ctx, alias, relation.masks)
    return _place(scope, node, relation, alias, node.alias or call.name, clause)


def _hints(node: exp.Table) -> frozenset[str]:
    names = [hint.name.lower() for group in node.args.get("hints") or [] for hint in group.expressions]
    for name in names:
        if name not in _KNOWN_HINTS:
            raise unsupported(f"the table hint {name}")
    return frozenset(names)


def _rename(source: Source, node: exp.Expr) -> None:
    alias = node.args.get("alias")
    names = [column.name for column in alias.args.get("columns") or []] if alias else []
    if names:
        if len(names) != len(source.columns):
            raise SqlError.of(8158, source.alias)
        source.columns = [(name, expr) for name, (_, expr) in zip(names, source.columns, strict=True)]


def _derived(ctx: Context, scope: Scope, node: exp.Expr, alias: str, inner: Query, clause: FromClause) -> str:
    columns = [
        (
            name,
            dataclasses.replace(
                expr,
                sql=f"{alias}.k{i}",
                constant=False,
                value=Expr("", expr.type).value,
                untyped=False,
                numbering=None,
            ),
        )
        for i, (name, expr) in enumerate(inner.columns, 1)
    ]
    masks.note_output(ctx, alias, inner)
    source = Source(node.alias or node.name, columns)
    _rename(source, node)
    for name, _ in source.columns:
        if not name:
            raise SqlError.of(8155, source.alias)
    scope.sources.append(source)
    if inner.base is not None:
        clause.relations[alias], clause.labels[alias] = inner.base, source.alias
    if inner.direct is None:
        clause.settled = False
        return f"({inner.sql}) AS {alias}"
    named = [(Column(name, expr.type, expr.nullable), f"k{i}") for i, (name, expr) in enumerate(inner.columns, 1)]
    rows = inner.direct
    relation = Relation(ctx.env.later(lambda: table(named, rows.read(EVERYTHING))), named, rows)
    clause.relations[alias] = relation
    return f"{relation.source} AS {alias}"


def values(ctx: Context, scope: Scope, node: exp.Values) -> Query:
    """A VALUES list; each column has the common type of its rows."""
    rows = [[scalar(ctx, scope, value) for value in row.expressions] for row in node.expressions]
    if len({len(row) for row in rows}) != 1:
        raise SqlError.of(10709)
    columns = []
    for position in range(len(rows[0])):
        items = [row[position] for row in rows]
        type_ = operators.common_type(*items)
        columns.append((f"c{position + 1}", Expr("", type_, any(item.nullable for item in items))))
    lines = [
        "(" + ", ".join(item.to(column.type) for item, (_, column) in zip(row, columns, strict=True)) + ")"
        for row in rows
    ]
    names = ", ".join(f"k{i}" for i in range(1, len(columns) + 1))
    uses = (any(masks.uses(ctx, item.sql) for item in column) for column in zip(*rows, strict=True))
    hidden = [DEFAULT if masked else None for masked in uses]
    sql = f"SELECT * FROM (VALUES {', '.join(lines)}) AS v({names})"
    return Query(sql, columns, masks=hidden if any(hidden) else None)
