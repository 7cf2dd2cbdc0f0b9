"""Computes due times. Pure: they depend on the timing, the name and the zone data only.

    timing --compile--> cron | wall --dst--> due       one schedule: next, between, newest, count
                             row -> columns -> expand   many schedules at once, for the run index

`cron` reads cron texts, `days` knows the calendar, `zone` and `tzif` read the clock changes of the
pinned tzdata package.
"""

from evenkeel.when.columns import Columns, columns
from evenkeel.when.compile import compile_timing
from evenkeel.when.cron_hints import hint
from evenkeel.when.due import DueTimes
from evenkeel.when.duration import format_duration, parse_duration
from evenkeel.when.expand import Expansion, expand
from evenkeel.when.zone import zone_data_version

__all__ = [
    "Columns",
    "DueTimes",
    "Expansion",
    "columns",
    "compile_timing",
    "expand",
    "format_duration",
    "hint",
    "parse_duration",
    "zone_data_version",
]
