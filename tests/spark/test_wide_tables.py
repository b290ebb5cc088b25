"""Tables of many columns: the update mask names the right ones, by the first capture instance and by the next one."""

from __future__ import annotations

import pytest

from airflow_provider_mssql_cdc.core.entry_values import PROPOSE
from tests.support.spark.loads import Loads
from tests.support.spark.origin import Origin

pytestmark = [
    pytest.mark.xdist_group("tests.spark.test_filled_columns"),
    pytest.mark.timeout(900),
    pytest.mark.thorough,
]

NAME = "lab.wide"


@pytest.mark.parametrize("width", [9, 17, 300])
def test_masks_stay_right_across_instances(live: Origin, width: int) -> None:
    """Masks have a bit for each captured column, eight in a byte, in the order of the instance's own list."""
    numbered = [f"c{number}" for number in range(1, width)]
    live.sql("CREATE SCHEMA lab")
    live.sql(f"CREATE TABLE {NAME} (id int NOT NULL PRIMARY KEY, {', '.join(f'{name} int' for name in numbered)})")
    live.sql(f"INSERT INTO {NAME} (id) VALUES (1), (2), (3)")
    live.enable(NAME)
    live.wait_captured()
    loads = Loads(live, ("mirror", "history"), ("wide",))
    loads.say(on_schema_change=PROPOSE)
    loads.load_all()

    def change(*changed: str, key: int = 1) -> tuple[int, list[str]]:
        live.sql(
            f"UPDATE {NAME} SET {', '.join(f'{name} = COALESCE({name}, 0) + 1' for name in changed)} WHERE id = {key}"
        )
        return key, sorted(changed)

    edges = [name for name in ("c1", "c7", "c8", "c15", "c16", numbered[-1]) if name in numbered]
    expected = [change(name) for name in dict.fromkeys(edges)]
    expected.append(change(numbered[0], numbered[-1], key=2))
    # one goes that stands before others, one comes, and the next instance has neither a hole nor the old order
    live.sql(f"ALTER TABLE {NAME} DROP COLUMN c2; ALTER TABLE {NAME} ADD late int")
    live.sql(
        "EXEC sys.sp_cdc_enable_table @source_schema = N'lab', @source_name = N'wide', @role_name = NULL,"
        " @capture_instance = N'wide_2'"
    )
    expected.append(change(numbered[-1]))
    live.wait_captured()
    loads.load_all()
    # what the first instance has captured is read by that one
    expected += [change(name, key=3) for name in (*dict.fromkeys(edges), "late")]
    expected.append(change("c1", numbered[-1], "late", key=2))
    live.wait_captured()
    for _ in range(3):
        loads.load_all()
    stored = loads.store.load(loads.identity("wide"))
    assert {sink.feed.name for sink in stored.sinks.values()} == {"wide_2"}
    history = sorted(live.lake(NAME, "history"), key=lambda row: (row["_lsn"], row["_seq"] or 0))
    assert [(row["id"], sorted(row["_changed"])) for row in history if row["_op"] == "U"] == expected
    names = ["id", *(name for name in numbered if name != "c2"), "late"]
    source = sorted(tuple(row[name] for name in names) for row in live.sql(f"SELECT * FROM {NAME}"))
    assert sorted(tuple(row[name] for name in names) for row in live.lake(NAME)) == source
