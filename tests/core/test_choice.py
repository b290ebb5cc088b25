"""What of a row may be chosen, what it means for a table, and what is refused."""

import dataclasses
import datetime
from decimal import Decimal

import pytest

from airflow_provider_mssql_cdc.core.choice import check_selection, check_values, choose, select
from airflow_provider_mssql_cdc.core.codec import from_data, from_json, to_data, to_json
from airflow_provider_mssql_cdc.core.columns import SALT, check_columns, key_columns, map_columns
from airflow_provider_mssql_cdc.core.conditions import Condition, condition, pushed
from airflow_provider_mssql_cdc.core.exceptions import (
    ParameterError,
    SelectionChangedError,
    SelectionError,
    UnsupportedColumnError,
)
from airflow_provider_mssql_cdc.core.selection import EVERYTHING, salt_check, same_selection
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema
from airflow_provider_mssql_cdc.core.table_options import Choice
from tests.core.test_plan import checkpoint
from tests.core.test_spec import SPEC

ORDERS = TableName("sales", "orders")
COLUMNS = (
    Column(1, 1, "id", "int", 4, 10, nullable=False),
    Column(2, 2, "Cust", "nvarchar", 80),
    Column(3, 3, "status", "char", 8),
    Column(4, 4, "amount", "decimal", 9, 9, 2),
    Column(5, 5, "note", "nvarchar", -1),
    Column(6, 6, "at", "datetime2", 8, 27, 7),
    Column(7, 7, "ratio", "float", 8, 53),
    Column(8, 8, "total", "int", 4, computed=True),
)
SCHEMA = TableSchema(COLUMNS, ("id",))
CHECK = salt_check("a salt that nobody guesses")


def meant(choice, schema=SCHEMA):
    return choose(ORDERS, schema, choice, check=CHECK)


class TestSalt:
    def test_a_salt_that_could_be_guessed_is_refused(self):
        with pytest.raises(ParameterError, match="less than 16 characters"):
            salt_check("pepper")


class TestWhatItMeans:
    def test_columns_are_found_whatever_their_case_and_dropped_ones_are_gone(self):
        choice = Choice(
            ("CUST", "ID", "note", "at"),
            (("STATUS", "=", "new "),),
            {"cust": "customer"},
            {"note": "drop", "at": "hash"},
        )

        selection = meant(choice)

        assert selection.columns == ("id", "Cust", "at")
        assert selection.conditions == (Condition("status", "=", ("new",)),)
        assert (selection.renames, selection.masks) == ({"Cust": "customer"}, {"at": "hash"})
        assert selection.describe() == (
            "columns id, Cust, at",
            "rows with status = 'new'",
            "Cust renamed to customer",
            "at masked by hash",
            f"salt {CHECK}",
        )

    def test_all_as_it_is_has_no_hash_in_whatever_words(self):
        words = Choice(tuple(c.name for c in SCHEMA.loaded), rename={"id": "id"})

        assert meant(Choice()) == meant(words) == EVERYTHING
        assert EVERYTHING.hash is None

    def test_the_order_of_words_does_not_count_and_everything_else_does(self):
        one = Choice(("id", "Cust"), (("amount", ">", 0), ("id", "<", 9)), {}, {"Cust": "hash"})
        same = Choice(("cust", "id"), (("id", "<", 9), ("amount", ">", Decimal("0.00"))), {}, {"Cust": "hash"})
        others = [
            dataclasses.replace(one, columns=("id", "Cust", "at")),
            dataclasses.replace(one, where=one.where[:1]),
            dataclasses.replace(one, rename={"Cust": "c"}),
            dataclasses.replace(one, mask={"Cust": "redact"}),
        ]
        hashes = [meant(choice).hash for choice in (one, *others)]
        hashes.append(choose(ORDERS, SCHEMA, one, check=salt_check("another salt, as long")).hash)

        assert meant(same).hash == meant(one).hash
        assert len(set(hashes)) == len(hashes)

    @pytest.mark.parametrize(
        ("choice", "message"),
        [
            (Choice(("id", "price")), "columns names 'price', .*These are: id, Cust, status"),
            (Choice(("id", "total")), "columns names 'total'"),
            (Choice(("Cust",)), "id identifies the rows"),
            (Choice(mask={"id": "redact"}), "id identifies the rows.*hash"),
            (Choice(mask={"id": "drop"}), "id identifies the rows"),
            (Choice(("id",), rename={"Cust": "c"}), "rename names 'Cust', which columns leaves out"),
            (Choice(("id",), mask={"Cust": "drop"}), "mask names 'Cust', which columns leaves out"),
            (Choice(rename={"Cust": "c"}, mask={"Cust": "drop"}), "rename names 'Cust', which mask drops"),
            (Choice(mask={"Cust": "hash", "cust": "redact"}), "mask names 'Cust' twice"),
            (Choice(mask={"ratio": "hash"}), "'ratio' of type float cannot be hashed"),
            (Choice(where=(("note", "is null"),)), "'note' of type nvarchar: CDC leaves its value out"),
            (Choice(where=(("total", "=", 1),)), "where names 'total'"),
            (Choice(where=(("ratio", "=", 1.0),)), "floating-point numbers"),
            (Choice(where=(("amount", "=", 0.125),)), r"0.125 is no value of decimal\(9,2\)"),
            (Choice(where=(("amount", "=", float("nan")),)), "nan is no value of decimal"),
            (Choice(where=(("amount", "=", "one"),)), "'one' is no value of decimal"),
            (Choice(where=(("amount", "<", Decimal("0.001")),)), "is no value of decimal"),
            (Choice(where=(("amount", "<", Decimal("-10000000")),)), "is no value of decimal"),
            (Choice(where=(("id", "=", "1.0"),)), "'1.0' is no value of int"),
            (Choice(where=(("id", "=", "١"),)), "is no value of int"),
            (Choice(where=(("at", "<", "20260101"),)), "'20260101' is no value of datetime2"),
            (Choice(where=(("at", "<", "2026-01-01T00:00+00:00"),)), "has no zone"),
            (Choice(where=(("id", "=", True),)), "True is no value of int"),
            (Choice(where=(("at", "<", datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)),)), "has no zone"),
        ],
    )
    def test_what_cannot_be_done_exactly_is_refused(self, choice, message):
        with pytest.raises(SelectionError, match=message):
            meant(choice)

    def test_new_names_must_not_meet_others(self):
        for renames in ({"Cust": "STATUS"}, {"Cust": "_op"}, {"id": "at__text"}):
            with pytest.raises(UnsupportedColumnError, match="the name of"):
                check_columns(ORDERS, SCHEMA, meant(Choice(rename=renames)))
        check_columns(ORDERS, SCHEMA, meant(Choice(rename={"Cust": "status", "status": "Cust"})))

    def test_a_mirror_with_a_filter_must_not_need_what_cdc_leaves_out(self):
        filtered = Choice(where=(("status", "=", "a"),))
        with pytest.raises(SelectionError, match="mirror that holds note"):
            check_values(ORDERS, SCHEMA, meant(filtered), "mirror")
        for shape in ("history", "scd2"):
            check_values(ORDERS, SCHEMA, meant(filtered), shape)
        for mask in ("redact", "drop"):
            check_values(ORDERS, SCHEMA, meant(dataclasses.replace(filtered, mask={"note": mask})), "mirror")

    def test_a_column_that_cannot_be_loaded_can_be_left_out(self):
        schema = TableSchema((*COLUMNS, Column(9, 9, "where", "geography", -1)), ("id",))
        with pytest.raises(UnsupportedColumnError, match=r"columns=\.\."):
            select(ORDERS, schema, Choice(), check=None)
        select(ORDERS, schema, Choice(mask={"where": "drop"}), check=None)


def test_the_way_of_chosen_columns():
    choice = Choice(
        ("id", "Cust", "note", "at", "amount"),
        (("status", "=", "a"), ("amount", ">", 0)),
        {"at": "moment", "Cust": "customer"},
        {"id": "hash", "note": "redact", "amount": "redact"},
    )
    mappings = {mapping.column.name: mapping for mapping in map_columns(ORDERS, SCHEMA, meant(choice))}

    targets = {name: [(t.name, t.type) for t in mapping.targets] for name, mapping in mappings.items()}
    assert targets == {
        "id": [("id", "STRING")],
        "Cust": [("customer", "STRING")],
        "status": [],
        "note": [("note", "STRING")],
        "at": [("moment", "TIMESTAMP_NTZ"), ("moment__text", "STRING")],
        "amount": [("amount", "DECIMAL(9,2)")],
    }
    assert {name for name, mapping in mappings.items() if mapping.select} == {"id", "Cust", "status", "at", "amount"}
    assert SALT in mappings["id"].targets[0].expression
    assert mappings["note"].targets[0].expression == "'redacted'"
    assert mappings["amount"].targets[0].expression == "CAST(NULL AS DECIMAL(9,2))"
    assert [mapping.is_lob for mapping in mappings.values()] == [False] * 6


def test_a_hashed_key_is_known_by_its_hash():
    schema = TableSchema(COLUMNS, ("at",))

    def key(choice):
        return key_columns(schema, map_columns(ORDERS, schema, choose(ORDERS, schema, choice, check=CHECK)))

    assert key(Choice(rename={"at": "moment"})) == ("moment__text",)
    assert key(Choice(rename={"at": "moment"}, mask={"at": "hash"})) == ("moment",)


@pytest.mark.parametrize(
    ("column", "operator", "values", "expected"),
    [
        (("int",), "<=", [5], "[c]]d] <= 5"),
        (("bigint",), "not in", [-1, 2], "[c]]d] NOT IN (-1, 2)"),
        (("bit",), "=", [True], "[c]]d] = 1"),
        (("money",), ">", [Decimal("1.50")], "[c]]d] > 1.5000"),
        (("decimal", 17, 38, 0), "=", [Decimal("9" * 38)], f"[c]]d] = {'9' * 38}"),
        # compared with 0, an integer, the smallest values would be rounded to it
        (("decimal", 17, 38, 38), "in", [Decimal("-1E-38"), 0], f"[c]]d] IN (-0.{'0' * 37}1, 0.{'0' * 38})"),
        (("date",), "<", [datetime.date(2026, 1, 2)], "[c]]d] < CONVERT(date, '2026-01-02', 23)"),
        (
            ("datetime2", 8, 27, 7),
            ">=",
            [datetime.date(2026, 1, 2)],
            "[c]]d] >= CONVERT(datetime2(7), '2026-01-02 00:00:00.000000', 121)",
        ),
        (
            ("datetime",),
            ">=",
            [datetime.datetime(2026, 1, 2, 3)],
            "[c]]d] >= CONVERT(datetime2(7), '2026-01-02 03:00:00.000000', 121)",
        ),
        # the server counts in thirds of 10 ms
        (("datetime",), ">=", [datetime.datetime(2026, 1, 2, 3, 0, 0, 4000)], None),
        # the server takes texts for equal that differ, and Spark judges again
        (("nvarchar", 20), "=", ["it's"], "[c]]d] = N'it''s'"),
        (("varchar", 20), "in", ["a", "b"], "[c]]d] IN (N'a', N'b')"),
        (("varchar", 20), "in", ["b", "a", "b"], "[c]]d] IN (N'a', N'b')"),
        (("varchar", 20), "=", ["a\\"], "[c]]d] = N'a\\'"),
        # the server takes a backslash at the end of a line for its continuation
        (("varchar", 20), "=", ["a\\\nb"], None),
        (("varchar", 20), "in", ["x", "a\\\r\nb"], None),
        (("varchar", 20), "<>", ["a"], None),
        (("varchar", 20), "<", ["a"], None),
        (
            ("uniqueidentifier",),
            "<>",
            ["0a0a0a0a-0000-0000-0000-00000000000b"],
            "[c]]d] <> CONVERT(uniqueidentifier, '0A0A0A0A-0000-0000-0000-00000000000B')",
        ),
        (("float", 8, 53), "<", [0.5], None),
        (("time", 5, 16, 7), "is not null", [], "[c]]d] IS NOT NULL"),
    ],
)
def test_what_the_server_judges_first(column, operator, values, expected):
    judged = Column(1, 1, "c]d", *column)

    assert pushed(judged, condition(ORDERS, judged, operator, values)) == expected


class TestAnotherSelection:
    def test_a_list_is_the_same_in_any_order(self):
        one, other = (meant(Choice(where=(("id", "in", given),))) for given in ((1, 2, 3), (3, 1, 2, 1)))
        assert one.hash == other.hash

    def test_it_is_refused_with_what_differs(self):
        then, now = meant(Choice(where=(("id", ">", 1),))), meant(Choice(mask={"Cust": "hash"}))
        loaded = checkpoint(selection_hash=then.hash, selection=then.describe())

        check_selection(ORDERS, then, loaded.sinks.values())
        with pytest.raises(SelectionChangedError, match="no longer: rows with id > '1'; new: Cust masked by hash"):
            check_selection(ORDERS, now, loaded.sinks.values())
        with pytest.raises(SelectionChangedError, match="checkpoint reset"):
            check_selection(ORDERS, EVERYTHING, loaded.sinks.values())
        with pytest.raises(SelectionChangedError, match="new: Cust masked by hash"):
            check_selection(ORDERS, now, checkpoint().sinks.values())

    def test_a_persons_word_on_a_position_is_one_on_the_rows_too(self):
        said = [dataclasses.replace(sink, schema_hash=None) for sink in checkpoint().sinks.values()]

        check_selection(ORDERS, meant(Choice(("id", "Cust"))), said)

    @pytest.mark.parametrize(
        ("column", "forms"),
        [
            ("id", [5, "5", "+5", "05"]),
            ("amount", [Decimal("2.50"), 2.5, "2.5", "2.50", "25e-1"]),
            ("at", [datetime.datetime(2026, 1, 2, 3), "2026-01-02T03:00:00", "2026-01-02 03:00"]),
            ("status", ["a", "a  "]),
        ],
    )
    def test_a_value_means_the_same_in_each_form_that_it_comes_in(self, column, forms):
        assert len({meant(Choice(where=((column, "=", form),))).hash for form in forms}) == 1

    def test_a_hash_of_another_format_says_nothing(self):
        assert same_selection("2:abc", EVERYTHING)
        assert not same_selection("1:abc", EVERYTHING)

    def test_a_checkpoint_keeps_it_and_an_older_one_has_none(self):
        selection = meant(Choice(("id", "Cust")))
        stored = checkpoint(selection_hash=selection.hash, selection=selection.describe())

        assert from_json(type(stored), to_json(stored)) == stored
        data = to_data(stored)
        for sink in data["sinks"].values():
            del sink["selection"], sink["selection_hash"]
        assert from_data(type(stored), data) == checkpoint()


def test_it_travels_in_the_spec():
    selection = meant(Choice(("id", "Cust"), (("amount", "in", [1, Decimal("2.5")]),), {"Cust": "c"}, {"Cust": "hash"}))
    spec = dataclasses.replace(SPEC, tables=(dataclasses.replace(SPEC.tables[0], selection=selection),))

    assert from_json(type(spec), to_json(spec)) == spec
