"""From the rows of the catalogue statements to tables, capture instances and status."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from airflow_provider_mssql_cdc.core import catalog
from airflow_provider_mssql_cdc.core.catalog import lsn
from airflow_provider_mssql_cdc.core.database import ChangeTables, DatabaseStatus, Matches, SourceTable
from airflow_provider_mssql_cdc.core.exceptions import TableNotFoundError
from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.patterns import TablePattern
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.table import TableName, quote
from airflow_provider_mssql_cdc.hooks import statements

Row = tuple[Any, ...]

log = logging.getLogger(__name__)


def status_of(row: Row) -> DatabaseStatus:
    """Read the row of ``statements.STATUS``."""
    (name, user, enabled, now, offset, collation, version, edition, engine, *rest) = row
    retention, fork, text_size, max_lsn, max_time, min_lsn = rest
    return DatabaseStatus(
        name=name,
        user=user,
        cdc_enabled=bool(enabled),
        max_lsn=lsn(max_lsn),
        max_lsn_time=max_time,
        min_mapped_lsn=lsn(min_lsn),
        retention_minutes=retention,
        server_time=now,
        utc_offset_minutes=offset,
        collation=collation,
        version=version,
        edition=edition,
        engine_edition=engine,
        recovery_fork_guid=None if fork is None else str(fork).upper(),
        max_text_repl_size=text_size,
    )


def matches_of(rows: Iterable[Row], wanted: Sequence[TablePattern], database: str) -> Matches:
    """Read the rows of ``statements.tables``.

    :raises TableNotFoundError: if no table is left
    """
    found: dict[int, SourceTable] = {}
    excluded: set[int] = set()
    used: dict[int, set[int]] = defaultdict(set)
    for ordinal, purpose, object_id, schema, table, tracked, *_ in rows:
        if purpose == statements.EXCLUDED:
            excluded.add(object_id)
        else:
            used[object_id].add(ordinal)
            found[object_id] = SourceTable(TableName(schema, table), object_id, bool(tracked))
    tables = sorted(table for object_id, table in found.items() if object_id not in excluded)
    if not tables:
        raise TableNotFoundError(
            f"no user table of {database} matches {', '.join(pattern.text for pattern in wanted)}"
            + (" and is not excluded." if excluded else "."),
            advice="A bare name means the login's default schema; the login must be allowed to see the table.",
        )
    empty = tuple(pattern.text for n, pattern in enumerate(wanted) if not any(n in each for each in used.values()))
    return Matches(tuple(tables), empty, {table.name: tuple(sorted(used[table.object_id])) for table in tables})


def instances_of(
    table_rows: Iterable[Row], column_rows: Iterable[Row], tables: Iterable[SourceTable], user: str
) -> list[CaptureInstance]:
    """Put the rows of ``statements.tables`` and ``statements.COLUMNS`` together.

    An instance whose change table the login may not see is left out, with a warning.

    :param user: for the GRANT in the warning
    """
    names = {table.object_id: table.name for table in tables}
    parts: dict[int, list[Row]] = defaultdict(list)
    for row in column_rows:
        parts[row[1]].append(row)
    found: dict[int, CaptureInstance] = {}
    for _, _, source_id, _, _, _, name, object_id, created, start, *more in table_rows:
        net_changes, role, index, filegroup, partition_switch, drop_pending, end = more
        if object_id is None or source_id not in names or object_id in found:
            continue
        instance = catalog.instance(
            name,
            names[source_id],
            source_id,
            created,
            start,
            parts[object_id],
            net_changes=bool(net_changes),
            role=role,
            index=index,
            filegroup=filegroup,
            partition_switch=bool(partition_switch),
            drop_pending=bool(drop_pending),
            end=end,
        )
        if instance is None:
            log.warning(
                "%s may not see change table %s_CT, so its capture instance is left out: "
                "GRANT SELECT ON SCHEMA::[cdc] TO %s;",
                user,
                name,
                quote(user),
            )
            continue
        found[object_id] = instance
    return sorted(found.values(), key=lambda instance: (instance.source, instance.create_date, instance.object_id))


def probe_of(results: Sequence[Sequence[Row]], instances: Sequence[str]) -> ChangeTables:
    """Read the result sets of ``statements.probe``."""
    cut, *events, marks, mapping = results
    by_kind: dict[int, list[Row]] = defaultdict(list)
    for row in mapping:
        by_kind[row[0]].append(row)
    newest = {instances[ordinal]: Lsn(bytes(value)) for rows in events for ordinal, value in rows if value is not None}
    witness = next((Witness(Lsn(bytes(row[1])), row[2]) for row in by_kind[1] if row[2] is not None), None)
    return ChangeTables(
        cut=lsn(cut[0][0]),
        newest=newest,
        min_lsns={object_id: lsn(mark) for object_id, mark in marks},
        witness=witness,
        min_mapped_lsn=next((lsn(row[1]) for row in by_kind[3]), None),
        mapped={Lsn(bytes(row[1])): row[2] for row in by_kind[2] if row[2] is not None},
    )
