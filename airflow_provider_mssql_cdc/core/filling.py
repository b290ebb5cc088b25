"""A table whose sinks lack columns: as they are loaded, as they go on, and what is copied to fill these columns."""

from __future__ import annotations

import dataclasses

from airflow_provider_mssql_cdc.core.spec import Chosen, TableSpec

FOLDER_SUFFIX = ".filling"
"""Behind the name of the folder of a table's copies: that of copies which fill columns."""


def lacking(table: TableSpec) -> tuple[str, ...]:
    """The columns that the sinks lack, as the source names them."""
    if table.wider is None:
        return ()
    has = {column.name for column in table.schema.columns if table.selection.holds(column.name)}
    wide = table.wider
    return tuple(c.name for c in wide.schema.loaded if c.name not in has and wide.selection.holds(c.name))


def widened(table: TableSpec) -> TableSpec:
    """The table with the columns that its sinks lack; those that only add rows get them with their next commit."""
    assert table.wider is not None
    before = Chosen(table.schema, table.selection)
    return dataclasses.replace(
        table, schema=table.wider.schema, selection=table.wider.selection, wider=None, grows_from=before
    )


def filling(table: TableSpec) -> TableSpec:
    """The key, and the columns that the sinks lack: what is copied to fill these."""
    assert table.wider is not None
    schema, wanted = table.wider.schema, {*table.wider.schema.key, *lacking(table)}
    columns = tuple(column.name for column in schema.loaded if column.name in wanted)
    return dataclasses.replace(
        table,
        schema=schema,
        selection=dataclasses.replace(table.wider.selection, columns=columns),
        sinks=(),
        wider=None,
        copies=table.copies and table.copies + FOLDER_SUFFIX,
        copy=table.copy if table.copy is not None and table.copy.fills else None,
    )
