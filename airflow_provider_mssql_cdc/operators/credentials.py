"""User and password on their way to Spark: in a file that only this user can read, for as long as the job runs."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

log = logging.getLogger(__name__)

_SUFFIX = ".properties"


@contextlib.contextmanager
def properties_file(secrets: Mapping[str, str], base: str | None, folder: Path | None = None) -> Iterator[str]:
    """Write a Spark properties file with the secrets, and remove it in the end.

    spark-submit reads one properties file only, and none of its defaults beside it, so the user's own file, or else
    ``spark-defaults.conf``, comes first in ours.

    :param secrets: Spark properties, such as ``spark.mssql_cdc.password``
    :param base: the user's properties file, None for Spark's defaults
    :param folder: where files are kept; by default a folder of this user in the temporary directory
    :return: the path; mode 0600 in a folder of mode 0700
    :raises PermissionError: if the folder belongs to another user
    """
    home = folder or Path(tempfile.gettempdir()) / f"mssql_cdc-{os.getuid()}"
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if home.stat().st_uid != os.getuid() or home.stat().st_mode & 0o077:
        raise PermissionError(f"{home} can be read by other users; secrets are not written there. Remove it.")
    _remove_leftovers(home)
    inherited = Path(base) if base else _spark_defaults()
    text = inherited.read_text(encoding="utf-8") + "\n" if inherited else ""
    text += "".join(f"{key}={_escape(value)}\n" for key, value in secrets.items())
    descriptor, path = tempfile.mkstemp(prefix=f"{os.getpid()}-", suffix=_SUFFIX, dir=home)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        yield path
    finally:
        Path(path).unlink(missing_ok=True)


def _remove_leftovers(home: Path) -> None:
    """Remove what processes left behind that were killed before they could."""
    for path in home.glob(f"*{_SUFFIX}"):
        owner = path.name.partition("-")[0]
        if owner.isdigit() and int(owner) != os.getpid() and not _alive(owner):
            path.unlink(missing_ok=True)
            log.info("removed a properties file that process %s had left behind", owner)


def _alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _spark_defaults() -> Path | None:
    for folder in (os.environ.get("SPARK_CONF_DIR"), os.path.join(os.environ.get("SPARK_HOME", ""), "conf")):
        if folder and (path := Path(folder) / "spark-defaults.conf").is_file():
            return path
    return None


def _escape(value: str) -> str:
    r"""Return a value as ``java.util.Properties`` reads it back."""
    escaped = []
    for character in value:
        if character == "\\":
            escaped.append("\\\\")
        elif " " < character <= "~":
            escaped.append(character)
        else:
            units = character.encode("utf-16-be")
            escaped += [f"\\u{units[i] << 8 | units[i + 1]:04X}" for i in range(0, len(units), 2)]
    return "".join(escaped)
