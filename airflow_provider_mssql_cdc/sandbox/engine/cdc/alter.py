"""ALTER COLUMN on a change table: the rows captured so far take the new type, or the capture stops."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.engine.cdc.instance import CapturedColumn
from airflow_provider_mssql_cdc.sandbox.engine.macros import RAISED, create_macros
from airflow_provider_mssql_cdc.sandbox.engine.schema import ColumnDef
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.assignment import assign
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr


def converted(capture_instance: str, before: CapturedColumn, after: CapturedColumn) -> Callable[[pa.Array], pa.Array]:
    """How the values of a captured column take another type: as those of the source did.

    :returns: a function that raises SqlError 22976 where a value does not fit, or there is no such conversion
    """
    connection = duckdb.connect(config={"threads": 1})
    create_macros(connection)

    def convert(values: pa.Array) -> pa.Array:
        connection.register("captured", pa.table({"v": values}))
        try:
            column = ColumnDef(after.column_id, after.name, after.type)
            sql = assign(Expr("v", before.type), column, f"cdc.{capture_instance}_CT")
            rows = connection.sql(f"SELECT {sql} AS v FROM captured").to_arrow_table()
        except (duckdb.Error, SqlError) as reason:
            raised = RAISED.search(str(reason))
            text = raised[2].strip() if raised else reason
            raise SqlError.of(22976, before.name, capture_instance, after.type.name, text) from reason
        return pa.concat_arrays(rows.column(0).cast(after.type.arrow).chunks)

    return convert
