"""The servers of the Spark tests."""

import uuid

import pytest

from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from tests.logins import SPARK_PASSWORD, SPARK_USER
from tests.spark import postgres
from tests.spark.origin import Origin


@pytest.fixture
def namespace():
    """A namespace of the lake for this test alone."""
    return f"t{uuid.uuid4().hex}"


@pytest.fixture(scope="session")
def sandbox():
    """One server for all databases."""
    with Sandbox(user=SPARK_USER, password=SPARK_PASSWORD, capture_interval=0.1) as server:
        yield server


@pytest.fixture(scope="session")
def postgresql():
    """One PostgreSQL for all schemas."""
    with postgres.running() as server:
        yield server


@pytest.fixture
def origin(spark, sandbox, tmp_path, namespace):
    """A database whose capture runs only when the test says so."""
    return Origin(spark, sandbox, tmp_path, namespace)


@pytest.fixture
def live(spark, sandbox, tmp_path, namespace):
    """A database whose capture job runs."""
    return Origin(spark, sandbox, tmp_path, namespace, live=True)
