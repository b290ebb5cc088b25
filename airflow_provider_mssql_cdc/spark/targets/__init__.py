"""Where sinks write: one small interface, so that formats differ in one place."""

from __future__ import annotations

import enum
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.exceptions import TargetError
from airflow_provider_mssql_cdc.core.formats import FORMATS
from airflow_provider_mssql_cdc.core.marker import Gap, Marker
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.spec import JobSpec, SinkSpec


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
class Difference:
    """Columns that are not the expected ones, each with its type."""

    expected: Mapping[str, str]
    found: Mapping[str, str]


class OldRows(enum.Enum):
    """Which rows that the table holds a write is about."""

    NONE = "none"
    """No key of the rows has one: they are added."""
    OF_KEY = "of key"
    """The one with the same key, where there is one, is replaced or goes."""
    ALL = "all"
    """All of them go: the rows are what is left."""


@dataclass(frozen=True, slots=True)
class Write:
    """What a sink gets; how a target carries that out is its own.

    :param rows: whole rows, with all values; where they concern old rows by their key there is one for each, with
        ``_op``: D or B delete
    :param key: columns that identify a row, for old rows by their key
    :param nullable_key: whether a key column may be NULL
    :param of_target: the rows are computed from the target's: what Spark keeps of them is gone with a commit to it
    :param adds: columns that the table gets with it; of the rows that stay they are NULL
    :param key_before: columns of the key by which the table's rows were told apart, where that was another one
    """

    rows: DataFrame
    key: Sequence[str] = ()
    old: OldRows = OldRows.NONE
    nullable_key: bool = False
    of_target: bool = False
    adds: tuple[TargetColumn, ...] = ()
    key_before: tuple[str, ...] = ()


def with_nulls(rows: DataFrame, added: Sequence[TargetColumn]) -> DataFrame:
    """A table's rows with NULL in columns that it is about to get."""
    return rows.withColumns({column.name: F.lit(None).cast(column.type) for column in added}) if added else rows


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
        """Create the table unless it exists."""

    def check(self, columns: Sequence[TargetColumn]) -> Difference | None:
        """How the table's columns differ from those that a load writes; None where they do not."""

    def expect(self, columns: Sequence[TargetColumn]) -> None:
        """Get ready for columns that the next commit brings, before rows are read for it. Nobody sees them yet."""

    def finish(self, columns: Sequence[TargetColumn]) -> None:
        """Show the columns that the newest commit with a marker brought, should it have been killed before that.

        :param columns: of the load that made it
        """

    def widen(self, columns: Sequence[TargetColumn]) -> None:
        """Give columns of the table types that hold each value of theirs as it is.

        :raises TargetError: if the table cannot have these
        """

    def rename(self, columns: Mapping[str, str]) -> None:
        """Give columns other names: rows that are read from now on have these.

        :param columns: name to the one that it gets; none of these is there
        :raises TargetError: if the table cannot have these
        """

    def drop(self, columns: Sequence[str]) -> None:
        """Drop columns, now or with the next commit. Those that are not there are dropped already.

        :raises TargetError: if the table cannot lose these; then it has all of them
        """

    def keep_schema(self, schema: KeptSchema) -> bool:
        """Keep a schema beside the table, or with the table's creation or next commit.

        :return: whether it will be there once the next commit is
        """

    def kept_schema(self, hash_: str) -> KeptSchema | None:
        """The schema of this hash that is kept beside the table."""

    def state(self) -> State:
        """What the table holds now."""

    def rows(self, state: State) -> DataFrame:
        """The rows that the table held then."""

    def rows_of(self, state: State, keys: Callable[[], DataFrame | None]) -> DataFrame:
        """The same, or only those with these keys, where the table finds them quickly.

        :param keys: says them, each once; None where there are none, or too many to be sent there
        """

    def commit(self, state: State, write: Write, marker: Marker | None) -> bool:
        """Make a change visible, with its marker, in one step, on condition that the table is still at this state.

        :param marker: None for a replay, which proves nothing about positions
        :return: whether it was done; False if another commit came first
        """

    def drop_leftovers(self) -> None:
        """Drop what jobs left behind that ended without tidying up."""

    def changed_by(self) -> str:
        """What made the newest commit, for an error message."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What a sink's table is opened with.

    :param session: of the source table alone
    :param name: the sink's own table, or one that a replay builds beside it
    :param key: columns that identify a row of the source
    :param is_unique: whether no two rows of the sink can have one key
    :param connections: JDBC connections that may be open at once
    """

    session: SparkSession
    job: JobSpec
    sink: SinkSpec
    name: tuple[str, ...]
    key: tuple[str, ...] = ()
    is_unique: bool = False
    connections: int = 2


def open_table(opening: Opening) -> TargetTable:
    """The table of a sink, by its format.

    :raises SpecError: if the spec does not say where it is
    """
    opened: TargetTable = pkgutil.resolve_name(FORMATS[opening.sink.format].tables)(opening)
    return opened
