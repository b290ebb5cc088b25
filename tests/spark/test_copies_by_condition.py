"""Copies of the rows that fulfil a condition: those are mended, and what is gone is asked for by its key."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import pytest

from airflow_provider_mssql_cdc.core.columns import key_columns, map_columns
from airflow_provider_mssql_cdc.core.copy_wanted import AskedCopy
from airflow_provider_mssql_cdc.core.exceptions import CaptureLagError
from airflow_provider_mssql_cdc.core.selection import Selection
from airflow_provider_mssql_cdc.spark.copies import folder
from airflow_provider_mssql_cdc.spark.copies.again import RowsAgain
from airflow_provider_mssql_cdc.spark.copies.chunks import Chunks
from airflow_provider_mssql_cdc.spark.files import write_rows
from airflow_provider_mssql_cdc.spark.jdbc import Credentials, Jdbc
from airflow_provider_mssql_cdc.spark.session import table_session
from airflow_provider_mssql_cdc.spark.shapes.fold import column
from airflow_provider_mssql_cdc.spark.sources.cdc import table as cdc_table
from tests.support.key_types import COLLATIONS, TYPES
from tests.support.logins import SPARK_PASSWORD, SPARK_USER
from tests.support.spark.asked import SHAPES, change, load, make, newest, rows, source, spoil_by
from tests.support.spark.origin import positions

pytestmark = pytest.mark.xdist_group(__name__)


@pytest.fixture
def orders(live):
    make(live)
    return live


ODD = '[["note", "in", ["odd", "other"]]]'


def test_a_copy_by_a_condition_mends_the_rows_that_fulfil_it(orders):
    orders.sql("UPDATE dbo.orders SET note = N'odd' WHERE id % 2 = 1")
    orders.wait_captured()
    first = load(orders)
    for shape in SHAPES:
        changed = "AND _op != 'B'" if shape == "history" else ""
        spoil_by(
            orders, shape,
            # of those that fulfil it one is lost, one wrong; one says so that does not, in target and in source
            "DELETE FROM {name} WHERE id IN (3, 10)",
            "UPDATE {name} SET doc = 'wrong' WHERE id IN (5, 12)",
            f"UPDATE {{name}} SET note = 'odd' WHERE id = 14 {changed}",
            f"UPDATE {{name}} SET note = 'even' WHERE id = 17 {changed}",
        )  # fmt: skip
        ghosts = {"id": ("98", "99"), "note": ("'odd'", "'even'"), "doc": ("'boo'",) * 2}
        if shape == "history":
            ghosts |= {"_op": ("'R'",) * 2, "_lsn": ("'0x00000000000000000001'",) * 2}
        elif shape == "scd2":
            ghosts |= {"_from_lsn": ("'0x00000000000000000001'",) * 2}
        for values in zip(*ghosts.values(), strict=True):
            spoil_by(orders, shape, f"INSERT INTO {{name}} ({', '.join(ghosts)}) VALUES ({', '.join(values)})")
    change(orders)

    done = load(orders, asked=AskedCopy("c1", where=ODD), at=positions(first))

    (table,) = done.tables
    assert table.ended_copy == "c1 COMPLETED"
    # 10 and 12 do not fulfil it, and neither does the ghost: nobody has asked for them
    left = {row[0]: row for row in source(orders)} | {12: (12, "n12", "wrong"), 99: (99, "even", "boo")}
    expected = sorted(row for id, row in left.items() if id != 10)
    assert rows(orders.lake("dbo.orders")) == expected
    assert newest(orders) == expected
    assert rows(row for row in orders.lake("dbo.orders", "scd2") if row["_to_lsn"] is None) == expected
    healed = [row for row in orders.lake("dbo.orders", "history") if row["_healed"]]
    assert {(row["id"], row["_op"]) for row in healed} == {(3, "R"), (5, "R"), (14, "R"), (17, "R"), (98, "D")}
    assert all("rows where note in ('odd', 'other') at" in text for text in table.warnings)
    assert folder.folders(orders.spark, str(Path(orders.work_dir, "copies", "dbo_orders"))) == []


@pytest.mark.thorough
def test_rows_that_change_while_they_are_asked_for_again_are_as_they_are_now(orders, monkeypatch):
    shapes = ("mirror", "history")
    first = load(orders, shapes)
    for shape in shapes:
        spoil_by(orders, shape, "UPDATE {name} SET note = 'odd' WHERE id IN (20, 21, 22, 23)")
    read = Chunks.read_keys

    def changed(self, *args, **given):
        orders.sql("UPDATE dbo.orders SET note = N'before' WHERE id = 20; DELETE FROM dbo.orders WHERE id = 21")
        found = read(self, *args, **given).localCheckpoint()
        orders.sql("UPDATE dbo.orders SET note = N'odd' WHERE id = 22; DELETE FROM dbo.orders WHERE id = 23")
        orders.sql("INSERT INTO dbo.orders VALUES (300, N'odd', N'new')")
        return found

    monkeypatch.setattr(Chunks, "read_keys", changed)

    done = load(orders, shapes, asked=AskedCopy("c1", where=ODD), at=positions(first))

    assert done.tables[0].ended_copy == "c1 COMPLETED"
    orders.wait_captured()
    load(orders, shapes, at=positions(done))
    assert rows(orders.lake("dbo.orders")) == source(orders) == newest(orders)


def test_a_condition_that_cannot_be_judged_ends_the_copy(orders):
    first = load(orders, ("mirror",))
    table = dataclasses.replace(
        orders.table("dbo.orders", ("mirror",), at=positions(first)),
        asked=AskedCopy("c1", where='[["nonsense", "=", 1]]'),
    )
    (receipt,) = orders.load(table).tables
    assert receipt.ended_copy.startswith("c1 ABORTED: ")
    assert "where names 'nonsense'" in receipt.ended_copy


ABSENT, FULFILS, OTHER = "absent", "odd", "even"
MOMENTS = ("before", "beside", "again", "behind")
"""Before the copy's low, while chunks are read, before the rows of keys are read again, and after that."""


def _made(event, id):
    """What an event makes of a row."""
    return None if event == "delete" else (id, event, f"new {id}")


@pytest.mark.thorough
@pytest.mark.parametrize("shape", ["mirror", "history"])
def test_whatever_a_row_was_and_is_and_whenever_it_changed(orders, monkeypatch, shape):
    drawn = list(
        itertools.product(
            (FULFILS, OTHER, ABSENT),
            ("same", "lost", FULFILS, OTHER),
            [(None, None), *itertools.product(("other", OTHER, "delete"), MOMENTS)],
        )
    )
    cases = {1000 + number: case for number, case in enumerate(drawn)}
    there = {id: (id, was, f"doc {id}") for id, (was, _, _) in cases.items() if was != ABSENT}
    values = ", ".join(f"({id}, N'{note}', N'{doc}')" for id, note, doc in there.values())
    orders.sql(f"INSERT INTO dbo.orders VALUES {values}")
    orders.wait_captured()
    first = load(orders, (shape,))

    target = dict(there)
    for id, (_, now, _) in cases.items():
        if now == "lost":
            target.pop(id, None)
        elif now != "same":
            target[id] = (id, now, "spoiled")
    spoiled = ", ".join(str(id) for id, (_, now, _) in cases.items() if now != "same")
    ghosts = [row for id, row in target.items() if cases[id][1] in (FULFILS, OTHER)]
    system = ", _op, _lsn" if shape == "history" else ""
    begun = ", 'R', '0x00000000000000000001'" if system else ""
    written = ", ".join(f"({id}, '{note}', '{doc}'{begun})" for id, note, doc in ghosts)
    spoil_by(
        orders,
        shape,
        f"DELETE FROM {{name}} WHERE id IN ({spoiled})",
        f"INSERT INTO {{name}} (id, note, doc{system}) VALUES {written}",
    )

    def change_at(moment):
        for id, (was, _, (event, at)) in cases.items():
            if at != moment:
                continue
            if was == ABSENT:
                # what is not there can only come
                if event != "delete":
                    orders.sql("INSERT INTO dbo.orders VALUES ({}, N'{}', N'{}')".format(*_made(event, id)))
            elif event == "delete":
                orders.sql(f"DELETE FROM dbo.orders WHERE id = {id}")
            else:
                orders.sql("UPDATE dbo.orders SET note = N'{1}', doc = N'{2}' WHERE id = {0}".format(*_made(event, id)))

    read_chunk, read_keys, once = Chunks.read, Chunks.read_keys, []

    def chunk(self, *args):
        if not once:
            once.append(True)
            change_at("beside")
        return read_chunk(self, *args)

    def keys(self, *args, **given):
        change_at("again")
        found = read_keys(self, *args, **given).localCheckpoint()
        change_at("behind")
        return found

    monkeypatch.setattr(Chunks, "read", chunk)
    monkeypatch.setattr(Chunks, "read_keys", keys)
    change_at("before")
    orders.wait_captured()
    done = load(orders, (shape,), asked=AskedCopy("c1", where=ODD), at=positions(first))
    assert done.tables[0].ended_copy == "c1 COMPLETED"
    orders.wait_captured()
    load(orders, (shape,), at=positions(done))

    def expected(id):
        was, _, (event, _) = cases[id]
        if event is not None and (was != ABSENT or event != "delete"):
            return _made(event, id)
        # where nothing has changed, both sides of the condition count: the source's row and the target's
        if was == FULFILS or (id in target and target[id][1] == FULFILS):
            return there.get(id)
        return target.get(id)

    found = newest(orders) if shape == "history" else rows(orders.lake("dbo.orders"))
    assert [row for row in found if row[0] >= 1000] == [row for id in cases if (row := expected(id)) is not None]


@pytest.mark.thorough
def test_rows_are_sought_by_keys_of_every_type(live, spark, tmp_path):
    # of a key with seven digits the instants of two values may be one
    types = [
        (type_.replace("offset(7)", "offset(6)"), values)
        for type_, values in TYPES.items()
        if "COLLATE" not in type_ or type_.startswith("nvarchar") or COLLATIONS[0] in type_
    ]
    number = max(len(values) for _, values in types)
    columns = ", ".join(f"c{n} {type_}" for n, (type_, _) in enumerate(types))
    live.sql(f"CREATE TABLE dbo.keys (id int NOT NULL PRIMARY KEY, {columns})")
    rows = (", ".join(values[row % len(values)] for _, values in types) for row in range(number))
    live.sql(f"INSERT INTO dbo.keys VALUES {', '.join(f'({row}, {values})' for row, values in enumerate(rows))}")
    live.sql(f"INSERT INTO dbo.keys (id) VALUES ({number})")
    live.enable("dbo.keys")
    live.sql("UPDATE dbo.keys SET c0 = c0 WHERE id = 0")
    live.wait_captured()
    session, job = table_session(spark), live.spec(live.table("dbo.keys", ("history",)), upto=live.max_lsn())
    jdbc = Jdbc(session, job.source, Credentials(SPARK_USER, SPARK_PASSWORD))
    table = live.table("dbo.keys", ("history",))
    read = Chunks(jdbc, table, map_columns(table.name, table.schema))._frame("", ())
    whole = write_rows(read, str(tmp_path / "whole")).rows()
    for n, (type_, _) in enumerate(types):
        selection = Selection(("id", f"c{n}"))
        table = dataclasses.replace(live.table("dbo.keys", ("history",), key=[f"c{n}"]), selection=selection)
        mappings = map_columns(table.name, table.schema, selection)
        keys = whole.select(*key_columns(table.schema, mappings)).distinct()
        chunks = Chunks(jdbc, table, mappings)
        sought = chunks.read_keys(keys, whole.limit(0), 1)
        # Python has no year 0, in which an instant of the year 1 may lie
        shown = [column(name).cast("string") for name in sought.columns]
        assert sorted(sought.select(shown).collect()) == sorted(whole.select(shown).collect()), type_


@pytest.mark.thorough
def test_what_was_asked_for_waits_for_the_capture_and_is_not_read_twice(orders, monkeypatch):
    first = load(orders, ("mirror",))
    spoil_by(orders, "mirror", "UPDATE {name} SET note = 'odd' WHERE id IN (20, 21)")
    orders.sql("DELETE FROM dbo.orders WHERE id = 22")
    spoil_by(orders, "mirror", "UPDATE {name} SET note = 'odd' WHERE id = 22")
    asked, asked_for, plain, captured = AskedCopy("c1", where=ODD), [], Chunks.read_keys, cdc_table.captured_position

    def keys(self, found, **given):
        asked_for.append(sorted(row["id"] for row in found.collect()))
        return plain(self, found, **given)

    def late(*args):
        if asked_for:
            raise CaptureLagError("the capture is late.", table="dbo.orders", advice="Wait.")
        return captured(*args)

    monkeypatch.setattr(Chunks, "read_keys", keys)
    with monkeypatch.context() as patched:
        patched.setattr(cdc_table, "captured_position", late)
        waiting = load(orders, ("mirror",), asked=asked, at=positions(first), copy_seconds=60).tables[0]
    assert (waiting.ended_copy, "the capture is late" in waiting.copying.waits_for) == (None, True)
    assert "odd" in {row["note"] for row in orders.lake("dbo.orders")}, "nothing is shown before its end"

    done = load(orders, ("mirror",), asked=asked, at=positions(first)).tables[0]
    assert done.ended_copy == "c1 COMPLETED"
    # the delete may have been captured before or after the target was looked at
    assert asked_for in ([[20, 21]], [[20, 21, 22]])
    assert rows(orders.lake("dbo.orders")) == source(orders)


@pytest.mark.thorough
def test_two_runs_that_ask_for_the_same_rows_copy_them_once(orders, monkeypatch):
    first = load(orders, ("mirror",))
    spoil_by(orders, "mirror", "UPDATE {name} SET note = 'odd' WHERE id IN (20, 21)")
    asked = AskedCopy("c1", where=ODD)
    read = RowsAgain.read

    def twice(self, *args):
        read(self, *args)
        read(self, *args)
        raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr(RowsAgain, "read", twice)
        table = dataclasses.replace(orders.table("dbo.orders", ("mirror",), at=positions(first)), asked=asked)
        assert orders.load(table, copy_rows=10).tables[0].failed["copy"].kind == "Stopped"
    done = load(orders, ("mirror",), asked=asked, at=positions(first)).tables[0]
    assert done.ended_copy == "c1 COMPLETED"
    assert rows(orders.lake("dbo.orders")) == source(orders)


class Stopped(Exception):
    """Stands for a kill."""


def test_a_mirror_that_lost_a_row_is_not_mended_by_a_copy_of_other_rows(orders):
    orders.sql("UPDATE dbo.orders SET doc = NULL WHERE id = 4")
    orders.wait_captured()
    first = load(orders, ("mirror", "history"))
    spoil_by(orders, "mirror", "DELETE FROM {name} WHERE id = 4")
    change(orders)
    table = orders.table("dbo.orders", ("mirror", "history"), at=positions(first))
    (receipt,) = orders.load(dataclasses.replace(table, asked=AskedCopy("c1", where=ODD)), copy_rows=10).tables
    assert receipt.failed["mirror"].kind == "LostValueError"
    assert "`mssql-cdc copy start`, without --where" in receipt.failed["mirror"].message
    assert (receipt.failed.keys(), receipt.copying) == ({"mirror"}, None)
    assert newest(orders) == source(orders)


def test_a_key_that_the_server_does_not_enforce_takes_no_copy_of_some_rows(live):
    live.sql("CREATE TABLE dbo.orders (id int NOT NULL, note nvarchar(40))")
    live.sql("INSERT INTO dbo.orders VALUES (1, N'odd'), (2, N'even')")
    live.enable("dbo.orders")
    live.sql("INSERT INTO dbo.orders VALUES (3, N'even')")
    live.wait_captured()
    first = live.load(live.table("dbo.orders", ("mirror",), key=["id"]))
    table = live.table("dbo.orders", ("mirror",), at=positions(first), key=["id"])
    (receipt,) = live.load(dataclasses.replace(table, asked=AskedCopy("c1", where=ODD))).tables
    assert receipt.ended_copy.startswith("c1 ABORTED: ")
    assert "a key that the server does not enforce" in receipt.ended_copy
