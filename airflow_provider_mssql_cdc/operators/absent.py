"""Tables that a load names and that are not there: what became of them, and what to do."""

from __future__ import annotations

from contextlib import suppress

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint
from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.database import DatabaseStatus
from airflow_provider_mssql_cdc.core.exceptions import CheckpointError, TableNotFoundError
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.operators.request import Request


def not_there(hook: MsSqlCdcHook, name: TableName, status: DatabaseStatus) -> TableNotFoundError:
    """The error of a table that the login does not see."""
    near = ", ".join(map(str, hook.similar_tables(name)))
    return TableNotFoundError(
        f"it does not exist in {status.name}, or {status.user} may not see it.",
        table=str(name),
        advice=(f"It sees {near}. " if near else "It sees no table of a name that is near. ")
        + "Correct tables, or GRANT SELECT on it; a pattern with * may match nothing.",
    )


def renamed(hook: MsSqlCdcHook, name: TableName, checkpoint: Checkpoint | None) -> TableNotFoundError | None:
    """The error of a table that has another name by now; None where it is gone, or nobody knows which one it was."""
    seen = checkpoint.seen_schema if checkpoint is not None else None
    now = hook.table_of(seen.source_object_id) if seen is not None and seen.source_object_id is not None else None
    if now is None:
        return None
    return TableNotFoundError(
        f"it is {now} now: it was renamed, or moved to another schema.",
        table=str(name),
        advice=f"Run `mssql-cdc checkpoint rename --to {now}` with --database, --table and --target of before, and "
        "name it in tables as that command says; else it is loaded anew, as another table.",
    )


def renamed_of_all(hook: MsSqlCdcHook, store: CheckpointStore, request: Request) -> TableNotFoundError | None:
    """The error of a table that has another name by now, where no table is there that the load names."""
    database = hook.database_status(captured=request.captured).name
    for pattern in (entry.pattern for entry in request.entries if entry.pattern.names_one):
        schema, table = pattern.parts
        if schema is not None:
            name = TableName(schema, table)
            with suppress(CheckpointError):
                stored = store.load(request.identity(database, name, request.options(name)))
                if (error := renamed(hook, name, stored)) is not None:
                    return error
    return None
