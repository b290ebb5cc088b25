"""The changes of a window as a DataFrame, for a Spark job or a notebook of one's own."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_provider_mssql_cdc.core import catalog
from airflow_provider_mssql_cdc.core.changes import ALL_OLD, HistoryOptions, check_changes, check_history_key
from airflow_provider_mssql_cdc.core.choice import select
from airflow_provider_mssql_cdc.core.columns import map_columns
from airflow_provider_mssql_cdc.core.exceptions import CaptureLagError, CdcDisabledError, GapError, ParameterError
from airflow_provider_mssql_cdc.core.feed import CaptureInstance, DdlChange
from airflow_provider_mssql_cdc.core.key import choose_key
from airflow_provider_mssql_cdc.core.lineage import check_not_restored
from airflow_provider_mssql_cdc.core.position import Lsn, Window, is_gap
from airflow_provider_mssql_cdc.core.schema_change import check_ddl
from airflow_provider_mssql_cdc.core.selection import salt_check
from airflow_provider_mssql_cdc.core.shapes import event_columns
from airflow_provider_mssql_cdc.core.spec import SourceSpec, TableSpec
from airflow_provider_mssql_cdc.core.table import TableName, TableSchema, literal, lsn_literal
from airflow_provider_mssql_cdc.core.table_options import Choice, read_entries
from airflow_provider_mssql_cdc.spark import files
from airflow_provider_mssql_cdc.spark.decide import gap
from airflow_provider_mssql_cdc.spark.files import Parquet, write_rows
from airflow_provider_mssql_cdc.spark.jdbc import Credentials, Jdbc
from airflow_provider_mssql_cdc.spark.session import table_session
from airflow_provider_mssql_cdc.spark.shapes.fold import column
from airflow_provider_mssql_cdc.spark.shapes.history import history_events
from airflow_provider_mssql_cdc.spark.shapes.table import TableRows
from airflow_provider_mssql_cdc.spark.sources.base import SourceState
from airflow_provider_mssql_cdc.spark.sources.catalog import read_parts
from airflow_provider_mssql_cdc.spark.sources.cdc.table import CapturedTable

_INSTANCE = (
    "name STRING, source_object_id INT, source_schema STRING, source_table STRING, created STRING, start_lsn BINARY"
)


def read_changes(
    spark: SparkSession,
    window: Window | tuple[str, str],
    *,
    table: str,
    url: str,
    folder: str,
    changes: str = ALL_OLD,
    user: str | None = None,
    password: str | None = None,
    options: Mapping[str, str] | None = None,
    capture_instance: str | None = None,
    key: Sequence[str] = (),
    columns: Sequence[str] = (),
    where: Sequence[Sequence[Any]] = (),
    rename: Mapping[str, str] | None = None,
    mask: Mapping[str, str] | None = None,
    salt: str | None = None,
    timezone: str | None = None,
    connections: int = 8,
    slice_rows: int = 200_000,
    fetch_size: int = 10_000,
) -> DataFrame:
    """Read a table's changes in one of five ways.

    They are read once, from the change table itself, by the reader of the load, and kept in ``folder``: the DataFrame
    reads them from there however often it is used, and the source is not asked again. Net changes are computed by
    Spark, so that the capture instance need not support them.

    The rows hold the captured columns and those of a ``history`` table: ``_op`` (``I``, ``U``, ``D``, ``B`` for the
    values before an update, ``M`` for an insert or update of ``net_merge``), ``_lsn``, ``_command_id``, ``_seqval``,
    ``_seq``, ``_commit_ts``, ``_commit_ts_utc``, ``_changed`` and ``_unknown``. They come in no promised order:
    ``orderBy("_lsn", "_seq")`` is that of the events. Net rows have all of it from the key's last change; their
    ``_changed`` is NULL but for updates of ``net_mask``. They are those of the source's own function, but that keys are
    compared by their values, not by the collation, and a key that was updated in place (trace flag 8207) is two rows.
    What CDC left out of an image and no other image of the window tells is NULL, and named in ``_unknown``.

    :param window: (after, upto]: whole transactions above the first commit LSN, up to the second; as text
        ``0x0000002D00000580001D`` or ``0000002d:00000580:001d``
    :param table: the source table, as ``OBJECT_ID`` reads it: ``sales.orders``
    :param url: ``jdbc:sqlserver://host:port;databaseName=..``, without user and password
    :param folder: path or URL where the rows are kept; must not exist yet, and is the caller's to remove
    :param changes: ``all``, ``all_old`` (with the values before an update), ``net``, ``net_mask`` (with the columns
        that updates changed) or ``net_merge`` (inserts and updates as one kind)
    :param options: further properties of mssql-jdbc connections, such as ``encrypt`` and ``trustServerCertificate``
    :param capture_instance: to be read; by default the newest one of the table that reaches back to the window
    :param key: columns that identify a row, for a table without a key; it serves to fill in LOBs, not for net changes
    :param columns: to be read; by default all
    :param where: conditions that a row must fulfil, as an entry of the load's ``tables`` has them
    :param rename: column to another name
    :param mask: column to ``hash``, ``redact`` or ``drop``, as for the load
    :param salt: of hashes, at least 16 characters
    :param timezone: IANA zone of the server's clock, for ``_commit_ts_utc``, which is NULL without it
    :param connections: JDBC connections open at once
    :param slice_rows: change rows below which the window is read by one connection
    :param fetch_size: rows per round trip
    :raises ParameterError: for ``changes`` that are none of the five, a window of other texts, a password in the URL
    :raises CdcDisabledError: if the table has no such capture instance that the login may see
    :raises KeyRequiredError: for net changes of a table whose key SQL Server does not enforce
    :raises CaptureLagError: if the server shows no changes up to the window's end yet
    :raises GapError: if changes of the window were purged
    :raises SourceRestoredError: if the database was restored meanwhile
    :raises SchemaChangedError: if a captured column was changed within the window
    :raises UnsupportedColumnError: for a captured column that would not arrive unchanged
    :raises SelectionError: for columns that are not there, and what cannot be chosen of a row
    """
    check_changes(changes)
    said = {"columns": columns, "where": where, "rename": rename, "mask": mask}
    (entry,) = read_entries({"table": table, **{n: v for n, v in said.items() if v}}, salted=salt is not None)
    choice = Choice(**(entry.said or {}))
    window = _window(window)
    if "password=" in url.lower():
        raise ParameterError("the url has a password, which Spark may show: give it as password=..")
    session = table_session(spark)
    spec = SourceSpec(server="", database="", jdbc_url=url, options=dict(options or {}), timezone=timezone)
    jdbc = Jdbc(session, spec, Credentials(user, password), fetch_size)
    instance = _instance(jdbc, table, capture_instance, window)
    found, unique = choose_key(instance.source, instance, tuple(key))
    check_history_key(instance.source, HistoryOptions(changes), key=found, unique=unique)
    schema = TableSchema(instance.columns, found)
    check = None if salt is None else salt_check(salt)
    selection = select(instance.source, schema, choice, check=check)
    read = TableSpec(instance.source, instance, schema, (), unique, selection)
    place = folder.rstrip("/")
    of_table = TableRows(read, map_columns(read.name, schema, selection), timezone, f"{place}/staged/resolved")
    try:
        source = CapturedTable(jdbc, read, of_table.mappings, connections=connections, slice_rows=slice_rows, salt=salt)
        before = source.state()
        _check_window(jdbc, read, window, before)
        seen = before.lineage.witnesses()
        staged = source.read([window], f"{place}/staged/events", before_images=True)
        # cleanup raises the mark before it deletes: a mark that is no higher after the read proves that all was there
        state = source.state(seen)
        if is_gap(window.after, state.readable_from):
            raise gap(read, window.after, state.readable_from)
        check_not_restored(read.name, seen, state.lineage)
        rows = history_events(of_table, changes, staged, window, None)
        names = [*(target.name for target in of_table.data_columns), *event_columns(Lsn)]
        kept = write_rows(rows.select(*map(column, names)), f"{place}/changes")
    except GapError as error:
        error.advice = f"Begin the window at {error.readable_from} or later."
        raise
    finally:
        files.remove(session, f"{place}/staged")
    return Parquet(spark, kept.files, kept.schema).rows()


def _window(given: Window | tuple[str, str]) -> Window:
    if isinstance(given, Window):
        return given
    try:
        after, upto = given
        return Window(Lsn.parse(after), Lsn.parse(upto))
    except (ValueError, TypeError) as error:
        raise ParameterError(f"window={given!r}: expected two commit LSNs, the first not above the second.") from error


def _instance(jdbc: Jdbc, table: str, wanted: str | None, window: Window) -> CaptureInstance:
    rows = jdbc.rows(
        "SELECT ct.capture_instance AS name, ct.source_object_id, s.name AS source_schema, t.name AS source_table,"
        " CONVERT(varchar(23), ct.create_date, 121) AS created, ct.start_lsn, ct.object_id"
        " FROM cdc.change_tables AS ct JOIN sys.tables AS t ON t.object_id = ct.source_object_id"
        " JOIN sys.schemas AS s ON s.schema_id = t.schema_id"
        f" WHERE ct.source_object_id = OBJECT_ID({literal(table)})"
        + (f" AND ct.capture_instance = {literal(wanted)}" if wanted else ""),
        f"{_INSTANCE}, object_id INT",
    )
    parts = read_parts(jdbc, catalog.columns(f"= OBJECT_ID({literal(table)})")) if rows else []
    instances = [
        instance
        for row in rows
        if (
            instance := catalog.instance(
                row["name"],
                TableName(row["source_schema"], row["source_table"]),
                row["source_object_id"],
                datetime.datetime.fromisoformat(row["created"]),
                row["start_lsn"],
                [part for part in parts if part["object_id"] == row["object_id"]],
            )
        )
        is not None
    ]
    if not instances:
        raise CdcDisabledError(
            f"there is no capture instance {wanted or ''}".rstrip() + " of it that the login may see.",
            table=table,
            advice="Enable one with sys.sp_cdc_enable_table, or GRANT SELECT ON SCHEMA::[cdc].",
        )
    by_age = sorted(instances, key=lambda instance: (instance.create_date, instance.object_id))
    reaching = [instance for instance in by_age if not is_gap(window.after, instance.readable_from)]
    return reaching[-1] if reaching else by_age[0]


def _check_window(jdbc: Jdbc, table: TableSpec, window: Window, state: SourceState) -> None:
    """Refuse a window that cannot be read whole."""
    if state.newest is None or state.newest < window.upto:
        raise CaptureLagError(
            f"the server shows changes up to {state.newest or 'nothing'}, and the window ends at {window.upto}.",
            table=str(table.name),
            advice="Wait for the capture, or end the window there.",
        )
    if is_gap(window.after, state.readable_from):
        raise gap(table, window.after, state.readable_from)
    rows = jdbc.rows(
        "SELECT ddl_command, ddl_lsn, CONVERT(varchar(23), ddl_time, 121) AS ddl_time, required_column_update"
        f" FROM cdc.ddl_history WHERE object_id = {table.feed.object_id} AND ddl_lsn > {lsn_literal(window.after)}"
        f" AND ddl_lsn <= {lsn_literal(window.upto)}",
        "ddl_command STRING, ddl_lsn BINARY, ddl_time STRING, required_column_update BOOLEAN",
    )
    ddl = [
        DdlChange(
            table.feed.name,
            row["ddl_command"] or "",
            Lsn(bytes(row["ddl_lsn"])),
            datetime.datetime.fromisoformat(row["ddl_time"]) if row["ddl_time"] else None,
            bool(row["required_column_update"]),
        )
        for row in rows
    ]
    check_ddl(
        table.name,
        ddl,
        window.after,
        window.upto,
        advice="Read the changes up to there, and those after it, by windows of their own.",
    )
