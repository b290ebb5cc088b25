"""What a load asks a table's source in the job."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame

from airflow_provider_mssql_cdc.core.lineage import Lineage, Witness
from airflow_provider_mssql_cdc.core.position import Position, Window
from airflow_provider_mssql_cdc.spark.copies.copy import Copy, CopyOrder, Unfinished
from airflow_provider_mssql_cdc.spark.staging import Staged


@dataclass(frozen=True, slots=True)
class SourceState:
    """What a source says of a table's feed now.

    :param readable_from: behind this position all changes can be read; None while that is not known
    :param lineage: with what became of the witnesses that were asked for, and the newest position
    """

    readable_from: Position | None
    lineage: Lineage

    @property
    def newest(self) -> Position | None:
        """The newest position; None while nothing is captured."""
        return self.lineage.newest


class TableSource(Protocol):
    """One table's changes and rows, by its feed."""

    def state(self, witnesses: Collection[Witness] = ()) -> SourceState:
        """Read the state, and prove that the feed is still the planned one.

        What the whole source has in common, the newest position and the recovery fork, is asked for with each table and
        each time: a marker is judged by what is seen after it was read. Against a look of before, the commit of another
        run that came between is a position that the source does not know, as after a restore.

        :param witnesses: by which positions of before are judged
        :raises InstanceChangedError: if it was dropped or made anew
        """

    def low(self, state: SourceState) -> Position:
        """The position before what begins now: all that changes later comes after it.

        :raises CaptureLagError: while there is none
        """

    def read(self, windows: Sequence[Window], folder: str, *, before_images: bool) -> Staged:
        """Stage windows, each change once.

        :param folder: for the rows; must not exist yet
        :param before_images: with all of them, and the times of commits
        """

    def respelled(
        self, staged: Staged, window: Window, known: Callable[[], DataFrame], folder: str, *, is_sure: bool | None
    ) -> Staged:
        """What was staged, for a target that may spell keys otherwise than the source does by now.

        :param known: the keys that the target shows
        :param folder: for what is found out; must not exist yet
        :param is_sure: whether these are all that were there; None where it does not matter what inserts are
        """

    def copy(self, order: CopyOrder) -> Copy | Unfinished:
        """Copy the table's rows, wait until the changes of meanwhile can be read, and read them.

        :raises CaptureLagError: if the wait is too long
        :raises SchemaChangedError: if columns were changed meanwhile
        :raises GapError: if changes were purged meanwhile
        """

    def read_again(self, keys: DataFrame) -> Copy | Unfinished:
        """The copy that was taken last, with the rows of more keys, and the changes of meanwhile.

        :param keys: that none of its rows has, as targets have them, each once
        :return: how far it is, where the wait for the changes is too long
        :raises SchemaChangedError: if columns were changed meanwhile
        :raises GapError: if changes were purged meanwhile
        """

    def has_lost_copy(self) -> bool:
        """Whether another run has removed the copy that this one reads: it has finished it."""

    def remove_copies(self, place: str) -> None:
        """Remove what copies of the table have left.

        :param place: where they lie
        """

    def remove_copy(self) -> None:
        """Remove what the copy has left: all its sinks have it."""
