"""What nearly all rows of a table have in some columns, as exact text, and the condition of all other rows."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_mssql_cdc.core.chunks import KeyPart, can_be_cut, order
from airflow_provider_mssql_cdc.core.table import Column, literal, quote

NEARLY_ALL = 0.9
"""The share of a table's first rows that have the same values, from which on these are not read of each row."""

_LONGEST = 8_000
"""Characters of such a text: each chunk's statement holds it."""

# bytes tell apart what a collation takes for equal, and zero from negative zero
_OF_BYTES = "CONVERT(varchar(max), CONVERT(varbinary(max), {}), 2)"
_BY_BYTES = {
    **dict.fromkeys(("char", "varchar", "nchar", "nvarchar", "binary", "varbinary"), _OF_BYTES),
    "float": "CONVERT(varchar(16), CONVERT(binary(8), {}), 2)",
    "real": "CONVERT(varchar(8), CONVERT(binary(4), {}), 2)",
}


def exact_text(column: Column) -> str | None:
    """T-SQL of a column's value as text that no other value of the column has; None for a type that has no such text.

    Without one are ``xml``, ``text``, ``ntext``, ``image``, ``json``, ``vector``, ``sql_variant``, ``rowversion``, the
    types of the CLR, and what Always Encrypted hides.
    """
    if column.encrypted:
        return None
    if column.type in _BY_BYTES:
        return _BY_BYTES[column.type].format(quote(column.name))
    return KeyPart(column).as_text if can_be_cut([column]) else None


def most_frequent(columns: Sequence[Column], table: str, parts: Sequence[KeyPart], rows: int) -> str | None:
    """The query of the values that most of a table's first rows have: one row of texts ``v0``, ``v1``, .., with ``n``,
    the number of rows that have them, and ``total``; None where a column has no exact text.

    :param table: its name in T-SQL, or some of its rows as T-SQL behind FROM
    :param parts: what the table is cut by; empty where any rows may be the first
    :param rows: that are looked at
    """
    texts = [exact_text(column) for column in columns]
    if None in texts:
        return None
    named = ", ".join(f"{text} AS v{number}" for number, text in enumerate(texts))
    names = ", ".join(f"v{number}" for number in range(len(texts)))
    first = f"SELECT TOP ({rows}) {named} FROM {table}{f' ORDER BY {order(parts)}' if parts else ''}"
    counted = f"SELECT {names}, COUNT_BIG(*) AS n FROM ({first}) f GROUP BY {names}"
    return f"SELECT TOP (1) {names}, n, SUM(n) OVER () AS total FROM ({counted}) c ORDER BY n DESC"


def are_common(values: Sequence[str | None], rows: int, total: int) -> bool:
    """Whether values that some of the first rows have are those of nearly all.

    :param values: as exact texts
    :param rows: that have them
    :param total: rows that were looked at
    """
    return rows >= NEARLY_ALL * total and all(value is None or len(value) <= _LONGEST for value in values)


def same(columns: Sequence[Column], values: Sequence[str | None]) -> str:
    """The condition of the rows that have some values.

    :param values: as exact texts; None is NULL
    """
    return " AND ".join(
        f"{quote(column.name)} IS NULL" if value is None else f"{exact_text(column)} = {literal(value)}"
        for column, value in zip(columns, values, strict=True)
    )


def differing(columns: Sequence[Column], values: Sequence[str | None]) -> str:
    """The condition of all other rows.

    :param values: as exact texts; None is NULL
    """
    found = []
    for column, value in zip(columns, values, strict=True):
        name = quote(column.name)
        if value is None:
            found.append(f"{name} IS NOT NULL")
        else:
            found.append(f"{name} IS NULL OR {exact_text(column)} <> {literal(value)}")
    return f"({' OR '.join(found)})"
