import pytest

from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.target import Target, check_names, check_shapes

ORDERS = TableName("sales", "orders")
LAKE = Target.parse("iceberg://lake/shop")


def test_the_parts_of_an_address():
    assert (LAKE.catalog, LAKE.namespace) == ("lake", ("shop",))
    assert Target.parse("iceberg://lake/a/b/").namespace == ("a", "b")


@pytest.mark.parametrize(
    "address", ["", "lake/shop", "iceberg://lake", "iceberg://lake/", "delta://lake/shop", "iceberg:///shop"]
)
def test_other_addresses_are_refused(address):
    with pytest.raises(ValueError, match="iceberg://catalog/namespace"):
        Target.parse(address)


@pytest.mark.parametrize(
    ("shape", "suffix", "name"),
    [
        ("mirror", "", "sales_orders"),
        ("history", "", "sales_orders_history"),
        ("history", "_replay", "sales_orders_history_replay"),
    ],
)
def test_the_name_of_a_sinks_table(shape, suffix, name):
    assert LAKE.table("{schema}_{table}", ORDERS, shape, suffix) == ("lake", "shop", name)


@pytest.mark.parametrize("shapes", [[], ["mirror", "mirror"], ["scd9"], ["mirror", ""]])
def test_shapes_are_known_and_named_once(shapes):
    with pytest.raises(ValueError, match="shapes="):
        check_shapes(shapes)


@pytest.mark.parametrize(
    ("template", "tables", "shapes"),
    [
        ("{table}", [ORDERS, TableName("old", "orders")], ["mirror"]),
        ("{table}", [ORDERS, TableName("old", "ORDERS")], ["mirror"]),
        ("{schema}_{table}", [TableName("a", "b_c"), TableName("a_b", "c")], ["mirror"]),
        ("{table}", [TableName("s", "t"), TableName("s", "t_history")], ["mirror", "history"]),
    ],
)
def test_two_sinks_on_one_table_are_refused(template, tables, shapes):
    with pytest.raises(ValueError, match="would both be loaded into"):
        check_names(LAKE, template, tables, shapes)


def test_different_names_pass():
    check_names(LAKE, "{schema}_{table}", [ORDERS, TableName("old", "orders")], ["mirror", "history"])
