"""Random histories in T-SQL: change tables and net changes hold what an independent ledger says."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.sandbox.protocol import Login, Message, SqlError
from airflow_provider_mssql_cdc.sandbox.server import Sandbox
from airflow_provider_mssql_cdc.sandbox.tsql.session import SqlSession
from tests.support.sandbox import ledger
from tests.support.sandbox.ledger import COLUMNS, KEYS, SCHEMA, Change, Instance, Row, Step, Tables, Value

Run = Callable[[str], list[dict[str, Any]]]

NUMBERS = st.one_of(st.none(), st.integers(0, 3))
TEXTS = st.one_of(st.none(), st.sampled_from(["", "x", "y"]))
KEY_VALUES = {"id": st.integers(1, 4), "k": st.integers(1, 3), "l": st.sampled_from(["p", "q"])}


def values_of(column: str) -> st.SearchStrategy[Any]:
    return KEY_VALUES.get(column, TEXTS if column == "a" else NUMBERS)


def shown(value: Value) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


@dataclass
class History:
    """What was run so far, and what the ledger has of it.

    :ivar refused: error numbers that the batch at hand must give
    """

    data: st.DataObject
    tables: Tables = field(default_factory=Tables)
    commits: list[list[Step]] = field(default_factory=list)
    instances: dict[str, Instance] = field(default_factory=dict)
    refused: list[int] = field(default_factory=list)
    added: int = 0

    def draw(self, strategy: st.SearchStrategy[Any]) -> Any:
        return self.data.draw(strategy)

    def transaction(self) -> str:
        """A batch that is one transaction, with save points, that may be rolled back."""
        before, saved, batch = self.tables.copied(), {}, ["BEGIN TRANSACTION"]
        self.refused = []
        for number in range(self.draw(st.integers(1, 6))):
            kind = self.draw(st.sampled_from(["write"] * 5 + ["save", "back"] * 2 + ["define"]))
            if kind == "save":
                saved[f"s{number}"] = self.tables.copied()
                batch.append(f"SAVE TRANSACTION s{number}")
            elif kind == "back" and saved:
                name = self.draw(st.sampled_from(sorted(saved)))
                self.tables = saved[name].copied()
                saved = {each: kept for each, kept in saved.items() if each <= name}
                batch.append(f"ROLLBACK TRANSACTION {name}")
            elif kind == "define":
                batch.append(self.definition())
            else:
                batch.append(self.write())
        if self.draw(st.integers(0, 4)) == 0:
            self.tables = before
            return ";\n".join([*batch, "ROLLBACK"])
        self._committed()
        return ";\n".join([*batch, "COMMIT"])

    def alone(self) -> str:
        """A batch of one statement that commits by itself."""
        self.refused = []
        batch = self.write() if self.draw(st.integers(0, 5)) else self.definition()
        self._committed()
        return batch

    def _committed(self) -> None:
        self.commits.append(self.tables.log)
        self.tables.log = []

    def write(self, table: str = "") -> str:
        table = table or self.draw(st.sampled_from(["t", "u"]))
        rows, columns, keys = self.tables.rows[table], self.tables.columns[table], KEYS[table]
        kinds = ["insert"] + (["update", "update", "move", "delete", "every", "shift"] if rows else [])
        kind = self.draw(st.sampled_from(kinds))
        if kind == "insert":
            some = self.draw(st.sets(st.sampled_from(columns), max_size=4))
            names = [c for c in columns if c in some or c in keys]
            new = self.draw(st.lists(st.fixed_dictionaries({c: values_of(c) for c in names}), min_size=1, max_size=3))
            self._may_fail(self.tables.insert(table, new))
            lines = ", ".join(f"({', '.join(shown(row[c]) for c in names)})" for row in new)
            return f"INSERT INTO dbo.{table} ({', '.join(names)}) VALUES {lines}"
        key = self.draw(st.sampled_from(sorted(rows, key=str)))
        where = " AND ".join(f"{c} = {shown(value)}" for c, value in zip(keys, key, strict=True))
        if kind == "delete":
            chosen = [key] if self.draw(st.booleans()) else [each for each in rows if each[0] == key[0]]
            self.tables.delete(table, chosen)
            return f"DELETE FROM dbo.{table} WHERE {where if len(chosen) == 1 else f'{keys[0]} = {key[0]}'}"
        if kind == "shift":
            self._may_fail(self.tables.update(table, {k: {keys[0]: int(str(k[0])) + 1} for k in rows}))
            return f"UPDATE dbo.{table} SET {keys[0]} = {keys[0]} + 1"
        others = [c for c in columns if c not in keys]
        names = keys[:1] if kind == "move" else others
        if not names:
            return f"DELETE FROM dbo.{table} WHERE 1 = 0"
        new_values: Row = self.draw(
            st.lists(st.sampled_from(names), min_size=1, unique=True).flatmap(
                lambda chosen: st.fixed_dictionaries({c: values_of(c) for c in chosen})
            )
        )
        given_ = ", ".join(f"{c} = {shown(value)}" for c, value in new_values.items())
        if kind == "every":
            self.tables.update(table, dict.fromkeys(rows, new_values))
            return f"UPDATE dbo.{table} SET {given_}"
        if kind == "move" and new_values[keys[0]] == key[0]:
            return f"UPDATE dbo.{table} SET {keys[0]} = 1 WHERE 1 = 0"  # what such an assignment does is not known
        self._may_fail(self.tables.update(table, {key: new_values}))
        return f"UPDATE dbo.{table} SET {given_} WHERE {where}"

    def _may_fail(self, done: bool) -> None:
        if not done:
            self.refused.append(2627)

    def definition(self, table: str = "") -> str:
        table = table or self.draw(st.sampled_from(["t", "u"]))
        droppable = [c for c in self.tables.columns[table] if c not in KEYS[table]]
        if droppable and self.draw(st.booleans()):
            name = self.draw(st.sampled_from(droppable))
            self.tables.drop_column(table, name)
            return f"ALTER TABLE dbo.{table} DROP COLUMN {name}"
        self.added += 1
        self.tables.add_column(table, f"c{self.added}")
        return f"ALTER TABLE dbo.{table} ADD c{self.added} int NULL"

    def track(self, table: str, name: str) -> str:
        """Enable a capture instance of the columns that a table has now."""
        columns = tuple(self.tables.columns[table])
        self.instances[name] = Instance(table, columns, len(self.commits))
        return (
            f"EXEC sys.sp_cdc_enable_table 'dbo', '{table}', @role_name = NULL, @capture_instance = '{name}',"
            " @supports_net_changes = 1"
        )


@pytest.fixture(scope="module")
def server() -> Iterator[Sandbox]:
    with Sandbox(agent_running=False, database=None) as server:
        server.execute("EXEC sp_configure 'clr enabled', 1; RECONFIGURE")  # masks of net changes
        yield server


NAMES = itertools.count(1)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_histories(server: Sandbox, data: st.DataObject) -> None:
    _random_history(server, data)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_histories_on_2016_and_over_its_update(data: st.DataObject) -> None:
    with Sandbox(build="2016", agent_running=False, database=None) as server:
        server.execute("EXEC sp_configure 'clr enabled', 1; RECONFIGURE")
        _random_history(server, data, update=data.draw(st.integers(0, 12), label="the update comes before this batch"))


def _random_history(server: Sandbox, data: st.DataObject, update: int | None = None) -> None:
    database = f"h{next(NAMES)}"
    server.create_database(database)
    history = History(data)

    def run(batch: str) -> list[dict[str, Any]]:
        tables = server.execute(batch, database)
        return tables[-1].to_pylist() if tables else []

    run(SCHEMA)
    run("EXEC sys.sp_cdc_enable_db")
    for table in COLUMNS:
        run(history.track(table, f"dbo_{table}"))
    late = data.draw(st.integers(0, 12), label="a second instance comes before this batch")
    for number in range(data.draw(st.integers(1, 10), label="batches")):
        if number == late:
            run(history.track("t", "late"))
        if number == update:
            server.upgrade()
        batch = history.transaction() if data.draw(st.booleans()) else history.alone()
        note(batch)
        if history.refused:
            with pytest.raises(SqlError) as caught:
                run(batch)
            assert caught.value.number == history.refused[0]
        else:
            run(batch)
        if data.draw(st.integers(0, 3)) == 0:
            server.step(database)
    server.step(database)
    _compare(run, history)
    server.execute(f"DROP DATABASE {database}", "master")


@dataclass
class Writer(History):
    """One of several sessions whose transactions are open at the same time.

    :ivar shared: what is committed; ``tables`` has this session's own view of the tables that it has locked
    """

    shared: History = field(kw_only=True)
    session: SqlSession = field(kw_only=True)
    locked: set[str] = field(default_factory=set)
    saved: dict[str, tuple[Tables, set[str]]] = field(default_factory=dict)
    in_transaction: bool = False

    def run(self, batch: str, *errors: int) -> None:
        """Run a batch, which must give these errors."""
        note(f"{id(self) % 1000}: {batch}")
        found = []
        for outcome in self.session.batch(batch):
            if isinstance(outcome, Message) and outcome.severity > 10:
                found.append(outcome.number)
        assert found == list(errors)

    def act(self, others: list[Writer]) -> None:
        """Do one step."""
        kinds = ["write"] * 6 + ["define", "count"]
        kinds += ["save", "back", "commit", "commit", "rollback"] if self.in_transaction else ["begin"] * 6
        kind = self.draw(st.sampled_from(kinds))
        if kind == "begin":
            self.run("BEGIN TRANSACTION")
            self.in_transaction = True
        elif kind == "save":
            name = f"s{len(self.saved)}"
            self.run(f"SAVE TRANSACTION {name}")
            self.saved[name] = self.tables.copied(), set(self.locked)
        elif kind == "back" and self.saved:
            self._back(self.draw(st.sampled_from(sorted(self.saved))))
        elif kind in ("commit", "rollback"):
            self.end(kind)
        elif kind in ("write", "define", "count"):
            self._write(kind, others)
            if not self.in_transaction:
                self._ended(kept=True)

    def end(self, kind: str) -> None:
        """COMMIT or ROLLBACK."""
        self.run(kind.upper())
        self.in_transaction = False
        self._ended(kept=kind == "commit")

    def _ended(self, *, kept: bool) -> None:
        if kept and self.locked:
            for table in self.locked:
                self.shared.tables.rows[table] = self.tables.rows[table]
                self.shared.tables.columns[table] = self.tables.columns[table]
            self.shared.commits.append(self.tables.log)
        self.tables, self.locked, self.saved = Tables(), set(), {}

    def _back(self, name: str) -> None:
        self.run(f"ROLLBACK TRANSACTION {name}")
        kept, locked = self.saved[name]
        self.tables = kept.copied()
        self.saved = {each: value for each, value in self.saved.items() if each <= name}
        # a roll-back to a save point gives back what was locked since (docs: ROLLBACK TRANSACTION)
        self.locked = set(locked)

    def _take(self, table: str) -> None:
        self.tables.rows[table] = dict(self.shared.tables.rows[table])
        self.tables.columns[table] = list(self.shared.tables.columns[table])

    def _write(self, kind: str, others: list[Writer]) -> None:
        table = "u" if kind == "count" else self.draw(st.sampled_from(["t", "u"]))
        needed = {"t", "u"} if kind == "define" else {table}
        taken = {each for other in others for each in other.locked}
        if taken & needed:
            self.run(f"ALTER TABLE dbo.{table} ADD never int" if kind == "define" else f"DELETE dbo.{table}", 1222)
            return
        for each in sorted(needed - self.locked):
            self._take(each)
        self.locked |= needed
        self.refused = []
        if kind == "define":
            self.added = self.shared.added
            batch = self.definition(table)
            self.shared.added = self.added
        elif kind == "count" and "v" in self.tables.columns["u"] and "t" not in taken:
            seen = (self.tables if "t" in self.locked else self.shared.tables).rows["t"]
            self.tables.update("u", {key: {"v": len(seen)} for key in self.tables.rows["u"]})
            batch = "UPDATE dbo.u SET v = (SELECT COUNT(*) FROM dbo.t)"
        else:
            batch = self.write(table)
        self.run(batch, *self.refused)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_interleaved_transactions(server: Sandbox, data: st.DataObject) -> None:
    database = f"h{next(NAMES)}"
    server.create_database(database)
    history = History(data)
    sessions: list[SqlSession] = []

    def run(batch: str) -> list[dict[str, Any]]:
        tables = server.execute(batch, database)
        return tables[-1].to_pylist() if tables else []

    try:
        run(SCHEMA)
        run("EXEC sys.sp_cdc_enable_db")
        for table in COLUMNS:
            run(history.track(table, f"dbo_{table}"))
        for _ in range(3):
            sessions.append(SqlSession(server.instance, Login(server.user, server.password, database)))
        writers = [Writer(data, shared=history, session=each) for each in sessions]
        for writer in writers:
            writer.run("SET LOCK_TIMEOUT 0")
        for _ in range(data.draw(st.integers(1, 30), label="steps")):
            if data.draw(st.integers(0, 5)) == 0:
                server.step(database)
            writer = data.draw(st.sampled_from(writers))
            writer.act([each for each in writers if each is not writer])
        for writer in writers:
            if writer.in_transaction:
                writer.end(data.draw(st.sampled_from(["commit", "rollback"])))
        server.step(database)
        _compare(run, history)
    finally:
        for session in sessions:
            session.close()
    server.execute(f"DROP DATABASE {database}", "master")


def _compare(run: Run, history: History) -> None:
    """The tables, the change tables, and the changes of a window are those of the ledger."""
    for table, rows in history.tables.rows.items():
        names = history.tables.columns[table]
        held = run(f"SELECT {', '.join(names)} FROM dbo.{table}")
        assert sorted(held, key=str) == sorted(rows.values(), key=str)

    wanted = {name: ledger.changes(history.commits, each) for name, each in history.instances.items()}
    defined = {number for number, steps in enumerate(history.commits) if any(step.definition for step in steps)}
    seen = sorted(defined | {row.commit for rows in wanted.values() for row in rows})
    lsns = [
        row["start_lsn"]
        for row in run("SELECT start_lsn FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00 ORDER BY start_lsn")
    ]
    assert len(lsns) == len(seen)
    commits = dict(zip(lsns, seen, strict=True))
    for name, instance in history.instances.items():
        columns = run(f"SELECT name FROM sys.columns WHERE object_id = OBJECT_ID('cdc.{name}_CT')")
        order = "__$command_id, " if {"name": "__$command_id"} in columns else ""
        rows = [
            _change(row, commits)
            for row in run(f"SELECT * FROM cdc.{name}_CT ORDER BY __$start_lsn, {order}__$seqval, __$operation")
        ]
        assert ledger.by_key(rows, instance) == ledger.by_key(wanted[name], instance)
        sequence = run(f"SELECT __$start_lsn FROM cdc.{name}_CT ORDER BY __$seqval")
        assert [commits[row["__$start_lsn"]] for row in sequence] == ledger.written(history.commits, instance)
    if lsns:
        low, high = sorted(history.data.draw(st.tuples(*[st.sampled_from(lsns)] * 2), label="window"))
        for name, instance in history.instances.items():
            _compare_window(run, name, instance, wanted[name], commits, low, high)


def _change(row: dict[str, Any], commits: dict[bytes, int]) -> Change:
    values = tuple(value for name, value in row.items() if not name.startswith("__$"))
    mask = int.from_bytes(row["__$update_mask"], "big")
    return Change(commits[row["__$start_lsn"]], row["__$operation"], mask, values)


def _compare_window(
    run: Run, name: str, instance: Instance, wanted: list[Change], commits: dict[bytes, int], low: bytes, high: bytes
) -> None:
    start = run(f"SELECT sys.fn_cdc_get_min_lsn('{name}') AS lsn")[0]["lsn"]
    if start is None or start > high:
        return
    low = max(low, start)
    inside = {number for lsn, number in commits.items() if low <= lsn <= high}
    window = [row for row in wanted if row.commit in inside]
    edges = f"0x{low.hex()}, 0x{high.hex()}"
    for option in ("all", "all update old"):
        found = run(f"SELECT * FROM cdc.fn_cdc_get_all_changes_{name}({edges}, N'{option}') ORDER BY __$seqval")
        rows = sorted((_change(row, commits) for row in found), key=repr)
        assert rows == sorted((row for row in window if option != "all" or row.operation != 3), key=repr)
    places = [instance.columns.index(column) for column in KEYS[instance.table]]
    for option in ("all", "all with mask", "all with merge"):
        found = run(f"SELECT * FROM cdc.fn_cdc_get_net_changes_{name}({edges}, N'{option}')")
        net = {}
        for row in found:
            values = tuple(value for column, value in row.items() if not column.startswith("__$"))
            mask = None if row["__$update_mask"] is None else int.from_bytes(row["__$update_mask"], "big")
            net[tuple(values[place] for place in places)] = (
                commits[row["__$start_lsn"]], row["__$operation"], mask, values,
            )  # fmt: skip
        assert len(net) == len(found)
        assert net == ledger.net(window, instance, option)
