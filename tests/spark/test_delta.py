"""What only Delta tables do: the log forgets commits, versions go back, and foreign writers come between."""

import datetime
import json
import threading

import pytest

from airflow_provider_mssql_cdc.spark.session import table_session
from airflow_provider_mssql_cdc.spark.targets import Append, Merge
from airflow_provider_mssql_cdc.spark.targets.delta import MARKER, DeltaTable
from tests.spark.tables import COLUMNS, changes, contents, frame, load, marker

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
    """Return a maker of target objects for one table that was made."""

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


def test_the_properties_remember_a_marker_that_the_log_forgets(table):
    load(table(), 1, [(1, "a", 1)])
    load(table(), 2, [(2, "b", 2)])
    assert table().state().snapshot == 2

    assert later(table, days=2).state().marker == marker(2)

    assert table().state().snapshot == 3
    sql(table(), "INSERT INTO {} VALUES (3, 'by hand', 3)")
    forgetful = later(table, days=40, oldest=4)
    state = forgetful.state()
    assert (state.marker, state.from_property) == (marker(2), True)
    load(forgetful, 3, [(4, "d", 4)])
    assert (forgetful.state().marker, forgetful.state().from_property) == (marker(3), False)
    assert contents(forgetful) == [(1, "a", 1), (2, "b", 2), (3, "by hand", 3), (4, "d", 4)]


def test_a_young_marker_is_not_written_down(table):
    load(table(), 1, [(1, "a", 1)])

    assert later(table, days=0).state().marker == marker(1)

    assert MARKER not in {row["key"] for row in sql(table(), "SHOW TBLPROPERTIES {}")}


def test_a_memory_of_a_later_moment_than_the_table_is_refused(table):
    load(table(), 1, [(1, "a", 1)])
    load(table(), 2, [(2, "b", 2)])
    later(table, days=2).state()
    stored = next(row["value"] for row in sql(table(), "SHOW TBLPROPERTIES {}") if row["key"] == MARKER)
    sql(table(), "RESTORE TABLE {} TO VERSION AS OF 1")
    sql(table(), "ALTER TABLE {} SET TBLPROPERTIES ('" + MARKER + "' = '" + stored.replace("\\", "\\\\") + "')")

    state = later(table, days=40, oldest=3).state()

    assert state.marker is None
    assert "loaded by version 2, and it was restored to version 1" in str(state.doubt)


def test_a_table_that_was_emptied_when_the_log_had_forgotten_the_load_holds_nothing(table):
    load(table(), 1, [(1, "a", 1)])
    later(table, days=2).state()

    sql(table(), "DELETE FROM {}")

    state = later(table, days=40, oldest=3).state()
    assert (state.exists, state.is_empty, state.marker) == (True, True, None)


def test_a_restore_to_a_moment_is_a_restore_to_the_version_of_then(table):
    load(table(), 1, [(1, "a", 1)])
    (then,) = sql(table(), "SELECT CAST(MAX(timestamp) AS STRING) AS t FROM (SELECT current_timestamp() AS timestamp)")
    load(table(), 2, [(2, "b", 2)])

    sql(table(), "RESTORE TABLE {} TO TIMESTAMP AS OF '" + then["t"] + "'")

    assert table().state().marker == marker(1)
    assert contents(table()) == [(1, "a", 1)]


def test_a_restore_does_not_make_old_transactions_count_again(table):
    load(table(), 1, [(1, "a", 1)])
    seen_before, before = table(), table().state()
    load(table(), 2, [(2, "b", 2)])
    sql(table(), "RESTORE TABLE {} TO VERSION AS OF 1")

    assert not seen_before.commit(before, Append(frame(seen_before, [(9, "old", 9)])), marker(2))

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
    thread = threading.Thread(target=lambda: done.append(target.commit(state, Merge(rows, ["id"]), marker(2))))
    thread.start()
    assert waits.wait(60)
    sql(table(), "DELETE FROM {} WHERE id = 2")
    goes.set()
    thread.join()

    assert done == [True]
    assert contents(table()) == [(1, "A", 1)]
