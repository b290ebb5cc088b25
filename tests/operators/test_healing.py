"""Versions of Change Tracking that plans note for tables that are captured, and gaps that they close."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint
from airflow_provider_mssql_cdc.core.exceptions import GapError, ServerUnreachableError, SqlServerError
from airflow_provider_mssql_cdc.core.passing import CaptureProgress
from airflow_provider_mssql_cdc.core.position import Lsn, Version
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.hooks.mssql_change_tracking import MsSqlChangeTrackingHook
from airflow_provider_mssql_cdc.hooks.tracking_source import TrackingSource
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.healing import add_noted
from airflow_provider_mssql_cdc.operators.planning import plan_load
from airflow_provider_mssql_cdc.operators.sourcing import sources_for
from tests.support.hooks import tracked
from tests.support.hooks.source import Source
from tests.support.operators.group import A, B, Group


@pytest.fixture
def both(source: Source) -> Group:
    """A table with both, and one that is captured alone; they are loaded."""
    group = Group(source)
    group.make("dbo.a", "dbo.b")
    tracked.track_existing(source, "dbo.a")
    group.loaded(A, B)
    return group


def captured(group: Group) -> None:
    """Let the capture pass all that is committed: of further scans two find nothing."""
    for _ in range(3):
        group.source.scan()


def planned(group: Group, *ways: str, hook: MsSqlCdcHook | None = None) -> RunPlan:
    request = group.request({"table": "dbo.a", "on_gap": list(ways or ("ct",))})
    with hook or group.source.hook() as opened:
        return plan_load(opened, group.store, request, None, sources_for(opened, {"cdc"}))


def kept(group: Group, plan: RunPlan) -> Checkpoint:
    """Move the checkpoint of the table to the plan's cut, with what was noted, as a run without failures does."""
    assert plan.upto is not None
    group.loaded_up_to_now(A, plan.upto.of(Lsn))
    stored = group.store.load(group.source.identity(A))
    assert stored is not None
    written = {A: stored}
    add_noted(plan, written)
    group.store.overwrite(written[A])
    return written[A]


def test_a_version_is_noted_and_kept_once_the_capture_has_passed_it(both: Group) -> None:
    checkpoint = kept(both, planned(both))
    assert [(each.position, each.lsn) for each in checkpoint.noted] == [({"kind": "version", "at": "0"}, None)]
    both.source.sql("UPDATE dbo.a SET v = 1")
    captured(both)
    checkpoint = kept(both, planned(both))
    (sink,) = checkpoint.sinks.values()
    ((position,), (left,)) = sink.positions, checkpoint.noted
    assert (position.position["at"], position.lsn) == ("0", sink.read_through)
    assert (left.position["at"], left.lsn) == ("1", None)
    # nothing new is noted while no version is drawn
    assert len(kept(both, planned(both)).noted) == 1


def test_a_version_may_be_used_from_where_the_capture_is_once_it_was_seen_to_have_passed(
    both: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    both.source.sql("UPDATE dbo.a SET v = 1")
    captured(both)
    kept(both, planned(both))
    both.source.sql("UPDATE dbo.a SET v = 2")
    kept(both, planned(both))
    real = MsSqlCdcHook.capture_progress

    def late(hook: MsSqlCdcHook) -> CaptureProgress:
        # the capture gets on behind what the plan has asked of the database first
        both.source.sql("UPDATE dbo.a SET v = 3")
        captured(both)
        return real(hook)

    before = both.source.max_lsn()
    monkeypatch.setattr(MsSqlCdcHook, "capture_progress", late)
    plan = planned(both)
    passed = [each for each in plan.noted[A] if each.lsn is not None and each.position["at"] == "2"]
    assert passed
    assert all(each.lsn is not None and each.lsn > before for each in passed)


def test_what_is_in_the_way_is_said(both: Group) -> None:
    plan = planned(both)
    assert plan.failures == {}
    assert [text for text in plan.warnings if "keeps changes for" in text] == [], "seven days, and three"
    both.source.sql("ALTER TABLE dbo.a DISABLE CHANGE_TRACKING")
    both.source.sql("ALTER DATABASE CURRENT SET CHANGE_TRACKING (CHANGE_RETENTION = 2 DAYS)")
    plan = planned(both)
    (text,) = [text for text in plan.warnings if "on_gap names" in text]
    assert "ALTER TABLE [dbo].[a] ENABLE CHANGE_TRACKING" in text
    assert "GRANT VIEW CHANGE TRACKING ON [dbo].[a] TO" in text
    tracked.track_existing(both.source, "dbo.a")
    plan = planned(both)
    (text,) = [text for text in plan.warnings if "keeps changes for" in text]
    assert "SET CHANGE_TRACKING (CHANGE_RETENTION = 4 DAYS)" in text


def purged(group: Group) -> None:
    group.source.sql("UPDATE dbo.a SET v = COALESCE(v, 0) + 1")
    captured(group)
    low = group.source.max_lsn()
    group.source.sql(f"EXEC sys.sp_cdc_cleanup_change_table N'dbo_a', {low}, 5000")


def settled(group: Group) -> None:
    for number in range(2):
        group.source.sql(f"UPDATE dbo.a SET v = {number}")
        captured(group)
        kept(group, planned(group))


@pytest.mark.parametrize("ways", [("ct",), ("ct", "copy")])
def test_where_change_tracking_cannot_be_asked_a_gap_is_left_to_the_next_run(
    both: Group, monkeypatch: pytest.MonkeyPatch, ways: tuple[str, ...]
) -> None:
    settled(both)
    purged(both)

    def gone(*_: Any) -> Any:
        raise ServerUnreachableError("the server does not answer.", number=0)

    with monkeypatch.context() as patch:
        patch.setattr(TrackingSource, "beside", gone)
        plan = planned(both, *ways)
    (failed,) = plan.failures.values()
    assert isinstance(failed, GapError)
    assert not failed.permanent
    assert "the server does not answer" in str(failed)
    assert ("The next run asks again." in str(failed)) == ("copy" in ways)
    plan = planned(both, *ways)
    assert plan.failures == {}
    assert plan.steps[A].copies.keys() == {"mirror"}


def test_a_version_of_another_database_is_not_used(both: Group) -> None:
    settled(both)
    purged(both)
    stored = both.store.load(both.source.identity(A))
    assert stored is not None
    for change in (
        {"position": {"kind": "version", "at": "99"}},
        {"witness": {"fork": "another"}},
        {"witness": {"object_id": 5}},
        {"witness": {"create_date": datetime.datetime(2001, 1, 1).isoformat()}},
    ):
        sinks = {}
        for shape, sink in stored.sinks.items():
            (known,) = sink.positions
            given = {name: {**(getattr(known, name) or {}), **value} for name, value in change.items()}
            sinks[shape] = dataclasses.replace(sink, positions=(dataclasses.replace(known, **given),))
        both.store.overwrite(dataclasses.replace(stored, sinks=sinks, noted=()))
        plan = planned(both)
        (failed,) = plan.failures.values()
        assert "Change Tracking cannot heal it" in str(failed), change
    both.store.overwrite(stored)
    assert planned(both).failures == {}


def test_a_secondary_that_knows_no_versions_is_copied_from_where_that_is_named(
    both: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled(both)
    purged(both)

    def refused(*_: Any) -> Any:
        raise SqlServerError("this is a secondary.", number=22117)

    monkeypatch.setattr(TrackingSource, "beside", refused)
    (failed,) = planned(both, "ct").failures.values()
    assert failed.permanent
    plan = planned(both, "ct", "copy")
    assert plan.failures == {}
    assert plan.steps[A].copies.keys() == {"mirror"}


def test_a_version_is_older_than_a_column_that_comes_while_it_is_noted(
    both: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = MsSqlChangeTrackingHook.current_version

    def late(hook: MsSqlChangeTrackingHook) -> Version | None:
        found = real(hook)
        both.source.sql("ALTER TABLE dbo.a ADD w int NOT NULL DEFAULT 5; UPDATE dbo.a SET w = v")
        return found

    (known,) = planned(both).noted[A]
    monkeypatch.setattr(MsSqlChangeTrackingHook, "current_version", late)
    both.source.sql("UPDATE dbo.a SET v = 1")
    (last,) = [each for each in planned(both).noted[A] if each != known]
    ((column_id,),) = both.source.sql("SELECT COLUMNPROPERTY(OBJECT_ID(N'dbo.a'), N'w', 'ColumnId')")
    assert (known.column_upto, last.column_upto) == (column_id - 1, column_id)
