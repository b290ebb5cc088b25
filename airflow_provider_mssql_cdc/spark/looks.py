"""What is to be done with each sink of a table, as the source and the markers say."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from airflow_provider_mssql_cdc.core.initial import too_early
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.core.steps import SinkSteps, Stand, TableSteps, table_steps
from airflow_provider_mssql_cdc.spark.decide import gap, is_asserted, stand_of
from airflow_provider_mssql_cdc.spark.reading import Reading
from airflow_provider_mssql_cdc.spark.shapes.base import SinkRows
from airflow_provider_mssql_cdc.spark.sink import Sink
from airflow_provider_mssql_cdc.spark.sources.base import SourceState
from airflow_provider_mssql_cdc.spark.targets import State

log = logging.getLogger(__name__)

SinkPlan = tuple[Sink, State, SinkSteps]


class Looks:
    """Looks at the sinks of a table.

    :param reading: of the table
    :param cut: to which they are loaded
    :param sink: makes the sink of rows
    :param alone: in its context a failure is that of these shapes alone
    """

    def __init__(
        self,
        table: TableSpec,
        reading: Reading,
        cut: Position,
        sink: Callable[[SinkRows], Sink],
        alone: Callable[..., AbstractContextManager[None]],
    ) -> None:
        self.cut = cut
        self._table, self._reading, self._sink, self._alone = table, reading, sink, alone

    def look(self, looked_at: Sequence[SinkRows]) -> list[tuple[Sink, State]]:
        """The sinks, each with what its target holds now."""
        found = []
        for rows in looked_at:
            with self._alone(rows.sink.shape):
                sink = self._sink(rows)
                found.append((sink, sink.state()))
        return found

    def plan(self, sinks: Sequence[tuple[Sink, State]], source: SourceState) -> list[SinkPlan]:
        """What is to be done with the sinks, as their markers say."""
        stands = {}
        for sink, state in sinks:
            with self._alone(sink.shape):
                stands[sink.shape] = self._stand(sink, state, source)
        steps = self._steps(stands)
        planned = []
        for sink, state in sinks:
            with self._alone(sink.shape):
                if sink.shape in stands:
                    todo = self._todo(sink, state, stands[sink.shape], steps)
                    if todo.begins and not state.exists:
                        sink.target.check_place()
                    planned.append((sink, state, todo))
        return planned

    def again(self, sink: Sink, state: State, source: SourceState) -> SinkSteps:
        """What is to be done with a sink whose target another commit has changed.

        :param state: of the target now
        :raises MsSqlCdcError: if it must not be loaded
        """
        stand = self._stand(sink, state, source)
        return self._todo(sink, state, stand, self._steps({sink.shape: stand}))

    def logged(self, steps: TableSteps) -> TableSteps:
        """The same, told in the log."""
        for commit in steps.commits:
            log.info("%s: %s", self._table.name, commit)
        return steps

    def _stand(self, sink: Sink, state: State, source: SourceState) -> Stand:
        """Where a sink stands, after its marker was looked at."""
        if state.marker is not None and not is_asserted(sink.spec, state.marker):
            sink.check_marker(state.marker, source)
        stand = stand_of(self._table, sink.spec, state, sink.columns.kept)
        if state.marker is None or stand.asserted:
            return stand
        anew = source.lineage.tracked_anew(state.marker.witness)
        if not self._table.feed.CAN.captured and state.marker.position == sink.spec.lost_after:
            # that its rows have gone only the plan has looked for
            anew = anew or "changes behind it are lost"
        return replace(stand, lost=anew) if anew else stand

    def _steps(self, stands: Mapping[str, Stand]) -> TableSteps:
        return self.logged(table_steps(self._table, stands, cut=self.cut, readable_from=self._reading.readable_from))

    def _todo(self, sink: Sink, state: State, stand: Stand, steps: TableSteps) -> SinkSteps:
        """What is to be done with a sink, for which it is made ready.

        :raises MsSqlCdcError: if it must not be loaded
        """
        if sink.shape in steps.refused:
            raise steps.refused[sink.shape].error(self._table.name)
        if sink.shape in steps.lost and not stand.asserted and state.marker is None:
            raise too_early(self._table.name, steps.lost[sink.shape], self._reading.readable_from)
        if sink.shape in steps.lost:
            marker = None if stand.asserted else state.marker
            raise gap(self._table, steps.lost[sink.shape], self._reading.readable_from, marker, stand.lost)
        sink.prepare(state, steps.of(sink.shape))
        return steps.of(sink.shape)
