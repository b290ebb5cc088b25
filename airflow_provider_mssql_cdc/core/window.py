"""A window: the half-open range (after, upto] of commit LSNs that a load moves, whole transactions only."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.lsn import Lsn


@dataclass(frozen=True, slots=True)
class Window:
    """All transactions whose commit LSN is above ``after`` and at most ``upto``.

    :raises ValueError: if ``after`` lies above ``upto``
    """

    after: Lsn
    upto: Lsn

    def __post_init__(self) -> None:
        if self.after > self.upto:
            raise ValueError(f"a window cannot end at {self.upto}, before its start {self.after}")

    @property
    def is_empty(self) -> bool:
        """Whether no LSN can lie in this window."""
        return self.after == self.upto

    def __contains__(self, lsn: Lsn) -> bool:
        return self.after < lsn <= self.upto

    def __str__(self) -> str:
        return f"({self.after}, {self.upto}]"


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
