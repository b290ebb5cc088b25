"""Tables as the source describes them: names, columns, keys, and the hash that tells schemas apart."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.position import Lsn, Position

_HASH_FORMAT = "1"

DATETIME_TICK = datetime.timedelta(seconds=1) / 300
"""What SQL Server's ``datetime`` counts in (docs: datetime)."""

SAME_TIME = DATETIME_TICK / 2
"""Two times from ``datetime`` columns that are less apart than this are the same tick, which clients round differently
(.006667 s to .006 or .007)."""

LOB_TYPES = frozenset({"text", "ntext", "image", "xml"})
"""Types that are LOBs at any length; varchar, nvarchar and varbinary are LOBs when declared (max)."""


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """A two-part name as the catalogue spells it."""

    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"

    @classmethod
    def spelled(cls, text: str) -> list[TableName]:
        """The names that have this text: several where parts have dots."""
        parts = text.split(".")
        return [cls(".".join(parts[:n]), ".".join(parts[n:])) for n in range(1, len(parts))]

    @property
    def quoted(self) -> str:
        """The name in T-SQL, in brackets."""
        return f"{quote(self.schema)}.{quote(self.table)}"


def quote(identifier: str) -> str:
    """The identifier in T-SQL brackets, with ``]`` doubled."""
    return "[" + identifier.replace("]", "]]") + "]"


def literal(text: str) -> str:
    """The text as a T-SQL literal."""
    return "N'" + text.replace("'", "''") + "'"


def lsn_literal(position: Position) -> str:
    """The LSN as a T-SQL literal of ``binary(10)``."""
    return "0x" + Lsn.of(position).value.hex().upper()


def column_meant(name: str, columns: Sequence[str]) -> str:
    """The column that is spelt so, else the only one that differs in case alone; else the name as it is."""
    alike = [column for column in columns if column.casefold() == name.casefold()]
    return alike[0] if name not in columns and len(alike) == 1 else name


@dataclass(frozen=True, slots=True)
class Former:
    """A column of targets that a captured column has left: it keeps what was loaded, and gets NULL.

    :param suffix: behind the captured column's name in targets
    :param type: of its values, with length, precision and scale as ``Column`` has them
    :param as_text: it holds them as text
    """

    suffix: str
    type: str
    length: int = 0
    precision: int = 0
    scale: int = 0
    as_text: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A captured column.

    :param ordinal: position in the change table, from 1; also its bit in ``__$update_mask``
    :param column_id: ``column_id`` of the source table
    :param type: system type name in lower case (``datetime2``, ``nvarchar``, ..)
    :param length: bytes as ``sys.columns.max_length`` says, -1 for (max)
    :param precision: as ``sys.columns.precision``
    :param scale: as ``sys.columns.scale``: digits of decimals, fractional second digits of times
    :param computed: CDC captures computed columns as NULL, so they are left out of every target
    :param dropped: the source no longer has it; the change table does, and captures NULL since
    :param encrypted: by Always Encrypted: its values are read as bytes
    :param kept: the source no longer has it, and the targets that have it keep it: the change table captures NULL since
    :param absent: nor does the change table have it, which was made later; what its ``ordinal`` would be
    :param suffix: behind its name in targets, where its type has changed to one that their column does not hold
    :param as_text: targets hold its values as text, in the server's spelling
    :param former: the columns of targets that it has left so, in order
    """

    ordinal: int
    column_id: int
    name: str
    type: str
    length: int = 0
    precision: int = 0
    scale: int = 0
    nullable: bool = True
    collation: str | None = None
    computed: bool = False
    dropped: bool = False
    encrypted: bool = False
    kept: bool = False
    absent: bool = False
    suffix: str = ""
    as_text: bool = False
    former: tuple[Former, ...] = ()

    @property
    def moved(self) -> bool:
        """Whether targets hold it otherwise than by its name and type alone."""
        return bool(self.suffix or self.as_text or self.former)

    @property
    def is_lob(self) -> bool:
        """Whether CDC may leave this column NULL in an image without meaning NULL (docs: cdc.<instance>_CT)."""
        return self.type in LOB_TYPES or self.length == -1


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The columns of a capture instance in mask order, and the key that identifies a row.

    :param key: column names in key order; empty for a table without a key
    """

    columns: tuple[Column, ...]
    key: tuple[str, ...]

    @property
    def loaded(self) -> tuple[Column, ...]:
        """The columns that targets hold: all but those that CDC captures as NULL."""
        return tuple(column for column in self.columns if not column.computed and not column.dropped)

    @property
    def kept(self) -> tuple[str, ...]:
        """The names of the columns that targets keep, though the source no longer has them."""
        return tuple(column.name for column in self.loaded if column.kept)

    @property
    def canonical(self) -> str:
        """The JSON that the hash is made of; independent of the order in which columns are given.

        Defaults do not count, since they change no captured value.
        """
        columns = [
            [
                *(c.column_id, c.name, c.type, c.length, c.precision, c.scale, c.nullable, c.collation, c.computed),
                # where targets hold it otherwise than by its name and type alone
                *([c.suffix, c.as_text, [[*dataclasses.astuple(each)] for each in c.former]] if c.moved else ()),
            ]
            for c in sorted(self.columns, key=lambda column: column.column_id)
            if not c.dropped
        ]
        return json.dumps({"columns": columns, "key": list(self.key)}, separators=(",", ":"), ensure_ascii=True)

    @property
    def hash(self) -> str:
        """``1:`` and the SHA-256 of the canonical JSON."""
        return hash_of(self.canonical)

    def describe(self) -> tuple[str, ...]:
        """Each column as text for people, the key's columns marked."""
        return tuple(
            f"{c.name} {c.type}({c.length},{c.precision},{c.scale})"
            f"{'' if c.nullable else ' NOT NULL'}{' KEY' if c.name in self.key else ''}"
            for c in self.columns
            if not c.dropped
        )

    def column(self, name: str) -> Column:
        """The column of that name.

        :raises KeyError: if it is not captured
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)


def hash_of(canonical: str) -> str:
    """The hash of a schema's canonical JSON."""
    return f"{_HASH_FORMAT}:{hashlib.sha256(canonical.encode()).hexdigest()}"


def same_schema(stored: str, schema: TableSchema) -> bool:
    """Whether a stored hash stands for this schema. A hash of another format says nothing, so it counts as equal."""
    return not stored.startswith(_HASH_FORMAT + ":") or stored == schema.hash
