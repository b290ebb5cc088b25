"""What CDC refuses: DDL on a tracked table, and LOB values that are too long for the capture."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_mssql_cdc.sandbox.engine.cdc.instance import CaptureInstance, is_lob
from airflow_provider_mssql_cdc.sandbox.engine.schema import TableDef
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError

UNLIMITED = -1
_TWO_BYTE = ("nvarchar", "ntext", "xml")


def ddl_time(end: datetime.datetime, *, rounds: bool) -> datetime.datetime:
    """cdc.ddl_history.ddl_time of a commit: whole minutes (J of the reference: measured).

    :param rounds: see ``Switches.ddl_time_rounds``
    """
    moment = end + datetime.timedelta(seconds=30) if rounds else end
    return moment.replace(second=0, microsecond=0)


def check(
    instances: Sequence[CaptureInstance], before: TableDef, after: TableDef | None, kind: str, *, stays: bool
) -> None:
    """Refuse DDL on a table, given its capture instances.

    :param after: the table as it would be; None for TRUNCATE and DROP TABLE
    :param kind: 'truncate', or anything else: what is refused follows from the two definitions, but 'drop_index' and
        'alter_index' (the index is gone, or is another one, in ``after``) tell an index from a constraint
    :param stays: see ``Switches.tracked_tables_stay``
    :raises SqlError: 4711 truncate; 3724 and 15051 where the table ``stays``; 4928 a column gets another name; 22983 a
        unique index in use is dropped or altered; 22979 the same for a constraint; 22854 a column set comes in
    """
    if not instances:
        return
    wanted = kind.casefold().replace(" ", "_")
    if wanted.startswith("truncate"):
        raise SqlError.of(4711, before.name)
    if stays and after is None:
        raise SqlError.of(3724, "drop", before.name)
    if after is None:
        return
    if stays and after.name != before.name:
        raise SqlError.of(15051, procedure="sp_rename")
    if stays and after.schema != before.schema:
        raise SqlError.of(3724, "alter the schema of", before.name)
    if after.has_column_set:
        raise SqlError.of(22854, before.name)
    names = {column.column_id: column.name for column in after.columns}
    for column in before.columns:
        if names.get(column.column_id, column.name) != column.name:
            raise SqlError.of(4928, column.name, "REPLICATED", procedure="sp_rename")
    used = {each.index_name.casefold() for each in instances if each.index_name is not None}
    kept = {index.name.casefold(): index for index in after.indexes}
    for index in before.indexes:
        if index.name.casefold() in used and kept.get(index.name.casefold()) != index:
            plain = not index.primary_key and wanted in ("drop_index", "alter_index")
            raise SqlError.of(22983 if plain else 22979, index.name, before.name)


def check_lob_size(limit: int, table: TableDef, images: pa.Table) -> None:
    """Refuse rows with a LOB value longer than the server option ``max text repl size``.

    :param limit: bytes; -1 for none
    :param images: rows of the table as inserted or updated
    :raises SqlError: 7139 with the length of the longest value of the first column that is too long
    """
    if limit == UNLIMITED:
        return
    for column in table.columns:
        if not is_lob(column.type):
            continue
        values = images.column(column.name)
        longest = pc.max(pc.binary_length(values)).as_py() or 0
        if column.type.name in _TWO_BYTE and 2 * longest > limit:
            longest = max(len(text.encode("utf-16-le")) for text in values.to_pylist() if text is not None)
        elif pa.types.is_string(values.type):
            # One byte per character in a code page; UTF-8 collations need what Arrow holds.
            utf8 = (column.collation or "").upper().endswith("_UTF8")
            longest = longest if utf8 else pc.max(pc.utf8_length(values)).as_py() or 0
        if longest > limit:
            raise SqlError.of(7139, longest, limit)
