"""What the driver's errors mean, and what to do about them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_mssql_cdc.core.exceptions import (
    CdcDisabledError,
    CdcPermissionError,
    ChangeTrackingDisabledError,
    DatabaseUnavailableError,
    LoginError,
    MsSqlCdcError,
    ServerUnreachableError,
    SqlServerError,
)
from airflow_provider_mssql_cdc.core.table import quote

INVALID_OBJECT = 208
DEADLOCK_VICTIM = 1205
SELECT_DENIED = 229
_DENIED = frozenset({INVALID_OBJECT, SELECT_DENIED, 230, 262, 297, 300, 371, 916})
_SERVER_STATE = frozenset({297, 300, 371})
_DATABASE_PERMISSION = 262
_NOT_ADMINISTRATOR = {
    22902: "Ask a member of sysadmin to run it, or EXEC msdb.dbo.rds_cdc_enable_db on Amazon RDS.",
    22904: "Ask a member of db_owner to run it.",
}
_NO_CDC = frozenset({22901, 22910, 22985, 22988, 22989})
NOT_TRACKED, ON_A_SECONDARY = 22105, 22117
_UNAVAILABLE = frozenset({4060, 911, 904, 922, 924, 927, 942, 945, 952, 954, 976, 978, 983})

# Severities of errors 4060 and 18456.
DATABASE_REFUSED, LOGIN_REFUSED = 11, 14

# DB-Library's own numbers (sybdb.h) for a connection that was open and is gone.
BROKEN = frozenset({20003, 20004, 20006, 20017, 20019, 20020, 20047})

_QUOTED = re.compile(r"'([^']*)'")
_DRIVER_CODE = re.compile(r"DB-Lib error message (\d+)")
_SERVER_ERROR = re.compile(r"DB-Lib error message 20018, severity (\d+)")
_DRIVER_NOISE = re.compile(r"DB-Lib error message .*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Where:
    """Whom we talked to, for messages.

    :param password: only so that it can be kept out of them
    """

    server: str
    database: str
    login: str
    password: str = field(default="", repr=False)


def number_and_text(error: BaseException) -> tuple[int, str]:
    """The number and text of a pymssql error; (0, text) for one that carries no number."""
    value: Any = error.args[0] if error.args else ""
    number = 0
    if isinstance(value, tuple) and len(value) >= 2:
        number, value = int(value[0]), value[1]
    elif len(error.args) >= 2 and isinstance(error.args[0], int):
        number, value = error.args[0], error.args[1]
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return number, text


def translate(error: BaseException, where: Where) -> MsSqlCdcError:
    """The error of this package that says what the error of a statement means, where, and what to do."""
    number, raw = number_and_text(error)
    # The server's text comes first; what DB-Library adds after it only repeats that something failed.
    text = _masked(_DRIVER_NOISE.sub("", raw).strip() or raw.strip(), where)
    at = f"{where.database} on {where.server}"
    if number in _UNAVAILABLE:
        return _unavailable(number, text, where)
    if number in _DENIED:
        denied = CdcPermissionError(
            f"{where.login!r} may not read from {at}: {text}",
            number=number,
            advice=_grant(number, text, where),
        )
        # what is no longer there may be called otherwise by now, or may be back
        denied.permanent = number != INVALID_OBJECT
        return denied
    if number in _NOT_ADMINISTRATOR:
        return CdcPermissionError(
            f"{where.login!r} may not do this in {at}: {text}",
            number=number,
            advice=_NOT_ADMINISTRATOR[number],
        )
    if number == NOT_TRACKED:
        return ChangeTrackingDisabledError(f"{at}: {text}", advice="ALTER TABLE .. ENABLE CHANGE_TRACKING tracks it.")
    if number == ON_A_SECONDARY:
        return on_a_secondary(where, text)
    if number in _NO_CDC:
        return CdcDisabledError(f"{at}: {text}", advice=None)
    return SqlServerError(f"{at}: error {number}: {text}", number=number)


def on_a_secondary(where: Where, text: str) -> SqlServerError:
    """The error that says that versions are asked for where they mean nothing."""
    return SqlServerError(
        f"{where.database} on {where.server} is a secondary replica: {text}",
        number=ON_A_SECONDARY,
        advice="Let the connection lead to the primary: only there versions mean something.",
    )


def translate_login(error: BaseException, where: Where, *, database_at_fault: bool = False) -> MsSqlCdcError:
    """What it means that no connection could be opened.

    Only DB-Library's codes and severities are trusted: pymssql keeps number and text of the worst error that any
    connection of the process had while it was opened, and reports them again with the next one.

    :param database_at_fault: that the same login succeeds without naming the database
    """
    number, raw = number_and_text(error)
    text = _masked(_DRIVER_NOISE.sub("", raw).strip(), where)
    severities = refused_with(error)
    if not severities:
        return ServerUnreachableError(
            f"no SQL Server answers at {where.server}: {_masked(_driver_text(raw), where)}",
            number=int(found[1]) if (found := _DRIVER_CODE.search(raw)) else number,
            advice="Check host, port and firewall, and whether the server accepts the encryption that is asked for.",
        )
    if database_at_fault or DATABASE_REFUSED in severities:
        return _unavailable(4060, "it does not exist, is not open, or has no user for this login.", where)
    if severities == {LOGIN_REFUSED}:
        return LoginError(
            f"{where.server} refused login {where.login!r} to {where.database}. {text}".strip(),
            number=18456,
            advice="Check login, password and schema field (the database) of the Airflow connection.",
        )
    return ServerUnreachableError(
        f"{where.server} accepts no login now. {text}".strip(),
        number=number,
        advice="Look into the server's error log.",
    )


def refused_with(error: BaseException) -> set[int]:
    """The severities with which the server refused a login; empty where it did not answer."""
    _, raw = number_and_text(error)
    return {int(severity) for severity in _SERVER_ERROR.findall(raw)}


def _driver_text(raw: str) -> str:
    """DB-Library's sentences, each once."""
    lines = [line for line in raw.splitlines() if line and not _DRIVER_CODE.search(line)]
    return "; ".join(dict.fromkeys(lines)) + "."


def _masked(text: str, where: Where) -> str:
    return text.replace(where.password, "***") if where.password else text


def _unavailable(number: int, text: str, where: Where) -> MsSqlCdcError:
    return DatabaseUnavailableError(
        f"database {where.database!r} cannot be opened on {where.server} by {where.login!r}: {text}",
        number=number,
        advice="Check the connection's schema field (the database), and that the login has a user in it.",
    )


def _grant(number: int, text: str, where: Where) -> str:
    user = quote(where.login)
    if number in _SERVER_STATE:
        return f"Run: GRANT VIEW SERVER STATE TO {user};"
    if number == _DATABASE_PERMISSION and "VIEW DATABASE" in text:
        return f"Run in {quote(where.database)}: GRANT VIEW DATABASE STATE TO {user};"
    names = _QUOTED.findall(text)
    if number == SELECT_DENIED and len(names) >= 3:
        # 229 names object, database and schema, in this order in every language of the server.
        schema = names[2]
        return f"Run in {quote(names[1])}: GRANT SELECT ON SCHEMA::{quote(schema)} TO {user};"
    grant = f"GRANT SELECT ON SCHEMA::[cdc] TO {user};"
    if number == INVALID_OBJECT:
        return f"Either CDC was disabled meanwhile, or the login may not see the object: {grant}"
    return f"Run in {quote(where.database)}: {grant}"
