"""One JVM for all tests of a process that ask for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from py4j.java_gateway import JavaGateway

from tests.support.clients.debezium import gateway


@pytest.fixture(scope="session")
def jvm() -> Iterator[JavaGateway]:
    """A JVM with Debezium's connector, and with it mssql-jdbc."""
    with gateway() as jvm:
        yield jvm
