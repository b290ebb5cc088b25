"""SET: variables, options, isolation levels."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from airflow_provider_mssql_cdc.sandbox.protocol import IsolationLevel, Message, Outcome, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import languages
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.executor import Executor
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import Cursor, syntax_error
from airflow_provider_mssql_cdc.sandbox.tsql.script import Statement

# options of SQL-92 behaviour that are ON for every modern client, and change nothing in what the sandbox supports
_ANSI = frozenset((
    "ANSI_NULLS", "ANSI_WARNINGS", "ANSI_PADDING", "ANSI_NULL_DFLT_ON", "ANSI_NULL_DFLT_OFF", "ANSI_DEFAULTS",
    "ARITHABORT", "CONCAT_NULL_YIELDS_NULL", "QUOTED_IDENTIFIER", "NUMERIC_ROUNDABORT", "CURSOR_CLOSE_ON_COMMIT",
    "ARITHIGNORE",
))  # fmt: skip
# switching these would change results in ways that are not simulated
_MUST_STAY = {
    "ANSI_NULLS": True,
    "CONCAT_NULL_YIELDS_NULL": True,
    "QUOTED_IDENTIFIER": True,
    "NUMERIC_ROUNDABORT": False,
}
_TEXT_OPTIONS = frozenset({"TEXTSIZE", "DEADLOCK_PRIORITY", "CONTEXT_INFO"})
_DATE_OPTIONS = ("LANGUAGE", "DATEFORMAT", "DATEFIRST")
_FLAGS = ("NOCOUNT", "XACT_ABORT", "IMPLICIT_TRANSACTIONS", "FMTONLY")
_NOT_BUILT = ("NOEXEC", "PARSEONLY", "SHOWPLAN_ALL", "SHOWPLAN_XML", "STATISTICS")


def run_set(executor: Executor, statement: Statement) -> Iterator[Outcome]:
    """Run a SET statement."""
    cursor = statement.cursor()
    cursor.next()
    if cursor.token.kind == "variable":
        _assign(executor, cursor, statement)
        return
    if cursor.take("TRANSACTION", "ISOLATION", "LEVEL"):
        level = "_".join(token.upper for token in statement.tokens[4:])
        if level not in IsolationLevel.__members__ or level == "KEEP":
            raise syntax_error(cursor.token)
        executor.env.isolation = IsolationLevel[level]
        return
    if cursor.take("IDENTITY_INSERT"):
        _identity_insert(executor, cursor)
        return
    names = [cursor.name().upper()]
    while cursor.take(","):
        names.append(cursor.name().upper())
    value = cursor.position
    for name in names:
        cursor.position = value
        yield from _option(executor, name, cursor)


def _assign(executor: Executor, cursor: Cursor, statement: Statement) -> None:
    name = cursor.next().text[1:]
    operator = cursor.next()
    if operator.text not in ("=", "+=", "-=", "*=", "/=") or cursor.token.kind == "end":
        raise syntax_error(operator)
    text = cursor.text[cursor.token.start : statement.tokens[-1].end]
    if operator.text != "=":
        text = f"@{name} {operator.text[0]} ({text})"
    expr = executor.evaluate(text, statement.line)
    value = executor.reading(lambda: executor.env.evaluate(expr))
    executor.assign(name, value, expr)


def _identity_insert(executor: Executor, cursor: Cursor) -> None:
    parts = cursor.dotted()
    database, schema, name = ("", "", *parts)[-3:]
    found = executor.env.table((database, schema, name))
    if found is None:
        raise SqlError.of(1088, ".".join(parts))
    on, table = _on(cursor), found[1].table
    if on and not any(column.identity for column in table.columns):
        raise SqlError.of(8106, table.name)
    executor.env.identity_insert_table = table.object_id if on else None


def _on(cursor: Cursor) -> bool:
    if cursor.take("ON"):
        return True
    cursor.expect("OFF")
    return False


def _number(executor: Executor, cursor: Cursor) -> int:
    if cursor.token.kind == "variable":
        return int(executor.env.variable(cursor.next().text[1:])[1])
    sign = -1 if cursor.take("-") else 1
    token = cursor.next()
    if token.kind != "number":
        raise syntax_error(token)
    return sign * int(token.text)


def _date_option(executor: Executor, name: str, cursor: Cursor) -> Iterator[Outcome]:
    env, token = executor.env, cursor.next()
    given = str(env.variable(token.text[1:])[1]) if token.kind == "variable" else token.name
    if name == "LANGUAGE":
        language = languages.language_of(given)
        env.read_dates(languages.Dates.of(language))
        yield Message(5703, f"Changed language setting to {language.name}.", 0)
    elif name == "DATEFORMAT" and given.lower() in languages.FORMATS:
        env.read_dates(dataclasses.replace(env.dates, date_format=given.lower()))
    elif name == "DATEFIRST" and given in tuple("1234567"):
        env.read_dates(dataclasses.replace(env.dates, first_day=int(given)))
    else:
        raise unsupported(f"SET {name} {given}", token.line)


def _option(executor: Executor, name: str, cursor: Cursor) -> Iterator[Outcome]:
    settings = executor.settings
    if name in _ANSI:
        on = _on(cursor)
        if _MUST_STAY.get(name, on) != on:
            raise unsupported(f"SET {name} {'ON' if on else 'OFF'}", cursor.token.line)
    elif name in _FLAGS:
        setattr(settings, name.lower(), _on(cursor))
    elif name in _NOT_BUILT:
        raise unsupported(f"SET {name}", cursor.token.line)
    elif name == "ROWCOUNT":
        settings.rowcount = _number(executor, cursor)
    elif name == "LOCK_TIMEOUT":
        timeout = _number(executor, cursor)
        executor.env.manager.lock_timeout = None if timeout < 0 else timeout / 1000
    elif name in _DATE_OPTIONS:
        yield from _date_option(executor, name, cursor)
    elif name not in _TEXT_OPTIONS:
        raise SqlError.of(195, name, "SET option")
    yield from ()
