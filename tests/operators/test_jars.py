"""Jars of a repository that the tests serve, fetched by Spark's own Ivy, by one process and by many."""

from __future__ import annotations

import contextlib
import dataclasses
import http.server
import io
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from airflow_provider_mssql_cdc.core import formats
from airflow_provider_mssql_cdc.core.exceptions import MsSqlCdcError, SparkMissingError
from airflow_provider_mssql_cdc.core.position import Cut, Lsn
from airflow_provider_mssql_cdc.core.spec import JobSpec, SourceSpec
from airflow_provider_mssql_cdc.operators import installed, jars, job_files
from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator

ONE = jars.Package("cdc.tests:one:1.0")


def archive(content: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as jar:
        jar.writestr("content", content)
    return buffer.getvalue()


def pom(name: str, needs: str = "") -> bytes:
    dependency = f"<dependency><groupId>cdc.tests</groupId><artifactId>{needs}</artifactId><version>1.0</version>"
    dependencies = f"<dependencies>{dependency}</dependency></dependencies>" if needs else ""
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>cdc.tests</groupId>"
        f"<artifactId>{name}</artifactId><version>1.0</version>{dependencies}</project>"
    ).encode()


class Repository:
    """A Maven repository with ``one``, which needs ``two``.

    :ivar asked: the paths that were asked for
    :ivar held: set lets go requests for jars, which wait until then
    :ivar broken: how many of the next requests for jars are cut off
    """

    def __init__(self) -> None:
        self.files = {
            "/cdc/tests/one/1.0/one-1.0.pom": pom("one", "two"),
            "/cdc/tests/one/1.0/one-1.0.jar": archive("one"),
            "/cdc/tests/two/1.0/two-1.0.pom": pom("two"),
            "/cdc/tests/two/1.0/two-1.0.jar": archive("two"),
        }
        self.asked: list[str] = []
        self.held, self.reached = threading.Event(), threading.Event()
        self.held.set()
        self.broken = 0
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.held.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        repository = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                repository.asked.append(self.path)
                content = repository.files.get(self.path)
                if self.path.endswith(".jar"):
                    repository.reached.set()
                    repository.held.wait(60)
                    if repository.broken:
                        repository.broken -= 1
                        self.send_error(503)
                        return
                if content is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(content)

            do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        return Handler


@pytest.fixture
def repository():
    found = Repository()
    yield found
    found.close()


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty folder for jars, and a Java that knows no other."""
    folder = tmp_path / "jars"
    monkeypatch.setenv(jars.FOLDER, str(folder))
    # its own configuration, in which the tests' Spark starts are not counted
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    return folder


def ivy(repository: Repository, tmp_path: Path, **given) -> jars.Ivy:
    """Ask this repository alone, with a Java home of its own."""
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="tests"/><resolvers>'
        f'<ibiblio name="tests" m2compatible="true" root="{repository.url}"/></resolvers></ivysettings>'
    )
    java = {"spark.driver.extraJavaOptions": f"-Duser.home={tmp_path / 'java'}"}
    return jars.Ivy(settings={"spark.jars.ivySettings": str(settings), **java}, **given)


def contents(paths) -> dict[str, str]:
    found = {}
    for path in paths:
        with zipfile.ZipFile(path) as jar:
            found[Path(path).name] = jar.read("content").decode()
    return found


BOTH = {"cdc.tests_one-1.0.jar": "one", "cdc.tests_two-1.0.jar": "two"}


def test_jars_are_fetched_once_and_kept_for_this_user(repository, home, tmp_path):
    found = jars.paths([ONE], ivy(repository, tmp_path))

    assert contents(found) == BOTH
    assert home.stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in home.iterdir() if not path.name.endswith(".lock")) == [Path(found[0]).parts[-3]]
    asked = list(repository.asked)
    assert jars.paths([ONE], ivy(repository, tmp_path, binary="no-such-spark")) == found
    assert repository.asked == asked


@pytest.mark.in_turn
def test_what_is_damaged_or_gone_is_fetched_again(repository, home, tmp_path):
    one, two = jars.paths([ONE], ivy(repository, tmp_path))
    Path(one).write_bytes(Path(one).read_bytes()[:-1])
    Path(two).unlink()

    assert contents(jars.paths([ONE], ivy(repository, tmp_path))) == BOTH


@pytest.mark.thorough
def test_what_the_user_leaves_out_and_a_package_does_not_need_is_not_fetched(repository, home, tmp_path):
    found = jars.paths([ONE], ivy(repository, tmp_path, excludes="cdc.tests:two"))
    assert contents(found) == {"cdc.tests_one-1.0.jar": "one"}
    parts = jars.Package(ONE.coordinate, (), ("cdc.tests:t*",))
    assert contents(jars.paths([parts], ivy(repository, tmp_path))) == {"cdc.tests_one-1.0.jar": "one"}
    assert "/cdc/tests/two/1.0/two-1.0.jar" not in repository.asked


@pytest.mark.in_turn
def test_a_network_that_fails_for_a_moment_is_tried_again(repository, home, tmp_path):
    repository.broken = 1

    assert contents(jars.paths([ONE], ivy(repository, tmp_path))) == BOTH


@pytest.mark.thorough
def test_without_a_network_it_is_left_to_spark_whose_own_cache_may_hold_them(repository, home, tmp_path, caplog):
    repository.broken = 100

    assert jars.paths([ONE], ivy(repository, tmp_path)) is None
    assert repository.asked.count("/cdc/tests/one/1.0/one-1.0.jar") >= 3
    assert [path.name for path in home.iterdir() if not path.name.endswith(".lock")] == []
    assert "could not fetch cdc.tests:one:1.0" in caplog.text
    assert "Spark fetches them for each job" in caplog.text
    assert jars.FOLDER in caplog.text
    # Airflow's own formatter, where it is set up in this process, writes JSON
    assert 'packages=""' in caplog.text.replace("\\", "")


@pytest.mark.thorough
def test_a_repository_that_cannot_be_reached_is_a_network_that_fails(repository, home, tmp_path):
    settings = ivy(repository, tmp_path)
    repository.close()

    assert jars.spark_settings([ONE], settings) == {"spark.jars.packages": ONE.coordinate}


def test_a_jar_that_is_no_archive_is_refused(repository, home, tmp_path):
    repository.files["/cdc/tests/two/1.0/two-1.0.jar"] = b"<html>Please log in.</html>"

    with pytest.raises(SparkMissingError, match=r"two-1\.0\.jar, which Spark's Ivy has fetched, is no jar"):
        jars.paths([ONE], ivy(repository, tmp_path))
    assert [path.name for path in home.iterdir() if not path.name.endswith(".lock")] == []


def test_what_is_missing_is_named(repository, home, tmp_path, monkeypatch):
    with pytest.raises(SparkMissingError, match=r"could not fetch cdc\.tests:three:1\.0: unresolved dependency"):
        jars.paths([jars.Package("cdc.tests:three:1.0")], ivy(repository, tmp_path))
    with pytest.raises(SparkMissingError, match="there is no spark3-submit on the PATH of this worker"):
        jars.paths([ONE], ivy(repository, tmp_path, binary="spark3-submit"))
    assert str(installed.missing("spark3-submit", os.environ)) == str(installed.no_spark("spark3-submit"))
    (tmp_path / "bin").mkdir()
    for name in ("bash", "dirname", "env", "python3", "sed", "uname"):
        if found := shutil.which(name):
            (tmp_path / "bin" / name).symlink_to(found)
    binary = str(Path(sys.executable).parent / "spark-submit")
    without = {"PATH": str(tmp_path / "bin"), "JAVA_HOME": ""}
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", without["PATH"])
    with pytest.raises(SparkMissingError, match="Spark finds no Java on this worker"):
        jars.paths([ONE], ivy(repository, tmp_path, binary=binary))
    assert str(installed.missing(binary, without)) == str(installed.no_java())


def test_a_folder_that_cannot_be_made_leaves_jars_to_spark(home, caplog):
    home.parent.joinpath("jars").write_text("a file")

    assert jars.paths([ONE], jars.Ivy()) is None
    assert jars.spark_settings([ONE]) == {"spark.jars.packages": "cdc.tests:one:1.0"}
    assert "so that Spark fetches them for each job" in caplog.text


def test_a_folder_that_others_may_write_to_is_not_used(home):
    home.mkdir()
    home.chmod(0o777)

    assert jars.paths([ONE], jars.Ivy()) is None


_PROCESS = """
import json, sys
from airflow_provider_mssql_cdc.operators import jars
settings, package = json.loads(sys.argv[1]), jars.Package(sys.argv[2])
print(json.dumps(jars.paths([package], jars.Ivy(settings=settings))))
"""


@pytest.mark.in_turn
def test_eight_processes_start_cold_one_is_killed_in_mid_download_and_all_others_work(repository, home, tmp_path):
    settings = dict(ivy(repository, tmp_path).settings)
    repository.held.clear()

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", _PROCESS, json.dumps(settings), ONE.coordinate]
        # a session of its own: its Java ends with it
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)

    first = start()
    assert repository.reached.wait(60)
    others = [start() for _ in range(7)]
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    repository.held.set()

    assert [contents(json.loads(process.communicate(timeout=120)[0])) for process in others] == [BOTH] * 7
    assert sorted(path.suffix for path in home.iterdir()) == ["", ".lock"]


SPEC = JobSpec("a1", SourceSpec("db:1", "shop", "jdbc:"), (), Cut.at(Lsn(bytes(9) + b"\1")), "/work")


def submitted(**given) -> tuple[list[str], list[str]]:
    """The jars and packages with which an operator calls spark-submit."""
    operator = MsSqlCdcLoadOperator(task_id="load", tables=["a.b"], target="iceberg://lake/shop", **given)
    with operator._submitting(SPEC, {}):
        command = operator._get_hook()._build_spark_submit_command("job.py")
    options = {name: value for name, value in itertools.pairwise(command) if name.startswith("--")}
    return [each for each in options.get("--jars", "").split(",") if each], [
        each for each in options.get("--packages", "").split(",") if each
    ]


@pytest.fixture
def ours(monkeypatch):
    """The jars of a load into Iceberg, which are there."""
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[1]"}')
    needed = (*formats.FORMATS["iceberg"].packages, formats.JDBC_DRIVER)
    found = jars.paths(needed, jars.Ivy())
    assert found is not None
    assert [Path(jar).name for jar in found] == [
        "org.apache.iceberg_iceberg-spark-runtime-4.1_2.13-1.12.0.jar",
        "com.microsoft.sqlserver_mssql-jdbc-13.6.2.jre11.jar",
    ]
    return found


OURS = formats.packages("iceberg://lake/shop").split(",")
THEIRS = "/opt/hadoop-aws.jar"


def defaults(tmp_path, monkeypatch, text):
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text(text)
    return {}


def file(tmp_path, _, text):
    (tmp_path / "their.properties").write_text(text)
    return {"properties_file": str(tmp_path / "their.properties")}


def conf(_, __, text):
    name, _, value = text.strip().partition(" ")
    return {"conf": {name: value}}


def test_packages_that_spark_cannot_fetch_are_named_as_ours_are(repository, home, tmp_path, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[1]"}')
    monkeypatch.setenv("AIRFLOW_CONN_MSSQL_DEFAULT", '{"conn_type": "mssql", "host": "db"}')
    operator = MsSqlCdcLoadOperator(
        task_id="load",
        tables=["a.b"],
        target="iceberg://lake/shop",
        packages="cdc.tests:three:1.0",
        conf=dict(ivy(repository, tmp_path).settings),
    )
    spec = dataclasses.replace(SPEC, work_dir=str(tmp_path / "work"))
    job_files.write_spec(spec)

    with pytest.raises(SparkMissingError, match=r"fetch the job's packages: unresolved dependency: cdc\.tests"):
        operator._submit(spec, {})


PLACES = pytest.mark.parametrize("place", [conf, file, defaults])


def test_our_jars_alone(ours, tmp_path):
    assert submitted() == (ours, [])


def test_our_jars_are_added_to_those_of_the_operator(ours, tmp_path):
    assert submitted(jars=THEIRS) == ([THEIRS, *ours], [])


@PLACES
def test_our_jars_are_added_to_those_of_the_settings(ours, tmp_path, monkeypatch, place):
    given = place(tmp_path, monkeypatch, f"spark.jars {THEIRS}\n")

    assert submitted(**given) == ([THEIRS, *ours], [])


AWS = "org.apache.hadoop:hadoop-aws:3.4.2"


@PLACES
def test_our_packages_are_added_to_those_of_the_settings(ours, tmp_path, monkeypatch, place):
    given = place(tmp_path, monkeypatch, f"spark.jars.packages {AWS}, {OURS[0]}\n")

    assert submitted(**given) == ([], [AWS, *OURS])


def test_our_packages_are_added_in_a_cluster_too(remote):
    given = {"conf": {"spark.submit.deployMode": "cluster", "spark.jars.packages": AWS}}

    assert submitted(**given) == ([], [AWS, *OURS])


@pytest.mark.parametrize("packages", ["", "org.example:own:1"])
def test_the_operators_packages_turn_ours_off(ours, tmp_path, packages):
    assert submitted(packages=packages, jars=THEIRS) == ([THEIRS], [packages] if packages else [])


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The Ivy of each operator that asks for jars, which are there."""
    # a worker that says nothing of Spark
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[1]"}')
    found: list[jars.Ivy] = []

    def paths(packages, ivy):
        assert [package.coordinate for package in packages] == OURS
        found.append(ivy)
        return ["/jars/ours.jar"]

    monkeypatch.setattr(jars, "paths", paths)
    return found


PROXY = "-Dhttps.proxyHost=proxy -Dhttps.proxyPort=3128"


@PLACES
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.jars.ivySettings", "/etc/ivysettings.xml"),
        ("spark.jars.repositories", "https://maven.example/a,https://maven.example/b"),
        ("spark.jars.excludes", "org.example:slf4j"),
        ("spark.driver.extraJavaOptions", PROXY),
        ("spark.driver.defaultJavaOptions", PROXY),
    ],
)
def test_ivy_gets_the_settings_of_each_place(asked, tmp_path, monkeypatch, place, name, value):
    given = place(tmp_path, monkeypatch, f"{name} {value}\n")

    assert submitted(**given) == (["/jars/ours.jar"], [])
    (ivy,) = asked
    assert ivy.settings == {name: value}
    assert (ivy.binary, ivy.repositories, ivy.excludes) == ("spark-submit", "", "")


def test_what_conf_says_counts_more_than_the_file(asked, tmp_path, monkeypatch):
    given = file(tmp_path, monkeypatch, "spark.jars.repositories https://maven.example/file\n")
    submitted(**given, **conf(tmp_path, monkeypatch, "spark.jars.repositories https://maven.example/conf\n"))

    assert asked[0].settings == {"spark.jars.repositories": "https://maven.example/conf"}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"repositories": "https://maven.example"}, {"repositories": "https://maven.example"}),
        ({"exclude_packages": "org.example:slf4j"}, {"excludes": "org.example:slf4j"}),
        ({"spark_binary": "spark3-submit"}, {"binary": "spark3-submit"}),
    ],
)
def test_ivy_gets_what_the_operator_says(asked, given, found):
    submitted(**given)

    (ivy,) = asked
    assert {name: getattr(ivy, name) for name in found} == found
    assert ivy.settings == {}


def test_ivy_runs_in_the_environment_of_spark_submit(asked, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/opt/java")
    submitted(env_vars={"SPARK_SUBMIT_OPTS": PROXY})

    assert {**asked[0].environment, "JAVA_HOME": "/opt/java", "SPARK_SUBMIT_OPTS": PROXY} == asked[0].environment


@pytest.mark.thorough
def test_other_repositories_or_excludes_are_another_folder(repository, home, tmp_path):
    first = ivy(repository, tmp_path)
    found = {Path(jars.paths([ONE], first)[0]).parts[-3]}
    settings = Path(first.settings["spark.jars.ivySettings"])
    for other in (
        dataclasses.replace(first, repositories=repository.url),
        dataclasses.replace(first, settings={**first.settings, "spark.jars.repositories": f"{repository.url}b"}),
        dataclasses.replace(first, excludes="cdc.tests:two"),
    ):
        found.add(Path(jars.paths([ONE], other)[0]).parts[-3])
    settings.write_text(settings.read_text() + "<!-- another content -->")
    found.add(Path(jars.paths([ONE], first)[0]).parts[-3])

    assert len(found) == 5
    assert len([path for path in home.iterdir() if path.is_dir()]) == 5


def environment(_, monkeypatch, text):
    monkeypatch.setenv("DEPLOY_MODE", text.split()[1])
    return {}


def variables(_, __, text):
    return {"env_vars": {"DEPLOY_MODE": text.split()[1]}}


def argument(_, __, text):
    return {"deploy_mode": text.split()[1], "work_dir": "s3a://bucket/work"}


def connection(_, monkeypatch, text):
    extra = json.dumps({"deploy-mode": text.split()[1]})
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "yarn", "extra": extra}))
    return {}


MODES = [environment, variables, defaults, file, conf, connection, argument]
"""Where the deploy mode can be said, each counting more than those before it."""


@pytest.fixture
def remote(ours, monkeypatch):
    """A cluster, whose drivers read a folder that this machine has too."""
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "yarn"}')
    monkeypatch.setattr(sys.modules[__name__], "SPEC", JobSpec("a1", SPEC.source, (), SPEC.upto, "s3a://bucket/work"))


@pytest.mark.parametrize("place", MODES)
def test_a_cluster_fetches_packages_by_itself(remote, tmp_path, monkeypatch, place):
    given = place(tmp_path, monkeypatch, "spark.submit.deployMode cluster\n")

    assert submitted(**given) == ([], OURS)


@pytest.mark.parametrize(("less", "more"), itertools.pairwise(MODES))
def test_of_two_deploy_modes_the_one_counts_that_counts_for_spark(remote, ours, tmp_path, monkeypatch, less, more):
    given = less(tmp_path, monkeypatch, "spark.submit.deployMode cluster\n")
    given |= more(tmp_path, monkeypatch, "spark.submit.deployMode client\n")

    assert submitted(**given) == (ours, [])


@pytest.mark.parametrize("place", MODES[:-1])
def test_in_each_cluster_the_driver_has_to_read_the_work_dir(ours, tmp_path, monkeypatch, place):
    given = place(tmp_path, monkeypatch, "spark.submit.deployMode cluster\n")

    with pytest.raises(MsSqlCdcError, match="in cluster mode, where the driver cannot read /work"):
        submitted(**given)
