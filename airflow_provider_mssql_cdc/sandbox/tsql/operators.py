"""Comparison, arithmetic and sort keys of typed expressions."""

from __future__ import annotations

import re

from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.collations import comparing
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.convert import convert, to_money, unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr
from airflow_provider_mssql_cdc.sandbox.tsql.literals import blob, text
from airflow_provider_mssql_cdc.sandbox.tsql.typing import (
    MONEY,
    arithmetic,
    as_decimal,
    common,
    display,
    duck,
    is_unicode,
    kind,
)
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType


def common_type(*expressions: Expr) -> SqlType:
    """The type several expressions share; bare NULLs do not count."""
    typed = [expression.type for expression in expressions if not expression.untyped]
    if not typed:
        return expressions[0].type
    result = typed[0]
    for type_ in typed[1:]:
        result = common(result, type_)
    return result


def rowless(nodes: list[exp.Expr]) -> bool:
    """Whether expressions depend on no row."""
    return not any(node.find(exp.Column, exp.Select) for node in nodes)


def choice(branches: list[tuple[str, Expr]], default: Expr, is_constant: bool) -> Expr:
    """CASE from compiled conditions and values."""
    values = [value for _, value in branches] + [default]
    target = common_type(*values)
    whens = " ".join(f"WHEN {condition} THEN {value.to(target)}" for condition, value in branches)
    nullable = any(value.nullable for value in values)
    return Expr(f"CASE {whens} ELSE {default.to(target)} END", target, nullable, constant=is_constant)


def key(sql: str, type_: SqlType, *, ordered: bool = False) -> str:
    """What stands for a value in equality, grouping and DISTINCT.

    :param ordered: in ORDER BY and other comparisons, too
    """
    if kind(type_) == "str":
        if type_.name in ("text", "ntext", "xml"):
            raise SqlError.of(306)
        return comparing.ordered(sql, type_) if ordered else comparing.equal(sql, type_)
    if type_.name in ("datetimeoffset",):
        return f"({sql}).utc_ticks"
    return sql


def sort_key(expr: Expr) -> str:
    """What ORDER BY sorts by."""
    if expr.type.name == "uniqueidentifier":
        return f"t_guidkey({expr.sql})"
    if kind(expr.type) == "bin" and expr.type.name not in ("binary", "rowversion"):
        return f"t_binkey({expr.sql})"
    return key(expr.sql, expr.type, ordered=True)


def group_key(expr: Expr) -> str:
    """What PARTITION BY groups by."""
    return key(expr.sql, expr.type) if kind(expr.type) == "str" else sort_key(expr)


def _binary_sides(left: Expr, right: Expr) -> tuple[str, str]:
    def size(expr: Expr) -> int:
        return 8 if expr.type.name == "rowversion" else expr.type.length if expr.type.name == "binary" else 0

    for one, other, swap in ((left, right, False), (right, left, True)):
        width = size(one)
        known = other.value
        if width and isinstance(known, bytes) and len(known) <= width:
            pair = (one.sql, blob(known.ljust(width, b"\x00")))
            return (pair[1], pair[0]) if swap else pair
        if width and width == size(other):
            return left.sql, right.sql
    return f"t_binkey({left.sql})", f"t_binkey({right.sql})"


def sides(left: Expr, right: Expr, *, ordered: bool = False) -> tuple[str, str]:
    """Two expressions as DuckDB SQL that compares as SQL Server compares them.

    :param ordered: by < and the like, not by = alone
    """
    if left.untyped or right.untyped:
        return left.sql, right.sql
    if kind(left.type) == "bin" and kind(right.type) == "bin":
        return _binary_sides(left, right)
    target = common(left.type, right.type)
    if kind(target) == "str":
        # no conversion: a longer text must not be cut to compare it
        one, other = (
            key(side.sql if kind(side.type) == "str" else side.to(target), target, ordered=ordered)
            for side in (left, right)
        )
        return one, other
    pair = [convert(side.sql, side.type, target) for side in (left, right)]
    if target.name == "uniqueidentifier":
        return f"t_guidkey({pair[0]})", f"t_guidkey({pair[1]})"
    return key(pair[0], target), key(pair[1], target)


def compare(operator: str, left: Expr, right: Expr) -> str:
    """A comparison as a DuckDB predicate."""
    one, other = sides(left, right, ordered=operator not in ("=", "<>"))
    return f"({one} {operator} {other})"


_STRING_CAPS = {"varchar": 8000, "nvarchar": 4000, "varbinary": 8000}


def _concatenate(left: Expr, right: Expr) -> Expr:
    wide = common(left.type, right.type)
    if kind(wide) == "bin":
        name = "varbinary"
    else:
        name = "nvarchar" if wide.name in ("nvarchar", "nchar", "sysname") else "varchar"
    if wide.name in ("text", "ntext", "image", "xml"):
        raise SqlError.of(402, wide.name, wide.name, "add")
    lengths = [128 if side.type.name == "sysname" else side.type.length for side in (left, right)]
    length = MAX if MAX in lengths else min(sum(lengths), _STRING_CAPS[name])
    result = SqlType(name, length, collation=wide.collation)
    nullable = left.nullable or right.nullable
    sql = f"({left.sql} || {right.sql})"
    if length != MAX and sum(lengths) > length:
        sql = convert(sql, SqlType(name, MAX, collation=wide.collation), result)
    return Expr(sql, result, nullable, constant=left.constant and right.constant)


_DAY_UNITS = {"datetime", "smalldatetime"}


def calculate(operator: str, left: Expr, right: Expr) -> Expr:
    """Arithmetic, or concatenation where both sides are strings or both are binary."""
    if left.untyped or right.untyped:
        other = right if left.untyped else left
        return Expr(f"CAST(NULL AS {duck(other.type)})", other.type, constant=left.constant and right.constant)
    kinds = {kind(left.type), kind(right.type)}
    if operator == "+" and (kinds == {"str"} or kinds == {"bin"}):
        return _concatenate(left, right)
    if kinds & {"time", "guid"} or kinds == {"bin"} or kinds == {"str"}:
        if operator in "+-" and left.type.name in _DAY_UNITS and kind(right.type) == "int":
            sql = f"({left.sql} {operator} to_days(CAST({right.sql} AS INTEGER)))"
            return Expr(sql, left.type, True, constant=left.constant and right.constant)
        if operator in "+-" and {left.type.name, right.type.name} & _DAY_UNITS:
            raise unsupported("arithmetic with dates other than whole days after a date")
        raise SqlError.of(402, display(left.type), display(right.type), operator)
    numbers = []
    for side, other in ((left, right), (right, left)):
        if kind(side.type) in ("str", "bin"):
            side = Expr(side.to(other.type), other.type, side.nullable, constant=side.constant)
        numbers.append(side)
    return _numeric(operator, numbers[0], numbers[1])


def _numeric(operator: str, left: Expr, right: Expr) -> Expr:
    if "decimal" in (left.type.name, right.type.name):
        left, right = (_by_digits(side) for side in (left, right))
    result = arithmetic(operator, left.type, right.type)
    constant = left.constant and right.constant
    if result.name == "decimal":
        sql = _decimal(operator, left, right, result)
    else:
        one, other = left.to(result), right.to(result)
        if operator in "/%":
            other = _nonzero(other)
        if operator == "/" and result.name in MONEY:
            raise unsupported("division of money")
        if operator == "%" and kind(result) == "float":
            raise SqlError.of(402, display(left.type), display(right.type), operator)
        symbol = "//" if operator == "/" and kind(result) == "int" else operator
        sql = f"({one} {symbol} {other})"
        sql = to_money(sql, result) if result.name in MONEY else f"CAST({sql} AS {duck(result)})"
        sql = f"t_finite({sql})" if kind(result) == "float" else sql
    return Expr(sql, result, left.nullable or right.nullable, constant=constant)


def _by_digits(side: Expr) -> Expr:
    """An integer literal beside a decimal has just its own digits, not the ten of an int."""
    if not side.literal or kind(side.type) != "int":
        return side
    type_ = SqlType("decimal", 0, len(str(abs(side.value))), 0)
    return Expr(convert(side.sql, side.type, type_), type_, side.nullable, constant=True)


def _nonzero(sql: str) -> str:
    if re.fullmatch(r"CAST\('?[1-9][0-9.]*'? AS [A-Z()0-9,]+\)", sql):
        return sql
    return f"CASE WHEN {sql} = 0 THEN t_error(8134, {text('Divide by zero error encountered.')}) ELSE {sql} END"


def _decimal(operator: str, left: Expr, right: Expr, result: SqlType) -> str:
    a, b = as_decimal(left.type), as_decimal(right.type)
    one, other = left.to(a), right.to(b)
    target = duck(result)
    if operator in "+-":
        if max(a.scale, b.scale) != result.scale:
            raise unsupported("decimal arithmetic beyond 38 digits")
        return f"CAST((CAST({one} AS {target}) {operator} CAST({other} AS {target})) AS {target})"
    if operator == "*":
        if a.precision + b.precision > 38:
            raise unsupported("decimal multiplication beyond 38 digits")
        width = min(38, max(19, a.precision + b.precision))
        return (
            f"CAST((CAST({one} AS DECIMAL({width},{a.scale})) * CAST({other} AS DECIMAL({width},{b.scale}))) "
            f"AS {target})"
        )
    other = _nonzero(other)
    shift = result.scale - a.scale + b.scale
    if operator == "%":
        raise unsupported("modulo of decimals")
    if a.precision + shift > 38:
        raise unsupported("decimal division beyond 38 digits")
    # decimal division cuts, it does not round
    unscaled = f"(t_unscaled({one}) * {10**shift}::HUGEINT) // t_unscaled({other})"
    return f"CAST(t_scaled({unscaled}, {10**result.scale}::HUGEINT, {result.scale}) AS {target})"


def bitwise(operator: str, left: Expr, right: Expr) -> Expr:
    """&, | and ^ of integers."""
    result = common(left.type, right.type)
    if kind(result) == "bit" and operator != "xor":
        result = SqlType("tinyint")
    if kind(result) != "int":
        raise SqlError.of(402, display(left.type), display(right.type), operator)
    one, other = left.to(result), right.to(result)
    sql = f"xor({one}, {other})" if operator == "xor" else f"({one} {operator} {other})"
    return Expr(f"CAST({sql} AS {duck(result)})", result, left.nullable or right.nullable)


def like(value: Expr, pattern: str | None, escape: str | None, type_: SqlType) -> str:
    """LIKE with a known pattern, as a regular expression (docs: LIKE: %, _, [], [^]).

    :param type_: of the pattern; a varchar has what its code page lacks as question marks
    """
    if pattern is None:
        return "CAST(NULL AS BOOLEAN)"
    if not is_unicode(type_) and not comparing.is_utf8(type_):
        pattern = pattern.encode("cp1252", "replace").decode("cp1252")
    parts, position = [], 0
    ranges: list[str] = []
    while position < len(pattern):
        char = pattern[position]
        if escape and char == escape and position + 1 < len(pattern):
            position += 1
            parts.append(re.escape(pattern[position]))
        elif char == "%":
            parts.append("(?s:.*)")
        elif char == "_":
            parts.append("(?s:.)")
        elif char == "[" and "]" in pattern[position + 1 :]:
            end = pattern.index("]", position + 1)
            inner = pattern[position + 1 : end]
            negate = inner.startswith("^")
            body = re.sub(r"([\\\[\]^])", r"\\\1", inner[1:] if negate else inner)
            ranges.extend(re.findall(".-.", inner[1:] if negate else inner))
            parts.append(f"[{'^' if negate else ''}{body}]")
            position = end
        else:
            parts.append(re.escape(char))
        position += 1
    if kind(value.type) != "str":
        value = Expr(value.to(SqlType("varchar", 8000)), SqlType("varchar", 8000))
    compared = comparing.taken_from(common(value.type, type_), [value.type])
    is_sensitive = comparing.collation(compared).case_sensitive
    matched = f"regexp_full_match({value.sql}, {text(('' if is_sensitive else '(?i)') + ''.join(parts))})"
    return comparing.like(matched, value.sql, compared, pattern, ranges)


def like_pattern(value: Expr, pattern: Expr, escape: str | None) -> str:
    """LIKE with a pattern that comes from a row."""
    if kind(value.type) != "str" or kind(pattern.type) != "str":
        raise unsupported("this LIKE with a pattern that is not a constant")
    compared = common(value.type, pattern.type)
    function = "t_like_exact" if comparing.collation(compared).case_sensitive else "t_like"
    matched = f"regexp_full_match({value.sql}, {function}({pattern.sql}, {text(escape or '')}))"
    return comparing.like(comparing.like(matched, value.sql, compared, "", []), pattern.sql, compared, "", [])
