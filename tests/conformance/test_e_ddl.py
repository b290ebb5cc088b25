"""Section E: DDL on tracked tables, and two capture instances of one table."""

from __future__ import annotations

import datetime

import pytest

from tests.support.conformance.client import literal
from tests.support.conformance.database import Database
from tests.support.conformance.servers import Server

_HISTORY = "SELECT required_column_update, ddl_command FROM cdc.ddl_history ORDER BY ddl_lsn"


def _types(db: Database, instance: str = "dbo_t") -> dict[str, tuple]:
    rows = db.run(
        "SELECT name, TYPE_NAME(user_type_id), max_length, precision, scale FROM sys.columns"
        f" WHERE object_id = OBJECT_ID('cdc.{instance}_CT')"
    )
    return {name: rest for name, *rest in rows if not name.startswith("__$")}


def test_25_added_column_is_seen_by_a_new_instance_only(t: Database) -> None:
    t.commit("ALTER TABLE dbo.t ADD c int NULL", "INSERT INTO dbo.t VALUES (1, 'x', 1, 11)")
    assert t.names("SELECT * FROM cdc.dbo_t_CT") == [
        "__$start_lsn", "__$end_lsn", "__$seqval", "__$operation", "__$update_mask", "id", "a", "b", "__$command_id",
    ]  # fmt: skip
    assert t.changes("__$operation, id, a, b") == [(2, 1, "x", 1)]
    assert t.run(_HISTORY) == [(False, "ALTER TABLE dbo.t ADD c int NULL")]
    t.track("t", capture_instance="v2")
    t.commit("UPDATE dbo.t SET c = 12", "UPDATE dbo.t SET b = 2")
    assert t.changes("__$operation, __$update_mask, c, b", "v2") == [
        (3, b"\x08", 11, 1),
        (4, b"\x08", 12, 1),
        (3, b"\x04", 12, 1),
        (4, b"\x04", 12, 2),
    ]
    # for the old instance the first of them changed nothing
    assert t.changes("__$operation, b") == [(2, 1), (3, 1), (4, 2)]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("int NULL DEFAULT 5 WITH VALUES", (5, 5)),
        ("int NOT NULL DEFAULT 5", (5, 5)),
        ("int IDENTITY(7, 1)", (7, 8)),
        ("AS id + 1", (2, 3)),
    ],
)
def test_25_values_of_an_added_column_are_no_changes(t: Database, column: str, values: tuple[int, int]) -> None:
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    alter = f"ALTER TABLE dbo.t ADD c {column}"
    t.commit(alter, "INSERT INTO dbo.t (id, a, b) VALUES (2, 'y', 2)", "UPDATE dbo.t SET b = 3 WHERE id = 1")
    assert t.run("SELECT id, a, b, c FROM dbo.t ORDER BY id") == [(1, "x", 3, values[0]), (2, "y", 2, values[1])]
    assert t.changes("__$operation, id, a, b") == [(2, 1, "x", 1), (2, 2, "y", 2), (3, 1, "x", 1), (4, 1, "x", 3)]
    assert t.run(_HISTORY) == [(False, alter)]


def test_26_dropped_column_stays_and_yields_null(t: Database) -> None:
    t.commit(
        "INSERT INTO dbo.t VALUES (1, 'x', 1)",
        "ALTER TABLE dbo.t DROP COLUMN a",
        "INSERT INTO dbo.t VALUES (2, 2)",
        "UPDATE dbo.t SET b = 3 WHERE id = 1",
        "DELETE FROM dbo.t WHERE id = 1",
    )
    assert t.changes("__$operation, id, a, b") == [
        (2, 1, "x", 1),
        (2, 2, None, 2),
        (3, 1, None, 1),
        (4, 1, None, 3),
        (1, 1, None, 3),
    ]
    captured = t.run("SELECT column_name, column_id, column_ordinal FROM cdc.captured_columns ORDER BY column_ordinal")
    assert captured == [("id", 1, 1), ("a", 2, 2), ("b", 3, 3)]
    assert [command for _, command in t.run(_HISTORY)] == ["ALTER TABLE dbo.t DROP COLUMN a"]


def test_26_column_added_again_under_the_same_name_is_another(t: Database) -> None:
    t.commit(
        "ALTER TABLE dbo.t DROP COLUMN a",
        "ALTER TABLE dbo.t ADD a varchar(10)",
        "INSERT INTO dbo.t VALUES (1, 2, 'new')",
    )
    assert t.changes("__$operation, id, a, b") == [(2, 1, None, 2)]


@pytest.mark.parametrize(
    ("before", "after", "value", "wanted", "described"),
    [
        ("varchar(10)", "varchar(30)", "'x'", "x", ("varchar", 30)),
        ("int", "bigint", "7", 7, ("bigint", 8)),
        ("varchar(10)", "nvarchar(20)", "'x'", "x", ("nvarchar", 40)),
        ("varchar(10)", "int", "'7'", 7, ("int", 4)),
        ("tinyint", "int", "255", 255, ("int", 4)),
    ],
)
def test_27_altered_type_changes_the_change_table(
    db: Database, before: str, after: str, value: str, wanted: object, described: tuple
) -> None:
    db.run(f"CREATE TABLE dbo.t (id int PRIMARY KEY, a {before})")
    db.track("t")
    alter = f"ALTER TABLE dbo.t ALTER COLUMN a {after}"
    db.commit(f"INSERT INTO dbo.t VALUES (1, {value})", alter, f"INSERT INTO dbo.t VALUES (2, {value})")
    assert _types(db)["a"][:2] == list(described)
    assert db.changes("__$operation, id, a") == [(2, 1, wanted), (2, 2, wanted)]
    assert db.run(_HISTORY) == [(True, alter)]
    assert db.value("SELECT column_type FROM cdc.captured_columns WHERE column_name = 'a'") == described[0]


def test_27_change_table_follows_in_log_order(server: Server, t: Database) -> None:
    server.only_embedded("its capture cannot be held")
    t.run("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    t.run("ALTER TABLE dbo.t ALTER COLUMN a varchar(40)")
    assert _types(t)["a"][1] == 10
    assert t.run(_HISTORY) == []
    t.capture()
    assert _types(t)["a"][1] == 40
    assert t.changes("__$operation, id, a") == [(2, 1, "x")]


def test_27_column_that_is_not_captured_needs_no_update(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY, a int, hidden varchar(5))")
    db.track("t", captured_column_list="id, a")
    db.commit("ALTER TABLE dbo.t ALTER COLUMN hidden varchar(50)")
    assert db.run(_HISTORY) == [(False, "ALTER TABLE dbo.t ALTER COLUMN hidden varchar(50)")]
    assert list(_types(db)) == ["id", "a"]


def test_28_one_row_for_each_instance_and_alter(t: Database) -> None:
    t.track("t", capture_instance="v2")
    batches = [
        "ALTER TABLE dbo.t ADD c int",
        "alter   table dbo.t\n  add d int",
        "ALTER TABLE dbo.t DROP COLUMN c",
    ]
    t.commit(*batches, "INSERT INTO dbo.t VALUES (1, 'x', 1, 2)")
    rows = t.run(
        "SELECT h.source_object_id, c.capture_instance, h.required_column_update, h.ddl_command, h.ddl_lsn, h.ddl_time"
        " FROM cdc.ddl_history AS h JOIN cdc.change_tables AS c ON c.object_id = h.object_id"
        " ORDER BY c.capture_instance, h.ddl_lsn"
    )
    source = t.value("SELECT OBJECT_ID('dbo.t')")
    assert [row[:4] for row in rows] == [
        (source, instance, False, command) for instance in ("dbo_t", "v2") for command in batches
    ]
    assert rows[:3][0][4:] == rows[3:][0][4:]
    lsns = [row[4] for row in rows[:3]]
    assert lsns == sorted(set(lsns))
    assert lsns[-1] < t.commits()[0]
    # the LSN is that of the commit, the time its minute; whether a commit without rows is mapped is not said
    for row in rows:
        assert (row[5].second, row[5].microsecond) == (0, 0)
        committed = t.value(f"SELECT sys.fn_cdc_map_lsn_to_time({literal(row[4])})")
        assert committed is None or abs(committed - row[5]) < datetime.timedelta(minutes=1)


def test_28_ddl_in_a_transaction_with_rows(t: Database) -> None:
    t.commit(
        "BEGIN TRAN INSERT INTO dbo.t VALUES (1, 'x', 1) ALTER TABLE dbo.t ADD c int NULL COMMIT",
        "BEGIN TRAN ALTER TABLE dbo.t ADD d int NULL ROLLBACK",
    )
    assert t.run("SELECT ddl_command, ddl_lsn FROM cdc.ddl_history") == [
        ("ALTER TABLE dbo.t ADD c int NULL", t.commits()[0])
    ]


def test_29_rename_of_a_tracked_column_is_refused(t: Database) -> None:
    error = t.error("EXEC sp_rename 'dbo.t.a', 'z', 'COLUMN'")
    assert (error.number, error.severity, error.state) == (4928, 16, 1)
    assert error.procedure.endswith("sp_rename")
    assert error.text.index("a") < error.text.index("REPLICATED")
    assert t.names("SELECT * FROM dbo.t") == ["id", "a", "b"]


def test_e_rename_of_the_table_keeps_the_instance_memory(t: Database) -> None:
    before = t.run("SELECT object_id, source_object_id, capture_instance, start_lsn FROM cdc.change_tables")
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    t.run("EXEC sp_rename 'dbo.t', 'renamed'")
    t.commit("INSERT INTO dbo.renamed VALUES (2, 'y', 2)")
    assert t.changes("__$operation, id") == [(2, 1), (2, 2)]
    after = t.run("SELECT object_id, source_object_id, capture_instance, start_lsn FROM cdc.change_tables")
    assert after == before
    assert t.value("SELECT OBJECT_ID('dbo.renamed')") == before[0][1]
    assert t.run("EXEC sys.sp_cdc_help_change_data_capture")[0][:3] == ("dbo", "renamed", "dbo_t")


def test_e_schema_transfer_keeps_the_instance_memory(t: Database) -> None:
    t.run("CREATE SCHEMA moved")
    t.run("ALTER SCHEMA moved TRANSFER dbo.t")
    t.commit("INSERT INTO moved.t VALUES (1, 'x', 1)")
    assert t.changes("__$operation, id") == [(2, 1)]
    assert t.run("EXEC sys.sp_cdc_help_change_data_capture")[0][:3] == ("moved", "t", "dbo_t")


def test_31_used_primary_key_cannot_be_dropped(t: Database) -> None:
    error = t.error("ALTER TABLE dbo.t DROP CONSTRAINT pk_t")
    assert (error.number, error.severity) == (22979, 16)
    assert error.text.index("pk_t") < error.text.rindex("t")


def test_31_used_unique_index_cannot_be_dropped(db: Database) -> None:
    db.run("CREATE TABLE dbo.tab (id int PRIMARY KEY, k int NOT NULL) CREATE UNIQUE INDEX ux ON dbo.tab (k)")
    db.track("tab", index_name="ux")
    error = db.error("DROP INDEX ux ON dbo.tab")
    assert (error.number, error.severity) == (22983, 16)
    assert error.text.index("ux") < error.text.index("tab")


def test_31_used_unique_constraint_cannot_be_dropped(db: Database) -> None:
    db.run("CREATE TABLE dbo.tab (id int PRIMARY KEY, k int NOT NULL CONSTRAINT uq UNIQUE)")
    db.track("tab", index_name="uq")
    assert db.number("ALTER TABLE dbo.tab DROP CONSTRAINT uq") == 22979


def test_31_other_indexes_are_free(db: Database) -> None:
    db.run(
        "CREATE TABLE dbo.t (id int NOT NULL CONSTRAINT pk_t PRIMARY KEY, k int NOT NULL)"
        " CREATE UNIQUE INDEX ux ON dbo.t (k) CREATE INDEX ix ON dbo.t (k)"
    )
    db.track("t", index_name="ux")
    db.run("DROP INDEX ix ON dbo.t ALTER TABLE dbo.t DROP CONSTRAINT pk_t")
    left = db.run("SELECT name FROM sys.indexes WHERE object_id = OBJECT_ID('dbo.t') AND name IS NOT NULL")
    assert left == [("ux",)]


def test_e_primary_key_made_later_is_not_adopted(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int NOT NULL)")
    db.track("t")
    db.run("ALTER TABLE dbo.t ADD CONSTRAINT pk_t PRIMARY KEY (id)")
    assert db.run("SELECT index_name FROM cdc.change_tables") == [(None,)]
    assert db.run("SELECT * FROM cdc.index_columns") == []
    db.run("ALTER TABLE dbo.t DROP CONSTRAINT pk_t")


def test_e_dropped_table_takes_its_instances_along_memory(t: Database) -> None:
    t.run("CREATE TABLE dbo.u (id int)")
    t.track("u")
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)", "ALTER TABLE dbo.t ADD c int")
    t.run("DROP TABLE dbo.t")
    t.capture()
    assert t.run("SELECT capture_instance FROM cdc.change_tables") == [("dbo_u",)]
    assert t.run("SELECT DISTINCT object_id FROM cdc.captured_columns") == [
        (t.value("SELECT OBJECT_ID('cdc.dbo_u_CT')"),)
    ]
    assert t.run("SELECT * FROM cdc.ddl_history") == []
    assert t.number("SELECT * FROM cdc.dbo_t_CT") == 208
    assert t.changes(instance="dbo_u") == []


def test_e_orphaned_rows_stay_and_belong_to_no_instance(server: Server, t: Database) -> None:
    cdc = server.only_embedded("how rows are left behind there is not known").sandbox.cdc(t.name)
    t.commit("ALTER TABLE dbo.t ADD c int")
    source = t.value("SELECT OBJECT_ID('dbo.t')")
    orphan = cdc.plant_orphaned_ddl(source, "ALTER TABLE dbo.t ADD gone int")
    listed = "SELECT source_object_id, object_id, required_column_update, ddl_command FROM cdc.ddl_history"
    own = (source, t.value("SELECT object_id FROM cdc.change_tables"), False, "ALTER TABLE dbo.t ADD c int")
    left = (source, orphan, False, "ALTER TABLE dbo.t ADD gone int")
    assert t.run(f"{listed} ORDER BY ddl_lsn") == [own, left]
    assert t.run("SELECT 1 FROM cdc.change_tables AS c JOIN cdc.ddl_history AS h ON h.object_id = c.object_id") == [
        (1,)
    ]
    assert len(t.run("EXEC sys.sp_cdc_get_ddl_history 'dbo_t'")) == 1
    t.run("EXEC sys.sp_cdc_disable_table 'dbo', 't', 'all'")
    assert t.run(listed) == [left]
    t.run("EXEC sys.sp_cdc_disable_db EXEC sys.sp_cdc_enable_db")
    assert t.run(listed) == []


# Two instances


def test_e_ddl_before_an_instance_is_not_in_its_history(t: Database) -> None:
    # also where the capture comes to it only after the second instance is there
    t.stop_capture()
    t.run("ALTER TABLE dbo.t ADD c int NULL")
    t.track("t", capture_instance="v2")
    t.run("ALTER TABLE dbo.t ADD d int NULL")
    t.scan()
    listed = (
        "SELECT c.capture_instance, h.ddl_command FROM cdc.ddl_history AS h"
        " JOIN cdc.change_tables AS c ON c.object_id = h.object_id ORDER BY c.capture_instance, h.ddl_lsn"
    )
    second = ("v2", "ALTER TABLE dbo.t ADD d int NULL")
    assert t.run(listed) == [
        ("dbo_t", "ALTER TABLE dbo.t ADD c int NULL"),
        ("dbo_t", "ALTER TABLE dbo.t ADD d int NULL"),
        second,
    ]
    t.run("EXEC sys.sp_cdc_disable_table 'dbo', 't', 'dbo_t'")
    assert t.run(listed) == [second]
    assert t.run("SELECT COUNT(*) FROM cdc.ddl_history") == [(1,)]


def test_24_both_instances_capture_the_same_commits_from_the_newer_start(t: Database) -> None:
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)", "INSERT INTO dbo.t VALUES (2, 'y', 2)")
    t.track("t", capture_instance="v2", captured_column_list="id, b")
    t.commit(
        "UPDATE dbo.t SET b = 5 WHERE id = 1",
        "BEGIN TRAN INSERT INTO dbo.t VALUES (3, 'z', 3) DELETE FROM dbo.t WHERE id = 2 COMMIT",
        "UPDATE dbo.t SET a = 'n' WHERE id = 3",
    )
    start = t.value("SELECT start_lsn FROM cdc.change_tables WHERE capture_instance = 'v2'")
    commits = t.commits()
    assert commits[1] < start < commits[2]
    columns = "__$start_lsn, __$seqval, __$operation, id, b"
    new = [row for row in t.changes(columns) if row[0] >= start]
    assert [row[2:] for row in new] == [(3, 1, 1), (4, 1, 5), (2, 3, 3), (1, 2, 2), (3, 3, 3), (4, 3, 3)]
    # the last transaction changed no column of v2
    assert t.changes(columns, "v2") == new[:4]
    command_ids = [number for lsn, number in t.changes("__$start_lsn, __$command_id") if lsn >= start]
    assert command_ids[:4] == [1, 1, 1, 3]
    assert t.changes("__$command_id", "v2") == [(2,), (2,), (2,), (4,)]


def test_24_transaction_that_began_before_and_wrote_after_is_in_both(t: Database) -> None:
    early = t.connect()
    early.run("BEGIN TRAN SELECT COUNT(*) FROM sys.databases")
    t.track("t", capture_instance="v2")
    early.run("INSERT INTO dbo.t VALUES (1, 'x', 1) COMMIT")
    t.capture()
    columns = "__$start_lsn, __$end_lsn, __$seqval, __$operation, __$update_mask, id, a, b"
    assert t.changes(columns) == t.changes(columns, "v2")
    assert t.changes("id", "v2") == [(1,)]


def test_e_migration_by_a_second_instance_loses_nothing(t: Database) -> None:
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)", "ALTER TABLE dbo.t ADD c int NULL", "UPDATE dbo.t SET c = 1")
    t.track("t", capture_instance="v2")
    t.commit("UPDATE dbo.t SET c = 2, b = 2", "INSERT INTO dbo.t VALUES (2, 'y', 2, 2)")
    start = t.value("SELECT start_lsn FROM cdc.change_tables WHERE capture_instance = 'v2'")
    old = t.run(f"SELECT __$operation, id FROM cdc.dbo_t_CT WHERE __$start_lsn < {literal(start)}")
    assert old == [(2, 1)]
    assert t.changes("__$operation, id, b, c", "v2") == [(3, 1, 1, 1), (4, 1, 2, 2), (2, 2, 2, 2)]
    assert t.run("SELECT end_lsn FROM cdc.change_tables") == [(None,), (None,)]
    t.run("EXEC sys.sp_cdc_disable_table 'dbo', 't', 'dbo_t'")
    t.commit("DELETE FROM dbo.t WHERE id = 1")
    assert t.changes("__$operation, id, c", "v2")[-1:] == [(1, 1, 2)]
