"""The capture in plain Python: random work on a table, the change rows it leaves, the rows it ends with."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
from random import Random

from airflow_provider_mssql_cdc.core.feed import CaptureInstance
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.spec import TableSpec
from airflow_provider_mssql_cdc.core.table import Column, TableName, TableSchema

COLUMNS = (
    Column(1, 1, "h", "int", nullable=False),
    Column(2, 2, "id", "int", nullable=False),
    Column(3, 3, "name", "nvarchar", length=80),
    Column(4, 5, "doc", "nvarchar", length=-1),
    Column(5, 6, "old text", "ntext", length=16),
)
KEY = ("h", "id")
LOBS = ("doc", "old text")
NAMES = tuple(column.name for column in COLUMNS)


def lsn(number: int) -> Lsn:
    return Lsn(number.to_bytes(10, "big"))


def table_spec(name="t", columns=COLUMNS, key=KEY, sinks=(), unique_key=True) -> TableSpec:
    instance = CaptureInstance(
        name=f"dbo_{name}",
        object_id=100,
        source=TableName("dbo", name),
        source_object_id=50,
        create_date=datetime.datetime(2026, 1, 1),
        start_lsn=lsn(1),
        min_lsn=lsn(1),
        columns=columns,
    )
    return TableSpec(instance.source, instance, TableSchema(columns, key), tuple(sinks), unique_key)


def mask(ordinals, count: int) -> bytes:
    """An update mask: ordinal 1 is the lowest bit of the last byte."""
    return sum(1 << ordinal - 1 for ordinal in ordinals).to_bytes(-(-count // 8), "big")


@dataclasses.dataclass
class Capture:
    """The change rows of one history.

    :param history: value of column ``h``
    :param keeps: whether after images leave out LOBs that did not change
    """

    history: int
    keeps: bool
    rows: dict = dataclasses.field(default_factory=dict)
    changes: list = dataclasses.field(default_factory=list)
    images: list = dataclasses.field(default_factory=list)
    states: dict = dataclasses.field(default_factory=dict)
    who: dict = dataclasses.field(default_factory=dict)
    lives: dict = dataclasses.field(default_factory=dict)
    position: int = 0
    command: int = 0

    def begin(self, position: int) -> None:
        self.position, self.command = position, 0

    def commit(self) -> None:
        self.states[self.position] = dict(self.rows)
        where = {row: (id_, *self.rows[id_]) for id_, row in self.who.items()}
        for row in {*where, *self.lives}:
            self.lives.setdefault(row, {})[self.position] = where.get(row)

    def scanned(self, random: Random, low: int, high: int) -> list[tuple]:
        """The rows as a scan may meet them that begins and ends at these positions: each at a moment of its own."""
        found = []
        for life in self.lives.values():
            moment = random.randint(low, high)
            at = max((p for p in life if p <= moment), default=None)
            if at is not None and life[at] is not None:
                found.append((self.history, *life[at]))
        return found

    def state(self, position: int) -> dict:
        return self.states.get(max((p for p in self.states if p <= position), default=None), {})

    def insert(self, id_: int, values: tuple) -> None:
        self.command += 1
        self.rows[id_] = values
        self.who[id_] = object()
        self._write(2, id_, values, values, range(1, 6))

    def delete(self, id_: int) -> None:
        self.command += 1
        values = self.rows.pop(id_)
        del self.who[id_]
        self._write(1, id_, (values[0], values[1], None), values, range(1, 6))

    def update(self, id_: int, values: tuple, new_id: int, deferred: bool) -> None:
        old = self.rows[id_]
        changed = {3 + i for i in range(3) if old[i] != values[i]} | ({2} if new_id != id_ else set())
        if not changed:
            return
        if new_id != id_ and deferred:
            self.delete(id_)
            self.insert(new_id, values)
            return
        self.command += 1
        del self.rows[id_]
        self.rows[new_id] = values
        self.who[new_id] = self.who.pop(id_)
        before = (old[0], old[1] if 4 in changed else None, None)
        after = tuple(None if self.keeps and i > 0 and 3 + i not in changed else values[i] for i in range(3))
        self._write(3, id_, before, old, changed)
        self._write(4, new_id, after, values, changed)

    def pass_on(self, ids: dict) -> None:
        """Give several rows new ids in one statement, as it is captured where no index enforces them: row by row."""
        old = {id_: self.rows.pop(id_) for id_ in ids}
        who = {id_: self.who.pop(id_) for id_ in ids}
        for id_, values in old.items():
            self.command += 1
            before = (values[0], None, None)
            after = (values[0], *(None if self.keeps else value for value in values[1:]))
            self._write(3, id_, before, values, {2})
            self._write(4, ids[id_], after, values, {2})
            self.rows[ids[id_]] = values
            self.who[ids[id_]] = who[id_]

    def _write(self, operation, id_, captured, real, ordinals) -> None:
        self.changes.append(
            {
                "start_lsn": lsn(self.position).value,
                "command_id": self.command,
                # not monotonic: the log record of a change says nothing of the order of commits
                "seqval": lsn(self.position * 1000 - self.command).value,
                "operation": operation,
                "update_mask": mask(ordinals, 5),
                "commit_ts": f"2026-06-01 12:{self.position % 60:02d}:00.003",
                "tran_id": self.position.to_bytes(6, "big"),
                "row": (self.history, id_, *captured),
            }
        )
        self.images.append((self.position, self.command, operation, self.history, id_, *real))


TEXTS = (None, None, "", "a", "ä long one", "z" * 40)


def random_history(random: Random, history: int, enforced: bool = True, distinct: bool = False) -> Capture:
    """Work on up to five keys: transactions at positions 10 to 90.

    :param enforced: whether an index keeps the ids unique; else statements may pass them on from row to row
    :param distinct: give each version of a row a name that no other one has, in transactions of one statement
    """
    names = (f"{history}-{n}" for n in itertools.count())
    capture = Capture(history, keeps=random.random() < 0.5)
    for position in sorted(random.sample(range(10, 91), random.randint(1, 8))):
        capture.begin(position)
        for _ in range(1 if distinct else random.randint(1, 6)):
            if not enforced and capture.rows and random.random() < 0.4:
                moving = random.sample(sorted(capture.rows), random.randint(1, len(capture.rows)))
                free = [n for n in range(1, 6) if n not in capture.rows]
                new = random.sample([*moving, *free], len(moving))
                capture.pass_on({id_: n for id_, n in zip(moving, new, strict=True) if id_ != n})
                continue
            id_ = random.randint(1, 5)
            values = tuple(random.choice(TEXTS) for _ in range(3))
            values = (next(names), *values[1:]) if distinct else values
            if id_ not in capture.rows:
                capture.insert(id_, values)
            elif random.random() < 0.25:
                capture.delete(id_)
            else:
                free = [n for n in range(1, 6) if n not in capture.rows]
                new_id = random.choice(free) if free and random.random() < 0.25 else id_
                values = tuple(
                    v if random.random() < 0.4 else old for v, old in zip(values, capture.rows[id_], strict=True)
                )
                capture.update(id_, values, new_id, deferred=enforced and random.random() < 0.5)
        capture.commit()
    return capture


def raw_rows(captures, after=0, upto=2**40):
    """The raw rows of a window as the reader numbers them, ordered, as tuples of ``reader.RAW_COLUMNS``."""
    found = [
        c for capture in captures for c in capture.changes if after < int.from_bytes(c["start_lsn"], "big") <= upto
    ]
    # the command id counts over the whole transaction; here each history has its own
    found.sort(key=lambda c: (c["start_lsn"], c["row"][0], c["command_id"], c["seqval"], c["operation"]))
    numbers, result = {}, []
    for change in found:
        number = numbers[change["start_lsn"]] = numbers.get(change["start_lsn"], 0) + 1
        result.append(
            (
                change["start_lsn"],
                change["row"][0] * 1000 + change["command_id"],
                change["seqval"],
                change["operation"],
                change["update_mask"],
                number,
                change["commit_ts"],
                change["tran_id"],
                *change["row"],
            )
        )
    return result
