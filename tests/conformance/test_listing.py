"""docs/sandbox.md lists what the sandbox does not have, as the tests of this suite tell it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.conformance.not_built import BUILDS, FIRST_STATEMENTS, STATEMENTS

_HERE = Path(__file__).parent
_DOCS = _HERE.parents[1] / "docs" / "sandbox.md"


def _points(name: str) -> str:
    """The points of the checklist at the beginning of a name: ``66-75-current`` or ``test_a3_1_delayed``."""
    found: list[str] = []
    for part in re.split("[-_]", name.removeprefix("test_")):
        if part.isdigit() and found and re.fullmatch("[A-H]\\d", found[-1]):
            found[-1] += f".{part}"
        elif re.fullmatch(r"\d+|[a-h](\d+(\.\d+)?)?|tsql", part):
            found.append("T-SQL" if part == "tsql" else part.upper())
        else:
            break
    return ", ".join(found)


def _refused() -> Iterator[tuple[str, str]]:
    for statements in (STATEMENTS, FIRST_STATEMENTS):
        for name, statement in statements.items():
            yield _points(name), f"`{statement}`"
    yield "82", f"builds {', '.join(BUILDS)}"


def _table(rows: Iterator[tuple[str, str]]) -> list[str]:
    def order(row: tuple[str, str]) -> tuple[int, str, str]:
        number = re.match(r"\d+", row[0])
        return int(number.group()) if number else 1000, *row

    return [f"| {points} | {what} |" for points, what in sorted(set(rows), key=order)]


def _listed(heading: str) -> list[str]:
    """The rows of the table under a heading."""
    section = _DOCS.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return [line for line in section.splitlines() if line.startswith("|")][2:]


def test_what_is_refused_is_listed() -> None:
    assert _listed("Not built, and refused") == _table(_refused())


def test_every_row_has_its_points() -> None:
    assert all(points for points, _ in _refused())
