"""The scenario ``targets``: one table goes into every target, in all shapes that it takes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import pyarrow as pa

from airflow_provider_mssql_cdc.cli.demo import lake, postgres, report, shop, targets_lake
from airflow_provider_mssql_cdc.cli.demo.compare import Comparison, compare, read_events, read_source
from airflow_provider_mssql_cdc.cli.demo.expected import Expected, Row, copied_at
from airflow_provider_mssql_cdc.cli.demo.play import Demo
from airflow_provider_mssql_cdc.cli.demo.targets_lake import HISTORY, SHAPES, TABLE, TRANSACTIONS, VERSIONS

_COMMITS_BETWEEN = 120
_POLL = 0.05


class Targets(Demo):
    """The demo with another DAG and two runs: one for the rows of now, one for what changes then."""

    dag_id = "shop_targets"
    reader = targets_lake.__name__
    sides = "Source and all targets"
    shapes: Mapping[str, tuple[str, ...]] = SHAPES
    """The targets of the DAG, and the shapes that each takes."""

    def _start_more(self, stack: ExitStack) -> dict[str, str]:
        """Start PostgreSQL, or leave it out."""
        self.postgres: postgres.PostgreSql | None = None
        reason = postgres.missing()
        if reason is None:
            self.postgres = stack.enter_context(postgres.running(self.children, self.logs / "postgresql.log"))
        else:
            self.left_out = {"postgresql": reason}
        self.loads = tuple(target for target in self.shapes if target not in self.left_out)
        self.conf = {"targets": list(self.loads)}
        return {} if self.postgres is None else {"AIRFLOW_CONN_POSTGRES_DEFAULT": self.postgres.connection}

    def load_changes(self) -> None:
        """Have the shop go on for a while; the last run loads that."""
        with self._reporter.step("The shop goes on"):
            enough = self.writer.commits + _COMMITS_BETWEEN
            self.writer.start()
            while self.writer.running and self.writer.commits < enough:
                time.sleep(_POLL)

    def compare(self) -> list[dict[str, Any]]:
        """Compare the table in each target and shape, and return what became of each.

        :raises CommandError: if one side cannot be read
        """
        with self._reporter.step("Comparing source and targets") as notes:
            with self._lake_exported():
                source, events = self._read_both()
            results = []
            for target in self.loads:
                runs = [run for run in self.runs if run["load"] == target]
                low = copied_at(TABLE, runs)
                expected = Expected(TABLE, low, source, [event for event in events if event[0] > low])
                totals = report.add_up(runs)[TABLE.full_name]
                for shape in self.shapes[target]:
                    found = compare_shape(shape, source, expected, self._read_target(target, shape))
                    results.append(result_of_sink(TABLE, target, shape, totals, found))
            notes.append(f"{sum(result['rows'] for result in results):,} rows")
        return results

    def _read_both(self) -> tuple[list[Row], list[Row]]:
        # each target has a first load of its own
        low = min(copied_at(TABLE, [run for run in self.runs if run["load"] == target]) for target in self.loads)
        with contextlib.closing(self._connect()) as connection:
            changes = f"cdc.[{TABLE.schema}_{TABLE.name}_CT]"
            return (
                read_source(connection, TABLE.full_name, TABLE.arrow),
                read_events(connection, changes, TABLE.events, low),
            )

    def _read_target(self, target: str, shape: str) -> pa.Table:
        if target != "postgresql" or self.postgres is None:
            return lake.read_export(self._export, f"{target}.{shape}")
        suffix = "" if shape == "mirror" else f"_{shape}"
        return self.postgres.read(targets_lake.query(f"shop.{targets_lake.NAME}{suffix}", shape))


def compare_shape(shape: str, source: list[Row], expected: Expected, there: pa.Table) -> dict[str, Comparison]:
    """Compare one shape in one target with the source.

    :param source: the rows of the source
    :param there: what the target holds
    """
    if shape == "mirror":
        return {"rows": compare(source, there, TABLE.arrow, TABLE.key)}
    if shape == "history":
        return {"events": compare(expected.history(), there, HISTORY, (*shop.EVENT, *TABLE.key))}
    if shape == "transactions":
        return {"transactions": compare(expected.transactions(), there, TRANSACTIONS, ("_lsn",))}
    is_open = there.column("_to_lsn").is_null()
    return {
        "versions": compare(expected.versions(), there, VERSIONS, (*TABLE.key, "_from_lsn")),
        "open versions": compare(source, there.filter(is_open).select(TABLE.arrow.names), TABLE.arrow, TABLE.key),
    }


def result_of_sink(
    table: shop.Table, target: str, shape: str, totals: dict[str, Any], found: dict[str, Comparison]
) -> dict[str, Any]:
    """What became of a table in one target and shape.

    :param totals: of the target's loads
    :param found: what was compared
    """
    return {
        "table": table.full_name,
        "target": target,
        "shape": shape,
        **totals,
        "rows": next(iter(found.values())).lake_rows,
        "equal": all(comparison.equal for comparison in found.values()),
        "differences": [f"{what}: {example}" for what, each in found.items() for example in each.examples],
    }
