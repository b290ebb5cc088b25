"""What a table can be loaded as: a record for each shape, and the one list of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from airflow_provider_mssql_cdc.core.exceptions import ParameterError
from airflow_provider_mssql_cdc.core.position import Position, Version

MIRROR = "mirror"
HISTORY = "history"
SCD2 = "scd2"
TRANSACTIONS = "transactions"

HARD, SOFT, IGNORE = "hard", "soft", "ignore"
DELETES = (HARD, SOFT, IGNORE)
"""What a mirror does with rows that were deleted: they go, they are marked by ``_deleted_at``, or they stay."""

DELETED_AT = {"_deleted_at": "TIMESTAMP_NTZ"}
"""What a ``mirror`` that keeps deleted rows holds beside the data."""


def position_column(position: type[Position]) -> str:
    """The column of an event's position.

    :param position: kind of the feed's positions
    """
    return f"_{position.KIND}"


def event_columns(position: type[Position]) -> dict[str, str]:
    """What a ``history`` table holds beside the data.

    :param position: kind of the feed's positions
    """
    return {
        "_op": "STRING",
        position_column(position): position.COLUMN_TYPE,
        "_command_id": "INT",
        "_seqval": "STRING",
        "_seq": "BIGINT",
        "_commit_ts": "TIMESTAMP_NTZ",
        "_commit_ts_utc": "TIMESTAMP",
        "_changed": "ARRAY<STRING>",
        "_unknown": "ARRAY<STRING>",
        # the rows of changes that have a version are those of the table at that time
        **({"_read_at": "TIMESTAMP_NTZ"} if position is Version else {}),
    }


def transaction_columns(position: type[Position]) -> dict[str, str]:
    """What a ``transactions`` table holds: one row for each transaction that changed the source table.

    :param position: kind of the feed's positions
    """
    return {
        position_column(position): position.COLUMN_TYPE,
        "_commit_ts": "TIMESTAMP_NTZ",
        "_commit_ts_utc": "TIMESTAMP",
        "schema": "STRING",
        "table": "STRING",
        "events": "BIGINT",
        "inserted": "BIGINT",
        "updated": "BIGINT",
        "deleted": "BIGINT",
    }


def version_columns(position: type[Position]) -> dict[str, str]:
    """What an ``scd2`` table holds beside the data: a version counts from one position up to, and without, another.

    :param position: kind of the feed's positions
    """
    return {
        f"_from_{position.KIND}": position.COLUMN_TYPE,
        f"_to_{position.KIND}": position.COLUMN_TYPE,
        "_from_ts": "TIMESTAMP_NTZ",
        "_to_ts": "TIMESTAMP_NTZ",
        "_unknown": "ARRAY<STRING>",
    }


@dataclass(frozen=True, slots=True)
class Shape:
    """What a table can be loaded as.

    :param name: as DAG authors write it
    :param rows: class of the job that makes its rows, as ``module:class``
    :param system_columns: what a table holds beside the data: name to Spark SQL type, by the kind of the feed's
        positions
    :param added: such columns that later versions of the layout have added, by version
    :param suffix: behind the name of its target tables
    :param needs_key: whether the source table must have a key
    :param needs_enforced_key: whether SQL Server itself must enforce it
    :param only_adds: whether rows that are there never change
    :param has_data: whether its rows hold the columns of the source table
    :param needs_values: whether a value that CDC left out, and that is found nowhere, fails the load
    :param takes_deletes: whether ``deletes`` says what becomes of its rows
    :param takes_history: whether ``changes``, ``history_form`` and ``operations`` say what it holds
    :param begins_with_rows: whether it begins with the copied rows of the table, which are no events
    :param takes_initial: whether it may begin with changes alone, from some position on
    :param needs_exact: whether its rows must be those of the position that they are loaded up to
    :param needs_every_change: whether what the changes of a window come to for each key is too little for it
    """

    name: str
    rows: str
    system_columns: Callable[[type[Position]], Mapping[str, str]]
    added: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    suffix: str = ""
    needs_key: bool = True
    needs_enforced_key: bool = False
    only_adds: bool = False
    has_data: bool = True
    needs_values: bool = False
    takes_deletes: bool = False
    takes_history: bool = False
    begins_with_rows: bool = True
    takes_initial: bool = False
    needs_exact: bool = False
    needs_every_change: bool = False

    def takes_copy(self, *, wide: bool = False, has_key: bool = True) -> bool:
        """Whether a sink begins with a copy of the table's rows.

        :param wide: a history's form is that of wide records; a copied row is no change with values before and after it
        :param has_key: whether the table has a key; without one nothing tells which copied rows give way to events
        """
        return self.begins_with_rows and has_key and not (wide and self.takes_history)

    def added_columns(self, layout: int) -> dict[str, str]:
        """The system columns that a table has beside those of version 1, with their Spark SQL types.

        :param layout: version of the table's system columns
        """
        return {
            n: type_ for version, columns in self.added.items() if version <= layout for n, type_ in columns.items()
        }


_ROWS = "airflow_provider_mssql_cdc.spark.shapes"

# ``_tran_id`` is the id of the transaction in cdc.lsn_time_mapping (0x..; NULL where it has none, and in copied rows).
# ``_healed`` tells whether a row was made to close a gap.
SHAPES: dict[str, Shape] = {
    shape.name: shape
    for shape in (
        Shape(MIRROR, f"{_ROWS}.mirror:Mirror", lambda _: {}, needs_values=True, takes_deletes=True),
        Shape(
            HISTORY,
            f"{_ROWS}.history:History",
            event_columns,
            {2: {"_tran_id": "STRING", "_healed": "BOOLEAN"}},
            "_history",
            needs_key=False,
            only_adds=True,
            takes_history=True,
            takes_initial=True,
            needs_exact=True,
        ),
        Shape(
            SCD2,
            f"{_ROWS}.scd2:Versions",
            version_columns,
            suffix="_scd2",
            needs_enforced_key=True,
            needs_exact=True,
        ),
        Shape(
            TRANSACTIONS,
            f"{_ROWS}.transactions:Transactions",
            transaction_columns,
            {2: {"_tran_id": "STRING"}},
            "_transactions",
            needs_key=False,
            only_adds=True,
            has_data=False,
            begins_with_rows=False,
            takes_initial=True,
            needs_every_change=True,
        ),
    )
}
"""All shapes by their name, in the order in which they are shown."""


def check_shapes(shapes: Iterable[str]) -> tuple[str, ...]:
    """The shapes, each known and named once.

    :raises ParameterError: otherwise, or if there is none
    """
    chosen = tuple(shapes)
    unknown = [shape for shape in chosen if shape not in SHAPES]
    if unknown or not chosen or len(set(chosen)) != len(chosen):
        raise ParameterError(f"shapes={list(chosen)!r}: expected some of {list(SHAPES)}, each once")
    return chosen
