"""Each type's way, and what is refused."""

import pytest

from airflow_provider_mssql_cdc.core.columns import check_columns, key_columns, map_columns
from airflow_provider_mssql_cdc.core.exceptions import UnsupportedColumnError
from airflow_provider_mssql_cdc.core.position import Version
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema

TABLE = TableName("dbo", "t")


def schema(*columns, key=()):
    return TableSchema(tuple(Column(n, n, *column) for n, column in enumerate(columns, start=1)), key)


@pytest.mark.parametrize(
    ("column", "select", "targets"),
    [
        (("a]b", "tinyint"), "[a]]b]", [("a]b", "SMALLINT")]),
        (("a", "decimal", 9, 38, 10), "[a]", [("a", "DECIMAL(38,10)")]),
        (("a", "money"), "[a]", [("a", "DECIMAL(19,4)")]),
        (
            ("a", "datetime2", 8, 27, 7),
            "CONVERT(varchar(27), [a], 121)",
            [("a", "TIMESTAMP_NTZ"), ("a__text", "STRING")],
        ),
        (("a", "datetime2", 8, 26, 6), "CONVERT(varchar(27), [a], 121)", [("a", "TIMESTAMP_NTZ")]),
        (
            ("a", "datetimeoffset", 10, 26, 0),
            "CONVERT(varchar(34), [a], 121)",
            [("a", "TIMESTAMP"), ("a__text", "STRING")],
        ),
        (("a", "time", 5, 16, 7), "CONVERT(varchar(16), [a], 121)", [("a", "STRING")]),
        (("a", "date"), "CONVERT(varchar(10), [a], 23)", [("a", "DATE")]),
        (("a", "timestamp", 8), "[a]", [("a", "BINARY")]),
        (("a", "nchar", 20), "[a]", [("a", "STRING")]),
    ],
)
def test_the_way_of_a_column(column, select, targets):
    (mapping,) = map_columns(TABLE, schema(column))

    assert mapping.select == select
    assert [(target.name, target.type) for target in mapping.targets] == targets
    assert mapping.alias == "c1"


@pytest.mark.parametrize("type_", ["sql_variant", "hierarchyid", "geometry", "geography", "json", "vector", "MyType"])
def test_a_type_that_would_change_is_refused_by_name(type_):
    with pytest.raises(UnsupportedColumnError, match=f"'b' of type {type_} .*@captured_column_list"):
        check_columns(TABLE, schema(("a", "int"), ("b", type_)))


def test_computed_columns_are_left_out_whatever_their_type():
    columns = (Column(1, 1, "a", "int"), Column(2, 2, "b", "sql_variant", computed=True))

    assert [mapping.column.name for mapping in map_columns(TABLE, TableSchema(columns, ("a",)))] == ["a"]


@pytest.mark.parametrize(
    "columns",
    [
        [("a", "datetime2", 8, 27, 7), ("a__text", "int")],
        [("A__TEXT", "int"), ("a", "datetime2", 8, 27, 7)],
        [("x", "int"), ("X", "int")],
        [("_op", "int")],
        [("_LSN", "int")],
        [("_row_id", "bigint")],
        [("_mssql_cdc_key_0", "int")],
    ],
)
def test_a_name_that_is_taken_is_refused(columns):
    with pytest.raises(UnsupportedColumnError, match="the name of"):
        check_columns(TABLE, schema(*columns))


@pytest.mark.parametrize("name", ["_version", "_FROM_VERSION", "_to_version", "_read_at"])
def test_names_of_columns_of_versions_are_taken_where_positions_are_versions(name):
    check_columns(TABLE, schema((name, "int")))
    with pytest.raises(UnsupportedColumnError, match="the name of"):
        check_columns(TABLE, schema((name, "int")), position=Version)
    check_columns(TABLE, schema(("_lsn", "int")), position=Version)


def test_keys_are_compared_by_what_is_exact():
    columns = schema(("a", "datetime2", 8, 27, 7), ("b", "datetime2", 8, 26, 6), ("c", "int"), key=("a", "b", "c"))
    check_columns(TABLE, columns)
    assert key_columns(columns, map_columns(TABLE, columns)) == ("a__text", "b", "c")

    with pytest.raises(UnsupportedColumnError, match="part of the key"):
        check_columns(TABLE, schema(("a", "datetimeoffset", 10, 34, 7), key=("a",)))
