"""Notes in checkpoints which capture instance a load is about to make, so that the next run ends what was begun."""

from __future__ import annotations

import dataclasses
import datetime

from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.entry_values import EVOLVE
from airflow_provider_mssql_cdc.core.proposal import Making, NewInstance, instance_beside
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.operators.finding import RunPlan


class Intents:
    """What the checkpoints of a run say of the capture instances that loads are about to make.

    It is written at once, and removed at once: what the run stores at its end leaves it as it is.
    """

    def __init__(self, store: CheckpointStore, plan: RunPlan) -> None:
        self._store, self._plan = store, plan
        stored = {name: checkpoint for name, checkpoint in plan.checkpoints.items() if checkpoint is not None}
        self._noted = {name: each.making for name, each in stored.items() if each.making is not None}

    def begun(self) -> dict[TableName, NewInstance]:
        """The instances of earlier runs that are there, and that were not seen to be readable by all who are to."""
        found = {}
        for name, making in self._noted.items():
            instance = instance_beside(self._plan.feeds.get(name, ()), making.instance)
            if instance is not None and self._plan.options[name].on_schema_change == EVOLVE:
                found[name] = instance
        return found

    def unwanted(self) -> list[TableName]:
        """The tables that could be planned, and of which no instance is to be made any more by the load."""
        begun, options = self.begun(), self._plan.options
        return [
            name
            for name in self._noted
            if name in self._plan.candidates and name not in begun
            if options[name].on_schema_change != EVOLVE or name not in self._plan.new_instances
        ]

    def note(self, name: TableName, instance: NewInstance) -> None:
        """Note that an instance is about to be made.

        :raises CheckpointError: if the stored checkpoint cannot be read
        """
        assert instance.name is not None
        noted = self._noted.get(name)
        if noted is None or (noted.instance, noted.columns) != (instance.name, instance.wanted):
            self._write(name, Making(instance.name, instance.wanted, datetime.datetime.now(datetime.UTC)))

    def forget(self, name: TableName) -> None:
        """The instance is there, and those may read it who are to; or it is not wanted any more.

        :raises CheckpointError: if the stored checkpoint cannot be read
        """
        if name in self._noted:
            self._write(name, None)

    def _write(self, name: TableName, making: Making | None) -> None:
        identity, seen = self._plan.identity(name), self._plan.checkpoints[name]
        # one that a person has removed meanwhile stays away
        if seen is not None and self._store.load(identity) is not None:
            before = dataclasses.replace(seen, making=self._noted.get(name))
            self._store.save(dataclasses.replace(before, making=making), before)
        self._noted.pop(name, None)
        if making is not None:
            self._noted[name] = making
