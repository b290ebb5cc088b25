"""What the load reads of a key that changes to an equal text: both images, however the change was captured."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.choice import choose
from airflow_provider_mssql_cdc.core.columns import map_columns
from airflow_provider_mssql_cdc.core.position import Lsn, Window
from airflow_provider_mssql_cdc.core.selection import EVERYTHING, Selection
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.core.table import Column
from airflow_provider_mssql_cdc.core.table_options import Choice
from airflow_provider_mssql_cdc.sandbox.engine.cdc.switches import EqualKeys
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from airflow_provider_mssql_cdc.spark.sources.cdc.query import slice_sql
from airflow_provider_mssql_cdc.spark.sources.cdc.slices import Slice
from tests.support.spark.model import table_spec

COLUMNS = (Column(1, 1, "k", "nvarchar", 40, nullable=False), Column(2, 2, "v", "int", 4, 10))


def read(
    way: EqualKeys,
    table: str,
    changes: str,
    spec: TableSpec,
    *,
    history: bool = False,
    selection: Selection = EVERYTHING,
) -> list[dict[str, Any]]:
    """What the load reads of a table's changes, in their order.

    :param table: the T-SQL that makes dbo.t
    :param changes: T-SQL
    """
    with Sandbox(agent_running=False) as server:
        server.execute(f"{table} EXEC sys.sp_cdc_enable_db EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL")
        cdc = server.cdc()
        cdc.switches = dataclasses.replace(cdc.switches, equal_keys_are_captured=way)
        server.execute(changes)
        server.step()
        upto = Lsn(server.execute("SELECT sys.fn_cdc_get_max_lsn() AS lsn")[0].to_pylist()[0]["lsn"])
        part = Slice(Window(Lsn(bytes(10)), upto), 0)
        mappings = map_columns(spec.name, spec.schema)
        sql = slice_sql(spec.feed, spec.schema, mappings, part, history=history, selection=selection)
        return sorted(server.execute(sql)[0].to_pylist(), key=lambda row: (row["start_lsn"], row["seq"]))


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize("way", typing.get_args(EqualKeys))
def test_both_keys_of_an_update_are_read(way: EqualKeys, history: bool) -> None:
    rows = read(
        way,
        "CREATE TABLE dbo.t (k nvarchar(20) NOT NULL PRIMARY KEY, v int)",
        "INSERT INTO dbo.t VALUES (N'a', 1), (N'é', 2) UPDATE dbo.t SET k = N'A', v = 5 WHERE k = N'a'"
        " UPDATE dbo.t SET v = v + 10 UPDATE dbo.t SET k = N'é  ' WHERE k = N'É'",
        table_spec("t", COLUMNS, ("k",)),
        history=history,
    )
    found = [(row["operation"], row["c1"], row["c2"], row["key_moved"]) for row in rows]
    old, new, moved = (1, 2, 0) if way == "as delete and insert" else (3, 4, 1)
    plain = [(3, "A", 5, 0), (4, "A", 15, 0), (3, "é", 2, 0), (4, "é", 12, 0)]
    assert found == [
        (2, "a", 1, 0),
        (2, "é", 2, 0),
        (old, "a", 1, moved),
        (new, "A", 5, moved),
        *(row for row in plain if history or row[0] == 4),
        (old, "é", 12, moved),
        (new, "é  ", 12, moved),
    ]


@pytest.mark.parametrize("way", typing.get_args(EqualKeys))
def test_binaries_that_differ_in_zeros_at_the_end_are_other_keys(way: EqualKeys) -> None:
    columns = (Column(1, 1, "a", "int", 4, 10, nullable=False), Column(2, 2, "k", "varbinary", 8, nullable=False))
    rows = read(
        way,
        "CREATE TABLE dbo.t (a int NOT NULL, k varbinary(8) NOT NULL, PRIMARY KEY (a, k))",
        "INSERT INTO dbo.t VALUES (1, 0x01) UPDATE dbo.t SET k = 0x0100",
        table_spec("t", columns, ("a", "k")),
    )
    old, new, moved = (1, 2, 0) if way == "as delete and insert" else (3, 4, 1)
    assert [(row["operation"], row["c2"], row["key_moved"]) for row in rows] == [
        (2, b"\x01", 0),
        (old, b"\x01", moved),
        (new, b"\x01\x00", moved),
    ]


@pytest.mark.parametrize("way", typing.get_args(EqualKeys))
def test_both_images_of_a_row_that_leaves_a_filter_are_read(way: EqualKeys) -> None:
    """Its text is in the clustered index alone, and changes to an equal one that the filter does not admit."""
    columns = (Column(1, 1, "id", "int", 4, 10, nullable=False), Column(2, 2, "region", "varchar", 9))
    spec = table_spec("t", columns, ("id",))
    rows = read(
        way,
        "CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY NONCLUSTERED, region varchar(9))"
        " CREATE CLUSTERED INDEX by_region ON dbo.t (region)",
        "INSERT INTO dbo.t VALUES (1, 'EU') UPDATE dbo.t SET region = 'eu'",
        spec,
        selection=choose(spec.name, spec.schema, Choice(where=(("region", "=", "EU"),)), check=None),
    )
    old, new = (1, 2) if way == "as delete and insert" else (3, 4)
    assert [(row["operation"], row["c2"]) for row in rows] == [(2, "EU"), (old, "EU"), (new, "eu")]
