"""What follows from a plan and a receipt: checkpoints, the summary, the asset event, the failures."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable, Iterator, Sequence
from typing import TypedDict

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Failure, Told
from airflow_provider_mssql_cdc.core.commands import whole
from airflow_provider_mssql_cdc.core.exceptions import CopyStoppedError, LostValueError, MsSqlCdcError, unnamed
from airflow_provider_mssql_cdc.core.receipt import JobError, Receipt, TableReceipt
from airflow_provider_mssql_cdc.core.resting import MISSING, fingerprint
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.schema_sight import KIND as SCHEMA
from airflow_provider_mssql_cdc.core.spec import JobSpec, TableSpec
from airflow_provider_mssql_cdc.core.standing import is_stale
from airflow_provider_mssql_cdc.core.summary import Summary, TableSummary, row
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.operators.copy_events import all_untold, copy_events, said
from airflow_provider_mssql_cdc.operators.copying import how_far
from airflow_provider_mssql_cdc.operators.dropping import passes_drop
from airflow_provider_mssql_cdc.operators.evolving import add_proposals, proposal_events
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.gone import add_gone, rows_of_gone
from airflow_provider_mssql_cdc.operators.healing import add_noted, gains_version
from airflow_provider_mssql_cdc.operators.moved import after_job, applied_by, spec_read
from airflow_provider_mssql_cdc.operators.schema_events import add_sights, found_by, said_of_schemas, schema_events

COUNTS = ("events", "inserted", "updated", "deleted", "copied")

_SAID = {
    "loaded": "loaded",
    "first_load": "first load",
    "healed": "healed",
    "already": "already there",
    "empty": "nothing new",
    "replayed": "written again",
}


class Found(TypedDict):
    """What an earlier try found while it planned, as the task keeps it: what no receipt says.

    :ivar failures: table to the reason, and whether a retry is bound to fail again
    :ivar warnings: of the run
    :ivar tables: rows of the summary
    """

    failures: dict[str, tuple[str, bool]]
    warnings: list[str]
    tables: list[TableSummary]


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """A run's plan, with the spec and receipt of the job if there was one.

    :param earlier: of the try that submitted the job, if that was another one
    """

    plan: RunPlan
    spec: JobSpec | None = None
    receipt: Receipt | None = None
    earlier: Found | None = None

    def found(self) -> Found:
        """What is to be told of the plan by a try that waits for its job."""
        return {"failures": self.failures(), "warnings": self.plan.warnings, "tables": self.summary(0)["tables"]}

    def with_whole_commands(self) -> Outcome:
        """The same with the commands that errors advise written out."""
        errors = [*self.plan.failures.items()]
        errors += [(name, error) for name, c in self.plan.candidates.items() for error in c.failed.values()]
        errors += [(waiting.name, error) for waiting in self.plan.waiting for error in waiting.failed.values()]
        for name, error in errors:
            if error.advice is not None:
                error.advice = whole(error.advice, self.plan.identity(name))
        if self.receipt is None:
            return self
        tables = tuple(
            dataclasses.replace(table, failed={s: self._whole(error, table.name) for s, error in table.failed.items()})
            for table in self.receipt.tables
        )
        return dataclasses.replace(self, receipt=dataclasses.replace(self.receipt, tables=tables))

    def _whole(self, error: JobError, table: TableName) -> JobError:
        return dataclasses.replace(error, message=whole(error.message, self.plan.identity(table)))

    @property
    def loads(self) -> Iterator[tuple[TableSpec, TableReceipt]]:
        """Each table of the job with what became of it."""
        if self.spec is not None and self.receipt is not None:
            specs = {table.name: table for table in self.spec.tables}
            for table in self.receipt.tables:
                yield spec_read(specs[table.name], table), table

    def checkpoints(self, now: datetime.datetime, *, succeeds: bool = True) -> list[Checkpoint]:
        """The checkpoints to be written: quiet tables' if they are old or have another instance, loaded tables',
        failed tables'.

        Those of a run without failures are marked as announced: Airflow hands on the asset event of a task that
        succeeds, and no other.

        :param succeeds: whether the task does, if no table failed
        """
        plan = self.plan
        written: dict[TableName, Checkpoint] = {}
        for name, moved in plan.quiet.items():
            if (stored := plan.checkpoints[name]) is not None:
                shapes = plan.options[name].shapes
                # else the sensor would go on calling for a run because of the new instance
                must = stored.feeds(shapes) != moved.feeds(shapes) or passes_drop(plan, name, moved)
                if must or gains_version(plan, name, moved) or is_stale(stored, now, plan.retention):
                    written[name] = moved
        for spec, table in self.loads:
            stored = plan.checkpoints.get(table.name) or Checkpoint(plan.identity(table.name))
            moved = after_job(stored, spec, table, plan, self.spec.copies_path(spec) if self.spec else None)
            moved = dataclasses.replace(moved, untold=all_untold(stored.untold, copy_events(stored, spec, table)))
            for shape, why in (table.copying.mends if table.copying is not None else {}).items():
                moved = self._failing(moved, table.name, [shape], why, now, kind=LostValueError.__name__)
            for sink in spec.sinks:
                failed = table.error_of(sink.shape)
                if failed is not None and failed.permanent:
                    moved = self._failing(moved, table.name, [sink.shape], failed.message, now, kind=failed.kind)
            if moved != stored:
                written[table.name] = moved
        for name, shapes, error in self._planned_failures():
            # a checkpoint that cannot be read is left for a person to repair
            if error.permanent and name in plan.checkpoints and not self._is_stored(name, shapes, str(error), now):
                # what is written moves the sound sinks on, too: else its date would keep them from ever being written
                stored = written.get(name) or plan.quiet.get(name) or plan.checkpoints[name]
                stored = stored or Checkpoint(plan.identity(name))
                written[name] = self._failing(stored, name, shapes, str(error), now, planned=True)
        add_noted(plan, written)
        add_proposals(plan, written)
        add_sights(plan, written, [table for _, table in self.loads])
        succeeds = succeeds and not self.failures()
        add_gone(plan, written, self.receipt, succeeds=succeeds)
        for name in plan.checkpoints if succeeds else ():
            checkpoint = written.get(name) or plan.checkpoints[name]
            applied = checkpoint and applied_by(checkpoint, plan.options[name].shapes)
            if checkpoint and applied and (checkpoint.announced is None or checkpoint.announced < applied):
                checkpoint = written[name] = dataclasses.replace(checkpoint, announced=applied)
            if checkpoint and checkpoint.untold:
                written[name] = dataclasses.replace(checkpoint, untold=())
        return list(written.values())

    def windows(self) -> list[Checkpoint]:
        """The checkpoints with the sinks whose windows are loaded, while the job goes on with copies: of failures,
        copies and events its end tells.
        """
        written = []
        for spec, table in self.loads:
            stored = self.plan.checkpoints.get(table.name) or Checkpoint(self.plan.identity(table.name))
            moved = after_job(stored, spec, table, self.plan, None)
            moved = dataclasses.replace(moved, copies=stored.copies, ended_copies=stored.ended_copies)
            if moved != stored:
                written.append(moved)
        return written

    def copy_events(self, name: TableName | None = None) -> list[Told]:
        """What the copies of this run went through.

        :param name: of one table; None for all
        """
        return [
            event
            for spec, table in self.loads
            if name in (None, table.name)
            for event in copy_events(self.plan.checkpoints.get(table.name), spec, table)
        ]

    def events(self, name: TableName | None = None) -> list[Told]:
        """The events of this run for the operations asset.

        :param name: of one table; None for all
        """
        return [*schema_events(self.plan, name), *proposal_events(self.plan, name), *self.copy_events(name)]

    def operations(self) -> list[Told]:
        """The events for the operations asset, if the task succeeds: of this run, and of those that did not."""
        earlier = [event for stored in self.plan.checkpoints.values() if stored is not None for event in stored.untold]
        return list(all_untold(tuple(earlier), tuple(self.events())))

    def _planned_failures(self) -> Iterator[tuple[TableName, tuple[str, ...], MsSqlCdcError]]:
        """What the plan found, with the shapes that each concerns; those that rest keep what they failed with."""
        for name, error in self.plan.failures.items():
            turn = self.plan.turns.get(name)
            yield name, turn.shapes if turn else self.plan.options[name].shapes, error
        found = [(name, candidate.failed) for name, candidate in self.plan.candidates.items()]
        found += [(waiting.name, waiting.failed) for waiting in self.plan.waiting]
        for name, failed in found:
            if name not in self.plan.failures:
                for shape, error in failed.items():
                    yield name, (shape,), error

    def _is_stored(self, table: TableName, shapes: Sequence[str], reason: str, now: datetime.datetime) -> bool:
        """Whether the checkpoint says of all these shapes, since less than ``max_idle``, that they fail so."""
        stored, seen = self.plan.checkpoints.get(table), self._seen(table)
        known = [sink.failed if stored and (sink := stored.sinks.get(shape)) else None for shape in shapes]
        return all(
            failure is not None
            and (failure.reason, failure.seen, failure.planned) == (reason, seen, True)
            and now - failure.time < self.plan.max_idle
            for failure in known
        )

    def _seen(self, table: TableName) -> str:
        """What is seen of a table's feeds."""
        return MISSING if table in self.plan.missing else fingerprint(self.plan.feeds.get(table, ()))

    def _failing(
        self,
        checkpoint: Checkpoint,
        table: TableName,
        shapes: Sequence[str],
        reason: str,
        now: datetime.datetime,
        *,
        planned: bool = False,
        kind: str = "",
    ) -> Checkpoint:
        stopped, mends = kind == CopyStoppedError.__name__, kind == LostValueError.__name__
        stored, seen = self.plan.checkpoints.get(table), self._seen(table)
        for shape in shapes:
            earlier = stored.failure([shape]) if stored is not None else None
            began = earlier.began if earlier is not None else None
            checkpoint = checkpoint.failing([shape], Failure(reason, now, seen, began, planned, stopped, mends))
        return checkpoint

    @property
    def late(self) -> str | None:
        """What was seen of a capture that is late."""
        return self.plan.lag.text if self.plan.lag is not None and self.plan.lag.late else None

    def summary(self, seconds: float) -> Summary:
        """The summary that the task pushes to XCom."""
        plan = self.plan
        rows = {table["table"]: table for table in self.earlier["tables"]} if self.earlier else {}
        for name, candidate in plan.candidates.items():
            quiet = plan.quiet.get(name)
            position = quiet.position(candidate.sinks) if quiet is not None else candidate.position
            rows[str(name)] = row(str(name)) | {
                "position": position.text if position is not None else None,
                "feed": candidate.feed.name,
                "schema_hash": candidate.schema.hash,
                "warnings": list(candidate.warnings),
            }
        for waiting in plan.waiting:
            rows[str(waiting.name)] = row(str(waiting.name)) | {"status": "waiting", "reason": waiting.reason}
        rows |= {str(name): row(str(name)) | {"status": "skipped"} for name in plan.skipped}
        rows |= rows_of_gone(plan, self.receipt)
        for spec, table in self.loads:
            known = rows.get(str(table.name)) or row(str(table.name))
            rows[str(table.name)] = _loaded(known, spec, table)
        for text, (reason, _) in self.failures().items():
            rows[text] = (rows.get(text) or row(text)) | {"status": "failed", "error": reason}
        for name, failing in self._failing_shapes().items():
            known = rows[str(name)]
            known["sinks"] = known["sinks"] | dict.fromkeys(failing, "failed")
        tables = [found for _, found in sorted(rows.items())]
        changes = [event.extra for event in self.operations() if event.kind == SCHEMA]
        return {
            "upto": plan.upto.text if plan.upto else None,
            "seconds": round(seconds, 1),
            "application": self.receipt.application_id if self.receipt else None,
            "late": self.late,
            "warnings": [
                *([self.late] if self.late else []),
                *(self.earlier["warnings"] if self.earlier else ()),
                *plan.warnings,
                *(f"{table['table']}: {warning}" for table in tables for warning in table["warnings"]),
            ],
            "copies": [
                event.extra for event in (*(each.event for each in plan.given_up.values()), *self.copy_events())
            ],
            "schema_changes": changes,
            "schema_changes_found": found_by(changes),
            "tables": tables,
        }

    def lines(self) -> Iterator[str]:
        """A line for each table and shape that the job was given: what became of it."""
        yield from said_of_schemas(self.plan)
        for spec, table in self.loads:
            counts = ", ".join(f"{table.counts[name]} {name}" for name in COUNTS[1:] if table.counts.get(name))
            windows = ", ".join(table.windows) or "no window"
            seconds = sum(table.seconds.values())
            for sink in table.sinks:
                yield (
                    f"{table.name} {sink.shape}: {_SAID[sink.outcome]}, {windows}, {counts or 'no changes'},"
                    f" now at {sink.read_through}, {seconds:.1f} s for the table"
                )
            for event in copy_events(self.plan.checkpoints.get(table.name), spec, table):
                yield said(event)
            if table.copying is not None:
                yield f"{table.name} {', '.join(table.copying.shapes)}: {how_far(table.copying)}"

    def new_schemas(self, written: Iterable[Checkpoint]) -> list[KeptSchema]:
        """The schemas that checkpoints name and that were not kept before.

        :param written: the run's checkpoints
        """
        read = [table.schema for table, _ in self.loads]
        read += [candidate.schema for candidate in self.plan.candidates.values()]
        texts = [sink.schema for _, table in self.loads for sink in table.sinks if sink.schema is not None]
        known = {schema.hash: schema for schema in (*map(KeptSchema.of, read), *map(KeptSchema, texts))}
        found = {}
        for checkpoint in written:
            stored = self.plan.checkpoints.get(checkpoint.identity.table)
            kept = {sink.schema_hash for sink in (stored.sinks.values() if stored else ()) if sink.schema_kept}
            sight, seen = self.plan.sights.get(checkpoint.identity.table), checkpoint.seen_schema
            if sight is not None and seen is not None and (stored is None or stored.seen_schema != seen):
                found[sight.schema.hash] = sight.schema
            for hash_ in {sink.schema_hash for sink in checkpoint.sinks.values() if sink.schema_kept} - kept:
                if hash_ in known:
                    found[hash_] = known[hash_]
        return list(found.values())

    def lsn_ranges(self, written: Iterable[Checkpoint]) -> dict[str, dict[str, str | None]]:
        """The LSN range of each table that was loaded since the last asset event.

        :param written: the run's checkpoints
        :return: table to ``after`` (None where no event told of the table before), ``upto``, ``feed`` and
            ``schema_hash``
        """
        ranges: dict[str, dict[str, str | None]] = {}
        for checkpoint in written:
            stored = self.plan.checkpoints.get(checkpoint.identity.table)
            before = stored.announced if stored else None
            if checkpoint.announced is not None and checkpoint.announced != before:
                shapes = self.plan.options[checkpoint.identity.table].shapes
                sinks = [sink for shape, sink in checkpoint.sinks.items() if shape in shapes]
                ranges[str(checkpoint.identity.table)] = {
                    "after": before.text if before else None,
                    "upto": checkpoint.announced.text,
                    "feed": next((sink.feed.name for sink in sinks if sink.feed), None),
                    "schema_hash": next((sink.schema_hash for sink in sinks if sink.schema_hash), None),
                }
        return ranges

    def failures(self) -> dict[str, tuple[str, bool]]:
        """The failed tables, each with the reason and whether a retry is bound to fail again."""
        found = {str(name): failed for name, failed in self._failures().items()}
        for name, (reason, permanent) in (self.earlier["failures"] if self.earlier else {}).items():
            now, for_good = found.get(name, (reason, permanent))
            found[name] = ("\n".join(dict.fromkeys((now, reason))), permanent and for_good)
        return found

    def _failures(self) -> dict[TableName, tuple[str, bool]]:
        found: dict[TableName, list[tuple[str, bool]]] = {}
        for name, _, error in self._planned_failures():
            found.setdefault(name, []).append((str(error), error.permanent))
        for _, table in self.loads:
            found.setdefault(table.name, []).extend((error.message, error.permanent) for error in table.errors)
        for name, turn in self.plan.turns.items():
            for shape, failure in turn.resting.items() if name not in self.plan.failures else ():
                since = failure.began.isoformat(" ", "seconds")
                text = f"its {shape} fails since {since} and is left alone"
                if not failure.stopped:
                    text += " until its capture instance or schema changes, max_idle is over, or the task is cleared"
                text += f": {unnamed(failure.reason, name)}"
                found.setdefault(name, []).append((text, True))
        return {
            name: ("\n".join(dict.fromkeys(text for text, _ in each)), all(permanent for _, permanent in each))
            for name, each in found.items()
            if each
        }

    def _failing_shapes(self) -> dict[TableName, list[str]]:
        """The shapes that failed in tables of which others may not have."""
        found: dict[TableName, list[str]] = {}
        for name, shapes, _ in self._planned_failures():
            found.setdefault(name, []).extend(shapes)
        for spec, table in self.loads:
            failed = [sink.shape for sink in spec.sinks if table.error_of(sink.shape) is not None]
            found.setdefault(table.name, []).extend(failed)
        for name, turn in self.plan.turns.items():
            found.setdefault(name, []).extend(turn.resting)
        return {name: shapes for name, shapes in found.items() if shapes}


def _loaded(known: TableSummary, spec: TableSpec, table: TableReceipt) -> TableSummary:
    """The row of a table that the job was given."""
    copying = dict.fromkeys(table.copying.shapes if table.copying else (), "copying")
    found = known | {
        "status": "failed" if table.errors else "copying" if table.copying else "loaded",
        "position": min(sink.read_through for sink in table.sinks).text if table.sinks else None,
        "reason": how_far(table.copying) if table.copying else None,
        "feed": spec.feed.name,
        "schema_hash": spec.schema.hash,
        "sinks": known["sinks"] | copying | {sink.shape: sink.outcome for sink in table.sinks},
        "windows": list(table.windows),
        "seconds": {step: round(value, 2) for step, value in table.seconds.items()},
        "warnings": [*dict.fromkeys((*known["warnings"], *table.warnings))],
    }
    counts = {count: table.counts.get(count, 0) for count in COUNTS}
    return found | counts | {"reads": table.reads}  # type: ignore[return-value]
