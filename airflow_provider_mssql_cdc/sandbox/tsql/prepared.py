"""Prepared statements of a session."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Prepared:
    """Text and parameter declarations of prepared statements, by handle."""

    statements: dict[int, tuple[str, str]] = field(default_factory=dict)
    last: int = 0

    def add(self, text: str, declarations: str) -> int:
        """Keep a statement; its handle."""
        self.last += 1
        self.statements[self.last] = (text, declarations)
        return self.last
