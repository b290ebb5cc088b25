"""DuckDB macros behind the T-SQL semantics that DuckDB's own functions do not have."""

from __future__ import annotations

import re

import duckdb

RAISED = re.compile(r"SQL:(\d+):(.*)", re.DOTALL)
"""What the macro ``t_error`` leaves in the text of DuckDB's error: a number and SQL Server's text."""

# characters of code page 1252 above ASCII and Latin-1; the five bytes it leaves undefined map to the C1 controls
_CP1252 = "€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ\\x{81}\\x{8d}\\x{8f}\\x{90}\\x{9d}"
_ISO = (
    r"^\s*(?:\d{4}-\d{1,2}-\d{1,2}|\d{8})?"
    r"(?:(?:^|[ T]+)\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,7})?)?)?\s*(?:Z|[+-]\d{2}:\d{2})?\s*$"
)
_ISO_DATE = r"^\s*(\d{4})-?(\d{1,2})-?(\d{1,2})"
_ISO_TIME = r"(?:^|[ T])(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,7}))?)?"
_HYPHENS = r"^(\s*\d{4})-(\d{1,2})-(\d{1,2})(\s|$)"
_ISO_OFFSET = r"(Z|[+-]\d{2}:\d{2})\s*$"

_MACROS = {
    # zero-padding comparison of binary values of unequal length
    "t_binkey(b)": "regexp_replace(hex(b), '(00)+$', '')",
    # uniqueidentifier sorts by its last six bytes first, then by the groups from right to left
    "t_guidkey(g)": (
        "substr(g,25,12)||substr(g,20,4)||substr(g,17,2)||substr(g,15,2)||substr(g,12,2)||substr(g,10,2)"
        "||substr(g,7,2)||substr(g,5,2)||substr(g,3,2)||substr(g,1,2)"
    ),
    "t_error(number, message)": "error('SQL:' || number || ':' || message)",
    # a LIKE pattern that is only known when the query runs, as a regular expression; e is its escape character
    "t_like(p, e)": (
        "CASE WHEN replace(CASE WHEN e = '' THEN p ELSE replace(p, e || '[', '') END, e || e, '') LIKE '%[%' "
        "THEN t_error(50000, 'not supported by the sandbox: [] in a LIKE pattern that is not a constant') ELSE "
        "'(?is)' || replace(replace(replace(replace(replace(replace(replace(replace(regexp_escape("
        "CASE WHEN e = '' THEN p ELSE replace(replace(replace(replace(replace(p, e || e, chr(4)), e || '%', chr(1)), "
        "e || '_', chr(2)), e || '[', chr(3)), e, '') END), chr(92) || '%', '.*'), '%', '.*'), chr(92) || "
        "'_', '.'), '_', '.'), "
        # the escape turns these characters into others, with a backslash before them
        "chr(92) || chr(1), '%'), chr(92) || chr(2), '_'), chr(92) || chr(3), chr(92) || '['), chr(92) || chr(4), "
        "regexp_escape(e)) END"
    ),
    "t_finite(x)": (
        "CASE WHEN isinf(x) THEN t_error(8115, 'Arithmetic overflow error converting expression to data type float.') "
        "ELSE x END"
    ),
    "t_within(ticks, low, high, number, message)": (
        "CASE WHEN ticks < low OR ticks >= high THEN t_error(number, message) ELSE ticks END"
    ),
    # what stands for them in TRY_CAST
    "t_nothing(number, message)": "NULL",
    "t_if_within(ticks, low, high, number, message)": "CASE WHEN ticks >= low AND ticks < high THEN ticks END",
    "t_u16(s)": r"length(s) + length(regexp_replace(s, '[^\x{10000}-\x{10FFFF}]', '', 'g'))",
    "t_left16(s, n)": (
        "CASE WHEN s IS NULL OR strlen(s) <= n OR t_u16(s) <= n THEN s WHEN t_u16(s) = length(s) THEN left(s, n) "
        "ELSE t_error(50000, 'not supported by the sandbox: cutting a string with supplementary characters') END"
    ),
    "t_left8(s, n)": (
        "CASE WHEN strlen(s) > n THEN t_error(50000, 'not supported by the sandbox: cutting a text in UTF-8') "
        "ELSE s END"
    ),
    "t_cp1252(s)": (
        r"CASE WHEN strlen(s) = length(s) THEN s ELSE regexp_replace(regexp_replace(s, '[\x{10000}-\x{10FFFF}]', "
        rf"'??', 'g'), '[^\x{{0}}-\x{{7f}}\x{{a0}}-\x{{ff}}{_CP1252}]', '?', 'g') END"
    ),
    "t_ticks(ts)": "epoch_us(ts) * 10 + 621355968000000000",
    "t_timestamp(ticks)": "make_timestamp(ticks // 10 - 62135596800000000)",
    "t_round(ticks, unit)": "((ticks + unit // 2) // unit) * unit",
    # datetime counts 1/300 s; shown and held as the nearest millisecond (.000 .003 .007)
    "t_third(us)": (
        "make_timestamp((us // 86400000000) * 86400000000 "
        "+ ((((us % 86400000000) * 3 + 5000) // 10000) * 10 + 1) // 3 * 1000 - 62135596800000000)"
    ),
    "t_from_third(ts)": (
        "(t_ticks(ts) // 864000000000) * 864000000000 "
        "+ (((((t_ticks(ts) % 864000000000) // 10000) * 3 + 5) // 10) * 100000 + 1) // 3"
    ),
    # docs (SET DATEFORMAT, date and time literals): in a text for datetime and smalldatetime that has hyphens and no T,
    # the format says which of the two numbers after the year is the day
    "t_session_date(s)": (
        rf"CASE WHEN getvariable('day_first') AND regexp_matches(s, '{_HYPHENS}') "
        rf"THEN regexp_replace(s, '{_HYPHENS}', '\1-\3-\2\4') ELSE s END"
    ),
    "t_is_iso(s)": f"regexp_matches(s, '{_ISO}')",
    "t_iso_date(s)": (
        f"CASE WHEN regexp_matches(s, '{_ISO_DATE}') THEN regexp_extract(s, '{_ISO_DATE}', 1) || '-' "
        f"|| regexp_extract(s, '{_ISO_DATE}', 2) || '-' || regexp_extract(s, '{_ISO_DATE}', 3) ELSE '1900-01-01' END"
    ),
    "t_iso_time(s, part)": f"lpad(regexp_extract(s, '{_ISO_TIME}', part), 2, '0')",
    # ticks since 0001-01-01 of an ISO date, time, or both; NULL for what is neither
    "t_parse(s)": (
        f"CASE WHEN regexp_matches(s, '{_ISO}') THEN t_ticks(try_cast(t_iso_date(s) || ' ' || t_iso_time(s, 1) "
        "|| ':' || t_iso_time(s, 2) || ':' || t_iso_time(s, 3) AS TIMESTAMP)) "
        f"+ CAST(rpad(regexp_extract(s, '{_ISO_TIME}', 4), 7, '0') AS BIGINT) END"
    ),
    "t_parse_offset(s)": (
        f"CASE WHEN regexp_extract(s, '{_ISO_OFFSET}', 1) IN ('', 'Z') THEN 0 ELSE "
        f"(CAST(substr(regexp_extract(s, '{_ISO_OFFSET}', 1), 2, 2) AS INTEGER) * 60 "
        f"+ CAST(substr(regexp_extract(s, '{_ISO_OFFSET}', 1), 5, 2) AS INTEGER)) "
        f"* CASE WHEN regexp_extract(s, '{_ISO_OFFSET}', 1) LIKE '-%' THEN -1 ELSE 1 END END"
    ),
    "t_offset_text(m)": (
        "CASE WHEN m < 0 THEN '-' ELSE '+' END || lpad(CAST(abs(m) // 60 AS VARCHAR), 2, '0') || ':' "
        "|| lpad(CAST(abs(m) % 60 AS VARCHAR), 2, '0')"
    ),
    # DuckDB shows no zero fraction; a microsecond more, which is cut off again, makes it show six digits
    "t_stamp(ticks, scale)": (
        "CASE WHEN scale = 0 THEN left(CAST(t_timestamp(ticks) AS VARCHAR), 19) "
        "WHEN scale < 6 THEN left(CAST(t_timestamp(ticks + 10) AS VARCHAR), 20 + scale) "
        "ELSE left(CAST(t_timestamp(ticks) AS VARCHAR), 19) || '.' "
        "|| substr(CAST(10000000 + ticks % 10000000 AS VARCHAR), 2, scale) END"
    ),
    # the number without its decimal point, and back
    "t_unscaled(d)": "CAST(replace(CAST(d AS VARCHAR), '.', '') AS HUGEINT)",
    "t_scaled(u, power, scale)": (
        "CASE WHEN u < 0 THEN '-' ELSE '' END || CAST(abs(u) // power AS VARCHAR) "
        "|| CASE WHEN scale = 0 THEN '' ELSE '.' || lpad(CAST(abs(u) % power AS VARCHAR), scale, '0') END"
    ),
    "t_lsn(n)": "unhex(lpad(to_hex(n), 20, '0'))",
    "t_number_of_lsn(b)": "CAST('0x' || hex(b) AS HUGEINT)",
}


def create_macros(connection: duckdb.DuckDBPyConnection) -> None:
    """Define the macros in a DuckDB instance; every connection to it sees them."""
    # the same for collations in which case counts
    sensitive = {"t_like_exact(p, e)": _MACROS["t_like(p, e)"].replace("(?is)", "(?s)")}
    for signature, body in {**_MACROS, **sensitive}.items():
        connection.execute(f"CREATE MACRO {signature} AS ({body})")
