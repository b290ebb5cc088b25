"""The metadata tables of schema cdc, and the result sets of the procedures that explain them."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_mssql_cdc.sandbox.engine.cdc.instance import LSN_TYPE, CapturedColumn, CaptureInstance
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation, relation
from airflow_provider_mssql_cdc.sandbox.protocol import Column
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType

_INT, _BIT, _TINYINT, _NAME = SqlType("int"), SqlType("bit"), SqlType("tinyint"), SqlType("sysname")
_DATETIME, _LONG_TEXT = SqlType("datetime"), SqlType("nvarchar", MAX)

_SOURCE = [
    Column("source_schema", _NAME),
    Column("source_table", _NAME),
    Column("capture_instance", _NAME, nullable=False),
]
_PRECISIONS = {
    "tinyint": (3, 10),
    "smallint": (5, 10),
    "int": (10, 10),
    "bigint": (19, 10),
    "money": (19, 10),
    "smallmoney": (10, 10),
    "real": (24, 2),
    "float": (53, 2),
}
_SCALES = {"tinyint": 0, "smallint": 0, "int": 0, "bigint": 0, "money": 4, "smallmoney": 4}
_FRACTIONS = {"date": 0, "smalldatetime": 0, "datetime": 3}
_TEXT_LENGTHS = {"text": 2_147_483_647, "ntext": 1_073_741_823, "image": 2_147_483_647, "xml": MAX}


def change_tables(instances: Sequence[CaptureInstance]) -> Relation:
    """cdc.change_tables."""
    columns = [
        Column("object_id", _INT, nullable=False),
        Column("version", _INT),
        Column("source_object_id", _INT),
        Column("capture_instance", _NAME, nullable=False),
        Column("start_lsn", LSN_TYPE),
        Column("end_lsn", LSN_TYPE),
        Column("supports_net_changes", _BIT),
        Column("has_drop_pending", _BIT),
        Column("role_name", _NAME),
        Column("index_name", _NAME),
        Column("filegroup_name", _NAME),
        Column("create_date", _DATETIME),
        Column("partition_switch", _BIT, nullable=False),
    ]
    rows = [
        (
            each.change_table_object_id,
            0,
            each.source_object_id,
            each.capture_instance,
            each.start_lsn,
            None,
            each.supports_net_changes,
            None,
            each.role_name,
            each.index_name,
            each.filegroup_name,
            each.create_date,
            each.partition_switch,
        )
        for each in instances
    ]
    return relation(columns, rows)


def captured_columns(instances: Sequence[CaptureInstance]) -> Relation:
    """cdc.captured_columns; object_id is the change table's."""
    columns = [
        Column("object_id", _INT, nullable=False),
        Column("column_name", _NAME, nullable=False),
        Column("column_id", _INT),
        Column("column_type", _NAME, nullable=False),
        Column("column_ordinal", _INT, nullable=False),
        Column("is_computed", _BIT),
        Column("masking_function", SqlType("nvarchar", 4000)),
    ]
    rows = [
        (
            each.change_table_object_id,
            column.name,
            column.column_id,
            column.source_type,
            ordinal,
            column.computed,
            None,
        )
        for each in instances
        for ordinal, column in enumerate(each.columns, 1)
    ]
    return relation(columns, rows)


def index_columns(instances: Sequence[CaptureInstance]) -> Relation:
    """cdc.index_columns."""
    columns = [
        Column("object_id", _INT, nullable=False),
        Column("column_name", _NAME, nullable=False),
        Column("index_ordinal", _TINYINT, nullable=False),
        Column("column_id", _INT, nullable=False),
    ]
    rows = [
        (each.change_table_object_id, key.name, ordinal, key.column_id)
        for each in instances
        for ordinal, key in enumerate(each.key, 1)
    ]
    return relation(columns, rows)


def ddl_history(instances: Sequence[CaptureInstance]) -> Relation:
    """cdc.ddl_history: one row per instance and ALTER TABLE."""
    columns = [
        Column("source_object_id", _INT),
        Column("object_id", _INT, nullable=False),
        Column("required_column_update", _BIT),
        Column("ddl_command", _LONG_TEXT),
        Column("ddl_lsn", LSN_TYPE, nullable=False),
        Column("ddl_time", _DATETIME),
    ]
    rows = [
        (
            each.source_object_id,
            each.change_table_object_id,
            row.required_column_update,
            row.ddl_command,
            row.ddl_lsn,
            row.ddl_time,
        )
        for each in instances
        for row in each.ddl_history
    ]
    return relation(columns, rows)


def help_change_data_capture(instances: Sequence[CaptureInstance]) -> Relation:
    """What sp_cdc_help_change_data_capture returns for the instances that the caller may see."""
    columns = [
        *_SOURCE,
        Column("object_id", _INT),
        Column("source_object_id", _INT),
        Column("start_lsn", LSN_TYPE),
        Column("end_lsn", LSN_TYPE),
        Column("supports_net_changes", _BIT),
        Column("has_drop_pending", _BIT),
        Column("role_name", _NAME),
        Column("index_name", _NAME),
        Column("filegroup_name", _NAME),
        Column("create_date", _DATETIME),
        Column("index_column_list", _LONG_TEXT),
        Column("captured_column_list", _LONG_TEXT),
    ]
    rows = [
        (
            each.source.schema,
            each.source.name,
            each.capture_instance,
            each.change_table_object_id,
            each.source_object_id,
            each.start_lsn,
            None,
            each.supports_net_changes,
            None,
            each.role_name,
            each.index_name,
            each.filegroup_name,
            each.create_date,
            _bracketed([key.name for key in each.key]),
            _bracketed([column.name for column in each.columns]),
        )
        for each in instances
    ]
    return relation(columns, rows)


def _bracketed(names: list[str]) -> str | None:
    return ", ".join("[" + name.replace("]", "]]") + "]" for name in names) or None


def get_captured_columns(instance: CaptureInstance, ordinal_name: str) -> Relation:
    """What sp_cdc_get_captured_columns returns."""
    columns = [
        *_SOURCE,
        Column("column_name", _NAME),
        Column("column_id", _INT),
        Column(ordinal_name, _INT),
        Column("data_type", _NAME),
        Column("character_maximum_length", _INT),
        Column("numeric_precision", _TINYINT),
        Column("numeric_precision_radix", SqlType("smallint")),
        Column("numeric_scale", _INT),
        Column("datetime_precision", SqlType("smallint")),
    ]
    source = (instance.source.schema, instance.source.name, instance.capture_instance)
    rows = [
        (*source, column.name, column.column_id, ordinal, column.source_type, *_measures(column))
        for ordinal, column in enumerate(instance.columns, 1)
    ]
    return relation(columns, rows)


def _measures(column: CapturedColumn) -> tuple[int | None, ...]:
    """Length, precision, radix, scale and fractional digits, where the type has them."""
    declared = column.type
    length = declared.length or _TEXT_LENGTHS.get(declared.name)
    precision, radix = _PRECISIONS.get(declared.name, (None, None))
    scale = _SCALES.get(declared.name)
    fraction = _FRACTIONS.get(declared.name)
    if declared.name == "decimal":
        precision, radix, scale = declared.precision, 10, declared.scale
    elif declared.name in ("time", "datetime2", "datetimeoffset"):
        fraction = declared.scale
    return length, precision, radix, scale, fraction


def get_ddl_history(instance: CaptureInstance) -> Relation:
    """What sp_cdc_get_ddl_history returns."""
    columns = [
        *_SOURCE,
        Column("required_column_update", _BIT),
        Column("ddl_command", _LONG_TEXT),
        Column("ddl_lsn", LSN_TYPE),
        Column("ddl_time", _DATETIME),
    ]
    source = (instance.source.schema, instance.source.name, instance.capture_instance)
    rows = [
        (*source, row.required_column_update, row.ddl_command, row.ddl_lsn, row.ddl_time)
        for row in instance.ddl_history
    ]
    return relation(columns, rows)
