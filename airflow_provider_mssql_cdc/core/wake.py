"""Whether there is something to load: decided from positions, events, failures and ages alone."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, CopyState, Failure, position_of
from airflow_provider_mssql_cdc.core.copy_requests import CopyRequest
from airflow_provider_mssql_cdc.core.copy_wanted import STOP
from airflow_provider_mssql_cdc.core.entry_values import AUTO, CDC, CT
from airflow_provider_mssql_cdc.core.feed import Feed, Probe
from airflow_provider_mssql_cdc.core.feed_choice import feed_to_read, has_begun
from airflow_provider_mssql_cdc.core.position import Cut, Position, is_gap
from airflow_provider_mssql_cdc.core.resting import fingerprint
from airflow_provider_mssql_cdc.core.shapes import MIRROR
from airflow_provider_mssql_cdc.core.source_choice import tracked_anew
from airflow_provider_mssql_cdc.core.table import TableName

_ENABLING_MENDS = 'on_disabled="enable"'
"""What the reason of a failure names where enabling is what it wants, and never where that itself has failed."""

LOAD_WRITES_AFTER = datetime.timedelta(hours=1)
"""A load without events writes a checkpoint that is older than this, so only then an old one is worth a run at once."""


class Reason(enum.Enum):
    """Why a table is worth a run."""

    EVENTS = "events"
    FIRST_LOAD = "first load"
    COPYING = "its copy goes on"
    ASKED = "a person asks something of its copy"
    MISSING = "it is named, and does not exist or cannot be seen"
    DISABLED = "change data capture is off for it, or its capture instance cannot be seen"
    UNTRACKED = "Change Tracking is off for it, or cannot be seen"
    NOT_ENABLED = "change data capture is off and is to be enabled"
    NOT_YET_TRACKED = "Change Tracking is off and is to be enabled"
    INSTANCE_GONE = "its capture instance was replaced"
    PURGED = "changes were purged before they were loaded"
    OTHER_LINEAGE = "its position is not of this log lineage"
    TRACKED_ANEW = "it was truncated, or Change Tracking switched off and on"
    REPAIRED = "its capture instance or schema changed since its last run failed"
    RETRY = "it failed for good, and is tried again"
    IDLE = "its checkpoint is to follow"


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look at the feeds of all sources found.

    :param probes: kind of feed to what was found of these
    """

    probes: Mapping[str, Probe] = field(default_factory=dict)

    @property
    def cut(self) -> Cut | None:
        """Up to where, a position of each kind; None while nothing at all is captured."""
        positions = tuple(probe.cut for probe in self.probes.values() if probe.cut is not None)
        return Cut(positions) if positions else None

    def of(self, feed: Feed) -> Probe:
        """What was found of the feeds of this kind."""
        return self.probes.get(feed.KIND) or Probe(None, {}, {})

    def end_of(self, position: Position) -> Position | None:
        """Up to where, in positions of this kind."""
        return self.cut.of(type(position)) if self.cut is not None else None


@dataclass(frozen=True, slots=True)
class Watched:
    """One table as it is seen now.

    :param feeds: what it can be read by; empty where CDC is off for it
    :param unreadable: it has a checkpoint that cannot be read, so ``checkpoint`` is None
    :param missing: it is named, and is not there or cannot be seen
    :param shapes: those that are loaded; one without a state is to be loaded for the first time
    :param request: what a person asks of its copy
    :param source: by which it is to be read, one of ``SOURCES``
    """

    name: TableName
    feeds: tuple[Feed, ...]
    checkpoint: Checkpoint | None
    unreadable: bool = False
    missing: bool = False
    shapes: tuple[str, ...] = (MIRROR,)
    request: CopyRequest | None = None
    source: str = CDC

    @property
    def sound(self) -> tuple[str, ...]:
        """The shapes that did not fail for good, or that a copy may mend: those that count."""
        sinks = self.checkpoint.sinks if self.checkpoint is not None else {}
        copies = self.request is not None and self.request.mends(self.checkpoint)
        failed = {shape: sink.failed for shape, sink in sinks.items() if sink.failed is not None}
        return tuple(s for s in self.shapes if s not in failed or (copies and failed[s].copy_mends))

    @property
    def mended(self) -> tuple[str, ...]:
        """Those of the sound shapes that only the copy mends which is asked for: they wait for it."""
        waiting = self.checkpoint.mended_by_copies if self.checkpoint is not None else ()
        return tuple(shape for shape in self.sound if shape in waiting)

    @property
    def is_copying(self) -> bool:
        """Whether a copy is under way for which some of them waits."""
        checkpoint, request = self.checkpoint, self.request
        if checkpoint is None:
            return False
        asked = request is not None and request.is_for_loaded(checkpoint)

        def waits(shape: str, copy: CopyState) -> bool:
            sink = checkpoint.loaded.get(shape)
            # of one that is loaded, and has no gap, nobody waits for what was asked for and is no more
            return asked or bool(copy.fills) or sink is None or copy.low is None or sink.position < copy.low

        return any(shape in copy.shapes and waits(shape, copy) for copy in checkpoint.copies for shape in self.sound)

    @property
    def reads_rows(self) -> bool:
        """Whether a run may read rows for a copy, or ends one: nobody has paused it."""
        return self.request is None or not self.request.is_paused or self.request.has_ended(self.checkpoint)

    @property
    def is_asked(self) -> bool:
        """Whether a person asks for what a run does though nothing changed."""
        return self.request is not None and self.request.wants_a_run(self.checkpoint)

    @property
    def is_stopped(self) -> bool:
        """Whether a person wants the copy to end."""
        return self.request is not None and self.request.wanted == STOP

    @property
    def position(self) -> Position | None:
        """From where events count; None where a sound shape was never loaded and waits for no copy."""
        # a copy for sinks that are loaded leaves them where they are
        loaded = self.request is not None and self.request.of_loaded
        return position_of(self.checkpoint, self.sound, copies_loaded=loaded, waiting=self.mended)

    @property
    def failures(self) -> list[Failure]:
        """Those for good that are tried again, the first one before the others."""
        sinks = self.checkpoint.sinks if self.checkpoint is not None else {}
        resting = {*self.shapes} - {*self.sound}
        found = [s.failed for shape, s in sinks.items() if s.failed and not s.failed.stopped and shape in resting]
        return sorted(found, key=lambda failure: failure.time)


@dataclass(frozen=True, slots=True)
class WakeRules:
    """What the user asked for.

    :param max_idle: time after which a run is due though nothing happened
    :param on_disabled: what a run does with a table without CDC: ``fail``, ``skip`` or ``enable``
    :param asked: a person asks for this run: what failed for good before the wait began is to be tried
    """

    max_idle: datetime.timedelta
    on_disabled: str = "fail"
    asked: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """One table's reason to wake.

    :param upto: newest event, for ``Reason.EVENTS``
    :param failed_at: when its last run failed, if it did
    """

    reason: Reason
    upto: Position | None = None
    failed_at: datetime.datetime | None = None


@dataclass(frozen=True, slots=True)
class Wake:
    """That there is something to load.

    :param cut: up to where; None while nothing at all is captured
    """

    cut: Cut | None
    calls: Mapping[TableName, Call]

    def __str__(self) -> str:
        tables = ", ".join(f"{name} ({call.reason.value})" for name, call in sorted(self.calls.items()))
        return f"up to {self.cut}" + (f": {tables}" if tables else "")


def feed_to_probe(table: Watched) -> Feed | None:
    """The feed whose events count: the one that a load would read, else the newest."""
    if not table.feeds:
        return None
    return feed_to_read(table.feeds, table.checkpoint, table.sound or table.shapes) or table.feeds[-1]


def positions_to_probe(tables: Iterable[Watched], kind: type[Feed]) -> dict[str, Position]:
    """From where events count, by feed; sinks that failed and first loads are not looked at.

    :param kind: of the feeds
    """
    found: dict[str, Position] = {}
    for table in tables:
        position, feed = table.position, feed_to_probe(table)
        if isinstance(feed, kind) and isinstance(position, kind.POSITION):
            found[feed.name] = position
    return found


def decide(
    tables: Iterable[Watched],
    seen: Seen,
    rules: WakeRules,
    *,
    now: datetime.datetime,
    waiting_since: datetime.datetime,
) -> Wake | None:
    """The wake that is due, or None.

    Rows that the server adds to ``cdc.lsn_time_mapping`` of an idle database move the cut but are no events, so they
    wake only by ``max_idle``.

    :param seen: from ``positions_to_probe``
    :param waiting_since: since when nothing was called for
    """
    tables = list(tables)
    calls = {table.name: call for table in tables if (call := _call(table, seen, rules, now, waiting_since))}
    if not calls:
        calls = {table.name: Call(Reason.IDLE) for table in tables if _is_idle(table, seen, rules, now, waiting_since)}
    return Wake(seen.cut, calls) if calls else None


def _call(
    table: Watched, seen: Seen, rules: WakeRules, now: datetime.datetime, waiting_since: datetime.datetime
) -> Call | None:
    if table.unreadable:
        return None
    call = _call_of_sound(table, seen, rules) if table.sound else None
    if call is None and table.failures:
        return _call_of_failed(table, seen, rules, now, waiting_since)
    return call


def _call_of_sound(table: Watched, seen: Seen, rules: WakeRules) -> Call | None:
    feed = feed_to_probe(table)
    if table.missing:
        return Call(Reason.MISSING)
    if feed is None:
        return _call_of_disabled(table.source, rules.on_disabled)
    probe, position = seen.of(feed), table.position
    if table.reads_rows and _has_begun(feed, probe):
        updated_at = table.checkpoint.updated_at if table.checkpoint is not None else None
        waits = table.is_copying and table.checkpoint is not None and _waits_for_capture(table.checkpoint, probe)
        # each run's progress is news
        if table.is_copying and not waits:
            seen_at = next((copy.at for copy in table.checkpoint.copies), None) if table.checkpoint else None
            return Call(Reason.COPYING, failed_at=seen_at or updated_at)
        if table.is_asked and (not waits or table.is_stopped):
            return Call(Reason.ASKED, failed_at=updated_at)
    if position is None and (table.is_copying or table.mended):
        return None
    if position is None:
        return Call(Reason.FIRST_LOAD) if _has_begun(feed, probe) else None
    of_kind = isinstance(position, feed.POSITION)
    if of_kind and (probe.cut is None or probe.cut < position):
        return Call(Reason.OTHER_LINEAGE)
    if of_kind and _is_tracked_anew(table, feed, probe):
        return Call(Reason.TRACKED_ANEW)
    if not of_kind or _is_replaced(table, feed):
        return Call(Reason.INSTANCE_GONE) if _has_begun(feed, probe) else None
    readable_from = _readable_from(feed, probe)
    if readable_from is None:
        return Call(Reason.OTHER_LINEAGE) if _has_lost_its_start(table, feed, probe) else None
    if is_gap(position, readable_from):
        return Call(Reason.PURGED)
    newest = probe.newest.get(feed.name)
    return Call(Reason.EVENTS, newest) if newest is not None and newest > position else None


def _call_of_disabled(source: str, on_disabled: str) -> Call | None:
    if on_disabled == "skip":
        return None
    # which of two is to be switched on nobody says
    if on_disabled == "enable" and source != AUTO:
        return Call(Reason.NOT_YET_TRACKED if source == CT else Reason.NOT_ENABLED)
    return Call(Reason.UNTRACKED if source == CT else Reason.DISABLED)


def _waits_for_capture(checkpoint: Checkpoint, probe: Probe) -> bool:
    """Whether all rows are read, and nothing was captured since."""
    after = [copy.waits_after for copy in checkpoint.copies]
    return all(position is not None and (probe.cut is None or probe.cut <= position) for position in after)


def _readable_from(feed: Feed, probe: Probe) -> Position | None:
    return probe.readable_from.get(feed.object_id)


def _has_begun(feed: Feed, probe: Probe) -> bool:
    """Whether the capture has passed the feed's start; before that a load has nothing to begin with, and waits."""
    if not feed.CAN.captured:
        # a load says what is in the way
        return probe.cut is not None
    return has_begun(feed, _readable_from(feed, probe), probe.cut)


def _has_lost_its_start(table: Watched, feed: Feed, probe: Probe) -> bool:
    """Whether a feed that was loaded from shows no lower bound any more: a load does not wait for that, but fails."""
    known = table.checkpoint.feeds(table.shapes) if table.checkpoint is not None else ()
    return _readable_from(feed, probe) is None and any(ref.is_same(feed) for ref in known)


def _is_tracked_anew(table: Watched, feed: Feed, probe: Probe) -> bool:
    sinks = table.checkpoint.loaded if table.checkpoint is not None else {}
    return any(tracked_anew(feed, sinks[shape], probe) for shape in table.sound if shape in sinks)


def _is_replaced(table: Watched, feed: Feed) -> bool:
    known = table.checkpoint.feeds(table.sound) if table.checkpoint is not None else ()
    return any(not ref.is_same(feed) for ref in known)


def _call_of_failed(
    table: Watched, seen: Seen, rules: WakeRules, now: datetime.datetime, waiting_since: datetime.datetime
) -> Call | None:
    feed, failed = feed_to_probe(table), table.failures[0]
    probe = seen.of(feed) if feed is not None else Probe(None, {}, {})
    # A load that waits for the capture, or leaves the table out, would not write that it has seen the repair.
    if feed is None and rules.on_disabled == "skip" and not table.missing:
        return None
    if feed is not None and not _has_begun(feed, probe) and not _has_lost_its_start(table, feed, probe):
        return None
    to_enable = feed is None and rules.on_disabled == "enable" and table.source != AUTO and not table.missing
    if to_enable and any(_ENABLING_MENDS in failure.reason for failure in table.failures):
        return Call(Reason.NOT_YET_TRACKED if table.source == CT else Reason.NOT_ENABLED, failed_at=failed.time)
    if (feed is not None or to_enable) and failed.is_of_another(fingerprint(table.feeds)):
        return Call(Reason.REPAIRED, failed_at=failed.time)
    # A failure that the run itself left, or another one meanwhile, was tried: else one run would follow the other.
    if (rules.asked and failed.time < waiting_since) or now - failed.time >= rules.max_idle:
        return Call(Reason.RETRY, failed_at=failed.time)
    return None


def _is_idle(
    table: Watched, seen: Seen, rules: WakeRules, now: datetime.datetime, waiting_since: datetime.datetime
) -> bool:
    checkpoint = table.checkpoint
    if not table.sound:
        return False
    waited = now - waiting_since >= rules.max_idle
    # The load says what is to be done about it.
    if table.unreadable:
        return waited
    position, feed = table.position, feed_to_probe(table)
    if feed is None:
        # left out, so that no load writes its checkpoint
        return False
    if checkpoint is None or position is None or (end := seen.end_of(position)) is None or position >= end:
        return False
    if _is_replaced(table, feed) and not _has_begun(feed, seen.of(feed)):
        return False
    if checkpoint.updated_at is None:
        return True
    return waited or now - checkpoint.updated_at >= max(rules.max_idle, LOAD_WRITES_AFTER)


@dataclass(slots=True)
class Announcer:
    """Keeps a watcher from saying the same twice: the same reasons are worth another event only after ``max_idle``."""

    max_idle: datetime.timedelta
    _said: Mapping[TableName, Call] = field(default_factory=dict)
    _at: datetime.datetime | None = None

    def is_news(self, wake: Wake, now: datetime.datetime) -> bool:
        """Whether the wake says something new, and if so, remember it as said."""
        due = self._at is None or now - self._at >= self.max_idle
        if not due and not any(self._is_new(name, call) for name, call in wake.calls.items()):
            return False
        self._said, self._at = {**self._said, **wake.calls}, now
        return True

    def _is_new(self, name: TableName, call: Call) -> bool:
        said = self._said.get(name)
        if said is None or said.reason is not call.reason:
            return True
        if call.upto is not None and said.upto is not None:
            return call.upto > said.upto
        return call.failed_at != said.failed_at
