"""Child processes that never outlive the demo."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

_POLL = 0.05


class Children:
    """Starts processes, each in a process group of its own, and ends the groups when the ``with`` statement ends.

    :param grace: seconds from the request to end until they are killed
    """

    def __init__(self, grace: float = 10.0) -> None:
        self._grace = grace
        self._started: list[subprocess.Popen[str]] = []

    def start(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        log: Path,
        cwd: Path,
        ask: bool = False,
        listen: bool = False,
        user: str | None = None,
    ) -> subprocess.Popen[str]:
        """Start a process.

        A group of its own keeps a Ctrl-C at the terminal from reaching it: it is ended in order, and with all that it
        has started.

        :param log: receives standard error, and standard output unless ``listen``
        :param ask: connect a pipe to standard input
        :param listen: connect a pipe to standard output
        :param user: whose rights it gets, None for our own
        """
        with log.open("a") as sink:
            process = subprocess.Popen(
                command,
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.PIPE if ask else subprocess.DEVNULL,
                stdout=subprocess.PIPE if listen else sink,
                stderr=sink,
                text=True,
                start_new_session=True,
                user=user,
                group=user,
                extra_groups=None if user is None else [],
            )
        self._started.append(process)
        return process

    def __enter__(self) -> Children:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._started:
            _close(process.stdin)
            _signal_group(process, signal.SIGTERM)
        deadline = time.monotonic() + self._grace
        for process in self._started:
            _wait_for_group(process, deadline)
            _signal_group(process, signal.SIGKILL)
            _wait_for_group(process, time.monotonic() + self._grace)
            process.wait()
            _close(process.stdout)


def _wait_for_group(process: subprocess.Popen[str], deadline: float) -> None:
    # Its leader's end is not the end of a group: what it had started may still be there.
    while _signal_group(process, 0) and time.monotonic() < deadline:
        time.sleep(_POLL)


def _signal_group(process: subprocess.Popen[str], number: int) -> bool:
    # Collected here, since a process that has ended and was not waited for still counts as a member.
    process.poll()
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return False
    return True


def _close(stream: IO[str] | None) -> None:
    if stream is not None:
        # What was buffered for a process that is gone
        with contextlib.suppress(BrokenPipeError):
            stream.close()
