"""With what a table of changes begins: a copy of the source's rows, or changes alone, from some position on."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Collection
from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.exceptions import IntervalError, IntervalNotReachedError, ParameterError
from airflow_provider_mssql_cdc.core.position import Lsn, Position
from airflow_provider_mssql_cdc.core.shapes import SHAPES
from airflow_provider_mssql_cdc.core.table import TableName

COPY, EARLIEST, LATEST = "copy", "earliest", "latest"

_EXPECTED = (
    f'expected "{COPY}", "{EARLIEST}", "{LATEST}", a commit LSN ("0x.."), or a time with a zone, as in '
    '"2026-01-31T00:00:00+00:00"'
)


@dataclass(frozen=True, slots=True)
class Initial:
    """With what a first load begins.

    :param kind: ``COPY``; ``EARLIEST``: all changes that the feed still has; ``LATEST``: those behind the run's cut;
        '' for those behind a position or from a time on
    :param after: all changes behind it
    :param moment: with a zone: the changes that were committed then and later
    :param refused: why it has no position, which matters where a target has no marker
    :param is_early: it may have one later
    """

    kind: str = COPY
    after: Position | None = None
    moment: datetime.datetime | None = None
    refused: str | None = None
    is_early: bool = False

    @classmethod
    def parse(cls, given: object) -> Initial:
        """Read what a DAG author wrote.

        :param given: one of the three words, a commit LSN, or a time with a zone, as ISO 8601 text or datetime
        :raises ParameterError: for anything else
        """
        if isinstance(given, Initial):
            return given
        if isinstance(given, datetime.datetime):
            return cls("", moment=_zoned(given))
        if not isinstance(given, str):
            raise ParameterError(f"initial={given!r}: {_EXPECTED}")
        if given in (COPY, EARLIEST, LATEST):
            return cls(given)
        with contextlib.suppress(ValueError):
            return _of_lsn(given)
        try:
            moment = datetime.datetime.fromisoformat(given)
        except ValueError as error:
            raise ParameterError(f"initial={given!r}: {_EXPECTED}") from error
        return cls("", moment=_zoned(moment))

    @property
    def copies(self) -> bool:
        """Whether it begins with the source's rows."""
        return self.kind == COPY

    def placed(self, place: Callable[[datetime.datetime], Position]) -> Initial:
        """The same with a position in the place of a time.

        :param place: the position before the first commit of a time or later
        """
        if self.moment is None:
            return self
        try:
            return Initial("", place(self.moment))
        except IntervalError as error:
            return Initial("", refused=str(error), is_early=not error.permanent)

    def begin(self, *, cut: Position, readable_from: Position | None) -> Position | None:
        """The position behind which the changes are loaded; None where nothing can be read yet.

        :param cut: of the run
        :param readable_from: of the feed
        """
        return {EARLIEST: readable_from, LATEST: cut}.get(self.kind, self.after)

    def error(self, name: TableName) -> IntervalError:
        """The error of one that has no position."""
        kind = IntervalNotReachedError if self.is_early else IntervalError
        return kind(f"initial: {self.refused}", table=str(name))

    def __str__(self) -> str:
        return self.kind or str(self.after or self.moment)


WITH_COPY = Initial()
"""It begins with the source's rows."""


def purged_meanwhile(name: TableName, begin: Position) -> IntervalError:
    """The error of a begin with all that is left, of which some went while it was read."""
    return IntervalNotReachedError(
        f"changes behind {begin}, with which it was to begin, were purged while they were read.",
        table=str(name),
        advice="Run the task again: it begins with what is left then. Cleanup runs once a day by default.",
    )


def too_early(name: TableName, begin: Position, readable_from: Position | None) -> IntervalError:
    """The error of a begin that lies before all changes that can be read."""
    return IntervalError(
        f"it is to begin with the changes behind {begin}, and those up to {readable_from} were purged.",
        table=str(name),
        advice='Write initial="earliest" for all that is left, or a later position.',
    )


def _of_lsn(text: str) -> Initial:
    lsn = Lsn.parse(text)
    if lsn.is_zero:
        raise ValueError("zeros stand for no position")
    return Initial("", after=lsn)


def _zoned(moment: datetime.datetime) -> datetime.datetime:
    if moment.utcoffset() is None:
        raise ParameterError(f"initial={moment} has no time zone, and CDC is asked in the server's: {_EXPECTED}")
    return moment


def check_initial(initial: Initial, shapes: Collection[str]) -> None:
    """Refuse a beginning without a copy where all shapes begin with one.

    :raises ParameterError: if they do
    """
    if not (initial.copies or any(SHAPES[shape].takes_initial for shape in shapes)):
        takes = " and ".join(name for name, shape in SHAPES.items() if shape.takes_initial)
        raise ParameterError(
            f'initial="{initial}" is for {takes}: {" and ".join(sorted(shapes))} begin with a copy of the rows'
        )
