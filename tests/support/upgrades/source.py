"""A source database as data: taken out of a sandbox into JSON, and put into another one as it was."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.engine.cdc.changes import ChangeRows
from airflow_provider_mssql_cdc.sandbox.engine.cdc.mapping import MappingRow
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from tests.support.upgrades.cases import BY_NAME, DATABASE

COLUMNS = ("id", "name", "note", "amount", "seen", "email")
"""Of each source table."""


def take(server: Sandbox, cuts: list[str]) -> dict[str, Any]:
    """Everything that a load reads of the database.

    :param cuts: positions to which loads are to go
    """
    cdc = server.cdc(DATABASE)
    return {
        "recovery_fork": server.instance.storage.database(DATABASE).recovery_fork_guid,
        "cuts": cuts,
        "mapping": [[plain(value) for value in row] for row in cdc._mapping.rows()],
        "tables": {
            instance.source.name: {
                "instance": instance.capture_instance,
                "object_id": instance.change_table_object_id,
                "create_date": plain(instance.create_date),
                "start_lsn": plain(instance.start_lsn),
                "changes": [
                    [plain(value) for value in row.values()]
                    for chunk in instance.changes.chunks
                    for row in chunk.rows.to_pylist()
                ],
                "rows": [
                    [plain(value) for value in row.values()]
                    for row in server.execute(f"SELECT * FROM lab.{instance.source.name} ORDER BY id", DATABASE)[
                        0
                    ].to_pylist()
                ],
            }
            for instance in cdc.instances
        },
    }


def put(server: Sandbox, data: dict[str, Any]) -> None:
    """Make the database as it was: the rows of its tables at the end, its change tables, mapping and recovery fork."""
    server.create_database(DATABASE)
    server.execute("CREATE SCHEMA lab", DATABASE)
    server.execute("EXEC sys.sp_cdc_enable_db", DATABASE)
    for name, table in data["tables"].items():
        server.execute(BY_NAME[name].ddl, DATABASE)
        rows = [dict(zip(COLUMNS, map(value, row), strict=True)) for row in table["rows"]]
        server.seed(DATABASE, f"lab.{name}", pa.Table.from_pylist(rows))
        server.execute(
            f"EXEC sys.sp_cdc_enable_table @source_schema = N'lab', @source_name = N'{name}', @role_name = NULL,"
            f" @capture_instance = N'{table['instance']}', @supports_net_changes = 0",
            DATABASE,
        )
    cdc = server.cdc(DATABASE)
    cdc._mapping.extend(MappingRow(*map(value, row)) for row in data["mapping"])
    server.instance.storage.database(DATABASE).recovery_fork_guid = data["recovery_fork"]
    for instance in cdc.instances:
        table = data["tables"][instance.source.name]
        instance.change_table_object_id = table["object_id"]
        instance.create_date, instance.start_lsn = value(table["create_date"]), value(table["start_lsn"])
        fields = [pa.field(column.name, column.type.arrow) for column in instance.change_columns]
        read = [list(map(value, row)) for row in table["changes"]]
        arrays = [pa.array([row[place] for row in read], f.type) for place, f in enumerate(fields)]
        instance.changes = ChangeRows().appended(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)))


def plain(found: Any) -> Any:
    """A value as JSON."""
    match found:
        case bytes() | bytearray():
            return {"bytes": found.hex()}
        case datetime.datetime():
            return {"time": found.isoformat()}
        case decimal.Decimal():
            return {"decimal": str(found)}
        case list():
            return [plain(each) for each in found]
        case _:
            return found


def value(stored: Any) -> Any:
    """What ``plain`` was given."""
    match stored:
        case {"bytes": text}:
            return bytes.fromhex(text)
        case {"time": text}:
            return datetime.datetime.fromisoformat(text)
        case {"decimal": text}:
            return decimal.Decimal(text)
        case list():
            return [value(each) for each in stored]
        case _:
            return stored
