"""Change data capture written down row by row, in plain Python: what the vectorised capture is compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Row = tuple[object, ...]


@dataclass(frozen=True)
class Statement:
    """One statement on one table: rows inserted, deleted, or updated (old and new)."""

    table: str
    kind: Literal["insert", "delete", "update"]
    rows: tuple[tuple[Row, Row], ...]
    undone: bool = False


class Instance(NamedTuple):
    """A capture instance.

    :param captured: places of the table's columns that are captured
    :param since: number of the first commit that it captures
    """

    table: str
    captured: tuple[int, ...]
    since: int = 0


class Move(NamedTuple):
    """The delete or the insert of a key update.

    :param statement: number of the statement
    :param key: that the row leaves or takes
    """

    statement: int
    operation: int
    key: Row


@dataclass(frozen=True)
class Change:
    """A row of a change table, with the number of its commit in place of the LSN."""

    commit: int
    command_id: int
    operation: int
    mask: int
    values: Row
    move: Move | None = field(default=None, compare=False)


def changes(
    commits: Sequence[tuple[int, Sequence[Statement]]],
    instances: Mapping[str, Instance],
    keys: Mapping[str, Sequence[int]],
    *,
    across_tables: bool = True,
) -> dict[str, list[Change]]:
    """The rows of each instance.

    :param commits: numbered transactions
    :param instances: by name, in the order in which they were enabled
    :param keys: per table, the places of the columns whose update is a delete and an insert
    :param across_tables: whether one counter runs through all tables of a transaction, not one through each
    """
    found: dict[str, list[Change]] = {name: [] for name in instances}
    for number, statements in commits:
        counters: Counter[str] = Counter()
        for place, statement in enumerate(statements):
            counter = "all" if across_tables else statement.table
            for kind, old, new in () if statement.undone else _steps(statement, keys[statement.table]):
                move = None
                if kind in ("move out", "move in"):
                    left, row = (1, old) if kind == "move out" else (2, new)
                    move = Move(place, left, tuple(row[each] for each in keys[statement.table]))
                for name, instance in instances.items():
                    if instance.table == statement.table and instance.since <= number:
                        rows = _captured(kind, old, new, instance.captured)
                        counters[counter] += bool(rows)
                        found[name] += [Change(number, counters[counter], *row, move) for row in rows]
    return found


def may_lie_before(later: Change, earlier: Change) -> bool:
    """Whether the log record of a row change may lie before that of one that precedes it in its transaction.

    The insert of a key update may lie before a delete of the same statement, if that is not of the same key.
    """
    one, other = earlier.move, later.move
    return (
        one is not None
        and other is not None
        and (one.statement, one.operation, other.operation) == (other.statement, 1, 2)
        and one.key != other.key
    )


def _steps(statement: Statement, keys: Sequence[int]) -> list[tuple[str, Row, Row]]:
    """The row changes of a statement, in the order in which they are made."""
    if statement.kind != "update":
        return [(statement.kind, old, new) for old, new in statement.rows]
    steps, postponed = [], []
    for old, new in statement.rows:
        if any(old[place] != new[place] for place in keys):
            steps.append(("move out", old, new))
            postponed.append(("move in", old, new))
        elif old != new:
            steps.append(("update", old, new))
    return steps + postponed


def _captured(kind: str, old: Row, new: Row, places: Sequence[int]) -> list[tuple[int, int, Row]]:
    """Operations, masks and values that an instance has of a row change."""
    every = (1 << len(places)) - 1
    if kind == "insert":
        return [(2, every, tuple(new[place] for place in places))]
    before = tuple(old[place] for place in places)
    if kind == "delete":
        return [(1, every, before)]
    after = tuple(new[place] for place in places)
    if before == after:
        return []
    if kind == "move out":
        return [(1, every, before)]
    if kind == "move in":
        return [(2, every, after)]
    mask = sum(1 << i for i, (one, other) in enumerate(zip(before, after, strict=True)) if one != other)
    return [(3, mask, before), (4, mask, after)]


def net(rows: Sequence[Change], keys: Sequence[int]) -> list[tuple[int, int, int | None, Row]]:
    """Net changes of a window: commit, operation, mask and values, in the order of each key's last change.

    :param keys: places of the key in the captured columns
    """
    by_key: dict[Row, list[Change]] = {}
    for row in rows:
        if row.operation != 3:
            by_key.setdefault(tuple(row.values[place] for place in keys), []).append(row)
    found = []
    for history in by_key.values():
        first, last = history[0].operation, history[-1].operation
        match (first, last):
            case (2, 1):
                continue
            case (2, _):
                operation = 2
            case (_, 1):
                operation = 1
            case _:
                operation = 4
        mask = 0
        for row in history:
            mask |= row.mask
        found.append((history[-1], operation, mask if operation == 4 else None))
    found.sort(key=lambda each: (each[0].commit, each[0].command_id, each[0].operation))
    return [(last.commit, operation, mask, last.values) for last, operation, mask in found]
