"""Pasts of one schedule: what was written of it, in order, and what its status tells in the end.

A past is made of few kinds of events, in any order: runs, spans that got one verdict, suspensions,
and edits of the timing. The status names as many of the last runs and spans as a test says.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st
from tests.unit.ledger.books import KEY, UID, every

from evenkeel.core.effects import ScheduleKnown
from evenkeel.ledger.reckoning import timing_text
from evenkeel.ledger.rows import (
    MarkRow,
    Range,
    RunRow,
    SpanClosed,
    SpanRow,
    TimingRow,
    Write,
)
from evenkeel.model import Instant, RunId, RunState, Timing
from evenkeel.reasons import Reason
from evenkeel.resource.record import RecentRun, ToldSpan
from evenkeel.when import compile_timing

BEGAN = 100


@dataclass
class Past:
    """It goes on from event to event."""

    timing: Timing
    cursor: Instant = BEGAN
    timing_since: Instant = BEGAN
    writes: list[Write] = field(default_factory=list)
    recent: list[RecentRun] = field(default_factory=list)
    spans: list[ToldSpan] = field(default_factory=list)
    alive: list[RunRow] = field(default_factory=list)
    open_as: tuple[Reason, ...] = ()
    timings: int = 0

    def __post_init__(self) -> None:
        self.retime(self.timing)

    def dues(self, number: int) -> list[Instant]:
        dues = compile_timing(self.timing, seed=KEY)
        found = dues.between(self.cursor + 1, self.cursor + 1000, limit=number)
        self.cursor = found[-1] if found else self.cursor
        return found

    def retime(self, timing: Timing) -> None:
        self.timing, self.timing_since = timing, self.cursor
        self.writes.append(TimingRow(UID, KEY, self.cursor, timing_text(timing)))
        self.timings += 1

    def run(self, *, state: RunState = RunState.SUCCEEDED, begun: bool = True) -> None:
        for due in self.dues(1):
            self._run(due, state, begun=begun)

    def _run(self, due: Instant, state: RunState, *, begun: bool) -> None:
        run = RunId(UID, due)
        if begun:
            self.writes.append(RunRow(run, KEY, RunState.RUNNING, job=f"report-{due}"))
        job = f"report-{due}" if begun else ""
        self.writes.append(RunRow(run, KEY, state, job=job))
        self.recent.append(RecentRun(due, state, job=job))

    def begin(self) -> None:
        """A run that is alive to the end."""
        for due in self.dues(1):
            row = RunRow(RunId(UID, due), KEY, RunState.RUNNING, job=f"report-{due}")
            self.writes.append(row)
            self.recent.append(RecentRun(due, RunState.RUNNING, job=row.job))
            self.alive.append(row)

    def span(self, number: int, *, claimed: int | None, state: RunState = RunState.MISSED) -> None:
        """One of its due times may have been a run before."""
        dues = self.dues(number)
        if claimed is not None and claimed < len(dues) - 1:
            self._run(dues.pop(claimed), RunState.FAILED, begun=True)
        if dues:
            self._span(dues, state, Reason.SUPERSEDED)

    def _span(self, dues: list[Instant], state: RunState, reason: Reason) -> None:
        told = ToldSpan(dues[0], dues[-1], len(dues), state, reason)
        self.spans.append(told)
        self.recent.append(RecentRun(dues[-1], state, reason=reason))
        counts = {state.value: len(dues)}
        self.writes.append(SpanRow(UID, KEY, dues[0], dues[-1] + 1, counts, reason))

    def suspend(self) -> None:
        self.open_as = (Reason.SUSPENDED,)
        first = self.cursor + 1
        self.writes.append(SpanRow(UID, KEY, first, None, {}, Reason.SUSPENDED, Range.OPEN))

    def resume(self, number: int) -> None:
        self.open_as = ()
        if dues := self.dues(number):
            self._span(dues, RunState.SKIPPED, Reason.SUSPENDED)
        self.writes.append(SpanClosed(UID, KEY, Reason.SUSPENDED, self.cursor))

    def told(self) -> None:
        """A status tells of all that happened."""
        self.writes.append(MarkRow(UID, KEY, self.cursor))

    def known(self, *, recent: int = 10, spans: int = 8) -> ScheduleKnown:
        """At the end, by a status that names so many."""
        return ScheduleKnown(
            UID,
            KEY,
            after=self.cursor,
            mark=self.cursor,
            timing=self.timing,
            recent=tuple(sorted(self.recent, key=lambda row: -row.due)[:recent]),
            spans=tuple(self.spans[-spans:] if spans else ()),
            alive=tuple(row.run for row in self.alive),
            timing_since=self.timing_since,
            open_as=self.open_as,
        )


@st.composite
def pasts(draw: st.DrawFn) -> Past:
    seconds = st.integers(1, 9)
    past = Past(every(draw(seconds)))
    few = st.integers(1, 5)
    ends = st.sampled_from([RunState.SUCCEEDED, RunState.FAILED])
    for event in draw(st.lists(st.sampled_from(EVENTS), max_size=12)):
        match event:
            case "runs":
                past.run(state=draw(ends))
            case "skip":
                past.run(state=RunState.SKIPPED, begun=False)
            case "span":
                past.span(draw(few), claimed=draw(st.none() | st.integers(0, 3)))
            case "suspend":
                past.suspend()
                past.resume(draw(st.integers(0, 4)))
            case "timing":
                past.retime(every(draw(seconds)))
            case "told":
                past.told()
    for _ in range(draw(st.integers(0, 2))):
        past.begin()
    if draw(st.booleans()):
        past.suspend()
    past.told()
    return past


EVENTS = ("runs", "runs", "skip", "span", "suspend", "timing", "told", "told")
