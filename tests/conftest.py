"""A private Airflow home for each test process, and the count of Spark starts."""

from __future__ import annotations

import base64
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import pytest
from hypothesis import settings

from airflow_provider_mssql_cdc.operators import class_archive
from tests.support import harsh
from tests.support.lake import catalog
from tests.support.logins import SALT, SPARK_PASSWORD, SPARK_USER, TARGET_PASSWORD, TARGET_USER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# a machine that has other things to do takes longer for an example
settings.register_profile("without deadline", settings.default, deadline=None)
settings.load_profile("without deadline")

SPARK_STARTS = int(os.environ.get("MSSQL_CDC_TEST_SPARK_STARTS", "46"))
"""How many times a run may start Spark."""

# The first process makes the folder; its workers inherit the variable.
_OWNER = "MSSQL_CDC_TEST_ROOT" not in os.environ
if _OWNER:
    os.environ["MSSQL_CDC_TEST_ROOT"] = tempfile.mkdtemp(prefix="mssql_cdc_tests-")
ROOT = Path(os.environ["MSSQL_CDC_TEST_ROOT"])
HOME = ROOT / f"airflow-{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"

SHARES, SHARE = 7, "MSSQL_CDC_TEST_SHARE"
"""Into so many shares the slow tests are divided, and the variable that says which one a run of all tests takes."""

_NO_FOLDER = str(ROOT / "no folder of settings")

LIGHT_JAVA = (
    # where data are few most of the CPU goes into compiling and loading classes: compile once, lightly, keep what is
    # compiled (the code cache of level 1 alone is small), and trust the jars
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -Xmn400m "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)

LASTING_JAVA = (
    # one that lives for half an hour compiles once more, and well, what it does very often: as soon as Java would by
    # itself, compiling takes longer than all the rest
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 -XX:Tier4CompileThreshold=150000 "
    "-XX:Tier4BackEdgeThreshold=400000 "
    "-XX:+UseSerialGC -Xmn400m -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)

os.environ.update(
    {
        "AIRFLOW_HOME": str(HOME),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        # else each process that finds no airflow.cfg makes up one of its own, and reads no other's Variables
        "AIRFLOW__CORE__FERNET_KEY": base64.urlsafe_b64encode(bytes(32)).decode(),
        "AIRFLOW__CORE__DAGS_FOLDER": str(HOME / "dags"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{HOME}/airflow.db",
        "SPARK_CONF_DIR": str(ROOT / "spark"),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        # spark-submit comes with pyspark
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))),
    }
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run take all combinations."""
    parser.addoption("--thorough", action="store_true", help="run the tests that are marked thorough too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked thorough, and in a run of all tests six of seven slow ones, unless it is asked for."""
    if config.getoption("--thorough"):
        return
    every, taken, left_out = items[:], items, []
    taken.clear()
    for item in every:
        (left_out if item.get_closest_marker("thorough") or is_of_another_share(item) else taken).append(item)
    config.hook.pytest_deselected(items=left_out)


def is_of_another_share(item: pytest.Item) -> bool:
    """Whether a slow test is taken by other runs of all tests: seven that have another share each take all."""
    if SHARE not in os.environ or item.get_closest_marker("every_run"):
        return False
    is_slow = "spark" in getattr(item, "fixturenames", ()) or item.get_closest_marker("in_turn") is not None
    return is_slow and crc32(item.nodeid.partition("@")[0].encode()) % SHARES != int(os.environ[SHARE])


def pytest_configure(config: pytest.Config) -> None:
    """Make the folders, and the configuration that every way to start Spark reads: it notes each start."""
    HOME.mkdir(parents=True, exist_ok=True)
    is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if _OWNER and is_whole and not (config.getoption("keyword") or config.getoption("markexpr")):
        os.environ.setdefault(SHARE, str(random.randrange(SHARES)))
    if _OWNER:
        quick = {
            "spark.local.dir": ROOT,
            # for a few rows quicker than generating code, which the loads of tests/operators do
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        }
        (ROOT / "spark").mkdir()
        archive = own_archive()
        (ROOT / "spark" / "spark-env.sh").write_text(
            # what fetches jars starts no Spark
            f'case "$*" in *nothing.py*) ;; *) echo "$PPID" >> "{ROOT}/spark-starts" ;; esac\n'
            # what lies in this folder is not for the class path, where it would keep Java from the archive
            f"SPARK_CONF_DIR='{_NO_FOLDER}'\n"
            f'SPARK_SUBMIT_OPTS="$SPARK_SUBMIT_OPTS {" ".join(f"-D{k}={v}" for k, v in quick.items())}"\n'
            + (f'JDK_JAVA_OPTIONS="$JDK_JAVA_OPTIONS {class_archive.option(archive)}"\n' if archive else "")
        )
        settings = {"spark.driver.extraJavaOptions": f"{LIGHT_JAVA} -Djava.io.tmpdir={ROOT}", **quick}
        (ROOT / "spark" / "spark-defaults.conf").write_text("".join(f"{k} {v}\n" for k, v in settings.items()))


def own_archive() -> Path | None:
    """The archive of classes from which Spark starts here; None where there is none."""
    return class_archive.found("spark-submit", {**os.environ, "SPARK_CONF_DIR": _NO_FOLDER})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print which slow tests were run, and how many of the Spark starts were used."""
    if _OWNER and SHARE in os.environ and not terminalreporter.config.getoption("--thorough"):
        terminalreporter.write_line(
            f"slow tests: those of share {os.environ[SHARE]} of {SHARES} were run ({SHARE}={os.environ[SHARE]} repeats "
            "that); --thorough runs all"
        )
    if _OWNER:
        terminalreporter.write_line(f"Spark starts: {spark_starts()} of at most {SPARK_STARTS}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that started Spark more often than allowed."""
    if _OWNER and spark_starts() > SPARK_STARTS:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the folder."""
    if _OWNER:
        shutil.rmtree(ROOT, ignore_errors=True)


def spark_starts() -> int:
    """How many times Spark was started so far, in all processes of this run."""
    notes = ROOT / "spark-starts"
    return len(notes.read_text().splitlines()) if notes.exists() else 0


@pytest.fixture(autouse=True)
def _draws(request: pytest.FixtureRequest) -> None:
    """Harsh servers draw for each test anew, so that it fails alone as it did among others."""
    harsh.begin(request.node.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say of a failed test how to draw the same again."""
    report = yield
    if report.failed and harsh.any_is_running():
        report.sections.append(("harsh servers", f"MSSQL_CDC_TEST_SEED={harsh.SEED} repeats what they drew"))
    return report


@pytest.fixture(scope="session")
def airflow_db() -> Path:
    """The Airflow home of this process, with a migrated SQLite database."""
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True, capture_output=True)
    return HOME


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """One Spark for the tests of a process that take this: one for each worker, which takes a module as a whole."""
    session = spark_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


def spark_session(folder: Path, java: str = LASTING_JAVA) -> SparkSession:
    """Start Spark, with catalogs whose tables lie in the folder.

    :param java: options of its JVM
    """
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    lasting = {"spark.driver.extraJavaOptions": f"{java} -Djava.io.tmpdir={ROOT}"}
    for name, value in {**spark_settings(folder), **lasting}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def spark_settings(folder: Path) -> dict[str, str]:
    """The settings of a Spark with catalogs whose tables lie in the folder."""
    from airflow_provider_mssql_cdc.core import formats
    from airflow_provider_mssql_cdc.operators import jars

    packages = [package for needs in formats.FORMATS.values() for package in (*needs.packages, formats.JDBC_DRIVER)]
    return {
        "spark.master": "local[2]",
        "spark.app.name": "tests",
        **jars.spark_settings([*dict.fromkeys(packages)]),
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions,io.delta.sql.DeltaSparkSessionExtension"
        ),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
        **catalog("lake", folder / "lake"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.mssql_cdc.user": SPARK_USER,
        "spark.mssql_cdc.password": SPARK_PASSWORD,
        "spark.mssql_cdc.target_user": TARGET_USER,
        "spark.mssql_cdc.target_password": TARGET_PASSWORD,
        "spark.mssql_cdc.salt": SALT,
        # small tables take the way of large ones
        "spark.mssql_cdc.upsert_rows": "0",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "2g",
    }
