"""Schemas that are kept once for each hash."""

import dataclasses
import json
import random
import string

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.schema import (
    KeptSchema,
    SchemaStore,
    as_loaded,
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


@given(schemas, st.data())
def test_a_sink_goes_on_with_columns_that_were_dropped_or_may_be_null_now(loaded, data):
    others = [column for column in loaded.columns if column.name not in loaded.key]
    some = st.sets(st.sampled_from(others)) if others else st.just(set())
    gone, other = data.draw(some, label="dropped"), data.draw(some, label="with another nullability")
    # the change table tells nothing of what the source's catalogue alone had
    forgotten = {"dropped": True, "nullable": True, "collation": None, "computed": False}

    def then_and_now(column):
        if column in gone:
            return dataclasses.replace(column, **forgotten)
        return dataclasses.replace(column, nullable=column.nullable != (column in other))

    # a second instance has more columns, and those of both in another order
    ids, names_ = {c.column_id for c in loaded.columns}, {c.name for c in loaded.columns}
    more = data.draw(st.lists(columns(), max_size=3, unique_by=lambda column: column.column_id), label="added")
    added = [column for column in more if column.column_id not in ids and column.name not in names_]
    there = data.draw(st.permutations([*map(then_and_now, loaded.columns), *added]))
    now = dataclasses.replace(loaded, columns=tuple(there))
    found = as_loaded(now, KeptSchema.of(loaded))
    assert found.hash == loaded.hash
    assert sorted(found.kept) == sorted(c.name for c in loaded.columns if c in gone and not c.computed)
    in_order = sorted(found.columns, key=lambda column: column.column_id)
    assert [dataclasses.replace(column, kept=False) for column in in_order] == list(loaded.columns)
    assert as_loaded(now, None) is now

    # what else changed counts, and so does whether a column by which copies are cut may be NULL
    column = data.draw(st.sampled_from(loaded.columns), label="longer")
    also = dataclasses.replace(column, length=column.length + 1, dropped=False)
    changed = tuple(also if each.column_id == column.column_id else each for each in now.columns)
    altered = dataclasses.replace(now, columns=changed)
    assert as_loaded(altered, KeptSchema.of(loaded)) is altered
    for column in other - gone:
        assert as_loaded(now, KeptSchema.of(loaded), (column.name,)) is now


def test_columns_that_count_may_be_spelled_in_another_case():
    columns = [Column(1, 1, "id", "int", 4, 10, nullable=False), Column(2, 2, "Region", "int", 4, 10, nullable=False)]
    now = TableSchema((columns[0], dataclasses.replace(columns[1], nullable=True)), ("id",))
    loaded = KeptSchema.of(TableSchema(tuple(columns), ("id",)))
    assert as_loaded(now, loaded, ("region",)) is now
    assert as_loaded(now, loaded).hash == loaded.hash


def test_a_computed_column_that_is_dropped_was_in_no_target():
    columns = [Column(1, 1, "id", "int", 4, 10), Column(2, 2, "total", "int", 4, 10, computed=True)]
    loaded = TableSchema(tuple(columns), ("id",))
    now = TableSchema((columns[0], dataclasses.replace(columns[1], computed=False, dropped=True)), ("id",))
    found = as_loaded(now, KeptSchema.of(loaded))
    assert (found.hash, found.kept) == (loaded.hash, ())


def test_whether_the_key_may_be_null_counts():
    key = Column(1, 1, "id", "int", 4, 10, nullable=False)
    loaded = TableSchema((key,), ("id",))
    now = TableSchema((dataclasses.replace(key, nullable=True),), ("id",))
    assert as_loaded(now, KeptSchema.of(loaded)) is now


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
