"""Tries that are killed, and tries of one task beside each other: all is loaded once, and told once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.exceptions import ReceiptMissingError
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.spec import JobSpec
from airflow_provider_mssql_cdc.operators import job_files
from tests.support.core.variables import Variables
from tests.support.operators.group import A, B
from tests.support.operators.master import DRIVER
from tests.support.operators.tries import EVENT, JOB_ID, SPEC, Halt, Lake, State, Task, TaskInstance


class Killed(BaseException):
    """Ends a try at once, as SIGKILL does: nothing of the operator's is run any more."""


class Steps:
    """Counts what a try does to the world outside of it, and kills it before a given step."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: int | None = None
        for owner, name in (
            (State, "set"),
            (State, "delete"),
            (Variables, "set"),
            (TaskInstance, "xcom_push"),
            (Task, "add"),
            (job_files, "remove"),
        ):
            self._count(monkeypatch, owner, name)

    def _count(self, monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> None:
        does = getattr(owner, name)

        def step(*arguments: Any, **named: Any) -> Any:
            if self.left is not None:
                self.left -= 1
                if self.left < 0:
                    raise Killed
            return does(*arguments, **named)

        monkeypatch.setattr(owner, name, step)


def chained(ranges: list[tuple[Any, Any]]) -> bool:
    """Whether each range begins where the one before it ended."""
    return all(before[1] == after[0] for before, after in itertools.pairwise(ranges))


def test_a_try_that_is_killed_at_any_step_of_its_end_is_made_good_by_the_next(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, steps = Lake(), Steps(monkeypatch)
    task.master.job = lake.load
    told: dict[str, list[tuple[str | None, str | None]]] = {"dbo.a": [], "dbo.b": []}
    for number in itertools.count():
        # of another run
        task.state.clear()
        cut = task.group.change(f"INSERT INTO dbo.a (id) VALUES ({number + 10}); UPDATE dbo.b SET v = {number}")
        steps.left, killed = number, False
        try:
            task.run()
        except Killed:
            killed = True
        steps.left = None

        # of a try that ended by itself, Airflow may have been told in vain: it was killed, or cleared, just then
        task.run()

        assert (task.position(A), task.position(B)) == (cut, cut)
        assert set(task.state) <= {EVENT}
        events = task.events()
        assert events is not None
        assert set(events) == set(told)
        for table, ranges in told.items():
            ranges.append((events[table]["after"], events[table]["upto"]))
            assert events[table]["upto"] == str(cut)
        for folder in task.master.folders:
            # one that was left is removed when it is old, which its spec makes certain
            job_files.remove(job_files.read_spec(f"{task.master.work_dir}/{folder}/spec.json"))
        if not killed:
            break
    assert number > 10
    assert all(map(chained, told.values()))
    assert all(map(chained, lake.commits.values()))
    assert {table: commits[-1][1] for table, commits in lake.commits.items()} == {A: cut, B: cut}


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as threads:
        yield threads


@pytest.mark.parametrize("durable", [True, False], ids=["one job", "two jobs"])
@pytest.mark.parametrize("winner", [0, 1], ids=["the first ends first", "the cleared one ends first"])
def test_a_task_that_is_cleared_while_it_runs_loads_once(
    task: Task, pool: ThreadPoolExecutor, winner: int, durable: bool
) -> None:
    lake, base, cut = Lake(), task.position(A), task.group.source.max_lsn()
    task.master.job = lake.load
    tries = (task, task.again())
    with Halt(task.master, 2) as halt:
        running = []
        for each in tries:
            running.append(pool.submit(each.run, durable=durable))
            halt.wait()
        halt.release(winner)
        assert running[winner].result(60)["upto"] == str(cut)
        assert (task.position(A), lake.commits) == (cut, {A: [(base, cut)]})
        halt.release(1 - winner)
        failure = running[1 - winner].exception(60)
    if durable:
        # its job's receipt was the other's; what it finds when it is repeated is an empty run
        assert isinstance(failure, ReceiptMissingError)
        tries[1 - winner].run()
    else:
        assert failure is None
    assert (task.position(A), lake.commits) == (cut, {A: [(base, cut)]})
    assert len(task.master.submissions) == (1 if durable else 2)
    assert (task.master.folders, set(task.state)) == ([], {EVENT})
    # Airflow takes nothing more of a try whose task was cleared, so it is the second that must have told
    events = tries[1].events()
    assert events is not None
    assert events["dbo.a"] == {"after": None, "upto": str(cut)}


def test_ending_a_cleared_try_ends_the_job_that_the_next_one_waits_for(task: Task, pool: ThreadPoolExecutor) -> None:
    lake, base, cut = Lake(), task.position(A), task.group.source.max_lsn()
    second = task.again()
    with Halt(task.master, 2) as halt:
        running = []
        for each in (task, second):
            running.append(pool.submit(each.run))
            halt.wait()
        task.running.on_kill()
        task.master.state = "KILLED"
        for number, each in enumerate(running):
            halt.release(number)
            assert "KILLED" in str(each.exception(60))
    assert (task.master.folders, task.position(A)) == ([], base)
    task.master.state, task.master.job = "FINISHED", lake.load
    second.run()
    assert (task.position(A), lake.commits) == (cut, {A: [(base, cut)]})
    assert (task.master.folders, set(task.state)) == ([], {EVENT})


def test_a_try_that_was_planned_before_another_submitted_leaves_it_its_job(
    task: Task, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, base, cut = Lake(), task.position(A), task.group.source.max_lsn()
    other, running, write = task.again(), [], job_files.write_spec

    def submitted(spec: JobSpec) -> None:
        if any(spec.path in command for command in task.master.submissions):
            lake.load(spec)

    with Halt(task.master, 1) as halt:

        def overtaken(spec: JobSpec) -> None:
            write(spec)
            monkeypatch.setattr(job_files, "write_spec", write)
            running.append(pool.submit(task.run))
            halt.wait()

        monkeypatch.setattr(job_files, "write_spec", overtaken)
        task.master.job = submitted
        with pytest.raises(ReceiptMissingError):
            other.run()
        (folder,) = task.master.folders
        assert (task.state[JOB_ID], task.state[SPEC]) == (DRIVER, f"{task.master.work_dir}/{folder}/spec.json")
        halt.release(0)
        running[0].result(60)
    assert (task.position(A), lake.commits, task.master.folders) == (cut, {A: [(base, cut)]}, [])
    assert other.run()["upto"] == str(cut)
    assert Lsn.parse(other.events()["dbo.a"]["upto"]) == cut
