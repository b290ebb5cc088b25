"""What the capture instances of a table hold: which there are, their events, and what a dropped column had last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from airflow_provider_mssql_cdc.cli.demo.compare import read_events
from airflow_provider_mssql_cdc.cli.demo.shop import Table

FROM_THE_BEGINNING = f"0x{0:020X}"

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Instance:
    """A capture instance.

    :param since: commit LSN with which it begins
    :param columns: that it captures
    """

    name: str
    since: str
    columns: tuple[str, ...]

    @property
    def change_table(self) -> str:
        """The table of its events."""
        return f"cdc.[{self.name}_CT]"


def instances(connection: Any, table: Table) -> list[Instance]:
    """The capture instances of a table, the oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t.capture_instance, CONVERT(varchar(22), t.start_lsn, 1), c.column_name FROM cdc.change_tables AS t"
            " JOIN cdc.captured_columns AS c ON c.object_id = t.object_id"
            f" WHERE t.source_object_id = OBJECT_ID(N'{table.full_name}') ORDER BY t.create_date, c.column_ordinal"
        )
        found: dict[tuple[str, str], list[str]] = {}
        for name, since, column in cursor.fetchall():
            found.setdefault((name, since), []).append(column)
    return [Instance(name, since, tuple(columns)) for (name, since), columns in found.items()]


def dropped_at(connection: Any, table: Table, column: str) -> str:
    """The position of the statement that dropped a column."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT MAX(CONVERT(varchar(22), ddl_lsn, 1)) FROM cdc.ddl_history"
            f" WHERE source_object_id = OBJECT_ID(N'{table.full_name}') AND ddl_command LIKE '%DROP COLUMN {column}%'"
        )
        return str(cursor.fetchone()[0])


def events(connection: Any, instance: Instance, table: Table) -> list[Row]:
    """All events of an instance, with NULL in the columns that it does not capture.

    :param table: with all columns: the instance has all, or lacks the last ones
    """
    lacking = len(table.arrow) - len(instance.columns)
    schema = pa.schema([*table.events][: len(table.events) - lacking])
    found = read_events(connection, instance.change_table, schema, FROM_THE_BEGINNING)
    return [(*row, *[None] * lacking) for row in found]


def _order(event: Row) -> tuple[str, int, int]:
    # of one command deletes and old values come first
    return event[0], event[1], "DIBU".index(event[2])


def with_dropped(
    source: Iterable[Row], table: Table, column: str, at_first: Mapping[Any, Any], events: Sequence[Row], end: str
) -> list[Row]:
    """The rows of the source with what targets hold of a column that it has dropped.

    That is what a row had last, and NULL if it was written behind that. No key changes.

    :param table: with that column, and a key of one column, the first one
    :param at_first: what rows had when the table was filled
    :param events: of all instances that capture the column
    :param end: where it was dropped
    """
    names, place = table.events.names, table.arrow.names.index(column)
    key, position = names.index(table.key[0]), names.index(column)
    last = dict(at_first)
    for event in sorted(events, key=_order):
        if event[2] != "B":
            last[event[key]] = None if event[0] > end else event[position]
    return [(*row[:place], last[row[0]], *row[place:]) for row in source]
