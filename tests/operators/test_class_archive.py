"""The archive of Java classes: made of what Spark loads, taken where it fits, and else left alone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from airflow_provider_mssql_cdc.core.exceptions import SparkMissingError
from airflow_provider_mssql_cdc.operators import class_archive, jars

BINARY = "spark-submit"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A worker whose Spark has an empty folder of settings, in which these tests' starts of Java are not counted."""
    plain = {name: value for name, value in os.environ.items() if name not in class_archive.JAVA_VARIABLES}
    return {**plain, "SPARK_CONF_DIR": str(tmp_path_factory.mktemp("conf"))}


@pytest.fixture(scope="module")
def driver(environment: dict[str, str]) -> class_archive.Driver:
    return class_archive.driver(BINARY, environment)


@pytest.fixture(scope="module")
def listed(driver: class_archive.Driver, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The few classes by which Spark says its version."""
    path = tmp_path_factory.mktemp("listed") / "classes"
    assert version(driver, f"-XX:DumpLoadedClassList={path}").returncode == 0
    return path.read_text().splitlines()


@pytest.fixture(scope="module")
def made(driver: class_archive.Driver, listed: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of them."""
    place = tmp_path_factory.mktemp("archive") / "a folder" / "classes-0123"
    place.parent.mkdir()
    place.with_name("classes-0123-7.jsa").touch()
    place.with_name("classes-4567-7.jsa").touch()
    return class_archive.make(driver, listed, place)


def version(driver: class_archive.Driver, *options: str) -> subprocess.CompletedProcess[str]:
    command = [driver.java, *options, "-cp", driver.class_path, "org.apache.spark.deploy.SparkSubmit", "--version"]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.in_turn
def test_spark_starts_from_an_archive_of_the_classes_that_it_loads(driver: class_archive.Driver, made: Path) -> None:
    assert driver.fits(made)
    assert made.stat().st_mode & 0o777 == 0o600
    names = {f"classes-0123-{made.stat().st_size}.jsa", "classes-4567-7.jsa"}
    assert {path.name for path in made.parent.iterdir()} == names
    loaded = version(driver, "-Xshare:on", class_archive.option(made, quoted=False), "-Xlog:class+load:stdout").stdout
    (line,) = [line for line in loaded.splitlines() if " org.apache.spark.deploy.SparkSubmit " in line]
    assert line.endswith("source: shared objects file")


@pytest.mark.thorough
def test_java_goes_on_without_an_archive_that_does_not_fit(
    driver: class_archive.Driver, made: Path, tmp_path: Path
) -> None:
    (tmp_path / "no archive").write_bytes(b"no archive" * 1000)
    assert not driver.fits(tmp_path / "no archive")
    assert version(driver, class_archive.option(tmp_path / "no archive", quoted=False)).returncode == 0
    other = class_archive.Driver(driver.java, f"{tmp_path / 'another.jar'}:{driver.class_path}")
    (tmp_path / "another.jar").write_bytes(b"")
    assert not other.fits(made)
    assert version(other, class_archive.option(made, quoted=False)).returncode == 0


@pytest.mark.in_turn
def test_what_java_cannot_make_is_told_and_leaves_nothing(
    driver: class_archive.Driver, listed: list[str], tmp_path: Path
) -> None:
    place = tmp_path / "archive" / "classes"
    place.parent.mkdir()
    folder = tmp_path / "conf"
    folder.mkdir()
    (folder / "spark-env.sh").touch()
    unfit = class_archive.Driver(driver.java, f"{folder}:{driver.class_path}")
    with pytest.raises(SparkMissingError, match="Java could not make the archive of classes: ") as told:
        class_archive.make(unfit, listed, place)
    assert "Loads go on without it" in str(told.value)
    assert [*place.parent.iterdir()] == []


def test_a_class_path_with_a_folder_of_files_is_refused_before_anything_is_rehearsed(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "spark-defaults.conf").touch()
    with pytest.raises(SparkMissingError, match=f"Spark's class path has the folder {tmp_path}/?, .*SPARK_CONF_DIR"):
        class_archive.driver(BINARY, {**environment, "SPARK_CONF_DIR": str(tmp_path)})


def test_a_spark_that_says_nothing_is_told(environment: dict[str, str], tmp_path: Path) -> None:
    silent = tmp_path / "spark-submit"
    silent.write_text("#!/bin/sh\necho it is broken >&2\nexit 3\n")
    silent.chmod(0o755)
    with pytest.raises(SparkMissingError, match=r"does not say how it starts Java: .*it is broken"):
        class_archive.driver(str(silent), environment)
    with pytest.raises(SparkMissingError, match="there is no no-submit on the PATH"):
        class_archive.driver("no-submit", environment)


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A Java and a Spark of a few files, and an own folder for jars."""
    for path in ("java/bin/java", "spark/bin/spark-submit", "spark/jars/a.jar"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch(mode=0o755)
    (tmp_path / "java" / "release").write_text("17.0.15")
    monkeypatch.setenv(jars.FOLDER, str(tmp_path / "kept"))
    return {"JAVA_HOME": str(tmp_path / "java"), "PATH": str(tmp_path / "spark" / "bin")}


def test_an_archive_is_of_one_build_of_java_and_of_sparks_jars(worker: dict[str, str], tmp_path: Path) -> None:
    seen = set()
    for change in (
        lambda: None,
        lambda: (tmp_path / "java" / "release").write_text("17.0.16"),
        lambda: (tmp_path / "spark" / "jars" / "a.jar").write_text("longer"),
        lambda: (tmp_path / "spark" / "jars" / "b.jar").touch(),
        lambda: (tmp_path / "spark" / "conf").mkdir(),
        lambda: (tmp_path / "java").rename(tmp_path / "java21"),
    ):
        change()
        java = tmp_path / ("java" if (tmp_path / "java").exists() else "java21")
        archive = class_archive.place(BINARY, {**worker, "JAVA_HOME": str(java)})
        assert archive is not None
        assert archive.parent == tmp_path / "kept"
        seen.add(archive)
    assert len(seen) == 6


def test_an_archive_is_used_where_nobody_else_can_write(worker: dict[str, str]) -> None:
    place = class_archive.place(BINARY, worker)
    assert place is not None
    assert class_archive.found(BINARY, worker) is None
    place.parent.mkdir(mode=0o700)
    assert class_archive.found(BINARY, worker) is None
    archive = place.with_name(f"{place.name}-5.jsa")
    archive.write_text("whole")
    assert class_archive.found(BINARY, worker) == archive
    place.parent.chmod(0o777)
    assert class_archive.found(BINARY, worker) is None


def test_a_worker_without_a_home_goes_without(worker: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv(jars.FOLDER)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert class_archive.found(BINARY, worker) is None


def test_an_archive_that_is_cut_would_end_java_and_is_not_used(worker: dict[str, str]) -> None:
    place = class_archive.place(BINARY, worker)
    assert place is not None
    place.parent.mkdir(mode=0o700)
    place.with_name(f"{place.name}-6.jsa").write_text("whole")
    assert class_archive.found(BINARY, worker) is None


def test_a_java_that_does_not_say_its_build_and_a_missing_spark_have_none(
    worker: dict[str, str], tmp_path: Path
) -> None:
    assert class_archive.place("spark3-submit", worker) is None
    (tmp_path / "java" / "release").unlink()
    assert class_archive.place(BINARY, worker) is None
