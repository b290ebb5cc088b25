"""The same servers and databases as for the hook."""

from __future__ import annotations

from tests.hooks.conftest import sandbox, server, source

__all__ = ["sandbox", "server", "source"]
