"""What is refused when a DAG is parsed, and what only a run can tell."""

from __future__ import annotations

import pytest

from airflow_provider_mssql_cdc.hooks.parameters import check_literals, excluded, listed

TARGET = "iceberg://lake/shop"


@pytest.mark.parametrize(
    ("tables", "exclude", "target", "message"),
    [
        ([], [], TARGET, "tables is empty"),
        ((), [], TARGET, "tables is empty"),
        ("", [], TARGET, "table pattern ''"),
        (["a.b.c"], [], TARGET, "table pattern 'a.b.c'"),
        (["a"], ["[b"], TARGET, r"table pattern '\[b'"),
        ("{{ x }}", "b.", TARGET, "table pattern 'b.'"),
        (["a"], [], "lake/shop", "iceberg://catalog/namespace"),
        (["{{ x }}"], [], "iceberg://lake/..", "no name of a namespace"),
    ],
)
def test_what_cannot_be_right_is_refused(tables: object, exclude: object, target: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_literals(tables, exclude, target)


@pytest.mark.parametrize("given", ["{{ params.x }}", "a.{{ params.x }}", "{% if x %}a{% endif %}", object()])
def test_what_is_a_template_is_left_for_the_run(given: object) -> None:
    check_literals(given, given, given)
    check_literals([given, {"table": given, "columns": given}], ["a", given], given)


def test_a_single_text_is_a_list_of_one() -> None:
    assert listed("ab") == ("ab",)
    assert excluded("a.*") == ("a.*",)
    assert excluded(["a.*", "b"]) == ("a.*", "b")
