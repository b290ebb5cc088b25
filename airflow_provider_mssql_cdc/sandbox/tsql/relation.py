"""What a statement reads from: tables, views and results of functions, and ranges of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.protocol import Column

Range = tuple[bytes | None, bytes | None]
"""Ten-byte values from one to another, both included; None leaves an end open."""

EVERYTHING: Range = (None, None)


def tighter(one: Range, other: Range) -> Range:
    """What lies in both ranges."""
    lows = [low for low, _ in (one, other) if low is not None]
    highs = [high for _, high in (one, other) if high is not None]
    return (max(lows) if lows else None, min(highs) if highs else None)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that stay the same while a statement runs, and can be read one after the other as they lie.

    :param read: those whose value of one column lies in a range
    :param key: DuckDB names of the columns by which they may lie in order: LSNs and integers
    :param ranged: name of the column of the range; '' where there is none, and all rows are read
    :param in_order: whether they lie in ascending order of some of the key's columns
    """

    read: Callable[[Range], Iterable[pa.RecordBatch]]
    key: tuple[str, ...] = ()
    ranged: str = ""
    in_order: Callable[[tuple[str, ...]], bool] = lambda names: not names


@dataclass(frozen=True, slots=True)
class Relation:
    """A table, view or function result to read from.

    :param source: DuckDB FROM text
    :param columns: SQL Server column and its DuckDB name
    :param rows: its rows, where they can be read as they lie
    :param hidden: DuckDB name of the row identifier of a base table
    :param parts: database, schema and name of a base table
    :param narrow: where it is read with locks, takes a condition that its rows must fulfil: its own alias in DuckDB,
        the condition as it was written, and as DuckDB takes it
    :param masks: data masks between the session and the columns, by their DuckDB names
    """

    source: str
    columns: list[tuple[Column, str]]
    rows: Rows | None = None
    hidden: str = ""
    parts: tuple[str, str, str] = ("", "", "")
    narrow: Callable[[str, exp.Expr, str], None] | None = None
    masks: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The relation's own name."""
        return self.parts[2]
