"""What differs between two schemas of a table, column by column, which are matched by their column_id."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.schema import ColumnFacts, KeptSchema
from airflow_provider_mssql_cdc.core.table import TableSchema

ADD_COLUMN, DROP_COLUMN, RENAME_COLUMN = "ADD_COLUMN", "DROP_COLUMN", "RENAME_COLUMN"
ALTER_TYPE, ALTER_NULLABILITY, ALTER_PRIMARY_KEY = "ALTER_TYPE", "ALTER_NULLABILITY", "ALTER_PRIMARY_KEY"

TABLE_DROPPED = "TABLE_DROPPED"


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One difference.

    :param kind: ``ADD_COLUMN``, ``DROP_COLUMN``, ``RENAME_COLUMN``, ``ALTER_TYPE`` (collation, and whether it is
        computed, too), ``ALTER_NULLABILITY``, ``ALTER_PRIMARY_KEY`` or ``TABLE_DROPPED``
    :param column_id: of the source table; None for the key, and for the table
    :param then: what was: a column's type, name or nullability, the key's columns, the object_id of a table that is
        gone; '' for a column that is new
    :param now: what is; '' for a column that is gone
    :param name: of the column, now or at last; '' for the key
    """

    kind: str
    column_id: int | None
    then: str
    now: str
    name: str = ""

    def __str__(self) -> str:
        match self.kind:
            case "ADD_COLUMN":
                return f"column {self.name} {self.now} was added"
            case "DROP_COLUMN":
                return f"column {self.name} {self.then} was dropped"
            case "RENAME_COLUMN":
                return f"column {self.then} was renamed to {self.now}"
            case "TABLE_DROPPED":
                return "the table was dropped"
            case "ALTER_PRIMARY_KEY":
                return f"the key was ({self.then}), and is ({self.now})"
            case _:
                return f"column {self.name} was {self.then}, and is {self.now}"


def schema_diff(then: KeptSchema, now: KeptSchema) -> tuple[SchemaChange, ...]:
    """What differs, in the order of the columns' ids, the key at last. A column that was renamed and got another type
    makes two changes; one that was dropped and made again under the same name is another column.
    """
    return tuple(_changes(then, now))


def differing(then: KeptSchema | None, now: TableSchema) -> str:
    """What differs for people, a line for each change; where it is not known what was, the columns of now."""
    if then is None:
        return f"  then: not known: no schema of its hash is kept\n  now:  {', '.join(now.describe())}\n"
    return "".join(f"  {change}\n" for change in schema_diff(then, KeptSchema.of(now)))


def _changes(then: KeptSchema, now: KeptSchema) -> Iterator[SchemaChange]:
    old, new = ({column.column_id: column for column in schema.columns} for schema in (then, now))
    for column_id in sorted(old.keys() | new.keys()):
        before, after = old.get(column_id), new.get(column_id)
        if before is None and after is not None:
            yield SchemaChange(ADD_COLUMN, column_id, "", after.described, after.name)
        elif after is None and before is not None:
            yield SchemaChange(DROP_COLUMN, column_id, before.described, "", before.name)
        elif before is not None and after is not None:
            yield from _of_column(before, after)
    # a renamed column does not change the key
    keys = [
        [column.column_id for name in each.key for column in each.columns if column.name == name]
        for each in (then, now)
    ]
    if keys[0] != keys[1]:
        yield SchemaChange(ALTER_PRIMARY_KEY, None, ", ".join(then.key), ", ".join(now.key))


def _of_column(then: ColumnFacts, now: ColumnFacts) -> Iterator[SchemaChange]:
    if then.name != now.name:
        yield SchemaChange(RENAME_COLUMN, now.column_id, then.name, now.name, now.name)
    if then.type_facts != now.type_facts:
        yield SchemaChange(ALTER_TYPE, now.column_id, then.type_text, now.type_text, now.name)
    if then.nullable != now.nullable:
        said = {True: "NULL", False: "NOT NULL"}
        yield SchemaChange(ALTER_NULLABILITY, now.column_id, said[then.nullable], said[now.nullable], now.name)
