"""The capture instance that has columns which a table's sinks are to get, and the T-SQL that makes it."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_mssql_cdc.core.feed import CaptureInstance, Feed
from airflow_provider_mssql_cdc.core.rights import copying
from airflow_provider_mssql_cdc.core.table import literal, quote

KIND = "proposal"
"""Of the events that tell of a proposal, among those of the operations asset."""

_LONGEST_NAME = 100
_MOST_INSTANCES = 2
_OWN = re.compile(r"__mc\d+$")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A column for which people were told to make a capture instance.

    :param since: when that was first told
    :param instance: name of the one that is to be made; None where the table had two instances
    """

    column: str
    since: datetime.datetime
    instance: str | None = None
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Making:
    """A capture instance that a load is about to make.

    :param instance: its name
    :param columns: that it is made for
    :param since: when that was noted
    """

    instance: str
    columns: tuple[str, ...]
    since: datetime.datetime
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class NewInstance:
    """A capture instance that is to be made beside another one.

    :param beside: the one that is read, whose role, index, filegroup and other settings it gets
    :param name: None where the table has two instances already
    :param columns: that it captures
    :param wanted: those that no instance has
    :param others: the names of the table's other instances
    """

    beside: CaptureInstance
    name: str | None
    columns: tuple[str, ...]
    wanted: tuple[str, ...]
    others: tuple[str, ...] = ()

    def advice(self, user: str) -> str:
        """What a person is to do.

        :param user: database user of the login that loads
        """
        listed, source = ", ".join(self.wanted), self.beside.source
        if self.name is not None:
            return f"to load {listed}, run in this database, as db_owner: {self.statement(user)}"
        others = ", ".join(self.others)
        return (
            f"to load {listed}, a capture instance is to be made that has them, and the table has two already: "
            f"{self.beside.name}, which this load reads, and {others}. Once no load reads {others} any more "
            "(`mssql-cdc instances list`), `mssql-cdc instances drop` makes room, or EXEC sys.sp_cdc_disable_table "
            f"@source_schema = {literal(source.schema)}, @source_name = {literal(source.table)}, @capture_instance = "
            f"{literal(others)}; what it holds is lost."
        )

    def proposals(self, before: Sequence[Proposal], now: datetime.datetime) -> tuple[Proposal, ...]:
        """What people are told, for each column since when.

        :param before: what they were told before
        """
        known = {each.column: each for each in before}
        each = (known.get(column) or Proposal(column, now) for column in self.wanted)
        return tuple(dataclasses.replace(one, instance=self.name) for one in each)

    def told(self, user: str) -> dict[str, Any]:
        """The proposal as the operations asset has it.

        :param user: database user of the login that loads
        """
        return {
            "table": str(self.beside.source),
            "columns": list(self.wanted),
            "instance": self.name,
            "statement": self.statement(user) if self.name is not None else None,
            "held_by": [] if self.name is not None else [self.beside.name, *self.others],
            "advice": self.advice(user),
        }

    def statement(self, user: str) -> str:
        """The T-SQL that makes it, which may be run twice.

        :param user: who is to read its change table
        """
        assert self.name is not None
        feed = self.beside
        given = {
            "source_schema": literal(feed.source.schema),
            "source_name": literal(feed.source.table),
            "capture_instance": literal(self.name),
            "role_name": literal(feed.role) if feed.role is not None else "NULL",
            "supports_net_changes": str(int(feed.supports_net_changes)),
            "captured_column_list": literal(", ".join(map(quote, self.columns))),
            **({"index_name": literal(feed.index_name)} if feed.index_name is not None else {}),
            **({"filegroup_name": literal(feed.filegroup)} if feed.filegroup is not None else {}),
            "allow_partition_switch": str(int(feed.partition_switch)),
        }
        called = ", ".join(f"@{parameter} = {value}" for parameter, value in given.items())
        return f"IF NOT EXISTS ({self._row}) EXEC sys.sp_cdc_enable_table {called}; {self.grants(user)}"

    def grants(self, user: str) -> str:
        """The T-SQL that lets those read its change table who read that of the other one, whole or single columns, and
        denies it to those who are denied that. It may be run twice.

        Its rows name those of whose denials and rights on single columns something could not be copied: what is on
        columns that it does not have, and what is the own of who runs it.

        :param user: who is to read it, too, where he is not denied the other one
        """
        copied = copying(self.beside.change_table, self.change_table, user)
        # of the same name there may be one of another table, and where making it failed there is none
        return f"IF EXISTS ({self._row}) {copied}"

    @property
    def _row(self) -> str:
        """The T-SQL that finds it."""
        assert self.name is not None
        source = f"{quote(self.beside.source.schema)}.{quote(self.beside.source.table)}"
        return (
            f"SELECT 1 FROM cdc.change_tables WHERE capture_instance = {literal(self.name)} "
            f"AND source_object_id = OBJECT_ID({literal(source)})"
        )

    @property
    def change_table(self) -> str:
        """The name of its change table in T-SQL."""
        return f"[cdc].{quote(f'{self.name}_CT')}"


def made_instance(feeds: Sequence[Feed]) -> NewInstance | None:
    """The instance that was made beside another one as a load asks for it, as its name says; None where there is none.

    :param feeds: the table's
    """
    newest = max((each for each in feeds if isinstance(each, CaptureInstance)), key=_age, default=None)
    return None if newest is None or not _OWN.search(newest.name) else instance_beside(feeds, newest.name)


def instance_beside(feeds: Sequence[Feed], name: str) -> NewInstance | None:
    """An instance that is there, as it was made beside an older one; None where one of the two is not there.

    :param feeds: the table's
    :param name: of the instance
    """
    instances = sorted((each for each in feeds if isinstance(each, CaptureInstance)), key=_age)
    made = next((each for each in instances[1:] if each.name == name), None)
    if made is None:
        return None
    beside = instances[0]
    had = {column.column_id for column in beside.columns}
    columns = [column for column in made.columns if not column.dropped]
    wanted = tuple(column.name for column in columns if column.column_id not in had)
    return NewInstance(beside, made.name, tuple(column.name for column in columns), wanted)


def _age(instance: CaptureInstance) -> tuple[datetime.datetime, int]:
    return instance.create_date, instance.object_id


def new_instance(
    feeds: Sequence[Feed], feed: Feed, wanted: tuple[str, ...], taken: Callable[[], Collection[str]] = tuple
) -> NewInstance | None:
    """The instance that has the columns which sinks are to get and no instance has; None where there are none.

    :param feeds: the table's
    :param feed: that is read
    :param wanted: columns that sinks would get by it
    :param taken: the names that other tables' instances have, or are to get: a database has each name once
    """
    # where a newer one has them, the load goes over to it by itself
    captured = {column.name for each in feeds for column in each.columns if not column.dropped}
    wanted = tuple(name for name in wanted if name not in captured)
    if not isinstance(feed, CaptureInstance) or not wanted:
        return None
    columns = (*(column.name for column in feed.columns if not column.dropped), *wanted)
    found = NewInstance(feed, None, columns, wanted, tuple(each.name for each in feeds if each is not feed))
    if len(feeds) >= _MOST_INSTANCES:
        return found
    names = {name.casefold() for name in (*(each.name for each in feeds), *taken())}
    return dataclasses.replace(found, name=_free_name(feed, names))


def _free_name(feed: Feed, taken: set[str]) -> str:
    stem = f"{feed.source.schema}_{feed.source.table}"
    names = (f"{stem[: _LONGEST_NAME - len(suffix)]}{suffix}" for suffix in (f"__mc{n}" for n in itertools.count(2)))
    return next(name for name in names if name.casefold() not in taken)
