"""What clients ask for and the sandbox does not simulate: it says so by name, and none of it is needed to read CDC."""

from __future__ import annotations

import pytest

from airflow_provider_mssql_cdc.sandbox.protocol import Unsupported
from tests.sandbox.statements.conftest import Open
from tests.support.clients import mssql_cdc_pyspark, olake, rivet
from tests.support.clients.drivers_in_process import Driver
from tests.support.clients.shop import Shop

_OPTIONAL = "statistics of the server; the client goes on without them where the statement fails"
_PLACE = "where a row lies in the file, which docs do not tell; OLake cuts tables without a key so"

REFUSED = (
    (rivet.WAITS, "sys.dm_os_wait_stats", _OPTIONAL),
    (rivet.PRESSURE, "sys.dm_os_performance_counters", _OPTIONAL),
    (mssql_cdc_pyspark.WAITED, "sys.dm_exec_session_wait_stats", _OPTIONAL),
    (olake.HEAP_EXTREMES, "%%physloc%%", _PLACE),
    (olake.HEAP_CHUNK, "%%physloc%%", _PLACE),
)
"""Statement, what the error names, and why."""


@pytest.mark.parametrize(("text", "named", "why"), REFUSED, ids=[named for _, named, _ in REFUSED])
def test_it_is_refused_by_name(shop: Shop, connect: Open, text: str, named: str, why: str) -> None:
    driver = connect(Driver)
    declared = "DECLARE @p1 nvarchar(100) = N'[dbo].[orders]', @p2 int = 1 "
    with pytest.raises(Exception, match="not supported by the sandbox") as raised:
        driver.batch(declared + text)
    assert str(raised.value) == str(Unsupported(named)), why
    assert driver.batch("SELECT COUNT(*) FROM dbo.orders") == [(3,)]  # the session goes on
