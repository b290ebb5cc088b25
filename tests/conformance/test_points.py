"""Every point of the checklist has a test that carries its number."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

_POINTS = set(range(1, 83))


def numbers(name: str) -> set[int]:
    """The numbers at the beginning of a test's name; those of sections, such as a3_1, do not count."""
    found: set[int] = set()
    in_section = False
    for part in name.split("_")[1:]:
        if part.isdigit() and not in_section:
            found.add(int(part))
        elif not part.isdigit() and not (part[0].isalpha() and part[1:].isdigit()):
            break
        in_section = not part.isdigit()
    return found


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("test_40_41_refused_tables", {40, 41}),
        ("test_a3_1_2_jobs", {2}),
        ("test_a3_12_44_x", {44}),
        ("test_d2_changes", set()),
        ("test_a3_6_a3_7_unknown", set()),
        ("test_78_decimal_38", {78}),
    ],
)
def test_numbers_of_a_name(name: str, wanted: set[int]) -> None:
    assert numbers(name) == wanted


def test_every_checklist_number_is_tested() -> None:
    covered: set[int] = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                covered |= numbers(node.name)
    assert sorted(_POINTS - covered) == []
