"""What the driver's errors are turned into."""

from __future__ import annotations

import pymssql
import pytest

from airflow_provider_mssql_cdc.core.exceptions import (
    CdcDisabledError,
    CdcPermissionError,
    ChangeTrackingDisabledError,
    DatabaseUnavailableError,
    SqlServerError,
)
from airflow_provider_mssql_cdc.hooks.errors import Where, translate

WHERE = Where(server="sql:1433", database="shop", login="reader", password="c4nary-Pa$$word")


def error(number: int, text: str) -> pymssql.Error:
    """An error in the form in which pymssql raises it."""
    return pymssql.OperationalError((number, f"{text}DB-Lib error message 20018, severity 16:\nGeneral error".encode()))


@pytest.mark.parametrize(
    ("number", "text", "kind", "permanent", "advice"),
    [
        (4060, 'Cannot open database "shop".', DatabaseUnavailableError, False, "schema field"),
        (
            229,
            "The SELECT permission was denied on the object 'change_tables', database 'shop', schema 'cdc'.",
            CdcPermissionError,
            True,
            "Run in [shop]: GRANT SELECT ON SCHEMA::[cdc] TO [reader];",
        ),
        (
            208,
            "Invalid object name 'cdc.x_CT'.",
            CdcPermissionError,
            False,
            "GRANT SELECT ON SCHEMA::[cdc] TO [reader];",
        ),
        (297, "The user does not have permission.", CdcPermissionError, True, "GRANT VIEW SERVER STATE TO [reader];"),
        (300, "VIEW SERVER STATE was denied.", CdcPermissionError, True, "GRANT VIEW SERVER STATE TO [reader];"),
        (22902, "Caller must be sysadmin.", CdcPermissionError, True, "sysadmin"),
        (22904, "Caller must be db_owner.", CdcPermissionError, True, "db_owner"),
        (
            262,
            "VIEW DATABASE PERFORMANCE STATE permission denied in database 'shop'.",
            CdcPermissionError,
            True,
            "Run in [shop]: GRANT VIEW DATABASE STATE TO [reader];",
        ),
        (22105, "Change tracking is not on for 'dbo.t'.", ChangeTrackingDisabledError, True, "ENABLE CHANGE_TRACKING"),
        (22117, "Ask the primary.", SqlServerError, False, "Let the connection lead to the primary"),
        (22901, "The database is not enabled.", CdcDisabledError, True, ""),
        (1205, "Deadlock victim.", SqlServerError, False, ""),
    ],
)
def test_translation(number: int, text: str, kind: type[SqlServerError], permanent: bool, advice: str) -> None:
    found = translate(error(number, text), WHERE)
    assert type(found) is kind
    assert found.permanent is permanent
    assert text in str(found)
    assert advice in str(found)
    assert "DB-Lib" not in str(found)
    assert getattr(found, "number", number) == number


def test_neither_text_nor_parts_hold_the_password() -> None:
    found = translate(error(50000, f"echo {WHERE.password}"), WHERE)
    assert WHERE.password not in str(found) + repr(found) + repr(found.args) + repr(WHERE)
    assert "echo ***" in str(found)


def test_an_error_without_a_number() -> None:
    found = translate(pymssql.InterfaceError("Connection is closed."), WHERE)
    assert type(found) is SqlServerError
    assert "Connection is closed." in str(found)
