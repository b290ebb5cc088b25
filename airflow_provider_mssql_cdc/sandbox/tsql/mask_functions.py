"""The functions of dynamic data masks: their grammar, and what they make of a value (docs: dynamic data masking)."""

from __future__ import annotations

import re

from airflow_provider_mssql_cdc.sandbox.tsql.convert import convert, unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import Cursor, syntax_error
from airflow_provider_mssql_cdc.sandbox.tsql.literals import text
from airflow_provider_mssql_cdc.sandbox.tsql.typing import INT, display, duck, is_unicode, kind
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType

DEFAULT = "default()"
"""Masks an expression over masked columns, whatever masks these have."""

_DEFAULT = re.compile(r"\s*default\s*\(\s*\)\s*", re.IGNORECASE)
_EMAIL = re.compile(r"\s*email\s*\(\s*\)\s*", re.IGNORECASE)
_PARTIAL = re.compile(r'\s*partial\s*\(\s*(\d+)\s*,\s*"([^"]*)"\s*,\s*(\d+)\s*\)\s*', re.IGNORECASE)
_RANDOM = re.compile(r"\s*random\s*\(\s*(-?\d+)\s*,\s*(-?\d+)\s*\)\s*", re.IGNORECASE)
_NUMBERS = ("int", "dec", "float")
_LONGEST = 4
_MIDNIGHT = "1900-01-01 00:00:00"


def mask_of(cursor: Cursor, type_: SqlType | None) -> str:
    """Read ``WITH (FUNCTION = '...')`` of a masked column.

    :param type_: of the column; None for a computed one
    :raises Unsupported: for a function that the column cannot have, or that the sandbox does not have
    """
    cursor.expect("WITH", "(", "FUNCTION", "=")
    token = cursor.next()
    if token.kind != "string":
        raise syntax_error(token)
    cursor.expect(")")
    function = token.name
    if type_ is None or not _fits(function, type_):
        of = "a computed column" if type_ is None else display(type_)
        raise unsupported(f"the data mask {function} of {of}", token.line)
    return function


def _fits(function: str, type_: SqlType) -> bool:
    family = kind(type_)
    if _DEFAULT.fullmatch(function):
        return _has_default(type_)
    if _EMAIL.fullmatch(function) or _PARTIAL.fullmatch(function):
        return family == "str" and type_.name not in ("text", "ntext", "xml")
    found = _RANDOM.fullmatch(function)
    return found is not None and family in _NUMBERS and int(found[1]) <= int(found[2])


def _has_default(type_: SqlType) -> bool:
    """Whether it is known what default() shows: not which byte stands for binary values, nor anything of others."""
    return kind(type_) in ("str", "bit", "time", *_NUMBERS) and type_.name != "xml"


def shown(function: str, sql: str, type_: SqlType) -> str:
    """What a mask shows of a value; NULL stays NULL.

    :param sql: the value as DuckDB SQL
    :raises Unsupported: where that is not known
    """
    return f"CASE WHEN {sql} IS NOT NULL THEN {_shown(function, sql, type_)} END"


def _shown(function: str, sql: str, type_: SqlType) -> str:
    if _EMAIL.fullmatch(function):
        return _text(f"left({sql}, 1) || 'XXX@XXXX.com'", type_)
    if partial := _PARTIAL.fullmatch(function):
        before, between, after = int(partial[1]), text(partial[2]), int(partial[3])
        # docs: of a value that is too short, a part of what would be shown is not; which part is not said
        short = text("not supported by the sandbox: partial() of a value that is shorter than what it shows")
        whole = f"left({sql}, {before}) || {between} || right({sql}, {after})"
        return _text(f"CASE WHEN length({sql}) < {before + after} THEN t_error(50000, {short}) ELSE {whole} END", type_)
    if drawn := _RANDOM.fullmatch(function):
        low, high = int(drawn[1]), int(drawn[2])
        if kind(type_) == "int":
            return f"CAST(floor(random() * {high - low + 1}) + {low} AS {duck(type_)})"
        return f"CAST(random() * {high - low} + {low} AS {duck(type_)})"
    return _default(type_)


def _text(sql: str, type_: SqlType) -> str:
    return convert(sql, SqlType("nvarchar" if is_unicode(type_) else "varchar", MAX), type_)


def _default(type_: SqlType) -> str:
    if not _has_default(type_):
        raise unsupported(f"what a data mask shows of {display(type_)}")
    if kind(type_) == "str":
        fixed = 0 < type_.length < _LONGEST
        return _text(text("x" * (type_.length if fixed else _LONGEST)), type_)
    if kind(type_) == "time":
        moment = _MIDNIGHT[:10] if type_.name == "date" else _MIDNIGHT[11:] if type_.name == "time" else _MIDNIGHT
        return convert(text(moment), SqlType("varchar", len(moment)), type_, style=121)
    return convert("0", INT, type_)
