"""Common table expressions that refer to themselves."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr
from airflow_provider_mssql_cdc.sandbox.tsql.literals import text
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Bounds, Context, Query, Scope
from airflow_provider_mssql_cdc.sandbox.tsql.typing import INT

_DEPTH = "\0depth"  # no column of a user's can be called so


def refers(node: exp.Expr, name: str) -> bool:
    """Whether a query names a common table expression.

    :param name: in lower case
    """
    return any(fold(table.name) == name and not table.db for table in node.find_all(exp.Table))


def compile_recursive(
    ctx: Context, ctes: dict[str, Callable[[Bounds], Query]], name: str, names: list[str], node: exp.Expr
) -> Query:
    """Compile a recursive common table expression: an anchor, UNION ALL, and a part that refers to the whole.

    :param ctes: those before it
    :param names: of its columns, where it lists them
    :raises SqlError: 252 without UNION ALL, 240 where the types of the two parts differ, 205 where the numbers of
        their columns do
    """
    if not isinstance(node, exp.Union) or node.args.get("distinct"):
        raise SqlError.of(252, name)
    anchor, step = node.this, node.expression
    if refers(anchor, name) or not isinstance(step, exp.Select):
        raise unsupported("recursive common table expressions with several recursive parts")
    _check_step(step)
    first = ctx.compile_query(ctx, Scope(ctes=dict(ctes)), anchor, Bounds())
    labels = names or [label for label, _ in first.columns]
    columns = [
        (label, Expr(f"k{i}", INT if expr.untyped else expr.type))
        for i, (label, (_, expr)) in enumerate(zip(labels, first.columns, strict=True), 1)
    ]
    source, listed = f"{ctx.alias()}r", ", ".join(f"k{i}" for i in range(1, len(columns) + 1))
    depth = f"k{len(columns) + 1}"
    so_far = Query(f"SELECT {listed}, {depth} FROM {source}", [*columns, (_DEPTH, Expr(depth, INT))])
    counted = step.copy().select(exp.column(_DEPTH))
    scope = Scope(ctes={**ctes, name: lambda bounds: so_far})
    second = ctx.compile_query(ctx, scope, counted, Bounds())
    if len(second.columns) != len(columns) + 1:
        raise SqlError.of(205)
    if ctx.masks:
        raise unsupported("recursive common table expressions over masked columns")
    for (label, one), (_, other) in zip(columns, second.columns, strict=False):
        if one.type != other.type and not other.untyped:
            raise SqlError.of(240, label, name)
    sql = (
        f"WITH RECURSIVE {source}({listed}, {depth}) AS (SELECT *, 0 FROM ({first.sql}) UNION ALL"
        f" SELECT {listed}, {_deeper(ctx, depth)} FROM ({second.sql})) SELECT {listed} FROM {source}"
    )
    return Query(sql, columns)


def _check_step(step: exp.Select) -> None:
    """Refuse what the docs (WITH common_table_expression) do not allow in the recursive part."""
    joins = step.args.get("joins") or []
    parts = [part for part in ("distinct", "group", "having", "limit", "order") if step.args.get(part)]
    if parts or any(join.side for join in joins) or any(True for _ in step.find_all(exp.Star, exp.AggFunc, exp.Window)):
        raise unsupported("what the recursive part of this common table expression has")


def _deeper(ctx: Context, depth: str) -> str:
    most = ctx.most_recursions
    if not most:
        return f"{depth} + 1"
    message = f"The statement terminated. The maximum recursion {most} has been exhausted before statement completion."
    return f"CASE WHEN {depth} >= {most} THEN t_error(530, {text(message)}) ELSE {depth} + 1 END"
