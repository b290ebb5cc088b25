"""Who stands on a capture instance: the checkpoints whose sinks or copies would lose changes if it were dropped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint
from airflow_provider_mssql_cdc.core.feed import Feed
from airflow_provider_mssql_cdc.core.table import TableName


def of_table(checkpoints: Iterable[Checkpoint], database: str, name: TableName) -> list[Checkpoint]:
    """The checkpoints of a source table, whatever their connections and targets: SQL Server's names differ by case."""
    wanted = _folded(database, name)
    return [each for each in checkpoints if _folded(each.identity.database, each.identity.table) == wanted]


def standing_on(feed: Feed, checkpoints: Iterable[Checkpoint]) -> Iterator[str]:
    """Yield what of these checkpoints of a table reads a feed, for people.

    A sink of which nobody knows the feed may read it, and so may a copy for a sink that is not loaded yet.
    """
    for checkpoint in checkpoints:
        who = f"{checkpoint.identity} ({checkpoint.identity.connection})"
        for shape, sink in sorted(checkpoint.sinks.items()):
            if not sink.is_loaded or (sink.feed is not None and not sink.feed.is_same(feed)):
                continue
            doubt = "" if sink.feed is not None else ", by which instance is not known"
            yield f"{who} {shape}: read to {sink.read_through}{doubt}"
        for copy in checkpoint.copies:
            known = [sink.feed for shape, sink in checkpoint.sinks.items() if sink.feed is not None]
            if not known or any(ref.is_same(feed) for ref in known):
                yield f"{who}: a copy keeps its changes up to {copy.position}"


def _folded(database: str, name: TableName) -> tuple[str, str, str]:
    return database.casefold(), name.schema.casefold(), name.table.casefold()
