"""What histories, versions and transactions must hold, by the source's own rows and its change table alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_provider_mssql_cdc.cli.demo import shop

Row = tuple[Any, ...]

_EVENT = len(shop.EVENT)


@dataclass(frozen=True, slots=True)
class FirstLoad:
    """The window of a table's first load, which copies the rows as they are at its lower end.

    :param low: position, as text
    :param high: position, as text
    """

    low: str
    high: str

    @classmethod
    def of(cls, table: shop.Table, runs: Sequence[Mapping[str, Any]]) -> FirstLoad:
        """The first load that the first of these summaries tells of.

        :param runs: the summaries of one target's ``MsSqlCdcLoadOperator``
        """
        entry = next(entry for entry in runs[0]["tables"] if entry["table"] == table.full_name)
        for window in entry["windows"]:
            return cls(*window.strip("(]").split(", "))
        # nothing changed while it copied
        return cls(entry["position"], entry["position"])


class Expected:
    """One table's contents in its targets.

    :param source: the rows of the source, as it is now
    :param events: its changes after a first load's lower end, as ``compare.read_events`` returns them
    """

    def __init__(self, table: shop.Table, first: FirstLoad, source: Sequence[Row], events: Sequence[Row]) -> None:
        names = table.arrow.names
        if table.events.names[_EVENT:] != names:
            raise ValueError(f"{table.full_name} has columns that changes may leave out")
        self._key = [names.index(name) for name in table.key]
        self._first, self._source = first, source
        # in the order in which they happened: of one command deletes and old values come first
        self._events = sorted(events, key=lambda event: (event[0], event[1], "DIBU".index(event[2])))

    def history(self) -> list[Row]:
        """The rows that were copied, and all events."""
        return [*((self._first.low, None, "R", *row) for row in self._copied()), *self._events]

    def versions(self) -> list[Row]:
        """The columns, and from and to which position each version of a row counts."""
        return [
            (*row, since, until)
            for states in self._states().values()
            for (since, row), (until, _) in zip(states, [*states[1:], (None, None)], strict=True)
            if row is not None
        ]

    def transactions(self) -> list[Row]:
        """The position of each transaction, and how many events it has: all, and of each kind."""
        kinds: dict[str, list[str]] = {}
        for lsn, _, operation, *_ in self._events:
            kinds.setdefault(lsn, []).append(operation)
        counts = ((lsn, [found.count(kind) for kind in "IUD"]) for lsn, found in kinds.items())
        return [(lsn, sum(each), *each) for lsn, each in counts]

    def _copied(self) -> Iterator[Row]:
        """Yield the rows of the lower end but those that changed until the upper one.

        Their first change later tells how they were, or, where there is none, the source of now.
        """
        changed = set()
        for lsn, _, operation, *values in self._events:
            key = self._key_of(values)
            if key not in changed and lsn > self._first.high and operation in "DB":
                yield tuple(values)
            changed.add(key)
        yield from (row for row in self._source if self._key_of(row) not in changed)

    def _states(self) -> dict[Row, list[tuple[str, Row | None]]]:
        """What each transaction left of each key, None for nothing."""
        states: dict[Row, list[tuple[str, Row | None]]] = {
            self._key_of(row): [(self._first.low, row)] for row in self._copied()
        }
        for lsn, _, operation, *values in self._events:
            if operation == "B":
                continue
            left = (lsn, None if operation == "D" else tuple(values))
            mine = states.setdefault(self._key_of(values), [])
            if mine and mine[-1][0] == lsn:
                mine[-1] = left
            else:
                mine.append(left)
        return states

    def _key_of(self, row: Sequence[Any]) -> Row:
        return tuple(row[position] for position in self._key)
