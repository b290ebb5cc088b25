"""Columns that are filled by the rows that Change Tracking names: what targets hold then, and which rows were read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from airflow_provider_mssql_cdc.spark import filling
from airflow_provider_mssql_cdc.spark.copies.again import RowsAgain
from airflow_provider_mssql_cdc.spark.copies.table_copy import TableCopy
from tests.spark.test_healed_gaps import COLUMNS, NAME, SHAPES, Healed, Killed

pytestmark = [pytest.mark.xdist_group("tests.spark.test_healed_gaps"), pytest.mark.timeout(900)]

BY_TRACKING = "only the rows are read that changed after version"


class Filled(Healed):
    """A table whose columns are added, and read by a second instance."""

    def __init__(self, live: Any, *, shapes: Sequence[str] = SHAPES, **said: Any) -> None:
        super().__init__(live, shapes=shapes, **{"on_schema_change": "propose", **said})
        self.shapes = shapes

    def second_instance(self) -> None:
        self.sql(
            "EXEC sys.sp_cdc_enable_table @source_schema = N'lab', @source_name = N'things', @role_name = NULL,"
            " @capture_instance = N'things_2'"
        )

    def add(self, added: str) -> None:
        """Add a column, and change rows before an instance reads it."""
        self.sql(f"ALTER TABLE lab.things ADD {added}")
        self.sql("UPDATE lab.things SET b = id WHERE id IN (2, 3); UPDATE lab.things SET b = 7 WHERE id = 4")
        self.sql("DELETE FROM lab.things WHERE id IN (4, 5); UPDATE lab.things SET id = 60 WHERE id = 3")

    def fill(self, how: str) -> int:
        """Runs until all targets have the column; the rows that were read for it.

        :param how: what people are told of it
        """
        copied, told = 0, list[str]()
        for _ in range(5):
            self.run()
            copied, told = copied + self.copied, told + self.runs.warnings
            if self.is_filled:
                assert any(how in text for text in told), told
                return copied
            self.sql("UPDATE lab.things SET a = a + 1 WHERE id = 1")
        raise AssertionError("it is not filled")

    @property
    def is_filled(self) -> bool:
        return all("b" in row for shape in self.shapes for row in self.live.lake(NAME, shape))

    def shown(self, shape: str, columns: Sequence[str] = COLUMNS) -> list[tuple[Any, ...]]:
        if shape != "history":
            return super().shown(shape, columns)
        images = [row for row in self.live.lake(NAME, shape) if row["_op"] != "B"]
        # what is read is behind the events of its position
        images.sort(key=lambda row: (row["_lsn"], row["_seq"] or 2**62))
        newest = {row["id"]: row for row in images}.values()
        return sorted(tuple(row[column] for column in columns) for row in newest if row["_op"] != "D")

    def compare(self, *added: str) -> None:
        columns = ("id", "a", "note", *added)
        for shape in self.shapes:
            assert self.shown(shape, columns) == self.tracked.source(NAME, columns), shape


@pytest.mark.parametrize("added", ["b int", pytest.param("b int NOT NULL DEFAULT 5", marks=pytest.mark.thorough)])
def test_rows_that_changed_since_a_column_was_added_fill_it(live, added):
    found = Filled(live)
    found.run()
    found.add(added)
    found.second_instance()
    found.sql("UPDATE lab.things SET b = 8, a = 8 WHERE id = 8; INSERT INTO lab.things (id, a, b) VALUES (70, 1, 9)")
    assert 0 < found.fill(BY_TRACKING) < 10
    found.compare("b")


@pytest.mark.thorough
def test_a_version_from_before_the_column_is_kept_over_many_runs_and_in_the_markers(live):
    found = Filled(live)
    found.run()
    found.add("b int NOT NULL DEFAULT 5")
    for number in range(3):
        found.sql(f"UPDATE lab.things SET a = {number} WHERE id = {6 + number}")
        found.run()
    found.runs.lose("things")
    found.second_instance()
    found.sql("UPDATE lab.things SET b = 8, a = 8 WHERE id = 8; INSERT INTO lab.things (id, a, b) VALUES (70, 1, 9)")
    assert 0 < found.fill(BY_TRACKING) < 12
    found.compare("b")
    found.sql("UPDATE lab.things SET b = b + 1 WHERE id < 20")
    found.run()
    found.compare("b")


@pytest.mark.thorough
@pytest.mark.parametrize("added", ["b int IDENTITY(7, 3)", "b uniqueidentifier NOT NULL DEFAULT NEWID()"])
def test_all_rows_are_read_where_each_got_a_value_of_its_own(live, added):
    found = Filled(live)
    found.run()
    found.sql(f"ALTER TABLE lab.things ADD {added}")
    found.second_instance()
    found.sql("UPDATE lab.things SET a = 8 WHERE id = 8; INSERT INTO lab.things (id, a) VALUES (70, 1)")
    assert found.fill("have different values in b") >= 40
    found.compare("b")


@pytest.mark.thorough
def test_all_rows_are_read_where_tracking_began_behind_the_column(live):
    found = Filled(live)
    found.run()
    found.sql("ALTER TABLE lab.things ADD b int NOT NULL DEFAULT 5; ALTER TABLE lab.things DISABLE CHANGE_TRACKING")
    found.sql("UPDATE lab.things SET b = id WHERE id < 4")
    found.tracked.track(NAME)
    found.run()
    found.second_instance()
    found.fill("of the first 40 rows")
    found.compare("b")


@pytest.mark.thorough
def test_no_row_is_left_that_did_not_change(live):
    found = Filled(live)
    found.run()
    found.sql("ALTER TABLE lab.things ADD b int NOT NULL DEFAULT 5")
    found.sql("UPDATE lab.things SET b = id")
    found.second_instance()
    assert found.fill("or none is left") >= 40
    found.compare("b")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "point", [(RowsAgain, "read"), (TableCopy, "_has_changed"), (TableCopy, "_finished"), (filling, "_filled")]
)
def test_a_fill_that_was_killed_is_gone_on_with(live, monkeypatch, point):
    found = Filled(live)
    found.run()
    found.add("b int NOT NULL DEFAULT 5")
    found.second_instance()
    owner, name = point
    real, calls = getattr(owner, name), []

    def killed(*given: Any, **named: Any) -> Any:
        calls.append(name)
        if name != "_filled":
            raise Killed
        done = real(*given, **named)
        if len(calls) == 2:
            raise Killed
        return done

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, killed)
        with pytest.raises(Killed):
            found.fill("")
    found.sql("UPDATE lab.things SET b = 90 WHERE id IN (2, 11); DELETE FROM lab.things WHERE id IN (6, 12)")
    found.sql("UPDATE lab.things SET id = 80 WHERE id = 13")
    assert found.fill("") < 20
    found.compare("b")
    found.sql("UPDATE lab.things SET b = b + 1 WHERE id < 20")
    found.run()
    found.compare("b")
