"""``mssql-cdc copy``: ask for a copy of tables, pause it, stop it, see how far it is."""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import socket
import sys
from collections.abc import Iterable, Iterator

from airflow_provider_mssql_cdc.cli.checkpoint import MetadataVariables
from airflow_provider_mssql_cdc.cli.exit import EXIT_OK, CommandError
from airflow_provider_mssql_cdc.cli.plan import hook_of, task_of
from airflow_provider_mssql_cdc.core.checkpoint import CopyState, Identity
from airflow_provider_mssql_cdc.core.copy_asking import CopyAsking
from airflow_provider_mssql_cdc.core.exceptions import CheckpointError, MsSqlCdcError, ParameterError
from airflow_provider_mssql_cdc.core.patterns import parse_name
from airflow_provider_mssql_cdc.hooks.copy_params import conditions_for, identities_of


def run(arguments: argparse.Namespace) -> int:
    """Run ``start``, ``pause``, ``resume``, ``stop`` or ``status``. Nothing else than requests is written.

    :raises CommandError: where DAG, task, database or Airflow cannot be asked, or a request stands in the way
    """
    asking = CopyAsking(MetadataVariables())
    try:
        # Airflow logs to standard output, which is for the answer alone
        with contextlib.redirect_stdout(sys.stderr):
            identities, where = _asked(arguments)
        if arguments.action == "status":
            for line in _status(asking, identities):
                print(line)
            return EXIT_OK
        asked = asking.ask(arguments.action, identities, where=where)
    except (MsSqlCdcError, ParameterError) as error:
        raise CommandError(str(error)) from error
    for each in asked:
        print(f"{each}: {_DONE[arguments.action]}")
    return EXIT_OK


def _asked(arguments: argparse.Namespace) -> tuple[list[Identity], str]:
    """The tables of the load, or the one that was named, and the conditions of their rows.

    :raises CommandError: where DAG or task cannot be found
    :raises MsSqlCdcError: where the load has no such table
    """
    task = task_of(arguments)
    request = task.request()
    with contextlib.closing(hook_of(task.mssql_conn_id)) as hook:
        survey = hook.survey(request.patterns, request.exclude, captured=request.captured)
    wanted = None if arguments.table is None else [parse_name(arguments.table)]
    identities = identities_of(
        survey,
        wanted,
        lambda name, numbers: request.of_table(survey.status.name, name, numbers),
        f"task {arguments.task}",
    )
    where = getattr(arguments, "where", None)
    try:
        given = None if where is None else json.loads(where) or ()
    except ValueError as error:
        example = '[["status", "=", "paid"]]'
        raise CommandError(f"--where {where}: {error}; expected JSON, such as '{example}'.") from error
    return identities, conditions_for(survey, identities, given)


def _room(copy: CopyState) -> str:
    """What is left on the disk of the copy's folder, where this machine has it."""
    if copy.host != socket.gethostname():
        return ""
    try:
        return f", {shutil.disk_usage(copy.place.removeprefix('file://')).free / 2**30:,.1f} GiB free there"
    except OSError:
        return ", which is not there"


_DONE = {
    "start": "a copy is asked for; the next run of the load begins it",
    "pause": "the next run of the load reads no rows, and keeps the changes beside the copy",
    "resume": "the next run of the load goes on with the copy",
    "stop": "the next run of the load removes the copy; what waited for it fails until `mssql-cdc copy start`",
}


def _status(asking: CopyAsking, identities: Iterable[Identity]) -> Iterator[str]:
    for identity in identities:
        try:
            each = asking.standing(identity)
        except CheckpointError as error:
            # the others can be seen
            yield f"{identity}: {error}"
            continue
        said = [str(each)] if each.request is not None else []
        for copy in each.checkpoint.copies if each.checkpoint is not None else ():
            waiting = f"{', '.join(copy.shapes)} {'wait' if len(copy.shapes) > 1 else 'waits'} for it"
            said.append(f"{waiting}: {copy.progress}{_room(copy)}")
        for line in said or ["no copy"]:
            yield f"{each.identity}: {line}"
