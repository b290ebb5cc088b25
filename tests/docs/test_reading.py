"""What docs/reading-the-tables.md shows for readers without this package."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path
from typing import Any

import pyarrow.parquet

ROOT = Path(__file__).parents[2]
SAMPLE = "parquet/lab_plain_history"


def test_the_files_that_manifests_name_are_the_history_and_others_are_not(tmp_path: Path) -> None:
    with tarfile.open(ROOT / "tests" / "upgrades" / "v2" / "files.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    table = tmp_path / SAMPLE
    written = {str(path) for path in (table / "data").rglob("*.parquet")}
    for left in (table / "data" / "killed" / "part-0.parquet", table / "_manifests" / ".draft"):
        left.parent.mkdir(exist_ok=True)
        left.touch()
    page = (ROOT / "docs" / "reading-the-tables.md").read_text()
    (shown,) = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "_manifests" in block]
    found: dict[str, Any] = {}
    exec(re.sub(r'folder = ".*"', f"folder = {str(table)!r}", shown), found)
    assert len(found["files"]) == len(set(found["files"])) > 0
    assert set(found["files"]) == written
    assert "_lsn" in pyarrow.parquet.read_schema(found["files"][0]).names
