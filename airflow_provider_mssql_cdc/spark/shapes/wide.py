"""The wide form of a history: one record for each change, with the values before and after it."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.changes import DELETE, INSERT, UPDATE
from airflow_provider_mssql_cdc.core.columns import TEMPORARY, TRAN_ID, TargetColumn
from airflow_provider_mssql_cdc.core.position import Lsn, Position
from airflow_provider_mssql_cdc.core.shapes import event_columns
from airflow_provider_mssql_cdc.spark.shapes.fold import column
from airflow_provider_mssql_cdc.spark.shapes.table import TableRows

BEFORE, AFTER = "before_", "after_"
"""Begin the names of the data columns; none of the other columns begins so."""

_TAIL = ("_command_id", "_seqval", "_seq", "_commit_ts_utc", "_unknown")
_OLD = f"{TEMPORARY}old"


def wide_columns(data: Iterable[TargetColumn], position: type[Position]) -> tuple[TargetColumn, ...]:
    """The columns of a wide history.

    :param data: the columns of a mirror
    :param position: kind of the feed's positions
    """
    columns, of_events = tuple(data), event_columns(position)
    head = dict.fromkeys(("type", "schema", "table"), "STRING")
    head |= {position.KIND: position.COLUMN_TYPE, "ts": "TIMESTAMP_NTZ"}
    return (
        *(TargetColumn(name, type_, "{}") for name, type_ in head.items()),
        *(TargetColumn(prefix + c.name, c.type, "{}") for prefix in (BEFORE, AFTER) for c in columns),
        *(TargetColumn(name, of_events[name], "{}") for name in _TAIL),
    )


def records(table: TableRows, events: DataFrame) -> DataFrame:
    """One record for each event, with the values before and after it."""
    names = [target.name for target in table.data_columns]
    pair = (table.position, "_command_id", "_seqval")
    old = events.where("_op = 'B'").select(
        *(F.col(name).alias(f"{_OLD}{name}") for name in pair),
        F.struct("_unknown", F.struct(*map(column, names)).alias("data")).alias(_OLD),
    )
    same = F.lit(True)
    for name in pair:
        same &= F.col(name).eqNullSafe(F.col(f"{_OLD}{name}"))
    rows = events.where("_op != 'B'").join(old, same, "left")
    op = F.col("_op")
    unknown = F.when(op == "D", _prefixed(BEFORE, F.col("_unknown"))).otherwise(
        F.concat(
            F.coalesce(_prefixed(BEFORE, F.col(_OLD)["_unknown"]), F.array().cast("array<string>")),
            _prefixed(AFTER, F.col("_unknown")),
        )
    )
    missing = F.raise_error(
        F.concat(
            F.lit(f"{table.spec.name}: the change table has an update without its before image, at "),
            F.col(table.position).cast("string"),
            F.lit(", so rows of it were removed by hand: load the table anew after `mssql-cdc checkpoint reset`"),
        )
    )
    type_ = F.when(op == "I", INSERT).when(op == "D", DELETE).when(F.col(_OLD).isNull(), missing).otherwise(UPDATE)
    values = {
        "type": type_,
        "schema": F.lit(table.spec.name.schema),
        "table": F.lit(table.spec.name.table),
        table.position_kind.KIND: _shown(table),
        "ts": F.col("_commit_ts"),
        "_unknown": unknown,
        **{BEFORE + name: F.when(op == "D", column(name)).otherwise(F.col(_OLD)["data"][name]) for name in names},
        **{AFTER + name: F.when(op != "D", column(name)) for name in names},
    }
    return rows.select(
        *(
            values.get(target.name, column(target.name)).alias(target.name)
            for target in wide_columns(table.data_columns, table.position_kind)
        ),
        TRAN_ID,
    )


def images(table: TableRows, target_rows: DataFrame) -> DataFrame:
    """Wide records as events: what each left of its row, or took."""
    took = F.col("type") == DELETE
    known = F.when(took, _unprefixed(BEFORE)).otherwise(_unprefixed(AFTER))
    data = [
        F.when(took, column(BEFORE + target.name)).otherwise(column(AFTER + target.name)).alias(target.name)
        for target in table.data_columns
    ]
    return target_rows.select(
        *data, _letter().alias("_op"), _compared(table).alias(table.position), "_seq", known.alias("_unknown")
    )


def identified(table: TableRows, rows: DataFrame) -> DataFrame:
    """Wide records with the columns that identify their events."""
    return rows.withColumns({table.position: _compared(table), "_op": _letter()})


def _prefixed(prefix: str, names: Column) -> Column:
    return F.transform(names, lambda name: F.concat(F.lit(prefix), name))


def _unprefixed(prefix: str) -> Column:
    mine = F.filter("_unknown", lambda name: name.startswith(prefix))
    return F.transform(mine, lambda name: F.substring(name, len(prefix) + 1, 128))


def _letter() -> Column:
    return F.when(F.col("type") == INSERT, "I").when(F.col("type") == UPDATE, "U").otherwise("D")


def _shown(table: TableRows) -> Column:
    """An event's position as a record shows it: of an LSN the form with colons."""
    if table.position_kind is not Lsn:
        return F.col(table.position)
    parts = (F.substring(table.position, start, length) for start, length in ((3, 8), (11, 8), (19, 4)))
    return F.lower(F.concat_ws(":", *parts))


def _compared(table: TableRows) -> Column:
    """A record's position in the form in which positions are compared."""
    shown = F.col(table.position_kind.KIND)
    if table.position_kind is not Lsn:
        return shown
    return F.concat(F.lit("0x"), F.upper(F.replace(shown, F.lit(":"), F.lit(""))))
