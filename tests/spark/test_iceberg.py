"""The conditional commit on a real Iceberg table: markers, branches, races, and maintenance in between."""

import json
import threading
import time
from pathlib import Path

import pytest

from airflow_provider_mssql_cdc.spark.session import table_session
from airflow_provider_mssql_cdc.spark.targets import Write
from airflow_provider_mssql_cdc.spark.targets.iceberg import IcebergTable
from airflow_provider_mssql_cdc.spark.targets.iceberg_marker import MARKER
from tests.support.spark.model import lsn
from tests.support.spark.tables import (
    COLUMNS,
    changes,
    commit_one_after_the_other,
    contents,
    frame,
    load,
    marker,
    merge,
    race,
    replace,
)

pytestmark = pytest.mark.xdist_group(__name__)


@pytest.fixture
def table(spark, namespace):
    """A maker of target objects, each with a session of its own, for one table."""

    def make(spec_id="spec"):
        return IcebergTable(table_session(spark), ("lake", namespace, "t"), spec_id)

    make().create(COLUMNS)
    yield make
    spark.sql(f"DROP TABLE IF EXISTS lake.{namespace}.t PURGE")


@pytest.fixture
def table_of_jdbc_catalog(spark, namespace, jdbc_catalog):
    """The same in a catalog that a database keeps."""
    return lambda spec_id="spec": IcebergTable(table_session(spark), (jdbc_catalog, namespace, "t"), spec_id)


def branches(target):
    return [row["name"] for row in target._session.sql(f"SELECT name FROM {target.sql_name}.refs").collect()]


def call(target, statement):
    target._session.sql(statement.format(t=f"'{'.'.join(target._name[1:])}'")).collect()


def test_rows_have_the_columns_of_now(table):
    target = table()
    assert target.commit(target.state(), Write(frame(target, [(1, "x", 2)])), marker(7))
    first, *others = [column.name for column in COLUMNS]
    for change in ("ADD COLUMN note STRING", f"RENAME COLUMN {first} TO renamed"):
        target._session.sql(f"ALTER TABLE {target.sql_name} {change}")

    # of another process, too
    for reader in (target, table()):
        rows = reader.rows(reader.state())
        assert rows.columns == ["renamed", *others, "note"]
        assert [tuple(row) for row in rows.collect()] == [(1, "x", 2, None)]


def test_a_namespace_may_have_the_name_of_a_catalog(spark):
    target = IcebergTable(table_session(spark), ("lake", "lake", "t"), "spec")
    target.create(COLUMNS)
    try:
        assert target.commit(target.state(), Write(frame(target, [(1, "x", 2)])), marker(7))
        assert contents(target) == [(1, "x", 2)]
    finally:
        spark.sql("DROP TABLE lake.lake.t PURGE")
        spark.sql("DROP NAMESPACE lake.lake")


def test_rows_and_marker_appear_together_and_the_branch_goes(table):
    target = table()
    state = target.state()

    assert target.commit(state, Write(frame(target, [(1, "x", 2), (2, None, 300)])), marker(7))

    other = table()
    assert contents(other) == [(1, "x", 2), (2, None, 300)]
    assert other.state().marker == marker(7)
    assert branches(other) == ["main"]
    assert list(other.rows(state).collect()) == []


@pytest.mark.parametrize("first", [[], [(1, "a", 1)]], ids=["empty table", "loaded table"])
def test_of_two_commits_from_one_state_the_second_is_refused(table, first):
    one, two = table("one"), table("two")
    if first:
        load(one, 1, first)

    commit_one_after_the_other(one, two)

    assert contents(two) == [*first, (2, "one", 2)]
    assert branches(two) == ["main"]
    assert two.changed_by().startswith("append of application ")


def test_a_jdbc_catalog(table_of_jdbc_catalog):
    new = table_of_jdbc_catalog
    assert not new().state().exists
    new().create(COLUMNS)
    target = new()
    assert target.commit(target.state(), Write(frame(target, [(1, "a", 1), (9, "gone", 9)])), marker(1))
    target = new()
    rows = changes(target, [(1, "b", 1, "U", 1), (9, "gone", 9, "D", 2)])
    assert target.commit(target.state(), merge(rows, ["id"]), marker(2))
    targets = [new(f"job{n}") for n in range(3)]

    winner = race(targets, [target.state() for target in targets])

    assert contents(new()) == sorted([(1, "b", 1), (winner, "row", 1)])
    assert new().state().marker == marker(10 + winner)
    assert branches(new()) == ["main"]


class AtTheSameInstant(IcebergTable):
    """Meets another at the moment before main moves."""

    barrier: threading.Barrier

    def _fast_forward(self, branch, state, part):
        self.barrier.wait(60)
        return super()._fast_forward(branch, state, part)


@pytest.mark.parametrize("round_", [0, *(pytest.param(n, marks=pytest.mark.thorough) for n in (1, 2))])
@pytest.mark.parametrize("first", [[], [(0, "a", 1)]], ids=["two first loads", "two loads"])
def test_of_two_commits_at_the_same_instant_exactly_one_wins(spark, table, first, round_):
    if first:
        load(table(), 1, first)
    name, barrier, won = table()._name, threading.Barrier(2), {}

    def run(number):
        target = AtTheSameInstant(table_session(spark), name, f"job{number}")
        target.barrier = barrier
        state = target.state()
        won[number] = target.commit(state, Write(frame(target, [(number, "row", 1)])), marker(10 + number))

    threads = [threading.Thread(target=run, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(won.values()) == [False, True]
    winner = next(number for number, done in won.items() if done)
    assert contents(table()) == [*first, (winner, "row", 1)]
    assert table().state().marker == marker(10 + winner)
    assert branches(table()) == ["main"]


class RolledBack(IcebergTable):
    """Somebody rolls main back when the rows are on the branch."""

    back_to = 0

    def _fast_forward(self, branch, state, part):
        call(self, f"CALL lake.system.rollback_to_snapshot(table => {{t}}, snapshot_id => {self.back_to})")
        return super()._fast_forward(branch, state, part)


def test_a_rollback_is_not_undone_by_a_load_that_had_seen_more(spark, table):
    load(table(), 1, [(1, "a", 1)])
    target = RolledBack(table_session(spark), table()._name, "spec")
    target.back_to = target.state().snapshot
    load(table(), 2, [(2, "b", 2)])

    assert not target.commit(target.state(), Write(frame(target, [(3, "c", 3)])), marker(3))

    assert contents(table()) == [(1, "a", 1)]
    assert table().state().marker == marker(1)
    assert branches(table()) == ["main"]
    load(table(), 3, [(2, "b", 2), (3, "c", 3)])
    assert contents(table()) == [(1, "a", 1), (2, "b", 2), (3, "c", 3)]


def test_compaction_neither_hides_the_marker_nor_lets_an_old_state_commit(table):
    target = table()
    load(target, 1, [(1, "a", 1)])
    load(target, 2, [(2, "b", 2)])
    before = target.state()

    call(target, "CALL lake.system.rewrite_data_files(table => {t}, options => map('rewrite-all', 'true'))")

    assert target.state().marker == marker(2)
    assert target.state().snapshot != before.snapshot
    assert not target.commit(before, Write(frame(target, [(3, "c", 3)])), marker(3))
    load(target, 3, [(3, "c", 3)])
    assert contents(target) == [(1, "a", 1), (2, "b", 2), (3, "c", 3)]


def expire_marked(target, rewrites=1):
    """Make snapshots without marker and expire all but the last."""
    for _ in range(rewrites):
        call(target, "CALL lake.system.rewrite_data_files(table => {t}, options => map('rewrite-all', 'true'))")
    now = target._session.sql("SELECT current_timestamp()").collect()[0][0]
    call(
        target, f"CALL lake.system.expire_snapshots(table => {{t}}, older_than => TIMESTAMP '{now}', retain_last => 1)"
    )


@pytest.mark.parametrize("rewrites", [pytest.param(1, marks=pytest.mark.thorough), 3])
def test_the_properties_remember_a_marker_whose_snapshot_expired(table, rewrites):
    target = table()
    load(target, 1, [(1, "a", 1)])
    load(target, 2, [(2, "b", 2)])

    expire_marked(target, rewrites)

    state = target.state()
    assert (state.marker, state.from_property) == (marker(2), True)
    load(target, 3, [(3, "c", 3)])
    assert (target.state().marker, target.state().from_property) == (marker(3), False)


def test_a_memory_of_which_nothing_tells_whether_it_is_of_this_line_is_refused_and_said_to_be_so(table):
    target = table()
    load(target, 1, [(1, "a", 1)])
    expire_marked(target, rewrites=2)
    files = target._session.sql(f"SELECT file FROM {target.sql_name}.metadata_log_entries ORDER BY timestamp").collect()
    *older, _ = [Path(file["file"].removeprefix("file:")) for file in files]
    # one that is gone hides nothing that another knows
    older[0].unlink()
    assert target.state().marker == marker(1)
    for path in older[1:]:
        path.write_text("no metadata")
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)

    state = target.state()

    assert state.marker is None
    assert f"remember {lsn(1)} as loaded, by a snapshot of which nothing tells any more" in str(state.doubt)


@pytest.mark.parametrize("rewrites", [0, pytest.param(1, marks=pytest.mark.thorough), 2])
@pytest.mark.parametrize("hand", [True, False], ids=["to what was written by hand", "to an earlier load"])
def test_a_table_that_was_rolled_back_and_maintained_is_not_what_its_properties_remember(table, rewrites, hand):
    target = table()
    if hand:
        target._session.sql(f"INSERT INTO {target.sql_name} VALUES (0, 'by hand', 1)")
    else:
        load(target, 1, [(1, "a", 1)])
    then = target.state().snapshot
    load(target, 2, [(2, "b", 2)])
    load(target, 3, [(3, "c", 3)])

    call(target, f"CALL lake.system.rollback_to_snapshot(table => {{t}}, snapshot_id => {then})")
    if rewrites:
        expire_marked(target, rewrites)

    state = target.state()
    if not hand and not rewrites:
        assert (state.marker, state.doubt) == (marker(1), None)
    else:
        assert state.marker is None
        assert f"remember {lsn(3)} as loaded, by a snapshot from which the present one does not descend" in str(
            state.doubt
        )


def test_what_adds_nothing_to_an_empty_table_does_not_empty_it(table):
    target = table()
    load(target, 1, [])

    assert target.commit(target.state(), Write(frame(target, [])), None)

    assert (target.state().marker, target.state().is_empty) == (marker(1), False)


def test_an_empty_table_is_what_its_properties_remember_where_nothing_else_can_have_emptied_it(table):
    target = table()
    load(target, 1, [(1, "a", 1)])
    assert target.commit(target.state(), replace(frame(target, [])), marker(2))
    assert target.commit(target.state(), Write(frame(target, [])), None)
    expire_marked(target, rewrites=0)

    assert (table().state().marker, table().state().from_property) == (marker(2), True)


def test_an_empty_table_is_not_what_its_properties_remember(table):
    target = table()
    load(target, 1, [(1, "a", 1)])
    target._session.sql(f"DELETE FROM {target.sql_name}")
    assert target.commit(target.state(), Write(frame(target, [])), None)
    expire_marked(target, rewrites=0)

    state = table().state()

    assert (state.exists, state.is_empty, state.marker) == (True, True, None)
    assert f"remember {lsn(1)} as loaded, and it is empty" in str(state.doubt)


def test_a_kill_before_the_property_was_written_is_healed_by_the_next_look(table):
    target = table()
    load(target, 1, [(1, "a", 1)])
    old = target._marked.stored()
    load(target, 2, [(2, "b", 2)])
    target._session.sql(f"ALTER TABLE {target.sql_name} SET TBLPROPERTIES ('{MARKER}' = '{json.dumps(old)}')")

    assert table().state().marker == marker(2)

    expire_marked(target)
    assert table().state().marker == marker(2)


@pytest.mark.parametrize("expired", [False, True])
@pytest.mark.parametrize(
    "how", ["DELETE FROM {}", "TRUNCATE TABLE {}", "INSERT OVERWRITE {0} SELECT * FROM {0} WHERE false"]
)
def test_a_table_that_was_emptied_by_others_holds_nothing_of_what_its_marker_says(table, how, expired):
    target = table()
    load(target, 1, [(1, "a", 1)])
    if expired:
        expire_marked(target)

    target._session.sql(how.format(target.sql_name))

    state = table().state()
    assert (state.exists, state.is_empty, state.marker) == (True, True, None)


def test_branches_left_behind_are_dropped_after_a_day_and_no_others(table):
    target = table()
    load(target, 1, [(1, "a", 1)])
    yesterday = time.strftime("%Y%m%d%H%M%S", time.gmtime(time.time() - 2 * 86400))
    now = time.strftime("%Y%m%d%H%M%S", time.gmtime())
    names = [f"mssql_cdc_old_{yesterday}abcdef", f"mssql_cdc_new_{now}abcdef", "mine", "mssql_cdc_x"]
    for name in names:
        target._session.sql(f"ALTER TABLE {target.sql_name} CREATE BRANCH {name}")

    target.state()
    target.drop_leftovers()

    assert sorted(branches(target)) == sorted(["main", *names[1:]])


def test_a_failed_write_leaves_no_branch_and_no_setting(table):
    target = table()
    load(target, 1, [(1, "a", 1)])
    broken = changes(target, [(1, "x", 1, "U", 1), (1, "y", 1, "U", 2)])

    with pytest.raises(Exception, match="MERGE_CARDINALITY_VIOLATION"):
        target.commit(target.state(), merge(broken, ["id"]), marker(2))

    assert branches(target) == ["main"]
    assert target.state().marker == marker(1)
    assert target._session.conf.get(f"spark.sql.iceberg.snapshot-property.{MARKER}", None) is None
