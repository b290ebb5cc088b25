"""Languages of sessions: in which order a text has day and month, and on which day a week begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_mssql_cdc.sandbox.tsql.convert import unsupported

if TYPE_CHECKING:
    import duckdb

FORMATS = ("mdy", "dmy", "ymd", "myd", "dym")
"""What SET DATEFORMAT takes here; ydm, which some types do not read, is refused."""


@dataclass(frozen=True, slots=True)
class Language:
    """A row of sys.syslanguages.

    :param date_format: order of day, month and year in texts
    :param first_day: of the week: 1 is Monday, 7 Sunday
    """

    number: int
    name: str
    alias: str
    date_format: str
    first_day: int


US_ENGLISH = Language(0, "us_english", "English", "mdy", 7)
# docs: sys.syslanguages. Others have messages and names of months of their own.
LANGUAGES = (US_ENGLISH, Language(23, "British", "British English", "dmy", 1))


@dataclass(frozen=True, slots=True)
class Dates:
    """How a session reads dates: by its language, or as SET DATEFORMAT and SET DATEFIRST say."""

    language: Language
    date_format: str
    first_day: int

    @classmethod
    def of(cls, language: Language) -> Dates:
        """As a language has it."""
        return cls(language, language.date_format, language.first_day)

    @property
    def day_first(self) -> bool:
        """Whether the day stands before the month."""
        return self.date_format.index("d") < self.date_format.index("m")


def language_of(name: str) -> Language:
    """A language by its name or alias; '' for the server's.

    :raises Unsupported: for those that the sandbox does not have
    """
    if not name:
        return US_ENGLISH
    for each in LANGUAGES:
        if name.casefold() in (each.name.casefold(), each.alias.casefold()):
            return each
    raise unsupported(f"the language {name}")


def apply(dates: Dates, connection: duckdb.DuckDBPyConnection) -> None:
    """Let a connection to DuckDB read dates as a session does (see the macro ``t_session_date``)."""
    connection.execute(f"SET VARIABLE day_first = {str(dates.day_first).upper()}")
