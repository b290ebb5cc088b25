"""One Spark for all tests of this folder: they share a worker through the xdist group ``spark``."""

import os
import sys

import pytest
from pyspark.sql import SparkSession

from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from tests.spark.origin import Origin

PACKAGES = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "com.microsoft.sqlserver:mssql-jdbc:13.6.2.jre11",
)
USER, PASSWORD = "reader", "canary-S3cret!"


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.jars.packages", ",".join(PACKAGES))
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.lake.type", "hadoop")
        .config("spark.sql.catalog.lake.warehouse", str(folder / "lake"))
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.mssql_cdc.user", USER)
        .config("spark.mssql_cdc.password", PASSWORD)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture
def namespace(request):
    """A namespace of the lake for this test alone."""
    return "t" + request.node.nodeid.encode().hex()[-60:]


@pytest.fixture(scope="session")
def sandbox():
    """One server for all databases."""
    with Sandbox(user=USER, password=PASSWORD, capture_interval=0.1) as server:
        yield server


@pytest.fixture
def origin(spark, sandbox, tmp_path, namespace):
    """A database whose capture runs only when the test says so."""
    return Origin(spark, sandbox, tmp_path, namespace)


@pytest.fixture
def live(spark, sandbox, tmp_path, namespace):
    """A database whose capture job runs."""
    return Origin(spark, sandbox, tmp_path, namespace, live=True)
