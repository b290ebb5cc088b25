"""The table ``_schema_changes`` beside a source table's targets: its columns, and the rows that events add to it."""

from __future__ import annotations

import datetime
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from airflow_provider_mssql_cdc.core.codec import Tagged
from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.schema_diff import TABLE_DROPPED
from airflow_provider_mssql_cdc.core.schema_sight import SchemaEvent, how_found
from airflow_provider_mssql_cdc.core.shapes import position_column
from airflow_provider_mssql_cdc.core.taken import ANEW, FILLED, SinkStep, TakenBySink, step_of

SUFFIX = "_schema_changes"
"""Behind the name of the source table's target."""

OF_SINKS = ("_shape", "_step", "_column_id", "_state", "_lacked_from", "_lacked_upto", "_filled_at")
"""Its columns that tell of the targets; tables of before lack them."""

SHAPE = "schema_changes"
"""Stands where a sink's shape does; nobody chooses it."""


def schema_changes_columns(position: type[Position]) -> tuple[TargetColumn, ...]:
    """The table's columns, all of them ours.

    :param position: kind of the feed's positions
    """
    types = {
        position_column(position): position.COLUMN_TYPE,
        "_number": "INT",
        "_ddl_ts": "TIMESTAMP_NTZ",
        "_ddl_ts_utc": "TIMESTAMP",
        "_statement": "STRING",
        "_changes": "STRING",
        "_seen_at": "TIMESTAMP_NTZ",
        "_found": "STRING",
        "_schema_before": "STRING",
        "_schema_after": "STRING",
        "_shape": "STRING",
        "_step": "INT",
        "_column_id": "INT",
        "_state": "STRING",
        "_lacked_from": position.COLUMN_TYPE,
        "_lacked_upto": position.COLUMN_TYPE,
        "_filled_at": position.COLUMN_TYPE,
    }
    return tuple(TargetColumn(name, type_, "{}") for name, type_ in types.items())


@dataclass(frozen=True, slots=True)
class Statement:
    """A DDL statement.

    :param lsn: of its transaction's commit
    :param time: by the server's clock; None where it is not known
    """

    lsn: Annotated[Position, Tagged]
    time: datetime.datetime | None
    text: str
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class UnwrittenEvent:
    """A schema event that the table does not hold yet, as far as is known.

    :param lsn: its place: no statement of it lies above
    :param seen_at: by the server's clock
    :param before: hash of the columns before it
    :param after: hash of the columns after it
    :param text: what has changed, for people
    :param changes: the same, each as the summary has it
    :param statements: in order; none where the catalogue alone told of it
    """

    lsn: Annotated[Position, Tagged]
    seen_at: datetime.datetime
    before: str
    after: str
    text: str
    changes: tuple[dict[str, Any], ...] = ()
    statements: tuple[Statement, ...] = ()
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, event: SchemaEvent) -> UnwrittenEvent:
        """The event of a run."""
        return cls(
            event.lsn,
            event.seen_at,
            event.before,
            event.after,
            event.text,
            tuple(event.told("")["changes"]),
            tuple(Statement(row.lsn, row.time, row.command.strip()) for row in event.ddl),
        )

    @property
    def is_drop(self) -> bool:
        """Whether the source table is gone with it."""
        return any(change.get("kind") == TABLE_DROPPED for change in self.changes)

    @property
    def changes_text(self) -> str:
        """The changes as the table has them."""
        return json.dumps(self.changes, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class ChangesSpec:
    """What a job writes into the table of a source table's schema changes.

    :param table: what stands before its name, and its name
    :param events: in order
    :param told: what it says of the columns that sinks have taken, as the checkpoint knows; by shape
    :param fills: the shapes in which a copy fills what they lack
    """

    table: tuple[str, ...]
    events: tuple[UnwrittenEvent, ...]
    told: dict[str, TakenBySink] = field(default_factory=dict)
    fills: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A row of the table.

    :param number: of the statement within its LSN, from 1; 0 where no statement is known
    :param time: of the statement
    :param changes: of the whole event, as JSON
    """

    lsn: Position
    number: int
    time: datetime.datetime | None
    statement: str
    changes: str
    seen_at: datetime.datetime
    found: str
    before: str
    after: str

    @property
    def held(self) -> HeldRow:
        """The row as it is known once the table holds it."""
        return HeldRow(self.lsn.sort_key, self.number, self.seen_at, self.before, self.after, self.changes)


@dataclass(frozen=True, slots=True)
class HeldRow:
    """What is to be known of a row that the table holds.

    :param at: ``sort_key`` of its LSN
    :param changes: of the whole event, as JSON
    :param sink: what it tells of a sink; None where it is a statement's
    :param step: number of that, of this event and sink
    """

    at: str | int
    number: int
    seen_at: datetime.datetime
    before: str
    after: str
    changes: str
    sink: SinkStep | None = None
    step: int = 0

    @property
    def is_drop(self) -> bool:
        """Whether the source table was gone with it."""
        return any(change.get("kind") == TABLE_DROPPED for change in json.loads(self.changes))

    @property
    def event(self) -> tuple[datetime.datetime, str, str]:
        """What the rows of one event have in common."""
        return self.seen_at, self.before, self.after


@dataclass(frozen=True, slots=True)
class SinkRow:
    """A row of the table that tells how far a sink is with a change.

    :param at: ``sort_key`` of the event's LSN
    :param text: of the step, for people
    :param step: number of it, of this event, sink and column, from 1
    """

    at: str | int
    text: str
    seen_at: datetime.datetime
    before: str
    after: str
    sink: SinkStep
    step: int


def rows_to_add(events: Iterable[UnwrittenEvent], held: Iterable[HeldRow]) -> list[ChangeRow]:
    """What the table lacks of some events, each row once.

    A statement is known by its place, whichever event it was found with: two runs at once, and a run whose checkpoint
    was not stored, may see more or fewer statements together. An event that the catalogue alone tells of has no place
    of its own, but that of the run that tells it. It is known by what it changes and when that was seen, or by the
    columns that the newest row leaves. That a table was dropped is known by its object_id.
    """
    there = sorted((row for row in held if row.sink is None), key=lambda row: (row.at, row.number))
    statements = {(row.at, row.number) for row in there}
    seen = {(row.seen_at, row.before, row.after) for row in there}
    drops = {row.changes for row in there}
    after = there[-1].after if there else None
    added: list[ChangeRow] = []
    for event in sorted(events, key=lambda each: each.lsn):
        if event.is_drop:
            if event.changes_text not in drops:
                drops.add(event.changes_text)
                added += _rows(event)
                after = event.after
            continue
        if not event.statements and ((event.seen_at, event.before, event.after) in seen or event.after == after):
            continue
        rows = [row for row in _rows(event) if (row.lsn.sort_key, row.number) not in statements]
        statements |= {(row.lsn.sort_key, row.number) for row in rows}
        if rows:
            added += rows
            after = event.after
    return added


def sink_rows_to_add(held: Iterable[HeldRow], sinks: Mapping[str, TakenBySink]) -> list[SinkRow]:
    """What the table is to say of sinks, and does not say yet. Of an event, sink and column the newest row counts.

    :param held: with the rows that are about to be added
    :param sinks: by shape
    """
    events: dict[Any, list[HeldRow]] = {}
    newest: dict[Any, HeldRow] = {}
    for row in sorted(held, key=lambda each: each.step):
        if row.sink is None:
            events.setdefault(row.event, []).append(row)
        else:
            newest[row.event, row.sink.shape, row.sink.column_id] = row
    drops = [row.at for rows in events.values() for row in rows if row.is_drop]
    added, told = [], set()
    for event, rows in events.items():
        places = {row.at for row in rows}
        if drops and max(places) <= max(drops):  # type: ignore[operator]
            # of a table that is gone, whose column_ids the one of now gives again
            continue
        for change in json.loads(rows[-1].changes):
            for shape, taken in sorted(sinks.items()):
                last = newest.get((event, shape, change.get("column_id")))
                said = last.sink if last is not None else None
                step = step_of(shape, taken, change, places)
                if step is None and said is not None and not taken.has(said.column_id):
                    step = SinkStep(shape, said.column_id, ANEW)
                # a run that looked before another one has filled it comes too late
                if step is None or step == said or (step.state != ANEW and said is not None and said.state == FILLED):
                    continue
                if (event, shape, step.column_id) in told:
                    # by another change of the same column
                    continue
                told.add((event, shape, step.column_id))
                number = last.step + 1 if last is not None else 1
                of, text = rows[-1], step.told(change["column"])
                added.append(SinkRow(max(places), text, of.seen_at, of.before, of.after, step, number))
    return added


def unwritten(
    events: Iterable[UnwrittenEvent], found: SchemaEvent | None, written: Position | None
) -> tuple[UnwrittenEvent, ...]:
    """The events that are still to be written after a run.

    :param events: that were before it
    :param found: by it
    :param written: up to where all events that it has handed over are in the table; None where none is known to be
    """
    known = with_found(events, found)
    return tuple(event for event in known if written is None or event.lsn > written)


def with_found(events: Iterable[UnwrittenEvent], found: SchemaEvent | None) -> tuple[UnwrittenEvent, ...]:
    """Events with the one that a run has found, in order."""
    new = () if found is None else (UnwrittenEvent.of(found),)
    return tuple(sorted((*events, *new), key=lambda event: event.lsn))


def merged_unwritten(
    stored: Sequence[UnwrittenEvent], written: Collection[UnwrittenEvent], seen: Collection[UnwrittenEvent]
) -> tuple[UnwrittenEvent, ...]:
    """What is stored with what a run has added and taken away since it has seen it.

    :param written: what the run leaves
    :param seen: what was stored when it was planned
    """
    kept = [event for event in stored if event not in seen or event in written]
    kept += [event for event in written if event not in seen and event not in kept]
    return tuple(sorted(kept, key=lambda event: event.lsn))


def _rows(event: UnwrittenEvent) -> list[ChangeRow]:
    found = how_found(event.before, event.after, has_statements=bool(event.statements))
    said = (event.changes_text, event.seen_at, found, event.before, event.after)
    if not event.statements:
        return [ChangeRow(event.lsn, 0, None, event.text, *said)]
    rows, numbers = [], dict.fromkeys((statement.lsn for statement in event.statements), 0)
    for statement in event.statements:
        numbers[statement.lsn] += 1
        rows.append(ChangeRow(statement.lsn, numbers[statement.lsn], statement.time, statement.text, *said))
    return rows
