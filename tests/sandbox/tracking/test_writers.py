"""Writers beside readers of changes: versions are drawn in the order in which rows can be seen, and none is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from airflow_provider_mssql_cdc.sandbox import Sandbox
from tests.sandbox.tracking.conftest import net
from tests.sandbox.tsql.conftest import Client

_WRITERS, _COMMITS = 4, 25


def _follow(server: Sandbox) -> None:
    """Let writers write, and meanwhile a reader keep mirrors that go from version to version."""

    def connect() -> Client:
        return Client(server.instance, server.user, server.password)

    def write(number: int) -> None:
        client = connect()
        for value in range(_COMMITS):
            client.run(f"BEGIN TRAN INSERT INTO dbo.w{number} VALUES ({value}, 0)")
            client.run(f"UPDATE dbo.w{number} SET v = v + 1 WHERE id <= {value} COMMIT")
            if value % 5 == 4:
                client.run(f"DELETE FROM dbo.w{number} WHERE id = {value - 1}")
        client.session.close()

    reader = connect()
    for number in range(_WRITERS):
        reader.run(f"CREATE TABLE dbo.w{number} (id int PRIMARY KEY, v int)")
        reader.run(f"ALTER TABLE dbo.w{number} ENABLE CHANGE_TRACKING")
    threads = [threading.Thread(target=write, args=(number,)) for number in range(_WRITERS)]
    for thread in threads:
        thread.start()
    mirrors: list[dict[int, int]] = [{} for _ in range(_WRITERS)]
    reader.run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT")
    last, goes_on = 0, True
    while goes_on:
        goes_on = any(thread.is_alive() for thread in threads)
        reader.run("BEGIN TRAN")
        current = reader.value("CHANGE_TRACKING_CURRENT_VERSION()")
        for number, mirror in enumerate(mirrors):
            rows = reader.run(
                f"SELECT c.SYS_CHANGE_VERSION, c.id, t.id, t.v FROM CHANGETABLE(CHANGES dbo.w{number}, {last}) AS c"
                f" LEFT JOIN dbo.w{number} AS t ON t.id = c.id"
            )
            for version, key, there, value in rows:
                assert last < version <= current
                if there is None:
                    mirror.pop(key, None)
                else:
                    mirror[key] = value
        reader.run("COMMIT")
        last = current
    for thread in threads:
        thread.join()
    assert last == _WRITERS * (_COMMITS + _COMMITS // 5)
    for number, mirror in enumerate(mirrors):
        assert sorted(mirror.items()) == reader.run(f"SELECT id, v FROM dbo.w{number} ORDER BY id")
    reader.session.close()


@pytest.mark.parametrize("by_locks", [False, True])
def test_a_mirror_that_follows_versions_has_every_row(server: Sandbox, by_locks: bool) -> None:
    if by_locks:
        server.execute("ALTER DATABASE shop SET READ_COMMITTED_SNAPSHOT OFF")
    _follow(server)


@pytest.mark.parametrize("seed", range(2))
def test_it_has_them_on_a_harsh_server(seed: int) -> None:
    with Sandbox(harsh=True, seed=seed, clock_rate=50, agent_running=False) as server:
        server.execute("ALTER DATABASE shop SET CHANGE_TRACKING = ON")
        server.execute("ALTER DATABASE shop SET ALLOW_SNAPSHOT_ISOLATION ON")
        server.execute("EXEC sys.sp_cdc_enable_db")
        _follow(server)


def test_versions_follow_commits_not_beginnings(connect: Callable[..., Client]) -> None:
    first, second = connect(), connect()
    first.run("CREATE TABLE dbo.u (id int PRIMARY KEY) ALTER TABLE dbo.u ENABLE CHANGE_TRACKING")
    first.run("BEGIN TRAN INSERT INTO dbo.t VALUES (1, 1)")
    second.run("BEGIN TRAN INSERT INTO dbo.u VALUES (1)")
    second.run("COMMIT")
    assert (second.value("CHANGE_TRACKING_CURRENT_VERSION()"), net(second)) == (1, [])
    first.run("COMMIT")
    assert net(second) == [(2, "I", 1)]
    assert second.run("SELECT SYS_CHANGE_VERSION FROM CHANGETABLE(CHANGES dbo.u, 0) AS c") == [(1,)]
