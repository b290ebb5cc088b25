"""Where sinks write: one small interface, so that formats differ in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame

from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.exceptions import TargetError
from airflow_provider_mssql_cdc.core.marker import Gap, Marker
from airflow_provider_mssql_cdc.core.schema import KeptSchema


@dataclass(frozen=True, slots=True)
class State:
    """What a target table holds at one moment.

    :param snapshot: the format's own name of that moment; None for a table that has never been written
    :param marker: of the newest commit of this package in the table's present line of history
    :param is_empty: missing, or without rows
    :param from_property: the marker was found in a table property only, since the commit that carried it expired
    :param doubt: why what the table says of itself cannot be believed; there is no marker then
    """

    exists: bool
    snapshot: int | None
    marker: Marker | None
    is_empty: bool
    from_property: bool = False
    doubt: TargetError | None = None

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What the table lacks, as far as its marker says so."""
        return self.marker.gaps if self.marker else ()


@dataclass(frozen=True, slots=True)
class Append:
    """Add the rows."""

    rows: DataFrame


@dataclass(frozen=True, slots=True)
class Replace:
    """Put the rows in the place of all that the table holds."""

    rows: DataFrame


@dataclass(frozen=True, slots=True)
class Merge:
    """Put or delete rows by key.

    :param rows: one per key, with ``_op``: D or B deletes
    :param key: columns that identify a row
    :param nullable_key: whether a key column may be NULL
    """

    rows: DataFrame
    key: Sequence[str]
    nullable_key: bool = False


Write = Append | Replace | Merge


class TargetTable(Protocol):
    """A sink's table."""

    @property
    def name(self) -> str:
        """The name for people."""

    def check_place(self) -> None:
        """Prove, before a copy is made, that the table can be created where it is to lie; nothing of it stays there.

        :raises Exception: what the place says
        """

    def create(self, columns: Sequence[TargetColumn]) -> None:
        """Create the table unless it exists.

        :raises TargetError: if it exists with other columns
        """

    def keep_schema(self, schema: KeptSchema) -> bool:
        """Keep a schema beside the table, or with the table's creation or next commit.

        :return: whether it will be there once the next commit is
        """

    def kept_schema(self, hash_: str) -> KeptSchema | None:
        """The schema of this hash that is kept beside the table."""

    def state(self) -> State:
        """Return what the table holds now."""

    def rows(self, state: State) -> DataFrame:
        """Return the rows that the table held then."""

    def commit(self, state: State, write: Write, marker: Marker | None) -> bool:
        """Make a change visible, with its marker, in one step, on condition that the table is still at this state.

        :param marker: None for a replay, which proves nothing about positions
        :return: whether it was done; False if another commit came first
        """

    def drop_leftovers(self) -> None:
        """Drop what jobs left behind that ended without tidying up."""

    def moved_by(self) -> str:
        """Return what made the newest commit, for an error message."""
