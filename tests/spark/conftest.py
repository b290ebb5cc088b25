"""The servers of the Spark tests."""

import uuid
from contextlib import closing

import pytest

from tests.support.harsh import harsh_sandbox
from tests.support.logins import SPARK_PASSWORD, SPARK_USER, TARGET_PASSWORD, TARGET_USER
from tests.support.spark import postgres
from tests.support.spark.origin import Origin


@pytest.fixture
def namespace():
    """A namespace of the lake for this test alone."""
    return f"t{uuid.uuid4().hex}"


@pytest.fixture(scope="session")
def sandbox():
    """One server for all databases."""
    with harsh_sandbox(user=SPARK_USER, password=SPARK_PASSWORD) as server:
        yield server


@pytest.fixture(scope="session")
def postgresql():
    """One PostgreSQL for all schemas."""
    with postgres.running() as server:
        yield server


@pytest.fixture(scope="session")
def jdbc_catalog(spark, postgresql, tmp_path_factory):
    """The name of an Iceberg catalog that a database keeps."""
    database, name = "catalogs", "kept"
    postgresql.sql(f"CREATE DATABASE {database}", "postgres")
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "jdbc",
        ".uri": f"jdbc:postgresql://127.0.0.1:{postgresql.port}/{database}",
        ".jdbc.user": TARGET_USER,
        ".jdbc.password": TARGET_PASSWORD,
        ".jdbc.schema-version": "V1",
        ".warehouse": str(tmp_path_factory.mktemp("kept")),
    }
    # for sessions to come, as --conf sets it
    conf = spark.sparkContext._jsc.sc().conf()
    for key, value in settings.items():
        conf.set(f"spark.sql.catalog.{name}{key}", value)
    return name


@pytest.fixture(scope="module")
def careless_cluster(spark):
    """A cluster whose defaults, for sessions to come, would change rows."""
    settings = {
        "spark.sql.session.timeZone": "Asia/Kathmandu",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.storeAssignmentPolicy": "LEGACY",
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.files.ignoreMissingFiles": "true",
        "spark.sql.files.ignoreCorruptFiles": "true",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    }
    conf = spark.sparkContext._jsc.sc().conf()
    for name, value in settings.items():
        conf.set(name, value)
    yield
    for name in settings:
        conf.remove(name)


@pytest.fixture
def delta_catalog(spark, namespace):
    """The name of the catalog for Delta tables, of which there is one for all tests of the process."""
    name = "spark_catalog"
    yield name
    spark.sql(f"DROP NAMESPACE IF EXISTS {name}.`{namespace}` CASCADE")


@pytest.fixture
def origin(spark, sandbox, tmp_path, namespace):
    """A database whose capture runs only when the test says so."""
    with closing(Origin(spark, sandbox, tmp_path, namespace)) as found:
        yield found


@pytest.fixture
def live(spark, sandbox, tmp_path, namespace):
    """A database whose capture job runs."""
    with closing(Origin(spark, sandbox, tmp_path, namespace, live=True)) as found:
        yield found
