"""Views and functions of Change Tracking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.catalog import objects
from airflow_provider_mssql_cdc.sandbox.catalog.server_views import require_state
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation, columns, relation
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database
from airflow_provider_mssql_cdc.sandbox.engine.tracking.state import COMMITS, UNITS
from airflow_provider_mssql_cdc.sandbox.protocol import IsolationLevel, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.changetable import VIEW, check_primary
from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment, denied
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr, constant
from airflow_provider_mssql_cdc.sandbox.tsql.typing import BIGINT, INT, kind

# Functions


def _see(env: Environment, database: Database) -> None:
    """Read as of the moment of the transaction."""
    if env.isolation is IsolationLevel.SNAPSHOT and database.snapshot_isolation:
        env.see_snapshot(database)
    env.manager.see_commits(database)


def _current_version(env: Environment, arguments: list[Expr]) -> Expr:
    database = env.current
    check_primary(database)
    if database.tracking.options is None:
        return constant(None, BIGINT)
    if database.tracking.secondary:
        # those that answer were seen to say what does not fit; how is not known
        return constant(0, BIGINT)
    if env.newest_version is not None:
        return constant(env.newest_version, BIGINT)
    _see(env, database)
    newest = f"(SELECT coalesce(max(commit_ts), 0) FROM {database.duck}.main.{COMMITS})"
    return Expr(newest, BIGINT, constant=True)


def _min_valid_version(env: Environment, arguments: list[Expr]) -> Expr:
    database, given = env.current, arguments[0]
    check_primary(database)
    if given.untyped:
        raise SqlError.of(8116, "NULL", 1, "change_tracking_min_valid_version")
    known = {
        number: database.tracking.min_valid_version(tracked)
        for number, tracked in env.catalog(database).tracked.items()
        if (table := env.catalog(database).tables.get(number)) is not None
        and env.permitted(database, VIEW, table.table.schema, table.table.name)
    }
    if not known:
        return constant(None, BIGINT)
    keys, values = (", ".join(map(str, each)) for each in (known.keys(), known.values()))
    sql = f"CAST(map([{keys}], [{values}])[{given.to(INT)}] AS BIGINT)"
    return Expr(sql, BIGINT, constant=given.constant)


def _is_column_in_mask(env: Environment, arguments: list[Expr]) -> Expr:
    number, mask = arguments
    if mask.untyped:
        return constant(1, INT)
    if kind(mask.type) != "bin":
        raise SqlError.of(8116, mask.type.name, 2, "change_tracking_is_column_in_mask")
    shifts = ", ".join(f"({number.to(INT)} >> {shift}) & 255" for shift in (0, 8, 16, 24))
    # in DuckDB an odd number of digits would match at half a byte
    found = f"regexp_matches(hex({mask.sql}), '^.{{8}}(.{{8}})*' || printf('%02X%02X%02X%02X', {shifts}))"
    text = str(SqlError.of(22101)).replace("'", "''")
    sql = (
        f"CASE WHEN {mask.sql} IS NULL THEN 1 WHEN octet_length({mask.sql}) < 8 "
        f"THEN CAST(t_error(22101, '{text}') AS INTEGER) WHEN {found} THEN 1 ELSE 0 END"
    )
    return Expr(sql, INT, constant=number.constant and mask.constant)


TRACKING_FUNCTIONS: dict[str, Callable[[Any, list[Expr]], Expr]] = {
    "change_tracking_current_version": _current_version,
    "change_tracking_min_valid_version": _min_valid_version,
    "change_tracking_is_column_in_mask": _is_column_in_mask,
}

# Views


def _databases(env: Environment, database: Database) -> Relation:
    spec = (
        "database_id int!, is_auto_cleanup_on bit, retention_period int, retention_period_units_desc nvarchar(60), "
        "retention_period_units tinyint, max_cleanup_version bigint"
    )
    numbers = {unit: number for number, unit in enumerate(UNITS, 1)}
    data = [
        [
            each.database_id, options.auto_cleanup, options.retention, options.unit, numbers[options.unit],
            each.tracking.state.cleaned_commits,
        ]
        for each in env.instance.storage.databases.values()
        if (options := each.tracking.options) is not None
    ]  # fmt: skip
    return relation(spec, data)


def _tables(env: Environment, database: Database) -> Relation:
    spec = (
        "object_id int!, is_track_columns_updated_on bit, begin_version bigint, cleanup_version bigint, "
        "min_valid_version bigint"
    )
    tracking = database.tracking
    data = [
        [
            tracked.object_id, tracked.columns_updated, tracked.begin_version, tracking.cleanup_version(tracked),
            tracking.min_valid_version(tracked),
        ]
        for each in objects.tables(env, database)
        if (tracked := env.catalog(database).tracked.get(each.object_id)) is not None
    ]  # fmt: skip
    return relation(spec, data)


def _shown(database: Database) -> str:
    """Which rows of the commit table are there, in DuckDB."""
    state = database.tracking.state
    return f"commit_ts > {state.base}" if state.options is not None else "FALSE"


def _commits(env: Environment, database: Database) -> Relation:
    require_state(env, database)
    described = columns("commit_ts bigint, xdes_id bigint, commit_lbn bigint, commit_csn bigint, commit_time datetime")
    _see(env, database)
    rows = env.fetchall(f"SELECT * FROM {database.duck}.main.{COMMITS} WHERE {_shown(database)} ORDER BY commit_ts")
    values = list(zip(*rows, strict=True)) or [()] * len(described)
    arrays = [pa.array(each, column.type.arrow) for each, column in zip(values, described, strict=True)]
    return list(described), pa.Table.from_arrays(arrays, [column.name for column in described])


def _history(env: Environment, database: Database) -> Relation:
    spec = (
        "internal_table_name sysname!, table_name sysname!, start_time datetime, end_time datetime, "
        "rows_cleaned_up bigint, cleanup_version bigint, comments ntext"
    )
    history = database.tracking.state.history
    if not history:
        raise SqlError.of(208, "dbo.MSchange_tracking_history")
    if not env.permitted(database, "SELECT", "dbo", "MSchange_tracking_history"):
        raise denied("SELECT", "MSchange_tracking_history", database, "dbo")
    rows = [[c.side_name, c.table_name, c.begun, c.ended, c.rows, c.version, c.comments] for c in history]
    return relation(spec, rows)


def _internal_tables(env: Environment, database: Database) -> Relation:
    spec = (
        objects.OBJECT_COLUMNS + ", internal_type tinyint, internal_type_desc nvarchar(60), parent_id int!, "
        "parent_minor_id int!, lob_data_space_id int!, filestream_data_space_id int"
    )
    ids = objects.schemas(env, database)
    # docs: sys.internal_tables
    kinds = {True: (209, "CHANGE_TRACKING"), False: (210, "TRACKED_COMMITTED_TRANSACTIONS")}
    data = [
        [*objects.object_row(each, ids), *kinds[each.parent != 0], each.parent, 0, 0, None]
        for each in objects.internal_tables(env, database)
    ]
    return relation(spec, data)


def row_counts(env: Environment, database: Database) -> list[tuple[objects.DbObject, int, int]]:
    """(table, index_id, rows) of each side table, and of the commit table, that the session may see."""
    storage = {each.side: each.storage for each in env.catalog(database).tracked.values()}
    found = objects.internal_tables(env, database)
    if found:
        _see(env, database)
    counted = []
    for each in found:
        place = storage[each.object_id] if each.parent else f"{COMMITS} WHERE {_shown(database)}"
        ((rows,),) = env.fetchall(f"SELECT count(*) FROM {database.duck}.main.{place}")
        counted.append((each, 1, rows))
    return counted


TRACKING_VIEWS: dict[tuple[str, str], Callable[[Any, Database], Relation]] = {
    ("sys", "change_tracking_databases"): _databases,
    ("sys", "change_tracking_tables"): _tables,
    ("sys", "dm_tran_commit_table"): _commits,
    ("sys", "internal_tables"): _internal_tables,
    ("dbo", "mschange_tracking_history"): _history,
}
