"""From the rows of the catalogue statements to tables, capture instances and status."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from airflow_provider_mssql_cdc.core.checkpoint import Witness
from airflow_provider_mssql_cdc.core.database import DatabaseStatus, Matches, Probe, SourceTable
from airflow_provider_mssql_cdc.core.exceptions import TableNotFoundError
from airflow_provider_mssql_cdc.core.lsn import Lsn
from airflow_provider_mssql_cdc.core.table import CaptureInstance, Column, TableName, quote
from airflow_provider_mssql_cdc.hooks import statements
from airflow_provider_mssql_cdc.hooks.patterns import TablePattern

Row = tuple[Any, ...]

log = logging.getLogger(__name__)


def lsn(value: bytes | None) -> Lsn | None:
    """Return the LSN; None for NULL and for ten zero bytes, neither of which is a position."""
    if value is None:
        return None
    found = Lsn(bytes(value))
    return None if found.is_zero else found


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


def matches_of(
    rows: Iterable[Row], wanted: Sequence[TablePattern], database: str, names: Sequence[TablePattern] = ()
) -> Matches:
    """Read the rows of ``statements.tables``.

    :param names: of the tables that a parameter speaks of
    :raises TableNotFoundError: if no table is left
    """
    found: dict[int, SourceTable] = {}
    excluded: set[int] = set()
    used: set[int] = set()
    named: dict[int, int] = {}
    for ordinal, purpose, object_id, schema, table, tracked, *_ in rows:
        if purpose == statements.EXCLUDED:
            excluded.add(object_id)
        elif purpose == statements.NAMED:
            named[ordinal] = object_id
        else:
            used.add(ordinal)
            found[object_id] = SourceTable(TableName(schema, table), object_id, bool(tracked))
    tables = sorted(table for object_id, table in found.items() if object_id not in excluded)
    if not tables:
        raise TableNotFoundError(
            f"no user table of {database} matches {', '.join(pattern.text for pattern in wanted)}"
            + (" and is not excluded." if excluded else "."),
            advice="A bare name means the login's default schema; the login must be allowed to see the table.",
        )
    empty = tuple(pattern.text for ordinal, pattern in enumerate(wanted) if ordinal not in used)
    left = {table.object_id: table.name for table in tables}
    return Matches(
        tuple(tables),
        empty,
        {names[ordinal].text: left[object_id] for ordinal, object_id in named.items() if object_id in left},
    )


def instances_of(
    table_rows: Iterable[Row], column_rows: Iterable[Row], tables: Iterable[SourceTable], user: str
) -> list[CaptureInstance]:
    """Put the rows of ``statements.tables`` and ``statements.COLUMNS`` together.

    An instance whose change table the login may not see is left out, with a warning.

    :param user: for the GRANT in the warning
    """
    names = {table.object_id: table.name for table in tables}
    parts: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in column_rows:
        parts[row[1], row[0]].append(row)
    found: dict[int, CaptureInstance] = {}
    for _, _, source_id, _, _, _, name, object_id, created, start, net_changes, role in table_rows:
        if object_id is None or source_id not in names or object_id in found:
            continue
        columns = parts[object_id, statements.COLUMN]
        if not columns:
            log.warning(
                "%s may not see change table %s_CT, so its capture instance is left out: "
                "GRANT SELECT ON SCHEMA::[cdc] TO %s;",
                user,
                name,
                quote(user),
            )
            continue
        mark = lsn(start)
        found[object_id] = CaptureInstance(
            name=name,
            object_id=object_id,
            source=names[source_id],
            source_object_id=source_id,
            create_date=created,
            start_lsn=mark,
            min_lsn=mark,
            columns=tuple(sorted((_column(row) for row in columns), key=lambda column: column.ordinal)),
            index_key=_names(parts[object_id, statements.INDEX]),
            primary_key=_names(parts[object_id, statements.PRIMARY]),
            uncaptured=_names(parts[object_id, statements.UNCAPTURED]),
            supports_net_changes=bool(net_changes),
            role=role,
            has_command_id=bool(parts[object_id, statements.COMMAND_ID]),
        )
    return sorted(found.values(), key=lambda instance: (instance.source, instance.create_date, instance.object_id))


def _column(row: Row) -> Column:
    _, _, ordinal, name, column_id, type_name, length, precision, scale, nullable, collation, computed = row
    return Column(
        ordinal=ordinal,
        column_id=column_id,
        name=name,
        type=type_name.lower(),
        length=length,
        precision=precision,
        scale=scale,
        nullable=nullable is None or bool(nullable),
        collation=collation,
        computed=bool(computed),
        dropped=nullable is None,
    )


def _names(rows: Iterable[Row]) -> tuple[str, ...]:
    return tuple(row[3] for row in sorted(rows, key=lambda row: row[2]))


def probe_of(results: Sequence[Sequence[Row]], instances: Sequence[str]) -> Probe:
    """Read the result sets of ``statements.probe``."""
    cut, *events, marks, mapping = results
    by_kind: dict[int, list[Row]] = defaultdict(list)
    for row in mapping:
        by_kind[row[0]].append(row)
    newest = {instances[ordinal]: Lsn(bytes(value)) for rows in events for ordinal, value in rows if value is not None}
    witness = next((Witness(Lsn(bytes(row[1])), row[2]) for row in by_kind[1]), None)
    return Probe(
        cut=lsn(cut[0][0]),
        newest=newest,
        min_lsns={object_id: lsn(mark) for object_id, mark in marks},
        witness=witness,
        min_mapped_lsn=next((lsn(row[1]) for row in by_kind[2]), None),
        mapped={Lsn(bytes(row[1])): row[2] for row in by_kind[3]},
    )
