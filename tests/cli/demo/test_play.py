from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import psutil
import pytest

from airflow_provider_mssql_cdc.cli import main
from airflow_provider_mssql_cdc.cli.demo import (
    airflow_home,
    command,
    copying,
    lake,
    play,
    postgres,
    report,
    schema_change,
    shop,
    targets,
    tracking,
)

COMMAND = str(Path(sys.executable).with_name("mssql-cdc"))
MARK = "MSSQL_CDC_TEST_MARK"
PAUSE = threading.Event()
"""Between two looks at all processes, which would else take a core from those that are looked for."""


def start_demo(*words, **variables):
    """Start the command; all processes that descend from it carry a mark, wherever they go."""
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        [COMMAND, "demo", *words],
        env={**os.environ, **variables, MARK: mark},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return process, mark


def left_over(mark):
    """The command lines of all living processes with this mark."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.cmdline())
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


@pytest.fixture
def mark(tmp_path, monkeypatch):
    """The mark of all processes that the test's demo starts. A DAG run that comes to no end tells where it stands."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    monkeypatch.setenv("PYTHONFAULTHANDLER", "1")

    def abort():
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if process.environ().get(MARK) == mark and airflow_home.RUNNER in process.cmdline():
                    process.send_signal(signal.SIGABRT)

    timer = threading.Timer(1200, abort)
    timer.start()
    yield mark
    timer.cancel()
    for log in tmp_path.rglob("airflow.log"):
        print("\n".join(log.read_text(errors="replace").splitlines()[-150:]))


@pytest.mark.xdist_group("airflow")
@pytest.mark.timeout(1800)
@pytest.mark.in_turn
def test_whatever_is_killed_both_sides_are_equal_and_one_corrupted_cell_of_the_lake_is_found(
    tmp_path, monkeypatch, capsys, own_handlers, mark
):
    kept, summary, as_loaded = tmp_path / "kept", tmp_path / "summary.json", []
    compare = play.Demo.compare

    def compare_twice(demo):
        as_loaded.extend(compare(demo))
        demo.reader = "tests.support.cli.demo.corrupted_lake"
        return compare(demo)

    monkeypatch.setattr(play.Demo, "compare", compare_twice)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    words = ["--scenario", "crash", "--rows", "2000", "--json", str(summary), "--keep", str(kept)]
    code = main(["demo", *words])
    out, err = capsys.readouterr()
    assert (code, err) == (1, ""), out + err
    assert left_over(mark) == []

    tables = {table["table"]: table for table in as_loaded}
    assert {name: table["equal"] for name, table in tables.items()} == {table.full_name: True for table in shop.TABLES}
    assert command.conclude(as_loaded, report.Reporter(io.StringIO()), 1.0) == 0
    for table in tables.values():
        assert table["copied"] > 0
        assert table["differences"] == []
        assert table["history_events"] > 0
    result = json.loads(summary.read_text())
    (different,) = [table for table in result["tables"] if not table["equal"]]
    assert different["table"] == "sales.orders"
    (difference,) = different["differences"]
    assert "amount is Decimal(" in difference
    assert result["scenario"] == "crash"
    # the first one and the last one; of those that were killed, what the lake has of them is told
    first, last = result["runs"]
    # the run that was killed after its commits counts, though its checkpoints never moved: the last one tells of it
    assert len(last["tables"]) == len(shop.TABLES)
    for table in last["tables"]:
        killed, own = (window.strip("(]").split(", ") for window in table["windows"])
        assert killed[1] == own[0] > first["upto"]
        assert own[1] == last["upto"]
    assert result["seconds"] > 0
    log = (kept / "logs" / "airflow.log").read_text()
    assert "Cannot execute: spark-submit" in log
    # the shop changed again, so that there was a window, only when the sensor had found nothing and waited
    assert "Spark was killed in mid-window" in out
    assert f"The {len(shop.TABLES)} checkpoints are those of the first load" in out

    lines = out.splitlines()
    assert lines[-1].startswith("DIFFERENT: sales.orders (")
    assert not any("\x1b" in line for line in lines)
    assert (kept / "lake" / "shop" / "sales_orders" / "metadata").is_dir()
    look = next(line for line in lines if line.endswith("mssql-cdc checkpoint list"))
    listed = subprocess.run(look, shell=True, capture_output=True, text=True, check=True, env=clean_environment())
    assert {line.split()[2] for line in listed.stdout.splitlines() if " -> " in line} == set(tables)


def clean_environment():
    """This process's environment without its Airflow, and with the commands that the demo names on the PATH."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    return {**inherited, "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))}


@pytest.mark.thorough
@pytest.mark.xdist_group("airflow")
@pytest.mark.timeout(1800)
def test_one_table_goes_into_every_target_and_shape_and_one_corrupted_cell_is_found(
    tmp_path, monkeypatch, capsys, own_handlers, mark
):
    kept, summary, corrupted = tmp_path / "kept", tmp_path / "summary.json", {}
    compare = targets.Targets.compare

    def corrupt_and_compare(demo):
        corrupted.update(corrupt(demo.postgres))
        results = compare(demo)
        if demo.postgres is not None:
            assert files_with(demo.postgres.password, tmp_path) == []
        return results

    monkeypatch.setattr(targets.Targets, "compare", corrupt_and_compare)
    words = ["--scenario", "targets", "--rows", "200", "--json", str(summary), "--keep", str(kept)]
    code = main(["demo", *words])
    out, err = capsys.readouterr()
    # one that found no PostgreSQL has nothing corrupted
    assert (code, err) == (1 if corrupted else 0, ""), out + err
    assert left_over(mark) == []

    result = json.loads(summary.read_text())
    assert result.keys() == {"scenario", "tables", "left_out", "seconds", "runs"}
    assert result["scenario"] == "targets"
    assert result["left_out"] == ({"postgresql": postgres.missing()} if postgres.missing() else {})
    sinks = {(each["target"], each["shape"]): each for each in result["tables"]}
    loaded = [target for target in targets.SHAPES if target not in result["left_out"]]
    assert [*sinks] == [(target, shape) for target in loaded for shape in targets.SHAPES[target]]
    assert {sink for sink, each in sinks.items() if not each["equal"]} == corrupted.keys()
    for sink, each in sinks.items():
        assert each["table"] == "sales.orders"
        assert len(each["differences"]) == (sink in corrupted)
        # a first load beside which nothing changes has no window
        assert each["windows"] in (1, 2)
        assert min(each[count] for count in ("copied", "inserted", "updated", "deleted")) > 0
    rows = {sink: each["rows"] for sink, each in sinks.items()}
    assert rows["iceberg", "history"] > rows["iceberg", "scd2"] > rows["iceberg", "mirror"] > 0
    assert [run["load"] for run in result["runs"]] == loaded * 2
    assert len({run["upto"] for run in result["runs"]}) == 2, "all targets go to the same cut"

    lines = out.splitlines()
    for sink, begins in corrupted.items():
        (difference,) = sinks[sink]["differences"]
        assert difference.startswith(begins)
        assert f"sales.orders {' '.join(sink)}: {difference}" in lines
        assert lines[-1].startswith(f"DIFFERENT: sales.orders {' '.join(sink)} (")
    # the counts of a target's loads stand in its first line
    counts = {tuple(line.split()[1:3]): len(line.split()) for line in lines if line.startswith("sales.orders ")}
    assert [sink for sink in sinks if counts[sink] == 12] == [(target, targets.SHAPES[target][0]) for target in loaded]
    assert (kept / "lake" / "delta" / "sales_orders" / "_delta_log").is_dir()


@pytest.mark.thorough
@pytest.mark.xdist_group("airflow")
@pytest.mark.timeout(1800)
def test_a_big_table_is_copied_over_many_runs_and_a_gap_heals_and_one_corrupted_cell_is_found(
    tmp_path, monkeypatch, capsys, own_handlers, mark
):
    kept, summary, as_loaded = tmp_path / "kept", tmp_path / "summary.json", []
    compare = copying.Copying.compare

    def compare_twice(demo):
        as_loaded.extend(compare(demo))
        key, ((operation, row), *others) = next(iter(demo.visitors.events.items()))
        demo.visitors.events[key] = [(operation, (*row[:-1], "elsewhere")), *others]
        return compare(demo)

    monkeypatch.setattr(copying.Copying, "compare", compare_twice)
    words = ["--scenario", "copy", "--rows", "8000", "--json", str(summary), "--keep", str(kept)]
    code = main(["demo", *words])
    out, err = capsys.readouterr()
    assert (code, err) == (1, ""), out + err
    assert left_over(mark) == []
    ((equal,), (different,)) = as_loaded, json.loads(summary.read_text())["tables"]
    assert (equal["equal"], equal["differences"], different["equal"]) == (True, [], False)
    assert all("referrer is" in difference for difference in different["differences"])
    events = [event["event"] for run in json.loads(summary.read_text())["runs"] for event in run["copies"]]
    assert [event for event in events if event != "IN_PROGRESS"] == [
        "STARTED", "PAUSED", "RESUMED", "TABLE_SCAN_COMPLETED", "COMPLETED",
        "STARTED", "TABLE_SCAN_COMPLETED", "COMPLETED",
    ]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.xdist_group("airflow")
@pytest.mark.timeout(1800)
def test_columns_come_and_go_while_a_writer_writes_and_one_corrupted_cell_is_found(
    tmp_path, monkeypatch, capsys, own_handlers, mark
):
    summary, as_loaded = tmp_path / "summary.json", []
    compare = schema_change.SchemaChange.compare

    def compare_twice(demo):
        as_loaded.extend(compare(demo))
        demo.reader = "tests.support.cli.demo.corrupted_members"
        if demo.postgres is not None:
            demo.postgres.read("UPDATE shop.sales_members SET credit = credit + 0.01 WHERE member_id = 3 RETURNING 1")
        return compare(demo)

    monkeypatch.setattr(schema_change.SchemaChange, "compare", compare_twice)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    words = ["--scenario", "schema-change", "--rows", "2000", "--json", str(summary), "--keep", str(tmp_path / "kept")]
    code = main(["demo", *words])
    out, err = capsys.readouterr()
    assert (code, err) == (1, ""), out + err
    assert left_over(mark) == []
    assert [each["differences"] for each in as_loaded] == [[]] * len(as_loaded)
    assert all(each["equal"] for each in as_loaded)

    result = json.loads(summary.read_text())
    left_out = {"postgresql"} if postgres.missing() else set()
    differences = {(each["target"], each["shape"]): each["differences"] for each in result["tables"]}
    shapes = schema_change.SchemaChange.shapes
    assert [*differences] == [(name, shape) for name in shapes if name not in left_out for shape in shapes[name]]
    found = {sink: each[0] for sink, each in differences.items() if each}
    assert found.keys() == {(target, "mirror") for target in shapes if target not in left_out}
    for target, column in {"iceberg": "email", "postgresql": "credit"}.items():
        if target not in left_out:
            assert re.match(rf"rows: member_id \d+: {column} is ", found[target, "mirror"])
    assert "capture instance sales_members__mc2 was made with email, credit" in out
    assert "goes over from capture instance sales_members to sales_members__mc2" in out
    assert "column points was int(4,10,0), and is bigint(8,19,0)" in out
    for line in (
        r"Capture instance sales_members__mc2 begins at 0x\w+: .*, email, credit$",
        r"iceberg had [\d,]+ rows$",
    ):
        assert re.search(line, out, re.MULTILINE)


@pytest.mark.thorough
@pytest.mark.xdist_group("airflow")
@pytest.mark.timeout(1800)
def test_an_express_edition_is_loaded_and_a_gap_is_healed_and_one_corrupted_cell_is_found(
    tmp_path, monkeypatch, capsys, own_handlers, mark
):
    summary, as_loaded = tmp_path / "summary.json", []
    compare = tracking.Tracking.compare

    def compare_twice(demo):
        as_loaded.extend(compare(demo))
        demo.reader = "tests.support.cli.demo.corrupted_visits"
        return compare(demo)

    monkeypatch.setattr(tracking.Tracking, "compare", compare_twice)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    words = [
        "--scenario",
        "change-tracking",
        "--rows",
        "2000",
        "--json",
        str(summary),
        "--keep",
        str(tmp_path / "kept"),
    ]
    code = main(["demo", *words])
    out, err = capsys.readouterr()
    assert (code, err) == (1, ""), out + err
    assert left_over(mark) == []
    assert [each["differences"] for each in as_loaded] == [[]] * 5
    result = json.loads(summary.read_text())
    found = {each["table"]: each["differences"] for each in result["tables"] if each["differences"]}
    assert found.keys() == {"web.visits"}
    assert re.match(r"mirror: visit_id \d+: referrer is ", found["web.visits"][0])
    (healed,) = [run["healed"] for run in result["runs"] if "healed" in run]
    assert 0 < healed["read"] < 1000
    assert f"{healed['read']:,} of 2," in out


def files_with(text, folder):
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def corrupt(server):
    """Change one cell, if there is such a target; return where, and how the difference that it makes begins."""
    if server is None:
        return {}
    changed = server.read(
        "UPDATE shop.sales_orders SET amount = amount + 0.0001"
        " WHERE order_id = (SELECT MIN(order_id) FROM shop.sales_orders) RETURNING order_id"
    )
    (order_id,) = changed.column("order_id").to_pylist()
    return {("postgresql", "mirror"): f"rows: order_id {order_id}: amount is Decimal("}


@pytest.mark.xdist_group("airflow")
def test_an_interrupt_during_the_load_leaves_no_process_and_no_file_behind(tmp_path):
    process, mark = start_demo("--rows", "200", TMPDIR=str(tmp_path))
    while not any("org.apache.spark.deploy.SparkSubmit" in words for words in left_over(mark)):
        assert process.poll() is None, process.communicate()
        PAUSE.wait(0.2)
    assert list(tmp_path.rglob("*.properties")), "the file with the password, for as long as Spark runs"
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate()
    assert (process.returncode, err) == (130, "mssql-cdc demo: interrupted\n")
    assert left_over(mark) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["Shop database", "Airflow"])
def test_an_interrupt_before_the_first_run_leaves_no_process_behind(step):
    process, mark = start_demo("--rows", "20000")
    while not process.stdout.readline().startswith(step):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert (process.returncode, err) == (130, "mssql-cdc demo: interrupted\n")
    assert left_over(mark) == []


def test_what_a_killed_demo_has_started_ends_by_itself(tmp_path):
    process, mark = start_demo("--rows", "200", TMPDIR=str(tmp_path))
    while not process.stdout.readline().startswith("Airflow"):
        assert process.poll() is None
    assert len(left_over(mark)) == 2
    process.kill()
    process.communicate()
    while left_over(mark):
        PAUSE.wait(0.2)


def test_missing_java_is_one_line(tmp_path):
    done = subprocess.run(
        [COMMAND, "demo"], env={**os.environ, "JAVA_HOME": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("mssql-cdc demo: Spark needs Java 17 or 21: ")
    assert done.stderr.count("\n") == 1


def test_a_summary_that_cannot_be_written_is_refused_at_once(tmp_path):
    words = [COMMAND, "demo", "--json", str(tmp_path / "missing" / "summary.json")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"mssql-cdc demo: --json {words[-1]}: there is no such folder\n"


@pytest.mark.parametrize(
    ("option", "path", "reason"),
    [
        ("--json", ".", "Is a directory"),
        ("--keep", "file/sub", "Not a directory"),
        ("--json", "file/x", "no such folder"),
    ],
)
def test_what_cannot_be_made_is_refused_at_once(tmp_path, option, path, reason):
    (tmp_path / "file").write_text("precious")
    words = [COMMAND, "demo", option, str(tmp_path / path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"mssql-cdc demo: {option} {words[-1]}: ")
    assert done.stderr.endswith(f"{reason}\n")
    assert (tmp_path / "file").read_text() == "precious"


def test_a_folder_that_holds_something_is_not_touched(tmp_path):
    (tmp_path / "mine").write_text("precious")
    done = subprocess.run([COMMAND, "demo", "--keep", str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"mssql-cdc demo: --keep {tmp_path}: it exists and is not an empty folder\n"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_lakes_names_are_those_of_the_dag():
    assert [lake.mirror(table) for table in shop.TABLES] == [
        "lake.shop.sales_customers",
        "lake.shop.sales_orders",
        "lake.shop.sales_order_items",
        "lake.shop.catalog_products",
    ]
