"""The builds of SQL Server that a sandbox can be, and what differs between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from airflow_provider_mssql_cdc.sandbox.engine.cdc.switches import Switches
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError, Unsupported

_FUNCTIONS_SINCE = {"string_agg": 14, "trim": 14, "current_timezone_id": 16}
"""Functions by the major version that brought them (docs)."""

_COLUMNS_SINCE = {
    # docs name no version before 2017 that has it (memory)
    ("sys", "indexes", "auto_created"): 14,
    ("sys", "index_columns", "column_store_order_ordinal"): 16,
}
"""Columns of catalogue views by the major version that brought them (docs)."""

_TRUNCATION_NAMES_ITS_PLACE = 15
"""Since this version error 2628 stands in the place of 8152 (docs: what's new in SQL Server 2019)."""


EditionName = Literal["Developer", "Express"]


class Edition(NamedTuple):
    """What an edition says of itself, and whether it has CDC and SQL Server Agent.

    :param engine: SERVERPROPERTY('EngineEdition')
    :param number: SERVERPROPERTY('EditionID')
    """

    text: str
    engine: int
    number: int
    has_cdc: bool


EDITIONS: dict[EditionName, Edition] = {
    "Developer": Edition("Developer Edition (64-bit)", 3, -2117995310, True),
    "Express": Edition("Express Edition (64-bit)", 4, -1592396055, False),
}
"""By name (docs: SERVERPROPERTY)."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of SQL Server, and what differs by it.

    :param number: major, minor, build
    :param compatibility_level: of new databases
    :param switches: what its CDC does
    :param level: SERVERPROPERTY('ProductLevel')
    :param revision: the last part of its number
    :param system: that it runs on
    :param edition: of the server
    :param update: what it becomes by ``Sandbox.upgrade``; None where there is nothing to update
    """

    name: str
    number: tuple[int, int, int]
    compatibility_level: int
    switches: Switches
    level: str = "RTM"
    revision: int = 1
    system: str = "Linux"
    edition: Edition = EDITIONS["Developer"]
    update: Version | None = None

    @property
    def granular_unmask(self) -> bool:
        """Whether UNMASK is a right on schemas, tables and columns too: since 2022 (docs: dynamic data masking)."""
        return self.number >= (16,)

    @property
    def product(self) -> str:
        """SERVERPROPERTY('ProductVersion')"""
        return ".".join(map(str, (*self.number, self.revision)))

    @property
    def text(self) -> str:
        """@@VERSION"""
        return (
            f"Microsoft SQL Server {self.name} - {self.product} (X64) \n\tsandbox of airflow-provider-mssql-cdc\n"
            f"\t{self.edition.text} on {self.system}"
        )

    def check_function(self, name: str) -> None:
        """Refuse a function that came with a later version.

        :param name: as it was written
        :raises SqlError: 195
        """
        if self.number[0] < _FUNCTIONS_SINCE.get(name.lower(), 0):
            raise SqlError.of(195, name, "built-in function name")

    def lacks(self, schema: str, view: str) -> frozenset[str]:
        """The columns of a catalogue view that came with later versions; schema and view in lower case."""
        return frozenset(
            column
            for (of, name, column), since in _COLUMNS_SINCE.items()
            if (of, name) == (schema, view) and self.number[0] < since
        )

    def says(self, error: SqlError) -> SqlError:
        """What this version says in the place of an error."""
        if isinstance(error, Unsupported):
            return error.on(self.number[0])
        if error.number == 2628 and self.number[0] < _TRUNCATION_NAMES_ITS_PLACE:
            return SqlError.of(8152, line=error.line)
        return error


BUILDS = {
    # service pack 1 came before the update that brought __$command_id, service pack 3 has it (KB3030352)
    "2016": Version(
        "2016 (SP1)",
        (13, 0, 4001),
        130,
        Switches(has_command_ids=False),
        level="SP1",
        revision=0,
        system="Windows Server 2016",
        update=Version(
            "2016 (SP3)", (13, 0, 6300), 130, Switches(), level="SP3", revision=2, system="Windows Server 2016"
        ),
    ),
    "2019": Version("2019 (RTM-CU32)", (15, 0, 4430), 150, Switches()),
    "2022": Version("2022 (RTM-CU15)", (16, 0, 4175), 160, Switches()),
    "2025": Version(
        "2025 (RTM)",
        (17, 0, 1000),
        170,
        Switches(
            default_maxtrans=10_000,
            default_scan_maxscans=100,
            default_threshold=4999,
            help_repeats_index_columns=True,
            min_lsn_null_until_captured=True,
        ),
    ),
}
"""By name. Whether min LSN is NULL at first is known of 2025 alone (measured); elsewhere harsh servers draw it."""
