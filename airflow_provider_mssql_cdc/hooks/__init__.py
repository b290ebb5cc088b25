"""Metadata of SQL Server change data capture and Change Tracking over an Airflow connection."""
