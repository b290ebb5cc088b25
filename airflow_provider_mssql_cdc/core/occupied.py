"""Who stands on a capture instance: the checkpoints whose sinks or copies would lose changes if it were dropped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint
from airflow_provider_mssql_cdc.core.feed import Feed
from airflow_provider_mssql_cdc.core.table import TableName


def of_table(checkpoints: Iterable[Checkpoint], database: str, name: TableName) -> list[Checkpoint]:
    """The checkpoints of a source table, whatever their connections and targets: SQL Server's names differ by case."""
    wanted = _folded(database, name)
    return [each for each in checkpoints if _folded(each.identity.database, each.identity.table) == wanted]


def standing_on(feed: Feed, feeds: Sequence[Feed], checkpoints: Iterable[Checkpoint]) -> Iterator[str]:
    """Yield what of these checkpoints of a table may need a feed, for people.

    Where nobody knows by which feed a sink goes on, it may be this one: its own one is gone, it is not loaded, or was
    reset and its target has a marker.

    :param feeds: all that the table has
    """
    for checkpoint in checkpoints:
        who = f"{checkpoint.identity} ({checkpoint.identity.connection})"
        for shape, sink in sorted(checkpoint.sinks.items()):
            place = f"read to {sink.read_through}" if sink.is_loaded else "not loaded"
            if sink.is_loaded and sink.feed is not None and any(sink.feed.is_same(each) for each in feeds):
                if sink.feed.is_same(feed):
                    yield f"{who} {shape}: {place}"
            else:
                yield f"{who} {shape}: {place}, its instance is not known"
        if not checkpoint.sinks:
            yield f"{who}: not loaded, or reset: its target may go on by any instance"
        for copy in checkpoint.copies:
            yield f"{who}: a copy is under way, and keeps its changes up to {copy.position}"


def _folded(database: str, name: TableName) -> tuple[str, str, str]:
    return database.casefold(), name.schema.casefold(), name.table.casefold()
