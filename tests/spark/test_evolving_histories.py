"""Random histories of a table whose columns come, grow and go while it is loaded, and loads that are killed: targets
show what the source has."""

from __future__ import annotations

import contextlib
import datetime
import os
import random
from dataclasses import dataclass, field

import pytest

from airflow_provider_mssql_cdc.core.entry_values import EVOLVE
from airflow_provider_mssql_cdc.hooks.mssql_cdc import MsSqlCdcHook
from airflow_provider_mssql_cdc.operators.evolving import make_instances
from airflow_provider_mssql_cdc.operators.intents import Intents
from airflow_provider_mssql_cdc.spark.sink_columns import SinkColumns
from tests.spark.test_filled_columns import STOPS
from tests.support import harsh
from tests.support.spark.kill_points import AFTER, Point
from tests.support.spark.loads import Loads
from tests.support.spark.origin import Origin
from tests.support.spark.stop import Killed, kill_at

pytestmark = [
    pytest.mark.xdist_group("tests.spark.test_filled_columns"),
    pytest.mark.timeout(1800),
    pytest.mark.thorough,
]

NAME = "lab.things"
GROWS = {"smallint": "int", "int": "bigint", "varchar(20)": "varchar(40)", "decimal(5,2)": "decimal(9,2)"}
ALTERS = {
    "varchar(20)": ("char(20)", "nvarchar(20)"),
    "varchar(40)": ("char(40)", "nvarchar(40)"),
    "char(20)": ("char(25)", "varchar(25)"),
    "datetime2(3)": ("datetime", "datetime2(6)", "datetime2"),
    "datetime": ("datetime2(6)", "datetime2", "smalldatetime"),
}
"""Types that alter values, and that targets hold as those of before."""
TYPES = (*GROWS, "varchar(max)", "float", "char(20)", "datetime2(3)", "datetime")
POINTS = [*STOPS, Point(SinkColumns, "_follow", AFTER), Point(SinkColumns, "_follow", AFTER, call=2)]


@dataclass
class Table:
    """The source table, and what its history does to it.

    :ivar columns: those that are there beside the key, with their types
    """

    things: Origin
    rng: random.Random
    columns: dict[str, str] = field(default_factory=lambda: {"a": "int", "b": "varchar(20)"})
    made: int = 0

    def value(self, type_: str) -> str:
        number = self.rng.randrange(100)
        match type_.partition("(")[0]:
            case "varchar" | "char" | "nvarchar":
                return f"REPLICATE('{number}x', {self.rng.choice((1, 3, 6))})"
            case "decimal":
                return f"{number}.{self.rng.randrange(10, 99)}"
            case "datetime" | "datetime2" | "smalldatetime":
                return f"'2024-03-01 10:00:{number % 60:02}.{self.rng.randrange(1000):03}'"
            case "float":
                return f"{number}.5"
            case "bigint":
                return str(number * 10**15)
        return str(number)

    def statement(self) -> str:
        rng, id = self.rng, self.rng.randrange(12)
        named = [name for name in self.columns if rng.random() < 0.5] or [next(iter(self.columns))]
        drawn = {n: "NULL" if rng.random() < 0.2 else self.value(self.columns[n]) for n in named}
        drawn = {n: "6" if v == "NULL" and n.startswith("must") else v for n, v in drawn.items()}
        put = ", ".join(f"{name} = {value}" for name, value in drawn.items())
        insert = f"INSERT INTO lab.things (id, {', '.join(drawn)}) SELECT {id}, {', '.join(drawn.values())}"
        return rng.choice(
            (
                f"UPDATE lab.things SET {put} WHERE id = {id}",
                f"UPDATE lab.things SET {put} WHERE id BETWEEN {id} AND {id + 3}",
                f"{insert} WHERE NOT EXISTS (SELECT 1 FROM lab.things WHERE id = {id})",
                f"DELETE FROM lab.things WHERE id = {id}",
                f"UPDATE lab.things SET id = {id + 20} WHERE id = {id} AND NOT EXISTS"
                f" (SELECT 1 FROM lab.things WHERE id = {id + 20})",
            )
        )

    def write(self, transactions: int) -> None:
        for _ in range(transactions):
            body = "; ".join(self.statement() for _ in range(self.rng.choice((1, 1, 2, 3))))
            self.things.sql(f"BEGIN TRANSACTION; {body}; COMMIT")

    def change(self) -> str:
        """Change a column, in a transaction with rows or alone; what was done."""
        rng, grows = self.rng, [name for name, type_ in self.columns.items() if type_ in GROWS]
        alters = [name for name, type_ in self.columns.items() if type_ in ALTERS]
        kind = rng.choice(("add", "add", "grow", "grow", "alter", "alter", "drop"))
        if kind == "drop" and len(self.columns) > 2:
            name = rng.choice([*self.columns])
            text = f"ALTER TABLE lab.things DROP COLUMN {name}"
            del self.columns[name]
        elif kind == "alter" and alters:
            name = rng.choice(alters)
            self.columns[name] = rng.choice(ALTERS[self.columns[name]])
            text = f"ALTER TABLE lab.things ALTER COLUMN {name} {self.columns[name]}"
        elif kind == "grow" and grows:
            name = rng.choice(grows)
            self.columns[name] = GROWS[self.columns[name]]
            # what is said of NULL is said anew
            null = " NOT NULL" if name.startswith("must") else ""
            text = f"ALTER TABLE lab.things ALTER COLUMN {name} {self.columns[name]}{null}"
        else:
            self.made += 1
            type_ = rng.choice(TYPES)
            name, null = f"c{self.made}", ""
            if type_ == "int" and rng.random() < 0.5:
                name, null = f"must{self.made}", " NOT NULL DEFAULT 5"
            elif rng.random() < 0.3:
                null = f" DEFAULT {self.value(type_)} WITH VALUES"
            text = f"ALTER TABLE lab.things ADD {name} {type_}{null}"
            self.columns[name] = type_
        if "DROP COLUMN" in text:
            # a default is a constraint, which goes first
            name = text.rpartition(" ")[2]
            found = self.things.sql(
                "SELECT d.name FROM sys.default_constraints d JOIN sys.columns c ON c.object_id = d.parent_object_id"
                f" AND c.column_id = d.parent_column_id WHERE d.parent_object_id = OBJECT_ID('{NAME}')"
                f" AND c.name = '{name}'"
            )
            for row in found:
                self.things.sql(f"ALTER TABLE lab.things DROP CONSTRAINT {row['name']}")
        self.things.sql(text)
        return text


def load(loads: Loads, *, checkpoint: bool = True) -> None:
    """A run of a load that makes the instances which it asks for."""
    hook = MsSqlCdcHook(connection=loads.connection)
    try:
        plan = loads.look()
        assert plan.failures == {}
        plan.warnings.clear()
        make_instances(plan, hook, Intents(loads.store, plan), lock_timeout=5)
        print(*plan.warnings, *(text for each in plan.candidates.values() for text in each.warnings), sep="\n  ")
    finally:
        hook.close()
    loads.load(checkpoint=checkpoint)


def make_room(things: Origin, loads: Loads) -> None:
    """Drop the instance on which no sink stands any more, where there are two."""
    rows = things.sql("SELECT capture_instance AS name FROM cdc.change_tables ORDER BY create_date, object_id")
    names = [row["name"] for row in rows]
    stored = loads.store.load(loads.identity("things"))
    used = {sink.feed.name for sink in stored.sinks.values()} if stored is not None else set()
    if len(names) == 2 and used == {names[1]}:
        things.sql(
            "EXEC sys.sp_cdc_disable_table @source_schema = N'lab', @source_name = N'things',"
            f" @capture_instance = N'{names[0]}'"
        )


def rows_of(things: Origin, columns: dict[str, str]) -> list[dict]:
    """The source's rows in these columns; the sandbox counts the ticks of some times."""
    times = [name for name, type_ in columns.items() if type_.startswith("datetime2")]
    said = [f"CONVERT(varchar(30), {name}, 121) AS {name}" if name in times else name for name in columns]
    rows = things.sql(f"SELECT {', '.join(said)} FROM lab.things")
    return [row | {n: row[n] and datetime.datetime.fromisoformat(row[n]) for n in times} for row in rows]


def check(loads: Loads, columns: dict[str, str]) -> set[str]:
    """Compare targets with the source in the columns that they share; those that a target lacks.

    :param columns: name to type
    """
    lacks: set[str] = set()
    waits = unfilled(loads)
    found = {
        "mirror": loads.origin.lake(NAME),
        "scd2": [row for row in loads.versions("things") if row["_to_lsn"] is None],
        "history": newest(loads),
    }
    for shape, rows in found.items():
        has = [name for name in columns if not rows or name in rows[0]]
        lacks |= {*columns} - {*has}
        names = ["id", *has]
        source = {row["id"]: row for row in rows_of(loads.origin, {name: columns.get(name, "int") for name in names})}
        assert len({row["id"] for row in rows}) == len(rows)
        target = {row["id"]: {name: row[name] for name in names} for row in rows}
        # a history has a column before its rows of before are filled, and all keep what a type has altered until then
        names = [name for name in names if name not in waits]
        assert {i: [r[n] for n in names] for i, r in target.items()} == {
            i: [r[n] for n in names] for i, r in source.items()
        }, shape
    return lacks | waits


def unfilled(loads: Loads) -> set[str]:
    """The columns that a sink lacks values of, or of which it has those that a type has altered since."""
    stored, plan = loads.store.load(loads.identity("things")), loads.look()
    known = {name for sink in stored.sinks.values() for name in sink.unfilled} if stored is not None else set()
    lagging = (names for each in plan.candidates.values() for names in each.lagging.values())
    return known.union(*lagging)


def newest(loads: Loads) -> list[dict]:
    events = [row for row in loads.origin.lake(NAME, "history") if row["_op"] != "B"]
    events.sort(key=lambda row: (row["_lsn"], row["_seq"] if row["_seq"] is not None else 1 << 60))
    return [row for row in {row["id"]: row for row in events}.values() if row["_op"] != "D"]


@pytest.mark.parametrize("seed", [harsh.SEED + n for n in range(int(os.environ.get("MSSQL_CDC_TEST_BATCHES", "1")))])
def test_columns_come_grow_and_go_while_loads_are_killed(live: Origin, seed: int, monkeypatch):
    print(f"MSSQL_CDC_TEST_SEED={seed}")
    rng = random.Random(seed)
    live.sql("CREATE SCHEMA lab")
    live.sql("CREATE TABLE lab.things (id int NOT NULL PRIMARY KEY, a int, b varchar(20))")
    live.sql("INSERT INTO lab.things VALUES " + ", ".join(f"({id}, 1, 'b')" for id in range(1, 9)))
    live.enable(NAME)
    live.wait_captured()
    loads, table = Loads(live, ("mirror", "history", "scd2"), ("things",)), Table(live, rng)
    loads.say(on_schema_change=EVOLVE)
    load(loads)
    loads.options = {"copy_rows": rng.choice((4, 1000)), "copy_seconds": 0.001}
    for _ in range(int(os.environ.get("MSSQL_CDC_TEST_STEPS", "8"))):
        table.write(rng.randrange(4))
        if rng.random() < 0.6:
            print(table.change())
        table.write(rng.randrange(3))
        live.wait_captured()
        if rng.random() < 0.3:
            point = rng.choice(POINTS)
            with monkeypatch.context() as patch, contextlib.suppress(Killed):
                kill_at(patch, point)
                load(loads, checkpoint=rng.random() < 0.5)
            print("killed at", point.owner, point.name, point.when, point.call)
        load(loads)
        check(loads, table.columns)
        make_room(live, loads)
    # in the end all columns are there
    for _ in range(30):
        table.write(1)
        live.wait_captured()
        load(loads)
        make_room(live, loads)
        if not check(loads, table.columns):
            break
    else:
        raise AssertionError(f"{check(loads, table.columns)} never came")
