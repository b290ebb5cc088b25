"""What Spark needs for each target format: jars, extensions, catalogs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_provider_mssql_cdc.core.target import DELTA, ICEBERG, PARQUET, POSTGRESQL

JDBC_DRIVER = "com.microsoft.sqlserver:mssql-jdbc:13.6.2.jre11"


@dataclass(frozen=True, slots=True)
class Needs:
    """Of one format, for Spark 4.1.

    :param packages: Maven coordinates beside the JDBC driver's
    :param conf: Spark settings, which the author's own replace
    """

    packages: tuple[str, ...]
    conf: Mapping[str, str] = field(default_factory=dict)


FORMATS = {
    ICEBERG: Needs(
        ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",),
        {"spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"},
    ),
    DELTA: Needs(
        ("io.delta:delta-spark_4.1_2.13:4.4.0",),
        {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            # tables in folders are found through it, too
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
    ),
    PARQUET: Needs(()),
    POSTGRESQL: Needs(("org.postgresql:postgresql:42.7.14",)),
}


def packages(target: str) -> str | None:
    """Return the jars for a target, as ``spark.jars.packages`` takes them.

    :param target: its address
    :return: None if it does not begin with a format, as a template may not
    """
    for name, needs in FORMATS.items():
        if target.startswith((f"{name}:", f"{name}+")):
            return ",".join((*needs.packages, JDBC_DRIVER))
    return None
