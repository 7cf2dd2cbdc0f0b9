"""Says which schedules with fixed times could leave their time to the operator, and which not.

`evenkeel advise` calls `convert`. A timing can be converted if it runs at equal distances around
the whole day, on every day: an interval without an offset then runs as often. All other timings are
taken to have a reason for their times: a day of the month, office hours, a local time of day.

That nobody needs the times of a timing that can be converted is not known here. Its owner decides.
"""

import enum
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

from evenkeel.model import DAY_S, Cron, Hourly, Instant, Interval, Window
from evenkeel.when import DueTimes
from evenkeel.when.cron import CronFields, parse_cron
from evenkeel.when.zone import load_zone

MINUTE_S = 60
HOUR_S = 3600
DAY_MINUTES = DAY_S // MINUTE_S

AROUND_DAILY_S = 2 * HOUR_S
"""The window of a daily schedule: so far before and after its time. Wide enough to leave a busy
slot, and still the same part of the night."""

ZONE_LOOKED_AT_S = 2 * 366 * DAY_S
"""A zone whose clock has not changed in so long a time ahead is taken to keep its offset."""

_ALL_DAYS = ("dom", "month", "dow")
_FULL = {
    "dom": sum(1 << day for day in range(1, 32)),
    "month": sum(1 << month for month in range(1, 13)),
    "dow": sum(1 << day for day in range(7)),
}


@dataclass(frozen=True, slots=True)
class Conversion:
    """The interval without an offset that a timing could become."""

    every_s: int
    window: Window | None = None

    @property
    def every(self) -> str:
        """The text of interval.every. A day is 24h here: the window says which part of it."""
        for size_s, unit in ((HOUR_S, "h"), (MINUTE_S, "m")):
            if self.every_s % size_s == 0:
                return f"{self.every_s // size_s}{unit}"
        return f"{self.every_s}s"


class Reason(enum.Enum):
    """Why a timing is left as it is."""

    DAILY = "once a day; --daily tries a window of two hours either side"
    DAYS = "on certain days"
    PART_OF_DAY = "in one part of the day"
    UNEQUAL = "at unequal distances"
    LOCAL_HOURS = "at certain hours of a time zone whose clock changes"
    LONG = "with an interval of more than a day"
    ONCE = "once"
    ENDED = "that never run again"
    NOT_BEGUN = "from an anchor that lies ahead"


def convert(dues: DueTimes, *, seed: str, now: Instant, daily: bool) -> Conversion | Reason:
    """The interval that could take the place of fixed times. `seed` is namespace/name."""
    timing = dues.timing
    if dues.next_after(now - 1) is None:
        return Reason.ENDED
    match timing.rule:
        case Cron() as cron:
            fields = parse_cron(cron.text, day_match=cron.day_match, seed=seed)
            found = _of_cron(fields)
        case Hourly():
            found = HOUR_S
        case Interval() as rule if (rule.anchor or 0) + (rule.offset_s or 0) > now:
            found = Reason.NOT_BEGUN
        case Interval(every_s=every_s):
            found = every_s if every_s <= DAY_S else Reason.LONG
        case _:
            found = Reason.ONCE
    if isinstance(found, Reason):
        return found
    if found == DAY_S:
        return _daily(dues, now) if daily else Reason.DAILY
    if found > HOUR_S and isinstance(timing.rule, Cron) and _clock_changes(timing.zone, now):
        return Reason.LOCAL_HOURS
    return Conversion(found)


def _of_cron(fields: CronFields) -> int | Reason:
    """The distance between two runs, if it is always the same."""
    if any(getattr(fields, name) != _FULL[name] for name in _ALL_DAYS):
        return Reason.DAYS
    hours = _bits(fields.hour)
    times = [60 * hour + minute for hour in hours for minute in _bits(fields.minute)]
    gaps = {later - earlier for earlier, later in pairwise([*times, times[0] + DAY_MINUTES])}
    if len(gaps) == 1:
        return gaps.pop() * MINUTE_S
    return Reason.PART_OF_DAY if _is_part_of_day(hours) else Reason.UNEQUAL


def _is_part_of_day(hours: list[int]) -> bool:
    """Whether the hours are one stretch of the day, such as 9-17, 8-20/2 or 22,23,0,1."""
    if len(hours) == 1:
        return True
    gaps = [later - earlier for earlier, later in pairwise([*hours, hours[0] + 24])]
    longest = max(gaps)
    others = set(gaps) - {longest}
    return len(hours) > 2 and gaps.count(longest) == 1 and len(others) == 1


def _bits(mask: int) -> list[int]:
    return [value for value in range(mask.bit_length()) if mask >> value & 1]


def _daily(dues: DueTimes, now: Instant) -> Conversion | Reason:
    """Once a day, within two hours of the local time at which it runs now."""
    due = dues.next_after(now)
    if due is None:
        return Reason.ENDED
    local = (due + load_zone(dues.timing.zone).offset_at(due)) % DAY_S // MINUTE_S * MINUTE_S
    window = Window((local - AROUND_DAILY_S) % DAY_S, (local + AROUND_DAILY_S) % DAY_S)
    return Conversion(DAY_S, window)


def _clock_changes(zone: str, now: Instant) -> bool:
    changes, _ = load_zone(zone).spans(now + ZONE_LOOKED_AT_S)
    following = bisect_right(changes, now)
    return following < len(changes) and changes[following] < now + ZONE_LOOKED_AT_S
