"""The wheel, installed alone into a clean environment, registers the provider."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_airflow_lists_the_provider(clean_python):
    listed = run(clean_python, "-m", "airflow", "providers", "list", "--output", "json")
    providers = {row["package_name"]: row for row in json.loads(listed[listed.index("[") :])}
    assert (
        providers["airflow-provider-mssql-cdc"]["version"]
        == run(clean_python, "-c", "import airflow_provider_mssql_cdc as p; print(p.__version__)").strip()
    )


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
    return sorted(name for text in texts for name in re.findall(r"^class (MsSqlCdc\w+)", text, re.MULTILINE))


def test_the_type_marker_is_in_the_wheel(clean_python):
    script = """
from importlib.resources import files
print(files("airflow_provider_mssql_cdc").joinpath("py.typed").is_file())
"""
    assert run(clean_python, "-c", script).strip() == "True"
