"""Our due times compared with two cron libraries. Tables list where they differ, and who is right.

Random texts avoid the forms of the tables, so every other difference is a defect.
"""

import datetime as dt
import itertools
import random

import pytest
from croniter import croniter
from cronsim import CronSim
from tests.unit.when.oracle import EPOCH, clock_changes, instant, shown, zone_info

from evenkeel.errors import BadField
from evenkeel.model import Cron, Timing
from evenkeel.when import compile_timing

BEGIN = instant("2019-01-01T00:00Z")
END = instant("2031-01-01T00:00Z")
NINE_ON_MONDAY = instant("2026-06-01T09:00Z")

ZONES = [
    "UTC",
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/New_York",
    "America/Santiago",
    "Asia/Kolkata",
    "Asia/Tehran",
    "Australia/Sydney",
    "Europe/Berlin",
    "Europe/Dublin",
    "Pacific/Apia",
    "Pacific/Chatham",
]


def _entry(rng: random.Random, low: int, high: int, *, single_step: bool) -> str:
    begin = rng.randrange(low, high)
    end = rng.randrange(begin + 1, high + 1)
    forms = [f"{begin}", f"{begin}-{end}", f"{begin}-{end}/{rng.randrange(1, 8)}", "*"]
    if single_step:
        forms += [f"*/{rng.randrange(1, high + 2)}", f"{begin}/{rng.randrange(1, 9)}"]
    return rng.choice(forms)


def _field(rng: random.Random, low: int, high: int, *, star: float, day: bool = False) -> str:
    if rng.random() < star:
        return "*"
    entries = [_entry(rng, low, high, single_step=not day) for _ in range(rng.choice([1, 1, 2]))]
    return "*" if "*" in entries and day else ",".join(entries)


def _text(rng: random.Random) -> str:
    return " ".join(
        [
            _field(rng, 0, 59, star=0.2),
            _field(rng, 0, 23, star=0.3),
            _field(rng, 1, 31, star=0.6, day=True),
            _field(rng, 1, 12, star=0.7),
            _field(rng, 0, 6, star=0.6, day=True),
        ]
    )


def _ours(text: str, zone: str, after: int, count: int) -> list[int]:
    dues = compile_timing(Timing(Cron(text), zone=zone), seed="ns/name")
    found = []
    while len(found) < count and (next_due := dues.next_after(after)) is not None:
        found.append(next_due)
        after = next_due
    return found


def _local(zone: str, t: int) -> dt.datetime:
    at = EPOCH + dt.timedelta(seconds=t)
    return at if zone == "UTC" else at.astimezone(zone_info(zone))


def _cronsim(text: str, zone: str, after: int, count: int) -> list[int]:
    return [int(t.timestamp()) for t in itertools.islice(CronSim(text, _local(zone, after)), count)]


def _croniter(text: str, zone: str, after: int, count: int) -> list[int]:
    times = croniter(text, _local(zone, after))
    return [int(times.get_next(float)) for _ in range(count)]


@pytest.mark.parametrize("zone", ZONES)
def test_cronsim_agrees_around_clock_changes(zone):
    rng = random.Random(zone)
    changes = clock_changes(zone, BEGIN, END) or [instant("2026-02-28T12:00Z")]
    for _ in range(120):
        text = _text(rng)
        after = (rng.choice(changes) - rng.randrange(3 * 86_400)) // 60 * 60
        try:
            ours = _ours(text, zone, after, 8)
        except BadField as bad:
            if bad.reason != "NeverFires":
                raise
            continue
        assert shown(ours) == shown(_cronsim(text, zone, after, 8)), (text, zone, shown([after]))


def test_croniter_agrees_in_utc():
    rng = random.Random("croniter")
    for _ in range(600):
        text = _text(rng)
        after = rng.randrange(BEGIN, END) // 60 * 60
        try:
            ours = _ours(text, "UTC", after, 6)
        except BadField as bad:
            if bad.reason != "NeverFires":
                raise
            continue
        assert shown(ours) == shown(_croniter(text, "UTC", after, 6)), (text, shown([after]))


# text, zone, after, what we say, what they say, why we are right
CRONSIM_DIFFERS = {
    "a stepped star in a day field restricts it, as CronJob has it; cronsim joins by AND": (
        "0 0 */2 * 1",
        "UTC",
        "2026-06-01T00:00Z",
        ["2026-06-03T00:00Z", "2026-06-05T00:00Z"],
        ["2026-06-15T00:00Z", "2026-06-29T00:00Z"],
    ),
    "N/step in the day of week ends at Saturday, as CronJob has it; cronsim adds Sunday": (
        "0 0 * * 1/2",
        "UTC",
        "2026-06-05T00:00Z",
        ["2026-06-08T00:00Z", "2026-06-10T00:00Z"],
        ["2026-06-07T00:00Z", "2026-06-08T00:00Z"],
    ),
    "a stepped range of one value is that value; cronsim goes on to the end of the field": (
        "0 20-20/2 * * *",
        "UTC",
        "2026-06-01T00:00Z",
        ["2026-06-01T20:00Z", "2026-06-02T20:00Z"],
        ["2026-06-01T20:00Z", "2026-06-01T22:00Z"],
    ),
    "Lord Howe shows two o'clock half an hour later; cronsim steps by whole hours and loses it": (
        "0 */2 * * *",
        "Australia/Lord_Howe",
        "2026-04-04T14:00Z",
        ["2026-04-04T15:30Z", "2026-04-04T17:30Z"],
        ["2026-04-04T17:30Z", "2026-04-04T19:30Z"],
    ),
}

CRONITER_DIFFERS = {
    "59/5 is 59 alone, as CronJob has it; croniter 6.2.4 takes it for a star": (
        "59/5 * * * *",
        "UTC",
        "2026-06-01T00:00Z",
        ["2026-06-01T00:59Z", "2026-06-01T01:59Z"],
        ["2026-06-01T00:05Z", "2026-06-01T00:10Z"],
    ),
    "23/2 is 23 alone": (
        "0 23/2 * * *",
        "UTC",
        "2026-06-01T00:00Z",
        ["2026-06-01T23:00Z", "2026-06-02T23:00Z"],
        ["2026-06-01T02:00Z", "2026-06-01T04:00Z"],
    ),
    "a range of one value is that value; croniter takes it for the whole field": (
        "0 0 1 6-6 *",
        "UTC",
        "2026-06-01T00:00Z",
        ["2027-06-01T00:00Z", "2028-06-01T00:00Z"],
        ["2026-07-01T00:00Z", "2026-08-01T00:00Z"],
    ),
    "in the repeated hour a fixed time runs the first time only; croniter runs it twice": (
        "30 2 * * *",
        "Europe/Berlin",
        "2026-10-24T12:00Z",
        ["2026-10-25T00:30Z", "2026-10-26T01:30Z"],
        ["2026-10-25T00:30Z", "2026-10-25T01:30Z"],
    ),
    "a wildcard hour that the clock jumps over is not run; croniter invents a run after it": (
        "0 */2 * * *",
        "Europe/Berlin",
        "2026-03-28T23:00Z",
        ["2026-03-29T02:00Z", "2026-03-29T04:00Z"],
        ["2026-03-29T01:00Z", "2026-03-29T02:00Z"],
    ),
    "every twenty minutes goes on through Lord Howe's half hour; croniter loses a run": (
        "*/20 0-3 * * *",
        "Australia/Lord_Howe",
        "2026-04-04T14:30Z",
        ["2026-04-04T14:40Z", "2026-04-04T15:10Z"],
        ["2026-04-04T14:40Z", "2026-04-04T15:30Z"],
    ),
}


@pytest.mark.parametrize("case", CRONSIM_DIFFERS.values(), ids=CRONSIM_DIFFERS)
def test_cronsim_differs_where(case):
    text, zone, after, ours, theirs = case
    assert shown(_ours(text, zone, instant(after), 2)) == ours
    assert shown(_cronsim(text, zone, instant(after), 2)) == theirs


@pytest.mark.parametrize("case", CRONITER_DIFFERS.values(), ids=CRONITER_DIFFERS)
def test_croniter_differs_where(case):
    text, zone, after, ours, theirs = case
    assert shown(_ours(text, zone, instant(after), 2)) == ours
    assert shown(_croniter(text, zone, instant(after), 2)) == theirs


# text -> (we take it, cronsim takes it, croniter takes it)
VALIDITY = {
    "0 0 * * 5L": (True, True, False),
    "0 0 * * L5": (False, False, True),
    "0 0 * * ?": (True, False, True),
    "0 0 ? * 1": (True, False, True),
    "0 22-2 * * *": (False, False, True),
    "0 0 * * FRI-MON": (False, False, True),
    "0 0 15W * *": (False, False, True),
    "R * * * *": (False, False, True),
    "0 0 * * 7": (True, True, True),
    "0 0 * * 5#2": (True, True, True),
    "0 0 L * *": (True, True, True),
    "0 0 * JUL *": (True, True, True),
    "0 0 * JUN-JUL *": (True, True, True),
    "60 * * * *": (False, False, False),
    "* * * *": (False, False, False),
    "@every 1h": (False, False, False),
    "*/0 * * * *": (False, False, False),
    "1,,2 * * * *": (False, False, False),
    "-5 * * * *": (False, False, False),
}


def _takes(make) -> bool:
    try:
        make()
    except Exception:  # noqa: BLE001 - each library has its own tree of errors
        return False
    return True


@pytest.mark.parametrize("text", VALIDITY)
def test_which_library_accepts_which_text(text):
    start = _local("UTC", NINE_ON_MONDAY)
    assert (
        _takes(lambda: _ours(text, "UTC", NINE_ON_MONDAY, 1)),
        _takes(lambda: CronSim(text, start)),
        _takes(lambda: croniter(text, start)),
    ) == VALIDITY[text]


def test_aliases_are_not_hashed():
    """croniter moves `@daily` to a hashed minute once H is allowed; ours stays at midnight."""
    start = _local("UTC", NINE_ON_MONDAY)
    theirs = croniter("@daily", start, hash_id="ns/name").get_next(float)
    assert shown([int(theirs)]) != ["2026-06-02T00:00Z"]
    assert shown(_ours("@daily", "UTC", NINE_ON_MONDAY, 1)) == ["2026-06-02T00:00Z"]
