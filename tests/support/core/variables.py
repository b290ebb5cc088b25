"""Airflow's Variables, as far as checkpoints use them, in memory."""

from __future__ import annotations

from typing import Any


class Variables(dict[str, Any]):
    """Variables by key."""

    def get(self, key: str, default: Any = None) -> Any:
        return super().get(key, default)

    def set(self, key: str, value: Any, description: str | None = None) -> None:
        self[key] = value

    def delete(self, key: str) -> None:
        del self[key]
