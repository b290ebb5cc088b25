"""The tutorial's commands, one after the other, in one shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSTALLED = re.compile(r"^(python3 -m venv|pip install) .*\n", re.MULTILINE)
"""What is there already when the tests run; that the package installs, tests/test_packaging.py shows."""


@pytest.mark.xdist_group("airflow")
@pytest.mark.timeout(900)
@pytest.mark.thorough
def test_a_table_of_ones_own_comes_to_the_lake_with_its_history(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text()
    blocks = [INSTALLED.sub("", block) for block in re.findall(r"```bash\n(.*?)```", page, re.DOTALL)]
    script = "set -e\ntrap 'kill $(jobs -p)' EXIT\n" + "\n".join(blocks)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**inherited, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shown = [re.findall(r"[^|\s]+", line) for line in done.stdout.splitlines() if line.startswith("|")]
    assert [row for row in shown if row[0].isdigit()] == [["1", "Max"], ["3", "Tom"]]
    events = [tuple(row[:3]) for row in shown if row[0] in "RIUBD"]
    # the last one may be captured while the copy is read
    begun = sorted(event[1:] for event in events[:3] if event[0] in "RI")
    assert begun == [("1", "Rex"), ("2", "Mia"), ("3", "Tom")]
    assert events[3:] == [("B", "1", "Rex"), ("U", "1", "Max"), ("D", "2", "Mia")]
    assert "dbo.pets -> iceberg://lake/pets" in done.stdout
