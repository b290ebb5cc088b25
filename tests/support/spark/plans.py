"""The plans that Spark has carried out, as text."""

from __future__ import annotations

import re
from collections.abc import Callable

from pyspark.sql import SparkSession


def plans_of(spark: SparkSession, act: Callable[[], object]) -> list[str]:
    """The final physical plans of what an action does, in their order."""
    before = set(_plans(spark))
    act()
    after = _plans(spark)
    return [after[number] for number in sorted(after.keys() - before)]


def scans(plan: str, table: str) -> list[str]:
    """What a plan reads of an Iceberg table: the columns of each scan, and its filters."""
    parts = re.split(r"\n\n(?=\(\d+\) )", plan)
    return [part.partition(") ")[2] for part in parts if re.match(rf"\(\d+\) BatchScan {re.escape(table)}\s", part)]


def shuffled_scans(plan: str, table: str) -> list[str]:
    """The scans of a table whose rows are exchanged before a join has taken them."""
    found, lines = [], _tree(plan)
    for number, line in enumerate(lines):
        if not re.search(rf"BatchScan {re.escape(table)} \(", line):
            continue
        depth = _depth(line)
        for above in reversed(lines[:number]):
            if _depth(above) >= depth:
                continue
            depth = _depth(above)
            if "Join" in above:
                break
            if re.search(r"\bExchange", above):
                found.append(line.strip())
                break
    return found


def _tree(plan: str) -> list[str]:
    """The lines of the plan that was carried out at last, in the form of a tree."""
    tree = plan.partition("== Physical Plan ==")[2].partition("\n\n(1)")[0].partition("== Initial Plan ==")[0]
    return [line for line in tree.splitlines() if line.strip()]


def _depth(line: str) -> int:
    found = re.search(r"[A-Za-z*]", line)
    return found.start() if found else 0


def _plans(spark: SparkSession) -> dict[int, str]:
    # what the listener bus has not handed over yet is not in the store
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    found = spark._jsparkSession.sharedState().statusStore().executionsList()
    return {found.apply(i).executionId(): found.apply(i).physicalPlanDescription() for i in range(found.size())}
