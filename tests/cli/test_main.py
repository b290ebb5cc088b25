from __future__ import annotations

import subprocess
import sys

import pytest

from airflow_provider_mssql_cdc import __version__
from airflow_provider_mssql_cdc.cli import main


def test_the_version_is_the_packages(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"{__version__}\n"


def test_help_is_quick_because_nothing_heavy_is_imported():
    code = (
        "import sys\nfrom airflow_provider_mssql_cdc.cli import main\n"
        "try:\n    main(['demo', '--help'])\nexcept SystemExit:\n    pass\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "--keep" in done.stdout
    assert not {"airflow", "pyspark", "pyarrow", "duckdb", "sqlglot", "pymssql"} & set(done.stderr.split())


@pytest.mark.parametrize("command", ["demo", "sandbox"])
def test_a_missing_extra_is_one_line(command):
    code = (
        "import sys\nsys.modules['pyarrow'] = None\nfrom airflow_provider_mssql_cdc.cli import main\n"
        f"raise SystemExit(main(['{command}']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"mssql-cdc {command}: module pyarrow is missing: pip install 'airflow-provider-mssql-cdc[sandbox]'\n"
    )


@pytest.mark.parametrize("words", [[], ["unknown"], ["checkpoint"], ["checkpoint", "show"]])
def test_without_a_command_the_usage_is_shown(words, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert "usage: mssql-cdc" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["demo", "--port", "x"], "argument --port: 'x' is not a whole number"),
        (["demo", "--port", "65536"], "argument --port: must lie between 0 and 65535"),
        (["demo", "--rows", "1.5"], "argument --rows: '1.5' is not a whole number"),
        (["demo", "--rows", "0"], "argument --rows: must be at least 1"),
        (["sandbox", "--capture-interval", "soon"], "argument --capture-interval: 'soon' is not a number"),
        (["sandbox", "--capture-interval", "nan"], "argument --capture-interval: must be above 0"),
    ],
)
def test_numbers_are_checked(words, reason, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert reason in capsys.readouterr().err
