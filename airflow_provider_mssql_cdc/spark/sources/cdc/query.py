"""Change rows over JDBC: one query per slice of a window, as raw columns that staging turns into events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import ColumnMapping
from airflow_provider_mssql_cdc.core.conditions import pushed_filter
from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.key import loose
from airflow_provider_mssql_cdc.core.position import Lsn, Window
from airflow_provider_mssql_cdc.core.selection import EVERYTHING, Selection
from airflow_provider_mssql_cdc.core.table import TableSchema, lsn_literal, quote
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.sources.cdc.slices import (
    Bucket,
    CommandBucket,
    Slice,
    bucket_rows,
    count_commands_sql,
    count_sql,
    large_transactions,
    plan_slices,
)

RAW_COLUMNS = {
    "start_lsn": "BINARY",
    "command_id": "INT",
    "seqval": "BINARY",
    "operation": "INT",
    "update_mask": "BINARY",
    "seq": "BIGINT",
    "commit_ts": "STRING",
    "tran_id": "BINARY",
}
"""What a raw change row holds beside the captured columns (``c<ordinal>``)."""

KEY_MOVED = "key_moved"
"""Of tables with a text or varbinary in the key, and behind the captured columns: 1 for an image of an update whose
other image has another value in the key, whatever the mask says. Which updates CDC takes for those of a key is not
documented where the values are equal to the server: ``A`` and ``a``, or ``a`` and ``a`` with a blank behind it."""


# renamed, since a captured column may have these names too
_MAPPING = "(SELECT start_lsn AS [__$lsn], tran_end_time AS [__$time], tran_id AS [__$tran] FROM cdc.lsn_time_mapping)"


def raw_schema(mappings: Iterable[ColumnMapping], *, loose_key: bool = False) -> str:
    """The Spark DDL of raw change rows.

    :param loose_key: values of a column of the key may differ and be equal to the server
    """
    columns = {**RAW_COLUMNS, **{mapping.alias: mapping.read_type for mapping in _read(mappings)}}
    columns |= {KEY_MOVED: "INT"} if loose_key else {}
    return ", ".join(f"{name} {type_}" for name, type_ in columns.items())


def read_window(
    jdbc: Jdbc,
    instance: CaptureInstance,
    schema: TableSchema,
    mappings: Sequence[ColumnMapping],
    window: Window,
    *,
    history: bool,
    slice_rows: int,
    connections: int,
    selection: Selection = EVERYTHING,
) -> DataFrame:
    """The window's change rows, one partition per slice, in LSN order of the slices.

    :param history: read all rows of operation 3 and the commit times; otherwise only those rows whose mask has a key
        column, or one that the row filter judges, or where such a value changed all the same, and no times
    :param selection: has the row filter: inserts and deletes of rows that cannot fulfil it are not read
    """
    slices = read_slices(jdbc, instance, window, slice_rows, connections)
    frames = [
        jdbc.frame(
            slice_sql(instance, schema, mappings, part, history=history, selection=selection),
            raw_schema(mappings, loose_key=bool(loose(schema, schema.key))),
        )
        for part in slices
    ]
    absent = {m.alias: F.lit(None).cast(m.read_type) for m in mappings if m.select and m.column.absent}
    rows = reduce(DataFrame.unionAll, frames).withColumns(absent)
    # neighbours share a connection where large transactions made more slices than there are connections
    return rows.coalesce(connections) if len(slices) > connections else rows


def _read(mappings: Iterable[ColumnMapping]) -> list[ColumnMapping]:
    """The mappings of what is read from the change table."""
    return [mapping for mapping in mappings if mapping.select and not mapping.column.absent]


def read_slices(
    jdbc: Jdbc, instance: CaptureInstance, window: Window, slice_rows: int, connections: int
) -> tuple[Slice, ...]:
    """Ask the server how many rows lie where, and divide the window."""
    if connections == 1:
        return (Slice(window, 0),)
    grain = bucket_rows(slice_rows)
    buckets = [
        Bucket(Lsn(bytes(row["last_lsn"])), row["row_count"], bool(row["big"]))
        for row in jdbc.rows(count_sql(instance, window, grain), "last_lsn BINARY, row_count BIGINT, big INT")
    ]
    commands = {}
    if instance.has_command_id:
        for transaction in large_transactions(buckets, slice_rows, connections):
            query = count_commands_sql(instance, transaction, grain)
            rows = jdbc.rows(query, "last_command_id INT, row_count BIGINT")
            commands[transaction] = [CommandBucket(row["last_command_id"], row["row_count"]) for row in rows]
    return plan_slices(window, buckets, commands, slice_rows=slice_rows, connections=connections)


def slice_sql(
    instance: CaptureInstance,
    schema: TableSchema,
    mappings: Sequence[ColumnMapping],
    part: Slice,
    *,
    history: bool,
    selection: Selection = EVERYTHING,
) -> str:
    """The query of one slice.

    The row number is computed over all rows of the slice, beneath any filter, so that it does not depend on what is
    read of them. Of an update, both images tell together what the row filter makes of it.
    """
    command_id = "[__$command_id]" if instance.has_command_id else "CAST(NULL AS int)"
    order = f"{'[__$command_id], ' if instance.has_command_id else ''}[__$seqval], [__$operation]"
    number = f"ROW_NUMBER() OVER (PARTITION BY [__$start_lsn] ORDER BY {order})"
    after, upto = lsn_literal(part.window.after), lsn_literal(part.window.upto)
    bounds = f"[__$start_lsn] > {after} AND [__$start_lsn] <= {upto}"
    if part.command_upto is not None:
        bounds += f" AND [__$command_id] <= {part.command_upto}"
        bounds += f" AND [__$command_id] > {part.command_after}" if part.command_after is not None else ""
    names = ["[__$start_lsn]", "[__$seqval]", "[__$operation]", "[__$update_mask]"]
    names += ["[__$command_id]"] if instance.has_command_id else []
    read = _read(mappings)
    names += [quote(mapping.column.name) for mapping in read]
    selected = "".join(f", {mapping.select} AS {mapping.alias}" for mapping in read)
    neighbours = f"PARTITION BY [__$start_lsn] ORDER BY {order}"
    moved = ""
    if key := loose(schema, schema.key):
        names.append(f"{_differs(schema, key, neighbours)} AS [__$moved]")
        selected += f", [__$moved] AS {KEY_MOVED}"
        moved = " OR [__$moved] = 1"
    if judged := loose(schema, sorted(selection.filtered - set(schema.key))):
        names.append(f"{_differs(schema, judged, neighbours)} AS [__$judged]")
        moved += " OR [__$judged] = 1"
    rows = f"(SELECT {', '.join(names)}, {number} AS [__$seq] FROM {instance.change_table} WHERE {bounds}) w"
    wanted = []
    if history:
        time, transaction = "CONVERT(varchar(23), m.[__$time], 121)", "m.[__$tran]"
        rows += f" LEFT JOIN {_MAPPING} m ON m.[__$lsn] = [__$start_lsn]"
    else:
        time, transaction = "CAST(NULL AS varchar(23))", "CAST(NULL AS varbinary(10))"
        wanted.append(f"[__$operation] <> 3 OR {_in_mask(schema, (*schema.key, *sorted(selection.filtered)))}{moved}")
    if passing := pushed_filter(schema, selection.conditions):
        wanted.append(f"[__$operation] IN (3, 4) OR ({passing})")
    where = f" WHERE ({') AND ('.join(wanted)})" if wanted else ""
    return (
        f"SELECT [__$start_lsn] AS start_lsn, {command_id} AS command_id, [__$seqval] AS seqval,"
        f" [__$operation] AS operation, [__$update_mask] AS update_mask, [__$seq] + {part.seq_offset} AS seq,"
        f" {time} AS commit_ts, {transaction} AS tran_id{selected} FROM {rows}{where}"
    )


def _differs(schema: TableSchema, names: Iterable[str], window: str) -> str:
    """T-SQL for: of an image of an update, whether one of some columns has another value in the other image."""
    equal: dict[str, list[str]] = {"LEAD": [], "LAG": []}
    for column in map(schema.column, names):
        name = quote(column.name)
        # bytes compare without collation; what stands behind them keeps zeros at the end from being ignored
        value = f"CONVERT(varbinary({column.length}), {name}) + 0x01"
        for function, tests in equal.items():
            other = f"{function}({value}) OVER ({window})"
            tests.append(f"({other} = {value} OR ({other} IS NULL AND {name} IS NULL))")
    before, after = (f"CASE WHEN {' AND '.join(tests)} THEN 0 ELSE 1 END" for tests in equal.values())
    return f"CASE [__$operation] WHEN 3 THEN {before} WHEN 4 THEN {after} ELSE 0 END"


def _in_mask(schema: TableSchema, columns: Iterable[str]) -> str:
    """T-SQL for: the mask has one of the columns. Ordinal 1 is the lowest bit of the last byte (docs)."""
    bits: dict[int, int] = {}
    for name in columns:
        position = schema.column(name).ordinal - 1
        bits[position // 8] = bits.get(position // 8, 0) | 1 << position % 8
    mask = "[__$update_mask]"
    tests = [
        f"CONVERT(int, SUBSTRING({mask}, DATALENGTH({mask}) - {byte}, 1)) & {value} <> 0"
        for byte, value in sorted(bits.items())
    ]
    return f"{mask} IS NULL OR " + " OR ".join(tests)
