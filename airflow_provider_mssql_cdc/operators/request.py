"""What a DAG author asks of a load."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass

from airflow_provider_mssql_cdc.core.change_tracking import DEFAULT_RETENTION
from airflow_provider_mssql_cdc.core.checkpoint import Identity
from airflow_provider_mssql_cdc.core.copy_wanted import AUTO
from airflow_provider_mssql_cdc.core.entry_values import CT
from airflow_provider_mssql_cdc.core.exceptions import CutError, ParameterError
from airflow_provider_mssql_cdc.core.lag import MAX_LAG
from airflow_provider_mssql_cdc.core.patterns import matches
from airflow_provider_mssql_cdc.core.position import Cut, Lsn
from airflow_provider_mssql_cdc.core.table import TableName
from airflow_provider_mssql_cdc.core.table_options import Entry, TableOptions, deciding

COPY_KEEP = datetime.timedelta(days=14)
"""How long a copy may be paused by default."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the DAG author asked for.

    :param defaults: of what entries do not say
    :param on_disabled: ``fail``, ``skip`` or ``enable``
    :param salt_check: ``core.selection.salt_check`` of the salt; None where there is none
    :param max_lag: how late the capture may be
    :param max_idle: time after which a sink that failed for good is tried again; None goes by the retention
    :param asked: a person asks for sinks that failed for good, too
    :param copy_keep: how long a copy may be paused, or all that waits for it may fail
    :param server_timezone: IANA zone of the server's clock; None where the author says none
    :param isolation: by which rows of tables are read, one of ``ISOLATIONS``
    :param ct_retention: for how long a database keeps changes for which Change Tracking is enabled
    """

    connection: str
    entries: tuple[Entry, ...]
    exclude: tuple[str, ...]
    defaults: TableOptions
    on_disabled: str = "fail"
    max_transactions: int | None = None
    max_rows: int | None = None
    small_window: int = 0
    salt_check: str | None = None
    max_lag: datetime.timedelta = MAX_LAG
    max_idle: datetime.timedelta | None = None
    asked: bool = False
    server_timezone: str | None = None
    copy_keep: datetime.timedelta = COPY_KEEP
    isolation: str = AUTO
    ct_retention: datetime.timedelta = DEFAULT_RETENTION

    @property
    def patterns(self) -> tuple[str, ...]:
        """Of the entries, in their order."""
        return tuple(entry.text for entry in self.entries)

    @property
    def captured(self) -> bool:
        """Whether some table may be read by change data capture."""
        return any((entry.said or {}).get("source", self.defaults.source) != CT for entry in self.entries)

    def options(self, name: TableName) -> TableOptions:
        """The record of a table whose name the server did not compare: one that is not there, or was there before."""
        found = [entry for entry in self.entries if matches(entry.pattern, name.schema, name.table)]
        try:
            return deciding(name, found).options(self.defaults) if found else self.defaults
        except ParameterError:
            return self.defaults

    def deciding(self, name: TableName, entries: Iterable[int]) -> TableOptions:
        """The record of a table that some entries match.

        :param entries: their numbers
        :raises ParameterError: if two decide, or parts of it do not go together
        """
        return deciding(name, [self.entries[number] for number in entries]).options(self.defaults)

    def of_table(self, database: str, name: TableName, entries: Iterable[int]) -> Identity:
        """The identity of the checkpoint of a table that some entries match.

        :param entries: their numbers
        :raises ParameterError: if two decide, or parts of it do not go together
        """
        return self.identity(database, name, self.deciding(name, entries))

    def identity(self, database: str, table: TableName, options: TableOptions) -> Identity:
        """The identity of a table's checkpoint."""
        return Identity.of(self.connection, database, table, options.target.address, options.table_name)


def cut_given(upto: object) -> Cut:
    """The cut that the DAG names.

    :raises CutError: if it is none
    """
    try:
        found = Cut.parse(str(upto))
        if any(isinstance(position, Lsn) and position.is_zero for position in found):
            raise ValueError("zeros stand for no position")
        return found
    except ValueError as error:
        raise CutError(
            f"upto={upto!r} is no position.",
            advice="Pass the sensor's upto=wait.output: a template would make the text 'None' of a sensor that was "
            "skipped or had no cut. Without upto the newest position is taken.",
        ) from error
