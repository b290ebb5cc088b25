"""A second capture instance with more columns takes the first one's place: loads go on with the columns they know."""

from __future__ import annotations

import dataclasses

import pytest

from airflow_provider_mssql_cdc.core.checkpoint import SinkState
from airflow_provider_mssql_cdc.core.copy_requests import CopyRequest, CopyRequests
from airflow_provider_mssql_cdc.spark.sink import Sink
from tests.support.spark.loads import Loads
from tests.support.spark.origin import Origin

pytestmark = [pytest.mark.xdist_group("tests.spark.test_dropped_columns"), pytest.mark.timeout(900)]

NAME = "lab.things"
VALUES = [f"v{n}" for n in range(8)]
"""With the key there are nine columns, and eleven in the second instance: update masks of two bytes."""
LEFT_OUT = [f"column {name} of things_2 is left out: the targets were loaded without it" for name in ("early", "more")]


@pytest.fixture
def things(live: Origin) -> Origin:
    live.sql("CREATE SCHEMA lab")
    columns = ", ".join(f"{name} int" for name in VALUES)
    live.sql(f"CREATE TABLE lab.things (early int, {columns}, id int NOT NULL PRIMARY KEY)")
    live.sql("INSERT INTO lab.things VALUES " + ", ".join(f"({'1, ' * 9}{id})" for id in range(1, 7)))
    # each column has another bit in the second instance, which has the first column, too
    live.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'lab', @source_name = N'things', @role_name = NULL,"
        f" @captured_column_list = N'{', '.join(VALUES)}, id'"
    )
    live.wait_captured()
    return live


def check(loads: Loads) -> None:
    """Compare mirror and open versions with the source, but for the new column."""
    names = ["id", *VALUES]
    source = sorted(tuple(row.values()) for row in loads.origin.sql(f"SELECT {', '.join(names)} FROM lab.things"))
    mirror = loads.origin.lake(NAME)
    assert not {"early", "more"} & mirror[0].keys()
    assert sorted(tuple(row[name] for name in names) for row in mirror) == source
    if "scd2" in loads.shapes:
        still = [row for row in loads.versions("things") if row["_to_lsn"] is None]
        assert sorted(tuple(row[name] for name in names) for row in still) == source


def test_loads_go_on_without_the_columns_that_only_the_second_one_has(things):
    loads = Loads(things, ("mirror", "history"), ("things",))
    loads.load_all()
    things.sql("ALTER TABLE lab.things ADD more int NOT NULL DEFAULT 5")
    things.sql("UPDATE lab.things SET v0 = 2 WHERE id = 1")
    things.wait_captured()
    things.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'lab', @source_name = N'things', @role_name = NULL,"
        " @capture_instance = N'things_2'"
    )
    things.sql("UPDATE lab.things SET v1 = 2, more = 6 WHERE id = 2")
    things.wait_captured()
    assert loads.load_all() == [f"column {name} is not captured by lab_things" for name in ("early", "more")]
    check(loads)
    things.sql(
        "EXEC sys.sp_cdc_disable_table @source_schema = N'lab', @source_name = N'things',"
        " @capture_instance = N'lab_things'"
    )
    things.sql("UPDATE lab.things SET v7 = 2 WHERE id = 3; UPDATE lab.things SET more = 7 WHERE id = 4")
    things.sql("DELETE FROM lab.things WHERE id = 5; INSERT INTO lab.things (id, v6, more) VALUES (7, 2, 8)")
    things.sql("UPDATE lab.things SET id = 60, v0 = 3 WHERE id = 6")
    things.wait_captured()

    assert loads.load_all() == LEFT_OUT
    check(loads)
    events = [(row["_op"], row["id"], row["_changed"]) for row in things.lake(NAME, "history") if row["_op"] == "U"]
    # an update of the new column alone is one of none of those that are loaded
    assert sorted(events) == [("U", 1, ["v0"]), ("U", 2, ["v1"]), ("U", 3, ["v7"]), ("U", 4, [])]

    # so do shapes that are added, and copies that are asked for
    loads.shape("mirror", "history", "scd2")
    assert loads.load_all() == LEFT_OUT
    check(loads)
    things.spark.sql(f"DELETE FROM {things.sql_name(NAME, 'mirror')} WHERE id = 1").collect()
    CopyRequests(loads.variables).save(CopyRequest(loads.identity("things"), "asked-1"))
    loads.load()
    check(loads)


@pytest.mark.thorough
@pytest.mark.parametrize("named", [True, False])
def test_what_waited_to_be_asked_for_waits_when_only_a_marker_knows(things, monkeypatch, named):
    loads = Loads(things, ("mirror",), ("things",))
    (early,) = things.sql("SELECT column_id FROM sys.columns WHERE name = 'early'")
    with monkeypatch.context() as before:
        if not named:
            # the marker of an earlier version: what its table lacks is all that is known then
            before.setattr(Sink, "_waiting", lambda *_: {})
        loads.load_all()
        things.sql(
            "EXEC sys.sp_cdc_enable_table @source_schema = N'lab', @source_name = N'things', @role_name = NULL,"
            " @capture_instance = N'things_2'"
        )
        things.sql("UPDATE lab.things SET v1 = 2 WHERE id = 2")
        things.wait_captured()
        loads.load_all()
    things.sql(
        "EXEC sys.sp_cdc_disable_table @source_schema = N'lab', @source_name = N'things',"
        " @capture_instance = N'lab_things'"
    )
    loads.variables.clear()
    loads.shape("mirror", "scd2")
    for id_ in (3, 4):
        things.sql(f"UPDATE lab.things SET v1 = 2, early = 9 WHERE id = {id_}")
        things.wait_captured()
        loads.load_all()
        assert loads.store.load(loads.identity("things")).waiting_ids == (early["column_id"],)
        check(loads)
        assert "early" not in loads.versions("things")[0]


@pytest.mark.thorough
def test_a_target_that_is_given_them_or_loaded_anew_has_them(things):
    loads = Loads(things, ("mirror",), ("things",))
    loads.load_all()
    things.sql("ALTER TABLE lab.things ADD more int NOT NULL DEFAULT 5")
    things.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'lab', @source_name = N'things', @role_name = NULL,"
        " @capture_instance = N'things_2'"
    )
    things.sql("UPDATE lab.things SET more = 6 WHERE id = 2")
    things.wait_captured()
    loads.load_all()
    things.sql(
        "EXEC sys.sp_cdc_disable_table @source_schema = N'lab', @source_name = N'things',"
        " @capture_instance = N'lab_things'"
    )
    table, identity = things.sql_name(NAME, "mirror"), loads.identity("things")
    things.spark.sql(f"ALTER TABLE {table} ADD COLUMNS (early INT, more INT)").collect()
    # as `mssql-cdc checkpoint set` does
    position = loads.store.load(identity).sinks["mirror"].read_through
    stands = SinkState(position, position, asserted="0123456789abcdef")
    loads.store.overwrite(dataclasses.replace(loads.store.load(identity), sinks={"mirror": stands}))
    things.sql("UPDATE lab.things SET more = 7 WHERE id = 4")
    things.wait_captured()
    assert loads.load_all() == []
    held = {row["id"]: (row["early"], row["more"]) for row in things.lake(NAME)}
    assert held == {id: (1, 7) if id == 4 else (None, None) for id in range(1, 7)}

    things.spark.sql(f"DROP TABLE {table}").collect()
    loads.variables.clear()
    assert loads.load_all() == []
    source = sorted(tuple(row.values()) for row in things.sql("SELECT id, early, more FROM lab.things"))
    assert sorted((row["id"], row["early"], row["more"]) for row in things.lake(NAME)) == source
