"""Schemas that are kept once for each hash."""

import json
import random
import string

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.schema import (
    KeptSchema,
    SchemaStore,
    from_pieces,
    from_properties,
    properties,
)
from airflow_provider_mssql_cdc.core.table import Column, TableSchema
from tests.support.core.strategies import names
from tests.support.core.variables import Variables

WORDS = random.Random(7)


def long_name(number: int) -> str:
    """A name of 100 characters that hardly compresses."""
    return f"{number:03d} äöüß漢字 " + "".join(WORDS.choice(string.ascii_letters + string.digits) for _ in range(89))


WIDE_COLUMNS = tuple(Column(n, n, long_name(n), "nvarchar", 200) for n in range(1, 301))
WIDE = TableSchema(WIDE_COLUMNS, (WIDE_COLUMNS[0].name,))
"""300 columns whose names have 100 characters."""


def columns():
    return st.builds(
        Column,
        ordinal=st.integers(1, 300),
        column_id=st.integers(1, 1000),
        name=names,
        type=st.sampled_from(["int", "nvarchar", "decimal"]),
        length=st.integers(-1, 8000),
        precision=st.integers(0, 38),
        scale=st.integers(0, 38),
        nullable=st.booleans(),
        collation=st.none() | names,
        computed=st.booleans(),
    )


schemas = st.lists(columns(), min_size=1, max_size=6, unique_by=lambda column: column.column_id).map(
    lambda found: TableSchema(tuple(sorted(found, key=lambda c: c.column_id)), (found[0].name,))
)


@given(schemas)
def test_a_kept_schema_is_the_one_of_its_hash(schema):
    kept = KeptSchema.of(schema)
    assert kept.hash == schema.hash
    facts = sorted(schema.columns, key=lambda column: column.column_id)
    assert [(c.column_id, c.name, c.type, c.nullable, c.collation, c.computed) for c in kept.columns] == [
        (c.column_id, c.name, c.type, c.nullable, c.collation, c.computed) for c in facts
    ]
    assert kept.key == schema.key
    assert from_pieces(schema.hash, kept.pieces()) == kept


def test_three_hundred_columns_of_a_hundred_characters_go_into_short_pieces():
    kept = KeptSchema.of(WIDE)
    assert all(len(column.name) == 100 for column in WIDE.columns)
    found = properties(kept)
    assert len(found) > 4
    assert all(0 < len(text) < 4000 for text in found.values())
    # else Spark may take one for a secret, and show it to nobody (spark.redaction.regex)
    assert all(set(text) <= set(string.hexdigits) for text in found.values())
    shuffled = {"format-version": "3", **dict(sorted(found.items(), reverse=True))}
    assert from_properties(WIDE.hash, shuffled) == kept
    assert [column.name for column in kept.columns] == [column.name for column in WIDE.columns]


def test_pieces_that_are_not_all_there_are_no_schema():
    kept = KeptSchema.of(WIDE)
    pieces = kept.pieces()
    for damaged in (pieces[:-1], pieces[1:], [], ["no digits"], [*pieces, "ABCD"][::-1]):
        assert from_pieces(kept.hash, damaged) is None
    assert from_pieces("1:abc", pieces) is None
    assert from_properties("1:abc", {"owner": "me"}) is None


def test_the_store_writes_a_schema_once_and_believes_none_that_is_not_of_its_hash():
    class Counting(Variables):
        written = 0

        def set(self, key, value, description=None):
            self.written += 1
            self[key] = value

    variables = Counting()
    store, kept = SchemaStore(variables), KeptSchema.of(WIDE)
    assert store.find(kept.hash) is None
    for _ in range(2):
        store.keep(kept)
    (key,) = variables
    assert (key, variables.written) == (f"mssql_cdc_schema__{kept.hash[2:18]}", 1)
    assert store.find(kept.hash) == kept
    # by another hash with the same first digits, by hand
    variables[key] = json.dumps({"columns": [], "key": []})
    assert store.find(kept.hash) is None
