"""Delta tables: the marker in the commit's metadata, and a transaction version that lets one of several writers win."""

from __future__ import annotations

import datetime
import json
import logging
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.codec import from_data, to_data
from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.exceptions import RESET_ADVICE, TargetError
from airflow_provider_mssql_cdc.core.marker import Marker
from airflow_provider_mssql_cdc.core.target import in_folder
from airflow_provider_mssql_cdc.spark.files import check_folder
from airflow_provider_mssql_cdc.spark.targets import Difference, OldRows, State, Write
from airflow_provider_mssql_cdc.spark.targets.delta_log import (
    APPLICATION,
    Commit,
    Line,
    UnclearMomentError,
    commits_of,
    line,
    most_files,
)
from airflow_provider_mssql_cdc.spark.targets.file_table import LakeTable
from airflow_provider_mssql_cdc.spark.targets.sql import (
    create_and_drop,
    create_table,
    difference,
    merge,
    packed,
    quoted,
    settings,
    text,
    unpacked,
)

log = logging.getLogger(__name__)

MARKER = "mssql_cdc.marker"
"""Table property that holds the marker for the day when the log has forgotten the commit that carries it."""

_REMEMBER_AFTER = datetime.timedelta(days=1)
"""Age at which the property is written anew: the log is kept for 30 days by default.

So a table that is no longer loaded may remember a position of up to a day before its last load. That is refused, and
only met where the log has forgotten that load, which then was 30 days ago.
"""

_CONF = "spark.databricks.delta."

_TIMESTAMP_NTZ = "'delta.feature.timestampNtz'"

_PARTITIONS = f"{_CONF}snapshotPartitions"
_PARTITIONS_UNTIL_KNOWN = 8
_MOST_PARTITIONS = 50
_FILES_OF_A_PARTITION = 10_000

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


class DeltaTable(LakeTable):
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

    def check_place(self) -> None:
        """Create the namespace, and a table that is dropped again; of a folder on a disk, a file in it."""
        if not in_folder(self._name):
            create_and_drop(self._session, self._name[:-1], "delta")
        else:
            check_folder(self._name[0])

    def create(self, columns: Sequence[TargetColumn]) -> None:
        """Create the table and its namespace unless they exist."""
        if not self.exists():
            if not in_folder(self._name):
                namespace = ".".join(map(quoted, self._name[:-1]))
                self._session.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
            try:
                create_table(self._session, self.sql_name, "delta", columns, self._partition_by, self._properties)
            except Exception:
                # two at the same instant: the other one's is as good
                if not self.exists():
                    raise

    def check(self, columns: Sequence[TargetColumn]) -> Difference | None:
        """How the table's columns differ from those that a load writes; None where they do not."""
        return difference(self._session, self.sql_name, columns)

    def state(self) -> State:
        """What the table holds now.

        A table that somebody emptied after its last marked commit has no marker: nothing of what that one says is left.
        """
        if not self.exists():
            return State(exists=False, snapshot=None, marker=None, is_empty=True)
        commits = self._commits()
        self._spread(commits)
        state, marked = self._look(commits)
        if marked is not None and _now() - marked.time >= _REMEMBER_AFTER:
            self._remember(marked, commits)
        return state

    def rows(self, state: State) -> DataFrame:
        """The rows that the table held then."""
        if state.snapshot is None:
            return self._session.table(self.sql_name).limit(0)
        return self.named(self._rows_at(state.snapshot))

    def commit(self, state: State, write: Write, marker: Marker | None) -> bool:
        """Write with the transaction version that follows on ``state``: of several writers, the log lets one have it.

        What a writer of the same version sees depends on the moment: its write is skipped without a word, or refused.
        So the log is asked whether the commit is there. A RESTORE takes no transaction version back, so the marker is
        compared as well, right before the write. One that comes later still, while Delta begins its transaction, is
        found in the log afterwards; those that come while it runs conflict with it.

        :return: whether it was done; False if another commit came first
        :raises TargetError: if the table was restored while Delta began, so that the commit stands on other rows
        """
        self._allow(write.adds)
        before = self._commits()
        now, _ = self._look(before)
        if (now.marker, now.is_empty) != (state.marker, state.is_empty):
            return False
        number = self._last_transaction(before, state.snapshot) + 1
        attempt = f"{self._spec_id}_{secrets.token_hex(8)}"
        load = {"attempt": attempt, "txn": number, "marker": to_data(marker) if marker else None}
        failure: Exception | None = None
        try:
            self._transact(write, {**load, **self._follows(before)})
        except Exception as error:
            failure = error
        after = self._commits()
        own = _of_attempt(after, attempt)
        if own is None:
            if failure is not None and max(after) == max(before):
                raise failure
            if failure is None and not any(c.load is not None for c in _since(after, state.snapshot)):
                self._count_on(number)
            return False
        self._check_beneath(own, after)
        if marker is not None:
            self._remember(own, after)
        return True

    def changed_by(self) -> str:
        """What made the newest commit, for an error message."""
        commits = self._commits()
        newest = commits[max(commits)]
        return f"{newest.operation} (version {newest.version}) at {newest.time} UTC"

    def drop_leftovers(self) -> None:
        """Files that no commit names are not part of the table; VACUUM removes them."""

    def _open(self) -> None:
        self._compared: dict[tuple[int, int], bool] = {}
        self._spreads = self._session.conf.get(_PARTITIONS, None) is None

    def _spread(self, commits: Mapping[int, Commit]) -> None:
        """Let Delta compute the list of the table's files in as many partitions as it is long.

        It takes 50 by default for each version that it looks at (docs: Delta, ``snapshotPartitions``); who has set
        another number knows.
        """
        if self._spreads:
            self._spreads = False
            files = most_files(commits)
            if files is None:
                self._session.conf.set(_PARTITIONS, str(_PARTITIONS_UNTIL_KNOWN))
                files = self._session.sql(f"DESCRIBE DETAIL {self.sql_name}").collect()[0]["numFiles"]
            self._session.conf.set(_PARTITIONS, str(min(2 + files // _FILES_OF_A_PARTITION, _MOST_PARTITIONS)))

    def _transact(self, write: Write, load: Mapping[str, Any]) -> None:
        """Write with what the commit says of itself, by its transaction version."""
        metadata = {
            f"{_CONF}commitInfo.userMetadata": json.dumps({APPLICATION: load}),
            f"{_CONF}write.txnAppId": APPLICATION,
            f"{_CONF}write.txnVersion": str(load["txn"]),
        }
        with settings(self._session, metadata):
            self._write(write)

    def _allow(self, columns: Sequence[TargetColumn]) -> None:
        """Let the table have columns of a type that a table which is created gets by itself."""
        if any(column.type == "TIMESTAMP_NTZ" for column in columns):
            self._session.sql(f"ALTER TABLE {self.sql_name} SET TBLPROPERTIES ({_TIMESTAMP_NTZ} = 'supported')")

    def _count_on(self, number: int) -> None:
        """Find a transaction version that Delta takes, which skipped this one.

        Delta knows the last one also when its log has forgotten the commit. So commits without rows and marker say
        what it is again; another writer, who knows as little, is skipped as before.
        """
        for step in range(62):
            attempt = f"{self._spec_id}_{secrets.token_hex(8)}"
            load = {"attempt": attempt, "txn": number + 2**step, "marker": None}
            self._transact(Write(self._session.table(self.sql_name).limit(0)), load)
            if _of_attempt(self._commits(), attempt) is not None:
                log.info("the transactions of %s are counted on from %s", self.name, load["txn"])
                return

    def _write(self, write: Write) -> None:
        columns = [*self._session.table(self.sql_name).columns, *(column.name for column in write.adds)]
        if write.old is OldRows.OF_KEY:
            merge(self._session, self.sql_name, columns, write, evolves=bool(write.adds))
            return
        writer = write.rows.select(*map(quoted, columns)).writeTo(self.sql_name)
        if write.adds:
            writer = writer.option("mergeSchema", "true")
        if write.old is OldRows.NONE:
            writer.append()
        else:
            writer.overwrite(F.lit(True))

    def _rows_at(self, version: int) -> DataFrame:
        return self._session.sql(f"SELECT * FROM {self.sql_name} VERSION AS OF {version}")

    def _commits(self) -> dict[int, Commit]:
        """What the log still knows, by version."""
        history = self._session.sql(f"DESCRIBE HISTORY {self.sql_name}")
        # as the session sees it, which is in UTC; a timestamp would come in the zone of this process
        time = F.col("timestamp").cast("timestamp_ntz").alias("timestamp")
        said = ("version", time, "operation", "operationParameters", "operationMetrics", "userMetadata")
        rows = history.select(*said).collect()
        return commits_of(rows)

    def _look(self, commits: Mapping[int, Commit]) -> tuple[State, Commit | None]:
        """What the table holds, and the commit whose marker says so."""
        current = max(commits)
        try:
            way = self._way(commits, current)
            found = way.marked
            if found is not None and found.load is not None:
                if way.written and self._rows_at(current).isEmpty():
                    return State(True, current, None, is_empty=True), None
                self._check_beneath(found, commits)
                return State(True, current, _marker(found.load), is_empty=False), found
            is_empty = self._rows_at(current).isEmpty()
            if way.end < 0 or (way.written and is_empty):
                return State(True, current, None, is_empty), None
            remembered = self._remembered(commits)
        except TargetError as doubt:
            return State(True, current, None, self._rows_at(current).isEmpty(), doubt=doubt), None
        return State(True, current, remembered, is_empty, from_property=remembered is not None), None

    def _way(self, commits: Mapping[int, Commit], version: int) -> Line:
        """Where the way back from a version leads.

        :raises TargetError: if it leads over a RESTORE to a moment that may have been several versions
        """
        try:
            return line(commits, version, self._may_be_same)
        except UnclearMomentError as error:
            restore = error.restore
            raise TargetError(
                f"{self.name} was restored in version {restore.version} to a moment whose time zone the log does not "
                f"tell: it may have been one of the versions {min(restore.back_to)} to {max(restore.back_to)}.",
                advice=f"Restore it by number (RESTORE TABLE {self.sql_name} TO VERSION AS OF ..) and run the task "
                f"again. {RESET_ADVICE}",
            ) from error

    def _may_be_same(self, one: int, other: int) -> bool:
        """Whether two versions have the same files and as many rows; so do all that a RESTORE makes equal."""
        if (one, other) not in self._compared:
            try:
                first, second = self._rows_at(one), self._rows_at(other)
                same = set(first.inputFiles()) == set(second.inputFiles()) and first.count() == second.count()
            except PySparkException:
                # what cannot be read any more cannot be told apart
                same = True
            self._compared[one, other] = same
        return self._compared[one, other]

    def _follows(self, commits: Mapping[int, Commit]) -> dict[str, str | None]:
        """What a commit says of the one whose marker it found: nothing where the log does not tell."""
        try:
            way = self._way(commits, max(commits))
        except TargetError:
            return {}
        return {} if way.marked is None and way.end >= 0 else {"follows": way.attempt}

    def _check_beneath(self, own: Commit, commits: Mapping[int, Commit]) -> None:
        """Compare the marker beneath a commit with the one that its load had found.

        :raises TargetError: if it is another
        """
        load = own.load or {}
        if "follows" not in load:
            return
        way = self._way(commits, own.version - 1)
        if way.attempt == load["follows"] or (way.marked is None and way.end >= 0):
            return
        raise TargetError(
            f"{self.name} was restored, or made anew, at the moment when a load wrote its version {own.version}: "
            "changes are missing between that version and what lies beneath it.",
            advice=f"Take the version back (RESTORE TABLE {self.sql_name} TO VERSION AS OF {own.version - 1}) and run "
            f"the task again. {RESET_ADVICE}",
        )

    def _last_transaction(self, commits: Mapping[int, Commit], snapshot: int | None) -> int:
        """The highest transaction version up to what was seen; a RESTORE does not take them back."""
        known = [c.load["txn"] for v, c in commits.items() if c.load is not None and v <= _seen(snapshot)]
        if 0 not in commits and (stored := self._property()) is not None and stored["version"] <= _seen(snapshot):
            known.append(stored["load"]["txn"])
        return max(known, default=-1)

    def _remember(self, commit: Commit, commits: Mapping[int, Commit]) -> None:
        """Write the marker into the table's properties, unless they have it, or one of lately."""
        stored = self._property()
        then = commits.get(stored["version"]) if stored is not None else None
        if then is not None and (then == commit or _now() - then.time < _REMEMBER_AFTER):
            return
        value = packed({"version": commit.version, "load": commit.load})
        try:
            self._session.sql(f"ALTER TABLE {self.sql_name} SET TBLPROPERTIES ({text(MARKER)} = {text(value)})")
        except Exception as error:
            # The commit has it; the next job writes the property.
            log.warning("the marker was not written into the properties of %s: %s", self.name, error)

    def _remembered(self, commits: Mapping[int, Commit]) -> Marker | None:
        stored = self._property()
        if stored is None:
            return None
        marker = _marker(stored["load"])
        earlier = [then for commit in commits.values() for then in commit.back_to if then < stored["version"]]
        if earlier:
            raise TargetError(
                f"{self.name} has no commit any more that says what it holds. Its properties remember "
                f"{marker.position} as loaded by version {stored['version']}, and it was restored to version "
                f"{earlier[0]}.",
                advice=RESET_ADVICE,
            )
        return marker

    def _property(self) -> dict[str, Any] | None:
        for row in self._session.sql(f"SHOW TBLPROPERTIES {self.sql_name}").collect():
            if row["key"] == MARKER:
                stored: dict[str, Any] | None = unpacked(row["value"])
                return stored
        return None


def _marker(load: Mapping[str, Any]) -> Marker:
    return from_data(Marker, load["marker"])


def _of_attempt(commits: Mapping[int, Commit], attempt: str) -> Commit | None:
    return next((c for c in commits.values() if c.load is not None and c.load["attempt"] == attempt), None)


def _since(commits: Mapping[int, Commit], snapshot: int | None) -> list[Commit]:
    return [commit for version, commit in commits.items() if version > _seen(snapshot)]


def _seen(snapshot: int | None) -> int:
    return -1 if snapshot is None else snapshot


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
