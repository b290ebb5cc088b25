"""Section A6: who may do what, and what the others are told."""

from __future__ import annotations

import pytest

from tests.support.conformance.client import Client, literal
from tests.support.conformance.database import ZERO, Database


def _function(db: Database, name: str = "fn_cdc_get_all_changes_dbo_t") -> str:
    low, high = (db.value("SELECT start_lsn FROM cdc.change_tables"), db.max_lsn())
    return f"SELECT id, a FROM cdc.{name}({literal(low)}, {literal(high)}, N'all') ORDER BY id"


@pytest.fixture
def gated(db: Database) -> Database:
    """A table whose changes the role gate may read, with one change."""
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY, a varchar(10), secret varchar(10))")
    db.track("t", role_name="gate", supports_net_changes=1)
    db.commit("INSERT INTO dbo.t VALUES (1, 'x', 's')")
    return db


def _literal_229(db: Database, client: Client, kind: str) -> None:
    error = client.error(_function(db, f"fn_cdc_get_{kind}_changes_dbo_t"))
    text = (
        f"The SELECT permission was denied on the object 'fn_cdc_get_{kind}_changes_...',"
        f" database '{db.name}', schema 'cdc'."
    )
    assert (error.number, error.severity, error.state, error.text) == (229, 14, 5, text)


@pytest.mark.parametrize("kind", ["all", "net"])
@pytest.mark.parametrize(
    "grants",
    [
        pytest.param(["GRANT SELECT ON dbo.t TO {user}"], id="not-in-the-role"),
        pytest.param(["ALTER ROLE gate ADD MEMBER {user}"], id="no-right-on-the-source"),
        pytest.param(
            ["ALTER ROLE gate ADD MEMBER {user}", "GRANT SELECT ON dbo.t (id, a) TO {user}"],
            id="no-right-on-a-column",
        ),
    ],
)
def test_44_denied_with_the_literal_function_name(gated: Database, kind: str, grants: list[str]) -> None:
    user = gated.user("GRANT SELECT ON SCHEMA::cdc TO {user}", *grants)
    _literal_229(gated, user, kind)


def test_44_no_right_on_the_function_names_it_memory(gated: Database) -> None:
    error = gated.user().error(_function(gated))
    assert (error.number, error.severity, error.state) == (229, 14, 5)
    assert "'fn_cdc_get_all_changes_dbo_t'" in error.text


@pytest.mark.parametrize("kind", ["all", "net"])
def test_a6_member_with_select_on_the_source_may_read(gated: Database, kind: str) -> None:
    # the role was granted the functions when the table was enabled
    user = gated.user("ALTER ROLE gate ADD MEMBER {user}", "GRANT SELECT ON dbo.t TO {user}")
    assert user.run(_function(gated, f"fn_cdc_get_{kind}_changes_dbo_t")) == [(1, "x")]
    assert user.value("SELECT sys.fn_cdc_get_min_lsn('dbo_t')") == gated.min_lsn()


def test_a6_db_owner_needs_no_role(gated: Database) -> None:
    user = gated.user("ALTER ROLE db_owner ADD MEMBER {user}")
    assert user.run(_function(gated)) == [(1, "x")]


def test_a6_without_a_role_select_on_the_source_is_enough(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY, a varchar(10))")
    db.track("t")
    db.commit("INSERT INTO dbo.t VALUES (1, 'x')")
    user = db.user("GRANT SELECT ON dbo.t TO {user}", "GRANT SELECT ON SCHEMA::cdc TO {user}")
    assert user.run(_function(db)) == [(1, "x")]
    stranger = db.user("GRANT SELECT ON SCHEMA::cdc TO {user}")
    _literal_229(db, stranger, "all")


def test_a6_select_on_the_captured_columns_is_enough(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY, a varchar(10), secret int)")
    db.track("t", captured_column_list="id, a")
    db.commit("INSERT INTO dbo.t VALUES (1, 'x', 7)")
    user = db.user("GRANT SELECT ON dbo.t (id, a) TO {user}", "GRANT SELECT ON SCHEMA::cdc TO {user}")
    assert user.run(_function(db)) == [(1, "x")]


def test_a6_change_table_needs_a_plain_grant_and_bypasses_the_gate(gated: Database) -> None:
    user = gated.user()
    error = user.error("SELECT * FROM cdc.dbo_t_CT")
    text = f"The SELECT permission was denied on the object 'dbo_t_CT', database '{gated.name}', schema 'cdc'."
    assert (error.number, error.severity, error.state, error.text) == (229, 14, 5, text)
    granted = gated.user("GRANT SELECT ON cdc.dbo_t_CT TO {user}")
    assert granted.run("SELECT id, a, secret FROM cdc.dbo_t_CT") == [(1, "x", "s")]


def test_a6_a_new_change_table_has_none_of_the_grants_of_another_memory(t: Database) -> None:
    user = t.user("GRANT SELECT ON cdc.dbo_t_CT TO {user}", "GRANT SELECT ON dbo.t TO {user}")
    t.track("t", capture_instance="v2")
    t.commit("INSERT INTO dbo.t VALUES (1, 'x', 1)")
    assert user.run("SELECT id FROM cdc.dbo_t_CT") == [(1,)]
    assert user.number("SELECT id FROM cdc.v2_CT") == 229
    t.run("EXEC sys.sp_cdc_disable_table 'dbo', 't', 'dbo_t'")
    t.track("t")
    assert user.number("SELECT id FROM cdc.dbo_t_CT") == 229
    # what was granted on more than the table itself holds
    t.run(f"GRANT SELECT ON SCHEMA::cdc TO {user.value('SELECT USER_NAME()')}")
    assert user.run("SELECT id FROM cdc.v2_CT") == [(1,)]
    assert user.run("SELECT id FROM cdc.dbo_t_CT") == []


def test_a6_grants_go_with_what_is_dropped_or_moved(t: Database) -> None:
    t.run("CREATE SCHEMA moved")
    t.run("CREATE TABLE dbo.u (id int, b int)")
    user = t.user("GRANT SELECT ON dbo.u (id) TO {user}", "GRANT SELECT ON cdc.dbo_t_CT TO {user}")
    t.run("EXEC sp_rename 'dbo.u', 'w' EXEC sp_rename 'dbo.w.id', 'number', 'COLUMN'")
    assert user.value("SELECT HAS_PERMS_BY_NAME('dbo.w', 'OBJECT', 'SELECT', 'number', 'COLUMN')") == 1
    t.run("ALTER SCHEMA moved TRANSFER dbo.w")
    assert not user.value("SELECT HAS_PERMS_BY_NAME('moved.w', 'OBJECT', 'SELECT', 'number', 'COLUMN')")
    t.run("DROP TABLE dbo.t CREATE TABLE dbo.t (id int PRIMARY KEY)")
    t.track("t")
    assert user.number("SELECT * FROM cdc.dbo_t_CT") == 229


def test_9_45_who_may_not_read_is_not_shown_the_instance(gated: Database) -> None:
    user = gated.user("GRANT SELECT ON dbo.t TO {user}")
    assert user.value("SELECT sys.fn_cdc_get_min_lsn('dbo_t')") == ZERO
    assert user.value("SELECT sys.fn_cdc_get_max_lsn()") == gated.max_lsn()
    assert user.run("EXEC sys.sp_cdc_help_change_data_capture") == []
    for procedure in ("sp_cdc_get_captured_columns", "sp_cdc_get_ddl_history"):
        error = user.error(f"EXEC sys.{procedure} 'dbo_t'")
        assert (error.number, error.text) == (22981, "Object does not exist or access is denied.")


def test_45_others_are_shown_what_they_may_read(gated: Database) -> None:
    gated.run("CREATE TABLE dbo.free (id int PRIMARY KEY)")
    gated.track("free")
    user = gated.user("GRANT SELECT ON dbo.free TO {user}")
    assert [row[2] for row in user.run("EXEC sys.sp_cdc_help_change_data_capture")] == ["dbo_free"]
    member = gated.user("ALTER ROLE gate ADD MEMBER {user}", "GRANT SELECT ON SCHEMA::dbo TO {user}")
    shown = [row[2] for row in member.run("EXEC sys.sp_cdc_help_change_data_capture")]
    assert sorted(shown) == ["dbo_free", "dbo_t"]
    assert [row[3] for row in member.run("EXEC sys.sp_cdc_get_captured_columns 'dbo_t'")] == ["id", "a", "secret"]
    assert member.run("EXEC sys.sp_cdc_get_ddl_history 'dbo_t'") == []


@pytest.mark.parametrize("membership", [[], ["ALTER ROLE db_owner ADD MEMBER {user}"]])
@pytest.mark.parametrize("procedure", ["sp_cdc_enable_db", "sp_cdc_disable_db"])
def test_43_database_needs_a_sysadmin(db: Database, membership: list[str], procedure: str) -> None:
    error = db.user(*membership).error(f"EXEC sys.{procedure}")
    assert (error.number, error.severity, error.state) == (22902, 16, 1)
    assert db.value("SELECT is_cdc_enabled FROM sys.databases WHERE name = DB_NAME()") is True


_OWNERS_CALLS = [
    "sp_cdc_enable_table 'dbo', 't', @role_name = NULL, @capture_instance = 'second'",
    "sp_cdc_disable_table 'dbo', 't', 'all'",
    "sp_cdc_help_jobs",
    "sp_cdc_add_job 'capture'",
    "sp_cdc_change_job @maxtrans = 7",
    "sp_cdc_drop_job 'cleanup'",
    "sp_cdc_stop_job",
    "sp_cdc_start_job 'cleanup'",
    "sp_cdc_cleanup_change_table 'dbo_t', NULL",
]


@pytest.mark.parametrize("call", _OWNERS_CALLS)
def test_43_tables_jobs_and_cleanup_need_db_owner(t: Database, call: str) -> None:
    before = t.run("SELECT capture_instance FROM cdc.change_tables"), t.run("EXEC sys.sp_cdc_help_jobs")
    error = t.user("GRANT SELECT ON SCHEMA::dbo TO {user}").error(f"EXEC sys.{call}")
    assert (error.number, error.severity, error.state) == (22904, 16, 1)
    assert (t.run("SELECT capture_instance FROM cdc.change_tables"), t.run("EXEC sys.sp_cdc_help_jobs")) == before


def test_43_the_right_is_asked_for_before_anything_else(plain: Database) -> None:
    # the order in the procedure's text: caller, then database, then table
    assert plain.user().number("EXEC sys.sp_cdc_enable_table 'dbo', 'nosuch', @role_name = NULL") == 22904


def test_a6_db_owner_may_track_tables(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    owner = db.user("ALTER ROLE db_owner ADD MEMBER {user}")
    owner.run("EXEC sys.sp_cdc_enable_table 'dbo', 't', @role_name = NULL")
    assert db.run("SELECT capture_instance FROM cdc.change_tables") == [("dbo_t",)]
    owner.run("EXEC sys.sp_cdc_disable_table 'dbo', 't', 'all'")
    assert db.run("SELECT capture_instance FROM cdc.change_tables") == []


def test_a6_ddl_while_cdc_is_on_needs_a_ddl_role(db: Database) -> None:
    db.run("CREATE TABLE dbo.t (id int PRIMARY KEY)")
    user = db.user("GRANT ALTER ON SCHEMA::dbo TO {user}")
    assert user.number("ALTER TABLE dbo.t ADD a int") == 22914
    user = db.user("ALTER ROLE db_ddladmin ADD MEMBER {user}")
    user.run("ALTER TABLE dbo.t ADD a int")
    assert db.names("SELECT * FROM dbo.t") == ["id", "a"]


@pytest.mark.parametrize("view", ["dm_cdc_log_scan_sessions", "dm_cdc_errors"])
def test_a5_views_need_the_state_permission_memory(t: Database, view: str) -> None:
    user = t.user()
    # 262 of severity 14 comes first, and the driver keeps the number of the highest
    assert user.number(f"SELECT * FROM sys.{view}") == 297
    assert [message.severity for message in user.messages] == [14, 16]
    assert t.run(f"SELECT * FROM sys.{view} WHERE session_id = -1") == []


@pytest.mark.parametrize("view", ["dm_cdc_log_scan_sessions", "dm_cdc_errors"])
def test_a5_views_with_the_state_permission(t: Database, view: str) -> None:
    right = "VIEW DATABASE PERFORMANCE STATE" if t.major() >= 16 else "VIEW DATABASE STATE"
    assert t.user(f"GRANT {right} TO {{user}}").run(f"SELECT * FROM sys.{view} WHERE session_id = -1") == []


def test_a6_change_tables_needs_a_plain_grant(gated: Database) -> None:
    user = gated.user("ALTER ROLE gate ADD MEMBER {user}", "GRANT SELECT ON dbo.t TO {user}")
    error = user.error("SELECT COUNT(*) FROM cdc.change_tables")
    text = f"The SELECT permission was denied on the object 'change_tables', database '{gated.name}', schema 'cdc'."
    assert (error.number, error.text) == (229, text)
    reader = gated.user("GRANT SELECT ON SCHEMA::cdc TO {user}")
    assert reader.value("SELECT COUNT(*) FROM cdc.change_tables") == 1


@pytest.mark.parametrize("table", ["captured_columns", "index_columns", "ddl_history", "lsn_time_mapping"])
def test_a6_metadata_tables_need_a_plain_grant_memory(t: Database, table: str) -> None:
    user = t.user()
    assert user.number(f"SELECT COUNT(*) FROM cdc.{table}") == 229
    assert user.run(f"SELECT name FROM sys.tables WHERE name = '{table}'") == []


@pytest.mark.parametrize("table", ["cdc_jobs", "sysjobs", "sysjobactivity"])
def test_a6_jobs_need_a_grant_in_msdb_memory(t: Database, table: str) -> None:
    assert t.user().number(f"SELECT COUNT(*) FROM msdb.dbo.{table}") == 229


def test_g_services_need_the_state_permission_memory(t: Database) -> None:
    services = "SELECT COUNT(*) FROM sys.dm_server_services"
    assert t.user().number(services) == 300
    user = t.user()
    t.run(f"USE master GRANT VIEW SERVER STATE TO {user.value('SELECT SUSER_SNAME()')} USE {t.name}")
    assert user.value(services) > 0


@pytest.mark.parametrize("view", ["dm_tran_locks", "dm_tran_active_transactions"])
def test_g_locks_and_transactions_need_the_state_permission_memory(t: Database, view: str) -> None:
    user, statement = t.user(), f"SELECT COUNT(*) FROM sys.{view}"
    assert user.number(statement) == 300
    t.run(f"USE master GRANT VIEW SERVER STATE TO {user.value('SELECT SUSER_SNAME()')} USE {t.name}")
    assert user.value(statement) >= 0


def test_a6_database_options_need_a_right_memory(t: Database) -> None:
    user = t.user()
    assert user.number("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON") == 5069
    assert [message.severity for message in user.messages] == [14, 16]


def test_rights_on_a_schema_end_with_it(plain: Database) -> None:
    plain.run("CREATE SCHEMA s")
    user = plain.user("GRANT SELECT ON SCHEMA::s TO {user}")
    plain.run("DROP SCHEMA s")
    plain.run("CREATE SCHEMA s")
    plain.run("CREATE TABLE s.u (id int)")
    assert user.number("SELECT id FROM s.u") == 229
