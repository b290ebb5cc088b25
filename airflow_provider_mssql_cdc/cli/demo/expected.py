"""What histories, versions and transactions must hold, by the source's own rows and its change table alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from airflow_provider_mssql_cdc.cli.demo import shop

Row = tuple[Any, ...]

_EVENT = len(shop.EVENT)


def copied_at(table: shop.Table, runs: Sequence[Mapping[str, Any]]) -> str:
    """The position at which a first load has the rows of a table.

    :param runs: the summaries of one target's ``MsSqlCdcLoadOperator``, the first load's before all others
    """
    entry = next(entry for entry in runs[0]["tables"] if entry["table"] == table.full_name)
    for window in entry["windows"]:
        low: str = window.strip("(]").split(", ")[0]
        return low
    # nothing changed while it copied
    position: str = entry["position"]
    return position


class Expected:
    """One table's contents in its targets.

    :param low: position of its first load
    :param source: the rows of the source, as it is now
    :param events: its changes after ``low``, as ``compare.read_events`` returns them
    """

    def __init__(self, table: shop.Table, low: str, source: Sequence[Row], events: Sequence[Row]) -> None:
        names = table.arrow.names
        if table.events.names[_EVENT:] != names:
            raise ValueError(f"{table.full_name} has columns that changes may leave out")
        self._key = [names.index(name) for name in table.key]
        self._low, self._source = low, source
        # in the order in which they happened: of one command deletes and old values come first
        self._events = sorted(events, key=lambda event: (event[0], event[1], "DIBU".index(event[2])))

    def history(self) -> list[Row]:
        """The rows of before all events, and these."""
        return [*((self._low, None, "R", *row) for row in self._copied()), *self._events]

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
        """Yield the rows of before all events: their first change tells how they were, or else the source of now."""
        changed = set()
        for _, _, operation, *values in self._events:
            key = self._key_of(values)
            if key not in changed and operation in "DB":
                yield tuple(values)
            changed.add(key)
        yield from (row for row in self._source if self._key_of(row) not in changed)

    def _states(self) -> dict[Row, list[tuple[str, Row | None]]]:
        """What each transaction left of each key, None for nothing."""
        states: dict[Row, list[tuple[str, Row | None]]] = {
            self._key_of(row): [(self._low, row)] for row in self._copied()
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
