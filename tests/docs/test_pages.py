"""The README and the pages of docs: links that lead somewhere, examples that compile, a README that stays short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_link_leads_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)", page.read_text())
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


def test_the_readme_names_each_page() -> None:
    named = set(re.findall(r"\]\(docs/([^)#]+)", PAGES[0].read_text()))
    assert named == {page.name for page in PAGES[1:]}


def test_the_readme_stays_short() -> None:
    assert len(PAGES[0].read_text().split()) <= 1200


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_example_in_python_compiles(page: Path) -> None:
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)):
        compile(block, f"{page.name} {number}", "exec")
