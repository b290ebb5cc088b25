"""The rows that security policies let a session meet (docs: row-level security).

A policy counts for everybody, the owner and the sysadmin too.
"""

from __future__ import annotations

import dataclasses

from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.engine.row_security import PredicateFunction
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database, TableEntry
from airflow_provider_mssql_cdc.sandbox.tsql import row_security
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr
from airflow_provider_mssql_cdc.sandbox.tsql.expressions import predicate
from airflow_provider_mssql_cdc.sandbox.tsql.parsing import parse
from airflow_provider_mssql_cdc.sandbox.tsql.relation import Relation
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Bounds, Context, Query, Scope, Source


def filtered(env: Environment, database: Database, entry: TableEntry, relation: Relation) -> Relation:
    """A table's rows that the policies let a session meet."""
    catalog = env.catalog(database)
    if not catalog.policies:
        return relation
    names = {c.column_id: f"c{c.column_id}" for c in entry.table.columns}
    types = {c.column_id: c.type for c in entry.table.columns}
    conditions = []
    for policy, each in row_security.predicates_of(catalog, entry.table.object_id):
        if policy.enabled and each.kind == "FILTER":
            if not set(each.columns) <= names.keys():
                raise unsupported("a security policy on a column that was dropped")
            arguments = [Expr(names[i], types[i]) for i in each.columns]
            conditions.append(condition(Context(env, _no_query), catalog.functions[each.function], arguments))
    if not conditions:
        return relation
    source = f"(SELECT * FROM {relation.source} WHERE {' AND '.join(conditions)})"
    return dataclasses.replace(relation, source=source)


def condition(ctx: Context, function: PredicateFunction, arguments: list[Expr]) -> str:
    """The condition of a function over its arguments, as DuckDB takes it."""
    names = {name.casefold() for name, _ in function.parameters}
    given = [
        (f"@{name}", Expr(argument.to(type_), type_, argument.nullable))
        for (name, type_), argument in zip(function.parameters, arguments, strict=True)
    ]

    def as_column(node: exp.Expr) -> exp.Expr:
        is_own = isinstance(node, exp.Parameter) and node.name.casefold() in names
        return exp.column(exp.to_identifier(f"@{node.name}", quoted=True)) if is_own else node

    tree = parse(f"SELECT 1 AS one WHERE {function.condition}").args["where"].this.transform(as_column)
    return f"({predicate(ctx, Scope([Source('', given)]), tree)})"


def _no_query(ctx: Context, scope: Scope, node: exp.Expr, bounds: Bounds | None = None) -> Query:
    raise unsupported("a query in the condition of a security policy")
