"""Columns that a source table has got: which of them its sinks are to get, and the feed that has them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.changes import OPERATIONS, HistoryOptions
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, SinkState
from airflow_provider_mssql_cdc.core.choice import check_values, select
from airflow_provider_mssql_cdc.core.exceptions import MsSqlCdcError, SelectionError, UnsupportedColumnError
from airflow_provider_mssql_cdc.core.feed import Feed, Probe
from airflow_provider_mssql_cdc.core.feed_choice import by_age, choose_feed, reaches_back
from airflow_provider_mssql_cdc.core.filling import lacking
from airflow_provider_mssql_cdc.core.key import choose_key
from airflow_provider_mssql_cdc.core.position import is_gap
from airflow_provider_mssql_cdc.core.schema import KeptSchemas, as_loaded
from airflow_provider_mssql_cdc.core.shapes import SHAPES
from airflow_provider_mssql_cdc.core.spec import Chosen
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema, column_meant
from airflow_provider_mssql_cdc.core.table_options import Choice, TableOptions

_MOST_COLUMNS = 30_000
"""Of a table with sparse columns (docs: maximum capacity specifications)."""


@dataclass(frozen=True, slots=True)
class Adding:
    """What decides of the columns that a table's sinks lack.

    :param waits: whether a column waits to be asked for, by its column_id
    :param by_others: column_ids that some sink of the table was loaded with
    :param waiting: column_ids that are known to wait
    """

    options: TableOptions
    waits: Callable[[int], bool]
    by_others: frozenset[int] = frozenset()
    waiting: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls, options: TableOptions, checkpoint: Checkpoint | None, states: Iterable[SinkState | None], kept: KeptSchemas
    ) -> Adding:
        """What decides for a table.

        :param states: of its sinks
        :param kept: schemas by their hash
        """
        seen = checkpoint.seen_schema if checkpoint is not None else None
        waiting = frozenset(checkpoint.waiting_ids if checkpoint is not None else ())
        # what came before it was first noted which columns wait was left out on purpose
        waits = waiting.__contains__ if seen is not None and seen.with_waiting else lambda _: True
        schemas = [kept(state.schema_hash) for state in states if state is not None and state.schema_hash is not None]
        ids = frozenset(column.column_id for schema in schemas if schema is not None for column in schema.columns)
        return cls(options, waits, ids, waiting)

    def wants(self, column: Column, names: Sequence[str]) -> bool:
        """Whether sinks that lack a column are to get it.

        :param names: of all columns that the author may mean
        """
        if column.dropped or column.computed:
            return False
        if column.column_id in self.by_others:
            return True
        said = self.options.takes(column.name, names)
        return self.options.loads_new_columns and (not self.waits(column.column_id) if said is None else said)

    def beginning(self, now: TableSchema) -> TableSchema:
        """The columns with which a table begins of which no sink is loaded: what waits is left out.

        :param now: all that the feed has
        """
        names = [column.name for column in now.columns]
        columns = (c for c in now.columns if c.column_id not in self.waiting or self.options.takes(c.name, names))
        return dataclasses.replace(now, columns=tuple(columns))

    def choice(self, schema: TableSchema, feed: Feed) -> Choice:
        """What of a table's rows is loaded with the columns of a schema: what the author says of others waits."""
        names, has = names_of(feed), {column.name for column in schema.columns}
        choice = self.options.choice
        others_have_more = bool(self.by_others - {column.column_id for column in schema.columns})
        if self.options.loads_new_columns or others_have_more:
            left = choice.without({*names} - has, names)
            # no columns at all would stand for every column
            choice = left if left.columns or not choice.columns else choice
        if not choice.columns:
            return choice
        chosen = {column_meant(name, names) for name in choice.columns}
        named = [column_meant(name, names) for name in self.options.named_to_load]
        named = [name for name in named if name in has and name not in chosen]
        return dataclasses.replace(choice, columns=(*choice.columns, *named))


def names_of(feed: Feed) -> list[str]:
    """The names of all columns of a feed's source table."""
    return [column.name for column in (*feed.columns, *feed.others)]


def widest(states: Iterable[SinkState | None], kept: KeptSchemas) -> list[SinkState | None]:
    """The sinks that were loaded with most columns first."""

    def width(state: SinkState | None) -> int:
        schema = kept(state.schema_hash) if state is not None and state.schema_hash is not None else None
        # of one that is not kept nobody knows
        return len(schema.columns) if schema is not None else _MOST_COLUMNS

    return sorted(states, key=width, reverse=True)


def wider_of(
    name: TableName,
    feed: Feed,
    schema: TableSchema,
    adding: Adding,
    refused: Callable[[Chosen], str | None],
    *,
    check: str | None,
) -> tuple[Chosen | None, dict[str, str]]:
    """With what sinks go on once the columns are filled that they lack.

    :param schema: that they were loaded with
    :param refused: why the rows cannot be copied so; None where they can
    :param check: ``core.selection.salt_check`` of the salt; None where there is none
    :return: None where they lack none; with the columns that cannot be filled, and why
    """
    names, refusals = names_of(feed), {}
    ids = {column.column_id for column in schema.columns}
    wider = None
    for column in feed.columns:
        if column.column_id in ids or not adding.wants(column, names):
            continue
        try:
            tried = _with(name, feed, schema, {*ids, column.column_id}, adding, check)
            if not tried.selection.holds(column.name):
                continue
            why = refused(tried)
        except (SelectionError, UnsupportedColumnError) as error:
            why = error.message
        if why is None:
            wider, ids = tried, {*ids, column.column_id}
        else:
            refusals[column.name] = why
    return wider, refusals


def added_to(
    name: TableName,
    feed: Feed,
    schema: TableSchema,
    now: TableSchema,
    adding: Adding,
    hides: Callable[[Feed, Chosen], str | None],
    check: str | None,
) -> tuple[Chosen | None, list[str]]:
    """With what sinks go on once the columns are filled that they lack, as ``wider_of``; and what people are told.

    :param now: all that the feed has
    """
    wider, refusals = wider_of(name, feed, schema, adding, lambda wide: hides(feed, wide), check=check)
    known = {column.column_id for column in (wider.schema if wider is not None else schema).columns}
    told, names = [], names_of(feed)
    for column in now.columns:
        if column.column_id in known or column.dropped or column.computed:
            continue
        why = refusals.get(column.name)
        if why is None and adding.options.loads_new_columns and adding.options.takes(column.name, names) is not True:
            why = f'it waits until the entry names it: new_columns={{"{column.name}": "load"}}'
        why = why or "the targets were loaded without it"
        told.append(f"column {column.name} of {feed.name} is left out: {why}")
    return wider, told


def to_capture(
    name: TableName,
    feed: Feed,
    schema: TableSchema,
    adding: Adding,
    hides: Callable[[Feed, Chosen], str | None],
    sinks: Iterable[SinkState],
    kept: KeptSchemas,
    *,
    check: str | None,
) -> tuple[tuple[str, ...], str | None]:
    """The columns that sinks would get by a newer feed which has them, and why that would not be read; None where it
    would.

    :param schema: of the load
    :param sinks: that are loaded
    """
    there = tuple(column for column in feed.columns if not column.dropped)
    newer = dataclasses.replace(feed, columns=(*there, *feed.others), others=())
    wider, _ = wider_of(name, newer, schema, adding, lambda wide: hides(feed, wide), check=check)
    if wider is None:
        return (), None
    ids = {column.column_id for column in schema.columns}
    names = tuple(column.name for column in wider.schema.columns if column.column_id not in ids)
    now = TableSchema(newer.columns, schema.key)
    for sink in sinks:
        if sink.schema_hash is None:
            return names, "of an asserted position nobody knows with which columns it was loaded"
        if as_loaded(now, kept(sink.schema_hash), adding.options.copy_by).hash != sink.schema_hash:
            lost = ", ".join(column.name for column in schema.columns if column.kept) or "columns"
            return names, f"the sinks have {lost}, which it would not have"
    return names, None


def _with(
    name: TableName, feed: Feed, schema: TableSchema, ids: Collection[int], adding: Adding, check: str | None
) -> Chosen:
    known = {column.column_id: column for column in schema.columns}
    columns = tuple(known.get(each.column_id, each) for each in feed.columns if each.column_id in ids)
    wide = TableSchema(columns, schema.key)
    selection = select(name, wide, adding.choice(wide, feed), check=check)
    for shape in adding.options.shapes:
        check_values(name, wide, selection, shape)
    return Chosen(wide, selection)


def feed_to_load(
    name: TableName,
    feeds: Sequence[Feed],
    checkpoint: Checkpoint | None,
    shapes: Collection[str],
    going_on: Sequence[SinkState],
    adding: Adding,
    kept: KeptSchemas,
    probe: Probe | None = None,
) -> Feed:
    """The feed to read: that of ``choose_feed``, or the newer one that has columns which the table's sinks are to get,
    once it reaches back to all of them.

    No transaction is read from both: a sink goes on behind its position by the other one.

    :param shapes: those that are to be continued
    :param going_on: all sinks of the table that are loaded, also those that rest: none is left behind
    :param kept: schemas by their hash
    :param probe: says how far the feeds reach back now
    :raises GapError: as ``choose_feed``
    """
    feed = choose_feed(name, feeds, checkpoint, shapes, probe)
    has = {column.column_id for column in feed.columns}
    for newer in by_age(feeds):
        if newer is feed or not going_on:
            break
        if _adds(newer, has, adding) and not _held_back(name, newer, going_on, adding.options, kept, probe):
            return newer
    return feed


def held_back(
    name: TableName,
    feeds: Sequence[Feed],
    feed: Feed,
    sinks: Sequence[SinkState],
    adding: Adding,
    kept: KeptSchemas,
    probe: Probe,
) -> list[str]:
    """Why newer feeds are not read yet, or cannot be, which have columns that sinks are to get.

    :param feed: that is read
    :param sinks: that are loaded
    """
    has, told = {column.column_id for column in feed.columns}, []
    for newer in by_age(feeds):
        if newer is feed:
            break
        if columns := _adds(newer, has, adding):
            why = _held_back(name, newer, sinks, adding.options, kept, probe)
            told.append(f"{newer} has {', '.join(columns)}, and is not read: {why}")
    return told


def _adds(feed: Feed, has: Collection[int], adding: Adding) -> list[str]:
    """The columns of a feed that sinks are to get, and that another one lacks."""
    names = names_of(feed)
    return [c.name for c in feed.columns if c.column_id not in has and adding.wants(c, names)]


def _held_back(
    name: TableName,
    feed: Feed,
    sinks: Iterable[SinkState],
    options: TableOptions,
    kept: KeptSchemas,
    probe: Probe | None,
) -> str | None:
    """Why sinks cannot go on by a feed in the columns that they have; None where all can."""
    try:
        key, _ = choose_key(name, feed, options.key)
    except MsSqlCdcError as error:
        return error.message
    now, readable_from = TableSchema(feed.columns, key), reaches_back(feed, probe)
    for sink in sinks:
        if (
            readable_from is None
            or not isinstance(sink.position, feed.POSITION)
            or is_gap(sink.position, readable_from)
        ):
            return f"it begins behind {readable_from or 'what is captured'}, and sinks are at {sink.position}"
        if sink.schema_hash is None:
            return "of an asserted position nobody knows with which columns it was loaded"
        if as_loaded(now, kept(sink.schema_hash), options.copy_by).hash != sink.schema_hash:
            return "its columns, their types or its key are not those that the sinks were loaded with"
    return None


def lagging_in(
    table: Chosen, own: Chosen, sink: SinkState | None, shape: str, *, unique: bool, history: HistoryOptions
) -> tuple[str, ...]:
    """The columns that a copy is to fill in a sink: that it lacks, or of which it lacks the values of before.

    :param own: that it has
    :param unique: whether the server enforces the key
    """
    facts = SHAPES[shape]
    is_whole = not facts.takes_history or (unique and not history.is_wide and history.operations == OPERATIONS)
    if not facts.has_data or not table.schema.key or not is_whole:
        return ()
    return lacking(table, own, sink.unfilled if sink is not None else ())
