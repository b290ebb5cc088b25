"""Scalar expressions and search conditions, compiled from syntax trees to typed DuckDB SQL."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.catalog.functions import global_variable
from airflow_provider_mssql_cdc.sandbox.collations import comparing
from airflow_provider_mssql_cdc.sandbox.collations.names import named
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import aggregates, functions, operators
from airflow_provider_mssql_cdc.sandbox.tsql.byte_forms import fitted
from airflow_provider_mssql_cdc.sandbox.tsql.convert import convert, unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr, constant, null, number
from airflow_provider_mssql_cdc.sandbox.tsql.literals import text
from airflow_provider_mssql_cdc.sandbox.tsql.parsing import sql_type
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Context, Scope, only
from airflow_provider_mssql_cdc.sandbox.tsql.subqueries import nested
from airflow_provider_mssql_cdc.sandbox.tsql.time_zones import at_time_zone
from airflow_provider_mssql_cdc.sandbox.tsql.typing import (
    display,
    duck,
    kind,
    nvarchar,
    varbinary,
    varchar,
)
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType

_ARITHMETIC: dict[type, str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_BITWISE: dict[type, str] = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "xor"}
_COMPARISON: dict[type, str] = {exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}


def scalar(ctx: Context, scope: Scope, node: exp.Expr | None) -> Expr:
    """Compile a value expression.

    :raises SqlError: what SQL Server raises when it compiles the statement, or 50000 for what is not simulated
    """
    compiled = _scalar(ctx, scope, node)
    if scope.groups is not None and compiled.sql in scope.groups:
        return dataclasses.replace(compiled, sql=scope.groups[compiled.sql])
    return compiled


def _scalar(ctx: Context, scope: Scope, node: exp.Expr | None) -> Expr:
    if node is None:
        raise SqlError.of(102, "")  # the grammar lets it be left out
    if type(node) in _ARITHMETIC:
        left, right = scalar(ctx, scope, node.this), scalar(ctx, scope, node.expression)
        return operators.calculate(_ARITHMETIC[type(node)], left, right)
    if type(node) in _BITWISE:
        left, right = scalar(ctx, scope, node.this), scalar(ctx, scope, node.expression)
        return operators.bitwise(_BITWISE[type(node)], left, right)
    handler = _SCALARS.get(type(node))
    if handler is not None:
        return handler(ctx, scope, node)
    if isinstance(node, (exp.Predicate, exp.Connector, exp.Not)):
        raise SqlError.of(102, node.sql(dialect="tsql")[:30])
    raise unsupported(f"the expression {node.sql(dialect='tsql')[:100]}")


def _literal(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    if node.args["is_string"]:
        return constant(node.name, varchar(max(1, len(node.name)) if len(node.name) <= 8000 else MAX))
    return number(node.name)


def _national(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    units = len(node.name.encode("utf-16-le")) // 2
    return constant(node.name, nvarchar(max(1, units) if units <= 4000 else MAX))


def _hex(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    digits = node.name
    value = bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits)
    return constant(value, varbinary(max(1, len(value)) if len(value) <= 8000 else MAX))


def _column(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    if node.name.lower() == "0x" and not node.args.get("table"):
        return constant(b"", varbinary(1))
    if node.args.get("join_mark"):
        raise unsupported("(+) joins")
    return scope.column(node.name, node.args["table"].name if node.args.get("table") else "")


def _parameter(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    if isinstance(node.this, exp.Parameter):
        return global_variable(ctx.env, node.this.name.lower())
    type_, value = ctx.env.variable(node.name)
    return constant(value, type_)


def _negative(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    inner = scalar(ctx, scope, node.this)
    if isinstance(inner.value, (int, float, Decimal)) and not isinstance(inner.value, bool):
        # a decimal is turned round without arithmetic, which would cut it to 28 digits
        value = inner.value.copy_negate() if isinstance(inner.value, Decimal) else -inner.value
        return dataclasses.replace(constant(value, inner.type), literal=inner.literal)
    if kind(inner.type) not in ("int", "dec", "float"):
        raise SqlError.of(8117, inner.type.name, "minus")
    return Expr(f"CAST(-({inner.sql}) AS {duck(inner.type)})", inner.type, inner.nullable, constant=inner.constant)


def _bitwise_not(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    inner = scalar(ctx, scope, node.this)
    if kind(inner.type) == "bit":
        return Expr(f"(NOT {inner.sql})", inner.type, inner.nullable, constant=inner.constant)
    if inner.type.name == "tinyint" or kind(inner.type) != "int":
        raise unsupported(f"~ of {inner.type.name}")
    return Expr(f"(~{inner.sql})", inner.type, inner.nullable, constant=inner.constant)


def _paren(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    return scalar(ctx, scope, node.this)


def _cast(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    only(node, "this", "to", "safe", "action")
    target, source = sql_type(node.args["to"], 30), scalar(ctx, scope, node.this)
    if node.args.get("action"):
        return _parsed(source, target, isinstance(node, exp.TryCast))
    return _converted(source, target, 0, isinstance(node, exp.TryCast))


def _parsed(source: Expr, target: SqlType, safe: bool) -> Expr:
    """PARSE of a text that CAST reads too; what else PARSE reads depends on the culture."""
    if kind(source.type) != "str" or kind(target) not in ("int", "dec", "float", "time"):
        raise unsupported(f"PARSE as {target.name} of anything but a text")
    message = text("not supported by the sandbox: PARSE of a text that CAST does not read")
    value = f"coalesce({convert(source.sql, source.type, target, safe=True)}, t_error(50000, {message}))"
    sql = f"CASE WHEN {source.sql} IS NOT NULL THEN {value} END"
    return Expr(sql, target, source.nullable or safe, constant=source.constant)


def _convert(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    only(node, "this", "expression", "style", "safe")
    style = node.args.get("style")
    number = ctx.value(_style(scalar(ctx, scope, style)), "a CONVERT style") if style is not None else 0
    source = scalar(ctx, scope, node.args["expression"])
    return _converted(source, sql_type(node.this, 30), int(number or 0), bool(node.args.get("safe")))


def _style(expr: Expr) -> Expr:
    if not expr.untyped and kind(expr.type) not in ("int", "bit", "dec", "float"):
        raise SqlError.of(8116, display(expr.type), 3, "convert")
    return expr


def _converted(source: Expr, target: Any, style: int, safe: bool) -> Expr:
    if source.untyped:
        return constant(None, target)
    if isinstance(source.value, bytes) and kind(target) == "bin":
        return constant(fitted(source.value, target), target)
    target = comparing.taken_from(target, [source.type])
    sql = convert(source.sql, source.type, target, style=style, safe=safe)
    return Expr(sql, target, source.nullable or safe, constant=source.constant)


def _case(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    subject = scalar(ctx, scope, node.this) if node.this else None
    branches = []
    for branch in node.args["ifs"]:
        if subject is None:
            condition = predicate(ctx, scope, branch.this)
        else:
            condition = operators.compare("=", subject, scalar(ctx, scope, branch.this))
        branches.append((condition, scalar(ctx, scope, branch.args["true"])))
    default = node.args.get("default")
    otherwise = scalar(ctx, scope, default) if default is not None else null()
    return operators.choice(branches, otherwise, operators.rowless([node]))


def _subquery(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    only(node, "this")
    inner = nested(ctx, scope, node.this)
    if len(inner.columns) != 1:
        raise SqlError.of(116)
    _, column = inner.columns[0]
    return Expr(f"({inner.sql})", column.type, True, constant=not inner.correlated)


def _function(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    only(node, "this", "expressions")
    if node.name.lower() == "string_agg" and len(node.expressions) == 2:
        return _string_agg(ctx, scope, node, [])
    return functions.call(ctx, scope, (node.name,), node.expressions, scalar, predicate)


def _dotted(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    parts: list[str] = []
    walk: exp.Expr = node
    while isinstance(walk, exp.Dot):
        last = walk.expression
        if isinstance(last, exp.Anonymous):
            call = last
        else:
            parts.insert(0, last.name)
        walk = walk.this
    parts.insert(0, walk.name)
    if not isinstance(node.expression, exp.Anonymous):
        raise SqlError.of(4104, node.sql(dialect="tsql"))
    return functions.call(ctx, scope, (*parts, call.name), call.expressions, scalar, predicate)


def _window(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    only(node, "this", "partition_by", "order", "spec", "over")
    partition = [operators.group_key(scalar(ctx, scope, part)) for part in node.args.get("partition_by") or []]
    order = node.args.get("order")
    ordering = [ordered(scalar(ctx, scope, item.this), item) for item in order.expressions] if order else []
    clauses = [f"PARTITION BY {', '.join(partition)}"] if partition else []
    clauses += [f"ORDER BY {', '.join(ordering)}"] if ordering else []
    if node.args.get("spec"):
        spec = node.args["spec"]
        if spec.args.get("exclude"):
            raise unsupported("EXCLUDE in a window frame")
        edges = [
            f"{spec.args[edge] if isinstance(spec.args[edge], str) else number(spec.args[edge].name).sql} "
            f"{spec.args.get(edge + '_side') or ''}"
            for edge in ("start", "end")
            if spec.args.get(edge)
        ]
        clauses.append(
            f"{spec.args['kind']} " + (f"BETWEEN {edges[0]} AND {edges[1]}" if len(edges) == 2 else edges[0])
        )
    compiled = functions.window(ctx, scope, node.this, f"OVER ({' '.join(clauses)})", bool(order), scalar)
    return dataclasses.replace(compiled, numbering=_numbering(ctx, scope, node))


def _numbering(ctx: Context, scope: Scope, node: exp.Expr) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    order = node.args["order"].expressions if node.args.get("order") else []
    if node.this.name.lower() != "row_number" or any(item.args.get("desc") for item in order):
        return None
    within, by = (
        tuple(expr.sql for expr in (scalar(ctx, scope, part) for part in parts) if not expr.constant)
        for parts in (node.args.get("partition_by") or [], [item.this for item in order])
    )
    return within, by


def _within_group(ctx: Context, scope: Scope, node: exp.WithinGroup) -> Expr:
    call = node.this
    if not isinstance(call, exp.Anonymous) or call.name.lower() != "string_agg" or len(call.expressions) != 2:
        raise unsupported("WITHIN GROUP other than of STRING_AGG")
    return _string_agg(ctx, scope, call, node.expression.expressions)


def _string_agg(ctx: Context, scope: Scope, call: exp.Expr, order: list[exp.Expr]) -> Expr:
    ctx.env.instance.version.check_function(call.name)
    groups, scope.groups = scope.groups, None  # an aggregate's argument sees the rows, not the groups
    try:
        value, separator = (scalar(ctx, scope, each) for each in call.expressions)
        items = ", ".join(ordered(scalar(ctx, scope, item.this), item) for item in order)
        if not items and ctx.env.mixing:
            items = f"hash({ctx.env.mixing}, {value.sql})"
    finally:
        scope.groups = groups
    if not separator.untyped:
        separator = constant(ctx.value(separator, "a separator of STRING_AGG"), separator.type)
    return aggregates.string_agg(value, separator, items)


def _at_time_zone(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    zone = ctx.value(scalar(ctx, scope, node.args["zone"]), "a time zone")
    return at_time_zone(scalar(ctx, scope, node.this), None if zone is None else str(zone))


def ordered(expr: Expr, item: exp.Expr) -> str:
    """One item of ORDER BY; NULL sorts lowest."""
    key = operators.sort_key(expr)
    return f"{key} DESC NULLS LAST" if item.args.get("desc") else f"{key} ASC NULLS FIRST"


def _collate(ctx: Context, scope: Scope, node: exp.Expr) -> Expr:
    inner = scalar(ctx, scope, node.this)
    name = node.expression.name
    if kind(inner.type) != "str":
        raise SqlError.of(447, inner.type.name)
    is_default = name.lower() in ("database_default", "catalog_default")
    chosen = comparing.DATABASE.get() if is_default else named(name).name
    type_ = comparing.of_clause(inner.type, chosen)
    if comparing.is_utf8(type_) != comparing.is_utf8(inner.type):
        raise unsupported("COLLATE from one code page to another")
    return dataclasses.replace(inner, type=type_)


_SCALARS: dict[type, Callable[[Context, Scope, Any], Expr]] = {
    exp.Literal: _literal,
    exp.National: _national,
    exp.HexString: _hex,
    exp.Null: lambda ctx, scope, node: null(),
    exp.Column: _column,
    exp.Parameter: _parameter,
    exp.Neg: _negative,
    exp.BitwiseNot: _bitwise_not,
    exp.Paren: _paren,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Convert: _convert,
    exp.Case: _case,
    exp.Subquery: _subquery,
    exp.Anonymous: _function,
    exp.Dot: _dotted,
    exp.Window: _window,
    exp.WithinGroup: _within_group,
    exp.Collate: _collate,
    exp.AtTimeZone: _at_time_zone,
    exp.CurrentTimestamp: lambda ctx, scope, node: functions.call(ctx, scope, ("getdate",), [], scalar, predicate),
    exp.CurrentRole: lambda ctx, scope, node: functions.call(ctx, scope, ("suser_sname",), [], scalar, predicate),
    exp.SessionUser: lambda ctx, scope, node: functions.call(ctx, scope, ("user_name",), [], scalar, predicate),
    exp.CurrentUser: lambda ctx, scope, node: functions.call(ctx, scope, ("user_name",), [], scalar, predicate),
}


def predicate(ctx: Context, scope: Scope, node: exp.Expr) -> str:
    """Compile a search condition to a DuckDB predicate."""
    if type(node) in _COMPARISON:
        return _comparison(ctx, scope, node)
    if isinstance(node, exp.And | exp.Or):
        word = "AND" if isinstance(node, exp.And) else "OR"
        return f"({predicate(ctx, scope, node.this)} {word} {predicate(ctx, scope, node.expression)})"
    if isinstance(node, exp.Not):
        return f"(NOT {predicate(ctx, scope, node.this)})"
    if isinstance(node, exp.Paren):
        return predicate(ctx, scope, node.this)
    if isinstance(node, exp.Is):
        if not isinstance(node.expression, exp.Null):
            raise unsupported("IS other than IS NULL")
        return f"({scalar(ctx, scope, node.this).sql} IS NULL)"
    if isinstance(node, exp.Exists):
        return f"EXISTS ({nested(ctx, scope, node.this).sql})"
    if isinstance(node, exp.In):
        return _in(ctx, scope, node)
    if isinstance(node, exp.Between):
        only(node, "this", "low", "high")
        value, low, high = (scalar(ctx, scope, node.args[part]) for part in ("this", "low", "high"))
        return f"({operators.compare('>=', value, low)} AND {operators.compare('<=', value, high)})"
    escaped = isinstance(node, exp.Escape)
    if isinstance(like := node.this if escaped else node, exp.Like):
        matches = _like(ctx, scope, like, node.expression if escaped else None)
        return f"(NOT {matches})" if like.args.get("negate") else matches
    if isinstance(node, exp.Column | exp.Literal | exp.Anonymous | exp.Parameter | exp.Case | exp.Cast):
        raise SqlError.of(4145)
    raise unsupported(f"the condition {node.sql(dialect='tsql')[:100]}")


def _comparison(ctx: Context, scope: Scope, node: exp.Expr) -> str:
    left = scalar(ctx, scope, node.this)
    operator = _COMPARISON[type(node)]
    if isinstance(node.expression, exp.Any | exp.All):
        word = "ALL" if isinstance(node.expression, exp.All) else "ANY"
        return _against_query(ctx, scope, left, f"{operator} {word}", node.expression.this)
    return operators.compare(operator, left, scalar(ctx, scope, node.expression))


def _against_query(ctx: Context, scope: Scope, value: Expr, operator: str, node: exp.Expr) -> str:
    """A value beside the only column of a subquery."""
    inner = nested(ctx, scope, node)
    if len(inner.columns) != 1:
        raise SqlError.of(116)
    alias = ctx.alias()
    _, column = inner.columns[0]
    is_ordered = not operator.startswith(("=", "<>", "IN"))
    one, other = operators.sides(value, dataclasses.replace(column, sql=f"{alias}.k1"), ordered=is_ordered)
    return f"({one} {operator} (SELECT {other} FROM ({inner.sql}) AS {alias}))"


def _in(ctx: Context, scope: Scope, node: exp.Expr) -> str:
    only(node, "this", "expressions", "query")
    value = scalar(ctx, scope, node.this)
    if node.args.get("query"):
        return _against_query(ctx, scope, value, "IN", node.args["query"].this)
    items = [scalar(ctx, scope, item) for item in node.expressions]
    target = operators.common_type(value, *items)
    if kind(target) in ("int", "str"):
        pairs = [operators.sides(value, item) for item in items]
        if len({one for one, _ in pairs}) == 1:
            return f"({pairs[0][0]} IN ({', '.join(other for _, other in pairs)}))"
    return "(" + " OR ".join(operators.compare("=", value, item) for item in items) + ")"


def _like(ctx: Context, scope: Scope, node: exp.Expr, escape: exp.Expr | None) -> str:
    only(node, "this", "expression", "negate")
    pattern = scalar(ctx, scope, node.expression)
    mark = ctx.value(scalar(ctx, scope, escape), "an ESCAPE character") if escape is not None else None
    value = scalar(ctx, scope, node.this)
    if pattern.constant:
        type_ = pattern.type if kind(pattern.type) == "str" else value.type
        return operators.like(value, ctx.value(pattern, "a LIKE pattern"), mark, type_)
    return operators.like_pattern(value, pattern, mark)
