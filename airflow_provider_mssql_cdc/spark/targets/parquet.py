"""Parquet files of a history: what counts is what manifests name, and each manifest can be made but once."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_provider_mssql_cdc.core.codec import from_data, to_data
from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.exceptions import NewerFormatError, TargetError
from airflow_provider_mssql_cdc.core.marker import Marker
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.spark.files import check_folder, no_pattern, write_rows
from airflow_provider_mssql_cdc.spark.targets import Difference, OldRows, State, Write
from airflow_provider_mssql_cdc.spark.targets.file_table import FileTable
from airflow_provider_mssql_cdc.spark.targets.sql import quoted, with_names

VERSION = 2
_RENAMING, _DROPPING = 3, 4
"""The versions of manifests that rename columns, and that drop some."""

_LOCAL = "file:///"
MANIFESTS, DATA = "_manifests", "data"

_LEFT_OVER_AFTER = 86_400
"""Seconds after which files that no manifest names are taken for those of a dead job."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One commit.

    :param number: 0 is the table without rows; each further manifest names its predecessor
    :param columns: name and Spark SQL type of each column
    :param files: what this commit added, relative to the table's folder
    :param marker: None where the commit proves nothing about positions
    :param schema: canonical JSON of the schema that the marker names, where no manifest before has it
    :param renamed: columns of the manifest before that have other names from here on: that one, and the one of here
    :param dropped: columns of the manifest before that are gone: one of that name is another one
    """

    number: int
    predecessor: int | None
    columns: tuple[tuple[str, str], ...]
    files: tuple[str, ...]
    marker: Marker | None
    spec_id: str
    made_at: float
    schema: str | None = None
    renamed: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()


def read_history(session: SparkSession, folder: str, table: str) -> DataFrame:
    """A history's rows: exactly those of the commits that were made, never of one that is being made.

    :param folder: URL as in the load's target, without ``parquet+``: ``file:///data/shop``
    :param table: such as ``sales_orders_history``
    :raises TargetError: if there is no such table, or a file of it is missing
    """
    path = _path(folder, table)
    manifests = _manifests(path)
    if not manifests:
        raise TargetError(f"there is no history at {path}.")
    return _rows(session, path, manifests)


class ParquetTable(FileTable):
    """A sink's history in a folder that the driver and all executors see, such as a local disk or a mounted share.

    ``partition_by`` and ``properties`` are refused.

    :raises TargetError: for a folder in an object store: there a manifest cannot be made on condition that it is absent
    """

    _kept: str | None = None
    """Canonical JSON of the schema that the next manifest with a marker keeps."""

    def check_place(self) -> None:
        """Make the folder above, and a file in it that is removed again."""
        check_folder(str(self._path.parent))

    def create(self, columns: Sequence[TargetColumn]) -> None:
        """Make the manifest without rows unless it exists."""
        if not _manifests(self._path):
            declared = tuple((column.name, column.type) for column in columns)
            self._make(Manifest(0, None, declared, (), None, self._spec_id, time.time()))

    def check(self, columns: Sequence[TargetColumn]) -> Difference | None:
        """How the table's columns differ from those that a load writes; None where they do not."""
        expected, found = {column.name: column.type for column in columns}, self._columns(self._known())
        return None if found == expected else Difference(expected, found)

    def widen(self, columns: Sequence[TargetColumn]) -> None:
        """Read files of before with these types, from the next manifest on."""
        self._wider |= {column.name: column.type for column in columns}

    def rename(self, columns: Mapping[str, str]) -> None:
        """Read files of before by these names, from the next manifest on."""
        self._note(columns)

    def drop(self, columns: Sequence[str]) -> None:
        """Leave out the columns, from the next manifest on."""
        self._dropped |= {*columns}

    def keep_schema(self, schema: KeptSchema) -> bool:
        """Keep a schema in the manifest of the next commit that has a marker."""
        self._kept = schema.canonical
        return True

    def kept_schema(self, hash_: str) -> KeptSchema | None:
        """The schema of this hash that a manifest keeps."""
        kept = (KeptSchema(m.schema) for m in _manifests(self._path) if m.schema is not None)
        return next((schema for schema in kept if schema.hash == hash_), None)

    def state(self) -> State:
        """What the table holds now.

        :raises TargetError: if a manifest or a file is missing
        """
        manifests = _manifests(self._path)
        if not manifests:
            return State(exists=False, snapshot=None, marker=None, is_empty=True)
        marker = next((m.marker for m in reversed(manifests) if m.marker is not None), None)
        is_empty = marker is None and _rows(self._session, self._path, manifests).isEmpty()
        return State(True, manifests[-1].number, marker, is_empty)

    def rows(self, state: State) -> DataFrame:
        """The rows that the table held then."""
        manifests = [m for m in self._known() if m.number <= (state.snapshot or 0)]
        return with_names(_rows(self._session, self._path, manifests), self._renames(_names(manifests)))

    def rows_of(self, state: State, keys: Callable[[], DataFrame | None]) -> DataFrame:
        """All of them: files have no index."""
        return self.rows(state)

    def commit(self, state: State, write: Write, marker: Marker | None) -> bool:
        """Write files, and make the manifest that follows on ``state``, which only one writer can.

        :return: whether it was done; False if another commit came first
        """
        if write.old is not OldRows.NONE:
            raise TargetError(f"{self.name}: Parquet files hold a history alone, to which rows are added.")
        # a table that did not exist was made meanwhile, without rows
        last = state.snapshot or 0
        known = [manifest for manifest in self._known() if manifest.number <= last]
        columns = (*self._columns(known).items(), *((column.name, column.type) for column in write.adds))
        attempt = f"{self._spec_id}_{secrets.token_hex(8)}"
        folder = self._path / DATA / attempt
        # what becomes of it is not known if making the manifest fails: then a later job removes the files, or none does
        done: bool | None = False
        try:
            rows = write.rows.select(*(quoted(name) for name, _ in columns))
            written = write_rows(rows, f"file://{folder}")
            files = tuple(f"{DATA}/{attempt}/{Path(file).name}" for file in written.files)
            done = None
            schema = self._kept if marker is not None else None
            manifest = Manifest(last + 1, last, columns, files, marker, self._spec_id, time.time(), schema)
            gone = tuple(name for name, _ in known[-1].columns if name in self._dropped)
            done = self._make(
                dataclasses.replace(manifest, renamed=tuple(self._renames(_names(known)).items()), dropped=gone)
            )
        finally:
            if done is False:
                shutil.rmtree(folder, ignore_errors=True)
        return done

    def drop_leftovers(self) -> None:
        """Remove the files of jobs that were killed before they made a manifest, a day after they were written."""
        named = {Path(file).parts[1] for manifest in self._known() for file in manifest.files}
        for folder in (self._path / DATA).glob("*"):
            if folder.name not in named and folder.stat().st_mtime < time.time() - _LEFT_OVER_AFTER:
                shutil.rmtree(folder, ignore_errors=True)
        for file in (self._path / MANIFESTS).glob(".*"):
            if file.stat().st_mtime < time.time() - _LEFT_OVER_AFTER:
                file.unlink(missing_ok=True)

    def changed_by(self) -> str:
        """What made the newest commit, for an error message."""
        newest = self._known()[-1]
        return f"manifest {newest.number} of job {newest.spec_id} at {time.ctime(newest.made_at)}"

    def _open(self) -> None:
        if self._partition_by or self._properties:
            raise TargetError(f"{self.name}: Parquet files have neither partition_by nor table_properties.")
        self._path = _path(*self._name)
        self._wider: dict[str, str] = {}
        self._dropped: set[str] = set()

    def _columns(self, manifests: Sequence[Manifest]) -> dict[str, str]:
        """The columns from the next manifest on, each with its type."""
        names = self._renames(_names(manifests))
        has = ((name, type_) for name, type_ in manifests[-1].columns if name not in self._dropped)
        return {names.get(name, name): type_ for name, type_ in has} | self._wider

    def _known(self) -> list[Manifest]:
        """The manifests of a table that was there before.

        :raises TargetError: if it is gone, or one is missing
        """
        manifests = _manifests(self._path)
        if not manifests:
            raise self._gone()
        return manifests

    def _gone(self) -> TargetError:
        return TargetError(f"{self.name} is gone, which was there when this job began.", advice=_RESTORE)

    def _make(self, manifest: Manifest) -> bool:
        """Make a manifest unless its number is taken; a link is made at once and whole, or not at all.

        :raises TargetError: if its predecessor is gone
        """
        folder = self._path / MANIFESTS
        if manifest.predecessor is None:
            folder.mkdir(parents=True, exist_ok=True)
        elif not _file(folder, manifest.predecessor).exists():
            raise self._gone()
        draft = folder / f".{secrets.token_hex(8)}"
        try:
            with draft.open("w", encoding="utf-8") as file:
                json.dump(_plain(manifest), file)
                file.flush()
                os.fsync(file.fileno())
            made = _file(folder, manifest.number)
            try:
                os.link(draft, made)
            except FileExistsError:
                # a share that was asked twice, since its answer was lost, finds what it made itself (link(2))
                return made.samefile(draft)
            return True
        finally:
            with contextlib.suppress(OSError):
                draft.unlink()


def _path(folder: str, table: str) -> Path:
    if not folder.startswith(_LOCAL):
        raise TargetError(
            f"parquet+{folder}: Parquet files are kept on local disks and mounted shares alone.",
            advice="Write parquet+file:///folder; for an object store choose Iceberg or Delta, whose commits are safe "
            "there.",
        )
    return Path(folder.removeprefix("file://")) / table


def _file(folder: Path, number: int) -> Path:
    return folder / f"{number:020d}.json"


def _manifests(path: Path) -> list[Manifest]:
    """All manifests in their order.

    :raises OSError: if they cannot be listed
    :raises TargetError: if one is missing or cannot be read
    """
    found = []
    for number, file in enumerate(_listed(path / MANIFESTS)):
        try:
            data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            if data["version"] > _DROPPING:
                raise NewerFormatError(
                    f"the manifest {file} has version {data['version']}, and this package reads up to {_DROPPING}.",
                    advice="Upgrade airflow-provider-mssql-cdc wherever this task and its Spark jobs run.",
                )
            marker = from_data(Marker, data["marker"]) if data["marker"] else None
            pairs = {key: tuple(map(tuple, data.get(key, ()))) for key in ("columns", "renamed")}
            known = {field.name: data[field.name] for field in dataclasses.fields(Manifest) if field.name in data}
            texts = {key: tuple(data.get(key, ())) for key in ("files", "dropped")}
            manifest = Manifest(**{**known, **pairs, **texts, "marker": marker})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise TargetError(f"{file} is no manifest that can be read: {error!r}.", advice=_RESTORE) from error
        if manifest.number != number:
            raise TargetError(f"{path} has no manifest {number}, but a later one.", advice=_RESTORE)
        found.append(manifest)
    return found


def _listed(folder: Path) -> list[Path]:
    """The files of manifests; an error is no empty folder, as it is to ``glob``."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return sorted(folder / name for name in names if name[0].isdigit() and name.endswith(".json"))


_RESTORE = "Restore the folder as a whole, or load the table anew after `mssql-cdc checkpoint reset`."


def _names(manifests: Sequence[Manifest]) -> list[str]:
    """The columns of the last manifest."""
    return [name for name, _ in manifests[-1].columns]


def _rows(session: SparkSession, path: Path, manifests: Sequence[Manifest]) -> DataFrame:
    """The rows of all manifests, with the columns of the last one."""
    for file in (path / file for manifest in manifests for file in manifest.files):
        if not file.exists():
            raise TargetError(f"{file} is missing, which a manifest of {path.name} names.", advice=_RESTORE)
    # what each column is called in the files that come next, from the newest on
    called = {name: name for name, _ in manifests[-1].columns}
    parts: list[tuple[dict[str, str], list[str]]] = [(called, [])]
    for manifest in reversed(manifests):
        parts[-1][1].extend(no_pattern(f"file://{path / file}") for file in manifest.files)
        if manifest.renamed or manifest.dropped:
            columns = manifests[manifest.predecessor or 0].columns
            before = {name: name for name, _ in columns if name not in manifest.dropped}
            before |= {new: before.pop(old) for old, new in manifest.renamed if old in before}
            parts.append(({now: before[there] for now, there in parts[-1][0].items() if there in before}, []))
    types = dict(manifests[-1].columns)
    read = [
        with_names(
            session.read.schema(
                ", ".join(f"{quoted(called[name])} {types[name]}" for name in types if name in called)
            ).parquet(*files),
            {there: now for now, there in called.items()},
        )
        for called, files in parts
        if files
    ]
    if not read:
        return session.createDataFrame([], ", ".join(f"{quoted(name)} {type_}" for name, type_ in types.items()))
    rows = functools.reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), read)
    return rows.select(*map(quoted, types))


def _plain(manifest: Manifest) -> dict[str, Any]:
    data = {field.name: getattr(manifest, field.name) for field in dataclasses.fields(manifest)}
    return {
        **data,
        "version": _DROPPING if manifest.dropped else _RENAMING if manifest.renamed else VERSION,
        "marker": to_data(manifest.marker) if manifest.marker else None,
    }
