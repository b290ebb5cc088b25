"""The sp_cdc_ procedures: arguments here, the work in the CDC core."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from airflow_provider_mssql_cdc.sandbox.catalog import changes
from airflow_provider_mssql_cdc.sandbox.catalog.arguments import Bound, Procedure, Result
from airflow_provider_mssql_cdc.sandbox.engine.cdc.agent import Agent
from airflow_provider_mssql_cdc.sandbox.engine.cdc.database import CdcDatabase
from airflow_provider_mssql_cdc.sandbox.engine.cdc.jobs import Settings
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation
from airflow_provider_mssql_cdc.sandbox.engine.open_transaction import Operation
from airflow_provider_mssql_cdc.sandbox.engine.rights import Right, without_objects
from airflow_provider_mssql_cdc.sandbox.engine.schema import TableDef
from airflow_provider_mssql_cdc.sandbox.engine.storage import Catalog, Database
from airflow_provider_mssql_cdc.sandbox.protocol import Message, Outcome, ReturnStatus, ReturnValue, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.executor import Executor
from airflow_provider_mssql_cdc.sandbox.tsql.typing import BIT

_T = TypeVar("_T")
_METADATA = -1  # the lock that stands for the tables of CDC; no table has this object id
_TUNABLES = ("maxtrans", "maxscans", "continuous", "pollinginterval", "retention", "threshold")


def _with_lock(executor: Executor, database: Database, action: Callable[[], Any], lock: Callable[[], Any]) -> Result:
    """Run a change of CDC's state.

    It is part of the caller's transaction (A2 of the reference), so a rollback takes it back.

    :param lock: waits for who has uncommitted writes where it matters
    """

    def run() -> Any:
        manager = executor.env.manager
        lock()
        before = database.cdc.keep()
        result = action()
        manager.apply(Operation("", on_undo=lambda: database.cdc.put_back(before)))
        return result

    messages: Result = executor.atomically(run)
    return messages


def _with_metadata(executor: Executor, database: Database, action: Callable[[], _T]) -> _T:
    """Run a change of jobs or of low-water marks, which waits for no writer.

    :raises SqlError: in a transaction, whose rollback could not take it back
    """
    if executor.env.trancount or executor.settings.implicit_transactions:
        raise unsupported("a change of CDC jobs, or a cleanup, in a transaction")

    def run() -> _T:
        executor.env.manager.enter(database, _METADATA)
        return action()

    result: _T = executor.atomically(run)
    return result


def _require_edition(executor: Executor) -> None:
    edition = executor.env.instance.version.edition
    if not edition.has_cdc:
        raise SqlError.of(22988, edition.text)


def _enable_db(executor: Executor, database: Database, given: Bound) -> Result:
    _require_edition(executor)
    catalog = executor.env.catalog(database)
    taken = {name.casefold() for name in (*catalog.schemas, *catalog.users)}
    if not database.cdc.enabled and "cdc" in taken:
        raise SqlError.of(22906, database.name)
    if database.delayed_durability != "DISABLED":
        raise SqlError.of(22891, database.name)
    return _with_lock(executor, database, database.cdc.enable, lambda: executor.env.manager.enter(database))


def _disable_db(executor: Executor, database: Database, given: Bound) -> Result:
    def action() -> Any:
        rights = frozenset(r for r in executor.env.catalog(database).rights if r.schema != "cdc")
        _set_rights(executor, database, rights)
        return database.cdc.disable()

    return _with_lock(executor, database, action, lambda: executor.env.manager.enter_alone(database))


def _table(executor: Executor, database: Database, given: Bound, procedure: str) -> TableDef:
    schema, name = given.text("@source_schema"), given.text("@source_name")
    for parameter, value in (("@source_schema", schema), ("@source_name", name)):
        if not value:
            raise SqlError.of(22963, parameter, procedure=procedure)
    if str(schema).casefold() == "cdc":
        raise SqlError.of(22974, procedure=procedure)
    entry = executor.env.catalog(database).find(str(schema), str(name))
    if entry is None:
        raise SqlError.of(22931, schema, name, procedure=procedure)
    return entry.table


def _require_enabled(database: Database) -> None:
    if not database.cdc.enabled:
        raise SqlError.of(22901, database.name)


def _enable_table(executor: Executor, database: Database, given: Bound) -> Result:
    _require_edition(executor)
    _require_enabled(database)
    option = "@enable_extended_ddl_handling"
    if option in given.values and executor.env.instance.version.number < (16,):
        raise SqlError.of(8145, option, "sp_cdc_enable_table")
    if given.flag(option):
        raise SqlError.of(22874)
    clr = bool(executor.env.instance.configuration["clr enabled"])
    database.cdc.switches = dataclasses.replace(database.cdc.switches, clr_enabled=clr)
    texts = ("capture_instance", "role_name", "index_name", "captured_column_list", "filegroup_name")

    def table() -> TableDef:
        return _table(executor, database, given, "sp_cdc_enable_table_internal")

    def lock() -> None:
        """Wait for who has locks of the table; all others wait behind ([measured 2022]: Sch-M)."""
        manager, number = executor.env.manager, table().object_id
        if _is_new(executor.env.catalog(database), given.text("@role_name")):
            manager.enter(database, changes=number)
        else:
            manager.enter(database, number, changes=number)
            manager.enter(database, _METADATA)

    def action() -> Any:
        messages = database.cdc.enable_table(
            table(),
            **{name: given.text(f"@{name}") for name in texts},
            supports_net_changes=given.flag("@supports_net_changes"),
            allow_partition_switch=given.flag("@allow_partition_switch") is not False,
        )
        _create_role(executor, database, given.text("@role_name"))
        return messages

    return _with_lock(executor, database, action, lock)


def _is_new(catalog: Catalog, role: str | None) -> bool:
    return bool(role) and str(role).casefold() not in {n.casefold() for n in (*catalog.roles, "db_owner", "public")}


def _create_role(executor: Executor, database: Database, role: str | None) -> None:
    """The gating role is created if it is missing."""
    if role and _is_new(executor.env.catalog(database), role):
        catalog = executor.env.enter(database)
        executor.env.manager.enter(database).catalog = dataclasses.replace(
            catalog, roles={**catalog.roles, role: frozenset()}
        )


def _disable_table(executor: Executor, database: Database, given: Bound) -> Result:
    _require_enabled(database)

    def action() -> Any:
        table = _table(executor, database, given, "sp_cdc_disable_table_internal")
        before = database.cdc.instances
        messages = database.cdc.disable_table(table, given.text("@capture_instance") or "")
        rights = executor.env.catalog(database).rights
        for gone in set(before) - set(database.cdc.instances):
            rights = without_objects(rights, "cdc", gone.objects)
        _set_rights(executor, database, rights)
        return messages

    # waits for those too who keep locks of change tables that they have read
    return _with_lock(executor, database, action, lambda: executor.env.manager.enter_alone(database))


def _set_rights(executor: Executor, database: Database, rights: frozenset[Right]) -> None:
    catalog = executor.env.enter(database)
    executor.env.manager.enter(database).catalog = dataclasses.replace(catalog, rights=rights)


def _help_change_data_capture(executor: Executor, database: Database, given: Bound) -> Result:
    def visible(instance: Any) -> bool:
        return changes.may_read_changes(executor.env, database, instance)

    schema, name = given.text("@source_schema"), given.text("@source_name")
    return database.cdc.help_change_data_capture(schema, name, visible)


def _described(show: Callable[[CdcDatabase, str | None], Relation]) -> Callable[[Executor, Database, Bound], Result]:
    def procedure(executor: Executor, database: Database, given: Bound) -> Result:
        name = given.text("@capture_instance")
        instance = database.cdc.instance(name)
        if instance is not None and not changes.may_read_changes(executor.env, database, instance):
            raise SqlError.of(22981)
        return show(database.cdc, name)

    return procedure


def _settings(given: Bound) -> Settings:
    return Settings(*(given.number(f"@{name}") for name in _TUNABLES))


def _add_job(executor: Executor, database: Database, given: Bound) -> Result:
    _with_metadata(executor, database, lambda: database.cdc.add_job(given.text("@job_type"), _settings(given)))
    executor.env.instance.agent.cdc_used = True
    if given.flag("@start_job") is False or str(given.text("@job_type")).strip().casefold() != "capture":
        return None
    return executor.env.instance.agent.start_job(database.cdc)


def _change_job(executor: Executor, database: Database, given: Bound) -> Result:
    job_type = given.text("@job_type") or "capture"
    _with_metadata(executor, database, lambda: database.cdc.change_job(job_type, _settings(given)))
    return None


def _drop_job(executor: Executor, database: Database, given: Bound) -> Result:
    _with_metadata(executor, database, lambda: database.cdc.drop_job(given.text("@job_type")))
    return None


def _run_job(
    run: Callable[[Agent, CdcDatabase, str | None], list[Message]],
) -> Callable[[Executor, Database, Bound], Result]:
    def procedure(executor: Executor, database: Database, given: Bound) -> Result:
        _require_enabled(database)
        return run(executor.env.instance.agent, database.cdc, given.text("@job_type") or "capture")

    return procedure


def _scan(executor: Executor, database: Database, given: Bound) -> Result:
    continuous, polling = given.number("@continuous") or 0, given.number("@pollinginterval") or 0
    limits = given.number("@maxtrans"), given.number("@maxscans")
    database.cdc.sp_cdc_scan(*limits, continuous, polling, session_id=executor.env.info.session_id)
    return None


def _cleanup(executor: Executor, database: Database, given: Bound) -> Iterator[Outcome]:
    mark = changes.lsn_argument(given.value("@low_water_mark"))
    name, threshold = given.text("@capture_instance") or "", given.number("@threshold")
    failed = _with_metadata(executor, database, lambda: database.cdc.cleanup(name, mark, threshold))
    if failed is not None:
        yield failed
    if "@fcleanupfailed" in given.positions:
        yield ReturnValue("@fCleanupFailed", BIT, failed is not None, given.positions["@fcleanupfailed"])
    if failed is not None:
        yield ReturnStatus(1)  # docs: 0 or 1


def _missing(executor: Executor, database: Database, given: Bound) -> Result:
    raise unsupported("this procedure of CDC")


_JOB = ", ".join(f"@{name}" for name in _TUNABLES)
_OWNER, _SYSADMIN = "db_owner", "sysadmin"

PROCEDURES = {
    "sp_cdc_enable_db": Procedure("@fcreatecdcuserimplicit", _enable_db, _SYSADMIN),
    "sp_cdc_disable_db": Procedure("", _disable_db, _SYSADMIN),
    "sp_cdc_enable_table": Procedure(
        "@source_schema!, @source_name!, @capture_instance, @supports_net_changes, @role_name!, @index_name, "
        "@captured_column_list, @filegroup_name, @allow_partition_switch, @enable_extended_ddl_handling",
        _enable_table, _OWNER,
    ),
    "sp_cdc_disable_table": Procedure("@source_schema!, @source_name!, @capture_instance!", _disable_table, _OWNER),
    "sp_cdc_help_change_data_capture": Procedure("@source_schema, @source_name", _help_change_data_capture),
    "sp_cdc_get_captured_columns": Procedure("@capture_instance!", _described(CdcDatabase.get_captured_columns)),
    "sp_cdc_get_ddl_history": Procedure("@capture_instance!", _described(CdcDatabase.get_ddl_history)),
    "sp_cdc_help_jobs": Procedure("", lambda _, database, given: database.cdc.help_jobs(), _OWNER),
    "sp_cdc_add_job": Procedure(f"@job_type!, @start_job, {_JOB}, @check_for_logreader", _add_job, _OWNER),
    "sp_cdc_change_job": Procedure(f"@job_type, {_JOB}", _change_job, _OWNER),
    "sp_cdc_drop_job": Procedure("@job_type!", _drop_job, _OWNER),
    "sp_cdc_start_job": Procedure("@job_type", _run_job(Agent.start_job), _OWNER),
    "sp_cdc_stop_job": Procedure("@job_type", _run_job(Agent.stop_job), _OWNER),
    "sp_cdc_scan": Procedure("@maxtrans, @maxscans, @continuous, @pollinginterval, @is_from_job", _scan, _OWNER),
    "sp_cdc_cleanup_change_table": Procedure(
        "@capture_instance!, @low_water_mark!, @threshold, @fcleanupfailed", _cleanup, _OWNER
    ),
    "sp_cdc_generate_wrapper_function": Procedure(
        "@capture_instance, @closed_high_end_point, @column_list, @update_flag_list", _missing
    ),
    "sp_cdc_vupgrade": Procedure("@force_metadata_fixup", _missing),
}  # fmt: skip
