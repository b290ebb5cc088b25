"""One JVM for all tests of a process that ask for it."""

from __future__ import annotations

from collections.abc import Iterator

import py4j.java_gateway
import py4j.protocol
import pytest
from py4j.java_gateway import JavaGateway

from tests.support.clients.debezium import gateway


@pytest.fixture(scope="session")
def jvm() -> Iterator[JavaGateway]:
    """A JVM with Debezium's connector, and with it mssql-jdbc."""
    with gateway() as jvm:
        yield jvm


@pytest.fixture(autouse=True)
def errors_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    # pyspark asks Spark's JVM about every Java error of the process: about those of this one, too
    monkeypatch.setattr(py4j.java_gateway, "get_return_value", py4j.protocol.get_return_value)
