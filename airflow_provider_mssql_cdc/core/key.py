"""Which columns identify a table's rows, and which shapes can be loaded by them from a feed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from airflow_provider_mssql_cdc.core.changes import check_history_key
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint
from airflow_provider_mssql_cdc.core.conditions import TEXTS
from airflow_provider_mssql_cdc.core.exceptions import RESET_ADVICE, FeedError, KeyRequiredError
from airflow_provider_mssql_cdc.core.feed import Feed, refused_shapes
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.shapes import IGNORE, SHAPES
from airflow_provider_mssql_cdc.core.table import TableName, TableSchema, column_meant
from airflow_provider_mssql_cdc.core.table_options import TableOptions

_LOOSE = TEXTS | {"varbinary"}


def loose(schema: TableSchema, names: Iterable[str]) -> list[str]:
    """The columns of some whose values may differ and be equal to the server: texts, by their collation and by blanks
    at their end, and varbinary by zeros there.
    """
    columns = map(schema.column, names)
    return [each.name for each in columns if each.type in _LOOSE and not each.is_lob and not each.encrypted]


def key_ids(schema: TableSchema | KeptSchema) -> tuple[int, ...]:
    """The column_ids of the key's columns, in key order: a renamed column does not change it."""
    kept = schema if isinstance(schema, KeptSchema) else KeptSchema.of(schema)
    ids = {column.name: column.column_id for column in kept.columns}
    return tuple(ids[name] for name in schema.key)


def keys_of(schemas: Iterable[KeptSchema | None]) -> frozenset[tuple[int, ...]]:
    """The keys of schemas, as column_ids."""
    return frozenset(key_ids(schema) for schema in schemas if schema is not None)


def choose_key(
    name: TableName, feed: Feed, user_key: Sequence[str] | None, loaded: Collection[tuple[int, ...]] = ()
) -> tuple[tuple[str, ...], bool]:
    """The key's columns, none where there is no key; and whether SQL Server enforces it.

    A PRIMARY KEY that the feed does not have changes no key by which sinks were loaded, where the entry names that.

    :param user_key: used where the table has no key of its own; a name is the column's that is spelt
        so, else the only one's that differs in case alone
    :param loaded: the keys by which its sinks were loaded, as ``key_ids`` has them
    :raises KeyRequiredError: if the user's is not captured
    """
    captured = {column.name for column in TableSchema(feed.columns, ()).loaded}
    names = [*(column.name for column in feed.columns), *feed.uncaptured]
    meant = {column: column_meant(column, names) for column in user_key or ()}
    if unknown := [column for column, name in meant.items() if name not in names]:
        raise KeyRequiredError(
            f"key names {', '.join(unknown)}, and the table has no such column.",
            table=str(name),
            advice=f"It has: {', '.join(sorted(names))}.",
        )
    own, ids = tuple(dict.fromkeys(meant.values())), {column.name: column.column_id for column in feed.columns}
    stays = not feed.index_key and {*own} != {*feed.primary_key} and {*loaded} == {tuple(map(ids.get, own))}
    for key in (feed.index_key, () if stays else feed.primary_key):
        if key and captured.issuperset(key):
            return _as_loaded(key, ids, loaded), True
    if missing := [column for column, name in meant.items() if name not in captured]:
        raise KeyRequiredError(
            f"key names {', '.join(missing)}, which {feed} does not capture.",
            table=str(name),
            advice=f"Captured are: {', '.join(sorted(captured))}.",
        )
    return _as_loaded(own, ids, loaded), False


def _as_loaded(key: tuple[str, ...], ids: Mapping[str, int], loaded: Collection[tuple[int, ...]]) -> tuple[str, ...]:
    """A key in the order of the one by which sinks were loaded, if that is of the same columns."""
    names = {ids[name]: name for name in key}
    alike = [each for each in loaded if {*each} == names.keys()]
    return tuple(names[column_id] for column_id in min(alike, default=tuple(names)))


def named_key(feed: Feed, user_key: Sequence[str]) -> tuple[str, ...]:
    """The key that the entry names for a feed which has none of its own; none where it does not capture that."""
    captured = [column.name for column in TableSchema(feed.columns, ()).loaded]
    own = tuple(dict.fromkeys(column_meant(column, captured) for column in user_key))
    return own if not feed.index_key and {*captured}.issuperset(own) else ()


def check_kind(name: TableName, feeds: Sequence[Feed], checkpoint: Checkpoint | None) -> None:
    """Refuse feeds that have no positions of the kind by which the table was loaded.

    :raises FeedError: naming both
    """
    for shape, sink in checkpoint.loaded.items() if checkpoint is not None else ():
        if not any(isinstance(sink.position, feed.POSITION) for feed in feeds):
            raise FeedError(
                f"its {shape} was loaded up to {sink.position.KIND} {sink.position.text}, and {feeds[0]} has none of "
                "that kind.",
                table=str(name),
                advice=f"Let source name what it was read by until now. {RESET_ADVICE}",
            )


def check_suited(
    name: TableName, feed: Feed, options: TableOptions, shape: str, key: Sequence[str], *, enforced: bool
) -> None:
    """Refuse a shape that cannot be loaded from a feed, or by a key.

    :param key: the columns of ``choose_key``
    :param enforced: whether SQL Server enforces it
    :raises FeedError: if the feed does not serve the shape
    :raises KeyRequiredError: if the key is missing, or not enforced where it must be
    """
    refused = refused_shapes(feed, [shape], history=options.history, deletes=options.deletes, key=key, unique=enforced)
    if shape in refused:
        raise FeedError(
            f"{refused[shape]}.",
            table=str(name),
            advice="Name other shapes in the table's entry, or other options of this one.",
        )
    _check_key(name, options, shape, key, enforced=enforced)


def _check_key(name: TableName, options: TableOptions, shape: str, key: Sequence[str], *, enforced: bool) -> None:
    facts = SHAPES[shape]
    if facts.needs_key and not key:
        raise KeyRequiredError(
            f"{shape} needs a key, and the table has neither a primary key nor a unique index in its capture instance.",
            table=str(name),
            advice=f'Name one as its entry in tables, {{"table": "{name}", "key": [..]}}, or load only the history.',
        )
    if facts.takes_history:
        check_history_key(name, options.history, key=key, unique=enforced)
    if enforced or not key:
        return
    ignores = facts.takes_deletes and options.deletes == IGNORE
    if facts.needs_enforced_key or ignores:
        what = f'a {shape} with deletes="ignore"' if ignores else shape
        # rows that are gone stay beside those that are there
        raise KeyRequiredError(
            f"{what} needs a key that SQL Server enforces: a primary key, or the unique index of the capture instance.",
            table=str(name),
            advice="Enable an instance with @index_name, or load the table by a task of its own as mirror and history.",
        )
