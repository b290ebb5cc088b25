"""What an expression is compiled against: the columns in scope, and the statement's context."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment
from airflow_provider_mssql_cdc.sandbox.tsql.expr import NOT_CONSTANT, Expr
from airflow_provider_mssql_cdc.sandbox.tsql.relation import Range, Relation, Rows


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
        wanted, prefix = fold(name), fold(qualifier)
        sources = [source for source in self.sources if not prefix or fold(source.alias) == prefix]
        found = [expr for source in sources for label, expr in source.columns if fold(label) == wanted]
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
        return self.ctes.get(fold(name)) or (self.parent.cte(name) if self.parent else None)


@dataclass(slots=True)
class Query:
    """A compiled query; its output columns are named k1, k2, ... in DuckDB.

    :param direct: its rows, where they can be read as they lie
    :param base: the table whose rows they are, where that is asked for; they carry its columns too
    :param sorted: it has an ORDER BY
    :param masks: the mask of each column, where the columns' texts do not tell
    """

    sql: str
    columns: list[tuple[str, Expr]]
    direct: Rows | None = None
    base: Relation | None = None
    sorted: bool = False
    masks: list[str | None] | None = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known beforehand of the LSN range that a query's consumer wants, by output column (lower case).

    Both ends are inclusive ten-byte values or None; they narrow what is read, and are never the only filter.
    """

    ranges: dict[str, Range] = field(default_factory=dict)


class CompileQuery(Protocol):
    """Compiles a SELECT or a set operation."""

    def __call__(self, ctx: Context, scope: Scope, node: exp.Expr, bounds: Bounds | None = None) -> Query:
        """Compile a query, whose scope is empty but for its parent and its common table expressions."""


@dataclass(slots=True)
class Context:
    """One statement's compilation.

    :param compile_query: what compiles queries within expressions and FROM clauses
    :param target: what the statement writes to, in lower case
    :param right: what it needs on the tables of its FROM clause
    :param most_recursions: OPTION (MAXRECURSION), 0 for any number
    :param late: takes the error that a function raises when its columns are sent; None where none are
    :param masks: data masks of what the statement reads, by alias and column in DuckDB
    """

    env: Environment
    compile_query: CompileQuery
    target: str = ""
    right: str = "SELECT"
    most_recursions: int = 100
    late: list[SqlError] | None = None
    aliases: int = 0
    masks: dict[str, str] = field(default_factory=dict)

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
