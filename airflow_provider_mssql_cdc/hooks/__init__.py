"""Metadata of SQL Server change data capture over an Airflow connection."""
