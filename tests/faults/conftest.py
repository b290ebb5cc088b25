"""Thousands of loads say nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Keep the job's own lines out of the report of a failing history."""
    logger = logging.getLogger("airflow_provider_mssql_cdc")
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(logging.NOTSET)
