"""The archive of Java classes from which a driver starts more quickly: where it lies, whether it fits, how it is made.

Java calls it class data sharing (JEP 310, JEP 341): a file of classes that are parsed and verified, which is mapped
into memory. It fits one build of Java and one class path; Java itself compares both, with the size and time of each
jar, and goes on without an archive that does not fit.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_mssql_cdc.core.exceptions import SparkMissingError
from airflow_provider_mssql_cdc.operators import installed, jars

_COMMAND = re.compile(r"^Spark Command: (.+?) -cp (.+?) -(?:X|D|c)", re.MULTILINE)
_SUFFIX, _UNFINISHED = ".jsa", ".classes."

JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""The environment variables from which Java, or Spark's scripts, take options."""

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java that shorten a small job: most of it is loading and compiling, and there is little to collect."""


@dataclass(frozen=True, slots=True)
class Driver:
    """How Spark starts the JVM of a driver here.

    :param java: the program
    :param class_path: as it is given to Java
    """

    java: str
    class_path: str

    def fits(self, archive: Path) -> bool:
        """Whether Java takes an archive for this class path."""
        return _java(self, "-Xshare:on", option(archive, quoted=False), "-version").returncode == 0


def found(binary: str, environment: Mapping[str, str]) -> Path | None:
    """The archive of this worker's Java and Spark; None where there is none.

    :param binary: spark-submit
    :param environment: of spark-submit
    """
    try:
        stem = place(binary, environment)
        # who can write there can run code as this user
        if stem is None or not stem.parent.is_dir() or not installed.is_ours(stem.parent):
            return None
        return next((each for each in stem.parent.glob(f"{stem.name}-*{_SUFFIX}") if _is_whole(each)), None)
    except (OSError, RuntimeError):
        # no home, or a folder that cannot be looked into: it goes without
        return None


def place(binary: str, environment: Mapping[str, str]) -> Path | None:
    """Where the archive of this worker's Java and Spark lies, without the end of its name; None where one is missing.

    The name goes by Java's build, by the names and sizes of Spark's jars, and by the folders on Spark's class path. It
    ends with the archive's own size.
    """
    java, spark = installed.java(environment), installed.spark_home(binary, environment)
    if java is None or spark is None:
        return None
    try:
        build = (java.parents[1] / "release").read_text(encoding="utf-8")
        sizes = sorted((jar.name, jar.stat().st_size) for jar in (spark / "jars").iterdir())
    except OSError:
        return None
    conf = environment.get("SPARK_CONF_DIR") or str(spark / "conf")
    folders = [conf, *(environment.get(name, "") for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"))]
    # Java leaves out what is not there
    there = [folder for folder in folders if folder and Path(folder).is_dir()]
    decisive = json.dumps([str(java), build, str(spark.resolve()), sizes, there])
    return jars.folder() / f"classes-{hashlib.sha256(decisive.encode()).hexdigest()[:16]}"


def _is_whole(archive: Path) -> bool:
    """Whether it has the size that its name says: one that is cut would end Java."""
    return archive.stem.rpartition("-")[2] == str(archive.stat().st_size)


def option(archive: Path, *, quoted: bool = True) -> str:
    """The option of Java that names an archive.

    :param quoted: for a setting of Spark, which takes a list of options apart
    """
    text = f"-XX:SharedArchiveFile={archive}"
    return in_setting(text) if quoted else text


def in_setting(option: str) -> str:
    """An option of Java as a setting of Spark has it, which takes a list of them apart at blanks."""
    return f'"{option}"' if re.search(r"\s", option) else option


def driver(binary: str, environment: Mapping[str, str]) -> Driver:
    """How spark-submit starts a driver without settings.

    :raises SparkMissingError: if Spark or Java is missing, or Java can make no archive for that class path
    """
    if (missing := installed.missing(binary, environment)) is not None:
        raise missing
    with tempfile.NamedTemporaryFile(suffix=".properties") as nothing:
        done = subprocess.run(
            [binary, "--properties-file", nothing.name, "--version"],
            env={**environment, "SPARK_PRINT_LAUNCH_COMMAND": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
    if (command := _COMMAND.search(done.stderr)) is None:
        raise SparkMissingError(
            f"{binary} does not say how it starts Java: {done.stderr.strip().splitlines()[-1:] or done.returncode}.",
            advice="See whether `spark-submit --version` works as this user.",
        )
    folders = [each for each in command[2].split(os.pathsep) if Path(each).is_dir() and any(Path(each).iterdir())]
    if folders:
        raise SparkMissingError(
            f"Spark's class path has the folder {folders[0]}, and Java makes no archive beside a folder with files.",
            advice="Give Spark its settings by the DAG or the connection, and let SPARK_CONF_DIR, HADOOP_CONF_DIR and "
            "YARN_CONF_DIR name no such folder, for this command and for loads; or go without the archive.",
        )
    return Driver(command[1], command[2])


def make(driver: Driver, classes: Sequence[str], place: Path) -> Path:
    """Make an archive, and put it in its place when it is whole and Java takes it; those that were there go.

    Whoever calls this holds the lock of the place.

    :param classes: lines of Java's list of classes (``-XX:DumpLoadedClassList``)
    :param place: as ``place`` says
    :raises SparkMissingError: if Java does not make it
    """
    for leftover in place.parent.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=place.parent) as name:
        listed, fresh = Path(name, "classes"), Path(name, "classes.jsa")
        listed.write_text("".join(f"{line}\n" for line in classes), encoding="utf-8")
        done = _java(
            driver,
            *QUICK_START.split(),
            "-Xshare:dump",
            f"-XX:SharedClassListFile={listed}",
            option(fresh, quoted=False),
            "-version",
        )
        if done.returncode or not fresh.is_file() or not driver.fits(fresh):
            said = [
                line for line in (done.stdout + done.stderr).splitlines() if line.strip() and "Skipping" not in line
            ]
            raise SparkMissingError(
                f"Java could not make the archive of classes: {(said or ['it said nothing'])[-1]}.",
                advice="Loads go on without it. See whether the disk is full, and which Java that is.",
            )
        fresh.chmod(0o600)
        archive = place.with_name(f"{place.name}-{fresh.stat().st_size}{_SUFFIX}")
        fresh.replace(archive)
    for old in place.parent.glob(f"{place.name}-*{_SUFFIX}"):
        if old != archive:
            old.unlink(missing_ok=True)
    return archive


def _java(driver: Driver, *options: str) -> subprocess.CompletedProcess[str]:
    # what the environment says to Java is of another purpose
    own = {name: value for name, value in os.environ.items() if name not in JAVA_VARIABLES}
    return subprocess.run(
        [driver.java, *options[:-1], "-cp", driver.class_path, options[-1]],
        env=own,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
