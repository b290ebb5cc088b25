"""What Spark needs for each target format: jars, extensions, catalogs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_provider_mssql_cdc.core.target import DELTA, ICEBERG, PARQUET, POSTGRESQL
from airflow_provider_mssql_cdc.operators.jars import Package

JDBC_DRIVER = Package("com.microsoft.sqlserver:mssql-jdbc:13.6.2.jre11")

_DELTA = Package(
    "io.delta:delta-spark_4.1_2.13:4.4.0",
    (
        "io.delta:delta-storage:4.4.0",
        "io.delta:delta-kernel-api:4.4.0",
        "io.delta:delta-kernel-defaults:4.4.0",
        "io.delta:delta-kernel-unitycatalog:4.4.0",
        "io.unitycatalog:unitycatalog-client:0.6.0",
    ),
    # by way of Unity Catalog's Hadoop part Maven brings older versions of what Spark has
    (
        "com.*:*",
        "commons-*:*",
        "io.airlift:*",
        "io.unitycatalog:unitycatalog-hadoop",
        "jakarta.*:*",
        "javax.*:*",
        "org.*:*",
    ),
)


@dataclass(frozen=True, slots=True)
class Needs:
    """Of one format, for Spark 4.1.

    :param packages: beside the JDBC driver
    :param conf: Spark settings, which the author's own replace
    """

    packages: tuple[Package, ...]
    conf: Mapping[str, str] = field(default_factory=dict)


FORMATS = {
    ICEBERG: Needs(
        (Package("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"),),
        {"spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"},
    ),
    DELTA: Needs(
        (_DELTA,),
        {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            # tables in folders are found through it, too
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
    ),
    PARQUET: Needs(()),
    POSTGRESQL: Needs((Package("org.postgresql:postgresql:42.7.14"),)),
}


def packages(target: str) -> str | None:
    """Return the jars for a target, as ``spark.jars.packages`` takes them.

    :param target: its address
    :return: None if it does not begin with a format, as a template may not
    """
    for name, needs in FORMATS.items():
        if target.startswith((f"{name}:", f"{name}+")):
            return ",".join(package.coordinate for package in (*needs.packages, JDBC_DRIVER))
    return None


def named(coordinates: str) -> tuple[Package, ...]:
    """The packages that ``packages`` has named.

    :raises KeyError: for another one
    """
    known = {package.coordinate: package for needs in FORMATS.values() for package in (*needs.packages, JDBC_DRIVER)}
    return tuple(known[coordinate] for coordinate in coordinates.split(","))
