"""Schedules and runs, of which no two may have a Job of one name.

Called by the unit tests, and by those that ask a real API server whether a Job may be called so.
"""

from tests.builders import instant

from evenkeel.model import BY_SCHEDULE

NAMES = [
    "a",
    "backup",
    "data-quality",
    "my-quarter",
    "my-q0",
    "my-q0abcde",
    "my-q0abcdef",
    "my-q0abcdefg",
    "q0abcdef",
    "retry2",
    "backup-retry",
    "backup-retry0",
    "backup-retry2",
    "backup-retry2-q0abcdef",
    "backup-q0abcdef-retry2",
    "backup-retry2-29540764",
    "backup-29540764",
    "backup-1772445840",
    "report-retry301633830",  # the first six letters of its hash are retry2
    "nightly.report",
    "nightly.report-retry2",
    "nightly.report.q0abcdef",
    "0",
    "a" * 44,
    "a" * 51 + "b",
    "a" * 53,
    "a" * 44 + "." + "x" * 20,
    "a" * 44 + "-tail-of-it",
    ".".join(["abcdefghi"] * 25) + ".xy",
    ".".join(["abcdefghi"] * 25) + ".xz",
]
MINUTES = [instant("10:04"), instant("10:05"), instant("+400d 03:00")]
SECONDS = [instant("10:04:01"), instant("10:04:59"), instant("+400d 03:00:30")]
KINDS = [BY_SCHEDULE, "q0abcdef", "q0abcdeg"]
ATTEMPTS = [1, 2, 3, 11, 21]
