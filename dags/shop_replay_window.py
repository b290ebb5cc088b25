"""Write the events of one window into the history tables again: the run names it, by two times or two commit LSNs.

A run by hand has a form for both edges. Times have a zone, and the end is not included; of two LSNs the first is not
included, so that the position of one load and that of a later one are the window between them. As with ``shop_replay``
only events are inserted that the history does not hold, no checkpoint moves, and no current rows are touched.

To run it: as for ``shop_incremental``, then unpause the DAG, and use its form in the UI, or ``airflow dags trigger
shop_replay_window --conf '{"start": "0x0000002D00000F100003", "end": "0x0000002E000000280005"}'``.
"""

from __future__ import annotations

import datetime

from airflow.sdk import DAG, Param
from shop_lake import LAKE, SHOP

from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator

EDGE = "a time with its zone, such as 2026-01-05T00:00:00+00:00, or a commit LSN, such as 0x0000002D00000F100003"

with DAG(
    "shop_replay_window",
    schedule=None,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": datetime.timedelta(minutes=10)},
    params={
        "start": Param(type="string", minLength=1, title="Start", description=EDGE),
        "end": Param(type="string", minLength=1, title="End", description=EDGE),
    },
    tags=["mssql-cdc"],
    doc_md=__doc__,
):
    MsSqlCdcLoadOperator(
        task_id="replay",
        shapes=["history"],
        replay=True,
        interval=("{{ params.start }}", "{{ params.end }}"),
        conn_id="spark_default",
        conf=LAKE,
        **SHOP,
    )
