"""Windows of growing size, into each target and shape: what a change costs, and how much memory a load takes."""

from __future__ import annotations

from collections.abc import Sequence

from tests.benchmarks import source
from tests.benchmarks.lab import SHAPES, available, opened
from tests.benchmarks.timing import report


def measure(sizes: Sequence[int], targets: Sequence[str], heap: str) -> None:
    """(f) Windows of changes into tables of half as many rows, each by an application of its own.

    :param sizes: changes of each window
    :param heap: of the applications, as Spark takes it
    """
    targets = available(targets)
    seconds: dict[str, list[float]] = {}
    peaks: dict[str, list[int]] = {}
    for size in sorted(sizes):
        keys = size // 2
        lines = {}
        with opened(targets, heap) as lab:
            source.create(lab.server, keys)
            sinks = {
                f"{target} {shape}": lab.loads((source.TABLE,), target, shape)
                for target in targets
                for shape in SHAPES[target]
            }
            for loads in sinks.values():
                loads.load(lab.spark, loads.plan())
            source.change_all_ways(lab.server, source.TABLE, 0, size)
            for name, loads in sinks.items():
                plan = loads.plan()
                done = lab.submit(loads, plan)
                (table,) = done.receipt.tables
                if table.counts["events"] != size:
                    raise RuntimeError(f"not a window of {size} changes: {table.counts}")
                taken, peak = seconds.setdefault(name, []), peaks.setdefault(name, [])
                taken.append(sum(table.seconds.values()) / size)
                peak.append(done.peak)
                lines[name] = (
                    f"{1 / taken[-1]:,.0f} changes/s; {1000 * taken[-1]:.3f} s per 1,000 changes {_beside(taken)};"
                    f" peak memory {peak[-1] / 2**20:,.0f} MiB {_beside(peak)};"
                    f" {', '.join(f'{step} {value:.1f}' for step, value in table.seconds.items())} s;"
                    f" {lab.differing(loads, plan, keys)} rows differ"
                )
        report(
            f"(f) {size:,} changes of 12 columns into a table of {keys:,} rows, in a heap of {heap};"
            " in brackets beside the smallest window, and beside the one before",
            lines,
        )


def _beside(values: Sequence[float]) -> str:
    return f"({values[-1] / values[0]:.2f}, {values[-1] / values[max(0, len(values) - 2)]:.2f})"
