"""The metadata tables of schema cdc, and the result sets of the procedures that explain them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_provider_mssql_cdc.sandbox.engine.cdc.instance import CaptureInstance, OrphanedDdl
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation, relation
from airflow_provider_mssql_cdc.sandbox.system_types import measures

_SOURCE = "source_schema sysname, source_table sysname, capture_instance sysname!, "


def change_tables(instances: Sequence[CaptureInstance]) -> Relation:
    """cdc.change_tables."""
    description = (
        "object_id int!, version int, source_object_id int, capture_instance sysname!, start_lsn binary(10), "
        "end_lsn binary(10), supports_net_changes bit, has_drop_pending bit, role_name sysname, index_name sysname, "
        "filegroup_name sysname, create_date datetime, partition_switch bit!"
    )
    rows = [
        (
            each.change_table_object_id, 0, each.source_object_id, each.capture_instance, each.start_lsn, None,
            each.supports_net_changes, None, each.role_name, each.index_name, each.filegroup_name, each.create_date,
            each.partition_switch,
        )
        for each in instances
    ]  # fmt: skip
    return relation(description, rows)


def captured_columns(instances: Sequence[CaptureInstance]) -> Relation:
    """cdc.captured_columns; object_id is the change table's."""
    description = (
        "object_id int!, column_name sysname!, column_id int, column_type sysname!, column_ordinal int!, "
        "is_computed bit, masking_function nvarchar(4000)"
    )
    rows = [
        (each.change_table_object_id, c.name, c.column_id, c.source_type, ordinal, c.computed, c.mask)
        for each in instances
        for ordinal, c in enumerate(each.columns, 1)
    ]
    return relation(description, rows)


def index_columns(instances: Sequence[CaptureInstance]) -> Relation:
    """cdc.index_columns."""
    rows = [
        (each.change_table_object_id, key.name, ordinal, key.column_id)
        for each in instances
        for ordinal, key in enumerate(each.key, 1)
    ]
    return relation("object_id int!, column_name sysname!, index_ordinal tinyint!, column_id int!", rows)


def ddl_history(instances: Sequence[CaptureInstance], orphans: Sequence[OrphanedDdl] = ()) -> Relation:
    """cdc.ddl_history: one row per instance and ALTER TABLE, and what belongs to no instance."""
    description = (
        "source_object_id int, object_id int!, required_column_update bit, ddl_command nvarchar(max), "
        "ddl_lsn binary(10)!, ddl_time datetime"
    )
    rows = [
        (each.source_object_id, each.change_table_object_id, *row) for each in instances for row in each.ddl_history
    ]
    rows += [(each.source_object_id, each.object_id, *each.row) for each in orphans]
    return relation(description, rows)


def help_change_data_capture(instances: Sequence[CaptureInstance], *, repeats: bool) -> Relation:
    """What sp_cdc_help_change_data_capture returns for the instances that the caller may see.

    :param repeats: see ``Switches.help_repeats_index_columns``
    """
    description = _SOURCE + (
        "object_id int, source_object_id int, start_lsn binary(10), end_lsn binary(10), supports_net_changes bit, "
        "has_drop_pending bit, role_name sysname, index_name sysname, filegroup_name sysname, create_date datetime, "
        "index_column_list nvarchar(max), captured_column_list nvarchar(max)"
    )
    rows: list[tuple[Any, ...]] = []
    keys: str | None = None
    for each in instances:
        if each.index_name is not None or not repeats:
            keys = _bracketed([key.name for key in each.key])
        rows.append((
            *_source(each), each.change_table_object_id, each.source_object_id, each.start_lsn, None,
            each.supports_net_changes, None, each.role_name, each.index_name, each.filegroup_name, each.create_date,
            keys, _bracketed([column.name for column in each.columns]),
        ))  # fmt: skip
    return relation(description, rows)


def _source(instance: CaptureInstance) -> tuple[str, str, str]:
    return instance.source.schema, instance.source.name, instance.capture_instance


def _bracketed(names: list[str]) -> str | None:
    return ", ".join("[" + name.replace("]", "]]") + "]" for name in names) or None


def get_captured_columns(instance: CaptureInstance) -> Relation:
    """What sp_cdc_get_captured_columns returns."""
    description = _SOURCE + (
        "column_name sysname, column_id int, column_ordinal int, data_type sysname, character_maximum_length int, "
        "numeric_precision tinyint, numeric_precision_radix smallint, numeric_scale int, datetime_precision smallint"
    )
    rows = [
        (*_source(instance), column.name, column.column_id, ordinal, column.source_type, *measures(column.type))
        for ordinal, column in enumerate(instance.columns, 1)
    ]
    return relation(description, rows)


def get_ddl_history(instance: CaptureInstance) -> Relation:
    """What sp_cdc_get_ddl_history returns."""
    description = _SOURCE + (
        "required_column_update bit, ddl_command nvarchar(max), ddl_lsn binary(10), ddl_time datetime"
    )
    return relation(description, [(*_source(instance), *row) for row in instance.ddl_history])
