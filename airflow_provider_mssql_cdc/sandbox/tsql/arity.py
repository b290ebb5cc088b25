"""How many arguments the functions take."""

from __future__ import annotations

from airflow_provider_mssql_cdc.sandbox.protocol import SqlError

_NUMBERS: dict[str, tuple[int, int]] = {
    name: (low, high)
    for (low, high), names in {
        (0, 0): "getdate getutcdate sysdatetime sysutcdatetime sysdatetimeoffset current_timezone_id "
        "original_login system_user scope_identity xact_state error_number error_message error_severity "
        "error_state error_line error_procedure app_name host_name row_number rank dense_rank percent_rank cume_dist "
        "fn_cdc_get_max_lsn change_tracking_current_version",
        (0, 1): "schema_name schema_id db_id db_name suser_sname suser_name user_name",
        (1, 1): "year month day serverproperty type_name ntile first_value last_value "
        "fn_cdc_get_min_lsn fn_cdc_increment_lsn fn_cdc_decrement_lsn fn_cdc_map_lsn_to_time fn_varbintohexstr "
        "change_tracking_min_valid_version",
        (1, 2): "eomonth object_name object_schema_name object_id is_srvrolemember is_member is_rolemember",
        (1, 3): "lag lead",
        (2, 2): "isnull nullif datepart datename switchoffset todatetimeoffset col_length databasepropertyex "
        "string_agg fn_cdc_map_time_to_lsn fn_cdc_get_column_ordinal fn_cdc_is_bit_set "
        "change_tracking_is_column_in_mask",
        (2, 255): "coalesce choose",
        (3, 3): "columnproperty iif dateadd datediff datediff_big fn_cdc_has_column_changed",
        (3, 5): "has_perms_by_name",
    }.items()
    for name in names.split()
}


def check_number(parts: tuple[str, ...], given: int) -> None:
    """Refuse a call with too few or too many arguments; what takes how many the sandbox may not know.

    :param parts: the function's name, with its schema and database where given
    :raises SqlError: 174 or, where there is a choice, 189; for a function with a schema 313 and 8144
    """
    low, high = _NUMBERS.get(parts[-1].lower(), (given, given))
    if low <= given <= high:
        return
    if len(parts) > 1:
        raise SqlError.of(313 if given < low else 8144, ".".join(parts))
    refuse(parts[0], low, high)


def refuse(name: str, low: int, high: int) -> None:
    """A built-in function has not got as many arguments as it takes.

    :raises SqlError: 174, 189
    """
    if low == high:
        raise SqlError.of(174, name.lower(), low)
    raise SqlError.of(189, name.lower(), low, high)
