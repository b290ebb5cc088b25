"""With which columns a sink goes on whose source table has changed since it was loaded."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.columns import TEXT_SUFFIX, map_column
from airflow_provider_mssql_cdc.core.entry_values import FAIL, STRING
from airflow_provider_mssql_cdc.core.exceptions import UnsupportedColumnError
from airflow_provider_mssql_cdc.core.feed import Feed
from airflow_provider_mssql_cdc.core.schema import ColumnFacts, KeptSchema
from airflow_provider_mssql_cdc.core.spec import Chosen
from airflow_provider_mssql_cdc.core.table import Column, Former, TableName, TableSchema, column_meant, same_schema

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DECIMALS = ("decimal", "numeric")
_VARYING = ("varchar", "nvarchar", "varbinary")


def is_small(column: Column) -> bool:
    """Whether older images never name a column as one whose value they lack."""
    return not column.is_lob


def goes_on_with(
    schema: TableSchema,
    loaded: KeptSchema | None,
    exact: Collection[str] = (),
    *,
    widens: str = "",
    there: Collection[int] | None = None,
    sets_aside: Callable[[Column], bool] = is_small,
) -> TableSchema | None:
    """The schema with which a sink goes on that was loaded with another one, where that is nothing to it: the source
    has dropped columns, which the change table has still, and captures as NULL since (docs: sys.sp_cdc_enable_table),
    or which one that was made later does not have; columns outside of the key may be NULL now, and any of them no
    longer; or the instance has columns that the one before lacked, which are left out.

    :param loaded: what the sink was loaded with; None where that is not known
    :param exact: columns beside the key's whose nullability counts
    :param widens: where it follows types that have changed, what becomes of one that its columns do not hold, one of
        ``INCOMPATIBLE_TYPES``; else ''
    :param there: the column_ids of all that the source table has, captured or not; None where it may be another table
        than the one that the sink was loaded from
    :param sets_aside: whether targets can give a column that the source has dropped another name, where one that was
        renamed gets its own
    :return: None where more has changed
    """
    if loaded is None:
        return None
    if loaded.hash == schema.hash:
        # it has had none that the source has dropped
        return dataclasses.replace(schema, columns=tuple(column for column in schema.columns if not column.dropped))
    known = {facts.column_id: facts for facts in loaded.columns}
    if there is not None:
        # an older change table has the name that targets gave away with the values of another one
        held = [c for c in schema.columns if not (c.dropped and known.get(c.column_id, c).name == set_aside(c))]
        schema = dataclasses.replace(schema, columns=tuple(held))
    names = [column.name for column in schema.columns]
    counting = {*schema.key, *(column_meant(name, names) for name in exact)}
    columns = []
    for column in schema.columns:
        then = known.get(column.column_id)
        if then is None and column.name not in counting:
            continue
        if then is not None:
            # where targets hold it, the feed does not know
            column = dataclasses.replace(column, suffix=then.suffix, as_text=then.as_text, former=then.former)
            if widens and column.name not in schema.key and not column.dropped:
                column = moved(then, column, widens, {*names, *(facts.name for facts in loaded.columns)})
        if then is not None and column.dropped:
            # some facts of it the source's catalogue alone told
            left = dataclasses.replace(
                column,
                dropped=False,
                kept=True,
                nullable=then.nullable,
                collation=then.collation,
                computed=then.computed,
            )
            was = _was(left, then)
            if widens and was != left and not (alters_no_value(then, left) or alters_in_place(then, left)):
                # what came between the two statements targets do not hold
                left = dataclasses.replace(was, absent=True)
            columns.append(left)
        elif then is not None and (column.name not in counting or then.nullable):
            columns.append(dataclasses.replace(column, nullable=then.nullable))
        else:
            columns.append(column)
    if there is not None:
        columns += _absent(schema, loaded, there, sets_aside if widens else None)
    found = dataclasses.replace(schema, columns=tuple(columns))
    return found if (as_before(found, loaded) if widens else found).hash == loaded.hash else None


def ids_there(feed: Feed, source_object_id: int | None) -> frozenset[int] | None:
    """The column_ids of all that a feed's source table has, captured or not; None if it may be another table.

    :param source_object_id: of the one that is meant; None where that is not known
    """
    if source_object_id != feed.source_object_id:
        return None
    captured = (column.column_id for column in feed.columns if not column.dropped)
    return frozenset((*captured, *(column.column_id for column in feed.others)))


def _absent(
    schema: TableSchema, loaded: KeptSchema, there: Collection[int], sets_aside: Callable[[Column], bool] | None
) -> Iterator[Column]:
    """The columns of which the source has dropped each, and the change table has none.

    :param sets_aside: as for ``goes_on_with``; None where names are not followed
    """
    has = {column.column_id for column in schema.columns}
    were = {facts.column_id: facts.name for facts in loaded.columns}
    renamed = {c.name.casefold() for c in schema.columns if were.get(c.column_id, c.name) != c.name}
    behind = max((column.ordinal for column in schema.columns), default=0)
    gone = [facts for facts in loaded.columns if facts.column_id not in has and facts.column_id not in there]
    for ordinal, facts in enumerate(gone, behind + 1):
        column = dataclasses.replace(column_of(facts, ordinal), kept=True, absent=True)
        if sets_aside is not None and facts.name.casefold() in renamed and sets_aside(column):
            column = dataclasses.replace(column, name=set_aside(column))
        yield column


def column_of(facts: ColumnFacts, ordinal: int) -> Column:
    """A column as a schema that was kept has it.

    :param ordinal: that it gets
    """
    return Column(
        ordinal,
        facts.column_id,
        facts.name,
        facts.type,
        facts.length,
        facts.precision,
        facts.scale,
        facts.nullable,
        facts.collation,
        facts.computed,
        suffix=facts.suffix,
        as_text=facts.as_text,
        former=facts.former,
    )


def follows(schema: TableSchema, hash_: str, loaded: KeptSchema | None, *, widens: str) -> bool:
    """Whether a sink that was loaded with one schema goes on with another, with all of its columns: it is the same, but
    for types that the sink follows.

    :param hash_: of what the sink was loaded with
    :param loaded: the same; None where it is not kept
    :param widens: as for ``goes_on_with``
    """
    if same_schema(hash_, schema):
        return True
    return bool(widens) and loaded is not None and as_before(schema, loaded).hash == hash_


def alters_no_value(then: ColumnFacts, now: Column) -> bool:
    """Whether every value of a type is the same in another one: whole numbers of more bytes, decimals of more digits
    with as many behind the point, float(24) as float(53), longer texts and bytes.

    Not so a (max) type, whose values CDC leaves out of images (docs: cdc.<instance>_CT); char and binary, which pad
    what they hold; and a text under another collation.
    """
    if (then.collation, then.computed) != (now.collation, now.computed):
        return False
    if then.type in _INTEGERS and now.type in _INTEGERS:
        return _INTEGERS.index(then.type) < _INTEGERS.index(now.type)
    if (then.type, now.type) == ("real", "float"):
        # as text it has other digits
        return not now.as_text
    if then.type != now.type:
        return False
    if then.type in _DECIMALS:
        return then.scale == now.scale and then.precision < now.precision
    return then.type in _VARYING and 0 < then.length < now.length


def alters_in_place(then: ColumnFacts, now: Column) -> bool:
    """Whether targets hold a type as they hold another one, though its values may be others: texts among each other,
    bytes, times. What they hold then is to be read again. They may get a further column for it: the text of a time that
    has more digits than theirs.

    Not so where CDC leaves out values from images (docs: cdc.<instance>_CT): what an older image tells of them is not
    that of now.
    """
    before = _was(now, then)
    if before == now or not _can_follow(then, now):
        return False
    targets = [_targets(each) for each in (before, now)]
    return all(targets) and targets[0].items() <= targets[1].items()


def _can_follow(then: ColumnFacts, now: Column) -> bool:
    return not (then.computed or now.computed or _was(now, then).is_lob or now.is_lob)


def _targets(column: Column) -> dict[str, str]:
    """The columns that targets have of it, with their types; none where it cannot be loaded."""
    try:
        return {target.name: target.type for target in map_column(TableName("", ""), column).targets}
    except UnsupportedColumnError:
        return {}


def moved(then: ColumnFacts, now: Column, how: str, taken: Collection[str]) -> Column:
    """A column as targets go on with it that do not hold its type: in a column of its own, or as text.

    :param now: held as it was
    :param how: one of ``INCOMPATIBLE_TYPES``
    :param taken: names of the source's columns
    :return: the same where they hold it, and where they cannot go on so
    """
    was = _was(now, then)
    same = was == now or alters_no_value(then, now) or alters_in_place(then, now)
    if how == FAIL or same or not _can_follow(then, now) or not _targets(now) or not _targets(was):
        return now
    found = dataclasses.replace(now, as_text=how == STRING)
    if how == STRING and alters_in_place(then, found):
        return found
    former = (*then.former, _former(then))
    suffix = _suffix(found, {each.suffix for each in former}, {name.casefold() for name in taken})
    return dataclasses.replace(found, suffix=suffix, former=former)


def _former(then: ColumnFacts) -> Former:
    return Former(then.suffix, then.type, then.length, then.precision, then.scale, then.as_text)


def _suffix(column: Column, had: Collection[str], taken: Collection[str]) -> str:
    """What stands behind the name of a column of its own: its type, and a number where that was there before."""
    digits = f"_{column.precision}_{column.scale}" if column.type in _DECIMALS else ""
    said = f"__{STRING if column.as_text else column.type + digits}"
    suffixes = itertools.chain([said], (f"{said}_{number}" for number in itertools.count(2)))

    def is_free(suffix: str) -> bool:
        names = {f"{column.name}{suffix}{more}".casefold() for more in ("", TEXT_SUFFIX)}
        return suffix not in had and names.isdisjoint(taken)

    return next(filter(is_free, suffixes))


@dataclass(frozen=True, slots=True)
class Followed:
    """A type or a name that has changed so that targets can follow.

    :param was: the column as it was
    :param anew: its values may be others since, without an event, and are to be read again
    :param apart: they go into a column of their own
    """

    was: ColumnFacts
    anew: bool
    apart: bool = False


def followed(then: KeptSchema, now: TableSchema) -> dict[str, Followed]:
    """The columns whose types or names have changed so that targets can follow, by the name of now.

    What rows have in a column that the source has dropped since stays as it was loaded: there is nothing to read again.
    """

    def is_anew(was: ColumnFacts, column: Column) -> bool:
        return not column.kept and _was(column, was) != column and not alters_no_value(was, column)

    return {
        column.name: Followed(was, is_anew(was, column), column.former != was.former)
        for was, column in _followed(then, now)
    }


def as_before(now: TableSchema, then: KeptSchema) -> TableSchema:
    """A schema with the types and names that columns had which targets can follow."""
    names, schema = names_before(then, now), with_types_of(then, now)
    if not names:
        return schema
    return dataclasses.replace(
        schema,
        columns=tuple(dataclasses.replace(c, name=names.get(c.name, c.name)) for c in schema.columns),
        key=tuple(names.get(name, name) for name in schema.key),
    )


def with_types_of(then: KeptSchema, now: TableSchema) -> TableSchema:
    """A schema with the types that columns had which targets can follow, and the names of now."""
    types = {column.column_id: _was(column, was) for was, column in _followed(then, now)}
    if not types:
        return now
    return dataclasses.replace(now, columns=tuple(types.get(c.column_id, c) for c in now.columns))


def names_before(then: KeptSchema | None, now: TableSchema) -> dict[str, str]:
    """The names that columns had which have others by now, and whose targets follow; by the name of now."""
    if then is None:
        return {}
    return {column.name: was.name for was, column in _followed(then, now) if was.name != column.name}


def chosen_before(own: Chosen, then: KeptSchema) -> Chosen:
    """Columns with the types and names that they had, and what is loaded of them."""
    schema = as_before(own.schema, then)
    if schema is own.schema:
        return own
    return Chosen(schema, own.selection.named(names_before(then, own.schema)))


def set_aside(column: Column | ColumnFacts) -> str:
    """The name that targets give a column which the source has dropped, where another one of its name comes."""
    return f"{column.name}__dropped_{column.column_id}"


def told_of_aside(was: str, name: str) -> str:
    """What people are told of a column that the source has dropped, and that makes way for another one.

    :param was: its name
    :param name: that it gets
    """
    return f"column {was}, which the source table dropped, gets the name {name}: another one has its own"


def _was(column: Column, then: ColumnFacts) -> Column:
    return dataclasses.replace(
        column,
        type=then.type,
        length=then.length,
        precision=then.precision,
        scale=then.scale,
        collation=then.collation,
        suffix=then.suffix,
        as_text=then.as_text,
        former=then.former,
    )


def _followed(then: KeptSchema, now: TableSchema) -> Iterator[tuple[ColumnFacts, Column]]:
    known = {facts.column_id: facts for facts in then.columns}
    aside = {c.column_id for c in now.columns if c.kept and c.column_id in known and _is_aside(c, known[c.column_id])}
    names = {facts.name.casefold() for facts in known.values() if facts.column_id not in aside}
    for column in now.columns:
        was = known.get(column.column_id)
        if was is None or column.dropped:
            continue
        renamed = was.name != column.name
        # two that swap their names look the same before and after, Spark takes names in any case, and images name the
        # large values that they lack
        if renamed and (column.is_lob or column.name.casefold() in names):
            continue
        if renamed and column.kept and not _is_aside(column, was):
            continue
        same = _was(column, was) == column and was.computed == column.computed
        # another value of the key is another row
        alters = _is_held(was, column) or (column.name not in now.key and _follows_in(was, column))
        if alters or (renamed and same):
            yield was, column


def _is_aside(column: Column, was: ColumnFacts) -> bool:
    """Whether a column has made way for another one of its name."""
    return column.name == set_aside(was)


def _is_held(then: ColumnFacts, now: Column) -> bool:
    """Whether targets hold it where they did, with the same values."""
    same = (then.suffix, then.as_text, then.former) == (now.suffix, now.as_text, now.former)
    return same and alters_no_value(then, now)


def _follows_in(then: ColumnFacts, now: Column) -> bool:
    """Whether targets hold other values where they did, or in a column of their own."""
    if now.former == then.former:
        return now.suffix == then.suffix and alters_in_place(then, now)
    # beside a sink that has followed more changes it gets the columns that it has skipped, too
    return now.former[: len(then.former) + 1] == (*then.former, _former(then))


def held_as(schema: TableSchema, others: Iterable[TableSchema]) -> TableSchema:
    """A schema whose columns are held where most changes of their types were followed.

    :param others: of the same table
    """
    columns = list(schema.columns)
    for other in others:
        known = {column.column_id: column for column in other.columns}
        for number, column in enumerate(columns):
            held = known.get(column.column_id, column)
            if held.type == column.type and len(held.former) > len(column.former):
                columns[number] = dataclasses.replace(
                    column, suffix=held.suffix, as_text=held.as_text, former=held.former
                )
    return dataclasses.replace(schema, columns=tuple(columns))
