"""Columns that a commit brings to an Iceberg table: a branch has none of its own, so they have other names before."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.columns import TEMPORARY, TargetColumn
from airflow_provider_mssql_cdc.spark.targets import Write
from airflow_provider_mssql_cdc.spark.targets.sql import quoted

PREFIX = f"{TEMPORARY}added_"
"""Begins the names of columns whose values are not on main yet."""


@dataclass(frozen=True, slots=True)
class AddedColumns:
    """The columns of one table that commits bring.

    :param table: in Spark SQL
    :param types: Spark types that Iceberg holds as another
    """

    session: SparkSession
    table: str
    types: Mapping[str, str]

    def add(self, columns: Sequence[TargetColumn]) -> None:
        """Add columns that the next commit to main brings, under names that say so."""
        there = dict(self.session.table(self.table).dtypes) if columns else {}
        for column in columns:
            if column.name in there:
                # another run has brought it meanwhile, and this one's commit is refused
                continue
            name, type_ = PREFIX + column.name, self.types.get(column.type, column.type)
            if name in there and there[name] != self.session.createDataFrame([], f"c {type_}").dtypes[0][1]:
                # of another column of that name, which the source has dropped since
                self._alter(f"DROP COLUMN {quoted(name)}")
                del there[name]
            if name not in there:
                self._alter(f"ADD COLUMN {quoted(name)} {type_}", name)

    def finish(self, columns: Sequence[TargetColumn]) -> None:
        """Give columns whose values are on main their own names. What others have left beside them goes."""
        there = self.session.table(self.table).columns if columns else []
        for column in columns:
            if (added := PREFIX + column.name) not in there:
                continue
            if column.name in there:
                self._alter(f"DROP COLUMN {quoted(added)}")
            else:
                self._alter(f"RENAME COLUMN {quoted(added)} TO {quoted(column.name)}", column.name)

    def stored(self, write: Write, columns: Sequence[str]) -> Write:
        """A write with the names that the table has now.

        :param columns: of the table
        """
        rows = write.rows.withColumnsRenamed({column.name: PREFIX + column.name for column in write.adds})
        # what another attempt has left has no values
        unset = [name for name in columns if name.startswith(PREFIX) and name not in rows.columns]
        return dataclasses.replace(write, rows=rows.withColumns({name: F.lit(None) for name in unset}))

    def _alter(self, what: str, makes: str | None = None) -> None:
        """Alter the table.

        :param makes: the column that is there then, be it that another run has made it
        """
        try:
            self.session.sql(f"ALTER TABLE {self.table} {what}").collect()
        except Exception:
            if makes not in self.session.table(self.table).columns:
                raise


def without_added(rows: DataFrame) -> DataFrame:
    """Rows without the columns whose values are not on main yet."""
    return rows.drop(*(name for name in rows.columns if name.startswith(PREFIX)))
