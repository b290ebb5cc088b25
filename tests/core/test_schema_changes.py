"""Which rows schema events add to their table: each once, whoever finds them and however often."""

from __future__ import annotations

import dataclasses
import datetime
import json
import random

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.schema_changes import (
    ChangeRow,
    HeldRow,
    Statement,
    UnwrittenEvent,
    merged_unwritten,
    rows_to_add,
    unwritten,
)

NOON = datetime.datetime(2026, 3, 1, 12)


def lsn(number: int) -> Lsn:
    return Lsn(number.to_bytes(10))


def event(
    at: int, *statements: tuple[int, str], before: str = "1:a", after: str = "1:b", minute: int = 0
) -> UnwrittenEvent:
    seen_at = NOON + datetime.timedelta(minutes=minute)
    said = tuple(Statement(lsn(number), NOON, text) for number, text in statements)
    return UnwrittenEvent(lsn(at), seen_at, before, after, f"to {after}", ({"kind": "ADD_COLUMN"},), said)


def held(rows: list[ChangeRow]) -> list[HeldRow]:
    """The rows as they are read from the table."""
    return [HeldRow(row.lsn.sort_key, row.number, row.seen_at, row.before, row.after, row.changes) for row in rows]


def test_a_row_for_each_statement_by_its_number_in_the_transaction() -> None:
    rows = rows_to_add([event(8, (5, "ADD a"), (8, "ADD b"), (8, "DROP a"))], ())
    assert [(row.lsn, row.number, row.statement, row.found) for row in rows] == [
        (lsn(5), 1, "ADD a", "both"),
        (lsn(8), 1, "ADD b", "both"),
        (lsn(8), 2, "DROP a", "both"),
    ]
    assert {(row.before, row.after, row.seen_at, row.time) for row in rows} == {("1:a", "1:b", NOON, NOON)}
    assert [json.loads(row.changes) for row in rows] == [[{"kind": "ADD_COLUMN"}]] * 3
    assert rows_to_add([event(8, (8, "ADD b"), (8, "DROP a"))], held(rows)) == []


def test_what_the_catalogue_alone_tells_has_the_differences_as_its_text() -> None:
    (row,) = rows_to_add([event(9)], ())
    assert (row.lsn, row.number, row.time, row.statement, row.found) == (lsn(9), 0, None, "to 1:b", "catalogue")


def test_runs_that_see_more_or_fewer_statements_together_add_each_once() -> None:
    few, more = event(5, (5, "ADD a")), event(8, (5, "ADD a"), (8, "ADD b"), after="1:c")
    for first, second in ((few, more), (more, few)):
        rows = rows_to_add([first], ())
        rows += rows_to_add([second], held(rows))
        assert sorted(row.statement for row in rows) == ["ADD a", "ADD b"]
    assert [row.after for row in rows_to_add([few, more], ())] == ["1:b", "1:c"]


def test_an_event_of_the_catalogue_is_the_same_wherever_a_run_places_it() -> None:
    first, other = event(9), event(12, minute=1)
    rows = rows_to_add([first], ())
    assert rows_to_add([dataclasses.replace(first, lsn=lsn(11)), other], held(rows)) == []
    # back and forth again is another one, also beside what is known
    back, again = event(14, before="1:b", after="1:a", minute=3), event(16, minute=5)
    later = rows_to_add([first, back, again], held(rows))
    assert [row.lsn for row in later] == [lsn(14), lsn(16)]
    assert rows_to_add([first, back, again], held([*rows, *later])) == []


def test_that_a_table_was_dropped_is_there_once_for_each_table_of_the_name() -> None:
    def drop(at: int, object_id: int) -> UnwrittenEvent:
        changes = ({"kind": "TABLE_DROPPED", "then": f"object_id {object_id}"},)
        return dataclasses.replace(event(at, before="1:b", after="", minute=at), changes=changes)

    first = event(5, (5, "ADD a"))
    rows = rows_to_add([first, drop(8, 42)], ())
    assert [(row.lsn, row.number, row.after, row.found) for row in rows] == [
        (lsn(5), 1, "1:b", "both"),
        (lsn(8), 0, "", "catalogue"),
    ]
    # a run that was killed has written it, and the next one has seen it at another moment
    assert rows_to_add([drop(9, 42)], held(rows)) == []
    # one of the same columns was made anew, and dropped again
    assert [row.lsn for row in rows_to_add([drop(9, 43)], held(rows))] == [lsn(9)]
    # two runs at once have seen it, and none of them has written it
    assert [row.lsn for row in rows_to_add([drop(9, 43), drop(10, 43)], held(rows))] == [lsn(9)]
    # where a row stands already that the catalogue alone told of
    rows = rows_to_add([event(9)], ())
    assert [row.lsn for row in rows_to_add([drop(9, 43)], held(rows))] == [lsn(9)]


def test_positions_of_before_a_restore_are_no_reason_to_leave_out_what_comes_after_it() -> None:
    rows = rows_to_add([event(900, (900, "ADD a"))], ())
    assert len(rows_to_add([event(20, (20, "ADD b"), before="1:x", after="1:y")], held(rows))) == 1


def test_what_a_receipt_says_is_written_is_handed_over_no_more() -> None:
    one, two = event(5, (5, "ADD a")), event(8, (8, "ADD b"), before="1:b", after="1:c")
    assert unwritten((one, two), None, None) == (one, two)
    assert unwritten((one, two), None, lsn(5)) == (two,)
    assert unwritten((one, two), None, lsn(8)) == ()


@given(st.integers(0, 2**32))
def test_runs_beside_each_other_lose_and_double_none(seed: int) -> None:
    """Runs plan, and end in any order: they write, or cannot, and store what is left, or are killed before it."""
    rng = random.Random(seed)
    stored: tuple[UnwrittenEvent, ...] = ()
    table: list[ChangeRow] = []
    happened: list[tuple[int, str]] = []
    running: list[tuple[tuple[UnwrittenEvent, ...], UnwrittenEvent | None, int]] = []
    seen = 0
    for step in range(30):
        if rng.random() < 0.5:
            happened.append((step * 10, f"DDL {step}"))
        new = tuple(happened[seen:])
        found = event(new[-1][0], *new, before=f"1:{seen}", after=f"1:{len(happened)}") if new else None
        running.append((stored, found, len(happened)))
        while running and rng.random() < 0.6:
            planned, own, upto = running.pop(rng.randrange(len(running)))
            events = (*planned, *((own,) if own else ()))
            wrote = bool(events) and rng.random() < 0.7
            if wrote:
                table += rows_to_add(events, held(table))
            if rng.random() < 0.8:
                left = () if wrote else events
                stored, seen = merged_unwritten(stored, left, planned), upto
        if rng.random() < 0.1:
            # killed
            running.clear()
    last = [event(10**6, *happened[seen:], after="1:end")] if happened[seen:] else []
    table += rows_to_add([*stored, *last], held(table))
    assert sorted((row.lsn, row.statement) for row in table) == [(lsn(at), text) for at, text in happened]
