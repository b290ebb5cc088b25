"""Schema changes of the source, told once: what was seen last beside the catalogue, and the DDL of the time between."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any

from airflow_provider_mssql_cdc.core.codec import Tagged
from airflow_provider_mssql_cdc.core.feed import DdlChange, Feed
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.schema import KeptSchema, KeptSchemas
from airflow_provider_mssql_cdc.core.schema_diff import SchemaChange, schema_diff
from airflow_provider_mssql_cdc.core.table import TableSchema

KIND = "schema"
"""Of these events among those of the operations asset."""

CATALOGUE, DDL_HISTORY, BOTH = "catalogue", "ddl_history", "both"
"""How a change was found: the catalogue differs; ``cdc.ddl_history`` has statements that left the columns as they were;
or the catalogue differs, and the history says when that came.
"""
HOW_FOUND = CATALOGUE, DDL_HISTORY, BOTH


@dataclass(frozen=True, slots=True)
class GoneColumn:
    """A column that was seen to be dropped. The catalogue is ahead of the capture, and DDL texts are never parsed.

    :param seen_at: when it was seen so first, by the server's clock
    :param after: the newest position when it was seen there last; None where that is not known
    :param at: the newest position once the capture had passed ``seen_at``: what dropped it lies at or before that
    """

    column_id: int
    seen_at: datetime.datetime
    after: Annotated[Position | None, Tagged] = None
    at: Annotated[Position | None, Tagged] = None
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)

    def place(self, statements: Iterable[Position]) -> Position | None:
        """Behind which nothing has values of it; None where that is not known yet.

        Of several statements the last counts: the column goes anyway, and one that is too late costs NULLs only.

        :param statements: known DDL of the table
        """
        may = [each for each in statements if (self.after is None or each > self.after)]
        return max((each for each in may if self.at is None or each <= self.at), default=self.at)


@dataclass(frozen=True, slots=True)
class SeenSchema:
    """What was seen last of the source table's columns.

    :param hash: of all its columns, captured or not
    :param upto: the newest position then
    :param with_waiting: the checkpoint's ``waiting_ids`` were noted at the first sight
    :param source_object_id: of the source table; None where that is not known
    :param waited: the names of columns that waited to be asked for, and are gone
    :param gone: columns that the source table has dropped, and a feed has still
    """

    hash: str
    upto: Annotated[Position | None, Tagged] = None
    with_waiting: bool = False
    source_object_id: int | None = None
    waited: tuple[str, ...] = ()
    gone: tuple[GoneColumn, ...] = ()
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class PendingChange:
    """A schema change that was seen and has no place among the changes yet.

    :param seen_at: by the server's clock
    :param before: hash of what was seen before
    :param after: hash of what was seen
    """

    seen_at: datetime.datetime
    before: str | None = None
    after: str | None = None
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class SchemaEvent:
    """A schema change that has its place.

    :param lsn: of the last statement's commit; the newest position of then where no statement is known
    :param ddl: the statements that came between, in order: of several the differences are those of all together
    """

    changes: tuple[SchemaChange, ...]
    before: str
    after: str
    seen_at: datetime.datetime
    lsn: Position
    ddl: tuple[DdlChange, ...]

    @property
    def found(self) -> str:
        """One of ``HOW_FOUND``."""
        return how_found(self.before, self.after, has_statements=bool(self.ddl))

    def told(self, table: str) -> dict[str, Any]:
        """The event as summary and operations asset have it."""
        return {
            "table": table,
            "lsn": self.lsn.text,
            "seen_at": self.seen_at.isoformat(" ", "seconds"),
            "found": self.found,
            "changes": [
                {
                    "kind": change.kind,
                    "column": change.name or None,
                    "column_id": change.column_id,
                    "then": change.then or None,
                    "now": change.now or None,
                }
                for change in self.changes
            ],
            "ddl": [
                {
                    "lsn": row.lsn.text,
                    "time": row.time.isoformat(" ", "seconds") if row.time is not None else None,
                    "statement": row.command.strip(),
                }
                for row in self.ddl
            ],
            "schema_before": self.before,
            "schema_after": self.after,
        }

    @property
    def text(self) -> str:
        """What has changed, for people."""
        if self.before == self.after:
            return "its columns are as they were"
        return "; ".join(map(str, self.changes)) or "what they were is not known any more"

    def __str__(self) -> str:
        statements = "".join(f"\n  {row.lsn}: {row.command.strip()}" for row in self.ddl)
        what = "the source table was altered" if self.before == self.after else "the source table's columns changed"
        return f"at {self.lsn} {what}: {self.text}{statements}"


def how_found(before: str, after: str, *, has_statements: bool) -> str:
    """How a change was found.

    :param before: hash of the columns before it
    :param after: hash of the columns after it
    """
    if before == after:
        return DDL_HISTORY
    return BOTH if has_statements else CATALOGUE


@dataclass(frozen=True, slots=True)
class Sight:
    """What a run has seen of a table's columns.

    :param schema: the columns as they are now
    :param pending: what was seen, and has no place yet
    :param event: what has its place now
    :param waiting_ids: column_ids that wait to be asked for: what was not captured at the first sight
    """

    schema: KeptSchema
    seen: SeenSchema
    pending: tuple[PendingChange, ...] = ()
    event: SchemaEvent | None = None
    waiting_ids: tuple[int, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether something is seen that no earlier run has told."""
        return bool(self.pending) or self.event is not None


def source_schema(feed: Feed) -> TableSchema:
    """All columns of the source table, and its primary key.

    The types of captured columns are those of the change table, which an ALTER reaches in log order; there a rowversion
    is binary(8).
    """
    captured = (column for column in feed.columns if not column.dropped)
    columns = (*captured, *feed.others)
    same = (dataclasses.replace(c, type="binary") if c.type in ("timestamp", "rowversion") else c for c in columns)
    return TableSchema(tuple(same), feed.primary_key)


def see(
    feed: Feed,
    seen: SeenSchema | None,
    pending: tuple[PendingChange, ...],
    *,
    newest: Position,
    server_time: datetime.datetime,
    captured_until: datetime.datetime | None,
    ddl: Iterable[DdlChange],
    kept: KeptSchemas,
) -> Sight:
    """What a run sees of a table's columns.

    The catalogue is ahead of the capture. So a difference has its place once the capture has passed the moment at which
    it was seen: that of the newest DDL since the columns were seen to be others, or else the newest position.
    Statements that leave the columns as they were are told by themselves.

    :param seen: what was seen last; None before the first sight, which makes no event
    :param pending: what was seen since, and had no place
    :param newest: position that is captured
    :param server_time: the server's local time once the columns were read
    :param captured_until: time of the newest commit that is captured, in the same zone
    :param ddl: the feed's rows of ``cdc.ddl_history``
    """
    now = KeptSchema.of(source_schema(feed))
    if seen is None:
        return Sight(now, SeenSchema(now.hash, newest, source_object_id=feed.source_object_id))
    seen = dataclasses.replace(seen, source_object_id=feed.source_object_id)
    last = pending[-1] if pending else None
    if (last.after if last is not None else seen.hash) != now.hash:
        last = PendingChange(server_time, seen.hash, now.hash)
        pending = (last,)
    if last is not None and (captured_until is None or captured_until <= last.seen_at):
        return Sight(now, seen, pending)
    # what changed no column is not of the next change
    placed = dataclasses.replace(seen, hash=now.hash, upto=newest)
    since = [row for row in ddl if (seen.upto is None or row.lsn > seen.upto) and row.lsn <= newest]
    # what came and has gone again, statements alone tell of
    if now.hash == seen.hash and (seen.upto is None or not since):
        return Sight(now, placed)
    before = kept(seen.hash)
    event = SchemaEvent(
        changes=schema_diff(before, now) if before is not None else (),
        before=seen.hash,
        after=now.hash,
        seen_at=last.seen_at if last is not None else server_time,
        lsn=max((row.lsn for row in since), default=newest),
        ddl=tuple(since),
    )
    return Sight(now, placed, event=event)


def see_gone(
    feeds: Iterable[Feed],
    seen: SeenSchema | None,
    before: KeptSchema | None,
    *,
    newest: Position,
    server_time: datetime.datetime,
    captured_until: datetime.datetime | None,
) -> tuple[GoneColumn, ...]:
    """The columns that a table's feeds have, and that it has dropped. What has its place keeps that.

    :param seen: what was seen last of the table's columns
    :param before: these; None where they are not kept
    :param newest: as for ``see``, with ``server_time`` and ``captured_until``
    """
    known = {each.column_id: each for each in (seen.gone if seen is not None else ())}
    had = {column.column_id for column in (before.columns if before is not None else ())}
    found = {}
    for id_ in sorted({column.column_id for feed in feeds for column in feed.columns if column.dropped}):
        one = known.get(id_)
        if one is None:
            one = GoneColumn(id_, server_time, seen.upto if seen is not None and id_ in had else None)
        elif one.at is None and captured_until is not None and captured_until > one.seen_at:
            one = dataclasses.replace(one, at=newest)
        found[id_] = one
    return tuple(found.values())
