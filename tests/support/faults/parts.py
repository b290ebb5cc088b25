"""What a table's load is put together from in the fault world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_mssql_cdc.core.marker import Gap
from airflow_provider_mssql_cdc.core.position import Window
from airflow_provider_mssql_cdc.core.spec import JobSpec, SinkSpec, TableSpec
from airflow_provider_mssql_cdc.spark.shapes.base import SinkRows
from airflow_provider_mssql_cdc.spark.shapes.history import History
from airflow_provider_mssql_cdc.spark.shapes.mirror import Mirror
from airflow_provider_mssql_cdc.spark.shapes.scd2 import Versions
from tests.support.faults.job_source import JobSource
from tests.support.faults.source import fold, lsn, number
from tests.support.faults.targets import (
    OPEN,
    Rows,
    Staged,
    TargetTable,
    Within,
    Write,
    as_dict,
    as_rows,
    next_versions,
    versions_anew,
)

if TYPE_CHECKING:
    from tests.support.faults.world import World


class WorldParts:
    """The parts of a load in plain Python."""

    def __init__(self, world: World, job: JobSpec) -> None:
        self._world, self._job = world, job

    @property
    def salt(self) -> str | None:
        return self._world.salt

    def source(self, table: TableSpec, mappings: Any) -> JobSource:
        return JobSource(self._world, table, self.salt, sees_fork=self._job.recovery_fork is not None)

    def rows(self, table: Any, sink: SinkSpec) -> SinkRows:
        found: SinkRows = self.kinds()[sink.shape](table, sink)
        return found

    def kinds(self) -> dict[str, Any]:
        """What makes the rows of each shape."""
        return _ROWS

    def target(self, rows: SinkRows, name: Sequence[str]) -> TargetTable:
        return self._world.open_table(rows.table.spec.name.table, rows.sink.shape, name)


class PlainRows:
    """What all shapes have here: rows are events, and a layout adds none."""

    def laid_out(self, write: Write, layout: int) -> Write:
        return write

    def next_beside(self, copy: Any, *given: Any) -> Write:
        write: Write = self.next(*given)  # type: ignore[attr-defined]
        return write

    def newest(self, target_rows: Rows) -> str | None:
        """The newest position of the rows, of a version's end too."""
        columns = (0, 1) if isinstance(self, Versions) else (0,)
        found = [e[column] for e in target_rows for column in columns if e[column] != OPEN]
        return str(lsn(max(found))) if found and not isinstance(self, Mirror) else None


class PlainMirror(PlainRows, Mirror):  # type: ignore[misc]
    def first(self, begun: Any, target_rows: Any) -> Write:  # type: ignore[override]
        events, stays, low = _begun(begun.window, begun.staged, begun.copy)
        return Write(lambda rows: as_rows(fold(as_dict(stays), events)), low)

    def next(self, window: Window, staged: Staged, target_rows: Any, gaps: Sequence[Gap]) -> Write:  # type: ignore[override]
        events = staged.rows(window)
        return Write(lambda rows: as_rows(fold(as_dict(rows), events)))


class PlainHistory(PlainRows, History):  # type: ignore[misc]
    def first(self, begun: Any, target_rows: Any) -> Write:  # type: ignore[override]
        events, stays, low = _begun(begun.window, begun.staged, begun.copy)
        return Write(lambda rows: [*rows, *stays, *events], low)

    def next(self, window: Window, staged: Staged, target_rows: Any, gaps: Sequence[Gap]) -> Write:  # type: ignore[override]
        events = staged.rows(window)
        return Write(lambda rows: [*rows, *events])

    def missing(self, window: Window, staged: Staged, target_rows: Rows, gaps: Sequence[Gap]) -> Write:  # type: ignore[override]
        events = [e for e in staged.rows(window) if e not in target_rows]
        return Write(lambda rows: [*rows, *events])

    def has_others(self, window: Window, target_rows: Rows) -> bool:  # type: ignore[override]
        return not target_rows.where(~Within(window)).isEmpty()


class PlainVersions(PlainRows, Versions):  # type: ignore[misc]
    def first(self, begun: Any, target_rows: Any) -> Write:  # type: ignore[override]
        events, stays, low = _begun(begun.window, begun.staged, begun.copy)
        return Write(lambda rows: versions_anew(rows, as_dict(stays), low, events), low)

    def next(self, window: Window, staged: Staged, target_rows: Any, gaps: Sequence[Gap]) -> Write:  # type: ignore[override]
        events = staged.rows(window)
        return Write(lambda rows: next_versions(rows, events))


_ROWS: dict[str, Any] = {"mirror": PlainMirror, "history": PlainHistory, "scd2": PlainVersions}


def _begun(window: Window, staged: Staged | None, copy: Any) -> tuple[Rows, list[Any], int]:
    """The events since the copy's low, the copied rows that they leave, and the low."""
    events = staged.rows(window) if staged is not None else Rows()
    touched = {e[3] for e in events}
    return events, [e for e in copy.held if e[3] not in touched], number(window.after)
