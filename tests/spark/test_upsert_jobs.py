"""Windows that the table is not what they expect it to be: whole jobs, each key once, and none missing."""

from __future__ import annotations

import datetime

import pytest

from tests.support.spark.origin import Origin, positions

pytestmark = pytest.mark.xdist_group(__name__)


@pytest.fixture
def items(live: Origin) -> Origin:
    live.sql("CREATE TABLE dbo.items (id int NOT NULL PRIMARY KEY, note nvarchar(40) NULL)")
    live.sql("INSERT INTO dbo.items VALUES " + ", ".join(f"({n}, N'n{n}')" for n in range(1, 31)))
    live.enable("dbo.items")
    live.sql("UPDATE dbo.items SET note = N'first' WHERE id = 1")
    live.wait_captured()
    return live


def loaded(items: Origin, at, **given):
    """Load what was captured into the mirror; where it stands then."""
    items.wait_captured()
    receipt = items.load(items.table("dbo.items", ["mirror"], at=at, **given))
    (table,) = receipt.tables
    assert table.error is None
    return positions(receipt)


def held(items: Origin) -> list[tuple]:
    return sorted((row["id"], row["note"]) for row in items.lake("dbo.items"))


def there(items: Origin) -> list[tuple]:
    return sorted((row["id"], row["note"]) for row in items.sql("SELECT id, note FROM dbo.items"))


@pytest.mark.parametrize(
    "deletes", ["hard", *(pytest.param(kept, marks=pytest.mark.thorough) for kept in ("soft", "ignore"))]
)
def test_a_key_that_is_deleted_in_one_window_and_inserted_in_the_next_is_one_row(items: Origin, deletes: str) -> None:
    at = loaded(items, None, deletes=deletes)
    for turn in range(2):
        items.sql("DELETE FROM dbo.items WHERE id <= 10")
        at = loaded(items, at, deletes=deletes)
        gone = [] if deletes == "hard" else [*range(1, 11)]
        assert sorted(row["id"] for row in items.lake("dbo.items")) == sorted(gone + [key for key, _ in there(items)])
        items.sql("INSERT INTO dbo.items VALUES " + ", ".join(f"({n}, N'turn {turn}')" for n in range(1, 11)))
        items.sql(f"INSERT INTO dbo.items VALUES ({100 + turn}, N'new')")
        at = loaded(items, at, deletes=deletes)
        assert held(items) == there(items)
        if deletes == "soft":
            assert {row["_deleted_at"] for row in items.lake("dbo.items")} == {None}


def test_a_position_that_a_person_named_a_thousand_changes_too_early(items: Origin) -> None:
    early = loaded(items, None)
    for turn in range(10):
        first = 1000 * (turn + 1)
        items.sql("INSERT INTO dbo.items VALUES " + ", ".join(f"({n}, N'in {turn}')" for n in range(first, first + 60)))
        items.sql(f"UPDATE dbo.items SET note = N'up {turn}' WHERE id % 3 = {turn % 3}")
        items.sql(f"DELETE FROM dbo.items WHERE id BETWEEN {first} AND {first + 9}")
    at = loaded(items, early)
    assert held(items) == there(items)
    (changes,) = items.sql("SELECT COUNT(*) AS n FROM cdc.dbo_items_CT")
    assert changes["n"] > 1000
    items.sql("DELETE FROM dbo.items WHERE id % 7 = 0; INSERT INTO dbo.items VALUES (5000, N'last')")

    # the marker says more, and the person has the last word
    later = loaded(items, early, asserted="word")

    assert held(items) == there(items)
    assert later["mirror"][0] > at["mirror"][0] > early["mirror"][0]


def test_a_row_that_was_inserted_by_hand_gives_way_to_the_insert_of_its_key(items: Origin) -> None:
    at = loaded(items, None)
    table = items.sql_name("dbo.items", "mirror")
    names = items.spark.table(table).columns
    values = {"id": "100", "note": "'by hand'"}
    row = ", ".join(values.get(name, "NULL") for name in names)
    items.spark.sql(f"INSERT INTO {table} VALUES ({row})")
    items.sql("UPDATE dbo.items SET note = N'meanwhile' WHERE id = 2")
    at = loaded(items, at)
    # nothing says any more that somebody else has written
    items.spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{table}', retain_last => 1,"
        f" older_than => TIMESTAMP '{datetime.datetime.now() + datetime.timedelta(days=1)}')"
    )
    items.sql("INSERT INTO dbo.items VALUES (100, N'of the source'), (101, N'new')")
    loaded(items, at)
    assert held(items) == there(items)


def test_a_key_that_an_adopted_table_has_twice_hides_no_other(items: Origin) -> None:
    at = loaded(items, None)
    table = items.sql_name("dbo.items", "mirror")
    rows = [*held(items), (3, "twice"), (4, "twice")]
    items.spark.sql(f"DROP TABLE {table}")
    text = ", ".join(f"({key}, '{note}')" for key, note in rows)
    items.spark.sql(f"CREATE TABLE {table} (id INT, note STRING) USING iceberg")
    items.spark.sql(f"INSERT INTO {table} VALUES {text}")
    items.sql(
        "UPDATE dbo.items SET note = N'later' WHERE id IN (3, 5); DELETE FROM dbo.items WHERE id IN (4, 6);"
        " INSERT INTO dbo.items VALUES (200, N'new'), (201, N'new')"
    )
    loaded(items, at, asserted="word")
    # what was there twice stays so, as a MERGE leaves it; both rows have the change
    assert held(items) == sorted([*there(items), (3, "later")])
