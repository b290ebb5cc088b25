"""Random histories of a table whose gaps Change Tracking heals: all targets show a state that the table had."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.changes import DEFAULT
from airflow_provider_mssql_cdc.core.entry_values import CDC
from tests.spark.test_healed_gaps import COLUMNS, NAME, SHAPES, Healed
from tests.support.spark.tracked_origin import PlannedRuns, TrackedOrigin, some_changes

pytestmark = [pytest.mark.xdist_group("tests.spark.test_healed_gaps"), pytest.mark.timeout(1800)]

STEPS = int(os.environ.get("MSSQL_CDC_TEST_STEPS", "14"))
HISTORIES = int(os.environ.get("MSSQL_CDC_TEST_HISTORIES", "2"))
SEED = int(os.environ.get("MSSQL_CDC_TEST_SEED", "1"))


class History:
    """One random history: what was committed, and how the capture, the cleanups and the runs came in between."""

    def __init__(self, live: Any, rng: random.Random) -> None:
        self.rng, self.found = rng, Healed(live, rows=12, on_gap=("ct", "copy"))
        self.sql, self.live = live.sql, live
        self.states = [self.rows()]
        self.at, self.number, self.late = 0, 0, False
        self.outcomes: list[str] = []

    def rows(self) -> list[tuple[Any, ...]]:
        return self.found.tracked.source(NAME, COLUMNS)

    def commit(self) -> None:
        """A transaction after which the table is as it never was before."""
        self.number += 1
        n = self.number
        text = "; ".join(some_changes(self.rng, n))
        self.sql(f"BEGIN TRANSACTION; {text}; INSERT INTO lab.things VALUES ({1000 + n}, {n}, NULL); COMMIT")
        self.states.append(self.rows())

    def capture(self, *, on: bool) -> None:
        if on == self.late:
            self.sql(f"EXEC sys.sp_cdc_{'start' if on else 'stop'}_job @job_type = N'capture'")
            self.late = not on

    def purge(self) -> None:
        """Remove what is captured: up to some position, or all."""
        rows = self.sql("SELECT start_lsn FROM cdc.lsn_time_mapping ORDER BY start_lsn")
        if rows:
            low = self.rng.choice(rows[len(rows) // 2 :])["start_lsn"]
            self.sql(f"EXEC sys.sp_cdc_cleanup_change_table N'lab_things', 0x{low.hex()}, 5000")

    def run(self, limit: int | None) -> None:
        self.outcomes += self.found.runs.run(limit=limit).get(NAME, [])
        if self.found.runs.stored("things") is None:
            return
        shown = {shape: self.found.shown(shape) for shape in SHAPES}
        # all shapes are at one position, behind that of before
        for shape, rows in shown.items():
            assert rows in self.states[self.at :], shape
        at = {shape: self.states.index(rows) for shape, rows in shown.items()}
        assert len({*at.values()}) == 1, at
        self.at = at["mirror"]

    def all(self) -> None:
        """Everything that is committed is captured and loaded."""
        self.capture(on=True)
        self.live.wait_captured()
        self.run(None)
        assert self.at == len(self.states) - 1


@pytest.mark.thorough
@pytest.mark.parametrize("number", range(HISTORIES))
def test_all_targets_show_a_state_that_the_table_had(live, number):
    history = History(live, random.Random(SEED * 1000 + number))
    history.all()
    for _ in range(STEPS):
        draw = history.rng.random()
        for _ in range(history.rng.randrange(3)):
            history.commit()
        if draw < 0.1:
            history.capture(on=False)
        elif draw < 0.45:
            history.capture(on=True)
            history.live.wait_captured()
        elif draw < 0.65:
            history.capture(on=True)
            history.live.wait_captured()
            history.purge()
        if draw < 0.6:
            history.run(history.rng.choice((None, 1, 2)) if not history.late else 1)
    history.all()
    assert "healed" in history.outcomes or HISTORIES > 1, history.outcomes
    print(number, history.outcomes)


@pytest.mark.thorough
def test_random_gaps_of_ten_tables_are_healed_by_the_rows_that_changed(live):
    rng, tables, size = random.Random(SEED), [f"t{n}" for n in range(10)], 30
    tracked = TrackedOrigin(live, snapshots=True)
    tracked.sql("CREATE SCHEMA lab")
    for table in tables:
        tracked.sql(f"CREATE TABLE lab.{table} (id int NOT NULL PRIMARY KEY, a int, note nvarchar(max))")
        tracked.sql(f"INSERT INTO lab.{table} VALUES " + ", ".join(f"({n}, 1, N'old {n}')" for n in range(1, size + 1)))
        live.enable(f"lab.{table}")
        tracked.track(f"lab.{table}")
    runs = PlannedRuns(tracked, *tables, shapes=("mirror",), source=CDC, history=DEFAULT, on_gap=("ct",))
    healed = set()
    for step in range(8):
        lost = set()
        for number, table in enumerate(tables):
            changes = [some_changes(rng, step * 100 + number) for _ in range(rng.randrange(4))]
            for each in changes:
                tracked.sql("; ".join(each).replace("lab.things", f"lab.{table}"))
            # a version may be used from the second run on
            if changes and step > 2 and rng.random() < 0.4:
                lost.add(table)
        live.wait_captured()
        for table in lost:
            tracked.sql(f"EXEC sys.sp_cdc_cleanup_change_table N'lab_{table}', {live.max_lsn()}, 5000")
        outcomes = runs.run()
        for table in tables:
            columns = ("id", "a", "note")
            assert tracked.mirror(f"lab.{table}", columns) == tracked.source(f"lab.{table}", columns), (step, table)
        copied = [name for name, found in outcomes.items() if found == ["first_load"]]
        assert copied == ([] if step else list(outcomes))
        assert runs.receipt is not None
        for table in runs.receipt.tables if step else ():
            assert table.counts["copied"] < size / 2
        healed |= {name for name, found in outcomes.items() if found == ["healed"]}
    assert len(healed) > 5, healed
