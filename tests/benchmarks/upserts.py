"""One window into mirrors and versions of growing size: how far its cost follows the table instead of the changes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.formats import ICEBERG
from airflow_provider_mssql_cdc.core.receipt import Receipt
from airflow_provider_mssql_cdc.core.shapes import MIRROR
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.spark.job import run
from tests.benchmarks import source
from tests.benchmarks.lab import Lab, opened
from tests.benchmarks.loads import Loads
from tests.benchmarks.timing import ratios, report, spread

_REWRITE = "CALL lake.system.rewrite_data_files(table => '{name}', %s)"
_ALL = "options => map('rewrite-all', 'true', 'max-file-group-size-bytes', '1000000000000')"
LAYOUTS = {
    "mixed": (),
    "sorted": ("ALTER TABLE lake.{name} WRITE ORDERED BY id", _REWRITE % f"strategy => 'sort', {_ALL}"),
    "bucket": ("ALTER TABLE lake.{name} ADD PARTITION FIELD bucket(16, id)", _REWRITE % _ALL),
    "compacted": (_REWRITE % _ALL,),
}
"""What is done with a table before windows are loaded into it."""

_FILES = 64
_NEWEST = 0.01


def measure(
    sizes: Sequence[int],
    changes: int,
    rounds: int,
    target: str,
    shape: str,
    report_to: Path | None,
    *,
    newest: bool,
    documents: bool,
    layout: str,
    conf: Mapping[str, str],
) -> None:
    """(h) One window of changes into tables of these sizes, in a warm session, each time from the same snapshot.

    Of ten changes seven are updates, two inserts and one is a delete. The table has 64 files, not in the order of keys.

    :param sizes: rows of each table
    :param newest: the changes are of the newest hundredth of the keys, instead of random ones
    :param documents: rows have a text of 4,096 characters, and all changes are updates that leave it out
    :param layout: one of ``LAYOUTS``
    :param conf: further settings of Spark
    :param report_to: file that gets a list of the seconds as JSON
    """
    found = []
    for size in sizes:
        with opened([target], "4g", conf) as lab:
            loads = lab.loads((source.TABLE,), target, shape)
            plan, table = prepare(lab, loads, size, changes, target, shape, newest=newest, documents=documents)
            spark = lab.spark
            for statement in LAYOUTS[layout]:
                spark.sql(statement.format(name=table.removeprefix("lake.")))
            snapshot = snapshot_of(spark, table, target)
            receipts = []
            for _ in range(rounds + 1):
                go_back(spark, table, target, snapshot)
                receipts.append(run(spark, loads.spec(plan)))
            wrong = differing(lab, table, target, snapshot) if shape == MIRROR else -1
        seconds = [fold_and_commit(receipt) for receipt in receipts[1:]]
        whole = [receipt.seconds for receipt in receipts[1:]]
        keys = f"keys of the newest {_NEWEST:.0%}" if newest else "random keys"
        report(
            f"(h) {changes:,} changes, {keys}, into a {shape} of {size:,} rows in {target}"
            + (", each with a text of 4,096 characters that no change has" if documents else "")
            + ("" if layout == "mixed" else f", {layout}"),
            {
                "fold and commit, seconds": spread(seconds),
                "whole job, seconds": spread(whole),
                "rows that differ": str(wrong) if shape == MIRROR else "not looked at",
            },
        )
        found.append({"rows": size, "changes": changes, "seconds": seconds, "job_seconds": whole})
    first = found[0]["seconds"]
    for later in found[1:]:
        times = spread(ratios(first, later["seconds"]))
        report(f"(h) {later['rows']:,} rows beside {found[0]['rows']:,}", {"times, each beside each": times})
    if report_to is not None:
        report_to.write_text(json.dumps(found, indent=1))


def prepare(
    lab: Lab,
    loads: Loads,
    size: int,
    changes: int,
    target: str,
    shape: str,
    *,
    newest: bool = False,
    documents: bool = False,
) -> tuple[RunPlan, str]:
    """Make a source of the rows that will change alone, a target of all, and the changes: the plan, the target."""
    random = np.random.default_rng(size)
    first = int(size * (1 - _NEWEST)) if newest else 0
    updates, inserts = (changes, 0) if documents else (changes * 7 // 10, changes * 2 // 10)
    old = first + random.choice(size - first, changes - inserts, replace=False)
    source.create(lab.server, 0, documents=documents)
    source.insert(lab.server, source.TABLE, old, documents=documents)
    lab.server.step()
    plan = loads.plan()
    loads.load(lab.spark, plan)
    table = target_table(lab, plan, target, shape)
    fill(lab.spark, table, size, shape)
    source.execute_for(lab.server, source.UPDATE.format(table=source.TABLE), old[:updates])
    source.execute_for(lab.server, f"DELETE FROM {source.TABLE}", old[updates:])
    source.insert(lab.server, source.TABLE, np.arange(size, size + inserts, dtype=np.int64))
    lab.server.step()
    return loads.plan(), table


def target_table(lab: Lab, plan: RunPlan, target: str, shape: str) -> str:
    """The name of a plan's only table."""
    name = plan.specs[0].sinks[0].table
    return ".".join(name) if target == ICEBERG else f"delta.`{lab.folder}/delta_{shape}/{name[-1]}`"


def fill(spark: SparkSession, table: str, size: int, shape: str, first: int = 0) -> None:
    """Give a table all rows that its source does not have, and mix them all.

    :param first: the lowest of as many keys as ``size`` says
    """
    there = spark.table(table).localCheckpoint()
    values = {
        "id": "CAST(id AS INT)",
        "customer": "CAST(id % 1000003 AS INT)",
        "region": "concat('region-', id % 100)",
        "name": "concat('name of ', id)",
        "amount": "CAST(id % 1000003 / 10000 AS DECIMAL(18,4))",
        "quantity": "CAST(id % 1000 AS SMALLINT)",
        "rate": "CAST(id % 1000003 / 7 AS DOUBLE)",
        "active": "id % 2 = 0",
        "at": "CAST(timestamp_seconds(1767225600 + id % 1000003) AS TIMESTAMP_NTZ)",
        "due": "date_add(DATE '1970-01-01', CAST(id % 20000 AS INT))",
        "code": "lpad(CAST(id % 1000003 AS STRING), 8, '0')",
        "total": "id % 1000003 * 1000003",
        "document": "repeat(array_join(transform(sequence(0, 7), n -> md5(concat(id, ' ', n))), ''), 16)",
    }
    if shape != MIRROR:
        low = there.select("_from_lsn").first()[0]
        values |= {"_from_lsn": f"'{low}'", "_unknown": "CAST(array() AS ARRAY<STRING>)"}
    names = there.columns
    types = {field.name: field.dataType.simpleString() for field in there.schema.fields}
    others = spark.range(first, first + size).join(
        there.select(there["id"].cast("bigint").alias("id")), "id", "left_anti"
    )
    rows = others.selectExpr(
        *(f"CAST({values.get(name, 'NULL')} AS {types[name]}) AS `{name}`" for name in names)
    ).unionByName(there)
    mixed = rows.repartition(_FILES, "code")
    if table.startswith("delta."):
        mixed.write.format("delta").mode("overwrite").insertInto(table)
    else:
        # each of these tasks writes a file
        mixed.writeTo(table).option("distribution-mode", "none").overwrite(F.lit(True))


def snapshot_of(spark: SparkSession, table: str, target: str) -> int:
    """The number of a table's newest version."""
    if target == ICEBERG:
        return int(spark.sql(f"SELECT snapshot_id FROM {table}.refs WHERE name = 'main'").collect()[0][0])
    return int(spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()[0]["version"])


def go_back(spark: SparkSession, table: str, target: str, snapshot: int) -> None:
    """Make a table what it was."""
    if target == ICEBERG:
        spark.sql(f"CALL lake.system.rollback_to_snapshot(table => '{table}', snapshot_id => {snapshot})")
    else:
        spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {snapshot}")


def fold_and_commit(receipt: Receipt) -> float:
    """Seconds of the only table's fold and commit."""
    (table,) = receipt.tables
    if table.error:
        raise RuntimeError(str(table.error))
    return table.seconds["fold"] + table.seconds["commit"]


def differing(lab: Lab, table: str, target: str, snapshot: int) -> int:
    """How many rows differ from those of before, with the source's in the place of those that changed."""
    spark = lab.spark
    before = spark.read.option("versionAsOf", snapshot).table(table)
    properties = {"driver": source.DRIVER, "user": lab.server.user, "password": lab.server.password}
    url = source.jdbc_url(lab.server)
    now = spark.read.jdbc(url, source.TABLE, properties=properties)
    now = now.selectExpr(*(f"CAST(`{f.name}` AS {f.dataType.simpleString()})" for f in before.schema.fields))
    changed = f"(SELECT DISTINCT id FROM cdc.{source.INSTANCE}_CT) c"
    touched = spark.read.jdbc(url, changed, properties=properties)
    expected = before.join(touched, "id", "left_anti").unionByName(now.join(touched, "id", "left_semi"))
    # loads have sessions of their own
    spark.sql(f"REFRESH TABLE {table}")
    return _not_in(expected, spark.table(table)) + _not_in(spark.table(table), expected)


def _not_in(rows: DataFrame, others: DataFrame) -> int:
    return _shortened(rows).exceptAll(_shortened(others)).count()


def _shortened(rows: DataFrame) -> DataFrame:
    return rows.withColumn("document", F.md5("document")) if "document" in rows.columns else rows
