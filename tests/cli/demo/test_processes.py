from __future__ import annotations

import os
import sys

import psutil
import pytest

from airflow_provider_mssql_cdc.cli.demo.processes import Children

# Says its own pid and that of a child, then does what the argument says.
PARENT = """
import os, signal, subprocess, sys
stubborn = "signal.signal(signal.SIGTERM, signal.SIG_IGN); " if "stubborn" in sys.argv else ""
child = subprocess.Popen(
    [sys.executable, "-c", f"import signal, time; {stubborn}print(flush=True); time.sleep(600)"],
    stdout=subprocess.PIPE,
)
child.stdout.readline()
print(os.getpid(), child.pid, flush=True)
if "leave" not in sys.argv:
    child.wait()
"""


def start(children, tmp_path, *words):
    process = children.start(
        [sys.executable, "-c", PARENT, *words], env=os.environ, log=tmp_path / "log", cwd=tmp_path, listen=True
    )
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert pids[0] == process.pid
    return process, pids


def alive(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("words", [(), ("leave",), ("stubborn",), ("stubborn", "leave")])
def test_nothing_outlives_the_with_statement(tmp_path, words):
    with Children(grace=1.0) as children:
        process, pids = start(children, tmp_path, *words)
        if "leave" in words:
            process.wait()
        assert alive(pids[1])
    assert [alive(pid) for pid in pids] == [False, False]


def test_an_interrupt_ends_them_too(tmp_path):
    pids = []

    def interrupted():
        with Children() as children:
            for _ in range(2):
                pids.extend(start(children, tmp_path)[1])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [alive(pid) for pid in pids] == [False] * 4


def test_a_ctrl_c_at_the_terminal_does_not_reach_them(tmp_path):
    with Children() as children:
        process, _ = start(children, tmp_path)
        assert os.getpgid(process.pid) == process.pid != os.getpgrp()


def test_what_a_process_says_goes_to_its_log(tmp_path):
    with Children() as children:
        command = [sys.executable, "-c", "import sys; print('out', flush=True); print('err', file=sys.stderr)"]
        children.start(command, env=os.environ, log=tmp_path / "log", cwd=tmp_path).wait()
    assert (tmp_path / "log").read_text() == "out\nerr\n"
