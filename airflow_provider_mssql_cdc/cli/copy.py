"""``mssql-cdc copy``: ask for a copy of tables, pause it, stop it, see how far it is."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping

from airflow_provider_mssql_cdc.cli.checkpoint import MetadataVariables
from airflow_provider_mssql_cdc.cli.exit import EXIT_OK, CommandError
from airflow_provider_mssql_cdc.cli.plan import hook_of, task_of
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Identity
from airflow_provider_mssql_cdc.core.checkpoint_store import CheckpointStore
from airflow_provider_mssql_cdc.core.copy_requests import CopyRequest, CopyRequests
from airflow_provider_mssql_cdc.core.exceptions import MsSqlCdcError, ParameterError
from airflow_provider_mssql_cdc.core.patterns import matches, parse_name
from airflow_provider_mssql_cdc.core.spec import COPY, PAUSE, STOP

_WANTED = {COPY: "copying", PAUSE: "paused", STOP: "to be stopped"}


def run(arguments: argparse.Namespace) -> int:
    """Run ``start``, ``pause``, ``resume``, ``stop`` or ``status``. Nothing else than requests is written.

    :raises CommandError: where DAG, task, database or Airflow cannot be asked, or a request stands in the way
    """
    variables = MetadataVariables()
    store, requests = CheckpointStore(variables), CopyRequests(variables)
    # Airflow logs to standard output, which is for the answer alone
    with contextlib.redirect_stdout(sys.stderr):
        try:
            identities = _identities(arguments)
            found = {each: (store.load(each), requests.load(each)) for each in identities}
        except (MsSqlCdcError, ParameterError) as error:
            raise CommandError(str(error)) from error
    if arguments.action == "status":
        for line in _status(found):
            print(line)
        return EXIT_OK
    wanted = {each: _ACTIONS[arguments.action](each, *standing) for each, standing in found.items()}
    asked = {each: request for each, request in wanted.items() if not isinstance(request, str)}
    if not asked:
        raise CommandError("; ".join(f"{each.table}: {why}" for each, why in wanted.items()))
    if arguments.action == "start" and len(asked) < len(wanted):
        # all of them or none: one that is half done is nothing to repeat
        raise CommandError("; ".join(f"{each.table}: {why}" for each, why in wanted.items() if isinstance(why, str)))
    for each, request in asked.items():
        if request is None:
            requests.delete(each)
        else:
            requests.save(request)
        if arguments.action == "start":
            _forgive(store, found[each][0])
        print(f"{each}: {_DONE[arguments.action]}")
    return EXIT_OK


def _identities(arguments: argparse.Namespace) -> list[Identity]:
    """The tables of the load, or the one that was named.

    :raises CommandError: where the load has no such table
    """
    task = task_of(arguments)
    request = task.request()
    with contextlib.closing(hook_of(task)) as hook:
        survey = hook.survey(request.patterns, request.exclude)
    names = [table.name for table in survey.matches.tables]
    wanted = None if arguments.table is None else parse_name(arguments.table)
    chosen = [name for name in names if wanted is None or matches(wanted, name.schema, name.table)]
    if not chosen:
        has = ", ".join(map(str, sorted(names))) or "none"
        raise CommandError(f"{arguments.table or 'no table'} is none of the tables of task {arguments.task}: {has}")
    database = survey.status.name
    return [
        request.identity(database, name, request.deciding(name, survey.matches.by[name])) for name in sorted(chosen)
    ]


_Answer = CopyRequest | str | None
"""A request to store, None to remove the one that stands, or why there is nothing to do."""


def _start(identity: Identity, checkpoint: Checkpoint | None, request: CopyRequest | None) -> _Answer:
    if request is not None and not request.has_ended(checkpoint) and (request.of_loaded or request.wanted == STOP):
        return f"copy {request.id} stands in the way: it was asked for at {_time(request)}, and is {_state(request)}"
    return CopyRequest(identity, secrets.token_hex(6), COPY, True, datetime.datetime.now(datetime.UTC))


def _pause(identity: Identity, checkpoint: Checkpoint | None, request: CopyRequest | None) -> _Answer:
    return _changed(identity, checkpoint, request, PAUSE)


def _stop(identity: Identity, checkpoint: Checkpoint | None, request: CopyRequest | None) -> _Answer:
    return _changed(identity, checkpoint, request, STOP)


def _changed(identity: Identity, checkpoint: Checkpoint | None, request: CopyRequest | None, wanted: str) -> _Answer:
    if request is not None and not request.has_ended(checkpoint):
        if request.wanted == STOP:
            return f"copy {request.id} is to be stopped by the next run"
        return dataclasses.replace(request, wanted=wanted)
    if checkpoint is not None and checkpoint.copies:
        now = datetime.datetime.now(datetime.UTC)
        return CopyRequest(identity, checkpoint.copies[0].id, wanted, False, now)
    return "no copy is under way, and none is asked for"


def _resume(identity: Identity, checkpoint: Checkpoint | None, request: CopyRequest | None) -> _Answer:
    if request is None or not request.is_paused:
        return "no copy is paused"
    return dataclasses.replace(request, wanted=COPY) if request.of_loaded else None


_ACTIONS: Mapping[str, Callable[[Identity, Checkpoint | None, CopyRequest | None], _Answer]] = {
    "start": _start,
    "pause": _pause,
    "resume": _resume,
    "stop": _stop,
}
_DONE = {
    "start": "a copy is asked for; the next run of the load begins it",
    "pause": "the next run of the load reads no rows, and keeps the changes beside the copy",
    "resume": "the next run of the load goes on with the copy",
    "stop": "the next run of the load removes the copy; what waited for it fails until `mssql-cdc copy start`",
}


def _forgive(store: CheckpointStore, checkpoint: Checkpoint | None) -> None:
    """Let what failed for want of a copy begin again."""
    if checkpoint is None:
        return
    waiting = [
        shape
        for shape, sink in checkpoint.sinks.items()
        if sink.failed is not None and (sink.failed.stopped or not sink.is_loaded)
    ]
    if waiting:
        store.overwrite(checkpoint.failing(waiting, None))


def _status(found: Mapping[Identity, tuple[Checkpoint | None, CopyRequest | None]]) -> Iterator[str]:
    for identity, (checkpoint, request) in found.items():
        said = []
        if request is not None:
            ended = request.has_ended(checkpoint)
            state = (request.ending(checkpoint) or "no longer under way") if ended else _state(request)
            said.append(f"copy {request.id}, asked for at {_time(request)}: {state}")
        for copy in checkpoint.copies if checkpoint is not None else ():
            waits = ", all rows are read, the capture is waited for" if copy.waits_after is not None else ""
            said.append(
                f"{', '.join(copy.shapes)} {'wait' if len(copy.shapes) > 1 else 'waits'} for it: {copy.chunks} chunks "
                f"are there{waits}, changes are kept up to {copy.position}, in {copy.where}"
            )
        for line in said or ["no copy"]:
            yield f"{identity}: {line}"


def _state(request: CopyRequest) -> str:
    return _WANTED.get(request.wanted, request.wanted)


def _time(request: CopyRequest) -> str:
    return request.at.isoformat(" ", "seconds") if request.at else "an unknown time"
