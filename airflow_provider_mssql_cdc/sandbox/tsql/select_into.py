"""SELECT ... INTO: a new table from a query's columns and rows."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.collations import comparing
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import tables
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.ddl import ColumnSpec, TableSpec, check_columns
from airflow_provider_mssql_cdc.sandbox.tsql.executor import Executor
from airflow_provider_mssql_cdc.sandbox.tsql.query import compile_result
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Scope
from airflow_provider_mssql_cdc.sandbox.tsql.sources import table_parts


def into_of(tree: exp.Expr) -> exp.Expr | None:
    """The INTO clause of a query; a UNION has it in its first SELECT."""
    while isinstance(tree, exp.SetOperation):
        tree = tree.this
    return tree.args.get("into") if isinstance(tree, exp.Select) else None


def select_into(executor: Executor, tree: exp.Expr) -> int:
    """Run SELECT ... INTO in the open transaction; the number of rows.

    :raises SqlError: 1038 for a column without a name, 2705 for a name twice, 2714 where the table exists
    """
    shaped = tree.copy()
    clause = into_of(shaped)
    assert clause is not None
    parts = table_parts(clause.this)
    clause.pop()
    env = executor.env
    query = compile_result(executor.context(), Scope(), shaped)
    if not all(name for name, _ in query.columns):
        raise SqlError.of(1038)
    if any(expr.type.name == "rowversion" for _, expr in query.columns):
        raise unsupported("rowversion in SELECT INTO")
    spec = TableSpec(
        [
            ColumnSpec(
                name,
                expr.type,
                expr.nullable,
                identity=(1, 1) if expr.identity else None,
                collation=comparing.collation(expr.type).name,
            )
            for name, expr in query.columns
        ]
    )
    check_columns(spec.columns, parts[2])
    rows = env.fetch(query.sql)
    tables.create(executor, parts, spec)
    database, entry = env.target(parts)
    columns = entry.table.columns
    arrays = [rows.column(i).cast(column.type.arrow) for i, column in enumerate(columns)]
    identity = next((column for column in columns if column.identity), None)
    if identity is not None and rows.num_rows:
        database.note_identity(entry, int(max(arrays[columns.index(identity)].to_pylist())))
    return env.writer(database, entry).insert(pa.Table.from_arrays(arrays, schema=entry.table.arrow_schema))
