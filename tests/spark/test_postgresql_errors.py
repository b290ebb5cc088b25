"""What PostgreSQL's errors mean, from their texts and codes alone."""

from __future__ import annotations

import psycopg
import pytest

from airflow_provider_mssql_cdc.spark.targets.postgresql.errors import of_driver, of_spark

NO_ROOM = 'could not extend file "base/16384/16397": No space left on device'
PASSING = [
    ("57P03", "the database system is starting up", "run the task again"),
    ("57P03", "the database system is in recovery mode", "run the task again"),
    ("57P03", "the database system is not yet accepting connections", "run the task again"),
    ("57P03", "the database system is not accepting connections", "run the task again"),
    ("57P01", "terminating connection due to administrator command", "run the task again"),
    ("40001", "terminating connection due to conflict with recovery", "run the task again"),
    ("53300", "sorry, too many clients already", "run the task again"),
    ("53100", NO_ROOM, "Make room on the database's server"),
    ("53200", "out of memory", "Make room on the database's server"),
    ("25006", "cannot execute CREATE TABLE in a read-only transaction", "let the target's Airflow connection name the"),
]
LASTING = [
    ("23502", 'null value in column "id" of relation "t" violates not-null constraint'),
    ("22003", "numeric field overflow"),
]


@pytest.mark.parametrize(("code", "message", "advice"), PASSING)
def test_what_may_pass_is_tried_again(code, message, advice):
    severity = "FATAL" if code.startswith(("57", "53")) else "ERROR"
    by_jdbc = f"Caused by: org.postgresql.util.PSQLException: {severity}: {message}\n  Detail: more\n\tat org.x.y(z)"

    for error in (of_driver(psycopg.errors.lookup(code)(message), "w.s.t"), of_spark(by_jdbc, "w.s.t")):
        assert not error.permanent
        assert message in str(error)
        assert advice in str(error).replace("Run the", "run the")


@pytest.mark.parametrize(("code", "message"), LASTING)
def test_what_is_wrong_with_rows_is_not(code, message):
    by_jdbc = f"Caused by: org.postgresql.util.PSQLException: ERROR: {message}\n\tat org.x.y(z)"

    for error in (of_driver(psycopg.errors.lookup(code)(message), "w.s.t"), of_spark(by_jdbc, "w.s.t")):
        assert error.permanent
        assert message in str(error)


def test_a_server_that_cannot_be_connected_to_has_no_code():
    text = 'connection to server at "10.0.0.1", port 5432 failed: FATAL:  the database system is in recovery mode'

    assert not of_driver(psycopg.OperationalError(text), "w.s.t").permanent


def test_errors_of_others_are_none_of_postgresql():
    assert of_spark("java.lang.OutOfMemoryError: No space left on device", "w.s.t") is None
