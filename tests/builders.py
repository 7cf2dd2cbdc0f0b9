"""Builders of schedules and Jobs, and a way to write instants that can be read.

    seen = cron("*/5 * * * *")
    assert clock(instant("10:05")) == "10:05:00"

A world that schedules them: tests/unit/core/world.py.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from evenkeel import rfc3339
from evenkeel.model import (
    At,
    Cron,
    DueRange,
    Instant,
    Interval,
    JobFact,
    JobRef,
    JobState,
    Rejection,
    Request,
    Rule,
    RunId,
    Schedule,
    Timing,
)
from evenkeel.resource.job import job_name

MONDAY: Instant = rfc3339.read("2026-03-02T00:00:00Z") or 0


def instant(clock: str | float) -> Instant:
    """`10:05`, `10:05:30`, or on a later day `+1d 10:05` -> an instant."""
    if not isinstance(clock, str):
        return int(clock)
    if "T" in clock:
        moment = rfc3339.read(clock)
        assert moment is not None
        return moment
    days = 0
    if clock.startswith("+"):
        day, _, clock = clock.partition(" ")
        days = int(day[1:].removesuffix("d"))
    hour, minute, second = [*map(int, clock.split(":")), 0][:3]
    return MONDAY + days * 86_400 + hour * 3600 + minute * 60 + second


def clock(moment: Instant | None) -> str:
    """The reverse of `instant`, for assertions that can be read."""
    assert moment is not None
    days, second = divmod(moment - MONDAY, 86_400)
    text = str(dt.timedelta(seconds=second)).zfill(8)
    return f"+{days}d {text}" if days else text


def clocks(moments: Iterable[Instant]) -> list[str]:
    """Many of them."""
    return [clock(moment) for moment in moments]


# --- objects ----------------------------------------------------------------------------------


def schedule(rule: Rule, *, name: str = "report", **changes: Any) -> Schedule:
    """A schedule of generation 1, created when the world begins."""
    timing = {
        key: changes.pop(key) for key in ("zone", "gap", "fold", "start", "end") if key in changes
    }
    fields: dict[str, Any] = {
        "uid": f"uid-{name}",
        "ns": "shop",
        "name": name,
        "created": instant("10:00"),
        "generation": 1,
        "timing": Timing(rule, **timing),
        "template": b'{"spec":{"template":{"spec":{}}}}',
        "template_hash": "first",
    }
    return Schedule(**fields | changes)


def cron(text: str, **changes: Any) -> Schedule:
    """A schedule by cron text."""
    return schedule(Cron(text), **changes)


def every(
    every_s: int, *, offset_s: int | None = 0, anchor: Any = "10:00", **more: Any
) -> Schedule:
    """An interval; its anchor is when the world begins."""
    return schedule(
        Interval(every_s, offset_s, instant(anchor) if offset_s is not None else None), **more
    )


def once(at: str, **changes: Any) -> Schedule:
    """A schedule that runs once."""
    return schedule(At(instant(at)), **changes)


def request(name: str = "again", *, schedule: str = "report", **changes: Any) -> Request:
    """A request of generation 1, created when the world begins; times as `10:05`."""
    if (span := changes.pop("span", None)) is not None:
        changes["span"] = DueRange(instant(span[0]), instant(span[1]))
    if (at := changes.pop("at", None)) is not None:
        changes["at"] = instant(at)
    created = instant(changes.pop("created", "10:00"))
    return Request(f"uid-{name}", "shop", name, created, 1, schedule, **changes)


def edited(old: Schedule, **changes: Any) -> Schedule:
    """The same schedule after an edit of its spec: one generation later."""
    rule = changes.pop("rule", None)
    if rule is not None:
        changes["timing"] = replace(old.timing, rule=rule)
    return replace(old, generation=old.generation + 1, **changes)


def rejection(of: Schedule, sentence: str = "month 13 does not exist") -> Rejection:
    """What becomes of a schedule whose next edit cannot be read."""
    return Rejection(of.uid, of.ns, of.name, of.generation + 1, "spec.schedule", sentence)


def job(of: Schedule, due: str, state: JobState = JobState.STARTED, **changes: Any) -> JobFact:
    """A Job of a run, as its watch tells of it."""
    run = RunId(of.uid, instant(due))
    attempt = changes.pop("attempt", 1)
    name = job_name(of.name, run, attempt)
    ended = state in (JobState.SUCCEEDED, JobState.FAILED)
    fact = JobFact(
        ref=JobRef(of.ns, name, f"uid-{name}"),
        run=run,
        attempt=attempt,
        state=state,
        reason="BackoffLimitExceeded" if state is JobState.FAILED else "",
        started=run.due,
        finished=run.due + 30 if ended else None,
    )
    return replace(fact, **changes)
