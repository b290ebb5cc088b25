"""Change data capture as a source beside others."""

import datetime
from types import SimpleNamespace

from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.hooks.change_source import CdcSource
from tests.support.logged.feed import Version

DAY = datetime.datetime(2026, 1, 1)


def test_witnesses_of_other_sources_are_not_asked_for():
    asked = []

    class Hook:
        def probe(self, after, *, upto, witnesses):
            asked.append(witnesses)
            return SimpleNamespace(cut=None, newest={}, min_lsns={}, witness=None, min_mapped_lsn=None, mapped={})

    lsn = Lsn(bytes([*bytes(9), 1]))
    CdcSource(Hook()).probe({}, witnesses=[Witness(lsn, DAY), Witness(Version(5), DAY)])
    assert asked == [{lsn}]
