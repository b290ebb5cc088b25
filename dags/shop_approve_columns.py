"""Ask a person before the shop gets a capture instance for a column that was added.

With ``on_schema_change="propose"`` a load tells its operations asset once of each capture instance that is to be made.
This DAG shows the T-SQL in Airflow's pages, waits until a person approves it, and runs it; a person who rejects it
leaves the load as it is, without the column.

To run it: ``on_schema_change="propose"`` in the load of ``shop_incremental``, a connection ``mssql_admin`` (db_owner of
the shop's database, which it names as its schema), a running triggerer, and the DAG unpaused.
"""

from __future__ import annotations

import datetime
from typing import Any

from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, Asset, task
from airflow.sdk.exceptions import AirflowSkipException
from shop_lake import SHOP

target = SHOP["target"]
operations = Asset(name=f"{target} operations", uri=f"x-operations-{target}")

with DAG(
    "shop_approve_columns",
    schedule=[operations],
    catchup=False,
    max_active_runs=1,
    tags=["mssql-cdc"],
    doc_md=__doc__,
):

    @task
    def proposed(triggering_asset_events: Any) -> list[str]:
        """The T-SQL of the proposals that have started this run, each once."""
        told = [event.extra for events in triggering_asset_events.values() for event in events]
        proposals = [each for extra in told if extra.get("kind") == "proposal" for each in extra["events"]]
        statements = [each["statement"] for each in proposals if each["statement"] is not None]
        if not statements:
            raise AirflowSkipException("no capture instance is proposed that could be made")
        return list(dict.fromkeys(statements))

    statements = proposed()

    approve = ApprovalOperator(
        task_id="approve",
        subject="Make capture instances for columns that were added?",
        body="{{ ti.xcom_pull(task_ids='proposed') | join('\n\n') }}",
        response_timeout=datetime.timedelta(days=7),
    )

    make = SQLExecuteQueryOperator(
        task_id="make",
        conn_id="mssql_admin",
        sql=statements,
        autocommit=True,
        split_statements=False,
        handler=None,
        do_xcom_push=False,
    )

    statements >> approve >> make
