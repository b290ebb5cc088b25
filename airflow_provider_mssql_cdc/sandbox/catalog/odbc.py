"""The ODBC catalogue procedures: sp_tables, sp_columns, sp_pkeys and sp_statistics."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from airflow_provider_mssql_cdc.sandbox import system_types
from airflow_provider_mssql_cdc.sandbox.catalog import objects
from airflow_provider_mssql_cdc.sandbox.catalog.arguments import Bound
from airflow_provider_mssql_cdc.sandbox.catalog.views import index_rows
from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import Relation, relation
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database
from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.typing import display, is_unicode, kind
from airflow_provider_mssql_cdc.sandbox.types import MAX, SqlType

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment

# ODBC 3 data types (docs: SQL data types)
_ODBC = {
    "bit": -7, "tinyint": -6, "smallint": 5, "int": 4, "bigint": -5, "decimal": 3, "numeric": 2, "money": 3,
    "smallmoney": 3,
    "real": 7, "float": 6, "date": 91, "time": -154, "datetime": 93, "smalldatetime": 93, "datetime2": 93,
    "datetimeoffset": -155, "char": 1, "varchar": 12, "text": -1, "nchar": -8, "nvarchar": -9, "sysname": -9,
    "ntext": -10, "xml": -152, "binary": -2, "varbinary": -3, "image": -4, "rowversion": -2, "uniqueidentifier": -11,
}  # fmt: skip


# the type of TDS for NOT NULL and for NULL columns; newer types have none of SQL Server 7.0 and show 0 (memory)
_TDS = {
    "bit": (50, 50), "tinyint": (48, 38), "smallint": (52, 38), "int": (56, 38), "bigint": (63, 108),
    "decimal": (55, 106), "numeric": (63, 108), "money": (60, 110), "smallmoney": (122, 110), "real": (59, 109),
    "float": (62, 109), "datetime": (61, 111), "smalldatetime": (58, 111), "char": (47, 39), "varchar": (39, 39),
    "nchar": (39, 39), "nvarchar": (39, 39), "sysname": (39, 39), "text": (35, 35), "ntext": (35, 35),
    "image": (34, 34), "binary": (45, 37), "varbinary": (37, 37), "rowversion": (45, 37), "uniqueidentifier": (37, 37),
}  # fmt: skip


def _matches(pattern: str | None, name: str) -> bool:
    if pattern is None or pattern == "%":
        return True
    parts = re.split(r"(\[.\]|%|_)", fold(pattern))
    regex = "".join(
        ".*"
        if part == "%"
        else "."
        if part == "_"
        else re.escape(part[1])
        if re.fullmatch(r"\[.\]", part)
        else re.escape(part)
        for part in parts
    )
    return re.fullmatch(regex, fold(name), re.DOTALL) is not None


def _same(wanted: str | None, name: str) -> bool:
    return wanted is None or fold(wanted) == fold(name)


def sp_tables(env: Environment, database: Database, given: Bound) -> Relation:
    """sp_tables"""
    spec = (
        "TABLE_QUALIFIER sysname, TABLE_OWNER sysname, TABLE_NAME sysname, TABLE_TYPE varchar(32), REMARKS varchar(254)"
    )
    types = given.text("@table_type")
    data = []
    for each in objects.tables(env, database):
        # CDC's own tables are system tables to the driver; sp_tables lists them as tables of their schema
        if types is not None and "'TABLE'" not in types.upper():
            continue
        if _matches(given.text("@table_owner"), each.schema) and _matches(given.text("@table_name"), each.name):
            data.append([database.name, each.schema, each.name, "TABLE", None])
    return relation(spec, sorted(data, key=lambda row: (row[1], row[2])))


_COLUMNS = (
    "TABLE_QUALIFIER sysname, TABLE_OWNER sysname, TABLE_NAME sysname, COLUMN_NAME sysname, DATA_TYPE smallint!, "
    "TYPE_NAME sysname, PRECISION int, LENGTH int, SCALE smallint, RADIX smallint, NULLABLE smallint!, "
    "REMARKS varchar(254), COLUMN_DEF nvarchar(4000), SQL_DATA_TYPE smallint!, SQL_DATETIME_SUB smallint, "
    "CHAR_OCTET_LENGTH int, ORDINAL_POSITION int!, IS_NULLABLE varchar(254)!"
)
_COLUMNS_SHORT = f"{_COLUMNS}, SS_DATA_TYPE tinyint"
_COLUMNS_100 = _COLUMNS + (
    ", SS_IS_SPARSE smallint, SS_IS_COLUMN_SET smallint, SS_IS_COMPUTED smallint, SS_IS_IDENTITY smallint, "
    "SS_UDT_CATALOG_NAME sysname, SS_UDT_SCHEMA_NAME sysname, SS_UDT_ASSEMBLY_TYPE_NAME sysname, "
    "SS_XML_SCHEMACOLLECTION_CATALOG_NAME sysname, SS_XML_SCHEMACOLLECTION_SCHEMA_NAME sysname, "
    "SS_XML_SCHEMACOLLECTION_NAME sysname, SS_DATA_TYPE tinyint"
)


def _sizes(type_: SqlType) -> tuple[int, int, int | None, int | None]:
    """PRECISION, LENGTH, SCALE and RADIX as ODBC means them."""
    if kind(type_) in ("str", "bin"):
        if type_.length == MAX or type_.name in ("text", "image", "ntext", "xml"):
            return (1073741823 if is_unicode(type_) else 2147483647, 2147483647, None, None)
        length = 8 if type_.name == "rowversion" else type_.length
        return length, 2 * length if is_unicode(type_) else length, None, None
    digits = system_types.precision(type_)
    if kind(type_) in ("int", "dec", "bit"):
        shown = digits + 2 if type_.name == "decimal" else {"money": 21, "smallmoney": 12}.get(type_.name)
        radix = None if kind(type_) == "bit" else 10
        return digits, shown or system_types.max_length(type_), system_types.scale(type_), radix
    if kind(type_) == "float":
        return digits if type_.name == "float" else 24, system_types.max_length(type_), None, 2
    if type_.name == "uniqueidentifier":
        return 36, 16, None, None
    lengths = {"date": 6, "time": 12, "datetime": 16, "smalldatetime": 16, "datetime2": 16, "datetimeoffset": 20}
    return digits, lengths[type_.name], system_types.scale(type_) if type_.name != "date" else None, None


def _columns(env: Environment, database: Database, given: Bound, wide: bool) -> Relation:
    exact = given.value("@fusepattern") == 0
    fits = _same if exact else _matches
    data: list[list[Any]] = []
    for each in objects.tables(env, database):
        if not fits(given.text("@table_owner"), each.schema) or not fits(given.text("@table_name"), each.name):
            continue
        for ordinal, column in enumerate(each.columns, 1):
            if not fits(given.text("@column_name"), column.name):
                continue
            type_ = column.type
            precision, length, scale, radix = _sizes(type_)
            odbc = _ODBC[type_.declared or type_.name]
            name = (type_.declared or "decimal") if type_.name == "decimal" else display(type_)
            name += " identity" if column.identity else ""
            octets = length if kind(type_) in ("str", "bin") else None
            is_date = odbc in (91, 93)
            row = [
                database.name, each.schema, each.name, column.name, odbc, name, precision, length, scale, radix,
                int(column.nullable), None, column.default, 9 if is_date else odbc,
                {91: 1, 93: 3}.get(odbc), octets, ordinal, "YES" if column.nullable else "NO",
            ]  # fmt: skip
            tds = _TDS.get(type_.declared or type_.name, (0, 0))[column.nullable]
            flags = [column.sparse, column.column_set, column.computed is not None, column.identity]
            extra = [*(int(flag) for flag in flags), *[None] * 6] if wide else []
            data.append([*row, *extra, tds])
    data.sort(key=lambda row: (row[1], row[2], row[16]))
    return relation(_COLUMNS_100 if wide else _COLUMNS_SHORT, data)


def sp_columns(env: Environment, database: Database, given: Bound) -> Relation:
    """sp_columns_100"""
    return _columns(env, database, given, wide=True)


def sp_columns_short(env: Environment, database: Database, given: Bound) -> Relation:
    """sp_columns"""
    return _columns(env, database, given, wide=False)


def sp_pkeys(env: Environment, database: Database, given: Bound) -> Relation:
    """sp_pkeys"""
    spec = (
        "TABLE_QUALIFIER sysname, TABLE_OWNER sysname, TABLE_NAME sysname, COLUMN_NAME sysname, KEY_SEQ "
        "smallint!, PK_NAME sysname"
    )
    data = []
    for each in objects.tables(env, database):
        key = each.entry.table.primary_key
        if key and _same(given.text("@table_owner"), each.schema) and _same(given.text("@table_name"), each.name):
            data += [
                [database.name, each.schema, each.name, name, i, key.name] for i, name in enumerate(key.columns, 1)
            ]
    return relation(spec, data)


def sp_statistics(env: Environment, database: Database, given: Bound) -> Relation:
    """sp_statistics and sp_statistics_100; the first row is the table's own."""
    if given.text("@index_name") not in (None, "%"):
        raise unsupported("sp_statistics of one index")
    spec = (
        "TABLE_QUALIFIER sysname, TABLE_OWNER sysname, TABLE_NAME sysname, NON_UNIQUE smallint, "
        "INDEX_QUALIFIER sysname, "
        "INDEX_NAME sysname, TYPE smallint!, SEQ_IN_INDEX smallint, COLUMN_NAME sysname, COLLATION char(1), "
        "CARDINALITY bigint, PAGES bigint, FILTER_CONDITION varchar(128)"
    )
    only_unique = (given.text("@is_unique") or "N").upper() == "Y"
    data: list[list[Any]] = []
    for each, number, index in index_rows(env, database):
        if not _same(given.text("@table_owner"), each.schema) or not _same(given.text("@table_name"), each.name):
            continue
        head = [database.name, each.schema, each.name]
        if number <= 1:
            data.append([*head, None, None, None, 0, None, None, None, None, None, None])
        if index is None or (only_unique and not index.unique):
            continue
        for i, name in enumerate(index.columns, 1):
            data.append(
                [
                    *head,
                    int(not index.unique),
                    each.name,
                    index.name,
                    1 if number == 1 else 3,
                    i,
                    name,
                    "D" if name in index.descending else "A",
                    None,
                    None,
                    None,
                ]
            )
    return relation(spec, data)
