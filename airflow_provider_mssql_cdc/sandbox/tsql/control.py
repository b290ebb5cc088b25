"""IF, WHILE, TRY and WAITFOR: which statements of a batch run, how often, and what takes their errors."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Generator, Iterator

import duckdb

from airflow_provider_mssql_cdc.sandbox.protocol import Outcome, RowCount, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.batch_errors import Caught
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.executor import Executor
from airflow_provider_mssql_cdc.sandbox.tsql.expressions import predicate
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import syntax_error
from airflow_provider_mssql_cdc.sandbox.tsql.parsing import parse
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Scope
from airflow_provider_mssql_cdc.sandbox.tsql.script import Block, If, Node, Statement, Try, While

_DELAY = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2}(?:\.\d{1,3})?))?")


class _Break(Exception):
    """BREAK was run."""


class _Continue(Exception):
    """CONTINUE was run."""


def run_node(executor: Executor, node: Node) -> Iterator[Outcome]:
    """Run a statement, or a group of them."""
    if isinstance(node, Block):
        for each in node.body:
            yield from run_node(executor, each)
    elif isinstance(node, If):
        holds = yield from _holds(executor, node.condition, node.line)
        branch = node.then if holds else node.otherwise if holds is False else None
        if branch is not None:
            yield from run_node(executor, branch)
    elif isinstance(node, While):
        yield from _loop(executor, node)
    elif isinstance(node, Try):
        yield from _try(executor, node)
    elif node.verb in ("BREAK", "CONTINUE"):
        raise _Break if node.verb == "BREAK" else _Continue
    else:
        yield from executor.statement(node)


def _holds(executor: Executor, text: str, line: int) -> Generator[Outcome, None, bool | None]:
    """Work a condition out; None where that fails."""
    try:
        tree = parse(f"SELECT CASE WHEN {text} THEN 1 END", line)
        sql = predicate(executor.context(), Scope(), tree.expressions[0].args["ifs"][0].this)
        return bool(executor.env.fetchall(f"SELECT CASE WHEN {sql} THEN 1 ELSE 0 END")[0][0])
    except (SqlError, duckdb.Error) as error:
        yield from executor.failed(error, line)
        return None
    finally:
        executor.env.forget()


def _loop(executor: Executor, node: While) -> Iterator[Outcome]:
    with contextlib.suppress(_Break):
        while not executor.env.cancelled.is_set() and (yield from _holds(executor, node.condition, node.line)):
            with contextlib.suppress(_Continue):
                yield from run_node(executor, node.body)


def _try(executor: Executor, node: Try) -> Iterator[Outcome]:
    env = executor.env
    env.tries.append(env.procedure_depth)
    try:
        yield from run_node(executor, node.body)
        return
    except Caught as caught:
        error = caught.error
    finally:
        env.tries.pop()
    env.forget()
    env.caught.append(error)
    try:
        yield from run_node(executor, node.handler)
    finally:
        env.caught.pop()


def wait_for(executor: Executor, statement: Statement) -> Iterator[Outcome]:
    """WAITFOR DELAY 'hh:mm:ss'

    :raises SqlError: 148 where the text is no time
    """
    cursor = statement.cursor()
    cursor.expect("WAITFOR")
    if not cursor.take("DELAY"):
        raise unsupported("WAITFOR other than DELAY", statement.line)
    token = cursor.next()
    cursor.end()
    if token.kind not in ("string", "variable"):
        raise syntax_error(token)
    text = token.name if token.kind == "string" else str(executor.env.variable(token.text[1:])[1])
    match = _DELAY.fullmatch(text)
    if match is None:
        raise SqlError.of(148, text, line=token.line)
    seconds = int(match[1]) * 3600 + int(match[2]) * 60 + float(match[3] or 0)
    executor.env.cancelled.wait(seconds)
    yield RowCount()
