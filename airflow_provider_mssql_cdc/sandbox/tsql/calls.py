"""EXEC and RPC: arguments, sp_executesql and prepared statements, and the procedures of the catalogue."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from airflow_provider_mssql_cdc.sandbox.catalog import procedures
from airflow_provider_mssql_cdc.sandbox.catalog.arguments import Argument
from airflow_provider_mssql_cdc.sandbox.catalog.functions import global_variable
from airflow_provider_mssql_cdc.sandbox.protocol import (
    Outcome,
    Parameter,
    ReturnStatus,
    ReturnValue,
    RowCount,
    SqlError,
)
from airflow_provider_mssql_cdc.sandbox.tsql import principals
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.ddl import data_type
from airflow_provider_mssql_cdc.sandbox.tsql.executor import Executor
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import Cursor, syntax_error, tokenize
from airflow_provider_mssql_cdc.sandbox.tsql.literals import literal_of
from airflow_provider_mssql_cdc.sandbox.tsql.script import Statement
from airflow_provider_mssql_cdc.sandbox.tsql.typing import INT, is_unicode, kind, nvarchar
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType

SPECIAL_PROCEDURES = {10: "sp_executesql", 11: "sp_prepare", 12: "sp_execute", 13: "sp_prepexec", 15: "sp_unprepare"}
_DEEPEST = 32


def execute(executor: Executor, statement: Statement) -> Iterator[Outcome]:
    """Run EXEC: a procedure, or a string."""
    cursor = statement.cursor()
    if (cursor.take("EXEC") or cursor.take("EXECUTE")) and cursor.at("AS"):
        principals.execute_as(executor, statement)
        yield RowCount()
        return
    result = ""
    if cursor.token.kind == "variable" and cursor.peek().text == "=":
        result = cursor.next().text[1:]
        cursor.next()
    if cursor.at("("):
        yield from _execute_string(executor, cursor)
        return
    if cursor.token.kind == "variable":
        name = str(executor.env.variable(cursor.next().text[1:])[1])
        parts = tuple(part.strip("[]") for part in name.split("."))
    else:
        parts = cursor.dotted()
    arguments = _arguments(executor, cursor)
    if executor.settings.fmtonly:
        return
    for outcome in _reported(executor, call(executor, parts, arguments), result):
        if isinstance(outcome, ReturnValue):
            target = arguments[outcome.ordinal].variable
            if target:
                executor.assign(target, outcome.value, Expr("", outcome.type))
            continue
        if isinstance(outcome, ReturnStatus) and result:
            executor.assign(result, outcome.value, Expr("", INT))
        yield outcome


def _reported(executor: Executor, outcomes: Iterator[Outcome], result: str) -> Iterator[Outcome]:
    """A call's outcomes; where it fails, its return status is 1 (A2 of the reference: return code)."""
    try:
        yield from outcomes
    except SqlError as error:
        if result and error.procedure:
            executor.assign(result, 1, Expr("", INT))
        raise


def _execute_string(executor: Executor, cursor: Cursor) -> Iterator[Outcome]:
    inner = cursor.group()
    cursor.end()
    expr = executor.evaluate(cursor.source(inner), cursor.token.line)
    text = executor.env.evaluate(Expr(expr.to(nvarchar(MAX)), nvarchar(MAX), constant=True))
    yield from _scoped(executor, str(text or ""), {})


def _scoped(executor: Executor, text: str, variables: dict[str, tuple[SqlType, Any]]) -> Iterator[Outcome]:
    """Run a batch with variables and SET options of its own: those of the caller hold again when it returns (docs, SET
    statements).

    :raises SqlError: 217 where batches call each other too deeply
    """
    env = executor.env
    if env.procedure_depth >= _DEEPEST:
        raise SqlError.of(217, _DEEPEST)
    outer, env.variables = env.variables, variables
    settings, isolation, dates = dataclasses.replace(executor.settings), env.isolation, env.dates
    timeout, identity = env.manager.lock_timeout, env.identity_insert_table
    env.forget()
    env.procedure_depth += 1
    try:
        yield from executor.run(text)
    finally:
        env.variables = outer
        env.leave()
        executor.settings, env.isolation = settings, isolation
        env.read_dates(dates)
        env.manager.lock_timeout, env.identity_insert_table = timeout, identity


def _arguments(executor: Executor, cursor: Cursor) -> list[Argument]:
    arguments: list[Argument] = []
    while cursor.token.kind != "end" and not cursor.at("WITH"):
        name = ""
        if cursor.token.kind == "variable" and cursor.peek().text == "=":
            name = cursor.next().text
            cursor.next()
        arguments.append(_argument(executor, cursor, name))
        if not cursor.take(","):
            break
    if cursor.take("WITH", "RECOMPILE"):
        pass
    cursor.end()
    return arguments


def _argument(executor: Executor, cursor: Cursor, name: str) -> Argument:
    token = cursor.next()
    if token.kind == "variable":
        if token.text.startswith("@@"):
            expr = global_variable(executor.env, token.text[2:].lower())
            return Argument(name, expr.type, executor.env.evaluate(expr))
        type_, value = executor.env.variable(token.text[1:])
        output = cursor.take("OUTPUT") or cursor.take("OUT")
        return Argument(name, type_, value, output, variable=token.text[1:] if output else "")
    if token.upper == "DEFAULT":
        return Argument(name, INT, None, default=True)
    if token.upper == "NULL":
        return Argument(name, nvarchar(1), None)
    if token.upper in ("-", "+") and cursor.token.kind == "number":
        token = cursor.next()
        expr = executor.evaluate(f"-{token.text}")
    elif token.kind in ("string", "number", "binary"):
        expr = executor.evaluate(token.text)
    elif token.is_name:
        return Argument(name, nvarchar(4000), token.name)  # a bare word is a string
    else:
        raise syntax_error(token)
    return Argument(name, expr.type, executor.env.evaluate(expr))


def rpc(executor: Executor, procedure: str | int, parameters: list[Parameter]) -> Iterator[Outcome]:
    """Run a procedure called by RPC."""
    if isinstance(procedure, int):
        if procedure not in SPECIAL_PROCEDURES:
            raise unsupported(f"the special procedure {procedure} (server cursors)")
        parts: tuple[str, ...] = (SPECIAL_PROCEDURES[procedure],)
    else:
        parts = Cursor(tokenize(procedure), procedure).dotted()
    arguments = []
    for each in parameters:
        name = each.name if not each.name or each.name.startswith("@") else f"@{each.name}"
        arguments.append(Argument(name, each.type, each.value, each.output, each.default))
    yield from call(executor, parts, arguments)


def call(executor: Executor, parts: tuple[str, ...], arguments: list[Argument]) -> Iterator[Outcome]:
    """Call a procedure by its name; OUTPUT values come back as ReturnValue with the argument's position."""
    name = parts[-1].lower()
    if name in _STATEMENTS:
        run, *needed = _STATEMENTS[name]
        if len(arguments) < len(needed):
            raise SqlError.of(201, name, needed[len(arguments)])
        yield from run(executor, arguments)
        return
    yield from procedures.call(executor, parts, arguments)


def _text(argument: Argument | None, name: str) -> str:
    if argument is None or not isinstance(argument.value, str):
        raise SqlError.of(214, name)
    return argument.value


def _declarations(argument: Argument | None, name: str) -> str:
    return "" if argument is None or argument.value is None else _text(argument, name)


def _pick(arguments: list[Argument], position: int, *names: str) -> Argument | None:
    for each in arguments:
        if each.name.lower() in names:
            return each
    if position < len(arguments) and (not arguments[position].name or arguments[position].name.lower() not in names):
        return arguments[position] if not arguments[position].name else None
    return None


def declared(text: str) -> list[tuple[str, SqlType, bool]]:
    """Parameter declarations: name, type, and whether OUTPUT."""
    cursor = Cursor(tokenize(text), text)
    result = []
    while cursor.token.kind != "end":
        token = cursor.next()
        if token.kind != "variable":
            raise syntax_error(token)
        cursor.take("AS")
        type_ = data_type(cursor)
        output = cursor.take("OUTPUT") or cursor.take("OUT")
        if cursor.take("READONLY"):
            raise unsupported("table-valued parameters")
        result.append((token.text[1:], type_, output))
        if not cursor.take(","):
            cursor.end()
    return result


def _run_text(
    executor: Executor, text: str, declarations: str, given: list[Argument], offset: int
) -> Iterator[Outcome]:
    expected = declared(declarations)
    variables: dict[str, tuple[SqlType, Any]] = {}
    outputs: list[tuple[int, str, SqlType]] = []
    for position, argument in enumerate(given):
        wanted = argument.name[1:].casefold() if argument.name else None
        index = (
            next((i for i, (n, _, _) in enumerate(expected) if n.casefold() == wanted), None) if wanted else position
        )
        if index is None or index >= len(expected):
            shown = argument.name or "(unnamed)"
            raise SqlError.of(8145, shown, "")
        name, type_, output = expected[index]
        variables[name.casefold()] = (type_, _as_type(executor, argument, type_))
        if output and argument.output:
            outputs.append((offset + position, name, type_))
    for name, _, _ in expected:
        if name.casefold() not in variables:
            message = (
                f"The parameterized query '({declarations}){text}' expects the parameter '@{name}', which "
                "was not supplied."
            )
            raise SqlError(8178, message[:2000])
    # the status of a call within the text is not the one of the text
    yield from (each for each in _scoped(executor, text, variables) if not isinstance(each, ReturnStatus))
    yield ReturnStatus(0)
    for position, name, type_ in outputs:
        yield ReturnValue(f"@{name}", type_, variables[name.casefold()][1], position)


def _as_type(executor: Executor, argument: Argument, type_: SqlType) -> Any:
    if argument.value is None or argument.type == type_:
        return argument.value
    if kind(argument.type) == kind(type_) == "str" and type_.length == MAX:
        return argument.value
    source = Expr(literal_of(argument.value, argument.type), argument.type, constant=True)
    return executor.env.evaluate(Expr(source.to(type_), type_, constant=True))


def _sp_executesql(executor: Executor, arguments: list[Argument]) -> Iterator[Outcome]:
    first, second = _pick(arguments, 0, "@stmt", "@statement"), _pick(arguments, 1, "@params", "@parameters")
    text = _text(first, "@statement")
    for argument, name in ((first, "@statement"), (second, "@parameters")):
        # docs: text that is not Unicode is an error here
        if argument is not None and argument.value is not None and not is_unicode(argument.type):
            raise SqlError.of(214, name)
    yield from _run_text(executor, text, _declarations(second, "@parameters"), arguments[2:], 2)


def _sp_prepare(executor: Executor, arguments: list[Argument]) -> Iterator[Outcome]:
    declarations, text = _declarations(arguments[1], "@params"), _text(arguments[2], "@stmt")
    handle = executor.prepared.add(text, declarations)
    yield ReturnStatus(0)
    yield ReturnValue(arguments[0].name or "@handle", INT, handle, 0)


def _prepared(executor: Executor, handle: Any) -> tuple[str, str]:
    found = executor.prepared.statements.get(handle)
    if found is None:
        raise SqlError.of(8179, handle)
    return found


def _sp_execute(executor: Executor, arguments: list[Argument]) -> Iterator[Outcome]:
    text, declarations = _prepared(executor, arguments[0].value)
    yield from _run_text(executor, text, declarations, arguments[1:], 1)


def _sp_prepexec(executor: Executor, arguments: list[Argument]) -> Iterator[Outcome]:
    # a handle passed in is one to drop
    executor.prepared.statements.pop(arguments[0].value, None)
    declarations, text = _declarations(arguments[1], "@params"), _text(arguments[2], "@stmt")
    handle = executor.prepared.add(text, declarations)
    outcomes = _run_text(executor, text, declarations, arguments[3:], 3)
    for outcome in outcomes:
        yield outcome
        if isinstance(outcome, ReturnStatus):
            yield ReturnValue(arguments[0].name or "@handle", INT, handle, 0)


def _sp_unprepare(executor: Executor, arguments: list[Argument]) -> Iterator[Outcome]:
    _prepared(executor, arguments[0].value)
    del executor.prepared.statements[arguments[0].value]
    yield ReturnStatus(0)


# what runs a statement, and the parameters that must be given
_STATEMENTS: dict[str, tuple[Any, ...]] = {
    "sp_executesql": (_sp_executesql, "@statement"),
    "sp_prepare": (_sp_prepare, "@handle", "@params", "@stmt"),
    "sp_execute": (_sp_execute, "@handle"),
    "sp_prepexec": (_sp_prepexec, "@handle", "@params", "@stmt"),
    "sp_unprepare": (_sp_unprepare, "@handle"),
}
