"""What a sink has lost by a gap: what of it can still be read, and what its marker is to say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.marker import Gap
from airflow_provider_mssql_cdc.core.position import Window
from airflow_provider_mssql_cdc.core.steps import SinkSteps
from airflow_provider_mssql_cdc.spark.reading import Reading
from airflow_provider_mssql_cdc.spark.shapes.base import SinkRows
from airflow_provider_mssql_cdc.spark.sink_columns import SinkColumns
from airflow_provider_mssql_cdc.spark.staging import Staged
from airflow_provider_mssql_cdc.spark.targets import State


@dataclass(frozen=True, slots=True)
class Lost:
    """What one sink has lost.

    :param warn: takes what people are to be told
    """

    rows: SinkRows
    columns: SinkColumns
    warn: Callable[[str], None]

    def missed(self, window: Window, reading: Reading, state: State, todo: SinkSteps) -> tuple[Window, Staged] | None:
        """What happened before the copy with which a history begins anew by another key, where it can be read;
        None where it cannot.
        """
        is_rekeyed = self.rows.facts.takes_history and self.columns.key_before(state.marker) is not None
        if todo.lost_after is None or reading.copy is None or not is_rekeyed or window.after < todo.lost_after:
            return None
        missed = Window(todo.lost_after, window.after)
        staged = reading.before_copy(missed)
        return None if staged is None else (missed, staged)

    def gaps(self, state: State, window: Window, todo: SinkSteps, reading: Reading) -> tuple[Gap, ...]:
        """What the sink lacks: what it lacked before, and what is lost between that and a new copy."""
        is_rekeyed = self.columns.key_before(state.marker) is not None
        # by another key images of before tell nothing of its rows
        by_another_key = [Gap(window.after, window.after)] if is_rekeyed and self.rows.facts.takes_history else []
        if todo.window is not None:
            return (*state.gaps, *by_another_key)
        if todo.lost_after is None:
            return ()
        lost, upto = todo.lost_after, self.rows.table.counts_from(window)
        if lost == upto or self.missed(window, reading, state, todo) is not None:
            return (*state.gaps, *by_another_key) if self.rows.keeps_rows else ()
        if reading.heals(todo):
            assert reading.copy is not None
            how = f"the rows that changed after {reading.copy.changed_after} were read by Change Tracking"
            self.warn(f"{self.rows.sink.name}: the changes from {lost} to {upto} are lost; {how}")
            return self.rows.lacks(state.gaps, lost, window, healed=True)
        if not is_rekeyed:
            self.warn(f"{self.rows.sink.name}: the changes from {lost} to {upto} are lost; loaded anew from there")
        elif self.rows.keeps_rows:
            # a mirror has lost nothing by that
            what = f"of the changes from {lost} to {upto} it has the last values alone"
            self.warn(f"{self.rows.sink.name}: {what}; loaded anew from there by another key")
        return (*self.rows.lacks(state.gaps, lost, window), *by_another_key)
