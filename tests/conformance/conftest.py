"""A server for each test process, and a database for each test."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support.conformance.database import Database
from tests.support.conformance.servers import REAL_SERVER, Embedded, Real, Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The SQL Server that the environment names, or else a sandbox."""
    uri = os.environ.get(REAL_SERVER)
    opened = Real(uri) if uri else Embedded()
    yield opened
    opened.close()


@pytest.fixture
def plain(server: Server) -> Iterator[Database]:
    """A database without CDC."""
    server.begin()
    database = Database(server)
    yield database
    database.close()


@pytest.fixture
def db(plain: Database) -> Database:
    """A database with CDC and without tables."""
    plain.enable()
    return plain


@pytest.fixture
def t(db: Database) -> Database:
    """A database whose table dbo.t (id, a, b) is tracked, with net changes."""
    db.run("CREATE TABLE dbo.t (id int NOT NULL CONSTRAINT pk_t PRIMARY KEY, a varchar(10) NULL, b int NULL)")
    db.track("t", supports_net_changes=1)
    return db
