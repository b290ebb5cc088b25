"""The ranges of ten-byte values, as LSNs are, that conditions ask of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.tsql.expressions import scalar
from airflow_provider_mssql_cdc.sandbox.tsql.relation import EVERYTHING, Range, tighter
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Context, Scope
from airflow_provider_mssql_cdc.sandbox.tsql.typing import kind

K = TypeVar("K")

_BYTES = 10
_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.EQ: exp.EQ,
}


def conjuncts(node: exp.Expr | None) -> list[exp.Expr]:
    """The conditions that AND joins."""
    if node is None:
        return []
    if isinstance(node, exp.And):
        return conjuncts(node.this) + conjuncts(node.expression)
    return conjuncts(node.this) if isinstance(node, exp.Paren) else [node]


def _wider(one: Range, other: Range) -> Range:
    """The least range around both."""
    (low, high), (other_low, other_high) = one, other
    return (
        None if low is None or other_low is None else min(low, other_low),
        None if high is None or other_high is None else max(high, other_high),
    )


def ranges(ctx: Context, condition: exp.Expr, key: Callable[[exp.Column], K | None]) -> tuple[dict[K, Range], bool]:
    """Ranges outside of which a condition is not fulfilled, and whether a single one says no more than they do.

    :param key: what a column goes by in the result; None where nothing is asked of it
    """
    if isinstance(condition, exp.Paren):
        return ranges(ctx, condition.this, key)
    if isinstance(condition, exp.And | exp.Or):
        one, other = (ranges(ctx, part, key)[0] for part in (condition.this, condition.expression))
        if isinstance(condition, exp.Or):
            return {name: _wider(one[name], other[name]) for name in one.keys() & other.keys()}, False
        names = one.keys() | other.keys()
        return {name: tighter(one.get(name, EVERYTHING), other.get(name, EVERYTHING)) for name in names}, False
    found: dict[K, Range] = {}
    edges = list(_edges(condition))
    exact = bool(edges)
    for operator, column, bound in edges:
        name = key(column)
        value = None if name is None else _value(ctx, bound)
        if name is None or value is None:
            exact = False
            continue
        pair, says_all = _range(operator, value)
        found[name] = tighter(found.get(name, EVERYTHING), pair)
        exact = exact and says_all
    return found, exact


def _edges(condition: exp.Expr) -> Iterator[tuple[type[exp.Expr], exp.Column, exp.Expr]]:
    """The comparisons of a column with something that a condition consists of."""
    pairs: list[tuple[type[exp.Expr], Any, Any]] = []
    if isinstance(condition, exp.Between):
        pairs = [
            (exp.GTE, condition.this, condition.args["low"]),
            (exp.LTE, condition.this, condition.args["high"]),
        ]
    elif type(condition) in _FLIPPED:
        pairs = [(type(condition), condition.this, condition.expression)]
        if isinstance(condition.expression, exp.Column):
            pairs = [(_FLIPPED[type(condition)], condition.expression, condition.this)]
    for operator, column, bound in pairs:
        if isinstance(column, exp.Column):
            yield operator, column, bound


def _value(ctx: Context, bound: exp.Expr) -> bytes | None:
    """A bound that is known and has ten bytes at most, filled up: shorter values compare as if zeros followed."""
    if bound.find(exp.Column, exp.Select, exp.Any, exp.All):
        return None
    expr = scalar(ctx, Scope(), bound)
    value = ctx.value(expr, "") if expr.constant and kind(expr.type) == "bin" else None
    return value.ljust(_BYTES, b"\x00") if isinstance(value, bytes) and len(value) <= _BYTES else None


def _range(operator: type[exp.Expr], value: bytes) -> tuple[Range, bool]:
    number = int.from_bytes(value) + (operator is exp.GT) - (operator is exp.LT)
    inside = 0 <= number < 1 << 8 * _BYTES
    edge = number.to_bytes(_BYTES) if inside else value  # beyond the ends nothing is left, which no range says
    low = edge if operator in (exp.GT, exp.GTE, exp.EQ) else None
    high = edge if operator in (exp.LT, exp.LTE, exp.EQ) else None
    return (low, high), inside
