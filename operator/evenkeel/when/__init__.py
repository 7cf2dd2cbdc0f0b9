"""When schedules are due. Pure: a due time depends on the timing, the name and the zone data only.

    timing --compile--> cron | wall --dst--> due      one schedule: next, between, newest, count
                             row > columns -> expand   ten thousand at once, for the run index

`cron` reads texts, `days` knows the calendar, `zone` and `tzif` the clocks of the pinned tzdata.
"""

from evenkeel.when.columns import Columns, columns
from evenkeel.when.compile import compile_timing
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
    "parse_duration",
    "zone_data_version",
]
