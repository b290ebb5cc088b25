"""A table whose key is another one than that by which its sinks were loaded: they begin anew by it, with a copy."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from airflow_provider_mssql_cdc.core.adding import Adding, names_of
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, SinkState
from airflow_provider_mssql_cdc.core.columns import ColumnMapping, key_columns
from airflow_provider_mssql_cdc.core.entry_values import EVOLVE
from airflow_provider_mssql_cdc.core.exceptions import RESET_ADVICE, MsSqlCdcError, SchemaChangedError, SelectionError
from airflow_provider_mssql_cdc.core.feed import Feed
from airflow_provider_mssql_cdc.core.feed_choice import by_age
from airflow_provider_mssql_cdc.core.going_on import as_before, goes_on_with, ids_there, names_before
from airflow_provider_mssql_cdc.core.key import choose_key, key_ids, keys_of
from airflow_provider_mssql_cdc.core.schema import KeptSchema, KeptSchemas
from airflow_provider_mssql_cdc.core.selection import same_selection
from airflow_provider_mssql_cdc.core.shapes import IGNORE, SHAPES, SOFT
from airflow_provider_mssql_cdc.core.spec import Chosen, TableSpec
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema
from airflow_provider_mssql_cdc.core.table_options import TableOptions


def rekeys(options: TableOptions) -> bool:
    """Whether sinks begin anew by another key."""
    return options.on_schema_change == EVOLVE


def has_other_key(then: KeptSchema | None, now: TableSchema) -> bool:
    """Whether a sink was loaded by another key.

    :param then: what it was loaded with; None where that is not known
    """
    return then is not None and {*key_ids(then)} != {*key_ids(now)}


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
    name: TableName,
    waits: Callable[[Column], bool],
    exact: Collection[str] = (),
    *,
    widens: str = "",
    there: Collection[int] | None = None,
) -> TableSchema | None:
    """The schema with which a sink begins anew by another key: the columns that it has, and those of the key.

    :param now: all that the feed has, and the other key
    :param then: what the sink was loaded with
    :param waits: whether a column that it lacks waits to be asked for
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
    if waiting := next((column.name for column in lacked if waits(column)), None):
        raise SelectionError(
            f"the key is ({', '.join(now.key)}), and column {waiting} waits to be asked for.",
            table=str(name),
            advice=f'Let the entry name it: new_columns={{"{waiting}": "load"}}.',
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


def had(chosen: Chosen, then: KeptSchema, selection_hash: str | None, *, widens: str = "") -> Chosen:
    """What of a load's columns a sink has that begins anew with them, by the names of then.

    :param selection_hash: of what was loaded then
    """
    found = _had(chosen, then, {column.column_id for column in then.columns}, widens)
    if not same_selection(selection_hash, found.selection):
        # an entry that left out a column had to name it once the key had it
        key = {column.column_id for column in map(chosen.schema.column, chosen.schema.key)} - {*key_ids(then)}
        fewer = _had(chosen, then, {column.column_id for column in then.columns} - key, widens)
        columns = tuple(c.name for c in fewer.schema.loaded if fewer.selection.holds(c.name))
        fewer = Chosen(fewer.schema, dataclasses.replace(fewer.selection, columns=columns))
        if same_selection(selection_hash, fewer.selection):
            return fewer
    return found


def _had(chosen: Chosen, then: KeptSchema, ids: Collection[int], widens: str) -> Chosen:
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
    options, there, names = adding.options, ids_there(feed, adding.source_object_id), names_of(feed)
    thens = {then.hash: then for then in others.values()}
    for state in states:
        then = thens.get(str(state.schema_hash)) if state is not None else None
        if then is not None:
            found = rekeyed(
                now,
                then,
                feed.source,
                lambda column: not adding.wants(column, names),
                options.copy_by,
                widens=options.follows_types,
                there=there,
            )
            if found is not None:
                return found
    return None


def by_loaded_key(table: TableSpec, loaded: Iterable[KeptSchema]) -> TableSpec:
    """A table by the key of its targets where the plan did not know that, without a checkpoint: in the order of theirs,
    or by the one that the entry names beside a primary key which the feed does not have.

    :param loaded: what the targets were loaded with
    """
    if any(sink.expects is not None for sink in table.sinks):
        return table
    keys, names = keys_of(loaded), {column.column_id: column.name for column in table.schema.columns}
    if len(keys) != 1 or not names.keys() >= {*(ids := next(iter(keys)))}:
        return table
    key = tuple(names[column_id] for column_id in ids)
    if {*key} == {*table.schema.key}:
        return dataclasses.replace(table, schema=dataclasses.replace(table.schema, key=key))
    if not key or {*key} != {*table.named_key}:
        return table
    return dataclasses.replace(table, schema=dataclasses.replace(table.schema, key=key), unique_key=False)


def anew_without_checkpoint(
    table: TableSpec, whole: Chosen, then: KeptSchema, waiting: Collection[int], there: Collection[int] | None
) -> Chosen:
    """With which columns a sink begins anew by another key where the plan did not know what it was loaded with.

    :param whole: of the load
    :param waiting: column_ids that wait to be asked for, as markers alone say
    :param there: as for ``goes_on_with``
    :return: the same where the plan knew, and where the sink does not begin anew
    """
    had_ids = {column.column_id for column in then.columns}
    is_known = not any(c.column_id in waiting and c.column_id not in had_ids for c in whole.schema.columns)
    if not has_other_key(then, whole.schema) or (is_known and begins_anew(whole.schema, then, widens=table.types)):
        return whole
    found = rekeyed(
        TableSchema(table.feed.columns, whole.schema.key),
        then,
        table.name,
        lambda column: column.column_id in waiting,
        table.copy_by,
        widens=table.types,
        there=there,
    )
    if found is None or found.hash == whole.schema.hash:
        return whole
    return Chosen(found, whole.selection.within({column.name for column in found.columns}))


def key_columns_before(now: TableSchema, mappings: Iterable[ColumnMapping], then: KeptSchema) -> tuple[str, ...]:
    """The target columns of the key by which a sink was loaded that begins anew by another one.

    :param mappings: of the load's columns
    """
    names = {column.column_id: column.name for column in now.columns}
    before = dataclasses.replace(now, key=tuple(names[column_id] for column_id in key_ids(then)))
    return key_columns(before, mappings)


def _tells_nothing(now: TableSchema, then: KeptSchema) -> bool:
    """Whether nothing tells which rows of a sink those of now are: the source has dropped a column of the key of
    before, and the sink has had no values of a column of that of now.
    """
    has, gone = {column.column_id for column in then.columns}, {c.column_id for c in now.columns if c.kept}
    return not gone.isdisjoint(key_ids(then)) and not has.issuperset(key_ids(now))


def check_deletes(name: TableName, now: TableSchema, then: KeptSchema, deletes: str) -> None:
    """Refuse another key for a mirror that keeps deleted rows as they were, where nothing tells which these are.

    :param deletes: what the sink does with them
    :raises SchemaChangedError: if it is so
    """
    if deletes == IGNORE and _tells_nothing(now, then):
        raise SchemaChangedError(
            f'nothing tells which of its rows are gone, and deletes="ignore" keeps those: they have nothing of the key '
            f"({', '.join(now.key)}), and the table no longer has all of the one before, ({', '.join(then.key)}).",
            table=str(name),
            advice=f"Load it into another table (table_name). {RESET_ADVICE}",
        )


def told_of_key(rekeyed: Mapping[str, KeptSchema], now: TableSchema, deletes: str, *, wide: bool) -> list[str]:
    """What people are told of sinks that are loaded anew by another key.

    :param rekeyed: what they were loaded with, by shape
    :param deletes: what a mirror does with deleted rows
    :param wide: a history's form is that of wide records
    """
    keys: dict[tuple[str, ...], list[str]] = {}
    for shape, then in rekeyed.items():
        if SHAPES[shape].takes_copy(wide=wide, has_key=bool(now.key)):
            keys.setdefault(then.key, []).append(shape)
    said = ", ".join(now.key)
    unmarked = [s for s, t in rekeyed.items() if SHAPES[s].takes_deletes and deletes == SOFT and _tells_nothing(now, t)]
    return [
        f"{shape} marks no row as deleted that is gone since: by ({said}) nothing tells which these are"
        for shape in unmarked
    ] + [
        f"the key was ({', '.join(key)}), and is ({said}): a copy of the table loads {', '.join(shapes)} anew by it"
        for key, shapes in keys.items()
    ]


def _keyless(schema: KeptSchema) -> KeptSchema:
    return KeptSchema(json.dumps({**json.loads(schema.canonical), "key": []}, separators=(",", ":")))
