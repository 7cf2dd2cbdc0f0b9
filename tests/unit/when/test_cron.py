"""The cron grammar: the meaning of each form, what is refused, and how H is chosen."""

import pytest
from tests.unit.when.oracle import instant, shown, work_of

from evenkeel.errors import BadField
from evenkeel.model import At, Cron, DayMatch, Hourly, Interval, Timing
from evenkeel.when import compile_timing
from evenkeel.when.cron import parse_cron

MONDAY = instant("2026-06-01T00:00Z")
JUST_BEFORE_MONDAY = MONDAY - 1
YEAR_9999 = instant("9999-12-31T23:59Z")


def cron_dues(text: str, *, day_match: DayMatch = DayMatch.OR, name: str = "ns/name"):
    return compile_timing(Timing(Cron(text, day_match)), seed=name)


def next_times(text: str, count: int, *, day_match: DayMatch = DayMatch.OR) -> list[str]:
    dues = cron_dues(text, day_match=day_match)
    found = [JUST_BEFORE_MONDAY]
    while len(found) <= count:
        found.append(dues.next_after(found[-1]))
    return [text.removeprefix("2026-").removesuffix("Z") for text in shown(found[1:])]


MEANS = {
    "five stars are every minute": ("* * * * *", ["06-01T00:00", "06-01T00:01"]),
    "59/5 is 59 to 59 by 5": ("59/5 * * * *", ["06-01T00:59", "06-01T01:59"]),
    "23/2 is 23 to 23 by 2": ("0 23/2 * * *", ["06-01T23:00", "06-02T23:00"]),
    "50/5 is 50 to 59 by 5": ("50/5 4 * * *", ["06-01T04:50", "06-01T04:55", "06-02T04:50"]),
    "a step beyond the field leaves its first value": (
        "*/90 * * * *",
        ["06-01T00:00", "06-01T01:00"],
    ),
    "a range with a step starts at its begin": (
        "7-40/15 1 * * *",
        ["06-01T01:07", "06-01T01:22", "06-01T01:37"],
    ),
    "a list joins its entries": ("0 6,2-3 * * *", ["06-01T02:00", "06-01T03:00", "06-01T06:00"]),
    "day of week 0 is Sunday": ("0 0 * * 0", ["06-07T00:00", "06-14T00:00"]),
    "day of week 7 is Sunday": ("0 0 * * 7", ["06-07T00:00", "06-14T00:00"]),
    "5-7 is Friday to Sunday": ("0 0 * * 5-7", ["06-05T00:00", "06-06T00:00", "06-07T00:00"]),
    "1/2 ends at Saturday": (
        "0 0 * * 1/2",
        ["06-01T00:00", "06-03T00:00", "06-05T00:00", "06-08T00:00"],
    ),
    "names are read in any case": ("0 0 * jul-Aug mon,FRI", ["07-03T00:00", "07-06T00:00"]),
    "July alone ends with an L and is a month": ("0 0 1 JUL *", ["07-01T00:00"]),
    "both day fields set: either one": ("0 0 3 * 1", ["06-01T00:00", "06-03T00:00", "06-08T00:00"]),
    "*/2 in a day field restricts it": (
        "0 0 */2 * 1",
        ["06-01T00:00", "06-03T00:00", "06-05T00:00", "06-07T00:00", "06-08T00:00"],
    ),
    "1-31 restricts as well": ("0 0 1-31 * 1", ["06-01T00:00", "06-02T00:00"]),
    "*/1 sets nothing": ("0 0 */1 * 1", ["06-01T00:00", "06-08T00:00"]),
    "? sets nothing": ("0 0 ? * 1", ["06-01T00:00", "06-08T00:00"]),
    "a star in a list sets nothing": ("0 0 *,5 * 1", ["06-01T00:00", "06-08T00:00"]),
    "L is the last day of the month": ("0 0 L * *", ["06-30T00:00", "07-31T00:00", "08-31T00:00"]),
    "L joins a list": ("0 0 1,L * *", ["06-01T00:00", "06-30T00:00", "07-01T00:00"]),
    "5#2 is the second Friday": ("0 0 * * 5#2", ["06-12T00:00", "07-10T00:00"]),
    "FRI#2 is the same": ("0 0 * * FRI#2", ["06-12T00:00", "07-10T00:00"]),
    "7#1 is the first Sunday": ("0 0 * * 7#1", ["06-07T00:00", "07-05T00:00"]),
    "2#5 is there only in months with five Tuesdays": (
        "0 0 * * 2#5",
        ["06-30T00:00", "09-29T00:00"],
    ),
    "5L is the last Friday": ("0 0 * * 5L", ["06-26T00:00", "07-31T00:00"]),
    "friL is the same": ("0 0 * * friL", ["06-26T00:00", "07-31T00:00"]),
    "@hourly": ("@hourly", ["06-01T00:00", "06-01T01:00"]),
    "@daily": ("@daily", ["06-01T00:00", "06-02T00:00"]),
    "@midnight": ("@midnight", ["06-01T00:00", "06-02T00:00"]),
    "@weekly": ("@weekly", ["06-07T00:00", "06-14T00:00"]),
    "@monthly": ("@monthly", ["06-01T00:00", "07-01T00:00"]),
    "@yearly": ("@YEARLY", ["2027-01-01T00:00", "2028-01-01T00:00"]),
    "@annually": ("@annually", ["2027-01-01T00:00", "2028-01-01T00:00"]),
    "spaces, tabs and a last line break are spaces": (
        "  5\t4   * * *\n",
        ["06-01T04:05", "06-02T04:05"],
    ),
    "29 February waits for a leap year": ("0 0 29 2 *", ["2028-02-29T00:00", "2032-02-29T00:00"]),
}


@pytest.mark.parametrize(("text", "expected"), MEANS.values(), ids=MEANS)
def test_a_text_means(text, expected):
    assert next_times(text, len(expected)) == expected


AND_MEANS = {
    "Friday the thirteenth": ("0 0 13 * 5", ["11-13T00:00", "2027-08-13T00:00"]),
    "29 February on a Monday": ("0 0 29 2 1", ["2044-02-29T00:00", "2072-02-29T00:00"]),
    "last day of the month if a Sunday": ("0 0 L * 0", ["2027-01-31T00:00", "2027-02-28T00:00"]),
    "a star leaves the other field": ("0 0 * * 5", ["06-05T00:00", "06-12T00:00"]),
}


@pytest.mark.parametrize(("text", "expected"), AND_MEANS.values(), ids=AND_MEANS)
def test_with_day_match_and_a_text_means(text, expected):
    assert next_times(text, len(expected), day_match=DayMatch.AND) == expected


def test_a_29_february_that_skips_a_century_is_found():
    dues = cron_dues("0 0 29 2 *")
    assert shown([dues.next_after(instant("2096-03-01T00:00Z"))]) == ["2104-02-29T00:00Z"]


# --- what is refused --------------------------------------------------------------------------

REFUSED = {
    "nothing": ("", "five fields are expected"),
    "only spaces": ("   ", "five fields are expected"),
    "four fields": ("0 0 * *", "4 found"),
    "six fields": ("0 0 0 * * *", "seconds are not supported: use interval.every"),
    "seven fields": ("0 0 0 * * * 2026", "seconds and years are not supported"),
    "@every": ("@every 1h30m", "interval.every"),
    "an alias with more": ("@daily 5", "'@daily' stands alone: remove what follows it"),
    "@reboot": ("@reboot", "the aliases are @hourly"),
    "a zone in the text": ("CRON_TZ=Europe/Berlin 0 2 * * *", "use the field timeZone"),
    "R": ("R * * * *", "write H"),
    "R with a range": ("R(0-29) * * * *", "write H"),
    "W": ("0 0 15W * *", "day of week as 1-5"),
    "LW": ("0 0 LW * *", "day of week as 1-5"),
    "a reversed range of hours": ("0 22-2 * * *", "22-23,0-2"),
    "a reversed range of days": ("0 0 * * FRI-MON", "FRI-6,0-MON"),
    "a range that ends at Sunday as 0": ("0 0 * * 5-SUN", "write 5-7"),
    "a range that begins at Sunday as 7": ("0 0 * * 7-2", "write 0-2"),
    "Arabic digits": ("\u0665 * * * *", "plain ASCII"),
    "a full-width star": ("\uff0a * * * *", "plain ASCII"),
    "257 characters": ("0 0 * * " + "1" * 249, "at most 256"),
    "5,000 characters": ("1," * 2500, "at most 256"),
    "minute 60": ("60 * * * *", "minute '60' is out of range; 0 to 59"),
    "hour 24": ("0 24 * * *", "hour '24' is out of range; 0 to 23"),
    "day 0": ("0 0 0 * *", "day of month '0' is out of range; 1 to 31"),
    "month 13": ("0 0 1 13 *", "month '13' is out of range; 1 to 12"),
    "day of week 8": ("0 0 * * 8", "day of week '8' is out of range; 0 to 7"),
    "a number of 240 digits": (f"{'9' * 240} * * * *", "out of range"),
    "a negative number": ("-5 * * * *", "minute '-5' is not understood"),
    "a sign": ("+5 * * * *", "is not understood"),
    "a fraction": ("1.5 * * * *", "is not understood"),
    "step 0": ("*/0 * * * *", "whole number from 1"),
    "no step after the slash": ("*/ * * * *", "whole number from 1"),
    "two steps": ("*/2/3 * * * *", "whole number from 1"),
    "a range of three": ("1-5-9 * * * *", "is not understood"),
    "a star in a range": ("*-5 * * * *", "is not understood"),
    "an empty entry": ("1,,2 * * * *", "remove the comma"),
    "a month's name in the day of week": ("0 0 * * JAN", "names such as SUN"),
    "a long name": ("0 0 * * MONDAY", "names such as SUN"),
    "L for the minute": ("L * * * *", "L stands alone in the day of month"),
    "L alone in the day of week": ("0 0 * * L", "such as 5L"),
    "L-3": ("0 0 L-3 * *", "is not understood"),
    "5L with a step": ("0 0 * * 5L/2", "cannot have a step"),
    "#6": ("0 0 * * 5#6", "1 to 5 after the #"),
    "# without a number": ("0 0 * * 5#", "1 to 5 after the #"),
    "# in the day of month": ("0 0 5#2 * *", "belong to the day of week"),
    "H with half a bracket": ("H(0-29 * * * *", "write H, H/15"),
    "H with brackets in brackets": ("H((0-29)) * * * *", "write H, H/15"),
    "H with one number": ("H(5) * * * *", "is not understood"),
    "H with a reversed range": ("H(30-10) * * * *", "runs backwards"),
    "H beyond 28": ("0 0 H(1-31) * *", "H takes 1 to 28"),
    "HH": ("HH * * * *", "write H, H/15"),
    "a NUL byte": ("0\0 * * * *", "plain ASCII"),
}

NEVER = {
    "31 February": ("0 0 31 2 *", DayMatch.OR),
    "30 February": ("0 0 30 2 *", DayMatch.OR),
    "31st of the short months": ("0 0 31 4,6,9,11 *", DayMatch.OR),
    "the 1st as a second Monday": ("0 0 1 * 1#2", DayMatch.AND),
    "the 20th as a last Friday": ("0 0 20 * 5L", DayMatch.AND),
}


@pytest.mark.parametrize(("text", "remedy"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_text_is_refused_with_a_remedy(text, remedy):
    cron_dues("* * * * *")  # the zone is read once per process
    bad, calls = work_of(lambda: cron_dues(text))
    assert bad is not None
    assert bad.field == "schedule"
    assert remedy in bad.sentence
    assert len(bad.sentence) < 300
    assert calls < 500


@pytest.mark.parametrize(("text", "day_match"), NEVER.values(), ids=NEVER)
def test_a_text_that_never_fires_is_refused_without_a_search_of_the_future(text, day_match):
    cron_dues("* * * * *")  # the zone is read once per process
    bad, calls = work_of(lambda: cron_dues(text, day_match=day_match))
    assert bad is not None
    assert (bad.field, bad.reason) == ("schedule", "NeverFires")
    assert calls < 500


def test_a_rare_day_is_possible():
    assert cron_dues("0 0 29 2 1#5", day_match=DayMatch.AND).next_after(MONDAY) is not None


OTHER_REFUSALS = {
    "minute 60 of the hour": (Hourly(60), "hourly.minute"),
    "minute -1 of the hour": (Hourly(-1), "hourly.minute"),
    "interval 0": (Interval(0, 0), "interval.every"),
    "a negative interval": (Interval(-60, 0), "interval.every"),
    "an interval of 367 days": (Interval(367 * 86_400, 0), "interval.every"),
    "a huge interval": (Interval(10**30, 0), "interval.every"),
    "an offset as long as the interval": (Interval(60, 60), "interval.offset"),
    "a negative offset": (Interval(60, -1), "interval.offset"),
    "an anchor in the year 10000": (Interval(60, 0, 253_402_300_800), "interval.anchor"),
    "an anchor before 1970": (Interval(60, 0, -1), "interval.anchor"),
    "at in the year 10000": (At(253_402_300_800), "at"),
    "at before 1970": (At(-1), "at"),
}


@pytest.mark.parametrize(("rule", "field"), OTHER_REFUSALS.values(), ids=OTHER_REFUSALS)
def test_other_impossible_rules_name_their_field(rule, field):
    with pytest.raises(BadField) as raised:
        compile_timing(Timing(rule), seed="ns/name")
    assert raised.value.field == field


def test_an_end_before_the_start_names_the_end():
    timing = Timing(Cron("* * * * *"), start=MONDAY, end=MONDAY)
    with pytest.raises(BadField) as raised:
        compile_timing(timing, seed="ns/name")
    assert raised.value.field == "endTime"


def test_after_the_year_9999_nothing_is_due():
    dues = cron_dues("59 23 31 12 *")
    assert dues.next_after(YEAR_9999 - 1) == YEAR_9999
    assert dues.next_after(YEAR_9999) is None
    assert dues.next_after(10**18) is None
    assert dues.between(YEAR_9999, 10**18) == [YEAR_9999]
    assert dues.count(-(10**18), 10**18) == 8030


@pytest.mark.parametrize("zone", ["America/New_York", "Pacific/Auckland", "Pacific/Pago_Pago"])
def test_the_first_and_last_years_raise_nothing_in_any_zone(zone):
    dues = compile_timing(Timing(Cron("0 * * * *"), zone=zone), seed="")
    assert dues.next_after(-(10**18)) == 0
    assert dues.newest(0, 10**18, limit=1) == [YEAR_9999 - 59 * 60]


# --- H ----------------------------------------------------------------------------------------


def bits(mask: int) -> list[int]:
    return [n for n in range(mask.bit_length()) if mask >> n & 1]


def hashed(text: str, name: str = "ns/name"):
    return parse_cron(text, day_match=DayMatch.OR, seed=name)


def test_h_never_changes_for_a_name():
    """Pinned: another hash would move every H schedule of every user on an upgrade."""
    fields = hashed("H H H H H", "default/backup")
    masks = (fields.minute, fields.hour, fields.dom, fields.month, fields.dow)
    assert [bits(mask) for mask in masks] == [[49], [5], [1], [3], [1]]


def test_h_with_a_step_begins_below_the_step():
    minutes = bits(hashed("H/15 * * * *").minute)
    assert minutes == list(range(minutes[0], 60, 15))
    assert minutes[0] < 15


def test_h_with_a_range_stays_inside_it():
    for n in range(200):
        (minute,) = bits(hashed("H(10-19) * * * *", f"ns/{n}").minute)
        assert 10 <= minute <= 19
        minutes = bits(hashed("H(10-40)/7 * * * *", f"ns/{n}").minute)
        assert minutes == list(range(minutes[0], 41, 7))
        assert 10 <= minutes[0] < 17


def test_h_with_a_step_wider_than_its_range_is_one_value_of_the_range():
    for n in range(200):
        (minute,) = bits(hashed("H(10-19)/30 * * * *", f"ns/{n}").minute)
        assert 10 <= minute <= 19


def test_h_in_the_day_of_month_is_a_day_that_every_month_has():
    found = {bits(hashed("0 0 H * *", f"ns/{n}").dom)[0] for n in range(2000)}
    assert found == set(range(1, 29))


def test_h_is_spread_evenly():
    counts = dict.fromkeys(range(60), 0)
    for n in range(6000):
        counts[bits(hashed("H * * * *", f"team-{n % 7}/job-{n}").minute)[0]] += 1
    assert min(counts.values()) > 65
    assert max(counts.values()) < 140


def test_h_of_one_field_does_not_depend_on_another_field():
    """croniter shifts one hash for all fields, so its minutes and hours go together."""
    pairs = set()
    for n in range(6000):
        fields = hashed("H(0-23) H * * *", f"ns/job-{n}")
        pairs.add((fields.minute, fields.hour))
    assert len(pairs) == 24 * 24


def test_only_h_depends_on_the_name():
    assert hashed("*/5 2 * * THU", "a/a") == hashed("*/5 2 * * THU", "b/b")


def test_h_is_a_fixed_time_at_clock_changes():
    assert not hashed("H H * * *").by_real_minutes
    assert hashed("H * * * *").by_real_minutes
    assert hashed("? 2 * * *").by_real_minutes
    assert hashed("*/5 2 * * *").by_real_minutes
    assert not hashed("0-59 0-23 * * *").by_real_minutes
