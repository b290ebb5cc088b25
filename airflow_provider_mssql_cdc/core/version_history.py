"""What a database says of its sync versions now, by which versions of before are judged."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.position import Position, Version


@dataclass(frozen=True, slots=True)
class VersionHistory:
    """The newest version of a database; a version above it was read before a restore.

    :param newest: None while Change Tracking is off
    """

    newest: Version | None

    def witnesses(self) -> list[Witness]:
        """None: a version has no time of its own."""
        return []

    def other_fork(self, fork: str | None) -> str | None:
        """None: the recovery fork is not asked for."""
        return None

    def contradiction(self, position: Position, witness: Witness | None) -> str | None:
        """Say that the database has not reached a version; None where it has."""
        if self.newest is None:
            return "Change Tracking is off"
        return f"the newest version of the database is {self.newest}" if position > self.newest else None
