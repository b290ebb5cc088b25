"""A table whose key is another one than that by which its sinks were loaded: they begin anew by it, with a copy."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Mapping, Sequence

from airflow_provider_mssql_cdc.core.adding import Adding, names_of
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, SinkState
from airflow_provider_mssql_cdc.core.entry_values import EVOLVE
from airflow_provider_mssql_cdc.core.exceptions import MsSqlCdcError, SelectionError
from airflow_provider_mssql_cdc.core.feed import Feed
from airflow_provider_mssql_cdc.core.feed_choice import by_age
from airflow_provider_mssql_cdc.core.going_on import as_before, goes_on_with, ids_there, names_before
from airflow_provider_mssql_cdc.core.key import choose_key, key_ids
from airflow_provider_mssql_cdc.core.schema import KeptSchema, KeptSchemas
from airflow_provider_mssql_cdc.core.shapes import SHAPES
from airflow_provider_mssql_cdc.core.spec import Chosen
from airflow_provider_mssql_cdc.core.table import TableName, TableSchema
from airflow_provider_mssql_cdc.core.table_options import TableOptions


def rekeys(options: TableOptions) -> bool:
    """Whether sinks begin anew by another key."""
    return options.on_schema_change == EVOLVE


def has_other_key(then: KeptSchema | None, now: TableSchema) -> bool:
    """Whether a sink was loaded by another key.

    :param then: what it was loaded with; None where that is not known
    """
    return then is not None and key_ids(then) != key_ids(now)


def by_other_keys(sinks: Mapping[str, SinkState | None], now: TableSchema, kept: KeptSchemas) -> dict[str, KeptSchema]:
    """What those sinks were loaded with that have another key, by shape.

    :param kept: schemas by their hash
    """
    known = {s: kept(state.schema_hash) for s, state in sinks.items() if state is not None and state.schema_hash}
    return {shape: then for shape, then in known.items() if then is not None and has_other_key(then, now)}


def needs_copy(
    name: TableName, feeds: Sequence[Feed], checkpoint: Checkpoint, options: TableOptions, kept: KeptSchemas
) -> bool:
    """Whether sinks begin anew by the key of the newest feed, whatever it lacks of the changes of before."""
    if not rekeys(options):
        return False
    feed, adding = by_age(feeds)[0], Adding.of(options, checkpoint, checkpoint.loaded.values(), kept)
    try:
        key, _ = choose_key(name, feed, options.key, adding.keys)
    except MsSqlCdcError:
        return False
    return bool(by_other_keys(checkpoint.loaded, TableSchema(feed.columns, key), kept))


def rekeyed(
    now: TableSchema,
    then: KeptSchema,
    adding: Adding,
    feed: Feed,
    exact: Collection[str] = (),
    *,
    widens: str = "",
    there: Collection[int] | None = None,
) -> TableSchema | None:
    """The schema with which a sink begins anew by another key: the columns that it has, and those of the key.

    :param now: all that the feed has, and the other key
    :param then: what the sink was loaded with
    :param exact: as for ``goes_on_with``; so with ``widens`` and ``there``
    :return: None where more has changed than the key
    :raises SelectionError: if a column of the key waits to be asked for
    """
    found = goes_on_with(TableSchema(now.columns, ()), _keyless(then), exact, widens=widens, there=there)
    if found is None:
        return None
    facts = {name: now.column(name) for name in now.key}
    has = {column.column_id for column in found.columns}
    lacked = [column for column in facts.values() if column.column_id not in has]
    if waits := [column.name for column in lacked if not adding.wants(column, names_of(feed))]:
        raise SelectionError(
            f"the key is ({', '.join(now.key)}), and column {waits[0]} waits to be asked for.",
            table=str(feed.source),
            advice=f'Let the entry name it: new_columns={{"{waits[0]}": "load"}}.',
        )
    columns = [dataclasses.replace(c, nullable=facts[c.name].nullable) if c.name in facts else c for c in found.columns]
    schema = TableSchema(tuple(sorted((*columns, *lacked), key=lambda column: column.ordinal)), now.key)
    return schema if begins_anew(schema, then, widens=widens) else None


def begins_anew(schema: TableSchema, then: KeptSchema | None, *, widens: str = "") -> bool:
    """Whether a sink begins anew with a schema: its key is another one, and it has all columns that the sink has, in
    types that this follows.

    :param then: what the sink was loaded with; None where that is not known
    :param widens: as for ``goes_on_with``
    """
    if then is None or not has_other_key(then, schema):
        return False
    facts = {column.column_id: column for column in then.columns}
    held = [column for column in schema.columns if column.column_id in facts]
    if any(column.suffix for column in held if column.name in schema.key):
        return False
    like = [dataclasses.replace(column, nullable=facts[column.column_id].nullable) for column in held]
    has, before = TableSchema(tuple(like), ()), _keyless(then)
    return (as_before(has, before) if widens else has).hash == before.hash


def had(chosen: Chosen, then: KeptSchema, *, widens: str = "") -> Chosen:
    """What of a load's columns a sink has that begins anew with them, by the names of then."""
    ids = {column.column_id for column in then.columns}
    columns = tuple(column for column in chosen.schema.columns if column.column_id in ids)
    names = {column.name for column in columns}
    schema = TableSchema(columns, tuple(name for name in chosen.schema.key if name in names))
    selection = chosen.selection.within(names)
    if not widens:
        return Chosen(schema, selection)
    before = names_before(_keyless(then), dataclasses.replace(schema, key=()))
    named = tuple(dataclasses.replace(column, name=before.get(column.name, column.name)) for column in columns)
    key = tuple(before.get(name, name) for name in schema.key)
    return Chosen(TableSchema(named, key), selection.named(before))


def first_anew(
    now: TableSchema,
    others: Mapping[str, KeptSchema],
    states: Sequence[SinkState | None],
    adding: Adding,
    feed: Feed,
) -> TableSchema | None:
    """The schema with which a table's sinks begin anew by another key; None where none can.

    :param others: what those were loaded with that have another key, by shape
    :param states: the sinks, the first ones decide
    """
    options, there = adding.options, ids_there(feed, adding.source_object_id)
    thens = {then.hash: then for then in others.values()}
    for state in states:
        then = thens.get(str(state.schema_hash)) if state is not None else None
        if then is not None:
            found = rekeyed(now, then, adding, feed, options.copy_by, widens=options.follows_types, there=there)
            if found is not None:
                return found
    return None


def told_of_key(rekeyed: Mapping[str, KeptSchema], now: TableSchema) -> list[str]:
    """What people are told of sinks that are loaded anew by another key.

    :param rekeyed: what they were loaded with, by shape
    """
    keys: dict[tuple[str, ...], list[str]] = {}
    for shape, then in rekeyed.items():
        if SHAPES[shape].has_data:
            keys.setdefault(then.key, []).append(shape)
    said = ", ".join(now.key)
    return [
        f"the key was ({', '.join(key)}), and is ({said}): a copy of the table loads {', '.join(shapes)} anew by it"
        for key, shapes in keys.items()
    ]


def _keyless(schema: KeptSchema) -> KeptSchema:
    return KeptSchema(json.dumps({**json.loads(schema.canonical), "key": []}, separators=(",", ":")))
