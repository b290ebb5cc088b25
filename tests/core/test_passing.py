"""When the capture has passed the end of a copy: examples, and captures that lag beside clocks that go back."""

from __future__ import annotations

import bisect
import datetime
import itertools
import random
import zoneinfo
from dataclasses import dataclass, field

import pytest

from airflow_provider_mssql_cdc.core.passing import CaptureProgress, CopyEnd
from airflow_provider_mssql_cdc.core.position import Lsn
from airflow_provider_mssql_cdc.core.zones import may_be_repeated

END = datetime.datetime(2026, 6, 1, 12, 30)
"""The copy's end, by the server's clock, where no zone repeats an hour."""


def lsn(number: int) -> Lsn:
    return Lsn(number.to_bytes(10))


def progress(
    newest: int | None,
    seconds: float = 0,
    scans: int | None = None,
    *,
    now: float = 0,
    latest: float | None = None,
) -> CaptureProgress:
    """The capture's progress; times in seconds after the copy's end.

    :param seconds: of the newest commit
    :param latest: of the latest commit, where that is not the newest
    """
    at = None if newest is None else END + datetime.timedelta(seconds=seconds)
    most = at if latest is None else END + datetime.timedelta(seconds=latest)
    shown = END + datetime.timedelta(seconds=now)
    return CaptureProgress(shown, None if newest is None else lsn(newest), at, scans, most, 120)


@pytest.mark.parametrize(
    ("end", "now", "passed"),
    [
        pytest.param(progress(10, -5), progress(11, 11, now=12), True, id="a newer and later commit"),
        pytest.param(progress(10, -5), progress(11, 9, now=12), False, id="a commit that may be one of before"),
        pytest.param(progress(10, -5), progress(11, -0.003, now=4), False, id="a newer commit of before"),
        pytest.param(progress(10, -5), progress(10, -5, now=4), False, id="nothing new"),
        pytest.param(progress(None), progress(11, 11, now=12), True, id="the first commit of all"),
        pytest.param(progress(10, 1800), progress(10, 1800, now=4), False, id="the clock was set back: nothing new"),
        pytest.param(progress(10, 1800), progress(11, 11, now=12), False, id="the clock was set back: new and later"),
        pytest.param(progress(10, -5), progress(11, 300, now=4), False, id="a commit that is later than the clock"),
        pytest.param(progress(10, -5), progress(11, 11, now=400, latest=300), False, id="not the latest commit"),
        pytest.param(progress(10, 1800, 7), progress(10, 1800, 9), True, id="two more scans found nothing"),
        pytest.param(progress(10, -5, 7), progress(10, -5, 8), False, id="one more scan found nothing"),
        pytest.param(progress(10, -5, 7), progress(10, -5, 0), False, id="the server was started again"),
        pytest.param(progress(10, -5, 7), progress(10, -5), False, id="scans are no longer shown"),
        pytest.param(progress(10, -5), progress(10, -5, 9), False, id="scans were not shown"),
    ],
)
def test_when_the_capture_has_passed_the_end_of_a_copy(
    end: CaptureProgress, now: CaptureProgress, passed: bool
) -> None:
    assert CopyEnd(progress(10, -60, now=-30), end, 30).is_passed(now) is passed


def test_a_clock_that_went_back_while_the_table_was_copied() -> None:
    """It may have shown all of the minute that has gone by."""
    end = CopyEnd(progress(10, -5, now=0), progress(10, -5), 60)
    assert not end.is_passed(progress(11, 50, now=70))
    assert not end.is_passed(progress(12, 70, now=80))
    assert end.is_passed(progress(13, 71, now=80))


def test_what_was_seen_of_the_clock_is_not_forgotten() -> None:
    end = CopyEnd(progress(10, -60, now=-30), progress(10, -5, 7), 30)
    assert not end.is_passed(progress(11, 300, 7, now=4))
    assert not end.is_passed(progress(12, 320, 7, now=330))
    assert end.is_doubted
    assert end.is_passed(progress(12, 320, 9, now=330))


def test_a_clock_that_went_back_where_no_scan_proves_anything() -> None:
    """The latest commit of before is not known as long as it is the newest."""
    end = CopyEnd(progress(10, -60, now=-30), progress(10, -5), 30)
    assert not end.is_passed(progress(11, 300, now=4))
    assert not end.is_passed(progress(12, 320, now=305))
    assert not end.is_passed(progress(13, 309, now=312, latest=320))
    assert not end.is_passed(progress(14, 330, now=332))
    assert end.is_passed(progress(15, 331, now=332))
    assert end.is_doubted


def test_times_that_fall_by_less_than_clocks_allow_do_not_tell_the_latest_of_before() -> None:
    """It went back by 40 s before the copy, and commits of then are still to be captured."""
    end = CopyEnd(progress(10, -60, now=-30), progress(10, -5), 30)
    assert not end.is_passed(progress(11, 15, now=5))
    assert not end.is_passed(progress(12, 12, now=6, latest=15))
    assert not end.is_passed(progress(13, 28, now=27))
    assert end.is_doubted


def test_a_clock_that_goes_back_once_more() -> None:
    end = CopyEnd(progress(10, -60, now=-30), progress(10, 8, now=0, latest=300), 30)
    assert end.is_doubted
    assert not end.is_passed(progress(11, 340, now=310))
    assert not end.is_passed(progress(12, 345, now=350))
    assert not end.is_passed(progress(13, 320, now=350, latest=345))
    assert end.is_passed(progress(14, 356, now=360))


@pytest.mark.parametrize(
    ("time", "offset", "repeated"),
    [
        (datetime.datetime(2026, 10, 25, 2, 30), 60, True),
        (datetime.datetime(2026, 10, 25, 2, 30), 180, False),
        (datetime.datetime(2026, 10, 25, 3, 30), 60, False),
        (datetime.datetime(2026, 11, 1, 1, 30), -300, True),
        (datetime.datetime(2026, 6, 1, 2, 30), 120, False),
    ],
)
def test_an_hour_that_some_zone_repeats(time: datetime.datetime, offset: int, repeated: bool) -> None:
    assert may_be_repeated(time, offset) is repeated


ZONE = zoneinfo.ZoneInfo("Europe/Berlin")


@dataclass
class Server:
    """A log, a capture, and a clock; what is true is in seconds.

    :param start: the instant of second 0
    :param steps: at which second the clock is set by how many seconds
    """

    start: datetime.datetime
    steps: list[tuple[float, float]]
    commits: list[float] = field(default_factory=list)
    published: list[tuple[float, int, int]] = field(default_factory=list)
    times: list[datetime.datetime] = field(default_factory=list)
    latest: list[datetime.datetime] = field(default_factory=list)

    def clock(self, second: float) -> tuple[datetime.datetime, int]:
        """The local time, and its offset in minutes."""
        shift = sum(by for at, by in self.steps if at <= second)
        local = (self.start + datetime.timedelta(seconds=second + shift)).astimezone(ZONE)
        offset = local.utcoffset() or datetime.timedelta()
        return local.replace(tzinfo=None), offset // datetime.timedelta(minutes=1)

    def capture(self, drawn: random.Random, until: float, *, pause: float, most: int, lag: float) -> None:
        """Scan until a second: of what is in the log when a scan begins, so many commits at most.

        :param lag: the first scan begins so late
        """
        self.times = [self.clock(commit)[0] for commit in self.commits]
        self.latest = list(itertools.accumulate(self.times, max))
        second, done, empty = lag, 0, 0
        while second < until:
            found = min(bisect.bisect_right(self.commits, second) - done, most)
            second += drawn.uniform(0, 3)
            done, empty = done + found, empty + (found == 0)
            self.published.append((second, done, empty))
            second += 0 if found == most else pause

    def seen(self, second: float, *, scans: bool) -> CaptureProgress:
        """What a loader reads then."""
        done, empty = self._published(second)
        now, offset = self.clock(second)
        shown = empty if scans else None
        if not done:
            return CaptureProgress(now, None, None, shown, None, offset)
        return CaptureProgress(now, lsn(done), self.times[done - 1], shown, self.latest[done - 1], offset)

    def _published(self, second: float) -> tuple[int, int]:
        """How many commits are mapped, and how many scans found nothing."""
        place = bisect.bisect_right(self.published, second, key=lambda each: each[0])
        return self.published[place - 1][1:] if place else (0, 0)

    def passes(self, begin: float, end: float, until: float, *, scans: bool) -> float | None:
        """When the loader says that the capture has passed the end of a copy."""
        copy = CopyEnd(self.seen(begin, scans=scans), self.seen(end, scans=scans), end - begin)
        second = end
        while second < until:
            if copy.is_passed(self.seen(second, scans=scans)):
                return second
            second += 0.5
        return None

    def lacks(self, end: float, second: float) -> list[float]:
        """What was committed before the end, and is not mapped at a second."""
        return [commit for commit in self.commits[self._published(second)[0] :] if commit <= end]


CALM = datetime.datetime(2026, 6, 1, 10, tzinfo=datetime.UTC)
# 400 seconds before the clocks go back
AUTUMN = datetime.datetime(2026, 10, 25, 0, 53, 20, tzinfo=datetime.UTC)


KINDS = ("goes on", "autumn", "back while copied", "back a little before", "back before", "back and forth after")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(40))
def test_all_of_before_the_end_is_captured_whatever_the_clock_does(kind: str, seed: int) -> None:
    drawn = random.Random(f"{kind} {seed}")
    begin = drawn.uniform(300, 700)
    end = begin + drawn.uniform(1, 120)
    lag = drawn.uniform(0, 600)
    back = -drawn.choice((drawn.uniform(3, 60), drawn.uniform(60, 1800)))
    steps: list[tuple[float, float]] = []
    if kind == "back while copied":
        steps = [(drawn.uniform(begin, end), back)]
    elif kind == "back before":
        # a capture that lags by more than the clock was set back cannot be told by it
        steps, lag = [(drawn.uniform(begin - 100, begin), -drawn.uniform(120, 1800))], 0
    elif kind == "back a little before":
        begin, end = end - 1, end
        steps = [(drawn.uniform(begin - 3, begin), -drawn.uniform(2, 10))]
    elif kind == "back and forth after":
        steps = [(end + drawn.uniform(0, 60), back), (end + drawn.uniform(60, 90), -back)]
    server = Server(AUTUMN if kind == "autumn" else CALM, steps)
    second = 0.0
    while second < 1200:
        second += drawn.expovariate(drawn.choice((0.05, 2)))
        server.commits.append(second)
    most = 10_000 if kind == "back before" else drawn.choice((1, 5, 10_000))
    if kind == "back a little before":
        # a burst, which the capture maps a few at a time
        server.commits = sorted([*server.commits, *(drawn.uniform(end - 10, end + 10) for _ in range(60))])
        most = 5
    server.capture(drawn, 1500, pause=drawn.choice((1, 5)), most=most, lag=lag)
    for scans in (False, True):
        passed = server.passes(begin, end, 1400, scans=scans)
        if passed is not None:
            assert server.lacks(end, passed) == []
        if kind == "goes on" and most > 1:
            assert passed is not None


@pytest.mark.parametrize("seed", range(40))
def test_a_clock_that_went_back_ends_a_copy_where_scans_prove_nothing_once_it_has_passed_all_it_showed(
    seed: int,
) -> None:
    """In an availability group; commits come at least every ten seconds, so that some lie in what the clock repeats."""
    drawn = random.Random(f"both {seed}")
    begin = drawn.uniform(300, 400)
    end = begin + drawn.uniform(1, 60)
    at = drawn.uniform(begin - 60, end)
    back, pause = drawn.uniform(30, 300), drawn.choice((1, 5))
    server = Server(CALM, [(at, -back)])
    second = 0.0
    while second < 1200:
        second += min(10, drawn.expovariate(drawn.choice((0.1, 2))))
        server.commits.append(second)
    server.capture(drawn, 1500, pause=pause, most=10_000, lag=0)
    passed = server.passes(begin, end, 1400, scans=False)
    assert passed is not None
    assert server.lacks(end, passed) == []
