"""Random histories by Change Tracking in which columns come, go and get other names, with runs that are killed."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.spark.test_tracked_histories import COLUMNS, HISTORIES, NAME, SEED, SHAPES, STEPS, History
from tests.support.spark.tracked_origin import PlannedRuns

pytestmark = [pytest.mark.xdist_group("tests.spark.test_tracked_tables"), pytest.mark.timeout(1800)]

NAMES = ("c", "d", "e", "f")


class Columns(History):
    """One random history, and the columns that the table had at each version."""

    def __init__(self, origin: Any, rng: random.Random, connections: int) -> None:
        self.now: list[str] = []
        self.rows: list[tuple[int, list[str], list[dict[str, Any]]]] = []
        super().__init__(origin, rng, connections)
        options = self.runs.options
        self.runs = PlannedRuns(self.tracked, "things", shapes=SHAPES, on_gap=("copy",), on_schema_change="evolve")
        self.runs.options = options

    def note(self) -> None:
        rows = self.sql(f"SELECT {', '.join((*COLUMNS, *self.now))} FROM {NAME}")
        self.rows.append((self.tracked.current().value, [*COLUMNS, *self.now], rows))

    def change(self) -> str:
        text = super().change()
        if self.now and self.rng.random() < 0.7:
            id, column = self.rng.randrange(1, 16), self.rng.choice(self.now)
            set_ = f"UPDATE lab.things SET {column} = {self.number} WHERE id BETWEEN {id} AND {id + 2}"
            text = text.replace("; COMMIT", f"; {set_}; COMMIT")
        return text

    def alter(self) -> None:
        """Change the columns, and perhaps rows in the same breath."""
        free = [name for name in NAMES if name not in self.now]
        draw = self.rng.random()
        if free and (draw < 0.5 or not self.now):
            name = self.rng.choice(free)
            self.sql(f"ALTER TABLE lab.things ADD {name} int{' NOT NULL DEFAULT 7' * (self.rng.random() < 0.5)}")
            self.now.append(name)
        elif draw < 0.75:
            # a name that another column of the target had is refused
            old, new = self.rng.choice(self.now), f"r{len(self.rows)}"
            self.sql(f"EXEC sp_rename 'lab.things.{old}', '{new}', 'COLUMN'")
            self.now[self.now.index(old)] = new
        else:
            name = self.rng.choice(self.now)
            self.now.remove(name)
            found = self.sql(
                "SELECT d.name FROM sys.default_constraints d JOIN sys.columns c ON c.object_id = d.parent_object_id"
                " AND c.column_id = d.parent_column_id"
                f" WHERE c.object_id = OBJECT_ID(N'lab.things') AND c.name = '{name}'"
            )
            for row in found:
                self.sql(f"ALTER TABLE lab.things DROP CONSTRAINT {row['name']}")
            self.sql(f"ALTER TABLE lab.things DROP COLUMN {name}")
        self.note()

    def check(self) -> None:
        self.compare(("mirror", "scd2"), whole=False)
        self.compare(("history",), whole=False)

    def compare(self, shapes: tuple[str, ...], *, whole: bool) -> None:
        """Compare with what the table held: in the columns that a target has, or in all."""
        stored = self.runs.stored("things")
        for shape in shapes if stored is not None else ():
            at = stored.loaded[shape].position  # type: ignore[union-attr]
            fitting = [each for each in self.rows if each[0] <= at.value]
            # of one version the columns may have changed since
            same = [each for each in fitting if each[0] == fitting[-1][0]]
            there = self.tracked.origin.lake(NAME, shape)
            if whole:
                same = same[-1:]
            found = []
            for _, columns, rows in same:
                held = [c for c in columns if whole or c in COLUMNS or (shape != "history" and c in there[0])]
                expected = sorted(tuple(row[c] for c in held) for row in rows)
                found.append((self.tracked.shown(NAME, shape, held, at), expected))
            # a column of a name of before is another one, until the target has seen that
            assert any(shown == expected for shown, expected in found), (shape, at, found)


@pytest.mark.thorough
@pytest.mark.parametrize("connections", [1, 4])
@pytest.mark.parametrize("number", range(HISTORIES))
def test_whatever_columns_become_all_targets_show_the_table(origin, monkeypatch, number, connections):
    history = Columns(origin, random.Random(SEED * 2000 + number * 10 + connections), connections)
    for _ in range(STEPS):
        draw = history.rng.random()
        for _ in range(history.rng.randrange(3)):
            history.commit()
        if draw < 0.35:
            history.alter()
        if history.rng.random() < 0.3:
            history.commit()
        history.run(monkeypatch, kill=history.rng.random() < 0.35)
    for _ in range(3):
        history.commit()
        history.run(monkeypatch, kill=False)
    history.compare(SHAPES, whole=True)
    print(number, connections, history.kills, history.now, history.outcomes)
