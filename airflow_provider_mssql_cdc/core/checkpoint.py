"""What Airflow remembers of one source table and target, and the only class that writes it."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import logging
from dataclasses import dataclass, field
from typing import Any, Protocol

from airflow_provider_mssql_cdc.core.exceptions import CheckpointError, NewerCheckpointError
from airflow_provider_mssql_cdc.core.lsn import Lsn
from airflow_provider_mssql_cdc.core.table import CaptureInstance, TableName
from airflow_provider_mssql_cdc.core.target import TABLE_NAME

log = logging.getLogger(__name__)

VERSION = 1

DATETIME_TICK = datetime.timedelta(seconds=1) / 300
"""What SQL Server's ``datetime`` counts in (docs: datetime)."""

SAME_TIME = DATETIME_TICK / 2
"""Two times from ``datetime`` columns that are less apart than this are the same tick, which clients round differently
(.006667 s to .006 or .007)."""

RESET_ADVICE = (
    "To load it anew, drop the target table and run `mssql-cdc checkpoint reset`; or name the position that its rows "
    "stand for, if you know it, with `mssql-cdc checkpoint set`."
)
"""What to do about a target whose rows do not go on as they were begun."""

KEY_PREFIX = "mssql_cdc__"
"""Begins the key of every Variable that holds a checkpoint."""


@dataclass(frozen=True, slots=True)
class Witness:
    """The largest LSN of ``cdc.lsn_time_mapping`` at or below a position, and its ``tran_end_time``.

    As long as the mapping still reaches back to it, it must be found there unchanged: otherwise the database was
    restored, or CDC was enabled anew, and positions of before mean nothing.

    :param recovery_fork: ``recovery_fork_guid`` of ``sys.database_recovery_status``; None where it was not seen
    """

    lsn: Lsn
    time: datetime.datetime
    recovery_fork: str | None = None

    def to_json(self) -> dict[str, str | None]:
        """Return the JSON form."""
        return {"lsn": str(self.lsn), "time": self.time.isoformat(), "recovery_fork": self.recovery_fork}

    @classmethod
    def from_json(cls, data: dict[str, str]) -> Witness:
        """Read the JSON form."""
        return cls(Lsn.parse(data["lsn"]), datetime.datetime.fromisoformat(data["time"]), data.get("recovery_fork"))


@dataclass(frozen=True, slots=True)
class SinkState:
    """Where one shape of the table stands.

    :param applied: position of the marker that the sink's own last commit carries, as last seen
    :param read_through: at or above ``applied``; everything between the two was proven empty
    :param witness: for ``read_through``
    :param asserted: names the order by which a person said that the target stands for this position, whatever its
        marker says; None once a load has committed on that word, or where there was no such order
    """

    applied: Lsn
    read_through: Lsn
    witness: Witness | None = None
    asserted: str | None = None

    def __post_init__(self) -> None:
        if self.read_through < self.applied:
            raise ValueError(f"read_through {self.read_through} lies below applied {self.applied}")


@dataclass(frozen=True, slots=True)
class InstanceRef:
    """What identifies a capture instance. ``start_lsn`` moves with cleanup and says nothing."""

    name: str
    object_id: int
    create_date: datetime.datetime

    @classmethod
    def of(cls, instance: CaptureInstance) -> InstanceRef:
        """Return the reference to this instance."""
        return cls(instance.name, instance.object_id, instance.create_date)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the table's last run failed for good, and when.

    :param seen: ``core.wake.fingerprint`` of the table's capture instances then, so that a repair can be noticed
    """

    reason: str
    time: datetime.datetime
    seen: str | None = None

    def to_json(self) -> dict[str, str | None]:
        """Return the JSON form."""
        return {"reason": self.reason, "time": self.time.isoformat(), "seen": self.seen}

    @classmethod
    def from_json(cls, data: dict[str, str]) -> Failure:
        """Read the JSON form."""
        return cls(data["reason"], datetime.datetime.fromisoformat(data["time"]), data.get("seen"))


@dataclass(frozen=True, slots=True)
class Identity:
    """One source table and one target; the readable part of a checkpoint's key.

    :param name: of the target table, where ``table_name`` gives it another one than the default: two loads of a source
        table into one place, by different names, are at positions of their own
    """

    connection: str
    database: str
    table: TableName
    target: str
    name: str = ""

    @classmethod
    def of(cls, connection: str, database: str, table: TableName, target: str, table_name: str) -> Identity:
        """Return the identity of a load's target table.

        :param target: its address
        :param table_name: with ``{schema}`` and ``{table}``
        """
        name, usual = (each.format(schema=table.schema, table=table.table) for each in (table_name, TABLE_NAME))
        return cls(connection, database, table, target, "" if name == usual else name)

    @property
    def place(self) -> str:
        """The target for people, with the table's name in it where that is not the default."""
        return f"{self.target} as {self.name}" if self.name else self.target

    def __str__(self) -> str:
        """Return it for people, without connection and database."""
        return f"{self.table} -> {self.place}"

    @property
    def variable(self) -> str:
        """The Airflow Variable's key. A hash, since table names may be long, or contain words that Airflow masks."""
        parts = [self.connection, self.database, self.table.schema, self.table.table, self.target]
        text = json.dumps([*parts, self.name] if self.name else parts)
        return KEY_PREFIX + hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of one table and target: per shape how far it is loaded, from which instance, with which schema.

    :param sinks: shape to state; empty while the first load has not succeeded
    :param schema_hash: of the instance when it was last loaded
    :param columns: the captured columns then, to be shown when the hash differs
    :param selection_hash: of what of the rows was loaded then; None if all was, as it is
    :param selection: that as text, to be shown when the hash differs
    :param failed: set while the last run failed for good
    :param announced: the position up to which asset events have told of the table; None before the first
    """

    identity: Identity
    sinks: dict[str, SinkState] = field(default_factory=dict)
    instance: InstanceRef | None = None
    schema_hash: str | None = None
    columns: tuple[str, ...] = ()
    failed: Failure | None = None
    announced: Lsn | None = None
    updated_at: datetime.datetime | None = None
    selection_hash: str | None = None
    selection: tuple[str, ...] = ()

    @property
    def position(self) -> Lsn | None:
        """The lowest ``read_through`` of the sinks; None before the first load."""
        return min((sink.read_through for sink in self.sinks.values()), default=None)

    def to_json(self) -> str:
        """Return the versioned JSON that the Variable holds."""
        return json.dumps(
            {
                "version": VERSION,
                "connection": self.identity.connection,
                "database": self.identity.database,
                "schema": self.identity.table.schema,
                "table": self.identity.table.table,
                "target": self.identity.target,
                "name": self.identity.name,
                "sinks": {
                    shape: {
                        "applied": str(sink.applied),
                        "read_through": str(sink.read_through),
                        "witness": sink.witness.to_json() if sink.witness else None,
                        "asserted": sink.asserted,
                    }
                    for shape, sink in sorted(self.sinks.items())
                },
                "instance": self.instance
                and {
                    "name": self.instance.name,
                    "object_id": self.instance.object_id,
                    "create_date": self.instance.create_date.isoformat(),
                },
                "schema_hash": self.schema_hash,
                "columns": list(self.columns),
                "selection_hash": self.selection_hash,
                "selection": list(self.selection),
                "failed": self.failed and self.failed.to_json(),
                "announced": self.announced and str(self.announced),
                "updated_at": self.updated_at.isoformat() if self.updated_at else None,
            },
            indent=1,
        )

    @classmethod
    def from_json(cls, text: str) -> Checkpoint:
        """Read what ``to_json`` wrote.

        :raises CheckpointError: if it is damaged, or written by a newer version of this package
        """
        try:
            data = json.loads(text)
            version = int(data["version"])
        except (ValueError, TypeError, KeyError) as error:
            raise CheckpointError(
                f"the checkpoint is not readable: {error!r}.", advice="Repair or delete the Airflow Variable."
            ) from error
        if version > VERSION:
            raise NewerCheckpointError(
                f"the checkpoint has version {version}, and this package reads up to {VERSION}.",
                advice="Upgrade airflow-provider-mssql-cdc where this task runs.",
            )
        try:
            return cls._from_dict(data)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CheckpointError(
                f"the checkpoint is damaged: {error!r}.",
                table=f"{data.get('schema')}.{data.get('table')}",
                advice="Repair or delete the Airflow Variable.",
            ) from error

    @classmethod
    def _from_dict(cls, data: dict[str, Any]) -> Checkpoint:
        moment = datetime.datetime.fromisoformat
        instance, failed = data["instance"], data["failed"]
        return cls(
            identity=Identity(
                data["connection"],
                data["database"],
                TableName(data["schema"], data["table"]),
                data["target"],
                data.get("name", ""),
            ),
            sinks={
                shape: SinkState(
                    Lsn.parse(sink["applied"]),
                    Lsn.parse(sink["read_through"]),
                    Witness.from_json(sink["witness"]) if sink["witness"] else None,
                    sink.get("asserted"),
                )
                for shape, sink in data["sinks"].items()
            },
            instance=instance and InstanceRef(instance["name"], instance["object_id"], moment(instance["create_date"])),
            schema_hash=data["schema_hash"],
            columns=tuple(data["columns"]),
            # older ones have none: all was loaded then
            selection_hash=data.get("selection_hash"),
            selection=tuple(data.get("selection", ())),
            failed=failed and Failure.from_json(failed),
            announced=Lsn.parse(data["announced"]) if data.get("announced") else None,
            updated_at=moment(data["updated_at"]) if data["updated_at"] else None,
        )


class Variables(Protocol):
    """What the store needs of ``airflow.sdk.Variable``."""

    def get(self, key: str, default: Any = ...) -> Any:
        """Return the value, or the default."""

    def set(self, key: str, value: Any, description: str | None = None) -> None:
        """Store the value."""

    def delete(self, key: str) -> None:
        """Delete the Variable."""


class CheckpointStore:
    """Reads and writes checkpoints as Airflow Variables; nothing else writes them.

    Airflow has no compare-and-set, so a lost write is possible; the marker in the target heals it.

    :param variables: ``airflow.sdk.Variable``
    """

    def __init__(self, variables: Variables) -> None:
        self._variables = variables

    def load(self, identity: Identity) -> Checkpoint | None:
        """Return the checkpoint, or None if there is none.

        :raises CheckpointError: if it is damaged or newer than this package
        """
        text = self._variables.get(identity.variable, default=None)
        if text is None:
            return None
        try:
            checkpoint = Checkpoint.from_json(text)
        except CheckpointError as error:
            raise type(error)(
                error.message, table=str(identity.table), advice=f"{error.advice} It is {identity.variable}."
            ) from error
        if checkpoint.identity != identity:
            raise CheckpointError(
                f"Variable {identity.variable} holds the checkpoint of {checkpoint.identity}.",
                table=str(identity.table),
                advice="Delete one of the two.",
            )
        return checkpoint

    def save(self, checkpoint: Checkpoint, seen: Checkpoint | None = None) -> bool:
        """Store the checkpoint together with what is stored: each sink where it is further, and the sinks that the
        checkpoint does not know of. A checkpoint all of whose sinks are behind changes nothing, nor does a sink change
        that a person has set or reset meanwhile.

        :param seen: what was stored when the run was planned; None if there was nothing
        :return: whether it was written
        :raises CheckpointError: if the stored one is damaged or newer than this package
        """
        stored = self.load(checkpoint.identity)
        before = seen.sinks if seen else {}
        reset = [shape for shape in before if shape in checkpoint.sinks and (not stored or shape not in stored.sinks)]
        if reset:
            log.warning("%s: the checkpoint of %s was reset meanwhile", checkpoint.identity.table, ", ".join(reset))
            kept = {shape: sink for shape, sink in checkpoint.sinks.items() if shape not in reset}
            if not kept:
                return False
            checkpoint = dataclasses.replace(checkpoint, sinks=kept)
        merged = checkpoint if stored is None else _merged(stored, checkpoint, seen)
        if merged is None:
            return False
        self.overwrite(merged)
        return True

    def overwrite(self, checkpoint: Checkpoint) -> None:
        """Store the checkpoint, whatever is stored: for a person's explicit order, never for a run."""
        now = datetime.datetime.now(datetime.UTC)
        identity = checkpoint.identity
        self._variables.set(
            identity.variable,
            dataclasses.replace(checkpoint, updated_at=now).to_json(),
            description=f"CDC: {identity.connection} {identity.database} {identity}",
        )

    def delete(self, identity: Identity) -> bool:
        """Remove the checkpoint, also one that cannot be read.

        :return: whether there was one
        """
        if self._variables.get(identity.variable, default=None) is None:
            return False
        self._variables.delete(identity.variable)
        return True


def _merged(stored: Checkpoint, written: Checkpoint, seen: Checkpoint | None) -> Checkpoint | None:
    behind = [
        shape
        for shape, sink in written.sinks.items()
        if shape in stored.sinks
        and (_place(stored.sinks[shape]) > _place(sink) or _word(stored, shape) not in (None, _word(seen, shape)))
    ]
    for shape in behind:
        log.warning(
            "%s: the checkpoint of %s stands at %s; not moved to %s",
            written.identity.table,
            shape,
            stored.sinks[shape].read_through,
            written.sinks[shape].read_through,
        )
    if behind and len(behind) == len(written.sinks):
        return None
    sinks = {**stored.sinks, **{shape: sink for shape, sink in written.sinks.items() if shape not in behind}}
    if written.instance is None:
        return dataclasses.replace(stored, sinks=sinks, failed=written.failed)
    return dataclasses.replace(written, sinks=sinks)


def _word(checkpoint: Checkpoint | None, shape: str) -> str | None:
    sink = checkpoint.sinks.get(shape) if checkpoint else None
    return sink.asserted if sink else None


def _place(sink: SinkState) -> tuple[Lsn, Lsn]:
    return sink.read_through, sink.applied
