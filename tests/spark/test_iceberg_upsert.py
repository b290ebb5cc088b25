"""Changes by key into Iceberg: what is there is updated, what is not is added, whatever the table holds."""

import datetime
import decimal
import random
import re

import pytest

from airflow_provider_mssql_cdc.core.columns import TargetColumn
from airflow_provider_mssql_cdc.core.exceptions import SpecError, TargetError
from airflow_provider_mssql_cdc.spark.session import BROADCAST_BYTES, UPSERT_ROWS, broadcast_bytes, table_session
from airflow_provider_mssql_cdc.spark.targets import Write
from airflow_provider_mssql_cdc.spark.targets.iceberg import IcebergTable
from airflow_provider_mssql_cdc.spark.targets.iceberg_marker import MARKER
from airflow_provider_mssql_cdc.spark.targets.iceberg_upsert import PART, Upsert
from tests.support.spark.plans import plans_of, scans, shuffled_scans
from tests.support.spark.rows import local
from tests.support.spark.tables import marker, merge

pytestmark = pytest.mark.xdist_group(__name__)

DDL = "id INT, code STRING, amount BIGINT"
FIELDS = tuple(TargetColumn(*field.split(), "{}") for field in DDL.split(", "))
ON_READ = {"write.merge.mode": "merge-on-read"}
ON_WRITE = {"write.merge.mode": "copy-on-write"}
MODES = {
    "v3": {},
    "v2": {"format-version": "2"},
    "v3, deletes on write": {"write.delete.mode": "copy-on-write", "write.update.mode": "copy-on-write"},
    "v3, merge on write": ON_WRITE,
    "v2, merge on write": {"format-version": "2", **ON_WRITE},
    "v2, merge on read alone": {"format-version": "2", "write.delete.mode": "copy-on-write", **ON_READ},
    "avro": {"write.format.default": "avro"},
    "orc": {"write.format.default": "orc"},
}
OFTEN = ("v3, merge on write",)


@pytest.fixture
def new(spark, namespace):
    """A maker of target objects for one table, which it makes with columns and properties where it is not there."""

    def make(columns=FIELDS, properties=None, partition_by=()):
        session = table_session(spark)
        target = IcebergTable(
            session, ("lake", namespace, "t"), "spec", partition_by=partition_by, properties=properties
        )
        target.create(columns)
        return target

    yield make
    spark.sql(f"DROP TABLE IF EXISTS lake.{namespace}.t PURGE")


def put(target, position, changes, key=("id",), ddl=DDL, *, nullable=False, options=None):
    """Load changes by key: rows, each with its operation last."""
    for name, value in (options or {}).items():
        target._session.conf.set(name, value)
    rows = local(target._session, changes, f"{ddl}, _op STRING")
    return target.commit(target.state(), merge(rows, key, nullable_key=nullable), marker(position))


def held(target):
    return sorted((tuple(row) for row in target._session.table(target.sql_name).collect()), key=repr)


def commits(target):
    """Operation, part and whether there is a marker, of each snapshot of main, the oldest first."""
    rows = target._session.sql(
        f"SELECT operation, summary['{PART}'] AS part, summary['{MARKER}'] IS NOT NULL AS marked"
        f" FROM {target.sql_name}.snapshots ORDER BY committed_at"
    ).collect()
    return [tuple(row) for row in rows]


def model(rows, changes, key):
    """What a table holds after changes: one row for each key."""
    now = {key(row): row for row in rows}
    for *row, op in changes:
        now.pop(key(row), None)
        if op not in ("D", "B"):
            now[key(row)] = tuple(row)
    return sorted(now.values(), key=repr)


@pytest.mark.parametrize("mode", [n if n in OFTEN else pytest.param(n, marks=pytest.mark.thorough) for n in MODES])
def test_each_key_has_the_row_of_its_last_change(new, mode):
    target, rng, rows = new(properties=MODES[mode]), random.Random(mode), []
    by_id = lambda row: row[0]  # noqa: E731
    for position in range(1, 4):
        keys = rng.sample([None, *range(12)], 6)
        changes = [(k, f"c{rng.random()}", rng.randrange(9), rng.choice("IUUDB")) for k in keys]
        assert put(target, position, changes, nullable=True)
        rows = model(rows, changes, by_id)
        assert held(target) == rows
    assert target.state().marker == marker(3)


SHUFFLED = {BROADCAST_BYTES: "0", "spark.sql.autoBroadcastJoinThreshold": "-1"}


@pytest.mark.parametrize(
    ("options", "nullable"),
    [
        ({}, True),
        pytest.param(SHUFFLED, False, marks=pytest.mark.thorough),
        pytest.param({}, False, marks=pytest.mark.thorough),
        pytest.param(SHUFFLED, True, marks=pytest.mark.thorough),
    ],
)
def test_both_sides_of_what_is_broadcast(new, options, nullable):
    target = new()
    rows = [(n, f"old {n}", n) for n in range(200)]
    assert target.commit(target.state(), Write(local(target._session, rows, DDL)), marker(1))
    changes = [(n, f"new {n}", n, "D" if n % 7 == 0 else "U") for n in range(150, 250)]

    plans = plans_of(target._session, lambda: put(target, 2, changes, options=options, nullable=nullable))

    assert held(target) == model(rows, changes, lambda row: row[0])
    merges = [plan for plan in plans if "WriteDelta" in plan]
    assert len(merges) == 1
    name = target.sql_name.replace("`", "")
    assert scans(merges[0], name)
    assert bool(shuffled_scans(merges[0], name)) == bool(options)
    # what no change is about is left out of the shuffle
    assert ("might_contain" in merges[0]) == bool(options)


@pytest.mark.parametrize("of_target", [pytest.param(False, marks=pytest.mark.thorough), True])
def test_the_changes_are_computed_once(new, of_target):
    target = new()
    assert put(target, 1, [(n, f"old {n}", n, "I") for n in range(20)])
    state = target.state()
    rows = local(target._session, [(n, "new", "U") for n in range(10, 30)], "id INT, code STRING, _op STRING")
    if of_target:
        rows = rows.join(target.rows(state).select("id", "amount"), "id", "left")
    else:
        rows = rows.selectExpr("*", "CAST(id AS BIGINT) AS amount")

    write = merge(rows.select("id", "code", "amount", "_op"), ("id",), of_target=of_target)
    plans = plans_of(target._session, lambda: target.commit(state, write, marker(2)))

    writes = [plan for plan in plans if "WriteDelta" in plan or "AppendData" in plan]
    assert len(writes) == 2
    assert all("InMemoryTableScan" in plan for plan in writes)
    if of_target:
        assert all("Scan ExistingRDD" in plan for plan in writes)
    expected = {(n, f"old {n}", n) for n in range(10)} | {
        (n, "new", n if n < 20 or not of_target else None) for n in range(10, 30)
    }
    assert set(held(target)) == expected


def test_a_key_that_is_there_twice_hides_none_that_is_missing(new):
    target = new()
    rows = [(1, "twice", 1), (1, "twice", 2), (2, "once", 3)]
    assert target.commit(target.state(), Write(local(target._session, rows, DDL)), marker(1))

    # as many rows are updated as there are keys to put
    assert put(target, 2, [(1, "now", 0, "U"), (3, "new", 0, "U")])

    assert held(target) == [(1, "now", 0), (1, "now", 0), (2, "once", 3), (3, "new", 0)]


def test_a_row_inserted_by_hand_is_replaced_by_the_insert_of_its_key(new):
    target = new()
    assert put(target, 1, [(1, "a", 1, "I")])
    target._session.sql(f"INSERT INTO {target.sql_name} VALUES (2, 'by hand', 0)")
    expire(target)

    assert put(target, 2, [(2, "loaded", 2, "I"), (3, "c", 3, "I")])

    assert held(target) == [(1, "a", 1), (2, "loaded", 2), (3, "c", 3)]


KEYS = {
    "SMALLINT": [-5, 0, 7],
    "BIGINT": [-(2**63), 5, 2**63 - 1],
    "DECIMAL(38,4)": [decimal.Decimal("-0.0001"), decimal.Decimal("10000000000.0000"), decimal.Decimal("99.5000")],
    "DATE": [datetime.date(1, 1, 1), datetime.date(1582, 10, 10), datetime.date(9999, 12, 31)],
    "STRING": ["", "it's \\ a 'name'\n\u0000", "\U0001f600" * 20, "${env:HOME}", "b"],
    "BINARY": [b"", b"\x00\xff", b"\xff" * 20],
    "BOOLEAN": [True, False, None],
    "DOUBLE": [float("-inf"), -0.0, float("nan")],
    "TIMESTAMP_NTZ": [datetime.datetime(1900, 1, 1), datetime.datetime(2026, 1, 1, 1, 1, 1, 1), None],
}


# Iceberg writes the last name into files as another one
KEY_NAMES = [f"k{n}" for n in range(len(KEYS) - 1)] + ["k `y"]


@pytest.mark.parametrize("nullable", [pytest.param(False, marks=pytest.mark.thorough), True])
def test_a_key_of_every_type(new, nullable):
    """Rows that differ from the first one in one part of the key alone."""
    ddl = (
        "".join(f"`{name.replace('`', '``')}` {type_}, " for name, type_ in zip(KEY_NAMES, KEYS, strict=True)) + "n INT"
    )
    columns = [TargetColumn(name, type_, "{}") for name, type_ in zip(KEY_NAMES, KEYS, strict=True)]
    target = new((*columns, TargetColumn("n", "INT", "{}")))
    first = [values[0] for values in KEYS.values()]
    keys = [first]
    for place, values in enumerate(KEYS.values()):
        others = [value for value in values[1:] if nullable or value is not None]
        keys += [[*first[:place], value, *first[place + 1 :]] for value in others]
        keys += [[*first[:place], None, *first[place + 1 :]]] if nullable and None not in values else []
    assert put(target, 1, [(*key, 0, "I") for key in keys[::2]], KEY_NAMES, ddl, nullable=nullable)

    for position in (2, 3):
        assert put(target, position, [(*key, position, "U") for key in keys], KEY_NAMES, ddl, nullable=nullable)
        assert repr(held(target)) == repr(sorted(((*key, position) for key in keys), key=repr))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([(1, "b", 2, "U"), (2, "b", 2, "I")], [("overwrite", "update", False), ("append", None, True)]),
        ([(1, "b", 2, "D"), (7, "b", 2, "D")], [("delete", None, True)]),
    ],
)
def test_the_marker_is_in_the_last_commit_of_a_window(new, changes, expected):
    target = new()
    assert target.commit(target.state(), Write(local(target._session, [(1, "a", 1)], DDL)), marker(1))

    assert put(target, 2, changes)

    assert commits(target)[-len(expected) :] == expected


@pytest.mark.parametrize(
    ("least", "in_two"),
    [*(pytest.param(*n, marks=pytest.mark.thorough) for n in (("", False), ("2", True))), ("3", False)],
)
def test_a_small_table_takes_a_window_in_one_commit(new, least, in_two):
    target = new()
    rows = [(1, "a", 1), (2, "a", 2)]
    assert target.commit(target.state(), Write(local(target._session, rows, DDL)), marker(1))

    assert put(target, 2, [(1, "b", 1, "U"), (3, "b", 3, "I")], options={UPSERT_ROWS: least})

    assert held(target) == [(1, "b", 1), (2, "a", 2), (3, "b", 3)]
    assert target.state().marker == marker(2)
    assert any(part for _, part, _ in commits(target)) == in_two


def test_a_main_in_the_middle_of_a_window_is_refused_until_it_is_rolled_back(new):
    target = new()
    assert target.commit(target.state(), Write(local(target._session, [(1, "a", 1)], DDL)), marker(1))
    assert put(target, 2, [(1, "b", 1, "U"), (2, "b", 2, "I")])
    roll_back_to_part(target)
    # compaction does not make a whole of it
    compact(target)

    doubt = target.state().doubt
    assert isinstance(doubt, TargetError)
    assert "holds a part of a window" in str(doubt)

    (said,) = re.findall(r"CALL .*?\)", doubt.advice or "")
    target._session.sql(said)
    assert target.state().marker == marker(1)
    assert put(target, 2, [(1, "b", 1, "U"), (2, "b", 2, "I")])
    assert held(target) == [(1, "b", 1), (2, "b", 2)]


@pytest.mark.thorough
def test_a_main_in_the_middle_of_a_window_whose_beginning_is_gone(new):
    target = new()
    assert target.commit(target.state(), Write(local(target._session, [(1, "a", 1)], DDL)), marker(1))
    assert put(target, 2, [(1, "b", 1, "U"), (2, "b", 2, "I")])
    roll_back_to_part(target)
    expire(target)

    doubt = target.state().doubt
    assert isinstance(doubt, TargetError)
    assert "holds a part of a window" in str(doubt)
    assert "`mssql-cdc checkpoint set`" in (doubt.advice or "")
    assert "CALL" not in (doubt.advice or "")
    # as the job does where a person names the position that the table stands for
    assert put(target, 2, [(1, "b", 1, "U"), (2, "b", 2, "I")])
    assert (target.state().marker, target.state().doubt) == (marker(2), None)
    assert held(target) == [(1, "b", 1), (2, "b", 2)]


WAP = {"write.wap.enabled": "true"}


@pytest.mark.parametrize("name", ["spark.wap.id", "spark.wap.branch"])
def test_what_keeps_commits_aside_does_not_hold_for_a_load(spark, namespace, new, name):
    first = new(properties=WAP)
    assert put(first, 1, [(1, "a", 1, "I")])
    session = table_session(spark)
    session.conf.set(name, "audit")
    target = IcebergTable(session, ("lake", namespace, "t"), "spec")
    assert put(target, 2, [(1, "b", 1, "U"), (2, "b", 2, "I")])
    assert held(target) == [(1, "b", 1), (2, "b", 2)]
    assert target.state().marker == marker(2)


def test_commits_that_are_kept_aside_are_no_load(new):
    target = new(properties=WAP)
    assert put(target, 1, [(1, "a", 1, "I")])
    target._session.conf.set("spark.wap.id", "audit")
    with pytest.raises(TargetError, match=r"nothing that this load wrote is on its branch .*spark\.wap\.id"):
        put(target, 2, [(1, "b", 1, "U"), (2, "b", 2, "I")])
    target._session.conf.unset("spark.wap.id")
    assert target.state().marker == marker(1)
    assert held(target) == [(1, "a", 1)]
    assert put(target, 2, [(1, "b", 1, "U"), (2, "b", 2, "I")])
    assert held(target) == [(1, "b", 1), (2, "b", 2)]


def test_moments_at_the_ends_of_the_calendar_are_keys(new):
    """Python has no such moments in the zones of most machines."""
    target = new((TargetColumn("k", "TIMESTAMP", "{}"), TargetColumn("n", "INT", "{}")))
    moments = ["0001-01-01 00:00:00Z", "2026-01-01 00:00:00Z", "9999-12-31 23:59:59.999999Z"]
    for position, op in ((1, "I"), (2, "U")):
        rows = local(target._session, [(moment, position, op) for moment in moments], "k STRING, n INT, _op STRING")
        rows = rows.selectExpr("CAST(k AS TIMESTAMP) AS k", "n", "_op")
        assert target.commit(target.state(), merge(rows, ["k"]), marker(position))
    found = target._session.table(target.sql_name).selectExpr("unix_micros(k)", "n").collect()
    expected = [-62135596800 * 10**6, 1767225600 * 10**6, 253402300799 * 10**6 + 999999]
    assert sorted(tuple(row) for row in found) == [(micros, 2) for micros in expected]


def roll_back_to_part(target):
    (part,) = target._session.sql(
        f"SELECT snapshot_id FROM {target.sql_name}.snapshots WHERE summary['{PART}'] IS NOT NULL"
    ).collect()
    target._session.sql(
        f"CALL lake.system.rollback_to_snapshot(table => '{target.sql_name}', snapshot_id => {part[0]})"
    )


def expire(target):
    target._session.sql(
        f"CALL lake.system.expire_snapshots(table => '{target.sql_name}', retain_last => 1,"
        " older_than => TIMESTAMP '2100-01-01 00:00:00')"
    ).collect()


def compact(target):
    target._session.sql(
        f"CALL lake.system.rewrite_data_files(table => '{target.sql_name}', options => map('rewrite-all', 'true'))"
    ).collect()


def both(target):
    compact(target)
    expire(target)


@pytest.mark.parametrize(
    "moment", ["update", *(pytest.param(n, marks=pytest.mark.thorough) for n in ("to_add", "append", "_fast_forward"))]
)
@pytest.mark.parametrize("maintain", [pytest.param(expire, marks=pytest.mark.thorough), both])
def test_maintenance_at_any_moment_of_a_commit(new, monkeypatch, moment, maintain):
    target, other = new(), new()
    rows = [(n, "old", n) for n in range(5)]
    assert target.commit(target.state(), Write(local(target._session, rows, DDL)), marker(1))
    assert put(target, 2, [(0, "older", 0, "U"), (5, "old", 5, "I")])
    rows = model(rows, [(0, "older", 0, "U"), (5, "old", 5, "I")], lambda row: row[0])
    changes = [(1, "new", 1, "U"), (2, "", 0, "D"), (7, "new", 7, "I")]
    owner = IcebergTable if moment == "_fast_forward" else Upsert
    real, calls = getattr(owner, moment), []

    def maintained(*args, **kwargs):
        if not calls:
            calls.append(moment)
            maintain(other)
        return real(*args, **kwargs)

    monkeypatch.setattr(owner, moment, maintained)
    while not put(target, 3, changes):
        assert held(target) == rows
        assert target.state().marker == marker(2)

    assert calls
    assert held(target) == model(rows, changes, lambda row: row[0])
    assert target.state().marker == marker(3)


@pytest.mark.parametrize("moment", ["update", pytest.param("to_add", marks=pytest.mark.thorough), "append"])
def test_a_branch_that_others_drop_while_it_is_written(new, monkeypatch, moment):
    """Iceberg makes a branch anew, from main, where a commit finds none: without what was written before."""
    target, other = new(), new()
    assert target.commit(target.state(), Write(local(target._session, [(1, "a", 1)], DDL)), marker(1))
    changes, real = [(1, "b", 1, "U"), (2, "b", 2, "I")], getattr(Upsert, moment)

    def dropped(*args, **kwargs):
        (branch,) = (name for name in _branches(other) if name != "main")
        other._session.sql(f"ALTER TABLE {other.sql_name} DROP BRANCH `{branch}`")
        return real(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(Upsert, moment, dropped)
        assert not put(target, 2, changes)
    assert held(target) == [(1, "a", 1)]
    assert put(target, 2, changes)
    assert held(target) == [(1, "b", 1), (2, "b", 2)]


def test_a_branch_that_a_commit_has_made_anew_is_not_believed(new, monkeypatch):
    target, other = new(), new()
    assert target.commit(target.state(), Write(local(target._session, [(1, "a", 1)], DDL)), marker(1))
    changes, real = [(1, "b", 1, "U"), (2, "b", 2, "I")], IcebergTable._fast_forward

    def made_anew(self, branch, state, part):
        for change in (f"DROP BRANCH `{branch}`", f"CREATE BRANCH `{branch}` AS OF VERSION {state.snapshot}"):
            other._session.sql(f"ALTER TABLE {other.sql_name} {change}")
        # what the append alone has written
        other._session.sql(f"INSERT INTO {other.sql_name}.`branch_{branch}` VALUES (2, 'b', 2)")
        return real(self, branch, state, part)

    with monkeypatch.context() as patched:
        patched.setattr(IcebergTable, "_fast_forward", made_anew)
        assert not put(target, 2, changes)
    assert held(target) == [(1, "a", 1)]
    assert put(target, 2, changes)
    assert held(target) == [(1, "b", 1), (2, "b", 2)]


def test_a_key_that_looks_like_a_variable_is_itself(new):
    """The least of the window's keys: what stood in its place would be greater."""
    target, ddl = new((TargetColumn("k", "STRING", "{}"), TargetColumn("n", "INT", "{}"))), "k STRING, n INT"
    assert put(target, 1, [("${env:HOME}", 0, "I"), ("b", 0, "I")], ["k"], ddl)

    assert put(target, 2, [("${env:HOME}", 1, "U"), ("b", 1, "U")], ["k"], ddl)

    assert held(target) == [("${env:HOME}", 1), ("b", 1)]


def _branches(target):
    return [row["name"] for row in target._session.sql(f"SELECT name FROM {target.sql_name}.refs").collect()]


def test_a_branch_that_was_made_of_an_expired_snapshot(new):
    target = new()
    assert target.commit(target.state(), Write(local(target._session, [(1, "a", 1)], DDL)), marker(1))
    state = target.state()
    target._session.sql(f"INSERT INTO {target.sql_name} VALUES (9, 'by hand', 0)")
    expire(target)

    rows = local(target._session, [(2, "b", 2, "I")], f"{DDL}, _op STRING")
    assert not target.commit(state, merge(rows, ["id"]), marker(2))
    assert put(target, 2, [(2, "b", 2, "I")])
    assert held(target) == [(1, "a", 1), (2, "b", 2), (9, "by hand", 0)]


def test_an_updated_row_keeps_its_row_id(new):
    target = new()
    rows = [(n, "old", n) for n in range(4)]
    assert target.commit(target.state(), Write(local(target._session, rows, DDL)), marker(1))
    read = f"SELECT id, _row_id, _last_updated_sequence_number AS at FROM {target.sql_name}"
    before = {row["id"]: row for row in target._session.sql(read).collect()}

    assert put(target, 2, [(1, "new", 1, "U"), (2, "", 0, "D"), (8, "new", 8, "I")])

    after = {row["id"]: row for row in target._session.sql(read).collect()}
    assert sorted(after) == [0, 1, 3, 8]
    assert [after[n]["_row_id"] for n in (0, 1, 3)] == [before[n]["_row_id"] for n in (0, 1, 3)]
    assert after[8]["_row_id"] not in {row["_row_id"] for row in before.values()}
    assert [after[n]["at"] == before[n]["at"] for n in (0, 1, 3)] == [True, False, True]


@pytest.mark.parametrize(
    ("partition_by", "adaptive"),
    [
        pytest.param((), "true", marks=pytest.mark.thorough),
        pytest.param((), "false", marks=pytest.mark.thorough),
        pytest.param(("code",), "true", marks=pytest.mark.thorough),
        (("bucket(4, id)",), "true"),
    ],
)
def test_a_window_writes_at_most_one_file_more_for_each_partition(new, spark, partition_by, adaptive):
    files = []
    # by two commits, and by one MERGE
    for least in ("0", "1000"):
        target = new(partition_by=partition_by)
        rows = [(n, f"c{n % 3}", n) for n in range(60)]
        assert target.commit(target.state(), Write(local(target._session, rows, DDL)), marker(1))
        before = _files(target)
        target._session.conf.set(UPSERT_ROWS, least)
        target._session.conf.set("spark.sql.adaptive.enabled", adaptive)
        changes = [(n, f"c{n % 3}", -n, "U") for n in range(40, 80)]
        write = merge(local(target._session, changes, f"{DDL}, _op STRING").repartition(8), ["id"])
        assert target.commit(target.state(), write, marker(2))
        assert any(part for _, part, _ in commits(target)) == (least == "0")
        assert held(target) == model(rows, changes, lambda row: row[0])
        files.append({p: len(f - before.get(p, set())) for p, f in _files(target).items()})
        spark.sql(f"DROP TABLE {target.sql_name} PURGE")
    assert all(files[0][partition] <= files[1].get(partition, 0) + 1 for partition in files[0])


def _files(target):
    found = {}
    columns = target._session.table(f"{target.sql_name}.files").columns
    partition = "partition" if "partition" in columns else "0 AS partition"
    for row in target._session.sql(
        f"SELECT {partition}, file_path FROM {target.sql_name}.files WHERE content = 0"
    ).collect():
        found.setdefault(str(row[0]), set()).add(row["file_path"])
    return found


def test_of_the_table_only_keys_are_read_and_nothing_is_shuffled_before_the_join(new):
    target = new()
    rows = [(n, f"c{n}", n) for n in range(50)]
    assert target.commit(target.state(), Write(local(target._session, rows, DDL)), marker(1))

    plans = plans_of(target._session, lambda: put(target, 2, [(n, "new", n, "U") for n in range(40, 60)]))

    name = target.sql_name.replace("`", "")
    readers = [plan for plan in plans if scans(plan, name)]
    assert len(readers) == 1, "the MERGE alone reads the table"
    assert not shuffled_scans(readers[0], name)
    (scan,) = scans(readers[0], name)
    assert "id#" in scan
    assert not re.search(r"code#|amount#", scan)
    assert re.search("id >= 40.*id <= 59", scan), scan


@pytest.mark.thorough
def test_where_the_files_cannot_be_read_the_keys_are_looked_up_by_broadcast(new):
    target = new(properties={"write.format.default": "avro"})
    rows = [(n, f"c{n}", n) for n in range(50)]
    assert target.commit(target.state(), Write(local(target._session, rows, DDL)), marker(1))

    plans = plans_of(target._session, lambda: put(target, 2, [(n, "new", n, "U") for n in range(40, 60)]))

    name = target.sql_name.replace("`", "")
    readers = [plan for plan in plans if scans(plan, name)]
    assert len(readers) == 2
    for plan in readers:
        assert not shuffled_scans(plan, name)
        assert not re.search(r"code#|amount#", scans(plan, name)[0])


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"spark.driver.memory": "200m"}, 10 * 1024**2),
        ({"spark.driver.memory": "1g"}, 32 * 1024**2),
        ({"spark.driver.memory": "100"}, 5 * 1024**2),
        ({"spark.driver.memory": "10Gb"}, 32 * 1024**2),
        ({BROADCAST_BYTES: "64m"}, 64 * 1024**2),
        ({BROADCAST_BYTES: "0"}, 0),
        ({BROADCAST_BYTES: "123"}, 123),
        ({BROADCAST_BYTES: "0.5g"}, None),
        ({"spark.driver.memory": "a lot"}, None),
    ],
)
def test_how_much_is_broadcast(spark, properties, expected):
    class Given:
        class conf:
            @staticmethod
            def get(name, default=None):
                return properties.get(name, default)

    if expected is None:
        with pytest.raises(SpecError, match=next(iter(properties))):
            broadcast_bytes(Given)
    else:
        assert broadcast_bytes(Given) == expected


def test_a_number_of_rows_that_is_none(new):
    with pytest.raises(SpecError, match=UPSERT_ROWS):
        put(new(), 1, [(1, "a", 1, "I")], options={UPSERT_ROWS: "many"})
