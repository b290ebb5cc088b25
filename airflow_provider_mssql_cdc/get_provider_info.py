"""What Airflow is told about this provider (entry point ``apache_airflow_provider``)."""

from __future__ import annotations

from typing import Any


def get_provider_info() -> dict[str, Any]:
    """Return the provider metadata in the form of Airflow's ``provider_info.schema.json``."""
    return {
        "package-name": "airflow-provider-mssql-cdc",
        "name": "SQL Server CDC",
        "description": "Load the changes of SQL Server tables into a lakehouse, from Airflow, with Spark.",
    }
