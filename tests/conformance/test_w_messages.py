"""Checklist points 80 and 81: what errors and messages carry."""

from __future__ import annotations

import pymssql
import pytest

from tests.support.conformance.database import Database, track


def test_80_error_carries_number_state_severity_server_and_line(plain: Database) -> None:
    error = plain.error("SELECT 1\n\nSELECT *\nFROM dbo.nosuch")
    assert (error.number, error.severity, error.state, error.procedure) == (208, 16, 1, "")
    assert error.text == "Invalid object name 'dbo.nosuch'."
    assert error.server == plain.value("SELECT @@SERVERNAME")
    # of the statement, or of the name in it
    assert error.line in (3, 4)


def test_80_error_of_a_procedure_names_it(db: Database) -> None:
    error = db.error("SELECT 1\nEXEC sys.sp_cdc_disable_table 'dbo', 'nosuch', 'all'")
    assert error.number == 22931
    assert "sp_cdc_disable_table" in error.procedure
    assert error.line > 0
    assert [result.rows for result in error.results] == [[(1,)]]


@pytest.mark.parametrize("severity", [11, 14, 16, 18])
@pytest.mark.parametrize("state", [1, 7, 127])
def test_80_raiserror(plain: Database, severity: int, state: int) -> None:
    error = plain.error(f"SELECT 1\nRAISERROR('gone wrong', {severity}, {state})")
    assert (error.number, error.severity, error.state, error.line) == (50000, severity, state, 2)
    assert (error.text, error.procedure) == ("gone wrong", "")


@pytest.mark.parametrize("severity", [0, 10])
def test_80_low_severity_is_information(plain: Database, severity: int) -> None:
    assert plain.notes(f"RAISERROR('only told', {severity}, 1)\nSELECT 1") == ["only told"]
    assert plain.value(f"RAISERROR('only told', {severity}, 1) SELECT 7") == 7


def test_80_print_is_information(plain: Database) -> None:
    assert plain.notes("PRINT 'one' PRINT N'zwei' + CAST(2 AS varchar(5))") == ["one", "zwei2"]


def test_80_throw(plain: Database) -> None:
    error = plain.error("SELECT 1\n;THROW 51234, 'thrown', 5")
    assert (error.number, error.severity, error.state, error.line, error.text) == (51234, 16, 5, 2, "thrown")


_KNOWN = [
    ("SELECT FROM", 102, 15),
    ("SELECT * FROM dbo.t WHERE", 102, 15),
    ("SELECT * FROM dbo.nosuch", 208, 16),
    ("EXEC dbo.nosuch", 2812, 16),
    ("COMMIT", 3902, 16),
]
_REMEMBERED = [
    ("SELECT nosuch FROM dbo.t", 207, 16),
    ("INSERT INTO dbo.t VALUES (1, 1)", 2627, 14),
    ("INSERT INTO dbo.t VALUES (NULL, 1)", 515, 16),
    ("INSERT INTO dbo.t VALUES (2)", 213, 16),
    ("INSERT INTO dbo.t (id, a) VALUES (2)", 109, 15),
    ("SELECT 1 / 0", 8134, 16),
    ("SELECT CAST('x' AS int)", 245, 16),
    ("SELECT CAST(300 AS tinyint)", 220, 16),
    ("SELECT CAST(3000000000 AS int)", 8115, 16),
    ("CREATE TABLE dbo.t (i int)", 2714, 16),
    ("ROLLBACK", 3903, 16),
    ("USE nosuch", 911, 16),
    ("SELECT @nosuch", 137, 15),
    ("DROP TABLE dbo.nosuch", 3701, 11),
]


def _check(db: Database, batch: str, number: int, severity: int) -> None:
    db.run("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, a int) INSERT INTO dbo.t VALUES (1, 1)")
    error = db.error(batch)
    assert (error.number, error.severity, error.line) == (number, severity, 1)


@pytest.mark.parametrize(("batch", "number", "severity"), _KNOWN)
def test_80_numbers_that_clients_branch_on(plain: Database, batch: str, number: int, severity: int) -> None:
    _check(plain, batch, number, severity)


@pytest.mark.parametrize(("batch", "number", "severity"), _REMEMBERED)
def test_80_other_numbers_memory(plain: Database, batch: str, number: int, severity: int) -> None:
    _check(plain, batch, number, severity)


def test_80_login_that_fails(plain: Database) -> None:
    address = plain.server.address
    with pytest.raises(pymssql.OperationalError) as refused:
        pymssql.connect(
            server=address["host"], port=str(address["port"]), user=address["user"], password="wrong", login_timeout=10
        )
    assert "18456" in str(refused.value)


def test_81_messages_are_no_errors(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    assert db.notes(track("t"))
    assert {message.severity for message in db.messages} <= {0, 10}


def test_81_masks_are_told_off_only_where_clr_is(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    clr = db.value("SELECT CAST(value_in_use AS int) FROM sys.configurations WHERE name = 'clr enabled'")
    notes = db.notes(track("t", supports_net_changes=1))
    others = [note for note in notes if not note.startswith("Job ")]
    assert len(others) == (0 if clr else 1)


@pytest.mark.parametrize(
    ("expression", "source", "target", "state"),
    [
        ("CAST(3000000000 AS int)", "expression", "int", 2),
        ("CAST(a * CAST(3000000000 AS bigint) AS int)", "expression", "int", 2),
        ("a + 2147483647", "expression", "int", 2),
        ("CAST(9223372036854775807 AS bigint) + a", "expression", "bigint", 2),
        ("CAST('9223372036854775808' AS bigint)", "expression", "bigint", 2),
        ("CAST(a * 1000 AS decimal(4, 2))", "int", "numeric", 8),
        ("CAST(a * 1000.5 AS decimal(4, 2))", "numeric", "numeric", 8),
        ("CAST(a * 1000.5e0 AS decimal(4, 2))", "float", "numeric", 8),
        ("CAST('1000' AS decimal(4, 2))", "varchar", "numeric", 8),
        ("CAST(a * 12.5 AS varchar(2))", "numeric", "varchar", 5),
        ("CAST(123456 * a AS nvarchar(2))", "expression", "nvarchar", 2),
        ("a * 1e308 * 10", "expression", "float", 2),
    ],
)
def test_80_overflows_name_their_types(plain: Database, expression: str, source: str, target: str, state: int) -> None:
    plain.run("CREATE TABLE dbo.t (a int) INSERT INTO dbo.t VALUES (1)")
    error = plain.error(f"SELECT {expression} FROM dbo.t")
    text = f"Arithmetic overflow error converting {source} to data type {target}."
    assert (error.number, error.state, error.text) == (8115, state, text)


def test_80_sums_that_overflow_name_their_types(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (a int, m money) INSERT INTO dbo.t VALUES (2147483647, 922337203685477), (1, 1)")
    for column, type_ in (("a", "int"), ("m", "money")):
        error = plain.error(f"SELECT SUM({column}) FROM dbo.t")
        assert (error.number, error.text) == (
            8115,
            f"Arithmetic overflow error converting expression to data type {type_}.",
        )
