"""Functions over dates and times; those that ask for the clock give one value per statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.convert import added, convert, shown_ticks, to_ticks, unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr
from airflow_provider_mssql_cdc.sandbox.tsql.literals import text
from airflow_provider_mssql_cdc.sandbox.tsql.scope import Context, Scope
from airflow_provider_mssql_cdc.sandbox.tsql.typing import BIGINT, DATE, DATETIME, INT, display, duck, kind, nvarchar
from airflow_provider_mssql_cdc.sandbox.types import SqlType

Compile = Callable[[Context, Scope, Any], Expr]
_DATETIME2 = SqlType("datetime2", 0, 0, 7)

_PARTS = {
    word: part
    for part, words in {
        "year": "year yy yyyy", "quarter": "quarter qq q", "month": "month mm m", "day": "day dd d",
        "week": "week wk ww", "dayofyear": "dayofyear dy y", "weekday": "weekday dw", "hour": "hour hh",
        "minute": "minute mi n", "second": "second ss s", "millisecond": "millisecond ms",
        "microsecond": "microsecond mcs",
        "nanosecond": "nanosecond ns", "tzoffset": "tzoffset tz",
    }.items()
    for word in words.split()
}  # fmt: skip
_TICKS = {
    "week": 6048000000000, "weekday": 864000000000, "day": 864000000000, "dayofyear": 864000000000,
    "hour": 36000000000, "minute": 600000000, "second": 10000000, "millisecond": 10000, "microsecond": 10,
}  # fmt: skip


def part_of(node: exp.Expr) -> str:
    """A datepart by its full name.

    :raises SqlError: 155
    """
    part = _PARTS.get(node.name.lower()) if isinstance(node, exp.Column | exp.Var | exp.Identifier) else None
    if part is None:
        raise SqlError.of(155, node.name)
    return part


def _temporal(value: Expr) -> Expr:
    if kind(value.type) == "time":
        return value
    if kind(value.type) == "str":
        return Expr(value.to(_DATETIME2), _DATETIME2, value.nullable, constant=value.constant)
    return Expr(value.to(DATETIME), DATETIME, value.nullable, constant=value.constant)


def _dateadd(ctx: Context, scope: Scope, nodes: list[Any], scalar: Compile) -> Expr:
    part, count, value = part_of(nodes[0]), scalar(ctx, scope, nodes[1]), scalar(ctx, scope, nodes[2])
    if kind(value.type) == "str":  # docs: DATEADD reads a text as datetime
        value = Expr(value.to(DATETIME), DATETIME, value.nullable, constant=value.constant)
    value = _temporal(value)
    number = f"CAST({count.to(INT)} AS BIGINT)"
    ticks = shown_ticks(value.sql, value.type)
    if part in ("year", "quarter", "month"):
        months = {"year": 12, "quarter": 3, "month": 1}[part]
        moved = f"t_ticks(t_timestamp({ticks}) + to_months(CAST({number} * {months} AS INTEGER))) + ({ticks}) % 10"
    elif part == "nanosecond":
        moved = f"({ticks} + {number} // 100)"
    elif part in _TICKS:
        moved = f"({ticks} + {number} * {_TICKS[part]})"
    else:
        raise SqlError.of(9810, part, "dateadd", display(value.type))
    if value.type.name == "datetimeoffset":
        moved = added(f"({moved})", value.type)
        offset = f"({value.sql}).offset_minutes"
        sql = (
            f"CASE WHEN {value.sql} IS NOT NULL THEN struct_pack(utc_ticks := ({moved}) - CAST({offset} AS BIGINT) "
            f"* 600000000, offset_minutes := {offset}) END"
        )
    else:
        wide = SqlType("datetime2", 0, 0, 7)
        # named, so that what it is computed with stands there once
        sql = f"list_transform([{moved}], lambda d: {convert(added('d', value.type), wide, value.type)})[1]"
    return Expr(sql, value.type, True, constant=count.constant and value.constant)


def _datediff(name: str, type_: SqlType) -> Callable[..., Expr]:
    def function(ctx: Context, scope: Scope, nodes: list[Any], scalar: Compile) -> Expr:
        part = part_of(nodes[0])
        start, end = (_temporal(scalar(ctx, scope, node)) for node in nodes[1:])
        # DATEDIFF of datetimeoffset counts boundaries in UTC
        first, last = (
            f"({side.sql}).utc_ticks" if side.type.name == "datetimeoffset" else shown_ticks(side.sql, side.type)
            for side in (start, end)
        )
        if part in ("year", "quarter", "month"):
            sql = f"date_diff('{part}', t_timestamp({first}), t_timestamp({last}))"
        elif part == "nanosecond":
            sql = f"(({last}) - ({first})) * 100"
        elif part in _TICKS:
            # weeks begin on Sunday, and 0001-01-01 was a Monday
            shift = 864000000000 if part == "week" else 0
            unit = _TICKS[part]
            sql = f"(({last}) + {shift}) // {unit} - (({first}) + {shift}) // {unit}"
        else:
            raise SqlError.of(9810, part, "datediff", display(start.type))
        message = text(f"The {name} function resulted in an overflow. The number of dateparts is too large.")
        fail = f"CASE WHEN {sql} IS NOT NULL THEN t_error(535, {message}) END"
        sql = f"coalesce(TRY_CAST({sql} AS {duck(type_)}), {fail})"
        return Expr(sql, type_, True, constant=start.constant and end.constant)

    return function


def _datepart_of(ctx: Context, part: str, value: Expr) -> Expr:
    ticks = shown_ticks(value.sql, value.type)
    if part in ("year", "quarter", "month", "day", "dayofyear", "hour", "minute", "second"):
        sql = f"date_part('{part}', t_timestamp({ticks}))"
    elif part in ("millisecond", "microsecond"):
        sql = f"(({ticks}) % 10000000) // {10000 if part == 'millisecond' else 10}"
    elif part == "nanosecond":
        sql = f"(({ticks}) % 10000000) * 100"
    elif part == "weekday":
        sql = f"(date_part('dow', t_timestamp({ticks})) + {7 - ctx.env.dates.first_day}) % 7 + 1"  # dow 0 is Sunday
    elif part == "tzoffset":
        if value.type.name not in ("datetimeoffset", "datetime2"):
            raise SqlError.of(9810, "tzoffset", "datepart", value.type.name)
        sql = f"({value.sql}).offset_minutes" if value.type.name == "datetimeoffset" else "0"
    else:
        raise unsupported(f"DATEPART({part})")
    return Expr(f"CAST({sql} AS INTEGER)", INT, True, constant=value.constant)


def _datepart(ctx: Context, scope: Scope, nodes: list[Any], scalar: Compile) -> Expr:
    return _datepart_of(ctx, part_of(nodes[0]), _temporal(scalar(ctx, scope, nodes[1])))


def _datename(ctx: Context, scope: Scope, nodes: list[Any], scalar: Compile) -> Expr:
    part, value = part_of(nodes[0]), _temporal(scalar(ctx, scope, nodes[1]))
    if part == "tzoffset":
        raise unsupported("DATENAME(tzoffset)")
    if part in ("month", "weekday"):
        name = "%B" if part == "month" else "%A"
        sql = f"strftime(t_timestamp({shown_ticks(value.sql, value.type)}), '{name}')"
    else:
        sql = f"CAST({_datepart_of(ctx, part, value).sql} AS VARCHAR)"
    return Expr(sql, nvarchar(30), True, constant=value.constant)


def _named_part(part: str) -> Callable[..., Expr]:
    def function(ctx: Context, scope: Scope, nodes: list[Any], scalar: Compile) -> Expr:
        return _datepart_of(ctx, part, _temporal(scalar(ctx, scope, nodes[0])))

    return function


def _to_offset(ctx: Context, scope: Scope, nodes: list[Any], scalar: Compile) -> Expr:
    value, offset = scalar(ctx, scope, nodes[0]), scalar(ctx, scope, nodes[1])
    value = _temporal(value)
    minutes = f"t_parse_offset({offset.sql})" if kind(offset.type) == "str" else offset.to(INT)
    scale = {"datetime": 3, "smalldatetime": 0, "date": 0}.get(value.type.name, value.type.scale)
    ticks = to_ticks(value.sql, value.type)
    target = SqlType("datetimeoffset", 0, 0, scale)
    sql = (
        f"CASE WHEN {value.sql} IS NOT NULL AND {minutes} IS NOT NULL THEN struct_pack(utc_ticks := "
        f"t_round({ticks}, {10 ** (7 - scale)}) - CAST({minutes} AS BIGINT) * 600000000, "
        f"offset_minutes := CAST({minutes} AS SMALLINT)) END"
    )
    return Expr(sql, target, True, constant=value.constant and offset.constant)


def _switch_offset(ctx: Context, scope: Scope, nodes: list[Any], scalar: Compile) -> Expr:
    value, offset = scalar(ctx, scope, nodes[0]), scalar(ctx, scope, nodes[1])
    if value.type.name != "datetimeoffset":
        raise unsupported(f"SWITCHOFFSET of {display(value.type)}")
    minutes = f"t_parse_offset({offset.sql})" if kind(offset.type) == "str" else offset.to(INT)
    sql = (
        f"CASE WHEN {value.sql} IS NOT NULL AND {minutes} IS NOT NULL THEN struct_pack(utc_ticks := "
        f"({value.sql}).utc_ticks, offset_minutes := CAST({minutes} AS SMALLINT)) END"
    )
    return Expr(sql, value.type, True, constant=value.constant and offset.constant)


def _eomonth(ctx: Context, scope: Scope, nodes: list[Any], scalar: Compile) -> Expr:
    value = _temporal(scalar(ctx, scope, nodes[0]))
    return Expr(f"last_day({value.to(DATE)})", DATE, True, constant=value.constant)


DATE_FUNCTIONS: dict[str, Callable[..., Expr]] = {
    "dateadd": _dateadd,
    "datediff": _datediff("datediff", INT),
    "datediff_big": _datediff("datediff_big", BIGINT),
    "datepart": _datepart,
    "datename": _datename,
    "switchoffset": _switch_offset,
    "year": _named_part("year"),
    "month": _named_part("month"),
    "day": _named_part("day"),
    "todatetimeoffset": _to_offset,
    "eomonth": _eomonth,
}
