"""The load operator over several tries: what it keeps, what it believes, and what it forgets."""

from __future__ import annotations

import dataclasses
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_mssql_cdc.core.checkpoint import Identity, SinkState
from airflow_provider_mssql_cdc.core.codec import to_json
from airflow_provider_mssql_cdc.core.exceptions import LoadFailedError, ReceiptMissingError
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.receipt import EVERY, JobError, Receipt, TableReceipt
from airflow_provider_mssql_cdc.core.resting import fingerprint
from airflow_provider_mssql_cdc.core.spec import JobSpec
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.target import TABLE_NAME, Target
from airflow_provider_mssql_cdc.operators import job_files
from airflow_provider_mssql_cdc.operators.agent_state import with_agent_state
from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator
from tests.support.hooks.source import CONN_ID, TARGET, Source
from tests.support.operators.group import A, B
from tests.support.operators.master import DRIVER, write_receipt
from tests.support.operators.tries import CUT, EVENT, JOB_ID, POD, SPEC, TRY, State, Task


def test_a_load_leaves_nothing_behind_for_the_next(task: Task) -> None:
    cut = task.group.source.max_lsn()
    summary = task.run()
    assert (summary["upto"], {name: row["status"] for name, row in task.rows.items()}) == (
        str(cut),
        {"dbo.a": "loaded", "dbo.b": "quiet"},
    )
    # what it has told of is for its own tries alone
    assert (task.position(A), set(task.state), task.master.folders) == (cut, {EVENT}, [])
    assert len(task.master.submissions) == 1


@pytest.mark.parametrize("given", [None, "Europe/Berlin"])
def test_the_job_is_told_the_servers_zone_where_it_is_known(task: Task, given: str | None) -> None:
    """For ``_commit_ts_utc``: the sandbox says that it runs in UTC, as SQL Server does since 2022."""
    told = []

    def job(spec: JobSpec) -> None:
        told.append(spec.source.timezone)
        write_receipt(spec)

    task.master.job = job
    task.run(server_timezone=given)
    assert set(told) == {given or "UTC"}


def test_a_redaction_of_the_users_own_does_not_uncover_the_password(task: Task) -> None:
    task.run(conf={"spark.redaction.regex": "mine"})
    assert (
        "--conf spark.redaction.regex=spark[.]mssql_cdc[.](?:(?:target_)?(?:user|password)|salt)|mine"
        in task.master.submissions[0]
    )


def test_a_folder_that_the_driver_cannot_read_leaves_the_operator_as_it_was(task: Task, tmp_path: Path) -> None:
    operator = task.operator(work_dir=str(tmp_path / "work"), conf={"spark.a": "b"})
    before = {name: getattr(operator, name) for name in ("application_args", "py_files", "conf", "properties_file")}
    with pytest.raises(AirflowFailException, match="cluster mode"):
        operator.execute({"task_state_store": task.state, "ti": task.instance})
    assert {name: getattr(operator, name) for name in before} == before
    assert task.master.submissions == []


def test_a_persons_word_goes_to_the_job_and_ends_with_its_commit(task: Task) -> None:
    task.assert_position("said")
    task.run()
    assert task.sinks(A)["mirror"].asserted is None
    # without an event there is no job, and the asserted position waits for one
    task.assert_position("another")
    task.run()
    assert task.sinks(A)["mirror"].asserted == "another"
    assert len(task.master.submissions) == 1


def test_what_a_person_sets_while_a_job_runs_stands(task: Task) -> None:
    task.submitted(A)
    task.assert_position("said")
    asserted = task.sinks(A)
    task.run()
    assert task.sinks(A) == asserted


def test_what_a_failed_run_has_loaded_is_announced_by_the_next_that_succeeds(task: Task) -> None:
    first = task.run(), task.events()
    after = task.position(A)
    assert first[1] == {"dbo.a": {"after": None, "upto": str(after)}, "dbo.b": {"after": None, "upto": str(task.base)}}
    task.state.clear()
    task.group.change("INSERT INTO dbo.a (id) VALUES (10); INSERT INTO dbo.b (id) VALUES (10)")
    task.master.job = lambda spec: write_receipt(spec, B)
    with pytest.raises(AirflowFailException):
        task.run()
    assert task.events() is None
    loaded = task.position(A)
    task.master.job = write_receipt
    with pytest.raises(AirflowFailException, match=r"its mirror fails since .* and is left alone until .*no table"):
        task.run()
    assert (task.events(), task.rows["dbo.b"]["sinks"]) == (None, {"mirror": "failed"})
    task.run(again=True)
    assert task.events() == {
        "dbo.a": {"after": str(after), "upto": str(loaded)},
        "dbo.b": {"after": str(task.base), "upto": str(task.position(B))},
    }
    task.state.clear()
    task.run()
    assert task.events() is None


def test_a_running_job_is_waited_for(task: Task) -> None:
    spec = task.submitted(A)
    task.group.change("INSERT INTO dbo.a (id) VALUES (3)")
    assert task.run()["upto"] == str(spec.upto)
    assert (task.position(A), task.master.submissions) == (spec.upto.of(Lsn), [])
    assert not {JOB_ID, SPEC, POD} & set(task.state)


@pytest.mark.parametrize("running", [False, True])
def test_what_tells_that_the_database_was_restored_goes_with_the_job_and_into_the_checkpoint(
    task: Task, running: bool
) -> None:
    """Also where the job has found nothing to commit, so that its marker is an older one."""
    if running:
        task.submitted(A)
    told = []

    def job(spec: JobSpec) -> None:
        told.append(spec)
        write_receipt(spec)

    task.master.job = job
    task.run()
    spec = told[0]
    with task.group.source.hook() as hook:
        fork = hook.database_status().recovery_fork_guid
        expected = dataclasses.replace(hook.witness(spec.upto.of(Lsn)), recovery_fork=fork)
    assert spec.recovery_fork == (None if running else fork)
    assert (expected.lsn, spec.witness, task.sinks(A)["mirror"].witness) == (spec.upto.of(Lsn), expected, expected)


def test_a_running_job_is_settled_though_cdc_is_off_by_now(task: Task) -> None:
    spec = task.submitted(A)
    task.group.source.sql("EXEC sys.sp_cdc_disable_db")
    assert task.run()["upto"] == str(spec.upto)
    assert (task.position(A), task.master.submissions) == (spec.upto.of(Lsn), [])


def test_a_running_job_that_fails_a_table_keeps_what_is_loaded_and_notes_its_instances(task: Task) -> None:
    before = task.group.checkpoint(A)
    assert before is not None
    history = {"history": SinkState(before.sinks["mirror"].applied, before.sinks["mirror"].applied)}
    before = dataclasses.replace(before, sinks={**before.sinks, **history})
    task.group.store.overwrite(before)
    task.submitted(A)
    task.master.job = lambda spec: write_receipt(spec, A)
    with pytest.raises(AirflowFailException, match="the target is no table"):
        task.run()
    after = task.group.checkpoint(A)
    assert after is not None
    failed = after.failure()
    assert failed is not None
    assert after == dataclasses.replace(before, updated_at=after.updated_at).failing(["mirror"], failed)
    with task.group.source.hook() as hook:
        assert failed.seen == fingerprint(hook.capture_instances([A]))


@pytest.mark.parametrize("text", [None, "", "{"], ids=["missing", "empty", "damaged"])
def test_a_job_that_ended_without_a_readable_receipt_is_repeated(task: Task, text: str | None) -> None:
    cut = task.submitted(A).upto.of(Lsn)
    task.state[CUT] = str(cut)

    def damaged(spec: JobSpec) -> None:
        if text is not None:
            job_files.open_path(spec.receipt_path).write_text(text)

    task.master.job = damaged
    with pytest.raises(ReceiptMissingError, match=r"receipt\.json"):
        task.run()
    assert (task.state, task.master.folders, task.master.submissions) == ({CUT: str(cut), TRY: "1"}, [], [])
    task.master.job = write_receipt
    assert task.run()["upto"] == str(cut)
    assert (task.position(A), len(task.master.submissions)) == (cut, 1)


def test_a_receipt_of_a_later_version_is_left_to_that(task: Task) -> None:
    spec = task.submitted(A)
    receipt = job_files.open_path(spec.receipt_path)
    receipt.write_text(text := json.dumps({"version": 99, "needs": "0.9.1"}))
    task.master.job = lambda _: None
    job, before = {key: task.state[key] for key in (JOB_ID, SPEC)}, task.group.checkpoint(A)
    with pytest.raises(AirflowFailException, match=r"receipt has version 99, which .* 0\.9\.1 reads.*Upgrade"):
        task.run()
    assert receipt.read_text() == text
    assert {key: task.state[key] for key in (JOB_ID, SPEC)} == job
    assert (task.group.checkpoint(A), task.master.submissions) == (before, [])


def test_a_job_of_a_later_version_is_left_to_that(task: Task) -> None:
    path = job_files.open_path(task.submitted(A).path)
    path.write_text(text := json.dumps({"version": 4, "needs": "0.9.1"}))
    state, before = dict(task.state), task.group.checkpoint(A)
    with pytest.raises(AirflowFailException, match=r"job spec has version 4, which .* 0\.9\.1 reads.*Upgrade"):
        task.run()
    assert (task.state, path.read_text(), task.master.submissions) == (state, text, [])
    assert task.group.checkpoint(A) == before


@pytest.mark.parametrize("text", [None, "{"], ids=["removed", "damaged"])
def test_a_job_whose_spec_cannot_be_read_is_planned_anew(task: Task, text: str | None) -> None:
    path = job_files.open_path(task.submitted(A).path)
    path.unlink() if text is None else path.write_text(text)
    task.run()
    assert (task.position(A), len(task.master.submissions)) == (task.group.source.max_lsn(), 1)
    assert not {JOB_ID, SPEC, POD} & set(task.state)


def test_a_failed_job_keeps_its_spec_for_the_next_try(task: Task) -> None:
    spec = task.submitted(A)
    task.master.state = "FAILED"
    task.master.job = lambda spec: None
    with pytest.raises(RuntimeError, match="FAILED"):
        task.run()
    assert (task.state[JOB_ID], task.state[SPEC], task.master.folders) == (DRIVER, spec.path, ["a1"])


def test_the_cut_is_kept_for_what_a_retry_can_mend_and_for_nothing_else(task: Task) -> None:
    cut = task.group.source.max_lsn()
    task.master.job = lambda spec: None
    with pytest.raises(ReceiptMissingError):
        task.run()
    assert task.state == {CUT: str(cut), TRY: "1"}
    task.master.job = lambda spec: write_receipt(spec, A)
    task.group.change("INSERT INTO dbo.a (id) VALUES (3)")
    with pytest.raises(AirflowFailException) as failed:
        task.run()
    assert isinstance(failed.value.__cause__, LoadFailedError)
    assert task.state == {"mssql_cdc_failed": '["dbo.a"]'}


def test_a_table_that_the_capture_kept_back_fails_with_the_agents_state(task: Task) -> None:
    late = JobError("CaptureLagError", "dbo.a: the capture did not pass the end of the copy.", False)
    other = JobError("InstanceChangedError", "dbo.b: dropped.", False)

    def waiting(spec: JobSpec) -> None:
        tables = (TableReceipt(A, failed={EVERY: late}), TableReceipt(B, failed={EVERY: other}))
        job_files.open_path(spec.receipt_path).write_text(to_json(Receipt(spec.id, tables)))

    task.master.job = waiting
    task.group.change("INSERT INTO dbo.b (id) VALUES (2)")
    with task.group.source.hook() as hook:
        state = hook.agent_health().detail
    with pytest.raises(LoadFailedError):
        task.run()
    assert (task.rows["dbo.a"]["error"], task.rows["dbo.b"]["error"]) == (
        f"{late.message} Now: {state}.",
        other.message,
    )
    task.submitted(A, B)
    with pytest.raises(LoadFailedError):
        task.run()
    assert task.rows["dbo.a"]["error"] == f"{late.message} Now: {state}."


def test_a_server_that_no_longer_answers_leaves_the_reason_as_it_is(
    source: Source, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    late = JobError("CaptureLagError", "dbo.a: the capture did not pass the end of the copy.", False)
    receipt = Receipt("a1", (TableReceipt(A, failed={EVERY: late}),))
    for name, value in source.environment(password="wrong").items():
        monkeypatch.setenv(name, value)
    assert with_agent_state(receipt, CONN_ID) == receipt
    assert "cannot be seen" in caplog.text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tables": []}, "tables is empty"),
        ({"tables": ["a."]}, "table pattern"),
        ({"target": "iceberg://lake/.."}, "no name of a namespace"),
    ],
)
def test_templates_that_become_nothing_useful_fail_for_good(task: Task, given: dict[str, Any], message: str) -> None:
    arguments = {"tables": ["dbo.*"], "target": TARGET, "mssql_conn_id": CONN_ID}
    operator = MsSqlCdcLoadOperator(task_id="load", outlets=[], **arguments)
    for name, rendered in given.items():
        setattr(operator, name, rendered)
    with pytest.raises(AirflowFailException, match=message):
        operator.execute({"task_state_store": task.state, "ti": task.instance})


def test_a_suffix_that_becomes_a_path_fails_for_good(task: Task) -> None:
    replay = task.operator(shapes=["history"], replay=True, target_suffix="_{{ params.given }}")
    replay.target_suffix = "/../x"
    with pytest.raises(AirflowFailException, match="makes a path"):
        replay.execute({"task_state_store": task.state, "ti": task.instance})


def test_a_checkpoint_that_cannot_be_stored_fails_its_table_alone(task: Task) -> None:
    task.group.change("INSERT INTO dbo.b (id) VALUES (2)")
    cut = task.group.source.max_lsn()
    variables = task.group.variables
    kept = variables[task.group.source.identity(A).variable]

    def damaging(spec: JobSpec) -> None:
        write_receipt(spec)
        variables[task.group.source.identity(A).variable] = "{"

    task.master.job = damaging
    with pytest.raises(AirflowFailException, match=r"dbo\.a: the checkpoint is not readable"):
        task.run()
    assert task.position(B) == cut
    assert {name: row["status"] for name, row in task.rows.items()} == {"dbo.a": "failed", "dbo.b": "loaded"}
    # the next run, with a checkpoint that was repaired, tells of both
    variables[task.group.source.identity(A).variable] = kept
    task.state.clear()
    task.master.job = write_receipt
    task.run()
    told = task.events()
    assert told is not None
    assert {table: range_["upto"] for table, range_ in told.items()} == {"dbo.a": str(cut), "dbo.b": str(cut)}


@pytest.mark.parametrize("upto", ["None", "", " ", "0x12", "5", "0x" + 20 * "0"])
def test_a_cut_that_is_none_is_refused_with_what_to_do(task: Task, upto: str) -> None:
    with pytest.raises(AirflowFailException, match=rf"upto='{upto}' is no position.*wait\.output"):
        task.run(upto=upto)
    assert task.master.submissions == []


def test_no_cut_means_the_newest_position(task: Task) -> None:
    """What wait.output gives where the sensor was skipped, or found that nothing was ever captured."""
    assert task.run(upto=None)["upto"] == str(task.group.source.max_lsn())


class Killed(BaseException):
    """Ends a try at once, as SIGKILL does."""


def killed_after_it_submitted(task: Task, monkeypatch: pytest.MonkeyPatch, **given: Any) -> None:
    """Run a try whose worker is killed when it has noted the job."""
    noted = State.set

    def killed(state: State, key: str, value: str) -> None:
        noted(state, key, value)
        if key == JOB_ID:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(State, "set", killed)
        with pytest.raises(Killed):
            task.run(**given)
    assert JOB_ID in task.state


def test_a_try_that_waits_for_a_job_has_each_tables_own_options(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare name is one of the login's default schema, which the server alone knows."""
    task.group.source.sql("CREATE SCHEMA sales")
    task.group.make("sales.a")
    tables = ["a", {"table": "sales.a", "table_name": "of_{schema}_{table}"}]
    killed_after_it_submitted(task, monkeypatch, tables=tables)

    task.run(tables=tables, again=True)

    database, place = task.group.source.name, Target.parse(TARGET).address
    own, default = (
        task.group.store.load(Identity.of(CONN_ID, database, TableName("sales", "a"), place, name))
        for name in ("of_{schema}_{table}", TABLE_NAME)
    )
    assert own is not None
    assert (own.position(["mirror"]), default) == (task.position(A), None)


def test_a_try_that_waits_for_a_job_tells_what_the_one_before_found_while_it_planned(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = ["dbo.*", "dbo.ax"]
    task.group.source.sql("ALTER TABLE dbo.a ADD later int NULL")
    with pytest.raises(AirflowFailException) as told:
        task.run(tables=tables)
    expected, task.instance.before = task.instance.pushed["summary"], {}
    task.group.change("INSERT INTO dbo.a (id) VALUES (3)")
    task.group.store.delete(task.group.source.identity(TableName("dbo", "ax")))

    killed_after_it_submitted(task, monkeypatch, tables=tables)
    with monkeypatch.context() as patched:
        patched.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
        with pytest.raises(AirflowFailException, match="there is no Airflow connection 'spark_default'"):
            task.run(tables=tables, again=True)
    with pytest.raises(AirflowFailException) as resumed:
        task.run(tables=tables, again=True)
    assert str(resumed.value) == str(told.value)
    assert "dbo.ax: it does not exist" in str(told.value)
    found = task.instance.pushed["summary"]
    assert found["warnings"] == expected["warnings"] == ["dbo.a: column later is not captured by dbo_a"]
    changing = ("position", "windows", "seconds")
    assert [{k: v for k, v in row.items() if k not in changing} for row in found["tables"]] == [
        {k: v for k, v in row.items() if k not in changing} for row in expected["tables"]
    ]
    assert [row["status"] for row in found["tables"]] == ["loaded", "failed", "quiet"]


def test_what_failed_for_good_is_tried_when_a_person_asks_and_not_by_a_retry(task: Task) -> None:
    specs: list[JobSpec] = []

    def job(spec: JobSpec) -> None:
        specs.append(spec)
        write_receipt(spec, A)

    def tried(**given: Any) -> list[TableName]:
        specs.clear()
        with suppress(AirflowFailException, LoadFailedError):
            task.run(**given)
        return [table.name for spec in specs for table in spec.tables]

    task.master.job = job
    task.group.change("UPDATE dbo.b SET v = 1")
    assert tried() == [A, B], "both are sound"
    task.group.change("UPDATE dbo.a SET v = 2; UPDATE dbo.b SET v = 2")
    assert tried() == [B], "the other one rests"
    task.group.change("UPDATE dbo.b SET v = 3")
    task.master.job = specs.append
    with pytest.raises(ReceiptMissingError):
        task.run()
    task.master.job = job
    assert tried(again=True) == [B], "a retry"
    assert tried(again=True) == [A], "cleared"
    assert tried(by_hand=True) == [A]
    assert tried() == []


def test_what_a_failed_run_has_loaded_is_announced_by_another_run_that_succeeds(task: Task) -> None:
    """It is another task instance, which has nothing of what the failed one kept for its own tries."""
    task.run()
    after = task.position(A)
    task.state.clear()
    task.group.change("INSERT INTO dbo.a (id) VALUES (10); INSERT INTO dbo.b (id) VALUES (10)")
    task.master.job = lambda spec: write_receipt(spec, B)
    with pytest.raises(AirflowFailException):
        task.run()
    loaded = task.position(A)
    assert loaded > after
    task.state.clear()
    task.master.job = write_receipt
    task.run(by_hand=True)
    told = task.events()
    assert told is not None
    assert told["dbo.a"] == {"after": str(after), "upto": str(loaded)}


def test_a_run_is_tried_again_while_one_of_its_failures_may_mend_itself(task: Task) -> None:
    for_good, for_now = (JobError("TargetError", "no table", True), JobError("SourceError", "away", False))

    def job(spec: JobSpec) -> None:
        tables = (TableReceipt(A, failed={EVERY: for_good}), TableReceipt(B, failed={EVERY: for_now}))
        job_files.open_path(spec.receipt_path).write_text(to_json(Receipt(spec.id, tables)))

    task.master.job = job
    task.group.change("INSERT INTO dbo.b (id) VALUES (2)")
    with pytest.raises(LoadFailedError):
        task.run()
