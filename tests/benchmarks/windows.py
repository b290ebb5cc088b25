"""Windows of growing size, into each target and shape: what a change costs, and how much memory a load takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.benchmarks import source
from tests.benchmarks.lab import SHAPES, available, opened


@dataclass(frozen=True, slots=True)
class Measured:
    """What the load of one window took.

    :param cost: seconds of the job for each change
    :param peak: bytes
    """

    size: int
    cost: float
    peak: int


def measure(
    sizes: Sequence[int], targets: Sequence[str], shapes: Sequence[str], heap: str, *, one_transaction: bool = False
) -> None:
    """(f) Windows of changes into tables of half as many rows, each by an application of its own.

    :param sizes: changes of each window
    :param shapes: as far as a target has them
    :param heap: of the applications, as Spark takes it
    :param one_transaction: makes each window, instead of one for each 50,000 rows
    """
    targets = available(targets)
    before: dict[str, Measured] = {}
    for size in sorted(sizes):
        keys, transactions = size // 2, "one transaction" if one_transaction else "many transactions"
        print(
            f"\n(f) {size:,} changes of 12 columns in {transactions} into a table of {keys:,} rows, in a heap of"
            f" {heap}; seconds of the job alone, without Spark's start",
            flush=True,
        )
        with opened(targets, heap) as lab:
            source.create(lab.server, keys)
            sinks = {
                f"{target} {shape}": lab.loads((source.TABLE,), target, shape)
                for target in targets
                for shape in SHAPES[target]
                if shape in shapes
            }
            for loads in sinks.values():
                loads.load(lab.spark, loads.plan())
            source.change_all_ways(lab.server, source.TABLE, 0, size, one_transaction=one_transaction)
            for name, loads in sinks.items():
                plan = loads.plan()
                done = lab.submit(loads, plan)
                (table,) = done.receipt.tables
                if table.counts["events"] != size:
                    raise RuntimeError(f"not a window of {size} changes: {table.counts}")
                now = Measured(size, done.receipt.seconds / size, done.peak)
                # at once: a later one may take long, or fail
                print(
                    f"  {name}: {1 / now.cost:,.0f} changes/s; {1000 * now.cost:.3f} s per 1,000 changes;"
                    f" peak memory {now.peak / 2**20:,.0f} MiB;"
                    f" {steps(table.seconds)} of {done.receipt.seconds:.1f} s;"
                    f" {lab.differing(loads, plan, keys)} rows differ",
                    flush=True,
                )
                if name in before:
                    print(f"  {name}, beside {before[name].size:,}: {growth(before[name], now)}", flush=True)
                before[name] = now


def steps(seconds: Mapping[str, float]) -> str:
    """Seconds by step as text; what is folded is worked out while it is committed."""
    named = {
        **{step: value for step, value in seconds.items() if step not in ("fold", "commit")},
        "fold and commit": seconds.get("fold", 0.0) + seconds.get("commit", 0.0),
    }
    return ", ".join(f"{step} {value:.1f}" for step, value in named.items())


def growth(before: Measured, now: Measured) -> str:
    """Whether a change costs more than in the window before, and how the memory grew, as text."""
    cost = now.cost / before.cost
    grown = f"grew by {cost - 1:.0%}" if cost > 1 else f"did not grow: it fell by {1 - cost:.0%}"
    return f"the cost of a change {grown}; peak memory {now.peak / before.peak:.2f} times as much"
