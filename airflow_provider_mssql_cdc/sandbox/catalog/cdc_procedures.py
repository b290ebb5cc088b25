"""The sp_cdc_ procedures: permissions and arguments here, the work in the CDC core."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.catalog import changes
from airflow_provider_mssql_cdc.sandbox.catalog.arguments import Bound
from airflow_provider_mssql_cdc.sandbox.engine.cdc.errors import error
from airflow_provider_mssql_cdc.sandbox.engine.cdc.jobs import Settings
from airflow_provider_mssql_cdc.sandbox.engine.schema import TableDef
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database
from airflow_provider_mssql_cdc.sandbox.protocol import Column, Outcome, ResultSet, ReturnValue, RowCount, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.typing import BIT

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox.tsql.interpreter import Interpreter

Procedure = Callable[[Any, Database, Bound], Iterator[Outcome]]


def _owner(interpreter: Interpreter, database: Database) -> None:
    if not interpreter.env.is_owner(database):
        raise SqlError(22904, "The caller must be a member of db_owner.")


def _sysadmin(interpreter: Interpreter) -> None:
    if not interpreter.env.principal.sysadmin:
        raise SqlError(22902, "The caller must be a member of sysadmin.")


def _rows(interpreter: Interpreter, relation: tuple[list[Column], pa.Table]) -> Iterator[Outcome]:
    columns, table = relation
    yield ResultSet(columns, iter(table.to_batches(65536)))
    nocount = interpreter.settings.nocount
    yield RowCount(None if nocount else table.num_rows, suppress=nocount, command="SELECT")


def _with_lock(interpreter: Interpreter, database: Database, action: Callable[[], Any]) -> Any:
    """Run a change of CDC's state while nobody has uncommitted writes in the database (Sch-M waits for them)."""

    def run() -> Any:
        interpreter.env.manager.enter(database)
        return action()

    return interpreter.atomically(run)


def _enable_db(interpreter: Interpreter, database: Database, given: Bound) -> Iterator[Outcome]:
    _sysadmin(interpreter)
    catalog = interpreter.env.catalog(database)
    if not database.cdc.enabled and (
        catalog.schema_name("cdc") is not None or "cdc" in {user.casefold() for user in catalog.users}
    ):
        raise SqlError(22906, f"Database '{database.name}' has a user or schema named cdc already.")
    yield from _with_lock(interpreter, database, database.cdc.enable)


def _disable_db(interpreter: Interpreter, database: Database, given: Bound) -> Iterator[Outcome]:
    _sysadmin(interpreter)
    yield from _with_lock(interpreter, database, database.cdc.disable)


def _table(interpreter: Interpreter, database: Database, given: Bound, procedure: str) -> TableDef:
    schema, name = given.text("@source_schema"), given.text("@source_name")
    for parameter, value in (("@source_schema", schema), ("@source_name", name)):
        if not value:
            raise error(22963, parameter, procedure=procedure)
    if str(schema).casefold() == "cdc":
        raise error(22974, procedure=procedure)
    entry = interpreter.env.catalog(database).find(str(schema), str(name))
    if entry is None:
        message = f"Source table '{schema}.{name}' does not exist in this database."
        raise SqlError(22931, message, procedure=procedure)
    return entry.table


def _require_enabled(database: Database) -> None:
    if not database.cdc.enabled:
        raise error(22901, database.name)


def _enable_table(interpreter: Interpreter, database: Database, given: Bound) -> Iterator[Outcome]:
    _owner(interpreter, database)
    _require_enabled(database)
    if given.flag("@enable_extended_ddl_handling"):
        raise SqlError(22874, "Extended DDL handling is not available.")

    def action() -> Any:
        table = _table(interpreter, database, given, "sp_cdc_enable_table_internal")
        allow = given.flag("@allow_partition_switch")
        messages = database.cdc.enable_table(
            table,
            capture_instance=given.text("@capture_instance"),
            supports_net_changes=given.flag("@supports_net_changes"),
            role_name=given.text("@role_name"),
            index_name=given.text("@index_name"),
            captured_column_list=given.text("@captured_column_list"),
            filegroup_name=given.text("@filegroup_name"),
            allow_partition_switch=allow is not False,
        )
        _create_role(interpreter, database, given.text("@role_name"))
        return messages

    yield from _with_lock(interpreter, database, action)


def _create_role(interpreter: Interpreter, database: Database, role: str | None) -> None:
    """The gating role is created if it is missing."""
    transaction = interpreter.env.manager.open
    assert transaction is not None
    assert transaction.catalog is not None
    catalog = transaction.catalog
    if role and role.casefold() not in {name.casefold() for name in (*catalog.roles, "db_owner", "public")}:
        transaction.catalog = dataclasses.replace(catalog, roles={**catalog.roles, role: frozenset()})


def _disable_table(interpreter: Interpreter, database: Database, given: Bound) -> Iterator[Outcome]:
    _owner(interpreter, database)
    _require_enabled(database)

    def action() -> Any:
        table = _table(interpreter, database, given, "sp_cdc_disable_table_internal")
        return database.cdc.disable_table(table, given.text("@capture_instance") or "")

    yield from _with_lock(interpreter, database, action)


def _help_change_data_capture(interpreter: Interpreter, database: Database, given: Bound) -> Iterator[Outcome]:
    env = interpreter.env
    relation = database.cdc.help_change_data_capture(
        given.text("@source_schema"),
        given.text("@source_name"),
        lambda instance: changes.may_read_changes(env, database, instance),
    )
    yield from _rows(interpreter, relation)


def _described(method: str) -> Procedure:
    def procedure(interpreter: Interpreter, database: Database, given: Bound) -> Iterator[Outcome]:
        name = given.text("@capture_instance")
        instance = database.cdc.instance(name)
        if instance is not None and not changes.may_read_changes(interpreter.env, database, instance):
            raise error(22981)
        yield from _rows(interpreter, getattr(database.cdc, method)(name))

    return procedure


def _help_jobs(interpreter: Interpreter, database: Database, given: Bound) -> Iterator[Outcome]:
    _owner(interpreter, database)
    yield from _rows(interpreter, database.cdc.help_jobs())


def _settings(given: Bound) -> Settings:
    names = ("maxtrans", "maxscans", "continuous", "pollinginterval", "retention", "threshold")
    return Settings(*(given.number(f"@{name}") for name in names))


def _add_job(interpreter: Interpreter, database: Database, given: Bound) -> Iterator[Outcome]:
    _owner(interpreter, database)
    database.cdc.add_job(given.text("@job_type"), _settings(given))
    if given.flag("@start_job") is not False and str(given.text("@job_type")).strip().casefold() == "capture":
        yield from interpreter.env.instance.agent.start_job(database.cdc)


def _change_job(interpreter: Interpreter, database: Database, given: Bound) -> Iterator[Outcome]:
    _owner(interpreter, database)
    database.cdc.change_job(given.text("@job_type") or "capture", _settings(given))
    yield from ()


def _drop_job(interpreter: Interpreter, database: Database, given: Bound) -> Iterator[Outcome]:
    _owner(interpreter, database)
    database.cdc.drop_job(given.text("@job_type"))
    yield from ()


def _start_job(interpreter: Interpreter, database: Database, given: Bound) -> Iterator[Outcome]:
    _owner(interpreter, database)
    yield from interpreter.env.instance.agent.start_job(database.cdc, given.text("@job_type") or "capture")


def _stop_job(interpreter: Interpreter, database: Database, given: Bound) -> Iterator[Outcome]:
    _owner(interpreter, database)
    yield from interpreter.env.instance.agent.stop_job(database.cdc, given.text("@job_type") or "capture")


def _scan(interpreter: Interpreter, database: Database, given: Bound) -> Iterator[Outcome]:
    _owner(interpreter, database)
    database.cdc.sp_cdc_scan(
        given.number("@maxtrans"),
        given.number("@maxscans"),
        given.number("@continuous") or 0,
        given.number("@pollinginterval") or 0,
    )
    yield from ()


def _cleanup(interpreter: Interpreter, database: Database, given: Bound) -> Iterator[Outcome]:
    _owner(interpreter, database)
    mark = changes.lsn_argument(given.value("@low_water_mark"))
    threshold = given.number("@threshold")
    database.cdc.cleanup(given.text("@capture_instance") or "", mark, 5000 if threshold is None else threshold)
    if "@fcleanupfailed" in given.positions:
        yield ReturnValue("@fCleanupFailed", BIT, False, given.positions["@fcleanupfailed"])


def _missing(name: str) -> Procedure:
    def procedure(interpreter: Interpreter, database: Database, given: Bound) -> Iterator[Outcome]:
        raise unsupported(name)
        yield

    return procedure


_TUNABLES = "@maxtrans, @maxscans, @continuous, @pollinginterval, @retention, @threshold"

PROCEDURES: dict[str, tuple[str, Procedure]] = {
    "sp_cdc_enable_db": ("@fcreatecdcuserimplicit", _enable_db),
    "sp_cdc_disable_db": ("", _disable_db),
    "sp_cdc_enable_table": (
        "@source_schema!, @source_name!, @capture_instance, @supports_net_changes, @role_name!, @index_name, "
        "@captured_column_list, @filegroup_name, @allow_partition_switch, @enable_extended_ddl_handling",
        _enable_table,
    ),
    "sp_cdc_disable_table": ("@source_schema!, @source_name!, @capture_instance!", _disable_table),
    "sp_cdc_help_change_data_capture": ("@source_schema, @source_name", _help_change_data_capture),
    "sp_cdc_get_captured_columns": ("@capture_instance!", _described("get_captured_columns")),
    "sp_cdc_get_ddl_history": ("@capture_instance!", _described("get_ddl_history")),
    "sp_cdc_help_jobs": ("", _help_jobs),
    "sp_cdc_add_job": (f"@job_type!, @start_job, {_TUNABLES}, @check_for_logreader", _add_job),
    "sp_cdc_change_job": (f"@job_type, {_TUNABLES}", _change_job),
    "sp_cdc_drop_job": ("@job_type!", _drop_job),
    "sp_cdc_start_job": ("@job_type", _start_job),
    "sp_cdc_stop_job": ("@job_type", _stop_job),
    "sp_cdc_scan": ("@maxtrans, @maxscans, @continuous, @pollinginterval, @is_from_job", _scan),
    "sp_cdc_cleanup_change_table": (
        "@capture_instance!, @low_water_mark!, @threshold, @fcleanupfailed",
        _cleanup,
    ),
    "sp_cdc_generate_wrapper_function": (
        "@capture_instance, @closed_high_end_point, @column_list, @update_flag_list",
        _missing("sp_cdc_generate_wrapper_function"),
    ),
    "sp_cdc_vupgrade": ("@force_metadata_fixup", _missing("sp_cdc_vupgrade")),
}
