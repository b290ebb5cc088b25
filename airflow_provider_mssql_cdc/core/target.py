"""Where rows go: the target address, and the name of each sink's table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from string import Formatter
from urllib.parse import unquote

from airflow_provider_mssql_cdc.core.exceptions import ParameterError, TargetError
from airflow_provider_mssql_cdc.core.table import TableName

MIRROR = "mirror"
HISTORY = "history"
SCD2 = "scd2"
TRANSACTIONS = "transactions"
SHAPES = (MIRROR, HISTORY, SCD2, TRANSACTIONS)

KEYLESS = frozenset({HISTORY, TRANSACTIONS})
"""The shapes to which rows are only added, so that they need no key."""

TABLE_NAME = "{schema}_{table}"
"""How target tables are named unless the user says otherwise."""

HARD, SOFT, IGNORE = "hard", "soft", "ignore"
DELETES = (HARD, SOFT, IGNORE)
"""What a mirror does with rows that were deleted: they go, they are marked by ``_deleted_at``, or they stay."""

ICEBERG, DELTA, PARQUET, POSTGRESQL = "iceberg", "delta", "parquet", "postgresql"

_CATALOG = re.compile(
    r"(?P<format>iceberg|delta)://(?P<catalog>[A-Za-z_][A-Za-z0-9_]*)/(?P<namespace>[^/]+(?:/[^/]+)*)/?"
)
_FOLDER = re.compile(r"(?P<format>delta|parquet)\+(?P<folder>[a-z][a-z0-9]*://[^?#]*[^/?#])/*")
_DATABASE = re.compile(r"(?P<format>postgresql)://(?P<connection>[\w.-]+)/(?P<schema>[^/]+)/?")

FORMS = (
    "iceberg://catalog/namespace, delta://catalog/namespace, delta+file:///folder, parquet+file:///folder or "
    "postgresql://connection_id/schema"
)
"""How targets are written, for messages."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where tables go: ``iceberg://catalog/namespace``, ``delta://catalog/namespace``, or, for tables that no catalog
    names, ``delta+<URL of a folder>`` and ``parquet+file://<folder>``; or ``postgresql://connection_id/schema``, by
    the Airflow connection that names the database.

    :param address: as the user wrote it
    :param format: ``iceberg``, ``delta``, ``parquet`` or ``postgresql``
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
        if match := _FOLDER.fullmatch(address):
            if ".." in unquote(match["folder"]).split("/"):
                raise ParameterError(f"target {address!r}: write the folder without '..'")
            return cls(address.rstrip("/"), match["format"], (match["folder"],))
        if match := _DATABASE.fullmatch(address):
            if _is_too_long(match["schema"]):
                raise ParameterError(f"target {address!r}: {_TOO_LONG}")
            return cls(address.rstrip("/"), match["format"], (match["connection"], match["schema"]))
        match = _CATALOG.fullmatch(address)
        if not match:
            raise ParameterError(f"target {address!r} is not of the form {FORMS}")
        levels = tuple(match["namespace"].split("/"))
        for level in levels:
            if _is_path(level):
                raise ParameterError(
                    f"target {address!r}: {level!r} is no name of a namespace; a catalog of folders would write "
                    "elsewhere."
                )
        return cls(address.rstrip("/"), match["format"], (match["catalog"], *levels))

    def table(self, template: str, source: TableName, shape: str, suffix: str = "") -> tuple[str, ...]:
        """Return the parts of a sink's table name: what ``place`` says, and the table.

        :param template: with ``{schema}`` and ``{table}``
        :param shape: every shape but ``mirror`` is added to the name
        :param suffix: added at the end
        """
        name = template.format(schema=source.schema, table=source.table)
        return (*self.place, name + ("" if shape == MIRROR else "_" + shape) + suffix)


def in_folder(table: Sequence[str]) -> bool:
    """Whether a table is named by the URL of a folder, not by a catalog."""
    return "://" in table[0]


def display_name(table: Sequence[str]) -> str:
    """Return a sink's table for people: ``catalog.namespace.table``, or a URL."""
    return "/".join(table) if in_folder(table) else ".".join(table)


def _is_path(name: str) -> bool:
    """Whether a catalog that makes folders of names would take this for a path, or for nothing."""
    plain = unquote(name)
    return plain.strip() in ("", ".", "..") or "/" in plain or "\\" in plain


_TOO_LONG = "PostgreSQL's names have at most 63 bytes."
_OF_THE_LOAD = "mssql_cdc_"
_OF_EACH_TABLE = frozenset({"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"})


def check_identifiers(format_: str, table: Sequence[str], columns: Iterable[str], source: TableName) -> None:
    """Refuse names that a target cannot hold as they are.

    PostgreSQL cuts longer names (docs: Identifiers and Key Words), and has columns of its own in each table (docs:
    System Columns).

    :param format_: of the target
    :param table: the target table, as ``Target.table`` names it
    :param columns: of the target table
    :param source: the source table, for the message
    :raises TargetError: with the name, and what to do
    """
    if format_ != POSTGRESQL:
        return
    name, advice = table[-1], "Choose another table_name."
    if _is_too_long(name):
        raise TargetError(f"{name!r} is too long: {_TOO_LONG}", table=str(source), advice=advice)
    if name.startswith(_OF_THE_LOAD):
        raise TargetError(
            f"names of target tables must not begin with {_OF_THE_LOAD}, as {name!r} does: tables of the load do.",
            table=str(source),
            advice=advice,
        )
    for column in columns:
        problem = f"is too long: {_TOO_LONG}" if _is_too_long(column) else "is a column that each table has."
        if _is_too_long(column) or column in _OF_EACH_TABLE:
            raise TargetError(
                f"column {column!r} {problem}",
                table=str(source),
                advice="Give it another name (rename), or leave it out of the capture instance "
                "(@captured_column_list).",
            )


def _is_too_long(name: str) -> bool:
    return len(name.encode()) > 63


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
    if _is_path(template.format(schema="s", table="t")):
        raise ParameterError(f"table_name={template!r} makes a path, or nothing, not the name of a table.")


def check_name(template: str, source: TableName) -> None:
    r"""Refuse a source table whose own name would make a path of the target's: SQL Server allows ``/`` and ``\`` there.

    :raises TargetError: with what to do
    """
    name = template.format(schema=source.schema, table=source.table)
    if _is_path(name):
        raise TargetError(
            f"{name!r} is a path, not the name of a table.",
            table=str(source),
            advice="Load this table by a task of its own with another table_name, or leave it out with exclude.",
        )


def check_format(target: str, shapes: Iterable[str], **made: object) -> None:
    """Refuse what the format of a target does not have.

    :param target: its address, which may be a template behind the format
    :param made: what tables are to be made with: ``partition_by``, ``table_properties``
    :raises ParameterError: for Parquet with shapes to which rows are not only added, for PostgreSQL with ``scd2``, and
        for both with one of those
    """
    if target.startswith(f"{PARQUET}+"):
        what, held = "Parquet files", set(KEYLESS)
    elif target.startswith(f"{POSTGRESQL}:"):
        what, held = "tables in PostgreSQL", {MIRROR, *KEYLESS}
    else:
        return
    if not set(shapes) <= held:
        alone = ", ".join(f'"{shape}"' for shape in SHAPES if shape in held)
        raise ParameterError(f"target {target!r}: {what} hold shapes=[{alone}] alone")
    for name, value in made.items():
        if value:
            raise ParameterError(f"target {target!r}: {what} have no {name}")


def check_shapes(shapes: Iterable[str]) -> tuple[str, ...]:
    """Return the shapes, each known and named once.

    :raises ParameterError: otherwise, or if there is none
    """
    chosen = tuple(shapes)
    unknown = [shape for shape in chosen if shape not in SHAPES]
    if unknown or not chosen or len(set(chosen)) != len(chosen):
        raise ParameterError(f"shapes={list(chosen)!r}: expected some of {list(SHAPES)}, each once")
    return chosen


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
