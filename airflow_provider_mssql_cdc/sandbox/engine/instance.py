"""The server instance: databases, logins, configuration and the Agent."""

from __future__ import annotations

import dataclasses
import datetime
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from airflow_provider_mssql_cdc.sandbox.collations.names import DEFAULT
from airflow_provider_mssql_cdc.sandbox.engine.builds import BUILDS, EDITIONS, EditionName, Version
from airflow_provider_mssql_cdc.sandbox.engine.cdc.agent import Agent
from airflow_provider_mssql_cdc.sandbox.engine.clock import Clock
from airflow_provider_mssql_cdc.sandbox.engine.harshness import Harshness
from airflow_provider_mssql_cdc.sandbox.engine.lock_holder import LockHolder
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database, Storage
from airflow_provider_mssql_cdc.sandbox.engine.supply import Supply
from airflow_provider_mssql_cdc.sandbox.protocol import Login, SqlError

SERVER_NAME = "SANDBOX"
_PIECE_ROWS = 16_384
# Each pair of parentheses takes about twenty calls of the parser. Python calls lie on the heap; what few of them go
# through C stay far below the 8 MiB of a thread's stack.
_DEEPEST_CALLS = 5000


# by name: configuration_id, default, minimum, maximum, description
OPTIONS = {
    "show advanced options": (518, 0, 0, 1, "show advanced options"),
    "max text repl size (B)": (1536, 65536, -1, 2147483647, "Maximum size of replicated text."),
    "clr enabled": (1562, 0, 0, 1, "CLR user code execution enabled in the server"),
}


@dataclass(slots=True)
class Principal:
    """A login.

    :param rights: permissions on the server
    :param user: the user that a session executes as, instead of the login's own
    :param language: its default language; '' for the server's
    """

    name: str
    password: str = field(repr=False)
    sysadmin: bool = False
    default_database: str = "master"
    rights: frozenset[str] = frozenset()
    user: str = ""
    language: str = ""


@dataclass(slots=True)
class SessionInfo:
    """A row of sys.dm_exec_sessions.

    :param database: where its statements run
    :ivar holder: of its locks and its transaction; None for a session of a job
    :ivar sent: what its client sent last: the kind of event, and the batch or the procedure's name
    """

    session_id: int
    login: Login
    login_time: datetime.datetime
    database: Database
    holder: LockHolder | None = None
    sent: tuple[str, str] | None = None


class Instance:
    """Everything that sessions share.

    :param user: the sysadmin login
    :param build: a key of ``BUILDS``
    :param harshness: a kind server's if None
    :param clock_rate: seconds of the clock in one second, which counts for all that waits
    :param edition: a key of ``EDITIONS``
    :ivar supply: statements that may happen between two reads
    :ivar piece_rows: how many rows a reader with locks reads at one moment
    :ivar between_pieces: called after each piece but the last, with the table's name and the number of pieces read
    """

    def __init__(
        self,
        user: str,
        password: str,
        clock: Clock,
        capture_interval: float | None,
        build: str = "2022",
        harshness: Harshness | None = None,
        clock_rate: float = 1.0,
        edition: EditionName = "Developer",
    ) -> None:
        sys.setrecursionlimit(max(sys.getrecursionlimit(), _DEEPEST_CALLS))
        if build not in BUILDS:
            raise ValueError(f"build is one of {', '.join(BUILDS)}, not {build}")
        if edition not in EDITIONS:
            raise ValueError(f"edition is one of {', '.join(EDITIONS)}, not {edition}")
        self.clock, self.version = clock, dataclasses.replace(BUILDS[build], edition=EDITIONS[edition])
        self.harshness = Harshness() if harshness is None else harshness
        self.storage = Storage(clock, self.version.switches, self.harshness, clock_rate)
        self.agent = Agent(
            clock=clock,
            clock_rate=clock_rate,
            capture_interval=capture_interval,
            open_session=self._open_job_session,
        )
        self.supply = Supply(self.harshness)
        self.piece_rows = _PIECE_ROWS
        self.between_pieces: Callable[[str, int], None] = lambda table, pieces: None
        self.configuration = {name: option[1] for name, option in OPTIONS.items()}
        self.started = clock()
        self.logins: dict[str, Principal] = {user.casefold(): Principal(user, password, True)}
        self.sessions: dict[int, SessionInfo] = {}
        self._lock = threading.Lock()
        for database in self.storage.databases.values():
            self.agent.attach(database.cdc)

    def create_database(self, name: str, collation: str = DEFAULT) -> Database:
        """Create a database whose CDC jobs the Agent runs."""
        database = self.storage.create_database(name, collation)
        self.agent.attach(database.cdc)
        return database

    def drop_database(self, name: str) -> None:
        """Drop a database and its jobs.

        :raises SqlError: 3702 while a connection is in it, and what ``Storage.drop_database`` raises
        """
        database = self.storage.databases.get(name.casefold())
        if database is not None and self.connections(database):
            raise SqlError.of(3702, database.name)
        self.storage.drop_database(name)
        if database is not None:
            self.agent.detach(database.cdc)

    def authenticate(self, login: Login) -> tuple[Principal, Database]:
        """The login's principal and first database.

        :raises SqlError: 18456 wrong name or password, 4060 no such database, or one for a single user that has one
        """
        principal = self.logins.get(login.user.casefold())
        if principal is None or principal.password != login.password:
            raise SqlError.of(18456, login.user)
        name = login.database or principal.default_database
        database = self.storage.databases.get(name.casefold())
        if database is None or not self.may_use(principal, database) or self.is_taken(database):
            raise SqlError.of(4060, name)
        return principal, database

    def may_use(self, principal: Principal, database: Database) -> bool:
        """Whether a login has a user in a database."""
        if principal.sysadmin or database.name in ("master", "tempdb", "msdb"):
            return True
        return principal.name.casefold() in {login.casefold() for login in database.catalog.users.values()}

    def connections(self, database: Database) -> list[SessionInfo]:
        """The sessions with a connection whose statements run in a database."""
        with self._lock:
            return [each for each in self.sessions.values() if each.database is database and each.login.hang_up]

    def is_taken(self, database: Database) -> bool:
        """Whether a database is for a single user, and has one."""
        return database.single_user and bool(self.connections(database))

    def open_session(self, login: Login, database: Database) -> SessionInfo:
        """Number a new session."""
        with self._lock:
            number = next(i for i in range(51, 32767) if i not in self.sessions)
            info = SessionInfo(number, login, self.clock(), database)
            self.sessions[number] = info
            return info

    def _open_job_session(self, database: str) -> tuple[int, Callable[[], None]]:
        """A session of a job, and what closes it."""
        login = Login(r"NT SERVICE\SQLSERVERAGENT", "", database, "SQLAgent - TSQL JobStep")
        info = self.open_session(login, self.storage.database(database))
        return info.session_id, lambda: self.close_session(info)

    def close_session(self, info: SessionInfo) -> None:
        """Forget a session."""
        with self._lock:
            self.sessions.pop(info.session_id, None)

    def restart(self) -> None:
        """Be as after a restart, while no session is open and the Agent is stopped: views of the server are empty."""
        self.started = self.clock()
        for database in self.storage.databases.values():
            database.cdc.forget_scans()

    def check_upgrade(self) -> Version:
        """The version that the update makes of this one.

        :raises ValueError: where there is no update, or CDC would not go on as is simulated
        """
        if self.version.update is None:
            raise ValueError(f"SQL Server {self.version.name} has no update that changes CDC")
        if any(database.cdc.in_availability_group for database in self.storage.databases.values()):
            raise ValueError(
                "in an availability group the update leaves change tables as they are, and what the capture does then "
                "is not simulated"
            )
        return dataclasses.replace(self.version.update, edition=self.version.edition)

    def upgrade(self) -> None:
        """Install the update, while no session is open and the Agent is stopped.

        :raises ValueError: see ``check_upgrade``
        """
        self.version = self.check_upgrade()
        self.storage.switches = self.version.switches
        for database in self.storage.databases.values():
            database.cdc.add_command_ids()

    def close(self) -> None:
        """Stop the Agent and let go of the storage."""
        self.agent.stop()
        self.storage.close()
