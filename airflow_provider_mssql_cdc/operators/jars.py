"""The jars of a load, fetched once for each user and machine by Spark's own Ivy, and handed to Spark by path."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from airflow_provider_mssql_cdc.core.exceptions import SparkMissingError
from airflow_provider_mssql_cdc.core.formats import Package
from airflow_provider_mssql_cdc.operators import installed

log = logging.getLogger(__name__)

FOLDER = "MSSQL_CDC_JARS"
"""The environment variable that names the folder of the jars."""

_IVY_SETTINGS = ("spark.jars.ivySettings", "spark.jars.repositories", "spark.jars.excludes")
JAVA_OPTIONS = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
SETTINGS = (*_IVY_SETTINGS, *JAVA_OPTIONS)
"""The Spark settings that say from where jars come, and how."""

READ = (*SETTINGS, "spark.jars", "spark.jars.packages")
"""The Spark settings that say what a job's jars are."""

_LIST = "jars.json"
_TRIES = 3
_NETWORK = re.compile(r"Server access error|SERVER ERROR|FAILED DOWNLOADS|timed out|Connection re", re.IGNORECASE)
_NO_JAVA = re.compile(r"JAVA_HOME is not set|java: (?:command )?not found")
_REASONS = (r"Server access error.*", r"download failed: [^\]]*", r"unresolved dependency: [^\]]*", r"Exception.*")
"""What says why Ivy failed, the most telling first."""


_UNFETCHED = re.compile(r"RuntimeException: \[(?:unresolved dependency|download failed)")


class _UnreachableError(SparkMissingError):
    """A package that the network did not bring."""


@dataclass(frozen=True, slots=True)
class Ivy:
    """How Spark's Ivy is run, and with which of the settings that spark-submit would have used.

    :param binary: spark-submit
    :param settings: those of ``SETTINGS`` that are given
    :param repositories: URLs, separated by commas; '' for those of ``settings``
    :param excludes: ``group:artifact``, separated by commas; '' for those of ``settings``
    :param environment: of the process, beside this one's own
    """

    binary: str = "spark-submit"
    settings: Mapping[str, str] = field(default_factory=dict)
    repositories: str = ""
    excludes: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)

    def excluded(self, package: Package) -> str:
        """What is left out of a package: what the user leaves out, and what it does not need."""
        theirs = self.excludes or self.settings.get("spark.jars.excludes", "")
        return ",".join(filter(None, (theirs, *package.without)))

    def source(self) -> list[str]:
        """All that decides which jars are found."""
        text = [self.settings.get("spark.jars.ivySettings", "")]
        with contextlib.suppress(OSError):
            text.append(Path(text[0].removeprefix("file://")).read_text(encoding="utf-8"))
        return [*text, self.repositories or self.settings.get("spark.jars.repositories", "")]


def folder() -> Path:
    """Where the jars are kept: what ``MSSQL_CDC_JARS`` says, else a folder in the user's cache."""
    if given := os.environ.get(FOLDER):
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "airflow-provider-mssql-cdc" / "jars"


def paths(packages: Sequence[Package], ivy: Ivy) -> list[str] | None:
    """The jars of packages, fetched unless they are there.

    :return: their paths; None where the folder cannot be made or locked, or the network failed, so that Spark has to
        fetch them itself: into its own cache, where an image may bring them along
    :raises SparkMissingError: if Spark, Java or a package is missing
    """
    found: list[str] = []
    try:
        for package in packages:
            found += map(str, _jars(package, ivy))
    except (OSError, RuntimeError) as error:
        log.warning("jars cannot be kept (%s names where), so that Spark fetches them for each job: %s", FOLDER, error)
        return None
    except _UnreachableError as error:
        log.warning(
            "%s So Spark fetches them for each job, which succeeds if its own Ivy cache has them. Without a network, "
            "fill the folder that %s names elsewhere, with the same repositories, and bring it here; or bring the jars "
            'yourself with jars, and packages="".',
            error.message,
            FOLDER,
        )
        return None
    return list(dict.fromkeys(found))


def spark_settings(packages: Sequence[Package], ivy: Ivy | None = None) -> dict[str, str]:
    """The setting that hands packages to a Spark that is started here: by path, or where that cannot be, by name.

    :raises SparkMissingError: as ``paths`` does
    """
    found = paths(packages, ivy or Ivy())
    if found is None:
        return {"spark.jars.packages": ",".join(package.coordinate for package in packages)}
    return {"spark.jars": ",".join(found)}


def make_folder() -> Path:
    """The folder of the jars, made unless it is there.

    :raises OSError: if it cannot be made, or other users can write there
    """
    home = folder()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not installed.is_ours(home):
        raise PermissionError(f"{home} can be written by other users.")
    return home


def _jars(package: Package, ivy: Ivy) -> list[Path]:
    home = make_folder()
    decisive = [package.coordinate, *(package.parts or ()), ivy.excluded(package), *ivy.source()]
    name = hashlib.sha256(json.dumps(decisive).encode()).hexdigest()[:16]
    kept = home / name
    with locked(home / f"{name}.lock"):
        if (jars := _complete(kept)) is not None:
            return jars
        # whoever held the lock before was killed
        for leftover in (kept, *home.glob(f".{name}.*")):
            shutil.rmtree(leftover, ignore_errors=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=home))
        try:
            _fetch(package, ivy, fresh)
            fresh.rename(kept)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return _complete(kept) or []


@contextlib.contextmanager
def locked(path: Path, what: str = "fetches jars") -> Iterator[None]:
    """Hold a lock that ends with this process, however that ends.

    :param what: another process does that holds it
    """
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.info("another process %s; waiting for it", what)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _complete(kept: Path) -> list[Path] | None:
    """The jars of a folder; None where one is missing, or cut."""
    try:
        listed: dict[str, int] = json.loads((kept / _LIST).read_text(encoding="utf-8"))
        jars = {kept / "jars" / name: size for name, size in listed.items()}
        return list(jars) if all(jar.stat().st_size == size for jar, size in jars.items()) else None
    except (OSError, ValueError):
        return None


def _fetch(package: Package, ivy: Ivy, fresh: Path) -> None:
    """Let Ivy fetch a package into a folder, and note what it has fetched.

    :raises SparkMissingError: if it does not
    """
    log.info("fetching %s into %s", package.coordinate, fresh.parent)
    nothing = fresh / "nothing.py"
    nothing.touch()
    properties = {name: value for name, value in ivy.settings.items() if name in SETTINGS}
    # what a site's defaults say beside that, such as files to hand on, is not for this
    text = "".join(f"{name} {_line(value)}\n" for name, value in properties.items())
    (fresh / "spark.properties").write_text(text, encoding="utf-8")
    command = [ivy.binary, "--master", "local[1]", "--deploy-mode", "client"]
    command += ["--properties-file", str(fresh / "spark.properties"), "--conf", f"spark.jars.ivy={fresh}"]
    command += ["--conf", f"spark.pyspark.driver.python={sys.executable}", "--conf", "spark.ui.enabled=false"]
    command += ["--packages", ",".join((package.coordinate, *(package.parts or ())))]
    command += ["--exclude-packages", excluded] if (excluded := ivy.excluded(package)) else []
    command += ["--repositories", ivy.repositories] if ivy.repositories else []
    for attempt in range(1, _TRIES + 1):
        code, output = _run([*command, str(nothing)], ivy.environment)
        if code == 0 and list((fresh / "jars").glob("*.jar")):
            break
        if attempt == _TRIES or not _NETWORK.search(output):
            raise _failure(package, output)
        log.warning("fetching %s failed, trying again: %s", package.coordinate, _reason(output))
    jars = sorted((fresh / "jars").glob("*.jar"))
    for jar in jars:
        try:
            with zipfile.ZipFile(jar) as archive:
                broken = archive.testzip()
        except zipfile.BadZipFile:
            broken = jar.name
        if broken is not None:
            raise SparkMissingError(
                f"{jar.name}, which Spark's Ivy has fetched, is no jar that can be read ({broken}).",
                advice="See what the repository, or a proxy before it, answers in its place; then run the task again.",
            )
    (fresh / _LIST).write_text(json.dumps({jar.name: jar.stat().st_size for jar in jars}))
    for part in fresh.iterdir():
        if part.is_dir() and part.name != "jars":
            shutil.rmtree(part)


def _run(command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a command to its end; its code, and all that it says."""
    try:
        process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except FileNotFoundError as error:
        raise installed.no_spark(command[0]) from error
    try:
        output, _ = process.communicate()
    finally:
        # a task that is killed takes it along
        if process.poll() is None:
            process.kill()
            process.wait()
    return process.returncode, output


def unfetched(output: str) -> SparkMissingError | None:
    """Why spark-submit could not fetch a job's packages; None where it did not fail for that."""
    return _not_fetched("the job's packages", output) if _UNFETCHED.search(output) else None


def _failure(package: Package, output: str) -> SparkMissingError:
    if _NO_JAVA.search(output):
        return installed.no_java()
    unreachable = _NETWORK.search(output)
    log.log(logging.INFO if unreachable else logging.ERROR, "Spark's Ivy said:\n%s", output[-8000:])
    return _not_fetched(package.coordinate, output, _UnreachableError if unreachable else SparkMissingError)


def _not_fetched(what: str, output: str, error: type[SparkMissingError] = SparkMissingError) -> SparkMissingError:
    return error(
        f"Spark's Ivy could not fetch {what}: {_reason(output)}",
        advice="Let this worker reach Maven Central, or name a repository that it reaches (repositories, or the "
        'setting spark.jars.ivySettings); or bring the jars yourself with jars, and packages="".',
    )


def _reason(output: str) -> str:
    found = next(filter(None, (re.search(reason, output) for reason in _REASONS)), None)
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return f"{found[0] if found else (lines or ['it said nothing'])[-1]}.".replace("..", ".")


def _line(value: str) -> str:
    """A value in a properties file."""
    return value.replace("\\", "\\\\").replace("\n", "\\n")
