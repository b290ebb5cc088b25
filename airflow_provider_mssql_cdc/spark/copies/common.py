"""The values that nearly all rows of a table have in some columns: looked for once, before a copy's first chunk."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_mssql_cdc.core.copies import CommonRead
from airflow_provider_mssql_cdc.core.position import Version
from airflow_provider_mssql_cdc.spark.copies.chunks import Chunks
from airflow_provider_mssql_cdc.spark.copies.folder import CopyFolder


def look_for_common(
    folder: CopyFolder, chunks: Chunks, of: Sequence[str], rows: int, unchanged: str = ""
) -> CommonRead | None:
    """Look what nearly all of the first rows have, and note it in the copy's folder.

    :param of: the columns
    :param rows: that are looked at
    :param unchanged: the rows that have not changed, as T-SQL behind FROM: what all of these have; '' for those of the
        table
    :return: None where they have no values in common
    """
    if (found := chunks.common(of, rows, unchanged)) is None:
        return None
    values, number, total = found
    name = folder.new_common()
    example = chunks.example(of, values, folder.rows_of(name))
    if example.rows().isEmpty():
        # they were changed meanwhile
        return None
    inside = folder.inside(name, example.files)
    entry = CommonRead(name, tuple(of), values, number, total, inside, example.schema.json())
    folder.add(entry)
    return entry


def told_of_common(common: CommonRead, table: str, rows: int) -> str:
    """What people are told before rows are left out.

    :param table: its name
    :param rows: that it is said to have
    """
    about, (what, written) = round(rows * (1 - common.rows / common.total)), _what_is_common(common)
    return (
        f"{table}: to fill {', '.join(common.of)}, about {about:,} of {rows:,} rows are copied: of the first "
        f"{common.total:,} rows {common.rows:,} have {what} there, and only others are read. Targets write {written}."
    )


def told_of_unchanged(common: CommonRead, table: str, after: Version) -> str:
    """What people are told before only rows that changed are read.

    :param table: its name
    :param after: the version of Change Tracking after which these changed
    """
    what, written = _what_is_common(common)
    return (
        f"{table}: to fill {', '.join(common.of)}, only the rows are read that changed after {after}, which Change "
        f"Tracking names: {common.total:,} others were looked at, and all have {what} there. Targets write {written}."
    )


def _what_is_common(common: CommonRead) -> tuple[str, str]:
    """What such rows have, and which rows targets write for it."""
    is_null = all(value is None for value in common.values)
    return ("NULL", "these rows") if is_null else ("the same values", "all their rows")
