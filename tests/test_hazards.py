"""docs/hazards.md has a row for each hazard, and the tests that it names exist."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROWS = [line for line in (ROOT / "docs" / "hazards.md").read_text().splitlines() if line.startswith("|")][2:]
REFERENCE = re.compile(r"`(tests/[\w/]+\.py)((?:::\w+)+)`")


@functools.cache
def defined_in(path: str) -> frozenset[str]:
    """The tests of a file, as pytest names them behind its path."""
    found = set()
    for node in ast.parse((ROOT / path).read_text()).body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"::{node.name}" if isinstance(node, ast.ClassDef) else ""
        found |= {f"{prefix}::{test.name}" for test in members if isinstance(test, ast.FunctionDef)}
    return frozenset(name for name in found if re.match("(?:::Test\\w*)?::test_", name))


def test_there_is_a_row_for_each_hazard() -> None:
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in ROWS]
    assert [row[0] for row in cells] == [str(number) for number in range(1, 31)]
    assert [row for row in cells if len(row) != 4 or not all(row)] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_what_a_row_names_exists(row: str) -> None:
    named = REFERENCE.findall(row)
    assert [f"{path}{test}" for path, test in named if test not in defined_in(path)] == []
    assert row.count("tests/") == len(named), "each is written as `tests/path.py::test_name`"
    assert named or "Not shown" in row or "Cannot happen" in row
