"""sys.security_policies and sys.security_predicates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_provider_mssql_cdc.sandbox.catalog import objects
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation, relation
from airflow_provider_mssql_cdc.sandbox.engine.row_security import SecurityPolicy
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment

_POLICIES = (
    "name sysname!, object_id int!, principal_id int, schema_id int!, parent_object_id int!, type char(2), "
    "type_desc nvarchar(60), create_date datetime!, modify_date datetime!, is_ms_shipped bit!, is_enabled bit, "
    "is_not_for_replication bit!, uses_database_collation bit, is_schema_bound bit!"
)
_PREDICATES = (
    "object_id int!, security_predicate_id int!, target_object_id int!, predicate_definition nvarchar(max)!, "
    "predicate_type int, predicate_type_desc nvarchar(60), operation int, operation_desc nvarchar(60)"
)


def security_policies(env: Environment, database: Database) -> Relation:
    """sys.security_policies"""
    ids, when = objects.schemas(env, database), database.created
    data = [
        [
            each.name, each.object_id, None, ids[each.schema], 0, "SP", "SECURITY_POLICY", when, when, False,
            each.enabled, False, False, True,
        ]
        for each in _visible(env, database)
    ]  # fmt: skip
    return relation(_POLICIES, data)


def security_predicates(env: Environment, database: Database) -> Relation:
    """sys.security_predicates"""
    data = [
        [each.object_id, p.number, p.table, p.definition, int(p.kind == "BLOCK"), p.kind, None, None]
        for each in _visible(env, database)
        for p in each.predicates
    ]
    return relation(_PREDICATES, data)


def _visible(env: Environment, database: Database) -> Sequence[SecurityPolicy]:
    """The policies, for who may see definitions (docs: sys.security_policies)."""
    return env.catalog(database).policies if env.permitted(database, "VIEW DEFINITION") else ()
