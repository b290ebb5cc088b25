"""sp_spaceused of one table, in the pages that sys.dm_db_partition_stats counts."""

from __future__ import annotations

from airflow_provider_mssql_cdc.sandbox.catalog import objects
from airflow_provider_mssql_cdc.sandbox.catalog.arguments import Bound
from airflow_provider_mssql_cdc.sandbox.catalog.views import partition_pages
from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation, relation
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.executor import Executor

_PAGE = 8  # KB


def sp_spaceused(executor: Executor, database: Database, given: Bound) -> Relation:
    """Rows and space of a table (docs: sp_spaceused).

    :raises SqlError: 15009 where there is no such table, 15250 for one of another database
    """
    name = given.text("@objname")
    if name is None or set(given.values) - {"@objname", "@updateusage"}:
        raise unsupported("sp_spaceused other than of one table")
    parts = objects.parts_of(name)
    if parts is None or parts[2].startswith("#"):
        raise unsupported(f"sp_spaceused of {name}")
    if parts[0] and parts[0].casefold() != database.name.casefold():
        raise SqlError.of(15250)
    wanted = (fold(parts[1] or "dbo"), fold(parts[2]))
    pages = [
        (number, used, count, each.name)
        for each, number, used, count in partition_pages(executor.env, database)
        if (fold(each.schema), fold(each.name)) == wanted
    ]
    if not pages:
        raise SqlError.of(15009, name, database.name)
    _, data, rows, shown = min(pages)
    total = sum(used for _, used, _, _ in pages)
    sizes = [f"{_PAGE * size} KB" for size in (total, data, total - data, 0)]
    spec = (
        "name nvarchar(128), rows char(20), reserved varchar(18), data varchar(18), index_size varchar(18), "
        "unused varchar(18)"
    )
    return relation(spec, [[shown, f"{rows:<20}", *sizes]])
