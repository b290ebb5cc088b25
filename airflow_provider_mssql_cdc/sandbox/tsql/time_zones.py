"""AT TIME ZONE with the names of Windows, as far as their rules are certain."""

from __future__ import annotations

import datetime
import functools
import zoneinfo

from airflow_provider_mssql_cdc.sandbox.protocol import SqlError
from airflow_provider_mssql_cdc.sandbox.tsql.convert import to_ticks, unsupported
from airflow_provider_mssql_cdc.sandbox.tsql.expr import Expr, constant
from airflow_provider_mssql_cdc.sandbox.tsql.literals import text
from airflow_provider_mssql_cdc.sandbox.tsql.typing import display
from airflow_provider_mssql_cdc.sandbox.types import SqlType

# zones that never change their offset on Windows: hours, of whatever year
_FIXED = {
    "utc": 0, "greenwich standard time": 0, "south africa standard time": 2, "arab standard time": 3,
    "arabian standard time": 4, "india standard time": 5.5, "se asia standard time": 7, "china standard time": 8,
    "singapore standard time": 8, "taipei standard time": 8, "tokyo standard time": 9, "korea standard time": 9,
    "e. australia standard time": 10, "hawaiian standard time": -10, "us mountain standard time": -7,
    "sa pacific standard time": -5,
}  # fmt: skip
# zones whose rule has been the same from 2009 on, by CLDR's table of Windows zones
_CHANGING = {
    "gmt standard time": "Europe/London", "w. europe standard time": "Europe/Berlin",
    "central europe standard time": "Europe/Budapest", "central european standard time": "Europe/Warsaw",
    "romance standard time": "Europe/Paris", "gtb standard time": "Europe/Bucharest",
    "fle standard time": "Europe/Kiev", "eastern standard time": "America/New_York",
    "central standard time": "America/Chicago", "mountain standard time": "America/Denver",
    "pacific standard time": "America/Los_Angeles", "alaskan standard time": "America/Anchorage",
    "atlantic standard time": "America/Halifax", "aus eastern standard time": "Australia/Sydney",
    "new zealand standard time": "Pacific/Auckland",
}  # fmt: skip
_FIRST, _LAST = (datetime.datetime(year, 1, 1, tzinfo=datetime.UTC) for year in (2009, 2100))
_INPUTS = {"smalldatetime": 0, "datetime": 3, "datetime2": None, "datetimeoffset": None}
_MINUTE = 600000000


def at_time_zone(value: Expr, zone: str | None) -> Expr:
    """A time with the offset of a zone, or a datetimeoffset moved into it (docs: AT TIME ZONE).

    A time that the clock leaves out is an hour later; one that it shows twice has the offset of before the change.

    :raises SqlError: 8116 for what is no date with a time; 50000 for other zones, and when run for other years
    """
    if value.type.name not in _INPUTS:
        raise SqlError.of(8116, display(value.type), 1, "AT TIME ZONE")
    known = _INPUTS[value.type.name]
    type_ = SqlType("datetimeoffset", 0, 0, value.type.scale if known is None else known)
    if zone is None:
        return constant(None, type_)
    ticks = f"t_round({to_ticks('z', value.type)}, {10 ** (7 - type_.scale)})"
    if value.type.name == "datetimeoffset":
        utc = "z.utc_ticks"
    else:
        utc = f"({ticks} - CAST({_offset(zone, ticks, local=True)} AS BIGINT) * {_MINUTE})"
    offset = f"CAST({_offset(zone, 'u', local=False)} AS SMALLINT)"
    packed = f"struct_pack(utc_ticks := u, offset_minutes := {offset})"
    # both are named, so that what they are computed with stands there once
    sql = f"CASE WHEN z IS NOT NULL THEN list_transform([{utc}], lambda u: {packed})[1] END"
    sql = f"list_transform([{value.sql}], lambda z: {sql})[1]"
    return Expr(sql, type_, True, constant=value.constant)


def _offset(zone: str, ticks: str, *, local: bool) -> str:
    """The minutes by which a zone is ahead of UTC, at a time of its own or of UTC."""
    name = zone.casefold().rstrip()
    if name in _FIXED:
        return str(int(_FIXED[name] * 60))
    if name not in _CHANGING:
        raise unsupported(f"the time zone {zone}")
    first, changes = _changes(_CHANGING[name])
    before = [first, *(offset for _, offset in changes[:-1])]
    starts = [
        start + (max(old, new) * _MINUTE if local else 0) for old, (start, new) in zip(before, changes, strict=True)
    ]
    message = text("not supported by the sandbox: AT TIME ZONE of a time before 2009 or after 2099")
    within = f"t_within({ticks}, {_ticks(_FIRST)}, {_ticks(_LAST)}, 50000, {message})"
    offsets = [first, *(offset for _, offset in changes)]
    return f"({offsets})[len(list_filter({starts}, lambda start: start <= {within})) + 1]"


def _ticks(moment: datetime.datetime) -> int:
    return (moment - datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(microseconds=1) * 10


@functools.cache
def _changes(name: str) -> tuple[int, list[tuple[int, int]]]:
    """The offset of a zone at first, and from which ticks of UTC on it has which other."""
    zone, step = zoneinfo.ZoneInfo(name), datetime.timedelta(hours=1)

    def minutes(moment: datetime.datetime) -> int:
        offset = moment.astimezone(zone).utcoffset()
        assert offset is not None
        return offset // datetime.timedelta(minutes=1)

    found = []
    day = _FIRST
    while day < _LAST:
        after = day + datetime.timedelta(days=1)
        if minutes(day) != minutes(after):
            moment = day
            while minutes(moment) == minutes(day):
                moment += step
            found.append((_ticks(moment), minutes(after)))
        day = after
    return minutes(_FIRST), found
