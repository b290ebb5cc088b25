import pytest

from airflow_provider_mssql_cdc.core.position import Lsn, Version
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


TIMES = {"_commit_ts": "TIMESTAMP_NTZ", "_commit_ts_utc": "TIMESTAMP"}
COLUMNS = {
    "mirror": {},
    "history": {
        "_op": "STRING",
        "_{kind}": "{type}",
        "_command_id": "INT",
        "_seqval": "STRING",
        "_seq": "BIGINT",
        **TIMES,
        "_changed": "ARRAY<STRING>",
        "_unknown": "ARRAY<STRING>",
    },
    "scd2": {
        "_from_{kind}": "{type}",
        "_to_{kind}": "{type}",
        "_from_ts": "TIMESTAMP_NTZ",
        "_to_ts": "TIMESTAMP_NTZ",
        "_unknown": "ARRAY<STRING>",
    },
    "transactions": {
        "_{kind}": "{type}",
        **TIMES,
        "schema": "STRING",
        "table": "STRING",
        **dict.fromkeys(("events", "inserted", "updated", "deleted"), "BIGINT"),
    },
}


@pytest.mark.parametrize(("position", "kind", "type_"), [(Lsn, "lsn", "STRING"), (Version, "version", "BIGINT")])
def test_the_system_columns_come_from_shape_and_kind_of_positions(position, kind, type_):
    # those of LSNs are the columns of tables that are there
    for name, shape in SHAPES.items():
        expected = [(column.format(kind=kind), t.format(type=type_)) for column, t in COLUMNS[name].items()]
        if name == "history" and position is Version:
            expected.append(("_read_at", "TIMESTAMP_NTZ"))
        assert list(shape.system_columns(position).items()) == expected
