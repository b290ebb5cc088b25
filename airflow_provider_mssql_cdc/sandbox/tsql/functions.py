"""Calls of functions: IIF, ISNULL and the like here, the others by their tables, or by asking the session."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.catalog.functions import system_function
from airflow_provider_mssql_cdc.sandbox.collations import comparing
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import aggregates, arity, operators
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.dates import DATE_FUNCTIONS
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr, null
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Context, Scope
from airflow_provider_mssql_cdc.sandbox.tsql.strings import SCALAR_FUNCTIONS

Compile = Callable[[Context, Scope, Any], Expr]


def call(
    ctx: Context,
    scope: Scope,
    parts: tuple[str, ...],
    nodes: list[exp.Expr],
    scalar: Compile,
    predicate: Callable[[Context, Scope, Any], str],
) -> Expr:
    """Compile a function call.

    :param parts: the name, with its schema and database where given
    :raises SqlError: 174 and the like for the wrong number of arguments, 208 or 4121 for an unknown function with a
        schema
    """
    name = parts[-1].lower()
    arity.check_number(parts, len(nodes))
    if len(parts) == 1:
        ctx.env.instance.version.check_function(name)
        if name in _SPECIAL:
            return _SPECIAL[name](ctx, scope, nodes, scalar, predicate)
        if name in aggregates.AGGREGATES:
            return aggregates.aggregate(ctx, scope, name, nodes, scalar)
        if name in DATE_FUNCTIONS:
            return DATE_FUNCTIONS[name](ctx, scope, nodes, scalar)
    arguments = [scalar(ctx, scope, node) for node in nodes]
    if len(parts) == 1 and name in SCALAR_FUNCTIONS:
        low, high, function = SCALAR_FUNCTIONS[name]
        if not low <= len(arguments) <= high:
            arity.refuse(name, low, high)
        made = function(arguments)
        type_ = comparing.taken_from(made.type, [argument.type for argument in arguments])
        return made if type_ is made.type else dataclasses.replace(made, type=type_)
    found = system_function(ctx.env, parts, arguments)
    if found is not None:
        return found
    if len(parts) > 1:
        shown = ".".join(parts)
        raise SqlError.of(4121, parts[0], shown)
    # whether a server has it is not known here
    raise unsupported(f"the function {name.upper()}")


def _iif(ctx: Context, scope: Scope, nodes: list[Any], scalar: Compile, predicate: Any) -> Expr:
    yes, no = scalar(ctx, scope, nodes[1]), scalar(ctx, scope, nodes[2])
    return operators.choice([(predicate(ctx, scope, nodes[0]), yes)], no, operators.rowless(nodes))


def _coalesce(ctx: Context, scope: Scope, nodes: list[Any], scalar: Compile, predicate: Any) -> Expr:
    values = [scalar(ctx, scope, node) for node in nodes]
    if all(value.untyped for value in values):
        raise SqlError.of(4127)
    target = operators.common_type(*values)
    sql = f"coalesce({', '.join(value.to(target) for value in values)})"
    nullable = all(value.nullable for value in values)
    return Expr(sql, target, nullable, constant=all(value.constant for value in values))


def _isnull(ctx: Context, scope: Scope, nodes: list[Any], scalar: Compile, predicate: Any) -> Expr:
    first, second = (scalar(ctx, scope, node) for node in nodes)
    if first.untyped:
        return second
    sql = f"coalesce({first.sql}, {second.to(first.type)})"  # the type is the first argument's, cut to its length
    nullable = first.nullable and second.nullable
    return Expr(sql, first.type, nullable, constant=first.constant and second.constant)


def _nullif(ctx: Context, scope: Scope, nodes: list[Any], scalar: Compile, predicate: Any) -> Expr:
    first, second = (scalar(ctx, scope, node) for node in nodes)
    equal = operators.compare("=", first, second)
    sql = f"CASE WHEN {equal} THEN NULL ELSE {first.sql} END"
    return Expr(sql, first.type, True, constant=first.constant and second.constant)


def _choose(ctx: Context, scope: Scope, nodes: list[Any], scalar: Compile, predicate: Any) -> Expr:
    index = scalar(ctx, scope, nodes[0])
    values = [scalar(ctx, scope, node) for node in nodes[1:]]
    branches = [(f"{index.sql} = {i}", value) for i, value in enumerate(values, 1)]
    return operators.choice(branches, null(), operators.rowless(nodes))


_SPECIAL: dict[str, Callable[..., Expr]] = {
    "iif": _iif,
    "coalesce": _coalesce,
    "isnull": _isnull,
    "nullif": _nullif,
    "choose": _choose,
}


def window(ctx: Context, scope: Scope, node: exp.Expr, over: str, is_ordered: bool, scalar: Compile) -> Expr:
    """Compile a ranking or aggregate function with its OVER clause."""
    if not isinstance(node, exp.Anonymous):
        raise unsupported("this window function")
    name = node.name.lower()
    arity.check_number((name,), len(node.expressions))
    if name in ("row_number", "rank", "dense_rank", "ntile") and not is_ordered:
        raise SqlError.of(4112, name.upper())
    return aggregates.window(ctx, scope, name, node.expressions, over, scalar)
