"""What every table format promises: rows and marker in one commit, on condition that the table is as it was seen."""

import dataclasses

import pytest

from airflow_provider_mssql_cdc.core.codec import Format
from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.exceptions import NewerFormatError, TargetError
from airflow_provider_mssql_cdc.core.marker import Marker
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.spark.session import table_session, target_credentials
from airflow_provider_mssql_cdc.spark.targets import Write
from airflow_provider_mssql_cdc.spark.targets.delta import DeltaTable
from airflow_provider_mssql_cdc.spark.targets.iceberg import IcebergTable
from airflow_provider_mssql_cdc.spark.targets.iceberg_columns import AddedColumns
from airflow_provider_mssql_cdc.spark.targets.iceberg_marker import MARKER
from airflow_provider_mssql_cdc.spark.targets.postgresql.table import PostgresqlTable
from airflow_provider_mssql_cdc.spark.targets.sql import different_columns, unpacked
from tests.core.test_schema import WIDE
from tests.support.spark.model import lsn, table_spec
from tests.support.spark.rows import local
from tests.support.spark.stop import Killed
from tests.support.spark.tables import (
    COLUMNS,
    DDL,
    by_hand,
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

SCHEMA = table_spec().schema

pytestmark = pytest.mark.xdist_group(__name__)

COMPACT = {
    "iceberg": "CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))",
    "delta": "OPTIMIZE {table}",
    "postgresql": "VACUUM FULL {table}",
}
ROLL_BACK = {
    "iceberg": "CALL lake.system.rollback_to_snapshot(table => '{name}', snapshot_id => {then})",
    "delta": "RESTORE TABLE {table} TO VERSION AS OF {then}",
}


EMPTY_AT_ONCE = {
    "iceberg": "INSERT OVERWRITE {table} SELECT * FROM {table} WHERE false",
    "delta": "INSERT OVERWRITE {table} SELECT * FROM {table} WHERE false",
    "postgresql": "TRUNCATE {table}",
}

with_versions = pytest.mark.parametrize("format_", ["iceberg", "delta"], indirect=True)
"""For tables that keep what they held before."""


in_each_format = pytest.mark.parametrize("format_", ["iceberg", "delta", "postgresql"], indirect=True)


@pytest.fixture(params=["iceberg", pytest.param("delta", marks=pytest.mark.thorough), "postgresql"])
def format_(request):
    return request.param


@pytest.fixture
def new(request, spark, namespace, format_, tmp_path):
    """A maker of target objects, each with a session of its own, for one table that does not exist."""
    server = request.getfixturevalue("postgresql") if format_ == "postgresql" else None

    def make(spec_id="spec"):
        session = table_session(spark)
        if server is not None:
            name = ("warehouse", namespace, 't "x" % {sinks}')
            secret = target_credentials(session)
            return PostgresqlTable(
                session, name, spec_id, database=server.spec, credentials=secret, key=["id"], indexed=True
            )
        if format_ == "delta":
            return DeltaTable(session, (f"file://{tmp_path}", "t x"), spec_id)
        return IcebergTable(session, ("lake", namespace, "t"), spec_id)

    yield make
    if format_ == "iceberg":
        spark.sql(f"DROP TABLE IF EXISTS lake.{namespace}.t PURGE")
    elif server is not None:
        server.sql(f'DROP SCHEMA IF EXISTS "{namespace}" CASCADE')


@pytest.fixture
def table(new):
    """Such a maker for a table that was made."""
    new().create(COLUMNS)
    return new


def maintain(target, format_, statements, **given):
    statement = statements[format_].format(table=target.sql_name, name=".".join(target._name[1:]), **given)
    by_hand(target, statement)


def test_a_missing_table_is_seen_as_such_and_a_new_one_as_empty(new):
    missing = new().state()
    assert (missing.exists, missing.is_empty, missing.marker, missing.snapshot) == (False, True, None, None)

    new().create(COLUMNS)

    empty = new().state()
    assert (empty.exists, empty.is_empty, empty.marker) == (True, True, None)
    assert new().rows(empty).collect() == []


def test_a_table_is_made_once(table):
    load(table(), 1, [(1, "a", 1)])

    table().create(COLUMNS)

    assert contents(table()) == [(1, "a", 1)]


def test_a_first_load_commits_to_the_table_that_it_makes(new):
    target = new()
    state = target.state()
    target.create(COLUMNS)

    assert target.commit(state, Write(frame(target, [(1, "x", 2)])), marker(7))

    assert contents(new()) == [(1, "x", 2)]


def test_a_first_load_is_refused_where_rows_came_meanwhile(new):
    target = new()
    state = target.state()
    target.create(COLUMNS)
    by_hand(target, f"INSERT INTO {target.sql_name} VALUES (0, 'by hand', 1)")

    assert not target.commit(state, Write(frame(target, [(1, "x", 2)])), marker(7))

    assert contents(new()) == [(0, "by hand", 1)]


@in_each_format
def test_rows_and_marker_appear_together(table):
    target = table()
    state = target.state()

    assert target.commit(state, Write(frame(target, [(1, "x", 2), (2, None, 300)])), marker(7))

    other = table()
    assert contents(other) == [(1, "x", 2), (2, None, 300)]
    assert other.state().marker == marker(7)
    assert sorted(map(tuple, other.rows(other.state()).collect())) == [(1, "x", 2), (2, None, 300)]


@with_versions
def test_what_the_table_held_then_can_still_be_read(table):
    target = table()
    state = target.state()
    load(target, 1, [(1, "x", 2)])

    assert target.rows(state).collect() == []


@in_each_format
def test_merge_puts_deletes_and_keeps_the_rest(table):
    target = table()
    load(target, 1, [(1, "a", 1), (2, "b", 2), (3, "c", 3), (4, "d", 4)])

    rows = changes(
        target,
        [(1, "A", 10, "U", 1), (2, "b", 2, "D", 2), (5, "e", 5, "I", 3), (3, None, None, "B", 4), (9, "", 9, "D", 5)],
    )
    assert target.commit(target.state(), merge(rows, ["id"]), marker(2))

    assert contents(target) == [(1, "A", 10), (4, "d", 4), (5, "e", 5)]
    assert target.state().marker == marker(2)


@in_each_format
def test_a_merge_by_a_key_with_null_finds_the_row(table):
    target = table()
    load(target, 1, [(None, "a", 1), (2, "b", 2)])

    rows = changes(target, [(None, "z", 1, "U", 1)])
    assert target.commit(target.state(), merge(rows, ["id"], nullable_key=True), marker(2))

    assert contents(target) == [(None, "z", 1), (2, "b", 2)]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([], id="no row", marks=pytest.mark.thorough),
        pytest.param([(9, "", 9, "D", 5)], id="a delete of nothing"),
    ],
)
def test_a_window_without_effect_commits_its_marker(table, rows):
    target = table()
    load(target, 1, [(1, "a", 1)])

    assert target.commit(target.state(), merge(changes(target, rows), ["id"]), marker(2))

    assert table().state().marker == marker(2)
    assert contents(target) == [(1, "a", 1)]


def test_an_empty_append_to_an_empty_table_commits_its_marker(table):
    load(table(), 1, [])

    assert table().state().marker == marker(1)


def test_replace_leaves_nothing_of_before(table):
    target = table()
    load(target, 1, [(1, "a", 1)])

    assert target.commit(target.state(), replace(frame(target, [(2, "b", 2)])), marker(2))

    assert contents(target) == [(2, "b", 2)]
    assert target.state().marker == marker(2)


@pytest.mark.parametrize("first", [[], [(1, "a", 1)]], ids=["empty table", "loaded table"])
def test_of_two_commits_from_one_state_the_second_is_refused(table, first):
    one, two = table("one"), table("two")
    if first:
        load(one, 1, first)

    commit_one_after_the_other(one, two)

    assert contents(two) == [*first, (2, "one", 2)]


@in_each_format
def test_of_several_commits_at_once_exactly_one_wins(table):
    targets = [table(f"job{number}") for number in range(3)]
    states = [target.state() for target in targets]

    winner = race(targets, states)

    assert contents(table()) == [(winner, "row", 1)]
    assert table().state().marker == marker(10 + winner)


@with_versions
def test_compaction_hides_no_marker(table, format_):
    target = table()
    load(target, 1, [(1, "a", 1)])
    load(target, 2, [(2, "b", 2)])
    before = target.state()

    maintain(target, format_, COMPACT)

    assert target.state().marker == marker(2)
    assert target.state().snapshot != before.snapshot
    load(target, 3, [(3, "c", 3)])
    assert contents(target) == [(1, "a", 1), (2, "b", 2), (3, "c", 3)]


@with_versions
def test_a_rollback_goes_back_to_the_marker_of_then(table, format_):
    target = table()
    load(target, 1, [(1, "a", 1)])
    then = target.state().snapshot
    load(target, 2, [(2, "b", 2)])
    seen = target.state()

    maintain(target, format_, ROLL_BACK, then=then)

    assert target.state().marker == marker(1)
    load(target, 2, [(2, "B", 2)])
    assert contents(target) == [(1, "a", 1), (2, "B", 2)]
    assert target.state().marker == marker(2)
    assert not target.commit(seen, Write(frame(target, [(3, "c", 3)])), marker(3))


@with_versions
def test_a_rollback_between_look_and_commit_takes_the_window_away(table, format_):
    target = table()
    load(target, 1, [(1, "a", 1)])
    then = target.state().snapshot
    load(target, 2, [(2, "b", 2)])
    seen = target.state()

    maintain(table(), format_, ROLL_BACK, then=then)

    assert not target.commit(seen, Write(frame(target, [(3, "c", 3)])), marker(3))
    assert contents(table()) == [(1, "a", 1)]
    assert table().state().marker == marker(1)
    load(table(), 3, [(2, "b", 2), (3, "c", 3)])
    assert contents(table()) == [(1, "a", 1), (2, "b", 2), (3, "c", 3)]


@pytest.mark.parametrize("at_once", [False, True])
def test_a_table_that_was_emptied_by_others_holds_nothing_of_what_its_marker_says(table, format_, at_once):
    target = table()
    load(target, 1, [(1, "a", 1)])

    by_hand(target, (EMPTY_AT_ONCE[format_] if at_once else "DELETE FROM {table}").format(table=target.sql_name))

    state = table().state()
    assert (state.exists, state.is_empty, state.marker) == (True, True, None)


def test_a_table_that_the_load_emptied_keeps_its_marker_also_after_compaction(table, format_):
    target = table()
    load(target, 1, [(1, "a", 1)])
    rows = changes(target, [(1, None, None, "D", 1)])
    assert target.commit(target.state(), merge(rows, ("id",)), marker(2))
    assert target.state().marker == marker(2)

    maintain(target, format_, COMPACT)

    assert contents(target) == []
    assert target.state().marker == marker(2)


def test_rows_without_marker_are_seen_as_such(table):
    target = table()
    by_hand(target, f"INSERT INTO {target.sql_name} VALUES (1, 'by hand', 1)")

    state = target.state()

    assert (state.exists, state.is_empty, state.marker) == (True, False, None)


def test_a_table_with_other_columns_is_refused(table):
    columns = [*COLUMNS, TargetColumn("extra", "STRING", "{}")]
    table().create(columns)
    difference = table().check(columns)

    with pytest.raises(TargetError, match=r"writes; missing: extra (string|text)\. Restore the table as the last load"):
        raise different_columns(table().name, difference)
    assert table().check(COLUMNS) is None


def test_a_column_that_was_added_by_hand_is_named_with_the_way_back(table):
    target = table()
    by_hand(target, f"ALTER TABLE {target.sql_name} ADD COLUMN extra INT")
    with pytest.raises(
        TargetError,
        match=r"writes; extra, of no load: extra int(eger)?\. Dropping the column extra takes back what was",
    ):
        raise different_columns(target.name, table().check(COLUMNS))


def test_a_failed_write_leaves_nothing(table):
    target = table()
    load(target, 1, [(1, "a", 1)])
    settings = dict(target._session.conf.getAll)
    broken = changes(target, [(1, "x", 1, "U", 1), (1, "y", 1, "U", 2)])

    with pytest.raises(Exception, match=r"MULTIPLE_SOURCE_ROW|MERGE_CARDINALITY|several rows of one key"):
        target.commit(target.state(), merge(broken, ["id"]), marker(2))

    assert target.state().marker == marker(1)
    assert contents(target) == [(1, "a", 1)]
    assert dict(target._session.conf.getAll) == settings


def test_a_schema_is_kept_beside_the_table_before_a_marker_names_it(new):
    """A table that is made gets it at once; one that is there keeps it without another version of its rows."""
    one, kept, wide = new(), KeptSchema.of(SCHEMA), KeptSchema.of(WIDE)
    assert one.keep_schema(kept)
    one.create(COLUMNS)
    load(one, 1, [(1, "a", 1)])
    assert one.kept_schema(kept.hash) == kept
    again = new()
    assert again.kept_schema(wide.hash) is None
    assert again.keep_schema(wide)
    load(again, 2, [(2, "b", 2)])
    # another object sees both, and the rows are what they were
    assert [new().kept_schema(each.hash) for each in (kept, wide)] == [kept, wide]
    assert contents(again) == [(1, "a", 1), (2, "b", 2)]
    assert again.state().marker == marker(2)


def test_a_table_whose_name_looks_like_a_secret_keeps_its_marker(table, format_):
    """Spark hides the values of properties in which it finds such words."""
    named = TableName("dbo", "urls of password and token")
    found = dataclasses.replace(marker(1), table=named)
    one = table()
    assert one.commit(one.state(), Write(frame(one, [(1, "a", 1)])), found)
    assert table().state().marker == found
    two = table()
    assert two.commit(two.state(), Write(frame(two, [(2, "b", 2)])), dataclasses.replace(found, position=lsn(2)))
    assert table().state().marker.position == lsn(2)
    assert contents(table()) == [(1, "a", 1), (2, "b", 2)]
    if format_ != "postgresql":
        shown = by_hand(two, f"SHOW TBLPROPERTIES {two.sql_name}")
        (remembered,) = (unpacked(row["value"]) for row in shown if row["key"] == MARKER)
        assert str(named) in "{schema}.{table}".format(**remembered.get("load", remembered)["marker"]["table"])


def test_a_marker_of_a_later_version_is_refused_and_nothing_is_changed(table, new, format_, monkeypatch):
    table = table()
    load(table, 1, [(1, "a", 1)])
    monkeypatch.setattr(Marker, "FORMAT", Format("marker", 3, "0.9.1", {2: dict}))
    load(table, 2, [(2, "b", 2)])
    monkeypatch.undo()
    before = (contents(table), versions_of(table, format_))
    with pytest.raises(NewerFormatError, match=r"the marker has version 3, which .* 0\.9\.1 reads"):
        new().state()
    assert (contents(table), versions_of(table, format_)) == before


def versions_of(table, format_):
    """What tells that somebody has written to a table."""
    if format_ == "postgresql":
        schema = table.sql_name.rpartition(".")[0].split(".")[0]
        return by_hand(table, f"SELECT to_jsonb(s)::text FROM {schema}.mssql_cdc_sinks s")
    query = {"iceberg": f"SELECT * FROM {table.sql_name}.refs", "delta": f"DESCRIBE HISTORY {table.sql_name}"}[format_]
    return table._session.sql(query).collect(), table._session.sql(f"SHOW TBLPROPERTIES {table.sql_name}").collect()


NOTE, SEEN = TargetColumn("note", "STRING", "{}"), TargetColumn("seen", "TIMESTAMP_NTZ", "{}")
LATER = [*COLUMNS, NOTE, SEEN]


def filled(target, rows: list[tuple], added=(NOTE, SEEN)) -> Write:
    """A write that brings the columns."""
    target.expect(added)
    types = "".join(f", {column.name} {column.type}" for column in added)
    found = local(target._session, rows, f"{DDL}{types}, _op STRING, _n BIGINT")
    return dataclasses.replace(merge(found, ["id"]), adds=tuple(added))


@in_each_format
def test_they_come_with_the_values_of_the_same_commit(table):
    target = table()
    load(target, 1, [(1, "a", 1), (2, "b", 1), (3, "c", 1)])
    assert target.check(LATER).expected.keys() - target.check(LATER).found.keys() == {"note", "seen"}

    assert target.commit(
        target.state(), filled(target, [(1, "a", 1, "x", None, "U", 1), (4, "d", 1, "y", None, "U", 2)]), marker(2)
    )

    assert contents(table()) == [
        (1, "a", 1, "x", None),
        (2, "b", 1, None, None),
        (3, "c", 1, None, None),
        (4, "d", 1, "y", None),
    ]
    assert table().check(LATER) is None
    # to what is appended, too
    rows = local(target._session, [(5, "e", 1, "z", None, 7)], f"{DDL}, note STRING, seen TIMESTAMP_NTZ, more INT")
    more = TargetColumn("more", "INT", "{}")
    target.expect([more])
    assert target.commit(target.state(), Write(rows, adds=(more,)), marker(3))
    assert contents(table())[-1] == (5, "e", 1, "z", None, 7)
    assert [row[-1] for row in contents(table())] == [None] * 4 + [7]


def test_of_two_commits_that_bring_them_one_is_refused(table):
    one, two = table(), table()
    load(one, 1, [(1, "a", 1)])
    seen_by_one, seen_by_two = one.state(), two.state()
    write = [(1, "a", 1, "x", None, "U", 1)]
    assert one.commit(seen_by_one, filled(one, write), marker(2))
    assert not two.commit(seen_by_two, filled(two, write), marker(2))
    assert contents(table()) == [(1, "a", 1, "x", None)]
    assert table().check(LATER) is None
    assert two.rows(two.state()).columns == ["id", "a `b.c", "s", "note", "seen"]


WIDER = TargetColumn("id", "BIGINT", "{}"), TargetColumn("s", "INT", "{}")


def test_types_grow_and_no_value_is_another(table, format_):
    target = table()
    load(target, 1, [(1, "a", 1), (2, "b", -2)])
    if format_ == "delta":
        with pytest.raises(TargetError, match=r"t x cannot hold column id as BIGINT, its type in the source") as raised:
            target.widen(WIDER)
        assert "delta.enableTypeWidening = true" in raised.value.advice
        assert table().check(COLUMNS) is None
        by_hand(target, f"ALTER TABLE {target.sql_name} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    seen = target.state()
    # one that was killed before its commit does it again
    for _ in range(2):
        target.widen(WIDER)
    columns = [WIDER[0], COLUMNS[1], WIDER[1]]
    assert table().check(columns) is None
    assert (table().state().marker, contents(table())) == (seen.marker, [(1, "a", 1), (2, "b", -2)])

    rows = [(2, "c", 70_000, "U", 1), (5_000_000_000, "d", 3, "I", 2), (1, None, None, "D", 3)]
    found = local(target._session, rows, "id BIGINT, `a ``b.c` STRING, s INT, _op STRING, _n BIGINT")
    assert target.commit(seen, merge(found, ["id"]), marker(2))
    assert contents(table()) == [(2, "c", 70_000), (5_000_000_000, "d", 3)]
    assert table().state().marker.position == marker(2).position


@pytest.mark.parametrize("format_", ["postgresql"], indirect=True)
def test_a_type_that_a_view_shows_is_named_and_stays(table, namespace):
    target = table()
    load(target, 1, [(1, "a", 1)])
    by_hand(target, f'CREATE VIEW "{namespace}".seen AS SELECT s FROM {target.sql_name}')
    with pytest.raises(TargetError, match=r"on view \S+seen depends on column"):
        target.widen(WIDER)
    assert table().check(COLUMNS) is None


@pytest.mark.parametrize("format_", ["iceberg"], indirect=True)
@pytest.mark.parametrize("killed_in", [pytest.param("_write", marks=pytest.mark.thorough), "_fast_forward"])
def test_a_commit_that_is_killed_before_main_has_the_values_leaves_no_column(table, monkeypatch, killed_in):
    target = table()
    load(target, 1, [(1, "a", 1)])
    with monkeypatch.context() as patch:
        patch.setattr(type(target), killed_in, kill)
        write = filled(target, [(1, "a", 1, "x", None, "U", 1)])
        with pytest.raises(Killed):
            target.commit(target.state(), write, marker(2))
    assert table().check(COLUMNS) is None
    assert table().rows(table().state()).columns == ["id", "a `b.c", "s"]
    # what goes on without them, or has columns of that name and another type
    assert target.commit(target.state(), merge(changes(target, [(1, "b", 1, "U", 1)]), ["id"]), marker(2))
    load(table(), 3, [(2, "c", 1)])
    note = TargetColumn("note", "INT", "{}")
    write = filled(target, [(1, "b", 1, 8, None, "U", 1)], (note, SEEN))
    assert target.commit(target.state(), write, marker(4))
    assert contents(table()) == [(1, "b", 1, None, 8), (2, "c", 1, None, None)]


@pytest.mark.parametrize("format_", ["iceberg"], indirect=True)
def test_a_commit_that_is_killed_before_they_have_their_names_is_finished_by_the_next_load(table, monkeypatch):
    target = table()
    load(target, 1, [(1, "a", 1)])
    with monkeypatch.context() as patch:
        patch.setattr(AddedColumns, "finish", kill)
        write = filled(target, [(1, "a", 1, "x", None, "U", 1)])
        with pytest.raises(Killed):
            target.commit(target.state(), write, marker(2))
    assert table().state().marker.position == marker(2).position
    assert table().check(LATER) is not None
    # another one has begun anew meanwhile
    by_hand(target, f"ALTER TABLE {target.sql_name} RENAME COLUMN _mssql_cdc_added_note TO note")
    by_hand(target, f"ALTER TABLE {target.sql_name} ADD COLUMN _mssql_cdc_added_note STRING")
    table().finish(LATER)
    table().finish(LATER)
    assert table().check(LATER) is None
    assert contents(table()) == [(1, "a", 1, "x", None)]
    assert "_mssql_cdc_added_note" not in target._session.table(target.sql_name).columns


def kill(*_: object, **__: object) -> None:
    raise Killed
