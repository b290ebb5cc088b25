"""Columns that a source table has got: which of them its sinks are to get, and the feed that has them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, SinkState
from airflow_provider_mssql_cdc.core.choice import check_values, select
from airflow_provider_mssql_cdc.core.dropping import told_of_gone
from airflow_provider_mssql_cdc.core.exceptions import (
    NameTakenError,
    RenamedColumnError,
    SelectionError,
    UnsupportedColumnError,
)
from airflow_provider_mssql_cdc.core.feed import Feed
from airflow_provider_mssql_cdc.core.formats import COLUMN_MAPPING, DELTA, POSTGRESQL
from airflow_provider_mssql_cdc.core.going_on import goes_on_with, ids_there, set_aside, told_of_aside
from airflow_provider_mssql_cdc.core.key import keys_of
from airflow_provider_mssql_cdc.core.schema import KeptSchemas
from airflow_provider_mssql_cdc.core.schema_change import is_about
from airflow_provider_mssql_cdc.core.spec import Chosen
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema, column_meant
from airflow_provider_mssql_cdc.core.table_options import Choice, TableOptions
from airflow_provider_mssql_cdc.core.waiting import check_filtered, without

_LONGEST_NAME = 63
"""Bytes of a name in PostgreSQL (docs: Identifiers and Key Words)."""

_MOST_COLUMNS = 30_000
"""Of a table with sparse columns (docs: maximum capacity specifications)."""


@dataclass(frozen=True, slots=True)
class Adding:
    """What decides of the columns that a table's sinks lack.

    :param waits: whether a column waits to be asked for, by its column_id
    :param loaded: columns that some sink of the table was loaded with: column_id to the name of then
    :param waiting: column_ids that are known to wait
    :param source_object_id: of the table that its sinks were loaded from; None where that is not known
    :param keys: by which these were loaded, as ``key_ids`` has them
    :param gone: names of columns that its sinks have dropped, as the source table has
    :param seen: the names of its columns when a run saw them last, by column_id
    """

    options: TableOptions
    waits: Callable[[int], bool]
    loaded: Mapping[int, str] = field(default_factory=dict)
    waiting: frozenset[int] = frozenset()
    source_object_id: int | None = None
    keys: frozenset[tuple[int, ...]] = frozenset()
    gone: frozenset[str] = frozenset()
    seen: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, options: TableOptions, checkpoint: Checkpoint | None, states: Iterable[SinkState | None], kept: KeptSchemas
    ) -> Adding:
        """What decides for a table.

        :param states: of its sinks
        :param kept: schemas by their hash
        """
        waiting = frozenset(checkpoint.waiting_ids if checkpoint is not None else ())
        # what came before it was first noted which columns wait was left out on purpose
        waits = waiting.__contains__ if checkpoint is not None and checkpoint.knows_waiting else lambda _: True
        states = [*states]
        schemas = [kept(state.schema_hash) for state in states if state is not None and state.schema_hash is not None]
        loaded = {c.column_id: c.name for schema in schemas if schema is not None for c in schema.columns}
        seen = checkpoint.seen_schema if checkpoint is not None else None
        object_id = seen.source_object_id if seen is not None else None
        taken = [each for state in states if state is not None for each in state.taken_told.columns]
        gone = frozenset(each.dropped for each in taken if each.dropped)
        columns = kept(seen.hash) if seen is not None else None
        names = {column.column_id: column.name for column in columns.columns} if columns is not None else {}
        return cls(options, waits, loaded, waiting, object_id, keys_of(schemas), gone, names)

    def goes_on(self, feed: Feed, now: TableSchema, sink: SinkState, kept: KeptSchemas) -> bool:
        """Whether a sink can go on by a feed, in the columns that it has.

        :param now: all that the feed has
        """
        there, options = ids_there(feed, self.source_object_id), self.options
        loaded = kept(sink.schema_hash) if sink.schema_hash is not None else None
        widens, aside = options.follows_types, self.sets_aside
        return goes_on_with(now, loaded, options.copy_by, widens=widens, there=there, sets_aside=aside) is not None

    def leaves_out(self, feed: Feed) -> bool:
        """Whether an instance was made without columns that were there: one that waits, that no sink has, and that did
        not come later, or not to wait for the entry.
        """
        names, newest = names_of(feed), max(column.column_id for column in feed.columns)
        left_out = [c for c in feed.others if c.column_id in self.waiting - self.loaded.keys()]
        return any(c.column_id < newest or self.options.takes(c.name, names) is not False for c in left_out)

    def wants(self, column: Column, names: Sequence[str]) -> bool:
        """Whether sinks that lack a column are to get it.

        :param names: of all columns that the author may mean
        """
        if column.dropped or column.computed:
            return False
        if column.column_id in self.loaded:
            return True
        said = self.options.takes(column.name, names)
        return self.options.loads_new_columns and (not self.waits(column.column_id) if said is None else said)

    def lacks(self, feed: Feed) -> tuple[str, ...]:
        """What targets will call the columns that a feed does not capture, and that they are to get."""
        names, given = names_of(feed), self.options.choice.rename
        called = {column_meant(old, names): new for old, new in given.items()}
        return tuple(called.get(each.name, each.name) for each in feed.others if self.wants(each, names))

    def beginning(self, now: TableSchema) -> TableSchema:
        """The columns with which a sink begins that can take none from others: what waits is left out.

        :param now: all that the feed has
        """
        names = [column.name for column in now.columns]
        asked_for = {column.column_id for column in now.columns if self.options.takes(column.name, names)}
        return without(now, self.waiting - self.loaded.keys() - asked_for)

    def choice(self, schema: TableSchema, feed: Feed) -> Choice:
        """What of a table's rows is loaded with the columns of a schema: what the author says of others waits."""
        has = {column.name for column in schema.columns if not (column.dropped and column.name in self.gone)}
        there, choice = names_of(feed), self.options.choice
        # what is said of one that has gone is said of another that is spelt alike: a mask must not vanish
        alike = {name.casefold() for name in there}
        names = [*there, *(name for name in self.gone if name.casefold() not in alike)]
        # one that the source has dropped, and that targets keep, is no other one that is spelt alike
        names += [column.name for column in schema.columns if column.absent and column.name not in names]
        self._check_renamed(feed, choice)
        choice = choice.without(self._never_loaded(feed), there)
        waiting = {column.name for column in feed.columns if column.column_id in self.waiting}
        check_filtered(feed.source, (waiting - has) & {column_meant(name, names) for name, *_ in choice.where})
        others_have_more = bool(self.loaded.keys() - {column.column_id for column in schema.columns})
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

    def _never_loaded(self, feed: Feed) -> set[str]:
        """The columns that the source had dropped before any sink had them: what an entry says of them says nothing."""
        live = {column.name for column in (*feed.columns, *feed.others) if not column.dropped}
        return {c.name for c in feed.columns if c.dropped and c.column_id not in self.loaded} - live

    def told_of_gone(self, feed: Feed) -> list[str]:
        """What people are told of columns that the entry names, and that the source has dropped."""
        return told_of_gone(feed, self.gone | self._never_loaded(feed), self.options.choice)

    def sets_aside(self, column: Column) -> bool:
        """Whether targets can give a column another name which the source has dropped, since another one has its name.

        Not one of which the entry says something, which now means the other one; not a large one, which older images
        name that lack its value; and not where they drop it, before the other one comes.
        """
        options, choice = self.options, self.options.choice
        named = {*choice.rename, *choice.mask, *(name for name, *_ in choice.where), *options.copy_by, *options.key}
        is_named = any(name.casefold() == column.name.casefold() for name in named)
        # a table that a load makes has it
        takes = options.target.format != DELTA or options.table_properties.get(COLUMN_MAPPING, "name") == "name"
        fits = options.target.format != POSTGRESQL or len(set_aside(column).encode()) <= _LONGEST_NAME
        free = not choice.columns and not options.partition_by and not is_named
        return column.absent and not column.is_lob and takes and fits and free and not options.drops_columns

    def _check_renamed(self, feed: Feed, choice: Choice) -> None:
        """Refuse an author's name of a column that has another one by now: what was left out or masked must not be
        loaded in clear under that.
        """
        names, of_rows, options = names_of(feed), (name for name, *_ in choice.where), self.options
        hides = {*choice.columns, *choice.mask, *options.named_to_load}
        said = {*hides, *choice.rename, *of_rows, *options.copy_by, *options.key}
        seen = self.seen if self.source_object_id in (None, feed.source_object_id) else {}
        for column in (*feed.columns, *feed.others):
            then = self.loaded.get(column.column_id) or seen.get(column.column_id, column.name)
            is_divided = then not in choice.rename and any(is_about(each, then) for each in options.partition_by)
            is_said = is_divided or any(column_meant(name, [then]) == then for name in said)
            if then == column.name or not is_said:
                continue
            # where another one has the name of before, the entry may mean that, if it says what becomes of this one
            is_hidden = any(column_meant(name, [then]) == then for name in hides)
            says_now = any(column_meant(name, [column.name]) == column.name for name in hides)
            if then not in names or (is_hidden and not says_now):
                raise RenamedColumnError(
                    f"the entry names column {then}, which was renamed to {column.name}.",
                    table=str(feed.source),
                    advice=f"Name it {column.name}.",
                )


def names_of(feed: Feed) -> list[str]:
    """The names of all columns of a feed's source table."""
    return [column.name for column in (*feed.columns, *feed.others)]


def unnamed(feed: Feed, options: TableOptions) -> tuple[int, ...]:
    """The column_ids of columns that the entry would have to name to be loaded, once sinks are loaded without them."""
    names = names_of(feed)
    there = (column for column in (*feed.columns, *feed.others) if not column.dropped)
    return tuple(column.column_id for column in there if options.takes(column.name, names) is False)


def widest(states: Iterable[SinkState | None], kept: KeptSchemas) -> list[SinkState | None]:
    """The sinks that were loaded with most columns first."""

    def width(state: SinkState | None) -> tuple[int, int]:
        schema = kept(state.schema_hash) if state is not None and state.schema_hash is not None else None
        # of one that is not kept nobody knows
        if schema is None:
            return _MOST_COLUMNS, 0
        return len(schema.columns), sum(len(column.former) for column in schema.columns)

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
    :raises NameTakenError: if one would be loaded under a name that is taken
    """
    names, refusals = names_of(feed), {}
    ids = {column.column_id for column in schema.columns}
    wider = None
    for column in feed.columns:
        if column.column_id in ids or not adding.wants(column, names):
            continue
        held = [each for each in schema.columns if each.kept and each.name.casefold() == column.name.casefold()]
        if not all(map(adding.sets_aside, held)):
            refusals[column.name] = "targets keep a column of this name, which the source table has dropped"
            continue
        aside = dataclasses.replace(
            schema,
            columns=tuple(dataclasses.replace(c, name=set_aside(c)) if c in held else c for c in schema.columns),
        )
        try:
            tried = _with(name, feed, aside, {*ids, column.column_id}, adding, check)
            if not tried.selection.holds(column.name):
                continue
            why = refused(tried)
        except NameTakenError as error:
            live = dataclasses.replace(aside, columns=tuple(each for each in aside.columns if not each.kept))
            if live.columns == aside.columns or _clashes(name, feed, live, {*ids, column.column_id}, adding, check):
                # only a person knows which of the two is meant by the name
                raise
            why = f"a column that the source table has dropped has its name: {error.message} {error.advice}"
        except (SelectionError, UnsupportedColumnError) as error:
            why = error.message
        if why is None:
            wider, ids, schema = tried, {*ids, column.column_id}, aside
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
    names, called = names_of(feed), {column.column_id: column.name for column in schema.columns}
    told = [
        told_of_aside(called[c.column_id], c.name)
        for c in (wider.schema.columns if wider is not None else ())
        if c.kept and c.name != called[c.column_id] and not adding.options.drops_columns
    ]
    told += adding.told_of_gone(feed)
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
    # a newer instance has none of what the source has dropped
    kept_absent = (dataclasses.replace(column, absent=column.kept) for column in schema.columns)
    beside = dataclasses.replace(schema, columns=tuple(kept_absent))
    wider, _ = wider_of(name, newer, beside, adding, lambda wide: hides(feed, wide), check=check)
    if wider is None:
        return (), None
    ids = {column.column_id for column in schema.columns}
    names = tuple(column.name for column in wider.schema.columns if column.column_id not in ids)
    now = TableSchema(newer.columns, schema.key)
    for sink in sinks:
        if sink.schema_hash is None:
            return names, "of an asserted position nobody knows with which columns it was loaded"
        if not adding.goes_on(newer, now, sink, kept):
            lost = ", ".join(column.name for column in schema.columns if column.kept) or "columns"
            return names, f"the sinks have {lost}, which it would not have"
    return names, None


def _clashes(
    name: TableName, feed: Feed, schema: TableSchema, ids: set[int], adding: Adding, check: str | None
) -> bool:
    """Whether two columns of a schema would have one name in targets."""
    try:
        _with(name, feed, schema, ids - {c.column_id for c in feed.columns if c.dropped}, adding, check)
    except NameTakenError:
        return True
    except (SelectionError, UnsupportedColumnError):
        pass
    return False


def _with(
    name: TableName, feed: Feed, schema: TableSchema, ids: Collection[int], adding: Adding, check: str | None
) -> Chosen:
    known = {column.column_id: column for column in schema.columns}
    columns = [known.get(each.column_id, each) for each in feed.columns if each.column_id in ids]
    wide = TableSchema((*columns, *(column for column in schema.columns if column.absent)), schema.key)
    selection = select(name, wide, adding.choice(wide, feed), check=check, position=feed.POSITION)
    for shape in adding.options.shapes:
        check_values(name, wide, selection, shape)
    return Chosen(wide, selection)
