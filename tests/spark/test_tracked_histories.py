"""Random histories by Change Tracking, with runs that are killed anywhere: targets show the table at their version."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from airflow_provider_mssql_cdc.spark import job
from airflow_provider_mssql_cdc.spark.copies.table_copy import TableCopy
from airflow_provider_mssql_cdc.spark.load import TableLoad
from airflow_provider_mssql_cdc.spark.sink import Sink
from airflow_provider_mssql_cdc.spark.sources.ct.table import TrackedRows
from tests.support.spark.stop import Killed
from tests.support.spark.tracked_origin import PlannedRuns, TrackedOrigin, some_changes

pytestmark = [pytest.mark.xdist_group("tests.spark.test_tracked_tables"), pytest.mark.timeout(1800)]

STEPS = int(os.environ.get("MSSQL_CDC_TEST_STEPS", "18"))
HISTORIES = int(os.environ.get("MSSQL_CDC_TEST_HISTORIES", "2"))
SEED = int(os.environ.get("MSSQL_CDC_TEST_SEED", "1"))

NAME, COLUMNS, SHAPES = "lab.things", ("id", "a", "note"), ("mirror", "history", "scd2")

POINTS = (
    (TableLoad, "stage_windows"),
    (TableLoad, "_commit"),
    (TableLoad, "_settle"),
    (TableCopy, "_keep"),
    (TableCopy, "_finished"),
    (TrackedRows, "keep"),
    (TrackedRows, "_changes"),
    (TrackedRows, "kept_events"),
    (Sink, "write"),
    (job, "_remove_staged"),
)


class History:
    """One random history, and what the table held at each version."""

    def __init__(self, origin: Any, rng: random.Random, connections: int) -> None:
        self.rng, self.tracked, self.sql = rng, TrackedOrigin(origin, snapshots=True), origin.sql
        self.sql("EXEC sys.sp_cdc_disable_db; CREATE SCHEMA lab")
        self.sql("CREATE TABLE lab.things (id int NOT NULL PRIMARY KEY, a int, note nvarchar(max))")
        self.sql("CREATE TABLE lab.other (id int NOT NULL PRIMARY KEY, n int); INSERT INTO lab.other VALUES (1, 1)")
        self.sql("INSERT INTO lab.things VALUES " + ", ".join(f"({id}, 1, N'old {id}')" for id in range(1, 13)))
        self.tracked.track(NAME)
        self.tracked.track("lab.other")
        self.runs = PlannedRuns(self.tracked, "things", shapes=SHAPES, on_gap=("copy",))
        self.runs.options |= {"connections": connections, "slice_rows": 3, "copy_rows": 4, "copy_chunk_seconds": None}
        self.states: dict[int, list[tuple[Any, ...]]] = {}
        self.number, self.kills = 0, 0
        self.outcomes: list[str] = []
        self.note()

    def note(self) -> None:
        self.states[self.tracked.current().value] = self.tracked.source(NAME, COLUMNS)

    def change(self) -> str:
        """The next transaction."""
        self.number += 1
        other = f"UPDATE lab.other SET n = {self.number}"
        return f"BEGIN TRANSACTION; {'; '.join(some_changes(self.rng, self.number, other))}; COMMIT"

    def commit(self) -> None:
        self.sql(self.change())
        self.note()

    def lose(self) -> None:
        """Lose what is tracked: by a TRUNCATE, or off and on, with changes of which nothing tells."""
        if self.rng.random() < 0.5:
            self.sql("TRUNCATE TABLE lab.things")
            for _ in range(self.rng.randrange(2)):
                self.sql(f"INSERT INTO lab.things VALUES ({self.rng.randrange(1, 16)}, {self.number}, N'behind')")
        else:
            self.sql("ALTER TABLE lab.things DISABLE CHANGE_TRACKING")
            for _ in range(self.rng.randrange(3)):
                self.sql(self.change())
            self.tracked.track(NAME)
        self.note()

    def run(self, monkeypatch: pytest.MonkeyPatch, *, kill: bool) -> None:
        if not kill:
            self.outcomes += self.runs.run().get(NAME, [])
            self.check()
            return
        owner, name = self.rng.choice(POINTS)
        real, left, after = getattr(owner, name), [self.rng.choice((0, 0, 0, 1, 2))], self.rng.random() < 0.5

        def killed(*given: Any, **named: Any) -> Any:
            if left[0] == 0 and not after:
                raise Killed
            result = real(*given, **named)
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return result

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, killed)
            try:
                self.runs.run(checkpoint=self.rng.random() < 0.5)
            except Killed:
                self.kills += 1

    def check(self) -> None:
        stored = self.runs.stored("things")
        for shape in SHAPES if stored is not None else ():
            assert stored is not None
            at = stored.loaded[shape].position
            state = self.states[max(version for version in self.states if version <= at.value)]  # type: ignore[attr-defined]
            assert self.tracked.shown(NAME, shape, COLUMNS, at) == state, (shape, at)


@pytest.mark.thorough
@pytest.mark.parametrize("connections", [1, 4])
@pytest.mark.parametrize("number", range(HISTORIES))
def test_whatever_is_killed_all_targets_show_the_table_at_their_version(origin, monkeypatch, number, connections):
    history = History(origin, random.Random(SEED * 1000 + number * 10 + connections), connections)
    for _ in range(STEPS):
        draw = history.rng.random()
        for _ in range(history.rng.randrange(3)):
            history.commit()
        if draw < 0.12:
            history.lose()
        elif draw < 0.17:
            history.runs.lose("things")
        history.run(monkeypatch, kill=history.rng.random() < 0.45)
    history.commit()
    history.run(monkeypatch, kill=False)
    print(number, connections, history.kills, history.outcomes)
