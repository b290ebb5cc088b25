"""A small server for the tests: a clock set by hand, tables as Python rows, and transactions that log their changes."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.engine.cdc.database import CdcDatabase
from airflow_provider_mssql_cdc.sandbox.engine.cdc.switches import Switches
from airflow_provider_mssql_cdc.sandbox.engine.harshness import Harshness
from airflow_provider_mssql_cdc.sandbox.engine.log import RowImages, TableAltered, Transaction
from airflow_provider_mssql_cdc.sandbox.engine.schema import ColumnDef, IndexDef, TableDef
from airflow_provider_mssql_cdc.sandbox.types import SqlType

INT, VARCHAR10 = SqlType("int"), SqlType("varchar", 10)
NOON = datetime.datetime(2026, 3, 2, 12)


def table(
    name: str,
    columns: Mapping[str, SqlType | ColumnDef],
    *,
    key: Iterable[str] = (),
    indexes: Iterable[IndexDef] = (),
    object_id: int = 100,
    schema: str = "dbo",
) -> TableDef:
    """A table with columns numbered from 1; the key becomes a clustered primary key ``PK_<name>``."""
    key = tuple(key)
    built = tuple(
        each if isinstance(each, ColumnDef) else ColumnDef(i, column, each, nullable=column not in key)
        for i, (column, each) in enumerate(columns.items(), 1)
    )
    primary = [IndexDef(f"PK_{name}", key, unique=True, primary_key=True, clustered=True)] if key else []
    return TableDef(object_id, schema, name, built, (*primary, *indexes))


def images(of: TableDef, rows: Iterable[Iterable[Any]]) -> pa.Table:
    """Rows, in column order, as row images of a table."""
    by_column = list(zip(*rows, strict=True))
    arrays = [pa.array(values, each.type) for values, each in zip(by_column, of.arrow_schema, strict=True)]
    return pa.table(arrays, schema=of.arrow_schema)


def insert(into: TableDef, *rows: Iterable[Any]) -> RowImages:
    return RowImages(into, after=images(into, rows))


def delete(of: TableDef, *rows: Iterable[Any]) -> RowImages:
    return RowImages(of, before=images(of, rows))


def update(of: TableDef, *pairs: tuple[Iterable[Any], Iterable[Any]]) -> RowImages:
    return RowImages(of, images(of, [old for old, _ in pairs]), images(of, [new for _, new in pairs]))


@dataclass
class World:
    """One database with CDC on."""

    switches: Switches = field(default_factory=lambda: Switches(clr_enabled=True))
    now: datetime.datetime = NOON
    harshness: Harshness = field(default_factory=Harshness)

    def __post_init__(self) -> None:
        self.object_ids = itertools.count(1000)
        self.tran_ids = itertools.count(1)
        self.db = CdcDatabase(
            "shop",
            5,
            clock=lambda: self.now,
            new_object_id=lambda: next(self.object_ids),
            switches=self.switches,
            harshness=self.harshness,
        )
        self.db.enable()

    def commit(self, *records: RowImages | TableAltered) -> bytes | None:
        """Commit a transaction a second after the last one."""
        self.now += datetime.timedelta(seconds=1)
        transaction = self.open()
        for record in records:
            self.write(transaction, record)
        return self.db.append(transaction)

    def open(self) -> Transaction:
        """Begin a transaction."""
        return Transaction(next(self.tran_ids), self.now, self.db.begin())

    def write(self, transaction: Transaction, record: RowImages | TableAltered) -> None:
        """Write a record of an open transaction; ``db.append`` commits it."""
        position = self.db.write(record)
        if position is not None:
            transaction.records.append((record, position))

    def rows(self, instance: str, low: bytes | None = None, high: bytes | None = None) -> list[dict[str, Any]]:
        """The rows of a change table."""
        return [row for batch in self.db.change_rows(instance, low, high) for row in batch.to_pylist()]

    def all_changes(
        self, instance: str, low: bytes | None, high: bytes | None, option: str = "all"
    ) -> list[dict[str, Any]]:
        _, batches = self.db.all_changes(instance, low, high, option)
        return [row for batch in batches for row in batch.to_pylist()]

    def net_changes(
        self, instance: str, low: bytes | None, high: bytes | None, option: str = "all"
    ) -> list[dict[str, Any]]:
        _, batches = self.db.net_changes(instance, low, high, option)
        return [row for batch in batches for row in batch.to_pylist()]

    def relation(self, name: str) -> list[dict[str, Any]]:
        return self.db.relation(name)[1].to_pylist()
