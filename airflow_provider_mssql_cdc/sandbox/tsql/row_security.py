"""Functions and predicates of security policies, and what they hinder (docs: row-level security)."""

from __future__ import annotations

from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.engine.row_security import PredicateFunction, SecurityPolicy, SecurityPredicate
from airflow_provider_mssql_cdc.sandbox.engine.storage import Catalog, TableEntry
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported


def find_function(catalog: Catalog, schema: str, name: str) -> PredicateFunction | None:
    """A function by name."""
    wanted = (fold(schema), fold(name))
    return next((f for f in catalog.functions.values() if (fold(f.schema), fold(f.name)) == wanted), None)


def predicates_of(catalog: Catalog, table: int) -> list[tuple[SecurityPolicy, SecurityPredicate]]:
    """The predicates on a table with their policies.

    :param table: its object id
    """
    return [(policy, each) for policy in catalog.policies for each in policy.predicates if each.table == table]


def check_block(catalog: Catalog, entry: TableEntry) -> None:
    """Refuse to write to a table with a BLOCK predicate: that these hinder writes is not simulated."""
    for policy, predicate in predicates_of(catalog, entry.table.object_id):
        if policy.enabled and predicate.kind == "BLOCK":
            raise unsupported("writing to a table with a BLOCK predicate")


def check_drop(catalog: Catalog, entry: TableEntry) -> None:
    """Refuse to drop a table that a policy protects.

    :raises SqlError: 3729
    """
    for policy, _ in predicates_of(catalog, entry.table.object_id):
        raise SqlError(
            3729, f"Cannot drop table '{entry.table.name}' because it is being referenced by object '{policy.name}'."
        )
