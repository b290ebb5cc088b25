"""The sandbox as clients see it: pymssql over a socket, transactions, seeding, stopping."""

from __future__ import annotations

import datetime
import signal
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pymssql
import pytest

from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.server import Sandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(agent_running=False) as server:
        yield server


@pytest.fixture
def connection(sandbox: Sandbox) -> Iterator[Any]:
    uri = urllib.parse.urlsplit(sandbox.connection_uri())
    opened = pymssql.connect(
        server=uri.hostname,
        port=str(uri.port),
        user=urllib.parse.unquote(uri.username or ""),
        password=urllib.parse.unquote(uri.password or ""),
        database=uri.path[1:],
    )
    yield opened
    opened.close()


def test_values_come_back(connection: Any) -> None:
    cursor = connection.cursor()
    cursor.execute(
        "CREATE TABLE dbo.v (i int, n nvarchar(50), d decimal(38,10), f float, b varbinary(20), t datetime2(3), g bit)"
    )
    rows = [
        (
            1,
            "plain",
            Decimal("12345678901234567890.0123456789"),
            1.5,
            b"\x00\xff",
            datetime.datetime(2024, 1, 2, 3, 4),
            True,
        ),
        (2, "é漢😀'", Decimal("-0.0000000001"), -2.25, b"", datetime.datetime(9999, 12, 31, 23, 59, 59, 999000), False),
        (3, None, None, None, None, None, None),
    ]
    for row in rows:
        given = [bytearray(value) if isinstance(value, bytes) else value for value in row]
        cursor.execute("INSERT INTO dbo.v VALUES (%s, %s, CAST(%s AS decimal(38,10)), %s, %s, %s, %s)", tuple(given))
    connection.commit()
    cursor.execute("SELECT * FROM dbo.v ORDER BY i")
    assert cursor.fetchall() == rows


def test_errors_and_transactions(connection: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE dbo.e (i int PRIMARY KEY)")
    connection.commit()
    cursor.execute("INSERT INTO dbo.e VALUES (1)")
    with pytest.raises(pymssql.IntegrityError) as duplicate:
        cursor.execute("INSERT INTO dbo.e VALUES (1)")
    assert duplicate.value.args[0] == 2627
    connection.rollback()
    cursor.execute("SELECT COUNT(*) FROM dbo.e")
    assert cursor.fetchone() == (0,)


def test_reading_part_of_a_result_and_asking_again(connection: Any, sandbox: Sandbox) -> None:
    sandbox.execute("CREATE TABLE dbo.many (i int NOT NULL)")
    assert sandbox.seed("shop", "dbo.many", pa.table({"i": pa.array(range(200_000), pa.int32())})) == 200_000
    cursor = connection.cursor()
    cursor.execute("SELECT i FROM dbo.many ORDER BY i")
    assert cursor.fetchmany(2) == [(0,), (1,)]
    cursor.execute("SELECT SUM(CAST(i AS bigint)), COUNT(*) FROM dbo.many")
    assert cursor.fetchall() == [(200_000 * 199_999 // 2, 200_000)]


def test_stepping_captures(sandbox: Sandbox) -> None:
    sandbox.create_database("stepped")
    sandbox.execute("CREATE TABLE dbo.s (i int PRIMARY KEY) EXEC sys.sp_cdc_enable_db", "stepped")
    sandbox.execute("EXEC sys.sp_cdc_enable_table 'dbo', 's', @role_name = NULL", "stepped")
    sandbox.seed("stepped", "dbo.s", pa.table({"i": pa.array([5, 6], pa.int32())}))
    rows = "SELECT i, __$operation FROM cdc.dbo_s_CT"
    assert sandbox.execute(rows, "stepped")[0].num_rows == 0
    assert sandbox.step("stepped") == 1
    assert sandbox.execute(rows, "stepped")[0].to_pylist() == [
        {"i": 5, "__$operation": 2},
        {"i": 6, "__$operation": 2},
    ]


def test_seeding_checks_as_an_insert_does(sandbox: Sandbox) -> None:
    sandbox.execute(
        "CREATE TABLE dbo.checked"
        " (i int PRIMARY KEY, a varchar(2) NOT NULL, d datetime, g uniqueidentifier, rv rowversion)"
    )
    good = {"i": pa.array([1, 2], pa.int32()), "a": ["x", "y"]}
    for change, number in (
        ({"i": pa.array([1, 1], pa.int32())}, 2627),
        ({"a": ["x", "long"]}, 2628),
        ({"a": pa.array(["x", None], pa.string())}, 515),
        ({"nosuch": [1, 2]}, 207),
        ({"d": pa.array([datetime.datetime(1700, 1, 1), None])}, 242),
        ({"g": ["x", None]}, 8169),
        ({"rv": [b"", b""]}, 273),
    ):
        with pytest.raises(SqlError) as refused:
            sandbox.seed(None, "dbo.checked", pa.table({**good, **change}))
        assert refused.value.number == number
    assert sandbox.execute("SELECT COUNT(*) AS n FROM dbo.checked")[0].to_pylist() == [{"n": 0}]


def test_there_is_always_a_password() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        Sandbox(password="")


def test_an_interrupt_in_a_statement_is_one_for_the_caller() -> None:
    with Sandbox(agent_running=False) as server:
        server.execute("CREATE TABLE dbo.many (id int)")
        server.seed(None, "dbo.many", pa.table({"id": pa.array(range(12_000), pa.int32())}))
        signal.signal(signal.SIGUSR1, signal.default_int_handler)
        soon = threading.Timer(0.3, signal.pthread_kill, (threading.main_thread().ident, signal.SIGUSR1))
        soon.start()
        with pytest.raises(KeyboardInterrupt):
            server.execute(
                "SELECT COUNT(*) AS n FROM dbo.many AS a CROSS JOIN dbo.many AS b WHERE (a.id + b.id) % 7 = 9"
            )


def test_stopped_sandbox_is_gone() -> None:
    with Sandbox() as server:
        port = server.port
    with pytest.raises(pymssql.OperationalError):
        pymssql.connect(server="127.0.0.1", port=str(port), user="sa", password="x", login_timeout=2)


def test_a_clock_that_stands_still() -> None:
    server = Sandbox(agent_running=False, clock=lambda: datetime.datetime(2020, 1, 1), utc_offset=60)
    now = "SELECT SYSDATETIME() AS now, SYSUTCDATETIME() AS utc"

    def shown() -> list[datetime.datetime]:
        return [
            datetime.datetime(1, 1, 1) + datetime.timedelta(microseconds=ticks // 10) for ticks in _row(server, now)
        ]

    assert shown() == [datetime.datetime(2020, 1, 1), datetime.datetime(2019, 12, 31, 23)]
    server.set_time(datetime.datetime(2031, 2, 3, 4, 5, 6, 789))
    assert shown() == [datetime.datetime(2031, 2, 3, 4, 5, 6, 789), datetime.datetime(2031, 2, 3, 3, 5, 6, 789)]
    server.set_time(None)
    assert shown()[0] == datetime.datetime(2020, 1, 1)
    server.stop()


def test_one_run_of_the_cleanup_job() -> None:
    server = Sandbox(agent_running=False)
    server.execute(
        "CREATE TABLE dbo.s (i int PRIMARY KEY) EXEC sys.sp_cdc_enable_db"
        " EXEC sys.sp_cdc_enable_table 'dbo', 's', @role_name = NULL"
    )
    for day in (1, 2, 5):
        server.set_time(datetime.datetime(2024, 1, day))
        server.execute(f"INSERT INTO dbo.s VALUES ({day})")
        server.step()
    server.cleanup()  # what is older than three days, counted from the last commit
    assert server.execute("SELECT i FROM cdc.dbo_s_CT")[0]["i"].to_pylist() == [1, 2, 5]
    server.set_time(datetime.datetime(2024, 1, 5, 0, 0, 1))
    server.execute("INSERT INTO dbo.s VALUES (6)")
    server.step()
    server.cleanup()
    assert server.execute("SELECT i FROM cdc.dbo_s_CT")[0]["i"].to_pylist() == [2, 5, 6]
    server.stop()


def test_the_agent_stops_and_starts() -> None:
    with Sandbox(capture_interval=0.01) as server:
        server.execute(
            "CREATE TABLE dbo.s (i int PRIMARY KEY) EXEC sys.sp_cdc_enable_db"
            " EXEC sys.sp_cdc_enable_table 'dbo', 's', @role_name = NULL"
        )
        captured = "SELECT COUNT(*) AS n FROM cdc.dbo_s_CT"
        server.capture.stop()
        server.execute("INSERT INTO dbo.s VALUES (1)")
        assert _row(server, captured) == [0]
        server.capture.hold()
        server.capture.start()
        assert _row(server, captured) == [0]
        server.capture.release()
        while _row(server, captured) == [0]:
            pass


def _row(server: Sandbox, query: str) -> list[Any]:
    (row,) = server.execute(query)[0].to_pylist()
    return list(row.values())


def test_a_sandbox_starts_without_what_takes_longest_to_import() -> None:
    script = "import sys\nfrom airflow_provider_mssql_cdc.sandbox.server import Sandbox\nSandbox().start()\n"
    script += "print({'pandas', 'airflow', 'pyspark'} & set(sys.modules))\nimport os\nsys.stdout.flush()\nos._exit(0)"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout == "set()\n"


def test_the_package_hands_out_the_sandbox_and_its_errors_and_brings_nothing_with_it() -> None:
    script = (
        "import sys\nimport airflow_provider_mssql_cdc.sandbox as package\n"
        "print(sorted({'duckdb', 'pyarrow', 'sqlglot'} & set(sys.modules)))\n"
        "print(*(getattr(package, name).__module__ for name in package.__all__))\n"
        "print(hasattr(package, 'TdsServer'))"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = " ".join(f"airflow_provider_mssql_cdc.sandbox.{name}" for name in ("server", "protocol", "protocol"))
    assert ended.stdout.splitlines() == ["[]", modules, "False"]
