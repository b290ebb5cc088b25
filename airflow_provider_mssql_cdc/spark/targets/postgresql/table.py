"""PostgreSQL tables: staged rows are merged in one transaction with the control row that holds the marker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.codec import from_json
from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.exceptions import RESET_ADVICE, SpecError, TargetError, TargetUnavailableError
from airflow_provider_mssql_cdc.core.marker import Marker
from airflow_provider_mssql_cdc.core.schema import KeptSchema
from airflow_provider_mssql_cdc.core.spec import DatabaseSpec
from airflow_provider_mssql_cdc.core.target import display_name
from airflow_provider_mssql_cdc.spark.jdbc import Credentials
from airflow_provider_mssql_cdc.spark.session import target_credentials
from airflow_provider_mssql_cdc.spark.targets import Difference, Opening, State, Write
from airflow_provider_mssql_cdc.spark.targets.postgresql import altered
from airflow_provider_mssql_cdc.spark.targets.postgresql.catalog import (
    check_encoding,
    check_may_create,
    declared_types,
    find_table,
    only_row,
)
from airflow_provider_mssql_cdc.spark.targets.postgresql.connection import Database, in_schema, quoted
from airflow_provider_mssql_cdc.spark.targets.postgresql.sinks import SINKS, Sinks
from airflow_provider_mssql_cdc.spark.targets.postgresql.staging import NUMBER, Staging, drop_old, new_name
from airflow_provider_mssql_cdc.spark.targets.postgresql.types import ColumnType, equality, of_postgresql, of_spark
from airflow_provider_mssql_cdc.spark.targets.postgresql.written import put

if TYPE_CHECKING:
    import psycopg

_FETCH = 10_000


class PostgresqlTable:
    """A sink's table in PostgreSQL.

    :param session: the table's own session, in UTC
    :param name: Airflow connection (for people alone), schema, table
    :param spec_id: names the staging tables of this job
    :param database: where the table is
    :param credentials: for the database
    :param key: columns that identify a row of the source
    :param indexed: whether a table that is made gets a unique index on them
    :param connections: JDBC connections that may write at once
    """

    def __init__(
        self,
        session: SparkSession,
        name: Sequence[str],
        spec_id: str,
        *,
        database: DatabaseSpec,
        credentials: Credentials,
        key: Sequence[str] = (),
        indexed: bool = False,
        connections: int = 2,
    ) -> None:
        self._session, self._name, self._spec_id = session, tuple(name), spec_id
        self._key, self._indexed, self._connections = tuple(key), indexed, connections
        self._schema, self._table = self._name[-2:]
        self._database, self._sinks = Database(database, credentials, self.name), Sinks(self._schema, self.name)
        self._kept: KeptSchema | None = None
        self._keys: Staging | None = None
        self._dropped: tuple[str, ...] = ()

    @classmethod
    def opened(cls, opening: Opening) -> PostgresqlTable:
        """The table of a sink.

        :raises SpecError: if the spec does not say where it is
        """
        if opening.job.database is None:
            raise SpecError("the spec names no database for its targets.")
        return cls(
            opening.session,
            opening.name,
            opening.job.id,
            database=opening.job.database,
            credentials=target_credentials(opening.session),
            key=opening.key,
            # what SQL Server has an index of is short enough for one of PostgreSQL
            indexed=opening.is_unique,
            connections=opening.connections,
        )

    @property
    def name(self) -> str:
        """The name for people."""
        return display_name(self._name)

    @property
    def sql_name(self) -> str:
        """The name in PostgreSQL's SQL."""
        return in_schema(self._schema, self._table)

    def check_place(self) -> None:
        """Ask whether the login may create tables in the schema, or the schema.

        :raises TargetError: with the GRANT, if it may not
        """
        with self._database.transaction(reading=True) as cursor:
            check_may_create(cursor, self._schema, self.name)

    def create(self, columns: Sequence[TargetColumn]) -> None:
        """Create schema, control table and table unless they exist.

        :raises TargetError: if the database is not encoded in UTF-8
        """
        with self._database.transaction() as cursor:
            # of two that create at the same instant, IF NOT EXISTS lets one fail
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"{SINKS} {self._schema}",))
            check_encoding(cursor, self.name)
            if cursor.execute("SELECT FROM pg_namespace WHERE nspname = %s", (self._schema,)).fetchone() is None:
                cursor.execute(f"CREATE SCHEMA {quoted(self._schema)}")
            self._sinks.make(cursor)
            oid, known = self._find(cursor), "NOTHING"
            if oid is None:
                oid = self._make(cursor, columns)
                # of a table that was dropped, a row may have stayed
                known = "UPDATE SET table_oid = EXCLUDED.table_oid, is_empty = true, marker = NULL"
            self._sinks.run(
                cursor,
                "INSERT INTO {sinks} (sink, version, table_oid, is_empty) VALUES (%s, 0, %s, true)"
                f" ON CONFLICT (sink) DO {known}",
                self._table,
                oid,
            )

    def check(self, columns: Sequence[TargetColumn]) -> Difference | None:
        """How the table's columns differ from those that a load writes; None where they do not."""
        expected = {column.name: of_spark(column.type).postgresql for column in columns}
        with self._database.transaction(reading=True) as cursor:
            found = declared_types(cursor, self._schema, self._table)
        return None if expected == found else Difference(expected, found)

    def expect(self, columns: Sequence[TargetColumn]) -> None:
        """Nothing: columns come with the commit itself."""

    def finish(self, columns: Sequence[TargetColumn]) -> None:
        """Nothing: columns come with the commit itself."""

    def widen(self, columns: Sequence[TargetColumn]) -> None:
        """Alter the columns, as soon as nobody uses the table."""
        altered.widen(self._database, self.sql_name, columns)

    def rename(self, columns: Mapping[str, str]) -> None:
        """Rename the columns, as soon as nobody uses the table."""
        altered.rename(self._database, self.sql_name, columns)

    def drop(self, columns: Sequence[str]) -> None:
        """Drop the columns in the transaction of the next commit."""
        self._dropped = tuple(columns)

    def keep_schema(self, schema: KeptSchema) -> bool:
        """Keep a schema in the control row with the next commit.

        The control table of version 0.1.0 has no column for it; it gets one from its owner alone.
        """
        with self._database.transaction(reading=True) as cursor:
            self._kept = schema if self._sinks.keep_schemas(cursor) else None
        return self._kept is not None

    def kept_schema(self, hash_: str) -> KeptSchema | None:
        """The schema of this hash that the control row keeps."""
        with self._database.transaction(reading=True) as cursor:
            row = self._sinks.run(
                cursor, "SELECT to_jsonb(s) #>> ARRAY['schemas', %s] FROM {sinks} s WHERE sink = %s", hash_, self._table
            ).fetchone()
        found = KeptSchema(row[0]) if row and row[0] else None
        return found if found is not None and found.hash == hash_ else None

    def state(self) -> State:
        """What the table holds now.

        A table that somebody emptied after its last load has no marker: nothing of what that one says is left. One that
        was made anew by others is not what the marker is about.
        """
        with self._database.transaction(reading=True) as cursor:
            oid, row = self._find(cursor), None
            if self._sinks.exist(cursor):
                row = self._sinks.run(
                    cursor,
                    "SELECT version, marker::text, table_oid, is_empty FROM {sinks} WHERE sink = %s",
                    self._table,
                ).fetchone()
            version, marker, loaded, left_empty = row or (0, None, None, True)
            snapshot = version or None
            if oid is None:
                return State(exists=False, snapshot=snapshot, marker=None, is_empty=True)
            is_empty = self._is_empty(cursor)
        if marker is None or (is_empty and (not left_empty or loaded != oid)):
            return State(True, snapshot, None, is_empty)
        if loaded != oid:
            doubt = TargetError(
                f"{self.name} was made anew, or restored from a dump, since it was last loaded: it is not known "
                "whether it holds what that load left.",
                advice=RESET_ADVICE,
            )
            return State(True, snapshot, None, is_empty, doubt=doubt)
        return State(True, snapshot, from_json(Marker, marker), is_empty)

    def rows(self, state: State) -> DataFrame:
        """The rows that the table holds now.

        PostgreSQL does not keep those of before. Where it has moved on since ``state``, ``commit`` refuses what was
        made of them.
        """
        return self._read(self._columns())

    def rows_of(self, state: State, keys: Callable[[], DataFrame | None]) -> DataFrame:
        """The rows with these keys, which are sent there first, so that PostgreSQL finds them in an index."""
        columns, wanted = self._columns(), keys()
        if wanted is None:
            return self._read(columns)
        self._drop_keys()
        self._keys = sent = Staging(
            self._database, self._schema, new_name(self._spec_id), {name: columns[name] for name in wanted.columns}
        )
        sent.create()
        sent.fill(Write(wanted), key=self._key, connections=self._connections)
        with self._database.transaction() as cursor:
            cursor.execute(f"ANALYZE {sent.sql_name}")
        # a key that is NULL is found in no index, and a table of others may have some
        same = " AND ".join(
            equality(f"t.{quoted(name)}", sent.value(name), type_.postgresql, nullable=not self._indexed)
            for name, type_ in sent.columns.items()
        )
        return self._read(columns, f", {sent.sql_name} s WHERE {sent.proof} AND s.{NUMBER} >= 0 AND {same}")

    def _read(self, columns: Mapping[str, ColumnType], of: str = "") -> DataFrame:
        """Read the table.

        :param of: what else stands after its name in the query
        """
        numbered = [(f"c{number}", name, type_) for number, (name, type_) in enumerate(columns.items())]
        selected = ", ".join(
            f"{type_.select.format('t.' + quoted(name))} AS {number}" for number, name, type_ in numbered
        )
        reader = (
            self._session.read.format("jdbc")
            .options(**self._database.jdbc_options())
            .option("dbtable", f"(SELECT {selected} FROM {self.sql_name} t{of}) q")
            .option("fetchsize", _FETCH)
            .option("customSchema", ", ".join(f"{number} {type_.read_type}" for number, _, type_ in numbered))
        )
        try:
            frame = reader.load()
        except Exception as failure:
            raise self._database.error_of_spark(failure) or failure from None
        return frame.select(*(type_.read(F.col(number)).alias(name) for number, name, type_ in numbered))

    def commit(self, state: State, write: Write, marker: Marker | None) -> bool:
        """Stage the rows, and merge them in one transaction with the marker, if the table is still at this state.

        :return: whether it was done; False if another commit came first, or others emptied, filled or replaced the
            table
        :raises TargetError: if PostgreSQL cannot hold the rows, among others
        """
        columns, done = self._columns(), False
        columns |= {column.name: of_spark(column.type) for column in write.adds if columns}
        staging = Staging(self._database, self._schema, new_name(self._spec_id), columns)
        try:
            if not columns:
                return False
            staging.create()
            staging.fill(write, key=self._key, connections=self._connections)
            done = self._apply(staging, state, write, marker)
        finally:
            if not done:
                staging.drop()
            self._drop_keys()
        return done

    def changed_by(self) -> str:
        """What made the newest commit, for an error message."""
        with self._database.transaction(reading=True) as cursor:
            row = self._sinks.run(
                cursor, "SELECT attempt, committed_at AT TIME ZONE 'UTC' FROM {sinks} WHERE sink = %s", self._table
            ).fetchone()
        return f"{row[0]} at {row[1]} UTC, or by others since" if row and row[0] else "others"

    def drop_leftovers(self) -> None:
        """Drop the staging tables of jobs that ended without tidying up."""
        drop_old(self._database, self._schema)

    def _drop_keys(self) -> None:
        if self._keys is not None:
            self._keys.drop()
            self._keys = None

    def _make(self, cursor: psycopg.Cursor[Any], columns: Sequence[TargetColumn]) -> int | None:
        declared = ", ".join(f"{quoted(c.name)} {altered.declared(c)}" for c in columns)
        cursor.execute(f"CREATE TABLE {self.sql_name} ({declared})")
        if self._indexed:
            altered.index(cursor, self.sql_name, self._key)
        return self._find(cursor)

    def _columns(self) -> dict[str, ColumnType]:
        """The table's columns, in order; none if it is missing."""
        with self._database.transaction(reading=True) as cursor:
            found = declared_types(cursor, self._schema, self._table)
        columns = {name: of_postgresql(type_) for name, type_ in found.items()}
        if foreign := [f"{name} {found[name]}" for name, type_ in columns.items() if type_ is None]:
            raise TargetError(f"{self.name} has columns that no load makes: {', '.join(foreign)}.")
        return {name: type_ for name, type_ in columns.items() if type_ is not None and name not in self._dropped}

    def _find(self, cursor: psycopg.Cursor[Any]) -> int | None:
        return find_table(cursor, self._schema, self._table, self.name)

    def _is_empty(self, cursor: psycopg.Cursor[Any]) -> bool:
        return bool(only_row(cursor.execute(f"SELECT NOT EXISTS (SELECT FROM {self.sql_name})"))[0])

    def _apply(self, staging: Staging, state: State, write: Write, marker: Marker | None) -> bool:
        try:
            with self._database.transaction() as cursor:
                if self._has_moved(cursor, state):
                    return False
                staging.take_sentinel(cursor)
                altered.add_and_drop(cursor, self.sql_name, write.adds, self._dropped)
                self._write(cursor, staging, write)
                self._sinks.committed(
                    cursor,
                    self._table,
                    marker=marker,
                    table_oid=self._find(cursor),
                    is_empty=self._is_empty(cursor),
                    attempt=staging.name,
                    schema=self._kept,
                )
                cursor.execute(f"DROP TABLE {staging.sql_name}")
                return True
        except TargetUnavailableError:
            # The answer to the commit may have been lost.
            if self._was_committed(staging):
                return True
            raise

    def _has_moved(self, cursor: psycopg.Cursor[Any], state: State) -> bool:
        """Lock the sink and its table against other writers, and compare them with what was seen."""
        row = self._sinks.run(
            cursor, "SELECT version, table_oid FROM {sinks} WHERE sink = %s FOR UPDATE", self._table
        ).fetchone()
        if row is None or self._find(cursor) is None:
            return True
        cursor.execute(f"LOCK TABLE {self.sql_name} IN SHARE ROW EXCLUSIVE MODE")
        version, loaded = row
        if state.marker is not None and loaded != self._find(cursor):
            return True
        return bool(version != (state.snapshot or 0) or self._is_empty(cursor) != state.is_empty)

    def _write(self, cursor: psycopg.Cursor[Any], staging: Staging, write: Write) -> None:
        put(cursor, self.name, self.sql_name, staging, write, index=self._key if self._indexed else ())

    def _was_committed(self, staging: Staging) -> bool:
        """Whether the newest commit is the one of this attempt; one that is still going on is waited for."""
        try:
            with self._database.transaction() as cursor:
                row = self._sinks.run(
                    cursor, "SELECT attempt FROM {sinks} WHERE sink = %s FOR UPDATE", self._table
                ).fetchone()
        except TargetError:
            return False
        return row is not None and row[0] == staging.name
