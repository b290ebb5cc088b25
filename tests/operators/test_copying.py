"""Copies that take several runs: the next run hears of them, and people do."""

from __future__ import annotations

import dataclasses
import datetime
import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.sdk import DAG, CronDataIntervalTimetable

from airflow_provider_mssql_cdc.core.checkpoint import CopyState, Identity
from airflow_provider_mssql_cdc.core.codec import from_json, to_json
from airflow_provider_mssql_cdc.core.copy_wanted import KnownCopy
from airflow_provider_mssql_cdc.core.exceptions import LoadFailedError, ReceiptMissingError
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.receipt import CopyingReceipt, Receipt
from airflow_provider_mssql_cdc.core.spec import JobSpec
from airflow_provider_mssql_cdc.operators import job_files, midway
from airflow_provider_mssql_cdc.operators.copying import seconds_of_run
from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator
from tests.support.hooks.source import TARGET
from tests.support.operators.group import A, B
from tests.support.operators.master import write_receipt
from tests.support.operators.tries import Task

LOW, KEPT = (Lsn(number.to_bytes(10)) for number in (7, 9))


def copying(spec: JobSpec, waits_for: str | None = None) -> None:
    """Answer as a job that has loaded the mirrors, and copies A for a history."""
    write_receipt(spec)
    path = job_files.open_path(spec.receipt_path)
    receipt = from_json(Receipt, path.read_text())
    tables = tuple(
        dataclasses.replace(
            table,
            sinks=tuple(sink for sink in table.sinks if sink.shape == "mirror"),
            copying=CopyingReceipt("0123456789ab", ("history",), LOW, KEPT, 3, 600_000, waits_for),
        )
        if table.name == A
        else table
        for table in receipt.tables
    )
    path.write_text(to_json(dataclasses.replace(receipt, tables=tables)))


def test_a_table_that_is_copied_is_never_told_as_loaded_and_the_next_run_hears_of_it(task: Task) -> None:
    specs: list[JobSpec] = []

    def job(spec: JobSpec) -> None:
        specs.append(spec)
        copying(spec)

    task.master.job = job
    task.run(tables=["dbo.a", "dbo.b"], shapes=["mirror", "history"], copy_seconds=60)
    row = task.rows["dbo.a"]
    assert (row["status"], row["sinks"]) == ("copying", {"mirror": "loaded", "history": "copying"})
    assert row["reason"] == (
        f"copy 0123456789ab: 600,000 rows in 3 chunks are read, the next run goes on; changes are kept up to {KEPT}"
    )
    assert task.rows["dbo.b"]["status"] == "loaded"
    # what waits for the copy keeps nobody from hearing of the mirror
    assert "dbo.a" in (task.events() or {})
    stored = task.group.checkpoint(A)
    assert stored is not None
    assert set(stored.loaded) == {"mirror"}
    (spec,) = specs
    assert spec.copy_seconds == 60
    short = Identity.of(task.running.mssql_conn_id, spec.source.database, A, TARGET, "{schema}_{table}").short
    place = f"{task.master.work_dir}/copies/{short}"
    assert spec.copies_path(spec.tables[0]) == place
    state = CopyState("0123456789ab", place, None, "IN_PROGRESS", KEPT, LOW, 3, ("history",))
    (copy,) = stored.copies
    assert copy.at is not None
    assert dataclasses.replace(copy, at=None) == dataclasses.replace(state, rows=600_000)

    # a run that fails does not forget it
    task.state.clear()
    task.group.source.sql("INSERT INTO dbo.a (id) VALUES (76)")
    task.group.source.scan()
    task.master.job = lambda given: write_receipt(given, A)
    with pytest.raises(AirflowFailException):
        task.run(tables=["dbo.a"], shapes=["mirror", "history"])
    stored = task.group.checkpoint(A)
    assert stored is not None
    assert [dataclasses.replace(copy, at=None) for copy in stored.copies] == [dataclasses.replace(state, rows=600_000)]

    specs.clear()
    task.state.clear()
    task.group.store.overwrite(stored.failing(["mirror", "history"], None))
    task.master.job = lambda given: (specs.append(given), write_receipt(given))[0]
    task.group.source.sql("INSERT INTO dbo.a (id) VALUES (77)")
    task.group.source.scan()
    task.run(tables=["dbo.a", "dbo.b"], shapes=["mirror", "history"])
    (table,) = [each for each in specs[0].tables if each.name == A]
    assert table.copy == KnownCopy("0123456789ab", place)
    assert specs[0].copy_seconds is None
    stored = task.group.checkpoint(A)
    assert stored is not None
    assert (stored.copies, set(stored.loaded)) == ((), {"mirror", "history"})


def say_windows(spec: JobSpec) -> None:
    """Say that the mirrors are loaded, as a job does before it goes on with copies."""
    copying(spec)
    receipt = from_json(Receipt, job_files.open_path(spec.receipt_path).read_text())
    job_files.open_path(spec.receipt_path).unlink()
    tables = tuple(dataclasses.replace(table, copying=None) for table in receipt.tables)
    job_files.open_path(spec.windows_path).write_text(to_json(dataclasses.replace(receipt, tables=tables)))


@pytest.mark.parametrize("ends_well", [True, False])
def test_checkpoints_move_while_a_job_still_copies(
    task: Task, monkeypatch: pytest.MonkeyPatch, ends_well: bool
) -> None:
    monkeypatch.setattr(midway, "_SECONDS", 0.05)
    before, stored, looked = task.group.checkpoint(A), [], []
    plain = job_files.read_windows

    def once_away(spec: JobSpec) -> Receipt | None:
        looked.append(spec)
        if len(looked) == 1:
            raise OSError("the store is away")
        return plain(spec)

    monkeypatch.setattr(job_files, "read_windows", once_away)
    task.master.state = "RUNNING"

    def job(spec: JobSpec) -> None:
        if not job_files.open_path(spec.windows_path).exists():
            say_windows(spec)
        elif not stored and task.group.checkpoint(A) != before:
            stored.append(task.group.checkpoint(A))
            if ends_well:
                copying(spec)
            task.master.state = "FINISHED"

    task.master.job = job
    given = {"tables": ["dbo.a"], "shapes": ["mirror", "history"], "copy_seconds": None}
    if not ends_well:
        # killed: what it had loaded is known all the same
        with pytest.raises(ReceiptMissingError):
            task.run(**given)
        assert task.group.checkpoint(A) == stored[0]
        assert task.events() is None
        return
    task.run(**given)
    (midst,), end = stored, task.group.checkpoint(A)
    assert end is not None
    assert midst.sinks == end.sinks
    assert before is not None
    assert midst.position(["mirror"]) > before.position(["mirror"])
    assert (midst.copies, midst.announced) == ((), before.announced)
    assert [copy.id for copy in end.copies] == ["0123456789ab"]
    # nobody was told of it before
    assert "dbo.a" in (task.events() or {})


def test_a_copy_on_a_workers_own_disk_is_told_with_the_worker(tmp_path: Path) -> None:
    from airflow_provider_mssql_cdc.core.receipt import TableReceipt
    from airflow_provider_mssql_cdc.operators.copying import copies_of

    receipt = TableReceipt(B, copying=CopyingReceipt("a", ("mirror",), LOW, KEPT, 1, 5))
    (here,) = copies_of(receipt, str(tmp_path))
    assert (here.place, here.host) == (str(tmp_path), socket.gethostname())
    (far,) = copies_of(receipt, "s3a://bucket/copies/1")
    assert (far.place, far.host) == ("s3a://bucket/copies/1", None)


@pytest.mark.parametrize("runs", [True, False])
def test_a_copy_that_waits_for_the_capture_fails_only_where_that_does_not_run(task: Task, runs: bool) -> None:
    task.master.job = lambda spec: copying(spec, "the capture did not pass the end of the copy.")
    if not runs:
        with pytest.raises(LoadFailedError, match=r"did not pass the end of the copy\. Now: .*stopped"):
            task.run(tables=["dbo.a"], shapes=["mirror", "history"])
        return
    task.group.source.sql("EXEC sys.sp_cdc_start_job @job_type = N'capture'")
    try:
        task.run(tables=["dbo.a"], shapes=["mirror", "history"])
    finally:
        task.group.source.stop_capture()
    assert "are all read; the capture did not pass the end of the copy. Now: " in str(task.rows["dbo.a"]["reason"])


@pytest.mark.parametrize(
    ("given", "schedule", "expected"),
    [
        ("auto", "@hourly", 600.0),
        ("auto", "*/6 * * * *", 180.0),
        ("auto", "* * * * *", 60.0),
        ("auto", datetime.timedelta(minutes=5), 150.0),
        ("auto", "@once", None),
        ("auto", None, None),
        ("auto", CronDataIntervalTimetable("*/4 * * * *", timezone="UTC"), 120.0),
        (None, "@hourly", None),
        (5, "@hourly", 5.0),
        (datetime.timedelta(minutes=2), None, 120.0),
    ],
)
def test_how_long_a_run_copies(given: Any, schedule: Any, expected: float | None) -> None:
    end = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
    dag = DAG("shop", schedule=schedule, start_date=datetime.datetime(2026, 1, 1))
    # as Airflow has it by default: a schedule makes no data intervals, but one that is made for them does
    begin = end - datetime.timedelta(minutes=4) if isinstance(schedule, CronDataIntervalTimetable) else end
    context: Any = {"dag": dag, "logical_date": end, "data_interval_start": begin, "data_interval_end": end}
    assert seconds_of_run(given, context) == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"copy_rows": 0}, "copy_rows=0"),
        ({"copy_chunk_seconds": 0}, "copy_chunk_seconds=0"),
        ({"copy_seconds": 0}, "copy_seconds=0"),
        ({"copy_seconds": "x"}, "'x'"),
    ],
)
def test_what_has_no_meaning_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        MsSqlCdcLoadOperator(task_id="load", tables=["dbo.a"], target=TARGET, packages="", **given)


def test_a_copy_that_no_run_goes_on_with_is_removed_after_90_days(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name, days in (("old", 91), ("new", 89)):
        entry = tmp_path / "copies" / "0123456789abcdef" / name / "entries" / "copy.json"
        entry.parent.mkdir(parents=True)
        entry.write_text("{}")
        then = time.time() - days * 86400
        for path in (entry, entry.parent, entry.parent.parent):
            os.utime(path, (then, then))
    job_files.remove_old(str(tmp_path))
    job_files.remove_old_copies(str(tmp_path))
    assert os.listdir(tmp_path / "copies" / "0123456789abcdef") == ["new"]
    assert "no run has gone on with it for 90 days" in caplog.text
    job_files.remove_old_copies(str(tmp_path / "nothing"))
