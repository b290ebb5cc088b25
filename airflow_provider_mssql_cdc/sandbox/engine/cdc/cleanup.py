"""Cleanup: low-water marks go up, and change rows and time mappings below them go away."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from airflow_provider_mssql_cdc.sandbox.engine.cdc.instance import CaptureInstance
from airflow_provider_mssql_cdc.sandbox.engine.cdc.lsn import ZERO_LSN, to_hex
from airflow_provider_mssql_cdc.sandbox.engine.cdc.mapping import LsnTimeMapping
from airflow_provider_mssql_cdc.sandbox.protocol import SqlError

PROCEDURE = "sp_cdc_cleanup_change_table"


def by_mark(instance: CaptureInstance, mark: bytes | None, mapping: LsnTimeMapping) -> None:
    """Clean one instance up to a mark.

    :param mark: None keeps the present one
    :raises SqlError: 22964 where the mark is not a mapped LSN, 22957 where it is outside [min LSN, max LSN]
    """
    if mark is None:
        _raise_to(instance, instance.start_lsn)
        return
    time = mapping.time_of(mark)
    if time is None:
        raise SqlError.of(22964, to_hex(mark), procedure=PROCEDURE)
    newest = mapping.newest
    high = ZERO_LSN if newest is None else newest.start_lsn
    if not instance.start_lsn <= mark <= high:
        ends = to_hex(instance.start_lsn), to_hex(high)
        raise SqlError.of(22957, to_hex(mark), instance.capture_instance, *ends, procedure=PROCEDURE)
    # Commits of one moment stay together: the new mark is the first of them.
    _raise_to(instance, mapping.first_of_time(time))


def by_retention(instances: Sequence[CaptureInstance], retention: datetime.timedelta, mapping: LsnTimeMapping) -> None:
    """Clean all instances: what is older than the retention goes, counted from the last mapped time (docs)."""
    last = mapping.last_time
    mark = None if last is None else mapping.find("largest less than", last - retention)
    time = None if mark is None else mapping.time_of(mark)
    if time is not None:
        for instance in instances:
            _raise_to(instance, mapping.first_of_time(time))
        trim(instances, mapping)


def trim(instances: Sequence[CaptureInstance], mapping: LsnTimeMapping) -> None:
    """Remove the mapping rows that no instance needs any more."""
    if instances:
        mapping.trim(min(instance.start_lsn for instance in instances))


def _raise_to(instance: CaptureInstance, mark: bytes) -> None:
    instance.start_lsn = max(instance.start_lsn, mark)
    instance.changes = instance.changes.from_lsn(instance.start_lsn)
