"""First loads of a table whose rows pass their keys on meanwhile, so that a scan does not tell what is left."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from airflow_provider_mssql_cdc.core.choice import conditions_of
from airflow_provider_mssql_cdc.core.exceptions import CaptureLagError
from airflow_provider_mssql_cdc.core.selection import Selection
from airflow_provider_mssql_cdc.spark import reading
from airflow_provider_mssql_cdc.spark.copies.chunks import Chunks
from airflow_provider_mssql_cdc.spark.copies.folder import folders
from airflow_provider_mssql_cdc.spark.sources.cdc import table as cdc_table

pytestmark = [pytest.mark.xdist_group("tests.spark.test_resumed_copies"), pytest.mark.timeout(600)]

ROWS = 12
PASS_ON = f"UPDATE dbo.passed SET k = k % {ROWS} + 1"
"""All keys go from row to row; but for their documents, which an update leaves out, the rows look the same."""


@pytest.fixture
def passed(live):
    """A table with a key that nobody enforces, and its first change captured."""
    live.sql("CREATE TABLE dbo.passed (k int NOT NULL, note nvarchar(10), doc nvarchar(max))")
    live.sql("CREATE INDEX by_k ON dbo.passed (k)")
    live.sql("INSERT INTO dbo.passed VALUES " + ", ".join(f"({k}, N'x', N'doc {k}')" for k in range(1, ROWS)))
    live.enable("dbo.passed")
    live.sql(f"INSERT INTO dbo.passed VALUES ({ROWS}, N'x', N'doc {ROWS}')")
    live.wait_captured()
    return live


class Reads:
    """What happens beside the reads of a copy.

    :param work: a statement that is run once a chunk is read
    :param later: one that is run behind reads of keys; by default the same
    :ivar chunks: how many were read
    :ivar asked: the keys that were asked for, each time
    :ivar moves: how many reads of keys ``later`` is run behind
    """

    def __init__(self, monkeypatch, source, work=PASS_ON, later=None, key="k") -> None:
        self.chunks, self.asked, self.moves = 0, [], 0
        chunk, keys = Chunks.read, Chunks.read_keys

        def read(chunks, *args):
            self.chunks += 1
            found = chunk(chunks, *args)
            if self.chunks == 1:
                source.sql(work)
            return found

        def read_keys(chunks, asked, **given):
            self.asked.append(sorted(row[key] for row in asked.collect()))
            found = keys(chunks, asked, **given).localCheckpoint()
            if len(self.asked) <= self.moves:
                source.sql(later or work)
            return found

        monkeypatch.setattr(Chunks, "read", read)
        monkeypatch.setattr(Chunks, "read_keys", read_keys)


def load(passed, **options):
    table = passed.table("dbo.passed", ("mirror", "history"), key=["k"])
    (receipt,) = passed.load(table, copy_rows=1000, **options).tables
    return receipt


def check(passed, receipt):
    assert receipt.error is None
    source = sorted(tuple(row.values()) for row in passed.sql("SELECT k, note, doc FROM dbo.passed"))
    assert sorted((row["k"], row["note"], row["doc"]) for row in passed.lake("dbo.passed")) == source
    assert receipt.counts["copied"] == ROWS
    history = passed.lake("dbo.passed", "history")
    copied = {row["k"]: row for row in history if row["_op"] == "R"}
    assert sorted(copied) == list(range(1, ROWS + 1))
    for k, row in copied.items():
        # which of the rows that look the same it was then, nobody knows
        assert (row["note"], row["doc"]) == ("x", None if row["_unknown"] else f"doc {k}")
    assert folders(passed.spark, str(Path(passed.work_dir, "copies", "dbo_passed"))) == []


@pytest.mark.thorough
def test_rows_of_which_a_copy_leaves_open_what_is_there_are_read_again(passed, monkeypatch):
    reads = Reads(monkeypatch, passed)
    reads.moves = 1
    check(passed, load(passed))
    # behind the first of the two reads they have moved once more; the row that moves first leaves its key alone
    assert [len(asked) >= ROWS - 1 for asked in reads.asked] == [True, True]


@pytest.mark.thorough
def test_rows_that_move_all_the_time_wait_for_the_next_run_which_reads_no_chunk_again(passed, monkeypatch):
    reads = Reads(monkeypatch, passed)
    reads.moves = 2
    monkeypatch.setattr(reading, "_AGAIN", reads.moves)
    failed = load(passed)
    assert failed.error.kind == "CopyUncertainError"
    assert "Run the task again: the rows of these keys are read again." in str(failed.error)
    assert len(reads.asked) == reads.moves
    read = reads.chunks
    check(passed, load(passed))
    assert (reads.chunks, len(reads.asked)) == (read, reads.moves + 1)


def test_a_row_that_enters_the_selection_without_its_document_is_read_again(live, monkeypatch):
    live.sql("CREATE TABLE dbo.chosen (id int NOT NULL PRIMARY KEY, status char(1), n int, doc nvarchar(max))")
    live.sql("INSERT INTO dbo.chosen VALUES (1, 'A', 0, N'doc 1'), (2, 'B', 0, NULL), (3, 'B', 0, N'doc 3')")
    live.enable("dbo.chosen")
    live.sql("INSERT INTO dbo.chosen VALUES (4, 'A', 0, N'doc 4')")
    live.wait_captured()
    enters = "UPDATE dbo.chosen SET status = 'A' WHERE id = 2; UPDATE dbo.chosen SET n = 1 WHERE id = 2"
    # what CDC leaves out shows NULL, as its document does; it goes on changing, which tells nothing of that
    reads = Reads(monkeypatch, live, enters, "UPDATE dbo.chosen SET n = 2 WHERE id IN (1, 2)", key="id")
    reads.moves = 1
    table = live.table("dbo.chosen", ("mirror", "history"))
    chosen = Selection(conditions=conditions_of(table.name, table.schema, [["status", "=", "A"]]))

    (receipt,) = live.load(dataclasses.replace(table, selection=chosen)).tables

    assert receipt.error is None
    assert reads.asked == [[2]]
    mirror = sorted((row["id"], row["n"], row["doc"]) for row in live.lake("dbo.chosen"))
    assert mirror == [(1, 2, "doc 1"), (2, 2, None), (4, 0, "doc 4")]
    history = [row for row in live.lake("dbo.chosen", "history") if row["id"] == 2]
    history.sort(key=lambda row: (row["_lsn"], row["_seq"] or 0))
    assert [(row["_op"], row["n"], row["doc"], row["_unknown"]) for row in history if row["_op"] != "B"] == [
        ("I", 0, None, []),
        ("U", 1, None, []),
        ("U", 2, None, []),
    ]


@pytest.mark.thorough
def test_a_capture_that_is_late_once_rows_were_read_again_is_waited_for_by_the_next_run(passed, monkeypatch):
    reads, captured = Reads(monkeypatch, passed), cdc_table.captured_position

    def late(*args):
        if reads.asked:
            raise CaptureLagError("the capture is late.", table="dbo.passed", advice="Wait.")
        return captured(*args)

    with monkeypatch.context() as patched:
        patched.setattr(cdc_table, "captured_position", late)
        waiting = load(passed, copy_seconds=60)
    assert "the capture is late" in waiting.copying.waits_for
    assert (waiting.counts.get("copied", 0), waiting.sinks) == (0, ())
    check(passed, load(passed))
    assert len(reads.asked) == 1


@pytest.mark.thorough
def test_a_key_that_is_not_unique_is_refused_whatever_went_through_it(passed, monkeypatch):
    passed.sql("INSERT INTO dbo.passed VALUES (1, N'x', N'other')")
    passed.wait_captured()
    through = "INSERT INTO dbo.passed VALUES (1, N'x', N'gone'); DELETE FROM dbo.passed WHERE doc = N'gone'"
    reads = Reads(monkeypatch, passed, f"BEGIN TRAN; {through}; COMMIT")
    failed = load(passed)
    assert (failed.error.kind, reads.asked) == ("KeyRequiredError", [[1]])
