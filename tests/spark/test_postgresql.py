"""What only PostgreSQL does: types, names, lost sessions, crashes, left-over tables; and whole loads into it."""

import contextlib
import dataclasses
import datetime
import functools
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.changes import HistoryOptions
from airflow_provider_mssql_cdc.core.codec import to_json
from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.exceptions import TargetError, TargetUnavailableError
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.spec import DatabaseSpec, ReplaySpec
from airflow_provider_mssql_cdc.spark.jdbc import Credentials
from airflow_provider_mssql_cdc.spark.session import table_session, target_credentials
from airflow_provider_mssql_cdc.spark.targets import Write
from airflow_provider_mssql_cdc.spark.targets.postgresql.connection import Database
from airflow_provider_mssql_cdc.spark.targets.postgresql.sinks import SINKS
from airflow_provider_mssql_cdc.spark.targets.postgresql.staging import PREFIX, Staging, new_name
from airflow_provider_mssql_cdc.spark.targets.postgresql.table import PostgresqlTable
from tests.spark.test_types import TYPES, expected
from tests.support.logins import TARGET_PASSWORD, TARGET_USER
from tests.support.spark.model import lsn, table_spec
from tests.support.spark.origin import positions
from tests.support.spark.rows import local
from tests.support.spark.tables import COLUMNS, by_hand, changes, contents, frame, load, marker, merge

pytestmark = pytest.mark.xdist_group(__name__)

LONGEST = "ä" * 31 + "x"
"""A name of 63 bytes."""


@pytest.fixture
def new(spark, postgresql, namespace):
    """A maker of target objects for one table that does not exist."""

    def make(name=LONGEST, kind=PostgresqlTable, database=postgresql.spec, secret=None, key=("id",)):
        session = table_session(spark)
        secret = secret or target_credentials(session)
        table = ("warehouse", namespace, name)
        return kind(session, table, "spec", database=database, credentials=secret, key=key)

    yield make
    postgresql.sql(f'DROP SCHEMA IF EXISTS "{namespace}" CASCADE')


@pytest.fixture
def table(new):
    """Such a maker for a table that was made."""
    new().create(COLUMNS)
    return new


@pytest.fixture
def staged(postgresql, namespace):
    """The names of the staging tables that are there."""

    def names():
        return sorted(
            name
            for (name,) in postgresql.sql(f"SELECT tablename FROM pg_tables WHERE schemaname = '{namespace}'")
            if name.startswith(PREFIX)
        )

    return names


@pytest.fixture
def house(live, postgresql, namespace):
    """A database whose capture runs, loaded into PostgreSQL."""
    live.into(postgresql)
    yield live
    postgresql.sql(f'DROP SCHEMA IF EXISTS "{namespace}" CASCADE')


def ok(receipt):
    assert [table.error for table in receipt.tables] == [None] * len(receipt.tables)
    return receipt


# --- whole loads


def test_values_arrive_as_they_are(house):
    names = [name for name, _, _ in TYPES]
    quoted = [f"[{name.replace(']', ']]')}]" for name in names]
    declared = ", ".join(f"{name} {type_} NULL" for name, (_, type_, _) in zip(quoted, TYPES, strict=True))
    house.sql(f"CREATE TABLE dbo.types (id int NOT NULL PRIMARY KEY, {declared}, rv rowversion)")

    def insert(id_, position):
        values = ", ".join("NULL" if position is None else v[position][0] for _, _, v in TYPES)
        house.sql(f"INSERT INTO dbo.types (id, {', '.join(quoted)}) VALUES ({id_}, {values})")

    for id_, position in enumerate([0, 1, None]):
        insert(id_, position)
    house.enable("dbo.types")
    house.wait_captured()
    first = ok(house.load(house.table("dbo.types")))
    for id_, position in enumerate([0, 1, None], start=20):
        insert(id_, position)
    # what the target holds is read back for it: the value of nmax is left out of this event
    house.sql("UPDATE dbo.types SET small = 7 WHERE id = 1; UPDATE dbo.types SET small = 7 WHERE id = 21")
    house.wait_captured()
    ok(house.load(house.table("dbo.types", at=positions(first))))

    versions = {row["id"]: row["rv"] for row in house.sql("SELECT id, rv FROM dbo.types")}
    nothing = dict.fromkeys(expected(0))
    wanted = {0: expected(0), 1: {**expected(1), "small": 7}, 2: nothing}
    wanted |= {20: expected(0), 21: {**expected(1), "small": 7}, 22: nothing}
    mirror = {row["id"]: row for row in house.lake("dbo.types")}
    events = sorted(house.lake("dbo.types", "history"), key=lambda row: (row["_lsn"], row["_seq"] or 0))
    history = {row["id"]: row for row in events}
    for found in (mirror, history):
        assert found.keys() == wanted.keys()
        for id_, values in wanted.items():
            assert found[id_]["rv"] == versions[id_]
            for name, value in values.items():
                assert (name, found[id_][name]) == (name, value)
                assert type(found[id_][name]) is type(value)
    assert ("small" in history[21]["_changed"], "nmax" in history[21]["_changed"]) == (True, False)
    assert (history[21]["_unknown"], history[1]["_unknown"]) == ([], [])
    assert isinstance(history[21]["_commit_ts_utc"], datetime.datetime)


def test_loads_and_a_replay_hold_what_the_source_holds(house, postgresql, capfd):
    house.sql(
        'CREATE TABLE dbo.orders (id int NOT NULL, part nvarchar(20) NOT NULL, [odd "%{name] int NULL,'
        " note nvarchar(max) NULL, CONSTRAINT pk PRIMARY KEY (id, part));"
        "CREATE TABLE dbo.pairs (a int NULL, b date NULL, n int NULL)"
    )
    house.sql(
        "INSERT INTO dbo.orders VALUES (1, N'a', 1, REPLICATE(CONVERT(nvarchar(max), N'x'), 5000)), (2, N'b', 2, N'y');"
        "INSERT INTO dbo.pairs VALUES (1, NULL, 1), (NULL, '0001-01-01', 2), (NULL, NULL, 3)"
    )
    tables = {"dbo.orders": (("mirror", "history"), None), "dbo.pairs": (("mirror",), ["a", "b"])}
    for name in tables:
        house.enable(name)
    house.sql("INSERT INTO dbo.orders VALUES (4, N'd', 4, NULL); INSERT INTO dbo.pairs VALUES (4, NULL, 4)")
    house.wait_captured()
    low = house.max_lsn()
    first = ok(house.load(*(house.table(name, shapes, key=key) for name, (shapes, key) in tables.items())))
    for change in (
        "UPDATE dbo.orders SET [odd \"%{name] = 10 WHERE id = 1; INSERT INTO dbo.orders VALUES (3, N'c', NULL, NULL)",
        "DELETE FROM dbo.orders WHERE id = 2; UPDATE dbo.orders SET part = N'A' WHERE id = 1",
        "UPDATE dbo.pairs SET n = n + 10; DELETE FROM dbo.pairs WHERE n = 12;"
        "INSERT INTO dbo.pairs VALUES (NULL, '1582-10-10', 4)",
    ):
        house.sql(change)
    house.wait_captured()
    at = {t.name.table: {s.shape: (s.read_through, s.after.position) for s in t.sinks} for t in first.tables}
    specs = [house.table(name, s, at=at[name.partition(".")[2]], key=key) for name, (s, key) in tables.items()]
    second = ok(house.load(*specs))

    assert [s.outcome for t in second.tables for s in t.sinks] == ["loaded"] * 3
    captured = check_events(house, low)
    assert len(captured) >= 6
    for name in tables:
        assert sorted(map(repr, house.lake(name))) == sorted(map(repr, house.sql(f"SELECT * FROM {name}")))

    # a window that is replayed puts back what the history lacks, and nothing else
    schema = f'"{house.namespace}"'
    postgresql.sql(f"DELETE FROM {schema}.dbo_orders_history WHERE _op IN ('D', 'U')")
    upto = second.tables[0].sinks[1].after.position
    replay = house.table("dbo.orders", ["history"], at={"history": (upto, upto)})
    (again,) = ok(house.load(replay, upto=upto, replay=ReplaySpec(low, upto))).tables
    assert [sink.outcome for sink in again.sinks] == ["replayed"]
    assert check_events(house, low) == captured

    indexes = postgresql.sql(f"SELECT indexdef FROM pg_indexes WHERE schemaname = '{house.namespace}' ORDER BY 1")
    assert [text for (text,) in indexes if "UNIQUE" in text and "dbo_" in text] == [
        f"CREATE UNIQUE INDEX dbo_orders_id_part_idx ON {house.namespace}.dbo_orders USING btree (id, part)"
    ]
    out, err = capfd.readouterr()
    for text in (out, err, to_json(first), to_json(second), to_json(house.spec(*specs, upto=upto))):
        assert TARGET_PASSWORD not in text


def check_events(house, low):
    """Compare the history of the orders with the events that the source has captured; these."""
    columns = ("id", "part", 'odd "%{name')
    captured = house.sql(
        "SELECT CONVERT(varchar(22), __$start_lsn, 1) AS lsn, __$command_id, CONVERT(varchar(22), __$seqval, 1) AS seq,"
        f" SUBSTRING('DIBU', __$operation, 1) AS op, {', '.join(f'[{name}]' for name in columns)}"
        f" FROM cdc.dbo_orders_CT WHERE __$start_lsn > {low}"
    )
    events = sorted((tuple(row.values()) for row in captured), key=repr)
    found = [
        (row["_lsn"], row["_command_id"], row["_seqval"], row["_op"], *(row[name] for name in columns))
        for row in house.lake("dbo.orders", "history")
        if row["_op"] != "R"
    ]
    assert sorted(found, key=repr) == events
    return events


def test_a_wide_history_whose_key_has_the_name_of_one_of_its_own_columns(house):
    """A record says in a column ``type`` what happened; here the source's key is called so."""
    house.sql("CREATE TABLE dbo.kinds (type varchar(10) NOT NULL PRIMARY KEY, n int NULL, doc text NULL)")
    house.sql("INSERT INTO dbo.kinds VALUES ('one', 1, 'never told')")
    house.enable("dbo.kinds")
    at = None
    for change in (
        "UPDATE dbo.kinds SET n = 1",
        "INSERT INTO dbo.kinds VALUES ('two', 2, 'told')",
        # CDC leaves a text out of a delete
        "DELETE FROM dbo.kinds",
    ):
        house.sql(change)
        house.wait_captured()
        table = house.table("dbo.kinds", ["history"], at=at, history=HistoryOptions(form="wide"))
        at = positions(ok(house.load(table)))

    told = [row for row in house.lake("dbo.kinds", "history") if row["type"] == "delete"]
    assert sorted((row["before_type"], row["before_n"], row["before_doc"], row["_unknown"]) for row in told) == [
        ("one", 1, None, ["before_doc"]),
        ("two", 2, "told", []),
    ]


# --- values


def test_texts_and_arrays_of_any_content_come_back(new):
    texts = ['"', "\\", '\\"', "", " ", "{a,b}", "NULL", "null", "ä,𝄞", "line\nbreak\ttab", "'", "%s", "\x01"]
    columns = (
        TargetColumn("id", "INT", "{}"),
        TargetColumn("t", "STRING", "{}"),
        TargetColumn("a", "ARRAY<STRING>", "{}"),
        TargetColumn("d", "DECIMAL(38,0)", "{}"),
        TargetColumn("f", "FLOAT", "{}"),
    )
    target = new()
    target.create(columns)
    big = 10**38 - 1
    rows = [(n, text, [text, text + "x"], big, 16777216.0) for n, text in enumerate(texts)]
    rows += [(90, None, None, None, None), (91, "a", [], -big, -3.4028234663852886e38)]
    given = target._session.createDataFrame(
        [(i, t, a, None if d is None else str(d), f) for i, t, a, d, f in rows],
        "id INT, t STRING, a ARRAY<STRING>, d STRING, f FLOAT",
    ).withColumn("d", F.expr("CAST(d AS DECIMAL(38,0))"))

    assert target.commit(target.state(), Write(given), marker(1))

    held = by_hand(target, f"SELECT * FROM {target.sql_name} ORDER BY id")
    assert [tuple(row) for row in held] == rows
    back = target.rows(target.state()).orderBy("id")
    assert [tuple(row) for row in back.collect()] == rows
    assert back.schema.simpleString() == given.schema.simpleString()


def test_a_nul_character_is_refused_by_name_and_key(table, staged):
    target = table()
    load(target, 1, [(1, "a", 1)])

    with pytest.raises(TargetError, match=r"column 'a `b\.c' of the row with id=7 holds the character NUL") as refused:
        target.commit(target.state(), merge(changes(target, [(7, "x\0y", 1, "U", 1)]), ["id"]), marker(2))

    assert refused.value.permanent
    assert (contents(target), target.state().marker, staged()) == ([(1, "a", 1)], marker(1), [])


def test_a_merge_by_columns_of_each_type_that_may_be_null(new):
    types = {"i": "INT", "t": "STRING", "d": "DATE", "b": "BOOLEAN", "y": "BINARY", "n": "DECIMAL(9,2)", "f": "DOUBLE"}
    types |= {"z": "TIMESTAMP_NTZ", "o": "TIMESTAMP"}
    target = new(key=())
    target.create([*(TargetColumn(name, type_, "{}") for name, type_ in types.items()), TargetColumn("v", "INT", "{}")])
    values = ["1", "'a'", "DATE'0001-01-01'", "true", "X'00'", "1.5", "0.1"]
    values += ["TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'", "TIMESTAMP'1500-01-01 00:00:00'"]
    rows = [", ".join("NULL" if n == m else value for m, value in enumerate(values)) for n in range(len(values) + 1)]

    def given(value, op):
        cast = ", ".join(f"CAST(col{n + 1} AS {t}) AS {c}" for n, (c, t) in enumerate(types.items()))
        listed = ", ".join(f"({row})" for row in rows)
        return target._session.sql(f"SELECT {cast}, {value} AS v, '{op}' AS _op FROM VALUES {listed}")

    for position, (value, op, left) in enumerate([(1, "I", [1] * 10), (2, "U", [2] * 10), (3, "D", [])], start=1):
        write = merge(given(value, op), list(types), nullable_key=True)
        assert target.commit(target.state(), write, marker(position))
        assert [v for (v,) in by_hand(target, f"SELECT v FROM {target.sql_name}")] == left


# --- others, and what is lost


class Explained(PostgresqlTable):
    """Keeps the plans of the statements that merge."""

    plans: ClassVar[list[str]] = []

    def _write(self, cursor, *given):
        super()._write(Explaining(cursor, self.plans), *given)


class Explaining:
    """A cursor that explains what it changes before it does."""

    def __init__(self, cursor, plans):
        self._cursor, self._plans = cursor, plans

    def execute(self, statement, *values):
        if statement.startswith(("DELETE", "UPDATE", "INSERT")):
            plan = self._cursor.execute(f"EXPLAIN {statement}", *values).fetchall()
            self._plans.append("\n".join(line for (line,) in plan))
        return self._cursor.execute(statement, *values)


def test_a_small_window_finds_its_keys_in_the_index(new):
    target = new(kind=functools.partial(Explained, indexed=True))
    target.create(COLUMNS)
    load(target, 1, [(0, "first", 0)])
    by_hand(target, f"INSERT INTO {target.sql_name} SELECT n, 'n', n % 1000 FROM generate_series(1, 100000) n")
    Explained.plans.clear()
    changed = [(7, "up", 7, "U", 1), (99_999, "up", 8, "U", 2), (5, None, None, "D", 3), (200_000, "new", 9, "I", 4)]
    assert target.commit(target.state(), merge(changes(target, changed), ["id"]), marker(2))

    assert [plan.split()[0] for plan in Explained.plans] == ["Delete", "Update", "Insert"]
    for plan in Explained.plans:
        assert re.search(r"Index (Only )?Scan using", plan), plan
        assert f'Seq Scan on "{LONGEST}"' not in plan, plan
    found = contents(target)
    assert len(found) == 100_001
    expected = {**{n: (n, "n", n % 1000) for n in range(1, 100_001)}, 0: (0, "first", 0), 7: (7, "up", 7)}
    expected |= {99_999: (99_999, "up", 8), 200_000: (200_000, "new", 9)}
    del expected[5]
    assert sorted(found) == [expected[key] for key in sorted(expected)]


def test_the_rows_of_few_keys_are_found_where_they_are(new, staged, postgresql, namespace):
    target = new(kind=functools.partial(PostgresqlTable, indexed=True))
    target.create(COLUMNS)
    load(target, 1, [(n, f"it's {n}", n) for n in range(1000)])
    state = target.state()
    keys = local(target._session, [(5,), (7,), (5000,)], "id INT")

    found = target.rows_of(state, lambda: keys)

    assert sorted(map(tuple, found.collect())) == [(5, "it's 5", 5), (7, "it's 7", 7)]
    (sent,) = staged()
    assert target.commit(state, merge(changes(target, [(5, "new", 1, "U", 1)]), ["id"]), marker(2))
    assert staged() == []
    found = target.rows_of(target.state(), lambda: keys)
    (other,) = staged()
    assert other != sent
    # as a crash of the server leaves an unlogged table
    postgresql.sql(f'TRUNCATE "{namespace}"."{other}"')
    with pytest.raises(Exception, match="division by zero"):
        found.collect()
    # an attempt that did not come to its commit leaves nothing for a day
    assert sorted(map(tuple, target.rows_of(target.state(), lambda: keys).collect())) == [
        (5, "new", 1),
        (7, "it's 7", 7),
    ]
    assert len(staged()) == 1
    assert not target.commit(state, merge(changes(target, [(5, "late", 1, "U", 1)]), ["id"]), marker(3))
    assert staged() == []


def test_the_rows_of_few_keys_that_may_be_null(new, staged):
    name = COLUMNS[1].name
    target = new(key=(name, "s"))
    target.create(COLUMNS)
    rows = [(1, None, 1), (2, "a", None), (3, "a", 1), (4, None, None), (5, "", 0), (6, "b", 1)]
    load(target, 1, rows)
    wanted = [(None, 1), ("a", None), (None, None), ("", 0), ("c", 1)]
    keys = local(target._session, wanted, f"`{name.replace('`', '``')}` STRING, s SMALLINT")
    found = target.rows_of(target.state(), lambda: keys).collect()
    assert sorted(map(tuple, found)) == [row for row in rows if row[1:] in wanted]


def test_a_table_that_was_dropped_is_missing_and_begins_anew(table):
    load(table(), 1, [(1, "a", 1)])
    by_hand(table(), f"DROP TABLE {table().sql_name}")

    target = table()
    state = target.state()
    assert (state.exists, state.marker, state.is_empty) == (False, None, True)
    stale = dataclasses.replace(state, exists=True, marker=marker(1), is_empty=False)
    target.create(COLUMNS)
    assert not table().commit(stale, Write(frame(table(), [(8, "old", 8)])), marker(2))
    assert target.commit(state, Write(frame(target, [(2, "b", 2)])), marker(5))
    assert (contents(target), target.state().marker) == ([(2, "b", 2)], marker(5))


def test_a_table_that_others_made_anew_is_doubtful(table):
    target = table()
    load(target, 1, [(1, "a", 1)])
    seen, other = target.state(), target.sql_name.replace(LONGEST, "other")
    by_hand(target, f"CREATE TABLE {other} AS TABLE {target.sql_name}")
    by_hand(target, f"DROP TABLE {target.sql_name}")
    by_hand(target, f'ALTER TABLE {other} RENAME TO "{LONGEST}"')

    state = table().state()

    assert (state.marker, state.is_empty) == (None, False)
    assert "was made anew, or restored from a dump" in str(state.doubt)
    assert not target.commit(seen, Write(frame(target, [(2, "b", 2)])), marker(2))
    # from an asserted position it goes on
    load(target, 3, [(3, "c", 3)])
    assert (table().state().marker, table().state().doubt) == (marker(3), None)


def test_what_is_not_a_plain_table_is_refused(new, postgresql, namespace):
    new("other").create(COLUMNS)
    postgresql.sql(f'CREATE VIEW "{namespace}".seen AS SELECT 1 AS id')

    with pytest.raises(TargetError, match="seen is there already, and is not a table"):
        new("seen").state()


def test_staging_tables_of_dead_jobs_are_dropped_after_a_day(table, postgresql, namespace, staged):
    fresh = new_name("spec")
    old = (datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1, minutes=1)).strftime("%Y%m%d%H%M%S")
    names = [fresh, f"{PREFIX}spec_{old}abcdef", f"{PREFIX}of_somebody"]
    for name in names:
        postgresql.sql(f'CREATE TABLE "{namespace}"."{name}" (id int)')

    table().drop_leftovers()

    assert staged() == sorted([fresh, f"{PREFIX}of_somebody"])


KILLED = """
import sys
from airflow_provider_mssql_cdc.core.codec import from_json
from airflow_provider_mssql_cdc.core.marker import Marker
from airflow_provider_mssql_cdc.core.spec import DatabaseSpec
from airflow_provider_mssql_cdc.spark.jdbc import Credentials
from tests.support.spark.tables import merge
from airflow_provider_mssql_cdc.spark.targets.postgresql.staging import Staging
from airflow_provider_mssql_cdc.spark.targets.postgresql.sinks import SINKS
from airflow_provider_mssql_cdc.spark.targets.postgresql.table import PostgresqlTable

schema, table, staging, port, password, marker = sys.argv[1:]


class Held(PostgresqlTable):
    def _write(self, cursor, staging, write):
        super()._write(cursor, staging, write)
        print("written", flush=True)
        sys.stdin.read()


database = DatabaseSpec("127.0.0.1", int(port), "ware % house", {"sslmode": "disable"})
target = Held(None, ("w", schema, table), "s", database=database, credentials=Credentials("loader", password))
rows = Staging(target._database, schema, staging, target._columns())
target._apply(rows, target.state(), merge(None, ["id"]), from_json(Marker, marker))
"""


def test_a_process_that_is_killed_before_its_commit_leaves_all_as_it_was(table, postgresql, namespace, staged):
    target = table()
    load(target, 1, [(1, "a", 1), (2, "b", 2)])
    state, write = target.state(), merge(changes(target, [(1, "A", 9, "U", 1), (2, None, None, "D", 2)]), ["id"])
    staging = Staging(target._database, namespace, new_name("spec"), target._columns())
    staging.create()
    staging.fill(write, key=["id"], connections=1)
    arguments = [namespace, LONGEST, staging.name, str(postgresql.port), TARGET_PASSWORD, to_json(marker(2))]
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    ) as process:
        try:
            assert process.stdout.readline() == b"written\n"
            # a reader sees nothing of it, and does not wait
            assert contents(target) == [(1, "a", 1), (2, "b", 2)]
        finally:
            process.send_signal(signal.SIGKILL)

    assert (contents(target), target.state()) == ([(1, "a", 1), (2, "b", 2)], state)
    assert staged() == [staging.name]
    assert target.commit(state, write, marker(2))
    assert (contents(target), target.state().marker) == ([(1, "A", 9)], marker(2))


def test_a_crash_of_the_server_loses_no_staged_row_unnoticed(table, postgresql):
    class Crashed(PostgresqlTable):
        def _apply(self, *arguments):
            postgresql.stop()
            postgresql.start()
            return super()._apply(*arguments)

    load(table(), 1, [(1, "a", 1)])
    target = table(kind=Crashed)
    with pytest.raises(TargetUnavailableError, match="the staged rows are gone") as lost:
        target.commit(target.state(), Write(frame(target, [(2, "b", 2)])), marker(2))

    assert not lost.value.permanent
    assert (contents(table()), table().state().marker) == ([(1, "a", 1)], marker(1))
    load(table(), 2, [(2, "b", 2)])
    assert contents(table()) == [(1, "a", 1), (2, "b", 2)]


def test_a_commit_whose_answer_is_lost_counts(table, monkeypatch):
    written = []

    class Lost(PostgresqlTable):
        def _write(self, *arguments):
            super()._write(*arguments)
            written.append(arguments)

    real = Database.transaction

    @contextlib.contextmanager
    def transaction(self, **given):
        with real(self, **given) as cursor:
            yield cursor
        if written:
            written.clear()
            raise TargetUnavailableError("the connection is gone")

    target = table(kind=Lost)
    state = target.state()
    monkeypatch.setattr(Database, "transaction", transaction)

    assert target.commit(state, Write(frame(target, [(2, "b", 2)])), marker(2))
    assert (contents(table()), table().state().marker) == ([(2, "b", 2)], marker(2))


def test_a_session_that_is_ended_in_its_transaction_leaves_all_as_it_was(table, postgresql, staged):
    class Ended(PostgresqlTable):
        def _write(self, cursor, *arguments):
            super()._write(cursor, *arguments)
            postgresql.sql(f"SELECT pg_terminate_backend({cursor.connection.info.backend_pid})")

    target = table(kind=Ended)
    with pytest.raises(TargetUnavailableError, match="terminating connection"):
        target.commit(target.state(), Write(frame(target, [(2, "b", 2)])), marker(2))

    assert (contents(table()), table().state().marker, staged()) == ([], None, [])


def test_a_task_that_is_run_twice_adds_no_row(table, namespace):
    target = table()
    staging = Staging(target._database, namespace, new_name("spec"), target._columns())
    staging.create()
    write = Write(frame(target, [(1, "a", 1)]))
    staging.fill(write, key=["id"], connections=1)

    with pytest.raises(TargetUnavailableError, match="ran a task again"):
        staging.fill(write, key=["id"], connections=1)


# --- who may, and where


def test_a_wrong_password_is_refused_and_not_shown(new):
    target = new(secret=Credentials(TARGET_USER, "wr0ng-canary"))

    with pytest.raises(TargetError, match="password authentication failed for user") as refused:
        target.state()

    assert (refused.value.permanent, "wr0ng" in str(refused.value)) == (True, False)
    assert "Check login, password and database of the target's Airflow connection." in str(refused.value)


def test_a_database_that_is_not_there_is_refused_and_one_that_does_not_answer_is_tried_again(new, postgresql):
    spec = postgresql.spec
    with pytest.raises(TargetError, match='database "nowhere" does not exist') as missing:
        new(database=DatabaseSpec(spec.host, spec.port, "nowhere", spec.options)).state()
    with pytest.raises(TargetUnavailableError, match="refused") as silent:
        new(database=DatabaseSpec(spec.host, 1, spec.database, spec.options)).state()

    assert (missing.value.permanent, silent.value.permanent) == (True, False)


def test_a_login_that_may_not_is_told_what_to_grant(new, postgresql, namespace):
    postgresql.sql(f"CREATE ROLE \"{namespace}\" LOGIN PASSWORD 'p'")
    try:
        with pytest.raises(TargetError, match=r"permission denied .*GRANT CREATE ON DATABASE") as refused:
            new(secret=Credentials(namespace, "p")).create(COLUMNS)
    finally:
        postgresql.sql(f'DROP ROLE "{namespace}"')

    assert refused.value.permanent


@pytest.mark.parametrize("owner", [True, False], ids=["its owner loads", "another login loads"])
def test_a_control_table_of_before_gets_its_column_from_its_owner_alone(new, table, postgresql, namespace, owner):
    postgresql.sql(f'ALTER TABLE "{namespace}".{SINKS} DROP COLUMN schemas')
    postgresql.sql(f"CREATE ROLE \"{namespace}\" LOGIN PASSWORD 'p'")
    postgresql.sql(f'GRANT ALL ON SCHEMA "{namespace}" TO "{namespace}"')
    postgresql.sql(f'GRANT ALL ON ALL TABLES IN SCHEMA "{namespace}" TO "{namespace}"')
    kept = KeptSchema.of(table_spec().schema)
    try:
        target = table() if owner else new(secret=Credentials(namespace, "p"))
        target.create(COLUMNS)
        assert target.keep_schema(kept) is owner
        load(target, 1, [(1, "a", 1)])
        assert target.kept_schema(kept.hash) == (kept if owner else None)
        assert contents(target) == [(1, "a", 1)]
    finally:
        postgresql.sql(f'DROP SCHEMA "{namespace}" CASCADE')
        postgresql.sql(f'DROP OWNED BY "{namespace}"; DROP ROLE "{namespace}"')


def test_without_psycopg_it_is_said_what_to_install(new, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(TargetError, match=r'pip install "airflow-provider-mssql-cdc\[postgresql\]"'):
        new().state()


@pytest.mark.parametrize(("column", "problem"), [("ä" * 32, "63 bytes"), ("xmin", "a column that each table has")])
def test_names_that_postgresql_cannot_hold_are_refused_before_anything_is_read(house, postgresql, column, problem):
    house.sql(f"CREATE TABLE dbo.odd (id int NOT NULL PRIMARY KEY, [{column}] int NULL)")
    house.enable("dbo.odd")

    (found,) = house.load(house.table("dbo.odd"), upto=lsn(1)).tables

    assert (found.error.kind, found.error.permanent) == ("TargetError", True)
    assert column in found.error.message
    assert problem in found.error.message
    assert postgresql.sql(f"SELECT 1 FROM pg_namespace WHERE nspname = '{house.namespace}'") == []
