"""Two tables, their transactions, and what change data capture makes of them: row by row, in plain Python."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Value = int | str | None
Row = dict[str, Value]
Key = tuple[Value, ...]

KEYS = {"t": ("id",), "u": ("k", "l")}
# so many columns that a mask has two bytes
COLUMNS = {"t": ("id", "a", "b", "d3", "d4", "d5", "d6", "d7", "d8", "d9"), "u": ("k", "l", "v")}
SCHEMA = """
CREATE TABLE dbo.t (
    id int NOT NULL CONSTRAINT pk_t PRIMARY KEY, a varchar(10), b int, d3 int, d4 int, d5 int, d6 int, d7 int, d8 int,
    d9 int
);
CREATE TABLE dbo.u (k int NOT NULL, l varchar(5) NOT NULL, v int NULL, CONSTRAINT pk_u PRIMARY KEY (k, l))
"""

_NUMBERS = itertools.count(1)


class Step(NamedTuple):
    """One row written: the row before and after, None where there is none."""

    table: str
    before: Row | None
    after: Row | None
    number: int  # in the order in which all transactions wrote
    definition: bool = False  # an ALTER TABLE, which the log has too


class Change(NamedTuple):
    """A row of a change table."""

    commit: int
    operation: int
    mask: int
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Instance:
    """A capture instance: what it captures, from which commit on."""

    table: str
    columns: tuple[str, ...]
    since: int


@dataclass
class Tables:
    """What the tables hold; what is dropped from a table is no longer in its rows."""

    columns: dict[str, list[str]] = field(
        default_factory=lambda: {name: list(names) for name, names in COLUMNS.items()}
    )
    rows: dict[str, dict[Key, Row]] = field(default_factory=lambda: {"t": {}, "u": {}})
    log: list[Step] = field(default_factory=list)

    def insert(self, table: str, rows: Sequence[Row]) -> bool:
        """Insert all rows, or none where a key is there already."""
        keys = [self._key(table, row) for row in rows]
        if len(set(keys)) < len(keys) or set(keys) & set(self.rows[table]):
            return False
        for key, row in zip(keys, rows, strict=True):
            complete = {name: row.get(name) for name in self.columns[table]}
            self.rows[table][key] = complete
            self._note(table, None, complete)
        return True

    def delete(self, table: str, keys: Sequence[Key]) -> None:
        """Delete the rows of these keys."""
        for key in keys:
            self._note(table, self.rows[table].pop(key), None)

    def update(self, table: str, changes: dict[Key, Row]) -> bool:
        """Give rows new values, all or none; where a key changes, first all such rows go, then they come again."""
        old = {key: self.rows[table][key] for key in changes}
        new = {key: {**old[key], **values} for key, values in changes.items()}
        others = set(self.rows[table]) - set(changes)
        keys = [self._key(table, row) for row in new.values()]
        if len(set(keys)) < len(keys) or set(keys) & others:
            return False
        moving = [key for key in changes if self._key(table, new[key]) != key]
        for key in changes:
            if key in moving:
                self._note(table, self.rows[table].pop(key), None)
            elif old[key] != new[key]:
                self._note(table, old[key], new[key])
                self.rows[table][key] = new[key]
        for key in moving:
            self._note(table, None, new[key])
            self.rows[table][self._key(table, new[key])] = new[key]
        return True

    def add_column(self, table: str, name: str) -> None:
        """ALTER TABLE ... ADD"""
        self._note(table, None, None, definition=True)
        self.columns[table].append(name)
        self.rows[table] = {key: {**row, name: None} for key, row in self.rows[table].items()}

    def drop_column(self, table: str, name: str) -> None:
        """ALTER TABLE ... DROP COLUMN"""
        self._note(table, None, None, definition=True)
        self.columns[table].remove(name)
        self.rows[table] = {
            key: {column: value for column, value in row.items() if column != name}
            for key, row in self.rows[table].items()
        }

    def copied(self) -> Tables:
        """As they are now."""
        return copy.deepcopy(self)

    def _note(self, table: str, before: Row | None, after: Row | None, *, definition: bool = False) -> None:
        self.log.append(Step(table, before, after, next(_NUMBERS), definition))

    def _key(self, table: str, row: Row) -> Key:
        return tuple(row[name] for name in KEYS[table])


def changes(commits: Sequence[Sequence[Step]], instance: Instance) -> list[Change]:
    """The rows of a change table."""
    found = []
    for number, steps in enumerate(commits):
        for step in steps:
            if step.table == instance.table and number >= instance.since and not step.definition:
                found += [Change(number, *each) for each in _captured(step, instance.columns)]
    return found


def written(commits: Sequence[Sequence[Step]], instance: Instance) -> list[int]:
    """The commits of the rows of a change table, in the order in which the rows were written."""
    return [
        commit
        for step, commit in sorted(
            ((step, number) for number, steps in enumerate(commits) for step in steps), key=lambda each: each[0].number
        )
        if step.table == instance.table and commit >= instance.since and not step.definition
        for _ in _captured(step, instance.columns)
    ]


def _captured(step: Step, columns: tuple[str, ...]) -> list[tuple[int, int, tuple[Value, ...]]]:
    every = (1 << len(columns)) - 1
    before, after = (
        None if row is None else tuple(row.get(name) for name in columns) for row in (step.before, step.after)
    )
    if before is None or after is None:
        return [(1, every, before)] if before is not None else [(2, every, after or ())]
    mask = sum(1 << i for i, (old, new) in enumerate(zip(before, after, strict=True)) if old != new)
    return [(3, mask, before), (4, mask, after)] if mask else []


def by_key(rows: Sequence[Change], instance: Instance) -> dict[Key, list[Change]]:
    """The history of each key, in order."""
    found: dict[Key, list[Change]] = {}
    places = [instance.columns.index(name) for name in KEYS[instance.table]]
    for row in rows:
        found.setdefault(tuple(row.values[place] for place in places), []).append(row)
    return found


# first and last operation of a key in the window, before images left aside
_NET = {(2, 2): 2, (2, 4): 2, (2, 1): None, (4, 4): 4, (4, 1): 1, (4, 2): 4, (1, 1): 1, (1, 2): 4, (1, 4): 4}


def net(rows: Sequence[Change], instance: Instance, option: str) -> dict[Key, tuple[Any, ...]]:
    """Net changes of a window by key: commit, operation, mask and values."""
    found = {}
    for key, history in by_key([row for row in rows if row.operation != 3], instance).items():
        last = history[-1]
        operation = _NET[history[0].operation, last.operation]
        if operation is None:
            continue
        mask = None
        if option == "all with mask" and operation == 4:
            mask = 0
            for row in history:
                mask |= row.mask
        if option == "all with merge" and operation != 1:
            operation = 5
        found[key] = (last.commit, operation, mask, last.values)
    return found
