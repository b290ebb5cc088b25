"""Random histories of a small database, and what they amount to, in plain Python that knows nothing of the package.

Many histories share the tables: the first key column ``h`` tells them apart, so that one load proves many of them.
"""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

Row = tuple[Any, ...]
Key = tuple[Any, ...]

SCHEMA = """
CREATE TABLE lab.items (h int NOT NULL, id int NOT NULL, name nvarchar(40) NULL, amount decimal(18,4) NULL,
  CONSTRAINT pk_items PRIMARY KEY (h, id));
CREATE TABLE lab.parts (h int NOT NULL, code varchar(10) NOT NULL, part int NOT NULL, at datetime2(3) NULL,
  note nvarchar(max) NULL, CONSTRAINT pk_parts PRIMARY KEY (h, code, part));
CREATE TABLE lab.flags (h int NOT NULL, id bigint NOT NULL, on_off bit NULL, weight float NULL, raw varbinary(8) NULL,
  CONSTRAINT pk_flags PRIMARY KEY (h, id))
"""

COLUMNS = {
    "items": ("h", "id", "name", "amount"),
    "parts": ("h", "code", "part", "at", "note"),
    "flags": ("h", "id", "on_off", "weight", "raw"),
}
KEY_LENGTH = {"items": 2, "parts": 3, "flags": 2}

_NAMES = (None, "", "Ada", "O'Brien", "naïve", "Ж", "日本", "😀", "trailing ", "50% [x]")
_AMOUNTS = (None, Decimal("0.0000"), Decimal("-0.0001"), Decimal("99999999999999.9999"), Decimal("-1.5000"))
_TIMES = (
    None,
    datetime.datetime(1, 1, 1),
    datetime.datetime(1582, 10, 10, 12),
    datetime.datetime(2026, 3, 29, 2, 30),
    datetime.datetime(2026, 10, 25, 2, 30, 0, 123000),
    datetime.datetime(9999, 12, 31, 23, 59, 59, 999000),
)
_NOTES = (None, "", "short", "long " * 2000, "\N{SNOWMAN}" * 50)
_WEIGHTS = (None, 0.0, -1.5, 1e300, 2.3e-308, 0.1)
_RAW = (None, b"", b"\x00", b"\xff" * 8)


@dataclass
class Model:
    """What the tables of one history hold, and every event so far.

    :ivar events: per table, (transaction number, operation, row); operations as the history shape names them
    :ivar script: the statements so far
    """

    h: int
    rows: dict[str, dict[Key, Row]] = field(default_factory=lambda: {table: {} for table in COLUMNS})
    events: dict[str, list[tuple[int, str, Row]]] = field(default_factory=lambda: {table: [] for table in COLUMNS})
    transactions: int = 0
    script: list[str] = field(default_factory=list)


def transaction(model: Model, rng: random.Random) -> list[str]:
    """Change the model by one random transaction, and return its statements.

    A transaction that is rolled back leaves the model as it was.
    """
    undone = rng.random() < 0.1
    state = {table: dict(rows) for table, rows in model.rows.items()}
    events: list[tuple[str, str, Row]] = []
    statements = ["BEGIN TRANSACTION"]
    for _ in range(rng.randint(1, 5)):
        table = rng.choice(list(COLUMNS))
        statements.append(_change(model.h, table, state[table], events, rng))
    statements.append("ROLLBACK TRANSACTION" if undone else "COMMIT TRANSACTION")
    if not undone:
        model.transactions += 1
        model.rows = state
        for table, operation, row in events:
            model.events[table].append((model.transactions, operation, row))
    model.script += statements
    return statements


def _change(h: int, table: str, rows: dict[Key, Row], events: list[tuple[str, str, Row]], rng: random.Random) -> str:
    choice = rng.random()
    if not rows or choice < 0.35:
        key = _new_key(h, table, rows, rng)
        row = key + _values(table, rng)
        rows[key] = row
        events.append((table, "I", row))
        return f"INSERT INTO lab.{table} ({', '.join(COLUMNS[table])}) VALUES ({', '.join(map(literal, row))})"
    key = rng.choice(sorted(rows))
    old = rows[key]
    where = " AND ".join(f"{c} = {literal(v)}" for c, v in zip(COLUMNS[table], key, strict=False))
    if choice < 0.5:
        del rows[key]
        events.append((table, "D", old))
        return f"DELETE FROM lab.{table} WHERE {where}"
    if choice < 0.65:
        new_key = _new_key(h, table, rows, rng)
        new = new_key + old[len(key) :]
        del rows[key]
        rows[new_key] = new
        events += [(table, "D", old), (table, "I", new)]
        changed = [(c, n) for c, o, n in zip(COLUMNS[table], key, new_key, strict=False) if o != n]
        return f"UPDATE lab.{table} SET {', '.join(f'{c} = {literal(v)}' for c, v in changed)} WHERE {where}"
    values = _values(table, rng)
    chosen = [i for i in range(len(values)) if rng.random() < 0.6] or [0]
    new = key + tuple(values[i] if i in chosen else old[len(key) + i] for i in range(len(values)))
    rows[key] = new
    if new != old:
        events += [(table, "B", old), (table, "U", new)]
    sets = [f"{COLUMNS[table][len(key) + i]} = {literal(values[i])}" for i in chosen]
    return f"UPDATE lab.{table} SET {', '.join(sets)} WHERE {where}"


def _new_key(h: int, table: str, rows: dict[Key, Row], rng: random.Random) -> Key:
    """A free key out of few, so that keys are deleted and used again; out of more where many are in use."""
    most = 12 if len(rows) < 12 else 2 * len(rows)
    while True:
        number = rng.randint(1, most)
        key = (h, rng.choice("abc"), number) if table == "parts" else (h, number)
        if key not in rows:
            return key


def _values(table: str, rng: random.Random) -> Row:
    if table == "items":
        return (rng.choice(_NAMES), rng.choice(_AMOUNTS))
    if table == "parts":
        return (rng.choice(_TIMES), rng.choice(_NOTES))
    return (rng.choice((None, True, False)), rng.choice(_WEIGHTS), rng.choice(_RAW))


def literal(value: Any) -> str:
    """A value as T-SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str):
        return "N'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, datetime.datetime):
        return f"'{value.isoformat(sep=' ', timespec='milliseconds')}'"
    if isinstance(value, float):
        return f"{value!r}E0" if "e" not in repr(value) else repr(value)
    return str(value)
