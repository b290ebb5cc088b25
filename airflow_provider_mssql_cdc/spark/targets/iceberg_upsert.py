"""A window's changes by key into an Iceberg table: one commit for the keys that are there, one for those that are not.

A MERGE that also inserts is an outer join, which shuffles and sorts the whole table. With MATCHED clauses alone it is
an inner join: the changes are broadcast, and of the table only the key columns are read. The files that it has added
hold the keys that were there, so that no second look into the table tells which ones are to be appended.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from airflow_provider_mssql_cdc.spark.files import no_pattern
from airflow_provider_mssql_cdc.spark.shapes.fold import by_keys_of, column, is_delete
from airflow_provider_mssql_cdc.spark.targets import Write
from airflow_provider_mssql_cdc.spark.targets.changes import Changes
from airflow_provider_mssql_cdc.spark.targets.sql import merge, settings

log = logging.getLogger(__name__)

PART = "mssql_cdc.part"
"""Snapshot property of a commit that holds a part of a window: the one with the rest follows, and has the marker."""


def as_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties of the snapshot that a MERGE makes, which takes them from the session alone."""
    return {f"spark.sql.iceberg.snapshot-property.{name}": value for name, value in properties.items()}


def written_to(target: str, rows: DataFrame, properties: Mapping[str, str]) -> DataFrameWriterV2:
    """A writer of rows, with properties of the snapshot that it makes.

    :param target: the table, or a branch of it, in Spark SQL
    """
    writer = rows.writeTo(target)
    for name, value in properties.items():
        writer = writer.option(f"snapshot-property.{name}", value)
    return writer


@dataclass(frozen=True, slots=True)
class Upsert:
    """Puts the changes of a window into a branch.

    :param table: in Spark SQL
    :param branch: the table's branch in Spark SQL
    :param columns: all of the table
    """

    session: SparkSession
    table: str
    branch: str
    columns: Sequence[str]

    def update(self, write: Write, changes: Changes, properties: Mapping[str, str]) -> None:
        """Update and delete the rows whose keys are there, in a commit with these properties."""
        with settings(self.session, {**as_settings(properties), **_joined(changes)}):
            # A view that is dropped takes along what is kept of its plan; this is another one (tried: Spark 4.1.4).
            write = dataclasses.replace(write, rows=changes.rows.where(F.lit(True)))
            merge(self.session, self.branch, self.columns, write, within=changes.within, inserts=False)

    def to_add(self, write: Write, changes: Changes, snapshot: int) -> DataFrame:
        """The rows to put whose keys are not there.

        :param snapshot: of the branch, with the update alone
        """
        puts = changes.rows.where(~is_delete())
        there = self._updated(write.key, snapshot)
        if there is None:
            within = " AND ".join(changes.within) or "true"
            table = self.session.read.option("versionAsOf", snapshot).table(self.table).alias("t").where(within)
            keys = table.select(*map(column, write.key))
            there = by_keys_of(keys, puts, write.key, "left_semi", broadcast=changes.few)
        return by_keys_of(puts, there, write.key, "left_anti").select(*map(column, self.columns))

    def append(self, rows: DataFrame, properties: Mapping[str, str]) -> None:
        """Append rows, in a commit with these properties."""
        # of a table without partitions each task would write a file of its own, however small
        with settings(self.session, {"spark.sql.adaptive.enabled": "true"}):
            written_to(self.branch, rows.hint("rebalance"), properties).append()

    def _updated(self, key: Sequence[str], snapshot: int) -> DataFrame | None:
        """The keys in the files that the update has added, which are all that were there; None if they cannot be read.

        In merge-on-read mode an updated row is written anew, and no other one is (docs: Iceberg, row-level operations).
        """
        schema = self.session.table(self.table).schema
        expected = [schema[name] for name in key]
        files = self.session.sql(
            "SELECT data_file.file_path AS path, data_file.file_format AS format, data_file.record_count AS records"
            f" FROM {self.table}.entries VERSION AS OF {snapshot}"
            f" WHERE snapshot_id = {snapshot} AND status = 1 AND data_file.content = 0"
        ).collect()
        if not files:
            return self.session.createDataFrame([], StructType(expected))
        try:
            if formats := {file["format"] for file in files} - {"PARQUET"}:
                raise ValueError(f"its files are {', '.join(formats)}")
            reader = self.session.read.option("recursiveFileLookup", True)
            rows = reader.parquet(*(no_pattern(file["path"]) for file in files))
            keys = rows.select(*map(column, key))
            if [f.dataType for f in keys.schema.fields] != [f.dataType for f in expected]:
                raise ValueError(f"its files have keys of {keys.schema.simpleString()}")
            if (count := rows.count()) != sum(file["records"] for file in files):
                raise ValueError(f"its files have {count} rows")
        except Exception as error:
            # Spark may not reach what the catalog does, and names such errors in many ways
            log.info(
                "%s: which keys are there is looked up in the table: %s", self.table, str(error).partition("\n")[0]
            )
            return None
        return keys


def _joined(changes: Changes) -> dict[str, str]:
    """The settings with which MERGE joins: it drops the hints of its source (tried: Spark 4.1.4)."""
    if not changes.few:
        # leaves out of the shuffle what of the table no change is about
        return {
            "spark.sql.optimizer.runtime.bloomFilter.enabled": "true",
            "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "0",
            "spark.sql.optimizer.runtime.bloomFilter.creationSideThreshold": str(2**40),
        }
    # enough for the changes, and not for a table of which Spark knows the size: it could be taken for the smaller side
    threshold = str(2 * changes.size + _BESIDE)
    names = ("spark.sql.autoBroadcastJoinThreshold", "spark.sql.adaptive.autoBroadcastJoinThreshold")
    return dict.fromkeys(names, threshold)


_BESIDE = 1024**2
