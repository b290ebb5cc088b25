"""Whole loads beside replays and beside maintenance of their targets, compared in full with the model."""

from __future__ import annotations

import dataclasses
import json
import random
import threading

import pytest

from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.spec import ReplaySpec
from airflow_provider_mssql_cdc.spark.job import run
from airflow_provider_mssql_cdc.spark.load import TableLoad
from airflow_provider_mssql_cdc.spark.targets.iceberg import IcebergTable
from airflow_provider_mssql_cdc.spark.targets.parquet import MANIFESTS
from tests.support import histories
from tests.support.spark.kill_points import ABOUT_TO_COMMIT
from tests.support.spark.loads import Loads, check, prepare, write
from tests.support.spark.origin import positions
from tests.support.spark.stop import Stop

pytestmark = pytest.mark.xdist_group(__name__)

TABLE = "lab.items"
COMPACT = {
    "iceberg": (
        "CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))",
        "CALL lake.system.expire_snapshots(table => '{name}', older_than => TIMESTAMP '9999-01-01', retain_last => 1)",
    ),
    "delta": ("OPTIMIZE {table}",),
}
NOW = {
    "iceberg": "SELECT snapshot_id FROM {table}.history ORDER BY made_current_at DESC LIMIT 1",
    "delta": "DESCRIBE HISTORY {table} LIMIT 1",
}
ROLL_BACK = {
    "iceberg": "CALL lake.system.rollback_to_snapshot(table => '{name}', snapshot_id => {then})",
    "delta": "RESTORE TABLE {table} TO VERSION AS OF {then}",
}


class Setting:
    """A source with a history of its own, and loads of one table."""

    def __init__(self, origin, shapes) -> None:
        self.origin, self.rng = origin, random.Random(5)
        self.models = [histories.Model(h) for h in range(6)]
        prepare(origin)
        self.loads = Loads(origin, shapes, tables=("items",))

    def go_on(self) -> None:
        """Change the source, and let the capture see it."""
        write(self.origin, self.models, self.rng, 15)
        self.origin.wait_captured()

    def load(self) -> None:
        """Change the source, and load that."""
        self.go_on()
        assert self.loads.load()[1] is not None

    def check(self) -> None:
        check(self.loads, self.models)

    def sql(self, shape: str, statement: str, **given):
        """Run a statement over the target table of a shape."""
        table = self.origin.sql_name(TABLE, shape)
        name = ".".join(self.origin.target(TABLE, shape)[1:])
        return self.origin.spark.newSession().sql(statement.format(table=table, name=name, **given)).collect()

    def take_away(self, window: ReplaySpec) -> None:
        """Delete a window's rows from the history by hand."""
        origin, condition = self.origin, f"_lsn > '{window.after}' AND _lsn <= '{window.upto}'"
        before = len(self.loads.history("items"))
        if origin.format == "parquet":
            _, table = origin.target(TABLE, "history")
            for path in (origin.work_dir / table / MANIFESTS).glob("*.json"):
                manifest = json.loads(path.read_text())
                marker = manifest["marker"]
                # of the load, or of a replay
                if marker is None or marker["position"]["at"] == str(window.upto):
                    path.write_text(json.dumps({**manifest, "files": []}))
        elif origin.format == "postgresql":
            origin.warehouse.sql(
                f"DELETE FROM {origin.namespace}.{origin.target(TABLE, 'history')[-1]} WHERE {condition}"
            )
        else:
            self.sql("history", "DELETE FROM {table} WHERE " + condition)
        assert len(self.loads.history("items")) < before


OFTEN = ("postgresql",)


@pytest.mark.parametrize(
    "format_",
    [name if name in OFTEN else pytest.param(name, marks=pytest.mark.thorough) for name in ABOUT_TO_COMMIT],
)
def test_a_replay_and_a_load_that_meet_both_come_to_their_end(live, monkeypatch, request, format_):
    live.format = format_
    if format_ == "postgresql":
        live.into(request.getfixturevalue("postgresql"))
    setting = Setting(live, ("history",))
    setting.go_on()
    _, first = setting.loads.load()
    setting.go_on()
    _, second = setting.loads.load()
    (low, _), at = positions(first)["history"], positions(second)
    replay = ReplaySpec(low, at["history"][0])

    def replay_it() -> None:
        (table,) = live.load(live.table(TABLE, ("history",), at=at), upto=replay.upto, replay=replay).tables
        assert table.error is None

    # the replay is about to commit what a person has deleted when a load comes first
    setting.take_away(replay)
    with monkeypatch.context() as patched:
        stop = Stop(patched, ABOUT_TO_COMMIT[format_])
        with stop.meanwhile(replay_it):
            setting.load()
    setting.check()

    # the other way round, and another replay of the same window
    for other in (setting.load, replay_it):
        setting.take_away(replay)
        with monkeypatch.context() as patched:
            stop = Stop(patched, ABOUT_TO_COMMIT[format_])
            with stop.meanwhile(other):
                replay_it()
        setting.check()


@pytest.mark.thorough
@pytest.mark.parametrize("format_", ["iceberg", "delta"])
def test_loads_go_on_over_a_target_that_was_compacted_and_rolled_back(live, monkeypatch, format_):
    live.format = format_
    shapes = ("mirror", "history", "scd2")
    setting = Setting(live, shapes)
    moments = []
    for _ in range(3):
        setting.load()
        moments.append({shape: setting.sql(shape, NOW[format_])[0][0] for shape in shapes})

    # each goes back to a moment of its own
    for shape, moment in zip(shapes, (0, 1, 1), strict=True):
        setting.sql(shape, ROLL_BACK[format_], then=moments[moment][shape])
    setting.load()
    setting.check()

    for shape in shapes:
        for statement in COMPACT[format_]:
            setting.sql(shape, statement)
    setting.check()
    setting.load()
    setting.check()

    # beside a load that is about to commit
    with monkeypatch.context() as patched:
        stop = Stop(patched, ABOUT_TO_COMMIT[format_])
        with stop.meanwhile(setting.load):
            setting.sql("mirror", COMPACT[format_][0])
    setting.check()


def test_what_another_job_has_begun_meanwhile_gets_its_times(live, monkeypatch):
    """A mirror alone needs none, and what begins has an empty window until the other job's marker is found."""
    origin, shape = live, "transactions"

    def captured():
        origin.wait_captured()
        return origin.max_lsn()

    origin.sql("CREATE TABLE dbo.items (id int NOT NULL PRIMARY KEY, a int NULL)")
    origin.enable("dbo.items")
    origin.sql("INSERT INTO dbo.items VALUES (1, 1), (2, 2)")
    captured()
    at = {"mirror": positions(origin.load(origin.table("dbo.items", ("mirror",))))["mirror"]}
    origin.sql("UPDATE dbo.items SET a = 3 WHERE id = 1")
    begun_at = captured()
    reached, go = threading.Event(), threading.Event()
    fast_forward, stage = IcebergTable._fast_forward, TableLoad.stage_windows
    older = origin.spec(origin.table("dbo.items", (shape,)), upto=begun_at)
    beginning = threading.Thread(target=run, args=(origin.spark, older))

    def held(self, branch, state, part):
        if self._spec_id == older.id:
            reached.set()
            assert go.wait(60)
        return fast_forward(self, branch, state, part)

    def staged(self, windows, **given):
        # the newer one has looked, and found no marker
        go.set()
        beginning.join()
        return stage(self, windows, **given)

    monkeypatch.setattr(IcebergTable, "_fast_forward", held)
    monkeypatch.setattr(TableLoad, "stage_windows", staged)
    beginning.start()
    assert reached.wait(60)
    origin.sql("INSERT INTO dbo.items VALUES (3, 3)")
    origin.sql("UPDATE dbo.items SET a = 4 WHERE id = 1")
    last = captured()

    mirror, other = origin.table("dbo.items", ("mirror",), at=at), origin.table("dbo.items", (shape,))
    both = dataclasses.replace(mirror, sinks=(*mirror.sinks, *other.sinks))
    (done,) = origin.load(both, upto=last).tables

    assert done.failed == {}
    rows = sorted(origin.lake("dbo.items", shape), key=lambda row: row["_lsn"])
    mapped = origin.sql("SELECT start_lsn, tran_end_time FROM cdc.lsn_time_mapping")
    times = {str(Lsn(row["start_lsn"])): row["tran_end_time"] for row in mapped}
    assert len({row["_lsn"] for row in rows}) == len(rows) == 2
    assert [row["_commit_ts"] for row in rows] == [times[row["_lsn"]] for row in rows]
    assert None not in [row["_tran_id"] for row in rows]
