"""What can be told of a server's zone from the offset of its clock, which is all that it says of it."""

from __future__ import annotations

import datetime
import functools
import zoneinfo


@functools.cache
def zones() -> tuple[zoneinfo.ZoneInfo, ...]:
    """All zones of the world; none where this machine does not know them."""
    return tuple(zoneinfo.ZoneInfo(name) for name in sorted(zoneinfo.available_timezones()))


def may_be_repeated(time: datetime.datetime, utc_offset_minutes: int) -> bool:
    """Whether a clock shows a local time for the second time: whether some zone that has its offset then repeats it."""
    offset = datetime.timedelta(minutes=utc_offset_minutes)
    instant = (time - offset).replace(tzinfo=datetime.UTC)
    local = (instant.astimezone(zone) for zone in zones())
    return any(each.fold and each.utcoffset() == offset for each in local)
