import pytest
from hypothesis import given

from airflow_provider_mssql_cdc.core.window import Window

from .strategies import lsns


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
