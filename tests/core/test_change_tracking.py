"""What is said of Change Tracking, and by which rules: without a server."""

import dataclasses
import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.change_tracking import (
    UNITS,
    DatabaseTracking,
    Retention,
    Standing,
    TrackedTable,
    TrackedVersions,
    context_clause,
)
from airflow_provider_mssql_cdc.core.changes import HistoryOptions
from airflow_provider_mssql_cdc.core.codec import _plain, _typed
from airflow_provider_mssql_cdc.core.exceptions import ParameterError
from airflow_provider_mssql_cdc.core.feed import Feed, refused_options, refused_shapes
from airflow_provider_mssql_cdc.core.position import Version
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema

ORDERS = TableName("sales", "or]ders")
CREATED = datetime.datetime(2026, 3, 1, 12)
TABLE = TrackedTable(
    "sales.or]ders",
    7,
    ORDERS,
    7,
    CREATED,
    (Column(1, 1, "id", "int", nullable=False), Column(2, 2, "a", "int")),
    primary_key=("id",),
    columns_updated=True,
    begin_version=Version(0),
    min_valid_version=Version(3),
)
versions = st.integers(0, 9).map(Version)


@given(st.integers(1, 2**31 - 1))
def test_a_retention_is_said_in_the_largest_unit_without_a_rest(minutes):
    kept = datetime.timedelta(minutes=minutes)
    found = Retention.of(kept)
    assert found.kept == kept
    assert found.option == f"CHANGE_RETENTION = {found.period} {found.unit}"
    larger = [unit for unit, size in UNITS.items() if size > UNITS[found.unit]]
    assert all(minutes % UNITS[unit] for unit in larger)


@pytest.mark.parametrize(
    ("kept", "text"),
    [
        (datetime.timedelta(days=7), "7 days"),
        (datetime.timedelta(hours=36), "36 hours"),
        (datetime.timedelta(minutes=1441), "1441 minutes"),
    ],
)
def test_a_retention_for_people(kept, text):
    assert str(Retention.of(kept)) == text


@pytest.mark.parametrize(
    "kept",
    [
        datetime.timedelta(0),
        -datetime.timedelta(days=1),
        datetime.timedelta(seconds=59),
        datetime.timedelta(minutes=1, microseconds=1),
        datetime.timedelta(minutes=2**31),
    ],
)
def test_other_retentions_are_refused(kept):
    with pytest.raises(ParameterError, match="expected whole minutes, from 1 to 2147483647"):
        Retention.of(kept)


@given(versions, st.none() | versions, st.none() | versions)
def test_the_last_version_is_valid_from_the_lowest_one_to_the_current_one_and_never_without_them(last, lowest, current):
    table = TrackedVersions(ORDERS, Standing.TRACKED, 7, Version(0), lowest)
    known = lowest is not None and current is not None
    assert table.is_valid(last, current) == (known and lowest.value <= last.value <= current.value)
    if lowest is not None:
        assert (table.problem(last, current, "u") is None) == table.is_valid(last, current)


@given(versions, st.sampled_from([Standing.UNKNOWN, Standing.UNTRACKED, Standing.DENIED]))
def test_no_version_is_valid_where_nobody_says_which(last, standing):
    assert not TrackedVersions(ORDERS, standing).is_valid(last, Version(9))
    assert TrackedVersions(ORDERS, standing).problem(last, Version(9), "u") is not None


@pytest.mark.parametrize(
    ("standing", "lowest", "said"),
    [
        (
            Standing.UNKNOWN,
            None,
            "sales.or]ders: there is no such table, or 'u]' does not see it: "
            "GRANT SELECT ON [sales].[or]]ders] TO [u]]];",
        ),
        (
            Standing.UNTRACKED,
            None,
            "sales.or]ders: Change Tracking is off for it: ALTER TABLE [sales].[or]]ders] ENABLE CHANGE_TRACKING;",
        ),
        (
            Standing.DENIED,
            None,
            "sales.or]ders: 'u]' may not ask about its changes: "
            "GRANT VIEW CHANGE TRACKING ON [sales].[or]]ders] TO [u]]];",
        ),
        (
            Standing.TRACKED,
            Version(5),
            "sales.or]ders: the changes after version 4 up to version 5 were removed: read the table anew.",
        ),
        (Standing.TRACKED, Version(4), None),
    ],
)
def test_what_is_in_the_way_is_told_apart(standing, lowest, said):
    assert TrackedVersions(ORDERS, standing, min_valid=lowest).problem(Version(4), Version(6), "u]") == said


def test_a_version_that_the_database_has_not_reached_is_that_of_another_history():
    table = TrackedVersions(ORDERS, Standing.TRACKED, min_valid=Version(0))
    assert table.problem(Version(4), Version(4), "u") is None
    assert table.problem(Version(5), Version(4), "u") == (
        "sales.or]ders: the database is at version 4, below version 5: it was restored. Read the table anew."
    )


def test_a_database_that_is_off_is_told_before_its_tables():
    assert TrackedVersions(ORDERS, Standing.UNTRACKED).problem(Version(5), None, "u") == (
        "sales.or]ders: Change Tracking is off for the database: ALTER DATABASE CURRENT SET CHANGE_TRACKING = ON;"
    )
    assert "no such table" in (TrackedVersions(ORDERS, Standing.UNKNOWN).problem(Version(5), None, "u") or "")


@pytest.mark.parametrize(
    ("retention", "minutes", "option"),
    [
        (Retention(2, "DAYS"), 4320, "CHANGE_RETENTION = 4 DAYS"),
        (Retention(3, "DAYS"), 4320, "CHANGE_RETENTION = 4 DAYS"),
        (Retention(72, "HOURS"), 4321, "CHANGE_RETENTION = 5761 MINUTES"),
        (Retention(4321, "MINUTES"), 4320, None),
        (Retention(7, "DAYS"), 4320, None),
        (None, 4320, None),
        (Retention(1, "MINUTES"), None, None),
    ],
)
def test_a_retention_that_is_not_longer_than_that_of_cdc_is_told(retention, minutes, option):
    said = DatabaseTracking("a]b", "dbo", True, retention, True, True, "READ_WRITE", 160).shorter_than(minutes)
    assert (said is None) == (option is None)
    if option is not None:
        assert f"for {retention}, which is not longer" in said
        assert said.endswith(f"ALTER DATABASE [a]]b] SET CHANGE_TRACKING ({option});")


def test_a_context_for_a_writer():
    assert context_clause(b"\xca\xfe") == "WITH CHANGE_TRACKING_CONTEXT (0xCAFE) "
    assert context_clause(b"") == "WITH CHANGE_TRACKING_CONTEXT (0x) "
    assert len(context_clause(bytes(128))) == len("WITH CHANGE_TRACKING_CONTEXT (0x) ") + 256
    with pytest.raises(ParameterError, match="at most 128 bytes, not 129"):
        context_clause(bytes(129))


def test_a_tracked_table_is_a_feed():
    assert str(TABLE) == "tracked table sales.or]ders"
    assert TABLE.readable_from == Version(3)
    assert TABLE.schema == TableSchema(TABLE.columns, ("id",))
    assert TABLE.POSITION is Version
    said = _plain(TABLE)
    assert (said["kind"], said["min_valid_version"]) == ("tracked_table", {"kind": "version", "at": "3"})
    assert _typed(Feed, said) == TABLE


def test_what_a_tracked_table_cannot_do():
    shapes, net = ["mirror", "history", "scd2", "transactions"], HistoryOptions("net")
    assert list(refused_shapes(TrackedTable, shapes)) == ["history", "transactions"]
    assert list(refused_shapes(TrackedTable, shapes, history=net)) == ["transactions"]
    table = dataclasses.replace(TABLE, snapshots=True, columns_updated=False)
    assert list(refused_shapes(table, shapes, history=net)) == ["transactions"]
    refused = refused_shapes(dataclasses.replace(table, snapshots=False), shapes, history=net)
    assert list(refused) == ["history", "scd2", "transactions"]
    assert "SET ALLOW_SNAPSHOT_ISOLATION ON" in refused["scd2"]
    masks = {"history": HistoryOptions("net_mask")}
    assert "TRACK_COLUMNS_UPDATED = ON" in refused_shapes(table, ["history"], **masks)["history"]
    assert refused_shapes(dataclasses.replace(table, columns_updated=True), ["history"], **masks) == {}
    refused = refused_options(TrackedTable, replay=True, limits=True)
    assert [reason.partition(" ")[0] for reason in refused] == ["replay=True", "max_transactions"]
    assert all("tracked table" in reason for reason in refused)
