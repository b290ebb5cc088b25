"""Views about the server: databases, sessions, services, configuration, log scans, and msdb's jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.catalog import state_views
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation, relation
from airflow_provider_mssql_cdc.sandbox.engine.instance import OPTIONS
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment

_DURABILITIES = ("DISABLED", "ALLOWED", "FORCED")
_RECOVERY_MODELS = ("FULL", "BULK_LOGGED", "SIMPLE")


def _databases(env: Environment, database: Database) -> Relation:
    spec = (
        "name sysname!, database_id int!, source_database_id int, owner_sid varbinary(85), create_date datetime!, "
        "compatibility_level tinyint!, collation_name sysname, user_access tinyint, user_access_desc nvarchar(60), "
        "is_read_only bit, is_auto_close_on bit!, state tinyint, state_desc nvarchar(60), is_in_standby bit, "
        "snapshot_isolation_state tinyint, snapshot_isolation_state_desc nvarchar(60), "
        "is_read_committed_snapshot_on bit, recovery_model tinyint, recovery_model_desc nvarchar(60), "
        "is_fulltext_enabled bit, is_trustworthy_on bit, is_published bit!, is_subscribed bit!, is_distributor bit!, "
        "log_reuse_wait tinyint, log_reuse_wait_desc nvarchar(60), is_cdc_enabled bit!, is_encrypted bit, "
        "containment tinyint, delayed_durability int, delayed_durability_desc nvarchar(60), "
        "replica_id uniqueidentifier, group_database_id uniqueidentifier"
    )
    data, level = [], env.instance.version.compatibility_level
    for each in sorted(env.instance.storage.databases.values(), key=lambda d: d.database_id):
        on = each.snapshot_isolation
        data.append(
            [
                each.name, each.database_id, None, b"\x01", each.created.replace(microsecond=0), level, each.collation,
                *((1, "SINGLE_USER") if each.single_user else (0, "MULTI_USER")),
                False, False, 0, "ONLINE", False, int(on), "ON" if on else "OFF", each.read_committed_snapshot,
                _RECOVERY_MODELS.index(each.recovery_model) + 1, each.recovery_model,
                False, False, False, False, False, *((6, "REPLICATION") if each.cdc.backlog else (0, "NOTHING")),
                each.cdc.enabled, False, 0, _DURABILITIES.index(each.delayed_durability), each.delayed_durability,
                *([each.recovery_fork_guid] * 2 if each.cdc.in_availability_group else (None, None)),
            ]
        )  # fmt: skip
    return relation(spec, data)


def _recovery(env: Environment, database: Database) -> Relation:
    spec = (
        "database_id int!, database_guid uniqueidentifier, family_guid uniqueidentifier, "
        "last_log_backup_lsn decimal(25,0), "
        "recovery_fork_guid uniqueidentifier, first_recovery_fork_guid uniqueidentifier"
    )
    data = []
    for each in env.instance.storage.databases.values():
        fork = each.recovery_fork_guid
        data.append([each.database_id, fork, fork, None, fork, None])
    return relation(spec, data)


def _configurations(env: Environment, database: Database) -> Relation:
    # value and value_in_use are sql_variant on a server; every option holds an int
    spec = (
        "configuration_id int!, name nvarchar(35)!, value int, minimum int, maximum int, value_in_use int, "
        "description nvarchar(255)!, is_dynamic bit!, is_advanced bit!"
    )
    current = env.instance.configuration
    data = [
        [number, name, current[name], low, high, current[name], description, True, False]
        for name, (number, _, low, high, description) in OPTIONS.items()
    ]
    return relation(spec, data)


def _sessions(env: Environment, database: Database) -> Relation:
    spec = (
        "session_id smallint!, login_time datetime!, host_name nvarchar(128), program_name nvarchar(128), "
        "login_name nvarchar(128)!, status nvarchar(30)!, is_user_process bit!, transaction_isolation_level smallint!, "
        "original_login_name nvarchar(128)!"
    )
    data = []
    all_of_them = env.has_server_right("VIEW SERVER PERFORMANCE STATE")
    for info in list(env.instance.sessions.values()):
        mine = info is env.info
        if not (mine or all_of_them):
            continue
        level = env.isolation.value if mine else 2
        name = info.login.user
        status = "running" if mine else "sleeping"
        data.append(
            [
                info.session_id,
                info.login_time,
                info.login.host_name,
                info.login.app_name,
                name,
                status,
                True,
                level,
                name,
            ]
        )
    return relation(spec, data)


def _services(env: Environment, database: Database) -> Relation:
    if not env.has_server_right("VIEW SERVER SECURITY STATE"):
        raise SqlError.of(300, f"VIEW SERVER {'SECURITY ' if env.instance.version.number >= (16,) else ''}STATE")
    columns, rows = env.instance.agent.services()
    return columns, rows if env.instance.version.edition.has_cdc else rows.slice(0, 1)


def _cdc_view(name: str) -> Callable[[Any, Database], Relation]:
    def view(env: Environment, database: Database) -> Relation:
        require_state(env, database)
        return database.cdc.relation(name)

    return view


def require_state(env: Environment, database: Database) -> None:
    """Refuse who may not see the state of a database.

    :raises SqlError: 262, followed by 297
    """
    if not env.permitted(database, "VIEW DATABASE PERFORMANCE STATE") and not env.has_server_right(
        "VIEW SERVER PERFORMANCE STATE"
    ):
        state = "PERFORMANCE STATE" if env.instance.version.number >= (16,) else "STATE"
        error = SqlError.of(262, f"VIEW DATABASE {state}", database.name)
        error.followed = (SqlError.of(297),)
        raise error


def _log_space(env: Environment, database: Database) -> Relation:
    require_state(env, database)
    total, used = database.cdc.log_space()
    spec = (
        "database_id int, total_log_size_in_bytes bigint, used_log_space_in_bytes bigint, "
        "used_log_space_in_percent real, log_space_in_bytes_since_last_backup bigint"
    )
    return relation(spec, [[database.database_id, total, used, 100 * used / total, None]])


def _systranschemas(env: Environment, database: Database) -> Relation:
    if not database.cdc.enabled:
        raise SqlError.of(208, "dbo.systranschemas")
    return relation("tabid int!, startlsn binary(10)!, endlsn binary(10)!, typeid int!", [])


def _empty(spec: str) -> Callable[[Any, Database], Relation]:
    return lambda env, database: relation(spec, [])


VIEWS: dict[tuple[str, str], Callable[[Any, Database], Relation]] = {
    ("dbo", "systranschemas"): _systranschemas,
    ("sys", "databases"): _databases,
    ("sys", "database_recovery_status"): _recovery,
    ("sys", "configurations"): _configurations,
    ("sys", "dm_exec_sessions"): _sessions,
    ("sys", "dm_tran_locks"): state_views.locks,
    ("sys", "dm_tran_active_transactions"): state_views.transactions,
    ("sys", "dm_server_services"): _services,
    ("sys", "dm_cdc_log_scan_sessions"): _cdc_view("dm_cdc_log_scan_sessions"),
    ("sys", "dm_cdc_errors"): _cdc_view("dm_cdc_errors"),
    ("sys", "dm_db_log_space_usage"): _log_space,
    ("sys", "extended_properties"): _empty(
        "class tinyint!, class_desc nvarchar(60), major_id int!, minor_id int!, name sysname!, value nvarchar(4000)"
    ),
    ("sys", "foreign_keys"): _empty("name sysname!, object_id int!, schema_id int!, parent_object_id int!"),
    ("sys", "views"): _empty("name sysname!, object_id int!, schema_id int!, is_ms_shipped bit!"),
}


def msdb(env: Environment, name: str) -> Relation | None:
    """A table of msdb.dbo; cdc_jobs is there once a database used CDC."""
    agent = env.instance.agent
    if name == "cdc_jobs":
        found = [d.cdc.relation("cdc_jobs") for d in env.instance.storage.databases.values()]
        return (found[0][0], pa.concat_tables([table for _, table in found])) if agent.cdc_used else None
    views = {"sysjobs": agent.sysjobs, "sysjobactivity": agent.sysjobactivity, "syssessions": agent.syssessions}
    view = views.get(name)
    return None if view is None else view()
