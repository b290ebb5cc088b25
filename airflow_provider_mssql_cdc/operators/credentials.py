"""User, password and salt on their way to Spark: in a file that only this user can read, while the job runs."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

log = logging.getLogger(__name__)

_SUFFIX = ".properties"

REDACTION = "spark.redaction.regex"
"""The property that says which others Spark shows masked."""

_OURS = "spark[.]mssql_cdc[.](?:(?:target_)?(?:user|password)|salt)"
_SPARKS = "(?i)secret|password|token|access[.]?key"


def redaction(theirs: str | None) -> str:
    """The regex by which Spark masks user, password and salt, and what the user wants to be masked.

    :param theirs: the user's own; None for Spark's default (docs: spark.redaction.regex)
    """
    # theirs comes last, so that its flags and groups mean what they mean alone
    return f"{_OURS}|{_SPARKS if theirs is None else theirs}"


@contextlib.contextmanager
def properties_file(
    secrets: Mapping[str, str], inherited: str | Path | None, folder: Path | None = None
) -> Iterator[str]:
    """Write a Spark properties file with the secrets, and remove it in the end.

    spark-submit reads one properties file only, and none of its defaults beside it, so what it would have read is a
    part of ours. Of two equal keys the later one counts: ours has the last word on the secrets, and on
    ``spark.redaction.regex``, where it adds to what is inherited.

    :param secrets: Spark properties, such as ``spark.mssql_cdc.password``
    :param inherited: the user's properties file, or else what ``installed.spark_defaults`` finds
    :param folder: where files are kept; by default a folder of this user in the temporary directory
    :return: the path; mode 0600 in a folder of mode 0700
    :raises PermissionError: if the folder belongs to another user
    """
    home = folder or Path(tempfile.gettempdir()) / f"mssql_cdc-{os.getuid()}"
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if home.stat().st_uid != os.getuid() or home.stat().st_mode & 0o077:
        raise PermissionError(f"{home} can be read by other users; secrets are not written there. Remove it.")
    text = Path(inherited).read_text(encoding="utf-8") + "\n" if inherited else ""
    ours = {REDACTION: redaction(property_of(text, REDACTION)), **secrets}
    text += "".join(f"{key}={_escape(value)}\n" for key, value in ours.items())
    descriptor, path = _locked_file(home)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            yield path
    finally:
        Path(path).unlink(missing_ok=True)


def _locked_file(home: Path) -> tuple[int, str]:
    """A new file that is locked as long as it is open; remove those that nobody has open any more.

    A lock ends with its process, however that ends, and holds between containers that share the folder, where a
    process number means nothing.
    """
    lock = os.open(home, os.O_RDONLY)
    try:
        # between making a file and locking it, nobody else looks for left-overs
        fcntl.flock(lock, fcntl.LOCK_EX)
        _remove_leftovers(home)
        descriptor, path = tempfile.mkstemp(suffix=_SUFFIX, dir=home)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return descriptor, path
    finally:
        os.close(lock)


def _remove_leftovers(home: Path) -> None:
    """Remove what processes left behind that were killed before they could."""
    for path in home.glob(f"*{_SUFFIX}"):
        with contextlib.suppress(BlockingIOError, FileNotFoundError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
            log.info("removed a properties file that a process had left behind")


_LINE = re.compile(r"(?:\A|(?<=[\r\n]))[ \t\f]*+(?![#!])((?:\\(?:\r\n|.)|[^\\\r\n])+)", re.DOTALL)
_CONTINUED = re.compile(r"\\(?:\r\n|\r|\n)[ \t\f]*")
_PAIR = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def property_of(text: str, key: str) -> str | None:
    """A property's value as ``java.util.Properties`` reads it, without spaces around it, as Spark does."""
    value = None
    for line in _LINE.finditer(text):
        pair = _PAIR.fullmatch(_CONTINUED.sub("", line[1]))
        if pair is not None and _unescape(pair[1]) == key:
            value = _unescape(pair[2]).strip()
    return value


def _unescape(text: str) -> str:
    plain = _ESCAPED.sub(lambda m: chr(int(m[1], 16)) if m[1] else _CONTROL.get(m[2], m[2]), text)
    return plain.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")


def _escape(value: str) -> str:
    r"""A value as ``java.util.Properties`` reads it back."""
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
