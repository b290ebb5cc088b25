"""The capture instance that has columns which a table's sinks are to get, and the T-SQL that makes it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.feed import CaptureInstance, Feed
from airflow_provider_mssql_cdc.core.table import literal, quote

_LONGEST_NAME = 100
_MOST_INSTANCES = 2
_OWNER = "dbo"


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
        text = (
            f"IF NOT EXISTS (SELECT 1 FROM cdc.change_tables WHERE capture_instance = {literal(self.name)}) "
            f"EXEC sys.sp_cdc_enable_table {called};"
        )
        grant = self.grant(user)
        return f"{text} {grant}" if grant is not None else text

    def grant(self, user: str) -> str | None:
        """The T-SQL that lets a user read its change table; None for one who may read all."""
        if not user or user.casefold() == _OWNER:
            return None
        return f"GRANT SELECT ON [cdc].{quote(f'{self.name}_CT')} TO {quote(user)};"


def new_instance(feeds: Sequence[Feed], feed: Feed, wanted: tuple[str, ...]) -> NewInstance | None:
    """The instance that has the columns which sinks are to get and no instance has; None where there are none.

    :param feeds: the table's
    :param feed: that is read
    :param wanted: columns that sinks would get by it
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
    return dataclasses.replace(found, name=_free_name(feed, {each.name.casefold() for each in feeds}))


def _free_name(feed: Feed, taken: set[str]) -> str:
    stem = f"{feed.source.schema}_{feed.source.table}"
    names = (f"{stem[: _LONGEST_NAME - len(suffix)]}{suffix}" for suffix in (f"__mc{n}" for n in range(2, 5)))
    return next(name for name in names if name.casefold() not in taken)
