"""The folder of a copy: the rows of chunks and kept windows, and an entry for each, written after its rows."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.codec import from_json, to_json
from airflow_provider_mssql_cdc.core.copies import ChunkRead, CommonRead, CopyBegun, KeptWindow, KeysRead
from airflow_provider_mssql_cdc.spark import files

_ENTRIES = "entries"
_BEGUN, _CHUNK, _WINDOW, _KEYS, _COMMON = "copy", "chunk", "window", "keys", "common"


@dataclass(frozen=True, slots=True)
class Found:
    """What lies in a folder.

    :param begun: its first entry
    :param again: rows that were read by their keys
    :param common: values that nearly all rows have, by name
    """

    begun: CopyBegun
    chunks: tuple[ChunkRead, ...] = ()
    kept: tuple[KeptWindow, ...] = ()
    again: tuple[KeysRead, ...] = ()
    common: tuple[CommonRead, ...] = ()


class CopyFolder:
    """The folder of one copy.

    :param place: where the copies of its table lie, each in a folder of its own
    :param id: of the copy
    """

    def __init__(self, session: SparkSession, place: str, id: str) -> None:
        self._session, self.path, self.id = session, f"{place}/{id}", id

    def begin(self, begun: CopyBegun) -> None:
        """Write the first entry."""
        if files.is_local(self.path):
            # what is not masked in a target may be in here: others of this machine must not read it
            for folder in (files.local_path(self.path).parent, files.local_path(self.path)):
                os.makedirs(folder, mode=0o700, exist_ok=True)
        self._write(_BEGUN, begun)

    def new_chunk(self) -> str:
        """The name of a chunk that is to be read."""
        return f"{_CHUNK}-{secrets.token_hex(6)}"

    def new_window(self) -> str:
        """The name of a window that is to be kept."""
        return f"{_WINDOW}-{secrets.token_hex(6)}"

    def new_keys(self) -> str:
        """The name of rows that are to be read by their keys."""
        return f"{_KEYS}-{secrets.token_hex(6)}"

    def new_common(self) -> str:
        """The name of values that nearly all rows have."""
        return f"{_COMMON}-{secrets.token_hex(6)}"

    def rows_of(self, name: str) -> str:
        """The folder for the rows of a chunk or window."""
        return f"{self.path}/{name}"

    def add(self, entry: ChunkRead | KeptWindow | KeysRead | CommonRead) -> None:
        """Write the entry of rows that are there."""
        self._write(entry.name, entry)

    def inside(self, name: str, paths: Sequence[str]) -> tuple[str, ...]:
        """Files of a chunk or window as its entry names them: the folder may lie elsewhere for another process."""
        return tuple(f"{name}/{PurePosixPath(path).name}" for path in paths)

    def files_of(self, entry: ChunkRead | KeptWindow | KeysRead | CommonRead) -> tuple[str, ...]:
        """The paths of an entry's files."""
        return self.paths_of(entry.files)

    def paths_of(self, files: Sequence[str]) -> tuple[str, ...]:
        """The paths of files that an entry names."""
        return tuple(f"{self.path}/{file}" for file in files)

    def remove(self) -> None:
        """Remove it, with all rows."""
        # first what says that it is there: should this be killed, nobody goes on with the rest
        files.remove(self._session, f"{self.path}/{_ENTRIES}")
        files.remove(self._session, self.path)
        if files.is_local(self.path):
            table = files.local_path(self.path).parent
            with contextlib.suppress(OSError):
                # others may have copies there
                table.rmdir()
                table.parent.rmdir()

    def _write(self, name: str, entry: CopyBegun | ChunkRead | KeptWindow | KeysRead | CommonRead) -> None:
        # one line, which Spark's text files hold as one row
        files.write_text(self._session, f"{self.path}/{_ENTRIES}/{name}.json", to_json(entry).replace("\n", " "))


def folders(session: SparkSession, place: str) -> list[tuple[CopyFolder, Found]]:
    """The copies of a table that were begun, by id.

    :param place: where they lie
    :raises NewerFormatError: if a later version of this package has written one
    """
    entries = _local_entries(place) if files.is_local(place) else _far_entries(session, place)
    found = []
    for id in sorted(entries):
        of_kind: dict[str, list[str]] = {_BEGUN: [], _CHUNK: [], _WINDOW: [], _KEYS: [], _COMMON: []}
        for name, text in sorted(entries[id].items()):
            of_kind.setdefault(name.partition("-")[0], []).append(text)
        if of_kind[_BEGUN]:
            chunks = tuple(from_json(ChunkRead, text) for text in of_kind[_CHUNK])
            kept = tuple(from_json(KeptWindow, text) for text in of_kind[_WINDOW])
            again = tuple(from_json(KeysRead, text) for text in of_kind[_KEYS])
            common = tuple(from_json(CommonRead, text) for text in of_kind[_COMMON])
            begun = from_json(CopyBegun, of_kind[_BEGUN][0])
            found.append((CopyFolder(session, place, id), Found(begun, chunks, kept, again, common)))
    return found


def _local_entries(place: str) -> dict[str, dict[str, str]]:
    root = Path(files.local_path(place))
    found: dict[str, dict[str, str]] = {}
    for path in root.glob(f"*/{_ENTRIES}/[!.]*.json"):
        try:
            found.setdefault(path.parts[-3], {})[path.stem] = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            # another run is removing the copy
            continue
    return found


def _far_entries(session: SparkSession, place: str) -> dict[str, dict[str, str]]:
    try:
        # another run may be removing a copy
        present = session.read.option("ignoreMissingFiles", True)
        lines = present.text(f"{files.no_pattern(place)}/*/{_ENTRIES}/*.json")
        rows = lines.select("value", F.col("_metadata.file_path").alias("path")).collect()
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return {}
        raise
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        # a text is a folder with one part
        id, _, name = PurePosixPath(unquote(row["path"])).parts[-4:-1]
        found.setdefault(id, {})[name.removesuffix(".json")] = row["value"]
    return found
