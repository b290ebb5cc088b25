"""What docs/shapes.md says of the columns of each shape."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from airflow_provider_mssql_cdc.core.marker import LAYOUT
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.shapes import DELETED_AT, MIRROR, SHAPES, Shape

PAGE = (Path(__file__).parents[2] / "docs" / "shapes.md").read_text()


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_page_names_each_column_of_a_shape_with_its_type(shape: Shape) -> None:
    rows = re.findall(rf"^\| `{shape.name}`[^|]*\| (.*) \|$", PAGE, re.MULTILINE)
    (shown,) = [row for row in rows if " STRING" in row or "_deleted_at" in row]
    columns = {**shape.system_columns(Lsn), **shape.added_columns(LAYOUT)}
    if shape.name == MIRROR:
        columns |= DELETED_AT
    assert re.findall(r"`(\w+)` ([A-Z_<>]+)", shown) == list(columns.items())
