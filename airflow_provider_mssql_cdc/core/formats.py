"""Where rows can go: a record for each target format, and the one list of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from airflow_provider_mssql_cdc.core.exceptions import ParameterError, TargetError
from airflow_provider_mssql_cdc.core.shapes import MIRROR, SHAPES
from airflow_provider_mssql_cdc.core.table import TableName

ICEBERG, DELTA, PARQUET, POSTGRESQL = "iceberg", "delta", "parquet", "postgresql"

COLUMN_MAPPING = "delta.columnMapping.mode"
"""Table property of Delta: columns may get other names, for readers that know of it (docs: Delta column mapping)."""


@dataclass(frozen=True, slots=True)
class Package:
    """A library, as Maven names it.

    :param coordinate: ``group:artifact:version``
    :param parts: all that it needs beside it, where Maven would bring more; None takes what Maven brings
    :param without: what Maven would bring, as ``group:artifact``, with ``*`` for any letters
    """

    coordinate: str
    parts: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()


JDBC_DRIVER = Package("com.microsoft.sqlserver:mssql-jdbc:13.6.2.jre11")


@dataclass(frozen=True, slots=True)
class Identifiers:
    """Names that a format cannot hold as they are.

    :param bytes: the most that a name may have
    :param too_long: says so
    :param prefix: begins the names of the load's own tables
    :param columns: that each table has of itself
    """

    bytes: int
    too_long: str
    prefix: str
    columns: frozenset[str]

    def is_too_long(self, name: str) -> bool:
        """Whether a name has more bytes than the format holds."""
        return len(name.encode()) > self.bytes

    def check(self, table: str, columns: Iterable[str], source: TableName) -> None:
        """Refuse names that the format cannot hold.

        :param table: name of the target table
        :param columns: of the target table
        :param source: the source table, for the message
        :raises TargetError: with the name, and what to do
        """
        advice = "Choose another table_name."
        if self.is_too_long(table):
            raise TargetError(f"{table!r} is too long: {self.too_long}", table=str(source), advice=advice)
        if table.startswith(self.prefix):
            raise TargetError(
                f"names of target tables must not begin with {self.prefix}, as {table!r} does: tables of the load do.",
                table=str(source),
                advice=advice,
            )
        for column in columns:
            too_long = self.is_too_long(column)
            if too_long or column in self.columns:
                raise TargetError(
                    f"column {column!r} "
                    + (f"is too long: {self.too_long}" if too_long else "is a column that each table has."),
                    table=str(source),
                    advice="Give it another name (rename), or leave it out of the capture instance "
                    "(@captured_column_list).",
                )


@dataclass(frozen=True, slots=True)
class TargetFormat:
    """A kind of tables that loads write to.

    :param name: begins the addresses
    :param addresses: regular expressions of them; their groups are what stands before the table's name, and a
        ``namespace`` or ``folder`` may lead nowhere else
    :param forms: how they are written, for messages
    :param tables: function of the job that opens its tables, as ``module:function``
    :param packages: jars beside the JDBC driver, for Spark 4.1
    :param conf: Spark settings, which the author's own replace
    :param what: names it for people
    :param shapes: that it holds; None: all
    :param is_made_with: whether its tables are made with ``partition_by`` and ``table_properties``
    :param in_database: whether the address names an Airflow connection and a schema
    :param identifiers: names that it cannot hold; None where it holds all
    """

    name: str
    addresses: tuple[re.Pattern[str], ...]
    forms: tuple[str, ...]
    tables: str
    packages: tuple[Package, ...] = ()
    conf: Mapping[str, str] = field(default_factory=dict)
    what: str = ""
    shapes: frozenset[str] | None = None
    is_made_with: bool = True
    in_database: bool = False
    identifiers: Identifiers | None = None

    def names(self, address: str) -> bool:
        """Whether an address, which may be a template behind the format, begins as those of this format do."""
        return address.startswith((f"{self.name}:", f"{self.name}+"))

    def place(self, address: str) -> tuple[str, ...] | None:
        """What stands before the table's name: the catalog and the levels of a namespace; or the URL of a folder; or
        the Airflow connection and the schema. None if the address is not of this format.

        :raises ParameterError: if it leads out of the catalog or the folder, or names what the format cannot hold
        """
        match = next(filter(None, (form.fullmatch(address) for form in self.addresses)), None)
        if match is None:
            return None
        found = match.groupdict()
        if ".." in unquote(found.get("folder") or "").split("/"):
            raise ParameterError(f"target {address!r}: write the folder without '..'")
        if self.identifiers and self.identifiers.is_too_long(found.get("schema") or ""):
            raise ParameterError(f"target {address!r}: {self.identifiers.too_long}")
        levels = (found.pop("namespace", None) or "").split("/")
        for level in filter(None, levels):
            if is_path(level):
                raise ParameterError(
                    f"target {address!r}: {level!r} is no name of a namespace; a catalog of folders would write "
                    "elsewhere."
                )
        return (*filter(None, found.values()), *filter(None, levels))

    def check(self, address: str, shapes: Iterable[str], made: Mapping[str, object]) -> None:
        """Refuse what the format does not have.

        :param made: what tables are to be made with: ``partition_by``, ``table_properties``
        :raises ParameterError: naming it
        """
        if self.shapes is not None and not self.shapes.issuperset(shapes):
            alone = ", ".join(f'"{shape}"' for shape in SHAPES if shape in self.shapes)
            raise ParameterError(f"target {address!r}: {self.what} hold shapes=[{alone}] alone")
        for name, value in made.items():
            if value and not self.is_made_with:
                raise ParameterError(f"target {address!r}: {self.what} have no {name}")


def is_path(name: str) -> bool:
    """Whether a catalog that makes folders of names would take this for a path, or for nothing."""
    plain = unquote(name)
    return plain.strip() in ("", ".", "..") or "/" in plain or "\\" in plain


def _in_catalog(format_: str) -> re.Pattern[str]:
    return re.compile(rf"{format_}://(?P<catalog>[A-Za-z_][A-Za-z0-9_]*)/(?P<namespace>[^/]+(?:/[^/]+)*)/?")


def _in_folder(format_: str) -> re.Pattern[str]:
    return re.compile(rf"{format_}\+(?P<folder>[a-z][a-z0-9]*://[^?#]*[^/?#])/*")


_ONLY_ADDS = frozenset(name for name, shape in SHAPES.items() if shape.only_adds)
_TABLES = "airflow_provider_mssql_cdc.spark.targets"

FORMATS: dict[str, TargetFormat] = {
    target.name: target
    for target in (
        TargetFormat(
            ICEBERG,
            (_in_catalog(ICEBERG),),
            ("iceberg://catalog/namespace",),
            f"{_TABLES}.iceberg:IcebergTable.opened",
            (Package("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"),),
            {"spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"},
        ),
        TargetFormat(
            DELTA,
            (_in_catalog(DELTA), _in_folder(DELTA)),
            ("delta://catalog/namespace", "delta+file:///folder"),
            f"{_TABLES}.delta:DeltaTable.opened",
            (
                Package(
                    "io.delta:delta-spark_4.1_2.13:4.4.0",
                    (
                        "io.delta:delta-storage:4.4.0",
                        "io.delta:delta-kernel-api:4.4.0",
                        "io.delta:delta-kernel-defaults:4.4.0",
                        "io.delta:delta-kernel-unitycatalog:4.4.0",
                        "io.unitycatalog:unitycatalog-client:0.6.0",
                    ),
                    # by way of Unity Catalog's Hadoop part Maven brings older versions of what Spark has
                    (
                        "com.*:*",
                        "commons-*:*",
                        "io.airlift:*",
                        "io.unitycatalog:unitycatalog-hadoop",
                        "jakarta.*:*",
                        "javax.*:*",
                        "org.*:*",
                    ),
                ),
            ),
            {
                "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
                # tables in folders are found through it, too
                "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            },
        ),
        TargetFormat(
            PARQUET,
            (_in_folder(PARQUET),),
            ("parquet+file:///folder",),
            f"{_TABLES}.parquet:ParquetTable.opened",
            what="Parquet files",
            shapes=_ONLY_ADDS,
            is_made_with=False,
        ),
        TargetFormat(
            POSTGRESQL,
            (re.compile(r"postgresql://(?P<connection>[\w.-]+)/(?P<schema>[^/]+)/?"),),
            ("postgresql://connection_id/schema",),
            f"{_TABLES}.postgresql.table:PostgresqlTable.opened",
            (Package("org.postgresql:postgresql:42.7.14"),),
            what="tables in PostgreSQL",
            shapes=frozenset({MIRROR, *_ONLY_ADDS}),
            is_made_with=False,
            in_database=True,
            # It cuts longer names (docs: Identifiers and Key Words), and has columns of its own in each table (docs:
            # System Columns).
            identifiers=Identifiers(
                63,
                "PostgreSQL's names have at most 63 bytes.",
                "mssql_cdc_",
                frozenset({"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"}),
            ),
        ),
    )
}
"""All formats by their name."""


def format_of(address: str) -> TargetFormat | None:
    """The format that an address begins with; None where it begins with none, as a template may."""
    return next((target for target in FORMATS.values() if target.names(address)), None)


def check_format(address: str, shapes: Iterable[str], **made: object) -> None:
    """Refuse what the format of a target does not have.

    :param address: of the target, which may be a template behind the format
    :param made: what tables are to be made with: ``partition_by``, ``table_properties``
    :raises ParameterError: for shapes that it does not hold, or tables that are not made with these
    """
    if (target := format_of(address)) is not None:
        target.check(address, shapes, made)


def check_identifiers(format_: str, table: str, columns: Iterable[str], source: TableName) -> None:
    """Refuse names that a target cannot hold as they are.

    :param format_: of the target
    :param table: name of the target table
    :param columns: of the target table
    :param source: the source table, for the message
    :raises TargetError: with the name, and what to do
    """
    if (identifiers := FORMATS[format_].identifiers) is not None:
        identifiers.check(table, columns, source)


def packages(address: str) -> str | None:
    """The jars for a target, as ``spark.jars.packages`` takes them; None where the address begins with no format."""
    target = format_of(address)
    if target is None:
        return None
    return ",".join(package.coordinate for package in (*target.packages, JDBC_DRIVER))


def named(coordinates: str) -> tuple[Package, ...]:
    """The packages that ``packages`` has named.

    :raises KeyError: for another one
    """
    known = {package.coordinate: package for target in FORMATS.values() for package in (*target.packages, JDBC_DRIVER)}
    return tuple(known[coordinate] for coordinate in coordinates.split(","))
