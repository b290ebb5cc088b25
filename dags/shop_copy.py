"""Ask for a copy of tables that ``shop_incremental`` loads, and wait until it is done.

The next run of ``shop_incremental`` reads the named tables, compares the lake with them, and writes what differs:
after somebody has changed the lake by hand, for instance. This DAG reads no rows itself, and waits without a worker.

To run it: as for ``shop_incremental``, which must be unpaused, then unpause this DAG, and use its form in the UI, or
``airflow dags trigger shop_copy --conf '{"tables": ["sales.orders"]}'``. A run of ``shop_incremental`` itself takes
the same wish: ``airflow dags trigger shop_incremental --conf '{"copy": ["sales.orders"]}'``.
"""

from __future__ import annotations

import datetime

from airflow.sdk import DAG, Param
from shop_lake import SHOP

from airflow_provider_mssql_cdc.operators.copy import MsSqlCdcCopyOperator

with DAG(
    "shop_copy",
    schedule=None,
    # two requests for one table are refused
    max_active_runs=1,
    render_template_as_native_obj=True,
    params={
        "tables": Param(["sales.orders"], type="array", items={"type": "string"}, minItems=1, title="Tables"),
    },
    tags=["mssql-cdc"],
    doc_md=__doc__,
):
    MsSqlCdcCopyOperator(
        task_id="copy",
        deferrable=True,
        execution_timeout=datetime.timedelta(days=1),
        **{**SHOP, "tables": "{{ params.tables }}"},
    )
