"""Which system columns a target has, or gets: each version of them is a layout."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_mssql_cdc.core.exceptions import TargetError, UnsupportedColumnError
from airflow_provider_mssql_cdc.core.marker import LAYOUT
from airflow_provider_mssql_cdc.spark.shapes.base import SinkRows


def marked_layout(rows: SinkRows, target: str, layout: int) -> int:
    """The layout that a marker names.

    :param target: its table, for people
    :raises TargetError: if a later version of this package has made it
    :raises UnsupportedColumnError: if a column of the source would take the place of a system column
    """
    name = str(rows.table.spec.name)
    if layout > LAYOUT:
        raise TargetError(
            f"{target} has system columns of version {layout}, and this package knows those of version {LAYOUT}.",
            table=name,
            advice="Upgrade airflow-provider-mssql-cdc where the task and its Spark job run.",
        )
    system = rows.facts.added_columns(layout).keys()
    if taken := [column.name for column in rows.data_columns if column.name.lower() in system]:
        raise UnsupportedColumnError(
            f"column {taken[0]!r} has the name of a system column of {target}.",
            table=name,
            advice="Give it another name (rename), or leave it out (columns).",
        )
    return layout


def layout_of(rows: SinkRows, names: Sequence[str]) -> int:
    """The layout of a table without marker: the newest, if it has its columns and the source has none of them.

    :param names: of its columns
    """
    added = rows.facts.added_columns(LAYOUT).keys()
    taken = {column.name.lower() for column in rows.data_columns}
    return LAYOUT if added <= {*names} and not taken & added else 1
