"""Probes many change tables so that one that cannot be read does not hold up the others."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from airflow_provider_mssql_cdc.core.database import Probe
from airflow_provider_mssql_cdc.core.exceptions import CdcPermissionError
from airflow_provider_mssql_cdc.core.lsn import Lsn
from airflow_provider_mssql_cdc.hooks.errors import INVALID_OBJECT, SELECT_DENIED
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Prober:
    """Probes change tables, and leaves out those that are gone (error 208) or may not be read (229).

    :param unreadable: capture instance to the reason
    :ivar found_more: whether ``probe`` has just had to leave out one more
    """

    unreadable: dict[str, CdcPermissionError] = field(default_factory=dict)
    found_more: bool = field(default=False, init=False)

    def probe(
        self,
        hook: MsSqlCdcHook,
        after: Mapping[str, Lsn],
        *,
        upto: Lsn | None = None,
        witnesses: Collection[Lsn] = (),
    ) -> Probe:
        """Probe all tables that can be read: one statement, but for the first time that one cannot.

        :param after: as for ``MsSqlCdcHook.probe``
        :param upto: as for ``MsSqlCdcHook.probe``
        :param witnesses: as for ``MsSqlCdcHook.probe``
        :raises CdcPermissionError: if what is common to all tables cannot be read either
        """
        self.found_more = False
        readable = {name: position for name, position in after.items() if name not in self.unreadable}
        try:
            return hook.probe(readable, upto=upto, witnesses=witnesses)
        except CdcPermissionError as error:
            if error.number not in (INVALID_OBJECT, SELECT_DENIED) or not readable:
                raise
        # without what is common to all tables, such as after CDC was switched off, it is not their fault
        hook.probe({})
        faulty = _faulty(hook, readable)
        rest = {name: position for name, position in readable.items() if name not in faulty}
        probe = hook.probe(rest, upto=upto, witnesses=witnesses)
        for name, reason in faulty.items():
            log.warning("capture instance %s is left out: %s", name, reason)
        self.unreadable.update(faulty)
        self.found_more = bool(faulty)
        return probe

    def recheck(self, hook: MsSqlCdcHook, after: Mapping[str, Lsn]) -> None:
        """Look again at what could not be read."""
        self.found_more = False
        self.unreadable = _faulty(hook, {name: after[name] for name in self.unreadable if name in after})

    def check(self, after: Mapping[str, Lsn]) -> None:
        """Refuse to look on where nothing can be seen.

        :raises CdcPermissionError: if none of these tables can be read
        """
        if after and after.keys() <= self.unreadable.keys():
            raise self.unreadable[min(after)]


def _faulty(hook: MsSqlCdcHook, after: Mapping[str, Lsn]) -> dict[str, CdcPermissionError]:
    found = {}
    for name, position in after.items():
        try:
            hook.probe({name: position})
        except CdcPermissionError as error:
            found[name] = error
    return found
