"""What must hold of targets that are loaded anew by another key, whatever they held."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.support.spark.rekeyed import Version, marked_by, version, versions_by

LOW = "5"
ROWS = st.fixed_dictionaries(
    {"id": st.integers(1, 4), "code": st.sampled_from(["a", "b", "c", None]), "v": st.booleans()}
)


def unique(rows, *key):
    return list({tuple(row[name] for name in key): row for row in rows}.values())


@st.composite
def tables(draw):
    """Versions, one open at a time for each id; and the table's rows, one for each code."""
    versions = []
    for id_ in range(1, 5):
        ends = sorted(draw(st.sets(st.sampled_from("12345"), min_size=1, max_size=4)))
        for since, until in zip(ends, [*ends[1:], draw(st.sampled_from([None, "6"]))], strict=True):
            row = {**draw(ROWS), "id": id_}
            versions.append(version(row, since, LOW if until == "6" else until))
    versions = [v for v in versions if v.since != v.until]
    there = [row for row in draw(st.lists(ROWS, max_size=5)) if row["code"] is not None]
    # much is as it was
    there += [dict(v.row) for v in versions if v.until is None and dict(v.row)["code"] is not None]
    return versions, unique(unique(there, "id"), "code")


def at(versions, position):
    return Counter(v.row for v in versions if v.since <= position and (v.until is None or position < v.until))


def place(each):
    return dict(each.row)["code"], each.since


@given(tables())
def test_versions_tell_of_the_past_what_they_did_and_of_now_what_is_there(given_):
    versions, there = given_
    after = versions_by(["code"], versions, there, LOW)
    for position in "1234":
        assert at(after, position) == at(versions, position)
    assert at(after, LOW) == Counter(version(row, "").row for row in there)
    places = Counter(map(place, after))
    assert all(places[place(v)] == 1 for v in after if v.until is None)
    assert all(isinstance(v, Version) and v.since != v.until for v in after)
    # what is the same goes on
    assert versions_by(["code"], after, there, LOW) == after


@given(st.lists(ROWS, max_size=8), st.lists(ROWS, max_size=5), st.booleans())
def test_deleted_rows_stay_one_for_each_key(rows, there, knows):
    there = unique(unique([row for row in there if row["code"] is not None], "id"), "code")
    rows = [{**row, "_deleted_at": None if n % 3 else str(n)} for n, row in enumerate(rows)]
    rows = unique([row for row in rows if row["_deleted_at"] is None], "id") + [r for r in rows if r["_deleted_at"]]
    after = marked_by(["code"], ["id"] if knows else None, rows, there, "9")
    assert [row for row, deleted in after if deleted is None] == there
    codes = Counter(row["code"] for row, _ in after if row["code"] is not None)
    assert set(codes.values()) <= {1}
    # nothing is marked that is there, and what was marked stays so
    assert not knows or {r["id"] for r, deleted in after if deleted == "9"}.isdisjoint(r["id"] for r in there)
    assert knows or all(r["code"] is not None for r, deleted in after if deleted == "9")
    assert all(any(r["code"] == row["code"] for r, _ in after) for row in rows if row["_deleted_at"])
