"""``mssql-cdc checkpoint``: see and correct how far tables are loaded."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import re
import secrets
from collections.abc import Iterator
from typing import Any

from airflow_provider_mssql_cdc.cli.exit import EXIT_OK, CommandError
from airflow_provider_mssql_cdc.core.checkpoint import KEY_PREFIX, Checkpoint, Identity, SinkState
from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.codec import from_json, to_json
from airflow_provider_mssql_cdc.core.copy_requests import CopyRequests
from airflow_provider_mssql_cdc.core.exceptions import CheckpointError, FormatError
from airflow_provider_mssql_cdc.core.healing import without_versions
from airflow_provider_mssql_cdc.core.patterns import parse_name
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.schema import KEY_PREFIX as SCHEMA_PREFIX
from airflow_provider_mssql_cdc.core.shapes import SHAPES
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.target import TABLE_NAME, Target, check_template
from airflow_provider_mssql_cdc.core.waiting import left_by_reset


@contextlib.contextmanager
def _asking() -> Iterator[None]:
    """Tell in one line what keeps Airflow's database from answering.

    :raises CommandError: whatever that is: of SQLAlchemy, a driver that is missing, Airflow's own settings
    """
    try:
        yield
    except Exception as error:
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise CommandError(
            f"Airflow's database, which holds the checkpoints, cannot be asked: {reason}. Run this where "
            "AIRFLOW_HOME or AIRFLOW__DATABASE__SQL_ALCHEMY_CONN name that of your Airflow, after `airflow db migrate`"
        ) from error


class MetadataVariables:
    """Airflow's Variables for a process that is no task.

    ``airflow.sdk.Variable`` can only read there; this goes to the metadata database.
    """

    def get(self, key: str, default: Any = None) -> Any:
        """The value, or the default."""
        with _asking():
            from airflow.models import Variable

            return Variable.get(key, default_var=default)

    def set(self, key: str, value: Any, description: str | None = None) -> None:
        """Store the value."""
        with _asking():
            from airflow.models import Variable

            Variable.set(key, value, description=description)

    def delete(self, key: str) -> None:
        """Delete the Variable."""
        with _asking():
            from airflow.models import Variable

            Variable.delete(key)

    def keys(self, prefix: str) -> list[str]:
        """The keys with this beginning, sorted."""
        with _asking():
            from airflow.models import Variable
            from airflow.utils.session import create_session
            from sqlalchemy import select

            with create_session() as session:
                found = session.scalars(select(Variable.key).where(Variable.key.startswith(prefix, autoescape=True)))
                return sorted(found)


def run(arguments: argparse.Namespace) -> int:
    """Run ``list``, ``show``, ``set``, ``reset`` or ``rename``.

    :raises CommandError: also where Airflow's database cannot be asked
    """
    variables = MetadataVariables()
    if arguments.action == "list":
        for line in _stored_as(variables) if arguments.json else _list(variables):
            print(line)
        return EXIT_OK
    store = CheckpointStore(variables)
    try:
        identity = _identity(arguments)
        print(_ACTIONS[arguments.action](store, identity, arguments))
    except (CheckpointError, ValueError) as error:
        raise CommandError(str(error)) from error
    return EXIT_OK


def _identity(arguments: argparse.Namespace) -> Identity:
    name, target = _table("--table", arguments.table), Target.parse(arguments.target)
    check_template(arguments.table_name)
    return Identity.of(arguments.conn, arguments.database, name, target.address, arguments.table_name)


def _table(option: str, given: str) -> TableName:
    if given.startswith("["):
        schema, table = parse_name(given).parts
        dot = "."
    else:
        schema, dot, table = given.partition(".")
    if not (schema and dot and table):
        raise CommandError(f"{option} {given!r} is not of the form schema.table")
    return TableName(schema, table)


def all_checkpoints(variables: MetadataVariables) -> Iterator[tuple[str, Checkpoint | FormatError]]:
    """Yield all checkpoints of this Airflow by their keys, or why one cannot be read.

    :raises CommandError: where Airflow's database cannot be asked
    """
    for key in variables.keys(KEY_PREFIX):
        try:
            yield key, from_json(Checkpoint, variables.get(key))
        except FormatError as error:
            yield key, error


def _list(variables: MetadataVariables) -> Iterator[str]:
    found = [*all_checkpoints(variables)]
    if not found:
        yield "no checkpoints"
    for key, checkpoint in found:
        if isinstance(checkpoint, FormatError):
            yield f"{key}: {checkpoint}"
            continue
        identity = checkpoint.identity
        yield f"{identity.connection} {identity.database} {identity}"
        for shape, sink in sorted(checkpoint.sinks.items()):
            asserted = "" if sink.asserted is None else ", an asserted position"
            if sink.is_loaded:
                yield f"  {shape}: loaded to {sink.applied}, read to {sink.read_through}{asserted}"
            else:
                yield f"  {shape}: not loaded yet"
            if sink.failed:
                yield f"  {shape}: failed {sink.failed.time.isoformat(timespec='seconds')}: {sink.failed.reason}"
        if not checkpoint.sinks:
            yield "  not loaded yet"
        if (making := checkpoint.making) is not None:
            since = making.since.isoformat(timespec="seconds")
            yield f"  about to make capture instance {making.instance} with {', '.join(making.columns)} since {since}"
        for copy in checkpoint.copies:
            yield f"  copying: {copy.chunks} chunks are there, changes are kept up to {copy.position}, in {copy.where}"


def _stored_as(variables: MetadataVariables) -> Iterator[str]:
    """What is stored, also where it cannot be read, and the schemas: `airflow variables import` puts it back."""
    keys = [*variables.keys(KEY_PREFIX), *variables.keys(SCHEMA_PREFIX)]
    yield json.dumps({key: variables.get(key) for key in keys}, indent=1)


def _show(store: CheckpointStore, identity: Identity, arguments: argparse.Namespace) -> str:
    return to_json(_stored(store, identity))


def _set(store: CheckpointStore, identity: Identity, arguments: argparse.Namespace) -> str:
    position = Lsn.parse(arguments.position)
    stored = store.load(identity)
    shapes = _shapes(arguments.shape, stored)
    if not shapes:
        raise CommandError(f"there is no checkpoint of {_name(identity)} yet: say which --shape, such as mirror")
    before = stored.loaded if stored else {}
    found = stored or Checkpoint(identity)
    sinks, asserted = dict(found.sinks), secrets.token_hex(8)
    for shape in shapes:
        # all that a sink has belongs to the position of before, but what only a later version knows
        sinks[shape] = SinkState(position, position, asserted=asserted, unknown=sinks.get(shape, SinkState()).unknown)
    # what is loaded again is told again
    announced = None if found.announced is None else min(found.announced, position)
    # the position may be one of another history of the database, of which versions of before say nothing
    noted = without_versions(found.noted)
    store.overwrite(dataclasses.replace(found, sinks=sinks, announced=announced, noted=noted))
    new = "" if stored else " There was no checkpoint of this table; `mssql-cdc checkpoint list` shows those that are."
    return (
        f"{_name(identity)}: {', '.join(shapes)} set to {position}"
        + "".join(f" (was {before[shape].read_through})" for shape in shapes[:1] if shape in before)
        + ".\nThe next run takes it from you that the target table holds every change up to there and none after, "
        "whatever its own marker says. Where a column was added, rows that are there keep NULL in it until they change."
        f"{new}"
    )


def _reset(store: CheckpointStore, identity: Identity, arguments: argparse.Namespace) -> str:
    requests = CopyRequests(store.variables)
    # a copy that was stopped, too, is begun anew
    requests.delete(identity)
    if arguments.shape is None:
        what = _forget(store, identity)
    else:
        stored = _stored(store, identity)
        (shape,) = _shapes(arguments.shape, stored)
        if shape not in stored.sinks:
            raise CommandError(f"the checkpoint of {_name(identity)} holds no {shape}")
        sinks = {name: sink for name, sink in stored.sinks.items() if name != shape}
        store.overwrite(dataclasses.replace(stored, sinks=sinks))
        what = f"checkpoint of the {shape} removed"
    return (
        f"{_name(identity)}: {what}.\n"
        "At the next run a target table that carries a marker is continued from there; one that is missing or empty is "
        "loaded for the first time. So drop the target table to have it copied anew."
    )


def _forget(store: CheckpointStore, identity: Identity) -> str:
    """Remove a checkpoint, but for what nobody else knows: the columns that wait to be asked for, once the target table
    is dropped, and schema events that no table holds yet; these, too, where nothing else is left of it.

    :return: what was done
    """
    try:
        stored = store.load(identity)
    except CheckpointError:
        # of one that cannot be read nothing can be kept
        stored = None
    left = left_by_reset(stored) if stored is not None else None
    if left is None:
        if not store.delete(identity):
            raise _missing(identity)
        return "checkpoint removed"
    store.overwrite(left)
    kept = ["the columns that wait to be asked for"] if left.waiting_ids else []
    kept += ["the schema changes that are not written yet"] if left.unwritten else []
    return f"checkpoint removed, but for {' and '.join(kept)}: a second reset forgets these, too"


def _rename(store: CheckpointStore, identity: Identity, arguments: argparse.Namespace) -> str:
    """Hand the checkpoint of a source table that was renamed, or moved to another schema, on to its new name. The
    target keeps its name.
    """
    stored, to = _stored(store, identity), _table("--to", arguments.to)
    usual = TABLE_NAME.format(schema=identity.table.schema, table=identity.table.table)
    kept = re.sub(r"([{}])", r"\1\1", identity.name or usual)
    renamed = Identity.of(identity.connection, identity.database, to, identity.target, kept)
    there = store.load(renamed)
    if renamed == identity or (there is not None and there.loaded):
        raise CommandError(f"there is a checkpoint of {_name(renamed)} already, which was loaded as a table of its own")
    # the folder of a copy has the name of the table that it was begun for
    store.overwrite(dataclasses.replace(stored, identity=renamed, copies=()))
    store.delete(identity)
    CopyRequests(store.variables).delete(identity)
    named = f', "table_name": "{kept}"' if renamed.name else ""
    entry = to.quoted if "." in f"{to.schema}{to.table}" else str(to)
    begins = "; a copy that was under way begins again" if stored.copies else ""
    return (
        f"{_name(identity)}: the checkpoint is that of {to} now{begins}.\n"
        f'The next run goes on where the target stands. Its entry in tables is {{"table": "{entry}"{named}}}.'
    )


def _shapes(shape: str | None, stored: Checkpoint | None) -> tuple[str, ...]:
    if shape is None:
        return tuple(sorted(stored.loaded)) if stored else ()
    if shape not in SHAPES:
        raise CommandError(f"--shape {shape!r}: expected one of {', '.join(SHAPES)}")
    return (shape,)


def _stored(store: CheckpointStore, identity: Identity) -> Checkpoint:
    stored = store.load(identity)
    if stored is None:
        raise _missing(identity)
    return stored


def _missing(identity: Identity) -> CommandError:
    return CommandError(
        f"there is no checkpoint of {_name(identity)}; `mssql-cdc checkpoint list` shows those that exist"
    )


def _name(identity: Identity) -> str:
    return f"{identity.table} of {identity.database} ({identity.connection}) in {identity.place}"


_ACTIONS = {"show": _show, "set": _set, "reset": _reset, "rename": _rename}
