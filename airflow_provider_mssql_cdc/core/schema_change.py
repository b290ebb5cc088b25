"""What a change of the source's columns means to a load."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from airflow_provider_mssql_cdc.core.checkpoint import SinkState
from airflow_provider_mssql_cdc.core.columns import TEXT_SUFFIX
from airflow_provider_mssql_cdc.core.exceptions import RESET_ADVICE, SchemaChangedError
from airflow_provider_mssql_cdc.core.feed import DdlChange
from airflow_provider_mssql_cdc.core.going_on import Followed, followed, follows, goes_on_with, is_small, told_of_aside
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.schema import ColumnFacts, KeptSchema, KeptSchemas
from airflow_provider_mssql_cdc.core.schema_diff import differing
from airflow_provider_mssql_cdc.core.selection import Selection
from airflow_provider_mssql_cdc.core.spec import Chosen
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema, column_meant, same_schema
from airflow_provider_mssql_cdc.core.table_options import TableOptions

_SCHEMA_ADVICE = (
    'With on_schema_change="evolve" or "propose" targets follow a type that their columns hold: bigint for int, '
    "nvarchar for varchar. One that they do not hold goes into a column of its own with "
    'incompatible_types="new_column", or on as text with incompatible_types="string": not that of a key or of a large '
    "value, nor one that where or partition_by names. By another key a table is loaded, with a copy, where it has "
    'on_schema_change="evolve". What else has changed is not loaded: '
    f"{RESET_ADVICE[0].lower()}{RESET_ADVICE[1:]} Rows that the target then holds keep NULL in a column that was "
    "added, until they change."
)


def check_ddl(
    name: TableName, ddl: Iterable[DdlChange], after: Position, upto: Position, *, advice: str = _SCHEMA_ADVICE
) -> None:
    """Refuse captured columns that change within the window (after, upto], of a load that follows no types.

    :param ddl: the instance's rows of ``cdc.ddl_history``
    :param advice: what to do about it
    :raises SchemaChangedError: with the statements
    """
    if found := [change for change in statements_since(ddl, after) if change.lsn <= upto]:
        raise _changed(name, found, advice)


def statements_since(
    ddl: Iterable[DdlChange], after: Position, ddl_upto: Position | None = None
) -> tuple[DdlChange, ...]:
    """The statements that have changed captured columns since a sink was loaded. The change table has the types behind
    all of them, so those behind the window count, too.

    :param ddl: the instance's rows of ``cdc.ddl_history``
    :param after: position of the sink
    :param ddl_upto: it was loaded with the columns behind all DDL up to here
    """
    since = after if ddl_upto is None else max(after, ddl_upto)
    return tuple(change for change in ddl if change.requires_column_update and change.lsn > since)


def with_hidden(
    types: Mapping[str, Followed], statements: Collection[DdlChange], schema: TableSchema
) -> dict[str, Followed]:
    """The types that a sink follows. Of more statements than columns that differ one may have altered values, and a
    later one has hidden it: then all columns that they name are to be read again.

    :param types: of the columns that differ
    :param statements: since the sink was loaded
    :param schema: of the sink
    """
    facts = {each.name: each for each in KeptSchema.of(schema).columns}
    if len(statements) <= len(_differing(types, facts, statements)):
        return dict(types)
    # what older images tell of a large value that CDC leaves out is not that of now
    held = [column for column in schema.loaded if column.name not in schema.key and not column.kept]
    may = [column.name for column in held if not column.is_lob]
    named = [column for column in may if any(_names(statement, column) for statement in statements)]
    again = {n: dataclasses.replace(types.get(n) or Followed(facts[n], anew=True), anew=True) for n in named}
    return {**types, **again}


def check_statements(
    name: TableName, statements: Sequence[DdlChange], types: Mapping[str, Followed], schema: TableSchema
) -> None:
    """Refuse statements that may have altered values of which nobody knows the column, or of the key.

    :param types: as ``with_hidden`` has them
    :param schema: of the sink
    :raises SchemaChangedError: with the statements
    """
    facts = {each.name: each for each in KeptSchema.of(schema).columns}
    again = [column for column, each in types.items() if each.anew]

    def is_known(change: DdlChange) -> bool:
        # of what the source has dropped nothing is read again; the table may have that name, too
        about_kept = any(_names(change, column, behind="column") for column in schema.kept)
        is_read = about_kept or any(_names(change, column) for column in again)
        return is_read and not any(_names(change, column) for column in schema.key)

    if len(statements) > len(_differing(types, facts, statements)) and not all(map(is_known, statements)):
        raise _changed(name, statements, _SCHEMA_ADVICE)


def _differing(
    types: Mapping[str, Followed], facts: Mapping[str, ColumnFacts], statements: Collection[DdlChange]
) -> list[str]:
    """The columns whose types differ, and that a statement names: an instance that was made later, or is gone, has none
    of what altered others.
    """
    differing = [column for column, each in types.items() if each.was.type_facts != facts[column].type_facts]
    return [column for column in differing if any(_names(statement, column) for statement in statements)]


def _changed(name: TableName, found: Iterable[DdlChange], advice: str) -> SchemaChangedError:
    said = "; ".join(f"at {change.lsn} ({change.time}) by: {change.command.strip()}" for change in found)
    return SchemaChangedError(f"a captured column was changed {said}", table=str(name), advice=advice)


def check_schema(
    name: TableName,
    schema: TableSchema,
    sinks: Iterable[SinkState],
    kept: KeptSchemas,
    *,
    widens: str = "",
) -> None:
    """Refuse captured columns that are not those that the sinks were loaded with.

    :param kept: schemas by their hash
    :param widens: as for ``goes_on_with``
    :raises SchemaChangedError: with what differs
    """
    for sink in sinks:
        if sink.schema_hash is not None and not follows(
            schema, sink.schema_hash, kept(sink.schema_hash), widens=widens
        ):
            raise SchemaChangedError(
                "the captured columns are no longer those of the last load.\n"
                f"{differing(kept(sink.schema_hash), schema)}",
                table=str(name),
                advice=_SCHEMA_ADVICE,
            )


def followed_in(
    own: Mapping[str, Chosen], sinks: Mapping[str, SinkState | None], kept: KeptSchemas
) -> dict[str, dict[str, Followed]]:
    """The columns of each sink whose types it follows; by shape.

    :param own: the columns with which each goes on
    :param kept: schemas by their hash
    """
    found = {}
    for shape, columns in own.items():
        sink = sinks[shape]
        then = kept(sink.schema_hash) if sink is not None and sink.schema_hash is not None else None
        if then is not None and (changed := followed(then, columns.schema)):
            found[shape] = changed
    return found


def check_followed(
    name: TableName,
    types: Mapping[str, Followed],
    selection: Selection,
    hidden: str | None = None,
    partition_by: Collection[str] = (),
) -> None:
    """Refuse to follow a type where the values cannot be read again that it has altered.

    :param types: column to what has become of it
    :param hidden: what keeps the login from reading the table's rows as they are; None where nothing does
    :param partition_by: by which the target is made into partitions
    :raises SchemaChangedError: if they cannot
    """
    anew = [column for column, each in types.items() if each.anew]
    held = [column for column in anew if selection.holds(column)]
    if judged := [column for column in anew if column in selection.filtered]:
        raise SchemaChangedError(
            f"where names {judged[0]}, whose type has changed, and with it the rows that it chooses.",
            table=str(name),
            advice=RESET_ADVICE,
        )
    for column in (column for column in held if types[column].apart):
        was = types[column].was
        target = selection.renames.get(column, column) + was.suffix
        names = {target, selection.renames.get(column, was.name) + was.suffix}
        if by := [each for each in partition_by if any(is_about(each, name) for name in names)]:
            raise SchemaChangedError(
                f"partition_by has {by[0]}, and the type of {column} has changed to one that {target} does not hold: "
                "all new rows would be in the partition of NULL.",
                table=str(name),
                advice=f"Load into another table (table_name), with other partitions. {RESET_ADVICE}",
            )
    if held and hidden is not None:
        raise SchemaChangedError(
            f"the type of {', '.join(held)} has changed, and its values cannot be read again: {hidden}.",
            table=str(name),
            advice=f"Let the login read the table as it is. {RESET_ADVICE}",
        )


def told_of(followed: Mapping[str, Mapping[str, Followed]], schema: TableSchema, selection: Selection) -> list[str]:
    """What people are told of types and names that targets follow."""
    types = {name: each for columns in followed.values() for name, each in columns.items()}
    told = []
    for facts in KeptSchema.of(schema).columns:
        if (each := types.get(facts.name)) is None:
            continue
        follow = f"{', '.join(shape for shape, columns in followed.items() if facts.name in columns)} follow"
        if each.was.name != facts.name and schema.column(facts.name).kept:
            told.append(told_of_aside(each.was.name, facts.name))
        elif each.was.name != facts.name:
            told.append(f"column {each.was.name} was renamed to {facts.name}: {follow}")
        if each.was.type_facts != facts.type_facts:
            where = f", in the column {selection.name_of(schema.column(facts.name))}" if each.apart else ""
            may = "; this may have rounded, cut or padded values without an event: they are read again" * each.anew
            told.append(f"column {facts.name} was {each.was.type_text}, and is {facts.type_text}: {follow}{where}{may}")
    return told


def schema_of(
    now: TableSchema,
    beginning: TableSchema,
    sinks: Iterable[SinkState | None],
    kept: KeptSchemas,
    exact: Collection[str] = (),
    *,
    widens: str = "",
    there: Collection[int] | None = None,
    sets_aside: Callable[[Column], bool] = is_small,
) -> TableSchema:
    """The schema of a table's load: that of a sink which was loaded with another one, where it goes on with that.

    :param now: all that the feed has
    :param beginning: the columns with which sinks begin
    :param sinks: the first one that was loaded decides
    :param exact: columns beside the key's whose nullability counts
    :param widens: as for ``goes_on_with``
    :param there: as for ``goes_on_with``
    :param sets_aside: as for ``goes_on_with``
    """
    for sink in sinks:
        if sink is None or sink.schema_hash is None:
            continue
        if same_schema(sink.schema_hash, now):
            return now
        then = kept(sink.schema_hash)
        found = goes_on_with(now, then, exact, widens=widens, there=there, sets_aside=sets_aside)
        if found is not None:
            return found
    return beginning


def concerning(ddl: Iterable[DdlChange], captured: Iterable[Column], has: TableSchema) -> tuple[DdlChange, ...]:
    """The statements that may be about the columns of a load, and not about others of its instance alone.

    :param has: the columns of the load
    """
    # what the source has dropped, and no load has had, is no column of it
    has = dataclasses.replace(has, columns=tuple(column for column in has.columns if not column.dropped))
    ids = {column.column_id for column in has.columns}
    left_out = [column.name for column in captured if column.column_id not in ids]
    return tuple(change for change in ddl if not _concerns_only(change, left_out, has))


def _concerns_only(change: DdlChange, left_out: Collection[str], schema: TableSchema) -> bool:
    """Whether a statement names columns that are left out, and none of those that are loaded."""
    named = any(_names(change, column) for column in left_out)
    return named and not any(_names(change, column.name) for column in schema.columns)


def _names(change: DdlChange, column: str, behind: str = "") -> bool:
    """Whether a statement may name a column: all of its words stand there.

    :param behind: a word behind which they stand
    """
    said = [word.casefold() for word in re.findall(r"\w+", change.command)]
    words = {*(said[said.index(behind) + 1 :] if behind in said else said if not behind else ())}
    return {word.casefold() for word in re.findall(r"\w+", column)} <= words


def check_kept_columns(name: TableName, schema: TableSchema, selection: Selection, options: TableOptions) -> None:
    """Refuse a table that has dropped a column which decides what is loaded, or where it lies.

    :raises SchemaChangedError: naming it
    """
    cut_by = [column_meant(column, [each.name for each in schema.columns]) for column in options.copy_by]
    for column in schema.kept:
        target = selection.name_of(schema.column(column))
        if column in selection.filtered:
            by = "where"
        elif column in cut_by:
            by = "copy_by"
        elif selection.holds(column) and any(is_about(each, target) for each in options.partition_by):
            by = "partition_by"
        else:
            continue
        raise SchemaChangedError(
            f"the source table has dropped column {column}, which {by} names.",
            table=str(name),
            advice=f"Name another column in {by}, and load into another table (table_name). {RESET_ADVICE}",
        )


def is_about(expression: str, column: str) -> bool:
    """Whether a partition expression names a target's column, or the text beside it."""
    shown = re.compile(rf"\b{re.escape(column)}({TEXT_SUFFIX})?\b", re.IGNORECASE)
    return shown.search(_arguments(expression)) is not None


def _arguments(expression: str) -> str:
    """Where a partition expression names columns: ``bucket(4, id)`` does so behind its own name."""
    return expression.partition("(")[2] or expression
