"""Versions of rows (``scd2``), and mirrors that keep deleted rows, against the model of the capture."""

import dataclasses
import datetime
from random import Random

import pytest
from hypothesis import given
from pyspark.errors import PySparkException

from airflow_provider_mssql_cdc.core.columns import map_columns
from airflow_provider_mssql_cdc.core.marker import Gap
from airflow_provider_mssql_cdc.core.position import Window
from airflow_provider_mssql_cdc.spark.session import table_session
from airflow_provider_mssql_cdc.spark.shapes.base import Beginning, Differences
from airflow_provider_mssql_cdc.spark.shapes.fold import by_keys_of
from airflow_provider_mssql_cdc.spark.shapes.table import TableRows
from airflow_provider_mssql_cdc.spark.sources.cdc.events import stage
from airflow_provider_mssql_cdc.spark.targets import OldRows
from tests.support.spark import model
from tests.support.spark.drawn import (
    DDL,
    MAPPINGS,
    SPEC,
    TABLE,
    Copied,
    at_low,
    before,
    copied,
    draw,
    few,
    frame,
    history_of,
    mirror_of,
    seeds,
    staged_events,
    versions_of,
)
from tests.support.spark.rekeyed import marked_by
from tests.support.spark.rows import local

pytestmark = pytest.mark.xdist_group(__name__)

VERSIONS = (
    DDL + ", _from_lsn STRING, _to_lsn STRING, _from_ts TIMESTAMP_NTZ, _to_ts TIMESTAMP_NTZ, _unknown ARRAY<STRING>"
)
NAMES = (*model.NAMES, "_from_lsn", "_to_lsn", "_from_ts", "_to_ts")
EARLIER, LONG_AGO = str(model.lsn(3)), str(model.lsn(2))


def time_of(position):
    return datetime.datetime(2026, 6, 1, 12, position % 60, 0, 3000)


def touched(captures, low, high):
    """Each key with the positions of the transactions that changed it, as the change rows say."""
    found = {}
    for capture in captures:
        for position, _, operation, history, id_, *_ in capture.images:
            # a before image is the end of a key only if the update gave the row another one
            if low < position <= high and operation != 3:
                found.setdefault((history, id_), set()).add(position)
        for change in capture.changes:
            position = int.from_bytes(change["start_lsn"], "big")
            if low < position <= high and change["operation"] == 3 and change["update_mask"][-1] & 0b10:
                found.setdefault(change["row"][:2], set()).add(position)
    return {key: sorted(positions) for key, positions in found.items()}


def versions_of_events(captures, low, high):
    """The versions that begin in the window: key and values, from, to, and their times."""
    states = {capture.history: capture for capture in captures}
    for (history, id_), positions in touched(captures, low, high).items():
        for position, following in zip(positions, [*positions[1:], None], strict=True):
            values = states[history].state(position).get(id_)
            if values is not None:
                end = (str(model.lsn(following)), time_of(following)) if following else (None, None)
                yield (history, id_, *values, str(model.lsn(position)), end[0], time_of(position), end[1])


def applied(held, changes):
    """What a table of versions holds after a merge by key and start."""
    rows = {(row[0], row[1], row[5]): tuple(row[:9]) for row in held}
    for row in changes:
        assert row["_op"] == "U"
        rows[row["h"], row["id"], row["_from_lsn"]] = tuple(row[name] for name in NAMES)
    return sorted(rows.values(), key=repr)


@few
@given(seeds)
def test_versions_are_the_states_that_each_transaction_left(spark, tmp_path_factory, seed):
    captures, low, high = draw(seed)
    session = table_session(spark)
    window, staged = staged_events(session, tmp_path_factory.mktemp("staged"), captures, low, high)
    now = [(*row, EARLIER, None, None, None, []) for row in before(captures, low)]
    closed = [(*row, LONG_AGO, EARLIER, None, None, ["doc"]) for row in before(captures, low)]
    held = local(session, [*now, *closed], VERSIONS)

    merge = versions_of().next(window, staged, held, ())
    changes = merge.rows.collect()

    ends = {key: positions[0] for key, positions in touched(captures, low, high).items()}
    expected = [row[:9] for row in closed]
    for row in now:
        end = ends.get(row[:2])
        expected.append((*row[:6], str(model.lsn(end)), None, time_of(end)) if end else row[:9])
    expected += versions_of_events(captures, low, high)
    assert merge.key == ("h", "id", "_from_lsn")
    assert len({(row["h"], row["id"], row["_from_lsn"]) for row in changes}) == len(changes)
    assert applied([*now, *closed], changes) == sorted(expected, key=repr)
    assert {tuple(row["_unknown"]) for row in changes} <= {()}


@few
@given(seeds)
def test_a_first_version_counts_from_low_up_to_the_first_event(spark, tmp_path_factory, seed):
    captures, low, high = draw(seed)
    random, session = Random(seed), table_session(spark)
    window, staged = staged_events(session, tmp_path_factory.mktemp("staged"), captures, low, high)
    copy = copied(session, [row for capture in captures for row in capture.scanned(random, low, high)])

    found = versions_of().first(Beginning(window, staged, Copied(copy)), None).rows.collect()

    ends = {key: positions[0] for key, positions in touched(captures, low, high).items()}
    expected = []
    for row in before(captures, low):
        end = ends.get(row[:2])
        until = (None, None, None) if end is None else (str(model.lsn(end)), None, time_of(end))
        expected.append((*row, str(model.lsn(low)), *until))
    expected += versions_of_events(captures, low, high)
    by_start = {(row[0], row[1], row[5]): row for row in expected}
    assert {(row["h"], row["id"], row["_from_lsn"]) for row in found} == by_start.keys()
    assert len(found) == len(by_start)
    for row in found:
        values = dict(zip(NAMES, by_start[row["h"], row["id"], row["_from_lsn"]], strict=True))
        assert {name: row[name] for name in NAMES} == {**values, **dict.fromkeys(row["_unknown"])}


@few
@given(seeds)
def test_after_a_gap_what_vanished_or_differs_ends_at_low(spark, tmp_path_factory, seed):
    captures, low, high = draw(seed)
    random, session = Random(seed), table_session(spark)
    lost = random.randint(1, low)
    window, staged = staged_events(session, tmp_path_factory.mktemp("staged"), captures, low, high)
    copy = copied(session, [row for capture in captures for row in capture.scanned(random, low, high)])
    held = [(*row, EARLIER, None, None, None, []) for row in before(captures, lost)]

    there = local(session, held, VERSIONS)
    merge = versions_of().first(Beginning(window, staged, Copied(copy), anew=True), there)
    found = {row[:2] + row[5:6]: row for row in applied(held, merge.rows.collect())}

    ends = {key: positions[0] for key, positions in touched(captures, low, high).items()}
    begun, _ = at_low(history_of(TABLE), window, staged, copy)
    stood = {(row["h"], row["id"]): tuple(row[name] for name in model.NAMES) for row in begun}
    # of what lacks a value nobody knows whether it is the same
    unsure = {(row["h"], row["id"]) for row in begun if row["_unknown"]}

    def end(key):
        return (str(model.lsn(ends[key])), time_of(ends[key])) if key in ends else (None, None)

    expected = {}
    for row in held:
        same = stood.get(row[:2]) == row[:5] and row[:2] not in unsure
        expected[*row[:2], EARLIER] = end(row[:2]) if same else (str(model.lsn(low)), None)
    for key, row in stood.items():
        if key in unsure or (*row, EARLIER) not in [h[:6] for h in held]:
            expected[*key, str(model.lsn(low))] = end(key)
    for row in versions_of_events(captures, low, high):
        expected[row[0], row[1], row[5]] = (row[6], row[8])
    assert {key: (row[6], row[8]) for key, row in found.items()} == expected
    # each open version is a row as it is at the end, as far as the copy tells
    current = {row[:2]: row[:5] for row in found.values() if row[6] is None}
    assert current.keys() == {row[:2] for row in before(captures, high)}
    assert len(current) == sum(row[6] is None for row in found.values())


@pytest.mark.parametrize("alike", [False, True])
def test_filled_versions_of_before_another_key_may_be_alike(spark, alike):
    """They may have one key and begin at once, or lack the key: no merge tells them apart."""
    session = table_session(spark)
    one, ended = (1, 1, None, "d", None), (1, 2, None, "d2", None)
    held = [(*one, EARLIER, None, None, None, []), (*ended, LONG_AGO, EARLIER, None, None, ["doc"])]
    if alike:
        held += [(*ended[:3], "d3", None, LONG_AGO, EARLIER, None, None, []), (1, None, *one[2:], LONG_AGO, EARLIER)]
        held[-1] += (None, None, [])
        held.append((1, 3, None, "open without a value", None, EARLIER, None, None, None, []))
    there = copied(session, [(1, 1, "n1", "d", None)])

    write = versions_of().filled(
        local(session, held, VERSIONS), there, None, ["name"], Window(model.lsn(9), model.lsn(9))
    )

    found = [(*(row[name] for name in NAMES), row["_unknown"]) for row in write.rows.collect()]
    expected = [
        (*row[:2], "n1" if row[1] == 1 else None, *row[3:9], [*row[9], *(["name"] if row[6] else [])]) for row in held
    ]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert (write.old, write.of_target) == (OldRows.ALL if alike else OldRows.OF_KEY, True)


def test_versions_that_begin_where_they_are_mended_are_replaced(spark):
    """Nothing need have happened since a first load: its versions begin where a copy ends."""
    session, at = table_session(spark), model.lsn(9)
    begun, earlier = (str(at), None, None, None, []), (EARLIER, None, None, None, [])
    held = [(1, 1, None, "d", None, *begun), (1, 2, None, "d", None, *begun), (1, 3, None, "d", None, *earlier)]
    there = [(1, 1, "n", "d", None), (1, 3, "n", "d", None), (1, 4, "n", "d", None)]
    old = local(session, held, VERSIONS)
    found = Differences(copied(session, there), old, old.where("id = 2"), None)

    write = versions_of().mended(found, old, at, time_of(9))

    rows = [tuple(row[name] for name in ("id", "name", "_from_lsn", "_to_lsn")) for row in write.rows.collect()]
    put = [(id, "n", str(at), None) for id in (1, 3, 4)]
    assert sorted(rows, key=repr) == sorted([*put, (2, None, str(at), str(at)), (3, None, EARLIER, str(at))], key=repr)


def test_a_history_is_compared_by_the_rows_since_another_key(spark):
    session, at = table_session(spark), [(str(model.lsn(number)),) for number in (5, 20, 30)]
    rows = local(session, at, "_lsn STRING")
    gaps = [Gap(model.lsn(3), model.lsn(25)), Gap(model.lsn(20), model.lsn(20)), Gap(model.lsn(2), model.lsn(2))]
    assert [tuple(row) for row in history_of().of_key(rows, gaps).collect()] == at[1:]
    assert history_of().of_key(rows, gaps[:1]) is rows
    assert mirror_of().of_key(rows, gaps) is rows


@pytest.mark.parametrize("knows", [True, False], ids=["old key there", "old key gone"])
@pytest.mark.parametrize("deletes", ["soft", "ignore"])
def test_a_mirror_by_another_key_keeps_the_rows_that_are_gone(spark, deletes, knows):
    session = table_session(spark)
    of_id = model.COLUMNS[1] if knows else dataclasses.replace(model.COLUMNS[1], kept=True, nullable=True)
    code = dataclasses.replace(model.COLUMNS[2], nullable=False)
    spec = model.table_spec(columns=(model.COLUMNS[0], of_id, code), key=("name",))
    mirror = mirror_of(TableRows(spec, map_columns(spec.name, spec.schema), "UTC"), deletes)
    ddl, names = "h INT, id INT, name STRING", ("h", "id", "name")
    there = [(1, 1 if knows else None, "a"), (1, 2 if knows else None, "b")]
    # the same, one with a value of the key of now, one that is gone, two that lack that, and two of before
    old = [(1, 1, "a"), (1, 2, None), (1, 3, "c"), (1, 4, None), (1, 5, "c"), (1, 6, "b"), (1, 7, "e"), (1, 8, None)]
    marked = deletes == "soft"
    held = [(*row, time_of(3) if row[1] in (5, 6, 7, 8) else None)[: 4 if marked else 3] for row in old]
    window = Window(model.lsn(20), model.lsn(20))
    copy = Copied(local(session, there, ddl))

    begun = Beginning(window, None, copy, anew=True, known_at=time_of(40), key_before=("id",))
    write = mirror.first(begun, local(session, held, ddl + (", _deleted_at TIMESTAMP_NTZ" if marked else "")))

    rows = [{**dict(zip(names, row, strict=False)), "_deleted_at": row[3] if marked else None} for row in held]
    model_rows = [dict(zip(names, row, strict=True)) for row in there]
    expected = marked_by(["name"], ["id"] if knows else None, rows, model_rows, time_of(40))
    found = write.rows.collect()
    assert len(found) == len(expected)
    if marked:
        assert {tuple(row) for row in found} == {(*row.values(), at) for row, at in expected}
    else:
        # which one of a key stays is no matter
        assert {row["name"] for row in found if row["name"]} == {row["name"] for row, _ in expected if row["name"]}
        lacking = [row["id"] for row in found if row["name"] is None]
        assert sorted(lacking) == sorted(row["id"] for row, _ in expected if row["name"] is None)


@few
@given(seeds)
def test_a_mirror_keeps_deleted_rows_as_they_were_whatever_the_windows(spark, tmp_path_factory, seed):
    captures, low, high = draw(seed)
    session = table_session(spark)
    gone = (9999, 1, "gone", None, None)
    start = [*((*row, None) for row in before(captures, low)), (*gone, time_of(1))]
    held = local(session, start, DDL + ", _deleted_at TIMESTAMP_NTZ")
    window, staged = staged_events(session, tmp_path_factory.mktemp("staged"), captures, low, high)

    soft = mirror_of(deletes="soft").changes(window, staged, held).collect()
    ignored = mirror_of(deletes="ignore").changes(window, staged, held.drop("_deleted_at")).collect()

    mirror = {row[:2]: row for row in start}
    mirror.update({(r["h"], r["id"]): tuple(r[n] for n in (*model.NAMES, "_deleted_at")) for r in soft})
    there = {row[:2]: row for row in before(captures, high)}
    assert {row["_op"] for row in (*soft, *ignored)} <= {"I", "U"}
    assert {key: row[:5] for key, row in mirror.items() if row[5] is None} == there
    was = {row[:2] for row in start} | {
        (history, id_) for c in captures for p, _, _, history, id_, *_ in c.images if low < p <= high
    }
    assert mirror.keys() == was
    ended = {key: positions[-1] for key, positions in touched(captures, low, high).items()}
    for key, row in mirror.items():
        if key not in there and key != gone[:2]:
            assert row[5] == time_of(ended[key])
    assert mirror[gone[:2]] == (*gone, time_of(1))
    assert {(r["h"], r["id"]): tuple(r[n] for n in model.NAMES) for r in ignored} == {
        (r["h"], r["id"]): tuple(r[n] for n in model.NAMES) for r in soft
    }


def test_a_deleted_row_without_a_time_is_not_kept_as_if_it_were_there(spark, tmp_path):
    session, window = table_session(spark), Window(model.lsn(1), model.lsn(3))
    mask = b"\x1f"
    rows = [
        (model.lsn(n).value, 1, b"s", 1, mask, 1, ended, None, 1, n, None, None, None)
        for n, ended in ((2, "2026-06-01 12:00:00.003"), (3, None))
    ]
    held = local(session, [(1, n, None, None, None, None) for n in (2, 3)], DDL + ", _deleted_at TIMESTAMP_NTZ")
    staged = stage(frame(session, rows), SPEC.schema, MAPPINGS, [window], str(tmp_path / "events"), history=True)

    changes = mirror_of(deletes="soft").changes(window, staged, held)

    with pytest.raises(PySparkException, match=f"lsn_time_mapping has no time of {model.lsn(3)}"):
        changes.collect()


@pytest.mark.parametrize("deletes", ["hard", "soft", "ignore"])
def test_a_mirror_that_is_made_anew_keeps_what_it_keeps(spark, tmp_path, deletes):
    session = table_session(spark)
    capture = model.Capture(1, keeps=True)
    capture.begin(5)
    for id_ in (1, 2, 3):
        capture.insert(id_, (f"n{id_}", None, None))
    capture.commit()
    capture.begin(30)
    capture.delete(2)
    capture.update(3, ("n3", None, None), 3, deferred=False)
    capture.insert(4, ("n4", None, None))
    capture.delete(4)
    capture.commit()
    window, staged = staged_events(session, tmp_path, [capture], 20, 40)
    copy = copied(session, [(1, 1, "n1", None, None), (1, 3, "n3", None, None)])
    deleted = deletes == "soft"
    old = [
        (1, 2, "n2", "d", "t"),
        (1, 3, "old", None, None),
        (1, 7, "vanished", None, None),
        (1, 8, "deleted before", None, None),
    ]
    held = local(
        session,
        [(*row, time_of(3) if row[1] == 8 else None) for row in old] if deleted else old,
        DDL + (", _deleted_at TIMESTAMP_NTZ" if deleted else ""),
    )
    mirror = mirror_of(deletes=deletes)
    write = mirror.first(Beginning(window, staged, Copied(copy), anew=True, known_at=time_of(40)), held)

    rows = {tuple(row) for row in write.rows.select(*[f"`{c.name}`" for c in mirror.columns()]).collect()}
    now = {(1, 1, "n1", None, None), (1, 3, "n3", None, None)}
    kept = {(1, 2, "n2", "d", "t"), (1, 7, "vanished", None, None), (1, 8, "deleted before", None, None)}
    # of 2 CDC left out a value, so that the target's row stays; 4 came and went meanwhile
    kept.add((1, 4, "n4", None, None))
    if deletes == "hard":
        assert rows == now
    elif deletes == "ignore":
        assert rows == now | kept
    else:
        times = {2: time_of(40), 4: time_of(30), 7: time_of(40), 8: time_of(3)}
        assert rows == {(*row, None) for row in now} | {(*row, times[row[1]]) for row in kept}
    assert by_keys_of(write.rows, copy, ("h", "id"), "left_semi").count() == 2
