"""What a task keeps for its retries, where Airflow offers to keep it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context


_EVENT_KEY = "mssql_cdc_event"

Ranges = dict[str, dict[str, str | None]]
"""Table to ``after``, ``upto`` and the rest of what asset events tell of it."""


class TaskState:
    """Keys and values that outlive a try; without a ``task_state_store`` in the context nothing is kept.

    :param context: of the task
    """

    def __init__(self, context: Context) -> None:
        self._store: Any = context.get("task_state_store")

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
