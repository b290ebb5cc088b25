"""Aggregate and window functions with SQL Server's result types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import operators
from airflow_provider_mssql_cdc.sandbox.tsql.convert import to_money, unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Context, Scope
from airflow_provider_mssql_cdc.sandbox.tsql.typing import (
    BIGINT,
    FLOAT,
    INT,
    decimal,
    display,
    duck,
    is_unicode,
    kind,
    nvarchar,
)
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType

AGGREGATES = frozenset({"count", "count_big", "sum", "avg", "min", "max"})
_RANKINGS = frozenset({"row_number", "rank", "dense_rank"})
_OFFSETS = frozenset({"lag", "lead", "first_value", "last_value"})


def aggregate(
    ctx: Context, scope: Scope, name: str, nodes: list[exp.Expr], scalar: Callable[..., Expr], over: str = ""
) -> Expr:
    """Compile an aggregate; with ``over`` as a window function."""
    if len(nodes) != 1:
        raise SqlError.of(174, name, 1)
    node, distinct = nodes[0], ""
    if isinstance(node, exp.Distinct):
        if len(node.expressions) != 1:
            raise unsupported("DISTINCT over several expressions")
        node, distinct = node.expressions[0], "DISTINCT "
    if isinstance(node, exp.Star):
        if name not in ("count", "count_big"):
            raise SqlError.of(102, "*")
        return _count(name, f"count(*) {over}")
    groups, scope.groups = scope.groups, None  # an aggregate's argument sees the rows, not the groups
    try:
        value = scalar(ctx, scope, node)
    finally:
        scope.groups = groups
    if value.untyped:
        raise SqlError.of(8117, "NULL", name)
    if name in ("count", "count_big"):
        counted = operators.group_key(value) if distinct else value.sql
        return _count(name, f"count({distinct}{counted}) {over}")
    if name in ("min", "max"):
        return _extreme(name, value, over)
    return _total(name, value, distinct, over)


def string_agg(value: Expr, separator: Expr, order: str) -> Expr:
    """STRING_AGG; ``order`` is the text of WITHIN GROUP (docs: what is no string becomes nvarchar(4000))."""
    if kind(separator.type) != "str":
        raise SqlError.of(8117, display(separator.type), "string_agg")
    type_ = nvarchar(4000)
    if kind(value.type) == "str":
        longest = 4000 if is_unicode(value.type) else 8000
        name = "nvarchar" if is_unicode(value.type) else "varchar"
        type_ = SqlType(name, MAX if value.type.length == MAX else longest, collation=value.type.collation)
    return Expr(f"string_agg({value.to(type_)}, {separator.sql}{order and f' ORDER BY {order}'})", type_, True)


def _count(name: str, sql: str) -> Expr:
    type_ = INT if name == "count" else BIGINT
    return Expr(f"CAST({sql.strip()} AS {duck(type_)})", type_, False)


def _extreme(name: str, value: Expr, over: str) -> Expr:
    if kind(value.type) == "bit":
        raise SqlError.of(8117, "bit", name)
    if kind(value.type) in ("str", "guid") or value.type.name == "datetimeoffset":
        # ties under the collation are broken by the value, so that the answer is always the same
        sql = f"arg_{name}({value.sql}, {operators.sort_key(value)}) {over}"
    else:
        sql = f"{name}({value.sql}) {over}"
    return Expr(sql.strip(), value.type, True)


def _total(name: str, value: Expr, distinct: str, over: str) -> Expr:
    family = kind(value.type)
    if family not in ("int", "dec", "float"):
        raise SqlError.of(8117, display(value.type), name)
    result: SqlType
    if family == "int":
        result = BIGINT if value.type == BIGINT else INT
    elif family == "float":
        result = FLOAT
    elif value.type.name == "decimal":
        result = decimal(38, value.type.scale)
    else:
        result = SqlType("money")
    total = f"sum({distinct}{value.sql}) {over}".strip()
    total = f"t_finite({total})" if family == "float" else total
    if name == "sum" and result.name == "money":
        return Expr(to_money(total, result), result, True)
    if name == "sum":
        return Expr(f"CAST({total} AS {duck(result)})", result, True)
    rows = f"count({distinct}{value.sql}) {over}".strip()
    if family == "int":
        return Expr(f"CAST(({total} // {rows}) AS {duck(result)})", result, True)
    if family == "float":
        return Expr(f"({total} / {rows})", result, True)
    scale = max(6, result.scale) if result.name == "decimal" else 4
    shift = 10 ** (scale - value.type.scale) if result.name == "decimal" else 1
    average = decimal(38, scale) if result.name == "decimal" else result
    unscaled = f"(t_unscaled({total}) * {shift}::HUGEINT) // {rows}"
    return Expr(f"CAST(t_scaled({unscaled}, {10**scale}::HUGEINT, {scale}) AS {duck(average)})", average, True)


def window(ctx: Context, scope: Scope, name: str, nodes: list[Any], over: str, scalar: Callable[..., Expr]) -> Expr:
    """Compile a window function."""
    if name in _RANKINGS:
        return Expr(f"{name}() {over}", BIGINT, False)
    if name in ("percent_rank", "cume_dist"):
        return Expr(f"{name}() {over}", FLOAT, False)
    if name == "ntile":
        return Expr(f"ntile({scalar(ctx, scope, nodes[0]).to(BIGINT)}) {over}", BIGINT, False)
    if name in AGGREGATES:
        return aggregate(ctx, scope, name, nodes, scalar, over)
    if name in _OFFSETS:
        arguments = [scalar(ctx, scope, node) for node in nodes]
        value = arguments[0]
        rest = [arguments[1].to(INT)] if len(arguments) > 1 else []
        rest += [arguments[2].to(value.type)] if len(arguments) > 2 else []
        return Expr(f"{name}({', '.join([value.sql, *rest])}) {over}", value.type, True)
    raise unsupported(f"the window function {name.upper()}")
