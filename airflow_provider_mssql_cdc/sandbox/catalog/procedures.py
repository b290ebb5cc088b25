"""System procedures: CDC's, sp_configure, sp_rename, and the ODBC catalogue procedures that drivers call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.catalog import cdc_procedures, odbc
from airflow_provider_mssql_cdc.sandbox.catalog.arguments import Bound, bind
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database
from airflow_provider_mssql_cdc.sandbox.protocol import (
    Column,
    Message,
    Outcome,
    ResultSet,
    ReturnStatus,
    RowCount,
    SqlError,
)
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox.tsql.calls import Argument
    from airflow_provider_mssql_cdc.sandbox.tsql.interpreter import Interpreter

Procedure = Callable[["Interpreter", Database, Bound], Iterator[Outcome]]


def call(interpreter: Interpreter, parts: tuple[str, ...], arguments: list[Argument]) -> Iterator[Outcome]:
    """Run a system procedure.

    :raises SqlError: 2812 where there is none of that name
    """
    name = parts[-1].casefold()
    schema = parts[-2].casefold() if len(parts) > 1 else "sys"
    known = _PROCEDURES.get(name)
    if known is None or schema not in ("sys", "dbo", ""):
        raise SqlError(2812, f"Could not find stored procedure '{'.'.join(parts)}'.", state=62)
    signature, procedure = known
    database = interpreter.env.database_named(parts[-3] if len(parts) > 2 else "")
    bound = bind(parts[-1], signature, arguments)
    try:
        yield from procedure(interpreter, database, bound)
    except SqlError as error:
        error.procedure = error.procedure or name
        raise
    yield ReturnStatus(0)


def result(relation: tuple[list[Column], pa.Table], nocount: bool = False) -> Iterator[Outcome]:
    """A relation as a result set."""
    columns, table = relation
    yield ResultSet(columns, iter(table.to_batches(65536)))
    yield RowCount(None if nocount else table.num_rows, suppress=nocount, command="SELECT")


def _configure(interpreter: Interpreter, database: Database, given: Bound) -> Iterator[Outcome]:
    configuration = interpreter.env.instance.configuration
    name, value = given.text("@configname"), given.value("@configvalue")
    if name is None or value is None:
        raise unsupported("sp_configure without a name and a value")
    if not interpreter.env.principal.sysadmin:
        raise SqlError(15247, "User does not have permission to perform this action.")
    if name.casefold() == "show advanced options":
        configuration.show_advanced = bool(value)
    elif name.casefold() == "max text repl size (b)" or name.casefold() == "max text repl size":
        if not -1 <= int(value) <= 2147483647:
            raise SqlError(15129, f"'{value}' is not a valid value for configuration option '{name}'.")
        configuration.max_text_repl_size = int(value)
    else:
        raise unsupported(f"sp_configure '{name}'")
    text = f"Configuration option '{name}' changed. Run the RECONFIGURE statement to install."
    yield Message(15457, text, 0)


def _rename(interpreter: Interpreter, database: Database, given: Bound) -> Iterator[Outcome]:
    from airflow_provider_mssql_cdc.sandbox.tsql.renaming import rename

    old, new, kind = given.text("@objname"), given.text("@newname"), given.text("@objtype") or "OBJECT"
    if not old or not new or kind.upper() not in ("OBJECT", "COLUMN"):
        raise unsupported(f"sp_rename of {kind}")
    rename(interpreter, old, new, kind)
    yield Message(15477, "Caution: Changing any part of an object name could break scripts and stored procedures.", 0)


def _odbc(function: Callable[[Any, Database, Bound], tuple[list[Column], pa.Table]]) -> Procedure:
    def procedure(interpreter: Interpreter, database: Database, given: Bound) -> Iterator[Outcome]:
        qualifier = given.values.get("@table_qualifier")
        place = interpreter.env.database_named(str(qualifier)) if qualifier else database
        yield from result(function(interpreter.env, place, given), interpreter.settings.nocount)

    return procedure


def _undeclared(interpreter: Interpreter, database: Database, given: Bound) -> Iterator[Outcome]:
    raise unsupported("sp_describe_undeclared_parameters")


_PROCEDURES: dict[str, tuple[str, Procedure]] = {
    "sp_configure": ("@configname, @configvalue", _configure),
    "sp_rename": ("@objname!, @newname!, @objtype", _rename),
    "sp_describe_undeclared_parameters": ("@tsql, @params", _undeclared),
    "sp_tables": (
        "@table_name, @table_owner, @table_qualifier, @table_type, @fusepattern",
        _odbc(odbc.sp_tables),
    ),
    "sp_columns_100": (
        "@table_name!, @table_owner, @table_qualifier, @column_name, @namescope, @odbcver, @fusepattern",
        _odbc(odbc.sp_columns),
    ),
    "sp_columns": (
        "@table_name!, @table_owner, @table_qualifier, @column_name, @odbcver",
        _odbc(odbc.sp_columns_short),
    ),
    "sp_pkeys": ("@table_name!, @table_owner, @table_qualifier", _odbc(odbc.sp_pkeys)),
    "sp_statistics_100": (
        "@table_name!, @table_owner, @table_qualifier, @index_name, @is_unique, @accuracy",
        _odbc(odbc.sp_statistics),
    ),
    "sp_statistics": (
        "@table_name!, @table_owner, @table_qualifier, @index_name, @is_unique, @accuracy",
        _odbc(odbc.sp_statistics),
    ),
    **cdc_procedures.PROCEDURES,
}
