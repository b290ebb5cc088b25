"""Schemas by their hash, kept once: what the columns were when a table was last loaded."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.checkpoint_store import Variables
from airflow_provider_mssql_cdc.core.table import TableSchema, described, hash_of

KEY_PREFIX = "mssql_cdc_schema__"
"""Begins the key of every Variable that holds a schema."""

PIECE = 3900
"""Characters of a piece: a Hive metastore keeps table properties of up to 4,000 characters."""

_DIGITS = 16


@dataclass(frozen=True, slots=True)
class KeptSchema:
    """A schema as its hash is made of it.

    :param canonical: the JSON of its columns (column_id, name, type, length, precision, scale, nullability, collation,
        computed) and its key
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

    def describe(self) -> tuple[str, ...]:
        """Each column as text for people, the key's columns marked."""
        data = json.loads(self.canonical)
        return tuple(
            described(name, type_, length, precision, scale, nullable=nullable, in_key=name in data["key"])
            for _, name, type_, length, precision, scale, nullable, _, _ in data["columns"]
        )

    def pieces(self) -> list[str]:
        """The schema as texts of at most ``PIECE`` characters, in order, compressed."""
        # digits alone: Spark shows no property whose value looks like a secret, or has "url" in it
        whole = zlib.compress(self.canonical.encode(), 9).hex()
        return [whole[i : i + PIECE] for i in range(0, len(whole), PIECE)]


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


def differing(then: KeptSchema | None, now: TableSchema) -> str:
    """Two column lists for people, or the one that is known."""
    said = ", ".join(then.describe()) if then else "not known: no schema of its hash is kept"
    return f"  then: {said}\n  now:  {', '.join(now.describe())}\n"
