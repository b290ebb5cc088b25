"""RAISERROR and THROW."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from airflow_provider_mssql_cdc.sandbox.protocol import Message, Outcome, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.batch_errors import Thrown
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.executor import Executor
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import Cursor, Token, syntax_error
from airflow_provider_mssql_cdc.sandbox.tsql.script import Statement
from airflow_provider_mssql_cdc.sandbox.tsql.typing import kind
from airflow_provider_mssql_cdc.sandbox.types import SqlType

_PLACE = re.compile(r"%(?P<flags>[-+0# ]*)(?P<width>\*|\d*)(?:\.(?P<cut>\*|\d+))?(?:h|l|I64)?(?P<kind>[diosuxX%])")
_LONGEST = 2047


def raise_error(executor: Executor, statement: Statement) -> Iterator[Outcome]:
    """RAISERROR(text | number, severity, state, argument, ...) WITH option, ...

    :raises SqlError: 50000; 18054, 2732 for numbers without a message; 2754 for severities above 18
    """
    cursor = statement.cursor()
    cursor.expect("RAISERROR")
    values = _values(executor, statement, cursor.group())
    options = _options(cursor)
    if len(values) < 3:
        raise syntax_error(statement.tokens[-1])
    (first, _), (severity, _), (state, _), *arguments = values
    severity, state = max(int(severity), 0), int(state)
    state = 1 if state < 0 else state
    if not isinstance(first, str):
        raise _by_number(int(first), severity, state)
    if severity > 18 and not (executor.env.principal.sysadmin and "LOG" in options):
        raise SqlError.of(2754)
    text = formatted(first, arguments)
    if severity > 10:
        raise SqlError(50000, text, severity=severity, state=state, line=statement.line)
    yield Message(50000, text, severity, state, line=statement.line)
    executor.env.last_error = 50000 if "SETERROR" in options else 0


def _values(executor: Executor, statement: Statement, tokens: list[Token]) -> list[tuple[Any, SqlType]]:
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token.text == ",":
            parts.append([])
        else:
            parts[-1].append(token.text)
    if not all(parts):
        raise syntax_error(statement.tokens[-1])
    exprs = [executor.evaluate(" ".join(part), statement.line) for part in parts]
    return [(executor.env.evaluate(expr), expr.type) for expr in exprs]


def _options(cursor: Cursor) -> set[str]:
    options = set()
    if cursor.take("WITH"):
        while True:
            if cursor.token.upper not in ("LOG", "NOWAIT", "SETERROR"):
                raise syntax_error(cursor.token)
            options.add(cursor.next().upper)
            if not cursor.take(","):
                break
    cursor.end()
    return options


def _by_number(number: int, severity: int, state: int) -> SqlError:
    if number < 13000 or number == 50000:
        allowed = "The number must be from 13000 through 2147483647 and it cannot be 50000."
        return SqlError.of(2732, number, allowed)
    if number < 50000:
        return unsupported("RAISERROR with the number of a system message")
    return SqlError.of(18054, number, severity, state)


def formatted(text: str, arguments: list[tuple[Any, SqlType]]) -> str:
    """A message with its substitution parameters (docs: RAISERROR).

    :raises SqlError: 2786 where a value is not of the type that its place asks for
    """
    left = list(enumerate(arguments, 1))

    def taken(*kinds: str) -> Any:
        if not left:
            return None
        place, (value, type_) = left.pop(0)
        if value is not None and kind(type_) not in kinds:
            raise SqlError.of(2786, place)
        return value

    def filled(match: re.Match[str]) -> str:
        if match["kind"] == "%":
            return "%"
        width, cut = (str(taken("int")) if each == "*" else each or "" for each in (match["width"], match["cut"]))
        value = taken("str") if match["kind"] == "s" else taken("int", "bit")
        flags = match["flags"]
        if value is None or match["kind"] == "s":
            shown = "(null)" if value is None else value
            return f"%{'-' if '-' in flags else ''}{width}{f'.{cut}' if cut else ''}s" % shown
        number = int(value)
        if match["kind"] in "uoxX" and number < 0:
            number += 1 << 32  # docs: these are unsigned
        return f"%{flags}{width}{f'.{cut}' if cut else ''}{match['kind']}" % number

    shown = _PLACE.sub(filled, text)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 3]}..."


def throw(executor: Executor, statement: Statement) -> Iterator[Outcome]:
    """THROW number, text, state; or, in a CATCH block, THROW alone.

    :raises SqlError: the error; 10704 outside a CATCH block; 35100 for numbers below 50000
    """
    if len(statement.tokens) == 1:
        if not executor.env.caught:
            raise SqlError.of(10704)
        old = executor.env.caught[-1]
        raise Thrown(
            old.number, old.text, severity=old.severity, state=old.state, procedure=old.procedure, line=old.line
        )
    values = _values(executor, statement, list(statement.tokens[1:]))
    if len(values) != 3:
        raise syntax_error(statement.tokens[-1])
    number, text, state = (value for value, _ in values)
    if not 50000 <= int(number) <= 2147483647:
        raise SqlError.of(35100, number)
    yield from ()
    raise Thrown(int(number), str(text), severity=16, state=int(state), line=statement.line)
