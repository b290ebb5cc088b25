"""What Airflow is told about this provider (entry point ``apache_airflow_provider``)."""

from __future__ import annotations

from typing import Any

_NAME = "SQL Server CDC"
_PACKAGE = "airflow_provider_mssql_cdc"


def get_provider_info() -> dict[str, Any]:
    """The provider metadata in the form of Airflow's ``provider_info.schema.json``.

    There is no connection type of its own: connections are those of type ``mssql``, which
    ``apache-airflow-providers-microsoft-mssql`` registers.
    """
    return {
        "package-name": "airflow-provider-mssql-cdc",
        "name": _NAME,
        "description": "Load the changes of SQL Server tables into a lakehouse, from Airflow, with Spark.",
        "integrations": [
            {
                "integration-name": _NAME,
                "external-doc-url": "https://learn.microsoft.com/sql/relational-databases/track-changes/"
                "about-change-data-capture-sql-server",
                "tags": ["software"],
            }
        ],
        "hooks": [
            {
                "integration-name": _NAME,
                "python-modules": [f"{_PACKAGE}.hooks.{module}" for module in ("mssql_cdc", "mssql_change_tracking")],
            }
        ],
        "operators": [
            {
                "integration-name": _NAME,
                "python-modules": [f"{_PACKAGE}.operators.{module}" for module in ("copy", "load", "task_group")],
            }
        ],
        "sensors": [{"integration-name": _NAME, "python-modules": [f"{_PACKAGE}.sensors.mssql_cdc"]}],
        "triggers": [
            {
                "integration-name": _NAME,
                "python-modules": [f"{_PACKAGE}.triggers.copy", f"{_PACKAGE}.triggers.mssql_cdc"],
            }
        ],
    }
