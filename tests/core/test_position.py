import itertools
import operator
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_mssql_cdc.core.position import (
    KINDS,
    Cut,
    Lsn,
    Version,
    Window,
    is_gap,
    merged,
    position_of_kind,
    readable_from,
)
from tests.support.core.positions import Counted

lsns = st.binary(min_size=10, max_size=10).map(Lsn)
numbers = st.integers(0, 2**63 - 1)
versions = numbers.map(Version)


@given(lsns)
def test_text_is_0x_and_twenty_upper_case_digits_and_reads_back(lsn):
    text = str(lsn)
    assert text == "0x" + "".join(f"{byte:02X}" for byte in lsn.value)
    assert Lsn.parse(text) == lsn
    assert Lsn.parse(text.lower()) == lsn


@given(lsns)
def test_the_colon_form_reads_as_the_same_position(lsn):
    digits = lsn.value.hex()
    assert Lsn.parse(f"{digits[:8]}:{digits[8:16]}:{digits[16:]}") == lsn


@given(lsns, lsns)
def test_order_is_that_of_the_unsigned_number_and_of_the_text(left, right):
    as_number = int.from_bytes(left.value, "big") < int.from_bytes(right.value, "big")
    assert (left < right) == as_number == (str(left) < str(right))


@given(lsns)
def test_next_and_previous_are_one_apart_across_all_ten_bytes(lsn):
    number = int.from_bytes(lsn.value, "big")
    if number < 2**80 - 1:
        assert int.from_bytes(lsn.next().value, "big") == number + 1
        assert lsn.next().previous() == lsn
    if number > 0:
        assert int.from_bytes(lsn.previous().value, "big") == number - 1


def test_next_carries_across_the_three_fields():
    assert str(Lsn.parse("0x0000002DFFFFFFFFFFFF").next()) == "0x0000002E000000000000"


def test_there_is_nothing_beyond_the_ends():
    with pytest.raises(OverflowError, match="0xFFFFFFFFFFFFFFFFFFFF"):
        Lsn(b"\xff" * 10).next()
    with pytest.raises(OverflowError, match="0x00000000000000000000"):
        Lsn(bytes(10)).previous()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0x",
        "0x2D",
        "0x0000002D00000580001",
        "0000002D00000580001D",
        "0x0000002D00000580001G",
        "2d:580:1d",
        " 0x" + "0" * 20,
    ],
)
def test_anything_else_is_refused_rather_than_padded(text):
    with pytest.raises(ValueError, match="not an LSN"):
        Lsn.parse(text)


@pytest.mark.parametrize("value", [b"", bytes(9), bytes(11), "0123456789", bytearray(10)])
def test_only_ten_bytes_are_an_lsn(value):
    with pytest.raises(ValueError, match="an LSN has 10 bytes"):
        Lsn(value)


def test_zero_is_recognised():
    assert Lsn(bytes(10)).is_zero
    assert not Lsn(bytes(9) + b"\x01").is_zero


@given(lsns, lsns, lsns)
def test_a_window_holds_what_is_above_after_and_at_most_upto(a, b, c):
    after, upto = sorted([a, b])
    window = Window(after, upto)
    assert (c in window) == (after.value < c.value <= upto.value)
    assert window.is_empty == (after == upto)


@given(lsns, lsns)
def test_a_window_that_ends_before_its_start_is_refused(a, b):
    if a == b:
        return
    low, high = sorted([a, b])
    with pytest.raises(ValueError, match="cannot end at"):
        Window(high, low)


@given(lsns, lsns, lsns, lsns)
def test_adjacent_windows_share_nothing_and_leave_nothing_out(a, b, c, probe):
    low, middle, high = sorted([a, b, c])
    left, right, whole = Window(low, middle), Window(middle, high), Window(low, high)
    assert (probe in whole) == ((probe in left) != (probe in right))


@given(lsns, lsns, lsns, lsns)
def test_a_window_holds_another_that_has_no_position_outside(a, b, c, d):
    whole, part = Window(*sorted([a, b])), Window(*sorted([c, d]))
    assert whole.holds(part) == (whole.after.value <= part.after.value and part.upto.value <= whole.upto.value)


@given(st.integers(), st.integers())
def test_a_kind_has_the_order_of_its_sort_keys(left, right):
    assert (Counted(left) < Counted(right)) == (left < right)
    assert (Counted(left) <= Counted(right)) == (left <= right)
    assert (Counted(left) > Counted(right)) == (left > right)
    assert (Counted(left) >= Counted(right)) == (left >= right)


@given(lsns, st.integers())
def test_two_kinds_have_no_order(lsn, number):
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        with pytest.raises(TypeError, match="has no order with"):
            compare(lsn, Counted(number))
        with pytest.raises(TypeError, match="has no order with"):
            compare(Counted(number), lsn)
    assert lsn != Counted(number)
    with pytest.raises(TypeError, match="has no order with"):
        Window(lsn, Counted(number))
    with pytest.raises(TypeError, match="has no order with"):
        is_gap(lsn, Counted(number))
    with pytest.raises(TypeError, match="is no LSN"):
        Lsn.of(Counted(number))


@given(lsns)
def test_a_cut_of_one_lsn_is_its_text(lsn):
    cut = Cut.at(lsn)
    assert cut.text == str(cut) == str(lsn)
    assert Cut.parse(str(lsn)) == Cut.parse(str(lsn).lower()) == cut
    assert cut.of(Lsn) == lsn
    assert cut.of(Counted) is None
    assert [*cut] == [lsn]


@given(lsns, st.integers())
def test_a_cut_of_several_kinds_reads_back(lsn, number):
    with mock.patch.dict(KINDS, {Counted.KIND: Counted}):
        both = Cut((lsn, Counted(number)))
        assert both == Cut((Counted(number), lsn)) == Cut.parse(both.text)
        assert both.text == f"counted={number},lsn={lsn}"
        assert (both.of(Lsn), both.of(Counted)) == (lsn, Counted(number))
        assert Cut.parse(Cut.at(Counted(number)).text) == Cut.at(Counted(number))


@given(lsns, versions)
def test_a_cut_of_an_lsn_and_a_version(lsn, version):
    both = Cut((version, lsn))
    assert both.text == str(both) == f"lsn={lsn.text},version={version.text}"
    assert both == Cut((lsn, version)) == Cut.parse(both.text) == Cut.parse(",".join(reversed(both.text.split(","))))
    assert (both.of(Lsn), both.of(Version), both.of(Counted)) == (lsn, version, None)
    assert [*both] == [lsn, version]
    alone = Cut.at(version)
    assert (alone.text, Cut.parse(alone.text)) == (f"version={version.text}", alone)
    assert (alone.of(Lsn), alone.of(Version)) == (None, version)
    assert alone.filled(Cut.at(lsn)) == Cut.at(lsn).filled(alone) == both


@given(lsns, lsns, versions, versions)
def test_a_cut_has_one_position_of_a_kind(left, right, one, other):
    with pytest.raises(ValueError, match="one position of each kind, not lsn, lsn"):
        Cut((left, right))
    with pytest.raises(ValueError, match="one position of each kind, not version, lsn, version"):
        Cut((one, left, other))
    with pytest.raises(ValueError, match="one position of each kind, not version, version"):
        Cut.parse(f"version={one.text},version={other.text}")
    with pytest.raises(ValueError, match="not none"):
        Cut(())


@pytest.mark.parametrize("text", ["", "42", "lsn=42", "time=1", "lsn=", "0x" + "0" * 20 + ",version=1"])
def test_any_other_text_is_no_cut(text):
    with pytest.raises(ValueError, match=r"not an LSN|is none of lsn"):
        Cut.parse(text)


@given(numbers)
def test_a_version_is_its_number_and_reads_back(number):
    version = Version(number)
    assert (version.text, str(version)) == (f"{number:d}", f"version {number}")
    assert Version.parse(version.text) == position_of_kind("version", version.text) == version
    assert (version.sort_key, version.KIND, version.COLUMN_TYPE) == (number, "version", "BIGINT")
    assert len({version, Version(number)}) == 1


@given(numbers, numbers)
def test_versions_have_the_order_of_their_numbers(left, right):
    for compare in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
        assert compare(Version(left), Version(right)) == compare(left, right)


@pytest.mark.parametrize("value", [-1, 2**63, True, 1.0, "1", None, b"1"])
def test_only_a_number_of_a_bigint_that_is_not_negative_is_a_version(value):
    with pytest.raises(ValueError, match="a version is a number from 0 to 9223372036854775807"):
        Version(value)


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", " 1", "1 ", "1\n", "01", "1_0", "1.0", "0x1", "\u0661", str(2**63), "0x" + "0" * 20]
)
def test_any_other_text_is_no_version(text):
    with pytest.raises(ValueError, match=r"not a version|a version is a number"):
        Version.parse(text)


@given(lsns, versions)
def test_an_lsn_and_a_version_have_no_order(lsn, version):
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        for one, other in ((lsn, version), (version, lsn)):
            with pytest.raises(TypeError, match=f"the {one.KIND} {one.text} has no order with"):
                compare(one, other)
    assert lsn != version
    assert (Lsn.of(lsn), Version.of(version)) == (lsn, version)
    with pytest.raises(TypeError, match=f"the lsn {lsn} is no version"):
        Version.of(lsn)
    with pytest.raises(TypeError, match=f"the version {version.text} is no LSN"):
        Lsn.of(version)
    for after, upto in ((lsn, version), (version, lsn)):
        with pytest.raises(TypeError, match="has no order with"):
            Window(after, upto)
        with pytest.raises(TypeError, match="has no order with"):
            is_gap(after, upto)


@given(versions, versions, versions)
def test_a_window_of_versions(a, b, c):
    after, upto = sorted([a, b])
    window = Window(after, upto)
    assert (c in window) == (after.value < c.value <= upto.value)
    assert str(window) == f"(version {after.value}, version {upto.value}]"
    assert window.is_empty == (a == b)


@given(versions, st.none() | versions)
def test_a_gap_of_versions_is_what_lies_below_the_lowest_valid_one(last, min_valid):
    assert is_gap(last, min_valid) == (min_valid is None or last.value < min_valid.value)


@given(lsns, st.none() | lsns)
def test_a_gap_is_what_begins_below_the_readable(after, readable_from):
    assert is_gap(after, readable_from) == (readable_from is None or after.value < readable_from.value)


@given(lsns)
def test_the_gap_rule_is_that_of_the_min_lsn(after):
    number = int.from_bytes(after.value)
    for low in (number, number + 1, number + 2, number + 3):
        if 0 < low < 2**80:
            min_lsn = Lsn(low.to_bytes(10))
            assert is_gap(after, readable_from(min_lsn)) == (low > number + 1)


def test_without_a_min_lsn_nothing_can_be_read():
    assert readable_from(None) is None
    assert readable_from(Lsn(bytes(10))) is None


def test_a_cut_is_filled_with_the_kinds_that_it_lacks() -> None:
    given = Cut.at(Lsn.parse("0x" + "0" * 19 + "1"))
    kept = Cut((Lsn.parse("0x" + "0" * 19 + "2"), Counted(7)))
    assert given.filled(kept) == Cut((*given, Counted(7)))
    assert given.filled(Cut.at(kept.positions[1])) == given
    assert kept.filled(given) == kept


some_windows = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(lambda edges: Window(*map(Counted, sorted(edges))))


@given(st.lists(some_windows, max_size=5))
def test_merged_windows_hold_what_the_windows_hold_and_do_not_overlap(given):
    found = merged(given)
    for position in map(Counted, range(14)):
        assert any(position in window for window in found) == any(position in window for window in given)
    assert all(one.upto < other.after for one, other in itertools.pairwise(found))
