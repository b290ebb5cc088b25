"""User tables as readers meet them that do not read by row versions: with locks, or with what is not committed.

docs (SET TRANSACTION ISOLATION LEVEL, table hints): READ COMMITTED without READ_COMMITTED_SNAPSHOT waits for rows that
others have changed and not committed. Each row is seen at its own moment, so that a row which moves in the index that
is read is met twice or never (memory).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa
from sqlglot import exp

from airflow_provider_mssql_cdc.sandbox.engine.harshness import Point
from airflow_provider_mssql_cdc.sandbox.engine.open_transaction import OpenTransaction
from airflow_provider_mssql_cdc.sandbox.engine.schema import IndexDef, TableDef
from airflow_provider_mssql_cdc.sandbox.engine.storage import ROW_ID, Database, TableEntry
from airflow_provider_mssql_cdc.sandbox.engine.stored import STAGE, physical, staged, stored_name
from airflow_provider_mssql_cdc.sandbox.protocol import IsolationLevel, SqlError
from airflow_provider_mssql_cdc.sandbox.tsql import languages
from airflow_provider_mssql_cdc.sandbox.tsql.environment import Environment
from airflow_provider_mssql_cdc.sandbox.tsql.meanwhile import meanwhile
from airflow_provider_mssql_cdc.sandbox.tsql.reads import CLOSING, FOR_UPDATE, WHOLE, Reads

_LAST, _PIECE = "last_row", "piece"
_FEWEST_DRAWN = 4


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a statement says of a table that it reads.

    :param node: the table in its FROM clause
    :param hints: in lower case
    """

    node: exp.Table
    hints: frozenset[str]

    @property
    def index(self) -> str | None:
        """The index that the hint INDEX names, by name or number; None where the server chooses."""
        hints = [hint for group in self.node.args.get("hints") or [] for hint in group.expressions]
        named = [hint.expressions[0].name for hint in hints if hint.name.lower() == "index" and hint.expressions]
        return named[0] if named else None

    def columns(self) -> frozenset[str] | None:
        """Names in lower case of the columns that the whole statement names; None for all."""
        statement = self.node.root()
        if any(not isinstance(star.parent, exp.Count) for star in statement.find_all(exp.Star)):
            return None
        return frozenset(column.name.lower() for column in statement.find_all(exp.Column))


def lock_table(env: Environment, database: Database, table: int, hints: frozenset[str]) -> None:
    """Take the lock of a whole table that hints or the isolation level ask for.

    :raises SqlError: 1222, 1205
    """
    manager = env.manager
    # whose locks end with the statement
    env.undisturbed |= not env.trancount and bool(
        hints & (CLOSING | FOR_UPDATE | WHOLE | {"repeatableread"})
        or env.isolation in (IsolationLevel.SERIALIZABLE, IsolationLevel.REPEATABLE_READ)
    )
    if hints & (CLOSING | FOR_UPDATE):
        if manager.open is None:
            manager.wait_for_writer(database, table, lambda transaction: True)
            return
        manager.enter(database, table)
        if hints & CLOSING:
            database.locks.close(manager, table)
    elif hints & WHOLE or (env.trancount and env.isolation is IsolationLevel.SERIALIZABLE):
        lasting = hints - {"tablock"} & WHOLE or env.isolation in (
            IsolationLevel.SERIALIZABLE,
            IsolationLevel.REPEATABLE_READ,
        )
        if env.trancount and lasting:
            manager.keep_table(database, table)
        else:
            manager.wait_for_writer(database, table, lambda transaction: True)


def beside_a_writer(env: Environment, database: Database, entry: TableEntry, reads: Reads) -> pa.Table | None:
    """A table's rows with what an open transaction has done to them, or without the rows that it has changed.

    :param reads: ``NOT_COMMITTED`` or ``PAST_LOCKS``
    :returns: None where no transaction has written to the table
    """
    writer = database.locks.writer(entry.table.object_id)
    transaction: OpenTransaction | None = getattr(writer, "open", None)
    if writer is None or writer is env.manager or transaction is None:
        return None
    name = stored_name(database, entry)
    with env.instance.storage.connect() as connection:
        connection.execute(f"CREATE TEMP TABLE {_PIECE} AS SELECT * FROM {name}")
        for operation in [each for each in transaction.operations if each.touched is not None and name in each.sql]:
            if operation.rows is not None:
                connection.register(STAGE, operation.rows)
            connection.execute(operation.sql.replace(name, f"temp.{_PIECE}"))
        both = f"INTERSECT SELECT * FROM {name}" if reads is Reads.PAST_LOCKS else ""
        rows = connection.sql(f"SELECT * FROM temp.{_PIECE} {both}").to_arrow_table()
        connection.execute(f"DROP TABLE temp.{_PIECE}")
    return rows


@dataclass(slots=True)
class PieceReader:
    """Reads a table in pieces of an index, each of them with the newest commits, and waits for who writes in it.

    :param columns: names in lower case of those that are wanted; None for all
    :param keeps: the rows stay locked until the transaction ends (REPEATABLE READ)
    :param index: that a hint names, by name or number; None where the server chooses
    :ivar seek: conditions on the index's first column, in DuckDB's words: rows that do not fulfil them are not met
    """

    env: Environment
    database: Database
    entry: TableEntry
    columns: frozenset[str] | None
    keeps: bool
    index: str | None = None
    seek: list[str] = field(default_factory=list)

    def narrow(self, alias: str, condition: exp.Expr, text: str) -> None:
        """Meet only rows that a condition of the WHERE clause allows, where an index leads to them.

        :param alias: of the table in DuckDB
        :param text: the condition for DuckDB
        """
        index = self._pinned or (self.entry.table.primary_key if self._clustered is None else self._clustered)
        if index is None or not isinstance(
            condition, exp.EQ | exp.GT | exp.GTE | exp.LT | exp.LTE | exp.Between | exp.In
        ):
            return
        names = {column.name.casefold() for column in condition.find_all(exp.Column)}
        if names == {index.columns[0].casefold()} and not any(True for _ in condition.find_all(exp.Select)):
            self.seek.append(text.replace(f"{alias}.", ""))

    @property
    def _clustered(self) -> IndexDef | None:
        return next((index for index in self.entry.table.indexes if index.clustered), None)

    @property
    def _pinned(self) -> IndexDef | None:
        """The index that a hint names; None also for the table itself.

        :raises SqlError: 308 if there is none of that name
        """
        if self.index in (None, "0", "1"):
            return None
        folded = str(self.index).casefold()
        found = [each for each in self.entry.table.indexes if each.name.casefold() == folded]
        if not found:
            raise SqlError.of(308, self.index, self.entry.table.name)
        return found[0]

    @property
    def _order(self) -> list[str]:
        """The key of the index that is read: the narrowest that has all that is wanted."""
        table, clustered = self.entry.table, self._clustered
        key = clustered.columns if clustered is not None else ()
        if self._pinned is not None:
            return list(dict.fromkeys((*self._pinned.columns, *key)))
        if self.columns is None or self.seek or self.index is not None:
            return list(key)
        wanted = {name for name in self.columns if table.column(name) is not None}
        covering = [
            index
            for index in table.indexes
            if index is not clustered
            and not index.disabled
            and wanted <= {name.casefold() for name in (*index.columns, *key)}
        ]
        if not covering:
            return list(key)
        return [*min(covering, key=lambda index: len(index.columns)).columns, *key]

    def read(self) -> pa.Table:
        """The rows, under their names in DuckDB, with their row identifiers.

        :raises SqlError: 1222, 1205
        """
        table, order = self.entry.table, self._order
        if self.database.locks.writer(table.object_id) is self.env.manager:
            source = stored_name(self.database, self.entry)
            return self.env.manager.connection.sql(f"SELECT * FROM {source}").to_arrow_table()
        names = list(dict.fromkeys(physical(table, name) for name in order))
        size, found = self._size(), []
        with self.env.instance.storage.connect() as connection:
            languages.apply(self.env.dates, connection)
            last: pa.Table | None = None
            while True:
                piece = self._piece(connection, table, names, last, size)
                found.append(piece)
                if self.keeps and piece.num_rows:
                    self.env.manager.keep_rows(self.database, table.object_id, piece.column(ROW_ID).to_pylist())
                if piece.num_rows < size:
                    break
                last = piece.slice(piece.num_rows - 1)
                self.env.instance.between_pieces(table.name, len(found))
                meanwhile(self.env, self.database)
        return pa.concat_tables(found)

    def _size(self) -> int:
        size = self.env.instance.piece_rows
        drawn = self.env.instance.harshness.drawn(Point.PIECES)
        return size if drawn is None else max(_FEWEST_DRAWN, size >> drawn.randrange(4))

    def _piece(
        self, connection: duckdb.DuckDBPyConnection, table: TableDef, names: list[str], last: pa.Table | None, size: int
    ) -> pa.Table:
        """The next rows, with no others' changes that are not committed among them."""
        index = self._clustered
        is_unique = index is not None and (index.unique or index.primary_key)
        key, number = ", ".join(names if is_unique else [*names, ROW_ID]), table.object_id
        conditions = list(self.seek)
        if last is not None:
            connection.register(_LAST, last)
            conditions.append(f"ROW({key}) > (SELECT ROW({key}) FROM {_LAST})")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        limit = f" ORDER BY ROW({key}) LIMIT {size}"
        locks, source = self.database.locks, stored_name(self.database, self.entry)
        while True:
            writer = locks.writer(number)
            begun = getattr(writer, "open", None)
            piece = connection.sql(f"SELECT * FROM {source}{where}{limit}").to_arrow_table()
            if writer is None:
                return piece
            ends = (last, piece.slice(piece.num_rows - 1) if piece.num_rows == size else None)
            meets = functools.partial(self._meets, connection, names, ends)
            # who has committed meanwhile may have changed what was read
            stays = locks.writer(number) is writer and getattr(writer, "open", None) is begun
            if stays and begun is not None and not meets(begun):
                return piece
            self.env.manager.wait_for_writer(self.database, number, meets)

    def _meets(
        self,
        connection: duckdb.DuckDBPyConnection,
        names: list[str],
        ends: tuple[pa.Table | None, pa.Table | None],
        transaction: OpenTransaction,
    ) -> bool:
        """Whether a transaction has changed a row between two others, or the table is closed."""
        number = self.entry.table.object_id
        if self.database.locks.is_closed(number):
            return True
        return any(self._are_between(connection, names, ends, rows) for rows in _changed(transaction, number))

    def _are_between(
        self,
        connection: duckdb.DuckDBPyConnection,
        names: list[str],
        ends: tuple[pa.Table | None, pa.Table | None],
        images: pa.Table,
    ) -> bool:
        conditions = list(self.seek)
        connection.register(STAGE, images)
        for name, end, sign in ((_LAST, ends[0], ">="), (_PIECE, ends[1], "<=")):
            if end is not None and names:
                connection.register(name, end)
                key = ", ".join(names)
                conditions.append(f"ROW({key}) {sign} (SELECT ROW({key}) FROM {name})")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return bool(connection.execute(f"SELECT 1 FROM {STAGE}{where} LIMIT 1").fetchall())


def _changed(transaction: OpenTransaction, table: int) -> Iterator[pa.Table]:
    """The images, before and after, of the rows of a table that a transaction has changed."""
    for operation in list(transaction.operations):
        images = operation.touched
        if images is not None and images.table.object_id == table:
            yield from (staged(images.table, rows, None) for rows in (images.before, images.after) if rows is not None)
