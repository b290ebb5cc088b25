"""Of raw rows those that are loaded, as the source's values say, and the salt beside those that are to be hashed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import SALT, TEMPORARY, ColumnMapping
from airflow_provider_mssql_cdc.core.conditions import (
    DECIMALS,
    FLOATS,
    INTEGERS,
    LISTS,
    MOMENTS,
    PADDED,
    Condition,
    decimal_type,
)
from airflow_provider_mssql_cdc.core.exceptions import SelectionError
from airflow_provider_mssql_cdc.core.selection import Selection, salt_check
from airflow_provider_mssql_cdc.core.table import Column as SourceColumn
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.spark.shapes.fold import column

CAPTURED = "captured_operation"
"""Column of filtered raw changes: the operation as CDC captured it, beside the one that is left of it."""

_PASSES, _OTHER = (TEMPORARY + name for name in ("passes", "other"))
_DELETE, _INSERT, _BEFORE, _AFTER = 1, 2, 3, 4


def check_salt(table: TableName, selection: Selection, salt: str | None) -> None:
    """Prove that hashes are made with the salt that the spec means.

    :raises SelectionError: if there is none, or another
    """
    if selection.salt_check is None:
        return
    if salt is None or salt_check(salt) != selection.salt_check:
        raise SelectionError(
            f"the salt of its hashes is {'missing' if salt is None else 'not the one that the spec was made with'}.",
            table=str(table),
            advice="It comes by the Spark property spark.mssql_cdc.salt.",
        )


def fulfils(mappings: Sequence[ColumnMapping], conditions: Sequence[Condition]) -> Column:
    """Whether a raw row fulfils all conditions; as in SQL, NULL fulfils no comparison.

    :param mappings: of the columns that are read
    """
    read = {mapping.column.name: mapping for mapping in mappings}
    judged = (_judged(read[c.column].column, F.col(read[c.column].alias), c) for c in conditions)
    return F.coalesce(reduce(and_, judged), F.lit(False))


def fulfils_in_target(
    mappings: Sequence[ColumnMapping], selection: Selection, conditions: Sequence[Condition]
) -> Column | None:
    """Whether a target's row fulfils all conditions; None where the target does not show all of their columns.

    :param mappings: of the columns that targets hold
    """
    shown = {m.column.name: m for m in mappings if m.targets and m.column.name not in selection.masks}
    if not shown.keys() >= {condition.column for condition in conditions}:
        return None
    judged = (_judged(shown[c.column].column, _as_read(shown[c.column]), c) for c in conditions)
    return F.coalesce(reduce(and_, judged), F.lit(False))


def filtered_changes(raw: DataFrame, mappings: Sequence[ColumnMapping], selection: Selection) -> DataFrame:
    """The raw changes of the rows that fulfil the filter, as if the others had never been there.

    An update after which a row no longer fulfils it becomes a delete, with the values of before; one after which it
    does so for the first time becomes an insert. Images of updates of which only one was read change nothing that the
    filter judges.
    """
    image, passes = F.col("operation").isin(_BEFORE, _AFTER), F.col(_PASSES)
    both = F.bool_and(_PASSES).over(images_of_update())
    left = F.when(image & ~both, F.when(F.col("operation") == _BEFORE, _DELETE).otherwise(_INSERT))
    return (
        raw.withColumn(_PASSES, fulfils(mappings, selection.conditions))
        .where(image | passes)
        .withColumn(_OTHER, left)
        .where(passes)
        .withColumns({CAPTURED: F.col("operation"), "operation": F.coalesce(_OTHER, "operation")})
        .drop(_PASSES, _OTHER)
    )


def images_of_update() -> WindowSpec:
    """The raw changes by update, with both of its images; the same wherever it is used, so that Spark sorts once."""
    return Window.partitionBy("start_lsn", "command_id", "seqval", F.col("operation").isin(_BEFORE, _AFTER))


def with_salt(rows: DataFrame, mappings: Sequence[ColumnMapping], salt: str | None) -> DataFrame:
    """The rows with the salt beside them, if something is to be hashed.

    It comes as a row of its own: what is a constant in an expression can be read in Spark's UI and event log.
    """
    if not any(SALT in target.expression for mapping in mappings for target in mapping.targets):
        return rows
    salts = rows.sparkSession.createDataFrame([(salt,)], f"{SALT} STRING").coalesce(1)
    return rows.crossJoin(F.broadcast(salts))


def _as_read(mapping: ColumnMapping) -> Column:
    """What was read of a column, made of the target's columns."""
    value = column(mapping.live[-1].name)
    # dates and moments are read as text
    return value.cast("string") if mapping.column.type in MOMENTS | {"date"} else value


def _judged(of: SourceColumn, value: Column, condition: Condition) -> Column:
    operator = condition.operator
    if operator == "is null":
        return value.isNull()
    if operator == "is not null":
        return value.isNotNull()
    value, literals = _comparable(of, value, condition.values)
    if operator in LISTS:
        found = value.isin(*literals)
        return found if operator == "in" else ~found
    literal = literals[0]
    compared = {
        "=": value == literal,
        "<>": value != literal,
        "<": value < literal,
        "<=": value <= literal,
        ">": value > literal,
        ">=": value >= literal,
    }
    return compared[operator]


def _comparable(of: SourceColumn, value: Column, texts: Sequence[str]) -> tuple[Column, list[Column]]:
    """What was read of a column, and constants, so that they compare exactly."""
    if of.type in MOMENTS:
        if of.scale == 7:
            # all seven digits stand in the text alone
            return value, [F.lit(f"{text}0") for text in texts]
        return F.substring(value, 1, 26).cast("timestamp_ntz"), [F.lit(text).cast("timestamp_ntz") for text in texts]
    if of.type in FLOATS:
        return value.cast("double"), [F.lit(text).cast("double") for text in texts]
    if of.type in PADDED:
        return F.rtrim(value), list(map(F.lit, texts))
    if of.type == "uniqueidentifier":
        return F.upper(value), list(map(F.lit, texts))
    types = {"bit": "boolean", **dict.fromkeys(INTEGERS, "bigint")}
    types.update(dict.fromkeys(DECIMALS, "decimal({},{})".format(*decimal_type(of))))
    # dates are read as text, and their order is that of the text
    kind = types.get(of.type, "string")
    return value, [F.lit(text).cast(kind) for text in texts]
