"""The server's clock: its local time, in a zone or at a fixed offset from UTC, as a test sets it."""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Callable

from airflow_provider_mssql_cdc.sandbox.protocol import Unsupported

_WINDOWS_NAMES = {
    "America/Chicago": "Central Standard Time",
    "America/Los_Angeles": "Pacific Standard Time",
    "America/New_York": "Eastern Standard Time",
    "America/Sao_Paulo": "E. South America Standard Time",
    "Asia/Kolkata": "India Standard Time",
    "Asia/Tokyo": "Tokyo Standard Time",
    "Australia/Lord_Howe": "Lord Howe Standard Time",
    "Australia/Sydney": "AUS Eastern Standard Time",
    "Europe/Berlin": "W. Europe Standard Time",
    "Europe/London": "GMT Standard Time",
    "Europe/Paris": "Romance Standard Time",
    "UTC": "UTC",
}
"""Of some zones the names that Windows has, and ``CURRENT_TIMEZONE_ID`` tells (docs: default time zones)."""


class Clock:
    """What the server's clock shows. Called, it gives the local time without a zone, as most of a server keeps it.

    :param source: the time: local without a zone, or with one
    :param offset: of the local time from UTC, in minutes; where there is no zone
    :param zone: IANA name of the zone that the clock follows, summer time and all
    :raises ValueError: for a zone that is none, or beside an offset
    """

    def __init__(self, source: Callable[[], datetime.datetime], offset: int = 0, zone: str | None = None) -> None:
        if zone is not None and offset:
            raise ValueError("a clock has a zone or an offset, not both")
        try:
            self._zone: datetime.tzinfo = (
                zoneinfo.ZoneInfo(zone) if zone else datetime.timezone(datetime.timedelta(minutes=offset))
            )
        except (zoneinfo.ZoneInfoNotFoundError, OSError) as error:
            raise ValueError(f"{zone!r} is not an IANA time zone") from error
        self._name = zone or ("UTC" if not offset else None)
        self._source = source
        self._shift = datetime.timedelta()
        self._stands_at: datetime.datetime | None = None

    @property
    def zone_id(self) -> str | None:
        """What ``CURRENT_TIMEZONE_ID`` tells; None where there is an offset only.

        :raises Unsupported: for a zone whose Windows name is not known here
        """
        if self._name is not None and self._name not in _WINDOWS_NAMES:
            raise Unsupported(f"CURRENT_TIMEZONE_ID() in {self._name}")
        return None if self._name is None else _WINDOWS_NAMES[self._name]

    def __call__(self) -> datetime.datetime:
        """The local time, without a zone."""
        return self.now().replace(tzinfo=None)

    def now(self) -> datetime.datetime:
        """The time with its zone, whose offset is that of this moment."""
        if self._stands_at is not None:
            return self._stands_at
        return (self._at(self._source()).astimezone(datetime.UTC) + self._shift).astimezone(self._zone)

    def _at(self, moment: datetime.datetime) -> datetime.datetime:
        if moment.tzinfo is None:
            # where the zone has a local time twice, ``fold`` says which is meant
            return moment.replace(tzinfo=self._zone)
        return moment.astimezone(self._zone)

    def stand_at(self, moment: datetime.datetime | None) -> None:
        """Stand still at a time; None goes on.

        :param moment: local without a zone, or with one
        """
        self._stands_at = None if moment is None else self._at(moment)

    def step(self, by: datetime.timedelta) -> None:
        """Be set forward or back, without a change of zone, and go on (or stand still) from there."""
        if self._stands_at is None:
            self._shift += by
        else:
            self._stands_at = (self._stands_at.astimezone(datetime.UTC) + by).astimezone(self._zone)
