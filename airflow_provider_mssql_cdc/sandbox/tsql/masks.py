"""Dynamic data masks on the way out: which columns of a query a session sees masked (docs: dynamic data masking).

Conditions, joins and orders go by the values; what leaves a query is masked, also into variables and other tables. An
expression over a masked column is masked by default(), whatever mask the column has.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.engine.cdc.instance import CaptureInstance
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database, TableEntry
from airflow_provider_mssql_cdc.sandbox.protocol import Column
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr
from airflow_provider_mssql_cdc.sandbox.tsql.mask_functions import DEFAULT, shown
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Context, Query

_COLUMN = re.compile(r"\bs\d+\.\w+")
_GROUPED = re.compile(r"any_value\((s\d+\.\w+)\)")


def may_unmask(env: Environment, database: Database, schema: str, name: str, column: str) -> bool:
    """Whether a session sees a column's values: before 2022 only the database's right counts."""
    if env.instance.version.granular_unmask:
        return env.permitted(database, "UNMASK", schema, name, [column])
    return env.permitted(database, "UNMASK")


def of_table(env: Environment, database: Database, entry: TableEntry) -> dict[str, str]:
    """The masks between a session and a table's columns, by the columns' names in DuckDB."""
    table = entry.table
    return {
        f"c{column.column_id}": column.mask
        for column in table.columns
        if column.mask is not None and not may_unmask(env, database, table.schema, table.name, column.name)
    }


def of_changes(
    env: Environment, database: Database, instance: CaptureInstance, columns: Iterable[tuple[Column, str]]
) -> dict[str, str]:
    """The masks between a session and a change table, whose columns keep the masks of their source.

    :param columns: those that are read, with their names in DuckDB
    """
    masks = {column.name: column.mask for column in instance.columns if column.mask is not None}
    name = f"{instance.capture_instance}_CT"
    return {
        physical: masks[column.name]
        for column, physical in columns
        if column.name in masks and not may_unmask(env, database, "cdc", name, column.name)
    }


def note(ctx: Context, alias: str, masks: Mapping[str, str]) -> None:
    """Remember the masks of what a statement reads under an alias."""
    for name, mask in masks.items():
        ctx.masks[f"{alias}.{name}"] = mask


def of_output(ctx: Context, query: Query) -> list[str | None]:
    """The mask of each column of a query."""
    if query.masks is not None:
        return query.masks
    return [_of(ctx, expr.sql) for _, expr in query.columns]


def note_output(ctx: Context, alias: str, query: Query) -> None:
    """Remember the masks of a query that a statement reads under an alias."""
    if ctx.masks:
        note(ctx, alias, {f"k{i}": mask for i, mask in enumerate(of_output(ctx, query), 1) if mask is not None})


def _of(ctx: Context, sql: str) -> str | None:
    grouped = _GROUPED.fullmatch(sql)
    own = ctx.masks.get(grouped[1] if grouped else sql)
    return own or (DEFAULT if uses(ctx, sql) else None)


def uses(ctx: Context, sql: str) -> bool:
    """Whether an expression is made of a masked column."""
    return bool(ctx.masks) and not ctx.masks.keys().isdisjoint(_COLUMN.findall(sql))


def combined(ctx: Context, sides: Sequence[Query]) -> list[str | None] | None:
    """The masks of a set operation's columns."""
    if not ctx.masks:
        return None
    columns = zip(*(of_output(ctx, side) for side in sides), strict=True)
    return [each[0] if len(set(each)) == 1 else DEFAULT for each in columns]


def masked(ctx: Context, query: Query) -> Query:
    """A query whose rows are handed out, as the session may see them."""
    masks = of_output(ctx, query) if ctx.masks else []
    if not any(masks):
        return query
    items = [
        f"m.k{i} AS k{i}" if mask is None else f"{shown(mask, f'm.k{i}', expr.type)} AS k{i}"
        for i, (mask, (_, expr)) in enumerate(zip(masks, query.columns, strict=True), 1)
    ]
    return dataclasses.replace(query, sql=f"SELECT {', '.join(items)} FROM ({query.sql}) AS m", direct=None, masks=None)


def masked_value(ctx: Context, expr: Expr) -> Expr:
    """A value that is handed out by itself, as the session may see it."""
    return dataclasses.replace(expr, sql=shown(DEFAULT, f"({expr.sql})", expr.type)) if uses(ctx, expr.sql) else expr


def check_output(env: Environment, database: Database, entry: TableEntry, clause: exp.Expr | None) -> None:
    """Refuse an OUTPUT clause that would show masked values: what it shows of them is not known."""
    masks = of_table(env, database, entry) if clause is not None else {}
    if clause is None or not masks:
        return
    names = {fold(c.name) for c in entry.table.columns if f"c{c.column_id}" in masks}
    named = {fold(column.name) for column in clause.find_all(exp.Column)}
    if names & named or any(True for _ in clause.find_all(exp.Star)):
        raise unsupported("OUTPUT of masked columns")
