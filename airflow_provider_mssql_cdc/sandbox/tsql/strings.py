"""Scalar functions over strings, bytes and numbers."""

from __future__ import annotations

from collections.abc import Callable

from airflow_provider_mssql_cdc.sandbox.collations import comparing
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr, constant
from airflow_provider_mssql_cdc.sandbox.tsql.literals import text
from airflow_provider_mssql_cdc.sandbox.tsql.typing import (
    BIGINT,
    INT,
    INT_BYTES,
    MONEY,
    UNIQUEIDENTIFIER,
    common,
    display,
    duck,
    is_unicode,
    kind,
    nvarchar,
    varbinary,
    varchar,
)
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType


def _made(sql: str, type_: SqlType, arguments: list[Expr]) -> Expr:
    return Expr(sql, type_, True, constant=all(argument.constant for argument in arguments))


def _variable_length(type_: SqlType) -> SqlType:
    """The variable-length type that a string function gives for its argument's type."""
    if kind(type_) == "bin":
        return varbinary(type_.length if type_.length else MAX)
    if type_.name == "sysname":
        return nvarchar(128)
    if type_.name in ("text", "ntext", "xml"):
        return SqlType("varchar" if type_.name == "text" else "nvarchar", MAX)
    return SqlType("nvarchar" if is_unicode(type_) else "varchar", type_.length)


def _string(argument: Expr) -> Expr:
    """A string argument; numbers and dates are converted as SQL Server does it implicitly."""
    if kind(argument.type) == "str":
        return argument
    target = varchar(8000)
    return Expr(argument.to(target), target, argument.nullable, constant=argument.constant)


def _integer(argument: Expr) -> str:
    return argument.to(INT)


def _whole(sql: str, argument: Expr) -> str:
    """Guard a position-based function against characters outside the basic plane, which count twice here."""
    if not is_unicode(argument.type):
        return sql
    message = text("not supported by the sandbox: positions in text with supplementary characters")
    plain = f"strlen({argument.sql}) = length({argument.sql}) OR t_u16({argument.sql}) = length({argument.sql})"
    return f"CASE WHEN {argument.sql} IS NULL THEN NULL WHEN {plain} THEN {sql} ELSE t_error(50000, {message}) END"


def _len(arguments: list[Expr]) -> Expr:
    value = _string(arguments[0])
    units = "t_u16" if is_unicode(value.type) else "length"
    type_ = BIGINT if value.type.length == MAX else INT
    return _made(f"CAST({units}(rtrim({value.sql}, ' ')) AS {duck(type_)})", type_, arguments)


_FIXED_BYTES = {
    **INT_BYTES, "real": 4, "float": 8, "date": 3, "datetime": 8, "smalldatetime": 4, "money": 8, "smallmoney": 4,
    "uniqueidentifier": 16, "rowversion": 8,
}  # fmt: skip


def _datalength(arguments: list[Expr]) -> Expr:
    value = arguments[0]
    if kind(value.type) == "bin":
        sql = f"octet_length({value.sql})"
    elif kind(value.type) == "str":
        sql = f"2 * (t_u16({value.sql}))" if is_unicode(value.type) else f"strlen({value.sql})"
        if not is_unicode(value.type) and not comparing.is_utf8(value.type):
            sql = f"length({value.sql})"
    elif value.type.name in _FIXED_BYTES:
        sql = f"CASE WHEN {value.sql} IS NOT NULL THEN {_FIXED_BYTES[value.type.name]} END"
    else:
        raise unsupported(f"DATALENGTH of {display(value.type)}")
    type_ = BIGINT if value.type.length == MAX else INT
    return _made(f"CAST({sql} AS {duck(type_)})", type_, arguments)


def _substring(arguments: list[Expr]) -> Expr:
    value, start, length = arguments[0], _integer(arguments[1]), _integer(arguments[2])
    if kind(value.type) not in ("str", "bin"):
        raise SqlError.of(8116, display(value.type), 1, "substring")
    type_ = _variable_length(value.type)
    wanted = arguments[2].value
    if isinstance(wanted, int) and type_.length != MAX:
        type_ = SqlType(type_.name, max(1, min(type_.length, wanted)))
    if (
        isinstance(value.value, bytes)
        and isinstance(arguments[1].value, int)
        and isinstance(wanted, int)
        and wanted >= 0
    ):
        # a list of keys is often packed into one long parameter: each of its parts would carry all of it
        begin = arguments[1].value - 1
        return constant(value.value[max(begin, 0) : max(begin + wanted, 0)], type_)
    # positions before 1 count against the length (docs: SUBSTRING)
    first = f"greatest({start}, 1)"
    count = f"greatest({start} + {length} - {first}, 0)"
    if not (isinstance(wanted, int) and wanted >= 0):
        message = text("Invalid length parameter passed to the SUBSTRING function.")
        count = f"CASE WHEN {length} < 0 THEN t_error(537, {message}) ELSE {count} END"
    if kind(value.type) == "bin":
        return _made(f"({value.sql})[{first} : {first} + {count} - 1]", type_, arguments)
    return _made(_whole(f"substr({value.sql}, {first}, {count})", value), type_, arguments)


def _left_right(name: str) -> Callable[[list[Expr]], Expr]:
    def function(arguments: list[Expr]) -> Expr:
        value, count = _string(arguments[0]), _integer(arguments[1])
        message = text(f"Invalid length parameter passed to the {name} function.")
        checked = f"CASE WHEN {count} < 0 THEN t_error(536, {message}) ELSE {count} END"
        return _made(_whole(f"{name}({value.sql}, {checked})", value), _variable_length(value.type), arguments)

    return function


def _changed(template: str) -> Callable[[list[Expr]], Expr]:
    """A function that gives its argument's type, of variable length."""

    def function(arguments: list[Expr]) -> Expr:
        value = _string(arguments[0])
        return _made(template.format(value.sql), _variable_length(value.type), arguments)

    return function


def _concat(arguments: list[Expr]) -> Expr:
    parts = [_string(argument) for argument in arguments if not argument.untyped]
    unicode_ = any(is_unicode(part.type) for part in parts)
    lengths = [
        128 if part.type.name == "sysname" else (40 if part is not source else part.type.length)
        for part, source in zip(parts, [a for a in arguments if not a.untyped], strict=True)
    ]
    length = MAX if MAX in lengths else min(max(1, sum(lengths)), 4000 if unicode_ else 8000)
    sql = "(" + " || ".join(f"coalesce({part.sql}, '')" for part in parts) + ")" if parts else "''"
    return Expr(
        sql, nvarchar(length) if unicode_ else varchar(length), False, constant=all(a.constant for a in arguments)
    )


def _replace(arguments: list[Expr]) -> Expr:
    value, old, new = (_string(argument) for argument in arguments)
    wide = common(common(value.type, old.type), new.type)
    pattern = f"regexp_escape({old.sql})"
    template = f"replace({new.sql}, chr(92), chr(92) || chr(92))"
    sql = f"CASE WHEN {old.sql} = '' THEN {value.sql} ELSE regexp_replace({value.sql}, {pattern}, {template}, 'gi') END"
    return _made(sql, nvarchar(4000) if is_unicode(wide) else varchar(8000), arguments)


def _charindex(arguments: list[Expr]) -> Expr:
    wanted, value = _string(arguments[0]), _string(arguments[1])
    if len(arguments) == 3:
        raise unsupported("CHARINDEX with a start position")
    sql = _whole(f"CASE WHEN {wanted.sql} = '' THEN 0 ELSE instr(lower({value.sql}), lower({wanted.sql})) END", value)
    type_ = BIGINT if value.type.length == MAX else INT
    return _made(f"CAST({sql} AS {duck(type_)})", type_, arguments)


def _replicate(arguments: list[Expr]) -> Expr:
    value, count = _string(arguments[0]), _integer(arguments[1])
    limit = 4000 if is_unicode(value.type) else 8000
    type_ = (
        _variable_length(value.type) if value.type.length == MAX else SqlType(_variable_length(value.type).name, limit)
    )
    sql = f"CASE WHEN {count} < 0 THEN NULL ELSE repeat({value.sql}, {count}) END"
    return _made(sql if type_.length == MAX else f"left({sql}, {limit})", type_, arguments)


def _quotename(arguments: list[Expr]) -> Expr:
    value = _string(arguments[0])
    mark = arguments[1].value if len(arguments) == 2 else "["
    pairs = {"[": "[]", "]": "[]", '"': '""', "'": "''"}
    if mark not in pairs:
        raise unsupported("QUOTENAME with this character")
    left, right = pairs[str(mark)][0], pairs[str(mark)][1]
    escaped = f"replace({value.sql}, {text(right)}, {text(right * 2)})"
    return _made(f"({text(left)} || {escaped} || {text(right)})", nvarchar(258), arguments)


def _char(arguments: list[Expr]) -> Expr:
    value = _integer(arguments[0])
    message = text("not supported by the sandbox: CHAR above 127")
    sql = (
        f"CASE WHEN {value} BETWEEN 0 AND 127 THEN chr({value}) WHEN {value} BETWEEN 128 AND 255 THEN "
        f"t_error(50000, {message}) END"
    )
    return _made(sql, SqlType("char", 1), arguments)


def _nchar(arguments: list[Expr]) -> Expr:
    value = _integer(arguments[0])
    return _made(f"CASE WHEN {value} BETWEEN 0 AND 55295 THEN chr({value}) END", SqlType("nchar", 1), arguments)


def _number(name: str) -> Callable[[list[Expr]], Expr]:
    """ABS, FLOOR and CEILING; the latter two leave a decimal without fraction."""

    def function(arguments: list[Expr]) -> Expr:
        type_ = arguments[0].type
        if kind(type_) not in ("int", "dec", "float") or (name != "abs" and type_.name in MONEY):
            raise unsupported(f"{name.upper()} of {display(type_)}")
        if name != "abs" and type_.name == "decimal":
            type_ = SqlType("decimal", 0, type_.precision, 0)
        wide = f"CAST({arguments[0].sql} AS HUGEINT)" if kind(type_) == "int" else arguments[0].sql
        return _made(f"CAST({name}({wide}) AS {duck(type_)})", type_, arguments)

    return function


def _round(arguments: list[Expr]) -> Expr:
    value, places = arguments[0], arguments[1].value
    if not isinstance(places, int) or kind(value.type) not in ("dec", "float"):
        raise unsupported("ROUND of this type or with a computed length")
    return _made(f"CAST(round({value.sql}, {places}) AS {duck(value.type)})", value.type, arguments)


def _newid(arguments: list[Expr]) -> Expr:
    return Expr("upper(CAST(gen_random_uuid() AS VARCHAR))", UNIQUEIDENTIFIER, False)


SCALAR_FUNCTIONS: dict[str, tuple[int, int, Callable[[list[Expr]], Expr]]] = {
    "len": (1, 1, _len),
    "datalength": (1, 1, _datalength),
    "substring": (3, 3, _substring),
    "left": (2, 2, _left_right("left")),
    "right": (2, 2, _left_right("right")),
    "upper": (1, 1, _changed("upper({})")),
    "lower": (1, 1, _changed("lower({})")),
    "ltrim": (1, 1, _changed("ltrim({}, ' ')")),
    "rtrim": (1, 1, _changed("rtrim({}, ' ')")),
    "trim": (1, 1, _changed("trim({}, ' ')")),
    "concat": (2, 254, _concat),
    "replace": (3, 3, _replace),
    "charindex": (2, 3, _charindex),
    "replicate": (2, 2, _replicate),
    "quotename": (1, 2, _quotename),
    "char": (1, 1, _char),
    "nchar": (1, 1, _nchar),
    "abs": (1, 1, _number("abs")),
    "floor": (1, 1, _number("floor")),
    "ceiling": (1, 1, _number("ceil")),
    "round": (2, 2, _round),
    "newid": (0, 0, _newid),
}
