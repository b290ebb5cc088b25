"""What sensor and load are both given: refused when the DAG is parsed, as far as it is no template."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from airflow_provider_mssql_cdc.core.exceptions import ParameterError
from airflow_provider_mssql_cdc.core.lag import ON_LAG
from airflow_provider_mssql_cdc.core.patterns import parse_pattern
from airflow_provider_mssql_cdc.core.table_options import check_entries
from airflow_provider_mssql_cdc.core.target import Target

LOAD_ONLY = frozenset(
    {
        "table_properties",
        "salt_conn_id",
        "allow_masked",
        "deletes",
        "changes",
        "history_form",
        "operations",
        "ct_retention",
        "on_gap",
        "on_schema_change",
        "fill",
        "history_fill",
        "widen_list",
        "incompatible_types",
        "dropped_columns",
        "propose_timeout",
        "admin_conn_id",
        "enable_lock_timeout",
        "initial",
        "server_timezone",
        "max_transactions",
        "max_rows",
        "capture_timeout",
        "connections",
        "tables_at_once",
        "slice_rows",
        "copy_rows",
        "copy_chunk_seconds",
        "copy_seconds",
        "copy_rows_per_second",
        "throttle_lag",
        "copy_keep",
        "isolation",
        "small_window",
        "fetch_size",
        "work_dir",
    }
)
"""Parameters that say how to load, not whether: sensor and watcher accept them, so that all can be given the same."""


AUTO: Literal["auto"] = "auto"
"""The run's time for copies comes from its data interval."""


def without_load_only(given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters without those of ``LOAD_ONLY``."""
    return {name: value for name, value in given.items() if name not in LOAD_ONLY}


def seconds(given: datetime.timedelta | float | None) -> float | None:
    """A duration in seconds; None stays None."""
    return given.total_seconds() if isinstance(given, datetime.timedelta) else given


_LONGEST_LAG = datetime.timedelta(days=36525)


def lag_allowed(max_lag: datetime.timedelta | float, on_lag: str) -> datetime.timedelta:
    """How late the capture may be.

    :param max_lag: in seconds, where it is a number
    :raises ParameterError: if one of the two has no meaning
    """
    try:
        found = max_lag if isinstance(max_lag, datetime.timedelta) else datetime.timedelta(seconds=max_lag)
    except (TypeError, ValueError, OverflowError):
        found = datetime.timedelta(0)
    if not datetime.timedelta(0) < found <= _LONGEST_LAG:
        raise ParameterError(f"max_lag={max_lag!r}: expected seconds or a timedelta of more than 0 s, up to 100 years")
    if on_lag not in ON_LAG:
        raise ParameterError(f"on_lag={on_lag!r}: expected one of {', '.join(ON_LAG)}")
    return found


def excluded(exclude: Iterable[str] | str) -> tuple[str, ...]:
    """The patterns of tables to leave out, of which a single one may be given as it is.

    :raises PatternError: if a pattern cannot be read
    """
    unwanted = listed(exclude)
    for pattern in unwanted:
        parse_pattern(pattern)
    return unwanted


def check_literals(tables: object, exclude: object, target: object, *, salted: bool = True, named: bool = True) -> None:
    """Refuse what cannot be right. What is a template, or another task's output, is left for the run to check.

    :param salted: whether there is a salt for hashes
    :param named: whether there are tables
    :raises ParameterError: for a target that is none, an entry that cannot be right, or if no table is named
    :raises PatternError: for a table pattern that cannot be read
    """
    if named:
        check_entries(tables, salted=salted)
    if is_literal(exclude):
        excluded(exclude)  # type: ignore[arg-type]
    if is_literal(target):
        Target.parse(str(target))


def listed(given: Iterable[str] | str) -> tuple[str, ...]:
    """The texts, of which a single one may be given as it is."""
    return (given,) if isinstance(given, str) else tuple(given)


def is_literal(given: object) -> bool:
    """Whether it is text, or texts, and neither a template nor another task's output."""
    if isinstance(given, str):
        return "{{" not in given and "{%" not in given
    return isinstance(given, list | tuple) and all(isinstance(part, str) and is_literal(part) for part in given)
