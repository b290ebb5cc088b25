"""How the package's modules hang together: none needs itself by way of others, and none is long."""

import ast
import graphlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = "airflow_provider_mssql_cdc"
MOST_LINES = 400


def modules(root: Path, package: str) -> dict[str, Path]:
    """A package's modules by their full names."""
    found = {}
    for path in (root / package).rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path) -> set[str]:
    """What a module imports, wherever that stands in it: modules, and names of modules behind a dot."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} has a relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def circle(root: Path, package: str) -> list[str]:
    """Modules each of which imports the next one, the last of which is the first; none if there is no such."""
    known = modules(root, package)
    graph = {
        module: {name if name in known else name.rpartition(".")[0] for name in imported(path)} & known.keys()
        for module, path in known.items()
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(reversed(error.args[1]))
    return []


def test_no_module_imports_itself_by_way_of_others():
    assert circle(ROOT, PACKAGE) == []


def test_no_module_is_long():
    lengths = {name: len(path.read_text().splitlines()) for name, path in modules(ROOT, PACKAGE).items()}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}


@pytest.mark.parametrize(
    "back",
    [
        "import p.a\n",
        "from p import a\n",
        "from p.a import A\n",
        "def late():\n    from p.a import A\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.a import A\n",
    ],
    ids=["module", "from its package", "name", "in a function", "for types"],
)
def test_a_circle_is_found(tmp_path: Path, back: str):
    package = tmp_path / "p"
    (package / "q").mkdir(parents=True)
    for name, text in {
        "__init__": "",
        "a": "from p.q.b import B\nclass A: ...\n",
        "c": "import p.a\n",
        "q/__init__": "",
        "q/b": f"{back}\nclass B: ...\n",
    }.items():
        (package / f"{name}.py").write_text(text)
    found = circle(tmp_path, "p")
    assert found[0] == found[-1]
    assert set(found) == {"p.a", "p.q.b"}


def test_modules_without_a_circle(tmp_path: Path):
    (tmp_path / "p").mkdir()
    for name, text in {"__init__": "", "a": "import p.b\n", "b": "import os\n", "c": "from p import a, b\n"}.items():
        (tmp_path / "p" / f"{name}.py").write_text(text)
    assert circle(tmp_path, "p") == []
