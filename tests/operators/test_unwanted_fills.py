"""A copy that fills columns ends once nobody wants them any more."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, CopyState
from airflow_provider_mssql_cdc.core.schema import KeptSchema, SchemaStore
from airflow_provider_mssql_cdc.operators.checkpoints import store_given_up
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.outcome import Outcome
from airflow_provider_mssql_cdc.operators.unwanted_fills import give_up_fills
from tests.operators.test_new_columns import PROPOSE, SECOND, plan_of, seen_group, settle
from tests.support.hooks.source import Source
from tests.support.operators.group import A


class Filled:
    """A table of which a copy fills a column since the run before."""

    def __init__(self, source: Source, folder: Path) -> None:
        self.group, self.folder = seen_group(source), folder / "0123456789ab"
        self.group.change("ALTER TABLE dbo.a ADD note nvarchar(20)")
        source.sql(SECOND)
        settle(self.group, PROPOSE)
        self.group.change("INSERT INTO dbo.a (id) VALUES (3)")
        self.group.loaded_up_to_now(A)
        assert plan_of(self.group, PROPOSE).candidates[A].fills
        self.folder.mkdir()
        copy = CopyState(self.folder.name, str(folder), shapes=("mirror",), fills=("note",))
        self.group.store.overwrite(dataclasses.replace(self.stored, copies=(copy,)))

    @property
    def stored(self) -> Checkpoint:
        found = self.group.checkpoint(A)
        assert found is not None
        return found

    def plan(self, **said: Any) -> RunPlan:
        return plan_of(self.group, {**PROPOSE, **said})


@pytest.fixture
def filled(source: Source, tmp_path: Path) -> Filled:
    return Filled(source, tmp_path)


REASONS = {
    "dropped": "note: dropped since, or captured by no instance that can be read",
    "warn": "the load fills no columns any more (on_schema_change, fill)",
    "filled": None,
}


@pytest.mark.parametrize("why", REASONS)
def test_it_is_told_and_leaves_no_folder(filled: Filled, why: str) -> None:
    if why == "dropped":
        filled.group.source.sql("ALTER TABLE dbo.a DROP COLUMN note")
    elif why == "filled":
        # a run was killed once the target had the column, and the next one has found nothing to do
        schema = filled.plan().candidates[A].schema
        SchemaStore(filled.group.variables).keep(KeptSchema.of(schema))
        sink = dataclasses.replace(filled.stored.sinks["mirror"], schema_hash=schema.hash)
        filled.group.store.overwrite(dataclasses.replace(filled.stored, sinks={"mirror": sink}))
    before = filled.stored
    plan = filled.plan(on_schema_change="warn") if why == "warn" else filled.plan()
    # nothing is written by who only plans
    assert (filled.stored, filled.folder.exists()) == (before, True)
    store_given_up(filled.group.store, plan)
    told = {
        "table": "dbo.a",
        "id": "0123456789ab",
        "fills": ["note"],
        **({"event": "COMPLETED"} if why == "filled" else {"event": "ABORTED", "reason": REASONS[why]}),
    }
    after = filled.stored
    assert (after.copies, [event.extra for event in after.untold], filled.folder.exists()) == ((), [told], False)
    assert after.sinks == before.sinks
    assert told in Outcome(plan).summary(0)["copies"]
    assert [spec.copy for spec in plan.specs] == [None] * len(plan.specs)


def test_one_that_another_run_has_moved_on_stays(filled: Filled) -> None:
    plan = filled.plan(on_schema_change="warn")
    (copy,) = filled.stored.copies
    moved = dataclasses.replace(filled.stored, copies=(dataclasses.replace(copy, chunks=1),))
    filled.group.store.overwrite(moved)
    store_given_up(filled.group.store, plan)
    assert (filled.stored.copies, filled.folder.exists(), plan.specs) == (moved.copies, True, [])


def test_one_whose_column_is_still_wanted_goes_on(filled: Filled) -> None:
    plan = filled.plan()
    assert plan.given_up == {}
    (spec,) = plan.specs
    assert spec.fills
    assert spec.copy is not None
    assert spec.copy.id == "0123456789ab"


def test_what_begins_anew_by_another_key_is_left_to_its_own_copy(filled: Filled) -> None:
    """Its checkpoint is planned with as that of no instance: it is not what is stored."""
    plan = filled.plan(on_schema_change="warn")
    plan.given_up.clear()
    (copy,) = filled.stored.copies
    candidate = dataclasses.replace(
        plan.candidates[A], checkpoint=filled.stored, rekeyed={"mirror": KeptSchema.of(plan.candidates[A].schema)}
    )
    give_up_fills(plan, {A: candidate})
    assert (plan.given_up, filled.stored.copies) == ({}, (copy,))
