"""A window's changes by key into an Iceberg table: one commit for the keys that are there, one for those that are not.

A MERGE that also inserts is an outer join, which shuffles and sorts the whole table. With MATCHED clauses alone it is
an inner join: the changes are broadcast, and of the table only the key columns are read. The files that it has added
hold the keys that were there, so that no second look into the table tells which ones are to be appended.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import decimal
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, DataFrameWriterV2, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    StringType,
    StructField,
    StructType,
)

from airflow_provider_mssql_cdc.spark.files import no_pattern
from airflow_provider_mssql_cdc.spark.session import broadcast_bytes
from airflow_provider_mssql_cdc.spark.shapes.fold import by_keys_of, column, is_delete
from airflow_provider_mssql_cdc.spark.targets import Write
from airflow_provider_mssql_cdc.spark.targets.sql import merge, quoted, settings, text

log = logging.getLogger(__name__)

PART = "mssql_cdc.part"
"""Snapshot property of a commit that holds a part of a window: the one with the rest follows, and has the marker."""

_WIDTH = 16
"""Bytes that a value takes in memory beside those of its text."""


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
class Changes:
    """A window's changes, computed once.

    :param rows: one for each key, with all values and ``_op``
    :param puts: number of rows that are not deletes
    :param size: bytes in memory, as a broadcast holds them
    :param within: conditions in Spark SQL that each row of the table ``t`` with one of the keys meets
    :param few: they can be broadcast
    """

    rows: DataFrame
    puts: int
    size: int
    within: tuple[str, ...]
    few: bool


@contextlib.contextmanager
def computed(write: Write, columns: Sequence[str]) -> Iterator[Changes]:
    """The changes of a write, kept on disk meanwhile.

    :param columns: of the table
    """
    rows = write.rows.select(*map(column, columns), F.col("_op"))
    if write.of_target:
        # no join knows the size of these rows, so that they are kept as well
        rows = rows.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
    rows.persist(StorageLevel.DISK_ONLY)
    try:
        fields = {field.name: field for field in rows.schema.fields}
        key = [fields[name] for name in write.key]
        found = rows.agg(
            F.count("*").alias("rows"),
            F.count_if(~is_delete()).alias("puts"),
            F.coalesce(F.sum(_size(rows.schema.fields)), F.lit(0)).alias("size"),
            *(bound(column(f.name)).alias(f"{n}{i}") for i, f in enumerate(key) for n, bound in _BOUNDS.items()),
        ).collect()[0]
        size = found["size"] + found["rows"] * _WIDTH * len(rows.columns)
        within = tuple(filter(None, (_range(field, place, found) for place, field in enumerate(key))))
        yield Changes(rows, found["puts"], size, within, few=size <= broadcast_bytes(rows.sparkSession))
    finally:
        rows.unpersist()


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
        if self.session.conf.get("spark.sql.adaptive.enabled") == "true":
            # of a table without partitions each task would write a file of its own, however small
            rows = rows.hint("rebalance")
        written_to(self.branch, rows, properties).append()

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

_BOUNDS: dict[str, Callable[[Column], Column]] = {
    "min": F.min,
    "max": F.max,
    "nulls": lambda value: F.count_if(value.isNull()),
}


def _size(fields: Sequence[StructField]) -> Column:
    """The bytes of a row's texts."""
    size = F.lit(0).cast("bigint")
    for field in fields:
        if isinstance(field.dataType, StringType | BinaryType):
            size += F.coalesce(F.octet_length(column(field.name)), F.lit(0))
        elif field.dataType.simpleString().startswith("array"):
            size += F.coalesce(F.octet_length(F.to_json(column(field.name))), F.lit(0))
    return size


def _range(field: StructField, place: int, found: Row) -> str | None:
    """The condition that a key column lies between the least and the greatest of the changes; None without an order
    that Iceberg's file statistics keep as Spark does."""
    least, most = (_literal(found[f"{bound}{place}"], field.dataType) for bound in ("min", "max"))
    if least is None or most is None:
        return None
    name = f"t.{quoted(field.name)}"
    condition = f"{name} BETWEEN {least} AND {most}"
    return f"({condition} OR {name} IS NULL)" if found[f"nulls{place}"] else condition


def _literal(value: Any, type_: DataType) -> str | None:
    """A value in Spark SQL; None for a type of which no range is asked."""
    match value:
        case int() if isinstance(type_, IntegralType):
            return f"CAST({value} AS {type_.simpleString()})"
        case decimal.Decimal() if isinstance(type_, DecimalType):
            return f"CAST('{value:f}' AS {type_.simpleString()})"
        case datetime.date() if isinstance(type_, DateType):
            return f"DATE '{value.isoformat()}'"
        case str() if isinstance(type_, StringType):
            return text(value)
        case bytes() | bytearray() if isinstance(type_, BinaryType):
            return f"X'{value.hex()}'"
    return None
