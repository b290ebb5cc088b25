"""Runs candidates in turn and prints what came out, with the spread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence


def alternate(candidates: Mapping[str, Callable[[], None]], rounds: int, warm_up: int = 1) -> dict[str, list[float]]:
    """Run all candidates in turn, and return the wall seconds of each round after the warm-up."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for number in range(warm_up + rounds):
        for name, run in candidates.items():
            started = time.perf_counter()
            run()
            if number >= warm_up:
                seconds[name].append(time.perf_counter() - started)
    return seconds


def ratios(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """How many times as much each of the second took as each of the first."""
    return [b / a for a in first for b in second]


def spread(values: Sequence[float], unit: str = "", digits: int = 2) -> str:
    """Median, minimum and maximum as text."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f}{unit} ({low:.{digits}f} to {high:.{digits}f}, {len(values)} runs)"


def report(title: str, lines: Mapping[str, str]) -> None:
    """Print one benchmark's results."""
    print(f"\n{title}")
    width = max(map(len, lines))
    for name, text in lines.items():
        print(f"  {name:<{width}}  {text}", flush=True)
