"""A try waits for a job that a version of the package submitted: it finds a spec and a receipt of that on disk."""

from __future__ import annotations

import dataclasses

import pytest

from airflow_provider_mssql_cdc.core.checkpoint import KEY_PREFIX, Checkpoint
from airflow_provider_mssql_cdc.core.codec import from_json
from airflow_provider_mssql_cdc.core.schema import SchemaStore
from airflow_provider_mssql_cdc.core.spec import JobSpec
from tests.support.hooks.source import CONN_ID
from tests.support.operators.master import DRIVER
from tests.support.operators.tries import JOB_ID, POD, SPEC, Task
from tests.support.upgrades import place

ELSEWHERE = {"asserted", "lost", "property"}
"""What a person did with these tables' checkpoints after the load is in the sample, or they were not in the job."""


@pytest.mark.parametrize("version", place.VERSIONS)
def test_the_receipt_of_a_version_is_believed_and_moves_the_checkpoints(task: Task, version: str) -> None:
    sample = place.read(version, "parquet")
    spec = from_json(JobSpec, sample["spec"])
    older = [from_json(Checkpoint, text) for key, text in sample["variables"].items() if key.startswith(KEY_PREFIX)]
    expected = {each.identity.table: each for each in older if each.identity.table.table not in ELSEWHERE}
    assert len(expected) == 6
    with place.alone() as folder:
        job = folder / "work" / spec.id
        job.mkdir(parents=True)
        assert str(job / "spec.json") == spec.path
        (job / "spec.json").write_text(sample["spec"])
        (job / "receipt.json").write_text(sample["receipt"])
        task.state.update({JOB_ID: DRIVER, SPEC: spec.path, POD: "Succeeded"})
        summary = task.run(
            tables=["lab.*"],
            target=place.ADDRESSES["parquet"],
            shapes=["history", "transactions"],
            work_dir=f"{folder}/work",
        )
    assert (task.master.submissions, summary["upto"]) == ([], str(spec.upto))
    assert JOB_ID not in task.state
    assert {row["table"] for row in summary["tables"]} == {str(table.name) for table in spec.tables}
    for table, before in expected.items():
        identity = dataclasses.replace(before.identity, connection=CONN_ID)
        stored = task.group.store.load(identity)
        assert stored is not None
        # version 1 kept no schemas
        assert all(sink.schema_kept for sink in stored.sinks.values())
        then = {shape: dataclasses.replace(sink, schema_kept=True) for shape, sink in before.sinks.items()}
        assert {s: dataclasses.replace(sink, failed=None) for s, sink in stored.sinks.items()} == then, table
        if len(before.sinks) == 2:
            assert stored.announced == before.announced
        (hash_,) = {sink.schema_hash for sink in stored.sinks.values()}
        assert hash_ is not None
        assert SchemaStore(task.group.store.variables).find(hash_) is not None
