"""What is told of the columns that targets take: each step once, the newest counts."""

from __future__ import annotations

import dataclasses
import datetime
import json
from typing import Any

from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.schema_changes import (
    HeldRow,
    SinkRow,
    UnwrittenEvent,
    rows_to_add,
    sink_rows_to_add,
)
from airflow_provider_mssql_cdc.core.taken import (
    NOTHING_TAKEN,
    TakenBySink,
    TakenColumn,
    dropped_of,
    taken_by,
    with_taken,
)

NOON = datetime.datetime(2026, 3, 1, 12)


def lsn(number: int) -> Lsn:
    return Lsn(number.to_bytes(10))


class Table:
    """The table of schema changes, and what sinks have taken.

    :ivar sinks: by shape
    """

    def __init__(self) -> None:
        self.rows: list[HeldRow] = []
        self.sinks: dict[str, TakenBySink] = {}

    def event(self, at: int, kind: str, column_id: int, then: str = "") -> None:
        """An event that has its place, and is written."""
        number = len(self.rows)
        change: dict[str, Any] = {"kind": kind, "column": f"c{column_id}", "column_id": column_id, "then": then}
        event = UnwrittenEvent(lsn(at), NOON, f"1:{number}", f"1:{number + 1}", "text", (change,))
        self.rows += [row.held for row in rows_to_add([event], self.rows)]

    def take(
        self,
        shape: str,
        after: int,
        since: int,
        *,
        lacked: tuple[int, ...] = (),
        altered: tuple[int, ...] = (),
        filled: int | None = None,
        fills: bool = True,
    ) -> None:
        """A commit of a sink."""
        columns = with_taken(
            self.sinks.get(shape, NOTHING_TAKEN).columns,
            lacked=lacked,
            altered=altered,
            after=lsn(after),
            since=lsn(since),
            filled=lsn(filled) if filled is not None else None,
        )
        self.sinks[shape] = taken_by(columns, fills=fills)

    def told(self) -> list[tuple[Any, ...]]:
        """What a job adds of sinks; another job adds nothing."""
        rows = sink_rows_to_add(self.rows, self.sinks)
        self.rows += [held(row) for row in rows]
        assert sink_rows_to_add(self.rows, self.sinks) == []
        return [
            (sink.shape, sink.column_id, row.step, sink.state, *map(number, places(row)))
            for row, sink in ((row, row.sink) for row in rows)
        ]


def places(row: SinkRow) -> tuple[Any, ...]:
    return row.at, row.sink.lacked_from, row.sink.lacked_upto, row.sink.filled_at


def number(place: str | None) -> int | None:
    return int(place, 16) if place is not None else None


def held(row: SinkRow) -> HeldRow:
    return HeldRow(row.at, 0, row.seen_at, row.before, row.after, json.dumps([]), row.sink, row.step)


def test_a_column_that_was_added_is_lacked_from_its_ddl_up_to_where_each_sink_takes_it() -> None:
    table = Table()
    table.event(10, "ADD_COLUMN", 3)
    assert table.told() == []
    table.take("history", 40, 30, lacked=(3,))
    table.take("mirror", 70, 60, lacked=(3,), filled=70)
    assert table.told() == [
        ("history", 3, 1, "filling", 10, 10, 40, None),
        ("mirror", 3, 1, "filled", 10, 10, 70, 70),
    ]
    table.take("history", 70, 60, filled=70)
    assert table.told() == [("history", 3, 2, "filled", 10, 10, 40, 70)]
    # another column is none of theirs
    table.event(80, "ADD_COLUMN", 4)
    table.event(85, "DROP_COLUMN", 3)
    assert table.told() == []


def test_one_that_a_target_has_dropped_is_told_once() -> None:
    table = Table()
    table.event(10, "ADD_COLUMN", 3)
    table.take("mirror", 20, 15, lacked=(3,), filled=20)
    table.told()
    table.event(30, "DROP_COLUMN", 3)
    assert table.told() == []
    columns = (*table.sinks["mirror"].columns, TakenColumn(3, lsn(30), lsn(30), dropped="c3"))
    table.sinks["mirror"] = taken_by(columns, fills=True)
    assert table.told() == [("mirror", 3, 1, "dropped", 30, None, None, None)]
    assert not table.sinks["mirror"].fills
    # the same name again is another column
    table.event(40, "ADD_COLUMN", 4)
    table.take("mirror", 50, 45, lacked=(4,), filled=50)
    assert table.told() == [("mirror", 4, 1, "filled", 40, 40, 50, 50)]


def test_one_that_nothing_fills_is_read_and_may_be_filled_later() -> None:
    table = Table()
    table.event(10, "ADD_COLUMN", 3)
    table.take("mirror", 40, 30, lacked=(3,), fills=False)
    assert table.told() == [("mirror", 3, 1, "read", 10, 10, 40, None)]
    table.take("mirror", 50, 40)
    assert table.told() == [("mirror", 3, 2, "filling", 10, 10, 40, None)]
    table.take("mirror", 60, 50, filled=60)
    assert table.told() == [("mirror", 3, 3, "filled", 10, 10, 40, 60)]


def test_a_change_that_is_told_after_a_sink_has_taken_the_column() -> None:
    table = Table()
    table.take("history", 40, 30, lacked=(3,))
    assert table.told() == []
    # its place is that of the run that told it, of which the catalogue alone knew
    table.event(50, "ADD_COLUMN", 3)
    assert table.told() == [("history", 3, 1, "filling", 50, None, 40, None)]


def test_each_type_that_alters_values_is_filled_anew() -> None:
    table = Table()
    table.event(10, "ADD_COLUMN", 3)
    table.take("mirror", 20, 15, lacked=(3,), filled=20)
    table.told()
    table.event(30, "ALTER_TYPE", 3)
    assert table.told() == []
    table.take("mirror", 29, 29, altered=(3,))
    assert table.told() == [("mirror", 3, 1, "filling", 30, None, None, None)]
    table.take("mirror", 60, 50, filled=60)
    assert table.told() == [("mirror", 3, 2, "filled", 30, None, None, 60)]
    # one that keeps all values, then another that does not
    table.event(70, "ALTER_TYPE", 3)
    assert table.told() == []
    table.event(80, "ALTER_TYPE", 3)
    table.take("mirror", 75, 75, altered=(3,))
    assert table.told() == [("mirror", 3, 1, "filling", 80, None, None, None)]
    table.take("mirror", 90, 80, filled=90)
    assert table.told() == [("mirror", 3, 2, "filled", 80, None, None, 90)]


def test_a_type_that_nothing_fills_is_read() -> None:
    table = Table()
    table.event(30, "ALTER_TYPE", 3)
    table.take("history", 29, 29, altered=(3,), fills=False)
    table.take("mirror", 29, 29, altered=(3,))
    assert table.told() == [
        ("history", 3, 1, "read", 30, None, None, None),
        ("mirror", 3, 1, "filling", 30, None, None, None),
    ]
    # a person has changed the options
    table.take("mirror", 40, 40, fills=False)
    assert table.told() == [("mirror", 3, 2, "read", 30, None, None, None)]


def test_a_target_that_was_loaded_anew_lacks_nothing() -> None:
    table = Table()
    table.event(10, "ADD_COLUMN", 3)
    table.take("mirror", 40, 30, lacked=(3,))
    table.told()
    table.sinks["mirror"] = NOTHING_TAKEN
    assert table.told() == [("mirror", 3, 2, "anew", 10, None, None, None)]


def test_two_changes_of_one_column_are_told_once() -> None:
    table = Table()
    table.event(10, "ADD_COLUMN", 3)
    changes = [{"kind": kind, "column": "c3", "column_id": 3} for kind in ("ALTER_TYPE", "ALTER_NULLABILITY")]
    event = UnwrittenEvent(lsn(20), NOON, "1:x", "1:y", "text", tuple(changes))
    table.rows += [row.held for row in rows_to_add([event], table.rows)]
    table.take("mirror", 40, 15, altered=(3,))
    assert [told[:4] for told in table.told()] == [("mirror", 3, 1, "filling")]
    table.sinks["mirror"] = NOTHING_TAKEN
    assert [told[:4] for told in table.told()] == [("mirror", 3, 2, "anew")]


def test_a_table_that_was_made_anew_gives_column_ids_again() -> None:
    table = Table()
    table.event(10, "ADD_COLUMN", 3)
    gone = UnwrittenEvent(lsn(20), NOON, "1:a", "", "text", ({"kind": "TABLE_DROPPED", "then": "object_id 7"},))
    table.rows += [row.held for row in rows_to_add([gone], table.rows)]
    table.event(30, "ADD_COLUMN", 3)
    table.take("mirror", 40, 35, lacked=(3,))
    assert table.told() == [("mirror", 3, 1, "filling", 30, 30, 40, None)]


def test_a_run_that_looked_before_another_has_filled_tells_nothing() -> None:
    table = Table()
    table.event(10, "ADD_COLUMN", 3)
    table.take("mirror", 40, 30, lacked=(3,))
    table.told()
    late = dict(table.sinks)
    table.take("mirror", 60, 50, filled=60)
    table.told()
    assert sink_rows_to_add(table.rows, late) == []


def test_statements_are_known_beside_what_is_told_of_sinks() -> None:
    table = Table()
    table.event(10, "ADD_COLUMN", 3)
    table.take("mirror", 40, 30, lacked=(3,))
    table.told()
    again = UnwrittenEvent(lsn(90), NOON + datetime.timedelta(1), "1:1", "1:0", "text", ())
    (row,) = rows_to_add([again], table.rows)
    assert (row.lsn, row.number) == (lsn(90), 0)
    assert rows_to_add([dataclasses.replace(again, lsn=lsn(95))], [*table.rows, row.held]) == []


def test_of_rows_that_are_replaced_it_counts_what_the_target_has_dropped() -> None:
    # an entry may still name it
    taken, dropped = TakenColumn(3, lsn(10), lsn(5)), TakenColumn(4, lsn(20), lsn(20), dropped="b")
    assert dropped_of((taken, dropped)) == (dropped,)
    assert dropped_of((taken,)) == ()
