"""What the samples are of: one source table for each way to load, and the targets that it is loaded into."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_mssql_cdc.core.changes import HistoryOptions
from airflow_provider_mssql_cdc.core.selection import salt_check
from airflow_provider_mssql_cdc.core.table_options import TableOptions, read_entries
from airflow_provider_mssql_cdc.core.target import Target
from airflow_provider_mssql_cdc.operators.request import Request
from tests.support.logins import SALT

DATABASE, CONNECTION = "upgrades", "upgrades"

SERVER = "sql.example:1433"
"""The address in the markers; no client connects there."""

FORMATS = ("iceberg", "delta", "parquet", "postgresql")

MIRROR, HISTORY, SCD2, TRANSACTIONS = "mirror", "history", "scd2", "transactions"

TAKES = {
    "iceberg": (MIRROR, HISTORY, SCD2, TRANSACTIONS),
    "delta": (MIRROR, HISTORY, SCD2, TRANSACTIONS),
    "parquet": (HISTORY, TRANSACTIONS),
    "postgresql": (MIRROR, HISTORY, TRANSACTIONS),
}
"""The shapes of each format."""


@dataclass(frozen=True)
class Case:
    """One source table, ``lab.<name>``, and how it is loaded.

    :param shapes: those that the format does not take are left out
    :param formats: in which the case is made
    :param primary_key: whether the source table has one; else the load names its key
    :param options: of the sinks
    :param choice: what of the rows is loaded, by the keys of an entry of ``tables``
    """

    name: str
    shapes: tuple[str, ...]
    formats: tuple[str, ...] = FORMATS
    primary_key: bool = True
    options: dict[str, Any] = field(default_factory=dict)
    choice: dict[str, Any] = field(default_factory=dict)

    @property
    def table(self) -> str:
        """The source table."""
        return f"lab.{self.name}"

    @property
    def ddl(self) -> str:
        """The statement that makes the source table."""
        key = " PRIMARY KEY" if self.primary_key else ""
        return (
            f"CREATE TABLE {self.table} (id int NOT NULL{key}, name nvarchar(30) NULL, note nvarchar(max) NULL,"
            " amount decimal(9, 2) NULL, seen datetime NULL, email varchar(40) NULL)"
        )

    def shapes_in(self, file_format: str) -> tuple[str, ...]:
        """The shapes that are loaded into a format; none where the case is not made in it."""
        return tuple(s for s in self.shapes if s in TAKES[file_format]) if file_format in self.formats else ()

    def request(self, file_format: str, address: str) -> Request:
        """What a DAG author asks for.

        :param address: of the target
        """
        shapes, given = self.shapes_in(file_format), dict(self.options)
        history = HistoryOptions.checked(
            given.pop("changes", "all_old"), given.pop("history_form", "events"), ("insert", "update", "delete"),
            shapes=shapes,
        )  # fmt: skip
        key = {} if self.primary_key else {"key": ["id"]}
        return Request(
            connection=CONNECTION,
            entries=read_entries({"table": self.table, **key, **self.choice}, salted=True),
            exclude=(),
            defaults=TableOptions(Target.parse(address), shapes, history=history, **given),
            salt_check=salt_check(SALT),
        )


CASES = (
    Case("plain", (MIRROR, HISTORY, SCD2, TRANSACTIONS)),
    Case("soft", (MIRROR,), options={"deletes": "soft"}),
    Case("wide", (HISTORY,), options={"history_form": "wide"}),
    Case("net", (HISTORY,), options={"changes": "net_mask"}),
    Case(
        "masked",
        (MIRROR, HISTORY),
        choice={
            "columns": ("id", "name", "amount", "email"),
            "where": (("amount", ">", 0),),
            "rename": {"email": "mail"},
            "mask": {"id": "hash", "email": "hash"},
        },
    ),
    Case("chosen", (HISTORY,), primary_key=False),
    # the changes after the first load were purged, and it was loaded anew
    Case("gap", (HISTORY, SCD2)),
    # `mssql-cdc checkpoint set` named the position, and no load has gone on from there yet
    Case("asserted", (HISTORY,)),
    # loaded once; the commit that carries the marker is forgotten
    Case("property", (HISTORY,), formats=("iceberg", "delta")),
    # the Variable is gone
    Case("lost", (MIRROR, HISTORY)),
)

LOADED = {"v2": ("plain", "asserted")}
"""The cases that are loaded from samples of which a later version has the rest with the same marker and checkpoint."""

BY_NAME = {case.name: case for case in CASES}


def with_gap_closed(request: Request) -> Request:
    """The same with ``on_gap="copy"``."""
    return dataclasses.replace(request, defaults=dataclasses.replace(request.defaults, on_gap=("copy",)))
