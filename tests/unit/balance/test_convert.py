"""Which fixed times could become an interval, and why the others are left alone."""

import pytest
from tests.unit.balance.members import A_MORNING_IN_MARCH, HOUR_S

from evenkeel.balance.convert import Conversion, Reason, convert
from evenkeel.model import DAY_S, At, Cron, DayMatch, Hourly, Interval, Rule, Timing, Window
from evenkeel.when import compile_timing

MINUTE_S = 60


def found(
    rule: Rule | str, *, zone: str = "UTC", daily: bool = False, end: int | None = None
) -> Conversion | Reason:
    rule = Cron(rule) if isinstance(rule, str) else rule
    dues = compile_timing(Timing(rule, zone=zone, end=end), seed="ns/name")
    return convert(dues, seed="ns/name", now=A_MORNING_IN_MARCH, daily=daily)


@pytest.mark.parametrize(
    ("rule", "every"),
    [
        ("* * * * *", "1m"),
        ("*/1 * ? * *", "1m"),
        ("*/5 * * * *", "5m"),
        ("*/15 * * * *", "15m"),
        ("7-59/15 * * * *", "15m"),
        ("0,30 * * * *", "30m"),
        ("H/20 * * * *", "20m"),
        ("0 * * * *", "1h"),
        ("H * * * *", "1h"),
        ("@hourly", "1h"),
        ("45 */2 * * *", "2h"),
        ("0 1-23/2 * * *", "2h"),
        ("0 */6 * * *", "6h"),
        ("0 3,9,15,21 * * *", "6h"),
        ("0 0,12 * * *", "12h"),
        ("0 */8 1-31 1-12 0-6", "8h"),
        (Hourly(17), "1h"),
        (Interval(7 * MINUTE_S, 0), "7m"),
        (Interval(90 * MINUTE_S, 300), "90m"),
        (Interval(45, 3), "45s"),
        (Interval(18 * HOUR_S, 0), "18h"),
    ],
)
def test_what_runs_at_equal_distances_all_day_becomes_an_interval(
    rule: Rule | str, every: str
) -> None:
    conversion = found(rule)
    assert isinstance(conversion, Conversion)
    assert (conversion.every, conversion.window) == (every, None)


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("0 0 * * *", Reason.DAILY),
        ("@daily", Reason.DAILY),
        (Interval(DAY_S, 0), Reason.DAILY),
        ("0 * 1 * *", Reason.DAYS),
        ("0 * L * *", Reason.DAYS),
        ("0 * * 1 *", Reason.DAYS),
        ("0 */6 * * 1-5", Reason.DAYS),
        ("0 */6 * * 5#2", Reason.DAYS),
        ("@weekly", Reason.DAYS),
        ("0 9-17 * * *", Reason.PART_OF_DAY),
        ("0 8-20/2 * * *", Reason.PART_OF_DAY),
        ("*/10 9-17 * * *", Reason.PART_OF_DAY),
        ("0 22,23,0,1 * * *", Reason.PART_OF_DAY),
        ("*/5 3 * * *", Reason.PART_OF_DAY),
        ("*/7 * * * *", Reason.UNEQUAL),
        ("0,10 * * * *", Reason.UNEQUAL),
        ("0 */5 * * *", Reason.UNEQUAL),
        ("0 3,15,18 * * *", Reason.UNEQUAL),
        ("0 9,17 * * *", Reason.UNEQUAL),
        (Interval(3 * DAY_S, 0), Reason.LONG),
        (Interval(36 * HOUR_S, 0), Reason.LONG),
        (At(A_MORNING_IN_MARCH + 60), Reason.ONCE),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_what_has_a_reason_for_its_times_is_left_alone(
    rule: Rule | str, reason: Reason, zone: str
) -> None:
    assert found(rule, zone="UTC" if isinstance(rule, At) else zone) is reason
    if reason is not Reason.DAILY:
        assert found(rule, daily=True) is reason


def test_two_day_fields_that_must_both_match_are_days() -> None:
    assert found(Cron("0 * 1 * 1", DayMatch.AND)) is Reason.DAYS


@pytest.mark.parametrize(
    ("rule", "zone", "expected"),
    [
        pytest.param("0 */6 * * *", "Europe/Berlin", Reason.LOCAL_HOURS, id="hours of a clock"),
        pytest.param("0 */2 * * *", "America/New_York", Reason.LOCAL_HOURS, id="two hours"),
        pytest.param("0 * * * *", "Europe/Berlin", Conversion(HOUR_S), id="every real hour"),
        pytest.param("*/20 * * * *", "Australia/Lord_Howe", Conversion(1200), id="minutes"),
        pytest.param(
            "0 */6 * * *", "Asia/Tokyo", Conversion(6 * HOUR_S), id="no change since 1951"
        ),
        pytest.param("0 */6 * * *", "Etc/GMT+5", Conversion(6 * HOUR_S), id="never a change"),
        pytest.param(
            Interval(6 * HOUR_S, 0), "Europe/Berlin", Conversion(6 * HOUR_S), id="elapsed"
        ),
    ],
)
def test_hours_of_a_clock_that_changes_are_left_alone(
    rule: Rule | str, zone: str, expected: Conversion | Reason
) -> None:
    assert found(rule, zone=zone) == expected


@pytest.mark.parametrize(
    ("rule", "zone", "start", "end"),
    [
        pytest.param("30 2 * * *", "UTC", "00:30", "04:30", id="at night"),
        pytest.param("0 0 * * *", "UTC", "22:00", "02:00", id="around midnight"),
        pytest.param("15 23 * * *", "Europe/Berlin", "21:15", "01:15", id="by the zone's clock"),
        pytest.param("@daily", "Europe/Berlin", "22:00", "02:00", id="an alias"),
        pytest.param(Interval(DAY_S, 5 * HOUR_S), "UTC", "03:00", "07:00", id="an offset"),
        pytest.param(
            Interval(DAY_S, 0, 1_798_797_600),
            "Europe/Berlin",
            "09:00",
            "13:00",
            id="a local anchor",
        ),
    ],
)
def test_daily_gives_a_window_of_two_hours_either_side(
    rule: Rule | str, zone: str, start: str, end: str
) -> None:
    conversion = found(rule, zone=zone, daily=True)
    assert isinstance(conversion, Conversion)
    assert conversion.every == "24h"
    assert conversion.window == Window(seconds(start), seconds(end))


def seconds(clock: str) -> int:
    hours, minutes = clock.split(":")
    return int(hours) * HOUR_S + int(minutes) * MINUTE_S


@pytest.mark.parametrize("text", ["0 3 * * *", "0 * * * *", "0 9-17 * * *"])
def test_a_schedule_without_a_run_left_is_left_alone(text: str) -> None:
    assert found(text, daily=True, end=A_MORNING_IN_MARCH) is Reason.ENDED
