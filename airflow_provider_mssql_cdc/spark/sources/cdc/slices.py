"""How a window is divided for parallel reading: the server counts, and arithmetic makes slices of about equal size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.position import Lsn, Window
from airflow_provider_mssql_cdc.core.table import lsn_literal

_GRAIN = 8
"""Counted parts per slice: enough for even slices, few enough to fetch."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a window that one connection reads: whole transactions, or a range of one large transaction.

    :param window: the commit LSNs of this slice
    :param command_after: with ``command_upto``: only the commands (command_after, command_upto] of the window's
        single transaction; None where that alone is given: all commands up to it
    :param rows: change rows in this slice
    :param seq_offset: rows of the same transaction in earlier slices, added to the row numbers counted within this one
    """

    window: Window
    rows: int
    command_after: int | None = None
    command_upto: int | None = None
    seq_offset: int = 0


@dataclass(frozen=True, slots=True)
class Bucket:
    """Neighbouring transactions that the server counted together.

    :param last: largest commit LSN in it
    :param rows: change rows
    :param single: one transaction that is larger than a bucket
    """

    last: Lsn
    rows: int
    single: bool = False


@dataclass(frozen=True, slots=True)
class CommandBucket:
    """Neighbouring commands of one transaction.

    :param last: largest ``__$command_id`` in it; None if it is NULL
    """

    last: int | None
    rows: int


def bucket_rows(slice_rows: int) -> int:
    """How many change rows the server counts together."""
    return max(1, slice_rows // _GRAIN)


def count_sql(instance: CaptureInstance, window: Window, rows: int) -> str:
    """The statement that counts the window in buckets: last commit LSN, rows, single.

    A transaction's bucket follows from the number of rows up to its end, so one of more than ``rows`` rows never
    shares its bucket with what lies before it.
    """
    return (
        "SELECT MAX(lsn) AS last_lsn, SUM(n) AS row_count, big"
        f" FROM (SELECT lsn, n, CASE WHEN n > {rows} THEN 1 ELSE 0 END AS big,"
        f" (SUM(n) OVER (ORDER BY lsn ROWS UNBOUNDED PRECEDING) - 1) / {rows} AS bucket"
        f" FROM (SELECT [__$start_lsn] AS lsn, COUNT_BIG(*) AS n FROM {instance.change_table}"
        f" WHERE [__$start_lsn] > {lsn_literal(window.after)} AND [__$start_lsn] <= {lsn_literal(window.upto)}"
        " GROUP BY [__$start_lsn]) g) b GROUP BY bucket, big"
    )


def count_commands_sql(instance: CaptureInstance, transaction: Lsn, rows: int) -> str:
    """The statement that counts one transaction's rows by command: last command id, rows."""
    return (
        "SELECT MAX(command_id) AS last_command_id, SUM(n) AS row_count"
        " FROM (SELECT command_id, n, CASE WHEN command_id IS NULL THEN -1 ELSE"
        f" (SUM(n) OVER (ORDER BY command_id ROWS UNBOUNDED PRECEDING) - 1) / {rows} END AS bucket"
        f" FROM (SELECT [__$command_id] AS command_id, COUNT_BIG(*) AS n FROM {instance.change_table}"
        f" WHERE [__$start_lsn] = {lsn_literal(transaction)} GROUP BY [__$command_id]) g) b GROUP BY bucket"
    )


def slice_count(rows: int, slice_rows: int, connections: int) -> int:
    """How many slices that many rows make."""
    return min(max(1, -(-rows // slice_rows)), max(1, connections))


def large_transactions(buckets: Sequence[Bucket], slice_rows: int, connections: int) -> tuple[Lsn, ...]:
    """The transactions that are larger than a slice of this window should be."""
    rows = sum(bucket.rows for bucket in buckets)
    share = rows / slice_count(rows, slice_rows, connections)
    return tuple(bucket.last for bucket in buckets if bucket.single and bucket.rows > share)


def plan_slices(
    window: Window,
    buckets: Sequence[Bucket],
    commands: Mapping[Lsn, Sequence[CommandBucket]],
    *,
    slice_rows: int,
    connections: int,
) -> tuple[Slice, ...]:
    """Divide the window into at most about ``connections`` slices of about equal size, in LSN order, without a hole.

    :param buckets: what ``count_sql`` returned
    :param commands: what ``count_commands_sql`` returned for each of ``large_transactions``
    """
    parts = list(_parts(window, sorted(buckets, key=lambda bucket: bucket.last), commands))
    if not parts:
        return (Slice(window, 0),)
    total = sum(part.rows for part in parts)
    wanted = slice_count(total, slice_rows, connections)
    groups: list[list[Slice]] = []
    before, number = 0, -1
    for part in parts:
        # by its middle, a part falls to the slice in which most of it lies
        middle = min(wanted - 1, (2 * before + part.rows) * wanted // (2 * total))
        if middle != number or not _mergeable(groups[-1][-1], part):
            groups.append([])
            number = middle
        groups[-1].append(part)
        before += part.rows
    slices = [_merged(group) for group in groups]
    last = slices[-1]
    if last.command_upto is None:
        slices[-1] = Slice(Window(last.window.after, window.upto), last.rows)
    return tuple(slices)


def _parts(
    window: Window, buckets: Sequence[Bucket], commands: Mapping[Lsn, Sequence[CommandBucket]]
) -> Iterator[Slice]:
    after = window.after
    for bucket in buckets:
        counted = commands.get(bucket.last, ())
        if bucket.single and len(counted) > 1 and all(part.last is not None for part in counted):
            yield from _command_parts(bucket.last, counted)
        else:
            yield Slice(Window(after, bucket.last), bucket.rows)
        after = bucket.last


def _command_parts(transaction: Lsn, counted: Sequence[CommandBucket]) -> Iterator[Slice]:
    window = Window(transaction.previous(), transaction)
    # the first part has no lower bound: a command id below 1 would be lost
    previous: int | None = None
    offset = 0
    for last, rows in sorted((part.last, part.rows) for part in counted if part.last is not None):
        yield Slice(window, rows, previous, last, offset)
        previous, offset = last, offset + rows


def _mergeable(one: Slice, other: Slice) -> bool:
    if one.command_upto is None or other.command_upto is None:
        return one.command_upto is other.command_upto
    return one.window == other.window


def _merged(group: list[Slice]) -> Slice:
    first, last = group[0], group[-1]
    return Slice(
        Window(first.window.after, last.window.upto),
        sum(part.rows for part in group),
        first.command_after,
        last.command_upto,
        first.seq_offset,
    )
