"""Values of columns that a target lacks, put into its rows by their key."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import TEMPORARY
from airflow_provider_mssql_cdc.spark.shapes.fold import column, renamed, same_key

_VALUES, _COMMON = f"{TEMPORARY}values", f"{TEMPORARY}common"

LACKS = f"{TEMPORARY}lacks"
"""Beside values: the columns whose value is not known, which ``_unknown`` names then."""


def values_of(rows: DataFrame, key: Sequence[str], names: Sequence[str]) -> DataFrame:
    """The values of some columns of each key, as ``with_values`` takes them.

    :param rows: one of each key
    """
    return rows.select(*renamed(key), F.struct(*map(column, names)).alias(_VALUES))


def with_values(
    rows: DataFrame,
    values: DataFrame,
    key: Sequence[str],
    names: Sequence[str],
    *,
    only_others: bool = False,
    common: DataFrame | None = None,
) -> DataFrame:
    """The rows whose key has values, with these.

    :param values: from ``values_of``
    :param only_others: without those that have them, and know it
    :param common: one row with the values of all other keys; None where only rows whose key has values are wanted
    """
    if common is None:
        filled = rows.join(values, same_key(key))
    else:
        of_others = F.broadcast(common.select(F.struct(*map(column, names)).alias(_COMMON)))
        filled = rows.join(values, same_key(key), "left").crossJoin(of_others)
        filled = filled.withColumn(_VALUES, F.coalesce(_VALUES, _COMMON))
    if only_others:
        same = (column(name).eqNullSafe(F.col(_VALUES).getField(name)) for name in names)
        lacks = F.arrays_overlap("_unknown", F.array(*map(F.lit, names)))
        filled = filled.where(~reduce(Column.__and__, same) | lacks)
    put = {name: F.col(_VALUES).getField(name) for name in names}
    if LACKS in values.schema[_VALUES].dataType.fieldNames():  # type: ignore[attr-defined]
        put["_unknown"] = F.array_union("_unknown", F.col(_VALUES).getField(LACKS))
    return filled.withColumns(put).select(*map(column, rows.columns))


def any_value(names: Sequence[str]) -> Column:
    """Whether a row has a value in one of the columns."""
    return reduce(Column.__or__, [column(name).isNotNull() for name in names])
