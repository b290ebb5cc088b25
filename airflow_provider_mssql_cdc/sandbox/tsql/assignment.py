"""Values on their way into a column: what does not fit is an error, never cut."""

from __future__ import annotations

import dataclasses

from airflow_provider_mssql_cdc.sandbox.collations import comparing
from airflow_provider_mssql_cdc.sandbox.engine.schema import ColumnDef
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.byte_forms import fit_binary
from airflow_provider_mssql_cdc.sandbox.tsql.convert import convert
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr
from airflow_provider_mssql_cdc.sandbox.tsql.literals import literal, text
from airflow_provider_mssql_cdc.sandbox.tsql.typing import LOB_NAMES, display, is_unicode, kind
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType

_NO_IMPLICIT = {("str", "bin"), ("bin", "time"), ("time", "int"), ("time", "dec"), ("time", "float"), ("guid", "bin")}


def assign(expr: Expr, column: ColumnDef, table: str) -> str:
    """An expression as DuckDB SQL of a column's storage form.

    :param table: the table's full name, for the error message
    :raises SqlError: 257 and 206 where there is no implicit conversion; when run: 2628 too long, 8115 out of range
    """
    target = column.type
    if expr.untyped:
        return literal(None, target)
    pair = (kind(expr.type), kind(target))
    if pair in _NO_IMPLICIT:
        raise SqlError.of(257, display(expr.type), display(target))
    try:
        if target.length not in (0, MAX) and target.name not in LOB_NAMES:
            return _fitted(expr, column, table)
        return convert(expr.sql, expr.type, target)
    except SqlError as error:
        if error.number != 529:
            raise
        raise SqlError.of(206, display(expr.type), display(target)) from None


def _fitted(expr: Expr, column: ColumnDef, table: str) -> str:
    target = column.type
    known = expr.value
    if kind(target) == "bin":
        if kind(expr.type) != "bin":
            return convert(expr.sql, expr.type, target)
        if 0 < expr.type.length <= target.length or (isinstance(known, bytes) and len(known) <= target.length):
            return fit_binary(expr.sql, expr.type, target)
        size, fitted = f"octet_length({expr.sql})", fit_binary(expr.sql, expr.type, target)
        shown = "''"
        raw = expr.sql
    else:
        utf8 = comparing.is_utf8(target)
        if (
            kind(expr.type) == "str"
            and expr.type.name == target.name
            and not utf8
            and 0 < expr.type.length <= target.length
        ):
            return convert(expr.sql, expr.type, target)
        if isinstance(known, str) and known.isascii() and len(known) <= target.length and target.name[-7:] == "varchar":
            return expr.sql
        wide = SqlType(
            "nvarchar" if is_unicode(target) else "varchar",
            MAX if kind(expr.type) == "str" else target.length,
            collation=target.collation,
        )
        raw = convert(expr.sql, expr.type, wide)
        measure = "t_u16" if is_unicode(target) else "strlen" if utf8 else "length"
        # trailing blanks that do not fit are dropped without an error
        size = f"{measure}(rtrim({raw}, ' '))"
        fitted = convert(raw, dataclasses.replace(wide, length=MAX), target)
        shown = f"left({raw}, {target.length})"
    place = f"'{table}', column '{column.name}'"
    message = (
        f"{text(f'String or binary data would be truncated in table {place}. Truncated value: ')}"
        f" || chr(39) || {shown} || chr(39) || '.'"
    )
    return f"CASE WHEN {size} > {target.length} THEN t_error(2628, {message}) ELSE {fitted} END"
