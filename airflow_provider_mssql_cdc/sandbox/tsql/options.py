"""The SET options of a session."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Settings:
    """SET options of a session.

    :param rowcount: SET ROWCOUNT, 0 for all rows
    """

    nocount: bool = False
    xact_abort: bool = False
    implicit_transactions: bool = False
    fmtonly: bool = False
    rowcount: int = 0
