"""What a window looks up in its target is joined where the target is read: only matched rows are exchanged."""

import re

import pytest

from airflow_provider_mssql_cdc.core.marker import LAYOUT
from airflow_provider_mssql_cdc.core.position import Window
from airflow_provider_mssql_cdc.spark.session import table_session
from airflow_provider_mssql_cdc.spark.targets import Write
from tests.support.spark import model
from tests.support.spark.drawn import (
    DDL,
    WITHOUT_LOBS,
    before,
    draw,
    history_of,
    mirror_of,
    staged_as,
    staged_events,
    versions_of,
)
from tests.support.spark.plans import plans_of, scans, shuffled_scans
from tests.support.spark.rows import local

pytestmark = pytest.mark.xdist_group(__name__)

VERSIONS = ", _from_lsn STRING, _to_lsn STRING, _from_ts TIMESTAMP_NTZ, _to_ts TIMESTAMP_NTZ, _unknown ARRAY<STRING>"
SEED = 17


@pytest.fixture
def target(spark, namespace):
    """A maker of a table in Iceberg with these rows, as a window reads it."""
    name = f"lake.{namespace}.t"

    def make(session, rows, ddl):
        # no join is broadcast but by a hint, whatever Spark thinks of sizes
        session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
        session.conf.set("spark.sql.adaptive.autoBroadcastJoinThreshold", "-1")
        session.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{namespace}")
        session.sql(f"CREATE TABLE {name} ({ddl}) USING iceberg")
        local(session, rows, ddl).writeTo(name).append()
        return session.table(name)

    make.name = name
    yield make
    spark.sql(f"DROP TABLE IF EXISTS {name} PURGE")


def looked_up(session, target, write):
    """The columns of each scan of the target; none of them is exchanged before its join."""
    found = []
    for plan in plans_of(session, lambda: write().rows.collect()):
        assert not shuffled_scans(plan, target.name)
        for scan in scans(plan, target.name):
            columns = re.search(r"Output \[\d+\]: \[(.*?)\]\n", scan)[1]
            found.append(tuple(sorted(name.partition("#")[0] for name in columns.split(", "))))
    return found


def test_a_mirror_reads_key_and_lobs_of_what_cdc_left_out(spark, tmp_path, target):
    captures, low, high = draw(SEED)
    session = table_session(spark)
    window, staged = staged_events(session, tmp_path, captures, low, high)
    assert staged.count(window).unknown
    held = target(session, before(captures, low), DDL)

    found = looked_up(session, target, lambda: mirror_of().next(window, staged, held, ()))

    assert found
    assert set(found) == {("doc", "h", "id", "old text")}


@pytest.mark.parametrize("form", ["narrow", pytest.param("wide", marks=pytest.mark.thorough)])
def test_a_history_reads_its_images_of_the_keys_that_have_events(spark, tmp_path, target, form):
    captures, low, high = draw(SEED)
    session = table_session(spark)
    earlier, staged = staged_events(session, tmp_path / "earlier", captures, 0, low)
    history = history_of(form=form)
    rows = history.laid_out(Write(history.rows(earlier, staged, None)), LAYOUT).rows
    names = [column.name for column in history.columns()]
    ddl = ", ".join(f"`{column.name}` {column.type}" for column in history.columns())
    held = target(session, [tuple(row[name] for name in names) for row in rows.collect()], ddl)
    window, staged = staged_events(session, tmp_path / "now", captures, low, high)
    assert staged.count(window).unknown

    found = looked_up(session, target, lambda: history.next(window, staged, held, ()))

    assert found
    if form == "narrow":
        assert set(found) == {("_lsn", "_op", "_seq", "_unknown", "doc", "h", "id", "old text")}


def test_versions_that_end_are_read_with_all_that_they_keep(spark, tmp_path, target):
    captures, low, high = draw(SEED)
    session = table_session(spark)
    window, staged = staged_events(session, tmp_path, captures, low, high)
    held = target(
        session, [(*row, str(model.lsn(3)), None, None, None, []) for row in before(captures, low)], DDL + VERSIONS
    )

    found = looked_up(session, target, lambda: versions_of().next(window, staged, held, ()))

    lobs = ("_to_lsn", "_unknown", "doc", "h", "id", "old text")
    assert set(found) == {lobs, tuple(sorted({*held.columns} - {"_to_ts"}))}


def test_a_key_that_nobody_enforces_reads_the_images_that_tell_rows_apart(spark, tmp_path, target):
    captures, low, high = draw(SEED, enforced=False)
    session, window = table_session(spark), Window(model.lsn(low), model.lsn(high))
    table, staged = staged_as(WITHOUT_LOBS, session, tmp_path, model.raw_rows(captures, low, high), window)
    held = target(session, [row[:3] for row in before(captures, low)], "h INT, id INT, name STRING")

    found = looked_up(session, target, lambda: mirror_of(table).next(window, staged, held, ()))

    assert found
    assert set(found) == {("h", "id", "name")}


def test_the_check_sees_a_target_that_is_exchanged(spark, tmp_path, target):
    captures, low, _ = draw(SEED)
    session = table_session(spark)
    held = target(session, before(captures, low), DDL)
    others = local(session, [(1,)], "other INT")

    plans = plans_of(session, lambda: held.join(others, held["id"] == others["other"], "left_semi").collect())

    assert any(shuffled_scans(plan, target.name) for plan in plans)
