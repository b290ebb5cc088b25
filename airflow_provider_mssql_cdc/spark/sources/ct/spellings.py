"""Keys that a target spells otherwise than the source does by now: rows of their own to Spark, and one to the server.

Change Tracking names a key once, whatever its spelling was before: 'abc' that became 'ABC' is a change of 'ABC'.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from itertools import islice

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.chunks import KeyPart, equal
from airflow_provider_mssql_cdc.core.columns import TEMPORARY, ColumnMapping, key_columns
from airflow_provider_mssql_cdc.core.table import Column as SourceColumn
from airflow_provider_mssql_cdc.core.table import TableSchema
from airflow_provider_mssql_cdc.spark.files import write_rows
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.shapes.fold import by_keys_of, column
from airflow_provider_mssql_cdc.spark.sources.ct.folding import ALIKE, folded

_ASKED_AT_ONCE = 500
_PAIR = f"{TEMPORARY}pair"
_TEXTS = ("char", "varchar", "nchar", "nvarchar")
_BYTES = "varbinary"
_BINARY = re.compile(r"\w+_BIN2?(_UTF8)?", re.ASCII)


def other_spellings(
    jdbc: Jdbc,
    schema: TableSchema,
    mappings: Sequence[ColumnMapping],
    changes: DataFrame,
    known: DataFrame,
    folder: str,
) -> DataFrame:
    """The keys of a target that are equal to one of the changes, and spelled otherwise; with the change's version.

    What may be equal is looked for by a comparison that takes more for equal than the server does, which is asked then.

    :param changes: with the columns of the key, and ``_version``
    :param known: of the target
    :param folder: for what may be equal; must not exist yet
    """
    names = key_columns(schema, mappings)
    columns = [schema.column(name) for name in schema.key]
    others = [f"{TEMPORARY}other_{number}" for number in range(len(names))]
    renamed = changes.select(*(column(n).alias(o) for n, o in zip(names, others, strict=True)), "_version")
    pairs = [(column(name), F.col(other)) for name, other in zip(names, others, strict=True)]
    alike = [may_be_equal(each, *pair) for each, pair in zip(columns, pairs, strict=True)]
    same = reduce(Column.__and__, [one == other for one, other in pairs])
    # the key as it is spelled now is a change by itself
    others_of = by_keys_of(known.select(*map(column, names)), changes, names, "left_anti")
    may = others_of.join(renamed, reduce(Column.__and__, alike)).where(~same)
    found = write_rows(may.withColumn(_PAIR, F.monotonically_increasing_id()), folder).rows()
    asked = [
        (KeyPart(each), name, other)
        for each, name, other in zip(columns, names, others, strict=True)
        if not _is_sure(each)
    ]
    if asked:
        rows, confirmed = found.toLocalIterator(), list[tuple[int]]()
        while some := list(islice(rows, _ASKED_AT_ONCE)):
            confirmed += _equal(jdbc, asked, some)
        found = found.join(jdbc.session.createDataFrame(confirmed, f"{_PAIR} BIGINT"), _PAIR)
    return found.select(*map(column, names), "_version")


def _equal(jdbc: Jdbc, asked: Sequence[tuple[KeyPart, str, str]], some: Sequence[Row]) -> list[tuple[int]]:
    """The numbers of the pairs whose two keys are equal to the server."""
    pairs = [
        (
            tuple(part.text_of(row[name]) for part, name, _ in asked),
            tuple(part.text_of(row[other]) for part, _, other in asked),
        )
        for row in some
    ]
    rows = jdbc.rows(equal([part for part, *_ in asked], pairs), "number INT")
    return [(some[row["number"]][_PAIR],) for row in rows]


def _is_sure(of: SourceColumn) -> bool:
    """Whether ``may_be_equal`` says of a column's values what the server says: no other ones are equal."""
    return of.type not in _TEXTS or of.encrypted or _BINARY.fullmatch(of.collation or "") is not None


def may_be_equal(of: SourceColumn, one: Column, other: Column) -> Column:
    """Whether two values may be equal to the server, under whatever collation: some that are not are taken, too.

    :param of: the column of the source
    """
    if not _is_sure(of):
        return F.collate(folded(one), ALIKE) == F.collate(folded(other), ALIKE)
    return _trimmed(of, one, other)


def _trimmed(of: SourceColumn, one: Column, other: Column) -> Column:
    """Whether two values are the same but for what stands at their ends without counting."""
    if of.encrypted:
        return one == other
    if of.type in _TEXTS:
        return F.rtrim(one) == F.rtrim(other)
    if of.type == _BYTES:
        return F.regexp_replace(F.hex(one), "(00)+$", "") == F.regexp_replace(F.hex(other), "(00)+$", "")
    return one == other
