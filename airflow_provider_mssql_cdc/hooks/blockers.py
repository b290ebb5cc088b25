"""Tells which sessions have locks of a table, so that its definition cannot change, as far as a login may see them."""

from __future__ import annotations

import datetime
import re

from airflow_provider_mssql_cdc.core.database import AZURE_SQL_DATABASE
from airflow_provider_mssql_cdc.core.exceptions import CdcPermissionError, MsSqlCdcError
from airflow_provider_mssql_cdc.core.table import quote
from airflow_provider_mssql_cdc.hooks import statements
from airflow_provider_mssql_cdc.hooks.connection import Row
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook

_MOST_SHOWN = 3
_PERFORMANCE_STATE_SINCE = 16
_RPC = "RPC Event"
_ORPHANED = -2  # docs (sys.dm_tran_locks): the session of a distributed transaction that nobody belongs to any more

_NO_CODE = re.compile(r"'(?:[^']|'')*'?|\"[^\"]*\"?|\[[^\]]*\]?|--[^\n]*|/\*.*?(?:\*/|$)", re.DOTALL)
_WRITES = re.compile(r"\b(INSERT|UPDATE|DELETE|MERGE|TRUNCATE|ALTER|CREATE|DROP)\b", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]\w*")
_PROCEDURE = re.compile(r"[A-Za-z_][\w.]*")


def in_the_way(hook: MsSqlCdcHook, table: int) -> str:
    """One or two sentences for people: who has locks of a table now, or which right would show it. Raises nothing that
    the server says: what is told beside a failure is not to hide it.

    :param hook: that has waited for them
    :param table: its object id
    """
    try:
        try:
            rows = hook.query(statements.LOCKED_BY, (table,))
        except CdcPermissionError:
            return _right(hook)
        return " ".join([*(_told(row, _last(hook, row[0])) for row in rows[:_MOST_SHOWN]), *_more(rows)])
    except MsSqlCdcError as error:
        return f"Which session has locks of it could not be asked: {error.message}"


def _right(hook: MsSqlCdcHook) -> str:
    status, login = hook.database_status(), quote(hook.where.login)
    if status.engine_edition == AZURE_SQL_DATABASE:
        return f"Which session has locks of it is seen after GRANT VIEW DATABASE STATE TO {login}."
    state = "PERFORMANCE STATE" if status.major_version >= _PERFORMANCE_STATE_SINCE else "STATE"
    return f"Which session has locks of it is seen after GRANT VIEW SERVER {state} TO {login}, in master."


def _last(hook: MsSqlCdcHook, session: int) -> str:
    """What kind of statement a session's client has sent last; '' where that is not known. Never its text, which may
    hold values.
    """
    try:
        rows = hook.query(statements.LAST_SENT, (session,)) if session > 0 else []
    except MsSqlCdcError:
        return ""
    event, text = rows[0] if rows else ("", "")
    if event == _RPC:
        procedure = _PROCEDURE.match(text or "")
        return f", last called {procedure[0]}" if procedure else ""
    code = _NO_CODE.sub(" ", text or "")
    word = _WRITES.search(code) or _WORD.search(code)
    return f", last sent {word[0].upper()}" if word else ""


def _told(row: Row, last: str) -> str:
    session, login, host, program, seconds = row
    if session == _ORPHANED:
        return "A distributed transaction without a session (-2) has locks of it."
    said = [f"{what} {name!r}" for what, name in (("login", login), ("host", host), ("program", program)) if name]
    who = f"Session {session}" + (f" ({', '.join(said)})" if said else "")
    since = "" if seconds is None else f" in a transaction that is open for {datetime.timedelta(seconds=seconds)}"
    return f"{who} has locks of it{since}{last}."


def _more(rows: list[Row]) -> list[str]:
    if not rows:
        return ["No session is seen to have locks of it any more."]
    return [f"{len(rows) - _MOST_SHOWN} more have, too."] if len(rows) > _MOST_SHOWN else []
