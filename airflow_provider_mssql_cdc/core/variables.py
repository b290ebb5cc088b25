"""What is needed of Airflow's Variables."""

from __future__ import annotations

from typing import Any, Protocol


class Variables(Protocol):
    """What stores need of ``airflow.sdk.Variable``."""

    def get(self, key: str, default: Any = ...) -> Any:
        """The value, or the default."""

    def set(self, key: str, value: Any, description: str | None = None) -> None:
        """Store the value."""

    def delete(self, key: str) -> None:
        """Delete the Variable."""
