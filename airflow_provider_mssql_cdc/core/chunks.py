"""Chunks of keys: the places at which a table is cut to be copied, as T-SQL and as exact text."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from airflow_provider_mssql_cdc.core.table import Column, quote

_HEX = "[0-9A-Fa-f]*"
_WHOLE = r"-?\d{1,19}"
_MOMENT = r"[-+:. \d]+"

_WAYS = {
    # type: how a value is read as text, what such a text looks like, and how it is written as a value again
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "bit"), ("CONVERT(varchar(20), {})", _WHOLE, "{}")),
    **dict.fromkeys(("decimal", "numeric"), ("CONVERT(varchar(41), {})", r"-?[.\d]+", "{}")),
    # style 2: all four digits behind the point
    **dict.fromkeys(("money", "smallmoney"), ("CONVERT(varchar(30), {}, 2)", r"-?[.\d]+", "{}")),
    # style 3: as many digits as come back to the same value (docs: CAST and CONVERT)
    **dict.fromkeys(("float", "real"), ("CONVERT(varchar(32), {}, 3)", r"[-+.\deE]+", "{}")),
    # style 121 is read the same in every language and with every DATEFORMAT
    "date": ("CONVERT(varchar(10), {}, 121)", _MOMENT, "'{}'"),
    "time": ("CONVERT(varchar(16), {}, 121)", _MOMENT, "'{}'"),
    **dict.fromkeys(("datetime", "smalldatetime"), ("CONVERT(varchar(23), {}, 121)", _MOMENT, "'{}'")),
    "datetime2": ("CONVERT(varchar(27), {}, 121)", _MOMENT, "'{}'"),
    "datetimeoffset": ("CONVERT(varchar(34), {}, 121)", _MOMENT, "'{}'"),
    "uniqueidentifier": ("CONVERT(varchar(36), {})", "[-0-9A-Fa-f]{36}", "'{}'"),
    # as bytes, which hold blanks at the end, and NUL
    **dict.fromkeys(("binary", "varbinary"), ("CONVERT(varchar(8000), CONVERT(varbinary(8000), {}), 2)", _HEX, "0x{}")),
    # as the bytes of UTF-16, which the code page of the database does not change
    **dict.fromkeys(
        ("char", "varchar", "nchar", "nvarchar"),
        ("CONVERT(varchar(8000), CONVERT(varbinary(8000), CONVERT(nvarchar(4000), {})), 2)", _HEX, "0x{}"),
    ),
}
_STYLED = frozenset(("date", "time", "datetime", "smalldatetime", "datetime2", "datetimeoffset"))
_SHOWN = 60
_COLLATION = re.compile(r"\w+", re.ASCII)
# code pages of two bytes have characters twice, which come back from UTF-16 as the other one; these tell them apart
_BY_CODE = re.compile(r"(?!Latin1_General_)\w+_BIN2?", re.ASCII)


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A column by which a table is cut.

    :param descending: whether the index has it so
    """

    column: Column
    descending: bool = False

    @property
    def name(self) -> str:
        """The column in T-SQL."""
        return quote(self.column.name)

    @property
    def as_text(self) -> str:
        """T-SQL of the column's value as exact text: what ``value`` makes of it is equal to the server.

        :raises KeyError: for a type that no chunk can be cut by (``can_be_cut``)
        """
        read, _, _ = _WAYS[self.column.type]
        return read.format(self.name)

    def value(self, text: str) -> str:
        """T-SQL of a value, typed as the column is, and in its collation: another one would not be sought in the index.

        :param text: as ``as_text`` has given it
        :raises ValueError: if it is no such text
        """
        column = self.column
        _, pattern, written = _WAYS[column.type]
        if not re.fullmatch(pattern, text):
            # not the text, which may be hashed in the target
            raise ValueError(f"what was read as a value of {column.name} is none of {column.type}")
        value = written.format(text)
        if column.type in ("nchar", "nvarchar"):
            return collated(f"CONVERT({self._type}, {value})", column)
        if column.type in ("char", "varchar"):
            # from UTF-16 into the code page of the column's collation, not into that of the database
            return f"CONVERT({self._type}, {collated(f'CONVERT(nvarchar(4000), {value})', column)})"
        return f"CONVERT({self._type}, {value}{', 121' if column.type in _STYLED else ''})"

    def text_of(self, value: Any) -> str:
        """What ``as_text`` gives of a value, or a text that ``value`` takes for the same.

        :param value: as Spark hands it to Python; a moment with a zone as text in UTC
        """
        kind = self.column.type
        if kind in ("char", "varchar", "nchar", "nvarchar"):
            return str(value).encode("utf-16-le").hex()
        if isinstance(value, bytes | bytearray):
            return value.hex()
        if kind in ("float", "real"):
            # with an exponent, since a decimal would be rounded twice
            return text if "e" in (text := repr(value)) else f"{text}e0"
        if isinstance(value, Decimal):
            return format(value, "f")
        if isinstance(value, datetime.datetime):
            return value.isoformat(" ", "milliseconds" if kind in ("datetime", "smalldatetime") else "microseconds")
        if kind == "datetimeoffset":
            return f"{value} +00:00"
        return str(int(value) if isinstance(value, bool) else value)

    def shown(self, text: str | None) -> str:
        """A value for people.

        :param text: as ``as_text`` has given it
        """
        if text is None:
            return "NULL"
        if self.column.type in ("char", "varchar", "nchar", "nvarchar"):
            text = bytes.fromhex(text).decode("utf-16-le", "replace")
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}.."

    @property
    def _type(self) -> str:
        column = self.column
        if column.type in ("decimal", "numeric"):
            return f"{column.type}({column.precision}, {column.scale})"
        if column.type in ("time", "datetime2", "datetimeoffset"):
            return f"{column.type}({column.scale})"
        if column.type in ("nchar", "nvarchar"):
            return f"{column.type}({column.length // 2})"
        if column.type in ("char", "varchar", "binary", "varbinary"):
            return f"{column.type}({column.length})"
        return column.type


def collated(value: str, column: Column) -> str:
    """T-SQL of a text in the collation of a column, where that has one."""
    return f"{value} COLLATE {column.collation}" if _COLLATION.fullmatch(column.collation or "") else value


def shown(parts: Sequence[KeyPart], bound: Bound | None) -> str | None:
    """A place in the order of the key for people; None where there is none."""
    if bound is None:
        return None
    return f"({', '.join(part.shown(text) for part, text in zip(parts, bound, strict=True))})"


Bound = tuple[str | None, ...]
"""A row's place in the order of the key: each part as exact text; None is NULL."""


def can_be_cut(columns: Sequence[Column]) -> bool:
    """Whether chunks can be cut by these columns.

    Not by ``sql_variant``, by types of the CLR, by what Always Encrypted hides, or by texts whose bytes count and may
    not come back.
    """
    return all(
        column.type in _WAYS
        and not column.is_lob
        and not column.encrypted
        and not (column.type in ("char", "varchar") and _BY_CODE.fullmatch(column.collation or ""))
        for column in columns
    )


def order(parts: Sequence[KeyPart], *, reverse: bool = False) -> str:
    """The order of the key, for ORDER BY.

    :param reverse: the other way round
    """
    return ", ".join(f"{part.name}{' DESC' if part.descending != reverse else ''}" for part in parts)


def chunk(parts: Sequence[KeyPart], after: Bound | None, last: Bound | None) -> str:
    """The condition of a chunk's rows; '' where it is the whole table.

    :param after: the place behind which it begins; None is the first row
    :param last: the place at which it ends; None is the last row
    """
    shared = 0
    if after is not None and last is not None:
        # what both places have is an equality, behind which the index seeks the next part
        while shared < len(parts) - 1 and after[shared] == last[shared]:
            shared += 1
    conditions = [_same(part, text) for part, text in zip(parts[:shared], after or (), strict=False)]
    conditions += [_side(parts[shared:], after[shared:], behind=True)] if after is not None else []
    conditions += [_side(parts[shared:], last[shared:], behind=False)] if last is not None else []
    return " AND ".join(conditions)


def sought(parts: Sequence[KeyPart], keys: Iterable[Bound]) -> str:
    """The condition of the rows that have one of some keys."""
    rows = (" AND ".join(_same(part, text) for part, text in zip(parts, key, strict=True)) for key in keys)
    return " OR ".join(f"({row})" for row in rows)


def ends(parts: Sequence[KeyPart], table: str, after: Bound | None, last: Bound | None, rows: int) -> list[str]:
    """The queries of where a chunk ends, one after the other until one has a row, of texts ``b0``, ``b1``, ..

    Each reads the index from a place that it seeks: first what is left of the rows with the same first parts of the
    key, last what is behind them. A chunk has so many rows at least, and fewer than so many times the parts of the
    key. The last chunk may have fewer: no query has a row for it.

    :param table: its name, or a derived table, in T-SQL
    :param after: the place behind which it begins; None is the first row
    :param last: where the last chunk ends; None is the last row
    :param rows: of a chunk
    """
    found = []
    for shared in range(len(parts) - 1, -1, -1) if after is not None else (0,):
        own = parts[shared:]
        conditions = [_side(parts, last, behind=False)] if last is not None else []
        if after is not None:
            conditions += [_same(part, text) for part, text in zip(parts[:shared], after, strict=False)]
            conditions += [f"({_beyond(own[0], after[shared], behind=True)})"]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        nth = f"OFFSET {rows - 1} ROWS FETCH NEXT 1 ROWS ONLY"
        found.append(_texts_of(parts, f"SELECT {_names(parts)} FROM {table}{where} ORDER BY {order(own)} {nth}"))
    return found


def highest(parts: Sequence[KeyPart], table: str) -> str:
    """The query of the last row's place: one row of texts ``b0``, ``b1``, ..; none where the table is empty."""
    return _texts_of(parts, f"SELECT TOP (1) {_names(parts)} FROM {table} ORDER BY {order(parts, reverse=True)}")


def places(parts: Sequence[KeyPart], bounds: Sequence[Bound]) -> str:
    """The query of the places of bounds in the order of the key: rows of ``number``, from 0, and ``place``, which equal
    bounds share.
    """
    # names of its own, since the columns may be called so
    names = [f"k{n}" for n in range(len(parts))]
    ordered = ", ".join(f"{name}{' DESC' if part.descending else ''}" for name, part in zip(names, parts, strict=True))
    rows = ", ".join(
        f"({number}, {', '.join(_written(part, text) for part, text in zip(parts, bound, strict=True))})"
        for number, bound in enumerate(bounds)
    )
    ranked = f"RANK() OVER (ORDER BY {ordered}) AS place"
    return f"SELECT number, {ranked} FROM (VALUES {rows}) b(number, {', '.join(names)})"


def equal(parts: Sequence[KeyPart], pairs: Sequence[tuple[Bound, Bound]]) -> str:
    """The query of the pairs whose two keys are equal to the server: rows of ``number``, from 0."""
    names = [f"{side}{n}" for side in "ab" for n in range(len(parts))]
    rows = ", ".join(
        f"({number}, {', '.join(_written(part, text) for of in pair for part, text in zip(parts, of, strict=True))})"
        for number, pair in enumerate(pairs)
    )
    same = " AND ".join(f"a{n} = b{n}" for n in range(len(parts)))
    return f"SELECT number FROM (VALUES {rows}) p(number, {', '.join(names)}) WHERE {same}"


def _written(part: KeyPart, text: str | None) -> str:
    return "NULL" if text is None else part.value(text)


def _names(parts: Sequence[KeyPart]) -> str:
    return ", ".join(part.name for part in parts)


def _texts_of(parts: Sequence[KeyPart], query: str) -> str:
    # around the query, whose ORDER BY would take such a name for that of a column
    return f"SELECT {', '.join(f'{part.as_text} AS b{n}' for n, part in enumerate(parts))} FROM ({query}) t"


def _side(parts: Sequence[KeyPart], bound: Bound, *, behind: bool) -> str:
    """The rows behind a place, or those up to it and at it.

    The first part decides where it differs, else the next; bounded by the first alone, so that an index seeks.
    """
    (first, *others), (text, *rest) = parts, bound
    differs = _beyond(first, text, behind=behind)
    if not others:
        return f"({differs if behind else _reached(first, text, behind=False) or '1 = 1'})"
    nested = f"({differs} OR ({_same(first, text)} AND {_side(others, tuple(rest), behind=behind)}))"
    reached = _reached(first, text, behind=behind)
    return f"({reached} AND {nested})" if reached else nested


def _same(part: KeyPart, text: str | None) -> str:
    return f"{part.name} IS NULL" if text is None else f"{part.name} = {part.value(text)}"


def _is_upward(part: KeyPart, *, behind: bool) -> bool:
    return behind != part.descending


def _beyond(part: KeyPart, text: str | None, *, behind: bool) -> str:
    """What is on that side of a value; NULL is below all values (docs: ORDER BY)."""
    upward = _is_upward(part, behind=behind)
    if text is None:
        return f"{part.name} IS NOT NULL" if upward else "1 = 0"
    if upward:
        return f"{part.name} > {part.value(text)}"
    return f"{part.name} < {part.value(text)}" + (f" OR {part.name} IS NULL" if part.column.nullable else "")


def _reached(part: KeyPart, text: str | None, *, behind: bool) -> str:
    """What is on that side of a value, or is the value; '' is all rows."""
    upward = _is_upward(part, behind=behind)
    if text is None:
        return "" if upward else f"{part.name} IS NULL"
    if upward:
        return f"{part.name} >= {part.value(text)}"
    both = f"{part.name} <= {part.value(text)}"
    return f"({both} OR {part.name} IS NULL)" if part.column.nullable else both
