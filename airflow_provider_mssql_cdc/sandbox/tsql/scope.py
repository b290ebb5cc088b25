"""What an expression is compiled against: typed expressions, the columns in scope, and the statement's context."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.protocol import Column, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.convert import convert, unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.literals import literal
from airflow_provider_mssql_cdc.sandbox.tsql.typing import FLOAT, INT, decimal
from airflow_provider_mssql_cdc.sandbox.types import SqlType

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment
    from airflow_provider_mssql_cdc.sandbox.tsql.locked_reads import PieceReader

NOT_CONSTANT = object()

Range = tuple[bytes | None, bytes | None]
"""Ten-byte values from one to another, both included; None leaves an end open."""

EVERYTHING: Range = (None, None)


def tighter(one: Range, other: Range) -> Range:
    """What lies in both ranges."""
    lows = [low for low, _ in (one, other) if low is not None]
    highs = [high for _, high in (one, other) if high is not None]
    return (max(lows) if lows else None, min(highs) if highs else None)


@dataclass(frozen=True, slots=True)
class Expr:
    """A scalar expression in DuckDB SQL with its T-SQL type.

    :param value: the value, where it is known without running anything, else NOT_CONSTANT
    :param constant: whether it depends on no row
    :param untyped: a bare NULL, which takes any type
    :param literal: written as a number: in decimal arithmetic an integer then counts by its own digits
    :param binary_collation: compared by code point, not by the default collation
    :param numbering: of a ROW_NUMBER in ascending order, the DuckDB text of what it is partitioned and ordered by
    """

    sql: str
    type: SqlType
    nullable: bool = True
    value: Any = NOT_CONSTANT
    constant: bool = False
    untyped: bool = False
    identity: bool = False
    literal: bool = False
    binary_collation: bool = False
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


@dataclass(slots=True)
class Source:
    """One item of a FROM clause: an alias and its columns, in order."""

    alias: str
    columns: list[tuple[str, Expr]]
    qualifier: tuple[str, ...] = ()


@dataclass(slots=True)
class Scope:
    """The sources an expression may name, the enclosing query's, and how GROUP BY renames expressions.

    :param written: the query is what an UPDATE or DELETE writes to, so its rows must be known by their table's
    """

    sources: list[Source] = field(default_factory=list)
    parent: Scope | None = None
    ctes: dict[str, Callable[[Bounds], Query]] = field(default_factory=dict)
    groups: dict[str, str] | None = None
    written: bool = False
    correlated: bool = False

    def column(self, name: str, qualifier: str) -> Expr:
        """A column by name.

        :raises SqlError: 207 unknown column, 209 ambiguous column, 4104 unknown qualifier
        """
        wanted, prefix = name.lower(), qualifier.lower()
        sources = [source for source in self.sources if not prefix or source.alias.lower() == prefix]
        found = [expr for source in sources for label, expr in source.columns if label.lower() == wanted]
        if len(found) > 1:
            raise SqlError.of(209, name)
        if found:
            return found[0]
        if self.parent is not None:
            self.correlated = True
            return self.parent.column(name, qualifier)
        if prefix and not sources:
            raise SqlError.of(4104, f"{qualifier}.{name}")
        raise SqlError.of(207, name)

    def cte(self, name: str) -> Callable[[Bounds], Query] | None:
        """The common table expression of that name, here or in an enclosing query."""
        return self.ctes.get(name.lower()) or (self.parent.cte(name) if self.parent else None)


@dataclass(slots=True)
class Query:
    """A compiled query; its output columns are named k1, k2, ... in DuckDB.

    :param direct: its rows, where they can be read as they lie
    :param base: the table whose rows they are, where that is asked for; they carry its columns too
    :param sorted: it has an ORDER BY
    """

    sql: str
    columns: list[tuple[str, Expr]]
    direct: Rows | None = None
    base: Relation | None = None
    sorted: bool = False


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known beforehand of the LSN range that a query's consumer wants, by output column (lower case).

    Both ends are inclusive ten-byte values or None; they narrow what is read, and are never the only filter.
    """

    ranges: dict[str, Range] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that stay the same while a statement runs, and can be read one after the other as they lie.

    :param read: those whose value of one column lies in a range
    :param key: DuckDB names of the columns by which they may lie in order: LSNs and integers
    :param ranged: name of the column of the range; '' where there is none, and all rows are read
    :param in_order: whether they lie in ascending order of some of the key's columns
    """

    read: Callable[[Range], Iterable[pa.RecordBatch]]
    key: tuple[str, ...] = ()
    ranged: str = ""
    in_order: Callable[[tuple[str, ...]], bool] = lambda names: not names


@dataclass(frozen=True, slots=True)
class Relation:
    """A table, view or function result to read from.

    :param source: DuckDB FROM text
    :param columns: SQL Server column and its DuckDB name
    :param rows: its rows, where they can be read as they lie
    :param hidden: DuckDB name of the row identifier of a base table
    :param parts: database, schema and name of a base table
    :param pieces: what reads it, where that is done with locks
    """

    source: str
    columns: list[tuple[Column, str]]
    rows: Rows | None = None
    hidden: str = ""
    parts: tuple[str, str, str] = ("", "", "")
    pieces: PieceReader | None = None

    @property
    def name(self) -> str:
        """The relation's own name."""
        return self.parts[2]


@dataclass(slots=True)
class Context:
    """One statement's compilation.

    :param target: what the statement writes to, in lower case
    :param right: what it needs on the tables of its FROM clause
    :param most_recursions: OPTION (MAXRECURSION), 0 for any number
    :param late: takes the error that a function raises when its columns are sent; None where none are
    """

    env: Environment
    target: str = ""
    right: str = "SELECT"
    most_recursions: int = 100
    late: list[SqlError] | None = None
    aliases: int = 0

    def alias(self) -> str:
        """A DuckDB alias that nothing else in this statement has."""
        self.aliases += 1
        return f"s{self.aliases}"

    def value(self, expr: Expr, what: str) -> Any:
        """The value of an expression that must not depend on rows."""
        if expr.value is not NOT_CONSTANT:
            return expr.value
        if not expr.constant:
            raise unsupported(f"{what} that depends on rows")
        return self.env.evaluate(expr)


def only(node: exp.Expr, *allowed: str) -> None:
    """Refuse a node that carries more than the parts the caller understands."""
    extra = [key for key, value in node.args.items() if value and key not in allowed and not key.startswith("_")]
    if extra:
        raise unsupported(f"{extra[0].rstrip('_').replace('_', ' ')} in {node.key.upper()}")
