"""Random histories in which columns are added and filled by Change Tracking, with runs that are killed."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from airflow_provider_mssql_cdc.spark import filling
from airflow_provider_mssql_cdc.spark.copies.again import RowsAgain
from airflow_provider_mssql_cdc.spark.copies.table_copy import TableCopy
from airflow_provider_mssql_cdc.spark.load import TableLoad
from airflow_provider_mssql_cdc.spark.sink import Sink
from tests.spark.test_filled_by_tracking import BY_TRACKING, Filled
from tests.spark.test_healed_gaps import COLUMNS, NAME
from tests.support.spark.kill_points import AFTER, BEFORE, Point
from tests.support.spark.stop import Killed, kill_at
from tests.support.spark.tracked_origin import some_changes

pytestmark = [pytest.mark.xdist_group("tests.spark.test_healed_gaps"), pytest.mark.timeout(1800)]

STEPS = int(os.environ.get("MSSQL_CDC_TEST_STEPS", "16"))
HISTORIES = int(os.environ.get("MSSQL_CDC_TEST_HISTORIES", "1"))
SEED = int(os.environ.get("MSSQL_CDC_TEST_SEED", "1"))

POINTS = [
    Point(owner, name, when)
    for owner, name in (
        (RowsAgain, "read"),
        (TableCopy, "_keep"),
        (TableCopy, "_finished"),
        (filling, "_filled"),
        (TableLoad, "stage_windows"),
        (TableLoad, "_settle"),
        (Sink, "write"),
    )
    for when in (BEFORE, AFTER)
]


class History:
    """One random history, and what the table held after each transaction."""

    def __init__(self, live: Any, rng: random.Random) -> None:
        self.rng, self.live, self.found = rng, live, Filled(live, rows=12, on_gap=("ct",))
        self.sql, self.runs = live.sql, self.found.runs
        self.added: list[str] = []
        self.instances, self.waits, self.number, self.kills = ["lab_things"], False, 0, 0
        self.told: list[str] = []
        self.at = 0
        self.states: list[list[dict[str, Any]]] = []
        self.note()

    def note(self) -> None:
        self.states.append(self.sql(f"SELECT {', '.join((*COLUMNS, *self.added))} FROM {NAME}"))

    def commit(self) -> None:
        """A transaction after which the table is as it never was before."""
        self.number += 1
        n = self.number
        changes = [*some_changes(self.rng, n), f"INSERT INTO lab.things (id, a) VALUES ({1000 + n}, {n})"]
        if self.added:
            column, id = self.rng.choice(self.added), self.rng.randrange(1, 16)
            changes.append(f"UPDATE lab.things SET {column} = {n} WHERE id BETWEEN {id} AND {id + 1}")
        self.sql(f"BEGIN TRANSACTION; {'; '.join(changes)}; COMMIT")
        self.note()

    def add(self) -> None:
        """Add a column, unless another one is not yet filled."""
        if not self.waits:
            name, given = f"c{len(self.added)}", self.rng.choice(("", " NOT NULL DEFAULT 7"))
            self.sql(f"ALTER TABLE lab.things ADD {name} int{given}")
            self.added.append(name)
            self.waits = True
            self.commit()

    def instance(self) -> None:
        """Let an instance read it, once what is committed is captured."""
        name = f"things_{len(self.added)}"
        if self.waits and name not in self.instances:
            self.sql(
                "EXEC sys.sp_cdc_enable_table @source_schema = N'lab', @source_name = N'things', @role_name = NULL,"
                f" @capture_instance = N'{name}'"
            )
            self.instances.append(name)

    def run(self, monkeypatch: pytest.MonkeyPatch, *, kill: bool) -> None:
        self.live.wait_captured()
        if kill:
            with monkeypatch.context() as patch:
                kill_at(patch, self.rng.choice(POINTS))
                try:
                    self.runs.run(checkpoint=self.rng.random() < 0.5)
                except Killed:
                    self.kills += 1
            return
        self.runs.run()
        self.told += self.runs.warnings
        self.check()

    def check(self) -> None:
        """Each target shows one state of the table, in the columns that it has."""
        reached = []
        for shape in self.found.shapes:
            rows = self.live.lake(NAME, shape)
            has = [name for name in self.added if shape != "history" and name in rows[0]]
            shown = self.found.shown(shape, (*COLUMNS, *has))
            fitting = [number for number, state in enumerate(self.states) if self.of(state, has) == shown]
            assert fitting, (shape, has, shown)
            reached.append(fitting[-1])
        assert min(reached) >= self.at
        self.at = min(reached)
        if (
            self.waits
            and len(self.instances) > 1
            and all(self.added[-1] in row for shape in self.found.shapes for row in self.live.lake(NAME, shape)[:1])
        ):
            old = self.instances.pop(0)
            self.sql(
                "EXEC sys.sp_cdc_disable_table @source_schema = N'lab', @source_name = N'things',"
                f" @capture_instance = N'{old}'"
            )
            self.waits = False

    def of(self, state: list[dict[str, Any]], has: list[str]) -> list[tuple[Any, ...]] | None:
        """A state's rows in some columns; None where the table did not have these yet."""
        names = (*COLUMNS, *has)
        return sorted(tuple(row[name] for name in names) for row in state) if {*names} <= state[0].keys() else None


@pytest.mark.thorough
@pytest.mark.parametrize("number", range(HISTORIES))
def test_added_columns_are_filled_as_the_table_has_them(live, monkeypatch, number):
    history = History(live, random.Random(SEED * 3000 + number))
    history.run(monkeypatch, kill=False)
    for _ in range(STEPS):
        draw = history.rng.random()
        for _ in range(history.rng.randrange(3)):
            history.commit()
        if draw < 0.5:
            history.add()
        if 0.3 < draw < 0.8:
            history.instance()
        if draw > 0.95:
            history.runs.lose("things")
        history.run(monkeypatch, kill=history.rng.random() < 0.4)
    history.instance()
    for _ in range(5):
        history.commit()
        history.run(monkeypatch, kill=False)
    assert not history.waits
    for shape in history.found.shapes:
        columns = (*COLUMNS, *history.added)
        assert history.found.shown(shape, columns) == history.found.tracked.source(NAME, columns), shape
    print(number, history.kills, history.added, [text for text in history.told if "to fill" in text])
    assert any(BY_TRACKING in text for text in history.told)
