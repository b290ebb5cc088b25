"""Delta tables: the marker in the commit's metadata, and a transaction version that lets one of several writers win."""

from __future__ import annotations

import datetime
import json
import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.checkpoint import RESET_ADVICE
from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.exceptions import TargetError
from airflow_provider_mssql_cdc.core.spec import Marker, from_json, to_json
from airflow_provider_mssql_cdc.core.target import in_folder
from airflow_provider_mssql_cdc.spark.targets import Append, Merge, State, Write
from airflow_provider_mssql_cdc.spark.targets.file_table import FileTable
from airflow_provider_mssql_cdc.spark.targets.sql import check_columns, create_table, merge, quoted, settings, text

log = logging.getLogger(__name__)

APPLICATION = "mssql_cdc"
"""The application whose transaction versions the table's log counts (``txnAppId``); a table is one sink's."""

MARKER = "mssql_cdc.marker"
"""Table property that holds the marker for the day when the log has forgotten the commit that carries it."""

_REMEMBER_AFTER = datetime.timedelta(days=1)
"""Age of the newest marked commit at which the property is written: the log is kept for 30 days by default."""

_CONF = "spark.databricks.delta."

_NO_CHANGE_OF_ROWS = frozenset(
    {
        "CREATE TABLE",
        "OPTIMIZE",
        "REORG",
        "RESTORE",
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
        "UPGRADE PROTOCOL",
        "VACUUM START",
        "VACUUM END",
    }
)

_MISSING = frozenset(
    {
        "DELTA_MISSING_DELTA_TABLE",
        "DELTA_PATH_DOES_NOT_EXIST",
        "DELTA_TABLE_NOT_FOUND",
        "PATH_NOT_FOUND",
        "SCHEMA_NOT_FOUND",
        "TABLE_OR_VIEW_NOT_FOUND",
    }
)


@dataclass(frozen=True, slots=True)
class _Commit:
    """One version of the table.

    :param restored: the version that a RESTORE went back to
    :param load: what a commit of this package says of itself: ``attempt``, ``txn`` and ``marker``
    """

    version: int
    time: datetime.datetime
    operation: str
    restored: int | None
    load: Mapping[str, Any] | None


class DeltaTable(FileTable):
    """A sink's Delta table; ``partition_by`` names columns."""

    _DEFAULT_PROPERTIES: ClassVar[Mapping[str, str]] = {
        "delta.enableDeletionVectors": "true",
        # names with blanks and the like need it
        "delta.columnMapping.mode": "name",
    }

    @property
    def sql_name(self) -> str:
        """The name in Spark SQL."""
        return f"delta.{quoted(self.name)}" if in_folder(self._name) else ".".join(map(quoted, self._name))

    def exists(self) -> bool:
        """Whether the table exists."""
        try:
            _ = self._session.table(self.sql_name).schema
        except AnalysisException as error:
            if (error.getCondition() or "").partition(".")[0] in _MISSING:
                return False
            raise
        return True

    def create(self, columns: Sequence[TargetColumn]) -> None:
        """Create the table and its namespace unless they exist.

        :raises TargetError: if the table exists with other columns
        """
        if not self.exists():
            if not in_folder(self._name):
                namespace = ".".join(map(quoted, self._name[:-1]))
                self._session.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
            try:
                create_table(self._session, self.sql_name, "delta", columns, self._partition_by, self._properties)
            except PySparkException:
                # two at the same instant: the other one's is as good
                if not self.exists():
                    raise
        check_columns(self._session, self.sql_name, self.name, columns)

    def state(self) -> State:
        """Return what the table holds now.

        A table that somebody emptied after its last marked commit has no marker: nothing of what that one says is left.
        """
        if not self.exists():
            return State(exists=False, snapshot=None, marker=None, is_empty=True)
        commits = self._commits()
        current = max(commits)
        written, version = False, current
        while version in commits:
            commit = commits[version]
            if commit.load is not None and commit.load["marker"] is not None:
                if written and self._rows_at(current).isEmpty():
                    return State(True, current, None, is_empty=True)
                marker = _marker(commit.load)
                self._remember(commit, commits)
                return State(True, current, marker, is_empty=False)
            written = written or commit.operation not in _NO_CHANGE_OF_ROWS
            version = version - 1 if commit.restored is None else commit.restored
        is_empty = self._rows_at(current).isEmpty()
        if version < 0 or (written and is_empty):
            return State(True, current, None, is_empty)
        try:
            remembered = self._remembered(commits)
        except TargetError as doubt:
            return State(True, current, None, is_empty, doubt=doubt)
        return State(True, current, remembered, is_empty, from_property=remembered is not None)

    def rows(self, state: State) -> DataFrame:
        """Return the rows that the table held then."""
        if state.snapshot is None:
            return self._session.table(self.sql_name).limit(0)
        return self._rows_at(state.snapshot)

    def commit(self, state: State, write: Write, marker: Marker | None) -> bool:
        """Write with the transaction version that follows on ``state``: of several writers, the log lets one have it.

        What a writer of the same version sees depends on the moment: its write is skipped without a word, or refused.
        So the log is asked whether the commit is there.

        :return: whether it was done; False if another commit came first
        """
        before = self._commits()
        if state.snapshot is None and any(c.operation not in _NO_CHANGE_OF_ROWS for c in before.values()):
            return False
        known = {version: c for version, c in before.items() if state.snapshot is None or version <= state.snapshot}
        number = self._last_transaction(known) + 1
        attempt = f"{self._spec_id}_{secrets.token_hex(8)}"
        load = {"attempt": attempt, "txn": number, "marker": json.loads(to_json(marker)) if marker else None}
        metadata = {
            f"{_CONF}commitInfo.userMetadata": json.dumps({APPLICATION: load}),
            f"{_CONF}write.txnAppId": APPLICATION,
            f"{_CONF}write.txnVersion": str(number),
        }
        failure: Exception | None = None
        try:
            with settings(self._session, metadata):
                self._write(write)
        except Exception as error:
            failure = error
        after = self._commits()
        if any(c.load is not None and c.load["attempt"] == attempt for c in after.values()):
            return True
        if failure is not None and max(after) == max(before):
            raise failure
        return False

    def moved_by(self) -> str:
        """Return what made the newest commit, for an error message."""
        commits = self._commits()
        newest = commits[max(commits)]
        return f"{newest.operation} (version {newest.version}) at {newest.time} UTC"

    def drop_leftovers(self) -> None:
        """Files that no commit names are not part of the table; VACUUM removes them."""

    def _write(self, write: Write) -> None:
        columns = self._session.table(self.sql_name).columns
        if isinstance(write, Merge):
            merge(self._session, self.sql_name, columns, write)
            return
        writer = write.rows.select(*map(quoted, columns)).writeTo(self.sql_name)
        if isinstance(write, Append):
            writer.append()
        else:
            writer.overwrite(F.lit(True))

    def _rows_at(self, version: int) -> DataFrame:
        return self._session.sql(f"SELECT * FROM {self.sql_name} VERSION AS OF {version}")

    def _commits(self) -> dict[int, _Commit]:
        """Return what the log still knows, by version."""
        history = self._session.sql(f"DESCRIBE HISTORY {self.sql_name}")
        # as the session sees it, which is in UTC; a timestamp would come in the zone of this process
        time = F.col("timestamp").cast("timestamp_ntz").alias("timestamp")
        rows = history.select("version", time, "operation", "operationParameters", "userMetadata").collect()
        return {row["version"]: _commit(row, rows) for row in rows}

    def _last_transaction(self, commits: Mapping[int, _Commit]) -> int:
        """Return the highest transaction version; a RESTORE does not take them back."""
        numbers = [commit.load["txn"] for commit in commits.values() if commit.load is not None]
        if 0 not in commits and (stored := self._property()) is not None:
            numbers.append(stored["load"]["txn"])
        return max(numbers, default=-1)

    def _remember(self, commit: _Commit, commits: Mapping[int, _Commit]) -> None:
        """Write the marker into the table's properties when its commit grows old."""
        now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        if now - commit.time < _REMEMBER_AFTER:
            return
        stored = self._property()
        if stored is not None and stored["version"] == commit.version:
            return
        assert commit.load is not None
        load = {**commit.load, "txn": self._last_transaction(commits)}
        value = json.dumps({"version": commit.version, "load": load})
        try:
            self._session.sql(f"ALTER TABLE {self.sql_name} SET TBLPROPERTIES ({text(MARKER)} = {text(value)})")
        except PySparkException as error:
            # The commit has it; the next job writes the property.
            log.warning("the marker was not written into the properties of %s: %s", self.name, error)

    def _remembered(self, commits: Mapping[int, _Commit]) -> Marker | None:
        stored = self._property()
        if stored is None:
            return None
        marker = _marker(stored["load"])
        earlier = [c for c in commits.values() if c.restored is not None and c.restored < stored["version"]]
        if earlier:
            raise TargetError(
                f"{self.name} has no commit any more that says what it holds. Its properties remember "
                f"{marker.position} as loaded by version {stored['version']}, and it was restored to version "
                f"{earlier[0].restored}.",
                advice=RESET_ADVICE,
            )
        return marker

    def _property(self) -> dict[str, Any] | None:
        for row in self._session.sql(f"SHOW TBLPROPERTIES {self.sql_name}").collect():
            if row["key"] == MARKER:
                stored: dict[str, Any] = json.loads(row["value"])
                return stored
        return None


def _marker(load: Mapping[str, Any]) -> Marker:
    return from_json(Marker, json.dumps(load["marker"]))


def _commit(row: Row, rows: Sequence[Row]) -> _Commit:
    parameters, restored = row["operationParameters"] or {}, None
    if row["operation"] == "RESTORE":
        if parameters.get("version") is not None:
            restored = int(parameters["version"])
        else:
            moment = datetime.datetime.fromisoformat(parameters["timestamp"])
            older = [r["version"] for r in rows if r["timestamp"] <= moment and r["version"] < row["version"]]
            restored = max(older, default=-1)
    return _Commit(row["version"], row["timestamp"], row["operation"], restored, _load(row["userMetadata"]))


def _load(metadata: str | None) -> Mapping[str, Any] | None:
    """Return what a commit of this package says of itself; others may write metadata of their own."""
    try:
        said = json.loads(metadata or "")
    except ValueError:
        return None
    found: Mapping[str, Any] | None = said.get(APPLICATION) if isinstance(said, dict) else None
    return found
