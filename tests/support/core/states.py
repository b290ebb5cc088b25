"""Checkpoints whose sinks are all loaded from one feed, as one task leaves them."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Failure, Identity, SinkState
from airflow_provider_mssql_cdc.core.feed import FeedRef


def checkpoint_of(
    identity: Identity,
    sinks: Mapping[str, SinkState],
    feed: FeedRef | None = None,
    schema_hash: str | None = None,
    *,
    failed: Failure | None = None,
    selection_hash: str | None = None,
    selection: tuple[str, ...] = (),
    **fields: Any,
) -> Checkpoint:
    """A checkpoint; one without sinks that failed has a mirror that was never loaded."""
    of_all = {
        "feed": feed,
        "schema_hash": schema_hash,
        "schema_kept": schema_hash is not None,
        "selection_hash": selection_hash,
        "selection": selection,
        "failed": failed,
    }
    states = {shape: dataclasses.replace(sink, **of_all) for shape, sink in sinks.items()}
    if failed and not states:
        states = {"mirror": SinkState(failed=failed)}
    return Checkpoint(identity, states, **fields)
