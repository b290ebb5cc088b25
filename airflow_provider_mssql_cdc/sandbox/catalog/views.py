"""Catalogue views: each a function that makes rows for the session that asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow_provider_mssql_cdc.sandbox import system_types
from airflow_provider_mssql_cdc.sandbox.catalog import (
    information_schema,
    objects,
    policies,
    principals,
    server_views,
    tracking,
)
from airflow_provider_mssql_cdc.sandbox.collations import comparing
from airflow_provider_mssql_cdc.sandbox.collations.identifiers import system
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation, relation
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database
from airflow_provider_mssql_cdc.sandbox.tsql.definitions import object_id_of

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment


def find(env: Environment, database: Database, schema: str, name: str) -> Relation | None:
    """A catalogue view's rows; None where there is none of that name."""
    key = system(schema, name)
    if database.name.casefold() == "msdb" and key[0] == "dbo":
        return server_views.msdb(env, key[1])
    view = _VIEWS.get(key)
    if view is None:
        return None
    columns, rows = view(env, database)
    lacking = env.instance.version.lacks(*key)
    kept = [column for column in columns if column.name not in lacking]
    return kept, rows.select([column.name for column in kept]) if lacking else rows


_TABLE_COLUMNS = objects.OBJECT_COLUMNS + (
    ", lob_data_space_id int!, filestream_data_space_id int, max_column_id_used int!, lock_on_bulk_load bit!, "
    "uses_ansi_nulls bit, is_replicated bit, has_replication_filter bit, is_merge_published bit, "
    "is_sync_tran_subscribed bit, has_unchecked_assembly_data bit!, text_in_row_limit int, "
    "large_value_types_out_of_row bit, is_tracked_by_cdc bit, lock_escalation tinyint, "
    "lock_escalation_desc nvarchar(60), "
    "is_filetable bit, is_memory_optimized bit, durability tinyint, durability_desc nvarchar(60), "
    "temporal_type tinyint, "
    "temporal_type_desc nvarchar(60), history_table_id int, is_remote_data_archive_enabled bit, is_external bit!"
)


def _objects(env: Environment, database: Database) -> Relation:
    ids = objects.schemas(env, database)
    return relation(
        objects.OBJECT_COLUMNS, [objects.object_row(each, ids) for each in objects.all_objects(env, database)]
    )


def _tables(env: Environment, database: Database) -> Relation:
    ids = objects.schemas(env, database)
    data = []
    for each in objects.tables(env, database):
        last = max((c.column_id for c in each.columns), default=0)
        data.append(
            [
                *objects.object_row(each, ids), 0, None, last, False, True, False, False, False, False, False, 0, False,
                each.tracked, 0, "TABLE", False, False, 0, "SCHEMA_AND_DATA", 0, "NON_TEMPORAL_TABLE",
                None, False, False,
            ]
        )  # fmt: skip
    return relation(_TABLE_COLUMNS, data)


def _schemas(env: Environment, database: Database) -> Relation:
    data = [[name, number, 1] for name, number in objects.schemas(env, database).items()]
    return relation("name sysname!, schema_id int!, principal_id int", data)


_COLUMN_COLUMNS = (
    "object_id int!, name sysname, column_id int!, system_type_id tinyint!, user_type_id int!, max_length smallint!, "
    "precision tinyint!, scale tinyint!, collation_name sysname, is_nullable bit, is_ansi_padded "
    "bit!, is_rowguidcol bit!, "
    "is_identity bit!, is_computed bit!, is_filestream bit!, is_replicated bit, is_non_sql_subscribed bit, "
    "is_merge_published bit, is_dts_replicated bit, is_xml_document bit!, xml_collection_id int!, "
    "default_object_id int!, rule_object_id int!, is_sparse bit, is_column_set bit, generated_always_type tinyint, "
    "generated_always_type_desc nvarchar(60), encryption_type int, is_hidden bit, is_masked bit!"
)


def column_row(
    each: objects.DbObject, column: Any, *, masked: bool = False, encryption: int | None = None
) -> list[Any]:
    """A row of sys.columns."""
    type_ = system_types.system_type(column.type)
    names = each.entry.default_names
    default = object_id_of(each.object_id, names[column.name]) if column.name in names else 0
    return [
        each.object_id, column.name, column.column_id, type_.system_type_id, type_.user_type_id,
        system_types.max_length(column.type), system_types.precision(column.type), system_types.scale(column.type),
        objects.collation(column.type, column.collation), column.nullable, True, False, column.identity,
        column.computed is not None, False, False, False, False, False, False, 0, default, 0, column.sparse,
        column.column_set, 0, "NOT_APPLICABLE", encryption, False, masked,
    ]  # fmt: skip


def _columns(env: Environment, database: Database) -> Relation:
    catalog = env.catalog(database)
    sources = {
        (instance.change_table_object_id, column.name): (instance.source_object_id, column.column_id)
        for instance in (database.cdc.instances if database.cdc.enabled else ())
        for column in instance.columns
    }
    data = []
    for each in objects.tables(env, database):
        for column in each.columns:
            place = sources.get((each.object_id, column.name), (each.object_id, column.column_id))
            encryption = 1 if place in catalog.encrypted else None
            data.append(column_row(each, column, masked=column.mask is not None, encryption=encryption))
    return relation(_COLUMN_COLUMNS, data)


def _masked_columns(env: Environment, database: Database) -> Relation:
    data = [
        [*column_row(each, column, masked=True), column.mask]
        for each in objects.tables(env, database)
        for column in each.columns
        if column.mask is not None
    ]
    return relation(_COLUMN_COLUMNS + ", masking_function nvarchar(4000)", data)


def _types(env: Environment, database: Database) -> Relation:
    spec = (
        "name sysname!, system_type_id tinyint!, user_type_id int!, schema_id int!, principal_id int, "
        "max_length smallint!, "
        "precision tinyint!, scale tinyint!, collation_name sysname, is_nullable bit, is_user_defined bit!, "
        "is_assembly_type bit!, default_object_id int!, rule_object_id int!, is_table_type bit!"
    )
    text = ("char", "varchar", "nchar", "nvarchar", "text", "ntext", "sysname")
    data = [
        [
            t.name, t.system_type_id, t.user_type_id, 4, None, t.max_length, t.precision, t.scale,
            comparing.DATABASE.get() if t.name in text else None, t.name not in ("timestamp", "sysname"), False,
            False, 0, 0, False,
        ]
        for t in system_types.SYSTEM_TYPES
    ]  # fmt: skip
    return relation(spec, data)


def index_rows(env: Environment, database: Database) -> list[tuple[objects.DbObject, int, Any]]:
    """(table, index_id, index or None for a heap) of every index."""
    found: list[tuple[objects.DbObject, int, Any]] = []
    for each in objects.tables(env, database):
        indexes = each.entry.table.indexes
        clustered = [index for index in indexes if index.clustered]
        found += [(each, 1, index) for index in clustered] or [(each, 0, None)]
        found += [(each, i, index) for i, index in enumerate((x for x in indexes if not x.clustered), 2)]
    return found


def _indexes(env: Environment, database: Database) -> Relation:
    spec = (
        "object_id int!, name sysname, index_id int!, type tinyint!, type_desc nvarchar(60), is_unique bit, "
        "data_space_id int, ignore_dup_key bit, is_primary_key bit, is_unique_constraint bit, fill_factor tinyint!, "
        "is_padded bit, is_disabled bit, is_hypothetical bit, allow_row_locks bit, allow_page_locks "
        "bit, has_filter bit, "
        "filter_definition nvarchar(max), auto_created bit"
    )
    data = []
    for each, number, index in index_rows(env, database):
        names = ("HEAP", "CLUSTERED", "NONCLUSTERED")
        data.append(
            [
                each.object_id, index and index.name, number, min(number, 2), names[min(number, 2)],
                bool(index and index.unique), 1, False, bool(index and index.primary_key),
                bool(index and index.name in each.entry.unique_constraints), 0, False, bool(index and index.disabled),
                False, True, True,
                False, None, False,
            ]
        )  # fmt: skip
    return relation(spec, data)


def _index_columns(env: Environment, database: Database) -> Relation:
    spec = (
        "object_id int!, index_id int!, index_column_id int!, column_id int!, key_ordinal tinyint!, "
        "partition_ordinal tinyint!, is_descending_key bit, is_included_column bit, column_store_order_ordinal tinyint!"
    )
    data = []
    for each, number, index in index_rows(env, database):
        ids = {c.name: c.column_id for c in each.columns}
        for ordinal, name in enumerate(index.columns if index else (), 1):
            down = index is not None and name in index.descending
            data.append([each.object_id, number, ordinal, ids[name], ordinal, 0, down, False, 0])
    return relation(spec, data)


def _key_constraints(env: Environment, database: Database) -> Relation:
    ids = objects.schemas(env, database)
    numbers = {(each.object_id, index.name): n for each, n, index in index_rows(env, database) if index}
    data = [
        [*objects.object_row(each, ids), numbers[(each.parent, each.name)], each.is_system_named, True]
        for each in objects.all_objects(env, database)
        if each.type in ("PK", "UQ")
    ]
    return relation(objects.OBJECT_COLUMNS + ", unique_index_id int, is_system_named bit!, is_enforced bit", data)


def _default_constraints(env: Environment, database: Database) -> Relation:
    ids = objects.schemas(env, database)
    spec = objects.OBJECT_COLUMNS + ", parent_column_id int!, definition nvarchar(max), is_system_named bit!"
    data = []
    for table in objects.tables(env, database):
        for column in table.columns:
            if column.name in table.entry.default_names:
                number = object_id_of(table.object_id, table.entry.default_names[column.name])
                each = next(o for o in objects.all_objects(env, database) if o.object_id == number)
                data.append([*objects.object_row(each, ids), column.column_id, column.default, each.is_system_named])
    return relation(spec, data)


def _identity_columns(env: Environment, database: Database) -> Relation:
    spec = (
        _COLUMN_COLUMNS + ", seed_value bigint, increment_value bigint, last_value bigint, is_not_for_replication bit"
    )
    data = []
    for each in objects.tables(env, database):
        for column in each.columns:
            if column.identity:
                last = database.last_identity(each.object_id)
                data.append([*column_row(each, column), *each.entry.identity, last, False])
    return relation(spec, data)


def _computed_columns(env: Environment, database: Database) -> Relation:
    spec = _COLUMN_COLUMNS + ", definition nvarchar(max), uses_database_collation bit!, is_persisted bit!"
    data = [
        [*column_row(each, column), column.computed, True, True]
        for each in objects.tables(env, database)
        for column in each.columns
        if column.computed is not None
    ]
    return relation(spec, data)


def _row_counts(env: Environment, database: Database) -> list[tuple[objects.DbObject, int, int]]:
    counts = {}
    for each in objects.tables(env, database):
        if not each.is_ms_shipped:
            table = f"{database.duck}.main.{each.entry.storage}"
            env.manager.see(database, each.object_id)
            counts[each.object_id] = env.fetchall(f"SELECT count(*) FROM {table}")[0][0]
        elif each.name.endswith("_CT"):
            counts[each.object_id] = sum(b.num_rows for b in database.cdc.change_rows(each.name[:-3]))
        else:
            counts[each.object_id] = database.cdc.relation(each.name)[1].num_rows
    found = [(each, number, counts[each.object_id]) for each, number, _ in index_rows(env, database)]
    return found + tracking.row_counts(env, database)


def _partitions(env: Environment, database: Database) -> Relation:
    spec = (
        "partition_id bigint!, object_id int!, index_id int!, partition_number int!, hobt_id bigint!, rows bigint, "
        "filestream_filegroup_id smallint!, data_compression tinyint!, data_compression_desc nvarchar(60)"
    )
    data = []
    for each, number, count in _row_counts(env, database):
        key = each.object_id << 8 | number
        data.append([key, each.object_id, number, 1, key, count, 0, 0, "NONE"])
    return relation(spec, data)


def _partition_stats(env: Environment, database: Database) -> Relation:
    spec = (
        "partition_id bigint, object_id int!, index_id int!, partition_number int!, used_page_count bigint, "
        "reserved_page_count bigint, row_count bigint"
    )
    server_views.require_state(env, database)
    data = [
        [each.object_id << 8 | number, each.object_id, number, 1, pages, pages, count]
        for each, number, pages, count in partition_pages(env, database)
    ]
    return relation(spec, data)


def partition_pages(env: Environment, database: Database) -> list[tuple[objects.DbObject, int, int, int]]:
    """(table, index_id, pages, rows) of every index and heap."""
    return [(each, number, count // 100 + 1, count) for each, number, count in _row_counts(env, database)]


def _allocation_units(env: Environment, database: Database) -> Relation:
    spec = (
        "allocation_unit_id bigint!, type tinyint!, type_desc nvarchar(60), container_id bigint!, data_space_id int, "
        "total_pages bigint!, used_pages bigint!, data_pages bigint!"
    )
    data = []
    for each, number, pages, _ in partition_pages(env, database):
        key = each.object_id << 8 | number
        data.append([key, 1, "IN_ROW_DATA", key, 1, pages, pages, pages])
    return relation(spec, data)


def _database_views() -> dict[tuple[str, str], Callable[[Any, Database], Relation]]:
    return {
        ("sys", "objects"): _objects,
        ("sys", "all_objects"): _objects,
        ("sys", "tables"): _tables,
        ("sys", "schemas"): _schemas,
        ("sys", "columns"): _columns,
        ("sys", "all_columns"): _columns,
        ("sys", "masked_columns"): _masked_columns,
        ("sys", "security_policies"): policies.security_policies,
        ("sys", "security_predicates"): policies.security_predicates,
        ("sys", "types"): _types,
        ("sys", "indexes"): _indexes,
        ("sys", "index_columns"): _index_columns,
        ("sys", "key_constraints"): _key_constraints,
        ("sys", "default_constraints"): _default_constraints,
        ("sys", "identity_columns"): _identity_columns,
        ("sys", "computed_columns"): _computed_columns,
        ("sys", "partitions"): _partitions,
        ("sys", "dm_db_partition_stats"): _partition_stats,
        ("sys", "allocation_units"): _allocation_units,
        ("sys", "database_principals"): principals.principals,
        ("sys", "database_role_members"): principals.role_members,
        ("sys", "database_permissions"): principals.permissions,
    }


_VIEWS: dict[tuple[str, str], Callable[[Any, Database], Relation]] = {
    **_database_views(),
    **server_views.VIEWS,
    **tracking.TRACKING_VIEWS,
    **information_schema.VIEWS,
}
