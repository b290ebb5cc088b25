import os
import stat
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.operators.credentials import _escape, properties_file


def test_only_this_user_can_read_the_file_and_it_is_removed(tmp_path):
    with properties_file({"spark.mssql_cdc.password": "s3cret"}, None, tmp_path / "home") as path:
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700
        with open(path, encoding="utf-8") as file:
            assert file.read() == "spark.mssql_cdc.password=s3cret\n"
    assert os.listdir(tmp_path / "home") == []


def test_it_is_removed_when_the_job_fails(tmp_path):
    with pytest.raises(RuntimeError), properties_file({"spark.a": "b"}, None, tmp_path / "home"):
        raise RuntimeError
    assert os.listdir(tmp_path / "home") == []


def test_the_users_own_properties_come_first(tmp_path):
    own = tmp_path / "own.conf"
    own.write_text("spark.executor.memory 2g")
    with properties_file({"spark.a": "b"}, str(own), tmp_path / "home") as path, open(path, encoding="utf-8") as file:
        assert file.read() == "spark.executor.memory 2g\nspark.a=b\n"


def test_sparks_defaults_are_kept(tmp_path, monkeypatch):
    (tmp_path / "spark-defaults.conf").write_text("spark.eventLog.enabled true")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    with properties_file({"spark.a": "b"}, None, tmp_path / "home") as path, open(path, encoding="utf-8") as file:
        assert file.read() == "spark.eventLog.enabled true\nspark.a=b\n"


def test_what_killed_processes_left_behind_is_removed_at_the_next_start(tmp_path):
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    left, living = home / f"{gone.stdout.strip()}-x.properties", home / f"{os.getppid()}-x.properties"
    left.write_text("spark.mssql_cdc.password=old")
    living.write_text("spark.mssql_cdc.password=running")
    with properties_file({}, None, home):
        assert not left.exists()
        assert living.exists()


def test_a_folder_that_others_can_read_is_refused(tmp_path):
    (tmp_path / "home").mkdir(mode=0o755)
    with (
        pytest.raises(PermissionError, match="can be read by other users"),
        properties_file({}, None, tmp_path / "home"),
    ):
        pass


def unescape(text: str) -> str:
    """java.util.Properties.load for a value, as its documentation describes it."""
    units, i = [], 0
    while i < len(text):
        if text[i] != "\\":
            units.append(ord(text[i]))
            i += 1
        elif text[i + 1] == "u":
            units.append(int(text[i + 2 : i + 6], 16))
            i += 6
        else:
            units.append(ord(text[i + 1]))
            i += 2
    return b"".join(unit.to_bytes(2, "big") for unit in units).decode("utf-16-be", "surrogatepass")


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_any_password_survives_the_format(password):
    line = _escape(password)
    assert line.isascii()
    assert not line.startswith((" ", "\t"))
    assert "\n" not in line
    assert unescape(line) == password
