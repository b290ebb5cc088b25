"""Histories in plain files: manifests that one writer alone can make, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.exceptions import NewerFormatError, TargetError
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.spec import ReplaySpec
from airflow_provider_mssql_cdc.spark.files import write_rows
from airflow_provider_mssql_cdc.spark.session import table_session
from airflow_provider_mssql_cdc.spark.targets import Write, parquet
from airflow_provider_mssql_cdc.spark.targets.parquet import ParquetTable, read_history
from airflow_provider_mssql_cdc.spark.targets.sql import different_columns
from tests.core.test_schema import WIDE
from tests.support.spark.model import table_spec
from tests.support.spark.origin import Origin, positions
from tests.support.spark.rows import local
from tests.support.spark.tables import COLUMNS, changes, frame, load, marker, merge, race, replace

pytestmark = pytest.mark.xdist_group(__name__)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose name is neither a URL nor a pattern."""
    path = tmp_path / "a lake, 100% {ours} [x]*%41"
    path.mkdir()
    return path


@pytest.fixture
def new(spark, folder):
    def make(spec_id="spec"):
        return ParquetTable(table_session(spark), (f"file://{folder}", "t x"), spec_id)

    return make


@pytest.fixture
def table(new):
    new().create(COLUMNS)
    return new


def contents(spark, folder):
    return sorted(tuple(row) for row in read_history(spark, f"file://{folder}", "t x").collect())


def test_a_missing_table_is_seen_as_such_and_a_new_one_as_empty(new):
    assert (new().state().exists, new().state().is_empty, new().state().marker) == (False, True, None)
    new().create(COLUMNS)
    state = new().state()
    assert (state.exists, state.is_empty, state.marker, state.snapshot) == (True, True, None, 0)
    assert new().rows(state).collect() == []
    with pytest.raises(TargetError, match="there is no history"):
        read_history(new()._session, "file:///nowhere", "t")


def test_rows_and_marker_appear_together(spark, table, folder):
    target = table()
    before = target.state()
    assert target.commit(before, Write(frame(target, [(1, "x", 2), (2, None, 300)])), marker(7))

    assert contents(spark, folder) == [(1, "x", 2), (2, None, 300)]
    assert table().state().marker == marker(7)
    assert table().rows(before).collect() == []
    load(table(), 8, [(3, "y", 4)])
    assert contents(spark, folder) == [(1, "x", 2), (2, None, 300), (3, "y", 4)]
    assert sorted(tuple(row) for row in table().rows(table().state()).collect()) == contents(spark, folder)


def test_types_grow_and_no_value_is_another(spark, table, folder):
    load(table(), 1, [(1, "a", 1), (2, "b", -2)])
    target = table()
    target.widen((TargetColumn("id", "BIGINT", "{}"), TargetColumn("s", "INT", "{}")))
    wider = (TargetColumn("id", "BIGINT", "{}"), COLUMNS[1], TargetColumn("s", "INT", "{}"))
    assert target.check(wider) is None
    # what is killed before its commit has done nothing
    assert table().check(COLUMNS) is None
    rows = local(target._session, [(5_000_000_000, "c", 70_000)], "id BIGINT, `a ``b.c` STRING, s INT")
    assert target.commit(target.state(), Write(rows), marker(2))
    assert table().check(wider) is None
    assert contents(spark, folder) == [(1, "a", 1), (2, "b", -2), (5_000_000_000, "c", 70_000)]


def test_a_commit_without_marker_hides_none(spark, table, folder):
    load(table(), 1, [(1, "a", 1)])
    target = table()
    assert target.commit(target.state(), Write(frame(target, [(2, "b", 2)])), None)
    assert table().state().marker == marker(1)
    assert len(contents(spark, folder)) == 2


@pytest.mark.parametrize("exists", [False, True])
def test_of_several_commits_from_one_state_exactly_one_wins(spark, new, folder, exists):
    if exists:
        new().create(COLUMNS)
        load(new(), 1, [(9, "first", 9)])
    targets = [new(f"job{number}") for number in range(3)]
    states = [target.state() for target in targets]
    for target in targets:
        target.create(COLUMNS)

    winner = race(targets, states)

    assert contents(spark, folder) == [(winner, "row", 1)] + ([(9, "first", 9)] if exists else [])
    assert new().state().marker == marker(10 + winner)
    assert new().changed_by().startswith(f"manifest {2 if exists else 1} of job job{winner} at ")
    # the losers' files are gone, and no draft is left
    assert len(list((folder / "t x" / "data").iterdir())) == (2 if exists else 1)
    assert not list((folder / "t x" / "_manifests").glob(".*"))


def test_what_a_killed_job_wrote_is_no_part_of_the_table_and_goes_after_a_day(spark, table, folder):
    load(table(), 1, [(1, "a", 1)])
    data = folder / "t x" / "data"
    (committed,) = data.iterdir()
    killed, running = data / "spec_killed", data / "spec_running"
    frame(table(), [(2, "never", 2)]).write.parquet(f"file://{killed}")
    frame(table(), [(3, "not yet", 3)]).write.parquet(f"file://{running}")
    draft = folder / "t x" / "_manifests" / ".abc"
    draft.write_text("{")
    yesterday = time.time() - 2 * 86_400
    for path in (committed, killed, draft):
        os.utime(path, (yesterday, yesterday))
    assert contents(spark, folder) == [(1, "a", 1)]

    table().drop_leftovers()

    assert set(data.iterdir()) == {committed, running}
    assert not draft.exists()
    assert contents(spark, folder) == [(1, "a", 1)]


def test_a_folder_that_cannot_be_listed_is_not_an_empty_one(table, folder, monkeypatch):
    load(table(), 1, [(1, "a", 1)])
    for path in (folder / "t x" / "data").rglob("*"):
        os.utime(path, (0, 0))

    def fails(*_, **__):
        raise OSError("stale file handle")

    with monkeypatch.context() as patched:
        patched.setattr(os, "listdir", fails)
        patched.setattr(os, "scandir", fails)
        for look in (table().state, table().drop_leftovers):
            with pytest.raises(OSError, match="stale"):
                look()
    assert contents(table()._session, folder) == [(1, "a", 1)]


@pytest.mark.parametrize("fails", ["link, asked twice", "link", "unlink"])
def test_a_manifest_that_was_made_keeps_its_files_though_the_share_says_something_else(
    spark, table, folder, monkeypatch, fails
):
    real, target = os.link, table()

    def link(draft, made):
        real(draft, made)
        if fails == "unlink":
            monkeypatch.setattr(Path, "unlink", gone)
        else:
            raise FileExistsError if "twice" in fails else OSError("gone")

    def gone(*_, **__):
        raise OSError("gone")

    monkeypatch.setattr(os, "link", link)
    if fails == "link":
        with pytest.raises(OSError, match="gone"):
            load(target, 1, [(1, "a", 1)])
    else:
        load(target, 1, [(1, "a", 1)])

    assert contents(spark, folder) == [(1, "a", 1)]
    assert table().state().marker == marker(1)


def test_what_is_missing_or_damaged_is_said(spark, table, folder):
    load(table(), 1, [(1, "a", 1)])
    load(table(), 2, [(2, "b", 2)])
    manifests = sorted((folder / "t x" / "_manifests").iterdir())
    text = manifests[1].read_text()
    file = folder / "t x" / json.loads(text)["files"][0]

    file.rename(file.with_suffix(".away"))
    with pytest.raises(TargetError, match=f"{file.name} is missing"):
        contents(spark, folder)
    file.with_suffix(".away").rename(file)

    manifests[1].write_text(text.replace('"version": 2', '"version": 3', 1))
    with pytest.raises(NewerFormatError, match=r"has version 3, .* Upgrade the package"):
        table().state()
    for damaged in ("", "{}", text[: len(text) // 2]):
        manifests[1].write_text(damaged)
        with pytest.raises(TargetError, match="is no manifest that can be read"):
            table().state()
    manifests[1].unlink()
    with pytest.raises(TargetError, match="has no manifest 1, but a later one"):
        table().state()


@pytest.mark.parametrize("moment", ["before", "while it is written"])
def test_a_folder_that_is_removed_while_a_job_runs(table, folder, monkeypatch, moment):
    load(table(), 1, [(1, "a", 1)])
    target = table()
    state, rows = target.state(), frame(target, [(2, "b", 2)])
    if moment == "before":
        shutil.rmtree(folder / "t x")
        for ask in (lambda: target.rows(state), target.changed_by):
            with pytest.raises(TargetError, match=r"is gone, which was there when this job began.*Restore the folder"):
                ask()
    else:

        def remove(rows, address):
            written = write_rows(rows, address)
            shutil.rmtree(folder / "t x")
            return written

        monkeypatch.setattr(parquet, "write_rows", remove)

    with pytest.raises(TargetError, match=r"is gone, which was there when this job began.*Restore the folder"):
        target.commit(state, Write(rows), marker(2))

    monkeypatch.undo()
    assert not table().state().exists
    table().create(COLUMNS)
    load(table(), 1, [(1, "a", 1)])


def test_what_files_cannot_do_is_refused(spark, table, folder):
    target = table()
    for write in (merge(changes(target, []), ["id"]), replace(frame(target, []))):
        with pytest.raises(TargetError, match="hold a history alone"):
            target.commit(target.state(), write, marker(1))
    with pytest.raises(TargetError, match=r"writes; missing: extra STRING\."):
        raise different_columns("t", target.check([*COLUMNS, TargetColumn("extra", "STRING", "{}")]))
    with pytest.raises(TargetError, match="local disks and mounted shares alone"):
        ParquetTable(spark, ("s3a://bucket/x", "t"), "spec")
    with pytest.raises(TargetError, match="local disks and mounted shares alone"):
        ParquetTable(spark, ("file://host/x", "t"), "spec")
    with pytest.raises(TargetError, match="neither partition_by nor"):
        ParquetTable(spark, (f"file://{folder}", "t"), "spec", partition_by=["id"])


def test_a_history_is_loaded_and_replayed(live: Origin):
    live.format = "parquet"
    live.sql("CREATE TABLE dbo.orders (id int NOT NULL PRIMARY KEY, note nvarchar(40), made datetime2(7))")
    live.sql("INSERT INTO dbo.orders VALUES (1, N'a', '0001-01-01'), (2, N'b', '9999-12-31 23:59:59.9999999')")
    live.enable("dbo.orders")
    live.sql("UPDATE dbo.orders SET note = N'early' WHERE id = 1")
    live.wait_captured()

    first = live.load(live.table("dbo.orders", ("history",)))
    live.sql("UPDATE dbo.orders SET note = N'later' WHERE id = 2; DELETE FROM dbo.orders WHERE id = 1")
    live.wait_captured()
    table = live.table("dbo.orders", ("history",), at=positions(first))
    cut = live.max_lsn()
    second = live.load(table, upto=cut)
    again = live.load(table, upto=cut)
    window = ReplaySpec(*(sink.read_through for receipt in (first, second) for sink in receipt.tables[0].sinks))
    replayed = live.load(live.table("dbo.orders", ("history",), at=positions(second)), replay=window)
    aside = live.load(
        live.table("dbo.orders", ("history",)), replay=ReplaySpec(window.after, window.upto, suffix="_again")
    )

    receipts = (first, second, again, replayed, aside)
    assert [receipt.tables[0].error for receipt in receipts] == [None] * 5
    assert [receipt.tables[0].sinks[0].outcome for receipt in receipts] == [
        *("first_load", "loaded", "already", "replayed", "replayed")
    ]
    columns = ("_op", "id", "note", "made__text")
    events = [
        ("B", 2, "b", "9999-12-31 23:59:59.9999999"),
        ("D", 1, "early", "0001-01-01 00:00:00.0000000"),
        ("U", 2, "later", "9999-12-31 23:59:59.9999999"),
    ]
    copied = [("R", 1, "early", "0001-01-01 00:00:00.0000000"), ("R", 2, "b", "9999-12-31 23:59:59.9999999")]
    found = sorted(tuple(row[c] for c in columns) for row in live.lake("dbo.orders", "history"))
    assert found == sorted([*copied, *events])
    assert sorted(tuple(row[c] for c in columns) for row in live.lake("dbo.orders", "history", "_again")) == events


def test_a_schema_is_kept_in_the_manifest_of_the_commit_that_names_it(table, spark, folder):
    kept, wide = KeptSchema.of(table_spec().schema), KeptSchema.of(WIDE)
    first = table()
    assert first.keep_schema(kept)
    load(first, 1, [(1, "a", 1)])
    second = table()
    assert second.keep_schema(wide)
    # a replay proves nothing, and keeps nothing
    assert second.commit(second.state(), Write(frame(second, [(2, "b", 2)])), None)
    assert table().kept_schema(wide.hash) is None
    load(second, 3, [(3, "c", 3)])
    assert [table().kept_schema(each.hash) for each in (kept, wide)] == [kept, wide]
    assert contents(spark, folder) == [(1, "a", 1), (2, "b", 2), (3, "c", 3)]


@pytest.mark.parametrize("what", ["manifest", "marker"])
def test_what_a_later_version_has_written_is_refused_and_stays(table, folder, what):
    load(table(), 1, [(1, "a", 1)])
    newest = max((folder / "t x" / "_manifests").glob("*.json"))
    data = json.loads(newest.read_text())
    (data if what == "manifest" else data["marker"])["version"] = 99
    newest.write_text(json.dumps(data))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises((TargetError, NewerFormatError), match="version 99"):
        table().state()
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_field_that_this_version_does_not_know_is_no_hindrance(table, folder):
    load(table(), 1, [(1, "a", 1)])
    newest = max((folder / "t x" / "_manifests").glob("*.json"))
    data = json.loads(newest.read_text())
    data["later"] = data["marker"]["later"] = {"a": 1}
    newest.write_text(json.dumps(data))
    state = table().state()
    assert state.marker == marker(1)
    assert state.marker.unknown == {"later": {"a": 1}}
