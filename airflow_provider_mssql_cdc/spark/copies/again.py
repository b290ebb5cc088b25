"""Rows that are read into a copy by their keys, in the place of what was read of these keys before."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import TEMPORARY
from airflow_provider_mssql_cdc.core.copies import KeysRead, ReadEnd
from airflow_provider_mssql_cdc.core.passing import CaptureProgress
from airflow_provider_mssql_cdc.core.position import Position, Version
from airflow_provider_mssql_cdc.spark.copies.folder import CopyFolder
from airflow_provider_mssql_cdc.spark.files import Parquet, write_rows
from airflow_provider_mssql_cdc.spark.shapes.fold import column, renamed, same_key
from airflow_provider_mssql_cdc.spark.shapes.lobs import SINCE

_NUMBER, _NEWEST = f"{TEMPORARY}number", f"{TEMPORARY}newest"


@dataclass(frozen=True, slots=True)
class RowsAgain:
    """The rows of one copy that were read by their keys.

    :param folder: of the copy
    :param low: of the copy
    :param entries: of the folder, in the order of their own lows: a later one takes the place of those before it
    """

    session: SparkSession
    folder: CopyFolder
    low: Position
    entries: tuple[KeysRead, ...] = ()

    @classmethod
    def of(cls, session: SparkSession, folder: CopyFolder, low: Position, found: Sequence[KeysRead]) -> RowsAgain:
        """The rows of the entries that a folder has, in whatever order."""
        return cls(session, folder, low, tuple(sorted(found, key=lambda entry: (entry.low or low, entry.name))))

    @property
    def ends(self) -> list[ReadEnd]:
        """The ends of the reads, where the capture must pass them."""
        return [entry.end for entry in self.entries if entry.end is not None]

    @property
    def is_whole(self) -> bool:
        """Whether all rows that the table had at some read are among these."""
        return any(entry.is_whole for entry in self.entries)

    @property
    def changed_after(self) -> Version | None:
        """The version after which all rows that changed are among these; None where there is none."""
        found = [Version.of(entry.changed_after) for entry in self.entries if entry.changed_after is not None]
        return min(found, default=None)

    def asked(self) -> DataFrame:
        """The keys that were asked for, each once, with the position up to which the newest read has all changes."""
        parts = [
            self._asked(entry).withColumn(SINCE, F.lit((entry.low or self.low).sort_key)) for entry in self.entries
        ]
        names = [column(name) for name in parts[0].columns[:-1]]
        return reduce(DataFrame.unionAll, parts).groupBy(*names).agg(F.max(SINCE).alias(SINCE))

    def in_place(self, rows: DataFrame) -> DataFrame:
        """The copied rows with those that were read again in the place of what was read of their keys before.

        :param rows: of the chunks
        """
        if not self.entries:
            return rows
        asked, found = ([part(entry) for entry in self.entries] for part in (self._asked, self._rows))
        key = asked[0].columns
        # by its collation the server may find for a key a row with another one
        keys = [each.unionAll(its.select(*map(column, key))) for each, its in zip(asked, found, strict=True)]
        newest = _numbered(keys).groupBy(*renamed(key)).agg(F.max(_NUMBER).alias(_NEWEST))
        again = _numbered(found).join(newest, same_key(key)).where(F.col(_NUMBER) == F.col(_NEWEST))
        return rows.join(newest, same_key(key), "left_anti").unionByName(again.select(*map(column, rows.columns)))

    def read(
        self,
        keys: DataFrame,
        low: Position,
        rows_of: Callable[[DataFrame], DataFrame],
        progress: Callable[[], CaptureProgress | None],
        begun: tuple[float, CaptureProgress | None] | None = None,
        *,
        is_whole: bool = False,
        changed_after: Version | None = None,
    ) -> RowsAgain:
        """Read rows by their keys.

        :param keys: as targets have them, each once
        :param low: every change after it that the read may lack is kept
        :param rows_of: reads the rows of some keys
        :param progress: looks how far the capture is
        :param begun: when, by ``time.monotonic``, and where the capture was then; None for now
        :param is_whole: all rows that the table has are among these
        :param changed_after: they are those that changed after this version; None of keys that were named
        :return: these with those of before
        """
        name = self.folder.new_keys()
        asked = write_rows(keys, f"{self.folder.rows_of(name)}-asked")
        started, begin = begun or (time.monotonic(), progress())
        rows = write_rows(rows_of(asked.rows()), self.folder.rows_of(name))
        end = ReadEnd.of(begin, progress(), time.monotonic() - started)
        entry = KeysRead(
            name,
            self.folder.inside(f"{name}-asked", asked.files),
            asked.schema.json(),
            rows.rows().count(),
            self.folder.inside(name, rows.files),
            rows.schema.json(),
            end,
            low,
            is_whole,
            changed_after,
        )
        self.folder.add(entry)
        return self.of(self.session, self.folder, self.low, [*self.entries, entry])

    def _asked(self, entry: KeysRead) -> DataFrame:
        return Parquet.of(self.session, self.folder.paths_of(entry.keys), entry.key_columns).rows()

    def _rows(self, entry: KeysRead) -> DataFrame:
        return Parquet.of(self.session, self.folder.files_of(entry), entry.columns).rows()


def _numbered(parts: Sequence[DataFrame]) -> DataFrame:
    """The rows of all entries, with the numbers of these."""
    return reduce(DataFrame.unionByName, [part.withColumn(_NUMBER, F.lit(n)) for n, part in enumerate(parts)])
