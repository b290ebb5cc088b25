"""Which version a RESTORE went back to, from the texts of the log alone."""

from __future__ import annotations

import datetime
import json

import pytest
from pyspark.sql import Row

from airflow_provider_mssql_cdc.spark.targets.delta_log import UnclearMomentError, commits_of, line, most_files


def row(version, hour, operation="WRITE", load=None, metrics=None, /, **parameters):
    return Row(
        version=version,
        timestamp=datetime.datetime(2026, 5, 1) + datetime.timedelta(hours=hour),
        operation=operation,
        operationParameters=parameters,
        operationMetrics=metrics,
        userMetadata=json.dumps({"mssql_cdc": {"attempt": f"a{version}", "marker": {}}}) if load else None,
    )


def nothing_is_the_same(one, other):
    return False


@pytest.mark.parametrize(
    ("moment", "possible"),
    [
        # 2026-05-03 00:00: hours 30 to 66
        ("2026-05-03 00:00:00.0", (2, 3, 4)),
        ("2026-05-03 00:00:00.001", (2, 3, 4)),
        ("2026-05-02 23:59:59.999999", (2, 3)),
        ("2026-05-03 18:00:00.0", (3, 4)),
        ("2026-05-04 12:00:00.0", (4, 5)),
        ("2026-05-01 12:00:00.0", (0, 1, 2)),
    ],
)
def test_a_moment_is_one_of_all_versions_that_some_zone_makes_it(moment, possible):
    rows = [row(0, 0), row(1, 10), row(2, 29), row(3, 48), row(4, 66), row(5, 90)]
    rows.append(row(6, 91, "RESTORE", version=None, timestamp=moment))

    assert commits_of(rows)[6].back_to == possible


def test_a_moment_may_be_a_version_that_the_log_forgot():
    rows = [row(7, 20, "WRITE", True), row(8, 40, "WRITE", True)]
    rows.append(row(9, 41, "RESTORE", version=None, timestamp="2026-05-02 00:00:00.0"))
    commits = commits_of(rows)

    assert commits[9].back_to == (6, 7, 8)
    with pytest.raises(UnclearMomentError):
        line(commits, 9, nothing_is_the_same)
    with pytest.raises(UnclearMomentError):
        line(commits, 9, lambda one, other: True)
    assert line(commits, 9, lambda one, other: other == 6).end == 6
    assert line(commits, 9, lambda one, other: other == 7).attempt == "a7"


def test_versions_of_one_marker_need_no_comparison():
    rows = [row(0, 0), row(1, 10, "WRITE", True), row(2, 11, "OPTIMIZE"), row(3, 12)]
    rows.append(row(4, 40, "RESTORE", version=None, timestamp="2026-05-02 04:00:00.0"))
    rows.append(row(5, 41, "RESTORE", version="4", timestamp=None))

    def never(one, other):
        raise AssertionError

    way = line(commits_of(rows), 5, never)

    assert (way.attempt, way.written) == ("a1", True)


def test_too_many_versions_are_left_to_a_person():
    rows = [row(version, version / 20, "WRITE", True) for version in range(300)]
    rows.append(row(300, 40, "RESTORE", version=None, timestamp="2026-05-01 08:00:00.0"))

    with pytest.raises(UnclearMomentError):
        line(commits_of(rows), 300, lambda one, other: other == 7)


def test_how_many_files_a_table_can_have_is_added_up():
    rows = [row(0, 0, "CREATE TABLE"), row(1, 1, "WRITE", None, {"numFiles": "3", "numOutputRows": "9"})]
    rows.append(row(2, 2, "MERGE", None, {"numTargetFilesAdded": "2", "numTargetFilesRemoved": "1"}))
    rows.append(row(3, 3, "OPTIMIZE", None, {"numAddedFiles": "1", "numRemovedFiles": "5"}))

    assert most_files(commits_of(rows)) == 6
    assert most_files(commits_of(rows[1:])) is None
    assert most_files(commits_of([*rows, row(4, 4, "CLONE", None, {})])) is None
