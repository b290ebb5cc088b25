"""Schema cdc: change tables, metadata tables and generated functions, as relations to read from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from airflow_provider_mssql_cdc.sandbox.catalog.objects import CLUSTERED_ORDER, METADATA
from airflow_provider_mssql_cdc.sandbox.collations.identifiers import fold
from airflow_provider_mssql_cdc.sandbox.engine.cdc.functions import all_columns, net_columns
from airflow_provider_mssql_cdc.sandbox.engine.cdc.instance import CaptureInstance
from airflow_provider_mssql_cdc.sandbox.engine.cdc.reading import ChangeReader
from airflow_provider_mssql_cdc.sandbox.engine.cdc.relation import relation
from airflow_provider_mssql_cdc.sandbox.engine.storage import Database
from airflow_provider_mssql_cdc.sandbox.protocol import Column, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import masks
from airflow_provider_mssql_cdc.sandbox.tsql.ordering import ascending
from airflow_provider_mssql_cdc.sandbox.tsql.relation import EVERYTHING, Range, Relation, Rows, tighter
from airflow_provider_mssql_cdc.sandbox.tsql.results import table
from airflow_provider_mssql_cdc.sandbox.tsql.typing import INT
from airflow_provider_mssql_cdc.sandbox.tsql.unfinished_reads import changes_of, rows_of_functions
from airflow_provider_mssql_cdc.sandbox.types import SqlType

if TYPE_CHECKING:
    from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment

_ALL, _NET = "fn_cdc_get_all_changes_", "fn_cdc_get_net_changes_"


def change_relation(
    env: Environment, database: Database, name: str, bounds: Range, full: str, hints: frozenset[str] = frozenset()
) -> Relation:
    """A table of schema cdc.

    :param bounds: the commit LSNs that can be of use; rows of a change table outside them are not read at all
    :param hints: in lower case
    :raises SqlError: 208, 1222, 1205
    """
    wanted = fold(name)
    cdc = changes_of(env, database, name.casefold(), hints)
    if not cdc.enabled:
        raise SqlError.of(208, full)
    if wanted in METADATA:
        return env.arrow_relation(*cdc.relation(wanted))
    if wanted.endswith(fold("_CT")):
        env.manager.check_metadata(database, "cdc", name[:-3])
    instance = change_table_instance(cdc, name)
    if instance is None:
        raise SqlError.of(208, full)
    columns, changes = cdc.changes(instance.capture_instance)
    named = [(column, f"x{i}") for i, column in enumerate(columns, 1)]
    batches = changes.between(*bounds)
    places = _key_places(columns)
    clustered = tuple(places)

    def in_order(names: tuple[str, ...]) -> bool:
        return names == clustered[: len(names)] or ascending(batches, [places[name] for name in names])

    rows = Rows(lambda within: changes.between(*tighter(bounds, within)), clustered, clustered[0], in_order)
    # what polls ask of quiet tables has no rows
    source = env.later(lambda: table(named, rows.read(EVERYTHING))) if batches else env.register(table(named, batches))
    return Relation(source, named, rows, masks=masks.of_changes(env, database, instance, named))


def instance_of_function(cdc: ChangeReader, name: str) -> CaptureInstance | None:
    """The capture instance whose changes a generated function returns."""
    return cdc.instance(name[len(_ALL) :]) if name.casefold().startswith((_ALL, _NET)) else None


def rows_of_function(columns: list[Column], rows: pa.Table) -> Rows:
    """The rows of a table-valued function, with what it returns of a change table's clustered key."""
    batches, places = rows.to_batches(), _key_places(columns)
    in_order = lambda names: ascending(batches, [places[name] for name in names])  # noqa: E731
    return Rows(lambda within: batches, tuple(places), in_order=in_order)


def _key_places(columns: list[Column]) -> dict[str, int]:
    """Where the columns of a change table's clustered key lie, as far as they are there, by their DuckDB names."""
    places = {column.name: i for i, column in enumerate(columns) if column.type in (SqlType("binary", 10), INT)}
    return {f"x{places[name] + 1}": places[name] for name in CLUSTERED_ORDER if name in places}


def change_table_instance(cdc: ChangeReader, name: str) -> CaptureInstance | None:
    """The capture instance whose change table has this name."""
    return cdc.instance(name[:-3]) if fold(name).endswith(fold("_CT")) else None


def may_read_changes(env: Environment, database: Database, instance: CaptureInstance) -> bool:
    """Whether the gating role and the rights on the source let the session call the generated functions."""
    if env.is_owner(database):
        return True
    source = instance.source
    gate = instance.role_name is None or env.user_in_role(database, instance.role_name)
    captured = [column.name for column in instance.columns]
    return gate and env.permitted(database, "SELECT", source.schema, source.name, captured)


def change_function(
    env: Environment,
    database: Database,
    schema: str,
    name: str,
    arguments: list[Any],
    late: list[SqlError] | None,
) -> tuple[list[Column], Any] | None:
    """A table-valued function of schema cdc or sys; None where there is none of that name.

    :param late: see ``Context.late``
    :raises SqlError: 313 for a bad range, 229 where the session may not read the instance
    """
    lowered = fold(name)
    if fold(schema) == "sys" and lowered == "fn_listextendedproperty":
        description = "objtype nvarchar(128), objname nvarchar(128), name nvarchar(128), value nvarchar(128)"
        return relation(description, [])
    if fold(schema) != "cdc" or not lowered.startswith((_ALL, _NET)):
        return None
    changes_of(env, database, "change_tables")
    cdc = changes_of(env, database, "lsn_time_mapping")
    env.manager.check_metadata(database, "cdc", name[len(_ALL) :])
    instance = cdc.instance(name[len(_ALL) :])
    if instance is None:
        return None
    if len(arguments) != 3:
        raise SqlError.of(313, f"cdc.{name}")
    kind = "all" if lowered.startswith(_ALL) else "net"
    if not may_read_changes(env, database, instance):
        shown = f"fn_cdc_get_{kind}_changes_..."
        # the gating role is granted the functions; who has no right on one does not reach the check inside it
        if instance.role_name and not (
            env.user_in_role(database, instance.role_name) or env.may_select(database, "cdc", name)
        ):
            shown = f"fn_cdc_get_{kind}_changes_{instance.capture_instance}"
        raise SqlError.of(229, "SELECT", shown, database.name, "cdc")
    low, high = (lsn_argument(value) for value in arguments[:2])
    read = cdc.all_changes if kind == "all" else cdc.net_changes
    batches: Iterable[pa.RecordBatch] = ()
    try:
        rows_of = rows_of_functions(env, database, cdc)
        written = rows_of.instance(instance.capture_instance)
        if written is not None and written.columns != instance.columns:
            # who alters a change table lets nobody read it meanwhile
            database.cdc.finish()
            cdc = rows_of = changes_of(env, database, "lsn_time_mapping")
        columns, batches = read(instance.capture_instance, low, high, arguments[2], rows_of)
    except SqlError as error:
        if late is None or error.number != 313 or not cdc.switches.columns_before_range_error:
            raise
        late.append(error)
        columns = all_columns(instance) if kind == "all" else net_columns(instance)
    # a captured column may have any name, also that of another column
    names = [f"x{i}" for i in range(1, len(columns) + 1)]
    wide = pa.schema([pa.field(name, column.type.arrow) for name, column in zip(names, columns, strict=True)])
    return columns, pa.Table.from_batches([pa.RecordBatch.from_arrays(b.columns, names) for b in batches], wide)


def lsn_argument(value: Any) -> bytes | None:
    """A value given for a binary(10) parameter: bytes are padded on the right, numbers on the left."""
    if value is None:
        return None
    if isinstance(value, int):
        return value.to_bytes(10)
    if not isinstance(value, bytes):
        raise SqlError.of(206, "varchar", "binary")
    return value[:10].ljust(10, b"\x00")
