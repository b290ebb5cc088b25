"""The load operator: moves every table of a group to one common cut, with one Spark application."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from airflow.providers.common.compat.sdk import AssetAlias

from airflow_provider_mssql_cdc.core.change_tracking import DEFAULT_RETENTION
from airflow_provider_mssql_cdc.core.changes import OPERATIONS, HistoryOptions
from airflow_provider_mssql_cdc.core.entry_values import read_on_gap, read_timeout
from airflow_provider_mssql_cdc.core.exceptions import ParameterError
from airflow_provider_mssql_cdc.core.initial import COPY, WITH_COPY, Initial, check_initial
from airflow_provider_mssql_cdc.core.interval import Edge, check_edges, edges
from airflow_provider_mssql_cdc.core.lag import MAX_LAG
from airflow_provider_mssql_cdc.core.selection import salt_check
from airflow_provider_mssql_cdc.core.shapes import HISTORY, check_shapes
from airflow_provider_mssql_cdc.core.source_choice import check_served
from airflow_provider_mssql_cdc.core.table_entry import TableEntry
from airflow_provider_mssql_cdc.core.table_options import (
    Entry,
    TableOptions,
    check_entries,
    is_said,
    read_entries,
    shapes_said,
)
from airflow_provider_mssql_cdc.core.target import TABLE_NAME, Target, check_template
from airflow_provider_mssql_cdc.hooks.parameters import AUTO, check_literals, excluded, is_literal, lag_allowed, seconds
from airflow_provider_mssql_cdc.operators.load_run import OPERATIONS_ALIAS, LoadRun
from airflow_provider_mssql_cdc.operators.load_values import check_values
from airflow_provider_mssql_cdc.operators.request import COPY_KEEP, Request


class MsSqlCdcLoadOperator(LoadRun):
    """
    Load the changes of SQL Server tables, up to one common position, into a lakehouse.

    A run without changes starts no Spark. A failing table does not hold up the others: they are loaded and their
    checkpoints moved before the task fails. Every run can be killed anywhere and repeated.

    :param tables: patterns such as ``sales.orders`` or ``sales.*``, where a bare name means the default schema; and
        mappings (``core.table_entry.TableEntry``) with a pattern as ``table`` and what is to hold for it alone. An
        entry without ``*`` wins over one with it, as a whole (templated)
    :param target: ``iceberg://catalog/namespace``, ``delta://catalog/namespace``, ``delta+<URL of a folder>`` for Delta
        tables in a folder, ``parquet+file://<folder>`` for histories in plain files, or
        ``postgresql://connection_id/schema`` by an Airflow connection of type ``postgres`` (templated)
    :param shapes: ``mirror`` (the current rows), ``history`` (every event), ``scd2`` (one version of a row for each
        transaction that changed it) and ``transactions`` (one row for each transaction, with the number of its events)
    :param deletes: what a mirror does with deleted rows: ``hard`` (they go), ``soft`` (they stay, with the time of the
        delete in ``_deleted_at``) or ``ignore`` (they stay as they were)
    :param changes: what a history holds: ``all_old`` (every change, and the values before updates), ``all``, or what
        the changes of a window come to for each key: ``net``, ``net_mask`` (with the columns that updates changed) and
        ``net_merge`` (inserts and updates as one kind)
    :param history_form: ``events`` (a row for each image) or ``wide`` (a record for each change, with the values before
        and after it; without the rows of before the first load)
    :param operations: kinds of changes that a history holds: some of ``insert``, ``update``, ``delete``
    :param initial: with what a history and ``transactions`` begin: ``copy`` (the rows of the table, where the shape has
        such), ``earliest`` (all changes that the change table still has), ``latest`` (those behind the first run's
        cut), a commit LSN (those behind it), or a time with a zone (those committed then and later) (templated)
    :param upto: the cut, from ``MsSqlCdcSensor``'s output; without it the newest position is taken once and kept for
        the task's retries (templated)
    :param mssql_conn_id: Airflow connection of type ``mssql``
    :param exclude: patterns of tables to leave out (templated)
    :param table_name: name of the target table, with ``{schema}`` and ``{table}``; ``history`` adds ``_history``
    :param table_properties: for tables that the load creates: properties of Iceberg or Delta tables
    :param salt_conn_id: Airflow connection whose password is the salt of hashes
    :param allow_masked: load masks in place of values, and the rows that a security policy shows, where the login reads
        no more; without it such a table fails
    :param source: by what a table is read: ``cdc`` (change data capture), ``ct`` (Change Tracking: net changes), or
        ``auto`` (by change data capture where it has that, else by Change Tracking). It keeps to the one by which it
        was loaded
    :param on_disabled: what to do with a matched table that its source does not capture or track: ``fail``, ``skip`` or
        ``enable``, which never concerns one of ``source="auto"``
    :param ct_retention: for how long a database for which ``enable`` switches Change Tracking on keeps changes (seconds
        or timedelta)
    :param on_gap: what to do when changes were purged before they were loaded: ``fail``; ``copy`` (the table is copied
        anew); ``ct`` (of a table that Change Tracking tracks, too, the rows are read that it says to have changed
        since); or ``["ct", "copy"]``: a copy where Change Tracking cannot tell
    :param on_schema_change: what to do when the source table has got a column, or lost one: ``warn`` (go on without the
        new one, and with NULL in place of the other), ``fail``, ``propose`` (as ``warn``, with the T-SQL that lets a
        capture instance have the new one, until there is one that has it; then its values are filled in and it is
        loaded), or ``evolve`` (the same, and the load makes that instance). With the last two targets follow a type
        that their columns hold; any other change of a type fails
    :param fill: what becomes of a new column in the rows that targets have: ``copy`` (a copy fills it, and all shows at
        once), or ``none`` (it is NULL there until the row changes, and no row is copied)
    :param history_fill: which rows get an event ``R`` in a history then: ``changed`` (of which the newest image says
        something else), ``all`` or ``none``
    :param incompatible_types: what becomes of a type that they do not hold: ``fail``, ``new_column`` (its values go
        into a column of their own beside the old one), or ``string`` (they go on as text, in one where it is no text)
    :param dropped_columns: ``keep`` (what they have of a column that the source drops stays, NULL from there on) or
        ``drop`` (they drop it, too, at the DDL)
    :param widen_list: ``evolve`` makes an instance beside one that leaves out columns on purpose, too
    :param propose_timeout: how long a person has to run what ``propose`` tells, from the first run that told it on
        (seconds or timedelta); then the table fails until it was run. None waits for ever
    :param admin_conn_id: Airflow connection of a login that may make capture instances (db_owner), for ``evolve``; by
        default ``mssql_conn_id``
    :param enable_lock_timeout: how long making one waits for transactions that use the table, and keeps all others
        waiting behind (seconds or timedelta); the next run tries again
    :param server_timezone: IANA zone of the server's clock, needed for intervals and for ``_commit_ts_utc``, unless the
        server says that it runs in UTC (Azure SQL Database, SQL Server 2022 and later)
    :param max_transactions: load at most that many transactions with events, and at least one
    :param max_rows: load at most that many change rows, but never a part of a transaction
    :param small_window: a run of at most that many change rows, and without a copy, gets a driver that starts quickly
        (``-XX:TieredStopAtLevel=1 -XX:+UseSerialGC``), in local and client mode, unless somebody sets options of Java;
        0 leaves it as it is
    :param capture_timeout: how long a first load waits for the capture to pass the end of its copy
    :param max_idle: seconds or timedelta after which a sink that failed for good is tried again; until then it is left
        alone, unless its capture instance or schema changes, or the task is cleared or its run started by hand. Give
        it the value that the sensor has; by default the smaller of six hours and a tenth of the retention
    :param max_lag: how old, by the server's clock, the newest captured commit and the newest log scan may be before the
        capture is late
    :param on_lag: what to do then: ``warn`` in the log and the summary, or ``fail`` after all that is there was loaded
    :param replay: write a past interval into ``history`` once more; moves no checkpoint. It fails, and waits for its
        next try, until the capture and the history have reached the interval's end: give the task ``retries``
    :param interval: (start, end) to replay, as ISO 8601 text or datetimes, both with a zone; or two commit LSNs, of
        which the first is left out; by default the run's data interval (templated)
    :param target_suffix: with ``replay``: build new tables with this suffix, each of one interval, as with
        ``"_{{ ds_nodash }}"`` (templated)
    :param work_dir: folder or URL that Airflow and Spark both read, for job spec, receipt and staged rows; by default
        ``mssql_cdc`` in the Airflow home, which suits local and client mode (templated)
    :param connections: JDBC connections open at once
    :param tables_at_once: tables loaded side by side
    :param slice_rows: change rows below which a window is read by one connection
    :param copy_rows: rows of the first chunks of a copy, at least. Chunks that were read need not be read again
    :param copy_chunk_seconds: that a chunk is to take: later ones have more rows, or less. None leaves them as they are
    :param copy_seconds: how long a run copies, over all tables, once all changes are loaded; the next run goes on with
        what is left. ``"auto"`` is half of the schedule's interval, 1 to 10 minutes; without a schedule, or with
        None, a run copies to the end. A sink has nothing of a copy before it is whole
    :param copy_rows_per_second: that copies read at most, over all tables of a run; None is without limit
    :param throttle_lag: copies wait while the capture is later than this (seconds or timedelta), as its newest commit
        and its log scans say; where the login cannot see scans, a quiet database looks late after about five minutes.
        None goes on however late it is. One chunk is read in each run
    :param copy_keep: how long a copy may be paused, or all that waits for it may fail, seconds or timedelta, at most
        90 days; then it ends, and what waited for it fails
    :param isolation: how copies, and all of Change Tracking, read: ``auto`` (by SNAPSHOT where the database allows it,
        else as ``read_committed``),
        ``snapshot`` (or not at all), or ``read_committed`` (by row versions where the database has
        READ_COMMITTED_SNAPSHOT on, else by locks of the server's own)
    :param fetch_size: rows per round trip

    All parameters of ``SparkSubmitOperator`` are accepted but ``application``, ``application_args`` and
    ``java_class``. ``packages`` defaults to the target's format and the JDBC driver; ``packages=""`` leaves them to the
    cluster. In local and client mode these jars are fetched once for each user and machine, into the folder that the
    environment variable ``MSSQL_CDC_JARS`` names, else into the user's cache.

    :return: the summary, as ``core.summary.Summary`` says; it is pushed as XCom ``summary`` also when tables fail
    """

    template_fields: Sequence[str] = (
        *LoadRun.template_fields,
        "upto",
        "exclude",
        "initial",
        "interval",
        "target_suffix",
    )

    def __init__(
        self,
        *,
        tables: Sequence[str | TableEntry],
        target: str,
        shapes: Sequence[str] = ("mirror",),
        deletes: Literal["hard", "soft", "ignore"] = "hard",
        changes: Literal["all", "all_old", "net", "net_mask", "net_merge"] = "all_old",
        history_form: Literal["events", "wide"] = "events",
        operations: Sequence[str] = OPERATIONS,
        initial: str | datetime.datetime = COPY,
        upto: str | None = None,
        mssql_conn_id: str = "mssql_default",
        exclude: Sequence[str] = (),
        table_name: str = TABLE_NAME,
        table_properties: Mapping[str, str] | None = None,
        salt_conn_id: str | None = None,
        allow_masked: bool = False,
        source: Literal["cdc", "ct", "auto"] = "cdc",
        on_disabled: Literal["fail", "skip", "enable"] = "fail",
        ct_retention: datetime.timedelta | float = DEFAULT_RETENTION,
        on_gap: Literal["fail", "copy", "ct"] | Sequence[str] = "fail",
        on_schema_change: Literal["warn", "fail", "propose", "evolve"] = "warn",
        fill: Literal["copy", "none"] = "copy",
        history_fill: Literal["changed", "all", "none"] = "changed",
        widen_list: bool = False,
        incompatible_types: Literal["fail", "new_column", "string"] = "fail",
        dropped_columns: Literal["keep", "drop"] = "keep",
        propose_timeout: datetime.timedelta | float | None = None,
        admin_conn_id: str | None = None,
        enable_lock_timeout: datetime.timedelta | float = 5.0,
        server_timezone: str | None = None,
        max_transactions: int | None = None,
        max_rows: int | None = None,
        small_window: int = 100_000,
        capture_timeout: datetime.timedelta = datetime.timedelta(minutes=15),
        max_idle: datetime.timedelta | float | None = None,
        max_lag: datetime.timedelta | float = MAX_LAG,
        on_lag: Literal["warn", "fail"] = "warn",
        replay: bool = False,
        interval: tuple[Edge, Edge] | None = None,
        target_suffix: str = "",
        work_dir: str | None = None,
        connections: int = 8,
        tables_at_once: int = 4,
        slice_rows: int = 200_000,
        copy_rows: int = 200_000,
        copy_chunk_seconds: float | None = 30.0,
        copy_seconds: datetime.timedelta | float | Literal["auto"] | None = AUTO,
        copy_rows_per_second: float | None = None,
        throttle_lag: datetime.timedelta | float | None = None,
        copy_keep: datetime.timedelta | float = COPY_KEEP,
        isolation: Literal["auto", "snapshot", "read_committed"] = "auto",
        fetch_size: int = 10_000,
        name: str = "mssql-cdc-load",
        packages: str | None = None,
        **kwargs: Any,
    ) -> None:
        check_shapes(shapes)
        history = HistoryOptions.checked(
            changes, history_form, operations, shapes=shapes_said(tables, shapes), replay=replay
        )
        if "outlets" not in kwargs:
            data = f"mssql_cdc {target}"
            kwargs["outlets"] = [AssetAlias(name=data), AssetAlias(name=data + OPERATIONS_ALIAS)]
        super().__init__(
            name=name,
            tables=tables,
            target=target,
            mssql_conn_id=mssql_conn_id,
            salt_conn_id=salt_conn_id,
            capture_timeout=capture_timeout,
            work_dir=work_dir,
            connections=connections,
            tables_at_once=tables_at_once,
            slice_rows=slice_rows,
            copy_rows=copy_rows,
            copy_chunk_seconds=copy_chunk_seconds,
            copy_seconds=copy_seconds,
            copy_rows_per_second=copy_rows_per_second,
            throttle_lag=throttle_lag,
            isolation=isolation,
            fetch_size=fetch_size,
            packages=packages,
            **kwargs,
        )
        self.shapes = tuple(shapes)
        self.deletes = deletes
        self.changes = changes
        self.history_form = history_form
        self.operations = history.operations
        self.initial = initial
        self.upto = upto
        self.exclude, self.table_name = exclude, table_name
        self.table_properties = dict(table_properties or {})
        self.source, self.allow_masked, self.on_disabled = source, allow_masked, on_disabled
        self.ct_retention = datetime.timedelta(seconds=seconds(ct_retention) or 0.0)
        self.on_gap, self.on_schema_change, self.widen_list = on_gap, on_schema_change, widen_list
        self.fill, self.history_fill, self.incompatible_types = fill, history_fill, incompatible_types
        self.propose_timeout, self.dropped_columns = propose_timeout, dropped_columns
        self.admin_conn_id, self.enable_lock_timeout = admin_conn_id, seconds(enable_lock_timeout) or 0.0
        self.server_timezone = server_timezone
        self.max_transactions, self.max_rows = max_transactions, max_rows
        self.small_window = small_window
        self.max_lag, self.max_idle = lag_allowed(max_lag, on_lag), seconds(max_idle)
        self.on_lag = on_lag
        self.copy_keep = datetime.timedelta(seconds=seconds(copy_keep) or 0.0)
        self.replay = replay
        self.interval = interval
        self.target_suffix = target_suffix
        check_values(self)
        self._check_replay()
        self._check_tables()

    def _check_replay(self) -> None:
        """Refuse what does not go with a replay, or only with one.

        :raises ValueError: saying which
        """
        if not self.replay:
            if self.interval is not None or self.target_suffix:
                raise ValueError("interval and target_suffix belong to replay=True")
            return
        if self.upto is not None:
            raise ValueError("replay=True and upto exclude each other: a replay's end comes from its interval")
        if self.shapes != (HISTORY,):
            raise ValueError(
                'a replay needs shapes=["history"]: an old value must not overwrite a newer one in a mirror'
            )
        if self.interval is not None and is_said(self.interval):
            check_edges(*edges(self.interval))

    def _check_tables(self) -> None:
        """Refuse tables and a target that cannot be right. What is a template is left for the run to check.

        :raises ParameterError: for parts that do not go together
        :raises PatternError: for a table pattern that cannot be read
        """
        salted = self.salt_conn_id is not None
        check_literals(self.tables, self.exclude, self.target, salted=salted)
        check_template(self.table_name + (self.target_suffix if is_literal(self.target_suffix) else ""))
        # the address may be a template behind its format
        defaults = self._defaults(Target(str(self.target), "", ()))
        self._check_entries(check_entries(self.tables, salted=salted), defaults)

    def request(self) -> Request:
        """What the author asks for.

        :raises ParameterError: if parts of it do not go together
        :raises ConnectionSettingError: for a salt that cannot be had
        """
        entries = read_entries(self.tables, salted=self.salt_conn_id is not None)
        defaults = self._defaults(Target.parse(self.target))
        self._check_entries(entries, defaults)
        salt = self._salt()
        return Request(
            connection=self.mssql_conn_id,
            entries=entries,
            exclude=excluded(self.exclude),
            defaults=defaults,
            salt_check=salt_check(salt) if salt else None,
            server_timezone=self.server_timezone,
            copy_keep=self.copy_keep,
            isolation=self.isolation,
            ct_retention=self.ct_retention,
            on_disabled=self.on_disabled,
            max_transactions=self.max_transactions,
            max_rows=self.max_rows,
            small_window=self.small_window,
            max_lag=self.max_lag,
            max_idle=None if self.max_idle is None else datetime.timedelta(seconds=self.max_idle),
        )

    def _defaults(self, target: Target) -> TableOptions:
        """What holds for a table whose entry says nothing.

        :raises ParameterError: if parts of it do not go together
        """
        return TableOptions(
            target=target,
            shapes=self.shapes,
            table_name=self.table_name,
            table_properties=self.table_properties,
            on_gap=read_on_gap("", self.on_gap),
            on_schema_change=self.on_schema_change,
            fill=self.fill,
            history_fill=self.history_fill,
            widen_list=self.widen_list,
            incompatible_types=self.incompatible_types,
            dropped_columns=self.dropped_columns,
            propose_timeout=read_timeout("propose_timeout", self.propose_timeout),
            deletes=self.deletes,
            history=HistoryOptions(self.changes, self.history_form, self.operations),
            allow_masked=self.allow_masked,
            source=self.source,
            initial=Initial.parse(self.initial) if is_said(self.initial) else WITH_COPY,
        ).check()

    def _check_entries(self, entries: Iterable[Entry], defaults: TableOptions) -> None:
        """Refuse entries whose parts do not go together, or not with this run.

        :raises ParameterError: naming the first
        """
        shapes: set[str] = set()
        options_of = [(entry.text, entry.options(defaults)) for entry in entries]
        limits = self.max_transactions is not None or self.max_rows is not None
        check_served(
            options_of or [("all tables", defaults)], replay=self.replay, limits=limits, isolation=self.isolation
        )
        for text, options in options_of:
            shapes.update(options.shapes)
            if self.replay and options.shapes != (HISTORY,):
                raise ParameterError(
                    f'the entry of {text} has shapes={list(options.shapes)}: a replay needs ["history"]'
                )
            if is_literal(self.target_suffix):
                check_template(options.table_name + self.target_suffix)
        if shapes:
            check_initial(defaults.initial, shapes)
