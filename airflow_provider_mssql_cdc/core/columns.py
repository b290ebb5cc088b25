"""How captured columns travel: the T-SQL that reads each, the Spark type it is read as, and the columns it becomes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.exceptions import NameTakenError, UnsupportedColumnError
from airflow_provider_mssql_cdc.core.position import Lsn, Position
from airflow_provider_mssql_cdc.core.selection import EVERYTHING, HASH, REDACT, Selection
from airflow_provider_mssql_cdc.core.shapes import DELETED_AT, SHAPES
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema, quote

TEXT_SUFFIX = "__text"
"""Ends the name of the column that holds, as text, what the column beside it cannot."""

_TAKEN = frozenset(
    {*DELETED_AT, "_n", "_key_changed"}
    # Iceberg's metadata columns, which a real column of that name would hide
    | {"_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"}
)

TEMPORARY = "_mssql_cdc_"
"""Begins the names of columns that exist only while a job computes; captured columns may not begin so."""

TRAN_ID = f"{TEMPORARY}tran_id"
"""Column of a staged row: the transaction's id, until it gets its name in a table whose layout has it."""

SALT = f"{TEMPORARY}salt"
"""Column that holds the salt beside values to be hashed: as a constant it would stand in the plans of Spark."""

REDACTED = "redacted"
"""What stands in the place of a redacted text."""

_TEXTS = frozenset({"char", "varchar", "nchar", "nvarchar", "text", "ntext", "xml"})

NEVER_IN_OLD_IMAGES = frozenset({"text", "ntext", "image"})
"""Types that CDC leaves NULL in deletes and before images, whatever changed (docs: cdc.<instance>_CT)."""


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """A column of a target table.

    :param type: Spark SQL type
    :param expression: Spark SQL, with ``{}`` where the value read from the server stands
    :param former: it keeps what was loaded of a type that the source column has no longer
    """

    name: str
    type: str
    expression: str
    former: bool = False


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """One captured column's way from the change table to the targets.

    :param select: T-SQL expression that reads the column; '' if it is not read, since no target shows its values
    :param read_type: Spark SQL type of what the driver returns for ``select``
    :param targets: the columns that it becomes; the first has the column's own name, or the one it was given. None for
        a column that is read for the row filter alone
    """

    column: Column
    select: str
    read_type: str
    targets: tuple[TargetColumn, ...]

    @property
    def alias(self) -> str:
        """The column's name on the way from the server, free of whatever its real name contains."""
        return f"c{self.column.ordinal}"

    @property
    def name(self) -> str:
        """The column's name in the targets."""
        return self.targets[0].name

    @property
    def live(self) -> tuple[TargetColumn, ...]:
        """The columns that get its values."""
        return tuple(target for target in self.targets if not target.former)

    @property
    def is_lob(self) -> bool:
        """Whether CDC may leave out the value that targets show."""
        return self.column.is_lob and bool(self.select and self.targets)


def map_columns(table: TableName, schema: TableSchema, selection: Selection = EVERYTHING) -> tuple[ColumnMapping, ...]:
    """The mapping of every column that targets hold, and of those that the row filter needs.

    :raises UnsupportedColumnError: for a type that would not arrive unchanged
    """
    found = []
    for column in schema.loaded:
        if selection.holds(column.name):
            found.append(_chosen(map_column(table, column), selection))
        elif column.name in selection.filtered:
            found.append(dataclasses.replace(map_column(table, column), targets=()))
    return tuple(found)


def shown(mappings: Iterable[ColumnMapping]) -> tuple[ColumnMapping, ...]:
    """The mappings of the columns that targets hold."""
    return tuple(mapping for mapping in mappings if mapping.targets)


def check_columns(
    table: TableName, schema: TableSchema, selection: Selection = EVERYTHING, position: type[Position] = Lsn
) -> None:
    """Refuse a table that cannot be loaded exactly.

    :param position: kind of the feed's positions
    :raises UnsupportedColumnError: for a type that would not arrive unchanged, a key that cannot be compared exactly,
        or a name that is taken
    """
    mappings = map_columns(table, schema, selection)
    for name in schema.key:
        column = schema.column(name)
        if column.type == "datetimeoffset" and column.scale == 7:
            raise _unsupported(
                table,
                column,
                "is part of the key, and Spark cannot compare its 100 nanoseconds as instants.",
                "Choose another key (key=..), or capture the table with another unique index (@index_name).",
            )
    _refuse_clashes(table, mappings, reserved(position))


def reserved(position: type[Position] = Lsn) -> frozenset[str]:
    """Names that a loaded column may not have, in lower case.

    :param position: kind of the feed's positions
    """
    return _TAKEN.union(*(shape.system_columns(position) for shape in SHAPES.values() if shape.has_data))


def key_columns(schema: TableSchema, mappings: Iterable[ColumnMapping]) -> tuple[str, ...]:
    """The target columns that identify a row: the text where only the text is exact.

    :param mappings: of the columns that targets hold
    """
    targets = {mapping.column.name: mapping.targets for mapping in mappings}
    return tuple(targets[name][-1 if schema.column(name).type == "datetime2" else 0].name for name in schema.key)


def _refuse_clashes(table: TableName, mappings: tuple[ColumnMapping, ...], names: frozenset[str]) -> None:
    taken: dict[str, Column] = {}
    for mapping in mappings:
        for target in mapping.targets:
            # Spark compares names without regard to case
            name = target.name.lower()
            if name in names or name.startswith(TEMPORARY) or name in taken:
                other = f"the column {taken[name].name!r}" if name in taken else "a column of the load"
                raise NameTakenError(
                    f"column {mapping.column.name!r} of type {mapping.column.type} would be loaded as {target.name!r}, "
                    f"the name of {other}.",
                    table=str(table),
                    advice=f"Give it another name (rename), or leave it out (columns; a new one also by new_columns="
                    f'{{"{mapping.column.name}": "ask"}}).'
                    if not mapping.column.moved
                    else "Load into another table (table_name), and give one of them another name there (rename).",
                )
            taken[name] = mapping.column


def _chosen(mapping: ColumnMapping, selection: Selection) -> ColumnMapping:
    """The mapping under the name that was chosen, with what may be seen of the values."""
    column, old = mapping.column, mapping.column.name
    mask, new = selection.masks.get(old), selection.renames.get(old, old)
    name = new + column.suffix
    held = {old + each.suffix for each in column.former}
    left = [_named(each, old, new) for each in mapping.targets if each.former and (mask is None or each.name in held)]
    if mask == HASH:
        value = "UPPER({})" if mapping.column.type == "uniqueidentifier" else "{}"
        # salt and value as bytes: a text's are those of UTF-8
        text = value if mapping.read_type == "BINARY" else f"CAST(CAST({value} AS STRING) AS BINARY)"
        hashed = f"sha2(concat(CAST({SALT} AS BINARY), {text}), 256)"
        left = [dataclasses.replace(each, type="STRING", expression="CAST(NULL AS STRING)") for each in left]
        return dataclasses.replace(mapping, targets=(TargetColumn(name, "STRING", hashed), *left))
    if mask == REDACT:
        type_ = mapping.targets[0].type
        same = f"'{REDACTED}'" if column.type in _TEXTS or column.as_text else f"CAST(NULL AS {type_})"
        select = mapping.select if old in selection.filtered else ""
        return dataclasses.replace(mapping, select=select, targets=(TargetColumn(name, type_, same), *left))
    return dataclasses.replace(mapping, targets=(*(_named(each, old, new) for each in mapping.live), *left))


def _named(target: TargetColumn, old: str, new: str) -> TargetColumn:
    return dataclasses.replace(target, name=new + target.name[len(old) :])


def map_column(table: TableName, column: Column) -> ColumnMapping:
    """The mapping of a column as it is.

    :raises UnsupportedColumnError: for a type that would not arrive unchanged
    """
    if column.former:
        left = [
            dataclasses.replace(target, expression=f"CAST(NULL AS {target.type})", former=True)
            for each in column.former
            for target in map_column(table, dataclasses.replace(column, **dataclasses.asdict(each), former=())).targets
        ]
        mapping = map_column(table, dataclasses.replace(column, former=()))
        return dataclasses.replace(mapping, column=column, targets=(*mapping.targets, *left))
    if column.suffix:
        mapping = map_column(table, dataclasses.replace(column, suffix=""))
        name = column.name + column.suffix
        targets = tuple(_named(each, column.name, name) for each in mapping.targets)
        return dataclasses.replace(mapping, column=column, targets=targets)
    if column.as_text and (select := _AS_TEXT.get(column.type)) is not None:
        value = select.format(quote(column.name))
        return ColumnMapping(column, value, "STRING", (TargetColumn(column.name, "STRING", "{}"),))
    rule = _RULES.get(column.type)
    if rule is None:
        raise _unsupported(
            table,
            column,
            "cannot be loaded without changing its values.",
            "Leave it out: load others (columns=..), or enable an instance by a @captured_column_list without it.",
        )
    return rule(column)


def _unsupported(table: TableName, column: Column, problem: str, advice: str) -> UnsupportedColumnError:
    return UnsupportedColumnError(
        f"column {column.name!r} of type {column.type} {problem}", table=str(table), advice=advice
    )


def _as_is(type_: str, expression: str = "{}") -> Callable[[Column], ColumnMapping]:
    def rule(column: Column) -> ColumnMapping:
        return ColumnMapping(column, quote(column.name), type_, (TargetColumn(column.name, type_, expression),))

    return rule


def _decimal(column: Column) -> ColumnMapping:
    return _as_is(f"DECIMAL({column.precision},{column.scale})")(column)


def _xml(column: Column) -> ColumnMapping:
    select = f"CONVERT(nvarchar(max), {quote(column.name)})"
    return ColumnMapping(column, select, "STRING", (TargetColumn(column.name, "STRING", "{}"),))


# Dates and times travel as text: java.sql.Date and Timestamp follow the hybrid calendar and the zone of the JVM.
# Style 23 is yyyy-mm-dd, style 121 yyyy-mm-dd hh:mi:ss and as many digits as the type has (docs: CAST and CONVERT).
def _text(style: int, length: int, column: Column) -> str:
    return f"CONVERT(varchar({length}), {quote(column.name)}, {style})"


def _date(column: Column) -> ColumnMapping:
    return ColumnMapping(
        column, _text(23, 10, column), "STRING", (TargetColumn(column.name, "DATE", "CAST({} AS DATE)"),)
    )


def _time(column: Column) -> ColumnMapping:
    return ColumnMapping(column, _text(121, 16, column), "STRING", (TargetColumn(column.name, "STRING", "{}"),))


def _datetime(column: Column) -> ColumnMapping:
    # 26 characters are the microseconds: the seventh digit is cut, never rounded
    targets = [
        TargetColumn(column.name, "TIMESTAMP_NTZ", "CAST(SUBSTRING({}, 1, 26) AS TIMESTAMP_NTZ)"),
        TargetColumn(column.name + TEXT_SUFFIX, "STRING", "{}"),
    ]
    exact = column.type != "datetime2" or column.scale < 7
    return ColumnMapping(column, _text(121, 27, column), "STRING", tuple(targets[:1] if exact else targets))


def _datetimeoffset(column: Column) -> ColumnMapping:
    instant = "CAST(CONCAT(SUBSTRING({0}, 1, LEAST(26, LENGTH({0}) - 7)), RIGHT({0}, 6)) AS TIMESTAMP)"
    targets = (
        TargetColumn(column.name, "TIMESTAMP", instant.replace("{0}", "{}")),
        TargetColumn(column.name + TEXT_SUFFIX, "STRING", "{}"),
    )
    return ColumnMapping(column, _text(121, 34, column), "STRING", targets)


_STRING = _as_is("STRING")
_BINARY = _as_is("BINARY")

_AS_TEXT = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "bit"), "CONVERT(varchar(20), {})"),
    **dict.fromkeys(("decimal", "numeric"), "CONVERT(varchar(41), {})"),
    # style 2: all four digits behind the point
    **dict.fromkeys(("money", "smallmoney"), "CONVERT(varchar(30), {}, 2)"),
    # style 3: as many digits as come back to the same value; style 1: 0x before the digits (docs: CAST and CONVERT)
    **dict.fromkeys(("float", "real"), "CONVERT(varchar(32), {}, 3)"),
    **dict.fromkeys(("binary", "varbinary"), "CONVERT(varchar(max), {}, 1)"),
    "date": "CONVERT(varchar(10), {}, 23)",
    "time": "CONVERT(varchar(16), {}, 121)",
    **dict.fromkeys(("datetime", "smalldatetime", "datetime2"), "CONVERT(varchar(27), {}, 121)"),
    "datetimeoffset": "CONVERT(varchar(34), {}, 121)",
}
"""How values that are no texts are read as text, by type."""

_RULES: dict[str, Callable[[Column], ColumnMapping]] = {
    "bit": _as_is("BOOLEAN"),
    "tinyint": _as_is("SMALLINT"),
    "smallint": _as_is("SMALLINT"),
    "int": _as_is("INT"),
    "bigint": _as_is("BIGINT"),
    "decimal": _decimal,
    "numeric": _decimal,
    "money": _as_is("DECIMAL(19,4)"),
    "smallmoney": _as_is("DECIMAL(10,4)"),
    "real": _as_is("FLOAT"),
    "float": _as_is("DOUBLE"),
    "date": _date,
    "time": _time,
    "datetime": _datetime,
    "smalldatetime": _datetime,
    "datetime2": _datetime,
    "datetimeoffset": _datetimeoffset,
    "char": _STRING,
    "varchar": _STRING,
    "nchar": _STRING,
    "nvarchar": _STRING,
    "text": _STRING,
    "ntext": _STRING,
    "xml": _xml,
    "binary": _BINARY,
    "varbinary": _BINARY,
    "image": _BINARY,
    "timestamp": _BINARY,
    "rowversion": _BINARY,
    "uniqueidentifier": _as_is("STRING", "UPPER({})"),
}
