"""Makes due times of a timing, and refuses a timing that is wrong.

`resource.read` calls `compile_timing` to check a timing; the core and `balance` call it for due
times. A timing that can never be due raises `BadField`, with the field and what to write instead.
This takes microseconds: texts have a greatest length, and whether a cron text matches any day is
looked up in the fourteen kinds of years, not searched in the future.
"""

from functools import lru_cache

from evenkeel import rfc3339
from evenkeel.errors import BadField
from evenkeel.model import DAY_S, Cron, Hourly, Instant, Interval, Timing
from evenkeel.reasons import ConditionReason
from evenkeel.when import days, dst
from evenkeel.when.cron import CronFields, parse_cron
from evenkeel.when.due import DueTimes, EveryDueTimes, OnceDueTimes, WallDueTimes, span_of
from evenkeel.when.duration import format_duration
from evenkeel.when.row import pack_cron_row, pack_days_row
from evenkeel.when.wall import CronWall, EveryWall
from evenkeel.when.zone import MAX_INSTANT, Zone, load_zone

LONGEST_INTERVAL_S = 366 * DAY_S
"""A longer interval is a mistake, or better written as cron or `at`; and searches need a limit."""

_ALL_HOURS = (1 << 24) - 1


def compile_timing(timing: Timing, *, seed: str) -> DueTimes:
    """The due times of a timing. `seed` (namespace/name) is hashed for the `H` of cron texts."""
    zone = load_zone(timing.zone)
    for field, instant in (("startTime", timing.start), ("endTime", timing.end)):
        if instant is not None:
            _check_instant(field, instant)
    if timing.start is not None and timing.end is not None and timing.start >= timing.end:
        raise BadField("endTime", "must be later than startTime, or nothing ever runs")
    rule = timing.rule
    if isinstance(rule, Cron):
        fields = parse_cron(rule.text, day_match=rule.day_match, seed=seed)
        return _fields_due_times(timing, " ".join(rule.text.split()), fields, zone)
    if isinstance(rule, Hourly):
        return _fields_due_times(timing, f"hourly at :{rule.minute:02d}", _hourly(rule), zone)
    if isinstance(rule, Interval):
        return _interval_due_times(timing, rule, zone)
    _check_instant("at", rule.instant)
    return OnceDueTimes(timing, f"once at {rfc3339.show(rule.instant)}", instant=rule.instant)


def _hourly(rule: Hourly) -> CronFields:
    if not 0 <= rule.minute <= 59:
        raise BadField("hourly.minute", f"{rule.minute} is out of range; 0 to 59 are possible")
    return CronFields(
        minute=1 << rule.minute,
        hour=_ALL_HOURS,
        dom=days.ANY_DAY_OF_MONTH,
        month=days.ANY_MONTH,
        dow=days.ANY_DAY_OF_WEEK,
        either=False,
        by_real_minutes=True,
    )


def _fields_due_times(timing: Timing, text: str, fields: CronFields, zone: Zone) -> DueTimes:
    policy = dst.policy_of(gap=timing.gap, fold=timing.fold, by_real_minutes=fields.by_real_minutes)
    start, end = span_of(timing)
    row = pack_cron_row(fields, zone=zone.number, policy=policy, start=start, end=end)
    return WallDueTimes(timing, text, row, wall=_wall(fields), zone=zone, policy=policy)


@lru_cache(maxsize=4096)
def _wall(fields: CronFields) -> CronWall:
    day_set = days.day_set(dom=fields.dom, month=fields.month, dow=fields.dow, either=fields.either)
    if not day_set.possible():
        raise BadField(
            "schedule",
            "never fires: no year has such a day; check day of month against month and day of week",
            reason=ConditionReason.NEVER_FIRES,
        )
    return CronWall(minute=fields.minute, hour=fields.hour, days=day_set)


def _interval_due_times(timing: Timing, rule: Interval, zone: Zone) -> DueTimes:
    every_s, offset_s = rule.every_s, rule.offset_s
    if not 1 <= every_s <= LONGEST_INTERVAL_S:
        raise BadField("interval.every", "is out of range; 1s to 366d are possible")
    # An interval without offset has no due times: the caller must place it before.
    assert offset_s is not None, "an interval without offset must be placed first"
    if not 0 <= offset_s < every_s:
        raise BadField("interval.offset", "must be at least 0s and less than interval.every")
    if rule.anchor is not None:
        _check_instant("interval.anchor", rule.anchor)
    base = (rule.anchor or 0) + offset_s
    text = f"every {format_duration(every_s)}"
    if offset_s:
        text += f" + {format_duration(offset_s)}"
    if every_s % DAY_S or zone.unchanging:
        return EveryDueTimes(timing, text, base=base, every_s=every_s)
    wall_base = base + zone.offset_at(base)
    policy = dst.policy_of(gap=timing.gap, fold=timing.fold, by_real_minutes=False)
    start, end = span_of(timing)
    row = pack_days_row(
        base=wall_base, every_s=every_s, zone=zone.number, policy=policy, start=start, end=end
    )
    wall = EveryWall(base=wall_base, every_s=every_s)
    return WallDueTimes(timing, text, row, wall=wall, zone=zone, policy=policy)


def _check_instant(field: str, instant: Instant) -> None:
    if not 0 <= instant < MAX_INSTANT:
        raise BadField(field, "is out of range; the years 1970 to 9999 are possible")
