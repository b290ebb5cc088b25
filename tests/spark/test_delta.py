"""What only Delta tables do: the log forgets commits, versions go back, and foreign writers come between."""

import contextlib
import datetime
import json
import re
import threading

import pytest

from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.exceptions import TargetError
from airflow_provider_mssql_cdc.spark.session import table_session
from airflow_provider_mssql_cdc.spark.targets import Write, delta
from airflow_provider_mssql_cdc.spark.targets.delta import MARKER, DeltaTable
from airflow_provider_mssql_cdc.spark.targets.sql import unpacked
from tests.support.spark.model import lsn
from tests.support.spark.rows import local
from tests.support.spark.tables import COLUMNS, changes, contents, frame, load, marker, merge

pytestmark = pytest.mark.xdist_group(__name__)


class Later(DeltaTable):
    """Sees the log as it is days later, when only the newest commits are still known."""

    oldest = 0
    days = 0

    def _commits(self):
        known = {version: c for version, c in super()._commits().items() if version >= self.oldest}
        for version, commit in known.items():
            object.__setattr__(commit, "time", commit.time - datetime.timedelta(days=self.days))
            assert known[version].version == version
        return known


@pytest.fixture
def table(spark, tmp_path):
    """A maker of target objects for one table that was made."""

    def make(spec_id="spec", kind=DeltaTable):
        return kind(table_session(spark), (f"file://{tmp_path}", "t"), spec_id)

    make().create(COLUMNS)
    return make


def later(table, days, oldest=0):
    target = table(kind=Later)
    target.days, target.oldest = days, oldest
    return target


def sql(target, statement):
    return target._session.sql(statement.replace("{}", target.sql_name)).collect()


def test_a_table_of_the_catalog(spark, namespace):
    name = ("spark_catalog", namespace[:40], "orders_of_today")
    target = DeltaTable(table_session(spark), name, "spec")
    assert not target.state().exists
    target.create(COLUMNS)

    load(target, 1, [(1, "a", 1)])

    other = DeltaTable(table_session(spark), name, "other")
    assert contents(other) == [(1, "a", 1)]
    assert other.state().marker == marker(1)
    assert other.name == ".".join(name)
    sql(other, "DROP TABLE {}")


def test_partitions_and_properties_are_those_given(spark, tmp_path):
    target = DeltaTable(
        table_session(spark),
        (f"file://{tmp_path}", "t"),
        "spec",
        partition_by=["s"],
        properties={"delta.appendOnly": "true"},
    )
    target.create(COLUMNS)

    (detail,) = sql(target, "DESCRIBE DETAIL {}")

    assert detail["partitionColumns"] == ["s"]
    assert {"delta.appendOnly": "true", "delta.enableDeletionVectors": "true"}.items() <= detail["properties"].items()


@pytest.mark.thorough
def test_what_not_every_reader_knows_can_be_left_off(spark, tmp_path):
    off = {"delta.enableDeletionVectors": "false", "delta.columnMapping.mode": "none"}
    made = {}
    for name, properties in (("usual", {}), ("off", off)):
        target = DeltaTable(table_session(spark), (f"file://{tmp_path}", name), "spec", properties=properties)
        target.create((TargetColumn("id", "INT", "{}"), TargetColumn("name", "STRING", "{}")))
        rows = local(target._session, [(1, "a"), (2, "b")], "id INT, name STRING")
        assert target.commit(target.state(), Write(rows), marker(1))
        rows = local(target._session, [(1, None, "D", 1), (2, "c", "U", 2)], "id INT, name STRING, _op STRING, _n INT")
        assert target.commit(target.state(), merge(rows, ["id"]), marker(2))
        assert contents(target) == [(2, "c")]
        (detail,) = spark.sql(f"DESCRIBE DETAIL {target.sql_name}").collect()
        made[name] = {*detail["tableFeatures"]} & {"deletionVectors", "columnMapping"}
    assert made == {"usual": {"deletionVectors", "columnMapping"}, "off": set()}


def test_readers_of_changes_and_of_row_numbers_see_what_a_window_did(spark, tmp_path):
    feeds = {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}
    target = DeltaTable(table_session(spark), (f"file://{tmp_path}", "t"), "spec", properties=feeds)
    ddl = "id INT, name STRING"
    target.create((TargetColumn("id", "INT", "{}"), TargetColumn("name", "STRING", "{}")))
    rows = local(target._session, [(n, f"n{n}") for n in range(1, 7)], ddl)
    assert target.commit(target.state(), Write(rows), marker(1))
    before = row_numbers(target)
    given = [(1, None, "D", 1), (2, "two", "U", 2), (3, "three", "U", 3), (8, "new", "I", 4), (9, None, "D", 5)]
    rows = local(target._session, given, f"{ddl}, _op STRING, _n INT")

    assert target.commit(target.state(), merge(rows, ["id"]), marker(2))

    assert contents(target) == [(2, "two"), (3, "three"), (4, "n4"), (5, "n5"), (6, "n6"), (8, "new")]
    after = row_numbers(target)
    assert {id_: after[id_] for id_ in (2, 3, 4, 5, 6)} == {id_: before[id_] for id_ in (2, 3, 4, 5, 6)}
    assert after[8] not in before.values()
    version = target.state().snapshot
    # a reader names the first and the last version; what comes after the window changed no row
    feed = sql(target, f"SELECT id, name, _change_type, _commit_version FROM table_changes('{{}}', 2, {version})")
    loaded = min(row["_commit_version"] for row in feed)
    assert sorted((row["_change_type"], row["id"], row["name"]) for row in feed) == [
        ("delete", 1, "n1"),
        ("insert", 8, "new"),
        ("update_postimage", 2, "two"),
        ("update_postimage", 3, "three"),
        ("update_preimage", 2, "n2"),
        ("update_preimage", 3, "n3"),
    ]
    assert {row["_commit_version"] for row in feed} == {loaded}


def row_numbers(target):
    found = target._session.table(target.sql_name).select("id", "_metadata.row_id").collect()
    assert len({row["row_id"] for row in found}) == len(found)
    return {row["id"]: row["row_id"] for row in found}


def test_the_properties_remember_a_marker_that_the_log_forgets(table):
    load(table(), 1, [(1, "a", 1)])
    load(table(), 2, [(2, "b", 2)])
    before = table().state().snapshot

    assert later(table, days=2).state().marker == marker(2)

    assert table().state().snapshot == before + 1
    sql(table(), "INSERT INTO {} VALUES (3, 'by hand', 3)")
    forgetful = later(table, days=40, oldest=before + 2)
    state = forgetful.state()
    assert (state.marker, state.from_property) == (marker(2), True)
    load(forgetful, 3, [(4, "d", 4)])
    assert (forgetful.state().marker, forgetful.state().from_property) == (marker(3), False)
    assert contents(forgetful) == [(1, "a", 1), (2, "b", 2), (3, "by hand", 3), (4, "d", 4)]


def remembered(target):
    """The position that the properties remember."""
    values = [row["value"] for row in sql(target, "SHOW TBLPROPERTIES {}") if row["key"] == MARKER]
    return [unpacked(value)["load"]["marker"]["position"]["at"] for value in values]


def test_the_properties_remember_a_table_that_is_loaded_often(table):
    load(table(), 1, [(1, "a", 1)])
    assert remembered(table()) == [str(lsn(1))]
    load(table(), 2, [(2, "b", 2)])
    assert table().state().marker == marker(2)
    # within a day
    assert remembered(table()) == [str(lsn(1))]

    load(later(table, days=2), 3, [(3, "c", 3)])

    assert remembered(table()) == [str(lsn(3))]


@pytest.mark.parametrize("with_property", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_a_log_that_forgot_the_newest_transactions_is_loaded_on(table, with_property):
    for position in (1, 2, 3):
        load(table(), position, [(position, "a", 1)])
    if not with_property:
        sql(table(), "ALTER TABLE {} UNSET TBLPROPERTIES ('" + MARKER + "')")
    sql(table(), "INSERT INTO {} VALUES (5, 'by hand', 3)")
    forgetful = later(table, days=40, oldest=table().state().snapshot)
    state = forgetful.state()
    assert state.marker == (marker(1) if with_property else None)

    # as `mssql-cdc checkpoint set` lets it
    assert not forgetful.commit(state, Write(frame(forgetful, [(6, "f", 6)])), marker(4))
    load(forgetful, 4, [(6, "f", 6)])

    assert forgetful.state().marker == marker(4)
    assert contents(table()) == [*((n, "a", 1) for n in (1, 2, 3)), (5, "by hand", 3), (6, "f", 6)]


def test_a_memory_of_a_later_moment_than_the_table_is_refused(table):
    load(table(), 1, [(1, "a", 1)])
    load(table(), 2, [(2, "b", 2)])
    later(table, days=2).state()
    stored = next(row["value"] for row in sql(table(), "SHOW TBLPROPERTIES {}") if row["key"] == MARKER)
    sql(table(), "RESTORE TABLE {} TO VERSION AS OF 1")
    oldest = table().state().snapshot
    sql(table(), "ALTER TABLE {} SET TBLPROPERTIES ('" + MARKER + "' = '" + stored.replace("\\", "\\\\") + "')")

    state = later(table, days=40, oldest=oldest).state()

    assert state.marker is None
    assert "loaded by version 3, and it was restored to version 1" in str(state.doubt)


def test_a_table_that_was_emptied_when_the_log_had_forgotten_the_load_holds_nothing(table):
    load(table(), 1, [(1, "a", 1)])
    later(table, days=2).state()

    sql(table(), "DELETE FROM {}")

    state = later(table, days=40, oldest=table().state().snapshot).state()
    assert (state.exists, state.is_empty, state.marker) == (True, True, None)


@pytest.fixture
def zone(spark):
    """A setter of the time zone of the JVM, which is UTC again afterwards."""
    zones = spark._jvm.java.util.TimeZone
    before = zones.getDefault()
    yield lambda name: zones.setDefault(zones.getTimeZone(name))
    zones.setDefault(before)


def restore_to(target, moment):
    """RESTORE to a moment as the clock of the session says it."""
    sql(target, f"RESTORE TABLE {{}} TO TIMESTAMP AS OF '{moment}'")


def now(target):
    (row,) = sql(target, "SELECT CAST(current_timestamp() AS STRING) AS now")
    return row["now"]


@pytest.mark.thorough
def test_a_restore_from_another_time_zone(table, zone):
    name = "Asia/Tokyo"
    zone(name)
    elsewhere = table()
    elsewhere._session.conf.set("spark.sql.session.timeZone", name)
    load(table(), 1, [(1, "a", 1), (7, "g", 7)])
    target = table()
    rows = changes(target, [(7, None, None, "D", 1)])
    assert target.commit(target.state(), merge(rows, ["id"]), marker(2))
    then = now(elsewhere)
    rows = changes(target, [(1, None, None, "D", 1)])
    assert target.commit(target.state(), merge(rows, ["id"]), marker(3))

    restore_to(elsewhere, then)

    assert contents(target) == [(1, "a", 1)]
    assert target.state().marker == marker(2)
    load(target, 3, [(3, "c", 3)])
    assert target.state().marker == marker(3)


@pytest.mark.thorough
def test_a_restore_to_a_moment_that_may_be_several_versions_is_doubted_until_it_is_made_by_number(table):
    load(table(), 1, [(1, "a", 1)])
    load(table(), 2, [])
    then, at = now(table()), table().state().snapshot
    load(table(), 3, [(3, "c", 3)])
    restore_to(table(), then)

    state = table().state()

    assert (state.marker, state.is_empty) == (None, False)
    assert "a moment whose time zone the log does not tell" in str(state.doubt)
    sql(table(), f"RESTORE TABLE {{}} TO VERSION AS OF {at}")
    assert table().state().marker == marker(2)


class Restored(DeltaTable):
    """Somebody restores the table at the moment when Delta begins."""

    back_to = 0

    def _write(self, write):
        table_session(self._session).sql(f"RESTORE TABLE {self.sql_name} TO VERSION AS OF {self.back_to}")
        super()._write(write)


@pytest.mark.thorough
@pytest.mark.parametrize("killed", [False, True])
def test_a_restore_while_delta_begins_is_found(table, killed):
    load(table(), 1, [(1, "a", 1)])
    target = table(kind=Restored)
    target.back_to = table().state().snapshot
    load(table(), 2, [(2, "b", 2)])
    if killed:
        target._check_beneath = lambda own, commits: None

    with contextlib.nullcontext() if killed else pytest.raises(TargetError, match="at the moment when a load wrote"):
        target.commit(table().state(), Write(frame(target, [(3, "c", 3)])), marker(3))

    assert contents(table()) == [(1, "a", 1), (3, "c", 3)]
    state = table().state()
    assert state.marker is None
    version = next(iter(re.findall(r"its version (\d+)", str(state.doubt))))
    sql(table(), f"RESTORE TABLE {{}} TO VERSION AS OF {int(version) - 1}")
    assert table().state().marker == marker(1)
    load(table(), 2, [(2, "B", 2)])
    assert contents(table()) == [(1, "a", 1), (2, "B", 2)]


def test_a_table_that_was_made_and_loaded_anew_meanwhile_takes_no_old_window(spark, namespace):
    name = ("spark_catalog", namespace[:40], "t")
    target, other = (DeltaTable(table_session(spark), name, "spec") for _ in range(2))
    target.create(COLUMNS)
    load(target, 1, [(1, "a", 1)])
    load(target, 2, [(2, "b", 2)])
    seen = target.state()
    sql(other, "DROP TABLE {}")
    other.create(COLUMNS)
    load(other, 1, [(1, "anew", 1)])

    assert not target.commit(seen, Write(frame(target, [(3, "c", 3)])), marker(3))

    assert contents(other) == [(1, "anew", 1)]
    sql(other, "DROP TABLE {}")


def test_a_restore_does_not_make_old_transactions_count_again(table):
    load(table(), 1, [(1, "a", 1)])
    seen_before, before = table(), table().state()
    load(table(), 2, [(2, "b", 2)])
    sql(table(), "RESTORE TABLE {} TO VERSION AS OF 1")

    assert not seen_before.commit(before, Write(frame(seen_before, [(9, "old", 9)])), marker(2))

    load(table(), 3, [(3, "c", 3)])
    assert contents(table()) == [(1, "a", 1), (3, "c", 3)]


def test_metadata_of_others_is_no_marker(table):
    target = table()
    for metadata in ("text", "[1]", '"mssql_cdc"', json.dumps({"other": 1})):
        target._session.conf.set("spark.databricks.delta.commitInfo.userMetadata", metadata)
        sql(target, "INSERT INTO {} VALUES (1, 'by hand', 1)")

    state = table().state()

    assert (state.is_empty, state.marker) == (False, None)


def test_a_merge_beside_a_foreign_change_of_the_same_rows_is_decided_again(table):
    load(table(), 1, [(1, "a", 1), (2, "b", 2)])
    target, waits, goes = table(), threading.Event(), threading.Event()
    state = target.state()

    def write(change):
        waits.set()
        goes.wait(60)
        DeltaTable._write(target, change)

    target._write = write
    done = []
    rows = changes(target, [(1, "A", 1, "U", 1)])
    thread = threading.Thread(target=lambda: done.append(target.commit(state, merge(rows, ["id"]), marker(2))))
    thread.start()
    assert waits.wait(60)
    sql(table(), "DELETE FROM {} WHERE id = 2")
    goes.set()
    thread.join()

    assert done == [True]
    assert contents(table()) == [(1, "A", 1)]


@pytest.mark.parametrize("forgotten", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_the_list_of_files_has_as_many_partitions_as_the_table_is_long(table, monkeypatch, forgotten):
    monkeypatch.setattr(delta, "_FILES_OF_A_PARTITION", 2)
    for position in range(1, 5):
        one = table()
        assert one.commit(one.state(), Write(frame(one, [(position, "a", 1)]).repartition(1)), marker(position))
    target = later(table, 0, oldest=2 if forgotten else 0)
    target._session.conf.unset("spark.databricks.delta.snapshotPartitions")
    target._open()

    assert target.state().marker == marker(4)
    assert target._session.conf.get("spark.databricks.delta.snapshotPartitions") == "4"


def test_who_has_set_the_number_of_these_partitions_knows(table):
    target = table()
    target._session.conf.set("spark.databricks.delta.snapshotPartitions", "7")
    target._open()

    target.state()

    assert target._session.conf.get("spark.databricks.delta.snapshotPartitions") == "7"
