"""Which statements are about the columns of a load."""

from __future__ import annotations

import dataclasses

import pytest

from airflow_provider_mssql_cdc.core.exceptions import SchemaChangedError
from airflow_provider_mssql_cdc.core.feed import DdlChange
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.schema_change import check_statements, concerning
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema

ID, NOTE = Column(1, 1, "id", "int", 4, nullable=False), Column(2, 2, "note", "int", 4)
HAS = TableSchema((ID, NOTE), ("id",))


def altering(column: str) -> DdlChange:
    return DdlChange("dbo_t", f"ALTER TABLE dbo.t ALTER COLUMN {column} bigint", Lsn(bytes(9) + b"\1"), None, True)


def test_a_column_that_is_left_out_concerns_no_load_also_once_it_is_dropped() -> None:
    for dropped in (False, True):
        captured = (ID, NOTE, Column(3, 3, "later", "bigint", 8, dropped=dropped))
        assert concerning([altering("later")], captured, HAS) == ()
        assert concerning([altering("note")], captured, HAS) == (altering("note"),)


def test_a_statement_that_names_no_known_column_concerns_every_load() -> None:
    assert concerning([altering("other")], (ID, NOTE), HAS) == (altering("other"),)


def test_a_name_that_a_loaded_column_has_again_is_of_that() -> None:
    gone, again = Column(3, 3, "later", "int", 4, dropped=True), Column(4, 4, "later", "int", 4)
    has = TableSchema((ID, again), ("id",))
    assert concerning([altering("later")], (ID, gone, again), has) == (altering("later"),)


def test_a_dropped_column_excuses_statements_about_it_and_not_about_a_table_of_its_name() -> None:
    has = dataclasses.replace(HAS, columns=(ID, dataclasses.replace(NOTE, name="t", kept=True)))
    check_statements(TableName("dbo", "t"), [altering("t")], {}, has)
    with pytest.raises(SchemaChangedError):
        check_statements(TableName("dbo", "t"), [altering("doc")], {}, has)
