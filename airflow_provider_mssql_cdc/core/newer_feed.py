"""The newer feed that has columns which a table's sinks are to get, once it reaches back to all of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from airflow_provider_mssql_cdc.core.adding import Adding, names_of
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, SinkState
from airflow_provider_mssql_cdc.core.exceptions import MsSqlCdcError
from airflow_provider_mssql_cdc.core.feed import Feed, Probe
from airflow_provider_mssql_cdc.core.feed_choice import by_age, choose_feed, reaches_back
from airflow_provider_mssql_cdc.core.key import choose_key
from airflow_provider_mssql_cdc.core.position import is_gap
from airflow_provider_mssql_cdc.core.schema import KeptSchemas
from airflow_provider_mssql_cdc.core.table import TableName, TableSchema


def feed_to_load(
    name: TableName,
    feeds: Sequence[Feed],
    checkpoint: Checkpoint | None,
    shapes: Collection[str],
    going_on: Sequence[SinkState],
    adding: Adding,
    kept: KeptSchemas,
    probe: Probe | None = None,
) -> Feed:
    """The feed to read: that of ``choose_feed``, or the newer one that has columns which the table's sinks are to get,
    once it reaches back to all of them.

    No transaction is read from both: a sink goes on behind its position by the other one.

    :param shapes: those that are to be continued
    :param going_on: all sinks of the table that are loaded, also those that rest: none is left behind
    :param kept: schemas by their hash
    :param probe: says how far the feeds reach back now
    :raises GapError: as ``choose_feed``
    """
    feed = choose_feed(name, feeds, checkpoint, shapes, probe)
    has = {column.column_id for column in feed.columns}
    for newer in by_age(feeds):
        if newer is feed or not going_on:
            break
        if _adds(newer, has, adding) and not _held_back(name, newer, feed, checkpoint, going_on, adding, kept, probe):
            return newer
    return feed


def held_back(
    name: TableName,
    feeds: Sequence[Feed],
    feed: Feed,
    checkpoint: Checkpoint | None,
    sinks: Sequence[SinkState],
    adding: Adding,
    kept: KeptSchemas,
    probe: Probe,
) -> list[str]:
    """Why newer feeds are not read yet, or cannot be, which have columns that sinks are to get.

    :param feed: that is read
    :param sinks: that are loaded
    """
    has, told = {column.column_id for column in feed.columns}, []
    for newer in by_age(feeds):
        if newer is feed:
            break
        if columns := _adds(newer, has, adding):
            why = _held_back(name, newer, feed, checkpoint, sinks, adding, kept, probe)
            told.append(f"{newer} has {', '.join(columns)}, and is not read: {why}")
    return told


def _adds(feed: Feed, has: Collection[int], adding: Adding) -> list[str]:
    """The columns of a feed that sinks are to get, and that another one lacks."""
    names = names_of(feed)
    return [c.name for c in feed.columns if c.column_id not in has and adding.wants(c, names)]


def _held_back(
    name: TableName,
    feed: Feed,
    before: Feed,
    checkpoint: Checkpoint | None,
    sinks: Sequence[SinkState],
    adding: Adding,
    kept: KeptSchemas,
    probe: Probe | None,
) -> str | None:
    """Why sinks cannot go on by a feed in the columns that they have; None where all can.

    :param before: by which they would go on else: one that has a gap there, too, is not held back if a copy closes it
    """
    try:
        key, _ = choose_key(name, feed, adding.options.key, adding.keys)
    except MsSqlCdcError as error:
        return error.message
    now, readable_from = TableSchema(feed.columns, key), reaches_back(feed, probe)
    closes, lost_before = adding.options.copies_on_gap, reaches_back(before, probe)
    for sink in sinks:
        if readable_from is None:
            return "nothing of it is captured yet"
        fits = isinstance(sink.position, feed.POSITION)
        copied = fits and closes and lost_before is not None and is_gap(sink.position, lost_before)
        if not fits or (is_gap(sink.position, readable_from) and not copied):
            failed = f", where one rests that has failed: {sink.failed.reason}" if sink.failed is not None else ""
            return f"it begins behind {readable_from}, and a sink is at {sink.position}{failed}"
        if sink.schema_hash is None:
            return "of an asserted position nobody knows with which columns it was loaded"
        if not adding.goes_on(feed, now, sink, kept):
            return "its columns, their types or its key are not those that the sinks were loaded with"
    if lost_before is not None and not any(is_gap(sink.position, lost_before) for sink in sinks):
        # another copy would begin in its place
        fills = {column for copy in checkpoint.copies for column in copy.fills} if checkpoint is not None else set()
        filled = {column.column_id for column in before.columns if column.name in fills and not column.dropped}
        if filled and any(_lacks(sink, filled, kept) for sink in sinks):
            return f"a copy by {before} still fills {', '.join(sorted(fills))}"
    return None


def _lacks(sink: SinkState, columns: Collection[int], kept: KeptSchemas) -> bool:
    """Whether a sink lacks some of these columns, or values of before.

    :param columns: column_ids
    """
    schema = kept(sink.schema_hash) if sink.schema_hash is not None else None
    has = {facts.column_id for facts in schema.columns} if schema is not None else set()
    return bool(sink.unfilled) or not has.issuperset(columns)
