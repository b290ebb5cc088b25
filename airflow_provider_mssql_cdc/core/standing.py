"""What a checkpoint says of a table once a run has looked at it, or loaded it."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, SinkState
from airflow_provider_mssql_cdc.core.feed import FeedRef
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.plan import Candidate
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.core.table import same_schema


def quiet_checkpoint(candidate: Candidate, upto: Position, witness: Witness | None) -> Checkpoint | None:
    """The checkpoint with ``read_through`` moved to a cut up to which the table is proven empty.

    :return: None if no sink lies below the cut, and the instance is still the same
    """
    if candidate.checkpoint is None:
        return None
    # only the shapes that this run looked at are proven empty
    states = {shape: state for shape, state in candidate.sinks.items() if state is not None}
    ref = FeedRef.of(candidate.feed)
    if all(state.position >= upto and state.feed == ref for state in states.values()):
        return None
    moved = {
        shape: dataclasses.replace(state, failed=None, **loaded_from(candidate, state))
        for shape, state in states.items()
    }
    for shape, state in states.items():
        if state.position < upto:
            # of a version nothing is seen but since when the table is tracked, which holds on
            kept = witness if candidate.feed.CAN.captured else state.witness
            moved[shape] = dataclasses.replace(moved[shape], read_through=upto, witness=kept)
    return dataclasses.replace(candidate.checkpoint, sinks={**candidate.checkpoint.sinks, **moved})


def loaded_from(table: Candidate | TableSpec, known: SinkState | None) -> dict[str, Any]:
    """What a sink's state says of a load from this feed.

    :param known: what is known of the columns that the sink has; by default it has the table's
    """
    said: dict[str, Any] = {"feed": FeedRef.of(table.feed)}
    if known is not None and known.schema_hash is None and known.asserted is not None:
        return said
    if known is not None and known.schema_hash is not None and not same_schema(known.schema_hash, table.schema):
        return said
    if isinstance(table, TableSpec) and table.widens:
        said["ddl_upto"] = table.followed_upto
    return said | {
        "schema_hash": table.schema.hash,
        "schema_kept": True,
        "selection_hash": table.selection.hash,
        "selection": table.selection.describe(),
    }


def is_stale(checkpoint: Checkpoint, now: datetime.datetime, retention: datetime.timedelta | None) -> bool:
    """Whether a quiet table's checkpoint is old enough to be written for ``read_through`` alone.

    :param retention: of the cleanup job, None where unknown
    """
    limit = datetime.timedelta(hours=1)
    if retention is not None:
        limit = min(limit, retention / 10)
    return checkpoint.updated_at is None or now - checkpoint.updated_at > limit
