"""Metadata, security and CDC functions, and the @@ variables."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow_provider_mssql_cdc.sandbox import system_types
from airflow_provider_mssql_cdc.sandbox.catalog import objects
from airflow_provider_mssql_cdc.sandbox.catalog.cdc_functions import CDC_FUNCTIONS, texts_of, values_of
from airflow_provider_mssql_cdc.sandbox.catalog.security import SECURITY_FUNCTIONS
from airflow_provider_mssql_cdc.sandbox.catalog.tracking import TRACKING_FUNCTIONS
from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.collations.names import DEFAULT
from airflow_provider_mssql_cdc.sandbox.engine.instance import SERVER_NAME
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database
from airflow_provider_mssql_cdc.sandbox.tsql.convert import convert, unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr, constant
from airflow_provider_mssql_cdc.sandbox.tsql.literals import text
from airflow_provider_mssql_cdc.sandbox.tsql.typing import BIGINT, DATETIME, INT, decimal, nvarchar, varbinary
from airflow_provider_mssql_cdc.sandbox.types import SqlType

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment

_NAME = nvarchar(128)
_EPOCH = datetime.datetime(1, 1, 1)


def global_variable(env: Environment, name: str) -> Expr:
    """@@name"""
    version = env.instance.version
    known: dict[str, tuple[Any, SqlType]] = {
        "trancount": (env.trancount, INT),
        "rowcount": (env.rowcount, INT),
        "error": (env.last_error, INT),
        "spid": (env.info.session_id, SqlType("smallint")),
        "procid": (0, INT),
        "nestlevel": (0, INT),
        "options": (5496, INT),
        "servername": (SERVER_NAME, _NAME),
        "servicename": ("MSSQLSERVER", _NAME),
        "version": (version.text, nvarchar(300)),
        "microsoftversion": (version.number[0] << 24 | version.number[2], INT),
        "max_connections": (32767, INT),
        "max_precision": (38, SqlType("tinyint")),
        "datefirst": (env.dates.first_day, SqlType("tinyint")),
        "language": (env.dates.language.name, _NAME),
        "langid": (env.dates.language.number, SqlType("smallint")),
        "textsize": (2147483647, INT),
        "lock_timeout": (-1 if env.manager.lock_timeout is None else int(env.manager.lock_timeout * 1000), INT),
        "identity": (env.last_insert_identity, decimal(38, 0)),
        "dbts": (env.current.last_rowversion, varbinary(8)),
    }
    if name not in known:
        raise unsupported(f"@@{name}")
    value, type_ = known[name]
    return constant(value, type_)


def _ticks(moment: datetime.datetime) -> int:
    return (moment - _EPOCH) // datetime.timedelta(microseconds=1) * 10


def _getdate(moment: datetime.datetime) -> Expr:
    sql = convert(str(_ticks(moment)), SqlType("datetime2", 0, 0, 7), DATETIME)
    return Expr(sql, DATETIME, False, constant=True)


def _clock(env: Environment, name: str) -> Expr:
    zoned = env.instance.clock.now()
    now, utc = zoned.replace(tzinfo=None), zoned.astimezone(datetime.UTC).replace(tzinfo=None)
    if name == "getdate":
        return _getdate(now)
    if name == "getutcdate":
        return _getdate(utc)
    if name == "sysdatetimeoffset":
        offset = (zoned.utcoffset() or datetime.timedelta()) // datetime.timedelta(minutes=1)
        return constant((_ticks(utc), offset), SqlType("datetimeoffset", 0, 0, 7))
    return constant(_ticks(now if name == "sysdatetime" else utc), SqlType("datetime2", 0, 0, 7))


def system_function(env: Environment, parts: tuple[str, ...], arguments: list[Expr]) -> Expr | None:
    """A function that asks the session, the catalogue or CDC; None where there is none of that name."""
    name = parts[-1].casefold()
    if len(parts) == 1:
        if name in ("getdate", "getutcdate", "sysdatetime", "sysutcdatetime", "sysdatetimeoffset"):
            return _clock(env, name)
        if name in METADATA_FUNCTIONS:
            return METADATA_FUNCTIONS[name](env, arguments)
        return None
    database = env.database_named(parts[0] if len(parts) == 3 else "")
    schema, name = fold(parts[-2]), fold(parts[-1])
    if name == "fn_varbintohexstr" and (schema == "sys" or (schema, database.name) == ("dbo", "master")):
        return Expr(f"('0x' || lower(hex({arguments[0].sql})))", nvarchar(-1), constant=arguments[0].constant)
    function = CDC_FUNCTIONS.get(name) if schema == "sys" else None
    return None if function is None else function(env, database, arguments)


def _lookup(names: dict[int, str], argument: Expr) -> Expr:
    """A name by id, for ids that may come from rows."""
    if not names:
        return constant(None, _NAME)
    keys = ", ".join(str(number) for number in names)
    values = ", ".join(text(name) for name in names.values())
    return Expr(f"map([{keys}], [{values}])[{argument.to(INT)}]", _NAME, constant=argument.constant)


def _database_argument(env: Environment, arguments: list[Expr], position: int) -> Database | None:
    if len(arguments) <= position:
        return env.current
    number = values_of(env, arguments[position:], "a database id")[0]
    return next((d for d in env.instance.storage.databases.values() if d.database_id == number), None)


def _object_part(attribute: str) -> Callable[[Any, list[Expr]], Expr]:
    """OBJECT_NAME and OBJECT_SCHEMA_NAME."""

    def function(env: Environment, arguments: list[Expr]) -> Expr:
        database = _database_argument(env, arguments, 1)
        found = objects.all_objects(env, database) if database else []
        return _lookup({each.object_id: getattr(each, attribute) for each in found}, arguments[0])

    return function


def _object_id(env: Environment, arguments: list[Expr]) -> Expr:
    values = texts_of(env, arguments, "OBJECT_ID")
    found = objects.find(env, values[0]) if values[0] else None
    if found is not None and len(values) > 1 and found.type.strip() != str(values[1]).strip().upper():
        found = None
    return constant(found.object_id if found else None, INT)


def _schema_name(env: Environment, arguments: list[Expr]) -> Expr:
    if not arguments:
        return constant("dbo", _NAME)
    return _lookup({number: name for name, number in objects.schemas(env, env.current).items()}, arguments[0])


def _schema_id(env: Environment, arguments: list[Expr]) -> Expr:
    wanted = values_of(env, arguments, "SCHEMA_ID")[0] if arguments else "dbo"
    found = [n for name, n in objects.schemas(env, env.current).items() if fold(name) == fold(str(wanted))]
    return constant(found[0] if found else None, INT)


def _db_id(env: Environment, arguments: list[Expr]) -> Expr:
    name = values_of(env, arguments, "DB_ID")[0] if arguments else env.current.name
    found = env.instance.storage.databases.get(str(name).casefold())
    return constant(found.database_id if found else None, SqlType("smallint"))


def _db_name(env: Environment, arguments: list[Expr]) -> Expr:
    if not arguments:
        return constant(env.current.name, _NAME)
    return _lookup({d.database_id: d.name for d in env.instance.storage.databases.values()}, arguments[0])


def _col_length(env: Environment, arguments: list[Expr]) -> Expr:
    table, column = texts_of(env, arguments, "COL_LENGTH")
    found = objects.find(env, table)
    lengths = {fold(c.name): system_types.max_length(c.type) for c in (found.columns if found else ())}
    return constant(lengths.get(fold(str(column))), SqlType("smallint"))


def _column_property(env: Environment, arguments: list[Expr]) -> Expr:
    table, column, wanted = values_of(env, arguments, "COLUMNPROPERTY")
    tables = {each.object_id: each for each in objects.tables(env, env.current)}
    columns = tables[table].columns if table in tables else ()
    found = next((each for each in columns if fold(each.name) == fold(str(column))), None)
    if found is None:
        return constant(None, INT)
    known = {
        "columnid": found.column_id,
        "allowsnull": int(found.nullable),
        "isidentity": int(found.identity),
        "iscomputed": int(found.computed is not None),
        "issparse": int(found.sparse),
    }
    if str(wanted).casefold() not in known:
        raise unsupported(f"COLUMNPROPERTY of {wanted}")
    return constant(known[str(wanted).casefold()], INT)


_SERVER: dict[str, tuple[Any, SqlType]] = {
    "servername": (SERVER_NAME, _NAME),
    "machinename": (SERVER_NAME, _NAME),
    "instancename": (None, _NAME),
    "collation": (DEFAULT, _NAME),
    "isclustered": (0, INT),
    "ishadrenabled": (0, INT),
    "isintegratedsecurityonly": (0, INT),
    "issingleuser": (0, INT),
    "lcid": (1033, INT),
    "sqlcharset": (1, SqlType("tinyint")),
}


def _server_property(env: Environment, arguments: list[Expr]) -> Expr:
    wanted = str(values_of(env, arguments, "SERVERPROPERTY")[0]).casefold()
    version = env.instance.version
    versions: dict[str, tuple[Any, SqlType]] = {
        "productversion": (version.product, _NAME),
        "productmajorversion": (str(version.number[0]), _NAME),
        "productlevel": (version.level, _NAME),
        "edition": (version.edition.text, _NAME),
        "engineedition": (version.edition.engine, INT),
        "editionid": (version.edition.number, BIGINT),
    }
    # the result is sql_variant, which the sandbox has not; it comes in the type that it holds
    return constant(*_SERVER.get(wanted, versions.get(wanted, (None, _NAME))))


def _database_property(env: Environment, arguments: list[Expr]) -> Expr:
    name, wanted = values_of(env, arguments, "DATABASEPROPERTYEX")
    database = env.instance.storage.databases.get(str(name).casefold())
    if database is None:
        return constant(None, _NAME)
    known: dict[str, tuple[Any, SqlType]] = {
        "status": ("ONLINE", _NAME),
        "updateability": ("READ_ONLY" if database.tracking.secondary else "READ_WRITE", _NAME),
        "useraccess": ("SINGLE_USER" if database.single_user else "MULTI_USER", _NAME),
        "recovery": (database.recovery_model, _NAME),
        "collation": (database.collation, _NAME),
        "version": (957, INT),
        "ischangetrackingenabled": (int(database.tracking.options is not None), INT),
    }
    return constant(*known.get(str(wanted).casefold(), (None, _NAME)))


def _type_name(env: Environment, arguments: list[Expr]) -> Expr:
    return _lookup({t.user_type_id: t.name for t in system_types.SYSTEM_TYPES}, arguments[0])


def _login_name(env: Environment, arguments: list[Expr]) -> Expr:
    if arguments:
        raise unsupported("SUSER_SNAME with an argument")
    return constant(env.principal.name, _NAME)


def _user_name(env: Environment, arguments: list[Expr]) -> Expr:
    if arguments:
        raise unsupported("USER_NAME with an argument")
    return constant(env.user_name(env.current), _NAME)


def _caught(attribute: str, type_: SqlType) -> Callable[[Any, list[Expr]], Expr]:
    """An ERROR_ function: NULL outside a CATCH block, and for the procedure of a batch."""

    def function(env: Environment, arguments: list[Expr]) -> Expr:
        value = getattr(env.caught[-1], attribute) if env.caught else None
        return constant(None if value == "" else value, type_)

    return function


METADATA_FUNCTIONS: dict[str, Callable[[Any, list[Expr]], Expr]] = {
    **SECURITY_FUNCTIONS,
    **TRACKING_FUNCTIONS,
    "object_name": _object_part("name"),
    "object_schema_name": _object_part("schema"),
    "object_id": _object_id,
    "schema_name": _schema_name,
    "schema_id": _schema_id,
    "db_id": _db_id,
    "db_name": _db_name,
    "serverproperty": _server_property,
    "col_length": _col_length,
    "columnproperty": _column_property,
    "databasepropertyex": _database_property,
    "suser_sname": _login_name,
    "suser_name": _login_name,
    "original_login": lambda env, arguments: constant(env.info.login.user, _NAME),
    "system_user": _login_name,
    "user_name": _user_name,
    "type_name": _type_name,
    "scope_identity": lambda env, arguments: constant(env.scope_identity, decimal(38, 0)),
    "xact_state": lambda env, arguments: constant(-1 if env.doomed else int(env.trancount > 0), SqlType("smallint")),
    "error_number": _caught("number", INT),
    "error_message": _caught("text", nvarchar(4000)),
    "error_severity": _caught("severity", INT),
    "error_state": _caught("state", INT),
    "error_line": _caught("line", INT),
    "error_procedure": _caught("procedure", _NAME),
    "app_name": lambda env, arguments: constant(env.info.login.app_name, _NAME),
    "host_name": lambda env, arguments: constant(env.info.login.host_name, _NAME),
    "current_timezone_id": lambda env, arguments: constant(env.instance.clock.zone_id, _NAME),
}
