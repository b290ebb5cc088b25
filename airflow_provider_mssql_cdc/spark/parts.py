"""What a table's load is put together from: the source by its feed, rows by shape, tables by format."""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import SparkSession

from airflow_provider_mssql_cdc.core.columns import ColumnMapping
from airflow_provider_mssql_cdc.core.shapes import SHAPES
from airflow_provider_mssql_cdc.core.spec import JobSpec, SinkSpec, TableSpec
from airflow_provider_mssql_cdc.spark.jdbc import Jdbc
from airflow_provider_mssql_cdc.spark.shapes.base import SinkRows
from airflow_provider_mssql_cdc.spark.shapes.table import TableRows
from airflow_provider_mssql_cdc.spark.sources.base import TableSource
from airflow_provider_mssql_cdc.spark.sources.registry import SOURCES
from airflow_provider_mssql_cdc.spark.targets import Opening, TargetTable, open_table


class Parts(Protocol):
    """What a table's load is put together from."""

    @property
    def salt(self) -> str | None:
        """Of hashes; None where there is none."""

    def source(self, table: TableSpec, mappings: Sequence[ColumnMapping]) -> TableSource:
        """The source of a table, by the kind of its feed."""

    def rows(self, table: TableRows, sink: SinkSpec) -> SinkRows:
        """What a sink holds, by its shape."""

    def target(self, rows: SinkRows, name: Sequence[str]) -> TargetTable:
        """The table of a sink, by its format.

        :param name: the sink's own table, or one that a replay builds beside it
        """


@dataclass(frozen=True, slots=True)
class SparkParts:
    """The parts of one table's load in Spark.

    :param session: of this table alone
    :param connections: JDBC connections that it may open at once
    """

    session: SparkSession
    job: JobSpec
    jdbc: Jdbc
    connections: int
    salt: str | None = None

    def source(self, table: TableSpec, mappings: Sequence[ColumnMapping]) -> TableSource:
        """The source of a table, by the kind of its feed."""
        return SOURCES[table.feed.KIND](self.job, self.jdbc, table, mappings, self.connections, self.salt)

    def rows(self, table: TableRows, sink: SinkSpec) -> SinkRows:
        """What a sink holds, by its shape."""
        made: SinkRows = pkgutil.resolve_name(SHAPES[sink.shape].rows)(table, sink)
        return made

    def target(self, rows: SinkRows, name: Sequence[str]) -> TargetTable:
        """The table of a sink, by its format."""
        table = rows.table
        return open_table(
            Opening(self.session, self.job, rows.sink, tuple(name), table.key, rows.is_unique, self.connections)
        )
