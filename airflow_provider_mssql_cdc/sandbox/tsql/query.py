"""SELECT statements, set operations and common table expressions, compiled to DuckDB."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import masks, operators, recursion
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.direct import Parts, direct
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr
from airflow_provider_mssql_cdc.sandbox.tsql.expressions import ordered, predicate, scalar
from airflow_provider_mssql_cdc.sandbox.tsql.ranges import conjuncts
from airflow_provider_mssql_cdc.sandbox.tsql.relation import Relation
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Bounds, Context, Query, Scope, only
from airflow_provider_mssql_cdc.sandbox.tsql.sources import FromClause, from_clause

_SELECT_PARTS = (
    "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct", "with_",
    "options",
)  # fmt: skip
_HARMLESS_OPTIONS = ("RECOMPILE", "MAXDOP", "LOOP JOIN", "HASH JOIN", "MERGE JOIN", "FAST", "KEEP PLAN", "ORDER GROUP")


def compile_query(ctx: Context, scope: Scope, node: exp.Expr, bounds: Bounds | None = None) -> Query:
    """Compile a SELECT or a set operation; ``scope`` is empty but for its parent and its CTEs."""
    wanted = bounds or Bounds()
    if isinstance(node, exp.Subquery) and not node.alias:
        only(node, "this")
        return compile_query(ctx, scope, node.this, wanted)
    declare_ctes(ctx, scope, node)
    if isinstance(node, exp.SetOperation):
        return _set_operation(ctx, scope, node, wanted)
    if isinstance(node, exp.Select):
        return _select(ctx, scope, node, wanted)
    raise unsupported(f"{node.key.upper()} as a query")


def compile_result(ctx: Context, scope: Scope, node: exp.Expr) -> Query:
    """Compile a query whose rows are handed out, to a client, a variable or a table: as the session may see them."""
    return masks.masked(ctx, compile_query(ctx, scope, node))


def declare_ctes(ctx: Context, scope: Scope, node: exp.Expr) -> None:
    clause = node.args.get("with_")
    if clause is None:
        return
    for cte in clause.expressions:
        name = fold(cte.alias)
        seen = dict(scope.ctes)

        def compiled(bounds: Bounds, cte: Any = cte, seen: Any = seen, name: str = name) -> Query:
            names = [column.name for column in cte.args["alias"].args.get("columns") or []]
            if recursion.refers(cte.this, name):
                query = recursion.compile_recursive(ctx, seen, name, names, cte.this)
            else:
                inner = Scope(ctes=dict(seen), parent=None, written=ctx.target == name)
                query = compile_query(ctx, inner, cte.this, bounds)
            if names and len(names) != len(query.columns):
                raise SqlError.of(8158, cte.alias)
            if names:
                query.columns = [(label, expr) for label, (_, expr) in zip(names, query.columns, strict=True)]
            return query

        scope.ctes = {**scope.ctes, name: compiled}


def _pushed(node: exp.Expr, bounds: Bounds) -> Bounds:
    """The consumer's ranges by source column; none where the query is more than a filtered projection."""
    plain = not any(node.args.get(part) for part in ("group", "having", "limit", "offset", "distinct"))
    if not bounds.ranges or not plain or list(node.find_all(exp.Window)):
        return Bounds()
    result = dict(bounds.ranges) if any(isinstance(item, exp.Star) for item in node.expressions) else {}
    for item in node.expressions:
        column = item.this if isinstance(item, exp.Alias) else item
        if isinstance(column, exp.Column) and item.alias_or_name.lower() in bounds.ranges:
            result[column.name.lower()] = bounds.ranges[item.alias_or_name.lower()]
    return Bounds(result)


def _select(ctx: Context, scope: Scope, node: exp.Expr, bounds: Bounds) -> Query:
    only(node, *_SELECT_PARTS)
    for option in node.args.get("options") or []:
        if option.name.upper() == "MAXRECURSION" and option.expression is not None:
            ctx.most_recursions = int(option.expression.name)
        elif not option.name.upper().startswith(_HARMLESS_OPTIONS):
            raise unsupported(f"OPTION ({option.name})")
    clause = FromClause("")
    if node.args.get("from_"):
        joins, where_clause = node.args.get("joins") or [], node.args.get("where")
        clause = from_clause(ctx, scope, node.args["from_"].this, joins, where_clause, _pushed(node, bounds))
    conditions = conjuncts(node.args["where"].this) if node.args.get("where") else []
    where = [(condition, predicate(ctx, scope, condition)) for condition in conditions]
    if len(clause.relations) == 1:
        ((alias, relation),) = clause.relations.items()
        if relation.narrow is not None:
            for condition, text in where:
                relation.narrow(alias, condition, text)
    group = _group(ctx, scope, node.args.get("group"))
    columns = projections(ctx, scope, node)
    having = predicate(ctx, scope, node.args["having"].this) if node.args.get("having") else ""
    sorting = _order(ctx, scope, node, columns)
    order = ", ".join(ordered(expr, item) for expr, item in sorting)
    limit, offset = _limit(ctx, node)
    limits = bool(order) or limit is not None
    mixes = limits and bool(ctx.env.mixing)
    head = ", ".join(f"{expr.output} AS k{i}" for i, (_, expr) in enumerate(columns, 1))
    base = None
    if scope.written:
        alias, base = _base(node, clause, columns)
        head += "".join(f", {alias}.{name} AS {name}" for name in (base.hidden, *(name for _, name in base.columns)))
    if mixes and not node.args.get("distinct"):
        head += "".join(f", {expr.output} AS o{i}" for i, (expr, _) in enumerate(sorting, 1))
    sql = f"SELECT {head}" + (f" FROM {clause.sql}" if clause.sql else "")
    sql += f" WHERE {' AND '.join(text for _, text in where)}" if where else ""
    sql += f" GROUP BY {group}" if group else ""
    sql += f" HAVING {having}" if having else ""
    if node.args.get("distinct"):
        if node.args["distinct"].args.get("on"):
            raise unsupported("DISTINCT ON")
        sql = _distinct(sql, columns)
        if order:
            order = _order_by_output(node, columns)
    if mixes:
        sql, order = _mixed(ctx, sql, order, columns, [] if node.args.get("distinct") else sorting)
    sql += (f" ORDER BY {order}" if order else "") + _limited(limit, offset)
    rows = None
    if not (group or having or node.args.get("distinct") or scope.written):
        ascending = [expr for expr, item in sorting if not item.args.get("desc")]
        if len(ascending) == len(sorting) and not (mixes and not _is_total(clause, ascending)):
            rows = direct(ctx, scope, node, Parts(clause, where, columns, ascending, limit, offset))
    return Query(sql, columns, rows, base, bool(sorting))


def _mixed(
    ctx: Context, sql: str, order: str, columns: list[tuple[str, Expr]], sorting: list[tuple[Expr, exp.Expr]]
) -> tuple[str, str]:
    """Text and order of a query whose order leaves no choice any more: where it does, any is as good.

    :param sorting: what the query sorts by, in its columns o1, o2 and so on; within the query itself DuckDB's ORDER BY
        takes no hash of an alias that stands for an aggregate, or for what may raise
    """
    keys = [(dataclasses.replace(expr, sql=f"o{i}"), item) for i, (expr, item) in enumerate(sorting, 1)]
    order = ", ".join(ordered(key, item) for key, item in keys) or order
    names = [str(ctx.env.mixing), *(f"k{i}" for i in range(1, len(columns) + 1))]
    left_out = f" EXCLUDE ({', '.join(key.sql for key, _ in keys)})" if keys else ""
    return f"SELECT *{left_out} FROM ({sql})", ", ".join(filter(None, (order, f"hash({', '.join(names)})")))


def _is_total(clause: FromClause, order: list[Expr]) -> bool:
    """Whether no two rows are equal in what they are sorted by: the whole key of what is read."""
    alias, relation = next(iter(clause.relations.items()), ("", None))
    key = {f"{alias}.{name}" for name in relation.rows.key} if relation is not None and relation.rows else set()
    numbers = {text for expr in order if expr.numbering for part in expr.numbering for text in part}
    return bool(key) and key <= {expr.sql for expr in order} | numbers


def _base(node: exp.Expr, clause: FromClause, columns: list[tuple[str, Expr]]) -> tuple[str, Relation]:
    """The one table whose rows a written query shows, and its alias."""
    alias, relation = next(iter(clause.relations.items()), ("", None))
    stored = {column.name.lower(): f"{alias}.{name}" for column, name in relation.columns} if relation else {}
    grouped = any(node.args.get(part) for part in ("group", "having", "distinct", "joins"))
    if relation is None or not relation.hidden or grouped:
        raise unsupported("changing rows of a query other than of a single table")
    if any(stored.get(name.lower(), expr.sql) != expr.sql for name, expr in columns):
        raise unsupported("changing rows of a query that gives a column's name to something else")
    return alias, relation


def _distinct(sql: str, columns: list[tuple[str, Expr]]) -> str:
    keys = [operators.key(f"k{i}", expr.type) for i, (_, expr) in enumerate(columns, 1)]
    return f"SELECT DISTINCT ON ({', '.join(keys)}) * FROM ({sql})"


def _group(ctx: Context, scope: Scope, node: exp.Expr | None) -> str:
    if node is None:
        return ""
    only(node, "expressions")
    keys, names = [], {}
    for item in node.expressions:
        expr = scalar(ctx, scope, item)
        if expr.constant:
            raise SqlError.of(164)
        key = operators.key(expr.sql, expr.type)
        keys.append(key)
        if key != expr.sql:
            names[expr.sql] = f"any_value({expr.sql})"  # values equal under the collation: one stands for all
    scope.groups = names
    return ", ".join(keys)


def projections(ctx: Context, scope: Scope, node: exp.Expr) -> list[tuple[str, Expr]]:
    columns: list[tuple[str, Expr]] = []
    for item in node.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            wanted = fold(item.args["table"].name) if item.args.get("table") else ""
            sources = [source for source in scope.sources if not wanted or fold(source.alias) == wanted]
            if not sources:
                raise SqlError(263 if not wanted else 107, "Must specify table to select from.")
            columns += [column for source in sources for column in source.columns]
        elif isinstance(item, exp.Alias):
            columns.append((item.alias, scalar(ctx, scope, item.this)))
        elif isinstance(item, exp.EQ) and isinstance(item.this, exp.Parameter):
            raise SqlError.of(141)
        else:
            expr = scalar(ctx, scope, item)
            columns.append((item.name if isinstance(item, exp.Column) else "", expr))
    return columns


def _order(ctx: Context, scope: Scope, node: exp.Expr, columns: list[tuple[str, Expr]]) -> list[tuple[Expr, exp.Expr]]:
    clause = node.args.get("order")
    items = clause.expressions if clause is not None else []
    return [(_order_item(ctx, scope, item, columns), item) for item in items]


def _order_item(ctx: Context, scope: Scope, item: exp.Expr, columns: list[tuple[str, Expr]]) -> Expr:
    target = item.this
    if isinstance(target, exp.Literal) and not target.args["is_string"]:
        position = int(target.name)
        if not 1 <= position <= len(columns):
            raise SqlError.of(108, position)
        return columns[position - 1][1]
    if isinstance(target, exp.Column) and not target.args.get("table"):
        named = [expr for name, expr in columns if fold(name) == fold(target.name)]
        if named and len({expr.sql for expr in named}) > 1:
            raise SqlError.of(209, target.name)
        if named:
            return named[0]
    return scalar(ctx, scope, target)


def _order_by_output(node: exp.Expr, columns: list[tuple[str, Expr]]) -> str:
    """ORDER BY of a DISTINCT query or a set operation: only its output columns may be named."""
    parts = []
    for item in node.args["order"].expressions:
        name = fold(item.this.name)
        if isinstance(item.this, exp.Literal):
            index = int(name)
        else:
            matches = [i for i, (label, _) in enumerate(columns, 1) if fold(label) == name]
            if not matches or not isinstance(item.this, exp.Column):
                raise SqlError.of(145)
            index = matches[0]
        parts.append(ordered(dataclasses.replace(columns[index - 1][1], sql=f"k{index}"), item))
    return ", ".join(parts)


def _limit(ctx: Context, node: exp.Expr) -> tuple[int | None, int]:
    """How many rows are wanted, None for all, and how many before them are not."""
    limit, offset = node.args.get("limit"), node.args.get("offset")
    most = None
    if isinstance(limit, exp.Limit | exp.Fetch):
        options = limit.args.get("limit_options")
        amount = limit.expression if isinstance(limit, exp.Limit) else limit.args.get("count")
        most = _rows(ctx, amount)
        if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
            if most != 100 or options.args.get("with_ties"):
                raise unsupported("TOP with PERCENT below 100, or WITH TIES")
            most = None
    if offset is not None and not node.args.get("order"):
        raise SqlError.of(102, "OFFSET")
    return most, _rows(ctx, offset.expression) if offset is not None else 0


def _limited(limit: int | None, offset: int) -> str:
    return (f" LIMIT {limit}" if limit is not None else "") + (f" OFFSET {offset}" if offset else "")


def limited(ctx: Context, node: exp.Expr, sql: str) -> str:
    """The rows that a writing statement's TOP leaves."""
    return f"SELECT * FROM ({sql} LIMIT {_rows(ctx, node.args['limit'])})" if node.args.get("limit") else sql


def _rows(ctx: Context, node: Any) -> int:
    value = ctx.value(scalar(ctx, Scope(), node), "TOP or OFFSET")
    if not isinstance(value, int) or value < 0:
        raise SqlError.of(1060)
    return value


def _set_operation(ctx: Context, scope: Scope, node: exp.Expr, bounds: Bounds) -> Query:
    only(node, "this", "expression", "distinct", "order", "limit", "offset", "with_", "options")
    everything = isinstance(node, exp.Union) and not node.args.get("distinct")
    sides = [
        compile_query(ctx, Scope(parent=scope.parent, ctes=scope.ctes), part, bounds if everything else None)
        for part in _parts(node, everything)
    ]
    if len({len(side.columns) for side in sides}) > 1:
        raise SqlError.of(205)
    columns, casts = [], []
    for (name, first), *others in zip(*(side.columns for side in sides), strict=True):
        exprs = [first, *(expr for _, expr in others)]
        # two at a time, from the left: each pair takes its common type before the next query joins it
        types = list(itertools.accumulate(exprs[1:], _common, initial=first))
        wide = types[-1]
        columns.append((name, dataclasses.replace(wide, nullable=any(expr.nullable for expr in exprs))))
        casts.append([[each.type for each in types[max(i, 1) :] if not each.untyped] for i in range(len(exprs))])
    texts = []
    for place, side in enumerate(sides):
        alias, items = ctx.alias(), []
        for i, (_, expr) in enumerate(side.columns, 1):
            expr = dataclasses.replace(expr, sql=f"{alias}.k{i}")
            for type_ in casts[i - 1][place]:
                expr = Expr(expr.to(type_), type_)
            items.append(f"{expr.sql} AS k{i}")
        texts.append(f"SELECT {', '.join(items)} FROM ({side.sql}) AS {alias}")
    sql = " UNION ALL ".join(texts)
    if not everything:
        sql = _combine(node, texts, columns)
    order = _order_by_output(node, columns) if node.args.get("order") else ""
    sql = f"SELECT * FROM ({sql})" + (f" ORDER BY {order}" if order else "") + _limited(*_limit(ctx, node))
    shown = [(name, dataclasses.replace(expr, sql=f"k{i}")) for i, (name, expr) in enumerate(columns, 1)]
    return Query(sql, shown, sorted=bool(order), masks=masks.combined(ctx, sides))


def _parts(node: exp.Expr, everything: bool) -> list[exp.Expr]:
    """What a set operation combines: a chain of UNIONs as one list, since DuckDB pays dearly for a deep one."""
    parts, left = [node.expression], node.this
    while isinstance(node, exp.Union) and isinstance(left, exp.Union) and not (everything and left.args["distinct"]):
        only(left, "this", "expression", "distinct")
        parts.append(left.expression)
        left = left.this
    return [left, *reversed(parts)]


def _common(one: Expr, other: Expr) -> Expr:
    return Expr("", operators.common_type(one, other), untyped=one.untyped and other.untyped)


def _combine(node: exp.Expr, texts: list[str], columns: list[tuple[str, Expr]]) -> str:
    if isinstance(node, exp.Union):
        return _distinct(" UNION ALL ".join(texts), columns)
    left, right = texts
    keys = [(operators.key(f"l.k{i}", e.type), operators.key(f"r.k{i}", e.type)) for i, (_, e) in enumerate(columns, 1)]
    same = " AND ".join(f"{one} IS NOT DISTINCT FROM {other}" for one, other in keys)
    word = "NOT " if isinstance(node, exp.Except) else ""
    found = f"SELECT * FROM ({left}) AS l WHERE {word}EXISTS (SELECT 1 FROM ({right}) AS r WHERE {same})"
    return _distinct(found, columns)
