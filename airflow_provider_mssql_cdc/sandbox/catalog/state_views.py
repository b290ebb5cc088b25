"""What sessions do now: who has locks of tables or waits for them, what is open, and what each client sent last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation, relation
from airflow_provider_mssql_cdc.sandbox.engine.lock_holder import LockHolder
from airflow_provider_mssql_cdc.sandbox.engine.locks import Held
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment

INPUT_BUFFER = "dm_exec_input_buffer"
_INPUT_BUFFER_TEXT = 4000
_STATE = "VIEW SERVER PERFORMANCE STATE"


def _require_state(env: Environment) -> None:
    if not env.has_server_right(_STATE):
        raise SqlError.of(300, _STATE if env.instance.version.number >= (16,) else "VIEW SERVER STATE")


def locks(env: Environment, database: Database) -> Relation:
    """sys.dm_tran_locks: of user tables, and of databases that one transaction has for itself; none of rows."""
    _require_state(env)
    spec = (
        "resource_type nvarchar(60)!, resource_database_id int!, resource_associated_entity_id bigint, "
        "request_mode nvarchar(60)!, request_type nvarchar(60)!, request_status nvarchar(60)!, "
        "request_session_id int!, request_owner_type nvarchar(60)!, request_owner_id bigint"
    )
    data = []
    for each in list(env.instance.storage.databases.values()):
        for owner, held, wanted in each.locks.now():
            if not isinstance(owner, LockHolder):
                continue
            transaction = owner.open
            # a statement that only reads has none here
            number = 0 if transaction is None else transaction.number
            for table, mode, status in _requests(held, wanted):
                place = ("DATABASE", each.database_id, 0) if table is None else ("OBJECT", each.database_id, table)
                data.append([*place, mode, "LOCK", status, owner.session_id, "TRANSACTION", number])
    return relation(spec, data)


def _requests(held: Held, wanted: tuple[int | None, str] | None) -> Iterator[tuple[int | None, str, str]]:
    """Table (None for the database), mode and status of each lock that somebody has or waits for."""
    asks_to_change = {wanted[0]} if wanted is not None and wanted[1] == "Sch-M" else set()
    changed = held.changing - asks_to_change
    granted: dict[int | None, str] = {None: "X"} if held.whole else {}
    for table in held.tables | changed:
        if table in changed:
            granted[table] = "Sch-M"
        elif table in held.closed:
            granted[table] = "X"
        elif table in held.written:
            granted[table] = "SIX" if table in held.kept else "IX"
        else:
            granted[table] = "S" if table in held.kept else "IS"
    found = [(table, mode, "GRANT") for table, mode in granted.items()]
    if wanted is not None:
        found.append((*wanted, "CONVERT" if wanted[0] in granted else "WAIT"))
    # what stands for the tables of CDC is no table
    yield from (each for each in found if each[0] is None or each[0] > 0)


def transactions(env: Environment, database: Database) -> Relation:
    """sys.dm_tran_active_transactions"""
    _require_state(env)
    opened = [info.holder.open for info in list(env.instance.sessions.values()) if info.holder is not None]
    data = [[each.number, each.started] for each in opened if each is not None]
    return relation("transaction_id bigint!, transaction_begin_time datetime!", data)


def input_buffer(env: Environment, arguments: list[Any]) -> Relation:
    """sys.dm_exec_input_buffer(session_id, request_id)

    :raises SqlError: 313
    """
    if len(arguments) != 2:
        raise SqlError.of(313, f"sys.{INPUT_BUFFER}")
    info = env.instance.sessions.get(int(arguments[0] or 0))
    if info is None or info.sent is None:
        data = []
    else:
        if info is not env.info:
            _require_state(env)
        kind, text = info.sent
        data = [[kind, 0, text[:_INPUT_BUFFER_TEXT]]]
    return relation("event_type nvarchar(256), parameters smallint, event_info nvarchar(max)", data)
