"""Capture instances that a load makes, or whose T-SQL a person runs: who may read them, and what hinders them."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable
from typing import Any

import pymssql
import pytest

from airflow_provider_mssql_cdc.core.exceptions import SqlServerError
from airflow_provider_mssql_cdc.core.proposal import made_instance
from airflow_provider_mssql_cdc.core.waiting import left_by_reset
from airflow_provider_mssql_cdc.hooks.connection import Row
from airflow_provider_mssql_cdc.operators.evolving import forget_unwanted, granted, make_instances
from airflow_provider_mssql_cdc.operators.intents import Intents
from airflow_provider_mssql_cdc.operators.planning import plan_load
from tests.operators.test_new_columns import PROPOSE, evolve, instances, plan_of, seen_group
from tests.support.hooks.source import CONN_ID, CountingHook, Source
from tests.support.operators.group import A, Group

MC2 = "cdc.dbo_a__mc2_CT"


@pytest.fixture
def group(source: Source) -> Group:
    """A table that was loaded and seen by a run, and has got a column since."""
    made = seen_group(source)
    made.change("ALTER TABLE dbo.a ADD note nvarchar(20)")
    return made


@pytest.fixture
def readers(group: Group) -> None:
    """Others who read the change table: two may, one of them not a column; one may a column of it, one is denied all,
    though he is a member of a role that may, and one reads another."""
    group.source.sql(
        """
        CREATE ROLE [it's readers]
        CREATE USER reporter WITHOUT LOGIN
        CREATE USER partly WITHOUT LOGIN
        CREATE USER denied WITHOUT LOGIN
        CREATE USER stranger WITHOUT LOGIN
        GRANT SELECT ON cdc.dbo_a_CT TO [it's readers]
        GRANT SELECT ON cdc.dbo_a_CT TO reporter WITH GRANT OPTION
        GRANT UPDATE ON cdc.dbo_a_CT TO stranger
        GRANT SELECT (id) ON cdc.dbo_a_CT TO partly
        DENY SELECT (v) ON cdc.dbo_a_CT TO reporter
        REVOKE SELECT (id) ON cdc.dbo_a_CT TO reporter
        ALTER ROLE [it's readers] ADD MEMBER denied
        DENY SELECT ON cdc.dbo_a_CT TO denied
        GRANT SELECT ON dbo.a TO stranger
        """
    )


def in_order(rows: Iterable[tuple[Any, ...]]) -> list[tuple[str, str, str | None]]:
    return sorted(rows, key=lambda row: (row[0], row[2] or "", row[1]))


def rights(group: Group, table: str = MC2) -> list[tuple[str, str, str | None]]:
    """Who may SELECT, or is denied it: the state, and the column."""
    rows = group.source.sql(
        "SELECT p.name, g.state, c.name FROM sys.database_permissions AS g"
        " JOIN sys.database_principals AS p ON p.principal_id = g.grantee_principal_id"
        " LEFT JOIN sys.columns AS c ON c.object_id = g.major_id AND c.column_id = g.minor_id"
        f" WHERE g.class = 1 AND g.type = 'SL' AND g.major_id = OBJECT_ID(N'{table}')"
    )
    return in_order(rows)


COPIED: list[tuple[str, str, str | None]] = [
    ("denied", "D", None),
    ("it's readers", "G", None),
    ("partly", "G", "id"),
    ("reporter", "G", None),
    ("reporter", "R", "id"),
    ("reporter", "D", "v"),
]


class Killed(BaseException):
    """The worker is gone."""


class Breaking(CountingHook):
    """A hook whose connection is lost, or whose login may not, at some statement.

    :ivar at: words of the statement; none where it goes on
    :ivar before: words of the one before which the worker is killed
    :ivar after: words of the one behind which it is
    """

    at = before = after = ""

    def _run(self, sql: str, parameters: object) -> list[list[Row]]:
        if self.at and self.at in sql:
            raise SqlServerError("the connection is gone.", number=20004)
        if self.before and self.before in sql:
            raise Killed
        found = super()._run(sql, parameters)
        if self.after and self.after in sql:
            raise Killed
        return found


def breaking(group: Group) -> Breaking:
    return Breaking(CONN_ID, connection=group.source.airflow_connection())


@pytest.mark.usefixtures("readers")
def test_the_statement_lets_those_read_who_read_the_old_change_table(group: Group) -> None:
    statement = plan_of(group, PROPOSE).new_instances[A].statement("stranger")
    for _ in range(2):
        # two tables' statements may be run as one batch
        assert group.source.sql(f"{statement}\n{statement}") == []
        assert rights(group) == [*COPIED, ("stranger", "G", None)]
    assert instances(group) == ["dbo_a", "dbo_a__mc2"]
    for user, error in (("denied", "permission was denied"), ("reporter", "")):
        as_user = f"EXECUTE AS USER = N'{user}' BEGIN TRY SELECT COUNT(*) FROM {MC2} WHERE 1 = 0 END TRY"
        ((found,),) = group.source.sql(f"{as_user} BEGIN CATCH SELECT ERROR_MESSAGE() END CATCH REVERT")
        assert error in str(found)
    # what was said of the new table since stands, but where the old one denies
    group.source.sql(f"DENY SELECT ON {MC2} TO [it's readers]; GRANT SELECT ON {MC2} TO denied")
    group.source.sql(f"REVOKE SELECT (v) ON {MC2} FROM reporter; DENY SELECT (id) ON {MC2} TO partly")
    assert group.source.sql(statement) == [("partly",)]
    changed = {("it's readers", "G", None): ("it's readers", "D", None), ("partly", "G", "id"): ("partly", "D", "id")}
    assert rights(group) == [*(changed.get(each, each) for each in COPIED), ("stranger", "G", None)]


def test_what_anybody_denies_nobody_elses_grant_gives(group: Group) -> None:
    """On the old change table both stand, one of each grantor; on the new one all would be by the same."""
    group.source.sql(
        """
        CREATE USER lead WITHOUT LOGIN
        CREATE USER p WITHOUT LOGIN
        CREATE USER q WITHOUT LOGIN
        CREATE USER r WITHOUT LOGIN
        GRANT SELECT ON cdc.dbo_a_CT TO lead WITH GRANT OPTION
        DENY SELECT ON cdc.dbo_a_CT TO p
        GRANT SELECT ON cdc.dbo_a_CT TO p AS lead
        GRANT SELECT ON cdc.dbo_a_CT TO q
        DENY SELECT (v) ON cdc.dbo_a_CT TO q
        GRANT SELECT (v) ON cdc.dbo_a_CT TO q AS lead
        GRANT SELECT ON cdc.dbo_a_CT TO r
        REVOKE SELECT (v) ON cdc.dbo_a_CT TO r
        GRANT SELECT (v) ON cdc.dbo_a_CT TO r AS lead
        """
    )
    statement = plan_of(group, PROPOSE).new_instances[A].statement("lead")
    for _ in range(2):
        assert group.source.sql(statement) == [], "all is copied"
        assert rights(group) == [
            ("lead", "G", None),
            ("p", "D", None),
            ("q", "G", None),
            ("q", "D", "v"),
            ("r", "G", None),
            ("r", "R", "v"),
        ]


@pytest.mark.usefixtures("readers")
def test_who_loads_gets_no_more_than_he_has(group: Group) -> None:
    """Not for a moment either; what he is denied on the new change table stands, too."""
    statement = plan_of(group, PROPOSE).new_instances[A].statement("denied")
    for _ in range(2):
        group.source.sql(statement)
        assert rights(group) == COPIED
    group.source.sql(f"REVOKE SELECT ON cdc.dbo_a_CT TO denied; DENY SELECT (id) ON {MC2} TO denied")
    group.source.sql(statement)
    assert rights(group) == in_order([*COPIED, ("denied", "D", "id")])


STEP = "EXEC (@do);"
SEEN = """
IF HAS_PERMS_BY_NAME(N'{table}', N'OBJECT', N'SELECT', N'{column}', N'COLUMN') = 1
BEGIN REVERT; INSERT INTO dbo.seen VALUES (N'{user}'); END ELSE REVERT;"""


@pytest.mark.usefixtures("readers")
def test_nobody_reads_for_a_moment_what_he_is_denied(group: Group) -> None:
    group.source.sql("CREATE TABLE dbo.seen (who nvarchar(128))")
    group.source.sql("GRANT SELECT ON cdc.dbo_a_CT TO stranger; DENY SELECT (v) ON cdc.dbo_a_CT TO [it's readers]")
    group.source.sql("ALTER ROLE [it's readers] ADD MEMBER stranger")
    statement = plan_of(group, PROPOSE).new_instances[A].statement("reporter")
    assert statement.count(STEP) == 1
    look = "".join(
        f"EXECUTE AS USER = N'{user}'; {SEEN.format(user=user, table=MC2, column=column)}"
        for user, column in (("denied", "id"), ("reporter", "v"), ("stranger", "v"), ("partly", "v"))
    )
    group.source.sql(statement.replace(STEP, STEP + look.replace("'", "''")))
    assert group.source.sql("SELECT DISTINCT who FROM dbo.seen") == []
    assert rights(group) == in_order([*COPIED, ("it's readers", "D", "v"), ("stranger", "G", None)])


@pytest.mark.usefixtures("readers")
def test_denials_of_columns_come_first_and_last(group: Group) -> None:
    """A grant on the whole table may take them away, also those that only the new one has."""
    statement = plan_of(group, PROPOSE).new_instances[A].statement("")
    group.source.sql("CREATE TABLE dbo.done (n int, command nvarchar(max))")
    noted = statement.replace(STEP, f"{STEP} INSERT INTO dbo.done VALUES (@n, @do);")
    done = []
    for _ in range(2):
        group.source.sql(noted)
        done.append(
            [
                command.replace("[cdc].[dbo_a__mc2_CT]", "new").replace("SELECT ", "")
                for (command,) in group.source.sql("SELECT command FROM dbo.done WHERE n > 0 ORDER BY n")
            ]
        )
        group.source.sql(
            f"DELETE dbo.done; GRANT SELECT ON cdc.dbo_a_CT TO partly; DENY SELECT (id) ON {MC2} TO partly"
        )
    assert done == [
        [
            "DENY ON new TO [denied]",
            "DENY ([v]) ON new TO [reporter]",
            "GRANT ON new TO [it's readers]",
            "GRANT ON new TO [reporter]",
            "GRANT ([id]) ON new TO [partly]",
            "REVOKE ([id]) ON new TO [reporter]",
            "DENY ([v]) ON new TO [reporter]",
        ],
        [
            "DENY ([id]) ON new TO [partly]",
            "DENY ([v]) ON new TO [reporter]",
            "GRANT ON new TO [partly]",
            "DENY ([id]) ON new TO [partly]",
            "DENY ([v]) ON new TO [reporter]",
        ],
    ]


@pytest.mark.usefixtures("readers")
def test_rights_are_copied_all_or_none(group: Group) -> None:
    """A batch that is killed, or fails, between two commands leaves nobody with more than he is to have."""
    statement = plan_of(group, PROPOSE).new_instances[A].statement("stranger")
    # a denial of a column comes twice
    for step in range(len(COPIED) + 3):
        with pytest.raises(pymssql.Error, match="Divide by zero"):
            group.source.sql(statement.replace(STEP, f"{STEP} IF @n = {step} SELECT 1 / 0;"))
        assert (rights(group), group.source.sql("SELECT @@TRANCOUNT")) == ([], [(0,)])
    group.source.sql(statement)
    assert rights(group) == [*COPIED, ("stranger", "G", None)]


def test_a_new_column_of_an_old_name_is_another_column(group: Group) -> None:
    """Who might read the one that was dropped may not read it by that; who might not, may not either."""
    group.source.sql(
        """
        CREATE USER p WITHOUT LOGIN
        CREATE USER q WITHOUT LOGIN
        GRANT SELECT (id, v, [__$start_lsn]) ON cdc.dbo_a_CT TO p
        GRANT SELECT ON cdc.dbo_a_CT TO q
        DENY SELECT (v) ON cdc.dbo_a_CT TO q
        """
    )
    group.change("ALTER TABLE dbo.a DROP COLUMN v; ALTER TABLE dbo.a ADD v int; INSERT INTO dbo.a (id) VALUES (3)")
    assert group.source.sql("EXEC sys.sp_cdc_enable_table N'dbo', N'a', N'dbo_a__mc2', @role_name = NULL") == []
    with breaking(group) as hook:
        ours = made_instance(plan_of(group, EVOLVE).feeds[A])
        assert ours is not None
        assert ours.columns == ("id", "note", "v")
        assert granted("", hook, ours, "made").text == (
            "made; q may read it as they read dbo_a; p, q got their rights on single columns of dbo_a; p have rights "
            "on dbo_a that were not copied: on columns that this one has not, or their own, which nobody may change"
        )
    assert rights(group) == [("p", "G", "__$start_lsn"), ("p", "G", "id"), ("q", "G", None), ("q", "D", "v")]


@pytest.mark.usefixtures("readers")
def test_rights_on_a_column_that_is_gone_are_told(group: Group) -> None:
    group.change("ALTER TABLE dbo.a DROP COLUMN v; INSERT INTO dbo.a (id) VALUES (3)")
    (said,) = evolve(group)
    assert said.endswith(
        "; partly, reporter got their rights on single columns of dbo_a; reporter have rights on dbo_a that were not "
        "copied: on columns that this one has not, or their own, which nobody may change"
    )
    assert rights(group) == [each for each in COPIED if each[2] != "v"]


@pytest.mark.usefixtures("readers")
def test_of_another_tables_instance_of_that_name_nobody_gets_rights(group: Group) -> None:
    group.source.sql("CREATE TABLE dbo.other (id int NOT NULL PRIMARY KEY)")
    group.source.sql("EXEC sys.sp_cdc_enable_table N'dbo', N'other', N'dbo_a__mc2', @role_name = NULL")
    proposed = plan_of(group, PROPOSE).new_instances[A]
    assert proposed.name == "dbo_a__mc3"
    # it was free as the statement was printed
    group.source.sql("EXEC sys.sp_cdc_enable_table N'dbo', N'other', N'dbo_a__mc3', @role_name = NULL")
    with pytest.raises(pymssql.Error, match="dbo_a__mc3"):
        group.source.sql(proposed.statement("stranger"))
    assert rights(group) == []
    (said,) = evolve(group)
    assert said.startswith("dbo.a: capture instance dbo_a__mc4 was made with note")


@pytest.mark.usefixtures("readers")
def test_a_load_that_makes_it_names_whose_rights_it_copied(group: Group) -> None:
    assert evolve(group) == [
        "dbo.a: capture instance dbo_a__mc2 was made with note; it's readers, reporter may read it as they read dbo_a; "
        "denied may not, as they may not read dbo_a; partly, reporter got their rights on single columns of dbo_a"
    ]
    assert rights(group) == COPIED


def test_a_login_grants_itself_nothing(group: Group) -> None:
    """SQL Server refuses that."""
    with group.reader() as hook:
        login = hook.where.login
        group.source.sql(f"ALTER ROLE db_owner ADD MEMBER [{login}]; GRANT SELECT ON cdc.dbo_a_CT TO [{login}]")
        group.source.sql(f"DENY SELECT (v) ON cdc.dbo_a_CT TO [{login}]")
        assert evolve(group, hook) == [
            f"dbo.a: capture instance dbo_a__mc2 was made with note; {login} have rights on dbo_a that were not "
            "copied: on columns that this one has not, or their own, which nobody may change"
        ]
    assert rights(group) == []


@pytest.mark.usefixtures("readers")
def test_a_grant_that_fails_is_told_as_such_and_given_by_the_next_run(group: Group) -> None:
    """The load sees no change table that it may not read, and asks for the instance again."""
    reader = group.reader("dbo_a_CT", "change_tables", "captured_columns", "index_columns", "lsn_time_mapping")
    group.source.sql(f"GRANT SELECT ON dbo.a TO [{reader.where.login}]; GRANT SELECT ON cdc.ddl_history TO public")
    said = []
    for at in ("DECLARE @all TABLE", "DECLARE @all TABLE", ""):
        with breaking(group) as admin, group.source.hook(reader.where.login, reader.where.password) as own:
            plan = plan_load(own, group.store, group.request({**PROPOSE, "on_schema_change": "evolve"}), None)
            plan.warnings.clear()
            admin.at = at
            make_instances(plan, admin, Intents(group.store, plan), lock_timeout=5.0)
            said += plan.warnings
    assert [text.partition(": IF EXISTS")[0] for text in said] == [
        "dbo.a: capture instance dbo_a__mc2 was made with note, and the GRANT of its change table failed: the "
        "connection is gone. The next run tries again; or run, as db_owner",
        "dbo.a: capture instance dbo_a__mc2 is there with note, and the GRANT of its change table failed: the "
        "connection is gone. The next run tries again; or run, as db_owner",
        "dbo.a: capture instance dbo_a__mc2 is there with note; it's readers, reporter may read it as they read dbo_a; "
        "denied may not, as they may not read dbo_a; partly, reporter got their rights on single columns of dbo_a",
    ]
    assert rights(group) == in_order([*COPIED, (reader.where.login, "G", None)])
    assert instances(group) == ["dbo_a", "dbo_a__mc2"]


EVOLVE = {**PROPOSE, "on_schema_change": "evolve"}


def evolving(group: Group, *, before: str = "", after: str = "", **said: Any) -> list[str]:
    """What a run says that makes instances as a load does, and is killed before or behind a statement."""
    with breaking(group) as hook:
        plan = plan_load(hook, group.store, group.request({**EVOLVE, **said}), None)
        plan.warnings.clear()
        intents = Intents(group.store, plan)
        forget_unwanted(plan, intents)
        hook.before, hook.after = before, after
        with pytest.raises(Killed) if before or after else contextlib.nullcontext():
            make_instances(plan, hook, intents, lock_timeout=5.0)
    return plan.warnings


def making(group: Group) -> tuple[str, tuple[str, ...]] | None:
    """What the checkpoint says of an instance that is about to be made."""
    stored = group.checkpoint(A)
    assert stored is not None
    return None if stored.making is None else (stored.making.instance, stored.making.columns)


@pytest.mark.usefixtures("readers")
@pytest.mark.parametrize(
    ("killed", "said"),
    [
        (
            {"before": "sp_cdc_enable_table"},
            "was made with note; it's readers, reporter may read it as they read dbo_a",
        ),
        (
            {"after": "sp_cdc_enable_table"},
            "is there with note, made by an earlier run; it's readers, reporter may read",
        ),
        ({"after": "DECLARE @all TABLE"}, "is there with note, made by an earlier run"),
    ],
    ids=["noted", "made", "granted"],
)
def test_the_next_run_ends_what_a_killed_one_has_begun(group: Group, killed: dict[str, str], said: str) -> None:
    """The load reads all of the schema cdc, so that it sees the instance at once, and asks for no other."""
    assert evolving(group, **killed) == []
    assert making(group) == ("dbo_a__mc2", ("note",))
    (text,) = evolving(group)
    assert text.startswith(f"dbo.a: capture instance dbo_a__mc2 {said}")
    assert (rights(group), making(group), instances(group)) == (COPIED, None, ["dbo_a", "dbo_a__mc2"])
    # what is said of the new change table from then on is left alone
    group.source.sql(f"REVOKE SELECT ON {MC2} FROM reporter")
    assert evolving(group) == []
    assert ("reporter", "G", None) not in rights(group)


def test_an_intent_stays_while_the_table_is_in_use(group: Group) -> None:
    since = set()
    with group.source.hook() as user:
        user.query("BEGIN TRAN UPDATE dbo.a SET v = 1")
        for _ in range(2):
            (said,) = evolve(group, lock_timeout=0.1)
            assert "is not made yet" in said
            stored = group.checkpoint(A)
            assert stored is not None
            assert stored.making is not None
            assert stored.making.instance == "dbo_a__mc2"
            since.add(stored.making.since)
        user.query("ROLLBACK")
    assert len(since) == 1
    assert evolve(group) == ["dbo.a: capture instance dbo_a__mc2 was made with note"]
    assert making(group) is None


@pytest.mark.parametrize("why", ["propose", "dropped", "reset"])
def test_an_intent_goes_once_it_is_not_wanted(group: Group, why: str) -> None:
    assert evolving(group, before="sp_cdc_enable_table") == []
    assert making(group) == ("dbo_a__mc2", ("note",))
    if why == "propose":
        evolving(group, on_schema_change="propose")
    elif why == "dropped":
        group.change("ALTER TABLE dbo.a DROP COLUMN note; INSERT INTO dbo.a (id) VALUES (4)")
        evolving(group)
    else:
        stored = group.checkpoint(A)
        assert stored is not None
        left = left_by_reset(dataclasses.replace(stored, waiting_ids=(9,)))
        assert left is not None
        group.store.overwrite(left)
    assert (making(group), instances(group)) == (None, ["dbo_a"])


@pytest.mark.usefixtures("readers")
def test_with_a_lost_checkpoint_ours_is_told_by_its_name(group: Group) -> None:
    """By ``mssql-cdc instances apply``; a load that has no intent leaves alone what is there."""
    assert evolving(group, after="sp_cdc_enable_table") == []
    stored = group.checkpoint(A)
    assert stored is not None
    group.store.overwrite(dataclasses.replace(stored, making=None))
    assert evolving(group) == []
    assert rights(group) == []
    with breaking(group) as hook:
        feeds = plan_of(group, EVOLVE).feeds[A]
        ours = made_instance(feeds)
        assert ours is not None
        assert (ours.name, ours.beside.name, ours.wanted) == ("dbo_a__mc2", "dbo_a", ("note",))
        assert granted("", hook, ours, "").done
    assert rights(group) == COPIED
