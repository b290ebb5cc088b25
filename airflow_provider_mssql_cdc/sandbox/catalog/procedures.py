"""System procedures: CDC's, sp_configure, sp_rename, and the ODBC catalogue procedures that drivers call."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from airflow_provider_mssql_cdc.sandbox.catalog import cdc_procedures, odbc, space, type_info
from airflow_provider_mssql_cdc.sandbox.catalog.arguments import Argument, Bound, Procedure, Result, bind
from airflow_provider_mssql_cdc.sandbox.catalog.tracking_procedures import TRACKING_PROCEDURES
from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation
from airflow_provider_mssql_cdc.sandbox.engine.instance import OPTIONS
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database
from airflow_provider_mssql_cdc.sandbox.protocol import Message, Outcome, ResultSet, ReturnStatus, RowCount, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment
from airflow_provider_mssql_cdc.sandbox.tsql.executor import Executor
from airflow_provider_mssql_cdc.sandbox.tsql.principals import change_member
from airflow_provider_mssql_cdc.sandbox.tsql.renaming import rename


def call(executor: Executor, parts: tuple[str, ...], arguments: list[Argument]) -> Iterator[Outcome]:
    """Run a system procedure.

    :raises SqlError: 2812 where there is none of that name; of the system's own nobody here knows that
    """
    name = fold(parts[-1])
    schema = fold(parts[-2]) if len(parts) > 1 else "sys"
    known = _PROCEDURES.get(name)
    if known is None and name.startswith(("sp_", "xp_")) and name not in _ABSENT:
        raise unsupported(f"the procedure {name}")
    if known is None or schema not in ("sys", "dbo", ""):
        raise SqlError.of(2812, ".".join(parts))
    database = executor.env.database_named(parts[-3] if len(parts) > 2 else "")
    bound = bind(parts[-1], known.signature, arguments)
    status = ReturnStatus(0)
    try:
        if known.right == "sysadmin" and not executor.env.principal.sysadmin:
            raise SqlError.of(22902)
        if known.right == "db_owner" and not executor.env.is_owner(database):
            raise SqlError.of(22904)
        result = known.run(executor, database, bound)
        if isinstance(result, tuple):
            columns, table = result
            yield ResultSet(columns, iter(table.to_batches(65536)))
            nocount = executor.settings.nocount
            yield RowCount(None if nocount else table.num_rows, suppress=nocount, command="SELECT")
        else:
            for outcome in result or ():
                if isinstance(outcome, ReturnStatus):
                    status = outcome
                else:
                    yield outcome
    except SqlError as problem:
        problem.procedure = problem.procedure or name
        raise
    yield status


def _configure(executor: Executor, database: Database, given: Bound) -> Iterator[Outcome]:
    wanted, value = (given.text("@configname") or "").casefold(), given.value("@configvalue")
    found = [name for name in OPTIONS if name.casefold().startswith(wanted)]  # a part that is enough to tell it
    if value is None or len(found) != 1:
        raise unsupported(f"sp_configure '{wanted}'")
    if not executor.env.principal.sysadmin:
        raise SqlError.of(15247)
    name, (_, _, low, high, _) = found[0], OPTIONS[found[0]]
    if not low <= int(value) <= high:
        raise SqlError.of(15129, value, name)
    executor.env.instance.configuration[name] = int(value)
    text = f"Configuration option '{name}' changed. Run the RECONFIGURE statement to install."
    yield Message(15457, text, 0)


def _rename(executor: Executor, database: Database, given: Bound) -> Iterator[Outcome]:
    old, new, kind = given.text("@objname"), given.text("@newname"), given.text("@objtype") or "OBJECT"
    if not old or not new or kind.upper() not in ("OBJECT", "COLUMN"):
        raise unsupported(f"sp_rename of {kind}")
    rename(executor, old, new, kind)
    yield Message(15477, "Caution: Changing any part of an object name could break scripts and stored procedures.", 0)


def _odbc(
    function: Callable[[Environment, Database, Bound], Relation],
) -> Callable[[Executor, Database, Bound], Result]:
    def procedure(executor: Executor, database: Database, given: Bound) -> Result:
        qualifier = given.text("@table_qualifier")
        return function(executor.env, executor.env.database_named(qualifier) if qualifier else database, given)

    return procedure


def _member(*, add: bool) -> Callable[[Executor, Database, Bound], None]:
    def procedure(executor: Executor, database: Database, given: Bound) -> None:
        change_member(executor, given.text("@rolename") or "", given.text("@membername") or "", add=add)

    return procedure


def _undeclared(executor: Executor, database: Database, given: Bound) -> Result:
    raise unsupported("sp_describe_undeclared_parameters")


# JDBC asks for it first, and falls back where a server is too old to have it
_ABSENT = frozenset({"sp_columns_170"})
_TABLE = "@table_name!, @table_owner, @table_qualifier"
_TYPE_INFO = Procedure("@data_type, @odbcver", _odbc(type_info.sp_datatype_info))
_STATISTICS = Procedure(f"{_TABLE}, @index_name, @is_unique, @accuracy", _odbc(odbc.sp_statistics))

_PROCEDURES: dict[str, Procedure] = {
    "sp_configure": Procedure("@configname, @configvalue", _configure),
    "sp_rename": Procedure("@objname!, @newname!, @objtype", _rename),
    "sp_spaceused": Procedure(
        "@objname, @updateusage, @mode, @oneresultset, @include_total_xtp_storage", space.sp_spaceused
    ),
    "sp_describe_undeclared_parameters": Procedure("@tsql, @params", _undeclared),
    "sp_tables": Procedure(
        "@table_name, @table_owner, @table_qualifier, @table_type, @fusepattern", _odbc(odbc.sp_tables)
    ),
    "sp_columns_100": Procedure(f"{_TABLE}, @column_name, @namescope, @odbcver, @fusepattern", _odbc(odbc.sp_columns)),
    "sp_columns": Procedure(f"{_TABLE}, @column_name, @odbcver", _odbc(odbc.sp_columns_short)),
    "sp_pkeys": Procedure(_TABLE, _odbc(odbc.sp_pkeys)),
    "sp_statistics_100": _STATISTICS,
    "sp_statistics": _STATISTICS,
    "sp_datatype_info_100": _TYPE_INFO,
    "sp_datatype_info": _TYPE_INFO,
    "sp_addrolemember": Procedure("@rolename!, @membername!", _member(add=True)),
    "sp_droprolemember": Procedure("@rolename!, @membername!", _member(add=False)),
    **cdc_procedures.PROCEDURES,
    **TRACKING_PROCEDURES,
}
