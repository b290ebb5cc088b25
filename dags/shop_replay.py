"""Write the events of whole days into the history tables again, for instance after some were deleted there by mistake.

Each run has a data interval of one day, reads the events that the server committed in it, and inserts those that the
history does not hold. It moves no checkpoint and touches no current rows, so it may run beside ``shop_incremental``,
which must have loaded the interval once before: until the capture and that load have passed the day's end, a try
fails, and the next one follows ten minutes later. It reaches back as far as the change tables do (three days by
default).

To run it: as for ``shop_incremental``, then unpause the DAG, and for past days
``airflow backfill create --dag-id shop_replay --from-date 2026-01-05 --to-date 2026-01-07``; with
``--reprocess-behavior completed`` also those days again that a run has replayed already.
"""

from __future__ import annotations

import datetime

from airflow.sdk import DAG, CronDataIntervalTimetable
from shop_lake import LAKE, SHOP

from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator

with DAG(
    "shop_replay",
    # Not a plain cron expression: its runs have empty data intervals.
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
    start_date=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    catchup=False,
    max_active_runs=1,
    # A run starts when its day ends, which the capture and shop_incremental reach some minutes later.
    default_args={"retries": 6, "retry_delay": datetime.timedelta(minutes=10)},
    tags=["mssql-cdc"],
    doc_md=__doc__,
):
    MsSqlCdcLoadOperator(
        task_id="replay",
        shapes=["history"],
        replay=True,
        # CDC keeps the server's local time; a server that does not run in UTC needs server_timezone="Europe/Berlin".
        conn_id="spark_default",
        conf=LAKE,
        **SHOP,
    )
