"""Queries within expressions."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Context, Scope


@dataclass(slots=True)
class Nested:
    """A subquery's compilation, and whether it refers to the query around it."""

    sql: str
    columns: list[tuple[str, Expr]]
    correlated: bool


def nested(ctx: Context, scope: Scope, node: exp.Expr) -> Nested:
    """Compile a subquery inside an expression."""
    inner = Scope(parent=scope)
    compiled = ctx.compile_query(ctx, inner, node)
    # a subquery reads tables: never a constant, unless it has no FROM clause
    reads = inner.correlated or any(True for _ in node.find_all(exp.From))
    return Nested(compiled.sql, compiled.columns, reads)
