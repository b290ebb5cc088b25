"""The five ways to look at a window's events: all of them, or what they come to for each key."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.changes import (
    ALL,
    DELETE,
    INSERT,
    NET_CHANGES,
    NET_MASK,
    NET_MERGE,
    UPDATE,
    HistoryOptions,
)
from airflow_provider_mssql_cdc.core.columns import TEMPORARY, shown
from airflow_provider_mssql_cdc.spark.shapes.fold import column, key_changed
from airflow_provider_mssql_cdc.spark.shapes.table import TableRows

_FIRST, _LAST, _NET, _MASK = (TEMPORARY + name for name in ("first", "last", "net", "mask"))

_LETTERS = {INSERT: ("I", "M"), UPDATE: ("U", "B", "M"), DELETE: ("D",)}


def letters(options: HistoryOptions) -> list[str]:
    """What ``_op`` says of the changes that are not left out."""
    return [letter for operation in options.operations for letter in _LETTERS[operation]]


def seen_as(changes: str, table: TableRows, events: DataFrame) -> DataFrame:
    """A window's events as one of the five ways shows them.

    :param changes: as ``core.changes`` names it
    :param events: of the window, with all before images, their LOBs filled in
    """
    if changes in NET_CHANGES:
        return _net(changes, table, events) if table.spec.feed.CAN.every_change else _of_net(changes, table, events)
    return events.where("_op != 'B'") if changes == ALL else events


def _of_net(changes: str, table: TableRows, events: DataFrame) -> DataFrame:
    """The same of a source whose rows are what the events of a window come to. Of what was deleted it tells the key."""
    others = [target.name for target in table.data_columns if target.name not in table.key]
    lacks = F.array_union("_unknown", F.array(*map(F.lit, others)).cast("array<string>"))
    is_delete = F.col("_op") == "D"
    operation = F.when(is_delete, "D").otherwise("M") if changes == NET_MERGE else F.col("_op")
    mask = F.col("_changed") if changes == NET_MASK else F.lit(None).cast("array<string>")
    told = {"_unknown": F.when(is_delete, lacks).otherwise(F.col("_unknown")), "_op": operation, "_changed": mask}
    return events.withColumns(told)


def _net(changes: str, table: TableRows, events: DataFrame) -> DataFrame:
    """One row for each key that is not as it was: its last event, and the operation that all of them make.

    It is what ``cdc.fn_cdc_get_net_changes_<instance>`` says: the first and the last operation of a key tell, a row
    that came and went is left out, and only an update has a mask, with the columns of all changes of the key. That
    function takes the images of a key that was changed in place (trace flag 8207) for one row's; here they are the end
    of the old key and the beginning of the new one. It compares keys by the collation, and this by their values.
    """
    changed = key_changed(events)
    kind = F.when(changed & (F.col("_op") == "B"), "D").when(changed, "I").otherwise(F.col("_op"))
    rows = events.where((F.col("_op") != "B") | changed).withColumn("_op", kind)
    found = [F.min_by("_op", "_n").alias(_FIRST), F.max_by("_op", "_n").alias(_LAST), F.max("_n").alias("_n")]
    if changes == NET_MASK:
        found.append(_all_changed(table, changed).alias(_MASK))
    by_key = rows.groupBy(*map(column, table.key)).agg(*found)
    net = F.when(F.col(_LAST) == "D", "D").when(F.col(_FIRST) == "I", "I").otherwise("U")
    by_key = by_key.where((F.col(_FIRST) != "I") | (F.col(_LAST) != "D")).withColumn(_NET, net)
    mask = F.when(F.col(_NET) == "U", F.col(_MASK)) if changes == NET_MASK else F.lit(None).cast("array<string>")
    operation = F.when(F.col(_NET) == "D", "D").otherwise("M") if changes == NET_MERGE else F.col(_NET)
    answer = by_key.select("_n", operation.alias(_NET), mask.alias("_changed"))
    return rows.drop("_changed").join(answer, "_n").withColumn("_op", F.col(_NET)).select(*map(column, events.columns))


def _all_changed(table: TableRows, changed: Column) -> Column:
    """The columns that a key's changes name, in the order of the mask; all where another row took the key."""
    names = F.array(*(F.lit(mapping.name) for mapping in shown(table.mappings)))
    found = F.flatten(F.collect_set(F.when(changed, names).otherwise(F.col("_changed"))))
    return F.array_intersect(names, found)
