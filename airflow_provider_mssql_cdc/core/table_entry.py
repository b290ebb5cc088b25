"""What an entry of ``tables`` may say."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Required, TypedDict


class TableEntry(TypedDict, total=False):
    """An entry of ``tables``. The last keys have the parameters of the same names as defaults.

    :param table: a pattern, such as ``sales.people`` or ``sales.*``
    :param columns: to be loaded; by default all
    :param where: conditions that a row must fulfil, all of them: ``("status", "<>", "draft")``, with ``=``, ``<>``,
        ``<``, ``<=``, ``>``, ``>=``, ``in``, ``not in``, or without a value ``is null``, ``is not null``. Texts are
        compared exactly, as binary collations do
    :param rename: column to another name
    :param mask: column to ``hash`` (SHA-256 of salt and value), ``redact`` (the same for all rows: ``redacted``, or
        NULL where it is no text) or ``drop``
    :param key: columns that identify a row, for a table without primary key or unique index
    :param copy_by: captured columns by which copies are cut into chunks, those with which an index begins; by default
        the key. Their values may repeat, and be NULL
    :param partition_by: Spark partition expressions for tables that the load creates; Delta takes columns alone
    :param new_columns: ``load`` or ``ask``: whether columns that the source table gets are loaded, where
        ``on_schema_change`` loads such; or column to one of them. By default ``ask`` in an entry with ``columns``,
        ``mask`` or ``where``, else ``load``; a column that is named in ``columns`` is loaded
    :param initial: of history and transactions, whatever other shapes there are
    """

    table: Required[str]
    columns: Sequence[str]
    where: Sequence[Sequence[Any]]
    rename: Mapping[str, str]
    mask: Mapping[str, str]
    key: Sequence[str]
    copy_by: Sequence[str]
    partition_by: Sequence[str]
    new_columns: str | Mapping[str, str]
    shapes: Sequence[str]
    deletes: str
    table_name: str
    table_properties: Mapping[str, str]
    on_gap: str | Sequence[str]
    on_schema_change: str
    fill: str
    history_fill: str
    widen_list: bool
    incompatible_types: str
    dropped_columns: str
    propose_timeout: float | datetime.timedelta | None
    allow_masked: bool
    initial: str | datetime.datetime
    source: str
