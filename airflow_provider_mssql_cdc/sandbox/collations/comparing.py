"""What stands for a text where it is compared: which table of weights, in DuckDB's SQL and in Python.

A collation travels with the type of an expression: by its name, behind it the mark of a COLLATE clause; '' is what a
literal or variable has, which takes that of the other side, or the database's; two names are a conflict.
"""

from __future__ import annotations

import functools
import re
from contextvars import ContextVar
from dataclasses import replace

from airflow_provider_mssql_cdc.sandbox.collations.names import COLLATIONS, DEFAULT, Collation
from airflow_provider_mssql_cdc.sandbox.collations.weights import CHARACTERS, WINDOWS_2000, WINDOWS_2008
from airflow_provider_mssql_cdc.sandbox.collations.word_sort import WordSort
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.types import SqlType

DATABASE: ContextVar[str] = ContextVar("database_collation", default=DEFAULT)
"""The collation of the database in which a statement is compiled."""

_EXPLICIT = "!"
_CONFLICT = "|"
_BYTES = frozenset(("char", "varchar", "text"))
_TEXTS = frozenset((*_BYTES, "nchar", "nvarchar", "ntext", "sysname", "xml"))

WORD_SORTS = {
    "word": WordSort(WINDOWS_2000, case=False),
    "word_cs": WordSort(WINDOWS_2000, case=True),
    "word_100": WordSort(WINDOWS_2008, case=False),
}
"""By the name of a table (``names.Collation``)."""


def of_clause(type_: SqlType, name: str) -> SqlType:
    """A type whose collation a COLLATE clause names."""
    return replace(type_, collation=name + _EXPLICIT)


def collation(type_: SqlType) -> Collation:
    """The collation of a text of this type.

    :raises SqlError: 468 where two collations have met that differ
    """
    one, _, other = type_.collation.partition(_CONFLICT)
    if other:
        raise SqlError.of(468, one, other)
    return COLLATIONS[one.rstrip(_EXPLICIT) or DATABASE.get()]


def meeting(left: SqlType, right: SqlType) -> str:
    """The collation of what is made of two types (docs: collation precedence).

    :raises SqlError: 468 where COLLATE clauses name two
    """
    one, other = left.collation, right.collation
    if not one or not other or one == other:
        return one or other
    explicit = [name for name in (one, other) if name.endswith(_EXPLICIT)]
    if len(explicit) == 2:
        raise SqlError.of(468, one.rstrip(_EXPLICIT), other.rstrip(_EXPLICIT))
    if explicit:
        return explicit[0]
    names = dict.fromkeys((*one.split(_CONFLICT), *other.split(_CONFLICT)))
    return _CONFLICT.join(list(names)[:2])


def taken_from(type_: SqlType, sources: list[SqlType]) -> SqlType:
    """A type with the collation that texts of other types hand on to it."""
    if type_.name not in _TEXTS or type_.collation:
        return type_
    found = SqlType("varchar")
    for source in sources:
        if source.name in _TEXTS:
            found = replace(found, collation=meeting(found, source))
    return replace(type_, collation=found.collation) if found.collation else type_


def resolved(type_: SqlType) -> SqlType:
    """A type that says its collation where it had only that of the database."""
    return replace(type_, collation=DATABASE.get()) if type_.name in _TEXTS and not type_.collation else type_


def is_utf8(type_: SqlType) -> bool:
    """Whether a type holds UTF-8, instead of code page 1252."""
    return type_.name in _BYTES and _CONFLICT not in type_.collation and collation(type_).utf8


def table(type_: SqlType) -> str:
    """The table by which texts of a type compare."""
    found = collation(type_)
    return found.codes if type_.name in _BYTES else found.unicode


_EQUAL = {"iso_1": "t_key", "bin2": "t_key_bin", **{name: f"t_{name}" for name in WORD_SORTS}}


def equal(sql: str, type_: SqlType) -> str:
    """DuckDB text that is equal where texts are equal in SQL Server."""
    return f"{_EQUAL[table(type_)]}({sql})"


def ordered(sql: str, type_: SqlType) -> str:
    """DuckDB text that is equal where texts are, and compares as they do."""
    name = table(type_)
    if name == "iso_1":
        return f"t_sort({sql})"
    if name == "bin2":
        return f"t_sort_bytes({sql})" if type_.name in _BYTES else f"t_sort_units({sql})"
    return f"{_EQUAL[name]}({sql})"


# What LIKE compares character by character in any collation: not what weighs as several characters, or as another one
_SIMPLE = re.escape("".join(c for c in CHARACTERS if c not in "'-\u00ad¹²³ÆæŒœÞþßˆ" and not c.isascii()))
_ASCII = "\\x00-\\x7f"
_KNOWN_RANGES = re.compile("[0-9]-[0-9]|[a-z]-[a-z]|[A-Z]-[A-Z]")


def like(matched: str, sql: str, type_: SqlType, pattern: str, ranges: list[str]) -> str:
    """A LIKE, refused where it is more than a comparison of single characters.

    :param matched: the condition, as a regular expression
    :param sql: the text that is compared
    :param pattern: with which; '' where it is not known yet
    :param ranges: of the pattern, each with its two ends
    """
    name = table(type_)
    if name == "bin2":
        return matched
    simple = _ASCII if ranges else _ASCII + _SIMPLE
    refused = f"CAST(t_refused({sql}, 'LIKE of a text with such characters') AS BOOLEAN)"
    if not re.fullmatch(f"[{simple}]*", pattern, re.DOTALL) or (
        ranges and (name == "word_cs" or not all(map(_KNOWN_RANGES.fullmatch, ranges)))
    ):
        return f"coalesce({refused}, {matched})"
    return f"CASE WHEN regexp_matches({sql}, '[^{simple}]') THEN {refused} ELSE {matched} END"


@functools.lru_cache(maxsize=4096)
def equality_key(text: str, name: str) -> str:
    """What is equal for texts that are; the text itself where it is not known which others equal it.

    :param name: of the table by which they compare
    """
    if name in WORD_SORTS:
        found = WORD_SORTS[name].key(text)
        return text if found is None else found
    trimmed = text.rstrip(" ")
    return trimmed if name == "bin2" else trimmed.lower()
