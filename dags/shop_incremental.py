"""Load the shop's changes every ten minutes, when there are any.

The sensor waits, without holding a worker, until some table has changed, and hands on the position up to which all
tables are then loaded. The first run copies the tables. Two kinds of table are kept: the current rows, and every event.

To run it: connections ``mssql_default`` (the shop, with CDC enabled) and ``spark_default``, the Variable
``shop_warehouse``, and then ``airflow dags test shop_incremental``, or unpause the DAG.
"""

from __future__ import annotations

import datetime

from airflow.sdk import DAG
from shop_lake import LAKE, SHOP

from airflow_provider_mssql_cdc.operators.task_group import MsSqlCdcTaskGroup

with DAG(
    "shop_incremental",
    schedule="*/10 * * * *",
    start_date=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    catchup=False,
    # Two runs at once would be harmless, but both would read the same changes.
    max_active_runs=1,
    tags=["mssql-cdc"],
    doc_md=__doc__,
):
    MsSqlCdcTaskGroup(
        "shop",
        shapes=["mirror", "history"],
        wait={"deferrable": True},
        spark={"conf": LAKE},
        prefix_group_id=False,
        **SHOP,
    )
