"""One database under test, and what nearly every test does with it."""

from __future__ import annotations

from typing import Any

from tests.support.conformance.client import Client, Row, literal
from tests.support.conformance.servers import Server, unique

ORDER = "__$start_lsn, __$command_id, __$seqval, __$operation"
"""The order of changes in one capture instance."""

ZERO = bytes(10)


class Database(Client):
    """An own database of the server, with a sysadmin's connection."""

    def __init__(self, server: Server) -> None:
        super().__init__(server.address)
        self.server, self.name = server, unique("conformance")
        self._others: list[Client] = []
        self._logins: list[str] = []
        self.run(f"CREATE DATABASE {self.name}")
        self.run(f"USE {self.name}")

    def connect(self) -> Client:
        """Another connection of the sysadmin."""
        self._others.append(Client(self.server.address, self.name))
        return self._others[-1]

    def user(self, *statements: str) -> Client:
        """The connection of a new login without rights.

        :param statements: what the administrator runs for it, with ``{user}`` for its name
        """
        name, password = unique("user"), f"Pw-{unique('x')}"
        self._logins.append(name)
        self.run(f"CREATE LOGIN {name} WITH PASSWORD = '{password}'")
        self.run(f"CREATE USER {name} FOR LOGIN {name}")
        for statement in statements:
            self.run(statement.format(user=name))
        address = {**self.server.address, "user": name, "password": password}
        self._others.append(Client(address, self.name))
        return self._others[-1]

    def enable(self) -> None:
        """Enable CDC for the database."""
        self.run("EXEC sys.sp_cdc_enable_db")

    def track(self, table: str, **options: Any) -> None:
        """Enable CDC for a table, without a gating role and without net changes unless told otherwise.

        :param table: its name, with its schema unless that is dbo
        :param options: parameters of sp_cdc_enable_table
        """
        self.run(track(table, **options))

    def capture(self) -> None:
        """Have everything captured that is committed."""
        self.server.capture(self.name, self)

    def stop_capture(self) -> None:
        """Stop the capture job."""
        self.run("EXEC sys.sp_cdc_stop_job 'capture'")

    def scan(self, options: str = "") -> None:
        """Run sys.sp_cdc_scan; the capture job must not run."""
        self.server.scan(f"EXEC sys.sp_cdc_scan {options}", self)

    def job_runs(self, job_type: str = "capture") -> bool:
        """Whether the newest session of the Agent has started a job of this database and not ended it."""
        rows = self.run(
            "SELECT a.start_execution_date, a.stop_execution_date FROM msdb.dbo.sysjobactivity AS a"
            " JOIN msdb.dbo.sysjobs AS j ON j.job_id = a.job_id"
            f" WHERE j.name = 'cdc.{self.name}_{job_type}'"
            " AND a.session_id = (SELECT MAX(session_id) FROM msdb.dbo.syssessions)"
        )
        return any(start is not None and stop is None for start, stop in rows)

    def commit(self, *batches: str) -> None:
        """Run batches, each a transaction with a commit time of its own, and have them captured."""
        for batch in batches:
            self.server.tick(self)
            self.run(batch)
        self.server.tick(self)
        self.capture()

    def changes(self, columns: str = "*", instance: str = "dbo_t") -> list[Row]:
        """Rows of a change table, in order."""
        return self.run(f"SELECT {columns} FROM cdc.[{instance}_CT] ORDER BY {ORDER}")

    def commits(self, instance: str = "dbo_t") -> list[bytes]:
        """The commit LSNs of a change table, in order."""
        rows = self.run(f"SELECT DISTINCT __$start_lsn FROM cdc.[{instance}_CT] ORDER BY __$start_lsn")
        return [lsn for (lsn,) in rows]

    def min_lsn(self, instance: str = "dbo_t") -> bytes:
        """What sys.fn_cdc_get_min_lsn says."""
        return self.value(f"SELECT sys.fn_cdc_get_min_lsn('{instance}')")

    def max_lsn(self) -> bytes:
        """What sys.fn_cdc_get_max_lsn says."""
        return self.value("SELECT sys.fn_cdc_get_max_lsn()")

    def mapping(self) -> list[bytes]:
        """The positions of cdc.lsn_time_mapping, in order."""
        rows = self.run("SELECT start_lsn FROM cdc.lsn_time_mapping ORDER BY start_lsn")
        return [lsn for (lsn,) in rows]

    def transactions(self) -> list[bytes]:
        """The positions of cdc.lsn_time_mapping without dummy rows, in order."""
        rows = self.run("SELECT start_lsn FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00 ORDER BY start_lsn")
        return [lsn for (lsn,) in rows]

    def major(self) -> int:
        """The server's version: 15 is 2019, 16 is 2022, 17 is 2025."""
        return int(self.value("SELECT CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(128))").split(".")[0])

    def close(self) -> None:
        """Drop the database and what belongs to it."""
        for client in self._others:
            client.close()
        self.run("IF @@TRANCOUNT > 0 ROLLBACK USE master")
        self.server.drop(self.name, self._logins, self)
        super().close()


def track(table: str, **options: Any) -> str:
    """The call of sp_cdc_enable_table; see ``Database.track``."""
    schema, _, name = table.rpartition(".")
    given = {"role_name": None, "supports_net_changes": 0, **options}
    listed = "".join(f", @{key} = {literal(value)}" for key, value in given.items())
    return (
        f"EXEC sys.sp_cdc_enable_table @source_schema = {literal(schema or 'dbo')}, @source_name = {literal(name)}"
        + listed
    )
