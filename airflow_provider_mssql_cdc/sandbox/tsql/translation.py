"""DuckDB's errors as SQL Server reports what caused them."""

from __future__ import annotations

import re

import duckdb

from airflow_provider_mssql_cdc.sandbox.engine.macros import RAISED
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError, Unsupported

# what DuckDB says of a number that is too large; any other failed conversion is one that the sandbox did not foresee
_RANGE = re.compile("Conversion Error|Out of Range Error")
_RESULT = re.compile(r"(?:destination type|decimal value \S+ to type|Overflow in \w+ of) (\w+)")
_FROM_DECIMAL = re.compile(r"Casting value .* to type DECIMAL")
_TO_DECIMAL = re.compile(r"Could not cast value (\S+) to DECIMAL")
_NAMED = re.compile(r"converting (\w+) to data type (\w+)")
_TYPES = {
    "UINT8": "tinyint", "INT8": "tinyint", "INT16": "smallint", "INT32": "int", "INT64": "bigint",
    "FLOAT": "real", "DOUBLE": "float", "DECIMAL": "numeric", "INT128": "numeric",
}  # fmt: skip
_LARGEST_INT = 2**31 - 1


def translated(error: duckdb.Error) -> SqlError:
    """A DuckDB error as SQL Server reports what caused it."""
    text = str(error)
    raised = RAISED.search(text)
    if raised and raised[1] == "50000":
        return Unsupported.read(raised[2].strip())
    if raised:
        severity = 14 if raised[1] in ("229",) else 16
        named = _NAMED.search(raised[2]) if raised[1] == "8115" else None
        state = _state(named[1], named[2]) if named is not None else 1
        return SqlError(int(raised[1]), raised[2].strip(), severity=severity, state=state)
    if isinstance(error, duckdb.InterruptException):
        return SqlError.of(3617)
    pair = _overflow(text) if _RANGE.match(text) else None
    if pair is not None:
        return SqlError.of(8115, *pair, state=_state(*pair))
    if "must appear in the GROUP BY" in text:
        return SqlError.of(8120)
    if "More than one row returned by a subquery" in text:
        return SqlError.of(512)
    if "aggregate" in text.lower() and "WHERE" in text:
        return SqlError.of(147)
    return Unsupported(text.splitlines()[0])


def _overflow(text: str) -> tuple[str, str] | None:
    """What was converted to which type when a number was too large, as error 8115 names them."""
    found = _RESULT.search(text)
    if found is not None:
        type_ = _TYPES.get(found[1])
        return None if type_ is None else ("expression", type_)
    if _FROM_DECIMAL.search(text):
        return "numeric", "numeric"
    given = _TO_DECIMAL.search(text)
    if given is not None:
        value = given[1]
        source = "float" if not value.lstrip("-").isdecimal() else "bigint" if abs(int(value)) > _LARGEST_INT else "int"
        return source, "numeric"
    return ("expression", "datetime") if "out of range" in text and re.search("(?i)date|timestamp", text) else None


def _state(source: str, target: str) -> int:
    """The state of error 8115, by what is converted (published messages)."""
    return 2 if source == "expression" else 8 if target == "numeric" else 5
