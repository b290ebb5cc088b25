"""The wheel, installed alone into a clean environment, registers the provider."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from airflow_provider_mssql_cdc.cli import _SANDBOX_EXTRA

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def clean_python(tmp_path_factory):
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not on the PATH; `uv run pytest` brings it")
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([uv, "build", "--wheel", "--out-dir", folder, ROOT], check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([uv, "venv", "--python", sys.executable, folder / "venv"], check=True, capture_output=True)
    python = folder / "venv" / "bin" / "python"
    install = [uv, "pip", "install", "--python", python, wheel]
    # `uv run` has all of it in its cache, but would build Spark's source distribution again
    if subprocess.run([*install, "--offline"], capture_output=True, cwd=folder).returncode:
        subprocess.run(install, check=True, capture_output=True, cwd=folder)
    return python


def run(python: Path, *arguments: str) -> str:
    home = python.parents[1] / "airflow"
    environment = {"PATH": os.environ["PATH"], "AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    done = subprocess.run([python, *arguments], capture_output=True, text=True, env=environment, cwd=python.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.xdist_group("clean python")
def test_airflow_lists_the_provider(clean_python):
    listed = run(clean_python, "-m", "airflow", "providers", "list", "--output", "json")
    providers = {row["package_name"]: row for row in json.loads(listed[listed.index("[") :])}
    assert (
        providers["airflow-provider-mssql-cdc"]["version"]
        == run(clean_python, "-c", "import airflow_provider_mssql_cdc as p; print(p.__version__)").strip()
    )


@pytest.mark.xdist_group("clean python")
def test_what_the_provider_names_exists_without_the_sandbox_and_without_loading_pyspark(clean_python):
    script = """
import importlib, sys
from airflow_provider_mssql_cdc.get_provider_info import get_provider_info
info = get_provider_info()
kinds = ("hooks", "operators", "sensors", "triggers")
modules = [m for kind in kinds for entry in info[kind] for m in entry["python-modules"]]
named = {name for module in modules for name, value in vars(importlib.import_module(module)).items()
         if isinstance(value, type) and value.__module__ == module and not name.startswith("_")}
print(" ".join(sorted(named)), [m for m in ("pyspark", "duckdb", "sqlglot") if m in sys.modules])
"""
    *named, loaded = run(clean_python, "-c", script).strip().splitlines()[-1].split(" ")
    assert named == public_classes()
    assert loaded == "[]"


def public_classes() -> list[str]:
    """The classes that DAG authors use, as the source text defines them."""
    package = Path(__file__).parents[1] / "airflow_provider_mssql_cdc"
    texts = (
        path.read_text()
        for room in ("hooks", "operators", "sensors", "triggers")
        for path in (package / room).glob("*.py")
    )
    return sorted(name for text in texts for name in re.findall(r"^class (MsSql\w+)", text, re.MULTILINE))


@pytest.mark.xdist_group("clean python")
def test_the_type_marker_is_in_the_wheel(clean_python):
    script = """
from importlib.resources import files
print(files("airflow_provider_mssql_cdc").joinpath("py.typed").is_file())
"""
    assert run(clean_python, "-c", script).strip() == "True"


def imported(room: str) -> set[str]:
    """The modules of others that a room of the package imports, wherever in its files."""
    found = set()
    for path in (ROOT / "airflow_provider_mssql_cdc" / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"airflow_provider_mssql_cdc"}


def test_the_extra_declares_what_sandbox_and_demo_import_and_nothing_else():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {
        extra: {re.split(r"[<>=\[;]", requirement)[0] for requirement in requirements}
        for extra, requirements in {"": project["dependencies"], **project["optional-dependencies"]}.items()
    }
    known = {module: {name.lower() for name in names} for module, names in packages_distributions().items()}
    # who uses the fixtures of the sandbox has pytest
    modules = imported("sandbox") - {"pytest"}
    assert [module for module in modules if not known[module] & declared["sandbox"]] == []
    # SQLAlchemy comes with Airflow, pymssql with its provider for SQL Server
    others = imported("cli") - modules - {"airflow", "sqlalchemy", "pymssql"}
    assert [module for module in others if not known[module] & set().union(*declared.values())] == []
    modules |= {module for module in others if known[module] & declared["sandbox"]}
    assert set().union(*(known[module] & declared["sandbox"] for module in modules)) == declared["sandbox"]
    # of these the command line says how to install them
    assert modules == _SANDBOX_EXTRA
