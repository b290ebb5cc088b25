"""sp_datatype_info: what ODBC's SQLGetTypeInfo tells of each type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_mssql_cdc.sandbox.catalog.arguments import Bound
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation, relation
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment

# docs: sp_datatype_info
_COLUMNS = (
    "TYPE_NAME sysname!, DATA_TYPE smallint!, PRECISION int, LITERAL_PREFIX varchar(32), LITERAL_SUFFIX varchar(32), "
    "CREATE_PARAMS varchar(32), NULLABLE smallint!, CASE_SENSITIVE smallint!, SEARCHABLE smallint!, "
    "UNSIGNED_ATTRIBUTE smallint, MONEY smallint!, AUTO_INCREMENT smallint, LOCAL_TYPE_NAME sysname, "
    "MINIMUM_SCALE smallint, MAXIMUM_SCALE smallint, SQL_DATA_TYPE smallint!, SQL_DATETIME_SUB smallint, "
    "NUM_PREC_RADIX int, INTERVAL_PRECISION smallint, USERTYPE smallint!"
)
_NOT_SEARCHABLE, _LIKE, _WHERE, _WHERE_AND_LIKE = 0, 1, 2, 3

# name, ODBC 3 type, precision, prefix, suffix, parameters, searchable, least and greatest scale, user type
_OTHERS = (
    ("datetimeoffset", -155, 34, "'", "'", "scale", _WHERE_AND_LIKE, 0, 7, 0),
    ("time", -154, 16, "'", "'", "scale", _WHERE_AND_LIKE, 0, 7, 0),
    ("xml", -152, 0, "N'", "'", None, _NOT_SEARCHABLE, None, None, 0),
    ("uniqueidentifier", -11, 36, "'", "'", None, _WHERE, None, None, 37),
    ("ntext", -10, 1073741823, "N'", "'", None, _LIKE, None, None, 0),
    ("nvarchar", -9, 4000, "N'", "'", "max length", _WHERE_AND_LIKE, None, None, 0),
    ("sysname", -9, 128, "N'", "'", None, _WHERE_AND_LIKE, None, None, 18),
    ("nchar", -8, 4000, "N'", "'", "length", _WHERE_AND_LIKE, None, None, 0),
    ("bit", -7, 1, None, None, None, _WHERE, 0, 0, 16),
    ("image", -4, 2147483647, "0x", None, None, _NOT_SEARCHABLE, None, None, 20),
    ("varbinary", -3, 8000, "0x", None, "max length", _WHERE, None, None, 4),
    ("binary", -2, 8000, "0x", None, "length", _WHERE, None, None, 3),
    ("timestamp", -2, 8, "0x", None, None, _WHERE, None, None, 80),
    ("text", -1, 2147483647, "'", "'", None, _LIKE, None, None, 19),
    ("char", 1, 8000, "'", "'", "length", _WHERE_AND_LIKE, None, None, 1),
    ("varchar", 12, 8000, "'", "'", "max length", _WHERE_AND_LIKE, None, None, 2),
    ("date", 91, 10, "'", "'", None, _WHERE_AND_LIKE, None, 0, 0),
    ("datetime2", 93, 27, "'", "'", "scale", _WHERE_AND_LIKE, 0, 7, 0),
    ("datetime", 93, 23, "'", "'", None, _WHERE_AND_LIKE, 3, 3, 12),
    ("smalldatetime", 93, 16, "'", "'", None, _WHERE_AND_LIKE, 0, 0, 22),
)
# name, ODBC type, precision, parameters, greatest scale, radix, user type, whether it can be an identity
_NUMBERS = (
    ("tinyint", -6, 3, None, 0, 10, 5, True),
    ("bigint", -5, 19, None, 0, 10, 0, True),
    ("numeric", 2, 38, "precision,scale", 38, 10, 10, True),
    ("decimal", 3, 38, "precision,scale", 38, 10, 24, True),
    ("money", 3, 19, None, 4, 10, 11, False),
    ("smallmoney", 3, 10, None, 4, 10, 21, False),
    ("int", 4, 10, None, 0, 10, 7, True),
    ("smallint", 5, 5, None, 0, 10, 6, True),
    ("float", 6, 53, None, None, 2, 8, False),
    ("real", 7, 24, None, None, 2, 23, False),
)
_IN_ODBC_2 = {91: 9, 93: 11}  # docs: Appendix D of ODBC, datetime types


def _rows() -> list[list[Any]]:
    rows: list[list[Any]] = []
    for name, type_, precision, prefix, suffix, given, searchable, low, high, user in _OTHERS:
        nullable = int(name not in ("sysname", "timestamp"))
        sub = {91: 1, 93: 3}.get(type_)
        rows.append([
            name, type_, precision, prefix, suffix, given, nullable, 0, searchable, None, 0, None, name, low, high,
            9 if sub else type_, sub, None, None, user,
        ])  # fmt: skip
    for name, type_, precision, given, high, radix, user, counts in _NUMBERS:
        money = int("money" in name)
        unsigned = int(name == "tinyint")
        low = high if money or high is None else 0
        head = [name, type_, precision, "$" if money else None, None, given, 1, 0, _WHERE, unsigned, money, 0, name]
        tail = [type_, None, radix, None, user]
        rows.append([*head, low, high, *tail])
        if counts:
            shown = f"{name}() identity" if given else f"{name} identity"
            rows.append([
                shown, *head[1:5], "precision" if given else None, 0, *head[7:11], 1, shown, 0, 0, *tail,
            ])  # fmt: skip
    return rows


def sp_datatype_info(env: Environment, database: Database, given: Bound) -> Relation:
    """sp_datatype_info and sp_datatype_info_100: all types, or those of one ODBC type."""
    wanted, version = given.number("@data_type") or 0, given.number("@odbcver") or 2
    rows = [[row[0], row[1] if version == 3 else _IN_ODBC_2.get(row[1], row[1]), *row[2:]] for row in _rows()]
    found = [row for row in rows if wanted in (0, row[1])]
    return relation(_COLUMNS, sorted(found, key=lambda row: (row[1], row[11] or 0, row[10], row[19])))
