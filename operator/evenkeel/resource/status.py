"""The status of a ScheduledJob: what it must give back after a restart, and its small parts.

`parse` believes nothing: a status may have been edited by hand or written by a newer version, so
what does not fit is as if it were not there. `core/document.py` writes what this reads.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from evenkeel.model import (
    SLOT_S,
    At,
    Cron,
    DayMatch,
    Fold,
    Gap,
    Hourly,
    Instant,
    Interval,
    JobRef,
    RunState,
    Timing,
    Window,
)
from evenkeel.resource import rfc3339
from evenkeel.when.compile import LONGEST_INTERVAL_S

_CLOCK = re.compile(r"(\d\d):(\d\d)", re.ASCII)

RECENT_COUNT = 10
ACTIVE_COUNT = 50
WAITING_COUNT = 128
"""Due times that a status names; a ScheduledJob must stay far below etcd's 1.5 MB."""
MOST_ATTEMPTS = 21
"""retry.limit is at most 20."""
COUNTED = ("succeeded", "failed", "skipped", "missed", "cancelled", "lost")


@dataclass(frozen=True, slots=True)
class RecentRun:
    """One row of `status.recent`."""

    due: Instant
    state: RunState
    started: Instant | None = None
    finished: Instant | None = None
    reason: str = ""
    attempt: int = 1
    job: str = ""

    @property
    def tells_attempt(self) -> bool:
        """Its run waits between two attempts, and nothing else tells a restart between which."""
        waits = self.state is RunState.PENDING and self.attempt > 1
        return waits or self.state is RunState.RETRYING


@dataclass(frozen=True, slots=True)
class Pause:
    """Why a schedule is paused, by whom, and since when."""

    since: Instant
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class Placed:
    """`status.placement`: the phase of an interval that the operator chose."""

    anchor: Instant
    every_s: int
    placed_at: Instant
    weight: int = 1
    slot: int = 0
    window: Window | None = None
    reason: str = ""
    load: int = 0


@dataclass(frozen=True, slots=True)
class Condition:
    """One of `status.conditions`."""

    status: str
    reason: str
    message: str
    since: Instant
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Memory:
    """What a status remembers of a schedule's past."""

    mark: Instant | None = None
    timing: Timing | None = None
    timing_since: Instant | None = None
    suspended_since: Instant | None = None
    resumed_at: Instant | None = None
    pause: Pause | None = None
    waiting: tuple[Instant, ...] = ()
    active: tuple[JobRef, ...] = ()
    active_count: int = 0
    recent: tuple[RecentRun, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    counts_since: Instant | None = None
    consecutive_failures: int = 0
    last_schedule: Instant | None = None
    last_success: Instant | None = None
    last_failure: Instant | None = None
    last_result: str = ""
    template_hash: str = ""
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    placed: Placed | None = None
    version: str = ""
    """The resourceVersion it was read at."""


EMPTY = Memory()


def parse(raw: object, *, version: str = "") -> Memory:
    """A status as the API server gave it; whatever does not fit is left out."""
    status = raw if isinstance(raw, Mapping) else {}
    timing = _mapping(status.get("timing"))
    return Memory(
        mark=rfc3339.read(status.get("mark")),
        timing=timing_from_fields(timing.get("fields")),
        timing_since=rfc3339.read(timing.get("since")),
        suspended_since=rfc3339.read(status.get("suspendedSince")),
        resumed_at=rfc3339.read(status.get("resumedAt")),
        pause=_pause(status.get("pause")),
        waiting=tuple(
            due
            for text in _list(status.get("waiting"))[:WAITING_COUNT]
            if (due := rfc3339.read(text)) is not None
        ),
        active=tuple(
            JobRef(str(row.get("namespace", "")), str(row["name"]), str(row.get("uid", "")))
            for row in map(_mapping, _list(status.get("active"))[:ACTIVE_COUNT])
            if row.get("name")
        ),
        active_count=_count(status.get("activeCount")),
        recent=tuple(
            row for raw in _list(status.get("recent"))[:RECENT_COUNT] if (row := _recent(raw))
        ),
        counts={
            name: count
            for name in COUNTED
            if isinstance(count := _mapping(status.get("counts")).get(name), int) and count >= 0
        },
        counts_since=rfc3339.read(status.get("countsSince")),
        consecutive_failures=_count(status.get("consecutiveFailures")),
        last_schedule=rfc3339.read(status.get("lastScheduleTime")),
        last_success=rfc3339.read(status.get("lastSuccessfulTime")),
        last_failure=rfc3339.read(status.get("lastFailureTime")),
        last_result=_text(status.get("lastResult")),
        template_hash=_text(status.get("templateHash")),
        conditions={
            str(row["type"]): condition
            for row in map(_mapping, _list(status.get("conditions"))[:20])
            if row.get("type") and (condition := _condition(row))
        },
        placed=_placed(status.get("placement")),
        version=version,
    )


# --- timing: written so that an older timing can be reckoned with after its spec is gone --------


def timing_hash(timing: Timing) -> str:
    """Equal for timings that are due alike: `60m` and `1h` are one timing."""
    return hashlib.sha256(orjson.dumps(timing_fields(timing))).hexdigest()[:16]


def timing_fields(timing: Timing) -> dict[str, Any]:
    """`status.timing.fields`: the spec's names, normalised."""
    fields: dict[str, Any] = {}
    match timing.rule:
        case Cron(text=text, day_match=day_match):
            fields["schedule"] = text
            if day_match is not DayMatch.OR:
                fields["dayMatch"] = day_match.value
        case Hourly(minute=minute):
            fields["hourly"] = {"minute": minute}
        case Interval(every_s=every_s, offset_s=offset_s, anchor=anchor):
            interval: dict[str, Any] = {"every": f"{every_s}s"}
            if offset_s is not None:
                interval["offset"] = f"{offset_s}s"
            if anchor is not None:
                interval["anchor"] = rfc3339.show(anchor)
            fields["interval"] = interval
        case At(instant=instant):
            fields["at"] = rfc3339.show(instant)
    fields["timeZone"] = timing.zone
    fields["dst"] = {"gap": timing.gap.value, "fold": timing.fold.value}
    if timing.start is not None:
        fields["startTime"] = rfc3339.show(timing.start)
    if timing.end is not None:
        fields["endTime"] = rfc3339.show(timing.end)
    return fields


def timing_from_fields(raw: object) -> Timing | None:
    """The timing that `timing_fields` wrote; None when it was not written by it."""
    fields = _mapping(raw)
    try:
        rule: Cron | Hourly | Interval | At
        if "schedule" in fields:
            rule = Cron(str(fields["schedule"]), DayMatch(fields.get("dayMatch", "Or")))
        elif "hourly" in fields:
            rule = Hourly(int(fields["hourly"]["minute"]))
        elif "interval" in fields:
            interval = fields["interval"]
            rule = Interval(
                _seconds(interval["every"]),
                _seconds(interval["offset"]) if "offset" in interval else None,
                rfc3339.read(interval.get("anchor")),
            )
        elif (instant := rfc3339.read(fields.get("at"))) is not None:
            rule = At(instant)
        else:
            return None
        return Timing(
            rule,
            zone=str(fields.get("timeZone", "UTC")),
            gap=Gap(_mapping(fields.get("dst")).get("gap", "Shift")),
            fold=Fold(_mapping(fields.get("dst")).get("fold", "First")),
            start=rfc3339.read(fields.get("startTime")),
            end=rfc3339.read(fields.get("endTime")),
        )
    except (KeyError, OverflowError, TypeError, ValueError):
        return None


def _seconds(text: object) -> int:
    if not isinstance(text, str) or not text.endswith("s") or not text[:-1].isdecimal():
        raise ValueError("not seconds")
    return int(text[:-1])


# --- parts --------------------------------------------------------------------------------------


def _mapping(raw: object) -> Mapping[str, Any]:
    return raw if isinstance(raw, Mapping) else {}


def _list(raw: object) -> list[Any]:
    return raw if isinstance(raw, list) else []


def _text(raw: object) -> str:
    return raw if isinstance(raw, str) else ""


def _count(raw: object) -> int:
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and raw >= 0 else 0


def _pause(raw: object) -> Pause | None:
    row = _mapping(raw)
    since = rfc3339.read(row.get("since"))
    if since is None:
        return None
    return Pause(since, _text(row.get("by")), _text(row.get("reason")))


def _recent(raw: object) -> RecentRun | None:
    row = _mapping(raw)
    due = rfc3339.read(row.get("due"))
    try:
        state = RunState(row.get("state", ""))
    except ValueError:
        return None
    if due is None:
        return None
    return RecentRun(
        due,
        state,
        started=rfc3339.read(row.get("started")),
        finished=rfc3339.read(row.get("finished")),
        reason=_text(row.get("reason")),
        # By hand it may be any number, and delays grow with a power of it.
        attempt=min(max(1, _count(row.get("attempt"))), MOST_ATTEMPTS),
        job=_text(row.get("job")),
    )


def _condition(row: Mapping[str, Any]) -> Condition | None:
    since = rfc3339.read(row.get("lastTransitionTime"))
    if since is None or row.get("status") not in ("True", "False", "Unknown"):
        return None
    return Condition(
        str(row["status"]),
        _text(row.get("reason")),
        _text(row.get("message")),
        since,
        _count(row.get("observedGeneration")),
    )


def show_slot(slot: int) -> str:
    """When the slot begins, UTC."""
    return show_clock(slot * SLOT_S)


def show_clock(second: int) -> str:
    """A time of day."""
    return f"{second // 3600:02}:{second // 60 % 60:02}"


def _clock(raw: object) -> int | None:
    found = _CLOCK.fullmatch(_text(raw))
    return int(found[1]) * 3600 + int(found[2]) * 60 if found else None


def _window(raw: object) -> Window | None:
    row = _mapping(raw)
    start, end = _clock(row.get("start")), _clock(row.get("end"))
    return Window(start, end) if start is not None and end is not None else None


def _placed(raw: object) -> Placed | None:
    row = _mapping(raw)
    anchor = rfc3339.read(row.get("anchor"))
    placed_at = rfc3339.read(row.get("placedAt"))
    try:
        every_s = _seconds(row.get("every"))
    except ValueError:
        return None
    if anchor is None or placed_at is None or not 0 < every_s <= LONGEST_INTERVAL_S:
        return None
    return Placed(
        anchor,
        every_s,
        placed_at,
        weight=max(1, _count(row.get("weight"))),
        slot=(_clock(row.get("slot")) or 0) // SLOT_S,
        window=_window(row.get("window")),
        reason=_text(row.get("reason")),
        load=_count(row.get("load")),
    )
