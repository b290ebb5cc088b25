"""Random histories over two tables, captured in random scans, against a model that goes row by row."""

from __future__ import annotations

import itertools
from typing import Any, Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.sandbox.engine.cdc.switches import Switches
from airflow_provider_mssql_cdc.sandbox.engine.harshness import Harshness, Point
from airflow_provider_mssql_cdc.sandbox.engine.log import RowImages
from tests.support.sandbox.engine.cdc import model
from tests.support.sandbox.engine.cdc.model import Row, Statement
from tests.support.sandbox.engine.cdc.world import INT, VARCHAR10, World, delete, insert, table, update

T = table("t", {"id": INT, "a": VARCHAR10, "b": INT}, key=["id"])
U = table("u", {"k": INT, "l": VARCHAR10, "v": INT, "w": INT}, key=["k", "l"], object_id=101)
TABLES = {"t": T, "u": U}
KEYS = {"t": (0,), "u": (0, 1)}

SMALL = st.one_of(st.none(), st.integers(0, 2))
TEXT = st.one_of(st.none(), st.sampled_from(["", "x", "y"]))
ROWS = {
    "t": st.tuples(st.integers(1, 5), TEXT, SMALL),
    "u": st.tuples(st.integers(1, 3), st.sampled_from(["p", "q"]), SMALL, SMALL),
}
KINDS: list[Literal["insert", "delete", "update"]] = ["insert", "update", "update", "delete"]


def key_of(name: str, row: Row) -> Row:
    return tuple(row[place] for place in KEYS[name])


@st.composite
def statements(draw: st.DrawFn, state: dict[str, dict[Row, Row]]) -> Statement | None:
    """A statement that is possible in a state, which it changes."""
    name, kind = draw(st.sampled_from(["t", "u"])), draw(st.sampled_from(KINDS))
    rows, undone = state[name], draw(st.integers(0, 9)) == 0
    pairs: list[tuple[Row, Row]] = []
    drawn: list[Row] = draw(st.lists(ROWS[name], min_size=1, max_size=3, unique_by=lambda row: key_of(name, row)))
    if kind == "insert":
        pairs = [((), row) for row in drawn if key_of(name, row) not in rows]
    elif not rows:
        return None
    else:
        present = sorted(rows.values(), key=lambda row: key_of(name, row))
        chosen = draw(st.lists(st.sampled_from(present), min_size=1, max_size=3, unique=True))
        if kind == "delete":
            pairs = [(row, ()) for row in chosen]
        else:
            keep_key = draw(st.booleans())
            for old, new in zip(chosen, drawn, strict=False):
                pairs.append((old, (*key_of(name, old), *new[len(KEYS[name]) :]) if keep_key else new))
    after = dict(rows)
    for old, _ in pairs:
        after.pop(key_of(name, old), None) if old else None
    for _, new in pairs:
        if new:
            if key_of(name, new) in after:
                return None  # the server refuses duplicate keys
            after[key_of(name, new)] = new
    if not pairs:
        return None
    if not undone:
        state[name] = after
    return Statement(name, kind, tuple(pairs), undone)


def images(statement: Statement) -> RowImages:
    of = TABLES[statement.table]
    if statement.kind == "insert":
        return insert(of, *(new for _, new in statement.rows))
    if statement.kind == "delete":
        return delete(of, *(old for old, _ in statement.rows))
    return update(of, *statement.rows)


def as_model(row: dict[str, Any], numbers: dict[bytes, int]) -> model.Change:
    values = tuple(value for name, value in row.items() if not name.startswith("__$"))
    mask = int.from_bytes(row["__$update_mask"], "big")
    return model.Change(numbers[row["__$start_lsn"]], row["__$command_id"], row["__$operation"], mask, values)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_random_histories(data: st.DataObject) -> None:
    across = data.draw(st.booleans(), label="command ids count across tables")
    points = data.draw(st.sampled_from([(), (Point.OVERLAP, Point.SEQVAL)]), label="harsh")
    harshness = Harshness(data.draw(st.integers(0, 9), label="seed"), points)
    world = World(Switches(clr_enabled=True, command_ids_count_across_tables=across), harshness=harshness)
    for each in (T, U):
        world.db.enable_table(each)
    late = data.draw(st.integers(0, 8), label="the second instance comes before this commit")
    state: dict[str, dict[Row, Row]] = {"t": {}, "u": {}}
    commits: list[tuple[int, list[Statement]]] = []
    numbers: dict[bytes, int] = {}
    for number in range(data.draw(st.integers(1, 10), label="commits")):
        if number == late:
            world.db.enable_table(T, capture_instance="late", captured_column_list="id,b")
        made = [data.draw(statements(state)) for _ in range(data.draw(st.integers(1, 4)))]
        done = [each for each in made if each is not None]
        lsn = world.commit(*(images(each) for each in done if not each.undone))
        commits.append((number, done))
        if lsn is not None:
            numbers[lsn] = number
        if data.draw(st.integers(0, 2)) == 0:
            world.db.scan(data.draw(st.sampled_from([None, 1, 2])))
    world.db.scan()

    instances = {"dbo_t": model.Instance("t", (0, 1, 2)), "dbo_u": model.Instance("u", (0, 1, 2, 3))}
    keys = {"dbo_t": (0,), "dbo_u": (0, 1)}
    if world.db.instance("late") is not None:
        instances["late"], keys["late"] = model.Instance("t", (0, 2), late), (0,)
    expected = model.changes(commits, instances, KEYS, across_tables=across)
    for name, rows in expected.items():
        captured = world.rows(name)
        assert [as_model(row, numbers) for row in captured] == rows
        order = [(row["__$start_lsn"], row["__$command_id"], row["__$seqval"], row["__$operation"]) for row in captured]
        assert order == sorted(order)
        places = list(zip([row["__$seqval"] for row in captured], rows, strict=True))
        for (seqval, earlier), (other, later) in itertools.combinations(places, 2):
            if earlier.commit != later.commit:
                continue
            if (earlier.command_id, earlier.operation, later.operation) == (later.command_id, 3, 4):
                assert other == seqval
            elif other <= seqval:
                assert points
                assert other < seqval
                assert model.may_lie_before(later, earlier)

    mapped = [row["start_lsn"] for row in world.relation("lsn_time_mapping") if row["tran_id"] != b"\0"]
    assert [numbers[lsn] for lsn in mapped] == sorted({row.commit for rows in expected.values() for row in rows})

    if mapped:
        first, last = sorted(data.draw(st.tuples(*[st.sampled_from(mapped)] * 2), label="window"))
        for name, rows in expected.items():
            start = world.db.min_lsn(name)
            assert start is not None
            if start > last:
                continue
            low = max(first, start)
            window = [row for row in rows if low <= _lsn(row.commit, numbers) <= last]
            got = world.all_changes(name, low, last, "all update old")
            got_rows = [(numbers[row["__$start_lsn"]], row["__$operation"]) for row in got]
            assert got_rows == [(row.commit, row.operation) for row in window]
            net = world.net_changes(name, low, last, "all with mask")
            assert [
                (
                    numbers[row["__$start_lsn"]],
                    row["__$operation"],
                    None if row["__$update_mask"] is None else int.from_bytes(row["__$update_mask"], "big"),
                    tuple(value for column, value in row.items() if not column.startswith("__$")),
                )
                for row in net
            ] == model.net(window, keys[name])


def _lsn(number: int, numbers: dict[bytes, int]) -> bytes:
    return next(lsn for lsn, each in numbers.items() if each == number)
