"""Copies that the params of a run ask for, and the tables of a load that they name."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_mssql_cdc.core.checkpoint import Identity
from airflow_provider_mssql_cdc.core.choice import conditions_of
from airflow_provider_mssql_cdc.core.columns import map_column
from airflow_provider_mssql_cdc.core.copy_asking import CopyAsking
from airflow_provider_mssql_cdc.core.database import Survey
from airflow_provider_mssql_cdc.core.entry_values import read_where
from airflow_provider_mssql_cdc.core.exceptions import (
    CopyAskedError,
    ParameterError,
    SelectionError,
    UnsupportedColumnError,
)
from airflow_provider_mssql_cdc.core.patterns import PatternError, TablePattern, matches, parse_pattern
from airflow_provider_mssql_cdc.core.table import TableName, TableSchema
from airflow_provider_mssql_cdc.core.variables import Variables

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

log = logging.getLogger(__name__)

PARAM = "copy"
"""Names the tables of which a copy is asked for, in the params of a run."""

WHERE, TABLES = "where", "tables"
"""The keys of a param that asks for a copy of some rows."""


def tables_asked(context: Context) -> tuple[list[TablePattern], Any]:
    """The tables of which the params of a run ask for a copy, and the conditions of the rows.

    ``{"copy": "sales.orders"}``, or a list of such patterns, or ``{"copy": {"tables": .., "where": ..}}``. Other values
    are a param of the DAG author's own, which says nothing of tables.

    :raises CopyAskedError: for a text that is no pattern
    """
    given, where = (context.get("params") or {}).get(PARAM), None
    if isinstance(given, Mapping) and TABLES in given and given.keys() <= {TABLES, WHERE}:
        given, where = given[TABLES], given.get(WHERE)
    asked = [given] if isinstance(given, str) and given else given
    if not asked or not isinstance(asked, list | tuple) or not all(isinstance(each, str) for each in asked):
        if given is not None and given != "" and given != []:
            log.info('params["%s"]=%r names no tables, so that no copy is asked for', PARAM, given)
        return [], None
    try:
        return [parse_pattern(each) for each in asked], where
    except PatternError as error:
        raise CopyAskedError(f'params["{PARAM}"]: {error}') from error


def ask_by_params(
    context: Context,
    variables: Variables,
    survey: Callable[[], Survey],
    identity: Callable[[str, TableName, Sequence[int]], Identity],
) -> None:
    """Leave the requests for copies that the params of a run ask for, once for all of its tasks and their tries.

    :param survey: of the load's tables
    :param identity: of a table in a database that entries with these numbers match
    :raises CopyAskedError: if they say something else, the load has no such table, or another request stands in the way
    """
    asked, where = tables_asked(context)
    if not asked:
        return
    found, run = survey(), context["ti"]
    if loads_of(context) > 1:
        # each has tables of its own, and who of them has this one is not known here
        known = [pattern for pattern in asked if any(_matches(pattern, table.name) for table in found.matches.tables)]
        for pattern in asked:
            if pattern not in known:
                log.warning('params["%s"]: %s is none of the tables of task %s', PARAM, pattern.text, run.task_id)
        if not (asked := known):
            return
    tables = identities_of(
        found, asked, lambda name, numbers: identity(found.status.name, name, numbers), f"task {run.task_id}"
    )
    said = conditions_for(found, tables, where)
    CopyAsking(variables).ask_once(tables, lambda table: copy_id(run.dag_id, run.run_id, table.short, ""), said)
    log.info("a copy is asked for of %s", ", ".join(str(each.table) for each in tables))


def loads_of(context: Context) -> int:
    """How many loads the run's DAG has."""
    tasks = getattr(context.get("dag"), "tasks", ())
    return sum(hasattr(task, "copy_seconds") for task in tasks)


def _matches(pattern: TablePattern, name: TableName) -> bool:
    return matches(pattern, name.schema, name.table)


def identities_of(
    survey: Survey,
    wanted: Sequence[TablePattern] | None,
    identity: Callable[[TableName, Sequence[int]], Identity],
    load: str,
) -> list[Identity]:
    """The tables of a load that patterns name; all of them for None.

    :param identity: of a table that entries with these numbers match
    :param load: for people
    :raises CopyAskedError: if one pattern names no table of the load
    """
    names = sorted(table.name for table in survey.matches.tables)
    chosen = set(names if wanted is None else ())
    for pattern in wanted or ():
        found = [name for name in names if _matches(pattern, name)]
        # beside one of another case, or of another schema, the one that is spelled so is meant
        found = [name for name in found if str(name) == pattern.text] or found
        if not found:
            has = ", ".join(map(str, names)) or "none"
            raise CopyAskedError(
                f"{pattern.text} is none of the tables of {load}: {has}.", advice="Name one of them, as it is written."
            )
        chosen.update(found)
    if not chosen:
        raise CopyAskedError(f"{load} has no tables.")
    return [identity(name, survey.matches.by[name]) for name in sorted(chosen)]


def conditions_for(survey: Survey, tables: Iterable[Identity], where: Any) -> str:
    """Conditions of rows as a request for a copy has them; '' for all rows.

    :param tables: all of them have to have the columns
    :param where: as an entry of the load's ``tables`` has it; None for all rows
    :raises CopyAskedError: for what is no condition, or none that every table's values can be judged by
    """
    if where is None:
        return ""
    try:
        if not (conditions := read_where("a copy", where)):
            raise ParameterError("where of a copy has no condition: leave it out for a copy of all rows")
        instances = {source.name: survey.instances_of(source) for source in survey.matches.tables}
        for table in tables:
            for instance in instances[table.table][-1:]:
                schema = TableSchema(instance.columns, ())
                for condition in conditions_of(table.table, schema, conditions):
                    map_column(table.table, schema.column(condition.column))
        return json.dumps(conditions, default=str)
    except (ParameterError, SelectionError, UnsupportedColumnError) as error:
        raise CopyAskedError(str(error)) from error


def copy_id(*parts: object) -> str:
    """The id of a copy that several tries ask for, and only one time.

    :param parts: what is the same for them; ids that differ in the last one alone have the first eight digits in common
    """
    *most, _ = parts
    begin, end = (hashlib.sha256("\n".join(map(str, each)).encode()).hexdigest() for each in (most, parts))
    return begin[:8] + end[:4]


def are_of_one_task(id_: str, other: str) -> bool:
    """Whether two ids differ in the last of their parts alone."""
    return id_[:8] == other[:8]
