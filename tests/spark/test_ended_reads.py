"""Reads that are deadlocks' victims, or meet DDL under SNAPSHOT, are done again, and nothing else is."""

from __future__ import annotations

import pytest

from airflow_provider_mssql_cdc.spark.ended_reads import read_again
from tests.support.spark.loads import Loads

VICTIM = (
    "An error occurred while calling o57.collectToPython.\n: com.microsoft.sqlserver.jdbc.SQLServerException: "
    "Transaction (Process ID 54) was deadlocked on lock\nresources with another process and has been chosen as the "
    "deadlock victim. Rerun the transaction."
)


DDL = (
    "An error occurred while calling o57.parquet.\n: com.microsoft.sqlserver.jdbc.SQLServerException: Snapshot "
    "isolation transaction failed in database 'shop' because the object accessed by the statement has been modified "
    "by a DDL statement in another concurrent transaction since the start of this transaction."
)


class Reads:
    """Reads that fail with these texts, one after the other."""

    def __init__(self, *texts: str) -> None:
        self.texts, self.tries = [*texts], list[int]()

    def __call__(self, number: int) -> str:
        self.tries.append(number)
        if self.texts:
            raise RuntimeError(self.texts.pop(0))
        return "rows"


@pytest.mark.parametrize("text", [VICTIM, DDL], ids=["deadlock", "ddl"])
@pytest.mark.parametrize("victims", [0, 1, 9])
def test_a_victim_reads_again(victims: int, text: str) -> None:
    reads = Reads(*[text] * victims)
    assert read_again(reads) == "rows"
    assert reads.tries == [*range(victims + 1)]


def test_a_victim_does_not_read_for_ever() -> None:
    reads = Reads(*[VICTIM] * 20)
    with pytest.raises(RuntimeError, match="deadlock victim"):
        read_again(reads)
    assert reads.tries == [*range(10)]


def test_what_fails_otherwise_is_not_done_again() -> None:
    reads = Reads(VICTIM, "Lock request time out period exceeded.")
    with pytest.raises(RuntimeError, match="time out"):
        read_again(reads)
    assert reads.tries == [0, 1]


def test_a_load_is_no_victim_where_spark_asks_for_a_query_s_columns(live, sandbox):
    """Spark does that before it reads, and the server takes the locks of a reader for it."""
    live.sql("CREATE SCHEMA lab; CREATE TABLE lab.things (id int NOT NULL PRIMARY KEY, a int)")
    live.sql("INSERT INTO lab.things VALUES (1, 1), (2, 2)")
    live.enable("lab.things")
    live.wait_captured()
    loads = Loads(live, ("mirror",), ("things",))
    loads.load_all()
    live.sql("UPDATE lab.things SET a = 3 WHERE id = 1")
    live.wait_captured()
    with sandbox.faults.deadlock(lambda text: "ROW_NUMBER" in text and "WHERE 1=0" in text, times=1) as fault:
        loads.load_all()
    assert fault.count == 1
    assert sorted(row["a"] for row in live.lake("lab.things")) == [2, 3]
