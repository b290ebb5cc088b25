"""What a person asks of the copy of a table, stored as an Airflow Variable beside the table's checkpoint."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Any, ClassVar

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Identity
from airflow_provider_mssql_cdc.core.codec import Format, from_json, to_json
from airflow_provider_mssql_cdc.core.copy_wanted import COPY, PAUSE, STOP, AskedCopy
from airflow_provider_mssql_cdc.core.exceptions import CheckpointError, FormatError
from airflow_provider_mssql_cdc.core.variables import Variables

KEY_PREFIX = "mssql_cdc_request__"
"""Begins the key of every Variable that holds a request."""


@dataclass(frozen=True, slots=True)
class CopyRequest:
    """What a person asks of a table's copy.

    :param id: of the copy, in the markers of the sinks that have it
    :param wanted: ``COPY``, ``PAUSE`` or ``STOP``, as ``core.spec`` names them
    :param of_loaded: it is for sinks that are loaded, too; False for a copy that was under way by itself
    :param at: when it was asked for
    :param where: conditions of the rows that are to be compared, as the JSON of an entry's ``where``; '' for all rows
    """

    identity: Identity
    id: str
    wanted: str = COPY
    of_loaded: bool = True
    at: datetime.datetime | None = None
    where: str = ""
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)

    FORMAT: ClassVar[Format] = Format("request", 1, "0.3.0", {})

    @property
    def asked(self) -> AskedCopy:
        """What the job is told."""
        return AskedCopy(self.id, self.wanted, self.of_loaded, where=self.where)

    @property
    def is_paused(self) -> bool:
        """Whether no rows are to be read now."""
        return self.wanted == PAUSE

    def has_ended(self, checkpoint: Checkpoint | None) -> bool:
        """Whether nothing is left to do: the copy is done, or what it had left was removed."""
        if not self.of_loaded:
            # it was under way by itself, and is no more
            return checkpoint is None or all(copy.id != self.id for copy in checkpoint.copies)
        return self.ending(checkpoint) is not None

    def is_for_loaded(self, checkpoint: Checkpoint | None) -> bool:
        """Whether sinks that are loaded are still to be compared with a copy."""
        return self.of_loaded and not self.has_ended(checkpoint)

    def mends(self, checkpoint: Checkpoint | None) -> bool:
        """Whether a copy of all rows for what is loaded is asked for, which may mend what nothing else does."""
        return not self.where and self.is_for_loaded(checkpoint)

    def ending(self, checkpoint: Checkpoint | None) -> str | None:
        """How the copy ended; None where it did not."""
        return None if checkpoint is None else checkpoint.ending_of(self.id)

    def wants_a_run(self, checkpoint: Checkpoint | None) -> bool:
        """Whether a run has something to do for it, though nothing changed in the table."""
        if self.has_ended(checkpoint):
            return False
        return self.wanted == STOP or (self.wanted == COPY and self.of_loaded)


class CopyRequests:
    """Reads and writes requests. Only the commands of people write them.

    :param variables: ``airflow.sdk.Variable``
    """

    def __init__(self, variables: Variables) -> None:
        self._variables = variables

    def load(self, identity: Identity) -> CopyRequest | None:
        """The request that stands for a table; None where there is none.

        :raises CheckpointError: if it cannot be read
        """
        text = self._variables.get(_key(identity), default=None)
        if text is None:
            return None
        try:
            return from_json(CopyRequest, text)
        except FormatError as error:
            raise CheckpointError(
                error.message,
                table=str(identity.table),
                advice=f"Upgrade this package, or delete the Airflow Variable {_key(identity)}.",
            ) from error

    def save(self, request: CopyRequest) -> None:
        """Store a request in place of the one that stands."""
        identity = request.identity
        self._variables.set(
            _key(identity),
            to_json(request),
            description=f"CDC copy: {identity.connection} {identity.database} {identity}",
        )

    def delete(self, identity: Identity) -> None:
        """Remove the request that stands."""
        self._variables.delete(_key(identity))


def _key(identity: Identity) -> str:
    return KEY_PREFIX + identity.short
