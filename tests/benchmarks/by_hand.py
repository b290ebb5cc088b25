"""The job that one would write by hand: one JDBC read, the last change of each key, one MERGE.

By itself it takes the password from the environment variable ``MSSQL_PASSWORD``.
"""

from __future__ import annotations

import argparse
import os

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

COLUMNS = ["id", "customer", "region", "name", "amount", "quantity", "rate", "active", "at", "due", "code", "total"]


def merge_changes(spark: SparkSession, url: str, user: str, password: str, after: str, upto: str, target: str) -> None:
    """Merge the changes of (after, upto] of capture instance dbo_wide into the target."""
    query = (
        f"(SELECT [__$start_lsn] AS lsn, [__$seqval] AS seqval, [__$operation] AS op, {', '.join(COLUMNS)}"
        f" FROM cdc.fn_cdc_get_all_changes_dbo_wide({after}, {upto}, N'all')) changes"
    )
    properties = {
        "driver": "com.microsoft.sqlserver.jdbc.SQLServerDriver",
        "user": user,
        "password": password,
        "fetchsize": "10000",
        "preferTimestampNTZ": "true",
    }
    changes = spark.read.jdbc(url, query, properties=properties)
    newest = Window.partitionBy("id").orderBy(F.desc("lsn"), F.desc("seqval"), F.desc("op"))
    changes.withColumn("n", F.row_number().over(newest)).where("n = 1").createOrReplaceTempView("changes")
    spark.sql(
        f"MERGE INTO {target} t USING changes s ON t.id = s.id"
        " WHEN MATCHED AND s.op = 1 THEN DELETE"
        f" WHEN MATCHED THEN UPDATE SET {', '.join(f't.{c} = s.{c}' for c in COLUMNS)}"
        f" WHEN NOT MATCHED AND s.op <> 1 THEN INSERT ({', '.join(COLUMNS)})"
        f" VALUES ({', '.join(f's.{c}' for c in COLUMNS)})"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("url", "user", "after", "upto", "target"):
        parser.add_argument(f"--{name}", required=True)
    given = vars(parser.parse_args())
    merge_changes(SparkSession.builder.getOrCreate(), password=os.environ["MSSQL_PASSWORD"], **given)
