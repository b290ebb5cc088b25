"""Typed expressions: DuckDB SQL with its T-SQL type, and what is known of its value."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.convert import convert
from airflow_provider_mssql_cdc.sandbox.tsql.literals import literal
from airflow_provider_mssql_cdc.sandbox.tsql.typing import FLOAT, INT, decimal
from airflow_provider_mssql_cdc.sandbox.types import SqlType

NOT_CONSTANT = object()


@dataclass(frozen=True, slots=True)
class Expr:
    """A scalar expression in DuckDB SQL with its T-SQL type.

    :param value: the value, where it is known without running anything, else NOT_CONSTANT
    :param constant: whether it depends on no row
    :param untyped: a bare NULL, which takes any type
    :param computed: a computed column
    :param literal: written as a number: in decimal arithmetic an integer then counts by its own digits
    :param numbering: of a ROW_NUMBER in ascending order, the DuckDB text of what it is partitioned and ordered by
    """

    sql: str
    type: SqlType
    nullable: bool = True
    value: Any = NOT_CONSTANT
    constant: bool = False
    untyped: bool = False
    identity: bool = False
    computed: bool = False
    literal: bool = False
    numbering: tuple[tuple[str, ...], tuple[str, ...]] | None = None

    @property
    def output(self) -> str:
        """The expression's SQL as a column of a result: a bare NULL is an int there."""
        return "CAST(NULL AS INTEGER)" if self.untyped else self.sql

    def to(self, target: SqlType) -> str:
        """The expression's SQL in another type."""
        return literal(None, target) if self.untyped else convert(self.sql, self.type, target)


def constant(value: Any, type_: SqlType) -> Expr:
    """A known value as an expression."""
    return Expr(literal(value, type_), type_, nullable=value is None, value=value, constant=True)


def number(text: str) -> Expr:
    """A numeric literal: int if it fits, else numeric; float with an exponent.

    :raises SqlError: 168, 1007 for one that its type cannot hold
    """
    if "e" in text.lower():
        if math.isinf(float(text)):
            raise SqlError.of(168, text)
        return constant(float(text), FLOAT)
    whole, point, fraction = text.partition(".")
    digits = len(whole.lstrip("0")) + len(fraction)
    if digits > 38:
        raise SqlError.of(1007, text)
    if point:
        return constant(Decimal(text), decimal(max(digits, 1), len(fraction)))
    value = int(text)
    if value < 2**31:
        return dataclasses.replace(constant(value, INT), literal=True)
    return constant(Decimal(value), decimal(digits, 0))


def null() -> Expr:
    """The bare NULL."""
    return Expr("NULL", INT, value=None, constant=True, untyped=True)
