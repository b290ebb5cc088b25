import dataclasses
import random

import pytest

from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema, quote, same_schema

ID = Column(1, 1, "id", "int", 4, 10, 0, nullable=False)
NAME = Column(2, 3, "name", "nvarchar", 40, collation="SQL_Latin1_General_CP1_CI_AS")
TOTAL = Column(3, 4, "total", "decimal", 9, 18, 2, computed=True)
SCHEMA = TableSchema((ID, NAME, TOTAL), ("id",))


def test_the_hash_is_prefixed_and_stable():
    # worked out once with sha256sum over the JSON that the contract describes
    import hashlib

    canonical = (
        '{"columns":[[1,"id","int",4,10,0,false,null,false],'
        '[3,"name","nvarchar",40,0,0,true,"SQL_Latin1_General_CP1_CI_AS",false],'
        '[4,"total","decimal",9,18,2,true,null,true]],"key":["id"]}'
    )
    assert SCHEMA.hash == "1:" + hashlib.sha256(canonical.encode()).hexdigest()


def test_the_order_in_which_columns_are_given_does_not_count():
    columns = list(SCHEMA.columns)
    random.shuffle(columns)
    assert TableSchema(tuple(columns), ("id",)).hash == SCHEMA.hash


@pytest.mark.parametrize(
    "change",
    [
        {"column_id": 9},
        {"name": "x"},
        {"type": "varchar"},
        {"length": 42},
        {"precision": 1},
        {"scale": 1},
        {"nullable": False},
        {"collation": None},
        {"computed": True},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_property_of_a_column_counts(change):
    changed = dataclasses.replace(NAME, **change)
    assert TableSchema((ID, changed, TOTAL), ("id",)).hash != SCHEMA.hash


def test_the_key_and_its_order_count():
    assert TableSchema(SCHEMA.columns, ("id", "name")).hash != TableSchema(SCHEMA.columns, ("name", "id")).hash
    assert TableSchema(SCHEMA.columns, ()).hash != SCHEMA.hash


def test_a_hash_of_another_format_is_no_change():
    assert same_schema("0:whatever", SCHEMA)
    assert same_schema(SCHEMA.hash, SCHEMA)
    assert not same_schema("1:" + "0" * 64, SCHEMA)


def test_targets_hold_all_but_computed_columns():
    assert SCHEMA.loaded == (ID, NAME)


@pytest.mark.parametrize(
    ("column", "lob"),
    [
        (Column(1, 1, "c", "nvarchar", -1), True),
        (Column(1, 1, "c", "varbinary", -1), True),
        (Column(1, 1, "c", "xml", -1), True),
        (Column(1, 1, "c", "text", 16), True),
        (Column(1, 1, "c", "nvarchar", 8000), False),
        (Column(1, 1, "c", "int", 4), False),
    ],
)
def test_which_columns_are_lobs(column, lob):
    assert column.is_lob is lob


def test_names_are_quoted_for_t_sql():
    assert quote("a]b") == "[a]]b]"
    assert TableName("my schema", "t.x]").quoted == "[my schema].[t.x]]]"
