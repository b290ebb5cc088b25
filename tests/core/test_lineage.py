import dataclasses
import datetime

import pytest

from airflow_provider_mssql_cdc.core.exceptions import SourceRestoredError
from airflow_provider_mssql_cdc.core.lineage import (
    CommitRow,
    LogHistory,
    TrackedSince,
    VersionHistory,
    Witness,
    check_not_restored,
)
from airflow_provider_mssql_cdc.core.position import Lsn, Version
from airflow_provider_mssql_cdc.core.table import TableName

DAY = datetime.datetime(2026, 1, 1)
TABLE = TableName("sales", "orders")


def lsn(number: int) -> Lsn:
    return Lsn(number.to_bytes(10, "big"))


LINEAGE = LogHistory(lsn(100), lsn(5), {lsn(50): DAY}, "A")
TRUE = Witness(lsn(50), DAY, "A")


@pytest.mark.parametrize(
    ("position", "witness"),
    [
        (50, TRUE),
        (60, TRUE),
        (100, None),
        (50, dataclasses.replace(TRUE, recovery_fork=None)),
        (50, dataclasses.replace(TRUE, time=DAY + datetime.timedelta(milliseconds=1))),
        (4, Witness(lsn(4), DAY, "A")),
    ],
    ids=["mapped", "behind it", "none", "no fork", "rounded", "trimmed"],
)
def test_a_position_of_this_lineage(position, witness):
    assert LINEAGE.contradiction(lsn(position), witness) is None


@pytest.mark.parametrize(
    ("position", "witness", "why"),
    [
        (50, dataclasses.replace(TRUE, time=DAY + datetime.timedelta(milliseconds=3)), "and stood for"),
        (50, Witness(lsn(51), DAY, "A"), "is missing from"),
        (5, Witness(lsn(5), DAY, "A"), "is missing from"),
        (50, Witness(lsn(101), DAY, "A"), "newest position of the database is"),
        (101, TRUE, "newest position of the database is"),
        (101, None, "newest position of the database is"),
        (50, dataclasses.replace(TRUE, recovery_fork="B"), "the recovery fork was B and is A now"),
        (4, Witness(lsn(4), DAY, "B"), "the recovery fork was B and is A now"),
    ],
)
def test_a_position_of_another_lineage(position, witness, why):
    assert why in (LINEAGE.contradiction(lsn(position), witness) or "")


ROW = CommitRow(7, 70, 700)


@pytest.mark.parametrize(
    ("then", "now", "lowest", "why"),
    [
        (ROW, {7: ROW}, 3, None),
        # cleanup takes the oldest ones
        (ROW, {}, 8, None),
        (ROW, {}, 7, "version 7 is missing from sys.dm_tran_commit_table"),
        (ROW, {7: CommitRow(7, 71, 700)}, 3, "version 7 was drawn by another transaction"),
        (ROW, {7: CommitRow(7, 70, 701)}, 3, "version 7 was drawn by another transaction"),
        # where the login does not see them, nothing is known
        (ROW, {}, None, None),
        (None, {7: ROW}, 3, None),
    ],
)
def test_versions_that_have_grown_beyond_a_restore_are_told_by_their_commits(then, now, lowest, why):
    witness = Witness(Version(9), DAY, tracking=TrackedSince(3, commit=then))
    lineage = VersionHistory(Version(20), commits=now, min_commit=lowest)
    assert lineage.contradiction(Version(9), witness) == why


def test_without_a_mapping_no_position_holds():
    assert LogHistory(None, None).contradiction(lsn(1), None) == "cdc.lsn_time_mapping is empty"


def test_a_look_of_before_does_not_judge_what_another_run_has_committed_since():
    position, witness = lsn(120), Witness(lsn(110), DAY, "A")
    now = dataclasses.replace(LINEAGE, max_lsn=lsn(130), mapped={lsn(110): DAY})
    assert now.contradiction(position, witness) is None
    # asked once for all tables of a job, that would stop the table as restored
    assert LINEAGE.contradiction(position, witness) == f"the newest position of the database is {lsn(100)}"
    asked_without_it = dataclasses.replace(now, mapped={})
    assert "is missing from" in asked_without_it.contradiction(position, witness)


def test_what_was_seen_before_must_be_there_afterwards():
    check_not_restored(TABLE, [TRUE, Witness(lsn(3), DAY)], LINEAGE)
    assert LINEAGE.witnesses() == [TRUE]
    for seen in ([Witness(lsn(60), DAY)], [TRUE, Witness(lsn(60), DAY)]):
        with pytest.raises(SourceRestoredError, match="restored while it was read") as error:
            check_not_restored(TABLE, seen, LINEAGE)
        assert not error.value.permanent
    check_not_restored(TABLE, [], LINEAGE, "A")
    check_not_restored(TABLE, [], dataclasses.replace(LINEAGE, recovery_fork=None), "A")
    with pytest.raises(SourceRestoredError, match="fork was B and is A now"):
        check_not_restored(TABLE, [], LINEAGE, "B")
