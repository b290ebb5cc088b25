"""Iceberg tables: written on a branch, with the marker in the snapshot, and made visible by a fast-forward of main."""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import random
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.codec import from_json, to_data
from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.exceptions import RESET_ADVICE, CommitConflictError, TargetError
from airflow_provider_mssql_cdc.core.marker import Marker
from airflow_provider_mssql_cdc.spark.session import upsert_rows
from airflow_provider_mssql_cdc.spark.targets import Difference, OldRows, State, Write
from airflow_provider_mssql_cdc.spark.targets.changes import computed
from airflow_provider_mssql_cdc.spark.targets.file_table import LakeTable
from airflow_provider_mssql_cdc.spark.targets.iceberg_columns import PREFIX, AddedColumns, without_added
from airflow_provider_mssql_cdc.spark.targets.iceberg_marker import MARKER, MarkerProperty, table_properties
from airflow_provider_mssql_cdc.spark.targets.iceberg_upsert import PART, Upsert, as_settings, written_to
from airflow_provider_mssql_cdc.spark.targets.sql import (
    create_and_drop,
    create_table,
    difference,
    merge,
    quoted,
    settings,
    text,
)

log = logging.getLogger(__name__)

BRANCH = "mssql_cdc_"
_BRANCH_AGE = datetime.timedelta(days=1)
_TIME = "%Y%m%d%H%M%S"

_WRITE_AUDIT_PUBLISH = ("spark.wap.id", "spark.wap.branch")
_REF_ATTEMPTS = 8
_COMMIT_FAILED = "CommitFailedException"

_T = TypeVar("_T")

_ICEBERG_TYPES = {"SMALLINT": "INT"}
"""Spark types that Iceberg holds as another."""


class IcebergTable(LakeTable):
    """A sink's Iceberg table."""

    _DEFAULT_PROPERTIES: ClassVar[Mapping[str, str]] = {
        "format-version": "3",
        "write.merge.mode": "merge-on-read",
        "write.update.mode": "merge-on-read",
        "write.delete.mode": "merge-on-read",
    }

    _seen: tuple[str, ...] = ()
    """Branches and tags, when the state was last looked at."""
    _held = 0
    """Rows in its data files then."""

    @property
    def sql_name(self) -> str:
        """The name in Spark SQL."""
        return ".".join(quoted(part) for part in self._name)

    @property
    def _marked(self) -> MarkerProperty:
        return MarkerProperty(self._session, self.sql_name, self.name)

    @property
    def _added(self) -> AddedColumns:
        return AddedColumns(self._session, self.sql_name, _ICEBERG_TYPES)

    def exists(self) -> bool:
        """Whether the table exists."""
        return self._session.catalog.tableExists(self.sql_name)

    def check_place(self) -> None:
        """Create the namespace, and a table that is dropped again."""
        create_and_drop(self._session, self._name[:-1], "iceberg")

    def create(self, columns: Sequence[TargetColumn]) -> None:
        """Create the table and its namespace unless they exist."""
        if not self.exists():
            namespace = ".".join(quoted(part) for part in self._name[:-1])
            self._session.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
            create_table(self._session, self.sql_name, "iceberg", columns, self._partition_by, self._properties)

    def check(self, columns: Sequence[TargetColumn]) -> Difference | None:
        """How the table's columns differ from those that a load writes; None where they do not."""
        return difference(self._session, self.sql_name, columns, _ICEBERG_TYPES, PREFIX)

    def expect(self, columns: Sequence[TargetColumn]) -> None:
        """Add columns by other names: what Spark has read before a column is there, it does not write any more."""
        self._added.add(columns)

    def finish(self, columns: Sequence[TargetColumn]) -> None:
        """Give columns that main has the values of their names, one after the other."""
        self._added.finish(columns)

    def state(self) -> State:
        """What the table holds now, and remember its marker beside the snapshots, which may expire.

        A part of a window is seen by nobody, unless main was rolled back to it: then its keys are updated, and those
        that were to be added are missing.

        A table that somebody emptied after its last marked commit has no marker: nothing of what that one says is left.
        Where that commit has expired, the properties remember it, which a rollback leaves as they are: they count if
        the present snapshot is known to descend from it, and nothing unknown may have emptied the table.
        """
        if not self.exists():
            return State(exists=False, snapshot=None, marker=None, is_empty=True)
        refs, snapshots = self._history()
        self._seen = tuple(refs)
        current = refs.get("main")
        self._held = int(snapshots[current]["records"] or 0) if current in snapshots else 0
        written = False
        for snapshot in _ancestors(current, snapshots):
            found = snapshots[snapshot]["marker"]
            if snapshots[snapshot]["part"] is not None:
                doubt = self._half_a_window(snapshots[snapshot]["parent_id"], snapshots)
                return State(True, current, None, is_empty=False, doubt=doubt)
            if found is not None:
                if written and current is not None and self.rows_at(current).isEmpty():
                    return State(True, current, None, is_empty=True)
                marker = from_json(Marker, found)
                stored = self._marked.stored()
                if stored is None or stored["snapshot"] != snapshot:
                    self._marked.remember(marker, snapshot)
                return State(True, current, marker, is_empty=False)
            # neither of them takes rows away: compaction, and what adds rows
            written = written or snapshots[snapshot]["operation"] not in ("replace", "append")
        is_empty = current is None or self.rows_at(current).isEmpty()
        if current is None or (written and is_empty):
            return State(True, current, None, is_empty)
        try:
            *_, oldest = _ancestors(current, snapshots)
            remembered = self._marked.found(snapshots[oldest]["parent_id"], is_empty=is_empty)
        except TargetError as doubt:
            return State(True, current, None, is_empty, doubt=doubt)
        return State(True, current, remembered, is_empty, from_property=remembered is not None)

    def rows(self, state: State) -> DataFrame:
        """The rows that the table held then."""
        if state.snapshot is None:
            return without_added(self._session.table(self.sql_name).limit(0))
        then, now = self.rows_at(state.snapshot), self._session.table(self.sql_name)
        if then.schema == now.schema:
            return without_added(then)
        # A snapshot is read with the columns of its time, and ALTER TABLE makes none. If main has moved on since
        # ``state``, ``commit`` refuses what was made of these rows.
        self._session.catalog.refreshTable(self.sql_name)
        return without_added(self._session.table(self.sql_name))

    def rows_at(self, snapshot: int) -> DataFrame:
        """The rows of a snapshot."""
        return self._session.read.option("versionAsOf", snapshot).table(self.sql_name)

    def commit(self, state: State, write: Write, marker: Marker | None) -> bool:
        """Write on a branch made from the snapshot of ``state``, and fast-forward main to it.

        Iceberg refuses that where main has gone on, but not where it was only rolled back, since the branch still
        comes from there. So main is looked at right before. A rollback in the instant between loses no row: it is
        undone, together with what it took back.

        :return: whether it was done; False if main had moved
        """
        properties = {MARKER: json.dumps(to_data(marker))} if marker else {}
        if write.adds and self._history()[0].get("main") != state.snapshot:
            return False
        with self._branch(state) as branch:
            # Of a table without snapshots a branch starts empty, and at main's snapshot once there is one.
            if branch is None or (state.snapshot is None and "main" in self._history()[0]):
                return False
            try:
                part = self._write(branch, write, properties)
            except Exception:
                if branch in self._history()[0]:
                    raise
                log.warning("branch %s of %s, on which this load wrote, was dropped by others", branch, self.sql_name)
                return False
            snapshot = self._fast_forward(branch, state, part)
        if snapshot is not None:
            self._added.finish(write.adds)
        if marker is not None and snapshot is not None:
            self._marked.remember(marker, snapshot)
        return snapshot is not None

    def changed_by(self) -> str:
        """What made the newest commit, for an error message."""
        refs, snapshots = self._history()
        newest = snapshots.get(refs.get("main", 0))
        if newest is None:
            return "an unknown commit"
        return f"{newest['operation']} of application {newest['application']} at {newest['committed_at']} UTC"

    def drop_leftovers(self) -> None:
        """Drop what jobs left behind that ended without tidying up, as far as ``state`` has seen it."""
        limit = datetime.datetime.now(datetime.UTC) - _BRANCH_AGE
        for name in self._seen:
            made = _made_at(name)
            if made is not None and made < limit:
                self._drop(name)

    def _write(self, branch: str, write: Write, properties: Mapping[str, str]) -> int | None:
        """Write on the branch; the snapshot of what was written before the last commit, if there is any."""
        target = f"{self.sql_name}.{quoted('branch_' + branch)}"
        columns = self._session.table(self.sql_name).columns
        write = self._added.stored(write, columns)
        is_large = self._held >= upsert_rows(self._session)
        if write.old is OldRows.OF_KEY and properties and is_large and self._merges_on_read():
            return self._upsert(branch, Upsert(self._session, self.sql_name, target, columns), write, properties)
        if write.old is OldRows.OF_KEY:
            self._merge(target, columns, write, properties)
        else:
            self._add_or_replace(target, columns, write, properties)
        return None

    def _upsert(self, branch: str, upsert: Upsert, write: Write, properties: Mapping[str, str]) -> int | None:
        """Write changes by key: in one commit where nothing is to be put; else in two, of which the first one's
        snapshot is returned.
        """
        with computed(write, upsert.columns) as changes:
            if not changes.puts:
                upsert.update(write, changes, properties)
                return None
            upsert.update(write, changes, {PART: "update"})
            part = self._history()[0][branch]
            upsert.append(upsert.to_add(write, changes, part), properties)
            return part

    def _merge(self, target: str, columns: Sequence[str], write: Write, properties: Mapping[str, str]) -> None:
        with settings(self._session, as_settings(properties)):
            merge(self._session, target, columns, write)

    def _add_or_replace(self, target: str, columns: Sequence[str], write: Write, properties: Mapping[str, str]) -> None:
        writer = written_to(target, write.rows.select(*map(quoted, columns)), properties)
        if write.old is OldRows.NONE:
            writer.append()
        else:
            writer.overwrite(F.lit(True))

    def _open(self) -> None:
        # Another job's commit must be seen at once.
        self._session.conf.set(f"spark.sql.catalog.{self._name[0]}.cache-enabled", "false")
        # The load has a branch of its own; with these its commits would stay aside (docs: Iceberg, write.wap.enabled).
        for name in _WRITE_AUDIT_PUBLISH:
            self._session.conf.unset(name)

    @contextlib.contextmanager
    def _branch(self, state: State) -> Iterator[str | None]:
        """Make a branch from the snapshot of ``state``, and drop it at the end; None if that snapshot has expired."""
        now = datetime.datetime.now(datetime.UTC).strftime(_TIME)
        name = f"{BRANCH}{self._spec_id}_{now}{secrets.token_hex(3)}"
        start = f" AS OF VERSION {state.snapshot}" if state.snapshot is not None else ""
        try:
            self._change_ref(
                f"ALTER TABLE {self.sql_name} CREATE BRANCH IF NOT EXISTS {quoted(name)}{start}"
                f" RETAIN {_BRANCH_AGE.days} DAYS"
            )
        except Exception:
            if state.snapshot is None or state.snapshot in self._history()[1]:
                raise
            yield None
            return
        try:
            yield name
        finally:
            self._drop(name)

    def _drop(self, branch: str) -> None:
        try:
            self._change_ref(f"ALTER TABLE {self.sql_name} DROP BRANCH IF EXISTS {quoted(branch)}")
        except Exception as error:
            # It does no harm: a later job drops it, or expire_snapshots.
            log.warning("branch %s of %s was not dropped: %s", branch, self.sql_name, error)

    def _change_ref(self, statement: str) -> list[Row]:
        """Run a statement on a branch, and again when another commit to the table came between."""
        return _again(lambda: self._session.sql(statement).collect())

    def _fast_forward(self, branch: str, state: State, part: int | None) -> int | None:
        """Move main to the branch; return its snapshot, or None if main had moved.

        :param part: a snapshot that the branch must come from
        """
        try:
            return _again(lambda: self._move_main(branch, state, part))
        except Exception:
            # Whether main moved is a question of what is there, not of what an exception says.
            moved, snapshot = self._where_main_is(branch, state, part)
            if moved:
                return snapshot
            raise

    def _move_main(self, branch: str, state: State, part: int | None) -> int | None:
        moved, snapshot = self._where_main_is(branch, state, part)
        if moved:
            return snapshot
        # Iceberg takes the first part for a catalog where it is the name of one, so the catalog is always given.
        done = self._session.sql(
            f"CALL {quoted(self._name[0])}.system.fast_forward("
            f"table => {text(self.sql_name)}, branch => 'main', to => {text(branch)})"
        ).collect()
        updated: int = done[0]["updated_ref"]
        return updated

    def _where_main_is(self, branch: str, state: State, part: int | None) -> tuple[bool, int | None]:
        """Whether main left the snapshot of ``state``, and the branch's snapshot if main has it."""
        refs, snapshots = self._history()
        ours, now = refs.get(branch), refs.get("main")
        if ours is None:
            raise CommitConflictError(
                f"{self.name}: branch {branch}, on which this load has written, was dropped by others.",
                advice=f"Run the task again, and leave branches alone whose names begin with {BRANCH}: they expire.",
            )
        if ours == state.snapshot:
            raise TargetError(
                f"{self.name}: nothing that this load wrote is on its branch {branch}.",
                advice="See what keeps commits of Spark aside, such as write.wap.enabled with spark.wap.id.",
            )
        if ours in _ancestors(now, snapshots):
            return True, ours
        # What the branch was made of may have expired, or what lies between: nothing tells then that it comes from
        # main. A commit to a branch that was dropped meanwhile makes it anew, from main.
        line = [*_ancestors(ours, snapshots)]
        whole = all(snapshot in line for snapshot in (state.snapshot, part) if snapshot is not None)
        return now != state.snapshot or not whole, None

    def _history(self) -> tuple[dict[str, int], dict[int, Row]]:
        """Branches and tags with their snapshots, and all snapshots by id."""
        rows = self._session.sql(
            "SELECT name, snapshot_id, NULL AS parent_id, NULL AS operation, NULL AS committed_at, NULL AS marker,"
            f" NULL AS part, NULL AS records, NULL AS application FROM {self.sql_name}.refs UNION ALL"
            f" SELECT NULL, snapshot_id, parent_id, operation, committed_at, summary['{MARKER}'], summary['{PART}'],"
            f" summary['total-records'], summary['spark.app.id'] FROM {self.sql_name}.snapshots"
        ).collect()
        refs = {row["name"]: row["snapshot_id"] for row in rows if row["name"] is not None}
        return refs, {row["snapshot_id"]: row for row in rows if row["name"] is None}

    def _half_a_window(self, before: int | None, snapshots: Mapping[int, Any]) -> TargetError:
        """The error of a main that was rolled back into the middle of a window.

        :param before: the snapshot from which the window goes on
        """
        advice = RESET_ADVICE
        if before in snapshots:
            advice = (
                f"Go back to before that window: CALL {quoted(self._name[0])}.system.rollback_to_snapshot("
                f"table => {text(self.sql_name)}, snapshot_id => {before}). What others wrote since goes, too; the "
                "next run loads the window again."
            )
        return TargetError(
            f"{self.name} stands at a snapshot that holds a part of a window: rows that the window adds are missing.",
            advice=advice,
        )

    def _merges_on_read(self) -> bool:
        """Whether MERGE leaves the table's files as they are; if not, Iceberg writes whole files anew (default)."""
        return table_properties(self._session, self.sql_name).get("write.merge.mode") == "merge-on-read"


def _again(change: Callable[[], _T]) -> _T:
    """Make a change of a branch, and again when another commit to the table came between.

    Iceberg tries appends again by itself, but not changes of branches.
    """
    for attempt in range(_REF_ATTEMPTS - 1):
        try:
            return change()
        except Exception as error:
            if _COMMIT_FAILED not in str(error):
                raise
            time.sleep(random.uniform(0, 0.05 * 2**attempt))
    return change()


def _ancestors(snapshot: int | None, snapshots: Mapping[int, Any]) -> Iterator[int]:
    while snapshot is not None and snapshot in snapshots:
        yield snapshot
        snapshot = snapshots[snapshot]["parent_id"]


def _made_at(branch: str) -> datetime.datetime | None:
    if not branch.startswith(BRANCH):
        return None
    try:
        made = datetime.datetime.strptime(branch.rpartition("_")[2][:14], _TIME)
    except ValueError:
        return None
    return made.replace(tzinfo=datetime.UTC)
