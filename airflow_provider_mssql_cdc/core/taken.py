"""Where a target took a column that it had lacked, or whose values have altered, and where it was filled."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from airflow_provider_mssql_cdc.core.codec import Tagged
from airflow_provider_mssql_cdc.core.position import Position
from airflow_provider_mssql_cdc.core.schema_diff import ADD_COLUMN, ALTER_TYPE, DROP_COLUMN

READ, FILLING, FILLED, ANEW, DROPPED = "read", "filling", "filled", "anew", "dropped"
"""How far a sink is with a change: it reads the column, and nothing fills its values of before; a copy is to fill
them; has done so; the target was loaded anew since, and lacks nothing of it; the target has dropped the column."""

_SAID = {
    READ: "is read",
    FILLING: "is read, and the values of before are being filled",
    FILLED: "is filled",
    ANEW: "the target was loaded anew",
    DROPPED: "is dropped",
}


@dataclass(frozen=True, slots=True)
class TakenColumn:
    """A column that a target has taken, or dropped, since its first load.

    :param column_id: of the source table
    :param after: what happened behind this position is read with it, and what happened before without it
    :param since: no DDL up to here is a reason for it
    :param altered: the target had it, and its values have altered with its type; else the target had lacked it
    :param filled: the position as of which its values of before were filled; None while they are not
    :param dropped: the name of one that the target has dropped, behind ``after``; '' of one that it has taken
    """

    column_id: int
    after: Annotated[Position, Tagged]
    since: Annotated[Position, Tagged]
    altered: bool = False
    filled: Annotated[Position | None, Tagged] = None
    dropped: str = ""
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class TakenBySink:
    """The columns that a sink has taken.

    :param fills: a copy is to fill those that are not filled
    """

    columns: tuple[TakenColumn, ...]
    fills: bool = False
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)

    def has(self, column_id: int) -> bool:
        """Whether it has taken a column."""
        return any(column.column_id == column_id for column in self.columns)


NOTHING_TAKEN = TakenBySink(())


def taken_by(columns: tuple[TakenColumn, ...], *, fills: bool) -> TakenBySink:
    """What a sink has taken.

    :param fills: whether copies fill what it lacks
    """
    return TakenBySink(columns, fills and any(column.filled is None and not column.dropped for column in columns))


def with_taken(
    before: tuple[TakenColumn, ...],
    *,
    lacked: Collection[int],
    altered: Collection[int],
    after: Position,
    since: Position,
    filled: Position | None,
) -> tuple[TakenColumn, ...]:
    """What a target has taken once a commit is made.

    :param before: it
    :param lacked: column_ids that the target gets with the commit
    :param altered: column_ids of those whose altered values it gets
    :param after: what happened behind this position is read with them
    :param since: no DDL up to here is a reason for it
    :param filled: as of where the target has all values of all columns; None where it does not
    """
    taken = [TakenColumn(column_id, after, since) for column_id in sorted(lacked)]
    taken += [TakenColumn(column_id, after, since, altered=True) for column_id in sorted(altered)]
    if filled is None:
        return (*before, *taken)
    return tuple(
        column if column.filled is not None or column.dropped else dataclasses.replace(column, filled=filled)
        for column in (*before, *taken)
    )


def dropped_of(before: tuple[TakenColumn, ...]) -> tuple[TakenColumn, ...]:
    """What counts still of what a target had taken, once its rows are replaced: the columns that it has dropped, which
    an entry may still name.
    """
    return tuple(column for column in before if column.dropped)


@dataclass(frozen=True, slots=True)
class SinkStep:
    """How far a sink is with a change of its source table's columns. Places are the ``sort_key`` of positions.

    :param state: ``READ``, ``FILLING``, ``FILLED`` or ``ANEW``
    :param lacked_from: LSN of the DDL that added the column; None where that is not known, or the sink never lacked it
    :param lacked_upto: what happened up to here is read without the column
    :param filled_at: the position as of which the values of before were filled
    """

    shape: str
    column_id: int
    state: str
    lacked_from: str | int | None = None
    lacked_upto: str | int | None = None
    filled_at: str | int | None = None

    def told(self, column: str) -> str:
        """The step for people.

        :param column: its name
        """
        said = [f"column {column} of {self.shape}: {_SAID[self.state]}"]
        if self.filled_at is not None:
            said.append(f"at {self.filled_at}")
        if self.lacked_upto is not None:
            begin = f"from {self.lacked_from} on, " if self.lacked_from is not None else ""
            said.append(f"(lacked {begin}up to {self.lacked_upto})")
        return " ".join(said)


def step_of(shape: str, sink: TakenBySink, change: Mapping[str, Any], places: Collection[str | int]) -> SinkStep | None:
    """How far a sink is with a change; None where it has nothing to do with it, or has not come to it.

    :param change: as the summary has it
    :param places: ``sort_key`` of the LSN of each of its statements: of several nobody knows which one it was
    """
    first, last = min(places), max(places)
    taken = _of_change(change, last, sink.columns)
    if taken is None:
        return None
    if taken.dropped:
        return SinkStep(shape, taken.column_id, DROPPED)
    filled = taken.filled.sort_key if taken.filled is not None else None
    state = FILLED if filled is not None else FILLING if sink.fills else READ
    if not taken.altered:
        upto = taken.after.sort_key
        # where the catalogue alone tells of it, the sink may have had it already
        begin = first if first <= upto else None  # type: ignore[operator]
        return SinkStep(shape, taken.column_id, state, begin, upto, filled)
    # what was filled before the change is none of it
    if filled is not None and filled < last:  # type: ignore[operator]
        return None
    return SinkStep(shape, taken.column_id, state, filled_at=filled)


def _of_change(change: Mapping[str, Any], last: str | int, columns: Sequence[TakenColumn]) -> TakenColumn | None:
    """The taking that a change is the reason for."""
    for column in reversed(columns):
        if column.column_id == change.get("column_id"):
            if column.dropped:
                if change.get("kind") == DROP_COLUMN:
                    return column
                continue
            if change.get("kind") == ADD_COLUMN and not column.altered:
                return column
            if change.get("kind") == ALTER_TYPE and column.altered and column.since.sort_key < last:  # type: ignore[operator]
                return column
    return None
