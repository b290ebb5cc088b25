"""What a run does with a table: steps, made by one function from facts, in the operator and in the job.

The operator makes them from the checkpoint, to show them; the job makes them anew from the markers, and does those.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from airflow_provider_mssql_cdc.core.feed import Probe
from airflow_provider_mssql_cdc.core.initial import Initial
from airflow_provider_mssql_cdc.core.position import Position, Window, is_gap
from airflow_provider_mssql_cdc.core.shapes import SHAPES
from airflow_provider_mssql_cdc.core.spec import ReplaySpec, SinkSpec, TableSpec


@dataclass(frozen=True, slots=True)
class Read:
    """Load the changes of a window.

    :param windows: sink's shape to its window; None where that begins at the low of the copy in the same commit, or
        without a copy at the newest position
    :param lost: of the latter, sink's shape to the position up to which its rows of before are complete
    :param first: sinks that begin with their window
    """

    windows: Mapping[str, Window | None]
    lost: Mapping[str, Position] = field(default_factory=dict)
    first: frozenset[str] = frozenset()

    def __str__(self) -> str:
        said = {
            shape: self._window(shape, window) or _anew(self.lost.get(shape)) for shape, window in self.windows.items()
        }
        return f"read {_listed(said, 'from its low on, to the cut')}"

    def _window(self, shape: str, window: Window | None) -> str | None:
        return None if window is None else f"{window}{' for the first time' if shape in self.first else ''}"


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy the table's rows.

    :param after: sink's shape to the position up to which its rows of before are complete; None where there are none
    :param rekeyed: sinks whose rows of before are those of another key
    """

    after: Mapping[str, Position | None]
    rekeyed: frozenset[str] = frozenset()

    def __str__(self) -> str:
        said = {
            shape: f"again by another key, after {after}" if shape in self.rekeyed else _anew(after)
            for shape, after in self.after.items()
        }
        return f"copy {_listed(said, 'for the first time')}"


@dataclass(frozen=True, slots=True)
class Evolve:
    """Give the target's columns the form of another schema. It is done when they have it, and may be repeated.

    :param shapes: of the sinks
    """

    shapes: tuple[str, ...]

    def __str__(self) -> str:
        return f"change the columns of {', '.join(self.shapes)}"


Step = Read | Copy | Evolve


@dataclass(frozen=True, slots=True)
class Commit:
    """Steps that are made visible at once, in each sink by a commit of its own."""

    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return ", then ".join(map(str, self.steps))


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is to be done with a sink.

    :param outcome: ``already`` (it is at or past the cut) or ``empty`` (what lies before the cut was proven empty)
    :param read_through: everything up to here is loaded or was proven empty
    """

    outcome: str
    read_through: Position


@dataclass(frozen=True, slots=True)
class Stand:
    """Where a sink stands.

    :param position: everything up to here is in it, as its marker says or, in the operator, its checkpoint; None
        before its first load
    :param asserted: the asserted position counts in its place
    :param rekeyed: its rows are those of another key
    :param lost: why the changes behind the position do not tell all that has gone, though all are there; '' where they
        do
    """

    position: Position | None
    asserted: bool = False
    rekeyed: bool = False
    lost: str = ""

    @classmethod
    def expected(cls, sink: SinkSpec, *, lost: str = "") -> Stand:
        """Where the checkpoint says that a sink stands."""
        return cls(sink.expects or sink.lost_after, sink.asserted is not None, sink.rekeyed, lost)


@dataclass(frozen=True, slots=True)
class SinkSteps:
    """What a run does with one sink: it is done, or begins, with copied rows or without, or goes on by a window.

    :param asserted: it goes on from the asserted position, not from where its marker says
    :param window: of one that goes on, or begins with the changes of a window that was asked for
    :param lost_after: of one that begins: its rows of before are complete up to here; None where there are none
    :param copied: of one that begins: with copied rows
    :param begins: for the first time, or behind what was lost
    """

    asserted: bool = False
    done: Done | None = None
    window: Window | None = None
    lost_after: Position | None = None
    copied: bool = False
    begins: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether it goes on from where it is."""
        return self.window is not None and not self.begins


@dataclass(frozen=True, slots=True)
class TableSteps:
    """What a run does with a table.

    :param done: shape to why there is nothing to do
    :param lost: shape to the position after which changes were purged that it needs, without a way on
    :param asserted: shapes that go on from an asserted position
    :param refused: shape to why it cannot begin where it is to begin
    """

    commits: tuple[Commit, ...] = ()
    done: Mapping[str, Done] = field(default_factory=dict)
    lost: Mapping[str, Position] = field(default_factory=dict)
    asserted: frozenset[str] = frozenset()
    refused: Mapping[str, Initial] = field(default_factory=dict)

    @property
    def copies(self) -> dict[str, Position | None]:
        """The sinks that are copied, as ``Copy.after`` has them."""
        return {s: a for c in self.commits for step in c.steps if isinstance(step, Copy) for s, a in step.after.items()}

    @property
    def begins(self) -> dict[str, Position | None]:
        """The sinks that begin: shape to the position up to which its rows of before are complete."""
        without = {
            shape: step.lost.get(shape)
            for step in self._reads
            for shape, window in step.windows.items()
            if window is None or shape in step.first
        }
        return {**without, **self.copies}

    @property
    def windows(self) -> dict[str, Window]:
        """The windows of the sinks that go on from where they are, or begin with one."""
        return {shape: window for step in self._reads for shape, window in step.windows.items() if window is not None}

    @property
    def _reads(self) -> list[Read]:
        return [step for commit in self.commits for step in commit.steps if isinstance(step, Read)]

    def of(self, shape: str) -> SinkSteps:
        """What is done with one sink that has not lost anything.

        :raises KeyError: for one that was not asked for, or has
        """
        asserted = shape in self.asserted
        if shape in self.done:
            return SinkSteps(asserted, done=self.done[shape])
        if shape in self.windows:
            return SinkSteps(asserted, window=self.windows[shape], begins=shape in self.begins)
        return SinkSteps(asserted, lost_after=self.begins[shape], copied=shape in self.copies, begins=True)


def table_steps(
    table: TableSpec, stands: Mapping[str, Stand], *, cut: Position, readable_from: Position | None
) -> TableSteps:
    """The steps of a table: the least that the run does, since a copy goes on to where its events end.

    :param stands: shape to where the sink stands, of those that are asked for
    :param readable_from: of the feed
    """
    begins: dict[str, Position | None] = {}
    first: dict[str, Window] = {}
    refused: dict[str, Initial] = {}
    windows: dict[str, Window] = {}
    done: dict[str, Done] = {}
    lost: dict[str, Position] = {}
    for sink in table.sinks:
        if sink.shape in stands:
            start = _start(sink, stands[sink.shape])
            begin = sink.initial.begin(cut=cut, readable_from=readable_from) if start is None else None
            if start is None and sink.initial.refused is not None:
                refused[sink.shape] = sink.initial
            elif begin is not None and begin > cut:
                why = f"it is to begin behind {begin}, and this run goes up to {cut}."
                refused[sink.shape] = Initial("", refused=why, is_early=True)
            elif begin is not None and is_gap(begin, readable_from):
                lost[sink.shape] = begin
            elif begin is not None:
                first[sink.shape] = Window(begin, cut)
            elif start is None or (stands[sink.shape].asserted and sink.read_through is None):
                begins[sink.shape] = start
            elif stands[sink.shape].rekeyed and takes_copy(table, sink):
                # what it holds is told apart by another key
                begins[sink.shape] = start
            elif stands[sink.shape].lost and _starts_again(sink):
                begins[sink.shape] = start
            elif stands[sink.shape].lost:
                lost[sink.shape] = start
            elif start >= cut:
                done[sink.shape] = Done(_why(stands[sink.shape], cut), start)
            elif not is_gap(start, readable_from):
                windows[sink.shape] = Window(start, cut)
            elif _starts_again(sink):
                begins[sink.shape] = start
            else:
                lost[sink.shape] = start
    commits = []
    takes = {sink.shape: takes_copy(table, sink) for sink in table.sinks}
    copies = {shape: after for shape, after in begins.items() if takes[shape]}
    others = {shape: after for shape, after in begins.items() if not takes[shape]}
    if copies:
        rekeyed = frozenset(shape for shape in copies if stands[shape].rekeyed)
        commits.append(Commit((Copy(copies, rekeyed), Read(dict.fromkeys(copies)))))
    if others:
        lost_before = {shape: after for shape, after in others.items() if after is not None}
        commits.append(Commit((Read(dict.fromkeys(others), lost_before),)))
    if first:
        commits.append(Commit((Read(first, first=frozenset(first)),)))
    if windows:
        commits.append(Commit((Read(windows),)))
    asserted = frozenset(shape for shape, stand in stands.items() if stand.asserted)
    return TableSteps(tuple(commits), done, lost, asserted, refused)


def _starts_again(sink: SinkSpec) -> bool:
    """Whether a sink that has lost changes is to begin anew."""
    return sink.lost_after is not None or sink.closes_gaps


def checkpoint_steps(table: TableSpec, probe: Probe, upto: Position, again: Collection[str] = ()) -> TableSteps:
    """The steps of a table as its checkpoint says; none to read for a sink behind which no event is known of.

    :param upto: the cut
    :param again: shapes that failed for good: that nothing happened does not mend them
    """
    # what is read to where it is now begins anew also where nothing is behind
    lost = {s.shape: "it is lost" for s in table.sinks if s.lost_after is not None and not table.feed.CAN.takes_limits}
    stands = {sink.shape: Stand.expected(sink, lost=lost.get(sink.shape, "")) for sink in table.sinks}
    steps = table_steps(table, stands, cut=upto, readable_from=probe.readable_from.get(table.feed.object_id))
    newest = probe.newest.get(table.feed.name)
    quiet = {
        shape: Done("empty", upto)
        for shape, window in steps.windows.items()
        if shape not in again and (newest is None or newest <= window.after)
    }
    if len(quiet) < len(steps.windows) or steps.begins or steps.refused or steps.lost:
        return steps
    return TableSteps(done={**steps.done, **quiet})


def takes_copy(table: TableSpec, sink: SinkSpec) -> bool:
    """Whether a sink begins with a copy of the table's rows."""
    return SHAPES[sink.shape].takes_copy(wide=sink.history.is_wide, has_key=bool(table.schema.key))


def replay_steps(table: TableSpec, replay: ReplaySpec, *, readable_from: Position | None) -> TableSteps:
    """The steps of a table whose sinks get a window again.

    :param readable_from: of the feed
    """
    shapes = [sink.shape for sink in table.sinks]
    if is_gap(replay.after, readable_from):
        return TableSteps(lost=dict.fromkeys(shapes, replay.after))
    return TableSteps((Commit((Read(dict.fromkeys(shapes, Window(replay.after, replay.upto))),)),))


def reached(sink: SinkSpec, marker: Position | None) -> Position | None:
    """Up to where a sink is loaded, or what lies behind its marker was proven empty.

    :param marker: the position of its marker; None for a sink without
    """
    if marker is None or sink.read_through is None or sink.expects is None or marker < sink.expects:
        # behind what was expected: it was rolled back, and nothing is proven of what lies behind
        return marker
    return max(marker, sink.read_through)


def _start(sink: SinkSpec, stand: Stand) -> Position | None:
    """From where a sink is to be loaded; None for a first load."""
    return sink.read_through or sink.lost_after if stand.asserted else reached(sink, stand.position)


def _why(stand: Stand, cut: Position) -> str:
    return "already" if not stand.asserted and stand.position is not None and stand.position >= cut else "empty"


def _anew(after: Position | None) -> str | None:
    return None if after is None else f"again, lost after {after}"


def _listed(sinks: Mapping[str, object], otherwise: str) -> str:
    return ", ".join(f"{shape} {otherwise if what is None else what}" for shape, what in sinks.items())
