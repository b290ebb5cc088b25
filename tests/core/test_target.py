import pytest

from airflow_provider_mssql_cdc.core.exceptions import MsSqlCdcError, TargetError
from airflow_provider_mssql_cdc.core.formats import check_format, check_identifiers
from airflow_provider_mssql_cdc.core.shapes import check_shapes
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.target import Target, check_name, check_names, check_template, display_name

ORDERS = TableName("sales", "orders")
LAKE = Target.parse("iceberg://lake/shop")


def test_the_parts_of_an_address():
    assert (LAKE.format, LAKE.place) == ("iceberg", ("lake", "shop"))
    assert Target.parse("iceberg://lake/a/b/").place == ("lake", "a", "b")
    assert Target.parse("delta://spark_catalog/shop").format == "delta"


def test_a_folder_of_delta_tables():
    target = Target.parse("delta+s3a://bucket/shop/")
    assert (target.format, target.place) == ("delta", ("s3a://bucket/shop",))
    assert target.table("{schema}_{table}", ORDERS, "history") == ("s3a://bucket/shop", "sales_orders_history")
    assert display_name(target.table("{schema}_{table}", ORDERS, "mirror")) == "s3a://bucket/shop/sales_orders"


@pytest.mark.parametrize(
    "address",
    [
        *(
            "",
            "lake/shop",
            "iceberg://lake",
            "iceberg://lake/",
            "parquet://lake/shop",
            "parquet+lake",
            "iceberg:///shop",
        ),
        *("iceberg+s3a://bucket/shop", "delta+/lake", "delta+s3a://", "delta+s3a://bucket/a?b", "/lake"),
    ],
)
def test_other_addresses_are_refused(address):
    with pytest.raises(ValueError, match="iceberg://catalog/namespace"):
        Target.parse(address)


@pytest.mark.parametrize(
    "namespace", ["..", ".", "a/../../b", "%2e%2E", "a/%2e", "a%2Fb", "a\\b", "a%5cb", "..%2F..", " ", "a/ /b"]
)
def test_a_namespace_that_is_a_path_is_refused(namespace):
    with pytest.raises(ValueError, match="is no name of a namespace"):
        Target.parse(f"iceberg://lake/{namespace}")


@pytest.mark.parametrize("namespace", ["a.b", "...", ".a", "a b", "100%", "a%20b", "`", "é", "a?b#c"])
def test_odd_namespaces_are_names(namespace):
    assert Target.parse(f"iceberg://lake/{namespace}").place == ("lake", namespace)


@pytest.mark.parametrize("folder", ["s3a://bucket/../other", "file:///lake/%2e%2E/x"])
def test_a_folder_that_leads_elsewhere_is_refused(folder):
    with pytest.raises(ValueError, match="without '\\.\\.'"):
        Target.parse(f"delta+{folder}")


def test_plain_files_hold_what_only_grows():
    for shapes in (("history",), ("transactions", "history")):
        check_format("parquet+file:///lake", shapes)
    with pytest.raises(ValueError, match="alone"):
        check_format("parquet+file:///lake", ("history", "scd2"))


def test_a_database_holds_all_shapes_but_versions():
    check_format("postgresql://warehouse/shop", ("mirror", "history", "transactions"))
    with pytest.raises(ValueError, match='"mirror", "history", "transactions"] alone'):
        check_format("postgresql://warehouse/shop", ("mirror", "scd2"))


@pytest.mark.parametrize("template", ["{schema}_{table}", "{table}", "orders", "x.{table}", "{table}{table}"])
def test_templates_of_table_names(template):
    check_template(template)


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{nope}", "the fields are"),
        ("{schema", "the fields are"),
        ("table}", "the fields are"),
        ("{}", "the fields are"),
        ("{0}", "the fields are"),
        ("{schema.x}", "the fields are"),
        ("{schema[0]}", "the fields are"),
        ("{table!r}", "the fields are"),
        ("{table:>9}", "the fields are"),
        ("{{ params.x }}_{table}", "no other braces"),
        ("", "or nothing"),
        (" ", "or nothing"),
        ("..", "a path"),
        ("{schema}/{table}", "a path"),
        ("{schema}\\{table}", "a path"),
        ("..%2f{table}", "a path"),
    ],
)
def test_other_templates_are_refused(template, why):
    with pytest.raises(ValueError, match=why) as refused:
        check_template(template)
    assert repr(template) in str(refused.value)


@pytest.mark.parametrize(
    ("template", "source"),
    [
        ("{schema}_{table}", TableName("dbo", "in/out")),
        ("{schema}_{table}", TableName("a\\b", "t")),
        ("{table}", TableName("dbo", "..")),
        ("{table}", TableName("dbo", "a%2Fb")),
    ],
)
def test_a_source_whose_name_would_be_a_path_is_refused(template, source):
    with pytest.raises(TargetError, match=r"is a path.*another table_name") as refused:
        check_name(template, source)
    assert (refused.value.table, refused.value.permanent) == (str(source), True)


def test_a_target_in_postgresql_is_named_by_its_connection():
    target = Target.parse("postgresql://ware-house.1/my shop/")
    assert (target.format, target.place) == ("postgresql", ("ware-house.1", "my shop"))
    assert target.table("{table}", ORDERS, "history") == ("ware-house.1", "my shop", "orders_history")


@pytest.mark.parametrize(
    ("table", "column", "problem"),
    [
        ("x" * 64, "id", "at most 63 bytes.*another table_name"),
        ("ä" * 32, "id", "at most 63 bytes"),
        ("t", "ä" * 32, "column .* at most 63 bytes.*@captured_column_list"),
        ("t", "ctid", "a column that each table has"),
        ("mssql_cdc_sinks", "id", "must not begin with mssql_cdc_"),
    ],
)
def test_names_that_postgresql_would_cut_or_has_itself_are_refused(table, column, problem):
    with pytest.raises(TargetError, match=problem) as refused:
        check_identifiers("postgresql", table, ["id", column], ORDERS)
    assert (refused.value.table, refused.value.permanent) == (str(ORDERS), True)
    check_identifiers("iceberg", table, ["id", column], ORDERS)


def test_names_of_63_bytes_are_held():
    check_identifiers("postgresql", "ä" * 31 + "x", ["ä" * 31 + "x", "CTID"], ORDERS)


def test_odd_names_of_sources_are_names():
    for name in ("..", "a.b", "50%", "a b", "{x}", "?"):
        check_name("{schema}_{table}", TableName("dbo", name))


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
    with pytest.raises(ValueError, match="would both be loaded into") as refused:
        check_names(((t, s), LAKE.table(template, t, s)) for t in tables for s in shapes)
    assert isinstance(refused.value, MsSqlCdcError)
    assert refused.value.permanent


def test_different_names_pass():
    check_names(
        ((t, s), LAKE.table("{schema}_{table}", t, s))
        for t in (ORDERS, TableName("old", "orders"))
        for s in ("mirror", "history")
    )
