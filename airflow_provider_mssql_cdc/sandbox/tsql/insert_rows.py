"""The rows of an INSERT: VALUES that are known, VALUES that must be worked out, and queries."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.engine.schema import ColumnDef
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import masks, operators, query
from airflow_provider_mssql_cdc.sandbox.tsql.expr import NOT_CONSTANT, Expr, null
from airflow_provider_mssql_cdc.sandbox.tsql.expressions import scalar
from airflow_provider_mssql_cdc.sandbox.tsql.known_values import known_value
from airflow_provider_mssql_cdc.sandbox.tsql.parsing import parse
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Context, Scope


def default_of(ctx: Context, column: ColumnDef) -> Expr:
    """A column's default as an expression; NULL where it has none."""
    if column.default is None:
        return null()
    return scalar(ctx, Scope(), parse(f"SELECT {column.default}").expressions[0])


def known_rows(
    lines: list[list[Expr]], columns: list[ColumnDef], stored: list[ColumnDef], defaults: dict[int, Expr]
) -> dict[int, Any] | None:
    """The values without a query, where all of them are known and fit; None where not."""
    positions = {column.column_id: i for i, column in enumerate(columns)}
    if len(lines) > 1 and any(
        len({line[i].type for line in lines if not line[i].untyped}) > 1 for i in positions.values()
    ):
        return None  # rows of different types take a common one first
    arrays = {}
    for column in stored:
        place = positions.get(column.column_id)
        if place is None:
            values = [known_value(defaults[column.column_id], column)] * len(lines)
        else:
            values = [known_value(line[place], column) for line in lines]
        if any(value is NOT_CONSTANT for value in values):
            return None
        arrays[column.column_id] = pa.array(values, column.type.arrow)
    return arrays


def check_count(given: int, wanted: int) -> None:
    """Refuse a source with too many or too few columns."""
    if given != wanted:
        fewer = given < wanted
        message = (
            f"There are {'more' if fewer else 'fewer'} columns in the INSERT statement than values "
            "specified in the VALUES clause."
        )
        raise SqlError(109 if fewer else 110, message, severity=15)


def query_rows(ctx: Context, node: exp.Expr) -> tuple[list[Expr], str]:
    """INSERT ... SELECT: expressions for the target columns, and the FROM text they read."""
    if node.expression is None:
        raise SqlError.of(102, "INSERT")
    alias, scope = ctx.alias(), Scope()
    query.declare_ctes(ctx, scope, node)
    compiled = query.compile_result(ctx, scope, node.expression)
    exprs = [
        null() if expr.untyped else Expr(f"{alias}.k{i}", expr.type, expr.nullable)
        for i, (_, expr) in enumerate(compiled.columns, 1)
    ]
    return exprs, f" FROM ({compiled.sql}) AS {alias}"


def value_row(ctx: Context, row: exp.Expr, columns: list[ColumnDef]) -> list[Expr]:
    """One row of VALUES; DEFAULT stands for the column's default."""
    cells = row.expressions if isinstance(row, exp.Tuple) else [row.this if isinstance(row, exp.Paren) else row]
    check_count(len(cells), len(columns))
    return [
        default_of(ctx, column)
        if isinstance(cell, exp.Var) and cell.name.upper() == "DEFAULT"
        else masks.masked_value(ctx, scalar(ctx, Scope(), cell))
        for cell, column in zip(cells, columns, strict=True)
    ]


def literal_rows(ctx: Context, lines: list[list[Expr]]) -> tuple[list[Expr], str]:
    """VALUES: expressions for the target columns, and the FROM text they read."""
    if len(lines) == 1:
        return lines[0], ""
    types = [operators.common_type(*column) for column in zip(*lines, strict=True)]
    rows = ", ".join(
        "(" + ", ".join(cell.to(type_) for cell, type_ in zip(line, types, strict=True)) + ")" for line in lines
    )
    alias = ctx.alias()
    names = ", ".join(f"k{i}" for i in range(1, len(types) + 1))
    exprs = [
        Expr(f"{alias}.k{i}", type_, untyped=all(line[i - 1].untyped for line in lines))
        for i, type_ in enumerate(types, 1)
    ]
    return exprs, f" FROM (VALUES {rows}) AS {alias}({names})"
