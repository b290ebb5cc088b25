"""The grammar of ALTER DATABASE .. SET CHANGE_TRACKING, whose mistakes show before anything of a batch runs."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_mssql_cdc.sandbox.engine.tracking.state import UNITS, Options, Unit
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.lexer import Cursor, sub_cursor, syntax_error

_MOST_MINUTES = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the statement says.

    :param on: None where only options are set
    :param mixed: whether options of another kind follow
    """

    on: bool | None
    retention: tuple[int, Unit] | None = None
    auto_cleanup: bool | None = None
    mixed: bool = False

    def options(self, before: Options) -> Options:
        """The options afterwards."""
        retention, unit = self.retention or (before.retention, before.unit)
        cleanup = before.auto_cleanup if self.auto_cleanup is None else self.auto_cleanup
        return Options(retention, unit, cleanup)


def read(cursor: Cursor) -> Wanted:
    """Read what stands after SET CHANGE_TRACKING.

    :raises SqlError: 155 unknown unit, 5091 option given twice, 5092 retention out of range
    """
    on = None
    if cursor.take("="):
        on = cursor.take("ON")
        if not on:
            cursor.expect("OFF")
    retention, auto_cleanup = None, None
    if on is not False and (on is None or cursor.at("(")):
        retention, auto_cleanup = _options(sub_cursor(cursor, cursor.group()))
    if cursor.at(","):
        return Wanted(on, retention, auto_cleanup, mixed=True)
    cursor.end()
    return Wanted(on, retention, auto_cleanup)


def check(cursor: Cursor) -> None:
    """Read an ALTER DATABASE statement before its batch runs.

    :raises SqlError: what ``read`` raises
    """
    cursor.expect("ALTER", "DATABASE")
    cursor.name()
    if cursor.take("SET", "CHANGE_TRACKING"):
        read(cursor)


def _options(cursor: Cursor) -> tuple[tuple[int, Unit] | None, bool | None]:
    retention: tuple[int, Unit] | None = None
    auto_cleanup: bool | None = None
    while True:
        token = cursor.next()
        if token.upper == "CHANGE_RETENTION":
            if retention is not None:
                raise SqlError.of(5091, "CHANGE_RETENTION", line=token.line)
            retention = _retention(cursor)
        elif token.upper == "AUTO_CLEANUP":
            if auto_cleanup is not None:
                raise SqlError.of(5091, "AUTO_CLEANUP", line=token.line)
            cursor.expect("=")
            auto_cleanup = cursor.take("ON")
            if not auto_cleanup:
                cursor.expect("OFF")
        else:
            raise syntax_error(token)
        if not cursor.take(","):
            cursor.end()
            return retention, auto_cleanup


def _retention(cursor: Cursor) -> tuple[int, Unit]:
    cursor.expect("=")
    number = cursor.next()
    if not number.text.isdecimal():
        raise syntax_error(number)
    word = cursor.next()
    unit = next((unit for unit in UNITS if word.upper == unit), None)
    if unit is None:
        raise SqlError(155, f"'{word.text}' is not a recognized retention unit option.", severity=15, state=2,
                       line=word.line)  # fmt: skip
    count = int(number.text)
    if not 1 <= count * UNITS[unit] <= _MOST_MINUTES:
        raise SqlError.of(5092, line=number.line)
    return count, unit
