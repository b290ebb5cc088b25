"""What of a row is loaded: filter, column list, new names and masks, against the model of the capture."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
from decimal import Decimal

import pytest
from hypothesis import given as drawn_from
from pyspark.sql import functions as F

from airflow_provider_mssql_cdc.core.choice import Choice, choose
from airflow_provider_mssql_cdc.core.columns import map_column, map_columns
from airflow_provider_mssql_cdc.core.conditions import ORDERS, condition
from airflow_provider_mssql_cdc.core.position import Window
from airflow_provider_mssql_cdc.core.selection import Selection, salt_check
from airflow_provider_mssql_cdc.core.table import Column
from airflow_provider_mssql_cdc.spark.selecting import fulfils, with_salt
from airflow_provider_mssql_cdc.spark.session import table_session
from airflow_provider_mssql_cdc.spark.shapes.history import history_events
from airflow_provider_mssql_cdc.spark.shapes.table import TableRows
from airflow_provider_mssql_cdc.spark.sources.cdc.events import stage
from airflow_provider_mssql_cdc.spark.sources.cdc.query import slice_sql
from airflow_provider_mssql_cdc.spark.sources.cdc.slices import Slice
from tests.support.logins import SALT
from tests.support.spark import model
from tests.support.spark.drawn import SPEC, before, draw, few, frame, mirror_of, seeds, versions_of
from tests.support.spark.rows import local

pytestmark = pytest.mark.xdist_group(__name__)

FILTER = (("name", "<", "z"), ("id", "not in", (5,)))
CHOICE = Choice(("H", "id", "doc"), FILTER, {"id": "row id", "doc": "text"}, {"id": "hash"})
NAMES = ["h", "row id", "text"]
OPERATIONS = {1: "D", 2: "I", 3: "B", 4: "U"}


def hashed(value):
    """The hash of a value that is read as text or as a number."""
    return hashlib.sha256((SALT + str(value)).encode()).hexdigest()


def chosen(choice):
    """The table's part of a spec, and its rows."""
    selection = choose(SPEC.name, SPEC.schema, choice, check=salt_check(SALT))
    spec = dataclasses.replace(SPEC, selection=selection)
    mappings = map_columns(spec.name, spec.schema, selection)
    return spec, mappings, TableRows(spec, mappings, "UTC")


def passes(row):
    """Whether (h, id, name, ..) is in the view: by code points, and never NULL."""
    return row[2] is not None and row[2] < "z" and row[1] != 5


def view(captures, cut):
    return [row for row in before(captures, cut) if passes(row)]


def events(captures, low, high):
    """The events of the view, in order: LSN, command, operation, values, whether the key moved, whether it entered."""
    found = []
    for capture in captures:
        old = None
        for change, image in zip(capture.changes, capture.images, strict=True):
            position, command, operation, *row = image
            if not low < position <= high:
                continue
            identity = (str(model.lsn(position)), row[0] * 1000 + command)
            moved = operation in (3, 4) and bool(change["update_mask"][-1] & 0b10)
            if operation == 3:
                old = row
            elif operation in (1, 2):
                found += [(*identity, OPERATIONS[operation], tuple(row), False, False)] if passes(row) else []
            elif passes(old) and passes(row):
                found += [(*identity, "B", tuple(old), moved, False), (*identity, "U", tuple(row), moved, False)]
            elif passes(old):
                found.append((*identity, "D", tuple(old), False, True))
            elif passes(row):
                found.append((*identity, "I", tuple(row), False, True))
    return found


def shown(row):
    """What targets hold of a row, without its LOB."""
    return row[0], hashed(row[1])


@few
@drawn_from(seeds)
def test_history_and_versions_are_those_of_the_rows_that_fulfil_the_filter(spark, tmp_path_factory, seed):
    captures, low, high = draw(seed)
    session, window = table_session(spark), Window(model.lsn(low), model.lsn(high))
    spec, mappings, table = chosen(CHOICE)
    raw = frame(session, model.raw_rows(captures, low, high))
    folder = str(tmp_path_factory.mktemp("staged") / "events")
    staged = stage(raw, spec.schema, mappings, [window], folder, history=True, selection=spec.selection, salt=SALT)
    start = view(captures, low)
    known = local(
        session,
        [(*shown(row), row[3], []) for row in start],
        "h INT, `row id` STRING, text STRING, _unknown ARRAY<STRING>",
    )
    expected = events(captures, low, high)

    history = history_events(table, "all_old", staged, window, known).collect()

    assert {(e["_lsn"], e["_command_id"], e["_op"]): (e["h"], e["row id"]) for e in history} == {
        (lsn, command, op): shown(row) for lsn, command, op, row, _, _ in expected
    }
    assert len(history) == len(expected)
    real = {(lsn, command, op): row for lsn, command, op, row, _, _ in expected}
    entered = {}
    for lsn, _, op, row, _, crossed in expected:
        if op == "I" and crossed:
            entered[row[0]] = min(entered.get(row[0], lsn), lsn)
    # numbered beneath the filter
    numbers = {("0x" + r[0].hex().upper(), r[1], r[3]): r[5] for r in model.raw_rows(captures, low, high)}
    for e in history:
        identity = (e["_lsn"], e["_command_id"], e["_op"])
        if e["_unknown"]:
            # no earlier row of the target has what CDC left out of a row that enters
            assert e["_unknown"] == ["text"]
            assert entered[e["h"]] <= e["_lsn"]
        else:
            assert e["text"] == real[identity][3]
        assert set(e["_changed"]) <= set(NAMES)
        if e["_op"] in "ID":
            assert e["_changed"] == NAMES
        captured = {"D": (1, 3), "I": (2, 4), "B": (3,), "U": (4,)}[e["_op"]]
        assert e["_seq"] in [numbers.get((*identity[:2], operation)) for operation in captured]

    held = local(
        session,
        [(*shown(row), row[3], str(model.lsn(3)), None, None, None, []) for row in start],
        "h INT, `row id` STRING, text STRING, _from_lsn STRING, _to_lsn STRING, _from_ts TIMESTAMP_NTZ,"
        " _to_ts TIMESTAMP_NTZ, _unknown ARRAY<STRING>",
    )
    merge = versions_of(table).next(window, staged, held, ())
    versions = {((r["h"], r["row id"]), r["_from_lsn"]): r["_to_lsn"] for r in merge.rows.collect()}

    last = {}
    for lsn, _, op, row, moved, _ in expected:
        if op != "B" or moved:
            last.setdefault(shown(row), {})[lsn] = op in "IU"
    ends = {}
    for row in start:
        if shown(row) in last:
            ends[shown(row), str(model.lsn(3))] = min(last[shown(row)])
    for key, left in last.items():
        lsns = sorted(left)
        ends.update({(key, lsn): to for lsn, to in zip(lsns, [*lsns[1:], None], strict=True) if left[lsn]})
    assert merge.key == ("h", "row id", "_from_lsn")
    assert versions == ends


@few
@drawn_from(seeds)
def test_a_mirror_becomes_what_the_filter_leaves_at_the_cut(spark, tmp_path_factory, seed):
    captures, low, high = draw(seed)
    session, window = table_session(spark), Window(model.lsn(low), model.lsn(high))
    spec, mappings, table = chosen(Choice(("h", "id", "name"), FILTER, {"name": "n"}, {"id": "hash", "name": "hash"}))
    # as the server answers: old images only where the mask has a column of the key or of the filter
    rows = [row for row in model.raw_rows(captures, low, high) if row[3] != 3 or row[4][-1] & 0b111]
    folder = str(tmp_path_factory.mktemp("staged") / "events")
    staged = stage(
        frame(session, rows), spec.schema, mappings, [window], folder,
        history=False, selection=spec.selection, salt=SALT,
    )  # fmt: skip
    start = [(*shown(row), hashed(row[2])) for row in view(captures, low)]

    changes = mirror_of(table).changes(window, staged, local(session, start, "h INT, id STRING, n STRING"))

    mirror = {row[:2]: row for row in start}
    for row in changes.collect():
        if row["_op"] in "DB":
            mirror.pop((row["h"], row["id"]), None)
        else:
            mirror[row["h"], row["id"]] = (row["h"], row["id"], row["n"])
    assert sorted(mirror.values()) == sorted((*shown(row), hashed(row[2])) for row in view(captures, high))
    kinds = [op for _, _, op, _, _, _ in events(captures, low, high)]
    counts = staged.count(window)
    assert (counts.inserted, counts.updated, counts.deleted) == tuple(kinds.count(op) for op in "IUD")


def test_only_what_is_shown_or_judged_is_read_from_the_change_table():
    choice = Choice(("id", "h", "doc"), (("name", "is not null"),), mask={"doc": "redact"})
    spec, mappings, _ = chosen(choice)
    part = Slice(Window(model.lsn(1), model.lsn(2)), 0)

    query = slice_sql(spec.feed, spec.schema, mappings, part, history=False, selection=spec.selection)

    assert query.count("[h]") == query.count("[id]") == 2
    # and compared with the other image's: texts that are equal to the server may be judged differently
    assert query.count("[name]") == 11
    assert "[doc]" not in query
    assert "[old text]" not in query
    # bits of h, id and name
    assert query.endswith(
        "- 0, 1)) & 7 <> 0 OR [__$judged] = 1) AND ([__$operation] IN (3, 4) OR ([name] IS NOT NULL))"
    )


def test_the_salt_stands_in_no_plan(spark, capsys):
    _, mappings, _ = chosen(CHOICE)
    raw = frame(table_session(spark), [(b"", 1, b"", 2, b"", 1, "", b"", 1, 7, "a", None, None)])
    (target,) = next(mapping.targets for mapping in mappings if mapping.column.name == "id")

    rows = with_salt(raw, mappings, SALT).select(F.expr(target.expression.replace("{}", "c2")).alias("id"))

    assert rows.collect() == [(hashed(7),)]
    for mode in ("extended", "formatted", "codegen", "cost"):
        rows.explain(mode)
    plans = capsys.readouterr().out
    assert "sha2" in plans
    assert SALT not in plans
    assert SALT.encode().hex() not in plans.lower()


def test_values_are_compared_as_their_types_order_them(spark):
    cases = [
        (("char", 8), "new ", "new     ", {"=", "<=", ">="}),
        (("varchar", 8), "new ", "new", {"<>", ">", ">="}),
        (("nvarchar", 40), "a", "ä", {"<>", "<", "<="}),
        (("nvarchar", 40), "draft", "Draft", {"<>", ">", ">="}),
        (("uniqueidentifier",), "0a0a0a0a-0000-0000-0000-00000000000b", "0A0A0A0A-0000-0000-0000-00000000000B", {"="}),
        (("bigint",), 2**62, 2**62 + 1, {"<>", "<", "<="}),
        (("decimal", 9, 9, 2), Decimal("0.10"), Decimal("0.1"), {"=", "<=", ">="}),
        (("float", 8, 53), 0.5, 0.25, {">", ">="}),
        (("bit",), False, True, {"<>"}),
        (("date",), datetime.date(999, 1, 1), "2026-01-01", {"<>", "<", "<="}),
        (("datetime", 8, 23, 3), datetime.datetime(2026, 1, 1), "2026-01-01 00:00:00.000", {"=", "<=", ">="}),
        (("datetime2", 8, 27, 7), datetime.date(2026, 1, 1), "2026-01-01 00:00:00.0000001", {"<>", "<", "<="}),
        (("datetime2", 6, 19, 0), datetime.datetime(2026, 1, 1, 0, 0, 0, 1), "2026-01-01 00:00:00", {"<>", ">", ">="}),
    ]
    asked, row, types, expected = [], [], [], []
    for number, (column, given, read, holds) in enumerate(cases, start=1):
        judged = Column(number, number, f"x{number}", *column)
        mapping = map_column(SPEC.name, judged)
        row.append(read)
        types.append(f"{mapping.alias} {mapping.read_type}")
        operators = {"bit": "= <>", "uniqueidentifier": "= <>", "float": "< <= > >="}.get(column[0], "= <> < <= > >=")
        for operator in operators.split():
            # a filter has the constant on the right
            turned = operator.translate(str.maketrans("<>", "><")) if operator in ORDERS else operator
            selection = Selection(conditions=(condition(SPEC.name, judged, turned, [given]),))
            asked.append(fulfils([mapping], selection.conditions).alias(f"{number} {operator}"))
            expected.append(operator in holds)

    (found,) = local(table_session(spark), [tuple(row)], ", ".join(types)).select(*asked).collect()

    assert found.asDict() == dict(zip(found.asDict(), expected, strict=True))
