"""What a job asks a table's source, answered by the database in plain Python."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from airflow_provider_mssql_cdc.core.exceptions import CaptureLagError, InstanceChangedError
from airflow_provider_mssql_cdc.core.lineage import LogHistory, Witness
from airflow_provider_mssql_cdc.core.position import Position, Window, merged
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.spark.sources.base import SourceState
from tests.support.faults.source import Event, lsn, number
from tests.support.faults.targets import SALTS, Rows, Staged, hashed

if TYPE_CHECKING:
    from tests.support.faults.world import World


class JobSource:
    """What a job asks a table's source."""

    def __init__(self, world: World, table: TableSpec, salt: str | None, *, sees_fork: bool) -> None:
        self.world, self._source, self._sees_fork = world, world.source, sees_fork
        self._table, self._salt = table, salt

    def state(self, witnesses: Collection[Witness] = ()) -> SourceState:
        self.world.at("source")
        source, mapped, feed = self._source, self._source.mapped(), self._table.feed
        newest, oldest = (lsn(mapped[-1]), lsn(mapped[0])) if mapped else (None, None)
        lsns = {witness.lsn for witness in witnesses}
        times = {known: source.commits[known][0] for known in mapped if known == mapped[-1] or lsn(known) in lsns}
        fork = source.fork if self._sees_fork else None
        history = LogHistory(newest, oldest, {lsn(known): time for known, time in times.items()}, fork)
        for known in source.alive(feed.source.table):
            if known.object_id == feed.object_id:
                return SourceState(lsn(source.low(known)).previous(), history)
        raise InstanceChangedError("was dropped since the run was planned.", table=str(feed.source))

    def low(self, state: SourceState) -> Position:
        if state.readable_from is None or state.newest is None or state.newest <= state.readable_from:
            raise CaptureLagError("was just enabled, and nothing is captured yet.", table=str(self._table.name))
        return max(state.readable_from, state.newest)

    def read(self, windows: Sequence[Window], *_: Any, **__: Any) -> Staged:
        found = Rows()
        for window in merged(windows):
            low, high = number(window.after), number(window.upto)
            middle = (low + high) // 2
            found += self._source.changes(self._table.feed.object_id, low, middle)
            self.world.at("in mid-read")
            found += self._source.changes(self._table.feed.object_id, middle, high)
        return Staged(_chosen(found, self._table.selection, self._salt), [*windows, *merged(windows)])

    def copy(self, *_: Any, **__: Any) -> Any:
        world, name, before = self.world, self._table.name.table, self.state()
        if world.copy_error is not None:
            raise world.copy_error
        database, low = world.source, self.low(before)
        rows = {key: value for key, value in database.rows[name].items() if key % 2}
        world.at("in mid-copy")
        rows |= {key: value for key, value in database.rows[name].items() if not key % 2}
        database.capture()
        high = database.captured
        copied = [(number(low), 0, "R", key, value) for key, value in rows.items()]
        held = _chosen(copied, self._table.selection, self._salt)
        fork = before.lineage.witnesses()[0].recovery_fork
        seen = (*before.lineage.witnesses(), Witness(lsn(high), database.commits[high][0], fork))
        # lower than low where the database was restored meanwhile, which the load finds
        window = Window(low, max(low, lsn(high)))
        events = self.read([window])
        return SimpleNamespace(
            id="",
            low=low,
            high=lsn(high),
            window=window,
            rows_copied=len(held),
            held=held,
            events=events,
            witnesses=seen,
            warnings=(),
            conditions=(),
            again=None,
            changed_after=None,
        )

    def respelled(self, staged: Any, window: Window, known: Any, folder: str, *, is_sure: bool | None) -> Any:
        return staged

    def has_lost_copy(self) -> bool:
        return False

    def remove_copy(self) -> None:
        """It has left nothing."""

    def remove_copies(self, place: str) -> None:
        """None outlives its job."""


def _chosen(events: Sequence[Event], selection: Any, salt: str | None) -> list[Event]:
    """What is loaded of some events, hashed with the salt that the job was given."""
    if selection.conditions:
        events = [e for e in events if e[3] < 3]
    if selection.masks:
        events = [(*e[:4], hashed(e[4], SALTS.index(salt or ""))) for e in events]
    return list(events)
