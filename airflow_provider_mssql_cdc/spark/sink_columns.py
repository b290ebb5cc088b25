"""The columns of one sink's target: those that it gets, and those of which it lacks the values of before."""

from __future__ import annotations

from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.spec import Chosen
from airflow_provider_mssql_cdc.spark.decide import is_grown_from
from airflow_provider_mssql_cdc.spark.shapes.base import SinkRows
from airflow_provider_mssql_cdc.spark.targets import State, TargetTable
from airflow_provider_mssql_cdc.spark.targets.sql import different_columns


class SinkColumns:
    """The columns of a target.

    :param rows: what the sink holds
    :param target: its table
    """

    def __init__(self, rows: SinkRows, target: TargetTable) -> None:
        self._rows, self._target = rows, target

    @property
    def _before(self) -> Chosen | None:
        """What the target was loaded with, where it gets further columns; None where it does not."""
        return self._rows.table.spec.grows_from.get(self._rows.sink.shape)

    def growing(self, state: State, layout: int) -> tuple[TargetColumn, ...]:
        """As ``added``, for a target that gets none without being looked at."""
        return self.added(state, layout) if self._before is not None else ()

    def added(self, state: State, layout: int, *, fills: bool = False) -> tuple[TargetColumn, ...]:
        """The columns that the table gets with the next commit.

        :param fills: whether that fills them
        :raises TargetError: if the table has other columns beside
        """
        columns, before = self._rows.columns(layout), self._before
        difference = self._target.check(columns)
        marker = state.marker
        if difference is not None and marker is not None:
            # a commit that brought columns may have been killed before it was through
            if marker.schema_hash == self._rows.table.spec.schema.hash:
                self._target.finish(columns)
            elif before is not None and marker.schema_hash == before.schema.hash:
                self._target.finish(self._rows.narrowed(before).columns(layout))
            difference = self._target.check(columns)
        if difference is None:
            return ()
        found, lacks = difference.found, difference.expected.keys() - difference.found.keys()
        added: tuple[TargetColumn, ...] = ()
        if before is not None and (fills or is_grown_from(self._rows.table.spec, self._rows.sink, marker)):
            known = {column.name for column in self._rows.narrowed(before).columns(layout)}
            added = tuple(column for column in columns if column.name in lacks - known)
        names = {column.name for column in added}
        if names != lacks or any(difference.expected.get(name) != type_ for name, type_ in found.items()):
            raise different_columns(self._target.name, difference)
        return added

    def unfilled(self, state: State) -> tuple[str, ...]:
        """The columns of which the target lacks the values of before, with those that it is about to get."""
        unfilled, before = state.marker.unfilled if state.marker is not None else (), self._before
        if before is None or not is_grown_from(self._rows.table.spec, self._rows.sink, state.marker):
            return unfilled
        has = {column.name for column in self._rows.narrowed(before).table.data_columns}
        gets = (column.name for column in self._rows.table.data_columns if column.name not in has)
        return tuple(dict.fromkeys((*unfilled, *gets)))
