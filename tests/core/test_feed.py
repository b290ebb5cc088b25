"""What feeds can do, and what is refused of those that cannot."""

import dataclasses
import itertools

import pytest

from airflow_provider_mssql_cdc.core.changes import CHANGES, HistoryOptions
from airflow_provider_mssql_cdc.core.feed import Abilities, CaptureInstance, Feed, refused_options, refused_shapes
from airflow_provider_mssql_cdc.core.shapes import DELETES, SHAPES
from tests.support.logged.feed import LoggedTable

ALL = tuple(SHAPES)
BY_HAND = {"key": ("id",), "unique": False}


class Net(Feed):
    """What net changes without old values are read by, as of a tracked table."""

    WORD = "tracked table"
    CAN = dataclasses.replace(LoggedTable.CAN, shapes=None)


class Forward(Feed):
    """Every change, but no old values."""

    WORD = "journal"
    CAN = Abilities(before_images=False)


def test_change_data_capture_serves_all():
    for changes, deletes, key, unique in itertools.product(CHANGES, DELETES, ((), ("id",)), (True, False)):
        how = {"history": HistoryOptions(changes), "deletes": deletes, "key": key, "unique": unique}
        assert refused_shapes(CaptureInstance, ALL, **how) == {}
    assert refused_options(CaptureInstance, replay=True, limits=True) == []


def test_a_shape_that_a_feed_does_not_serve_is_refused_with_those_that_it_does():
    assert refused_shapes(LoggedTable, ALL) == {
        shape: f"a log does not serve {shape}, but mirror, scd2" for shape in ("history", "transactions")
    }


@pytest.mark.parametrize(
    ("feed", "how", "shape", "why"),
    [
        (Net, {}, "history", "'all_old' changes needs every change, and a tracked table has net changes only"),
        (Net, {"history": HistoryOptions("all")}, "history", "'all' changes needs every change"),
        (Net, {}, "transactions", "transactions needs every change, and a tracked table has net changes only"),
        (Forward, {}, "history", "'all_old' changes needs the values before an update, which a journal lacks"),
        (Forward, {"history": HistoryOptions(form="wide")}, "history", "needs the values before an update"),
        (Net, {"deletes": "soft"}, "mirror", "deletes='soft' needs the times of deletes, which a tracked table lacks"),
        (
            Net,
            {"deletes": "ignore"},
            "mirror",
            "'ignore' needs the values of deleted rows, which a tracked table lacks",
        ),
        *(
            (
                Net,
                {"key": ("id",), "unique": False, "history": HistoryOptions("net")},
                shape,
                "by a key that is not enforced",
            )
            for shape in ("mirror", "history", "scd2")
        ),
    ],
)
def test_what_needs_more_than_a_feed_has_is_refused_alone(feed, how, shape, why):
    found = refused_shapes(feed, (shape,), **how)
    assert found.keys() == {shape}
    assert why in found[shape]


def test_what_a_feed_without_old_values_can_do_is_not_refused():
    assert refused_shapes(Forward, ("transactions",)) == {}
    for feed, changes in ((Net, "net"), (Net, "net_merge"), (Forward, "net"), (Forward, "all")):
        for deletes, key, unique in (("hard", ("id",), True), ("hard", (), False)):
            how = {"history": HistoryOptions(changes), "deletes": deletes, "key": key, "unique": unique}
            assert refused_shapes(feed, ("mirror", "history", "scd2"), **how) == {}


def test_options_of_a_run_that_a_feed_cannot_keep_to_are_refused():
    assert refused_options(LoggedTable) == []
    (replay,) = refused_options(LoggedTable, replay=True)
    (limits,) = refused_options(LoggedTable, limits=True)
    assert "replay=True needs the rows of a past window, which a log does not give again" in replay
    assert "max_transactions and max_rows" in limits
    # a window that does not end at the cut has other rows when it is read again, and ends at no limit
    for can in (Abilities(exact_cut=False), Abilities(replay=False, limits=False)):
        loose = type("Loose", (Feed,), {"CAN": can, "WORD": "log"})
        assert refused_options(loose, replay=True, limits=True) == [replay, limits]
