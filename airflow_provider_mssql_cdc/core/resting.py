"""What a failure for good means to later runs: the sink rests, until its cause changed or ``max_idle`` is over."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Failure
from airflow_provider_mssql_cdc.core.feed import Feed
from airflow_provider_mssql_cdc.core.table import TableSchema

LONGEST_IDLE = datetime.timedelta(hours=6)
IDLE_WHERE_RETENTION_IS_UNKNOWN = datetime.timedelta(hours=1)
RETENTION_SHARE = 10

MISSING = "missing"
"""``Failure.seen`` of a table that was not there."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Which of a table's shapes a run is about.

    :param sound: those that did not fail for good
    :param again: those that did, and are tried again
    :param resting: those that did, and are left alone
    """

    sound: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    resting: Mapping[str, Failure] = field(default_factory=dict)

    @property
    def shapes(self) -> tuple[str, ...]:
        """Those that are loaded."""
        return (*self.sound, *self.again)

    @classmethod
    def of(
        cls,
        checkpoint: Checkpoint | None,
        shapes: Iterable[str],
        *,
        seen: str,
        now: datetime.datetime,
        max_idle: datetime.timedelta,
        asked: bool = False,
        copies: bool = False,
    ) -> Turn:
        """Whose turn it is.

        :param shapes: that the DAG names
        :param seen: ``fingerprint`` of the table's feeds now
        :param asked: a person asks for what failed
        :param copies: a person asks for a copy of the table
        """
        sound, again, resting = [], [], {}
        for shape in shapes:
            sink = checkpoint.sinks.get(shape) if checkpoint is not None else None
            failure = sink.failed if sink is not None else None
            if failure is None:
                sound.append(shape)
            elif failure.stopped:
                resting[shape] = failure
            elif (
                asked
                or failure.planned
                or (copies and failure.copy_mends)
                or failure.is_of_another(seen)
                or now - failure.time >= max_idle
            ):
                again.append(shape)
            else:
                resting[shape] = failure
        return cls(tuple(sound), tuple(again), resting)


def default_max_idle(retention_minutes: int | None) -> datetime.timedelta:
    """The smaller of six hours and a tenth of the retention; an hour where that is unknown."""
    if retention_minutes is None:
        return IDLE_WHERE_RETENTION_IS_UNKNOWN
    return min(LONGEST_IDLE, datetime.timedelta(minutes=retention_minutes) / RETENTION_SHARE)


def fingerprint(feeds: Iterable[Feed]) -> str:
    """A hash of a table's feeds and their schemas."""
    parts = sorted(
        [i.name, i.object_id, i.create_date.isoformat(), TableSchema(i.columns, i.index_key or i.primary_key).hash]
        for i in feeds
    )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def without_absence(checkpoint: Checkpoint | None) -> Checkpoint | None:
    """A checkpoint as it counts once the table is there: no longer failed for its absence."""
    if checkpoint is None:
        return None
    absent = [shape for shape, sink in checkpoint.sinks.items() if sink.failed and sink.failed.seen == MISSING]
    there = checkpoint.failing(absent, None)
    return there if there.sinks or there.waiting_ids or there.unwritten or not absent else None
