"""The job that one would write by hand: the change table read, the last change of each key, one MERGE.

It has what can be set for our own: one JDBC connection for each core, the change table without the function before it,
the fetch size, and in the same session the settings of Spark and the properties of the table. It stages nothing, keeps
no position beside its rows, and knows no large values, keys that change, or row filters.

By itself it takes the password from the environment variable ``MSSQL_PASSWORD``.
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Sequence

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

COLUMNS = ["id", "customer", "region", "name", "amount", "quantity", "rate", "active", "at", "due", "code", "total"]


def merge_changes(spark: SparkSession, url: str, user: str, password: str, lsns: Sequence[str], target: str) -> None:
    """Merge the changes of capture instance dbo_wide into the target.

    :param lsns: behind the first one and up to the last one, by a connection for each two that follow each other
    """
    query = (
        f"(SELECT [__$start_lsn] AS lsn, [__$seqval] AS seqval, [__$operation] AS op, {', '.join(COLUMNS)}"
        " FROM cdc.dbo_wide_CT WHERE [__$operation] <> 3) changes"
    )
    slices = [f"lsn > {after} AND lsn <= {upto}" for after, upto in itertools.pairwise(lsns)]
    properties = {
        "driver": "com.microsoft.sqlserver.jdbc.SQLServerDriver",
        "user": user,
        "password": password,
        "fetchsize": "10000",
        "preferTimestampNTZ": "true",
    }
    changes = spark.read.jdbc(url, query, predicates=slices, properties=properties)
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
    for name in ("url", "user", "target"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--lsns", nargs="+", required=True)
    given = vars(parser.parse_args())
    merge_changes(SparkSession.builder.getOrCreate(), password=os.environ["MSSQL_PASSWORD"], **given)
