"""Readers by row versions: CDC's tables and functions as of one moment, and what DDL takes from them."""

from __future__ import annotations

import pytest

from tests.support.conformance.client import Client, Row
from tests.support.conformance.database import ORDER, Database

_READS = (
    "SELECT id, b FROM dbo.t ORDER BY id",
    f"SELECT __$start_lsn, __$operation, id, b FROM cdc.dbo_t_CT ORDER BY {ORDER}",
    "SELECT start_lsn, tran_end_time, tran_id FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00 ORDER BY start_lsn",
    "SELECT capture_instance, start_lsn FROM cdc.change_tables ORDER BY capture_instance",
    "SELECT object_id, column_name, column_ordinal FROM cdc.captured_columns ORDER BY object_id, column_ordinal",
    "SELECT ddl_command, ddl_lsn FROM cdc.ddl_history ORDER BY ddl_lsn",
    "SELECT sys.fn_cdc_get_min_lsn('dbo_t')",
    "SELECT __$start_lsn, id, b FROM cdc.fn_cdc_get_net_changes_dbo_t(sys.fn_cdc_get_min_lsn('dbo_t'),"
    " sys.fn_cdc_get_max_lsn(), N'all') ORDER BY id",
)


def _seen(client: Client) -> list[list[Row]]:
    return [client.run(sql) for sql in _READS]


@pytest.fixture
def reader(t: Database) -> Client:
    """A connection beside it, which will read by snapshots."""
    t.run(f"ALTER DATABASE {t.name} SET ALLOW_SNAPSHOT_ISOLATION ON")
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    reader = t.connect()
    reader.run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT")
    return reader


@pytest.mark.parametrize("first", range(len(_READS)))
def test_a8_a_snapshot_transaction_sees_cdc_of_its_moment(t: Database, reader: Client, first: int) -> None:
    before = _seen(t)
    reader.run(f"BEGIN TRAN {_READS[first]}")
    t.commit("UPDATE dbo.t SET b = 2", "INSERT INTO dbo.t VALUES (2, 'y', 3)")
    t.run(f"EXEC sys.sp_cdc_cleanup_change_table 'dbo_t', 0x{t.commits()[-1].hex()}")
    assert _seen(reader) == before
    reader.run("COMMIT")
    assert _seen(reader) == _seen(t) != before


def test_a8_max_lsn_in_a_snapshot_transaction(t: Database, reader: Client) -> None:
    newest = "SELECT sys.fn_cdc_get_max_lsn(), sys.fn_cdc_map_lsn_to_time(sys.fn_cdc_get_max_lsn())"
    before = reader.run(f"BEGIN TRAN {newest}")
    t.commit("UPDATE dbo.t SET b = 2")
    assert reader.run(newest) == before
    assert reader.run(f"COMMIT {newest}") != before


@pytest.mark.parametrize("ddl", ["ALTER TABLE dbo.u ADD w int", "CREATE INDEX ix ON dbo.u (id)"])
def test_a8_a_table_that_was_altered_since(t: Database, reader: Client, ddl: str) -> None:
    t.run("CREATE TABLE dbo.u (id int)")
    before = _seen(t)
    reader.run("BEGIN TRAN SELECT id FROM dbo.t")
    t.run(ddl)
    assert _seen(reader) == before
    error = reader.error("SELECT id FROM dbo.u")
    assert (error.number, error.severity, error.state) == (3961, 16, 1)


def test_a8_a_change_table_whose_columns_changed_since(t: Database, reader: Client) -> None:
    reader.run("BEGIN TRAN SELECT id FROM dbo.t")
    t.commit("ALTER TABLE dbo.t ALTER COLUMN b bigint", "INSERT INTO dbo.t VALUES (2, 'y', 3)")
    assert reader.number("SELECT id FROM cdc.dbo_t_CT") == 3961


def test_a8_views_of_the_catalogue_are_current(t: Database, reader: Client) -> None:
    reader.run("BEGIN TRAN SELECT id FROM dbo.t")
    t.run("CREATE TABLE dbo.u (id int)")
    assert reader.run("SELECT name FROM sys.tables WHERE name = 'u'") == [("u",)]
