"""Seeding from Arrow: what goes in comes out."""

import datetime

import pyarrow as pa
import pymssql

from airflow_provider_mssql_cdc.sandbox.server import Sandbox


def test_arrow_timestamps_and_times_keep_their_values():
    moments = [datetime.datetime(1, 1, 1), datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), None]
    times = [datetime.time(0), datetime.time(23, 59, 59, 999999), None]
    rows = pa.table(
        {"id": [1, 2, 3], "at": pa.array(moments, pa.timestamp("us")), "t": pa.array(times, pa.time64("us"))}
    )
    with Sandbox(database="seeded", agent_running=False) as server:
        server.execute("CREATE TABLE dbo.s (id int NOT NULL PRIMARY KEY, at datetime2(6) NULL, t time(6) NULL)")
        assert server.seed(None, "dbo.s", rows) == 3
        with (
            pymssql.connect(
                server="127.0.0.1", port=str(server.port), user=server.user, password=server.password, database="seeded"
            ) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT at, t FROM dbo.s ORDER BY id")
            assert cursor.fetchall() == list(zip(moments, times, strict=True))
