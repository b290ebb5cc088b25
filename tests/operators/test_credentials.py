import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.operators.credentials import (
    _escape,
    properties_file,
    property_of,
    redaction,
)
from airflow_provider_mssql_cdc.operators.installed import spark_defaults

HOLDER = """
import sys
from pathlib import Path
from airflow_provider_mssql_cdc.operators.credentials import properties_file

with properties_file({"spark.mssql_cdc.password": "running"}, None, Path(sys.argv[1])) as path:
    print(path, flush=True)
    sys.stdin.read()
"""


def properties(path: str) -> dict[str, str]:
    """What spark-submit makes of a properties file: the last of two equal keys counts."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    pairs = (re.split(r"[=\s]", line, maxsplit=1) for line in lines if line)
    return {key: value.strip() for key, value in pairs}


def test_only_this_user_can_read_the_file_and_it_is_removed(tmp_path):
    with properties_file({"spark.mssql_cdc.password": "s3cret"}, None, tmp_path / "home") as path:
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700
        assert properties(path)["spark.mssql_cdc.password"] == "s3cret"
    assert os.listdir(tmp_path / "home") == []


def test_it_is_removed_when_the_job_fails(tmp_path):
    with pytest.raises(RuntimeError), properties_file({"spark.a": "b"}, None, tmp_path / "home"):
        raise RuntimeError
    assert os.listdir(tmp_path / "home") == []


def test_the_users_own_properties_are_kept_and_ours_count(tmp_path):
    own = tmp_path / "own.conf"
    own.write_text("spark.executor.memory 2g\nspark.a x")
    with properties_file({"spark.a": "b"}, str(own), tmp_path / "home") as path:
        found = properties(path)
    assert (found["spark.executor.memory"], found["spark.a"]) == ("2g", "b")


@pytest.mark.parametrize(
    ("key", "hidden"),
    [
        ("spark.mssql_cdc.user", True),
        ("spark.mssql_cdc.password", True),
        ("spark.mssql_cdc.target_user", True),
        ("spark.mssql_cdc.target_password", True),
        ("spark.mssql_cdc.salt", True),
        # what Spark hides by default
        ("spark.hadoop.fs.s3a.secret.key", True),
        ("spark.hadoop.fs.s3a.ACCESS.KEY", True),
        ("my.Token", True),
        ("spark.ssl.keyPassword", True),
        ("spark.executor.memory", False),
        ("spark.sql.catalog.lake", False),
    ],
)
def test_user_and_password_are_hidden_in_sparks_pages(tmp_path, key, hidden):
    with properties_file({}, None, tmp_path / "home") as path:
        pattern = unescape(properties(path)["spark.redaction.regex"])
    assert matches(pattern, key) is hidden


@pytest.mark.parametrize(
    ("line", "theirs"),
    [
        ("spark.redaction.regex mine|own", "mine|own"),
        ("spark.redaction.regex=first\nspark.redaction.regex=mine|own", "mine|own"),
        ("spark.redaction.regex : mine|own  ", "mine|own"),
        ("  spark.redaction.regex\\\n   = mine|\\\r\n  own\n#spark.redaction.regex=none", "mine|own"),
        ("spark.redaction.regex=mine|own\n! spark.redaction.regex=none\n\n", "mine|own"),
        ("spark.redaction.r\\u0065gex=(m)in\\u0065|\\\\bown", r"(m)ine|\bown"),
        ("spark.redaction.regex", ""),
        ("spark.redaction.regexes=all\nspark.a=\\\nspark.redaction.regex=none", None),
    ],
)
def test_what_the_user_wants_hidden_is_hidden_beside_what_is_ours(tmp_path, line, theirs):
    own = tmp_path / "own.conf"
    own.write_text(line, newline="")
    assert property_of(line, "spark.redaction.regex") == theirs
    with properties_file({}, str(own), tmp_path / "home") as path:
        last = Path(path).read_text().splitlines()[-1]
    pattern = unescape(last.removeprefix("spark.redaction.regex="))
    assert pattern == redaction(theirs)
    hidden = [
        key for key in ("mine", "own", "spark.mssql_cdc.user", "spark.mssql_cdc.password") if matches(pattern, key)
    ]
    assert hidden[-2:] == ["spark.mssql_cdc.user", "spark.mssql_cdc.password"]
    assert ("mine" in hidden) == bool(theirs is not None)


def test_flags_and_groups_of_the_users_own_keep_their_meaning():
    assert redaction("(?i)mine") == "spark[.]mssql_cdc[.](?:(?:target_)?(?:user|password)|salt)|(?i)mine"
    assert re.compile(redaction("(m)ine")).groups == 1


def matches(pattern: str, key: str) -> bool:
    """What ``java.util.regex`` finds: there flags may stand within a pattern, and hold from there on."""
    return bool(re.search(pattern.replace("(?i)", "") if "(?i)" in pattern else pattern, key, re.IGNORECASE))


@pytest.mark.parametrize(
    ("conf_dir", "home", "expected"),
    [("conf", None, "conf"), (None, "home", "home"), ("conf", "home", "conf"), ("empty", "home", None)],
)
def test_sparks_defaults_are_kept(tmp_path, monkeypatch, conf_dir, home, expected):
    (tmp_path / "empty").mkdir()
    for folder, name in ((tmp_path / "conf", "conf"), (tmp_path / "home" / "conf", "home")):
        folder.mkdir(parents=True)
        (folder / "spark-defaults.conf").write_text(f"spark.found {name}")
    for variable, value in (("SPARK_CONF_DIR", conf_dir), ("SPARK_HOME", home)):
        monkeypatch.delenv(variable, raising=False)
        if value:
            monkeypatch.setenv(variable, str(tmp_path / value))
    with properties_file({"spark.a": "b"}, spark_defaults("spark-submit", os.environ), tmp_path / "secrets") as path:
        assert properties(path).get("spark.found") == expected


def spark(home: Path) -> Path:
    """A Spark as it is unpacked, with settings of a site."""
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "spark-submit").touch(mode=0o755)
    (home / "conf").mkdir()
    (home / "conf" / "spark-defaults.conf").touch()
    return home


def test_without_spark_home_the_defaults_are_beside_spark_submit(tmp_path):
    home = spark(tmp_path / "spark-4.1")
    (tmp_path / "spark").symlink_to(home)
    found = home / "conf" / "spark-defaults.conf"
    path = {"PATH": os.pathsep.join((str(tmp_path), str(tmp_path / "spark" / "bin")))}

    assert spark_defaults("spark-submit", path) == found
    assert spark_defaults(str(home / "bin" / "spark-submit"), {"PATH": "/nowhere"}) == found
    assert spark_defaults("spark-submit", {"PATH": "/nowhere"}) is None
    assert spark_defaults("spark-submit", {**path, "SPARK_HOME": str(tmp_path)}) is None
    assert spark_defaults("spark-submit", {**path, "SPARK_CONF_DIR": str(tmp_path)}) is None


def test_a_spark_that_pip_has_installed_has_its_defaults_in_the_package(tmp_path):
    home = spark(tmp_path)
    (home / "bin" / "find_spark_home.py").touch()
    assert spark_defaults("spark-submit", {"PATH": str(home / "bin")}) is None

    package = spark(home / "lib" / "python3.11" / "site-packages" / "pyspark")
    assert spark_defaults("spark-submit", {"PATH": str(home / "bin")}) == package / "conf" / "spark-defaults.conf"


def test_the_current_folder_is_not_sparks(tmp_path, monkeypatch):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.found here")
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert spark_defaults("spark-submit", os.environ) is None


def holding(home: Path) -> tuple[subprocess.Popen[str], Path]:
    """Another process with a properties file of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_what_killed_processes_left_behind_is_removed_at_the_next_start(tmp_path):
    home = tmp_path / "home"
    process, path = holding(home)
    with process:
        process.send_signal(signal.SIGKILL)
    assert path.exists()
    with properties_file({}, None, home) as own:
        assert os.listdir(home) == [os.path.basename(own)]


def test_the_file_of_a_living_process_stays_whatever_its_number_means_here(tmp_path):
    """Processes of another container are unknown here, or have the number of this one."""
    home = tmp_path / "home"
    process, path = holding(home)
    with process:
        gone = subprocess.run(
            [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
        )
        for number in (os.getpid(), int(gone.stdout)):
            path = path.rename(home / f"{number}-x.properties")
            with properties_file({}, None, home), properties_file({}, None, home):
                assert path.exists()
                assert len(os.listdir(home)) == 3
        assert process.stdin is not None
        process.stdin.close()


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
    assert property_of(f"a=b\nkey={line}\nc=d", "key") == password.strip()
    assert line.isascii()
    assert not line.startswith((" ", "\t"))
    assert "\n" not in line
    assert unescape(line) == password
