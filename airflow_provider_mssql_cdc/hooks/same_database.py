"""Whether two connections reach the same database."""

from __future__ import annotations

from airflow_provider_mssql_cdc.core.exceptions import ConnectionSettingError
from airflow_provider_mssql_cdc.hooks import statements
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook


def check_same_database(hook: MsSqlCdcHook, admin: MsSqlCdcHook) -> None:
    """Refuse a connection that is to make or drop capture instances, and reaches another database than the load reads.

    A commit tells: names do not, since one server may answer under several, as the replicas of an availability group
    do, and another one may have a database of the same name, as after a restore for tests.

    :param hook: of the load
    :param admin: of the other connection
    :raises ConnectionSettingError: if it does
    """
    if admin.place == hook.place:
        return
    mine, other = hook.database_status(), admin.database_status()
    same = mine.name.casefold() == other.name.casefold() and other.cdc_enabled
    if same and mine.max_lsn is not None:
        same = admin.witnesses([mine.max_lsn]).get(mine.max_lsn) == mine.max_lsn_time
    elif same:
        same = _server(hook) == _server(admin)
    if not same:
        raise ConnectionSettingError(
            f"{admin.mssql_conn_id} reaches database {other.name} on {admin.where.server} ({_server(admin)}), which is "
            f"not database {mine.name} on {hook.where.server} ({_server(hook)}) that the load reads by "
            f"{hook.mssql_conn_id}.",
            advice="Let admin_conn_id name a connection to the load's own database, of a login that is db_owner there.",
        )


def _server(hook: MsSqlCdcHook) -> str:
    """The name that a server gives itself."""
    return str(hook.query(statements.SERVER_NAME)[0][0])
