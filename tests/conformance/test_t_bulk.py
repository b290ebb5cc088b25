"""Bulk copy by a real client, FreeTDS: what is stored, and what of it the capture finds."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.support.conformance.database import Database

# The driver keeps the interpreter's lock, so that a server in its process could not answer.
_COPY = """
import json, sys
import pymssql
given = json.load(sys.stdin)
connection = pymssql.connect(**given["address"], autocommit=given["autocommit"], charset="UTF-8")
rows = [tuple(row) for row in given["rows"]]
try:
    connection.bulk_copy(given["table"], rows, **given["options"])
    if not given["autocommit"]:
        (connection.commit if given["keep"] else connection.rollback)()
except (pymssql.Error, pymssql._mssql.MSSQLException) as error:
    print(json.dumps(getattr(error, "number", None) or str(error)))
else:
    print("null")
"""


def copy(
    db: Database, table: str, rows: list[tuple[Any, ...]], *, keep: bool = True, autocommit: bool = True, **options: Any
) -> Any:
    """Copy rows in a process of its own; the number of its error, None without one."""
    address = {**db.server.address, "port": str(db.server.address["port"]), "database": db.name}
    given = {
        "address": address,
        "table": table,
        "rows": rows,
        "options": options,
        "autocommit": autocommit,
        "keep": keep,
    }
    ended = subprocess.run(
        [sys.executable, "-c", _COPY], input=json.dumps(given), capture_output=True, text=True, timeout=60, check=True
    )
    return json.loads(ended.stdout)


def test_57_rows_of_a_bulk_copy_are_captured_one_by_one_as_inserts(t: Database) -> None:
    assert copy(t, "dbo.t", [(1, "a", 10), (2, None, None), (3, "c", 30)]) is None
    t.capture()
    assert t.changes("__$operation, id, a, b") == [(2, 1, "a", 10), (2, 2, None, None), (2, 3, "c", 30)]
    assert len(t.commits()) == 1


def test_57_each_batch_of_a_bulk_copy_is_a_transaction(t: Database) -> None:
    assert copy(t, "dbo.t", [(key, "x", key) for key in range(1, 6)], batch_size=2) is None
    t.capture()
    assert t.changes("__$operation, id") == [(2, key) for key in range(1, 6)]
    assert len(t.commits()) == 3


def test_57_a_bulk_copy_in_a_transaction(t: Database) -> None:
    assert copy(t, "dbo.t", [(1, "a", 1)], autocommit=False, keep=False) is None
    assert copy(t, "dbo.t", [(2, "b", 2), (3, "c", 3)], autocommit=False, batch_size=1) is None
    t.capture()
    assert t.run("SELECT id FROM dbo.t ORDER BY id") == [(2,), (3,)]
    assert t.changes("id") == [(2,), (3,)]
    assert len(t.commits()) == 1


def test_57_columns_that_a_bulk_copy_does_not_send(plain: Database) -> None:
    plain.run(
        "CREATE TABLE dbo.d (id int IDENTITY(5, 5) NOT NULL PRIMARY KEY, a varchar(10) NULL DEFAULT 'none', b int NULL,"
        " c AS b + 1)"
    )
    assert copy(plain, "dbo.d", [("x", 1), (None, 2)], column_ids=[2, 3]) is None
    assert plain.run("SELECT id, a, b, c FROM dbo.d ORDER BY id") == [(5, "x", 1, 2), (10, "none", 2, 3)]


def test_57_a_key_that_is_there_stores_nothing(t: Database) -> None:
    t.run("INSERT INTO dbo.t VALUES (2, 'there', 2)")
    assert copy(t, "dbo.t", [(1, "a", 1), (2, "b", 2)]) == 2627
    assert t.run("SELECT id, a FROM dbo.t") == [(2, "there")]


def test_57_options_that_change_no_rows(t: Database) -> None:
    assert copy(t, "dbo.t", [(1, "a", 1)], tablock=True, check_constraints=True, fire_triggers=True) is None
    assert t.run("SELECT id, a, b FROM dbo.t") == [(1, "a", 1)]


def test_57_insert_bulk_alone(plain: Database) -> None:
    plain.run("CREATE TABLE dbo.t (id int NOT NULL)")
    assert plain.number("SELECT 1 AS one INSERT BULK dbo.t (id int)") == 428
    assert plain.number("INSERT BULK dbo.t (id int) WITH (KEEP_IDENTITY)") == 102
    assert plain.number("INSERT BULK dbo.nosuch (id int)") == 208


def test_57_66_a_bulk_load_is_tracked(plain: Database) -> None:
    plain.run("ALTER DATABASE CURRENT SET CHANGE_TRACKING = ON")
    plain.run("CREATE TABLE dbo.t (id int PRIMARY KEY, a varchar(10) NULL)")
    plain.run("ALTER TABLE dbo.t ENABLE CHANGE_TRACKING")
    assert copy(plain, "dbo.t", [(1, "x"), (2, "y")]) is None
    told = "SELECT SYS_CHANGE_VERSION, SYS_CHANGE_OPERATION, id FROM CHANGETABLE(CHANGES dbo.t, 0) AS c ORDER BY id"
    assert plain.run(told) == [(1, "I", 1), (1, "I", 2)]
