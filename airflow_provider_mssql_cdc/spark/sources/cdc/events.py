"""Raw change rows become numbered events."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import NEVER_IN_OLD_IMAGES, TRAN_ID, ColumnMapping, shown
from airflow_provider_mssql_cdc.core.position import Window
from airflow_provider_mssql_cdc.core.selection import EVERYTHING, Selection
from airflow_provider_mssql_cdc.core.table import Column as SourceColumn
from airflow_provider_mssql_cdc.core.table import TableSchema
from airflow_provider_mssql_cdc.spark.selecting import CAPTURED, filtered_changes, images_of_update, with_salt
from airflow_provider_mssql_cdc.spark.sources.cdc.query import KEY_MOVED
from airflow_provider_mssql_cdc.spark.staging import StagedOnce, staged

_CHUNK_BITS = 56
"""Bits of a mask that fit into a signed 64-bit number as whole hex digits."""


def stage(
    raw: DataFrame,
    schema: TableSchema,
    mappings: Sequence[ColumnMapping],
    windows: Sequence[Window],
    folder: str,
    *,
    history: bool,
    selection: Selection = EVERYTHING,
    salt: str | None = None,
) -> StagedOnce:
    """Write raw rows as events to Parquet, and count each window.

    :param raw: as ``query.read_window`` returns them: partitions in LSN order, none sharing a row's place with another
    :param folder: must not exist yet
    :param history: keep what only a history needs: times, masks, identities
    :param selection: what of the rows is staged
    :param salt: of hashes
    """
    return staged(_events(raw, schema, mappings, selection, salt, history=history), windows, folder)


def _events(
    raw: DataFrame,
    schema: TableSchema,
    mappings: Sequence[ColumnMapping],
    selection: Selection,
    salt: str | None,
    *,
    history: bool,
) -> DataFrame:
    lobs = [mapping for mapping in mappings if mapping.is_lob]
    # The numbers grow by partition and then by row, so they are unique and follow the order of events.
    ordered = raw.sortWithinPartitions("start_lsn", "seq").withColumn("_n", F.monotonically_increasing_id())
    if history or lobs:
        ordered = ordered.select("*", *_mask_chunks(schema))
    if selection.conditions:
        if history and lobs:
            ordered = _with_lobs_of_after_images(ordered, lobs)
        ordered = filtered_changes(ordered, mappings, selection)
    ordered = with_salt(ordered, mappings, salt)
    columns = [F.col("_n"), F.expr(_OPERATION).alias("_op"), _text("start_lsn").alias("_lsn")]
    columns += [
        F.expr(target.expression.replace("{}", mapping.alias)).alias(target.name)
        for mapping in mappings
        for target in mapping.targets
    ]
    if history or lobs:
        columns += [
            F.col("command_id").alias("_command_id"),
            _text("seqval").alias("_seqval"),
            F.col("seq").alias("_seq"),
            _key_changed(schema, moved=KEY_MOVED in raw.columns).alias("_key_changed"),
            _changed(mappings, selection).alias("_changed"),
            _unknown(mappings, selection).alias("_unknown"),
        ]
    if history:
        columns.append(F.expr("CAST(commit_ts AS TIMESTAMP_NTZ)").alias("_commit_ts"))
        columns.append(_text("tran_id").alias(TRAN_ID))
    return ordered.select(*columns)


_OPERATION = (
    "CASE operation WHEN 1 THEN 'D' WHEN 2 THEN 'I' WHEN 3 THEN 'B' WHEN 4 THEN 'U'"
    " ELSE raise_error(concat('__$operation ', operation, ' is not one of a change table')) END"
)


def _text(lsn: str) -> Column:
    return F.concat(F.lit("0x"), F.hex(lsn))


def _mask_chunks(schema: TableSchema) -> list[Column]:
    """The mask as numbers of 56 bits.

    Ordinal 1 is the lowest bit of the last byte (docs), so the mask is cut from its right end.
    """
    digits = _CHUNK_BITS // 4
    count = -(-max(column.ordinal for column in schema.columns) // _CHUNK_BITS)
    padded = f"concat('{'0' * count * digits}', hex(update_mask))"
    return [
        F.expr(f"CAST(conv(substring({padded}, {-digits * (i + 1)}, {digits}), 16, 10) AS BIGINT)").alias(f"mask_{i}")
        for i in range(count)
    ]


def _bit(column: SourceColumn) -> str:
    chunk, bit = divmod(column.ordinal - 1, _CHUNK_BITS)
    return f"getbit(mask_{chunk}, {bit})"


def _key_changed(schema: TableSchema, *, moved: bool) -> Column:
    """Whether an update changed the key: then its images belong to two keys.

    :param moved: the rows say of texts whether their values differ
    """
    tests = ["update_mask IS NULL", *(f"{_bit(schema.column(name))} = 1" for name in schema.key)]
    tests += [f"{KEY_MOVED} = 1"] if moved else []
    return F.expr(f"operation IN (3, 4) AND ({' OR '.join(tests)})")


def _changed(mappings: Sequence[ColumnMapping], selection: Selection) -> Column:
    # the mask of an insert or delete has all columns
    begun = f"operation <> {CAPTURED} OR " if selection.conditions else ""
    names = [f"CASE WHEN {begun}{_bit(m.column)} = 1 THEN {_quoted(m.name)} END" for m in shown(mappings)]
    return F.expr(f"array_compact(array({', '.join(names)}))")


def _unknown(mappings: Sequence[ColumnMapping], selection: Selection) -> Column:
    """The LOB columns whose NULL is no value.

    CDC may leave a LOB out of an after image when it did not change, leaves it out of before images unless it changed,
    and leaves the old types out of deletes and before images in any case (docs: cdc.<instance>_CT).
    """
    lobs = [mapping for mapping in mappings if mapping.is_lob]
    operation = CAPTURED if selection.conditions else "operation"
    names = []
    for mapping in lobs:
        left_out = f"{operation} IN (3, 4) AND {_bit(mapping.column)} = 0"
        if mapping.column.type in NEVER_IN_OLD_IMAGES:
            left_out += f" OR {operation} IN (1, 3)"
        names.append(f"CASE WHEN {mapping.alias} IS NULL AND ({left_out}) THEN {_quoted(mapping.name)} END")
    return F.expr(f"array_compact(CAST(array({', '.join(names)}) AS ARRAY<STRING>))")


def _with_lobs_of_after_images(rows: DataFrame, lobs: Sequence[ColumnMapping]) -> DataFrame:
    """Give before images the LOBs that their update left as they were, since after images may not pass the filter."""
    values = {}
    for lob in lobs:
        is_kept = (F.col("operation") == 3) & F.expr(f"{_bit(lob.column)} = 0")
        other = F.first(lob.alias, ignorenulls=True).over(images_of_update())
        values[lob.alias] = F.when(is_kept, F.coalesce(lob.alias, other)).otherwise(F.col(lob.alias))
    return rows.withColumns(values)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
