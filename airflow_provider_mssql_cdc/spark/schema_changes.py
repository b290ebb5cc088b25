"""Writes schema events into the table ``_schema_changes`` beside a source table's targets."""

from __future__ import annotations

import dataclasses
import datetime
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.exceptions import CommitConflictError, TargetError
from airflow_provider_mssql_cdc.core.formats import check_identifiers
from airflow_provider_mssql_cdc.core.marker import FeedSpan, Marker
from airflow_provider_mssql_cdc.core.position import Lsn, Position
from airflow_provider_mssql_cdc.core.schema_changes import (
    OF_SINKS,
    SHAPE,
    ChangeRow,
    HeldRow,
    SinkRow,
    rows_to_add,
    schema_changes_columns,
    sink_rows_to_add,
)
from airflow_provider_mssql_cdc.core.shapes import position_column
from airflow_provider_mssql_cdc.core.spec import ChangedTable, JobSpec, SinkSpec
from airflow_provider_mssql_cdc.core.taken import SinkStep, TakenBySink
from airflow_provider_mssql_cdc.spark.server_time import to_utc
from airflow_provider_mssql_cdc.spark.targets import Opening, State, TargetTable, Write, open_table, with_nulls
from airflow_provider_mssql_cdc.spark.targets.sql import different_columns

log = logging.getLogger(__name__)

_ATTEMPTS = 6


class SchemaChanges:
    """The table that holds a source table's schema events. It is made with the first of them.

    :param session: of the source table alone
    :param of: the source table, with what is to be in it
    :param sinks: the columns that sinks have taken, by shape
    :raises TargetError: if the target cannot hold its name
    """

    def __init__(self, session: SparkSession, job: JobSpec, of: ChangedTable, sinks: Mapping[str, TakenBySink]) -> None:
        self._session, self._job, self._of, self._sinks = session, job, of, sinks
        self._events = of.changes.events
        places = (*(event.lsn for event in self._events), *(c.after for each in sinks.values() for c in each.columns))
        position = type(places[0]) if places else Lsn
        self._columns, self._position = schema_changes_columns(position), position_column(position)
        sink = SinkSpec(SHAPE, of.changes.table, None, None, properties=of.properties, format=of.format)
        check_identifiers(sink.format, sink.table[-1], (column.name for column in self._columns), self._of.name)
        self._target: TargetTable = open_table(Opening(session, job, sink, sink.table))

    def write(self) -> Position | None:
        """Write what the table lacks, in one commit; the position up to which it holds all that was handed over, None
        where that is nothing.

        :raises Exception: if the table cannot be written
        """
        for _ in range(_ATTEMPTS):
            state = self._target.state()
            held, added = self._held(state)
            rows = rows_to_add(self._events, held)
            of_sinks = sink_rows_to_add([*held, *(row.held for row in rows)], self._sinks)
            if not (rows or of_sinks) or self._commit(state, rows, of_sinks, added):
                return self._events[-1].lsn if self._events else None
        raise CommitConflictError(
            f"{self._target.name} was changed {_ATTEMPTS} times while this load was about to commit; last by "
            f"{self._target.changed_by()}.",
            table=str(self._of.name),
        )

    def _held(self, state: State) -> tuple[list[HeldRow], tuple[TargetColumn, ...]]:
        """What the table holds, and the columns that it gets with the next commit.

        :raises TargetError: if it is not the source table's
        """
        if not state.exists:
            return [], ()
        if state.doubt is not None:
            raise state.doubt
        marker, name = state.marker, self._of.name
        if marker is None and not state.is_empty:
            raise self._foreign("no load has made it")
        here = (self._job.source.database, name)
        if marker is not None and (marker.database, marker.table) != here:
            raise self._foreign(f"it is of {marker.table} of {marker.database}")
        added = self._added(marker)
        self._target.drop_leftovers()
        self._target.expect(added)
        names = (self._position, "_number", "_seen_at", "_schema_before", "_schema_after", "_changes", *OF_SINKS)
        rows = with_nulls(self._target.rows(state), added).select(*names).collect()
        return [_held_row(*row) for row in rows], added

    def _added(self, marker: Marker | None) -> tuple[TargetColumn, ...]:
        """The columns that a table of before gets, which has none that tell of sinks.

        :raises TargetError: if it has others beside
        """
        difference = self._target.check(self._columns)
        if difference is not None and marker is not None:
            # a commit that brought them may have been killed before it was through
            self._target.finish(self._columns)
            difference = self._target.check(self._columns)
        if difference is None:
            return ()
        found, lacks = difference.found, difference.expected.keys() - difference.found.keys()
        if not lacks <= {*OF_SINKS} or any(difference.expected.get(name) != type_ for name, type_ in found.items()):
            raise different_columns(self._target.name, difference)
        return tuple(column for column in self._columns if column.name in lacks)

    def _foreign(self, why: str) -> TargetError:
        return TargetError(
            f"{self._target.name} cannot take the schema changes of {self._of.name}: {why}.",
            table=str(self._of.name),
            advice="Rename or drop it, or choose another table_name.",
        )

    def _commit(
        self, state: State, rows: Sequence[ChangeRow], of_sinks: Sequence[SinkRow], added: Sequence[TargetColumn]
    ) -> bool:
        places = [event.lsn for event in self._events] + ([state.marker.position] if state.marker is not None else [])
        before = state.marker.schema_hash if state.marker is not None else ""
        marker = Marker(
            position=max(places),
            witness=self._job.witness,
            server=self._job.source.server,
            database=self._job.source.database,
            table=self._of.name,
            feeds=(FeedSpan(self._of.feed, None),) if self._of.feed is not None else (),
            schema_hash=self._events[-1].after if self._events else before,
            window_after=None,
            events={"statements": len(rows)},
            spec_id=self._job.id,
            run=self._job.run,
        )
        if not state.exists:
            self._target.create(self._columns)
        done = self._target.commit(state, Write(self._frame(rows, of_sinks), adds=tuple(added)), marker)
        if done:
            if rows:
                log.info("%s: %s schema changes are written into %s", self._of.name, len(rows), self._target.name)
            for row in of_sinks:
                log.info("%s: %s", self._of.name, row.text)
        return done

    def _frame(self, rows: Sequence[ChangeRow], of_sinks: Sequence[SinkRow]) -> DataFrame:
        values: list[tuple[Any, ...]] = [
            (
                row.lsn.sort_key,
                row.number,
                row.time,
                row.statement,
                row.changes,
                row.seen_at,
                row.found,
                row.before,
                row.after,
                *(None for _ in OF_SINKS),
            )
            for row in rows
        ]
        for row in of_sinks:
            of, sink = (row.seen_at, None, row.before, row.after), row.sink
            told = (
                sink.shape,
                row.step,
                sink.column_id,
                sink.state,
                sink.lacked_from,
                sink.lacked_upto,
                sink.filled_at,
            )
            values.append((row.at, 0, None, row.text, "[]", *of, *told))
        given = ", ".join(f"{column.name} {column.type}" for column in self._columns if column.name != "_ddl_ts_utc")
        zone = self._job.source.timezone
        utc = F.lit(None).cast("timestamp") if zone is None else to_utc(F.col("_ddl_ts"), zone)
        # one file
        return self._session.createDataFrame(values, given).withColumn("_ddl_ts_utc", utc).coalesce(1)


def _held_row(
    at: str | int,
    number: int,
    seen_at: datetime.datetime,
    before: str,
    after: str,
    changes: str,
    shape: str | None,
    step: int,
    column_id: int,
    state: str,
    *places: str | int | None,
) -> HeldRow:
    row = HeldRow(at, number, seen_at, before, after, changes)
    if shape is None:
        return row
    return dataclasses.replace(row, sink=SinkStep(shape, column_id, state, *places), step=step)
