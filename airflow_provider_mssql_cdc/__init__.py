"""Load the changes of SQL Server tables into a lakehouse, from Airflow, with Spark."""

__version__ = "0.3.0"
