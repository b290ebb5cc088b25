"""A window's changes by key, computed once: how many they are, how large, and between which keys."""

from __future__ import annotations

import contextlib
import datetime
import decimal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row
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

from airflow_provider_mssql_cdc.spark.session import broadcast_bytes
from airflow_provider_mssql_cdc.spark.shapes.fold import column, is_delete
from airflow_provider_mssql_cdc.spark.targets import Write
from airflow_provider_mssql_cdc.spark.targets.sql import quoted, text

_WIDTH = 16
"""Bytes that a value takes in memory beside those of its text."""


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
            *(
                bound(column(field.name)).alias(f"{name}{place}")
                for place, field in enumerate(key)
                if isinstance(field.dataType, _WITH_RANGE)
                for name, bound in _BOUNDS.items()
            ),
        ).collect()[0]
        size = found["size"] + found["rows"] * _WIDTH * len(rows.columns)
        within = tuple(filter(None, (_range(field, place, found) for place, field in enumerate(key))))
        yield Changes(rows, found["puts"], size, within, few=size <= broadcast_bytes(rows.sparkSession))
    finally:
        rows.unpersist()


_WITH_RANGE = (IntegralType, DecimalType, DateType, StringType, BinaryType)
"""Types of keys whose order Iceberg's file statistics keep as Spark does."""

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
    """The condition that a key column lies between the least and the greatest of the changes; None where there is no
    order, or no value."""
    if not isinstance(field.dataType, _WITH_RANGE):
        return None
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
