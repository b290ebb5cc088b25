import datetime
import zoneinfo

import pytest

from airflow_provider_mssql_cdc.core.exceptions import IntervalError
from airflow_provider_mssql_cdc.core.interval import check_edges, check_interval, edges, server_time, window_of

UTC = datetime.UTC


def utc(*parts: int) -> datetime.datetime:
    return datetime.datetime(*parts, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "zone", "expected"),
    [
        (utc(2026, 1, 10, 12), "UTC", datetime.datetime(2026, 1, 10, 12)),
        (utc(2026, 1, 10, 12), "Europe/Berlin", datetime.datetime(2026, 1, 10, 13)),
        (utc(2026, 7, 10, 12), "Europe/Berlin", datetime.datetime(2026, 7, 10, 14)),
        # clocks go forward at 01:00 UTC on 29 March: 02:00 to 03:00 local does not exist
        (utc(2026, 3, 29, 0, 59, 59), "Europe/Berlin", datetime.datetime(2026, 3, 29, 1, 59, 59)),
        (utc(2026, 3, 29, 1), "Europe/Berlin", datetime.datetime(2026, 3, 29, 3)),
        # clocks go back at 01:00 UTC on 25 October: 02:00 to 03:00 local is repeated, its end is not
        (utc(2026, 10, 24, 23, 59, 59), "Europe/Berlin", datetime.datetime(2026, 10, 25, 1, 59, 59)),
        (utc(2026, 10, 25, 2), "Europe/Berlin", datetime.datetime(2026, 10, 25, 3)),
    ],
)
def test_a_moment_as_the_servers_clock_showed_it(moment, zone, expected):
    assert server_time(moment, zone) == expected


@pytest.mark.parametrize("moment", [utc(2026, 10, 25, 0), utc(2026, 10, 25, 0, 30), utc(2026, 10, 25, 1, 59, 59)])
def test_an_edge_inside_the_repeated_hour_is_refused(moment):
    with pytest.raises(IntervalError, match="repeats when summer time ends"):
        server_time(moment, "Europe/Berlin")


def test_a_moment_in_any_zone_is_the_same_moment():
    tokyo = datetime.datetime(2026, 1, 10, 21, tzinfo=zoneinfo.ZoneInfo("Asia/Tokyo"))
    assert server_time(tokyo, "Europe/Berlin") == datetime.datetime(2026, 1, 10, 13)


def test_an_unknown_zone_is_named():
    with pytest.raises(IntervalError, match="'Europe/Atlantis' is not an IANA time zone"):
        server_time(utc(2026, 1, 1), "Europe/Atlantis")


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        (None, None, "no data interval"),
        (utc(2026, 1, 1), None, "no data interval"),
        (utc(2026, 1, 1), utc(2026, 1, 1), "is empty"),
    ],
)
def test_missing_and_empty_intervals_are_refused(start, end, message):
    with pytest.raises(IntervalError, match=rf"{message}.*CronDataIntervalTimetable"):
        check_interval(start, end)


@pytest.mark.parametrize(
    "interval",
    [
        (datetime.datetime(2026, 1, 1), utc(2026, 1, 2)),
        (utc(2026, 1, 1), datetime.datetime(2026, 1, 2)),
        (datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 2)),
        ("2026-01-01", "2026-01-02"),
        ("2026-01-01T00:00:00Z", "2026-01-02 00:00:00"),
    ],
    ids=str,
)
def test_an_edge_without_zone_is_refused_and_told_how_to_have_one(interval):
    with pytest.raises(IntervalError, match=r"has no time zone.*interval=.*\+00:00"):
        check_interval(*interval)


@pytest.mark.parametrize("edge", ["", "None", "yesterday", "2026-13-01T00:00:00Z"])
def test_text_that_is_no_time_is_named(edge):
    with pytest.raises(IntervalError, match=rf"'{edge}' is not an ISO 8601 time"):
        check_interval(edge, "2026-01-02T00:00:00Z")


@pytest.mark.parametrize(
    "text", ["2026-01-01T00:00:00+00:00", "2026-01-01 00:00:00+00:00", "2026-01-01T00:00:00Z", "20260101T010000+0100"]
)
def test_text_with_a_zone_is_the_moment_it_names(text):
    assert check_interval(text, utc(2026, 1, 2)) == (utc(2026, 1, 1), utc(2026, 1, 2))


def test_a_real_interval_is_accepted():
    check_interval(utc(2026, 1, 1), utc(2026, 1, 2))


def test_an_interval_that_is_turned_round_is_told_as_that():
    with pytest.raises(IntervalError, match=r"before its start .*Write the earlier time first"):
        check_interval(utc(2026, 1, 2), utc(2026, 1, 1))


@pytest.mark.parametrize(
    "given", ["2026-01-01T00:00:00Z", (), (utc(2026, 1, 1),), (utc(2026, 1, 1), None), (1, 2), 5, None]
)
def test_what_is_not_two_times_is_no_interval(given):
    with pytest.raises(IntervalError, match=r"is not two times.*Write interval"):
        edges(given)


@pytest.mark.parametrize(
    ("moment", "zone"),
    [
        (utc(1, 1, 1), "America/New_York"),
        (utc(9999, 12, 31, 23), "Europe/Berlin"),
        (utc(1752, 12, 31), "UTC"),
    ],
)
def test_a_time_that_datetime_does_not_hold_is_refused(moment, zone):
    with pytest.raises(IntervalError, match="is no time that SQL Server's datetime holds"):
        server_time(moment, zone)


@pytest.mark.parametrize("zone", ["Europe", 5])
def test_what_names_no_zone_is_told(zone):
    with pytest.raises(IntervalError, match="is not an IANA time zone"):
        server_time(utc(2026, 1, 1), zone)


def test_two_times_are_an_interval():
    given = ("2026-01-01T00:00:00+00:00", utc(2026, 1, 2))
    assert edges(given) == edges(list(given)) == given


LOW, HIGH = "0x00000000000000000005", "00000000:00000000:0009"


def test_two_lsns_are_a_window():
    window = window_of(LOW, HIGH)
    assert (window.after.text, window.upto.text) == (LOW, "0x00000000000000000009")
    assert window_of("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z") is None
    check_edges(LOW, HIGH)
    check_edges("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [
        (LOW, LOW, "is empty"),
        (HIGH, LOW, "is empty"),
        (LOW, "2026-01-02T00:00:00Z", "an LSN and a time"),
        ("0x12", HIGH, "an LSN and a time"),
        ("0x12", "0x13", "not an ISO 8601 time"),
    ],
)
def test_other_pairs_of_lsns_are_refused(start, end, said):
    with pytest.raises(IntervalError, match=said):
        check_edges(start, end)
