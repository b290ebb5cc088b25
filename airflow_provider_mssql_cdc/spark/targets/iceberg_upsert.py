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
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    StringType,
    StructField,
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


@dataclass(frozen=True, slots=True)
class Changes:
    """A window's changes, computed once.

    :param rows: one for each key, with all values and ``_op``
    :param puts: number of rows that are not deletes
    :param size: bytes in memory, as a broadcast holds them
    :param within: Spark SQL conditions on the key columns of the table ``t``, which all keys of the rows meet
    """

    rows: DataFrame
    puts: int
    size: int
    within: tuple[str, ...]


@contextlib.contextmanager
def computed(write: Write, columns: Sequence[str]) -> Iterator[Changes]:
    """The changes of a write, kept on disk meanwhile.

    :param columns: of the table
    """
    rows = write.rows.select(*map(column, columns), F.col("_op")).persist(StorageLevel.DISK_ONLY)
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
        yield Changes(rows, found["puts"], size, tuple(filter(None, (_range(f, i, found) for i, f in enumerate(key)))))
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

    def update(self, write: Write, changes: Changes) -> None:
        """Update and delete the rows whose keys are there, in a commit that says that it is a part."""
        few = changes.size <= broadcast_bytes(self.session)
        known = {f"spark.sql.iceberg.snapshot-property.{PART}": "update", **(_BROADCAST if few else _SHUFFLED)}
        with settings(self.session, known):
            # a view that is dropped takes what is kept of the very same plan along
            rows = changes.rows.select("*")
            merge(
                self.session,
                self.branch,
                self.columns,
                dataclasses.replace(write, rows=rows),
                within=changes.within,
                inserts=False,
            )

    def missing(self, write: Write, changes: Changes, snapshot: int) -> DataFrame:
        """The rows to put whose keys are not there.

        :param snapshot: of the branch, with the update alone
        """
        puts = changes.rows.where(~is_delete())
        there = self._updated(write.key, snapshot)
        if there is None:
            in_range = " AND ".join(f"({condition})" for condition in changes.within) or "true"
            table = self.session.read.option("versionAsOf", snapshot).table(self.table).alias("t").where(in_range)
            few = changes.size <= broadcast_bytes(self.session)
            there = by_keys_of(table.select(*map(column, write.key)), puts, write.key, "left_semi", few=few)
        return by_keys_of(puts, there, write.key, "left_anti").select(*map(column, self.columns))

    def append(self, rows: DataFrame, properties: Mapping[str, str]) -> None:
        """Append rows, in a commit with these properties."""
        # of a table without partitions each task would write a file of its own, however small
        writer = rows.hint("rebalance").writeTo(self.branch)
        for name, value in properties.items():
            writer = writer.option(f"snapshot-property.{name}", value)
        writer.append()

    def _updated(self, key: Sequence[str], snapshot: int) -> DataFrame | None:
        """The keys in the files that the update has added, which are all that were there; None if they cannot be read.

        In merge-on-read mode an updated row is written anew, and no other one is (docs: Iceberg, row-level operations).
        """
        expected = [self.session.table(self.table).schema[name] for name in key]
        files = self.session.sql(
            "SELECT data_file.file_path AS path, data_file.file_format AS format, data_file.record_count AS records"
            f" FROM {self.table}.entries VERSION AS OF {snapshot}"
            f" WHERE snapshot_id = {snapshot} AND status = 1 AND data_file.content = 0"
        ).collect()
        if not files:
            return self.session.createDataFrame([], _ddl(expected))
        if any(file["format"].upper() != "PARQUET" for file in files):
            return None
        try:
            reader = self.session.read.option("recursiveFileLookup", True)
            rows = reader.parquet(*(no_pattern(file["path"]) for file in files))
            if not _has(rows, expected) or rows.count() != sum(file["records"] for file in files):
                return None
        except Exception as error:
            # Spark may not reach what the catalog does, and names such errors in many ways
            log.info("keys are looked up in %s: %s", self.table, str(error).partition("\n")[0])
            return None
        return rows.select(*map(column, key))


_BOUNDS: dict[str, Callable[[Column], Column]] = {
    "min": F.min,
    "max": F.max,
    "nulls": lambda value: F.count_if(value.isNull()),
}

# MERGE drops the hints of its source: what decides is the threshold, and which side is the smaller one (tried: 4.1.4)
_BROADCAST = {
    "spark.sql.autoBroadcastJoinThreshold": str(2**40),
    "spark.sql.adaptive.autoBroadcastJoinThreshold": str(2**40),
}
_SHUFFLED = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    # leaves out of the shuffle what of the table no change is about; Spark applies it where keys compare by `=`
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "true",
    "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "0",
    "spark.sql.optimizer.runtime.bloomFilter.creationSideThreshold": str(2**40),
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
        case bytes() | bytearray():
            return f"X'{value.hex()}'"
    return None


def _ddl(fields: Sequence[StructField]) -> str:
    return ", ".join(f"{quoted(field.name)} {field.dataType.simpleString()}" for field in fields)


def _has(rows: DataFrame, expected: Sequence[StructField]) -> bool:
    """Whether rows have exactly these columns among theirs."""
    found = {field.name: field.dataType for field in rows.schema.fields}
    return all(found.get(field.name) == field.dataType for field in expected)
