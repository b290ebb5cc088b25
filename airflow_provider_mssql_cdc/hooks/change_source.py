"""What a load and a sensor ask a source of changes, and change data capture as one."""

from __future__ import annotations

import dataclasses
import datetime
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from airflow_provider_mssql_cdc.core.database import DatabaseStatus, Survey
from airflow_provider_mssql_cdc.core.exceptions import CdcPermissionError
from airflow_provider_mssql_cdc.core.feed import CaptureInstance, DdlChange, Feed, Probe
from airflow_provider_mssql_cdc.core.lineage import LogHistory, Witness
from airflow_provider_mssql_cdc.core.position import Lsn, Position, readable_from
from airflow_provider_mssql_cdc.core.source_choice import may_read
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.hooks.errors import INVALID_OBJECT, SELECT_DENIED
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook

log = logging.getLogger(__name__)


class ChangeSource(Protocol):
    """One kind of feeds of a database.

    :ivar kind: of its feeds
    :ivar unreadable: feed to why it cannot be read
    :ivar found_more: whether ``probe`` has just found one more of these
    """

    kind: type[Feed]
    unreadable: dict[str, CdcPermissionError]
    found_more: bool

    def discover(self, survey: Survey) -> Mapping[TableName, Sequence[Feed]]:
        """The feeds of each table that has one, oldest first."""

    def probe(
        self,
        after: Mapping[str, Position],
        *,
        status: DatabaseStatus | None = None,
        upto: Position | None = None,
        witnesses: Collection[Witness] = (),
    ) -> Probe:
        """Look for events in all feeds that can be read.

        :param after: feed to position
        :param status: with which the lineage is judged
        :param upto: the cut; None takes the newest position
        :param witnesses: by which positions of before are judged
        :raises CdcPermissionError: if what is common to all feeds cannot be read
        """

    def recheck(self, after: Mapping[str, Position]) -> None:
        """Look again at what could not be read.

        :param after: feed to position
        """

    def ddl(self, feeds: Iterable[Feed]) -> list[DdlChange]:
        """The DDL on the tables of these feeds, in order."""

    def limit(
        self, after: Mapping[str, Position], upto: Position, *, transactions: int | None, rows: int | None
    ) -> Position:
        """The cut that admits at most so many transactions with events, and change rows, of all windows together.

        It is never inside a transaction, and always admits one. ``limited`` asks it, and only a source that can say it.

        :param after: feed to the position from which it is read
        """

    def position_before(self, moment: datetime.datetime, timezone: str | None) -> Position:
        """The position before the first commit of a moment or later. Only a source that replays is asked.

        :param moment: with a zone
        :param timezone: IANA zone of the server's clock; None where the DAG author says none
        :raises IntervalError: if it is not known, or not reached yet
        """

    def has_at_most(self, after: Mapping[str, Position], upto: Position, rows: int) -> bool:
        """Whether all windows together have at most so many change rows; False where that costs more than a look.

        :param after: feed to the position from which it is read
        """


class CdcSource:
    """Change data capture. A change table that is gone (error 208) or may not be read (229) holds up no other."""

    kind: type[Feed] = CaptureInstance

    def __init__(self, hook: MsSqlCdcHook) -> None:
        self.hook = hook
        self.unreadable: dict[str, CdcPermissionError] = {}
        self.found_more = False

    def discover(self, survey: Survey) -> Mapping[TableName, Sequence[Feed]]:
        """The capture instances of each table that has one, oldest first."""
        found = {table.name: survey.instances_of(table) for table in survey.matches.tables}
        return {name: instances for name, instances in found.items() if instances}

    def probe(
        self,
        after: Mapping[str, Position],
        *,
        status: DatabaseStatus | None = None,
        upto: Position | None = None,
        witnesses: Collection[Witness] = (),
    ) -> Probe:
        """Probe all change tables that can be read: one statement, but for the first time that one cannot."""
        self.found_more = False
        positions = {name: Lsn.of(at) for name, at in after.items() if name not in self.unreadable}
        try:
            return self._probe(positions, status, upto, witnesses)
        except CdcPermissionError as error:
            if error.number not in (INVALID_OBJECT, SELECT_DENIED) or not positions:
                raise
        # without what is common to all tables, such as after CDC was switched off, it is not their fault
        self.hook.probe({})
        faulty = self._faulty(positions)
        rest = {name: position for name, position in positions.items() if name not in faulty}
        probe = self._probe(rest, status, upto, witnesses)
        for name, reason in faulty.items():
            log.warning("capture instance %s is left out: %s", name, reason)
        self.unreadable.update(faulty)
        self.found_more = bool(faulty)
        return probe

    def _probe(
        self,
        after: Mapping[str, Lsn],
        status: DatabaseStatus | None,
        upto: Position | None,
        witnesses: Collection[Witness],
    ) -> Probe:
        cut = None if upto is None else Lsn.of(upto)
        # a run may have tables of other sources, with positions of another kind
        lsns = {witness.lsn for witness in witnesses if isinstance(witness.lsn, Lsn)}
        found = self.hook.probe(after, upto=cut, witnesses=lsns)
        return Probe(
            found.cut,
            found.newest,
            {object_id: readable_from(low) for object_id, low in found.min_lsns.items()},
            found.witness,
            LogHistory(
                status.max_lsn if status else found.cut,
                found.min_mapped_lsn,
                found.mapped,
                status.recovery_fork_guid if status else None,
            ),
        )

    def recheck(self, after: Mapping[str, Position]) -> None:
        """Look again at what could not be read."""
        self.found_more = False
        self.unreadable = self._faulty({name: Lsn.of(after[name]) for name in self.unreadable if name in after})

    def _faulty(self, after: Mapping[str, Lsn]) -> dict[str, CdcPermissionError]:
        found = {}
        for name, position in after.items():
            try:
                self.hook.probe({name: position})
            except CdcPermissionError as error:
                found[name] = error
        return found

    def ddl(self, feeds: Iterable[Feed]) -> list[DdlChange]:
        """The rows of ``cdc.ddl_history``."""
        return self.hook.ddl_history([feed for feed in feeds if isinstance(feed, CaptureInstance)])

    def limit(
        self, after: Mapping[str, Position], upto: Position, *, transactions: int | None, rows: int | None
    ) -> Position:
        """The commit LSN up to which the limits go: one statement for each of them."""
        positions, cut = {name: Lsn.of(at) for name, at in after.items()}, Lsn.of(upto)
        if transactions is not None:
            cut = self.hook.cut_by_transactions(positions, cut, transactions)
        if rows is not None:
            cut = self.hook.cut_by_rows(positions, cut, rows)
        return cut

    def position_before(self, moment: datetime.datetime, timezone: str | None) -> Position:
        """Where the log reaches a moment."""
        return self.hook.position_before(moment, self.hook.server_zone(timezone))

    def has_at_most(self, after: Mapping[str, Position], upto: Position, rows: int) -> bool:
        """Whether the change tables have at most so many rows: one statement, which counts no further."""
        return self.hook.count_rows({name: Lsn.of(at) for name, at in after.items()}, Lsn.of(upto), rows) <= rows


def discover(
    sources: Sequence[ChangeSource], survey: Survey, named: Mapping[TableName, str]
) -> dict[TableName, list[Sequence[Feed]]]:
    """The feeds of each table that has some, by source, in the order of these.

    :param named: the source of each table, one of ``SOURCES``
    """
    found: dict[TableName, list[Sequence[Feed]]] = {}
    for source in sources:
        tables = tuple(table for table in survey.matches.tables if may_read(named[table.name], source.kind))
        mine = dataclasses.replace(survey, matches=dataclasses.replace(survey.matches, tables=tables))
        for name, feeds in source.discover(mine).items():
            found.setdefault(name, []).append(feeds)
    return found


def limited(
    source: ChangeSource,
    after: Mapping[str, Position],
    upto: Position,
    *,
    transactions: int | None,
    rows: int | None,
) -> Position:
    """The cut that the limits allow: all where there are none, or where the source cannot end a window early.

    :param after: feed to the position from which it is read
    """
    if not after or (transactions is None and rows is None) or not source.kind.CAN.takes_limits:
        return upto
    return source.limit(after, upto, transactions=transactions, rows=rows)


def check_readable(source: ChangeSource, after: Mapping[str, Position]) -> None:
    """Refuse to look on where nothing can be seen.

    :param after: feed to position
    :raises CdcPermissionError: if none of these feeds can be read
    """
    if after and after.keys() <= source.unreadable.keys():
        raise source.unreadable[min(after)]
