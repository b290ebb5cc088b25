"""An embedded SQL Server stand-in that speaks TDS over loopback: a test tool, not a database.

Its interface is what is named here, and the pytest fixture in ``sandbox.fixtures``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox.protocol import SqlError, Unsupported
    from airflow_provider_mssql_cdc.sandbox.server import Sandbox

__all__ = ["Sandbox", "SqlError", "Unsupported"]

_MODULES = {"Sandbox": "server", "SqlError": "protocol", "Unsupported": "protocol"}


def __getattr__(name: str) -> object:
    # DuckDB and what else the stand-in is made of come when it is asked for, not with this package
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
