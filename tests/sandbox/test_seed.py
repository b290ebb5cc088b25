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


def test_values_are_stored_as_an_insert_stores_them():
    at = datetime.datetime(2024, 2, 29, 23, 59, 59, 999_400)
    rows = pa.table(
        {
            "id": [1],
            "c": ["ab"],
            "n": ["é"],
            "v": ["π é"],
            "b": [b"\x01"],
            "d": [at],
            "s": [at],
            "d2": [at],
            "t": [at.time()],
            "o": [at.replace(tzinfo=datetime.UTC)],
            "g": ["6f9619ff-8b86-d011-b42d-00c04fc964ff"],
        }
    )
    definition = (
        "(id int PRIMARY KEY, c char(3), n nchar(2), v varchar(5), b binary(2), d datetime, s smalldatetime,"
        " d2 datetime2(3), t time(0), o datetimeoffset(0), g uniqueidentifier)"
    )
    with Sandbox(agent_running=False) as server:
        server.execute(f"CREATE TABLE dbo.s {definition} CREATE TABLE dbo.i {definition}")
        server.seed(None, "dbo.s", rows)
        moment = "'2024-02-29 23:59:59.999400'"
        server.execute(
            f"INSERT INTO dbo.i VALUES (1, 'ab', N'é', N'π é', 0x01, CAST({moment} AS datetime2), CAST({moment} AS"
            f" datetime2), {moment}, '23:59:59.999400', '2024-02-29 23:59:59.999400 +00:00',"
            " '6f9619ff-8b86-d011-b42d-00c04fc964ff')"
        )
        seeded, inserted = server.execute("SELECT * FROM dbo.s SELECT * FROM dbo.i")
        assert seeded.to_pylist() == inserted.to_pylist()
        assert seeded.column("c").to_pylist() == ["ab "]
        assert seeded.column("d").to_pylist() == [datetime.datetime(2024, 3, 1)]
