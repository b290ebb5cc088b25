"""Which sinks of a table a run is about, against the rule in plain words."""

import datetime

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.checkpoint import Checkpoint, Failure, Identity
from airflow_provider_mssql_cdc.core.resting import Turn
from airflow_provider_mssql_cdc.core.table import TableName

NOW = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
SHAPES = ("mirror", "history", "scd2")
IDENTITY = Identity("db", "shop", TableName("dbo", "t"), "iceberg://lake/shop")

hours = st.integers(0, 8).map(lambda number: datetime.timedelta(hours=number))
failures = st.none() | st.builds(
    Failure,
    st.just("no"),
    hours.map(lambda ago: NOW - ago),
    st.sampled_from([None, "a", "b"]),
    planned=st.booleans(),
    stopped=st.booleans(),
    copy_mends=st.booleans(),
)


@given(
    st.fixed_dictionaries(dict.fromkeys(SHAPES, failures)),
    st.sampled_from(["a", "b"]),
    hours,
    st.booleans(),
    st.booleans(),
)
def test_a_sink_rests_until_its_cause_changed_or_max_idle_is_over(failed, seen, max_idle, asked, copies):
    stored = Checkpoint(IDENTITY)
    for shape, failure in failed.items():
        if failure is not None:
            stored = stored.failing([shape], failure)

    turn = Turn.of(stored, SHAPES, seen=seen, now=NOW, max_idle=max_idle, asked=asked, copies=copies)

    assert sorted((*turn.sound, *turn.again, *turn.resting)) == sorted(SHAPES), "each has one place"
    for shape, failure in failed.items():
        if failure is None:
            assert shape in turn.sound
            continue
        changed = failure.seen in ("a", "b") and failure.seen != seen
        mended = copies and failure.copy_mends
        due = asked or failure.planned or mended or changed or failure.time + max_idle <= NOW
        # what a person has stopped only a person begins again
        due = due and not failure.stopped
        assert shape in (turn.again if due else turn.resting)
    assert Turn.of(None, SHAPES, seen=seen, now=NOW, max_idle=max_idle).sound == SHAPES
