import pytest

from airflow_provider_mssql_cdc.core.shapes import SHAPES


@pytest.mark.parametrize(
    ("how", "shapes"),
    [
        ({}, {"mirror", "history", "scd2"}),
        ({"wide": True}, {"mirror", "scd2"}),
        ({"has_key": False}, set()),
        ({"wide": True, "has_key": False}, set()),
    ],
)
def test_which_shapes_begin_with_a_copy(how, shapes):
    assert {name for name, shape in SHAPES.items() if shape.takes_copy(**how)} == shapes
