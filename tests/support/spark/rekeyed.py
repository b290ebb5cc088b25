"""What targets hold once their table was loaded anew by another key, in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Version:
    """A row from one position up to the next; None where it counts now."""

    row: tuple[tuple[str, Hashable], ...]
    since: str
    until: str | None = None


def version(row: Row, since: str, until: str | None = None) -> Version:
    return Version(tuple(sorted(row.items())), since, until)


def versions_by(key: Sequence[str], versions: Iterable[Version], at_low: Sequence[Row], low: str) -> list[Version]:
    """Versions after a copy by another key.

    :param at_low: the table's rows at the copy's low, each key of now once
    """
    versions = list(versions)

    def place(each: Version) -> tuple[Hashable, ...]:
        row = dict(each.row)
        return (*(row[name] for name in key), each.since)

    places, there = Counter(map(place, versions)), {version(row, "").row for row in at_low}
    stay = [v for v in versions if v.until is None and v.row in there and places[place(v)] == 1]
    ended = [Version(v.row, v.since, low) for v in versions if v.until is None and v not in stay and v.since != low]
    begun = [version(row, low) for row in at_low if version(row, "").row not in {v.row for v in stay}]
    return [*(v for v in versions if v.until is not None), *ended, *stay, *begun]


def marked_by(
    key: Sequence[str], before: Sequence[str] | None, rows: Iterable[Row], there: Sequence[Row], time: Hashable
) -> list[tuple[Row, Hashable]]:
    """Rows of a mirror that keeps deleted ones, each with the time of its delete, after a copy by another key.

    :param before: the key of before; None where the table no longer has its columns
    :param rows: of the mirror, with ``_deleted_at``
    :param there: the table's rows
    :param time: of the copy
    """

    def of(row: Row, names: Sequence[str]) -> tuple[Hashable, ...]:
        return tuple(row[name] for name in names)

    keys = {of(row, key) for row in there}
    olds = {of(row, before) for row in there} if before is not None else set()
    found: dict[Hashable, tuple[Row, Hashable]] = {}
    for number, row in enumerate(rows):
        data = {name: value for name, value in row.items() if name != "_deleted_at"}
        at = row["_deleted_at"]
        if of(row, key) in keys or (at is None and before is not None and of(row, before) in olds):
            continue
        # without the key of before nobody can tell whether one is there that lacks a value of that of now
        if at is None and before is None and None in of(row, key):
            continue
        # no other row is ever that of one which lacks a value of the key
        one = number if None in of(row, key) else of(row, key)
        mine, other = (data, time if at is None else at), found.get(one)
        if other is None or other[1] < mine[1]:  # type: ignore[operator]
            found[one] = mine
    return [*((row, None) for row in there), *found.values()]
