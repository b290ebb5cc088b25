"""Histories and transactions that begin with changes alone, beside mirrors that begin with a copy."""

from __future__ import annotations

import dataclasses
import random

import pytest

from airflow_provider_mssql_cdc.core.copy_requests import CopyRequest, CopyRequests
from airflow_provider_mssql_cdc.core.table_options import read_entries
from airflow_provider_mssql_cdc.spark.job import run
from tests.support import histories
from tests.support.spark.loads import Loads, by_history, prepare, told, write

pytestmark = pytest.mark.xdist_group(__name__)


def take(loads, **initial):
    """Load these tables, each with its beginning."""
    entries = [{"table": f"lab.{table}", "initial": given} for table, given in initial.items()]
    loads.tables = tuple(initial)
    loads.request = dataclasses.replace(loads.request, entries=read_entries(entries, salted=True))


def expected(loads, table, after):
    """The source's transactions behind a position: commit LSN, and how many rows were inserted, updated and deleted."""
    rows = loads.origin.sql(
        f"SELECT CONVERT(varchar(22), [__$start_lsn], 1) AS lsn, [__$operation] AS op FROM cdc.lab_{table}_CT"
    )
    found = {}
    for row in rows:
        if row["lsn"] > after:
            found.setdefault(row["lsn"], []).append(row["op"])
    return [(at, of.count(2), of.count(4), of.count(1)) for at, of in sorted(found.items())]


def check(loads, models, table, after):
    """All changes behind a position, and none of before; the mirror has all rows."""
    assert loads.transactions(table) == expected(loads, table, after)
    found = by_history(models, loads.history(table), lambda event: event[3][0])
    mirror = by_history(models, loads.mirror(table), lambda row: row[0])
    for model in models:
        with told(model):
            happened = [(op, row) for _, op, row in model.events[table]]
            events = [(op, row) for op, _, _, row in found[model.h]]
            assert events == happened[len(happened) - len(events) :]
            assert all(at > after for _, at, _, _ in found[model.h])
            assert mirror[model.h] == sorted(model.rows[table].values(), key=repr)
    in_source = sum(
        loads.origin.sql(
            f"SELECT COUNT(*) AS n FROM cdc.lab_{table}_CT WHERE CONVERT(varchar(22), [__$start_lsn], 1) > '{after}'"
        )[0].values()
    )
    assert sum(map(len, found.values())) == in_source


def written(live, seed, count, transactions):
    """Histories, half of whose transactions lie behind a position: what draws them, their models, the position."""
    rng = random.Random(seed)
    models = [histories.Model(h) for h in range(count)]
    prepare(live)
    write(live, models, rng, transactions)
    live.wait_captured()
    middle = live.max_lsn()
    write(live, models, rng, transactions)
    live.wait_captured()
    return rng, models, middle


def test_changes_from_a_position_on_beside_a_copied_mirror(live):
    rng, models, middle = written(live, 11, 6, 30)

    loads = Loads(live, ("mirror", "history", "transactions"))
    take(loads, items="earliest", parts="latest", flags=middle.text)
    _, receipt = loads.load()
    upto = receipt.tables[0].sinks[-1].after.position
    after = {"items": "", "parts": str(upto), "flags": str(middle)}
    assert {sink.outcome for table in receipt.tables for sink in table.sinks} == {"first_load"}
    for table in loads.tables:
        check(loads, models, table, after[table])
    assert loads.history("parts") == []

    # they go on from there, and say nothing of initial any more
    write(live, models, rng, 30)
    live.wait_captured()
    take(loads, items="latest", parts="earliest", flags=middle.text)
    _, receipt = loads.load()
    assert {sink.outcome for table in receipt.tables for sink in table.sinks} == {"loaded"}
    for table in loads.tables:
        check(loads, models, table, after[table])


@pytest.mark.thorough
def test_a_marker_goes_on_though_the_checkpoint_is_lost_and_the_begin_was_purged(live):
    rng, models, middle = written(live, 13, 4, 20)
    loads = Loads(live, ("mirror", "history", "transactions"))
    take(loads, flags=middle.text)
    _, receipt = loads.load()
    # the mirror goes on to where its copy ends
    upto = min(sink.after.position for sink in receipt.tables[0].sinks)
    events = loads.history("flags")

    loads.variables.clear()
    live.sql(f"EXEC sys.sp_cdc_cleanup_change_table N'lab_flags', {upto}")
    write(live, models, rng, 20)
    live.wait_captured()
    _, receipt = loads.load()
    assert {sink.outcome for sink in receipt.tables[0].sinks} == {"loaded"}
    assert [row for row in loads.transactions("flags") if row[0] > str(upto)] == expected(loads, "flags", str(upto))
    assert [event for event in loads.history("flags") if event[1] <= str(upto)] == events
    assert loads.mirror("flags") == sorted((row for model in models for row in model.rows["flags"].values()), key=repr)

    # a history that has none fails, and says what to write
    loads.shape("mirror", "history", "transactions")
    live.spark.sql(f"DROP TABLE {live.sql_name('lab.flags', 'transactions')}").collect()
    loads.variables.clear()
    write(live, models, rng, 5)
    live.wait_captured()
    _, spec = loads.plan()
    receipt = run(live.spark, spec)
    failed = receipt.tables[0].failed
    assert failed.keys() == {"transactions"}
    assert failed["transactions"].kind == "IntervalError"
    assert 'Write initial="earliest" for all that is left' in failed["transactions"].message


def test_a_copy_that_is_asked_for_brings_the_rows_later(live):
    """A history that began with changes alone has each row of the table then."""
    rng = random.Random(12)
    models = [histories.Model(h) for h in range(6)]
    prepare(live)
    write(live, models, rng, 40)
    live.wait_captured()
    loads = Loads(live, ("history",))
    take(loads, items="latest", flags="earliest")
    loads.load()
    write(live, models, rng, 20)
    live.wait_captured()
    for table in loads.tables:
        CopyRequests(loads.variables).save(CopyRequest(loads.identity(table), f"of-{table}"))
    _, receipt = loads.load()
    assert {table.ended_copy for table in receipt.tables} == {"of-items COMPLETED", "of-flags COMPLETED"}
    for table in loads.tables:
        width = histories.KEY_LENGTH[table]
        now = {}
        for op, _, _, row in loads.history(table):
            if op != "B":
                now[row[:width]] = None if op == "D" else row
        rows = sorted((row for row in now.values() if row is not None), key=repr)
        assert rows == sorted((row for model in models for row in model.rows[table].values()), key=repr)
    # what was there from the first event on is there once
    assert [op for op, *_ in loads.history("flags") if op == "R"] == []
