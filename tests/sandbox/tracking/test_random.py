"""Random transactions on tracked tables: at each version CHANGETABLE tells what a model of the log does."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.sandbox.tsql.conftest import Client

_ALL = (
    "SYS_CHANGE_VERSION, SYS_CHANGE_CREATION_VERSION, SYS_CHANGE_OPERATION, SYS_CHANGE_COLUMNS, SYS_CHANGE_CONTEXT, id"
)
_COLUMN_IDS = {"a": 2, "b": 3}


@dataclass(frozen=True)
class _Act:
    """What one statement did to one key."""

    version: int
    operation: str
    key: int
    columns: frozenset[str] | None
    context: bytes | None


class _Model:
    """The rows of a table by key, and all that was ever done to them; nothing of it knows SQL."""

    def __init__(self) -> None:
        self.rows: dict[int, tuple[int, int]] = {}
        self.log: list[_Act] = []
        self.begun = 0

    def told(self, after: int) -> list[tuple[object, ...]]:
        """The net changes behind a version."""
        found = []
        for key in sorted({act.key for act in self.log}):
            acts = [act for act in self.log if act.key == key and act.version > after]
            if not acts:
                continue
            inserts = [act.version for act in acts if act.operation == "I"]
            first, last = acts[0].operation, acts[-1].operation
            operation = "D" if last == "D" else "I" if first == "I" else "U"
            mask = None
            if all(act.columns is not None for act in acts):
                named = sorted(_COLUMN_IDS[name] for act in acts for name in act.columns or ())
                mask = bytes(4) + b"".join(n.to_bytes(4, "little") for n in dict.fromkeys(named))
            found.append((acts[-1].version, max(inserts, default=None), operation, mask, acts[-1].context, key))
        return found


class _World:
    """A session and the model, which do the same."""

    def __init__(self, client: Client, source: random.Random) -> None:
        self.client, self.source = client, source
        self.version, self.model = 0, _Model()

    def transaction(self) -> None:
        """Some statements, which are committed, rolled back, or rolled back in part."""
        kept_rows, kept_log, begun = dict(self.model.rows), list(self.model.log), self.model.begun
        before = len(self.model.log)
        batch = ["BEGIN TRAN", *(self._statement() for _ in range(self.source.randint(1, 4)))]
        if self.source.random() < 0.3:
            rows, log = dict(self.model.rows), list(self.model.log)
            batch += ["SAVE TRAN s", self._statement(), "ROLLBACK TRAN s"]
            self.model.rows, self.model.log = rows, log
        ends = self.source.random() < 0.8
        self.client.run("\n".join([*batch, "COMMIT" if ends else "ROLLBACK"]))
        if not ends:
            self.model.rows, self.model.log, self.model.begun = kept_rows, kept_log, begun
        elif len(self.model.log) > before:
            self.version += 1

    def truncate(self) -> None:
        """All rows go, and what was known of them."""
        self.client.run("TRUNCATE TABLE dbo.t")
        self.model.rows.clear()
        self.model.log.clear()
        self.model.begun = self.version

    def _statement(self) -> str:
        source, rows = self.source, self.model.rows
        context = bytes([source.randrange(256)]) if source.random() < 0.4 else None
        start = f"WITH CHANGE_TRACKING_CONTEXT (0x{context.hex()}) " if context else ""
        number, low = self.version + 1, source.randrange(12)
        chosen = [key for key in sorted(rows) if low <= key < low + 3]
        kind = source.choice(("insert", "insert", "update", "update", "delete", "move"))
        log = self.model.log
        if kind == "insert":
            key = source.choice([key for key in range(40) if key not in rows])
            rows[key] = (0, 0)
            log.append(_Act(number, "I", key, None, context))
            return f";{start}INSERT INTO dbo.t VALUES ({key}, 0, 0)"
        where = f"WHERE id >= {low} AND id < {low + 3}"
        if kind == "delete":
            for key in chosen:
                del rows[key]
                log.append(_Act(number, "D", key, None, context))
            return f";{start}DELETE FROM dbo.t {where}"
        if kind == "update":
            names = source.choice((("a",), ("b",), ("a", "b")))
            for key in chosen:
                log.append(_Act(number, "U", key, None if len(names) == 2 else frozenset(names), context))
            return f";{start}UPDATE dbo.t SET {', '.join(f'{name} = {name} + 1' for name in names)} {where}"
        moved = [(key, key + 1) for key in chosen]
        if any(new in rows and new not in chosen for _, new in moved):
            return "PRINT 'a key is taken'"
        for old, _ in moved:
            log.append(_Act(number, "D", old, None, context))
        values = [rows.pop(old) for old, _ in moved]
        for (_, new), row in zip(moved, values, strict=True):
            rows[new] = row
            log.append(_Act(number, "I", new, None, context))
        return f";{start}UPDATE dbo.t SET id = id + 1 {where}"


@pytest.mark.parametrize("seed", range(12))
def test_net_changes_are_those_of_the_model(connect: Callable[..., Client], seed: int) -> None:
    client = connect()
    client.run("DROP TABLE dbo.t CREATE TABLE dbo.t (id int PRIMARY KEY, a int, b int)")
    client.run("ALTER TABLE dbo.t ENABLE CHANGE_TRACKING WITH (TRACK_COLUMNS_UPDATED = ON)")
    world = _World(client, random.Random(seed))
    for _ in range(25):
        world.truncate() if world.source.random() < 0.05 else world.transaction()
        assert client.run(
            "SELECT CHANGE_TRACKING_CURRENT_VERSION(), CHANGE_TRACKING_MIN_VALID_VERSION(OBJECT_ID('dbo.t'))"
        ) == [(world.version, world.model.begun)]
        assert client.run("SELECT id FROM dbo.t ORDER BY id") == [(key,) for key in sorted(world.model.rows)]
        for after in {0, world.source.randint(0, world.version), max(world.version - 1, 0)}:
            rows = client.run(f"SELECT {_ALL} FROM CHANGETABLE(CHANGES dbo.t, {after}) AS c ORDER BY id")
            assert rows == world.model.told(after)
    assert world.version > 5
