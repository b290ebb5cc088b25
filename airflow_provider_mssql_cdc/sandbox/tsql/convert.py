"""Conversions between any two types, as DuckDB SQL (docs: CAST and CONVERT)."""

from __future__ import annotations

from airflow_provider_mssql_cdc.sandbox.collations import comparing
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError, Unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.byte_forms import (
    binary_to_int,
    bytes_guid,
    fit_binary,
    float_in_full,
    guid_bytes,
    int_to_binary,
)
from airflow_provider_mssql_cdc.sandbox.tsql.literals import text
from airflow_provider_mssql_cdc.sandbox.tsql.typing import MONEY, display, duck, is_unicode, kind
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType

_SOURCE = "source_expression"
_BASE_1900 = 599266080000000000
_DAY = 864000000000
_END = 3652059 * _DAY
# ticks of the first day, and of the day after the last one
_RANGES = {"datetime": (552877920000000000, _END), "smalldatetime": (_BASE_1900, _BASE_1900 + 65536 * _DAY)}


def unsupported(what: str, line: int = 1) -> Unsupported:
    """The error for a construct that the sandbox does not simulate."""
    return Unsupported(what, line=line)


def convert(sql: str, source: SqlType, target: SqlType, *, style: int = 0, safe: bool = False) -> str:
    """An expression of one type as an expression of another, as an explicit CONVERT does it.

    :param style: CONVERT's style
    :param safe: TRY_CAST and TRY_CONVERT: NULL instead of an error
    :raises SqlError: 529 where SQL Server has no such conversion; 50000 where the sandbox has none
    """
    if source == target:
        return sql
    if not safe:
        return _convert(sql, source, target, style)
    # only this conversion's errors become NULL, not those of the expression that it converts
    tried = _convert(_SOURCE, source, target, style).replace("t_error(", "t_nothing(")
    tried = tried.replace("t_nothing(50000,", "t_error(50000,")
    tried = tried.replace("t_within(", "t_if_within(")
    return f"TRY({tried.replace(_SOURCE, sql)})"


def _convert(sql: str, source: SqlType, target: SqlType, style: int) -> str:
    pair = (kind(source), kind(target))
    if pair[1] == "str":
        return _fit(_to_text(sql, source, target, style), source, target)
    if pair == ("bin", "bin"):
        return fit_binary(sql, source, target)
    if pair == ("str", "time") or pair == ("time", "time"):
        if pair[0] == "str" and style not in _READ_STYLES:
            raise unsupported(f"CONVERT style {style} for reading {display(target)}")
        return _to_temporal(sql, source, target, style)
    if pair[0] in _NUMERIC and pair[1] in _NUMERIC:
        return _number(sql, source, target)
    if pair[0] == "str":
        return _from_text(sql, source, target, style)
    if pair == ("guid", "bin"):
        return fit_binary(guid_bytes(sql), SqlType("binary", 16), target)
    if pair == ("bin", "guid"):
        return bytes_guid(sql)
    if pair[0] in ("int", "bit") and pair[1] == "bin":
        return int_to_binary(sql, source, target)
    if pair[0] == "bin" and pair[1] in ("int", "bit"):
        return binary_to_int(sql, source, target)
    if pair == ("guid", "guid"):
        return sql
    if pair == ("float", "bin") and target.length == (4 if duck(source) == "FLOAT" else 8):
        # in the order of IEEE 754
        return f"CAST(CAST({sql} AS BIT) AS BLOB)"
    if pair[0] in ("int", "bit") and target.name in ("datetime", "smalldatetime"):
        return _from_ticks(f"({_BASE_1900} + CAST({sql} AS BIGINT) * {_DAY})", target)
    if "float" in pair or "dec" in pair or pair == ("time", "bin"):
        raise unsupported(f"conversion from {display(source)} to {display(target)}")
    raise SqlError.of(529, display(source), display(target))


# ISO 8601 in its forms; the others read a day in their own way
_READ_STYLES = (0, 20, 21, 23, 25, 112, 120, 121, 126, 127)
_NUMERIC = ("bit", "int", "dec", "float")


def _number(sql: str, source: SqlType, target: SqlType) -> str:
    if kind(target) == "bit":
        return f"({sql} <> 0)"
    if kind(source) == "bit":
        return f"CAST(CAST({sql} AS UTINYINT) AS {duck(target)})"
    if target.name in ("tinyint", "smallint") and kind(source) == "int":
        message = (
            f"{text(f'Arithmetic overflow error for data type {target.name}, value = ')} || CAST({sql} AS VARCHAR)"
        )
        return f"coalesce(TRY_CAST({sql} AS {duck(target)}), {_fail(220, message + ' || chr(46)', sql)})"
    if kind(target) == "int" and kind(source) in ("dec", "float") and source.name not in MONEY:
        return f"CAST(trunc({sql}) AS {duck(target)})"  # numbers lose their fraction; money rounds
    return to_money(sql, target) if target.name in MONEY else f"CAST({sql} AS {duck(target)})"


def to_money(sql: str, target: SqlType) -> str:
    """A number as money or smallmoney, which hold less than DuckDB's decimals of as many digits."""
    message = text(f"Arithmetic overflow error converting expression to data type {target.name}.")
    # the lambda takes the number once: sums of sums would else be written out over and over
    return f"list_transform([{sql}], lambda m: coalesce({_fitting('m', target)}, {_fail(8115, message, 'm')}))[1]"


def _fitting(sql: str, target: SqlType) -> str:
    """A number as another type; NULL where it does not fit."""
    tried = f"TRY_CAST({sql} AS {duck(target)})"
    if target.name not in MONEY:
        return tried
    most = (1 << (63 if target.name == "money" else 31)) - 1  # ten thousandths (docs: money)
    return f"CASE WHEN t_unscaled({tried}) BETWEEN {-most - 1} AND {most} THEN {tried} END"


_OVERFLOWS = {
    "tinyint": (244, " overflowed an INT1 column. Use a larger integer column."),
    "smallint": (244, " overflowed an INT2 column. Use a larger integer column."),
    "int": (248, " overflowed an int column."),
}


def _fail(number: int, message: str, sql: str) -> str:
    return f"CASE WHEN {sql} IS NOT NULL THEN t_error({number}, {message}) END"


def _from_text(sql: str, source: SqlType, target: SqlType, style: int) -> str:
    name = display(target)
    trimmed = f"trim({sql})"
    bad_value = (
        f"{text(f'Conversion failed when converting the {display(source)} value ')} || chr(39) || {sql} || chr(39) "
        f"|| {text(f' to data type {name}.')}"
    )
    if kind(target) == "bit":
        flag = (
            f"CASE WHEN lower({trimmed}) = 'true' THEN TRUE WHEN lower({trimmed}) = 'false' THEN FALSE "
            f"WHEN regexp_full_match({trimmed}, '[+-]?[0-9]+') THEN TRY_CAST({trimmed} AS HUGEINT) IS DISTINCT FROM 0 "
        )
        return f"{flag} ELSE {_fail(245, bad_value, sql)} END"
    if kind(target) == "int":
        number, column = _OVERFLOWS.get(target.name, (8115, ""))
        overflow = f"'The conversion of the {display(source)} value ' || chr(39) || {sql} || chr(39) || {text(column)}"
        if number == 8115:
            overflow = text(f"Arithmetic overflow error converting expression to data type {name}.")
        return (
            f"CASE WHEN {trimmed} = '' THEN 0 WHEN regexp_full_match({trimmed}, '[+-]?[0-9]+') THEN "
            f"coalesce(TRY_CAST({trimmed} AS {duck(target)}), t_error({number}, {overflow})) "
            f"ELSE {_fail(245, bad_value, sql)} END"
        )
    if kind(target) in ("dec", "float"):
        pattern = "[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)" + ("([eE][+-]?[0-9]+)?" if kind(target) == "float" else "")
        message = text(f"Error converting data type {display(source)} to {name}.")
        value = f"t_finite(CAST({trimmed} AS {duck(target)}))"
        if kind(target) == "dec":
            overflow = text(f"Arithmetic overflow error converting {display(source)} to data type {name}.")
            value = f"coalesce({_fitting(trimmed, target)}, t_error(8115, {overflow}))"
        return f"CASE WHEN regexp_full_match({trimmed}, '{pattern}') THEN {value} ELSE {_fail(8114, message, sql)} END"
    if kind(target) == "guid":
        pattern = "[{]?[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}[}]?.*"
        message = text("Conversion failed when converting from a character string to uniqueidentifier.")
        shaped = f"upper(left(ltrim({sql}, '{{'), 36))"
        return f"CASE WHEN regexp_full_match({sql}, '{pattern}') THEN {shaped} ELSE {_fail(8169, message, sql)} END"
    if kind(target) == "bin":
        if style in (1, 2):
            digits, prefix = (f"substr({sql}, 3)", "0[xX]") if style == 1 else (sql, "")
            shaped = f"regexp_full_match({sql}, '{prefix}([0-9A-Fa-f]{{2}})*')"
            fail = _fail(8114, text(f"Error converting data type {display(source)} to varbinary."), sql)
            data = f"CASE WHEN {shaped} THEN unhex({digits}) ELSE {fail} END"
        elif is_unicode(source):
            data = f"t_bytes_utf16({sql})"
        elif comparing.is_utf8(source):
            data = f"encode({sql})"
        else:
            data = f"CASE WHEN strlen({sql}) = length({sql}) THEN encode({sql}) ELSE t_bytes_cp1252({sql}) END"
        return fit_binary(data, SqlType("varbinary", MAX), target)
    raise unsupported(f"conversion from {display(source)} to {display(target)}")


def _to_text(sql: str, source: SqlType, target: SqlType, style: int) -> str:
    family = kind(source)
    if family == "str":
        return sql
    if family == "guid":
        return sql
    if family == "bit":
        return f"CASE WHEN {sql} THEN '1' WHEN NOT {sql} THEN '0' END"
    if family == "int":
        shown = f"CAST({sql} AS VARCHAR)"
        if target.length != MAX and not is_unicode(target):
            return f"CASE WHEN length({shown}) > {target.length} THEN '*' ELSE {shown} END"
        return _overflow(shown, target, "expression", 8115)
    if family == "dec":
        places = 2 if source.name in MONEY and style == 0 else None
        value = f"CAST({sql} AS DECIMAL(38,{places}))" if places else sql
        shown = f"CAST({value} AS VARCHAR)"
        if source.name == "decimal" and source.scale == source.precision:
            shown = f"regexp_replace({shown}, '^(-?)[.]', '\\10.')"  # DuckDB leaves the zero out
        return _overflow(shown, target, display(source), 8115)
    if family == "float" and style == 3:
        return float_in_full(sql)
    if family == "float":
        plain = f"abs({sql}) >= 0.0001 AND abs({sql}) < 1000000 OR {sql} = 0"
        message = text("not supported by the sandbox: this float as text")
        return f"CASE WHEN {plain} THEN format('{{:.6g}}', {sql}) ELSE {_fail(50000, message, sql)} END"
    if family == "bin":
        return _binary_to_text(sql, target, style)
    return _temporal_to_text(sql, source, style)


def _overflow(shown: str, target: SqlType, name: str, number: int) -> str:
    if target.length == MAX or target.length >= 41:
        return shown
    message = text(f"Arithmetic overflow error converting {name} to data type {display(target)}.")
    return f"CASE WHEN length({shown}) > {target.length} THEN t_error({number}, {message}) ELSE {shown} END"


_SHOWN = {"date": 10, "time": 16, "datetime": 23, "smalldatetime": 23, "datetime2": 27, "datetimeoffset": 34}


def _fit(sql: str, source: SqlType, target: SqlType) -> str:
    """Text in a target's character set and length; what is too long is cut."""
    utf8 = comparing.is_utf8(target)
    if (
        kind(source) == "str"
        and not is_unicode(target)
        and not utf8
        and (is_unicode(source) or comparing.is_utf8(source))
    ):
        sql = f"t_cp1252({sql})"
    if target.length == MAX or target.name in ("text", "ntext", "xml"):
        return sql
    longest = source.length if kind(source) == "str" else _SHOWN.get(source.name, MAX)
    if utf8 and kind(source) == "str" and (is_unicode(source) or not 0 < longest <= target.length):
        return f"t_left8({sql}, {target.length})"
    if not 0 < longest <= target.length:
        sql = f"t_left16({sql}, {target.length})" if is_unicode(target) else f"left({sql}, {target.length})"
    if target.name == "char":
        return f"rpad({sql}, {target.length}, ' ')"
    if target.name == "nchar":
        return f"({sql} || repeat(' ', greatest(0, {target.length} - (t_u16({sql})))))"
    return sql


def _binary_to_text(sql: str, target: SqlType, style: int) -> str:
    if style == 1:
        return f"'0x' || hex({sql})"
    if style == 2:
        return f"hex({sql})"
    if is_unicode(target):
        return f"t_utf16({sql})"
    message = text("not supported by the sandbox: non-ASCII bytes as text")
    ascii_only = f"NOT regexp_matches(hex({sql}), '^(..)*[89A-F].')"
    return f"CASE WHEN {ascii_only} THEN decode({sql}) ELSE {_fail(50000, message, sql)} END"


def to_ticks(sql: str, source: SqlType) -> str:
    """A date or time as local ticks since 0001-01-01; a time lies on 1900-01-01."""
    if source.name == "date":
        return f"t_ticks(CAST({sql} AS TIMESTAMP))"
    if source.name == "datetime":
        return f"t_from_third({sql})"
    if source.name == "smalldatetime":
        return f"t_ticks({sql})"
    if source.name == "time":
        return f"({sql} + {_BASE_1900})"
    if source.name == "datetimeoffset":
        return f"({sql}).utc_ticks + CAST(({sql}).offset_minutes AS BIGINT) * 600000000"
    return sql


def added(ticks: str, target: SqlType) -> str:
    """Ticks that DATEADD has moved, if they are still in the range of their type."""
    low, high = _RANGES.get(target.name, (0, _END))
    message = text(f"Adding a value to a '{target.name}' column caused an overflow.")
    return f"t_within({ticks}, {low}, {high}, 517, {message})"


def _from_ticks(ticks: str, target: SqlType) -> str:
    unit = 10 ** (7 - target.scale)
    if target.name == "date":
        return f"CAST(t_timestamp({ticks}) AS DATE)"
    if target.name in _RANGES:
        low, high = _RANGES[target.name]
        message = text(f"The conversion to a {target.name} data type resulted in an out-of-range value.")
        ticks = f"t_within({ticks}, {low}, {high}, 242, {message})"
    if target.name == "datetime":
        return f"t_third(t_round({ticks}, 10) // 10)"
    if target.name == "smalldatetime":
        # 29.998 s still rounds down (docs: smalldatetime)
        return f"t_timestamp((({ticks} + 300010000) // 600000000) * 600000000)"
    rounded = f"({ticks})" if unit == 1 else f"t_round({ticks}, {unit})"
    if target.name == "time":
        return f"({rounded} % {_DAY})"
    if target.name == "datetimeoffset":
        return f"struct_pack(utc_ticks := {rounded}, offset_minutes := CAST(0 AS SMALLINT))"
    return rounded


def _to_temporal(sql: str, source: SqlType, target: SqlType, style: int) -> str:
    if kind(source) == "str":
        return _text_to_temporal(sql, source, target, style)
    if source.name == target.name == "datetimeoffset":
        unit = 10 ** (7 - target.scale)
        rounded = f"t_round(({sql}).utc_ticks, {unit})"
        return f"struct_pack(utc_ticks := {rounded}, offset_minutes := ({sql}).offset_minutes)"
    if source.name == target.name and target.scale >= source.scale:
        return sql
    if {source.name, target.name} == {"date", "time"}:
        raise SqlError.of(529, source.name, target.name)
    converted = _from_ticks(to_ticks(sql, source), target)
    return f"CASE WHEN {sql} IS NOT NULL THEN {converted} END" if target.name == "datetimeoffset" else converted


def _text_to_temporal(sql: str, source: SqlType, target: SqlType, style: int) -> str:
    message = text("Conversion failed when converting date and/or time from character string.")
    parsed = f"t_parse({sql})"
    if target.name in _RANGES:  # their text has three digits of a second at most
        read = sql if style else f"t_session_date({sql})"
        kinds = f"a {source.name} data type to a {target.name} data type"
        outside = text(f"The conversion of {kinds} resulted in an out-of-range value.")
        parsed = (
            f"CASE WHEN NOT regexp_matches({sql}, '[.][0-9]{{4}}') THEN coalesce(t_parse({read}), "
            f"CASE WHEN t_is_iso({sql}) THEN t_error(242, {outside}) END) END"
        )
    ticks = f"coalesce({parsed}, {_fail(241, message, sql)})"
    if target.name == "datetimeoffset":
        unit = 10 ** (7 - target.scale)
        utc = f"t_round({ticks} - CAST(t_parse_offset({sql}) AS BIGINT) * 600000000, {unit})"
        utc = f"t_within({utc}, 0, {_END}, 241, {message})"
        packed = f"struct_pack(utc_ticks := {utc}, offset_minutes := CAST(t_parse_offset({sql}) AS SMALLINT))"
        return f"CASE WHEN {utc} IS NOT NULL THEN {packed} END"
    return _from_ticks(f"({ticks})", target)


def shown_ticks(sql: str, source: SqlType) -> str:
    """Local ticks as they are shown: a datetime by its milliseconds, not by its 1/300 s."""
    return f"t_ticks({sql})" if source.name == "datetime" else to_ticks(sql, source)


# docs (CAST and CONVERT): the styles that show a day, with the year in two and in four digits
_DAYS = {
    1: "%m/%d/%y", 101: "%m/%d/%Y", 2: "%y.%m.%d", 102: "%Y.%m.%d", 3: "%d/%m/%y", 103: "%d/%m/%Y",
    4: "%d.%m.%y", 104: "%d.%m.%Y", 5: "%d-%m-%y", 105: "%d-%m-%Y", 6: "%d %b %y", 106: "%d %b %Y",
    7: "%b %d, %y", 107: "%b %d, %Y", 10: "%m-%d-%y", 110: "%m-%d-%Y", 11: "%y/%m/%d", 111: "%Y/%m/%d",
    12: "%y%m%d",
}  # fmt: skip


def _temporal_to_text(sql: str, source: SqlType, style: int) -> str:
    old = source.name in ("datetime", "smalldatetime")
    if style == 0 and not old:
        style = 121
    if source.name == "date" and style in (20, 21, 23, 25, 112, 120, 121, 126, 127):
        day = f"CAST({sql} AS VARCHAR)"
        return day if style != 112 else f"replace({day}, '-', '')"
    has_offset = source.name == "datetimeoffset"
    in_utc = has_offset and style == 127  # docs: CAST and CONVERT
    ticks = f"({sql}).utc_ticks" if in_utc else shown_ticks(sql, source)
    shown = f"t_stamp({ticks}, {0 if style in (20, 120) else 3 if old else source.scale})"
    if source.name == "time" and style in (20, 21, 25, 120, 121, 126, 127):
        return f"substr({shown}, 12)"
    if style in (23, 112):
        return f"left({shown}, 10)" if style == 23 else f"replace(left({shown}, 10), '-', '')"
    offset = "'Z'" if in_utc else f"t_offset_text(({sql}).offset_minutes)"
    if style in (20, 21, 25, 120, 121):
        return f"{shown} || ' ' || {offset}" if has_offset else shown
    if style in (126, 127):
        unit = 10_000 if old else 1  # docs: a fraction of zero is left out
        shown = f"CASE WHEN ({ticks} // {unit}) % {10_000_000 // unit} = 0 THEN left({shown}, 19) ELSE {shown} END"
        return f"replace({shown}, ' ', 'T')" + (f" || {offset}" if has_offset else "")
    stamp = f"t_timestamp({ticks})"
    if style in _DAYS and source.name != "time" and not has_offset:
        return f"strftime({stamp}, '{_DAYS[style]}')"
    if style in (8, 24, 108) and not has_offset:
        return f"strftime({stamp}, '%H:%M:%S')"
    if style in (13, 14, 113, 114) and old:
        day = "%d %b %Y " if style in (13, 113) else ""
        return f"strftime({stamp}, '{day}%H:%M:%S:') || right({shown}, 3)"
    if style in (0, 100) and old:
        return (
            f"strftime({stamp}, '%b ') || lpad(strftime({stamp}, '%-d'), 2, ' ') || strftime({stamp}, ' %Y ') "
            f"|| lpad(strftime({stamp}, '%-I'), 2, ' ') || strftime({stamp}, ':%M%p')"
        )
    raise unsupported(f"CONVERT style {style} for {display(source)}")
