"""The table whose columns change: what its capture instances hold of DDL and of the writer's changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pymssql
import pytest

from airflow_provider_mssql_cdc.cli.demo import captured, members
from airflow_provider_mssql_cdc.cli.demo.compare import read_source
from airflow_provider_mssql_cdc.cli.demo.members import ADDED, AT_FIRST, AT_LAST, FAX, GROWN
from airflow_provider_mssql_cdc.cli.demo.schema_change import read_by, said
from airflow_provider_mssql_cdc.sandbox import Sandbox

ROWS = 30
SECOND = (
    "EXEC sys.sp_cdc_enable_table N'sales', N'members', @role_name = NULL, @capture_instance = N'second',"
    " @supports_net_changes = 0"
)


@pytest.fixture
def server() -> Iterator[Sandbox]:
    # the capture is asked for, and reads all that was committed
    with Sandbox(database="shop", agent_running=False) as made:
        members.build(made, "shop", ROWS)
        yield made


def test_an_instance_has_the_columns_of_its_time_and_a_dropped_one_is_null_from_then_on(server: Sandbox) -> None:
    def connect() -> Any:
        given = {"server": server.host, "port": str(server.port), "user": server.user, "password": server.password}
        return pymssql.connect(**given, database="shop")

    clerk = members.Clerk(connect, ROWS)
    clerk.change(10)
    for statement in members.ADD:
        server.execute(statement)
    clerk.learn(ADDED)
    clerk.change(10)
    server.step()
    with connect() as connection:
        (first,) = captured.instances(connection, GROWN)
        before = captured.events(connection, first, GROWN)
        server.execute(members.BACK_FILL)
        server.step()
        assert captured.events(connection, first, GROWN) == before
    server.execute(SECOND)
    clerk.change(10)
    server.execute(members.WIDEN)
    clerk.learn(GROWN)
    clerk.change(10)
    clerk.learn(AT_LAST)
    server.execute(members.DROP)
    clerk.change(10)
    last = clerk.last_row()
    server.step()
    with connect() as connection:
        both = captured.instances(connection, GROWN)
        assert [each.columns for each in both] == [(*AT_FIRST.arrow.names,), (*GROWN.arrow.names,)]
        older, newer = (captured.events(connection, each, GROWN) for each in both)
        end = captured.dropped_at(connection, GROWN, FAX.name)
        source = read_source(connection, GROWN.full_name, AT_LAST.arrow)
    names = GROWN.events.names
    assert min(event[0] for event in older) < both[1].since <= min(event[0] for event in newer) < end
    assert {event[names.index("credit")] for event in older} == {None}
    assert None not in {event[names.index("credit")] for event in newer}
    points = [event[names.index("points")] for event in sorted(newer, key=lambda event: event[0])]
    assert points[0] < 2**31 < max(points)
    fax = names.index("fax")
    assert {event[fax] for event in newer if event[0] > end} == {None}
    assert len({event[fax] for event in newer if event[0] < end}) > 1

    at_first = {row[0]: row[4] for row in map(members.first_row, range(1, ROWS + 1))}
    rows = {row[0]: row for row in captured.with_dropped(source, GROWN, "fax", at_first, [*older, *newer], end)}
    assert [row[:4] + row[5:] for row in rows.values()] == source
    written = {event[names.index("member_id")] for event in newer if event[0] > end}
    assert {rows[key][4] for key in written & rows.keys()} == {None}
    assert last in written
    assert any(row[4] is not None for row in rows.values())


def lsn(number: int) -> str:
    return f"0x{number:020X}"


def run(feed: str, low: int, high: int, **more: Any) -> dict[str, Any]:
    """The summary of a load."""
    entry = {"table": GROWN.full_name, "feed": feed, "windows": [f"({lsn(low)}, {lsn(high)}]"], "position": lsn(high)}
    return {"tables": [entry], "warnings": [], "schema_changes": [], **more}


def test_events_are_expected_from_the_instance_that_was_read() -> None:
    runs = [run("first", 2, 4), run("first", 4, 6), run("second", 6, 9)]
    first, second = ([(lsn(number), name) for number in range(since, 10)] for name, since in (("a", 1), ("b", 5)))
    assert read_by(runs, first, second) == [*first[2:6], *second[2:]]


def test_what_a_load_says_is_told_in_lines() -> None:
    warnings = ["sales.members: column fax is NULL", "sales.members: t was loaded from capture instance first (1); .."]
    changes = [{"kind": "ADD_COLUMN", "column": name} for name in ("email", "credit")]
    summary = run("second", 6, 9, warnings=warnings, schema_changes=[{"lsn": lsn(7), "changes": changes}])
    assert [*said(summary, "first")] == [
        "column fax is NULL",
        "goes over from capture instance first to second",
        f"schema change at {lsn(7)}: ADD_COLUMN email, ADD_COLUMN credit",
    ]
    assert [*said(run("first", 2, 4), None)] == []
