"""Sensor and triggers that wait for tables of both sources."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_mssql_cdc.hooks.change_source import CdcSource, ChangeSource
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.sensors.mssql_cdc import MsSqlCdcSensor
from airflow_provider_mssql_cdc.triggers.mssql_cdc import MsSqlCdcEventTrigger, MsSqlCdcTrigger
from tests.support.logged.source import LoggedSource


def two_sources(hook: MsSqlCdcHook) -> Sequence[ChangeSource]:
    """Change data capture, and the second source for tables that it does not track."""
    return (CdcSource(hook), LoggedSource(hook))


class TriggerOfTwoSources(MsSqlCdcTrigger):
    """The sensor's trigger, for tables of both sources."""

    sources = staticmethod(two_sources)


class SensorOfTwoSources(MsSqlCdcSensor):
    """The sensor, for tables of both sources."""

    _trigger = TriggerOfTwoSources


class WatcherOfTwoSources(MsSqlCdcEventTrigger):
    """The watcher's trigger, for tables of both sources."""

    sources = staticmethod(two_sources)
