"""The columns of one sink's target: those that it gets, and those of which it lacks the values of before."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.feed import DdlChange
from airflow_provider_mssql_cdc.core.filling import unfilled_with
from airflow_provider_mssql_cdc.core.going_on import Followed, chosen_before, followed, set_aside, with_types_of
from airflow_provider_mssql_cdc.core.marker import Marker
from airflow_provider_mssql_cdc.core.position import Position, Window
from airflow_provider_mssql_cdc.core.rekeying import key_columns_before
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.schema_change import (
    check_ddl,
    check_followed,
    check_statements,
    concerning,
    statements_since,
    with_hidden,
)
from airflow_provider_mssql_cdc.core.spec import Chosen, SinkSpec, TableSpec
from airflow_provider_mssql_cdc.core.table import Column, TableSchema, same_schema
from airflow_provider_mssql_cdc.core.taken import TakenColumn, dropped_of, with_taken
from airflow_provider_mssql_cdc.spark.decide import is_grown_from, rekeyed
from airflow_provider_mssql_cdc.spark.shapes.base import SinkRows
from airflow_provider_mssql_cdc.spark.targets import Difference, State, TargetTable
from airflow_provider_mssql_cdc.spark.targets.sql import different_columns


def since_loaded(table: TableSpec, sink: SinkSpec, marker: Marker, has: TableSchema) -> tuple[DdlChange, ...]:
    """The statements that have changed columns since a target was loaded.

    :param has: the columns that the target has
    """
    # the operator looked from the checkpoint on, and a target that was rolled back lies below that
    of_checkpoint = sink.ddl_upto if marker.position == sink.expects else None
    known = [each for each in (of_checkpoint, marker.ddl_upto) if each is not None]
    concerned = concerning(table.ddl, table.feed.columns, has)
    return statements_since(concerned, marker.position, max(known, default=None))


def noted_of(sink: SinkSpec, marker: Marker) -> tuple[str, ...]:
    """The target columns that lack values of before, which the operator knows and a marker does not name."""
    # a commit that the operator does not know tells itself
    noted = sink.unfilled if marker.position == sink.expects else ()
    return tuple(name for name in noted if name not in marker.unfilled)


def followed_since(
    table: TableSpec, sink: SinkSpec, marker: Marker, differing: Mapping[str, Followed], has: TableSchema
) -> dict[str, Followed]:
    """The columns whose types have changed since a target was loaded, which it follows.

    :param differing: those of which it is seen by what they are now
    :param has: the columns that the target has
    """
    return with_hidden(differing, since_loaded(table, sink, marker, has), has)


class SinkColumns:
    """The columns of a target.

    :param rows: what the sink holds
    :param target: its table
    """

    def __init__(self, rows: SinkRows, target: TargetTable) -> None:
        self._rows, self._target = rows, target

    @property
    def _before(self) -> Chosen | None:
        """What the target was loaded with, where it gets further columns; None where it does not."""
        return self._rows.table.spec.grows_from.get(self._rows.sink.shape)

    def rekeyed(self, marker: Marker | None) -> Chosen | None:
        """What the target has that goes on by another key than that by which it was loaded; None where it does not."""
        return rekeyed(self._rows.table.spec, marker, self.kept)

    def key_before(self, marker: Marker | None) -> tuple[str, ...] | None:
        """The target columns of the key by which it was loaded, of one that goes on by another; else None."""
        if marker is None or self.rekeyed(marker) is None or (then := self.kept(marker.schema_hash)) is None:
            return None
        spec = self._rows.table.spec
        return key_columns_before(spec.schema, self._rows.table.mappings, then)

    def check_ddl(self, marker: Marker | None, window: Window) -> None:
        """Refuse a window in which columns change that the target has, unless it follows them.

        :param marker: of the target
        :raises SchemaChangedError: with the statements
        """
        spec, has = self._rows.table.spec, self._has
        if marker is None or not spec.widens:
            check_ddl(spec.name, concerning(spec.ddl, spec.feed.columns, has), window.after, window.upto)
            return
        types = self.followed(marker)
        check_statements(spec.name, since_loaded(spec, self._rows.sink, marker, has), types, has)
        check_followed(spec.name, types, spec.selection, partition_by=self._rows.sink.partition_by)

    @property
    def _has(self) -> TableSchema:
        """The columns that the target has, in their types of now."""
        schema = self._rows.table.spec.schema
        if self._before is None:
            return schema
        ids = {column.column_id for column in self._before.schema.columns}
        return dataclasses.replace(schema, columns=tuple(c for c in schema.columns if c.column_id in ids))

    def kept(self, hash_: str) -> KeptSchema | None:
        """The schema of this hash that is kept beside the target, or that the checkpoint knows."""
        known = self._rows.table.spec.loaded_with.get(hash_)
        return self._target.kept_schema(hash_) or (KeptSchema(known) if known is not None else None)

    def loaded_with(self, marker: Marker | None) -> str | None:
        """Canonical JSON of the columns with which the target was loaded last; None where they are the load's, or are
        not kept.
        """
        if marker is None or same_schema(marker.schema_hash, self._rows.table.spec.schema):
            return None
        then = self.kept(marker.schema_hash)
        return then.canonical if then is not None else None

    def followed(self, marker: Marker | None) -> dict[str, Followed]:
        """The columns whose types have changed since the target was loaded, which it follows."""
        spec = self._rows.table.spec
        if marker is None or not spec.widens or (then := self.kept(marker.schema_hash)) is None:
            return {}
        return followed_since(spec, self._rows.sink, marker, followed(then, spec.schema), self._has)

    def growing(self, state: State, layout: int) -> tuple[TargetColumn, ...]:
        """As ``added``, before rows of the target are read; one that gets none is not looked at."""
        marker = state.marker
        if self._before is None and not self.followed(marker) and self.rekeyed(marker) is None:
            return ()
        added = self.added(state, layout)
        self._target.expect(added)
        return added

    def added(self, state: State, layout: int, *, fills: bool = False) -> tuple[TargetColumn, ...]:
        """The columns that the table gets with the next commit.

        :param fills: whether that fills them
        :raises TargetError: if the table has other columns beside
        """
        marker, columns = state.marker, self._rows.columns(layout)
        anew = self.rekeyed(marker)
        before = self._before or anew or self._as_loaded(marker)
        if marker is not None and before is not None:
            self._rename(before, layout, marker)
        self._follow(columns, layout, marker)
        difference = self._put_back(self._target.check(columns), columns)
        if difference is not None and marker is not None:
            # a commit that brought columns may have been killed before it was through
            if marker.schema_hash == self._rows.table.spec.schema.hash:
                self._target.finish(columns)
            elif before is not None and marker.schema_hash == before.schema.hash:
                self._target.finish(self._known(before, marker).columns(layout))
            difference = self._target.check(columns)
        if difference is None:
            return ()
        found, lacks = difference.found, difference.expected.keys() - difference.found.keys()
        added: tuple[TargetColumn, ...] = ()
        takes = self._before is None or fills or is_grown_from(self._rows.table.spec, self._rows.sink, marker)
        takes = takes or anew is not None
        if before is not None and takes:
            known = {column.name for column in self._known(before, marker).columns(layout)}
            added = tuple(column for column in columns if column.name in lacks - known)
        names = {column.name for column in added}
        if names != lacks or any(difference.expected.get(name) != type_ for name, type_ in found.items()):
            is_new = marker is None and state.is_empty
            raise different_columns(self._target.name, difference, is_new=is_new)
        return added

    def _put_back(self, difference: Difference | None, columns: Sequence[TargetColumn]) -> Difference | None:
        """Give dropped columns their names again that made way for others, where the commit with these did not come.

        :param difference: of the table's columns from those of the load
        :param columns: of the load
        :return: what then differs
        """
        if difference is None:
            return None
        asides = {
            set_aside(mapping.column) + target.name.removeprefix(mapping.column.name): target.name
            for mapping in self._rows.table.mappings
            for target in mapping.targets
            if mapping.column.kept and target.name not in difference.found
        }
        there = {aside: name for aside, name in asides.items() if aside in difference.found}
        if not there:
            return difference
        self._target.rename(there)
        return self._target.check(columns)

    def _known(self, before: Chosen, marker: Marker | None) -> SinkRows:
        """What the target holds in the columns that it was loaded with, by the names of now.

        :param before: these, by their names of then
        """
        spec, ids = self._rows.table.spec, {column.column_id for column in before.schema.columns}
        columns = tuple(column for column in spec.schema.columns if column.column_id in ids)
        schema = dataclasses.replace(spec.schema, columns=columns)
        then = self.kept(marker.schema_hash) if marker is not None else None
        schema = with_types_of(then, schema) if then is not None else schema
        return self._rows.narrowed(Chosen(schema, spec.selection.within({column.name for column in columns})))

    def _rename(self, before: Chosen, layout: int, marker: Marker) -> None:
        """Give columns of the table the names that they have in the source by now. As with types, it needs no commit.

        :param before: the columns that it was loaded with
        """
        if (kept := self.kept(marker.schema_hash)) is not None:
            before = chosen_before(before, kept)
        then = self._rows.narrowed(before).columns(layout)
        names = {
            old.name: (old, new.name)
            for old, new in zip(then, self._known(before, marker).columns(layout), strict=True)
            if old.name != new.name
        }
        if not names:
            return
        # what makes way for another one goes first
        names = dict(sorted(names.items(), key=lambda each: each[1][1] in names))
        if (difference := self._target.check(then)) is None:
            self._target.rename({old: new for old, (_, new) in names.items()})
            return
        # what is there by its new name was renamed by a run that was killed after it, unless it is one that makes way
        makes_way = {old for old, (_, new) in names.items() if new not in difference.found}
        left = {old: each for old, each in names.items() if old in makes_way or each[1] in makes_way}
        self._target.finish([column for column, _ in left.values()])
        difference = self._target.check(then)
        there = difference.found if difference is not None else names
        self._target.rename({old: new for old, (_, new) in left.items() if old in there})

    def taken(
        self, before: Marker | None, read_after: Position, filled: Position | None = None
    ) -> tuple[TakenColumn, ...]:
        """The columns that the target has taken since its first load, once a commit is made.

        :param before: the marker of the rows that stay; None where none do
        :param read_after: what happened behind this position is read with the columns that it gets with the commit
        :param filled: as of where the target has all values of all columns then; None where it does not
        """
        if before is None or not self._rows.facts.has_data:
            return ()
        is_same = same_schema(before.schema_hash, self._rows.table.spec.schema)
        then = None if is_same else self.kept(before.schema_hash)
        had = {column.column_id for column in then.columns} if then is not None else None
        lacked = [column.column_id for column in self._held if had is not None and column.column_id not in had]
        return self._with_taken(before, lacked, read_after, filled)

    def dropped(self, before: Marker | None) -> tuple[TakenColumn, ...]:
        """What the target has dropped of this source table, once its rows are replaced.

        :param before: the marker of these
        """
        here = self._rows.table.spec.feed.source_object_id
        return dropped_of(before.taken) if before is not None and before.source_object_id in (None, here) else ()

    def taking(self, marker: Marker) -> tuple[TakenColumn, ...]:
        """The columns that the target has taken, and those whose altered values it gets with the next commit.

        :param marker: of the target
        """
        return self._with_taken(marker, (), marker.position, None) if self._rows.facts.has_data else ()

    def _with_taken(
        self, before: Marker, lacked: Collection[int], after: Position, filled: Position | None
    ) -> tuple[TakenColumn, ...]:
        types = self.followed(before)
        noted = noted_of(self._rows.sink, before)
        altered = [
            column.column_id
            for column in self._held
            if (column.name in types and types[column.name].anew)
            or self._rows.table.spec.selection.name_of(column) in noted
        ]
        since = max(filter(None, (before.position, before.ddl_upto)))
        return with_taken(before.taken, lacked=lacked, altered=altered, after=after, since=since, filled=filled)

    @property
    def _held(self) -> list[Column]:
        """The columns of the source table that the target has, or gets."""
        spec = self._rows.table.spec
        return [column for column in spec.schema.loaded if spec.selection.holds(column.name)]

    def _follow(self, columns: Sequence[TargetColumn], layout: int, marker: Marker | None) -> None:
        """Give columns of the table the types that they have in the source by now, where that alters no value.

        It needs no commit with rows: a table that has these types, and a marker of before, is the same.
        """
        loaded = self._as_loaded(marker)
        if loaded is None:
            return
        before = self._known(loaded, marker).columns(layout)
        types = {column.name: column.type for column in before}
        changed = [column for column in columns if types.get(column.name, column.type) != column.type]
        if changed:
            differs = self._target.check(before)
            # what has another type than it was loaded with is for a person to decide
            wider = [c for c in changed if differs is None or differs.found.get(c.name) == differs.expected[c.name]]
            if wider:
                self._target.widen(wider)

    def _as_loaded(self, marker: Marker | None) -> Chosen | None:
        """The load's columns in the types and names that the target was loaded with, where it follows others; else
        None.
        """
        if marker is None or not self.followed(marker):
            return None
        spec, then = self._rows.table.spec, self.kept(marker.schema_hash)
        return chosen_before(Chosen(spec.schema, spec.selection), then) if then is not None else None

    def unfilled(self, state: State) -> tuple[str, ...]:
        """The columns of which the target lacks the values of before, with those that it is about to get, and those
        whose values its source has altered with their types.
        """
        unfilled, before = self.unfilled_yet(state), self._before
        if before is None or not is_grown_from(self._rows.table.spec, self._rows.sink, state.marker):
            return unfilled
        has = {column.name for column in self._known(before, state.marker).table.data_columns}
        gets = (column.name for column in self._rows.table.data_columns if column.name not in has)
        return tuple(dict.fromkeys((*unfilled, *gets)))

    def unfilled_yet(self, state: State) -> tuple[str, ...]:
        """The same, without those that it is about to get."""
        marker, spec = state.marker, self._rows.table.spec
        if marker is None or not self._rows.facts.has_data:
            return ()
        unfilled = (*marker.unfilled, *noted_of(self._rows.sink, marker))
        return unfilled_with(unfilled, self.followed(marker), Chosen(spec.schema, spec.selection))
