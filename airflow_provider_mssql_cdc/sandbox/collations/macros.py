"""DuckDB's side of collations: macros for the plain cases, and a function in Python for the others."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import pyarrow as pa
from duckdb.func import ARROW, SPECIAL

from airflow_provider_mssql_cdc.sandbox.collations.comparing import WORD_SORTS
from airflow_provider_mssql_cdc.sandbox.collations.word_sort import WordSort

# Sort order 52. Documented of it (SQL Server 7.0: Dictionary Order, Case-insensitive; of the same order where it comes
# from, SAP ASE's localization files): first what is no letter or digit, in the order of its codes, then digits, then
# letters, an accented one behind the plain one in the order of their codes. Where the letters stand that English,
# French and German do not have is not documented, nor which of 0x80 to 0x9F are forms of one letter: measured is only
# that they come before the letters.
_ACCENTED = {"a": "àáâãäå", "c": "ç", "e": "èéêë", "i": "ìíîï", "n": "ñ", "o": "òóôõö", "u": "ùúûü", "y": "ýÿ"}
_LETTERS = "".join(letter + _ACCENTED.get(letter, "") for letter in "abcdefghijklmnopqrstuvwxyz")
_HIGH = bytes(range(0x80, 0xA0)).decode("cp1252", "ignore")
_HIGH_LETTERS = "ƒŠŒŽšœžŸ"
_COMPARED = r"\x{0}-\x{7f}\x{a0}-\x{ff}" + "".join(c for c in _HIGH if c not in _HIGH_LETTERS)
_SORTED = (
    r" -~\x{a0}-\x{a9}\x{ab}-\x{b1}\x{b4}\x{b6}-\x{b8}\x{bb}\x{bf}\x{d7}\x{f7}"
    + "".join(c for c in _HIGH if c not in _HIGH_LETTERS)
    + "".join(f"{letter}{letter.upper()}" for letter in "".join(_ACCENTED.values()) if letter != "ÿ")
)
_BEHIND = 0x400  # where what stands for digits and letters begins

_ERRORS = {"utf-16-le": "surrogatepass", "cp1252": "mssql-cp1252"}
_TRIMMED = "rtrim(s, ' ')"
_ASCII = "".join(chr(code) for code in range(0x20, 0x7F))
_PLAIN = "[ -&(-,.-~]*"
"""Printable ASCII without hyphen and apostrophe."""


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _translated(sql: str, table: dict[str, str]) -> str:
    return f"translate({sql}, {_literal(''.join(table))}, {_literal(''.join(table.values()))})"


def _refusal(verb: str) -> str:
    return f"t_refused(s, {_literal(f'{verb} texts with characters whose weights are not known')})"


def _refused(texts: pa.ChunkedArray, what: pa.ChunkedArray) -> pa.Array:
    raise ValueError(f"SQL:50000:not supported by the sandbox: {what[0].as_py()}")


def _byte_order() -> dict[str, str]:
    return {character: chr(character.encode("cp1252")[0]) for character in _HIGH}


def _iso_1() -> dict[str, str]:
    places = {c: chr(_BEHIND + i) for i, c in enumerate("0123456789" + _LETTERS)}
    return {**_byte_order(), **places}


def _word(name: str) -> str:
    sort = WORD_SORTS[name]
    plain = {c: sort.first(c.lower()) for c in _ASCII if c not in "'-"}
    first = _translated(_TRIMMED, plain)
    if name.endswith("_cs"):
        case = _translated(_TRIMMED, {c: "\x12" if c.isupper() else "\x02" for c in plain})
        first = f"{first} || CASE WHEN lower(s) = s THEN '' ELSE chr(1) || chr(1) || rtrim({case}, chr(2)) END"
    other = f"CASE WHEN s IS NOT NULL THEN coalesce(t_py_{name}(s), {_refusal('comparing')}) END"
    return f"CASE WHEN regexp_full_match(s, {_literal(_PLAIN)}) THEN {first} ELSE {other} END"


def _checked(sql: str, simulated: str, verb: str) -> str:
    return f"CASE WHEN regexp_matches(s, {_literal(f'[^{simulated}]')}) THEN {_refusal(verb)} ELSE {sql} END"


def _macros() -> dict[str, str]:
    controls = r"[\x{0}-\x{1f}]"
    return {
        "t_key(s)": (
            f"CASE WHEN strlen(s) <> length(s) AND regexp_matches(s, {_literal(f'[^{_COMPARED}]')}) "
            f"THEN {_refusal('comparing')} ELSE lower({_TRIMMED}) END"
        ),
        "t_sort(s)": _checked(_translated(f"lower({_TRIMMED})", _iso_1()), _SORTED, "sorting"),
        "t_key_bin(s)": _TRIMMED,
        # a blank at the end stands before a control character, which would have to be compared with it
        "t_sort_bytes(s)": (
            f"CASE WHEN regexp_matches(s, {_literal(controls)}) THEN {_refusal('sorting')} "
            f"ELSE {_translated(_TRIMMED, _byte_order())} END"
        ),
        "t_sort_units(s)": (
            rf"CASE WHEN regexp_matches(s, '[\x{{0}}-\x{{1f}}\x{{10000}}-\x{{10ffff}}]') THEN {_refusal('sorting')} "
            f"ELSE {_TRIMMED} END"
        ),
        **{f"t_{name}(s)": _word(name) for name in WORD_SORTS},
    }


def _keys(sort: WordSort) -> Callable[[pa.ChunkedArray], pa.Array]:
    def keys(texts: pa.ChunkedArray) -> pa.Array:
        return pa.array([None if text is None else sort.key(text) for text in texts.to_pylist()], pa.string())

    return keys


def _encoder(encoding: str) -> Callable[[pa.ChunkedArray], pa.Array]:
    def encoded(texts: pa.ChunkedArray) -> pa.Array:
        values = [None if each is None else each.encode(encoding, _ERRORS[encoding]) for each in texts.to_pylist()]
        return pa.array(values, pa.binary())

    return encoded


def _from_utf16(values: pa.ChunkedArray) -> pa.Array:
    texts = []
    for value in values.to_pylist():
        try:
            texts.append(None if value is None else value.decode("utf-16-le"))
        except UnicodeDecodeError:
            raise ValueError("SQL:50000:not supported by the sandbox: bytes as nvarchar that are no UTF-16") from None
    return pa.array(texts, pa.string())


def create_collations(connection: duckdb.DuckDBPyConnection) -> None:
    """Define the macros and functions in a DuckDB instance; every connection to it sees them."""
    # DuckDB's own error() is volatile, and PARTITION BY takes nothing that is
    connection.create_function(
        "t_refused", _refused, ["VARCHAR", "VARCHAR"], "VARCHAR", type=ARROW, null_handling=SPECIAL
    )
    for name, encoding in (("t_bytes_utf16", "utf-16-le"), ("t_bytes_cp1252", "cp1252")):
        connection.create_function(name, _encoder(encoding), ["VARCHAR"], "BLOB", type=ARROW, null_handling=SPECIAL)
    connection.create_function("t_utf16", _from_utf16, ["BLOB"], "VARCHAR", type=ARROW, null_handling=SPECIAL)
    for name, sort in WORD_SORTS.items():
        connection.create_function(
            f"t_py_{name}", _keys(sort), ["VARCHAR"], "VARCHAR", type=ARROW, null_handling=SPECIAL
        )
    for signature, body in _macros().items():
        connection.execute(f"CREATE MACRO {signature} AS ({body})")
