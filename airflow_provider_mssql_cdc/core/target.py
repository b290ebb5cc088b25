"""Where rows go: the target address, and the name of each sink's table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.table import TableName

MIRROR = "mirror"
HISTORY = "history"
SHAPES = (MIRROR, HISTORY)

_ADDRESS = re.compile(r"iceberg://(?P<catalog>[A-Za-z_][A-Za-z0-9_]*)/(?P<namespace>[^/]+(?:/[^/]+)*)/?")


@dataclass(frozen=True, slots=True)
class Target:
    """A namespace of an Iceberg catalog, written ``iceberg://catalog/namespace``.

    :param address: as the user wrote it
    :param catalog: name of the catalog in Spark's configuration (``spark.sql.catalog.<name>``)
    :param namespace: one or more levels
    """

    address: str
    catalog: str
    namespace: tuple[str, ...]

    @classmethod
    def parse(cls, address: str) -> Target:
        """Read the address.

        :raises ValueError: if it is not of this form
        """
        match = _ADDRESS.fullmatch(address)
        if not match:
            raise ValueError(f"target {address!r} is not of the form iceberg://catalog/namespace")
        return cls(address.rstrip("/"), match["catalog"], tuple(match["namespace"].split("/")))

    def table(self, template: str, source: TableName, shape: str, suffix: str = "") -> tuple[str, ...]:
        """Return the parts of a sink's table name: catalog, namespace, table.

        :param template: with ``{schema}`` and ``{table}``
        :param shape: every shape but ``mirror`` is added to the name
        :param suffix: added at the end
        """
        name = template.format(schema=source.schema, table=source.table)
        return (self.catalog, *self.namespace, name + ("" if shape == MIRROR else "_" + shape) + suffix)


def check_shapes(shapes: Iterable[str]) -> tuple[str, ...]:
    """Return the shapes, each known and named once.

    :raises ValueError: otherwise, or if there is none
    """
    chosen = tuple(shapes)
    unknown = [shape for shape in chosen if shape not in SHAPES]
    if unknown or not chosen or len(set(chosen)) != len(chosen):
        raise ValueError(f"shapes={list(chosen)!r}: expected some of {list(SHAPES)}, each once")
    return chosen


def check_names(target: Target, template: str, tables: Iterable[TableName], shapes: Iterable[str]) -> None:
    """Refuse two sources, or two shapes, that would share one table; names are compared without case.

    :raises ValueError: naming both
    """
    taken: dict[str, str] = {}
    for table in tables:
        for shape in shapes:
            name = ".".join(target.table(template, table, shape))
            sink = f"{table} ({shape})"
            other = taken.setdefault(name.lower(), sink)
            if other != sink:
                raise ValueError(
                    f"{other} and {sink} would both be loaded into {name}; "
                    f"choose a table_name that tells them apart, for instance '{{schema}}_{{table}}'"
                )
