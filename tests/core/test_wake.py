"""When to wake: against what a load would find to do, and never twice for the same."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, CopyState, Failure, Identity, SinkState
from airflow_provider_mssql_cdc.core.copy_requests import CopyRequest
from airflow_provider_mssql_cdc.core.copy_wanted import COPY, PAUSE, STOP
from airflow_provider_mssql_cdc.core.feed import CaptureInstance, Feed, FeedRef, Probe
from airflow_provider_mssql_cdc.core.position import Cut, Lsn, Position, Version
from airflow_provider_mssql_cdc.core.resting import MISSING, default_max_idle, fingerprint, without_absence
from airflow_provider_mssql_cdc.core.table import Column, TableName
from airflow_provider_mssql_cdc.core.wake import (
    Announcer,
    Call,
    Reason,
    Seen,
    Wake,
    WakeRules,
    Watched,
    decide,
    feed_to_probe,
    positions_to_probe,
)
from tests.support.core.states import checkpoint_of
from tests.support.logged.feed import LoggedTable, Versions

NOW = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
CREATED = datetime.datetime(2026, 1, 1)
HOUR = datetime.timedelta(hours=1)
MAX_IDLE = 2 * HOUR
RULES = WakeRules(MAX_IDLE)


def lsn(number: int) -> Lsn:
    return Lsn(number.to_bytes(10))


def instance(table: str, *, low: int | None = 10, object_id: int = 1, columns: int = 1) -> CaptureInstance:
    mark = None if low is None else lsn(low)
    return CaptureInstance(
        name=f"dbo_{table}_{object_id}",
        object_id=object_id,
        source=TableName("dbo", table),
        source_object_id=100 + object_id,
        create_date=CREATED,
        start_lsn=mark,
        min_lsn=mark,
        columns=tuple(Column(n, n, f"c{n}", "int", 4, 10, 0) for n in range(1, columns + 1)),
    )


def checkpoint(
    of: CaptureInstance,
    *,
    position: int | None = 20,
    age: datetime.timedelta = datetime.timedelta(0),
    failed: Failure | None = None,
) -> Checkpoint:
    sinks = {} if position is None else {"mirror": SinkState(lsn(position), lsn(position))}
    return checkpoint_of(
        Identity("db", "shop", of.source, "iceberg://lake/shop"),
        sinks,
        FeedRef.of(of),
        failed=failed,
        updated_at=NOW - age,
    )


def probe(cut: int | None, *instances: CaptureInstance, events: dict[str, int] | None = None) -> Seen:
    found = Probe(
        cut=None if cut is None else lsn(cut),
        newest={name: lsn(at) for name, at in (events or {}).items()},
        readable_from={i.object_id: i.readable_from for i in instances},
    )
    return Seen({CaptureInstance.KIND: found})


def newest(seen: Seen) -> Mapping[str, Position]:
    return seen.probes[CaptureInstance.KIND].newest


def cut_of(seen: Seen) -> Lsn | None:
    return seen.cut and seen.cut.of(Lsn)


def reasons(wake: Wake | None) -> dict[str, Reason]:
    return {} if wake is None else {name.table: call.reason for name, call in wake.calls.items()}


def look(table: Watched, seen: Seen, *, rules: WakeRules = RULES, waited: datetime.timedelta = HOUR) -> Wake | None:
    return decide([table], seen, rules, now=NOW, waiting_since=NOW - waited)


A = instance("a")
FAILED = Failure("no", NOW - HOUR, fingerprint([A]))
OVERDUE = dataclasses.replace(FAILED, time=NOW - MAX_IDLE)


@pytest.mark.parametrize(
    ("table", "seen", "expected"),
    [
        pytest.param(Watched(A.source, (A,), checkpoint(A)), probe(20, A), None, id="nothing new"),
        pytest.param(Watched(A.source, (A,), checkpoint(A)), probe(90, A), None, id="dummy rows"),
        pytest.param(
            Watched(A.source, (A,), checkpoint(A)), probe(90, A, events={A.name: 21}), Reason.EVENTS, id="events"
        ),
        pytest.param(
            Watched(A.source, (A,), checkpoint(A)), probe(90, A, events={A.name: 20}), None, id="events loaded by now"
        ),
        pytest.param(Watched(A.source, (A,), None), probe(10, A), Reason.FIRST_LOAD, id="first load"),
        pytest.param(Watched(A.source, (A,), None), probe(9, A), None, id="capture below the instance's start"),
        pytest.param(Watched(A.source, (A,), None), probe(None, A), None, id="nothing captured yet"),
        pytest.param(
            Watched(A.source, (A,), checkpoint(A, position=None)), probe(10, A), Reason.FIRST_LOAD, id="no sink yet"
        ),
        pytest.param(Watched(A.source, (A,), None, unreadable=True), probe(90, A), None, id="unreadable checkpoint"),
        pytest.param(Watched(A.source, (), None), probe(10), Reason.DISABLED, id="not tracked"),
        pytest.param(Watched(A.source, (), None, missing=True), probe(10), Reason.MISSING, id="missing"),
        pytest.param(Watched(A.source, (A,), checkpoint(A)), probe(19, A), Reason.OTHER_LINEAGE, id="max LSN below"),
        pytest.param(Watched(A.source, (A,), checkpoint(A)), probe(None, A), Reason.OTHER_LINEAGE, id="max LSN gone"),
        pytest.param(
            Watched(A.source, (instance("a", low=22),), checkpoint(A)),
            probe(90, instance("a", low=22)),
            Reason.PURGED,
            id="purged",
        ),
        pytest.param(
            Watched(A.source, (A,), checkpoint(A)), probe(90, instance("a", low=22)), Reason.PURGED, id="purged by now"
        ),
        pytest.param(
            Watched(A.source, (A,), checkpoint(A)),
            probe(90, instance("a", low=None)),
            Reason.OTHER_LINEAGE,
            id="without a lower bound",
        ),
        pytest.param(Watched(A.source, (A,), checkpoint(A)), probe(90), Reason.OTHER_LINEAGE, id="not in the probe"),
        pytest.param(Watched(A.source, (A,), None), probe(90), None, id="first load, not in the probe"),
        pytest.param(
            Watched(A.source, (A,), checkpoint_of(checkpoint(A).identity, checkpoint(A).sinks, updated_at=NOW)),
            probe(90, instance("a", low=None)),
            None,
            id="asserted, and the capture just begins",
        ),
        pytest.param(
            Watched(A.source, (A,), checkpoint(A, failed=OVERDUE)),
            probe(90, instance("a", low=None)),
            Reason.RETRY,
            id="failed long ago, without a lower bound",
        ),
        pytest.param(
            Watched(A.source, (instance("a", low=21),), checkpoint(A)),
            probe(90, instance("a", low=21)),
            None,
            id="no gap",
        ),
        pytest.param(
            Watched(A.source, (instance("a", object_id=2),), checkpoint(A)),
            probe(90, instance("a", object_id=2)),
            Reason.INSTANCE_GONE,
            id="instance replaced",
        ),
        pytest.param(
            Watched(A.source, (A,), checkpoint(A, failed=FAILED)), probe(90, A, events={A.name: 50}), None, id="failed"
        ),
        pytest.param(
            Watched(A.source, (A,), checkpoint(A, failed=OVERDUE)),
            probe(90, A),
            Reason.RETRY,
            id="failed long ago",
        ),
        pytest.param(
            Watched(A.source, (instance("a", columns=2),), checkpoint(A, failed=FAILED)),
            probe(90, A),
            Reason.REPAIRED,
            id="failed, then a column more",
        ),
        pytest.param(
            Watched(A.source, (A, instance("a", object_id=2)), checkpoint(A, failed=FAILED)),
            probe(90, A),
            Reason.REPAIRED,
            id="failed, then a second instance",
        ),
        pytest.param(
            Watched(A.source, (A,), checkpoint(A, age=MAX_IDLE)), probe(90, A), Reason.IDLE, id="old checkpoint"
        ),
        pytest.param(
            Watched(A.source, (A,), checkpoint(A, age=MAX_IDLE)), probe(20, A), None, id="old, but nothing to follow"
        ),
    ],
)
def test_reason(table: Watched, seen: Seen, expected: Reason | None) -> None:
    assert reasons(look(table, seen)) == ({} if expected is None else {"a": expected})


LATE, NEW = instance("a", object_id=2, low=91), instance("a", object_id=2, low=None)


@pytest.mark.parametrize("new", [LATE, NEW])
@pytest.mark.parametrize("position", [20, None])
@pytest.mark.parametrize("failed", [FAILED, OVERDUE, None])
@pytest.mark.parametrize("age", [datetime.timedelta(0), MAX_IDLE])
def test_a_new_instance_is_waited_for_until_the_capture_has_passed_its_start(
    new: CaptureInstance, position: int | None, failed: Failure | None, age: datetime.timedelta
) -> None:
    """A load would wait for that as well and write nothing, so one run would follow the other."""
    stored = checkpoint(A, position=position, failed=failed, age=age)
    waiting = Watched(A.source, (new,), stored)
    assert look(waiting, probe(90, new)) is None
    assert look(waiting, probe(90, new), waited=MAX_IDLE) is None
    begun = dataclasses.replace(new, min_lsn=lsn(91))
    assert look(Watched(A.source, (begun,), stored), probe(91, begun)) is not None


@pytest.mark.parametrize("planned", [False, True])
def test_who_asks_has_what_failed_before_tried_at_once(planned: bool) -> None:
    """A person has mended what neither feed nor schema shows: a GRANT, a target, an option."""
    asked = dataclasses.replace(RULES, asked=True)
    failed = dataclasses.replace(FAILED, planned=planned)
    table, seen = Watched(A.source, (A,), checkpoint(A, failed=failed)), probe(90, A)
    assert look(table, seen) is None
    minute = datetime.timedelta(minutes=1)
    assert reasons(look(table, seen, rules=asked, waited=HOUR - minute)) == {"a": Reason.RETRY}
    assert look(table, seen, rules=asked, waited=HOUR + minute) is None, "it failed since: it does not spin"
    assert look(Watched(A.source, (A,), checkpoint(A)), seen, rules=asked) is None, "nothing failed"
    not_begun = instance("a", low=91)
    waits = Watched(A.source, (not_begun,), checkpoint(A, failed=failed))
    assert look(waits, probe(90, not_begun), rules=asked, waited=minute) is None
    beside = Watched(A.source, (A,), checkpoint(A).failing(["history"], failed), shapes=("mirror", "history"))
    assert look(beside, seen) is None
    assert reasons(look(beside, seen, rules=asked, waited=minute)) == {"a": Reason.RETRY}


@pytest.mark.parametrize(("on_disabled", "reason"), [("fail", "b"), ("enable", "b"), ("skip", None)])
def test_a_failed_table_without_cdc_is_called_for_unless_a_load_leaves_it_out(
    on_disabled: str, reason: str | None
) -> None:
    rules = dataclasses.replace(RULES, on_disabled=on_disabled)
    table = Watched(A.source, (), checkpoint(A, failed=OVERDUE))
    assert (look(table, probe(90), rules=rules) is not None) == (reason is not None)


def test_a_new_shape_is_a_first_load() -> None:
    table = Watched(A.source, (A,), checkpoint(A), shapes=("mirror", "history"))
    assert reasons(look(table, probe(20, A))) == {"a": Reason.FIRST_LOAD}


@pytest.mark.parametrize(
    ("on_disabled", "waited", "expected"),
    [
        ("enable", HOUR, {"a": Reason.NOT_ENABLED}),
        ("fail", HOUR, {"a": Reason.DISABLED}),
        ("skip", MAX_IDLE, {}),
    ],
)
def test_table_without_cdc(on_disabled: str, waited: datetime.timedelta, expected: dict[str, Reason]) -> None:
    rules = dataclasses.replace(RULES, on_disabled=on_disabled)
    assert reasons(look(Watched(A.source, (), None), probe(50), rules=rules, waited=waited)) == expected
    # one that was loaded, too, however long ago
    before = checkpoint(A, age=10 * MAX_IDLE)
    assert reasons(look(Watched(A.source, (), before), probe(50), rules=rules, waited=waited)) == expected


@pytest.mark.parametrize("on_disabled", ["fail", "skip", "enable"])
def test_a_missing_table_calls_once_and_again_after_max_idle(on_disabled: str) -> None:
    rules = dataclasses.replace(RULES, on_disabled=on_disabled)
    failed = Failure("it does not exist", NOW - MAX_IDLE + datetime.timedelta(seconds=1), MISSING)
    told = checkpoint(A, position=None, failed=failed)
    assert reasons(look(Watched(A.source, (), None, missing=True), probe(50), rules=rules)) == {"a": Reason.MISSING}
    assert reasons(look(Watched(A.source, (), told, missing=True), probe(50), rules=rules)) == {}
    failed = dataclasses.replace(failed, time=NOW - MAX_IDLE)
    told = told.failing(["mirror"], failed)
    assert reasons(look(Watched(A.source, (), told, missing=True), probe(50), rules=rules)) == {"a": Reason.RETRY}


def test_once_the_table_is_there_its_absence_counts_no_more() -> None:
    absent = checkpoint(A, position=None, failed=Failure("it does not exist", NOW, MISSING))
    assert without_absence(absent) is None
    loaded = checkpoint(A, failed=Failure("it does not exist", NOW, MISSING))
    assert without_absence(loaded) == loaded.failing(["mirror"], None)
    other = checkpoint(A, failed=Failure("no", NOW, fingerprint([A])))
    assert without_absence(other) == other


def test_a_short_max_idle_does_not_wake_again_before_a_load_would_write() -> None:
    """A load without events leaves a checkpoint of less than an hour alone; waking for it again would never end."""
    rules = dataclasses.replace(RULES, max_idle=datetime.timedelta(minutes=1))
    table = Watched(A.source, (A,), checkpoint(A, age=datetime.timedelta(minutes=30)))
    assert look(table, probe(90, A), rules=rules, waited=datetime.timedelta(0)) is None
    assert reasons(look(table, probe(90, A), rules=rules, waited=rules.max_idle)) == {"a": Reason.IDLE}


@pytest.mark.parametrize(
    ("minutes", "hours"), [(None, 1), (4320, 6), (3600, 6), (600, 1), (60, 0.1)], ids=lambda value: str(value)
)
def test_default_max_idle(minutes: int | None, hours: float) -> None:
    assert default_max_idle(minutes) == datetime.timedelta(hours=hours)


def test_the_instance_is_probed_that_a_load_would_read() -> None:
    old, new = instance("a", object_id=1), instance("a", object_id=2)
    assert feed_to_probe(Watched(old.source, (old, new), checkpoint(old))) == old
    assert feed_to_probe(Watched(old.source, (new,), checkpoint(old))) == new
    assert feed_to_probe(Watched(old.source, (old, new), None)) == new
    late, later = instance("a", low=22, object_id=3), instance("a", low=30, object_id=4)
    assert feed_to_probe(Watched(old.source, (new, late, later), checkpoint(old))) == new
    assert feed_to_probe(Watched(old.source, (late, later), checkpoint(old))) == later
    by_hand = checkpoint_of(checkpoint(old).identity, checkpoint(old).sinks)
    assert feed_to_probe(Watched(old.source, (old, late), by_hand)) == old
    assert feed_to_probe(Watched(old.source, (late, later), by_hand)) == later


# --- against a load in miniature

small = st.integers(min_value=0, max_value=12)
moments = st.integers(min_value=0, max_value=5).map(lambda hours: NOW - hours * HOUR)


def test_what_failed_in_another_tasks_shape_keeps_nobody_from_loading() -> None:
    stored = checkpoint(A).failing(["history"], OVERDUE)
    table, seen = Watched(A.source, (A,), stored), probe(90, A, events={A.name: 50})
    assert positions_to_probe([table], CaptureInstance) == {A.name: lsn(20)}
    assert reasons(look(table, seen)) == {"a": Reason.EVENTS}


def test_a_sink_that_failed_keeps_its_neighbour_from_nothing_and_is_tried_again_alone() -> None:
    failed = Failure("no", NOW - HOUR, fingerprint([A]))
    stored = checkpoint(A).failing(["history"], failed)
    both = Watched(A.source, (A,), stored, shapes=("mirror", "history"))
    assert positions_to_probe([both], CaptureInstance) == {A.name: lsn(20)}
    assert reasons(look(both, probe(90, A, events={A.name: 50}))) == {"a": Reason.EVENTS}
    assert look(both, probe(20, A)) is None, "it does not spin"
    overdue = dataclasses.replace(both, checkpoint=checkpoint(A).failing(["history"], OVERDUE))
    assert reasons(look(overdue, probe(20, A))) == {"a": Reason.RETRY}
    assert reasons(look(overdue, probe(90, A, events={A.name: 50}))) == {"a": Reason.EVENTS}
    other = checkpoint(A).failing(["history"], dataclasses.replace(failed, seen="other"))
    assert reasons(look(dataclasses.replace(both, checkpoint=other), probe(20, A))) == {"a": Reason.REPAIRED}


@st.composite
def watched(draw: st.DrawFn, number: int) -> tuple[Watched, list[int]]:
    """A table in any state, and the LSNs of its events."""
    present = instance(f"t{number}", low=draw(st.none() | small.map(lambda low: low + 1)), object_id=number)
    events = draw(st.lists(small, max_size=4))
    stored = None
    if draw(st.booleans()):
        failed = draw(
            st.none()
            | st.builds(Failure, st.just("no"), moments, st.sampled_from([None, "other", fingerprint([present])]))
        )
        stored = dataclasses.replace(
            checkpoint(present, position=draw(st.none() | small), failed=failed), updated_at=draw(moments)
        )
    return Watched(present.source, (present,) if draw(st.integers(0, 5)) else (), stored), events


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[Watched], Seen, datetime.datetime]:
    drawn = [draw(watched(number)) for number in range(1, draw(st.integers(1, 3)) + 1)]
    cut = draw(st.none() | small)
    tables = [table for table, _ in drawn]
    after = positions_to_probe(tables, CaptureInstance)
    events_of = {}
    for table, events in drawn:
        for i in table.feeds:
            seen = [e for e in events if i.name in after and cut is not None and after[i.name] < lsn(e) <= lsn(cut)]
            if seen:
                events_of[i.name] = max(seen)
    return tables, probe(cut, *(i for t in tables for i in t.feeds), events=events_of), draw(moments)


def settled(tables: list[Watched], wake: Wake, cut: Lsn) -> list[Watched]:
    """Every table as a run leaves it: loaded to the cut, or failed for good."""

    def after_run(table: Watched) -> Watched:
        lowest = min((i.min_lsn for i in table.feeds if i.min_lsn), default=None)
        stored = table.checkpoint or Checkpoint(Identity("db", "shop", table.name, "iceberg://lake/shop"))
        position = stored.position(stored.sinks)
        loadable = (
            lowest is not None and lowest <= cut and (position is None or lowest <= position.next() <= cut.next())
        )
        if loadable:
            loaded = SinkState(cut, cut, feed=FeedRef.of(table.feeds[0]))
            stored = dataclasses.replace(stored, sinks={"mirror": loaded})
        else:
            stored = stored.failing(["mirror"], Failure("no", NOW, fingerprint(table.feeds)))
        return dataclasses.replace(table, checkpoint=dataclasses.replace(stored, updated_at=NOW))

    return [after_run(table) for table in tables]


@given(situations())
def test_it_wakes_for_all_events_of_healthy_tables_and_only_for_a_reason(
    situation: tuple[list[Watched], Seen, datetime.datetime],
) -> None:
    tables, seen, since = situation
    wake = decide(tables, seen, RULES, now=NOW, waiting_since=since)
    called = reasons(wake)
    for table in tables:
        healthy = table.checkpoint is not None and table.checkpoint.failure() is None
        has_events = any(i.name in newest(seen) for i in table.feeds)
        if healthy and has_events:
            assert table.name.table in called
        if called.get(table.name.table) is Reason.EVENTS:
            assert healthy
            assert has_events


@given(situations())
def test_a_run_leaves_nothing_to_wake_for(situation: tuple[list[Watched], Seen, datetime.datetime]) -> None:
    """Otherwise sensor and load would chase each other for ever."""
    tables, seen, since = situation
    wake = decide(tables, seen, RULES, now=NOW, waiting_since=since)
    cut = cut_of(seen)
    if wake is None or cut is None:
        return
    left = settled(tables, wake, cut)
    quiet = Seen({kind: dataclasses.replace(found, newest={}) for kind, found in seen.probes.items()})
    assert decide(left, quiet, RULES, now=NOW, waiting_since=NOW) is None


@given(situations())
def test_max_idle_is_never_off(situation: tuple[list[Watched], Seen, datetime.datetime]) -> None:
    tables, seen, _ = situation
    cut = cut_of(seen)
    behind = [
        t
        for t in tables
        if t.feeds
        and t.checkpoint
        and (position := t.checkpoint.position(t.checkpoint.sinks))
        and cut
        and position < cut
        # a failed table waits for what a load would wait for
        if not t.checkpoint.failure() or ((low := t.feeds[0].min_lsn) and low <= cut)
    ]
    later = NOW + MAX_IDLE
    wake = decide(tables, seen, RULES, now=later, waiting_since=NOW)
    assert wake is not None or not behind


# --- two sources

LOGGED = LoggedTable("b", 1, TableName("dbo", "b"), 102, CREATED, A.columns)


def seen_of_both(cut: int, version: int, *, low: int = 0, events: dict[str, int] | None = None) -> Seen:
    found = {name: Version(at) for name, at in (events or {}).items()}
    logs = Probe(Version(version), found, {LOGGED.object_id: Version(low)}, lineage=Versions(Version(version)))
    return Seen({**probe(cut, A).probes, LoggedTable.KIND: logs})


def logged(position: Position, feed: Feed | None = LOGGED, age: datetime.timedelta = datetime.timedelta(0)) -> Watched:
    """A table of the second source, or one that was."""
    identity, state = Identity("db", "shop", LOGGED.source, "iceberg://lake/shop"), SinkState(position, position)
    stored = checkpoint_of(identity, {"mirror": state}, FeedRef.of(LOGGED), updated_at=NOW - age)
    return Watched(LOGGED.source, (feed,) if feed else (), stored)


def test_each_table_is_judged_by_its_own_source_and_the_cut_has_a_position_of_each() -> None:
    captured, rules = Watched(A.source, (A,), checkpoint(A)), {"rules": RULES, "now": NOW, "waiting_since": NOW}
    assert positions_to_probe([captured, logged(Version(4))], LoggedTable) == {"b": Version(4)}
    assert decide([captured, logged(Version(4))], seen_of_both(90, 4), **rules) is None  # type: ignore[arg-type]
    wake = decide([captured, logged(Version(4))], seen_of_both(90, 5, events={"b": 5}), **rules)  # type: ignore[arg-type]
    assert wake == Wake(Cut((lsn(90), Version(5))), {LOGGED.source: Call(Reason.EVENTS, Version(5))})


@pytest.mark.parametrize(
    ("table", "seen", "expected"),
    [
        pytest.param(logged(Version(4)), seen_of_both(90, 9, low=5), Reason.PURGED, id="purged"),
        pytest.param(logged(Version(4)), seen_of_both(90, 3), Reason.OTHER_LINEAGE, id="newest version below"),
        pytest.param(logged(Version(4), age=MAX_IDLE), seen_of_both(90, 9), Reason.IDLE, id="old checkpoint"),
        pytest.param(logged(Version(4), age=MAX_IDLE), seen_of_both(90, 4), None, id="old, but nothing to follow"),
        pytest.param(logged(Version(4), None), seen_of_both(90, 9), Reason.DISABLED, id="its log is gone"),
        pytest.param(
            logged(Version(4), dataclasses.replace(A, source=LOGGED.source)),
            seen_of_both(90, 9),
            Reason.INSTANCE_GONE,
            id="captured now",
        ),
        pytest.param(
            logged(Version(4), dataclasses.replace(A, source=LOGGED.source)),
            seen_of_both(9, 9),
            None,
            id="captured now, and nothing is captured yet",
        ),
    ],
)
def test_a_table_of_a_second_source(table: Watched, seen: Seen, expected: Reason | None) -> None:
    assert reasons(look(table, seen)) == ({} if expected is None else {"b": expected})


# --- an asset's watcher


def wake_of(cut: int, **events: int) -> Wake:
    return Wake(Cut.at(lsn(cut)), {TableName("dbo", name): Call(Reason.EVENTS, lsn(at)) for name, at in events.items()})


def test_the_same_events_are_announced_once_however_far_the_cut_moves() -> None:
    announcer = Announcer(MAX_IDLE)
    said = [announcer.is_news(wake_of(cut, a=5), NOW) for cut in (5, 6, 7)]
    assert said == [True, False, False]
    assert announcer.is_news(wake_of(8, a=8), NOW)
    assert announcer.is_news(wake_of(8, a=8, b=3), NOW)
    assert not announcer.is_news(wake_of(9, b=3), NOW)


def test_what_no_load_reached_is_announced_again_after_max_idle() -> None:
    announcer = Announcer(MAX_IDLE)
    assert announcer.is_news(wake_of(5, a=5), NOW)
    assert not announcer.is_news(wake_of(5, a=5), NOW + MAX_IDLE - HOUR)
    assert announcer.is_news(wake_of(5, a=5), NOW + MAX_IDLE)
    assert not announcer.is_news(wake_of(5, a=5), NOW + MAX_IDLE + HOUR)


def test_a_second_failure_is_news() -> None:
    name = TableName("dbo", "a")
    announcer = Announcer(MAX_IDLE)
    assert announcer.is_news(Wake(Cut.at(lsn(5)), {name: Call(Reason.RETRY, failed_at=NOW)}), NOW)
    assert not announcer.is_news(Wake(Cut.at(lsn(6)), {name: Call(Reason.RETRY, failed_at=NOW)}), NOW)
    assert announcer.is_news(Wake(Cut.at(lsn(6)), {name: Call(Reason.RETRY, failed_at=NOW + HOUR)}), NOW)


@pytest.mark.parametrize(
    ("position", "waiting", "expected"),
    [
        (None, ("mirror",), Reason.COPYING),
        # one that waits beside others, or in a gap
        (20, ("history",), Reason.COPYING),
        (20, ("mirror",), Reason.COPYING),
        # what waited for it is no longer asked for: the other one is to be loaded for the first time
        (20, ("scd2",), Reason.FIRST_LOAD),
    ],
)
def test_a_copy_goes_on_though_nothing_happens(position, waiting, expected):
    stored = dataclasses.replace(checkpoint(A, position=position), copies=(CopyState("1", "/copies", shapes=waiting),))
    found = look(Watched(A.source, (A,), stored, shapes=("mirror", "history")), probe(20, A))
    assert reasons(found) == {"a": expected}


def test_each_run_of_a_copy_is_news_to_a_watcher():
    stored = dataclasses.replace(checkpoint(A, position=None), copies=(CopyState("1", "/copies", shapes=("mirror",)),))
    announcer = Announcer(MAX_IDLE)
    first = look(Watched(A.source, (A,), stored), probe(20, A))
    assert first is not None
    assert [announcer.is_news(first, NOW), announcer.is_news(first, NOW)] == [True, False]
    later = dataclasses.replace(stored, updated_at=NOW)
    second = look(Watched(A.source, (A,), dataclasses.replace(later, updated_at=NOW + HOUR)), probe(20, A))
    assert second is not None
    assert announcer.is_news(second, NOW)


@pytest.mark.parametrize(("captured", "expected"), [(20, {}), (21, {"a": Reason.COPYING})])
@pytest.mark.parametrize("position", [None, 20])
def test_a_copy_that_waits_for_the_capture_goes_on_when_more_is_captured(position, captured, expected):
    waiting = CopyState("1", "/copies", shapes=("mirror",), waits_after=lsn(20))
    stored = dataclasses.replace(checkpoint(A, position=position), copies=(waiting,))
    assert reasons(look(Watched(A.source, (A,), stored), probe(captured, A))) == expected


ASKED = CopyRequest(Identity("db", "shop", A.source, "iceberg://lake/shop"), "c1")


@pytest.mark.parametrize(
    ("wanted", "of_loaded", "ended", "expected"),
    [
        (COPY, True, (), {"a": Reason.ASKED}),
        (COPY, True, ("c0 COMPLETED",), {"a": Reason.ASKED}),
        (COPY, True, ("c1 COMPLETED",), {}),
        (STOP, True, (), {"a": Reason.ASKED}),
        (STOP, True, ("c1 STOPPED",), {}),
        # none is under way any more
        (STOP, False, (), {}),
        (PAUSE, True, (), {}),
        (COPY, False, (), {}),
    ],
)
def test_what_a_person_asks_of_a_copy_calls_for_a_run_until_it_is_done(wanted, of_loaded, ended, expected):
    stored = dataclasses.replace(checkpoint(A), ended_copies=ended)
    request = dataclasses.replace(ASKED, wanted=wanted, of_loaded=of_loaded)
    assert reasons(look(Watched(A.source, (A,), stored, request=request), probe(20, A))) == expected


@pytest.mark.parametrize("position", [None, 20])
@pytest.mark.parametrize(("events", "expected"), [({}, {}), ({A.name: 21}, {"a": Reason.EVENTS})])
def test_a_paused_copy_is_gone_on_with_only_to_keep_changes(position, events, expected):
    copy = CopyState("c1", "/copies", position=lsn(20), low=lsn(15), shapes=("mirror",))
    stored = dataclasses.replace(checkpoint(A, position=position), copies=(copy,))
    request = dataclasses.replace(ASKED, wanted=PAUSE, of_loaded=False)
    found = look(Watched(A.source, (A,), stored, request=request), probe(21, A, events=events))
    assert reasons(found) == expected


def test_changes_are_looked_for_behind_those_that_a_copy_keeps():
    copy = CopyState("c1", "/copies", position=lsn(17), shapes=("history",))
    stored = dataclasses.replace(checkpoint(A, position=20), copies=(copy,))
    assert positions_to_probe([Watched(A.source, (A,), stored, shapes=("mirror", "history"))], CaptureInstance) == {
        A.name: lsn(17)
    }


def test_the_changes_beside_a_copy_that_closes_a_gap_count_for_the_sink_in_it():
    copy = CopyState("c1", "/copies", position=lsn(19), low=lsn(18), shapes=("mirror",))
    stored = dataclasses.replace(checkpoint(A, position=5), copies=(copy,))
    request = dataclasses.replace(ASKED, wanted=PAUSE, of_loaded=False)
    assert reasons(look(Watched(A.source, (A,), stored, request=request), probe(20, A))) == {}
    # where nobody is to begin again
    failed = Failure("stopped", NOW - datetime.timedelta(days=9), stopped=True)
    assert look(Watched(A.source, (A,), checkpoint(A, failed=failed)), probe(20, A)) is None


def test_a_copy_into_loaded_sinks_hides_no_change_of_before_it():
    copy = CopyState("c1", "/copies", position=lsn(25), low=lsn(22), shapes=("mirror",))
    stored = dataclasses.replace(checkpoint(A, position=20), copies=(copy,))
    paused = Watched(A.source, (A,), stored, request=dataclasses.replace(ASKED, wanted=PAUSE))
    assert positions_to_probe([paused], CaptureInstance) == {A.name: lsn(20)}
    assert reasons(look(paused, probe(25, A, events={A.name: 21}))) == {"a": Reason.EVENTS}


@pytest.mark.parametrize(
    ("wanted", "where", "copy_mends", "expected"),
    [
        (COPY, "", True, {"a": Reason.ASKED}),
        (COPY, "", False, {}),
        # it may not have the row that is lost
        (COPY, '[["id", "=", 1]]', True, {}),
        (PAUSE, "", True, {}),
        (STOP, "", False, {}),
    ],
)
def test_what_a_copy_mends_does_not_rest_while_one_is_asked_for(wanted, where, copy_mends, expected):
    failed = dataclasses.replace(FAILED, time=NOW, copy_mends=copy_mends)
    request = dataclasses.replace(ASKED, wanted=wanted, where=where)
    watched = Watched(A.source, (A,), checkpoint(A, failed=failed), request=request)
    assert reasons(look(watched, probe(20, A))) == expected


@pytest.mark.parametrize(
    ("wanted", "begun", "events", "expected"),
    [
        # all rows are read, and the capture is waited for: what the mirror lacks calls for nothing
        (COPY, True, 18, {}),
        (PAUSE, True, 18, {}),
        # a paused one keeps what happens
        (PAUSE, True, 21, {"a": Reason.EVENTS}),
        (PAUSE, False, 21, {}),
        (COPY, False, 21, {"a": Reason.ASKED}),
        (STOP, True, 18, {"a": Reason.ASKED}),
    ],
)
def test_what_waits_for_a_copy_that_mends_it_stands_where_the_copy_does(wanted, begun, events, expected):
    failed = dataclasses.replace(FAILED, time=NOW, copy_mends=True)
    copy = CopyState("c1", "/copies", position=lsn(20), low=lsn(15), shapes=("mirror",), waits_after=lsn(20))
    stored = dataclasses.replace(checkpoint(A, position=10, failed=failed), copies=(copy,) if begun else ())
    watched = Watched(A.source, (A,), stored, request=dataclasses.replace(ASKED, wanted=wanted))
    assert reasons(look(watched, probe(20, A, events={A.name: events}))) == expected


def test_a_stop_does_not_wait_for_the_capture():
    copy = CopyState("c1", "/copies", position=lsn(20), low=lsn(15), shapes=("mirror",), waits_after=lsn(20))
    stored = dataclasses.replace(checkpoint(A), copies=(copy,))
    request = dataclasses.replace(ASKED, wanted=STOP)
    assert reasons(look(Watched(A.source, (A,), stored, request=request), probe(20, A))) == {"a": Reason.ASKED}
