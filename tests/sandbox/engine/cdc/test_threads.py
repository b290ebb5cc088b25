"""Several threads on one database: one scan at a time, and readers that never see half a transaction."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from airflow_provider_mssql_cdc.sandbox.engine.cdc.agent import Agent
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from tests.support.sandbox.engine.cdc.world import INT, World, insert, table

T = table("t", {"id": INT}, key=["id"])
U = table("u", {"id": INT}, key=["id"], object_id=101)


def test_a_second_scan_is_refused() -> None:
    world = World()
    world.db.enable_table(T)
    world.commit(insert(T, (1,)))
    refused: list[int] = []
    clock = world.db._clock

    def scanning_clock() -> object:
        # A scan asks for the time; at this moment it is running.
        world.db._clock = clock
        other = threading.Thread(target=try_to_scan)
        other.start()
        other.join()
        return clock()

    def try_to_scan() -> None:
        with pytest.raises(SqlError) as caught:
            world.db.scan()
        refused.append(caught.value.number)

    world.db._clock = scanning_clock  # type: ignore[assignment]
    assert world.db.scan() == 1
    assert refused == [22903]


@pytest.fixture
def busy() -> Iterator[World]:
    world = World()
    agent = Agent(clock=lambda: world.now, capture_interval=0.0)
    agent.attach(world.db)
    world.db.enable_table(T)
    world.db.enable_table(U)
    agent.start()
    yield world
    agent.stop()


def test_readers_see_whole_transactions_in_all_instances(busy: World) -> None:
    count, rows = 400, 3

    def write() -> None:
        for i in range(count):
            ids = [(i * rows + k,) for k in range(rows)]
            busy.commit(insert(T, *ids), insert(U, *ids))

    writer = threading.Thread(target=write)
    writer.start()
    seen = 0
    while seen < count:
        high = busy.db.max_lsn()
        if high is None:
            continue
        t, u = (busy.rows(name, None, high) for name in ("dbo_t", "dbo_u"))
        mapped = [row for row in busy.relation("lsn_time_mapping") if row["start_lsn"] <= high]
        seen = sum(row["tran_id"] != b"\0" for row in mapped)
        assert [row["id"] for row in t] == [row["id"] for row in u] == list(range(seen * rows))
    writer.join()
