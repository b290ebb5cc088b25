"""A window that was loaded before, written again: what a history lacks of it, or a new table made of it."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import TEMPORARY
from airflow_provider_mssql_cdc.core.exceptions import MarkerMovedError, NotLoadedYetError, TargetError
from airflow_provider_mssql_cdc.core.position import Window
from airflow_provider_mssql_cdc.core.spec import ReplaySpec, SinkReceipt, SinkSpec, TableSpec
from airflow_provider_mssql_cdc.core.target import HISTORY
from airflow_provider_mssql_cdc.spark.changes import history_rows, identified, known_in_history
from airflow_provider_mssql_cdc.spark.shapes import IDENTITY, TableShape
from airflow_provider_mssql_cdc.spark.staging import Staged, within
from airflow_provider_mssql_cdc.spark.targets import Append, State, TargetTable
from airflow_provider_mssql_cdc.spark.writes import laid_out

_ATTEMPTS = 5
_ANOTHER_TABLE = "Drop it, or choose another target_suffix."


def check_replay(table: TableSpec, sink: SinkSpec, name: str, state: State, replay: ReplaySpec) -> None:
    """Refuse a replay that would damage its target.

    :param name: of the target table
    :param state: of the target table
    :raises TargetError: if old values would overwrite newer ones, if nothing tells which rows are missing, or if what
        is to be a new table is loaded into
    :raises NotLoadedYetError: if the window was not loaded before
    """
    if sink.shape != HISTORY:
        raise TargetError(
            f"a replay into the {sink.shape} {name} would put old values over newer ones.",
            table=str(table.name),
            advice="Replay into a history.",
        )
    if sink.history.is_net:
        raise TargetError(
            f"{name} holds net changes: its rows are those of the windows that were loaded, and no event's own.",
            table=str(table.name),
            advice="Replay into a history of all changes.",
        )
    if replay.suffix:
        if state.marker is not None:
            raise TargetError(
                f"{name} is a table that loads write to; a replay builds one of its own.",
                table=str(table.name),
                advice=_ANOTHER_TABLE,
            )
        return
    reached = state.marker.position if state.marker else None
    if reached is not None and sink.expects is not None and sink.read_through is not None and reached >= sink.expects:
        reached = max(reached, sink.read_through)
    if reached is None or reached < replay.upto:
        raise NotLoadedYetError(
            f"{name} is loaded up to {reached or 'nothing'}, and the window to replay ends at {replay.upto}.",
            table=str(table.name),
            advice="Load it first.",
        )


def replay_sink(
    shape: TableShape,
    sink: SinkSpec,
    target: TargetTable,
    staged: Staged,
    window: Window,
    look: Callable[[], State],
    *,
    anew: bool,
) -> SinkReceipt:
    """Write what the target lacks of the window, so that a replay can be repeated.

    :param look: returns the target's state, unless it must not take the replay: it may be rolled back meanwhile, and
        what lies behind its marker would be loaded once more
    :param anew: into a table that holds nothing but this window
    :raises TargetError: if it holds something else
    :raises MarkerMovedError: if other commits came first again and again
    """
    if anew:
        found = look()
        # a replay that is repeated may find the table as an older version made it
        layout = shape.layout_of(sink, target.rows(found).columns) if found.exists else shape.new_layout(sink)
        target.create(shape.columns(sink, layout))
    for _ in range(_ATTEMPTS + 1):
        state = look()
        held = target.rows(state)
        there = identified(sink, held)
        if anew and not there.where(~within(window)).isEmpty():
            raise TargetError(
                f"{target.name} has rows from outside of {window}, which a replay builds it from.",
                table=str(shape.spec.name),
                advice=_ANOTHER_TABLE,
            )
        known = known_in_history(shape, sink, held, window, state.gaps)
        events = history_rows(shape, sink, staged, window, known)
        rows = _missing(identified(sink, events), there, window)
        marker = state.marker
        layout = shape.marked_layout(sink, target.name, marker) if marker else shape.layout_of(sink, held.columns)
        if target.commit(state, laid_out(sink, Append(rows), layout), None):
            before = state.marker.position if state.marker else None
            return SinkReceipt(sink.shape, before, state.marker, "replayed", window.upto)
    raise MarkerMovedError(
        f"{target.name} was changed {_ATTEMPTS + 1} times while a replay was about to commit, last by "
        f"{target.moved_by()}.",
        table=str(shape.spec.name),
        advice="Run the task again, and keep maintenance of the table apart from replays.",
    )


def _missing(events: DataFrame, held: DataFrame, window: Window) -> DataFrame:
    present = held.where(within(window)).select(*(F.col(name).alias(TEMPORARY + name) for name in IDENTITY))
    same = F.lit(True)
    for name in IDENTITY:
        same &= F.col(name).eqNullSafe(F.col(TEMPORARY + name))
    return events.join(present, same, "left_anti")
