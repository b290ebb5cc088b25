"""Many windows into one large mirror: what the last costs beside the first, with and without maintenance."""

from __future__ import annotations

import dataclasses

import numpy as np

from airflow_provider_mssql_cdc.core.formats import ICEBERG
from airflow_provider_mssql_cdc.core.shapes import MIRROR
from tests.benchmarks import source, upserts
from tests.benchmarks.application import Application
from tests.benchmarks.lab import Lab, opened
from tests.benchmarks.loads import Loads
from tests.benchmarks.timing import ratios, report, spread

_BESIDE = 5


def measure(size: int, changes: int, windows: int, heap: str, every: int) -> None:
    """(j) Windows of random keys, one after the other, into an Iceberg mirror.

    The first and the last have an application of their own, whose memory is watched; the others share a warm session.

    :param size: rows of the table
    :param changes: of each window
    :param every: after so many windows data files and manifests are rewritten and old snapshots expired; 0 for never
    """
    random, pool = np.random.default_rng(size), 20 * changes
    with opened([ICEBERG], heap) as lab:
        loads = lab.loads((source.TABLE,), ICEBERG, MIRROR)
        there = np.sort(random.choice(size, pool, replace=False))
        source.create(lab.server, 0)
        source.insert(lab.server, source.TABLE, there)
        lab.server.step()
        plan = loads.plan()
        loads.load(lab.spark, plan)
        table = upserts.target_table(lab, plan, ICEBERG, MIRROR)
        upserts.fill(lab.spark, table, size, MIRROR)
        lab.spark.sql(f"ALTER TABLE {table} CREATE TAG before")
        before = upserts.snapshot_of(lab.spark, table, ICEBERG)
        warm, alone, new = [], [], size
        for number in range(windows):
            chosen = random.permutation(there)[: changes * 8 // 10]
            updated, deleted = np.split(chosen, [changes * 7 // 10])
            added = np.arange(new, new + changes * 2 // 10, dtype=np.int64)
            _change(lab, updated, deleted, added)
            there, new = np.concatenate([np.setdiff1d(there, deleted), added]), new + len(added)
            if number in (0, windows - 1):
                alone.append(lab.submit(loads, loads.plan()))
            else:
                warm.append(_load(lab, loads))
            if every and number % every == every - 1 and number < windows - 1:
                _maintain(lab, table)
        files = lab.spark.sql(f"SELECT content, count(*) AS n FROM {table}.files GROUP BY content").collect()
        wrong = upserts.differing(lab, table, ICEBERG, before)
    _report(size, changes, windows, every, warm, alone)
    print(f"  files of the table (0 data, 1 deletes): {sorted((f.content, f.n) for f in files)}; {wrong} rows differ")


def _change(lab: Lab, updated: np.ndarray, deleted: np.ndarray, added: np.ndarray) -> None:
    source.execute_for(lab.server, source.UPDATE.format(table=source.TABLE), updated)
    source.execute_for(lab.server, f"DELETE FROM {source.TABLE}", deleted)
    source.insert(lab.server, source.TABLE, added)
    lab.server.step()


def _load(lab: Lab, loads: Loads) -> float:
    return upserts.fold_and_commit(loads.load(lab.spark, loads.plan()))


def _maintain(lab: Lab, table: str) -> None:
    name = table.partition(".")[2]
    # loads have sessions of their own
    lab.spark.sql(f"REFRESH TABLE {table}")
    for call in (
        f"rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))",
        f"rewrite_manifests(table => '{name}')",
        f"expire_snapshots(table => '{name}', older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)",
    ):
        lab.spark.sql(f"CALL lake.system.{call}")


def _report(size: int, changes: int, windows: int, every: int, warm: list[float], alone: list[Application]) -> None:
    first, last = warm[:_BESIDE], warm[-_BESIDE:]
    report(
        f"(j) {windows} windows of {changes:,} changes into {size:,} rows, "
        + (f"maintained after each {every}" if every else "never maintained"),
        {
            f"windows 2 to {_BESIDE + 1}, fold and commit": spread(first, " s"),
            f"the {_BESIDE} before the last": spread(last, " s"),
            "times, each beside each": spread(ratios(first, last)),
            "the first by an application of its own": f"{alone[0].seconds:.1f} s, {alone[0].peak / 2**20:,.0f} MiB",
            "the last by an application of its own": f"{alone[1].seconds:.1f} s, {alone[1].peak / 2**20:,.0f} MiB",
        },
    )


def memory(sizes: list[int], changes: int, heap: str) -> None:
    """(k) A window whose key is a number and a text, by an application of its own with a small heap.

    :param sizes: rows of the tables
    :param changes: of the window; half of them are inserts
    """
    for size in sizes:
        with opened([ICEBERG], "4g") as lab:
            lab = dataclasses.replace(lab, heap=heap)
            loads = lab.loads((source.TABLE,), ICEBERG, MIRROR)
            keys = changes // 2
            source.create(lab.server, keys, key="id, code")
            plan = loads.plan()
            loads.load(lab.spark, plan)
            table = upserts.target_table(lab, plan, ICEBERG, MIRROR)
            if size > keys:
                upserts.fill(lab.spark, table, size - keys, MIRROR, first=changes)
            before = upserts.snapshot_of(lab.spark, table, ICEBERG)
            source.change_all_ways(lab.server, source.TABLE, 0, changes)
            done = lab.submit(loads, loads.plan())
            counted = done.receipt.tables[0].counts["events"]
            wrong = upserts.differing(lab, table, ICEBERG, before)
        report(
            f"(k) {counted:,} changes with the key (number, text) into {max(size, keys):,} rows, heap of {heap}",
            {
                "from spark-submit to its end": f"{done.seconds:.1f} s, of all cores {done.cpu:.1f} s",
                "peak memory": f"{done.peak / 2**20:,.0f} MiB",
                "rows that differ": str(wrong),
            },
        )
