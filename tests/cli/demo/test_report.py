from __future__ import annotations

import io

import pytest

from airflow_provider_mssql_cdc.cli.demo.airflow_home import explain
from airflow_provider_mssql_cdc.cli.demo.report import Reporter, add_up, table_lines

FIRST = {
    "tables": [
        {
            "table": "sales.orders",
            "windows": ["(0x1, 0x2]"],
            "events": 3,
            "copied": 1000,
            "inserted": 1,
            "updated": 1,
            "deleted": 1,
            "seconds": {"copy": 1.25, "commit": 1.0},
        },
        {"table": "catalog.products", "status": "waiting"},
    ]
}
SECOND = {
    "tables": [
        {
            "table": "sales.orders",
            "windows": ["(0x2, 0x3]", "(0x2, 0x3]"],
            "events": 10,
            "copied": 0,
            "inserted": 5,
            "updated": 3,
            "deleted": 2,
            "seconds": {"stage": 0.5},
        },
        {"table": "catalog.products", "status": "quiet"},
    ]
}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_runs_add_up_by_table():
    assert add_up([FIRST, SECOND]) == {
        "sales.orders": {
            "windows": 3,
            "events": 13,
            "copied": 1000,
            "inserted": 6,
            "updated": 4,
            "deleted": 3,
            "seconds": 2.75,
        },
        "catalog.products": {
            "windows": 0,
            "events": 0,
            "copied": 0,
            "inserted": 0,
            "updated": 0,
            "deleted": 0,
            "seconds": 0.0,
        },
    }


def test_the_table_has_a_line_for_each_table_of_the_shop():
    totals = add_up([FIRST, SECOND])
    rows = [
        {"table": "sales.orders", **totals["sales.orders"], "rows": 1004, "equal": True},
        {"table": "catalog.products", **totals["catalog.products"], "rows": 5, "equal": False},
    ]
    lines = list(table_lines(rows))
    assert [line.split() for line in lines] == [
        ["table", "windows", "events", "copied", "inserted", "updated", "deleted", "seconds", "rows", "equal"],
        ["sales.orders", "3", "13", "1,000", "6", "4", "3", "2.8", "1,004", "yes"],
        ["catalog.products", "0", "0", "0", "0", "0", "0", "0.0", "5", "NO"],
    ]
    assert len({len(line) for line in lines}) == 1


def test_elsewhere_than_on_a_terminal_there_are_plain_lines():
    stream = io.StringIO()
    with Reporter(stream).step("Loading") as notes:
        notes.append("3 rows")
    first, second = stream.getvalue().splitlines()
    assert first == "Loading .."
    assert second.split(" s  ")[1] == "Loading: 3 rows"
    assert "\x1b" not in stream.getvalue()
    assert "\r" not in stream.getvalue()


def test_on_a_terminal_a_step_is_one_line_that_is_written_anew():
    stream = Terminal()
    with Reporter(stream).step("Loading"):
        pass
    assert stream.getvalue().startswith("\r\x1b[K")
    assert stream.getvalue().endswith(" s  Loading\n")
    assert stream.getvalue().count("\n") == 1


@pytest.mark.parametrize(("stream", "said"), [(io.StringIO(), "Loading ..\n"), (Terminal(), "\n")])
def test_a_step_that_fails_does_not_look_done(stream, said):
    with pytest.raises(ValueError, match="no"), Reporter(stream).step("Loading"):
        raise ValueError("no")
    assert stream.getvalue() == said


GAP = {
    "tables": [
        {"table": "sales.orders", "error": "sales.orders: gap.\nDo this."},
        {"table": "sales.items", "error": None},
    ]
}
TWO = {"tables": [{"table": "a.b", "error": "x" * 1000}, {"table": "a.c", "error": "y"}]}


@pytest.mark.parametrize(
    ("log", "failed", "said"),
    [
        (
            "..\n:: UNRESOLVED DEPENDENCIES ::\n..",
            {"load": None},
            "Spark could not download its jars from Maven Central",
        ),
        (
            "RuntimeException: [unresolved dependency: org.apache.iceberg#x;1: not found]",
            {"load": None},
            "Spark could not download its jars from Maven Central",
        ),
        ("", {"load": GAP}, "the DAG run failed: load: sales.orders: gap. Do this."),
        ("", {"delta": TWO}, f"the DAG run failed: delta: a.b: {'x' * 300} (and 1 more)"),
        (
            "",
            {"iceberg": None, "postgresql": GAP},
            "the DAG run failed: iceberg (without a summary); postgresql: sales.orders: gap. Do this.",
        ),
        ("Traceback ..", {}, "the DAG run failed"),
    ],
)
def test_why_a_run_failed_is_one_line_that_names_the_loads(log, failed, said):
    explained = explain(log, failed)
    assert explained.startswith(said)
    assert "Spark" in said or explained == said
    assert "\n" not in explained
