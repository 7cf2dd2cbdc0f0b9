"""Every clock change of many zones, minute by minute, under all four policies."""

import pytest
from tests.unit.when.oracle import Watch, clock_changes, instant, plain_cron, shown

from evenkeel.model import Cron, Fold, Gap, Timing
from evenkeel.when import columns, compile_timing, expand

BEGIN_2020 = instant("2020-01-01T00:00Z")
END_2032 = instant("2033-01-01T00:00Z")
AROUND_S = 8 * 3600

ZONES = [
    "Africa/Cairo",
    "Africa/Casablanca",
    "Africa/El_Aaiun",
    "Africa/Juba",
    "America/Adak",
    "America/Anchorage",
    "America/Asuncion",
    "America/Chicago",
    "America/Denver",
    "America/Halifax",
    "America/Havana",
    "America/Los_Angeles",
    "America/Mexico_City",
    "America/Miquelon",
    "America/New_York",
    "America/Nuuk",
    "America/Port-au-Prince",
    "America/Santiago",
    "America/Scoresbysund",
    "America/St_Johns",
    "Antarctica/Casey",
    "Antarctica/Troll",
    "Antarctica/Vostok",
    "Asia/Almaty",
    "Asia/Amman",
    "Asia/Beirut",
    "Asia/Damascus",
    "Asia/Gaza",
    "Asia/Jerusalem",
    "Asia/Tehran",
    "Atlantic/Azores",
    "Australia/Adelaide",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Europe/Berlin",
    "Europe/Chisinau",
    "Europe/Dublin",
    "Europe/Lisbon",
    "Europe/London",
    "Europe/Volgograd",
    "Pacific/Apia",
    "Pacific/Auckland",
    "Pacific/Chatham",
    "Pacific/Easter",
    "Pacific/Fiji",
    "Pacific/Norfolk",
]

HISTORIC = {
    "Apia leaves out 30 December 2011": ("Pacific/Apia", "2011-12-30T10:00Z"),
    "Kwajalein leaves out 21 August 1993": ("Pacific/Kwajalein", "1993-08-21T12:00Z"),
    "Kathmandu goes fifteen minutes forward for good": ("Asia/Kathmandu", "1985-12-31T18:30Z"),
    "Caracas goes half an hour back": ("America/Caracas", "2007-12-09T07:00Z"),
    "Caracas goes half an hour forward": ("America/Caracas", "2016-05-01T07:00Z"),
    "Pyongyang goes half an hour back": ("Asia/Pyongyang", "2015-08-14T15:00Z"),
    "Pyongyang returns": ("Asia/Pyongyang", "2018-05-04T15:00Z"),
    "Moscow stays in summer": ("Europe/Moscow", "2011-03-26T23:00Z"),
    "Moscow moves to winter for good": ("Europe/Moscow", "2014-10-25T22:00Z"),
    "Casey goes three hours back": ("Antarctica/Casey", "2010-03-04T15:00Z"),
    "Casey goes three hours forward at one past midnight": (
        "Antarctica/Casey",
        "2020-10-03T16:01Z",
    ),
    "London ends its years of summer time": ("Europe/London", "1971-10-31T02:00Z"),
    "Lord Howe's first half-hour summer ends": ("Australia/Lord_Howe", "1986-03-15T15:00Z"),
    "Berlin's double change of 1980": ("Europe/Berlin", "1980-04-06T01:00Z"),
    "Santiago skips midnight": ("America/Santiago", "2019-09-08T04:00Z"),
}

TEXTS = [
    "30 2 * * *",
    "0 0 * * *",
    "59 23 * * *",
    "0,15,30,45 0-4 * * *",
    "5 0-23/3 * * 0,6",
    "10 1-3 1-7,25-31 * 0",
    "0 0-23 * * *",
    "*/20 0-3 * * *",
    "*/30 * * * *",
    "0 */2 * * *",
    "17 * * * *",
]
POLICIES = [(gap, fold) for gap in Gap for fold in Fold]


def _compiled(zone: str):
    return {
        (text, gap, fold): compile_timing(
            Timing(Cron(text), zone=zone, gap=gap, fold=fold), seed="ns/name"
        )
        for text in TEXTS
        for gap, fold in POLICIES
    }


def _compare(zone: str, a: int, b: int, *, step_s: int = 60, before_s: int = 4 * 3600) -> None:
    watch = Watch(zone, a, b, step_s=step_s, before_s=before_s)
    compiled = _compiled(zone)
    expansion = expand(columns(list(compiled.values())), a, b)
    for place, ((text, gap, fold), dues) in enumerate(compiled.items()):
        expected = watch.due(plain_cron(text), shift=gap is Gap.SHIFT, first=fold is Fold.FIRST)
        says = f"{text} {zone} {gap} {fold}"
        assert shown(dues.between(a, b)) == shown(expected), says
        vector = a + expansion.second[expansion.ordinal == place].astype(int)
        assert vector.tolist() == expected, says
        assert dues.count(a, b) == len(expected), says
        assert dues.newest(a, b, limit=3) == expected[-3:], says
        for before, after in zip([a - 1, *expected], [*expected, None], strict=True):
            if after is not None:
                assert dues.next_after(before) == after, says


@pytest.mark.parametrize("zone", ZONES)
def test_every_clock_change_of_2020_to_2032_is_as_the_wall_clock_says(zone):
    changes = clock_changes(zone, BEGIN_2020, END_2032)
    assert changes, "a zone without changes proves nothing here"
    for change in changes:
        _compare(zone, change - AROUND_S, change + AROUND_S)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("zone", ZONES)
def test_every_clock_change_of_2020_to_2032_in_wide_windows(zone):
    for change in clock_changes(zone, BEGIN_2020, END_2032):
        _compare(zone, change - 30 * 3600, change + 30 * 3600, before_s=30 * 3600)


@pytest.mark.parametrize(("zone", "at"), HISTORIC.values(), ids=HISTORIC)
def test_named_changes_of_the_past_are_as_the_wall_clock_says(zone, at):
    change = instant(at)
    assert clock_changes(zone, change - 3600, change + 3600) == [change]
    _compare(zone, change - 26 * 3600, change + 26 * 3600)


def test_an_offset_with_seconds_is_followed_to_the_second():
    monrovia_1972 = instant("1972-01-07T00:44:30Z")
    _compare("Africa/Monrovia", monrovia_1972 - AROUND_S, monrovia_1972 + AROUND_S, step_s=30)


def test_a_window_that_begins_inside_a_repeated_hour_still_knows_the_first_pass():
    berlin_autumn = instant("2026-10-25T01:00Z")
    for minutes in range(-70, 70, 7):
        begin = berlin_autumn + 60 * minutes
        _compare("Europe/Berlin", begin, begin + 3 * 3600)


def test_a_window_that_begins_or_ends_at_the_change_has_the_shifted_run_exactly_once():
    berlin_spring = instant("2026-03-29T01:00Z")
    daily = compile_timing(Timing(Cron("30 2 * * *"), zone="Europe/Berlin"), seed="")
    assert daily.between(berlin_spring, berlin_spring + 60) == [berlin_spring]
    assert daily.between(berlin_spring - 60, berlin_spring) == []
    assert daily.next_after(berlin_spring - 1) == berlin_spring
    assert expand([daily], berlin_spring, berlin_spring + 60).second.tolist() == [0]
    assert expand([daily], berlin_spring - 60, berlin_spring).second.tolist() == []


def test_a_window_inside_the_second_pass_of_a_repeated_hour_is_empty_for_fixed_times():
    """It once was an exception that would have stopped every rebuild for most of an hour."""
    second_pass = instant("2026-10-25T01:10Z")
    daily = compile_timing(Timing(Cron("30 2 * * *"), zone="Europe/Berlin"), seed="")
    every_ten = compile_timing(Timing(Cron("*/10 * * * *"), zone="Europe/Berlin"), seed="")
    expansion = expand([daily, every_ten], second_pass, second_pass + 1800)
    assert expansion.ordinal.tolist() == [1, 1, 1]
    assert daily.between(second_pass, second_pass + 1800) == []
    assert daily.count(second_pass, second_pass + 1800) == 0
    assert shown([daily.next_after(second_pass)]) == ["2026-10-26T01:30Z"]
