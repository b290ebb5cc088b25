"""Keys that a target spells otherwise than the source does by now: rows of their own to Spark, and one to the server.

Change Tracking names a key once, whatever its spelling was before: 'abc' that became 'ABC' is a change of 'ABC'.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.chunks import KeyPart, can_be_cut, places
from airflow_provider_mssql_cdc.core.columns import TEMPORARY, ColumnMapping, key_columns
from airflow_provider_mssql_cdc.core.table import Column as SourceColumn
from airflow_provider_mssql_cdc.core.table import TableSchema
from airflow_provider_mssql_cdc.spark.files import write_rows
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.shapes.fold import by_keys_of, column

_ALIKE = "UNICODE_CI_AI_RTRIM"
"""Takes for equal what any collation of the server may: without case, accents, width, and blanks at the end."""

_A = "aA\u00c0-\u00c5\u00e0-\u00e5\u0100-\u0105\u1ea0-\u1eb7"
_E = "eE\u00c8-\u00cb\u00e8-\u00eb\u0112-\u011b\u1eb8-\u1ec7"
_O = "oO\u00d2-\u00d6\u00d8\u00f2-\u00f6\u00f8\u014c-\u0151\u1ecc-\u1ee3"
_U = "uU\u00d9-\u00dc\u00f9-\u00fc\u0168-\u0173\u1ee4-\u1ef1"
_FOLDED = (
    # older collations see no characters beyond the first plane, and none that show nothing
    ("[\\x{10000}-\\x{10FFFF}\\p{Cf}\\p{Cn}\\p{Cc}]", ""),
    ("[þÞ]", "th"),
    ("[đĐðÐ]", "d"),
    ("[æÆ]", "a"),
    ("[œŒøØ]", "o"),
    (f"([{_A}{_O}{_U}])[{_E}]+", "$1"),
    (f"([{_A}])[{_A}]+", "$1"),
)
"""Patterns, and what stands for them: one after the other."""

_ASKED_AT_ONCE = 200
_PAIR = f"{TEMPORARY}pair"
_TEXTS = ("char", "varchar", "nchar", "nvarchar")
_BYTES = "varbinary"


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
    parts = [KeyPart(each) for each in columns]
    if not can_be_cut(columns):
        # their bytes count, but for blanks at the end
        equal = [_trimmed(each, *pair) for each, pair in zip(columns, pairs, strict=True)]
        return found.where(reduce(Column.__and__, equal)).select(*map(column, names), "_version")
    rows = found.collect()
    is_equal = []
    for first in range(0, len(rows), _ASKED_AT_ONCE):
        some = rows[first : first + _ASKED_AT_ONCE]
        bounds = [
            tuple(part.text_of(row[name]) for part, name in zip(parts, of, strict=True))
            for row in some
            for of in (names, others)
        ]
        asked = jdbc.rows(places(parts, bounds), "number INT, place BIGINT")
        place = {row["number"]: row["place"] for row in asked}
        is_equal += [row[_PAIR] for number, row in enumerate(some) if place[2 * number] == place[2 * number + 1]]
    return found.where(F.col(_PAIR).isin(is_equal)).select(*map(column, names), "_version")


def may_be_equal(of: SourceColumn, one: Column, other: Column) -> Column:
    """Whether two values may be equal to the server, under whatever collation: some that are not are taken, too.

    :param of: the column of the source
    """
    if of.type in _TEXTS:
        return F.collate(_letters(one), _ALIKE) == F.collate(_letters(other), _ALIKE)
    return _trimmed(of, one, other)


def _letters(text: Column) -> Column:
    """A text without what some collation of the server takes for nothing, or for two letters, and Unicode does not."""
    for pattern, letters in _FOLDED:
        text = F.regexp_replace(text, pattern, letters)
    return text


def _trimmed(of: SourceColumn, one: Column, other: Column) -> Column:
    """Whether two values are the same but for what stands at their ends without counting."""
    if of.type in _TEXTS:
        return F.rtrim(one) == F.rtrim(other)
    if of.type == _BYTES:
        return F.regexp_replace(F.hex(one), "(00)+$", "") == F.regexp_replace(F.hex(other), "(00)+$", "")
    return one == other
