"""Heals gaps, and fills columns: where Change Tracking names the rows that changed, these are read, not all."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from airflow_provider_mssql_cdc.core.columns import ColumnMapping
from airflow_provider_mssql_cdc.core.exceptions import GapError, InstanceChangedError
from airflow_provider_mssql_cdc.core.healing import Healing, not_healed
from airflow_provider_mssql_cdc.core.lineage import OtherPosition
from airflow_provider_mssql_cdc.core.position import Position, Version, Window, is_gap
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.core.table import same_schema
from airflow_provider_mssql_cdc.core.tracked_catalog import unchanged
from airflow_provider_mssql_cdc.spark.copies.copy import Changed, ChangedRows
from airflow_provider_mssql_cdc.spark.decide import gap
from airflow_provider_mssql_cdc.spark.looks import SinkPlan
from airflow_provider_mssql_cdc.spark.notes import Notes
from airflow_provider_mssql_cdc.spark.shapes.fold import column
from airflow_provider_mssql_cdc.spark.sources.base import TableSource
from airflow_provider_mssql_cdc.spark.sources.ct.table import TrackedRows

log = logging.getLogger(__name__)

_SNAPSHOTS = "ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON lets them be read as of one moment"


class Healer:
    """Finds out by what the gaps of one table's sinks are closed, and columns filled.

    :param source: makes the source of a table
    :param notes: take what sinks fail with
    :param readable_from: of the capture instance
    """

    def __init__(
        self,
        table: TableSpec,
        mappings: Sequence[ColumnMapping],
        source: Callable[[TableSpec, Sequence[ColumnMapping]], TableSource],
        notes: Notes,
        readable_from: Callable[[], Position | None],
    ) -> None:
        self._table, self._mappings, self._source, self._notes = table, mappings, source, notes
        self._readable_from = readable_from

    def changed(self, plans: Sequence[SinkPlan], *, of_all: bool) -> Changed | None:
        """The rows that close the gaps of all sinks that begin with copied rows; None where a copy of all rows does, or
        where nothing does: a sink that is not to be copied fails alone then.

        :param of_all: a person asks for a copy of all rows
        """
        healing, copied = self._table.healing, [plan for plan in plans if plan[2].copied]
        lost = [(plan, plan[2].lost_after) for plan in copied if plan[2].lost_after is not None]
        begins = len(lost) < len(copied) or any(_is_rekeyed(plan) for plan, _ in lost)
        if healing is None or not lost or of_all or begins:
            return None
        rows, versions = None, list[Version]()
        with self._notes.alone(*(sink.shape for (sink, _, _), _ in lost)):
            why = healing.lacks(self._table.schema, self._table.selection, unique_key=self._table.unique_key)
            rows = self._rows(healing) if why is None else None
            low = rows.state().readable_from if rows is not None else None
            if rows is not None and not _has_versions(rows):
                why = "rows are read by locks, so that one which moves meanwhile may be missed: " + _SNAPSHOTS
            for plan, after in lost:
                found = why or self._version(plan, after, healing, low)
                if isinstance(found, Version):
                    versions.append(found)
                elif healing.copies and not healing.unasked:
                    log.info("%s: %s; all rows are copied", self._table.name, found)
                    return None
                else:
                    with self._notes.alone(plan[0].shape):
                        error = gap(self._table, after, self._readable_from(), plan[1].marker)
                        error.advice = f"{error.advice} {not_healed(found, copies=healing.copies)}"
                        raise error
        if rows is None or not versions:
            return None
        lowest = min(versions)
        return Changed(lowest, partial(_read, rows, lowest), rows.spelled_otherwise)

    def with_values(self, found: Iterable[OtherPosition], columns: Collection[str]) -> Changed | None:
        """The rows that may have other values in columns than those with which these were added; None where only all
        rows tell.

        :param found: what sinks keep
        :param columns: of the table
        """
        healing, table = self._table.healing, self._table
        if healing is None or healing.lacks(table.schema, table.selection, unique_key=table.unique_key) is not None:
            return None
        version = healing.before(found, min(table.schema.column(name).column_id for name in columns))
        if version is None:
            return None
        rows = self._rows(healing)
        if is_gap(version, rows.state().readable_from) or not _has_versions(rows):
            return None
        names = dict.fromkeys((*table.schema.key, *columns))
        others = unchanged(table.name, list(names), rows.feed.primary_key, str(version.sort_key))
        return Changed(version, partial(_read, rows, version), rows.spelled_otherwise, others)

    def check(self, plan: SinkPlan, after: Version) -> None:
        """Prove that the rows that changed after a version are all that a sink lacks, which may stand elsewhere now.

        :raises CommitConflictError: if they are not
        """
        sink, _, todo = plan
        found: Version | str = "it has no rows of before"
        if self._table.healing is not None and todo.lost_after is not None:
            found = self._version(plan, todo.lost_after, self._table.healing, Version(0))
        if isinstance(found, str) or found < after:
            why = (
                found
                if isinstance(found, str)
                else f"it lacks changes after {found}, and those after {after} were read"
            )
            raise sink.conflict(f"changed while its gap was healed: {why}")

    def _version(
        self, plan: SinkPlan, after: Position, healing: Healing, readable_from: Position | None
    ) -> Version | str:
        """By which version a sink is healed, or why it is not.

        :param after: up to here it is loaded
        :param readable_from: the lowest version from which all changes are there
        """
        (sink, state, todo) = plan
        marker = state.marker
        if marker is None or todo.asserted:
            return "a person has said where it stands"
        if marker.unfilled or not same_schema(marker.schema_hash, self._table.schema):
            return "its columns were changed, too"
        lost = sink.spec.lost_after
        # up to there it was proven empty, if the marker is the one that was expected
        at = lost if lost is not None and marker.position == sink.spec.applied else after
        return healing.version((*marker.positions, *sink.spec.positions), at, readable_from)

    def _rows(self, healing: Healing) -> TrackedRows:
        assert healing.tracked is not None
        source = self._source(dataclasses.replace(self._table, feed=healing.tracked), self._mappings)
        assert isinstance(source, TrackedRows)
        return source


def _is_rekeyed(plan: SinkPlan) -> bool:
    sink, state, _ = plan
    return sink.spec.rekeyed or sink.columns.key_before(state.marker) is not None


def _has_versions(rows: TrackedRows) -> bool:
    """Whether rows are read by versions, so that none is missed that moves meanwhile."""
    scan = rows.scan()
    return scan.by_versions or scan.by_snapshots


def _read(source: TrackedRows, after: Version, folder: str) -> ChangedRows:
    """The rows that changed after a version."""
    name = str(source.table.name)
    _, staged = source.keep(Window(after, after), folder)
    now = source.state()
    # cleanup raises the mark before it deletes, and a statement may have read the mark before that
    if is_gap(after, now.readable_from):
        advice = "They went while they were read: run the task again."
        raise GapError(name, after, now.readable_from, advice=advice)
    if why := now.lineage.tracked_anew(source.planned):
        raise InstanceChangedError(f"{why}, while it was read.", table=name, advice="Run the task again.")
    rows = staged.files.rows()
    names = [column(target.name) for mapping in source.mappings for target in mapping.targets]
    keys = rows.select(*map(column, source.key)).distinct()
    return ChangedRows(keys, rows.where("_op != 'D'").select(*names), staged.is_whole)
