"""The steps of a table: as an example for each kind, and beside a model in plain Python."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.changes import HistoryOptions
from airflow_provider_mssql_cdc.core.initial import Initial
from airflow_provider_mssql_cdc.core.position import Lsn, Window
from airflow_provider_mssql_cdc.core.spec import SinkSpec
from airflow_provider_mssql_cdc.core.steps import (
    Commit,
    Copy,
    Done,
    Evolve,
    Read,
    SinkSteps,
    Stand,
    TableSteps,
    table_steps,
)
from tests.core.test_spec import SPEC

(TABLE,) = SPEC.tables


def lsn(number: int) -> Lsn:
    return Lsn(number.to_bytes(10))


def sink(
    shape: str,
    read_through: int | None = None,
    expects: int | None = None,
    lost_after: int | None = None,
    asserted: str | None = None,
) -> SinkSpec:
    positions = [None if n is None else lsn(n) for n in (read_through, expects, lost_after)]
    return SinkSpec(shape, ("lake", "shop", shape), *positions, asserted=asserted)


def steps(*sinks: SinkSpec, cut: int = 90, readable_from: int = 10, **stands: Stand) -> TableSteps:
    table = dataclasses.replace(TABLE, sinks=sinks)
    known = {each.shape: stands.get(each.shape, Stand.expected(each)) for each in sinks}
    return table_steps(table, known, cut=lsn(cut), readable_from=lsn(readable_from))


def window(after: int, upto: int = 90) -> Window:
    return Window(lsn(after), lsn(upto))


def test_a_first_load_is_a_copy_and_the_changes_since_in_one_commit() -> None:
    assert steps(sink("mirror"), sink("history")) == TableSteps(
        (Commit((Copy({"mirror": None, "history": None}), Read({"mirror": None, "history": None}))),)
    )


def test_a_new_shape_begins_while_the_others_go_on() -> None:
    found = steps(sink("mirror", 50, 40), sink("history", 60, 60), sink("scd2"))
    assert found.commits == (
        Commit((Copy({"scd2": None}), Read({"scd2": None}))),
        Commit((Read({"mirror": window(50), "history": window(60)}),)),
    )
    assert [found.of(shape) for shape in ("mirror", "scd2")] == [
        SinkSteps(window=window(50)),
        SinkSteps(copied=True, begins=True),
    ]
    assert [str(commit) for commit in found.commits] == [
        "copy scd2 for the first time, then read scd2 from its low on, to the cut",
        f"read mirror ({lsn(50)}, {lsn(90)}], history ({lsn(60)}, {lsn(90)}]",
    ]


def test_a_gap_is_closed_by_a_copy_where_that_is_asked_for_and_is_lost_otherwise() -> None:
    closed = steps(sink("mirror", lost_after=5), sink("history", 50, 50))
    assert closed.copies == {"mirror": lsn(5)}
    assert closed.windows == {"history": window(50)}
    assert str(closed.commits[0].steps[0]) == f"copy mirror again, lost after {lsn(5)}"
    lost = steps(sink("mirror", 5, 5), sink("history", 50, 50))
    assert (lost.lost, lost.windows) == ({"mirror": lsn(5)}, {"history": window(50)})
    with pytest.raises(KeyError):
        lost.of("mirror")


def test_what_begins_with_changes_alone_does_not_wait_for_a_copy() -> None:
    def begin(shape: str, text: str, **where: int) -> SinkSpec:
        return dataclasses.replace(sink(shape, **where), initial=Initial.parse(text))

    found = steps(sink("mirror"), begin("history", "earliest"), begin("transactions", lsn(20).text))
    first = Read({"history": window(10), "transactions": window(20)}, first=frozenset({"history", "transactions"}))
    assert found.commits == (Commit((Copy({"mirror": None}), Read({"mirror": None}))), Commit((first,)))
    assert found.begins == {"mirror": None, "history": None, "transactions": None}
    assert found.of("history") == SinkSteps(window=window(10), begins=True)
    assert str(found.commits[1]) == (
        f"read history ({lsn(10)}, {lsn(90)}] for the first time,"
        f" transactions ({lsn(20)}, {lsn(90)}] for the first time"
    )
    assert steps(begin("history", "latest")).windows == {"history": window(90)}
    # what was purged before it began is no gap that a copy closes
    assert steps(begin("history", lsn(9).text)).lost == {"history": lsn(9)}
    late = steps(begin("history", lsn(91).text))
    assert (late.commits, late.refused["history"].is_early) == ((), True)
    none = dataclasses.replace(sink("history"), initial=Initial("", refused="it is too old"))
    assert steps(none).refused == {"history": none.initial}
    # it says nothing of one that is loaded, or heals
    assert steps(begin("history", "latest", read_through=50, expects=50)).windows == {"history": window(50)}
    assert steps(begin("history", "latest", lost_after=5)).copies == {"history": lsn(5)}


def test_what_takes_no_copied_rows_begins_without_a_copy() -> None:
    wide = dataclasses.replace(sink("history", lost_after=5), history=HistoryOptions(form="wide"))
    found = steps(sink("transactions"), wide)
    assert found.commits == (Commit((Read({"transactions": None, "history": None}, {"history": lsn(5)}),)),)
    assert (found.copies, found.begins) == ({}, {"transactions": None, "history": lsn(5)})
    assert found.of("history") == SinkSteps(lost_after=lsn(5), begins=True)
    assert str(found.commits[0]) == (
        f"read transactions from its low on, to the cut, history again, lost after {lsn(5)}"
    )
    keyless = dataclasses.replace(TABLE, sinks=(sink("history"),), schema=dataclasses.replace(TABLE.schema, key=()))
    assert table_steps(keyless, {"history": Stand(None)}, cut=lsn(90), readable_from=lsn(10)).copies == {}


def test_what_is_there_is_not_loaded_again() -> None:
    found = steps(sink("mirror", 50, 50), sink("history", 95, 50), mirror=Stand(lsn(95)), history=Stand(lsn(50)))
    assert found == TableSteps(done={"mirror": Done("already", lsn(95)), "history": Done("empty", lsn(95))})


def test_a_persons_word_counts_in_the_place_of_a_marker() -> None:
    found = steps(sink("mirror", 50, 50, asserted="word"), mirror=Stand(lsn(80), asserted=True))
    assert found.of("mirror") == SinkSteps(asserted=True, window=window(50))


def test_an_evolve_says_whose_columns_change() -> None:
    assert str(Commit((Evolve(("mirror",)),))) == "change the columns of mirror"


small = st.integers(1, 12)


@st.composite
def cases(draw: st.DrawFn) -> tuple[SinkSpec, int | None, bool, int, int]:
    """A sink, where its marker stands, whether an asserted position counts, the cut, and what can be read."""
    expects = draw(st.none() | small)
    read_through = None if expects is None else draw(st.integers(expects, 12))
    lost_after = draw(st.none() | small) if expects is None else None
    known = expects is not None or lost_after is not None
    word = draw(st.booleans()) and known
    made = sink("mirror", read_through, expects, lost_after, "word" if word else None)
    return made, draw(st.none() | small), word, draw(small), draw(small)


@given(cases())
def test_a_sink_goes_on_behind_all_that_is_proven_and_never_over_a_gap(case) -> None:
    made, marker, word, cut, readable_from = case
    found = steps(
        made, cut=cut, readable_from=readable_from, mirror=Stand(None if marker is None else lsn(marker), word)
    )

    def at(position: Lsn | None) -> int | None:
        return None if position is None else int.from_bytes(position.value)

    # the model
    read_through, expects, lost_after = at(made.read_through), at(made.expects), at(made.lost_after)
    if word:
        start = read_through if read_through is not None else lost_after
    elif marker is not None and expects is not None and read_through is not None and marker >= expects:
        start = max(marker, read_through)
    else:
        start = marker
    if start is None or (word and read_through is None):
        assert (found.begins, found.done, found.lost) == ({"mirror": None if start is None else lsn(start)}, {}, {})
    elif start >= cut:
        assert at(found.done["mirror"].read_through) == start
        assert not found.commits
    elif start >= readable_from:
        assert found.windows == {"mirror": window(start, cut)}
    elif lost_after is not None:
        assert found.begins == found.copies == {"mirror": lsn(start)}
    else:
        assert (found.lost, found.commits) == ({"mirror": lsn(start)}, ())


@given(cases())
def test_the_operator_shows_what_a_job_does_whose_marker_the_checkpoint_knows(case) -> None:
    made, _, _, cut, readable_from = case
    marker = Stand(made.expects or made.lost_after, asserted=made.asserted is not None)
    assert steps(made, cut=cut, readable_from=readable_from) == steps(
        made, cut=cut, readable_from=readable_from, mirror=marker
    )
