"""What a change of the source's columns means to a load."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from airflow_provider_mssql_cdc.core.checkpoint import SinkState
from airflow_provider_mssql_cdc.core.columns import TEXT_SUFFIX
from airflow_provider_mssql_cdc.core.exceptions import RESET_ADVICE, SchemaChangedError
from airflow_provider_mssql_cdc.core.feed import DdlChange
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.schema import KeptSchemas, as_loaded
from airflow_provider_mssql_cdc.core.schema_diff import differing
from airflow_provider_mssql_cdc.core.selection import Selection
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema, column_meant, same_schema
from airflow_provider_mssql_cdc.core.table_options import TableOptions

_SCHEMA_ADVICE = (
    f"Schema changes are not loaded yet: {RESET_ADVICE[0].lower()}{RESET_ADVICE[1:]} Rows that the target then holds "
    "keep NULL in a column that was added, until they change."
)


def check_ddl(
    name: TableName, ddl: Iterable[DdlChange], after: Position, upto: Position, *, advice: str = _SCHEMA_ADVICE
) -> None:
    """Refuse captured columns that change within the window (after, upto].

    :param ddl: the instance's rows of ``cdc.ddl_history``
    :param advice: what to do about it
    :raises SchemaChangedError: with the statement
    """
    for change in ddl:
        if change.requires_column_update and after < change.lsn <= upto:
            raise SchemaChangedError(
                f"a captured column was changed at {change.lsn} ({change.time}) by: {change.command.strip()}",
                table=str(name),
                advice=advice,
            )


def check_schema(name: TableName, schema: TableSchema, sinks: Iterable[SinkState], kept: KeptSchemas) -> None:
    """Refuse captured columns that are not those that the sinks were loaded with.

    :param kept: schemas by their hash
    :raises SchemaChangedError: with what differs
    """
    for sink in sinks:
        if sink.schema_hash is not None and not same_schema(sink.schema_hash, schema):
            raise SchemaChangedError(
                "the captured columns are no longer those of the last load.\n"
                f"{differing(kept(sink.schema_hash), schema)}",
                table=str(name),
                advice=_SCHEMA_ADVICE,
            )


def schema_of(
    now: TableSchema, sinks: Iterable[SinkState | None], kept: KeptSchemas, exact: Collection[str] = ()
) -> TableSchema:
    """The schema of a table's load: that of a sink which was loaded with another one, where it goes on with that.

    :param sinks: the first one that was loaded decides
    :param exact: columns beside the key's whose nullability counts
    """
    for sink in sinks:
        if sink is None or sink.schema_hash is None:
            continue
        found = as_loaded(now, kept(sink.schema_hash), exact)
        if found is not now or same_schema(sink.schema_hash, now):
            return found
    return now


def left_out_of(captured: Iterable[Column], schema: TableSchema) -> list[str]:
    """The columns of an instance that a load leaves out, since its targets were loaded without them."""
    ids = {column.column_id for column in schema.columns}
    return [c.name for c in captured if c.column_id not in ids and not c.dropped and not c.computed]


def concerns_only(change: DdlChange, left_out: Collection[str], schema: TableSchema) -> bool:
    """Whether a statement names columns that are left out, and none of those that are loaded."""
    words = {word.casefold() for word in re.findall(r"\w+", change.command)}

    def is_named(column: str) -> bool:
        return {word.casefold() for word in re.findall(r"\w+", column)} <= words

    return any(map(is_named, left_out)) and not any(is_named(column.name) for column in schema.columns)


def check_kept_columns(name: TableName, schema: TableSchema, selection: Selection, options: TableOptions) -> None:
    """Refuse a table that has dropped a column which decides what is loaded, or where it lies.

    :raises SchemaChangedError: naming it
    """
    cut_by = [column_meant(column, [each.name for each in schema.columns]) for column in options.copy_by]
    for column in schema.kept:
        target = re.escape(selection.renames.get(column, column))
        shown = re.compile(rf"\b{target}({TEXT_SUFFIX})?\b", re.IGNORECASE)
        if column in selection.filtered:
            by = "where"
        elif column in cut_by:
            by = "copy_by"
        elif selection.holds(column) and any(shown.search(_arguments(each)) for each in options.partition_by):
            by = "partition_by"
        else:
            continue
        raise SchemaChangedError(
            f"the source table has dropped column {column}, which {by} names.",
            table=str(name),
            advice=f"Name another column in {by}, and load into another table (table_name). {RESET_ADVICE}",
        )


def _arguments(expression: str) -> str:
    """Where a partition expression names columns: ``bucket(4, id)`` does so behind its own name."""
    return expression.partition("(")[2] or expression
