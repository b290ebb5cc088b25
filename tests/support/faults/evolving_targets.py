"""Target tables whose columns come, go and change, and what each must hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.marker import Marker
from airflow_provider_mssql_cdc.core.schema import ColumnFacts, KeptSchema
from airflow_provider_mssql_cdc.spark.targets import Difference, State
from tests.support.faults.evolving_source import BASE, EvolvingSource
from tests.support.faults.source import Event, events_of, fold, number
from tests.support.faults.targets import OPEN, Kept, Rows, TargetTable, Write, as_dict, check_versions

Values = tuple[tuple[str, int], ...]
"""The values of a row by the target's column, but for the key's; what is NULL is left out."""


class EvolvingRows(Rows):
    """Rows whose values are ``Values``."""

    def limit(self, count: int) -> EvolvingRows:
        """The first of them."""
        return EvolvingRows(self[:count])


class EvolvingTarget(TargetTable):
    """A sink's table.

    :ivar columns: with their types
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.columns: dict[str, str] = {}
        self.kept: dict[str, KeptSchema] = {}
        self._adds: tuple[TargetColumn, ...] = ()

    def create(self, columns: Sequence[TargetColumn]) -> None:
        if not self.exists:
            self.exists, self.columns = True, {column.name: column.type for column in columns}

    def check(self, columns: Sequence[TargetColumn]) -> Difference | None:
        expected = {column.name: column.type for column in columns}
        return None if expected == self.columns else Difference(expected, dict(self.columns))

    def widen(self, columns: Sequence[TargetColumn]) -> None:
        """Give columns other types."""
        self._world.at("before the types")
        self.columns |= {column.name: column.type for column in columns}
        self._world.at("after the types")

    def rename(self, columns: Mapping[str, str]) -> None:
        """Give columns other names, also in what was committed before: as with types, that is no commit."""
        for old, new in columns.items():
            self._world.at("before a name")
            assert new not in self.columns, f"{new} is there"
            self.columns = {new if name == old else name: type_ for name, type_ in self.columns.items()}
            self.commits = [dataclasses.replace(kept, rows=_renamed(kept.rows, old, new)) for kept in self.commits]
            self._world.at("after a name")

    def keep_schema(self, schema: KeptSchema) -> bool:
        self.kept[schema.hash] = schema
        return super().keep_schema(schema)

    def kept_schema(self, hash_: str) -> KeptSchema | None:
        return self.kept.get(hash_)

    def commit(self, state: State, write: Write, marker: Marker | None) -> bool:
        assert isinstance(write, Write)
        self._adds = write.adds
        return super().commit(state, write, marker)

    def _add(self, kept: Kept) -> None:
        self.columns |= {column.name: column.type for column in self._adds}
        self._adds = ()
        super()._add(kept)


def _renamed(rows: Rows, old: str, new: str) -> Rows:
    """Rows whose values have another name."""
    return Rows((*row[:4], tuple(sorted((new if n == old else n, v) for n, v in cast(Any, row[4])))) for row in rows)  # type: ignore[misc]


def check(target: EvolvingTarget, source: EvolvingSource, *, whole: bool = False) -> None:
    """Prove that a target is what the source was at its marker's position, in the columns that it shows.

    :param whole: versions of before the last commit too
    :raises AssertionError: if it is not
    """
    marked = target.marked
    marker = marked[-1].marker
    assert marker is not None
    position, rows = number(marker.position), target.rows_now
    truth = source.state(target.table, position)
    if target.shape == "mirror":
        now = as_dict(rows)
        assert len(rows) == len(now), "doubled"
    elif target.shape == "history":
        now = _check_history(target, source)
    else:
        now = {version[3]: version[4] for version in rows if version[1] == OPEN}
        known = [_of_base(e, BASE) for e in events_of(source.commits, target.table, 0, position)]
        since = number(marked[-2].marker.position) if len(marked) > 1 and marked[-2].marker else 0
        check_versions(marked, Rows(_of_base(e, "value") for e in rows), known, position, 0 if whole else since)
    if target.shape != "mirror":
        before = marked[-2].rows if len(marked) > 1 and not whole else Rows()
        check_values(target, source, {*rows} - {*before})
    columns = comparable(target, source, marker)
    shown = {key: {facts.name: dict(cast(Any, v)).get(facts.name) for facts in columns} for key, v in now.items()}
    assert shown == {
        key: {facts.name: dict(image).get(facts.column_id) for facts in columns} for key, image in truth.items()
    }, (target.table, target.shape, position)


def comparable(target: EvolvingTarget, source: EvolvingSource, marker: Marker) -> list[ColumnFacts]:
    """The columns of which a target has all values as of its marker.

    Not so those that the source has dropped, since they keep what was loaded; those whose values are still to be
    filled; and those with another type than the source's at the marker: the change table has the later one already.
    """
    found, position = [], number(marker.position)
    schema = target.kept[marker.schema_hash]
    for facts in schema.columns:
        if facts.name in schema.key:
            continue
        column = source.column(target.table, facts.column_id)
        assert column.added <= position, "a column that is not there yet"
        same = facts.type == column.type_at(position) == column.type_at(source.position)
        if column.dropped is None and facts.name not in marker.unfilled and same:
            found.append(facts)
    return found


def check_values(target: EvolvingTarget, source: EvolvingSource, rows: Collection[Event]) -> None:
    """Prove that rows of a history or of versions have the source's values in each column, whenever they were there.

    What happened before the target got a column may lack its values, and so may all of one that is dropped since. A
    version may have what the row had at any time of it: what the instance of then lacks makes no event. Columns that
    were altered are left out, since their values depend on when they were read.
    """
    marked = target.marked
    marker = marked[-1].marker
    assert marker is not None
    schema, table = target.kept[marker.schema_hash], target.table
    images: dict[tuple[int, int], dict[int, Any]] = {}
    for at, n, _, key, image in events_of(source.commits, table, 0, number(marker.position)):
        images.setdefault((at, key), {})[n] = image
    for facts in schema.columns:
        column = source.column(table, facts.column_id)
        if facts.name in schema.key or column.altered:
            continue
        got = min(number(m.position) for kept in marked if (m := kept.marker) and _has(target, m, column.id))
        for begun, end, op, key, values in rows:
            if target.shape == "scd2":
                true = {dict(image).get(column.id) for image in source.images(table, key, begun, end)}
                # rows of the transaction that has added or dropped the column
                true |= {dict(image).get(column.id) for image in images.get((begun, key), {}).values()}
            elif op == "R":
                # what they tell is compared as the newest image of their key when they are written
                continue
            else:
                true = {dict(images[begun, key][end]).get(column.id)}
            if begun <= got or column.dropped is not None:
                true.add(None)
            value = dict(cast(Any, values)).get(facts.name)
            assert value in true, (table, target.shape, facts.name, (begun, end, op, key), value, true)


def _has(target: EvolvingTarget, marker: Marker, column_id: int) -> bool:
    return any(facts.column_id == column_id for facts in target.kept[marker.schema_hash].columns)


def _check_history(target: EvolvingTarget, source: EvolvingSource) -> dict[int, Any]:
    """Prove that a history has each change that its feeds have captured once; the rows that it tells of."""
    marked, rows = target.marked, target.rows_now
    marker = marked[-1].marker
    assert marker is not None
    lows = [kept.low for kept in marked if kept.low is not None]
    events = [_of_base(e, "value") for e in rows if e[2] != "R"]
    assert len({e[:2] for e in events}) == len(events), "doubled"
    ends = [*(number(span.after) for span in marker.feeds[1:] if span.after is not None), number(marker.position)]
    known: list[Event] = []
    begin = 0
    for span, end in zip(marker.feeds, ends, strict=True):
        (feed,) = (i for i in source.instances[target.table] if i.object_id == span.feed.object_id)
        assert max(begin, lows[0]) >= feed.start - 1, f"{feed.name} has nothing from {begin} on"
        known += [_of_base(e, BASE) for e in source.captured_by(feed, begin, end)]
        begin = end
    assert {e for e in events if e[0] > lows[0]} <= {*known}, "not of its feeds"
    gaps = [(number(gap.after), number(gap.upto)) for gap in marker.gaps]
    # what changes the column that all instances have, whichever feed the marker names
    of_all = events_of(source.commits, target.table, 0, number(marker.position))
    known += [_of_base(e, BASE) for e in of_all if e[2] != "U" or BASE in source.touched[e[0], e[1], target.table]]
    missing = {*known} - {*events}
    assert all(e[0] <= lows[0] or any(a < e[0] <= u for a, u in gaps) for e in missing), "lost"
    low = lows[-1]
    told = sorted((e for e in rows if e[0] > low or (e[2] == "R" and e[0] == low)), key=lambda e: e[:2])
    return cast(dict[int, Any], fold({}, told))


def _of_base(event: Event, name: object) -> Event:
    """An event with the value of the column that is never dropped or altered."""
    return (*event[:4], dict(cast(Any, event[4]))[name])
