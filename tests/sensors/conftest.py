"""The same servers and databases as for the hook."""

from __future__ import annotations

from tests.hooks.conftest import dummy_row, sandbox, server, source

__all__ = ["dummy_row", "sandbox", "server", "source"]
