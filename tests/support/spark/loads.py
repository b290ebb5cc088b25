"""Whole loads over random histories, and their targets compared in full with a model in plain Python."""

from __future__ import annotations

import dataclasses
import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from airflow.models.connection import Connection

from airflow_provider_mssql_cdc.core.checkpoint import Identity
from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.codec import from_json, to_json
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.receipt import Receipt
from airflow_provider_mssql_cdc.core.spec import JobSpec
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.table_options import TableOptions, read_entries
from airflow_provider_mssql_cdc.core.target import Target
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.operators import checkpoints
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.gone import see_gone
from airflow_provider_mssql_cdc.operators.outcome import Outcome
from airflow_provider_mssql_cdc.operators.planning import plan_load
from airflow_provider_mssql_cdc.operators.request import Request
from airflow_provider_mssql_cdc.operators.schema_events import dropped_tables
from airflow_provider_mssql_cdc.sandbox.engine.supply import Supply
from airflow_provider_mssql_cdc.spark.job import run
from tests.core.test_checkpoint import Variables
from tests.support import histories


class Loads:
    """Runs of the load over one database, with checkpoints in a dict, as the operator makes them.

    :param shapes: of the targets, whose format is the origin's
    :param tables: those that are loaded
    :ivar unordered: the source may lack command ids: the events of a transaction are in order for each key alone
    :ivar options: of each job, such as ``copy_rows``
    :ivar before: the tables of the run before, where some may be gone
    """

    def __init__(self, origin, shapes=("mirror", "history", "scd2"), tables=tuple(histories.COLUMNS)) -> None:
        self.origin, self.shapes = origin, shapes
        self.variables = Variables()
        self.store = CheckpointStore(self.variables)
        self.unordered = False
        self.options: dict[str, Any] = {}
        self.before: tuple[TableName, ...] = ()
        self.request = Request(
            connection="lab",
            entries=(),
            exclude=(),
            defaults=TableOptions(Target.parse(origin.place), shapes),
        )
        self.take(*tables)
        self.connection = Connection(
            conn_id="lab",
            conn_type="mssql",
            host=origin.sandbox.host,
            port=origin.sandbox.port,
            login=origin.sandbox.user,
            password=origin.sandbox.password,
            schema=origin.database,
        )

    def take(self, *tables: str) -> None:
        """Change the list of tables that are loaded."""
        self.tables = tables
        entries = read_entries([f"lab.{table}" for table in tables], salted=True)
        self.request = dataclasses.replace(self.request, entries=entries)

    def say(self, **options: Any) -> None:
        """Change options of all tables."""
        self.request = dataclasses.replace(self.request, defaults=dataclasses.replace(self.request.defaults, **options))

    def shape(self, *shapes: str) -> None:
        """Change the shapes that are loaded."""
        self.shapes = shapes
        self.request = dataclasses.replace(
            self.request, defaults=dataclasses.replace(self.request.defaults, shapes=shapes)
        )

    def load(
        self, max_transactions: int | None = None, *, checkpoint: bool = True, failing: tuple[str, ...] = ()
    ) -> tuple[JobSpec | None, Receipt | None]:
        """Plan, run the job, and move the checkpoints.

        :param checkpoint: False ends before that, as a task does that is killed there
        :param failing: the tables that the job cannot load
        """
        request = dataclasses.replace(self.request, max_transactions=max_transactions)
        plan, spec = self.plan(request)
        receipt = None
        if spec is not None:
            receipt = run(self.origin.spark, from_json(JobSpec, to_json(spec)))
            assert [
                (t.name.table, t.error) for t in receipt.tables if (t.error is None) == (t.name.table in failing)
            ] == []
        if checkpoint:
            outcome = Outcome(plan, spec, receipt)
            checkpoints.save(self.store, outcome.checkpoints(datetime.datetime.now(datetime.UTC)), outcome)
        return spec, receipt

    def load_all(self) -> list[str]:
        """Load all that is captured; what the plan warns of."""
        plan = self.look()
        assert plan.failures == {}
        self.load()
        return [text for candidate in plan.candidates.values() for text in candidate.warnings]

    def plan(self, request: Request | None = None) -> tuple[RunPlan, JobSpec | None]:
        """Plan a run without failures; with the job's spec, None if there is nothing to load."""
        plan = self.look(request)
        assert plan.failures == {}
        assert plan.upto is not None
        upto = plan.upto.of(Lsn)
        options = self.options | {"dropped": dropped_tables(plan)}
        return plan, self.origin.spec(*plan.specs, upto=upto, **options) if plan.specs else None

    def look(self, request: Request | None = None) -> RunPlan:
        """Plan a run, whatever fails."""
        hook = MsSqlCdcHook(connection=self.connection)
        try:
            # what failed before is tried again
            asked = dataclasses.replace(request or self.request, asked=True)
            plan = plan_load(hook, self.store, asked, None)
            see_gone(plan, hook, self.store, asked, self.before)
            return plan
        finally:
            hook.close()

    def position(self, table: str) -> str:
        """The position to which a table is loaded, as its checkpoint has it."""
        stored = self.store.load(self.identity(table))
        return str(stored.position(stored.sinks))

    def identity(self, table: str) -> Identity:
        """Of a table's checkpoint."""
        return self.request.identity(self.origin.database, TableName("lab", table), self.request.defaults)

    def mirror(self, table: str) -> list[tuple]:
        rows = self.origin.lake(f"lab.{table}")
        return sorted((plain(row.values()) for row in rows), key=repr)

    def versions(self, table: str) -> list[dict]:
        return self.origin.lake(f"lab.{table}", "scd2")

    def transactions(self, table: str) -> list[tuple[str, int, int, int]]:
        """The transactions in order: commit LSN, and how many rows were inserted, updated and deleted."""
        rows = self.origin.lake(f"lab.{table}", "transactions")
        return sorted((row["_lsn"], row["inserted"], row["updated"], row["deleted"]) for row in rows)

    def history(self, table: str) -> list[tuple[str, str, int, tuple]]:
        """The history's rows in event order: operation, commit LSN, number in the transaction, values."""
        columns = histories.COLUMNS[table]
        rows = self.origin.lake(f"lab.{table}", "history")
        found = [(row["_op"], row["_lsn"], row["_seq"] or 0, plain(row[c] for c in columns)) for row in rows]
        return sorted(found, key=lambda event: (event[1], event[2]))


def plain(values) -> tuple:
    return tuple(bytes(value) if isinstance(value, bytearray) else value for value in values)


def prepare(origin) -> None:
    origin.sql("CREATE SCHEMA lab")
    origin.sql(histories.SCHEMA)
    first, *others = histories.COLUMNS
    for table in others:
        origin.sql(
            f"EXEC sys.sp_cdc_enable_table @source_schema = N'lab', @source_name = N'{table}', @role_name = NULL"
        )
    origin.enable(f"lab.{first}")


def write(origin, models, rng, transactions: int) -> None:
    for _ in range(transactions):
        origin.sql(";\n".join(histories.transaction(rng.choice(models), rng)))


def write_meanwhile(origin, models, rng, transactions: int) -> Supply:
    """Let transactions come between the reads of a load, where the server's seed draws it; the rest is to be run."""
    written = [";\n".join(histories.transaction(rng.choice(models), rng)) for _ in range(transactions)]
    return origin.sandbox.meanwhile(written, origin.database)


def check(loads: Loads, models: list[histories.Model]) -> None:
    """Compare all targets with the models: rows, events and versions."""
    for table in loads.tables:
        if "mirror" in loads.shapes:
            rows = by_history(models, loads.mirror(table), lambda row: row[0])
            for model in models:
                with told(model):
                    assert rows[model.h] == sorted(model.rows[table].values(), key=repr)
        if "history" in loads.shapes:
            found = loads.history(table)
            events = by_history(models, found, lambda event: event[3][0])
            numbers = captured_since(loads, table, found)
            for model in models:
                with told(model):
                    check_history(table, model, events[model.h], numbers.get(model.h, 0), unordered=loads.unordered)
        if "scd2" in loads.shapes:
            check_versions(loads, table, models)
        if "transactions" in loads.shapes:
            check_transactions(loads, table)


def by_history(models: list[histories.Model], rows: list, number: Callable[[Any], int]) -> dict[int, list]:
    """Part rows by the history that they belong to."""
    parts: dict[int, list] = {model.h: [] for model in models}
    for row in rows:
        parts[number(row)].append(row)
    return parts


@contextmanager
def told(model: histories.Model) -> Iterator[None]:
    """Tell a difference with the script of its history."""
    try:
        yield
    except AssertionError as error:
        error.add_note(f"history {model.h}, in T-SQL:\n" + ";\n".join(model.script))
        raise


def check_versions(loads: Loads, table: str, models: list[histories.Model]) -> None:
    """Compare all versions with the states that each transaction left, which the source's change table dates."""
    width = histories.KEY_LENGTH[table]
    columns = histories.COLUMNS[table]
    captured = loads.origin.sql(
        f"SELECT h, CONVERT(varchar(22), [__$start_lsn], 1) AS lsn FROM cdc.lab_{table}_CT ORDER BY [__$start_lsn]"
    )
    found = [
        (plain(version[c] for c in columns), version["_from_lsn"], version["_to_lsn"])
        for version in loads.versions(table)
    ]
    low = min((since for _, since, _ in found), default="")
    versions = by_history(models, found, lambda version: version[0][0])
    for model in models:
        expected = []
        lsns = [row["lsn"] for row in captured if row["h"] == model.h]
        left: dict[tuple, dict[str, tuple | None]] = {}
        for (_, op, row), lsn in zip(model.events[table], lsns, strict=True):
            if op != "B":
                left.setdefault(row[:width], {})[lsn] = None if op == "D" else row
        for states in left.values():
            copied = [row for lsn, row in states.items() if lsn <= low][-1:]
            later = [(lsn, row) for lsn, row in states.items() if lsn > low]
            changes = [*((low, row) for row in copied), *later]
            ends = [lsn for lsn, _ in changes[1:]]
            expected += [
                (row, since, until)
                for (since, row), until in zip(changes, [*ends, None], strict=True)
                if row is not None
            ]
        with told(model):
            assert sorted(versions[model.h], key=repr) == sorted(expected, key=repr)


def check_transactions(loads: Loads, table: str) -> None:
    """Compare the transactions with the source's change table, from where the copy of the history was begun."""
    captured = loads.origin.sql(
        f"SELECT CONVERT(varchar(22), [__$start_lsn], 1) AS lsn, [__$operation] AS operation FROM cdc.lab_{table}_CT"
        f" WHERE {behind_low(loads.history(table))}"
    )
    kinds: dict[str, list[int]] = {}
    for row in captured:
        kinds.setdefault(row["lsn"], []).append(row["operation"])
    expected = [(lsn, of.count(2), of.count(4), of.count(1)) for lsn, of in sorted(kinds.items())]
    assert loads.transactions(table) == expected


def behind_low(found: Iterable[tuple]) -> str:
    """T-SQL for: a change lies behind the position before the copy, by the rows of a history.

    Where all rows changed while they were copied none counts as copied, and the first event is the first one behind it.
    """
    rows = list(found)
    copied = {lsn for op, lsn, _, _ in rows if op == "R"}
    if not copied:
        return f"[__$start_lsn] >= {min((lsn for _, lsn, _, _ in rows), default='0xFFFFFFFFFFFFFFFFFFFF')}"
    (low,) = copied
    return f"[__$start_lsn] > {low}"


def captured_since(loads: Loads, table: str, found: Iterable[tuple]) -> Counter[int]:
    """Count, by history, what the source captured after the position before the copy."""
    captured = loads.origin.sql(f"SELECT h FROM cdc.lab_{table}_CT WHERE {behind_low(found)}")
    return Counter(row["h"] for row in captured)


def check_history(
    table: str,
    model: histories.Model,
    found: list[tuple[str, str, int, tuple]],
    number: int,
    *,
    unordered: bool = False,
) -> None:
    """Compare the rows of a history with all that happened.

    :param number: of the events after the position before the copy
    :param unordered: the events of a transaction are in order for each key alone
    """
    width = histories.KEY_LENGTH[table]
    copied = {row[:width]: row for op, _, _, row in found if op == "R"}
    captured, happened = [(lsn, op, row) for op, lsn, _, row in found if op != "R"], model.events[table]
    if unordered:
        captured, happened = (
            sorted(events, key=lambda event: (event[0], repr(event[2][:width]))) for events in (captured, happened)
        )
    events, expected = ([(op, row) for _, op, row in each] for each in (captured, happened))
    assert len(events) == number
    assert events == expected[len(expected) - len(events) :]
    state = dict(replay(table, expected[: len(expected) - len(events)], {}).items())
    assert copied == state
    assert replay(table, events, state) == model.rows[table]


def replay(table: str, events, state):
    state = dict(state)
    for op, row in events:
        key = row[: histories.KEY_LENGTH[table]]
        if op == "D":
            del state[key]
        elif op in "IU":
            state[key] = row
    return state
