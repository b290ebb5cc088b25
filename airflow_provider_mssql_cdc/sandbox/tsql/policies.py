"""CREATE and DROP FUNCTION of predicate functions, and CREATE, ALTER and DROP SECURITY POLICY."""

from __future__ import annotations

import dataclasses

from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.engine.rights import without_objects
from airflow_provider_mssql_cdc.sandbox.engine.row_security import PredicateFunction, SecurityPolicy, SecurityPredicate
from airflow_provider_mssql_cdc.sandbox.engine.schema import TableDef
from airflow_provider_mssql_cdc.sandbox.engine.storage import Catalog
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import row_filter, row_security
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.ddl import data_type
from airflow_provider_mssql_cdc.sandbox.tsql.executor import Executor
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import Cursor, sub_cursor, syntax_error
from airflow_provider_mssql_cdc.sandbox.tsql.parsing import parse
from airflow_provider_mssql_cdc.sandbox.tsql.tables import define, parts_of
from airflow_provider_mssql_cdc.sandbox.types import SqlType

_SHAPE = "functions other than RETURNS TABLE WITH SCHEMABINDING AS RETURN SELECT 1 AS name WHERE condition"


def _catalog(executor: Executor) -> Catalog:
    """The current database's catalogue, to be changed by its owner."""
    env = executor.env
    if not env.is_owner(env.current):
        raise SqlError.of(15247)
    return env.enter(env.current)


def _place(catalog: Catalog, cursor: Cursor) -> tuple[str, str]:
    """(schema, name) of an object to create.

    :raises SqlError: 2760, 2714
    """
    database, schema, name = parts_of(cursor)
    if database:
        raise SqlError.of(102, ".", line=cursor.token.line)
    known = catalog.schema_name(schema or "dbo")
    if known is None:
        raise SqlError.of(2760, schema)
    taken = any((fold(p.schema), fold(p.name)) == (fold(known), fold(name)) for p in catalog.policies)
    if taken or row_security.find_function(catalog, known, name) is not None or catalog.find(known, name) is not None:
        raise SqlError.of(2714, name)
    return known, name


def create_function(executor: Executor, cursor: Cursor) -> None:
    """CREATE FUNCTION name (@parameter type, ...), which returns a row where a condition is fulfilled"""
    catalog = _catalog(executor)
    schema, name = _place(catalog, cursor)
    parameters = _parameters(sub_cursor(cursor, cursor.group()))
    cursor.expect("RETURNS", "TABLE")
    if not cursor.take("WITH", "SCHEMABINDING") or not cursor.take("AS") or not cursor.take("RETURN"):
        raise unsupported(_SHAPE, cursor.token.line)
    number = executor.env.instance.storage.new_object_id()
    made = PredicateFunction(number, schema, name, parameters, _condition(cursor))
    # what it names must be there
    row_filter.condition(executor.context(), made, [Expr("NULL", type_) for _, type_ in parameters])
    define(executor, dataclasses.replace(catalog, functions={**catalog.functions, number: made}))


def _parameters(cursor: Cursor) -> tuple[tuple[str, SqlType], ...]:
    found = []
    while cursor.token.kind != "end":
        token = cursor.next()
        if token.kind != "variable":
            raise syntax_error(token)
        cursor.take("AS")
        found.append((token.text[1:], data_type(cursor)))
        if not cursor.take(","):
            break
    cursor.end()
    return tuple(found)


def _condition(cursor: Cursor) -> str:
    tokens = [token for token in cursor.tokens[cursor.position : -1] if token.text != ";"]
    text = cursor.source(tokens)
    tree: exp.Expr = parse(text, cursor.token.line)
    while isinstance(tree, exp.Subquery | exp.Paren):
        tree = tree.this
    parts = {key for key, value in tree.args.items() if value and not key.startswith("_")}
    if not isinstance(tree, exp.Select) or parts != {"expressions", "where"} or len(tree.expressions) != 1:
        raise unsupported(_SHAPE, cursor.token.line)
    item = tree.expressions[0]
    if not isinstance(item, exp.Alias) or item.this != exp.Literal.number(1):
        raise unsupported(_SHAPE, cursor.token.line)
    start = next(i for i, token in enumerate(tokens) if token.upper == "WHERE")
    end = len(tokens) - (1 if tokens[0].text == "(" else 0)
    return cursor.source(tokens[start + 1 : end])


def drop_function(executor: Executor, cursor: Cursor) -> None:
    """DROP FUNCTION [IF EXISTS] name

    :raises SqlError: 3701, 3729
    """
    lenient = cursor.take("IF", "EXISTS")
    _, schema, name = parts_of(cursor)
    cursor.end()
    catalog = _catalog(executor)
    found = row_security.find_function(catalog, schema or "dbo", name)
    if found is None:
        if lenient:
            return
        raise SqlError.of(3701, "function", name)
    for policy in catalog.policies:
        if any(each.function == found.object_id for each in policy.predicates):
            text = f"Cannot DROP FUNCTION '{name}' because it is being referenced by object '{policy.name}'."
            raise SqlError(3729, text)
    left = {number: each for number, each in catalog.functions.items() if each is not found}
    rights = without_objects(catalog.rights, found.schema, [found.name])
    define(executor, dataclasses.replace(catalog, functions=left, rights=rights))


def create_policy(executor: Executor, cursor: Cursor) -> None:
    """CREATE SECURITY POLICY name ADD [FILTER | BLOCK] PREDICATE f(column, ...) ON table, ... [WITH (STATE = ...)]"""
    cursor.expect("POLICY")
    catalog = _catalog(executor)
    schema, name = _place(catalog, cursor)
    number = executor.env.instance.storage.new_object_id()
    made = _altered(catalog, SecurityPolicy(number, schema, name, ()), cursor)
    _define(executor, catalog, made)


def alter_policy(executor: Executor, cursor: Cursor) -> None:
    """ALTER SECURITY POLICY name [ADD ..., DROP [FILTER | BLOCK] PREDICATE ON table, ...] [WITH (STATE = ...)]"""
    cursor.expect("POLICY")
    catalog = _catalog(executor)
    _define(executor, catalog, _altered(catalog, _existing(catalog, parts_of(cursor)), cursor))


def drop_policy(executor: Executor, cursor: Cursor) -> None:
    """DROP SECURITY POLICY [IF EXISTS] name"""
    cursor.expect("POLICY")
    lenient = cursor.take("IF", "EXISTS")
    parts = parts_of(cursor)
    cursor.end()
    catalog = _catalog(executor)
    try:
        found = _existing(catalog, parts)
    except SqlError:
        if lenient:
            return
        raise
    left = tuple(each for each in catalog.policies if each is not found)
    define(executor, dataclasses.replace(catalog, policies=left))


def _existing(catalog: Catalog, parts: tuple[str, str, str]) -> SecurityPolicy:
    wanted = (fold(parts[1] or "dbo"), fold(parts[2]))
    for each in catalog.policies:
        if (fold(each.schema), fold(each.name)) == wanted:
            return each
    raise SqlError.of(15151, "find", "security policy", parts[2])


def _define(executor: Executor, catalog: Catalog, policy: SecurityPolicy) -> None:
    others = tuple(each for each in catalog.policies if each.object_id != policy.object_id)
    tables = [each.table for each in policy.predicates if each.kind == "FILTER"]
    taken = {p.table for each in others if each.enabled for p in each.predicates if p.kind == "FILTER"}
    if len(set(tables)) < len(tables) or (policy.enabled and taken & set(tables)):
        raise unsupported("a second FILTER predicate on a table")
    define(executor, dataclasses.replace(catalog, policies=(*others, policy)))


def _altered(catalog: Catalog, policy: SecurityPolicy, cursor: Cursor) -> SecurityPolicy:
    while cursor.at("ADD") or cursor.at("DROP"):
        adds = cursor.next().upper == "ADD"
        kind = "BLOCK" if cursor.take("BLOCK") else "FILTER"
        if kind == "FILTER":
            cursor.take("FILTER")
        cursor.expect("PREDICATE")
        if adds:
            policy = _with_predicate(catalog, policy, cursor, kind)
        else:
            policy = _without_predicate(catalog, policy, cursor, kind)
        if not cursor.take(","):
            break
    if cursor.take("WITH"):
        policy = _with_options(policy, sub_cursor(cursor, cursor.group()))
    if cursor.token.kind != "end" and not cursor.at(";"):
        raise unsupported(f"{cursor.token.upper} in a security policy", cursor.token.line)
    cursor.end()
    return policy


def _with_predicate(catalog: Catalog, policy: SecurityPolicy, cursor: Cursor, kind: str) -> SecurityPolicy:
    _, schema, name = parts_of(cursor)
    function = row_security.find_function(catalog, schema or "dbo", name)
    if function is None:
        raise SqlError.of(208, f"{schema or 'dbo'}.{name}")
    inner, columns = sub_cursor(cursor, cursor.group()), []
    while inner.token.kind != "end":
        columns.append(inner.name())
        if not inner.take(","):
            break
    inner.end()
    cursor.expect("ON")
    table = _table(catalog, cursor)
    if len(columns) != len(function.parameters):
        raise SqlError.of(313, f"{function.schema}.{function.name}")
    found = [(table.column(column), column) for column in columns]
    for column, wanted in found:
        if column is None:
            raise SqlError.of(207, wanted)
    known = [column for column, _ in found if column is not None]
    shown = ", ".join(f"[{column.name}]" for column in known)
    definition = f"([{function.schema}].[{function.name}]({shown}))"
    number = max((each.number for each in policy.predicates), default=0) + 1
    ids = tuple(column.column_id for column in known)
    made = SecurityPredicate(number, table.object_id, function.object_id, ids, kind, definition)
    return dataclasses.replace(policy, predicates=(*policy.predicates, made))


def _without_predicate(catalog: Catalog, policy: SecurityPolicy, cursor: Cursor, kind: str) -> SecurityPolicy:
    cursor.expect("ON")
    number = _table(catalog, cursor).object_id
    left = tuple(each for each in policy.predicates if (each.table, each.kind) != (number, kind))
    if len(left) == len(policy.predicates):
        raise unsupported("dropping a predicate that is not there", cursor.token.line)
    return dataclasses.replace(policy, predicates=left)


def _table(catalog: Catalog, cursor: Cursor) -> TableDef:
    _, schema, name = parts_of(cursor)
    entry = catalog.find(schema or "dbo", name)
    if entry is None:
        raise SqlError.of(208, f"{schema or 'dbo'}.{name}")
    return entry.table


def _with_options(policy: SecurityPolicy, cursor: Cursor) -> SecurityPolicy:
    while True:
        if cursor.take("STATE", "="):
            policy = dataclasses.replace(policy, enabled=cursor.take("ON"))
            if not policy.enabled:
                cursor.expect("OFF")
        elif not cursor.take("SCHEMABINDING", "=", "ON"):
            raise unsupported(f"{cursor.token.upper} in a security policy", cursor.token.line)
        if not cursor.take(","):
            break
    cursor.end()
    return policy
