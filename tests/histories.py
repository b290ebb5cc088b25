"""Random histories on harsh servers through hook, planner and Spark job, as many as are asked for.

``python -m tests.histories --count 1000 --seed 1`` runs them in batches, each with a server and a seed of its own, once
before loads that are stopped, and once between the reads of loads. A batch that fails says with which words it is
repeated; the others go on.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_TESTS = (
    f"{_HERE / 'spark' / 'test_histories.py'}::test_histories_with_random_cuts_and_stops",
    f"{_HERE / 'spark' / 'test_meanwhile.py'}::test_histories_that_go_on_between_the_reads_of_a_load",
)


class _Told:
    """Tells of each batch as it ends, and of all at last."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.failed: list[str] = []
        self._config: pytest.Config | None = None

    def pytest_configure(self, config: pytest.Config) -> None:
        """Keep what knows where pytest writes: what is printed it keeps for itself."""
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what became of a batch."""
        if report.when != "call" and not report.failed:
            return
        name, _, seed = report.nodeid.rpartition("::")[2].rstrip("]").partition("[")
        (self.failed if report.failed else self.passed).append(seed)
        assert self._config is not None
        self._config.get_terminal_writer().line(f" seed {seed}, {name}: {report.outcome} after {report.duration:.0f} s")


def main() -> int:
    """Run the histories; the exit code is pytest's."""
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="histories (default: 1000)")
    parser.add_argument("--seed", type=int, default=1, help="of the first batch; the others follow (default: 1)")
    parser.add_argument("--batch", type=int, default=50, help="histories of one server (default: 50)")
    parser.add_argument("--build", default="2022", help="of SQL Server (default: 2022)")
    parser.add_argument("--format", default="iceberg", help="of the targets (default: iceberg)")
    given = parser.parse_args()
    if given.count < 1 or given.batch < 1:
        parser.error("--count and --batch are at least 1")
    os.environ |= {
        "MSSQL_CDC_TEST_HISTORIES": str(given.count),
        "MSSQL_CDC_TEST_BATCH": str(given.batch),
        "MSSQL_CDC_TEST_SEED": str(given.seed),
        "MSSQL_CDC_TEST_BUILD": given.build,
        "MSSQL_CDC_TEST_FORMAT": given.format,
    }
    told, begun = _Told(), time.monotonic()
    code = pytest.main(["-n", "0", "-q", *_TESTS], plugins=[told])
    seconds = time.monotonic() - begun
    print(
        f"\n{given.count} histories in batches of {given.batch}, seeds {given.seed} to"
        f" {given.seed - 1 + -(-given.count // given.batch)}, SQL Server {given.build}, into {given.format}:"
        f" {len(told.passed)} passed, {len(told.failed)} failed"
        f"{': seeds ' + ', '.join(told.failed) if told.failed else ''};"
        f" {seconds:.0f} s, {seconds / given.count:.1f} s for each"
    )
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
