"""A window that was loaded before, written again: what a history lacks of it, or a new table made of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence

from airflow_provider_mssql_cdc.core.exceptions import NotLoadedYetError, TargetError
from airflow_provider_mssql_cdc.core.marker import Marker, read_from_another
from airflow_provider_mssql_cdc.core.position import Window
from airflow_provider_mssql_cdc.core.receipt import SinkReceipt
from airflow_provider_mssql_cdc.core.spec import ReplaySpec, TableSpec
from airflow_provider_mssql_cdc.core.steps import TableSteps, reached, replay_steps
from airflow_provider_mssql_cdc.spark.decide import gap, is_asserted
from airflow_provider_mssql_cdc.spark.notes import Notes
from airflow_provider_mssql_cdc.spark.reading import Reading
from airflow_provider_mssql_cdc.spark.sink import Sink
from airflow_provider_mssql_cdc.spark.staging import Staged
from airflow_provider_mssql_cdc.spark.targets import State

_ANOTHER_TABLE = "Drop it, or choose another target_suffix."


def look_before_replay(sink: Sink, *, reading: Reading, replay: ReplaySpec) -> State:
    """The state of a target that may take a replay.

    :raises MsSqlCdcError: if it must not
    """
    found, source = sink.state(), str(sink.rows.table.spec.name)
    if is_asserted(sink.spec, found.marker):
        raise NotLoadedYetError(
            f"{sink.target.name} stands for what `checkpoint set` said, and no load has gone on from there yet.",
            table=source,
            advice="Run the load first.",
        )
    if found.doubt is not None:
        raise found.doubt
    if found.marker is not None:
        state = reading.state([found])
        if reading.staged is not None:
            reading.check_not_restored(state.lineage)
        sink.check_marker(found.marker, state)
    loaded = reached(sink.spec, found.marker.position if found.marker else None)
    sink.rows.check_replay(sink.target.name, loaded, replay.upto, anew=bool(replay.suffix))
    if found.marker is not None and not replay.suffix:
        _check_feed(sink, found.marker, replay)
    if replay.suffix and found.marker is not None:
        raise TargetError(
            f"{sink.target.name} is a table that loads write to; a replay builds one of its own.",
            table=source,
            advice=_ANOTHER_TABLE,
        )
    return found


def _check_feed(sink: Sink, marker: Marker, replay: ReplaySpec) -> None:
    table = sink.rows.table.spec
    if (other := read_from_another(marker, table.feed, replay.after)) is not None:
        raise TargetError(
            f"{sink.target.name} was loaded from capture instance {other.name} there, and {table.feed} has other "
            "command ids: all events would be there twice.",
            table=str(table.name),
            advice="Replay into a table of its own (target_suffix), or choose a later interval.",
        )


def replay_sink(sink: Sink, staged: Staged, window: Window, look: Callable[[], State], *, anew: bool) -> SinkReceipt:
    """Write what the target lacks of the window, so that a replay can be repeated.

    :param look: returns the target's state, unless it must not take the replay: it may be rolled back meanwhile, and
        what lies behind its marker would be loaded once more
    :param anew: into a table that holds nothing but this window
    :raises TargetError: if it holds something else
    :raises CommitConflictError: if other commits came first again and again
    """
    source = str(sink.rows.table.spec.name)
    if anew:
        # a replay that is repeated may find the table as an older version made it
        found = look()
        sink.make(found, sink.layout(found))

    def attempt(_: int) -> SinkReceipt | None:
        state = look()
        target_rows = sink.target.rows(state)
        if anew and sink.rows.has_others(window, target_rows):
            raise TargetError(
                f"{sink.target.name} has rows from outside of {window}, which a replay builds it from.",
                table=source,
                advice=_ANOTHER_TABLE,
            )
        sink.rows.unfilled = state.marker.unfilled if state.marker is not None else ()
        write = sink.rows.laid_out(sink.rows.missing(window, staged, target_rows, state.gaps), sink.layout(state))
        if not sink.target.commit(state, write, None):
            return None
        before = state.marker.position if state.marker else None
        return SinkReceipt(sink.shape, before, state.marker, "replayed", window.upto)

    return sink.until_committed(attempt)


def replay_sinks(
    sinks: Sequence[Sink],
    replay: ReplaySpec,
    table: TableSpec,
    reading: Reading,
    stage: Callable[..., Staged],
    logged: Callable[[TableSteps], TableSteps],
    notes: Notes,
) -> Iterator[SinkReceipt]:
    """Write a window again that was loaded before; what became of each sink.

    :param stage: stages windows, as ``Reading.stage`` does
    :param logged: tells steps in the log
    :raises MsSqlCdcError: if the window was purged or not loaded yet, or a target must not take it
    """
    with notes.timed("plan"):
        look = functools.partial(look_before_replay, reading=reading, replay=replay)
        for sink in sinks:
            look(sink)
        state = reading.state()
        reading.check_reached(state, replay.upto)
        steps = logged(replay_steps(table, replay, readable_from=state.readable_from))
        for after in steps.lost.values():
            raise gap(table, after, state.readable_from)
    with notes.timed("read"):
        windows = [*dict.fromkeys(steps.windows.values())]
        staged = stage(windows, before_images=any(sink.rows.before_images for sink in sinks))
        for window in steps.windows.values():
            reading.check_whole(window)
    with notes.timed("commit"):
        for sink in sinks:
            with notes.writes(sink.target.name):
                again = functools.partial(look, sink)
                yield replay_sink(sink, staged, steps.windows[sink.shape], again, anew=bool(replay.suffix))
