"""Where rows go: the target address, and the name of each sink's table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from string import Formatter

from airflow_provider_mssql_cdc.core.exceptions import ParameterError, TargetError
from airflow_provider_mssql_cdc.core.formats import FORMATS, is_path
from airflow_provider_mssql_cdc.core.schema_changes import SUFFIX
from airflow_provider_mssql_cdc.core.shapes import SHAPES
from airflow_provider_mssql_cdc.core.table import TableName

TABLE_NAME = "{schema}_{table}"
"""How target tables are named unless the user says otherwise."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where tables go: ``iceberg://catalog/namespace``, ``delta://catalog/namespace``, or, for tables that no catalog
    names, ``delta+<URL of a folder>`` and ``parquet+file://<folder>``; or ``postgresql://connection_id/schema``, by
    the Airflow connection that names the database.

    :param address: as the user wrote it
    :param format: as ``core.formats`` names it
    :param place: what stands before the table's name: the catalog (``spark.sql.catalog.<name>``) and one or more
        levels of a namespace; or the URL of the folder; or the Airflow connection and the schema
    """

    address: str
    format: str
    place: tuple[str, ...]

    @classmethod
    def parse(cls, address: str) -> Target:
        """Read the address.

        :raises ParameterError: if it is of none of these forms, or leads out of the catalog
        """
        for target in FORMATS.values():
            if (place := target.place(address)) is not None:
                return cls(address.rstrip("/"), target.name, place)
        forms = [form for target in FORMATS.values() for form in target.forms]
        raise ParameterError(f"target {address!r} is not of the form {', '.join(forms[:-1])} or {forms[-1]}")

    def table(self, template: str, source: TableName, shape: str, suffix: str = "") -> tuple[str, ...]:
        """The parts of a sink's table name: what ``place`` says, and the table.

        :param template: with ``{schema}`` and ``{table}``
        :param shape: every shape but ``mirror`` is added to the name
        :param suffix: added at the end
        """
        name = template.format(schema=source.schema, table=source.table)
        return (*self.place, name + SHAPES[shape].suffix + suffix)

    def schema_changes(self, template: str, source: TableName) -> tuple[str, ...]:
        """The parts of the name of the table that holds the source table's schema events.

        :param template: with ``{schema}`` and ``{table}``
        """
        return (*self.place, template.format(schema=source.schema, table=source.table) + SUFFIX)


def in_folder(table: Sequence[str]) -> bool:
    """Whether a table is named by the URL of a folder, not by a catalog."""
    return "://" in table[0]


def display_name(table: Sequence[str]) -> str:
    """A sink's table for people: ``catalog.namespace.table``, or a URL."""
    return "/".join(table) if in_folder(table) else ".".join(table)


def check_template(template: str) -> None:
    """Refuse a ``table_name`` that makes no name of a table.

    :raises ParameterError: for fields other than ``{schema}`` and ``{table}``, other braces, a path, or no name
    """
    try:
        parts = list(Formatter().parse(template))
    except ValueError:
        parts = [(template, "", None, None)]
    for text, field, layout, conversion in parts:
        if field not in (None, "schema", "table") or layout or conversion or {"{", "}"} & set(text):
            raise ParameterError(
                f"table_name={template!r}: the fields are {{schema}} and {{table}}, as in '{{schema}}_{{table}}', and "
                "there are no other braces."
            )
    if is_path(template.format(schema="s", table="t")):
        raise ParameterError(f"table_name={template!r} makes a path, or nothing, not the name of a table.")


def check_name(template: str, source: TableName) -> None:
    r"""Refuse a source table whose own name would make a path of the target's: SQL Server allows ``/`` and ``\`` there.

    :raises TargetError: with what to do
    """
    name = template.format(schema=source.schema, table=source.table)
    if is_path(name):
        raise TargetError(
            f"{name!r} is a path, not the name of a table.",
            table=str(source),
            advice="Load this table by a task of its own with another table_name, or leave it out with exclude.",
        )


def check_names(sinks: Iterable[tuple[tuple[TableName, str], Sequence[str]]]) -> None:
    """Refuse two sources, or two shapes, that would share one table; names are compared without case.

    :param sinks: source table and shape, with the target table's name
    :raises ParameterError: naming both
    """
    taken: dict[str, str] = {}
    for (table, shape), parts in sinks:
        name = display_name(parts)
        sink = f"{table} ({shape})"
        other = taken.setdefault(name.lower(), sink)
        if other != sink:
            raise ParameterError(
                f"{other} and {sink} would both be loaded into {name}; "
                "choose a table_name that tells them apart, for instance '{schema}__{table}'"
            )
