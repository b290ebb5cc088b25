"""Versions as positions, and tables with a log of their own as feeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from airflow_provider_mssql_cdc.core.feed import Abilities, Feed
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.position import KINDS, Position


@dataclass(frozen=True, slots=True)
class Version(Position):
    """A number that grows with each transaction."""

    value: int

    KIND: ClassVar[str] = "version"
    COLUMN_TYPE: ClassVar[str] = "BIGINT"

    @classmethod
    def parse(cls, text: str) -> Version:
        return cls(int(text))

    @property
    def text(self) -> str:
        return str(self.value)

    @property
    def sort_key(self) -> int:
        return self.value

    def __str__(self) -> str:
        return f"version {self.value}"


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

    def contradiction(self, position: Position, witness: Any) -> str | None:
        if self.newest is None or position > self.newest:
            return f"the newest version is {self.newest}"
        return None


def register() -> None:
    """Let this process know the kinds of this source."""
    KINDS[Version.KIND] = Version
    Feed.KINDS[LoggedTable.KIND] = LoggedTable
