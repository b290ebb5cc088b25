"""What keeps sinks of a table from being loaded, each by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from airflow_provider_mssql_cdc.core.checkpoint import SinkState
from airflow_provider_mssql_cdc.core.exceptions import MsSqlCdcError


def errors_of(
    sinks: Mapping[str, SinkState | None], check: Callable[[str, SinkState], None]
) -> dict[str, MsSqlCdcError]:
    """Shape to what a check raises, of the sinks that are loaded."""
    loaded = {shape: sink for shape, sink in sinks.items() if sink is not None}
    return raised_for(loaded, lambda shape: check(shape, loaded[shape]))


def raised_for(shapes: Iterable[str], check: Callable[[str], None]) -> dict[str, MsSqlCdcError]:
    """Shape to what a check raises."""
    failed = {}
    for shape in shapes:
        try:
            check(shape)
        except MsSqlCdcError as error:
            failed[shape] = error
    return failed


def left_of(sinks: Mapping[str, SinkState | None], failed: Mapping[str, MsSqlCdcError]) -> dict[str, SinkState | None]:
    """The sinks that did not fail.

    :raises MsSqlCdcError: if none is left
    """
    left = {shape: sink for shape, sink in sinks.items() if shape not in failed}
    if failed and not left:
        raise next(iter(failed.values()))
    return left
