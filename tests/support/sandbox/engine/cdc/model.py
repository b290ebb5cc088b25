"""Change data capture written down row by row, in plain Python: what the vectorised capture is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Row = tuple[object, ...]


@dataclass(frozen=True)
class Statement:
    """One statement on one table: rows inserted, deleted, or updated (old and new)."""

    table: str
    kind: Literal["insert", "delete", "update"]
    rows: tuple[tuple[Row, Row], ...]
    undone: bool = False


class Change(NamedTuple):
    """A row of a change table, with the number of its commit in place of the LSN."""

    commit: int
    command_id: int
    operation: int
    mask: int
    values: Row


def changes(
    commits: Sequence[tuple[int, Sequence[Statement]]],
    table: str,
    keys: Mapping[str, Sequence[int]],
    captured: Sequence[int],
) -> list[Change]:
    """The rows of one instance.

    :param commits: numbered transactions
    :param keys: per table, the places of the columns whose update is a delete and an insert
    :param captured: places of the table's columns that are captured
    """
    found = []
    for number, statements in commits:
        command = 0
        for statement in statements:
            for step in () if statement.undone else _steps(statement, keys[statement.table]):
                command += 1
                if statement.table == table:
                    found += [Change(number, command, *each) for each in _captured(*step, captured)]
    return found


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
    found.sort(key=lambda each: each[0][:3])
    return [(last.commit, operation, mask, last.values) for last, operation, mask in found]
