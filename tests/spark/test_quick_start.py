"""These tests' own Spark starts from the archive of classes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conftest import own_archive

pytestmark = pytest.mark.xdist_group("tests.spark.test_formats")


def test_spark_starts_from_the_archive_that_mssql_cdc_warm_has_made(spark: SparkSession) -> None:
    archive = own_archive()
    if archive is None:
        pytest.skip("there is no archive: `mssql-cdc warm` makes it, as .ci/run does")
    assert spark.sparkContext._jvm is not None
    process = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    assert str(archive) in Path(f"/proc/{process}/maps").read_text()
