"""What sensor and load are both given: refused when the DAG is parsed, as far as it is no template."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_provider_mssql_cdc.core.exceptions import ParameterError
from airflow_provider_mssql_cdc.core.target import Target
from airflow_provider_mssql_cdc.hooks.patterns import parse_pattern


def patterns(tables: Iterable[str] | str, exclude: Iterable[str] | str = ()) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the patterns of tables and of those to leave out, of which a single one may be given as it is.

    :raises ParameterError: if no table is named
    :raises PatternError: if a pattern cannot be read
    """
    wanted, unwanted = listed(tables), listed(exclude)
    if not wanted:
        raise ParameterError('tables is empty: name at least one pattern, such as "sales.*"')
    for pattern in (*wanted, *unwanted):
        parse_pattern(pattern)
    return wanted, unwanted


def check_literals(tables: object, exclude: object, target: object) -> None:
    """Refuse what cannot be right. What is a template, or another task's output, is left for the run to check.

    :raises ParameterError: for a target that is none, or if no table is named
    :raises PatternError: for a table pattern that cannot be read
    """
    named = tables if _is_literal(tables) else "*"
    patterns(named, exclude if _is_literal(exclude) else ())  # type: ignore[arg-type]
    if _is_literal(target):
        Target.parse(str(target))


def listed(given: Iterable[str] | str) -> tuple[str, ...]:
    """Return the texts, of which a single one may be given as it is."""
    return (given,) if isinstance(given, str) else tuple(given)


def _is_literal(given: object) -> bool:
    if isinstance(given, str):
        return "{{" not in given and "{%" not in given
    return isinstance(given, list | tuple) and all(isinstance(part, str) and _is_literal(part) for part in given)
