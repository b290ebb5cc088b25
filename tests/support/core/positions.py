"""A second kind of positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from airflow_provider_mssql_cdc.core.position import Position


@dataclass(frozen=True, slots=True)
class Counted(Position):
    """A position of another kind."""

    number: int

    KIND: ClassVar[str] = "counted"
    COLUMN_TYPE: ClassVar[str] = "BIGINT"

    @classmethod
    def parse(cls, text: str) -> Self:
        return cls(int(text))

    @property
    def text(self) -> str:
        return str(self.number)

    @property
    def sort_key(self) -> int:
        return self.number
