"""The times of the catalogue are of type datetime, whatever the server's clock shows."""

from __future__ import annotations

import datetime

from airflow_provider_mssql_cdc.sandbox import Sandbox


def test_times_of_objects_are_ticks_of_datetime() -> None:
    def clock() -> datetime.datetime:
        return datetime.datetime(2026, 1, 2, 3, 4, 5, 45_123, datetime.UTC)

    with Sandbox(agent_running=False, clock=clock) as server:
        server.execute("CREATE TABLE dbo.t (id int PRIMARY KEY)")
        (rows,) = server.execute(
            "SELECT CONVERT(varchar(23), create_date, 121) AS made, CONVERT(varchar(23), modify_date, 121) AS changed"
            " FROM sys.tables"
        )
    assert rows.to_pylist() == [{"made": "2026-01-02 03:04:05.047", "changed": "2026-01-02 03:04:05.047"}]
