"""The scenario ``change-tracking``: an Express edition is loaded by it, and a gap of CDC elsewhere is healed by it."""

from __future__ import annotations

import contextlib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from airflow_provider_mssql_cdc.cli.demo import lake, report, shop, tracked_lake, visits
from airflow_provider_mssql_cdc.cli.demo.compare import compare, read_source
from airflow_provider_mssql_cdc.cli.demo.play import DATABASE, Demo, connect_to
from airflow_provider_mssql_cdc.cli.demo.visits import VISITS
from airflow_provider_mssql_cdc.cli.exit import CommandError
from airflow_provider_mssql_cdc.cli.sandbox import open_sandbox
from airflow_provider_mssql_cdc.sandbox import Sandbox

_WEB = "web"
_NOTED, _LOST = 20, 50
_SHAPES = ("mirror", "history", "scd2")


class Tracking(Demo):
    """The demo with two servers: the shop on one without CDC, a big table with CDC and Change Tracking on another."""

    dag_id = "tracked_shop"
    loads = ("load", "visits")
    history = "web_visits_history"
    reader = tracked_lake.__name__
    edition = "Express"

    def find_dags(self) -> Path:
        """The folder of the demo's own DAGs."""
        return Path(__file__).with_name("dags")

    def _start_more(self, stack: ExitStack) -> dict[str, str]:
        """Start the server of the table that has both."""
        self.web = stack.enter_context(open_sandbox(host="127.0.0.1", port=0, database=_WEB, capture_interval=0.2))
        return {"AIRFLOW_CONN_MSSQL_WEB": self.web.connection_uri(_WEB)}

    def prepare(self) -> None:
        """Fill shop and table, while Airflow makes its metadata database."""
        self.visitors = visits.Visitors(self._connect_web, self._rows)
        with self._reporter.step(f"A shop on an Express edition, {self._rows:,} rows, Change Tracking enabled"):
            shop.build(self.sandbox, DATABASE, self._rows, captured=False)
            for statement in tracking_statements():
                self.sandbox.execute(statement, database=DATABASE)
        with self._reporter.step(f"{VISITS.full_name} on another server, {self._rows:,} rows, with CDC, too"):
            visits.build(self.web, _WEB, self._rows)
            _track(self.web, _WEB, VISITS)
        with self._reporter.step("Airflow with a home of its own"):
            self.packages = self.runner.wait_until_ready()["packages"]

    def load_first(self) -> None:
        """Run the DAG for the first time, while the shop changes."""
        self.writer.start()
        with self.run_step("first loads, while the shop changes") as notes:
            self._run(notes)
        self.writer.stop()

    def load_changes(self) -> None:
        """Load what the shop has changed, and let the other table's marker get a version."""
        self.visitors.change(_NOTED, noted=False)
        self._wait_for_visits()
        self.writer.start()
        with self.run_step("changes, while the shop changes") as notes:
            self._run(notes)

    def load_rest(self) -> None:
        """Close the shop, lose changes of the other table, and run the DAG for the last time."""
        with self._reporter.step("The shop closes") as notes:
            self.writer.stop()
            notes.append(f"{self.writer.commits:,} transactions, and {self.writer.rollbacks:,} rolled back")
        with self._reporter.step(f"Changes of {VISITS.full_name} that are purged before any run sees them") as notes:
            self.visitors.change(_LOST, noted=False)
            mark = self._wait_for_visits()
            self.web.execute(
                f"EXEC sys.sp_cdc_cleanup_change_table N'web_visits', {mark}, @threshold = 100000", database=_WEB
            )
            notes.append(f"{_LOST} transactions")
        with self.run_step("the rest, and Change Tracking heals the gap") as notes:
            self._lake_reader = self._start_lake_reader()
            self._run(notes)
        (entry,) = next(run["tables"] for run in self.runs[-2:] if run["load"] == "visits")
        if {*entry["sinks"].values()} != {"healed"}:
            raise CommandError(f"the gap was not healed: {entry['sinks']}, {entry['warnings']}")
        with contextlib.closing(self._connect_web()) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT COUNT(*) FROM {VISITS.full_name}")
            (rows,) = cursor.fetchone()
        self.runs[-1]["healed"] = {"table": entry["table"], "read": entry["copied"], "of": rows}
        self._reporter.line(f"{'':10}{entry['copied']:,} of {rows:,} rows were read to heal the gap")

    def compare(self) -> list[dict[str, Any]]:
        """Compare the tables with their targets.

        :raises CommandError: if one side cannot be read
        """
        with self._reporter.step("Comparing all rows and columns of sources and lake") as notes:
            with self._lake_exported():
                source = self._read_source()
                with contextlib.closing(self._connect_web()) as connection:
                    source[VISITS.full_name] = read_source(connection, VISITS.full_name, VISITS.arrow)
            totals, results = report.add_up(self.runs), []
            for table in (*shop.TABLES, VISITS):
                name = table.full_name
                found = {
                    shape: compare(
                        source[name], lake.read_export(self._export, f"{name}.{shape}"), table.arrow, table.key
                    )
                    for shape in (_SHAPES if table is not VISITS else _SHAPES[:2])
                }
                results.append(
                    {
                        "table": name,
                        **totals[name],
                        "rows": len(source[name]),
                        "equal": all(each.equal for each in found.values()),
                        "differences": [f"{shape}: {text}" for shape, each in found.items() for text in each.examples],
                    }
                )
            notes.append(f"{sum(result['rows'] for result in results):,} rows")
        return results

    def _connect_web(self) -> Any:
        return connect_to(self.web, _WEB)

    def _wait_for_visits(self) -> str:
        """Wait until the capture has reached a transaction that is made now; its position."""
        return self._wait_for_capture("cdc.web_visits_CT", "visit_id", self.visitors.mark(), self._connect_web)


def tracking_statements() -> list[str]:
    """The batches that let Change Tracking track the shop, and its rows be read as of one moment."""
    return [
        "ALTER DATABASE CURRENT SET CHANGE_TRACKING = ON (CHANGE_RETENTION = 7 DAYS)",
        "ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON",
        *(f"ALTER TABLE {table.full_name} ENABLE CHANGE_TRACKING" for table in shop.TABLES),
    ]


def _track(server: Sandbox, database: str, table: shop.Table) -> None:
    server.execute("ALTER DATABASE CURRENT SET CHANGE_TRACKING = ON (CHANGE_RETENTION = 7 DAYS)", database=database)
    server.execute(f"ALTER TABLE {table.full_name} ENABLE CHANGE_TRACKING", database=database)
