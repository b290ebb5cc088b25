"""Gaps of CDC that Change Tracking heals: what targets hold then, and which rows were read for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.changes import DEFAULT
from airflow_provider_mssql_cdc.core.entry_values import CDC
from tests.support.spark.tracked_origin import PlannedRuns, TrackedOrigin

pytestmark = [pytest.mark.xdist_group("tests.spark.test_healed_gaps"), pytest.mark.timeout(900)]

NAME, COLUMNS, SHAPES = "lab.things", ("id", "a", "note"), ("mirror", "history", "scd2")


def _place(row: Any) -> tuple[Any, ...]:
    # copied rows are behind the events of their position
    return row["_lsn"], row["_seqval"] is None, row["_seqval"], row["_command_id"]


class Healed:
    """A table with CDC and Change Tracking, and the runs that load it."""

    def __init__(self, live: Any, *, rows: int = 40, shapes: Sequence[str] = SHAPES, **said: Any) -> None:
        self.live, self.tracked = live, TrackedOrigin(live, snapshots=True)
        self.sql = live.sql
        self.sql("CREATE SCHEMA lab")
        self.sql("CREATE TABLE lab.things (id int NOT NULL PRIMARY KEY, a int, note nvarchar(max))")
        self.sql("INSERT INTO lab.things VALUES " + ", ".join(f"({id}, 1, N'old {id}')" for id in range(1, rows + 1)))
        live.enable(NAME)
        self.tracked.track(NAME)
        self.runs = PlannedRuns(
            self.tracked, "things", **{"shapes": shapes, "source": CDC, "history": DEFAULT, "on_gap": ("ct",), **said}
        )

    def run(self, **how: Any) -> list[str]:
        self.live.wait_captured()
        return self.runs.run(**how).get(NAME, [])

    def purge(self) -> None:
        """Remove all that is captured by now."""
        self.live.wait_captured()
        low = self.live.max_lsn()
        self.sql(f"EXEC sys.sp_cdc_cleanup_change_table N'lab_things', {low}, 5000")

    def shown(self, shape: str, columns: Sequence[str] = COLUMNS) -> list[tuple[Any, ...]]:
        """The table's rows as a target tells them."""
        rows = self.live.lake(NAME, shape)
        if shape == "history":
            newest: dict[Any, Any] = {}
            # what a copy of all rows does not have was not there
            since = max((row["_lsn"] for row in rows if row["_op"] == "R" and not row["_healed"]), default="")
            rows = [row for row in rows if row["_lsn"] >= since]
            for row in sorted((row for row in rows if row["_op"] != "B"), key=_place):
                newest[row[columns[0]]] = row
            rows = [row for row in newest.values() if row["_op"] != "D"]
        elif shape == "scd2":
            rows = [row for row in rows if row["_to_lsn"] is None]
        assert len({row[columns[0]] for row in rows}) == len(rows)
        return sorted(tuple(row[column] for column in columns) for row in rows)

    def check(self, shapes: Sequence[str] = SHAPES) -> None:
        for shape in shapes:
            assert self.shown(shape) == self.tracked.source(NAME, COLUMNS), shape

    @property
    def copied(self) -> int:
        assert self.runs.receipt is not None
        return self.runs.receipt.tables[0].counts["copied"]


CHANGES = (
    "UPDATE lab.things SET a = 2, note = N'new' WHERE id IN (3, 4); DELETE FROM lab.things WHERE id IN (5, 6);"
    " INSERT INTO lab.things VALUES (50, 5, N'in'), (51, 5, N'short'); DELETE FROM lab.things WHERE id = 51;"
    " UPDATE lab.things SET id = 60 WHERE id = 7; DELETE FROM lab.things WHERE id = 8;"
    " INSERT INTO lab.things VALUES (8, 8, N'again')"
)


def test_a_gap_is_healed_by_the_rows_that_changed(live):
    found = Healed(live)
    assert found.run() == ["first_load"] * 3
    found.sql("UPDATE lab.things SET a = 9 WHERE id = 1")
    assert found.run() == ["loaded"] * 3
    found.sql("UPDATE lab.things SET a = 10 WHERE id = 2")
    assert found.run() == ["loaded"] * 3
    found.sql(CHANGES)
    found.purge()
    found.sql("UPDATE lab.things SET a = 3 WHERE id = 9; DELETE FROM lab.things WHERE id = 10")
    assert found.run() == ["healed"] * 3
    found.check()
    assert found.copied < 12
    rows = [row for row in live.lake(NAME, "history") if row["_healed"]]
    told = {(row["id"], row["_op"]) for row in rows}
    assert {(3, "R"), (4, "R"), (50, "R"), (60, "R"), (8, "R"), (5, "D"), (6, "D"), (7, "D"), (51, "D")} <= told
    ((alone,),) = [[row] for row in rows if row["id"] == 51]
    assert (alone["a"], sorted(alone["_unknown"])) == (None, ["a", "note"])
    found.sql("UPDATE lab.things SET a = a + 1 WHERE id < 20")
    assert found.run() == ["loaded"] * 3
    found.check()
