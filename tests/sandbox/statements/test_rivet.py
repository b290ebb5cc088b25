"""rivet reads a shop: an anchor, a first load in pages, and polls of a capture instance."""

from __future__ import annotations

import pytest

from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from tests.sandbox.statements.conftest import Open
from tests.support.clients import rivet
from tests.support.clients.drivers_in_process import Tiberius
from tests.support.clients.shop import ITEMS, ORDERS, Shop, held, hexadecimal

QUERY = {"query": "SELECT * FROM dbo.orders"}


@pytest.fixture
def tiberius(connect: Open) -> Tiberius:
    return connect(Tiberius)


def test_connection_and_health(shop: Shop, tiberius: Tiberius) -> None:
    assert tiberius.query(rivet.CONNECT) == [(1,)]
    one, other = tiberius.query(rivet.SESSION), tiberius.query(rivet.SESSION)
    assert one == other  # else something between would hand statements to several sessions
    assert tiberius.query(rivet.EDITION) == [(3,)]
    assert "azure" not in tiberius.query(rivet.BANNER)[0][0].lower()
    number, edition, *rest = [tiberius.query(text)[0][0] for text in rivet.CONTEXT]
    assert (number.partition(".")[0], edition) == ("16", "Developer Edition (64-bit)")
    assert rest == ["-1", "32767", "SQL_Latin1_General_CP1_CI_AS"]
    assert tiberius.query(rivet.MAY_SEE_WAITS) == [(1,)]
    assert tiberius.query(rivet.AGENT) == [("Running",)]
    assert tiberius.query(rivet.MIN_LSN, ORDERS) == [(hexadecimal(shop.first_lsn(ORDERS)),)]
    assert tiberius.query(rivet.MIN_LSN, "unknown") == [("0x00000000000000000000",)]


def test_first_load(shop: Shop, tiberius: Tiberius) -> None:
    rows = held(shop.content.orders)
    assert tiberius.query(rivet.MAX_LSN) == [(hexadecimal(shop.lsns[-1]),)]
    assert tiberius.query(rivet.DECIMALS.format(schema="dbo", table="orders")) == [("amount", 9, 2)]
    assert tiberius.query(rivet.SHAPE.format(**QUERY)) == []
    assert tiberius.names == ["id", "customer", "amount", "placed"]
    assert tiberius.query(rivet.LOCK_TIMEOUT.format(milliseconds=30_000)) == []
    assert tiberius.query(rivet.PAGE.format(key="id", size=2, **QUERY)) == rows[:2]
    assert tiberius.query(rivet.NEXT_PAGE.format(key="id", size=2, last=2, **QUERY)) == rows[2:]
    assert tiberius.query(rivet.NEXT_PAGE.format(key="id", size=2, last=3, **QUERY)) == []
    assert tiberius.query(rivet.LOCK_TIMEOUT.format(milliseconds=-1)) == []
    assert tiberius.query(rivet.BY_CURSOR.format(key="placed", **QUERY)) == rows
    last = shop.content.orders[1][-1].isoformat(timespec="milliseconds")
    assert tiberius.query(rivet.BEHIND_CURSOR.format(key="placed", last=last, **QUERY)) == rows[2:]


def test_key(shop: Shop, tiberius: Tiberius) -> None:
    assert tiberius.query(rivet.KEY.format(table="sales.items")) == [("order_id\x1fline",)]
    assert tiberius.query(rivet.KEY.format(table="dbo.labels")) == [(None,)]


def test_polls(shop: Shop, tiberius: Tiberius) -> None:
    anchor, since = shop.lsns[-1], len(shop.content.times)
    shop.go_on()
    for instance, source in ((ORDERS, ("dbo", "orders")), (ITEMS, ("sales", "items"))):
        assert tiberius.query(rivet.CAPTURED.format(instance=instance)) == [(f"{source[1]}:4/4",)]
        assert tiberius.query(rivet.SOURCE, instance) == [source]
        ((upto,),) = tiberius.query(rivet.MAX_LSN)
        rows = shop.function_rows(instance, since=since)
        expected, found, after, pinned = held(rows) if instance == ORDERS else rows, [], anchor.hex(), True
        while part := tiberius.batch(rivet.poll(instance, after, size=1, upto=upto[2:], pinned=pinned)):
            assert len({row[0] for row in part}) == 1  # one transaction, and all of it
            found += part
            after, pinned = part[-1][0].hex(), False
        assert found == expected
        everything = shop.function_rows(instance)
        everything = held(everything) if instance == ORDERS else everything
        assert tiberius.batch(rivet.poll(instance, None, size=500)) == everything


def test_a_position_that_was_purged(shop: Shop, tiberius: Tiberius) -> None:
    """An anchor may lie before the instance; a position that was read up to may not."""
    early = (1).to_bytes(10).hex()
    everything = held(shop.function_rows(ORDERS))
    assert tiberius.batch(rivet.poll(ORDERS, early, size=500, pinned=True)) == everything
    with pytest.raises(SqlError, match="the resume position is older than") as raised:
        tiberius.batch(rivet.poll(ORDERS, early, size=500))
    assert raised.value.number == 51000
