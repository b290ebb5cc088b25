"""Loads of two targets go over to a second instance, while the table is written to; and to a third and a fourth."""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from airflow_provider_mssql_cdc.core.entry_values import EVOLVE
from airflow_provider_mssql_cdc.core.target import Target
from tests.spark.test_evolving_histories import NAME, load, make_room
from tests.support.spark.loads import Loads
from tests.support.spark.origin import Origin

pytestmark = [pytest.mark.xdist_group("tests.spark.test_filled_columns"), pytest.mark.timeout(1800)]

ROWS, EACH = 100, 0.1
"""Rows of a transaction, and the seconds of which each has one: 1,000 rows a second."""


class Writer:
    """Inserts, updates and deletes rows beside the loads, each transaction with ``ROWS`` rows.

    :ivar columns: that it writes besides the key
    """

    def __init__(self, things: Origin) -> None:
        self._things, self._rest = things, threading.Event()
        self.columns = ("a",)
        self.written = 0

    def run(self) -> None:
        """Write until ``rest``: a third of the rows is updated in the transaction after, and a tenth deleted then."""
        for number in itertools.count():
            if self._rest.is_set():
                return
            begun, first, columns = time.monotonic(), 1000 + number * ROWS, self.columns
            values = ", ".join(f"({first + n}{f', {n}' * len(columns)})" for n in range(ROWS * 6 // 10))
            put = ", ".join(f"{name} = {name} + {number}" for name in columns)
            self._things.sql(
                f"BEGIN TRAN; INSERT INTO lab.things (id, {', '.join(columns)}) VALUES {values};"
                f" UPDATE lab.things SET {put} WHERE id >= {first - ROWS} AND id < {first - ROWS + ROWS * 3 // 10};"
                f" DELETE FROM lab.things WHERE id >= {first - 2 * ROWS} AND id < {first - 2 * ROWS + ROWS // 10};"
                " COMMIT"
            )
            self.written += ROWS
            self._rest.wait(max(0.0, begun + EACH - time.monotonic()))

    def rest(self) -> None:
        self._rest.set()


@pytest.fixture
def things(live: Origin) -> Origin:
    live.sql("CREATE SCHEMA lab")
    live.sql("CREATE TABLE lab.things (id int NOT NULL PRIMARY KEY, a int)")
    live.sql("INSERT INTO lab.things VALUES " + ", ".join(f"({id}, 1)" for id in range(1, 9)))
    live.enable(NAME)
    live.wait_captured()
    return live


def loads_into(things: Origin, namespace: str) -> Loads:
    """A load of its own, with a target of its own, that makes the instances which it asks for."""
    loads = Loads(things, ("mirror", "history"), ("things",))
    loads.say(on_schema_change=EVOLVE, target=Target.parse(f"iceberg://lake/{namespace}"))
    return loads


def held(loads: Loads, *columns: str) -> tuple[list[tuple], list[tuple]]:
    """The rows of the mirror, and those that the newest images of the history show."""
    # a session that has looked at a table shows it as it was for half a minute
    spark, place = loads.origin.spark.newSession(), ".".join(loads.request.defaults.target.place)
    mirror = [tuple(row) for row in spark.sql(f"SELECT {', '.join(columns)} FROM {place}.lab_things").collect()]
    events = spark.sql(f"SELECT * FROM {place}.lab_things_history WHERE _op <> 'B'").collect()
    events.sort(key=lambda row: (row["_lsn"], row["_seq"] if row["_seq"] is not None else 1 << 60))
    newest = [row for row in {row["id"]: row for row in events}.values() if row["_op"] != "D"]
    return sorted(mirror), sorted(tuple(row[name] for name in columns) for row in newest)


def check(things: Origin, loads: Loads, *columns: str) -> None:
    source = sorted(tuple(row.values()) for row in things.sql(f"SELECT {', '.join(columns)} FROM lab.things"))
    assert held(loads, *columns) == (source, source)


@pytest.mark.thorough
def test_two_loads_go_over_beside_a_thousand_rows_a_second(things):
    both = [loads_into(things, f"{things.namespace}_{letter}") for letter in "ab"]
    for loads in both:
        load(loads)
    writer = Writer(things)
    with ThreadPoolExecutor(3) as pool:
        writing = pool.submit(writer.run)
        try:
            for loads in both:
                load(loads)
            things.sql("ALTER TABLE lab.things ADD note int NOT NULL DEFAULT 5 WITH VALUES")
            # of rows that the writer does not touch again
            things.sql("UPDATE lab.things SET note = 6 WHERE id < 4")
            for number in range(12):
                if number == 2:
                    writer.columns = ("a", "note")
                # both find that an instance is to be made, and both make it
                for future in [pool.submit(load, loads) for loads in both]:
                    future.result()
        finally:
            writer.rest()
        writing.result()
    things.wait_captured()
    for _ in range(2):
        for loads in both:
            load(loads)
    instances = things.sql("SELECT capture_instance AS name FROM cdc.change_tables ORDER BY create_date, object_id")
    assert [row["name"] for row in instances] == ["lab_things", "lab_things__mc2"]
    print(f"{writer.written} rows were written")
    for loads in both:
        check(things, loads, "id", "a", "note")
        place = ".".join(loads.request.defaults.target.place)
        (twice,) = (
            things.spark.newSession()
            .sql(
                "SELECT COUNT(*) - COUNT(DISTINCT _lsn, _command_id, _seqval, _op, id) FROM"
                f" {place}.lab_things_history WHERE _op <> 'R'"
            )
            .collect()[0]
        )
        assert twice == 0


@pytest.mark.thorough
def test_three_columns_in_three_runs_where_the_first_instance_was_made_with_a_list(live):
    live.sql("CREATE SCHEMA lab")
    live.sql("CREATE TABLE lab.things (id int NOT NULL PRIMARY KEY, a int, left_out int)")
    live.sql("INSERT INTO lab.things VALUES " + ", ".join(f"({id}, 1, 1)" for id in range(1, 9)))
    live.enable(NAME, captured_column_list="N'id, a'")
    live.wait_captured()
    loads = loads_into(live, live.namespace)
    loads.say(widen_list=True)
    load(loads)
    names: list[str] = []
    for number in range(3):
        name = f"c{number}"
        live.sql(f"ALTER TABLE lab.things ADD {name} int NOT NULL DEFAULT {number}")
        live.sql(f"UPDATE lab.things SET {name} = 50 WHERE id = {number + 1}")
        live.sql(f"UPDATE lab.things SET a = {number + 2} WHERE id = {number + 4}")
        live.wait_captured()
        load(loads)
        names.append(name)
    # a shape comes while columns are filled
    loads.options = {"copy_rows": 3, "copy_seconds": 0.001}
    shapes = [("mirror", "history"), ("mirror", "history", "scd2")]
    for number in range(20):
        loads.shape(*shapes[number > 1])
        live.sql(f"UPDATE lab.things SET a = a + 1, c2 = c2 + 1 WHERE id = {number % 8 + 1}")
        live.wait_captured()
        load(loads)
        make_room(live, loads)
        columns = things_columns(loads)
        assert "left_out" not in columns
        mirror, _ = held(loads, "id", "a")
        assert mirror == sorted((row["id"], row["a"]) for row in live.sql("SELECT id, a FROM lab.things"))
        (candidate,) = loads.look().candidates.values()
        if {*names} <= {*columns} and not candidate.lagging and number > 2:
            break
    check(live, loads, "id", "a", *names)
    place = ".".join(loads.request.defaults.target.place)
    still = (
        live.spark.newSession()
        .sql(f"SELECT id, a, {', '.join(names)} FROM {place}.lab_things_scd2 WHERE _to_lsn IS NULL")
        .collect()
    )
    assert sorted(map(tuple, still)) == held(loads, "id", "a", *names)[0]


def things_columns(loads: Loads) -> list[str]:
    """The names of the mirror's columns."""
    place = ".".join(loads.request.defaults.target.place)
    return list(loads.origin.spark.newSession().sql(f"SELECT * FROM {place}.lab_things LIMIT 0").columns)
