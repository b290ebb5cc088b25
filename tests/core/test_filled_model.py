"""The rule of a fill that leaves rows out, in plain Python: a live row without copy and event has the common value.

A table's column is filled by a copy in chunks, each read at its own moment, of rows whose value is not the
common one. A target that keeps deleted rows must not have it, which is proven, too.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.copies import ChunkRead, CommonRead, ReadEnd, usable
from airflow_provider_mssql_cdc.core.passing import CaptureProgress

KEYS = 8
COMMON = "new"
VALUES = (COMMON, COMMON, COMMON, "NEW", None)


class Table:
    """Rows, and the events since the new column is captured."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.position = rng, 0
        self.rows: dict[int, str | None] = {key: rng.choice(VALUES) for key in range(KEYS) if rng.random() < 0.7}
        self.events: list[tuple[int, str, int, str | None]] = []

    def commit(self) -> None:
        """One transaction of one change."""
        rng, key = self.rng, self.rng.randrange(KEYS)
        self.position += 1
        if key in self.rows and rng.random() < 0.4:
            self.events.append((self.position, "D", key, self.rows.pop(key)))
        else:
            self.rows[key] = rng.choice(VALUES)
            self.events.append((self.position, "U", key, self.rows[key]))

    def some(self) -> None:
        for _ in range(self.rng.randrange(3)):
            self.commit()


def filled(rng: random.Random, *, keeps_deleted: bool) -> tuple[dict[int, str | None], dict[int, str | None]]:
    """The target's rows after the fill, and the source's at the same position."""
    table = Table(rng)
    # the target has rows that were deleted before the column came, where it keeps them
    ghosts = {key for key in range(KEYS) if key not in table.rows and rng.random() < 0.5} if keeps_deleted else set()
    live = {*table.rows, *ghosts}
    low, copied = table.position, {}
    for chunk in (range(3), range(3, 6), range(6, KEYS)):
        table.some()
        copied |= {key: table.rows[key] for key in chunk if key in table.rows and table.rows[key] != COMMON}
    table.some()
    told = {key: (op, value) for at, op, key, value in table.events if at > low}
    for key, (op, _) in told.items():
        live = live - {key} if op == "D" and not keeps_deleted else live | {key}
    out = {}
    for key in live:
        op, value = told.get(key, ("", None))
        out[key] = value if op == "U" else None if op == "D" else copied.get(key, COMMON)
    return out, table.rows


@settings(max_examples=500, deadline=None)
@given(st.integers(0, 2**32))
def test_what_no_chunk_and_no_event_has_is_the_common_value(seed: int) -> None:
    found, source = filled(random.Random(seed), keeps_deleted=False)
    assert found == source


def test_a_target_that_keeps_deleted_rows_would_give_them_a_value() -> None:
    wrong = (filled(random.Random(seed), keeps_deleted=True) for seed in range(100))
    assert any(found.get(key) == COMMON for found, source in wrong for key in found.keys() - source.keys())


def chunk(name: str, without: str) -> ChunkRead:
    progress = CaptureProgress.__new__(CaptureProgress)
    return ChunkRead(name, None, None, 0, (), "{}", ReadEnd(progress, progress, 0.0), without)


@pytest.mark.parametrize(
    ("of", "counting", "common"),
    [
        (("c",), ["whole", "by a"], "common-a"),
        # the columns that are filled are others by now, or all rows are wanted
        (("c", "d"), ["whole"], None),
        ((), ["whole"], None),
    ],
)
def test_of_two_runs_that_found_common_values_one_counts(
    of: tuple[str, ...], counting: list[str], common: str | None
) -> None:
    found = [
        CommonRead(f"common-{name}", ("c",), (value,), 9, 10, (), "{}") for name, value in (("a", "0"), ("b", "1"))
    ]
    chunks = [chunk("whole", ""), chunk("by a", "common-a"), chunk("by b", "common-b")]
    left, chosen = usable(chunks, found, of)
    assert [each.name for each in left] == counting
    assert (chosen.name if chosen is not None else None) == common
