"""Rows that DuckDB has for a session's statement: under which names, and the queries over them."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.engine.transactions import TransactionManager

_MOST_EMPTY = 256
_FEW_ROWS = 16
_NAMES = re.compile(r"\br\d+\b")


class StatementRows:
    """What a session registers in DuckDB for one statement, and reads there.

    :param manager: whose connection reads
    """

    def __init__(self, manager: TransactionManager) -> None:
        self.manager = manager
        self._names = itertools.count(1)
        self._sizes: dict[str, int] = {}  # rows of what is registered for the statement
        self._later: dict[str, Callable[[], pa.Table]] = {}
        self._empty: dict[pa.Schema, str] = {}
        self._batches: list[pa.RecordBatchReader] = []

    def new_name(self) -> str:
        """A name for rows of this statement."""
        return f"r{next(self._names)}"

    def register(self, rows: pa.Table) -> str:
        """Make Arrow rows readable in this statement's queries; their name."""
        # what polls ask of quiet tables has no rows: those stay registered, one for each list of types
        known = self._empty.get(rows.schema) if not rows.num_rows else None
        if known is not None:
            return known
        name = self.new_name()
        if not rows.num_rows and len(self._empty) < _MOST_EMPTY:
            self.manager.register(name, rows)
            self._empty[rows.schema] = name
        else:
            self._register(name, rows)
        return name

    def _register(self, name: str, rows: pa.Table) -> None:
        self.manager.register(name, rows)
        self._sizes[name] = rows.num_rows

    def later(self, read: Callable[[], pa.Table]) -> str:
        """Rows that are read once a query of this statement names them; their name."""
        name = self.new_name()
        self._later[name] = read
        return name

    def read_named(self, sql: str) -> int:
        """Read what the query names and is not read yet; the number of rows of all that it names."""
        names = set(_NAMES.findall(sql))
        for name in [each for each in self._later if each in names]:
            self._register(name, self._later.pop(name)())
        return sum(self._sizes.get(name, 0) for name in names)

    @contextlib.contextmanager
    def staged(self, name: str, rows: pa.Table) -> Iterator[None]:
        """Make rows readable under a name meanwhile."""
        self.manager.register(name, rows)
        try:
            yield
        finally:
            self.manager.unregister(name)

    def fetch(self, sql: str, schema: pa.Schema | None = None) -> pa.Table:
        """Run a query and take all its rows.

        :param schema: of the rows, where it is known
        """
        if schema is not None:
            few = self.fetchall(f"{sql} LIMIT {_FEW_ROWS + 1}")
            if len(few) <= _FEW_ROWS:
                columns = zip(*few, strict=True) if few else ([] for _ in schema)
                arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
                return pa.Table.from_arrays(arrays, schema=schema)
        self.finish_reading()
        self.read_named(sql)
        return self.manager.connection.sql(sql).to_arrow_table()

    def fetchall(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query with few rows and take them as Python values, which costs half of what Arrow does."""
        self.finish_reading()
        self.read_named(sql)
        rows: list[tuple[Any, ...]] = self.manager.connection.execute(sql).fetchall()
        return rows

    def read(self, sql: str) -> pa.RecordBatchReader:
        """Run a query whose rows are taken as they come."""
        self.finish_reading()
        self.read_named(sql)
        reader = self.manager.connection.sql(sql).to_arrow_reader(65536)
        self._batches.append(reader)
        return reader

    def finish_reading(self) -> None:
        """Close what is still being read: DuckDB runs one query per connection."""
        for reader in self._batches:
            reader.close()
        self._batches.clear()

    def forget(self) -> None:
        """The statement is over: close its results, and drop what was registered for it."""
        self.finish_reading()
        for name in self._sizes:
            self.manager.unregister(name)
        self._sizes.clear()
        self._later.clear()
