"""SELECT @a = x, ...: variables from the rows of a query."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.executor import Executor
from airflow_provider_mssql_cdc.sandbox.tsql.expressions import scalar
from airflow_provider_mssql_cdc.sandbox.tsql.query import compile_result
from airflow_provider_mssql_cdc.sandbox.tsql.results import mixed, plain
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Query, Scope


def assigns(tree: exp.Expr) -> bool:
    """Whether a statement assigns to variables instead of returning rows."""
    items = tree.expressions if isinstance(tree, exp.Select) else []
    return bool(items) and all(isinstance(i, exp.EQ) and isinstance(i.this, exp.Parameter) for i in items)


def assign_rows(executor: Executor, tree: exp.Expr) -> int:
    """Assign, and return the number of rows: the last row's values stay, and no row leaves the variables alone."""
    items = tree.expressions
    targets = {item.this.name.casefold() for item in items}
    used = {each.name.casefold() for item in items for each in item.expression.find_all(exp.Parameter)}
    if targets & used and tree.args.get("from_"):
        return _accumulate(executor, tree)
    shaped = tree.copy()
    shaped.set("expressions", [exp.alias_(item.expression.copy(), f"v{n}") for n, item in enumerate(items)])
    query = executor.reading(lambda: compile_result(executor.context(), Scope(), shaped))
    rows = _read(executor, query)
    for position, (item, (_, expr)) in enumerate(zip(items, query.columns, strict=True)):
        if rows.num_rows:
            value = plain(rows.column(position)[rows.num_rows - 1].as_py())
            executor.assign(item.this.name, value, expr)
    return int(rows.num_rows)


def _read(executor: Executor, query: Query) -> pa.Table:
    env = executor.env
    rows = executor.reading(lambda: env.fetch(query.sql))
    if query.sorted or not env.mixing:
        return rows
    return pa.Table.from_batches(mixed(rows.combine_chunks().to_batches(), env.mixing), rows.schema)


def _accumulate(executor: Executor, tree: exp.Expr) -> int:
    """``SELECT @a = @a + column``: row by row, with the row's columns as constants."""
    env = executor.env
    if any(list(item.find_all(exp.Select, exp.Window)) for item in tree.expressions) or tree.args.get("group"):
        raise unsupported("a variable in an assignment to itself beside subqueries, groups and windows")
    columns = {
        each.sql(dialect="tsql").lower(): each for item in tree.expressions for each in item.find_all(exp.Column)
    }
    names = {key: f"#{n}" for n, key in enumerate(columns)}  # no variable of a script has such a name
    shaped = tree.copy()
    picked = [exp.alias_(column.copy(), f"c{n}") for n, column in enumerate(columns.values())]
    shaped.set("expressions", picked or [exp.alias_(exp.Literal.number(1), "one")])
    query = executor.reading(lambda: compile_result(executor.context(), Scope(), shaped))
    rows = _read(executor, query)
    replaced = [
        (item.this.name, item.expression.transform(lambda node: _as_variable(node, names))) for item in tree.expressions
    ]
    for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        for name, value, (_, expr) in zip(names.values(), row, query.columns, strict=False):
            env.variables[name] = (expr.type, plain(value))
        for target, expression in replaced:
            expr = scalar(executor.context(), Scope(), expression)
            executor.assign(target, env.evaluate(expr), expr)
    for name in names.values():
        env.variables.pop(name, None)
    return int(rows.num_rows)


def _as_variable(node: exp.Expr, names: dict[str, str]) -> exp.Expr:
    if isinstance(node, exp.Column):
        return exp.Parameter(this=exp.Var(this=names[node.sql(dialect="tsql").lower()]))
    return node
