"""A second way to find due times, as simple as possible: look at the zone's clock at every minute.

Shares nothing with evenkeel.when: sets instead of bits, zoneinfo (with the wheel's data) instead
of our own zone reader, and a walk over every minute instead of arithmetic.
"""

import datetime as dt
import functools
import importlib.resources
import sys
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass

from evenkeel.errors import BadField

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
HOUR_S = 3600
DAY_S = 86_400


@functools.cache
def zone_info(name: str) -> zoneinfo.ZoneInfo:
    with (importlib.resources.files("tzdata.zoneinfo") / name).open("rb") as file:
        return zoneinfo.ZoneInfo.from_file(file, key=name)


def instant(text: str) -> int:
    """`2026-03-29T01:00Z` as seconds since the epoch."""
    return int((dt.datetime.fromisoformat(text) - EPOCH).total_seconds())


def shown(instants: list[int]) -> list[str]:
    return [(EPOCH + dt.timedelta(seconds=t)).strftime("%Y-%m-%dT%H:%MZ") for t in instants]


def offset_s(zone: str, t: int) -> int:
    local = (EPOCH + dt.timedelta(seconds=t)).astimezone(zone_info(zone))
    return int(local.utcoffset().total_seconds())


def clock_changes(zone: str, a: int, b: int) -> list[int]:
    """Every change of the zone's offset in [a, b), found by asking four times a day."""
    found = []
    for t in range(a, b, 6 * HOUR_S):
        low, high = t, min(t + 6 * HOUR_S, b)
        if offset_s(zone, low) == offset_s(zone, high):
            continue
        while high - low > 1:
            middle = (low + high) // 2
            if offset_s(zone, middle) == offset_s(zone, low):
                low = middle
            else:
                high = middle
        found.append(high)
    return found


@dataclass(frozen=True)
class PlainCron:
    """Cron text of stars, numbers, ranges, steps and lists, as plain sets."""

    minutes: frozenset[int]
    hours: frozenset[int]
    doms: frozenset[int]
    months: frozenset[int]
    dows: frozenset[int]
    dom_set: bool
    dow_set: bool
    by_real_minutes: bool
    together: bool = False

    def means(self, wall: dt.datetime) -> bool:
        if wall.second or wall.minute not in self.minutes or wall.hour not in self.hours:
            return False
        return self.means_day(wall)

    def means_day(self, wall: dt.datetime) -> bool:
        if wall.month not in self.months:
            return False
        dom = wall.day in self.doms
        dow = wall.isoweekday() % 7 in self.dows
        if self.dom_set and self.dow_set and not self.together:
            return dom or dow
        return (dom or not self.dom_set) and (dow or not self.dow_set)


def _values(text: str, low: int, high: int) -> frozenset[int]:
    values: set[int] = set()
    for entry in text.split(","):
        span, _, step = entry.partition("/")
        if span in ("*", "?"):
            begin, end = low, high
        elif "-" in span:
            begin, end = map(int, span.split("-"))
        else:
            begin = int(span)
            end = max(begin, high) if step else begin
        values.update(range(begin, end + 1, int(step or 1)))
    return frozenset(values)


@functools.cache
def plain_cron(text: str, *, together: bool = False) -> PlainCron:
    minute, hour, dom, month, dow = text.split()
    unset = ("*", "?", "*/1")
    return PlainCron(
        minutes=_values(minute, 0, 59),
        hours=_values(hour, 0, 23),
        doms=_values(dom, 1, 31),
        months=_values(month, 1, 12),
        dows=frozenset(value % 7 for value in _values(dow, 0, 6)),
        dom_set=dom not in unset,
        dow_set=dow not in unset,
        by_real_minutes=minute[0] in "*?" or hour[0] in "*?",
        together=together,
    )


class Watch:
    """What a zone's clock showed at every minute of a span, and of some hours before it."""

    def __init__(self, zone: str, a: int, b: int, *, step_s: int = 60, before_s: int = DAY_S):
        self.a, self.b = a, b
        self.ticks: list[tuple[int, dt.datetime, bool]] = []
        """Instant, what the clock showed, and whether it had shown that before."""
        self.jumps: list[tuple[int, list[dt.datetime]]] = []
        """Instants at which the clock had jumped, and what it left out."""
        self._by_cron: dict[PlainCron, list[tuple[int, dt.datetime, bool]]] = {}
        info = zone_info(zone)
        step = dt.timedelta(seconds=step_s)
        shown_before: set[dt.datetime] = set()
        previous: dt.datetime | None = None
        for t in range(max(0, (a - before_s) // 60 * 60), b, step_s):
            wall = (EPOCH + dt.timedelta(seconds=t)).astimezone(info).replace(tzinfo=None)
            if previous is not None and wall > previous + step:
                self.jumps.append((t, list(_readings(previous + step, wall, step))))
            self.ticks.append((t, wall, wall in shown_before))
            shown_before.add(wall)
            previous = wall

    def due(self, cron: PlainCron, *, shift: bool, first: bool) -> list[int]:
        """The due times in [a, b) under one of the four policies."""
        if cron.by_real_minutes:
            shift = first = False
        found = {t for t, _, again in self._meant(cron) if not (first and again)}
        if shift:
            found |= {t for t, lost in self.jumps if any(cron.means(wall) for wall in lost)}
        return sorted(t for t in found if self.a <= t < self.b)

    def _meant(self, cron: PlainCron) -> list[tuple[int, dt.datetime, bool]]:
        if cron not in self._by_cron:
            self._by_cron[cron] = [tick for tick in self.ticks if cron.means(tick[1])]
        return self._by_cron[cron]


def _readings(begin: dt.datetime, end: dt.datetime, step: dt.timedelta) -> Iterator[dt.datetime]:
    while begin < end:
        yield begin
        begin += step


def work_of(make) -> tuple[Exception | None, int]:
    """What a call raises, and how many Python functions it took: time without a clock."""
    calls = 0

    def count(_frame, event, _argument):
        nonlocal calls
        calls += event == "call"

    raised = None
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        make()
    except BadField as bad:
        raised = bad
    finally:
        sys.setprofile(before)
    return raised, calls
