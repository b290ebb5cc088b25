"""The folder in which samples are made and unpacked: Iceberg's metadata hold absolute paths."""

from __future__ import annotations

import contextlib
import fcntl
import json
import lzma
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# not that of TMPDIR: the paths in the samples are these
FOLDER = Path("/tmp/mssql_cdc_upgrades")
_LOCK = FOLDER.with_suffix(".lock")
SAMPLES = Path(__file__).parents[2] / "upgrades"

PAGE = SAMPLES.parents[1] / "docs" / "upgrade.md"
"""What users read of upgrades."""

VERSIONS = sorted((path.parent.name for path in SAMPLES.glob("v*/source.json.xz")), key=lambda name: int(name[1:]))
"""Of the samples, the newest last."""

LAKE, TABLES, FILES = FOLDER / "lake", FOLDER / "delta", FOLDER / "parquet"
"""Where the tables of Iceberg, Delta and Parquet lie."""

ADDRESSES = {
    "iceberg": "iceberg://upgrades/kept",
    "delta": f"delta+file://{TABLES}",
    "parquet": f"parquet+file://{FILES}",
    "postgresql": "postgresql://warehouse/kept",
}
"""The targets."""


@contextlib.contextmanager
def alone() -> Iterator[Path]:
    """The folder, empty, for one process at a time; it is removed at the end."""
    with _LOCK.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir()
        try:
            yield FOLDER
        finally:
            shutil.rmtree(FOLDER, ignore_errors=True)


def read(version: str, name: str) -> Any:
    """The JSON of a sample.

    :param name: a format's, or ``source``
    """
    return json.loads(lzma.decompress((SAMPLES / version / f"{name}.json.xz").read_bytes()))


def pack(name: Path) -> None:
    """Keep what lies in the folder."""
    with tarfile.open(name, "w:xz") as archive:
        for path in sorted(FOLDER.iterdir()):
            archive.add(path, path.name)


def unpack(name: Path) -> None:
    """Put into the folder what was kept."""
    with tarfile.open(name) as archive:
        archive.extractall(FOLDER, filter="data")
