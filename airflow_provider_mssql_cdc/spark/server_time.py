"""The server's local times as instants."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

_UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT"})


def to_utc(local: Column, zone: str) -> Column:
    """The instant of a local time: NULL where the zone had that time twice, or never.

    An hour that is repeated when clocks go back leaves two instants to choose from, and nothing in the mapping says
    which (``datetime`` has no offset); commit LSNs keep the order.

    :param local: ``TIMESTAMP_NTZ``, in a session whose time zone is UTC
    :param zone: IANA name
    """
    time = local.cast("timestamp")
    if zone in _UTC:
        return time
    day = F.expr("INTERVAL 1 DAY")
    # the local time, with the offset of the day before and with that of the day after
    early, late = (time - _offset(probe, zone) for probe in (time - day, time + day))
    early_fits = F.from_utc_timestamp(early, zone) == time
    late_fits = F.from_utc_timestamp(late, zone) == time
    return F.when(early_fits & (~late_fits | (early == late)), early).when(late_fits & ~early_fits, late)


def _offset(instant: Column, zone: str) -> Column:
    return F.from_utc_timestamp(instant, zone) - instant
