"""The marker in the properties of an Iceberg table, for the day when the snapshot that carries it has expired."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.codec import from_data, to_data
from airflow_provider_mssql_cdc.core.exceptions import RESET_ADVICE, TargetError
from airflow_provider_mssql_cdc.core.marker import Marker
from airflow_provider_mssql_cdc.spark.files import no_pattern
from airflow_provider_mssql_cdc.spark.targets.sql import packed, text, unpacked

log = logging.getLogger(__name__)

MARKER = "mssql_cdc.marker"
"""Snapshot property and table property; the latter holds the marker with its snapshot.

What a history lacks after changes were purged stands in the marker (``gaps``), and so outlives the snapshots.
"""


def table_properties(session: SparkSession, sql_name: str) -> dict[str, str]:
    """The properties of a table.

    :param sql_name: in Spark SQL
    """
    return {row["key"]: row["value"] for row in session.sql(f"SHOW TBLPROPERTIES {sql_name}").collect()}


class MarkerProperty:
    """The property of one table.

    :param sql_name: the table's name in Spark SQL
    :param name: the table's name for people
    """

    def __init__(self, session: SparkSession, sql_name: str, name: str) -> None:
        self._session, self._sql_name, self._name = session, sql_name, name

    def stored(self) -> dict[str, Any] | None:
        """The property as it is: the marker, and its snapshot."""
        found = table_properties(self._session, self._sql_name).get(MARKER)
        stored: dict[str, Any] | None = None if found is None else unpacked(found)
        return stored

    def remember(self, marker: Marker, snapshot: int) -> None:
        """Bring the table property up to the marker, for the day when the snapshot has expired."""
        value = {"marker": to_data(marker), "snapshot": snapshot}
        try:
            self._session.sql(
                f"ALTER TABLE {self._sql_name} SET TBLPROPERTIES ({text(MARKER)} = {text(packed(value))})"
            )
        except Exception as error:
            # The snapshot has it; the next job brings the property up.
            log.warning("the marker was not written into the properties of %s: %s", self._sql_name, error)

    def found(self, expired: int | None, *, is_empty: bool) -> Marker | None:
        """The marker that is there, if the table still holds what it says.

        :param expired: the newest expired snapshot of main; None if none has expired
        :param is_empty: whether the table is empty, which no snapshot after that one can have made it
        :raises TargetError: if main does not descend from the marker's snapshot, or nothing tells; and if the table is
            empty, and what has expired may have emptied it
        """
        stored = self.stored()
        if stored is None:
            return None
        marker, descends = from_data(Marker, stored["marker"]), self._descends(expired, stored["snapshot"])
        if descends and (not is_empty or expired == stored["snapshot"]):
            return marker
        if descends:
            problem = "and it is empty, which the load may have left or others"
        elif descends is None:
            problem = "by a snapshot of which nothing tells any more whether the present one descends from it"
        else:
            problem = (
                "by a snapshot from which the present one does not descend, so that it was rolled back or replaced"
            )
        raise TargetError(
            f"{self._name} has no snapshot any more that says what it holds. Its properties remember {marker.position} "
            f"as loaded, {problem}.",
            advice=RESET_ADVICE,
        )

    def _descends(self, snapshot: int | None, marked: int) -> bool | None:
        """Whether an expired snapshot is the marked one, or descends from it; None if nothing tells."""
        known: dict[int, int | None] = {}
        older = self._expired()
        while snapshot not in (None, marked):
            while snapshot not in known:
                more = next(older, None)
                if more is None:
                    return None
                known |= more
            snapshot = known[snapshot]
        return snapshot is not None

    def _expired(self) -> Iterator[dict[int, int | None]]:
        """Snapshots with their parents, of each metadata file that Iceberg still lists, the newest first."""
        files = self._session.sql(
            f"SELECT file FROM {self._sql_name}.metadata_log_entries ORDER BY timestamp DESC"
        ).collect()
        schema = "snapshots ARRAY<STRUCT<`snapshot-id`: BIGINT, `parent-snapshot-id`: BIGINT>>"
        reader = self._session.read.schema(schema).option("multiLine", True)
        for file in files:
            try:
                found = reader.json(no_pattern(file["file"])).select(F.explode("snapshots").alias("s")).select("s.*")
                yield {row[0]: row[1] for row in found.collect()}
            except Exception as error:
                # Spark may not reach what the catalog does, and names such errors in many ways
                log.warning("%s cannot be read: %s", file["file"], str(error).partition("\n")[0])
