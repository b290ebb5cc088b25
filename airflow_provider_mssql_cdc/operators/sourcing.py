"""By what the tables of a run are read: which source each names, what is switched on, and what is told of the rest."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from airflow_provider_mssql_cdc.core.change_tracking import TrackedTable
from airflow_provider_mssql_cdc.core.changes import NET_MASK
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint
from airflow_provider_mssql_cdc.core.copy_wanted import READ_COMMITTED
from airflow_provider_mssql_cdc.core.database import DatabaseStatus, SourceTable, Survey
from airflow_provider_mssql_cdc.core.entry_values import AUTO, CDC, CT
from airflow_provider_mssql_cdc.core.exceptions import (
    CdcDisabledError,
    ChangeTrackingDisabledError,
    FeedError,
    MsSqlCdcError,
    ParameterError,
)
from airflow_provider_mssql_cdc.core.feed import Feed
from airflow_provider_mssql_cdc.core.shapes import HISTORY
from airflow_provider_mssql_cdc.core.source_choice import feeds_to_read, refused_for
from airflow_provider_mssql_cdc.core.table import TableName, literal, quote
from airflow_provider_mssql_cdc.core.table_options import TableOptions
from airflow_provider_mssql_cdc.hooks.change_source import CdcSource, ChangeSource
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.hooks.tracking_source import TrackingSource
from airflow_provider_mssql_cdc.operators.request import Request

log = logging.getLogger(__name__)

SKIPPING = 'on_disabled="skip" leaves the table out.'


def sources_for(hook: MsSqlCdcHook, named: Collection[str]) -> Sequence[ChangeSource]:
    """What tables may be read from, the preferred one first.

    :param named: the sources that a run and its entries name
    """
    captured = [] if {*named} == {CT} else [CdcSource(hook)]
    return (*captured, *([] if {*named} == {CDC} else [TrackingSource(hook)]))


def sources_named(request: Request, survey: Survey) -> dict[TableName, str]:
    """The source that each matched table names; that of the run where two entries decide, which fails it anyway."""
    found = {table.name: request.defaults.source for table in survey.matches.tables}
    for name in found:
        with suppress(ParameterError):
            found[name] = request.deciding(name, survey.matches.by[name]).source
    return found


def by_source(
    sources: Sequence[ChangeSource], feeds: Mapping[TableName, Sequence[Feed]], status: DatabaseStatus
) -> Iterator[tuple[ChangeSource, dict[TableName, Sequence[Feed]]]]:
    """The sources that have tables, with these; without any table the first one alone, which tells how far it is.

    :param feeds: of the tables that can be planned for
    """
    for source in sources:
        mine = {name: group for name, group in feeds.items() if isinstance(group[0], source.kind)}
        is_on = status.cdc_enabled or not source.kind.CAN.captured
        if mine or (not feeds and source is sources[0] and is_on):
            yield source, mine


def told_of_rights(source: ChangeSource) -> list[str]:
    """What a source does not find out without a right that the login lacks, for people."""
    return source.told_of_rights() if isinstance(source, TrackingSource) else []


def enable(
    hook: MsSqlCdcHook,
    survey: Survey,
    found: Collection[TableName],
    named: Mapping[TableName, str],
    sources: Iterable[ChangeSource],
    request: Request,
) -> dict[TableName, MsSqlCdcError] | None:
    """Switch on what the tables without a feed name; why that failed, None where there is none.

    :param found: those that have a feed
    :param named: the source of each table
    """
    left = [table for table in survey.matches.tables if table.name not in found]
    # a table that has an instance which the login does not see has change data capture
    captured = [table.name for table in left if named[table.name] == CDC and not table.tracked]
    tracked = [table.name for table in left if named[table.name] == CT]
    failures: dict[TableName, MsSqlCdcError] = {}
    if captured:
        hook.enable_database()
    for name in captured:
        log.info("enabling change data capture for %s", name)
        try:
            hook.enable_table(name)
        except MsSqlCdcError as error:
            failures[name] = error
    for source in sources if tracked else ():
        if isinstance(source, TrackingSource):
            masked = [name for name in tracked if _shows_masks(request, survey, name)]
            failures |= source.enable(tracked, request.ct_retention, masked)
    return failures if captured or tracked else None


def _shows_masks(request: Request, survey: Survey, table: TableName) -> bool:
    """Whether a history of the table says which columns its updates named."""
    with suppress(ParameterError):
        options = request.deciding(table, survey.matches.by[table])
        return HISTORY in options.shapes and options.history.changes == NET_MASK
    return False


def settled(
    name: TableName,
    found: Sequence[Sequence[Feed]],
    options: TableOptions,
    checkpoint: Checkpoint | None,
    request: Request,
) -> Sequence[Feed]:
    """The feeds by which a table is read.

    :param found: by source, the preferred one first
    :raises FeedError: if the one by which it was loaded has none any more, or cannot do what is asked for
    """
    feeds = feeds_to_read(name, found, options.source, checkpoint)
    limits = request.max_transactions is not None or request.max_rows is not None
    if not feeds[0].CAN.captured and (why := refused_for(feeds[0], options, limits=limits)):
        raise FeedError(f"{'; '.join(why)}.", table=str(name), advice="Name other options in the table's entry.")
    if request.isolation == READ_COMMITTED:
        return [dataclasses.replace(f, snapshots=False) if isinstance(f, TrackedTable) else f for f in feeds]
    return feeds


def without_feed(
    table: SourceTable, status: DatabaseStatus, source: str
) -> CdcDisabledError | ChangeTrackingDisabledError:
    """The error of a table that cannot be read by the source that it names."""
    if source != CT and table.tracked:
        return CdcDisabledError(
            f"{status.user!r} sees none of its capture instances.",
            table=str(table.name),
            advice=f"GRANT SELECT ON SCHEMA::[cdc] TO {quote(status.user)}; lets it see them and their change tables; "
            f"{SKIPPING}",
        )
    capture = (
        f"EXEC sys.sp_cdc_enable_table @source_schema = {literal(table.name.schema)}, "
        f"@source_name = {literal(table.name.table)}, @role_name = NULL"
    )
    track = f"ALTER TABLE {table.name.quoted} ENABLE CHANGE_TRACKING;"
    if source == AUTO:
        return CdcDisabledError(
            "it has neither a capture instance nor Change Tracking.",
            table=str(table.name),
            advice=f"Switch one of them on, which source={AUTO!r} never does: {capture}, or {track} {SKIPPING}",
        )
    if source == CT:
        return ChangeTrackingDisabledError(
            "Change Tracking is off for this table.",
            table=str(table.name),
            advice=f'{track} switches it on, where it is on for the database; on_disabled="enable" does both, '
            f"{SKIPPING}",
        )
    return CdcDisabledError(
        "change data capture is off for this table.",
        table=str(table.name),
        advice=f'{capture} switches it on; on_disabled="enable" does that, {SKIPPING}',
    )
