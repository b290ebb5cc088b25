"""Thousands of loads say nothing, and find a world where Spark would be."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.support.faults.world import patched


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Keep the job's own lines out of the report of a failing history."""
    logger = logging.getLogger("airflow_provider_mssql_cdc")
    logger.setLevel(logging.CRITICAL)
    with patched():
        yield
    logger.setLevel(logging.NOTSET)
