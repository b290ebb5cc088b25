"""Row-level security as the catalogue holds it: predicate functions, and policies that bind them to tables."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_mssql_cdc.sandbox.types import SqlType


@dataclass(frozen=True, slots=True)
class PredicateFunction:
    """An inline table-valued function that returns one row where its condition is fulfilled.

    :param parameters: names without the mark, and types
    :param condition: as T-SQL
    """

    object_id: int
    schema: str
    name: str
    parameters: tuple[tuple[str, SqlType], ...]
    condition: str


@dataclass(frozen=True, slots=True)
class SecurityPredicate:
    """A predicate of a policy.

    :param table: object id of the table that it protects
    :param function: object id of its function
    :param columns: ids of the table's columns that the function gets
    :param kind: ``FILTER`` or ``BLOCK``
    :param definition: the call, as sys.security_predicates shows it
    """

    number: int
    table: int
    function: int
    columns: tuple[int, ...]
    kind: str
    definition: str


@dataclass(frozen=True, slots=True)
class SecurityPolicy:
    """A security policy."""

    object_id: int
    schema: str
    name: str
    predicates: tuple[SecurityPredicate, ...]
    enabled: bool = True
