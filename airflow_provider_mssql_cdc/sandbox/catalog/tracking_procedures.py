"""Procedures of Change Tracking: cleanup by hand (docs: sys.sp_flush_CT_internal_table_on_demand)."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_provider_mssql_cdc.sandbox.catalog import objects
from airflow_provider_mssql_cdc.sandbox.catalog.arguments import Bound, Procedure
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database
from airflow_provider_mssql_cdc.sandbox.engine.tracking.cleanup import clean
from airflow_provider_mssql_cdc.sandbox.protocol import Message, Outcome, ReturnValue, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.executor import Executor
from airflow_provider_mssql_cdc.sandbox.tsql.typing import BIGINT


def _flush(executor: Executor, database: Database, given: Bound) -> Iterator[Outcome]:
    env, name = executor.env, given.text("@tabletoclean")
    if env.trancount:
        raise unsupported("a cleanup of Change Tracking in a transaction")
    tables = None
    if name is not None:
        parts = objects.parts_of(name)
        found = None if parts is None else env.table(parts)
        if found is None:
            raise SqlError.of(22981)
        if found[1].table.object_id not in env.catalog(database).tracked:
            raise SqlError.of(22105, name)
        tables = [found[1].table.object_id]
    elif database.tracking.options is None:
        raise SqlError.of(22105, database.name)
    done = clean(env.instance.storage, database, tables)
    for each in done:
        yield Message(0, f"Cleanup Watermark = {each.version}", 0)
        yield Message(0, f"Internal Change Tracking table name : {each.side_name}", 0)
        yield Message(0, f"Total rows deleted: {each.rows}.", 0)
    if "@deletedrowcount" in given.positions:
        total = sum(each.rows for each in done)
        yield ReturnValue("@DeletedRowCount", BIGINT, total, given.positions["@deletedrowcount"])


TRACKING_PROCEDURES = {
    "sp_flush_ct_internal_table_on_demand": Procedure("@tabletoclean, @deletedrowcount", _flush, "db_owner"),
}
