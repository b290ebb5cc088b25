"""The control table of a schema: one row per sink, written in the transaction that changes the sink's table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_mssql_cdc.core.codec import to_data
from airflow_provider_mssql_cdc.core.marker import Marker
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.spark.targets.postgresql.catalog import find_table, has_column, is_owner
from airflow_provider_mssql_cdc.spark.targets.postgresql.connection import in_schema

if TYPE_CHECKING:
    import psycopg

SINKS = "mssql_cdc_sinks"


@dataclass(frozen=True, slots=True)
class Sinks:
    """The control table.

    :param target: the target table's name for people
    """

    schema: str
    target: str

    def exist(self, cursor: psycopg.Cursor[Any]) -> bool:
        """Whether the control table is there."""
        return self._oid(cursor) is not None

    def make(self, cursor: psycopg.Cursor[Any]) -> None:
        """Create the control table unless it is there; to that of version 0.1.0 its owner adds a column."""
        if not self.exist(cursor):
            cursor.execute(
                f"CREATE TABLE {in_schema(self.schema, SINKS)} (sink text PRIMARY KEY, version bigint NOT NULL,"
                " marker jsonb, table_oid oid NOT NULL, is_empty boolean NOT NULL, attempt text,"
                " committed_at timestamptz, schemas jsonb)"
            )
        elif not self._has_schemas(cursor) and is_owner(cursor, self._oid(cursor)):
            cursor.execute(f"ALTER TABLE {in_schema(self.schema, SINKS)} ADD COLUMN schemas jsonb")

    def keep_schemas(self, cursor: psycopg.Cursor[Any]) -> bool:
        """Whether the control table has a column for schemas, or ``make`` gives it one."""
        return not self.exist(cursor) or self._has_schemas(cursor) or is_owner(cursor, self._oid(cursor))

    def run(self, cursor: psycopg.Cursor[Any], statement: str, *values: object) -> psycopg.Cursor[Any]:
        """Run a statement on the control table, with values.

        :param statement: with ``{sinks}`` in the table's place
        """
        # a % of a name would be taken for a place of a value
        sinks = in_schema(self.schema, SINKS).replace("%", "%%")
        return cursor.execute(statement.replace("{sinks}", sinks), values)

    def committed(
        self,
        cursor: psycopg.Cursor[Any],
        sink: str,
        *,
        marker: Marker | None,
        table_oid: int | None,
        is_empty: bool,
        attempt: str,
        schema: KeptSchema | None,
    ) -> None:
        """Write into a sink's row what a commit leaves.

        :param marker: None leaves the one that is there
        :param attempt: the staging table's name
        :param schema: to keep, if there is one
        """
        self.run(
            cursor,
            "UPDATE {sinks} SET version = version + 1, marker = COALESCE(%s::jsonb, marker), table_oid = %s,"
            " is_empty = %s, attempt = %s, committed_at = clock_timestamp() WHERE sink = %s",
            json.dumps(to_data(marker)) if marker else None,
            table_oid,
            is_empty,
            attempt,
            sink,
        )
        if schema is not None:
            self.run(
                cursor,
                "UPDATE {sinks} SET schemas = COALESCE(schemas, '{}') || jsonb_build_object(%s::text, %s::text)"
                " WHERE sink = %s",
                schema.hash,
                schema.canonical,
                sink,
            )

    def _oid(self, cursor: psycopg.Cursor[Any]) -> int | None:
        return find_table(cursor, self.schema, SINKS, self.target)

    def _has_schemas(self, cursor: psycopg.Cursor[Any]) -> bool:
        return has_column(cursor, self._oid(cursor), "schemas")
