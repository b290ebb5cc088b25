"""A group of tables to plan for: the request, and checkpoints as a load would leave them."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, SinkState
from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.choice import select
from airflow_provider_mssql_cdc.core.feed import FeedRef
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.schema import KeptSchema, SchemaStore
from airflow_provider_mssql_cdc.core.table import TableName, TableSchema
from airflow_provider_mssql_cdc.core.table_options import TableOptions, read_entries
from airflow_provider_mssql_cdc.core.target import Target
from airflow_provider_mssql_cdc.operators.finding import RunPlan
from airflow_provider_mssql_cdc.operators.outcome import Outcome
from airflow_provider_mssql_cdc.operators.request import Request
from tests.support.core.states import checkpoint_of
from tests.support.core.variables import Variables
from tests.support.hooks.source import CONN_ID, TARGET, CountingHook, Source

A, B = TableName("dbo", "a"), TableName("dbo", "b")


class Group:
    """Tables of a source, loaded into one shape, with checkpoints in memory."""

    def __init__(self, source: Source, shape: str = "mirror") -> None:
        self.source, self.shape = source, shape
        self.variables = Variables()
        self.store = CheckpointStore(self.variables)

    def make(self, *tables: str) -> None:
        """Make tables, track them, and capture a first event of each."""
        for table in tables:
            self.source.sql(f"CREATE TABLE {table} (id int NOT NULL PRIMARY KEY, v int NULL)")
        self.source.enable(*tables)
        for table in tables:
            self.source.sql(f"INSERT INTO {table} (id) VALUES (1)")
        self.source.scan()

    def request(self, *tables: str | dict[str, Any], copy_on_gap: bool = False, **given: Any) -> Request:
        """What a load of this group would ask for."""
        defaults = TableOptions(
            Target.parse(TARGET),
            (self.shape,),
            on_gap=("copy",) if copy_on_gap else ("fail",),
            **{
                name: given.pop(name)
                for name in ("allow_masked", "key", "initial", "source", "on_schema_change", "history")
                if name in given
            },
        )
        return Request(CONN_ID, read_entries(tables or "dbo.*", salted=True), (), defaults, **given)

    def loaded(self, *tables: TableName, recovery_fork: str | None = None) -> Lsn:
        """Write the checkpoints of a load up to now; the position."""
        with self.source.hook() as hook:
            position = self.source.max_lsn()
            witness = hook.witness(position)
            for table in tables:
                (instance,) = hook.capture_instances([table])
                schema = TableSchema(instance.columns, instance.index_key)
                SchemaStore(self.variables).keep(KeptSchema.of(schema))
                self.store.overwrite(
                    checkpoint_of(
                        self.source.identity(table),
                        {self.shape: SinkState(position, position, witness)},
                        FeedRef.of(instance),
                        schema.hash,
                    )
                )
        return position

    def loaded_up_to_now(self, table: TableName, upto: Lsn | None = None) -> None:
        """Move a checkpoint on, as a load up to now does, or up to a position."""
        stored, position = self.store.load(self.source.identity(table)), upto or self.source.max_lsn()
        assert stored is not None
        with self.source.hook() as hook:
            witness = hook.witness(position)
        sinks = {
            shape: dataclasses.replace(sink, applied=position, read_through=position, witness=witness)
            for shape, sink in stored.sinks.items()
        }
        self.store.overwrite(dataclasses.replace(stored, sinks=sinks))

    def chosen(self, table: TableName, request: Request) -> None:
        """Let a checkpoint say that it was loaded as a request chooses."""
        stored = self.store.load(self.source.identity(table))
        assert stored is not None
        with self.source.hook() as hook:
            (instance,) = hook.capture_instances([table])
        schema = TableSchema(instance.columns, instance.index_key)
        selection = select(table, schema, request.options(table).choice, check=None)
        said = {"selection_hash": selection.hash, "selection": selection.describe()}
        sinks = {shape: dataclasses.replace(sink, **said) for shape, sink in stored.sinks.items()}
        self.store.overwrite(dataclasses.replace(stored, sinks=sinks))

    def reader(self, *cdc_tables: str) -> CountingHook:
        """The hook of a new login that may read these tables of the schema cdc."""
        login, password = f"reader_{self.source.name}", "Reader-pw-12345"
        self.source.sql(f"CREATE LOGIN [{login}] WITH PASSWORD = N'{password}'")
        self.source.sql(f"CREATE USER [{login}] FOR LOGIN [{login}]")
        for name in cdc_tables:
            self.source.sql(f"GRANT SELECT ON [cdc].[{name}] TO [{login}]")
        return self.source.hook(login, password)

    def change(self, text: str) -> Lsn:
        """Commit and capture; the position."""
        self.source.sql(text)
        self.source.scan()
        return self.source.max_lsn()

    def checkpoint(self, table: TableName) -> Checkpoint | None:
        """What is stored."""
        return self.store.load(self.source.identity(table))

    def settle(self, plan: RunPlan, request: Request) -> dict[str, dict[str, Any]]:
        """Store what follows from a plan without a job; the summary's rows."""
        outcome = Outcome(plan)
        for checkpoint in outcome.checkpoints(datetime.datetime.now(datetime.UTC)):
            self.store.save(checkpoint)
        return {row["table"]: row for row in outcome.summary(0)["tables"]}
