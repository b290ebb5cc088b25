"""Change data capture as a source beside others."""

import datetime
from types import SimpleNamespace

import pytest

from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.lineage import Witness
from airflow_provider_mssql_cdc.core.position import Lsn, Position, Version
from airflow_provider_mssql_cdc.hooks.change_source import CdcSource, limited
from tests.support.logged.feed import LoggedTable

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


@pytest.mark.parametrize(
    ("kind", "after", "limits", "cut"),
    [
        (CaptureInstance, {"a": Version(1)}, (5, None), Version(3)),
        (CaptureInstance, {"a": Version(1)}, (None, 5), Version(3)),
        (CaptureInstance, {"a": Version(1)}, (None, None), Version(9)),
        (CaptureInstance, {}, (5, 5), Version(9)),
        (LoggedTable, {"a": Version(1)}, (5, 5), Version(9)),
    ],
)
def test_limits_are_asked_of_a_source_that_can_say_them(kind, after, limits, cut):
    class Source:
        def __init__(self):
            self.kind = kind

        def limit(self, positions: dict[str, Position], upto, *, transactions, rows):
            assert (positions, upto, (transactions, rows)) == (after, Version(9), limits)
            return Version(3)

    assert limited(Source(), after, Version(9), transactions=limits[0], rows=limits[1]) == cut
