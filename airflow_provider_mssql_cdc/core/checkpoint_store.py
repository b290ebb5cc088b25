"""Reads and writes checkpoints as Airflow Variables, beside other tasks and people who do so."""

from __future__ import annotations

import dataclasses
import datetime
import logging

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Identity, SinkState
from airflow_provider_mssql_cdc.core.codec import from_json, to_json
from airflow_provider_mssql_cdc.core.exceptions import (
    CheckpointError,
    FormatError,
    NewerCheckpointError,
    NewerFormatError,
)
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.schema_changes import merged_unwritten
from airflow_provider_mssql_cdc.core.variables import Variables
from airflow_provider_mssql_cdc.core.waiting import of_source

log = logging.getLogger(__name__)


class CheckpointStore:
    """Reads and writes checkpoints as Airflow Variables; nothing else writes them.

    Airflow has no compare-and-set, so a lost write is possible; the marker in the target heals it.

    :ivar variables: ``airflow.sdk.Variable``
    """

    def __init__(self, variables: Variables) -> None:
        self.variables = variables

    def load(self, identity: Identity) -> Checkpoint | None:
        """The checkpoint, or None if there is none.

        :raises CheckpointError: if it is damaged
        :raises NewerCheckpointError: if a later version of this package has written it
        """
        text = self.variables.get(identity.variable, default=None)
        if text is None:
            return None
        table = str(identity.table)
        try:
            checkpoint = from_json(Checkpoint, text)
        except NewerFormatError as error:
            raise NewerCheckpointError(
                error.message, table=table, advice=f"{error.advice} It is {identity.variable}."
            ) from error
        except FormatError as error:
            raise CheckpointError(
                error.message, table=table, advice=f"Repair or delete the Airflow Variable {identity.variable}."
            ) from error
        if checkpoint.identity != identity:
            raise CheckpointError(
                f"Variable {identity.variable} holds the checkpoint of {checkpoint.identity}.",
                table=table,
                advice="Delete one of the two.",
            )
        return checkpoint

    def save(self, checkpoint: Checkpoint, seen: Checkpoint | None = None) -> bool:
        """Store what a run has changed, field by field, beside what others have stored meanwhile.

        A sink moves on only; one that a person has set or reset meanwhile stays as it is.

        :param seen: what was stored when the run was planned; None if there was nothing
        :return: whether it was written
        :raises CheckpointError: if the stored one is damaged or newer than this package
        """
        stored = self.load(checkpoint.identity)
        merged = _merged(stored, checkpoint, seen)
        if merged is None or merged == stored:
            return False
        self.overwrite(merged)
        return True

    def overwrite(self, checkpoint: Checkpoint) -> None:
        """Store the checkpoint, whatever is stored: for a person's explicit order, never for a run."""
        now = datetime.datetime.now(datetime.UTC)
        identity = checkpoint.identity
        self.variables.set(
            identity.variable,
            to_json(dataclasses.replace(checkpoint, updated_at=now)),
            description=f"CDC: {identity.connection} {identity.database} {identity}",
        )

    def delete(self, identity: Identity) -> bool:
        """Remove the checkpoint, also one that cannot be read.

        :return: whether there was one
        """
        if self.variables.get(identity.variable, default=None) is None:
            return False
        self.variables.delete(identity.variable)
        return True


_PROGRESS = {
    "applied",
    "read_through",
    "witness",
    "asserted",
    "feed",
    "schema_hash",
    "schema_kept",
    "selection_hash",
    "selection",
    "positions",
    "unfilled",
    "ddl_upto",
}
"""Fields of a sink that are true together only."""


def _merged(stored: Checkpoint | None, written: Checkpoint, seen: Checkpoint | None) -> Checkpoint | None:
    """What is stored with what a run has changed since it has seen it; None if that is nothing."""
    before, there = seen.sinks if seen else {}, stored.sinks if stored else {}
    changed = {shape: sink for shape, sink in written.sinks.items() if sink != before.get(shape)}
    kept = {shape: sink for shape, sink in changed.items() if not _is_overtaken(shape, written, stored, seen)}
    if changed and not kept:
        return None
    sinks = {shape: sink for shape, sink in there.items() if shape in written.sinks or sink != before.get(shape)}
    for shape, sink in kept.items():
        sinks[shape] = _merged_sink(there.get(shape), sink, before.get(shape))
    if stored is None:
        return dataclasses.replace(written, sinks=sinks)
    if written.seen_schema is not None:
        stored = of_source(stored, written.seen_schema.source_object_id)
    base = seen or Checkpoint(written.identity)
    fields = {
        name: getattr(written, name)
        for name in Checkpoint.__dataclass_fields__
        if name not in ("sinks", "unknown") and getattr(written, name) != getattr(base, name)
    }
    if "announced" in fields:
        fields["announced"] = max(filter(None, (written.announced, stored.announced)), default=None)
    if "waiting_ids" in fields:
        fields["waiting_ids"] = tuple(sorted({*written.waiting_ids, *stored.waiting_ids}))
    if "unwritten" in fields:
        fields["unwritten"] = merged_unwritten(stored.unwritten, written.unwritten, base.unwritten)
    return dataclasses.replace(stored, **fields, sinks=sinks)


def _merged_sink(stored: SinkState | None, written: SinkState, seen: SinkState | None) -> SinkState:
    if stored is None:
        return written
    base = seen or SinkState()
    names = {name for name in SinkState.__dataclass_fields__ if getattr(written, name) != getattr(base, name)}
    if names & _PROGRESS:
        names |= {*_PROGRESS, "failed"}
    return dataclasses.replace(stored, **{name: getattr(written, name) for name in names - {"unknown"}})


def _is_overtaken(shape: str, written: Checkpoint, stored: Checkpoint | None, seen: Checkpoint | None) -> bool:
    """Whether others, or a person, have moved a sink so that what a run says of it no longer counts."""
    mine, theirs = written.sinks[shape], stored.sinks.get(shape) if stored else None
    base = seen.sinks.get(shape) if seen else None
    if base is not None and base.is_loaded and (theirs is None or not theirs.is_loaded):
        log.warning("%s: the checkpoint of %s was reset meanwhile", written.identity.table, shape)
        return True
    if theirs is None or not theirs.is_loaded:
        return False
    is_behind = not mine.is_loaded or _place(theirs) > _place(mine)
    if is_behind or theirs.asserted not in (None, base.asserted if base else None):
        log.warning(
            "%s: the checkpoint of %s stands at %s; not moved to %s",
            written.identity.table,
            shape,
            theirs.read_through,
            mine.read_through,
        )
        return True
    return False


def _place(sink: SinkState) -> tuple[Position, Position]:
    assert sink.applied is not None
    return sink.position, sink.applied
