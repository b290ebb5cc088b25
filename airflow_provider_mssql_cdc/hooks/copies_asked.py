"""Copies that were asked for, and whether the loads have done them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_mssql_cdc.core.checkpoint import Identity
from airflow_provider_mssql_cdc.core.copy_asking import CopyAsking
from airflow_provider_mssql_cdc.core.exceptions import CopyAskedError
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.variables import Variables

COMPLETED = "COMPLETED"


@dataclass(frozen=True, slots=True)
class CopiesSeen:
    """How far copies are.

    :param endings: table to how its copy ended, of those that have: ``COMPLETED``, ``STOPPED``, or ``ABORTED: ..``
    :param left: table to how far its copy is, of the others
    """

    endings: Mapping[str, str]
    left: Mapping[str, str]

    @property
    def have_ended(self) -> bool:
        """Whether all of them have."""
        return not self.left

    def __str__(self) -> str:
        return "; ".join(f"{table}: {how}" for table, how in self.left.items())


@dataclass(frozen=True, slots=True)
class CopiesAsked:
    """Copies of some tables.

    :param ids: table and target to the id of the copy
    """

    ids: Mapping[Identity, str]

    def to_data(self) -> dict[str, Any]:
        """What a trigger is given."""
        return {
            id_: [each.connection, each.database, each.table.schema, each.table.table, each.target, each.name]
            for each, id_ in self.ids.items()
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> CopiesAsked:
        """The same from what ``to_data`` gave."""
        return cls(
            {
                Identity(connection, database, TableName(schema, table), target, name): id_
                for id_, (connection, database, schema, table, target, name) in data.items()
            }
        )

    def look(self, variables: Variables) -> CopiesSeen:
        """How far they are.

        :raises CopyAskedError: if a request is gone, or all of a table's sinks have failed for good since
        :raises CheckpointError: if what is stored cannot be read
        """
        asking = CopyAsking(variables)
        endings, left = {}, {}
        for identity, id_ in self.ids.items():
            found = asking.standing(identity)
            if (ending := found.ending_of(id_)) is not None:
                endings[str(identity.table)] = ending
            elif found.request is None or found.request.id != id_:
                raise CopyAskedError(
                    f"copy {id_} of {identity} is no longer asked for: {found}.",
                    table=str(identity.table),
                    advice="Clear the task to ask for it again.",
                )
            elif (why := found.cannot_be_done) is not None:
                raise CopyAskedError(
                    f"copy {id_} of {identity} is not done, since the load of the table fails for good: {why}",
                    table=str(identity.table),
                    advice="Mend that, and clear the load. The request stays, and the load does it then; "
                    "`mssql-cdc copy stop` takes it back.",
                )
            else:
                left[str(identity.table)] = found.progress
        return CopiesSeen(endings, left)
