"""What a task keeps for its retries, where Airflow offers to keep it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context


class TaskState:
    """Keys and values that outlive a try; without a ``task_state_store`` in the context nothing is kept.

    :param context: of the task
    """

    def __init__(self, context: Context) -> None:
        self._store: Any = context.get("task_state_store")

    def get(self, key: str) -> str | None:
        """Return what is kept, or None."""
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
