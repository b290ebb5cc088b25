"""What PostgreSQL's errors mean, from its Python and from its JDBC driver: what is wrong, and whether a retry helps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_provider_mssql_cdc.core.exceptions import TargetError, TargetUnavailableError

if TYPE_CHECKING:
    import psycopg

NUL = 'invalid byte sequence for encoding "UTF8": 0x00'

_JDBC = re.compile(r"org\.postgresql\.util\.PSQLException: (?:ERROR: |FATAL: )?(?P<message>[^\n]+)")
_NO_DRIVER = re.compile(r"ClassNotFoundException: org\.postgresql\.\S+")
_UNREACHABLE = re.compile(
    r"refused|I/O error|connection attempt failed|has been closed|timeout|timed out|terminating connection|starting up"
    r"|shutting down|in recovery mode|not (?:yet )?accepting connections|conflict with recovery"
    r"|too many (?:clients|connections)|reserved for"
)
_FULL = re.compile(r"No space left on device|disk full|out of (?:shared )?memory|Disk quota exceeded", re.IGNORECASE)
_READ_ONLY = re.compile(r"in a read-only transaction|during recovery")

# docs: PostgreSQL Error Codes; connections, resources, an operator's intervention, rollbacks, locks, vanished tables
_MAY_PASS = ("08", "53", "57", "40", "55", "42P01")
_NOT_ALLOWED = "42501"
_REFUSED = re.compile(
    r"authentication failed|no pg_hba\.conf entry|no password supplied|does not support SSL"
    r"|(?:role|database) .* does not exist"
)


def of_driver(error: psycopg.Error, name: str) -> TargetError:
    """What an error of psycopg means.

    :param name: the target table
    """
    state = error.sqlstate or ""
    text = error.diag.message_primary or " ".join(str(error).split())
    message = f"{name}: PostgreSQL: {_sentence(text)}"
    if state == _NOT_ALLOWED:
        return TargetError(
            message,
            advice="Let the connection's login make tables in the schema (GRANT USAGE, CREATE ON SCHEMA .. TO ..), or "
            "the schema itself, if it is missing (GRANT CREATE ON DATABASE); it must own the tables that it loads.",
        )
    if _REFUSED.search(text):
        return TargetError(message, advice="Check login, password and database of the target's Airflow connection.")
    if passing := _of_either(message, text):
        return passing
    if not state or state.startswith(_MAY_PASS):
        return TargetUnavailableError(
            message, advice="Run the task again; if it stays so, check the target's Airflow connection."
        )
    detail = f" {_sentence(error.diag.message_detail)}" if error.diag.message_detail else ""
    return TargetError(message + detail)


def of_spark(text: str, name: str) -> TargetError | None:
    """What an error of the JDBC driver means, None if it is another's.

    :param text: of Spark's exception
    :param name: the target table
    """
    if _NO_DRIVER.search(text):
        return TargetError(
            f"{name}: Spark has no JDBC driver for PostgreSQL.",
            advice="Leave packages= as it is, or put org.postgresql:postgresql on the class path of driver and "
            "executors.",
        )
    found = _JDBC.search(text)
    if found is None:
        return None
    message = f"{name}: PostgreSQL, by JDBC: {_sentence(found['message'])}"
    if "duplicate key" in found["message"]:
        return TargetUnavailableError(
            f"{message} Spark ran a task again whose rows were there already.", advice="Run the task again."
        )
    if passing := _of_either(message, found["message"]):
        return passing
    if _UNREACHABLE.search(found["message"]):
        return TargetUnavailableError(
            message, advice="Driver and executors connect: check host, port and firewall, and run the task again."
        )
    return TargetError(message)


def _of_either(message: str, text: str) -> TargetError | None:
    """What an error means that both drivers meet, and that others cure: none of them is the table's."""
    if _READ_ONLY.search(text):
        return TargetUnavailableError(
            message,
            advice="The server is a standby, or was made read-only: let the target's Airflow connection name the "
            "primary, and run the task again.",
        )
    if _FULL.search(text):
        return TargetUnavailableError(
            message, advice="Make room on the database's server (disk or memory), and run the task again."
        )
    return None


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
