"""A backend with canned replies: what the wire's tests run against."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.protocol import (
    BulkLoad,
    Column,
    IsolationLevel,
    Login,
    Outcome,
    Parameter,
    ResultSet,
    ReturnStatus,
    ReturnValue,
    RowCount,
    SqlError,
    TransactionChanged,
)

Script = Callable[["ToySession"], Iterator[Outcome]]

PASSWORD = "pässwörd €😀"
SP_EXECUTESQL = 10


def result(columns: list[Column], *batches: pa.RecordBatch) -> Iterator[Outcome]:
    """A result set and the end of its statement."""
    yield ResultSet(columns, iter(batches))
    yield RowCount()


def record_batch(columns: list[Column], *values: list[Any]) -> pa.RecordBatch:
    """A batch of the columns' Arrow types."""
    arrays = [pa.array(items, column.type.arrow) for column, items in zip(columns, values, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[str(place) for place in range(len(arrays))])


def arrow_value(parameter: Parameter) -> Any:
    """A parameter's value as pyarrow takes it."""
    if parameter.type.name == "datetimeoffset" and parameter.value is not None:
        return dict(zip(("utc_ticks", "offset_minutes"), parameter.value, strict=True))
    return parameter.value


class ToyBackend:
    """Answers a batch by the script of its text; any other text succeeds without rows.

    sp_executesql runs its text alike; ``echo`` returns the parameters after the second as one row.
    """

    server_name = "TOY"
    version = (16, 0, 4135)

    def __init__(self, scripts: dict[str, Script] | None = None) -> None:
        self.scripts = scripts or {}
        self.sessions: list[ToySession] = []
        self.texts: list[str] = []
        self.calls: list[tuple[str | int, list[Parameter]]] = []
        self.requests: list[tuple[Any, ...]] = []

    def login(self, login: Login) -> ToySession:
        if login.password != PASSWORD:
            raise SqlError(18456, "wrong password", severity=14)
        if login.database not in ("", "master", "shop"):
            text = f'Cannot open database "{login.database}" requested by the login. The login failed.'
            raise SqlError(4060, text, severity=11)
        self.sessions.append(ToySession(self, login))
        return self.sessions[-1]


class ToySession:
    """One connection to a toy backend."""

    def __init__(self, backend: ToyBackend, login: Login) -> None:
        self.backend, self.login = backend, login
        self.database, self.language = login.database or "master", login.language or "us_english"
        self.cancelled = threading.Event()
        self.closed = threading.Event()
        self.resets = 0

    def batch(self, text: str) -> Iterator[Outcome]:
        self.cancelled.clear()
        self.backend.texts.append(text)
        script = self.backend.scripts.get(text.strip())
        return script(self) if script else iter([RowCount()])

    def rpc(self, procedure: str | int, parameters: list[Parameter]) -> Iterator[Outcome]:
        self.cancelled.clear()
        self.backend.calls.append((procedure, parameters))
        if procedure == SP_EXECUTESQL and parameters[0].value.strip().startswith("echo"):
            columns = [Column(item.name, item.type) for item in parameters[2:]]
            row = record_batch(columns, *([arrow_value(item)] for item in parameters[2:]))
            yield from result(columns, row)
        elif procedure == SP_EXECUTESQL:
            yield from self.batch(parameters[0].value)
        yield ReturnStatus(0)
        for ordinal, item in enumerate(parameters):
            if item.output:
                yield ReturnValue(item.name, item.type, item.value, ordinal)

    def begin(self, isolation: IsolationLevel, name: str) -> Iterator[Outcome]:
        self.backend.requests.append(("begin", isolation, name))
        yield TransactionChanged("begin", 0x1122334455667788)

    def commit(self, name: str) -> Iterator[Outcome]:
        self.backend.requests.append(("commit", name))
        yield TransactionChanged("commit", 0x1122334455667788)

    def rollback(self, name: str) -> Iterator[Outcome]:
        self.backend.requests.append(("rollback", name))
        yield TransactionChanged("rollback", 0x1122334455667788)

    def save(self, name: str) -> Iterator[Outcome]:
        self.backend.requests.append(("save", name))
        yield RowCount()

    def bulk(self, read: Callable[[], BulkLoad]) -> Iterator[Outcome]:
        columns, rows = read()
        self.backend.requests.append(("bulk", columns, [*rows]))
        yield RowCount()

    def discard_bulk(self) -> None:
        """There is nothing to discard."""

    def cancel(self) -> None:
        self.cancelled.set()

    def reset(self) -> None:
        self.resets += 1

    def close(self) -> None:
        self.closed.set()
