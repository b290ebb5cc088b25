from __future__ import annotations

import io
import os
import signal

import pytest

from airflow_provider_mssql_cdc.cli import main
from airflow_provider_mssql_cdc.cli.demo import command, shop
from airflow_provider_mssql_cdc.cli.demo.airflow_home import DagRunner, environment, settings
from airflow_provider_mssql_cdc.cli.demo.play import Demo
from airflow_provider_mssql_cdc.cli.demo.prerequisites import find_dags
from airflow_provider_mssql_cdc.cli.demo.processes import Children
from airflow_provider_mssql_cdc.cli.demo.report import Reporter
from airflow_provider_mssql_cdc.cli.exit import CommandError


def test_the_last_line_says_which_targets_were_left_out():
    out = io.StringIO()
    reporter = Reporter(out)
    assert command.conclude([], reporter, 1.5) == 0
    assert command.conclude([], reporter, 1.5, "Source and all targets", ["postgresql"]) == 0
    assert out.getvalue().splitlines() == [
        "Source and lake are equal. (1.5 s)",
        "Source and all targets but postgresql are equal. (1.5 s)",
    ]


def test_an_airflow_that_ended_between_runs_is_one_line(tmp_path):
    dags, log = find_dags(), tmp_path / "airflow.log"
    env = environment(settings(tmp_path / "home", dags, tmp_path / "lake"))
    with Children() as children:
        runner = DagRunner(children, env, dags / "shop_incremental.py", ["load"], log)
        runner.kill()
        # not collected, as it is not by the demo
        os.waitid(os.P_PID, runner.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(CommandError, match=rf"^Airflow ended with exit code -9; see {log}$"):
            runner.run()


@pytest.fixture
def play(tmp_path, monkeypatch, own_handlers):
    """Runs the command with one step for the whole scenario; returns the exit code, and what is left."""
    monkeypatch.setattr(command.tempfile, "tempdir", str(tmp_path))

    def run(step):
        class Scenario(Demo):
            def __enter__(self):
                self.logs.mkdir()
                self.settings = {"AIRFLOW_HOME": str(self.folder / "airflow")}
                return self

            prepare = load_first = load_changes = load_rest = lambda self: None

            def compare(self):
                return step()

        monkeypatch.setitem(command.SCENARIOS, "plain", Scenario)
        return main(["demo"]), list(tmp_path.iterdir())

    return run


def fails():
    raise ValueError("no\nsuch thing")


def is_hindered():
    raise CommandError("Airflow ended")


def is_interrupted():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt as error:
        # as DuckDB does
        raise RuntimeError("interrupted") from error


def results(*, equal):
    counts = dict.fromkeys(("windows", "events", "copied", "inserted", "updated", "deleted", "seconds", "rows"), 1)
    return [{"table": shop.ORDERS.full_name, **counts, "equal": equal, "differences": [] if equal else ["rows: x"]}]


def test_a_fault_that_nobody_foresaw_is_one_line_and_keeps_the_folder(play, capsys):
    code, (folder,) = play(fails)
    log = folder / "logs" / "demo.log"
    assert (code, capsys.readouterr().err) == (2, f"mssql-cdc demo: ValueError: no such thing; see {log}\n")
    assert "Traceback" in log.read_text()
    assert "in fails" in log.read_text()


def test_what_hinders_it_keeps_the_folder_and_says_where(play, capsys):
    code, (folder,) = play(is_hindered)
    logs = folder / "logs"
    assert (code, capsys.readouterr().err) == (2, f"mssql-cdc demo: Airflow ended; the logs are in {logs}\n")
    assert logs.is_dir()


def test_a_difference_keeps_the_folder_and_says_where(play, capsys):
    code, (folder,) = play(lambda: results(equal=False))
    out = capsys.readouterr().out
    assert code == 1
    assert "DIFFERENT: sales.orders (" in out
    assert f"Kept in {folder}:" in out


def test_nothing_is_kept_of_what_is_equal(play, capsys):
    assert play(lambda: results(equal=True)) == (0, [])
    assert "run it with --keep DIR" in capsys.readouterr().out


def test_nothing_is_kept_after_an_interrupt_even_if_it_came_as_another_error(play, capsys):
    assert play(is_interrupted) == (130, [])
    assert capsys.readouterr().err == "mssql-cdc demo: interrupted\n"
