"""Rows that are read into a copy by their keys, beside those of its chunks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, SparkSession

from airflow_provider_mssql_cdc.core.copies import KeysRead, ReadEnd
from airflow_provider_mssql_cdc.core.passing import CaptureProgress
from airflow_provider_mssql_cdc.spark.copies.folder import CopyFolder
from airflow_provider_mssql_cdc.spark.files import Parquet, write_rows
from airflow_provider_mssql_cdc.spark.shapes.fold import by_keys_of


class RowsAgain:
    """The rows of one copy that were read by their keys.

    :param found: the entries of the folder; of those that several runs have read at once, some count for nothing
    :ivar entries: those that count
    """

    def __init__(self, session: SparkSession, folder: CopyFolder, found: Sequence[KeysRead]) -> None:
        self._session, self._folder = session, folder
        self.entries: list[KeysRead] = []
        for entry in sorted(found, key=lambda each: each.name):
            if not self._has_some(entry):
                self.entries.append(entry)

    @property
    def ends(self) -> list[ReadEnd]:
        """The ends of the reads."""
        return [entry.end for entry in self.entries]

    @property
    def number(self) -> int:
        """How many rows were found."""
        return sum(entry.rows for entry in self.entries)

    @property
    def files(self) -> list[str]:
        """The paths of the rows' files."""
        return [path for entry in self.entries for path in self._folder.files_of(entry)]

    @property
    def keys(self) -> Parquet | None:
        """The keys that were asked for; None if none were."""
        if not self.entries:
            return None
        paths = [path for entry in self.entries for path in self._folder.paths_of(entry.keys)]
        return Parquet.of(self._session, paths, self.entries[0].key_columns)

    def read(
        self, keys: DataFrame, rows_of: Callable[[DataFrame], DataFrame], progress: Callable[[], CaptureProgress]
    ) -> None:
        """Read rows by their keys.

        :param keys: as targets have them, each once
        :param rows_of: reads the rows of some keys
        :param progress: looks how far the capture is
        """
        name = self._folder.new_keys()
        asked = write_rows(keys, f"{self._folder.rows_of(name)}-asked")
        started, begin = time.monotonic(), progress()
        rows = write_rows(rows_of(asked.rows()), self._folder.rows_of(name))
        end = ReadEnd(begin, progress(), time.monotonic() - started)
        inside = self._folder.inside(f"{name}-asked", asked.files), self._folder.inside(name, rows.files)
        entry = KeysRead(name, inside[0], asked.schema.json(), rows.rows().count(), inside[1], rows.schema.json(), end)
        self._folder.add(entry)
        self.entries.append(entry)

    def _has_some(self, entry: KeysRead) -> bool:
        """Whether a key or a row of an entry is in another one."""
        for other in self.entries:
            asked, names = self._asked(entry), self._asked(entry).columns
            if not by_keys_of(asked, self._asked(other), names, "left_semi").isEmpty():
                return True
            if not by_keys_of(self._rows(entry), self._rows(other), names, "left_semi").isEmpty():
                return True
        return False

    def _asked(self, entry: KeysRead) -> DataFrame:
        return Parquet.of(self._session, self._folder.paths_of(entry.keys), entry.key_columns).rows()

    def _rows(self, entry: KeysRead) -> DataFrame:
        return Parquet.of(self._session, self._folder.files_of(entry), entry.columns).rows()
