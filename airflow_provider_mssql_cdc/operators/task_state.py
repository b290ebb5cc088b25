"""What a task keeps for its retries, where Airflow offers to keep it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_mssql_cdc.core.position import Cut
from airflow_provider_mssql_cdc.core.schema_sight import KIND as SCHEMA

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context


_OPERATIONS_KEY = "mssql_cdc_operations"
_EVENT_KEY, _CUT_KEY, _TRY_KEY, _FAILED_KEY = "mssql_cdc_event", "mssql_cdc_upto", "mssql_cdc_try", "mssql_cdc_failed"
FOUND_KEY = "mssql_cdc_found"
"""What was found while the job was planned that may still run."""

Ranges = dict[str, dict[str, str | None]]
"""Table to ``after``, ``upto`` and the rest of what asset events tell of it."""


class TaskState:
    """Keys and values that outlive a try; without a ``task_state_store`` in the context nothing is kept.

    :param context: of the task
    """

    def __init__(self, context: Context) -> None:
        self._store: Any = context.get("task_state_store")
        self._context = context

    def get(self, key: str) -> str | None:
        """What is kept, or None."""
        value = self._store.get(key) if self._store is not None else None
        return str(value) if value else None

    def set(self, key: str, value: str) -> None:
        """Keep a value."""
        if self._store is not None:
            self._store.set(key, value)

    def forget(self, *keys: str) -> None:
        """Keep these no longer."""
        if self._store is not None:
            for key in keys:
                self._store.delete(key)

    def begin(self) -> bool:
        """Note that a try begins; whether a person asks for it: by a run started by hand, or by clearing the task.

        A retry is none: it follows a try that did not end for good.
        """
        run, ti = self._context.get("dag_run"), self._context.get("ti")
        number, last = getattr(ti, "try_number", 1) or 1, getattr(ti, "max_tries", None)
        cleared = number > 1 and self.get(_TRY_KEY) is None
        if cleared:
            self.forget(_CUT_KEY)
        if last is not None and number > last:
            # no retry follows
            self.forget(_TRY_KEY)
        else:
            self.set(_TRY_KEY, str(number))
        return getattr(run, "run_type", None) == "manual" or cleared

    def end(self, job: str) -> None:
        """Note that the task ended for good: one that is cleared takes a new cut.

        :param job: key of a submitted job; while that may still run, what was found when it was planned is kept
        """
        self.forget(_CUT_KEY, _TRY_KEY)
        if self.get(job) is None:
            self.forget(FOUND_KEY)

    def cut(self, given: Cut | None) -> Cut | None:
        """The cut of this try: the given one, with what an earlier try took of other kinds of positions."""
        kept = self.get(_CUT_KEY)
        earlier = Cut.parse(kept) if kept else None
        return given.filled(earlier) if given is not None and earlier is not None else given or earlier

    def keep_cut(self, cut: Cut | None) -> None:
        """Keep the cut for retries."""
        if cut is not None:
            self.set(_CUT_KEY, cut.text)

    def found(self) -> Any:
        """What the try found while it planned whose job may still run, beside what its receipt says; None if nothing
        is kept."""
        kept = self.get(FOUND_KEY)
        return json.loads(kept) if kept else None

    def keep_found(self, found: Any) -> None:
        """Keep what planning found, for the try that waits for the job."""
        self.set(FOUND_KEY, json.dumps(found))

    def keep_failed(self, tables: Iterable[str]) -> None:
        """Keep the names of tables that failed: of a task that is cleared, Airflow forgets the summary."""
        self.set(_FAILED_KEY, json.dumps(sorted(tables)))

    def failed(self) -> list[str]:
        """The tables that failed in the try before."""
        kept: list[str] = json.loads(self.get(_FAILED_KEY) or "[]")
        return kept

    def told(self, ranges: Mapping[str, Mapping[str, str | None]]) -> Ranges:
        """Keep what this try is to tell of, and return it with what earlier tries of the task were to tell of.

        Airflow hands on the event of the try whose success it records: not of one that was killed, nor of one whose
        task was cleared while it ran, though their checkpoints say that all is told. It does not say which that was, so
        that a task which is cleared afterwards tells again.
        """
        kept: Ranges = json.loads(self.get(_EVENT_KEY) or "{}")
        told = {table: dict(range_) for table, range_ in ranges.items()}
        for table, earlier in kept.items():
            told[table] = {**told.get(table, earlier), "after": earlier["after"]}
        if told != kept:
            self.set(_EVENT_KEY, json.dumps(told))
        return told

    def told_operations(self, events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Keep the events for the operations asset that this try is to tell, and return them behind those of earlier
        tries, as ``told`` does."""
        kept: list[dict[str, Any]] = json.loads(self.get(_OPERATIONS_KEY) or "[]")
        known = [_identity(event) for event in kept]
        told = [*kept, *(dict(event) for event in events if _identity(event) not in known)]
        if told != kept:
            self.set(_OPERATIONS_KEY, json.dumps(told))
        return told


def _identity(event: Mapping[str, Any]) -> Any:
    """What tells an event from others: the place of a schema change may be another one for each try."""
    if event.get("kind") != SCHEMA:
        return event
    return [event.get(name) for name in ("table", "schema_before", "schema_after")]
