"""Tables with a log of their own as feeds, whose positions are versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from airflow_provider_mssql_cdc.core.feed import Abilities, Feed
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.position import Position, Version


@dataclass(frozen=True, slots=True)
class LoggedTable(Feed):
    """A table ``logged.<table>`` with ``version`` and the key; what was purged of it is said in ``logged.low``.

    :param low: behind this version all is there
    """

    low: int = 0

    KIND: ClassVar[str] = "logged_table"
    WORD: ClassVar[str] = "log"
    POSITION: ClassVar[type[Position]] = Version
    CAN: ClassVar[Abilities] = Abilities(
        shapes=("mirror", "scd2"),
        exact_cut=False,
        every_change=False,
        before_images=False,
        replay=False,
        limits=False,
    )

    @property
    def readable_from(self) -> Version:
        return Version(self.low)


@dataclass(frozen=True, slots=True)
class Versions:
    """All that is known of versions: the newest one."""

    newest: Version | None

    def witnesses(self) -> list[Witness]:
        return []

    def other_fork(self, fork: str | None) -> str | None:
        return None

    def tracked_anew(self, witness: Any) -> str | None:
        return None

    def contradiction(self, position: Position, witness: Any) -> str | None:
        if self.newest is None or position > self.newest:
            return f"the newest version is {self.newest}"
        return None


def register() -> None:
    """Let this process know the kind of this source's feeds."""
    Feed.KINDS[LoggedTable.KIND] = LoggedTable
