"""Load the shop's changes as soon as they are captured.

A watcher in the triggerer asks the database every second, in one query for all tables, and starts a run when something
has changed. The event only wakes the run: what it loads follows from the checkpoints and the database, so events that
are merged or lost lose no change.

To run it: connections ``mssql_default`` (the shop, with CDC enabled) and ``spark_default``, the Variable
``shop_warehouse``, a running triggerer, and the DAG unpaused. Use either this or ``shop_incremental``: both load the
same tables.
"""

from __future__ import annotations

from airflow.sdk import DAG, Asset, AssetWatcher
from shop_lake import LAKE, SHOP

from airflow_provider_mssql_cdc.operators.load import MsSqlCdcLoadOperator
from airflow_provider_mssql_cdc.triggers.mssql_cdc import MsSqlCdcEventTrigger

SHAPES = ["mirror", "history"]

changes = Asset(
    "shop_changes",
    watchers=[AssetWatcher(name="shop", trigger=MsSqlCdcEventTrigger(shapes=SHAPES, poll_interval=1.0, **SHOP))],
)

with DAG("shop_on_change", schedule=[changes], catchup=False, max_active_runs=1, tags=["mssql-cdc"], doc_md=__doc__):
    MsSqlCdcLoadOperator(task_id="load", shapes=SHAPES, conn_id="spark_default", conf=LAKE, **SHOP)
