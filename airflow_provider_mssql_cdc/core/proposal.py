"""The T-SQL that lets a capture instance have columns which a table's sinks are to get."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_mssql_cdc.core.adding import Adding, names_of
from airflow_provider_mssql_cdc.core.feed import CaptureInstance, Feed
from airflow_provider_mssql_cdc.core.table import Column, literal, quote

_LONGEST_NAME = 100
_MOST_INSTANCES = 2
_OWNER = "dbo"


def proposed(feeds: Sequence[Feed], feed: Feed, adding: Adding | None, user: str) -> str | None:
    """What a person is to do so that sinks get columns which no capture instance has; None where there are none.

    :param feeds: the table's
    :param feed: that is read
    :param user: database user of the login
    """
    if not isinstance(feed, CaptureInstance) or adding is None:
        return None
    # where a newer one has them, the load goes over to it by itself
    captured = {column.column_id for each in feeds for column in each.columns}
    names = names_of(feed)
    wanted = [c for c in feed.others if c.column_id not in captured and adding.wants(c, names)]
    if not wanted:
        return None
    listed = ", ".join(column.name for column in wanted)
    if len(feeds) >= _MOST_INSTANCES:
        others = ", ".join(each.name for each in feeds if each is not feed)
        return (
            f"to load {listed}, a capture instance is to be made that has them, and the table has two already: "
            f"{feed.name}, which this load reads, and {others}. Once no load reads {others} any more, EXEC "
            f"sys.sp_cdc_disable_table @source_schema = {literal(feed.source.schema)}, @source_name = "
            f"{literal(feed.source.table)}, @capture_instance = {literal(others)}; makes room: what it holds is lost."
        )
    return f"to load {listed}, run in this database, as db_owner: {_statement(feeds, feed, wanted, user)}"


def _statement(feeds: Sequence[Feed], feed: CaptureInstance, wanted: Sequence[Column], user: str) -> str:
    taken = {each.name.casefold() for each in feeds}
    stem = f"{feed.source.schema}_{feed.source.table}"
    number = next(n for n in range(2, len(taken) + 3) if _named(stem, n).casefold() not in taken)
    name = _named(stem, number)
    columns = [column for column in feed.columns if not column.dropped]
    listed = ", ".join(quote(column.name) for column in (*columns, *wanted))
    given = {
        "source_schema": literal(feed.source.schema),
        "source_name": literal(feed.source.table),
        "capture_instance": literal(name),
        "role_name": literal(feed.role) if feed.role is not None else "NULL",
        "supports_net_changes": str(int(feed.supports_net_changes)),
        "captured_column_list": literal(listed),
        **({"index_name": literal(feed.index_name)} if feed.index_name is not None else {}),
        **({"filegroup_name": literal(feed.filegroup)} if feed.filegroup is not None else {}),
        "allow_partition_switch": str(int(feed.partition_switch)),
    }
    called = ", ".join(f"@{parameter} = {value}" for parameter, value in given.items())
    text = (
        f"IF NOT EXISTS (SELECT 1 FROM cdc.change_tables WHERE capture_instance = {literal(name)}) "
        f"EXEC sys.sp_cdc_enable_table {called};"
    )
    if user and user.casefold() != _OWNER:
        text += f" GRANT SELECT ON [cdc].{quote(name + '_CT')} TO {quote(user)};"
    return text


def _named(stem: str, number: int) -> str:
    suffix = f"__mc{number}"
    return stem[: _LONGEST_NAME - len(suffix)] + suffix
