"""Python clients of SQL Server behind one small interface, each with what it cannot do itself."""

from __future__ import annotations

import contextlib
import datetime
import re
import struct
import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pymssql
import pytest
import sqlalchemy

from airflow_provider_mssql_cdc.sandbox import Sandbox

FREETDS = "libtdsodbc.so"
DATETIMEOFFSET = -155

Row = tuple[Any, ...]
Encrypt = Literal["all", "login", "nothing"]
FREETDS_WORDS = {"all": "require", "login": "request", "nothing": "off"}


class Client(ABC):
    """One connection.

    :param encrypt: all of it, the login alone, or nothing
    :param timeout: seconds after which the client cancels a statement, 0 for never
    """

    mark = "?"
    usable_after_timeout = True
    tells_numbers = True

    def __init__(self, server: Sandbox, *, port: int = 0, encrypt: Encrypt = "all", timeout: int = 0) -> None:
        self.server, self.port, self.encrypt, self.timeout = server, port or server.port, encrypt, timeout
        self.connection = self.connect()

    @abstractmethod
    def connect(self) -> Any:
        """Open a connection."""

    def run(self, sql: str, *parameters: Any) -> list[Row]:
        """The rows of a statement, none where it has no result; each ``?`` stands for a parameter."""
        cursor = self.connection.cursor()
        cursor.execute(sql.replace("?", self.mark), *([tuple(map(self.sent, parameters))] if parameters else []))
        rows = [tuple(row) for row in cursor.fetchall()] if cursor.description else []
        cursor.close()
        return rows

    def run_many(self, sql: str, rows: Sequence[Row]) -> None:
        """Run a statement once for each row of parameters."""
        cursor = self.connection.cursor()
        cursor.executemany(sql.replace("?", self.mark), [tuple(map(self.sent, row)) for row in rows])
        cursor.close()

    def first(self, sql: str) -> Row:
        """The first row of a statement; the others stay unread."""
        cursor = self.connection.cursor()
        cursor.execute(sql)
        row = tuple(cursor.fetchone())
        cursor.close()
        return row

    def value(self, sql: str, *parameters: Any) -> Any:
        """The only value of a statement."""
        ((value,),) = self.run(sql, *parameters)
        return value

    def error(self, sql: str, *parameters: Any) -> tuple[int | None, str]:
        """Number and text of the error that a statement must end with."""
        with pytest.raises(self.error_type) as raised:
            self.run(sql, *parameters)
        return self.told(raised.value)

    error_type: type[Exception]

    @abstractmethod
    def told(self, error: Any) -> tuple[int | None, str]:
        """Number and text of an error; None where the client keeps the number to itself."""

    def sent(self, value: Any) -> Any:
        """A parameter as this client wants it."""
        return value

    def seen(self, value: Any) -> Any:
        """A value as this client shows it."""
        return value

    def commit(self) -> None:
        """Commit."""
        self.connection.commit()

    def rollback(self) -> None:
        """Roll back."""
        self.connection.rollback()

    def close(self) -> None:
        """End the connection."""
        with contextlib.suppress(Exception):
            self.connection.close()


class Pymssql(Client):
    """pymssql, which has FreeTDS inside and writes parameters into the text."""

    mark = "%s"
    usable_after_timeout = False
    error_type = pymssql.Error

    def connect(self) -> Any:
        return pymssql.connect(
            server=self.server.host,
            port=str(self.port),
            user=self.server.user,
            password=self.server.password,
            database=self.server.database,
            timeout=self.timeout,
            encryption=FREETDS_WORDS[self.encrypt],
        )

    def close(self) -> None:
        super().close()
        if self.timeout:
            # DB-Library has one timeout for all connections of a process, and keeps it
            with contextlib.closing(
                pymssql._mssql.connect(self.server.host, self.server.user, self.server.password, port=str(self.port))
            ) as connection:
                connection.query_timeout = 0

    def sent(self, value: Any) -> Any:
        return bytearray(value) if isinstance(value, bytes) else value

    def told(self, error: Any) -> tuple[int | None, str]:
        number, text = error.args
        return number, text.decode().partition("DB-Lib error message")[0]


class SqlAlchemy(Pymssql):
    """SQLAlchemy over pymssql."""

    error_type = sqlalchemy.exc.DBAPIError

    def connect(self) -> Any:
        url = sqlalchemy.URL.create(
            "mssql+pymssql",
            self.server.user,
            self.server.password,
            self.server.host,
            self.port,
            self.server.database,
        )
        options = {"timeout": self.timeout, "encryption": FREETDS_WORDS[self.encrypt]}
        self.engine = sqlalchemy.create_engine(url, connect_args=options, poolclass=sqlalchemy.NullPool)
        return self.engine.connect()

    def _result(self, sql: str, rows: Row | list[Row] = ()) -> Any:
        names = iter(range(sql.count("?")))
        text = sqlalchemy.text(re.sub(r"\?", lambda _: f":p{next(names)}", sql.replace(":", "\\:")))
        each = rows if isinstance(rows, list) else [rows]
        bound = [{f"p{i}": self.sent(value) for i, value in enumerate(row)} for row in each]
        return self.connection.execute(text, bound if isinstance(rows, list) else bound[0])

    def run(self, sql: str, *parameters: Any) -> list[Row]:
        result = self._result(sql, parameters)
        return [tuple(row) for row in result] if result.returns_rows else []

    def run_many(self, sql: str, rows: Sequence[Row]) -> None:
        self._result(sql, list(rows))

    def first(self, sql: str) -> Row:
        result = self.connection.execution_options(stream_results=True).execute(sqlalchemy.text(sql))
        row = tuple(result.fetchone())
        result.close()
        return row

    def told(self, error: Any) -> tuple[int | None, str]:
        return super().told(error.orig)


class MssqlPython(Client):
    """mssql-python, which has Microsoft's ODBC driver inside."""

    tells_numbers = False

    def connect(self) -> Any:
        module = pytest.importorskip("mssql_python")
        if self.encrypt == "nothing":
            pytest.skip("mssql-python encrypts the login always")
        self.error_type = module.Error
        connection = module.connect(
            f"SERVER={self.server.host},{self.port};DATABASE={self.server.database};"
            f"UID={self.server.user};PWD={{{self.server.password}}};"
            f"Encrypt={'yes' if self.encrypt == 'all' else 'no'};TrustServerCertificate=yes"
        )
        connection.timeout = self.timeout
        return connection

    def told(self, error: Any) -> tuple[int | None, str]:
        return None, error.ddbc_error.removeprefix("[Microsoft]").removeprefix("[SQL Server]")


class PyodbcFreetds(Client):
    """pyodbc with the FreeTDS driver of Debian."""

    def connect(self) -> Any:
        driver = next(Path("/usr/lib").glob(f"*/odbc/{FREETDS}"), None)
        try:
            import pyodbc
        except ImportError as error:
            pytest.skip(f"pyodbc needs the Debian package libodbc2: {error}")
        if driver is None:
            pytest.skip(f"there is no {FREETDS}: the Debian package tdsodbc has it")
        self.error_type = pyodbc.Error
        connection = pyodbc.connect(
            f"DRIVER={driver};SERVER={self.server.host};PORT={self.port};DATABASE={self.server.database};"
            f"UID={self.server.user};PWD={{{self.server.password}}};TDS_Version=7.4;"
            f"Encryption={FREETDS_WORDS[self.encrypt]}"
        )
        connection.timeout = self.timeout
        connection.add_output_converter(DATETIMEOFFSET, _datetimeoffset)
        return connection

    def told(self, error: Any) -> tuple[int | None, str]:
        found = re.match(r"\[\w+\] \[FreeTDS\]\[SQL Server\](.*) \((\d+)\) \(\w+\)", error.args[1], re.DOTALL)
        assert found, error
        return int(found[2]), found[1]

    def seen(self, value: Any) -> Any:
        return str(value).upper() if isinstance(value, uuid.UUID) else value


def _datetimeoffset(data: bytes) -> datetime.datetime:
    """SQL_SS_TIMESTAMPOFFSET_STRUCT, which pyodbc leaves to its user."""
    *parts, nanoseconds, hours, minutes = struct.unpack("<6hI2h", data)
    zone = datetime.timezone(datetime.timedelta(hours=hours, minutes=minutes))
    return datetime.datetime(*parts, nanoseconds // 1000, tzinfo=zone)


CLIENTS: tuple[type[Client], ...] = (Pymssql, SqlAlchemy, MssqlPython, PyodbcFreetds)
