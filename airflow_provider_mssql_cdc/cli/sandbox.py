"""``mssql-cdc sandbox``: the SQL Server stand-in as a process of its own."""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import signal
import threading
from collections.abc import Iterator
from typing import Any

from airflow_provider_mssql_cdc.cli.exit import EXIT_OK, CommandError
from airflow_provider_mssql_cdc.sandbox import Sandbox, SqlError


@contextlib.contextmanager
def open_sandbox(**options: Any) -> Iterator[Sandbox]:
    """Run a sandbox for the time of a ``with`` statement.

    :param options: those of ``Sandbox``
    :raises CommandError: if the address cannot be listened on, or there is a database of that name
    """
    try:
        sandbox = Sandbox(**options)
    except SqlError as error:
        raise CommandError(str(error)) from error
    try:
        try:
            sandbox.start()
        except OSError as error:
            address = f"{options['host']}:{options['port']}"
            if error.errno == errno.EADDRINUSE:
                raise CommandError(f"{address} is in use; choose another --port, or 0 for a free one") from error
            raise CommandError(f"cannot listen on {address}: {error.strerror or error}") from error
        yield sandbox
    finally:
        sandbox.stop()


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with open_sandbox(
        host=arguments.host,
        port=arguments.port,
        user=arguments.user,
        password=arguments.password,
        database=arguments.database,
        build=arguments.build,
        capture_interval=arguments.capture_interval,
        harsh=arguments.harsh,
        seed=arguments.harsh_seed,
        clock_rate=arguments.clock_rate,
    ) as sandbox:
        if arguments.seed == "shop":
            from airflow_provider_mssql_cdc.cli.demo import shop

            shop.build(sandbox, arguments.database, arguments.rows)
        print(json.dumps(_address(sandbox, arguments.database)), flush=True)
        stop.wait()
    return EXIT_OK


def _address(sandbox: Sandbox, database: str) -> dict[str, str | int]:
    return {
        "host": sandbox.host,
        "port": sandbox.port,
        "user": sandbox.user,
        "password": sandbox.password,
        "database": database,
        "connection": sandbox.connection_uri(database),
        **({"harsh_seed": sandbox.harshness.seed} if sandbox.harshness.points else {}),
    }
