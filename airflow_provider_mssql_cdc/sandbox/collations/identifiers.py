"""Names of tables, columns and the like: they compare by the collation of their database (docs: collation levels).

Names of databases, logins, variables and temporary tables compare by the server's, which is not case-sensitive.
"""

from __future__ import annotations

from airflow_provider_mssql_cdc.sandbox.collations.comparing import DATABASE
from airflow_provider_mssql_cdc.sandbox.collations.names import COLLATIONS


def fold(name: str) -> str:
    """What is the same of names that are the same in the current database."""
    return name if COLLATIONS[DATABASE.get()].case_sensitive else name.casefold()


def system(schema: str, name: str) -> tuple[str, str]:
    """Schema and name of a system object as its tables here have them: in lower case.

    The standard's views are in upper case on a server, all others in lower case.
    """
    if fold(schema) == "INFORMATION_SCHEMA":
        return schema.lower(), name.lower() if name.isupper() else name.upper()
    return fold(schema), fold(name)
