"""A PostgreSQL for the time of the demo: the machine's own programs, and a data folder of its own."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import pwd
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from airflow_provider_mssql_cdc.cli.demo.processes import Children
from airflow_provider_mssql_cdc.cli.exit import CommandError

if TYPE_CHECKING:
    import psycopg

LOGIN = "loader"

_DATABASE = "postgres"
_ACCOUNT = "postgres"
_DEBIANS = Path("/usr/lib/postgresql")
_TIMEOUT = 60.0
_POLL = 0.05
# The server ends with the standard input, and so with who started it, however that ends; a folder may go with it.
_SERVE = """
folder=$1; shift; exec 3<&0
"$@" 3<&- & server=$!
{ read -r _; kill -QUIT $server; } <&3 &
wait $server; rm -rf -- "$folder"; kill $! 2>/dev/null
"""
_SETTINGS = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off", "shared_buffers": "32MB"}
_TYPES = {
    "bool": pa.bool_(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float8": pa.float64(),
    "text": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}


def find_programs() -> Path | None:
    """The folder of PostgreSQL's programs: that of the PATH, else Debian's newest."""
    found = sorted(_DEBIANS.glob("*/bin/initdb"), key=lambda path: _version(path.parts[-3]))
    program = shutil.which("initdb") or (found[-1] if found else None)
    return None if program is None else Path(program).resolve().parent


def _version(name: str) -> list[int]:
    # 9.6 as well as 15; a folder without a number comes before all others
    return [int(number) for number in re.findall(r"\d+", name)]


def account() -> str | None:
    """The user to run it as: it refuses to run as root, and Debian's package makes this one; None for our own.

    :raises KeyError: if root has nobody to run it as
    """
    return pwd.getpwnam(_ACCOUNT).pw_name if os.getuid() == 0 else None


def missing() -> str | None:
    """Why no PostgreSQL can be had here; None if one can."""
    if find_programs() is None:
        return f"PostgreSQL's initdb is neither in {_DEBIANS} nor on the PATH"
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is not installed (pip install 'airflow-provider-mssql-cdc[postgresql]')"
    try:
        account()
    except KeyError:
        return f"PostgreSQL does not run as root, and there is no user {_ACCOUNT}"
    return None


def free_port() -> int:
    """A port of the loopback interface that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def initialize(folder: Path, login: str, password: str, *options: str) -> Path:
    """Make a data folder, in an empty one that is handed to whom the server runs as.

    :param login: the superuser
    :param options: of initdb
    :return: the data folder
    :raises CommandError: if initdb fails
    """
    programs, user, data = find_programs(), account(), folder / "data"
    assert programs is not None
    file = folder / "password"
    file.touch(mode=0o600)
    file.write_text(password)
    if user is not None:
        for path in (folder, file):
            shutil.chown(path, user)
    words = ("--auth=scram-sha-256", f"--username={login}", f"--pwfile={file}", "--no-sync", "--encoding=UTF8")
    done = subprocess.run(
        [programs / "initdb", "-D", data, *words, *options],
        user=user,
        group=user,
        extra_groups=[] if user else None,
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    file.unlink()
    if done.returncode:
        raise CommandError(f"PostgreSQL's initdb failed: {' '.join(done.stderr.split())}")
    return data


def command(data: Path, settings: Mapping[str, object], folder: Path | None = None) -> list[str]:
    """What runs a server until its standard input ends; to be run as :func:`account`.

    :param settings: of postgresql.conf
    :param folder: is removed when the server has ended
    """
    given = [f"--{name}={value}" for name, value in settings.items()]
    removed = "" if folder is None else str(folder)
    return ["/bin/sh", "-c", _SERVE, "sh", removed, f"{find_programs()}/postgres", "-D", str(data), *given]


def wait(connect: Callable[[], psycopg.Connection[Any]], process: subprocess.Popen[Any], log: Path) -> None:
    """Wait until a server takes connections.

    :param process: that runs it
    :raises CommandError: if it ends before, or takes too long
    """
    import psycopg

    deadline = time.monotonic() + _TIMEOUT
    while True:
        try:
            connect().close()
        except psycopg.OperationalError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise CommandError(f"PostgreSQL could not be started; see {log}") from error
            time.sleep(_POLL)
        else:
            return


class PostgreSql:
    """A server with one database.

    :param password: of the login, which may do everything
    """

    def __init__(self, port: int, password: str) -> None:
        self.port, self.password = port, password

    @property
    def connection(self) -> str:
        """The Airflow connection, as its environment variable holds it."""
        return json.dumps(
            {
                "conn_type": "postgres",
                "host": "127.0.0.1",
                "port": self.port,
                "login": LOGIN,
                "password": self.password,
                "schema": _DATABASE,
                "extra": {"sslmode": "disable"},
            }
        )

    def read(self, query: str) -> pa.Table:
        """The rows of a query, in the types that the columns have.

        :raises KeyError: for a type that the demo has none for
        """
        with self.connect() as connection:
            cursor = connection.execute(query)
            schema = pa.schema([(column.name, _arrow(column)) for column in cursor.description or ()])
            columns = zip(*cursor.fetchall(), strict=True)
            values = list(columns) or [()] * len(schema)
        return pa.table([pa.array(each, field.type) for each, field in zip(values, schema, strict=True)], schema=schema)

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection as that login."""
        import psycopg

        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=LOGIN, password=self.password, dbname=_DATABASE, sslmode="disable"
        )


@contextlib.contextmanager
def running(children: Children, log: Path) -> Iterator[PostgreSql]:
    """Run a server for the time of a ``with`` statement.

    :param children: end it, too, when they end
    :raises CommandError: if it cannot be started
    """
    # where another user may come, too
    with tempfile.TemporaryDirectory(prefix="mssql-cdc-demo-", dir="/tmp") as folder:
        server = PostgreSql(free_port(), secrets.token_urlsafe())
        data = initialize(Path(folder), LOGIN, server.password, "--locale=C")
        process = children.start(
            command(data, {**_SETTINGS, "port": server.port}, Path(folder)),
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            log=log,
            cwd=Path("/"),
            ask=True,
            user=account(),
        )
        try:
            wait(server.connect, process, log)
            yield server
        finally:
            # else its folder would go while it writes there
            if process.stdin is not None:
                process.stdin.close()
            process.wait()


def _arrow(column: psycopg.Column) -> pa.DataType:
    import psycopg

    if column.type_code == psycopg.adapters.types["numeric"].oid:
        return pa.decimal128(column.precision, column.scale)
    return _TYPES[psycopg.adapters.types[column.type_code].name]
