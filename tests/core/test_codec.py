"""The codec: versions, kinds, and what a version does not know."""

import dataclasses
import datetime
import json
import typing
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import pytest

from airflow_provider_mssql_cdc.core.changes import HistoryOptions
from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint
from airflow_provider_mssql_cdc.core.codec import Format, Tagged, from_data, from_json, to_data, to_json
from airflow_provider_mssql_cdc.core.exceptions import FormatError, NewerFormatError
from airflow_provider_mssql_cdc.core.feed import CaptureInstance, FeedRef
from airflow_provider_mssql_cdc.core.lineage import TrackedSince, Witness
from airflow_provider_mssql_cdc.core.marker import (
    FeedSpan,
    MappedColumn,
    Marker,
    TaskRun,
    carried,
    line_of_feeds,
    read_from_another,
)
from airflow_provider_mssql_cdc.core.position import KINDS, Cut, Lsn, Position
from airflow_provider_mssql_cdc.core.receipt import Receipt, SinkReceipt, TableReceipt
from airflow_provider_mssql_cdc.core.spec import JobSpec
from airflow_provider_mssql_cdc.core.table import SAME_TIME, TableName
from tests.core.test_spec import CREATED, MARKER, ORDERS, SPEC, lsn
from tests.support.core.positions import Counted


@dataclass(frozen=True)
class Square:
    side: float
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)

    KIND: ClassVar[str] = "square"


@dataclass(frozen=True)
class Point:
    at: Lsn
    when: datetime.datetime | None = None

    KIND: ClassVar[str] = "point"


@dataclass(frozen=True)
class Page:
    shapes: tuple[Square | Point, ...]
    position: Annotated[Position | None, Tagged]
    first: Square | Point | None = None
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)

    FORMAT: ClassVar[Format] = Format(
        "page",
        3,
        "7.0",
        {
            1: lambda data: {"shapes": [], "position": {"kind": "lsn", "at": data["lsn"]}},
            2: lambda data: {**data, "shapes": [*data["shapes"], {"kind": "square", "side": 2}]},
        },
    )


PAGE = Page((Square(1.5), Point(lsn(4), CREATED)), lsn(7), Point(lsn(1)))


def test_members_of_a_union_are_told_apart_by_their_kind():
    data = to_data(PAGE)
    assert data == {
        "version": 3,
        "needs": "7.0",
        "shapes": [
            {"kind": "square", "side": 1.5},
            {"kind": "point", "at": str(lsn(4)), "when": CREATED.isoformat()},
        ],
        "position": {"kind": "lsn", "at": str(lsn(7))},
        "first": {"kind": "point", "at": str(lsn(1)), "when": None},
    }
    assert from_data(Page, data) == PAGE
    assert from_json(Page, to_json(PAGE)) == PAGE


def test_an_older_version_goes_through_each_one_after_it():
    assert from_data(Page, {"version": 1, "lsn": str(lsn(3))}) == Page((Square(2.0),), lsn(3))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("first", {"kind": "circle"}, "'circle' is none of square, point"),
        ("position", {"kind": "time", "at": "5"}, "'time' is none of lsn, version"),
        ("first", {"side": 1}, "'kind'"),
        ("position", str(lsn(1)), "page is damaged"),
        ("shapes", 5, "page is damaged"),
    ],
)
def test_what_is_of_no_known_kind_is_an_error(name, value, said):
    with pytest.raises(FormatError, match=said):
        from_data(Page, {**to_data(PAGE), name: value})


def test_what_is_not_known_stays_where_it_was():
    data = to_data(PAGE)
    data["later"], data["shapes"][0]["later"] = [1, {"a": None}], "b"
    read = from_data(Page, data)
    assert to_data(dataclasses.replace(read, position=lsn(8))) == {
        **data,
        "position": {"kind": "lsn", "at": str(lsn(8))},
    }
    # a record that keeps nothing leaves it out
    data["first"]["later"] = 1
    assert from_data(Page, data).first == PAGE.first


def records(kind: Any) -> set[type]:
    """The records that a document is made of, itself among them."""
    if not dataclasses.is_dataclass(kind):
        return {record for each in typing.get_args(kind) for record in records(each)}
    assert isinstance(kind, type)
    hints = typing.get_type_hints(kind, include_extras=True)
    return {kind}.union(*(records(hints[each.name]) for each in dataclasses.fields(kind)))


@pytest.mark.parametrize("document", [Checkpoint, Marker])
def test_all_that_is_written_back_keeps_what_is_not_known(document):
    found = records(document) - {Lsn, TableName}
    assert len(found) > 5
    assert {kind.__name__ for kind in found if "unknown" not in kind.__dataclass_fields__} == set()


@pytest.mark.parametrize("document", [MARKER, SPEC, Receipt("a1", ())], ids=["marker", "spec", "receipt"])
def test_a_later_version_is_refused_with_the_version_of_the_package_that_it_needs(document):
    newer = document.FORMAT.version + 1
    data = {**to_data(document), "version": newer, "needs": "0.9.1"}
    with pytest.raises(
        NewerFormatError, match=rf"the {document.FORMAT.name} has version {newer}, which .* 0\.9\.1 reads"
    ):
        from_json(type(document), json.dumps(data))


def test_a_receipt_with_a_newer_marker_is_refused():
    receipt = Receipt("a1", (TableReceipt(ORDERS, (SinkReceipt("mirror", None, MARKER, "loaded", lsn(9)),)),))
    data = to_data(receipt)
    assert from_data(Receipt, data) == receipt
    data["tables"][0]["sinks"][0]["after"]["version"] = 3
    with pytest.raises(NewerFormatError, match="the marker has version 3"):
        from_data(Receipt, data)


VERSION_1 = {
    "version": 1,
    "position": str(lsn(9)),
    "witness": {"lsn": str(lsn(8)), "time": CREATED.isoformat(), "recovery_fork": "5D3F"},
    "server": "db:1433",
    "database": "shop",
    "table": {"schema": "sales", "table": "orders"},
    "instance": "sales_orders",
    "object_id": 11,
    "create_date": CREATED.isoformat(),
    "schema_hash": "1:abc",
    "window_after": str(lsn(3)),
    "events": {"inserted": 2},
    "spec_id": "a1",
    "read_mode": "change_table",
    "vouched": "word",
}


def test_a_marker_of_version_1_is_upgraded():
    assert from_data(Marker, VERSION_1) == dataclasses.replace(
        MARKER, feeds=(FeedSpan(FeedRef("sales_orders", 11, CREATED), None),), asserted="word", layout=1
    )
    bare = {name: value for name, value in VERSION_1.items() if name not in ("create_date", "read_mode", "vouched")}
    found = from_data(Marker, {**bare, "witness": None})
    assert (found.feed, found.witness, found.asserted) == (FeedRef("sales_orders", 11), None, None)


def spec_of_version_2():
    """A spec as version 2 has it: with capture instances alone."""
    data = json.loads(to_json(SPEC))
    (table,) = data["tables"]
    instance = table.pop("feed")
    assert instance.pop("kind") == "capture_instance"
    table["alternatives"] = [{**table, "instance": {**instance, "name": "other"}}]
    return {**data, "version": 2, "needs": "0.2.0", "tables": [{**table, "instance": instance}]}


def test_a_spec_of_version_2_is_upgraded():
    (table,) = SPEC.tables
    other = dataclasses.replace(table, feed=dataclasses.replace(table.feed, name="other"))
    expected = dataclasses.replace(SPEC, tables=(dataclasses.replace(table, alternatives=(other,)),))
    assert from_data(JobSpec, spec_of_version_2()) == expected


def test_a_spec_and_a_receipt_of_version_1_are_upgraded():
    data = spec_of_version_2()
    data["version"], sink = 1, data["tables"][0]["sinks"][0]
    del data["needs"], data["run"], sink["asserted"]
    sink["vouched"] = "word"
    data["witness"] = VERSION_1["witness"]
    found = from_data(JobSpec, data)
    assert found.witness == MARKER.witness
    assert found.tables[0].sinks == (dataclasses.replace(SPEC.tables[0].sinks[0], asserted="word"),)
    receipt = {
        "version": 1,
        "spec_id": "a1",
        "tables": [
            {
                "name": VERSION_1["table"],
                "sinks": [
                    {
                        "shape": "mirror",
                        "before": None,
                        "after": VERSION_1,
                        "outcome": "loaded",
                        "read_through": str(lsn(9)),
                    }
                ],
            }
        ],
    }
    after = from_data(Receipt, receipt).tables[0].sinks[0].after
    assert after == from_data(Marker, VERSION_1)


FEED, OTHER = FeedRef("sales_orders", 11, CREATED), FeedRef("v2", 12, CREATED)


def test_the_line_of_feeds_grows_where_the_feed_changes():
    assert line_of_feeds(None, FEED, lsn(1)) == (FeedSpan(FEED, lsn(1)),)
    assert line_of_feeds(MARKER, FEED, lsn(9)) == MARKER.feeds
    assert line_of_feeds(MARKER, OTHER, lsn(9)) == (*MARKER.feeds, FeedSpan(OTHER, lsn(9)))


def instance(ref):
    return CaptureInstance(ref.name, ref.object_id, ORDERS, 1, CREATED, ())


@pytest.mark.parametrize(
    ("feeds", "feed", "after", "other"),
    [
        ([(FEED, 3)], FEED, 3, None),
        # nothing was loaded there
        ([(FEED, 3)], FEED, 2, None),
        ([(FEED, None)], FEED, 2, None),
        ([(FEED, 3)], OTHER, 3, FEED),
        ([(FEED, 3), (OTHER, 7)], OTHER, 7, None),
        ([(FEED, 3), (OTHER, 7)], OTHER, 6, FEED),
        ([(FEED, 3), (OTHER, None)], OTHER, 6, FEED),
        ([(FEED, 3), (OTHER, 7)], FEED, 7, OTHER),
        ([(OTHER, 1), (FEED, 3), (OTHER, 7)], OTHER, 2, FEED),
    ],
)
def test_behind_which_position_the_events_of_another_feed_were_loaded(feeds, feed, after, other):
    spans = tuple(FeedSpan(each, None if at is None else lsn(at)) for each, at in feeds)
    marker = dataclasses.replace(MARKER, feeds=spans)
    assert read_from_another(marker, instance(feed), lsn(after)) == other


@pytest.mark.parametrize("created", [None, CREATED + SAME_TIME / 2])
def test_the_line_of_feeds_takes_up_what_is_known_of_the_same_feed_now(created):
    before = dataclasses.replace(MARKER, feeds=(FeedSpan(dataclasses.replace(FEED, create_date=created), lsn(1)),))
    assert line_of_feeds(before, FEED, lsn(9)) == (FeedSpan(FEED, lsn(1)),)
    later = dataclasses.replace(FEED, create_date=CREATED + SAME_TIME)
    assert line_of_feeds(MARKER, later, lsn(9)) == (*MARKER.feeds, FeedSpan(later, lsn(9)))


def test_the_line_of_feeds_keeps_what_a_later_version_says_of_the_same_feed():
    later = dataclasses.replace(FEED, unknown={"later": 1})
    before = dataclasses.replace(MARKER, feeds=(FeedSpan(later, lsn(1)),))
    assert line_of_feeds(before, FEED, lsn(9))[0].feed.unknown == {"later": 1}
    assert line_of_feeds(before, OTHER, lsn(9))[1].feed.unknown == {}


def test_a_marker_hands_on_what_this_version_only_keeps():
    before = dataclasses.replace(
        MARKER, copies=("c1",), waiting_ids=(4,), unfilled=("note",), others_seen=True, unknown={"later": 1}
    )
    new = dataclasses.replace(MARKER, position=lsn(12), events={})
    assert carried(None, MARKER, rows=True) == MARKER
    after = carried(before, new, rows=True)
    assert after == dataclasses.replace(before, position=lsn(12), events={})
    assert to_data(after)["later"] == 1


def test_a_marker_hands_on_what_a_later_version_says_of_the_history_and_not_of_the_run():
    before = dataclasses.replace(
        MARKER, history=HistoryOptions(unknown={"later": 1}), run=TaskRun("d", "t", "r1", 1, unknown={"later": 2})
    )
    assert from_data(Marker, to_data(before)).history.unknown == {"later": 1}
    assert from_data(Marker, to_data(before)).run.unknown == {"later": 2}
    after = carried(before, dataclasses.replace(MARKER, run=TaskRun("d", "t", "r2", 1)), rows=True)
    assert (after.history.unknown, after.run.unknown) == ({"later": 1}, {})


def test_a_position_of_another_kind_reads_back_tagged_or_not(monkeypatch):
    monkeypatch.setitem(KINDS, Counted.KIND, Counted)
    marker = dataclasses.replace(MARKER, position=Counted(42), witness=None, window_after=Counted(7))
    data = to_data(marker)
    assert (data["position"], data["window_after"]) == (
        {"kind": "counted", "at": "42"},
        {"kind": "counted", "at": "7"},
    )
    assert from_data(Marker, data) == marker
    # an LSN has its kind beside it only where a field has said so from the beginning
    assert (to_data(MARKER)["position"], to_data(MARKER)["window_after"]) == (
        {"kind": "lsn", "at": str(MARKER.position)},
        str(MARKER.window_after),
    )
    monkeypatch.delitem(KINDS, Counted.KIND)
    with pytest.raises(FormatError, match="the kind 'counted' is none of lsn"):
        from_data(Marker, data)


def test_a_witness_of_another_kind_of_position_reads_back(monkeypatch):
    monkeypatch.setitem(KINDS, Counted.KIND, Counted)
    marker = dataclasses.replace(MARKER, position=Counted(42), witness=Witness(Counted(42), CREATED))
    assert from_data(Marker, to_data(marker)) == marker
    since = dataclasses.replace(MARKER, witness=Witness(lsn(3), CREATED, tracking=TrackedSince(7, 11)))
    assert from_data(Marker, to_data(since)) == since
    # an LSN is the text that it has been from the beginning
    assert to_data(dataclasses.replace(MARKER, witness=Witness(lsn(3), CREATED)))["witness"] == {
        "kind": "lsn",
        "lsn": str(lsn(3)),
        "time": CREATED.isoformat(),
        "recovery_fork": None,
        "tracking": None,
    }


def test_a_cut_is_its_text(monkeypatch):
    monkeypatch.setitem(KINDS, Counted.KIND, Counted)
    spec = dataclasses.replace(SPEC, upto=Cut((lsn(9), Counted(42))))
    assert to_data(SPEC)["upto"] == str(lsn(9))
    assert to_data(spec)["upto"] == f"counted=42,lsn={lsn(9)}"
    assert from_json(JobSpec, to_json(spec)) == spec


def test_a_marker_whose_rows_are_not_believed_hands_on_what_it_says_of_the_table():
    table = {"waiting_ids": (4,), "uncaptured_ids": (7,), "column_map": (MappedColumn(3, "old", dropped=True),)}
    before = dataclasses.replace(MARKER, copies=("c1",), unfilled=("note",), unknown={"later": 1}, **table)
    new = dataclasses.replace(MARKER, position=lsn(12))
    after = carried(before, new, rows=False)
    assert after == dataclasses.replace(new, **table)
    assert to_data(after)["later"] == 1
