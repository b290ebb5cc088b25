"""The table of schema changes in plain Python: its rows are those that the package adds to what it holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.schema_changes import ChangeRow, HeldRow, SinkRow, rows_to_add, sink_rows_to_add
from airflow_provider_mssql_cdc.core.spec import ChangedTable, JobSpec
from airflow_provider_mssql_cdc.core.taken import TakenBySink

if TYPE_CHECKING:
    from tests.support.faults.evolving import EvolvingWorld


@dataclass
class HeldChanges:
    """What the table of one source table holds.

    :ivar rows: of statements, and of what the catalogue alone told of
    :ivar of_sinks: how far sinks are with these
    """

    rows: list[ChangeRow] = field(default_factory=list)
    of_sinks: list[SinkRow] = field(default_factory=list)

    def held(self) -> list[HeldRow]:
        """The rows as the package reads them."""
        of_sinks = (
            HeldRow(row.at, 0, row.seen_at, row.before, row.after, "[]", row.sink, row.step) for row in self.of_sinks
        )
        return [*(row.held for row in self.rows), *of_sinks]

    def check(self) -> None:
        """Prove that it says each thing once.

        :raises AssertionError: if it does not
        """
        statements = Counter((row.lsn, row.number) for row in self.rows if row.number)
        of_catalogue = Counter((row.seen_at, row.before, row.after) for row in self.rows if not row.number)
        steps = Counter((r.seen_at, r.before, r.after, r.sink.shape, r.sink.column_id, r.step) for r in self.of_sinks)
        for counted in (statements, of_catalogue, steps):
            assert not (doubled := [key for key, count in counted.items() if count > 1]), f"doubled: {doubled}"
        last: dict[object, SinkRow] = {}
        for row in self.of_sinks:
            of = row.seen_at, row.before, row.after, row.sink.shape, row.sink.column_id
            before = last.get(of)
            assert row.step == (before.step + 1 if before else 1), row
            assert before is None or before.sink != row.sink, f"told twice: {row}"
            last[of] = row


class ChangesTable:
    """Stands where the job writes the table with Spark."""

    def __init__(self, world: EvolvingWorld, job: JobSpec, of: ChangedTable, sinks: Mapping[str, TakenBySink]) -> None:
        self._world, self._events, self._sinks = world, of.changes.events, sinks
        self._kept = world.schema_changes.setdefault(of.name.table, HeldChanges())

    def write(self) -> Position | None:
        """Add what the table lacks; the position up to which it holds all that was handed over."""
        while True:
            held = self._kept.held()
            rows = rows_to_add(self._events, held)
            of_sinks = sink_rows_to_add([*held, *(row.held for row in rows)], self._sinks)
            if rows or of_sinks:
                self._world.at("before the schema changes")
                if self._kept.held() != held:
                    continue
                self._kept.rows += rows
                self._kept.of_sinks += of_sinks
                self._world.judge_changes(self._kept)
                self._world.at("after the schema changes")
            return self._events[-1].lsn if self._events else None
