"""A table of which a load takes copies."""

from __future__ import annotations

import logging

from pyspark.sql import DataFrame

from airflow_provider_mssql_cdc.spark.copies.copied_source import CopiedSource
from airflow_provider_mssql_cdc.spark.copies.copy import Copy, CopyOrder, Unfinished
from airflow_provider_mssql_cdc.spark.copies.folder import folders
from airflow_provider_mssql_cdc.spark.copies.table_copy import TableCopy

log = logging.getLogger(__name__)


class CopiedTable(CopiedSource):
    """Takes copies, of which it holds the one of this run."""

    _copying: TableCopy | None = None

    def copy(self, order: CopyOrder) -> Copy | Unfinished:
        """Copy the rows, or go on with that, and read the changes of meanwhile."""
        self._copying = TableCopy(self, order)
        return self._copying.run()

    def read_again(self, keys: DataFrame) -> Copy | Unfinished:
        """Read the rows of some keys into the copy, and the changes of meanwhile."""
        assert self._copying is not None
        return self._copying.read_again(keys)

    def has_lost_copy(self) -> bool:
        """Whether the copy's folder has gone; what this run has written there since goes, too."""
        return self._copying is not None and self._copying.is_lost()

    def remove_copies(self, place: str) -> None:
        """Remove the folders of the table's copies."""
        for folder, _ in folders(self.jdbc.session, place):
            log.info("%s: copy %s is removed", self.table.name, folder.id)
            folder.remove()

    def remove_copy(self) -> None:
        """Remove the copy's folder."""
        if self._copying is not None:
            self._copying.remove()
