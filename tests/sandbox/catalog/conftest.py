"""The in-process clients of the language tests."""

from __future__ import annotations

from tests.sandbox.tsql.conftest import client, connect, sandbox

__all__ = ["client", "connect", "sandbox"]
