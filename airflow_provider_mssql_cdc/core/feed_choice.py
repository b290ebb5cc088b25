"""Which of a table's feeds is read: the one that was read before, one that continues it, or the newest."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint
from airflow_provider_mssql_cdc.core.exceptions import RESET_ADVICE, GapError, InstanceChangedError, RestoredError
from airflow_provider_mssql_cdc.core.feed import Feed, Probe
from airflow_provider_mssql_cdc.core.position import Position, is_gap
from airflow_provider_mssql_cdc.core.shapes import SHAPES
from airflow_provider_mssql_cdc.core.table import TableName


def choose_feed(
    name: TableName,
    feeds: Sequence[Feed],
    checkpoint: Checkpoint | None,
    shapes: Collection[str] = tuple(SHAPES),
    probe: Probe | None = None,
) -> Feed:
    """The feed to read: the checkpoint's while it exists, else one that continues it; for a table that is loaded for
    the first time the newest.

    :param shapes: those that are to be continued; of several that a feed cannot all continue, those that it can
    :param probe: says how far the feeds reach back now
    :raises GapError: if the checkpoint's feed is gone and no other reaches back to the position of any
    """
    loaded = checkpoint.loaded if checkpoint is not None else {}
    asked = {shape: sink.position for shape, sink in loaded.items() if shape in shapes}
    found = feed_to_read(feeds, checkpoint, shapes, probe)
    for position in sorted(set(asked.values()))[1:]:
        if found is None:
            later = [shape for shape in shapes if asked.get(shape, position) >= position]
            found = feed_to_read(feeds, checkpoint, later, probe)
    if found is not None:
        return found
    assert checkpoint is not None
    raise GapError(
        str(name),
        min(asked.values()),
        min(filter(None, (reaches_back(feed, probe) for feed in feeds)), default=None),
        advice=f"{feeds[0].WORD.capitalize()} {checkpoint.feeds(shapes)[0].name} was dropped before all was loaded. "
        'Load the table anew once with on_gap="copy", or drop the target table and run `mssql-cdc checkpoint '
        "reset`.",
    )


def feed_to_read(
    feeds: Sequence[Feed], checkpoint: Checkpoint | None, shapes: Collection[str], probe: Probe | None = None
) -> Feed | None:
    """The feed of ``choose_feed``; None if the checkpoint's is gone and no other continues it."""
    newest_first = by_age(feeds)
    if checkpoint is None or not checkpoint.loaded:
        return newest_first[0]
    known = checkpoint.feeds(shapes)
    for feed in reversed(newest_first):
        if any(ref.is_same(feed) for ref in known):
            return feed
    position = checkpoint.position(shapes)
    if position is None:
        return newest_first[0]
    for feed in newest_first:
        if isinstance(position, feed.POSITION) and not is_gap(position, reaches_back(feed, probe)):
            return feed
    return None if known else newest_first[0]


def by_age(feeds: Iterable[Feed]) -> list[Feed]:
    """A table's feeds, the newest first."""
    return sorted(feeds, key=lambda feed: (feed.create_date, feed.object_id), reverse=True)


def reaches_back(feed: Feed, probe: Probe | None) -> Position | None:
    """How far a feed reaches back: by what a probe has found now, else as it was when the feed was listed."""
    return feed.readable_from if probe is None else probe.readable_from.get(feed.object_id)


def has_begun(feed: Feed, readable_from: Position | None, upto: Position | None) -> bool:
    """Whether there is something to begin with: the capture, where one brings the changes, has passed the feed's start.

    :param readable_from: of the feed; None while nothing can be read
    :param upto: the cut, or the newest position
    """
    if readable_from is None or upto is None:
        return False
    return readable_from < upto if feed.CAN.captured else readable_from <= upto


def vanished(name: TableName, feed: Feed) -> InstanceChangedError:
    """The error of a feed that was there when the run listed it."""
    return InstanceChangedError(
        f"{feed} vanished while the run was planned.",
        table=str(name),
        advice="Run the task again.",
    )


def without_lower_bound(name: TableName, feed: Feed, probe: Probe) -> InstanceChangedError | RestoredError:
    """The error of a feed beside a checkpoint, or without a capture, of which nobody knows how far it reaches back."""
    if feed.object_id not in probe.readable_from or not feed.CAN.captured:
        return vanished(name, feed)
    return RestoredError(
        f"{feed} shows no lower bound (fn_cdc_get_min_lsn), beside a checkpoint.",
        table=str(name),
        advice="Either it was just enabled anew, or the login may not see it: SELECT on all captured columns "
        f"and membership in the gating role are needed. {RESET_ADVICE}",
    )
