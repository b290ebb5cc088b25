"""The sandbox as one object: a SQL Server stand-in on a port of the loopback interface."""

from __future__ import annotations

import contextvars
import dataclasses
import datetime
import secrets
import urllib.parse
from collections.abc import Callable, Collection, Iterable
from types import TracebackType
from typing import Any, Literal

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.collations import comparing
from airflow_provider_mssql_cdc.sandbox.collations.names import DEFAULT, named
from airflow_provider_mssql_cdc.sandbox.engine.backup import Backup, backup, restore
from airflow_provider_mssql_cdc.sandbox.engine.builds import EditionName
from airflow_provider_mssql_cdc.sandbox.engine.cdc.agent import Agent
from airflow_provider_mssql_cdc.sandbox.engine.clock import Clock
from airflow_provider_mssql_cdc.sandbox.engine.harshness import Harshness, Point
from airflow_provider_mssql_cdc.sandbox.engine.instance import SERVER_NAME, Instance
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database
from airflow_provider_mssql_cdc.sandbox.engine.supply import Supply
from airflow_provider_mssql_cdc.sandbox.engine.tracking.cleanup import clean
from airflow_provider_mssql_cdc.sandbox.engine.tracking.state import ChangeTracking
from airflow_provider_mssql_cdc.sandbox.engine.visibility import Visibility
from airflow_provider_mssql_cdc.sandbox.faults import Faults
from airflow_provider_mssql_cdc.sandbox.protocol import Login, Message, ResultSet, Session, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.session import SqlSession
from airflow_provider_mssql_cdc.sandbox.wire.listener import TdsServer


class _Backend:
    """What the wire asks of the instance."""

    server_name = SERVER_NAME

    def __init__(self, instance: Instance, faults: Faults) -> None:
        self._instance, self._faults = instance, faults

    @property
    def version(self) -> tuple[int, int, int]:
        """Major, minor and build, as they are now."""
        return self._instance.version.number

    def login(self, login: Login) -> Session:
        return SqlSession(self._instance, login, self._faults)


class Sandbox:
    """An embedded SQL Server stand-in with CDC that real clients connect to.

    A test tool, not a database: everything is in memory and gone when it stops. What it does not simulate it refuses.

    :param host: address to listen on
    :param port: 0 for a free one; ``port`` names it after the start
    :param user: the sysadmin login
    :param password: its password; made up if None
    :param database: a database to create at start, None for none
    :param capture_interval: seconds between log scans of the capture job; None takes the job's polling interval
    :param agent_running: whether SQL Server Agent runs, and with it the capture and cleanup jobs
    :param encryption: ``off`` encrypts the login, and the rest if the client asks for it; ``on`` encrypts everything
    :param build: of SQL Server: 2019, 2022, 2025, or 2016 as it was before the update that brings ``__$command_id``
        (see ``upgrade``)
    :param clock: the server's local time, naive, or the time with a zone; UTC by default, or the local time of ``zone``
    :param clock_rate: seconds of the server's clock in one second: above 1 the clock runs fast, and with it all that
        waits for it; not together with a clock of one's own
    :param utc_offset: of the local time, in minutes
    :param zone: IANA name of the zone of the server's clock, instead of an offset: it follows summer time, so that an
        hour is repeated in autumn
    :param harsh: do what SQL Server only may do where a loader's mistake could hide, as the seed draws it: all of
        ``harshness.Point``, or the points that are given
    :param seed: of what is drawn; made up if None
    :param edition: Express has neither CDC nor SQL Server Agent, whatever ``agent_running`` says
    :ivar faults: what goes wrong for its clients
    :ivar harshness: the seed and its draws
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        user: str = "sa",
        password: str | None = None,
        database: str | None = "shop",
        capture_interval: float | None = 0.2,
        agent_running: bool = True,
        encryption: Literal["off", "on"] = "off",
        build: str | int = "2022",
        clock: Callable[[], datetime.datetime] | None = None,
        clock_rate: float = 1.0,
        utc_offset: int = 0,
        zone: str | None = None,
        harsh: bool | Collection[Point] = False,
        seed: int | None = None,
        edition: EditionName = "Developer",
    ) -> None:
        if not user or password == "":
            raise ValueError("user and password must not be empty")
        if clock_rate <= 0 or (clock is not None and clock_rate != 1):
            raise ValueError("clock_rate is above 0, and 1 for a clock of one's own")
        self.host, self.user = host, user
        self.password = password if password is not None else secrets.token_hex(16)
        self.database = database
        self._agent_running = agent_running and edition != "Express"
        self._clock = Clock(clock or _clock_of(clock_rate, zone), utc_offset, zone)
        points = (tuple(Point) if harsh else ()) if isinstance(harsh, bool) else harsh
        self.harshness = Harshness(secrets.randbelow(1_000_000) if seed is None else seed, points)
        self.instance = Instance(
            user, self.password, self._clock, capture_interval, str(build), self.harshness, clock_rate, edition
        )
        self.instance.supply.run = self._run_meanwhile
        self.faults = Faults(self.cdc)
        self._server = TdsServer(_Backend(self.instance, self.faults), host=host, port=port, encryption=encryption)
        if database is not None:
            self.instance.create_database(database)

    def __enter__(self) -> Sandbox:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Listen, and start the Agent."""
        self._server.start()
        if self._agent_running:
            self.instance.agent.start()

    def stop(self) -> None:
        """End all connections, stop the Agent, and forget everything."""
        self._server.stop()
        self.instance.close()

    def restart(self) -> None:
        """Restart the server on its port, and with it an Agent that runs: connections end, open transactions are lost.

        What is committed stays, and can be seen. The certificate is a new one.
        """
        self._restart(self.instance.restart)

    def upgrade(self) -> None:
        """Install the update that brings ``__$command_id`` on a server of build 2016, which restarts it.

        The column is added to all change tables, NULL in their rows; what is captured from then on has numbers (docs:
        KB3030352, sys.sp_cdc_vupgrade).

        :raises ValueError: where there is no such update: on other builds, a second time, and in an availability group,
            where it leaves change tables as they are
        """
        self.instance.check_upgrade()

        def install() -> None:
            self.instance.upgrade()
            self.instance.restart()

        self._restart(install)

    def _restart(self, meanwhile: Callable[[], None]) -> None:
        serves, agent_runs = self._server.running, self.capture.running
        self.visibility.release()
        self._server.stop()
        self.capture.stop()
        meanwhile()
        if serves:
            self._server.start()
        if agent_runs:
            self.capture.start()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._server.port

    @property
    def capture(self) -> Agent:
        """SQL Server Agent: ``stop`` and ``start`` it, or ``hold`` and ``release`` the jobs that it runs by itself."""
        return self.instance.agent

    @property
    def visibility(self) -> Visibility:
        """When the rows of commits can be seen: ``hold`` and ``release`` them."""
        return self.instance.storage.visibility

    @property
    def authority_path(self) -> str:
        """The PEM file of the authority that signed the server's certificate."""
        return str(self._server.authority_path)

    def connection_uri(self, database: str | None = None) -> str:
        """An Airflow connection URI of type mssql; it trusts a certificate that nobody has signed."""
        name = database or self.database or "master"
        user, password = (urllib.parse.quote(text, safe="") for text in (self.user, self.password))
        address = f"{self.host}:{self.port}/{urllib.parse.quote(name, safe='')}"
        return f"mssql://{user}:{password}@{address}?trustServerCertificate=true"

    def create_database(self, name: str, collation: str = DEFAULT) -> None:
        """Create an empty database, as CREATE DATABASE does.

        :param collation: of its texts, where a column has none of its own; one of those that are simulated
        """
        self.instance.create_database(name, named(collation).name)

    def backup(self, database: str | None = None) -> Backup:
        """Keep a database as it is now: its rows, its log and all of CDC.

        :raises SqlError: 1222 where a transaction that has written to it stays open
        """
        return backup(self.instance.storage, self._database(database))

    def restore(self, database: str | None, kept: Backup, *, keep_cdc: bool = False) -> None:
        """Take a database back to a backup, or make a new one of it: sessions stay connected.

        LSNs are given out again from there on, and ``recovery_fork_guid`` is a new one. Under the name it was taken
        from, CDC and its jobs stay.

        :param database: created if there is none of that name
        :param keep_cdc: as the option KEEP_CDC: under another name CDC is gone without it, and with it the jobs are
            still to be added
        :raises SqlError: 1222 where a transaction that has written to the database stays open
        """
        name = database or self.database or "master"
        if name.casefold() not in self.instance.storage.databases:
            self.instance.create_database(name)
        restore(self.instance.storage, self._database(name), kept, keep_cdc=keep_cdc)

    def cdc(self, database: str | None = None) -> Any:
        """A database's CDC core, for tests that look behind the SQL."""
        return self._database(database).cdc

    def set_time(self, now: datetime.datetime | None) -> None:
        """Let the server's clock stand still at a time.

        :param now: local to the server, naive (with ``fold`` for the second pass of a repeated hour), or with a zone;
            None lets the clock go on
        """
        self._clock.stand_at(now)

    def step_clock(self, seconds: float) -> None:
        """Set the server's clock forward, or back with a number below 0: it goes on, or stands still, from there.

        The zone stays as it is, as where a clock is corrected.
        """
        self._clock.step(datetime.timedelta(seconds=seconds))

    def step(self, database: str | None = None, *, within: Callable[[str], None] | None = None) -> int:
        """One log scan now, also while the capture is held; how many transactions it took.

        :param within: called after each write to a table of schema cdc, while nothing is committed, with its name in
            lower case: what clients do meanwhile. A reader that waits lets the scan end
        """
        return self.instance.agent.step(self._database(database).cdc, within=within)

    def cleanup(
        self,
        database: str | None = None,
        *,
        between: Callable[[], None] = lambda: None,
        within: Callable[[str], None] | None = None,
    ) -> None:
        """One run of the cleanup job now, also while it is held: what is older than its retention goes.

        On a harsh server the run may stop on its way; the next one does the rest.

        :param between: called between two steps of the run, for what clients do meanwhile; see ``Faults.cleanup``
        :param within: called after each write of a step, while that is not committed; see ``step``
        :raises SqlError: 22910, 22997 without CDC or without the job
        """
        self._database(database).cdc.cleanup_retention(between=between, within=within)

    def tracking(self, database: str | None = None) -> ChangeTracking:
        """A database's Change Tracking, for tests that look behind the SQL: ``switches``, ``secondary``."""
        return self._database(database).tracking

    def clean_tracking(self, database: str | None = None, *, between: Callable[[], None] = lambda: None) -> None:
        """One run of Change Tracking's cleanup now: what is older than the retention goes, if AUTO_CLEANUP is ON.

        It never runs by itself here, but between two reads of a harsh server.

        :param between: called when the marks have moved and the rows are still there, and after each table
        """
        found = self._database(database)
        if found.tracking.options is not None and found.tracking.options.auto_cleanup:
            clean(self.instance.storage, found, between=between)

    def _database(self, name: str | None) -> Database:
        return self.instance.storage.database(name or self.database or "master")

    def execute(self, sql: str, database: str | None = None) -> list[pa.Table]:
        """Run a batch as the sysadmin, without the network; its result sets, by column name.

        :raises SqlError: the first error
        """
        return self._execute(database or self.database or "master", sql)

    def _execute(self, database: str, *batches: str) -> list[pa.Table]:
        """Run batches in a session of their own; the result sets of the last one."""
        session = SqlSession(self.instance, Login(self.user, self.password, database))
        try:
            return [_collected(session.batch(sql)) for sql in batches][-1]
        finally:
            session.close()

    def meanwhile(self, statements: Iterable[str], database: str | None = None) -> Supply:
        """Hand a harsh server what other sessions do: it runs each of them once, between two reads, as its seed draws.

        They run in their order, each in a session of the sysadmin's own, within the thread of the session that reads:
        with LOCK_TIMEOUT 0 and XACT_ABORT ON. One that would have to wait for a lock, the reader's own or another's,
        gets error 1222, stays the next one, and is tried again before a later read. So each is one statement, or one
        transaction from its begin to its end, and none may wait for anything else, as for other connections to end.

        A plain server draws none: all are left.

        :param statements: batches of T-SQL; they follow those that were handed before
        :returns: what is ``left`` of all that were handed, and ``finish``, which runs it
        """
        self.instance.supply.add(statements, database or self.database or "master")
        return self.instance.supply

    def _run_meanwhile(self, sql: str, database: str, waits: bool) -> None:
        settings = "SET XACT_ABORT ON" if waits else "SET XACT_ABORT ON SET LOCK_TIMEOUT 0"
        # the reader goes on with the collation of its own database
        contextvars.copy_context().run(self._execute, database, settings, sql)

    def protect(self, table: str, *, encrypted: Iterable[str], database: str | None = None) -> None:
        """Let the catalogue say that columns are of Always Encrypted; reads go on as before.

        :param table: ``schema.table``
        :param encrypted: the columns (``sys.columns.encryption_type``)
        :raises ValueError: for a table or column that is not there
        """
        found = self._database(database)
        comparing.DATABASE.set(found.collation)
        schema, _, name = table.partition(".")
        entry = found.catalog.find(schema, name)
        if entry is None:
            raise ValueError(f"there is no table {table}")
        ids = {column.name: (entry.table.object_id, column.column_id) for column in entry.table.columns}
        if unknown := set(encrypted) - set(ids):
            raise ValueError(f"{table} has no column {', '.join(sorted(unknown))}")
        places = found.catalog.encrypted | {ids[column] for column in encrypted}
        found.catalog = dataclasses.replace(found.catalog, encrypted=places)

    def seed(self, database: str | None, table: str, rows: pa.Table) -> int:
        """Insert Arrow rows into a table in one transaction, columns by name; a tracked table logs them as inserts.

        :param table: as T-SQL names it
        :param rows: columns of the table's Arrow types (see ``sandbox.types``) or castable to them, also timestamps
            and times for all types of date and time; left-out columns get NULL, and an identity column its next values
        :returns: how many rows
        :raises SqlError: as an INSERT does
        :raises pyarrow.ArrowInvalid: for values that Arrow cannot cast
        """
        session = SqlSession(self.instance, Login(self.user, self.password, database or self.database or "master"))
        try:
            return session.load(table, rows)
        finally:
            session.close()


def _collected(outcomes: Any) -> list[pa.Table]:
    tables, error = [], None
    for outcome in outcomes:
        if isinstance(outcome, ResultSet):
            names = [column.name for column in outcome.columns]
            schema = pa.schema([pa.field(str(i), c.type.arrow) for i, c in enumerate(outcome.columns)])
            batches = [pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in outcome.batches]
            tables.append(pa.Table.from_batches(batches, schema).rename_columns(names))
        elif isinstance(outcome, Message) and outcome.severity > 10 and error is None:
            error = SqlError(
                outcome.number, outcome.text, severity=outcome.severity, state=outcome.state,
                procedure=outcome.procedure, line=outcome.line,
            )  # fmt: skip
    if error is not None:
        raise error
    return tables


def _clock_of(rate: float, zone: str | None) -> Callable[[], datetime.datetime]:
    """A clock that is right at first, and shows so many seconds more with each second; UTC's where there is no zone."""
    begun = _utc_now()

    def shown() -> datetime.datetime:
        moment = _utc_now() if rate == 1 else begun + (_utc_now() - begun) * rate
        return moment if zone else moment.replace(tzinfo=None)

    return shown


def _utc_now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
