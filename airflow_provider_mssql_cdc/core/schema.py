"""Schemas by their hash, kept once: what the columns were when a table was last loaded."""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_mssql_cdc.core.table import Former, TableSchema, hash_of
from airflow_provider_mssql_cdc.core.variables import Variables

KEY_PREFIX = "mssql_cdc_schema__"
"""Begins the key of every Variable that holds a schema."""

PIECE = 3900
"""Characters of a piece: a Hive metastore keeps table properties of up to 4,000 characters."""

_DIGITS = 16

_PLAIN = 9
"""Facts of a column that a schema says of each."""


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What a kept schema says of a column, as ``Column`` has it."""

    column_id: int
    name: str
    type: str
    length: int
    precision: int
    scale: int
    nullable: bool
    collation: str | None
    computed: bool
    suffix: str = ""
    as_text: bool = False
    former: tuple[Former, ...] = ()

    @property
    def type_facts(self) -> tuple[str, int, int, int, str | None, bool]:
        """What a value of the column depends on, but for NULL."""
        return self.type, self.length, self.precision, self.scale, self.collation, self.computed

    @property
    def type_text(self) -> str:
        """The type for people."""
        collation = f" COLLATE {self.collation}" if self.collation else ""
        computed = ", computed" if self.computed else ""
        return f"{self.type}({self.length},{self.precision},{self.scale}){collation}{computed}"

    @property
    def described(self) -> str:
        """The type for people, with what is said of NULL."""
        return f"{self.type_text}{'' if self.nullable else ' NOT NULL'}"


@dataclass(frozen=True, slots=True)
class KeptSchema:
    """A schema as its hash is made of it.

    :param canonical: the JSON of its columns (column_id, name, type, length, precision, scale, nullability, collation,
        computed; how targets hold it, where that is not by name and type alone) and its key
    """

    canonical: str

    @classmethod
    def of(cls, schema: TableSchema) -> KeptSchema:
        """The schema of a table."""
        return cls(schema.canonical)

    @property
    def hash(self) -> str:
        """As ``TableSchema.hash``."""
        return hash_of(self.canonical)

    @property
    def columns(self) -> tuple[ColumnFacts, ...]:
        """Its columns, in the order of their column_id."""
        return tuple(map(_facts, json.loads(self.canonical)["columns"]))

    @property
    def key(self) -> tuple[str, ...]:
        """The names of the key's columns."""
        return tuple(json.loads(self.canonical)["key"])

    def without(self, ids: Collection[int]) -> KeptSchema:
        """The schema without some columns.

        :param ids: column_ids of these
        """
        said = json.loads(self.canonical)
        left = [column for column in said["columns"] if column[0] not in ids]
        return KeptSchema(json.dumps({**said, "columns": left}, separators=(",", ":"), ensure_ascii=True))

    def pieces(self) -> list[str]:
        """The schema as texts of at most ``PIECE`` characters, in order, compressed."""
        # digits alone: Spark shows no property whose value looks like a secret, or has "url" in it
        whole = zlib.compress(self.canonical.encode(), 9).hex()
        return [whole[i : i + PIECE] for i in range(0, len(whole), PIECE)]


def _facts(said: Sequence[Any]) -> ColumnFacts:
    plain, held = said[:_PLAIN], said[_PLAIN:]
    if not held:
        return ColumnFacts(*plain)
    suffix, as_text, former = held
    columns = tuple(Former(*each) for each in former)
    return dataclasses.replace(ColumnFacts(*plain), suffix=suffix, as_text=as_text, former=columns)


KeptSchemas = Callable[[str], KeptSchema | None]
"""Finds a schema by its hash; None where it is not kept."""


def unknown_schema(hash_: str) -> KeptSchema | None:
    """Where no schema is kept."""
    return None


def from_pieces(hash_: str, pieces: Iterable[str]) -> KeptSchema | None:
    """The schema that was cut into pieces; None if they are not those of this hash."""
    try:
        found = KeptSchema(zlib.decompress(bytes.fromhex("".join(pieces))).decode())
    except (ValueError, zlib.error):
        return None
    return found if found.hash == hash_ else None


def name_of(hash_: str) -> str:
    """What the hash is called where a schema is kept: its first digits."""
    return hash_.rpartition(":")[2][:_DIGITS]


PROPERTY = "mssql_cdc.schema"
"""Begins the name of a table property that holds a piece of a schema."""


def properties(schema: KeptSchema) -> dict[str, str]:
    """The table properties that keep a schema."""
    return {f"{PROPERTY}.{name_of(schema.hash)}.{n}": piece for n, piece in enumerate(schema.pieces())}


def from_properties(hash_: str, found: Mapping[str, str]) -> KeptSchema | None:
    """The schema of this hash that table properties keep; None if they do not."""
    prefix = f"{PROPERTY}.{name_of(hash_)}."
    pieces = {int(name[len(prefix) :]): text for name, text in found.items() if name.startswith(prefix)}
    return from_pieces(hash_, (pieces[n] for n in sorted(pieces)))


class SchemaStore:
    """Keeps schemas as Airflow Variables, each once, by its hash.

    :param variables: ``airflow.sdk.Variable``
    """

    def __init__(self, variables: Variables) -> None:
        self._variables = variables

    def find(self, hash_: str) -> KeptSchema | None:
        """The schema of this hash; None if it is not kept, or is damaged."""
        text = self._variables.get(KEY_PREFIX + name_of(hash_), default=None)
        found = None if text is None else KeptSchema(text)
        return found if found is not None and found.hash == hash_ else None

    def keep(self, schema: KeptSchema) -> None:
        """Keep the schema unless it is there."""
        if self.find(schema.hash) is None:
            key = KEY_PREFIX + name_of(schema.hash)
            self._variables.set(key, schema.canonical, description=f"CDC: the columns of schema {schema.hash}")
