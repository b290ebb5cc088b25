"""A shop for each test: what it holds at a first load, and the changes of one increment."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.clients.drivers_in_process import Driver
from tests.support.clients.shop import Shop


@pytest.fixture
def shop() -> Iterator[Shop]:
    opened = Shop()
    yield opened
    opened.server.stop()


Open = Callable[[type[Driver]], Driver]


@pytest.fixture
def connect(shop: Shop) -> Iterator[Open]:
    opened: list[Driver] = []

    def connect(kind: type[Driver]) -> Driver:
        opened.append(kind(shop.server))
        return opened[-1]

    yield connect
    for each in opened:
        each.close()
