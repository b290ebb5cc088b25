"""Small tables in one application: what a further one costs beside a start of Spark."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tests.benchmarks import source
from tests.benchmarks.lab import SHAPES, available, opened
from tests.benchmarks.timing import report, spread

_CHANGES = 8


def measure(counts: Sequence[int], targets: Sequence[str], heap: str, rounds: int) -> None:
    """(g) So many tables, each with a few changes, into the first shape of each target.

    :param heap: of the applications, as Spark takes it
    """
    for target in available(targets):
        shape = SHAPES[target][0]
        whole: dict[int, float] = {}
        starts: list[float] = []
        lines, differing = {}, 0
        for count in sorted(counts):
            tables = [f"dbo.t{n}" for n in range(count)]
            seconds = []
            with opened([target], heap) as lab:
                source.create(lab.server, _CHANGES // 2, tables)
                loads = lab.loads(("dbo.t*",), target, shape)
                plan = loads.plan()
                loads.load(lab.spark, plan)
                for number in range(rounds):
                    for table in tables:
                        source.change_all_ways(lab.server, table, number * _CHANGES // 2, _CHANGES)
                    plan = loads.plan()
                    done = lab.submit(loads, plan)
                    if len(done.receipt.tables) != count:
                        raise RuntimeError(f"not {count} tables: {done.receipt}")
                    seconds.append(done.seconds)
                    starts.append(done.start_seconds)
                differing += lab.differing(loads, plan, _CHANGES // 2)
            whole[count] = statistics.median(seconds)
            lines[f"{count} tables, seconds"] = spread(seconds)
        lines["of that Spark beside the job, seconds"] = spread(starts)
        fewest, most = min(whole), max(whole)
        if most > fewest:
            further = (whole[most] - whole[fewest]) / (most - fewest)
            ratio = further / statistics.median(starts)
            lines["a further table beside a start of Spark (aim 0.1)"] = f"{ratio:.3f} ({further:.2f} s)"
        lines["rows that differ"] = str(differing)
        report(f"(g) tables of {_CHANGES} changes each in one application: {target} {shape}", lines)
