"""The lines of /metrics/schedules: what they say, and that Prometheus takes them."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.builders import instant

from evenkeel.core.schedule.figures import Figures
from evenkeel.model import At, Cron, Instant, Interval, Rule, ScheduleState, Timing
from evenkeel.web.schedule_text import FAMILIES, ScheduleText, join, labels, namespaces
from evenkeel.when import DueTimes, compile_timing

NOW = instant("10:00")


def dues(rule: Rule) -> DueTimes:
    return compile_timing(Timing(rule), seed="shop/report")


HOURLY = dues(Cron("17 * * * *"))


def seen(**changes: Any) -> Figures:
    given = {"dues": HOURLY, "since": NOW - 60, **changes}
    return Figures("u1", "shop", "report", ScheduleState.SCHEDULED, **given)


class Scraped:
    """A text that is rendered again and again, and read as Prometheus reads it."""

    def __init__(self) -> None:
        self._text = ScheduleText()

    def at(self, now: Instant, *figures: Figures) -> dict[str, float]:
        """By the name of each sample, without what all of them begin with."""
        text = join([self._text.page(figures, now)]).decode()
        return {
            sample.name.removeprefix("evenkeel_schedule_"): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }


def test_a_schedule_says_when_it_is_due_and_how_it_stands() -> None:
    found = Scraped().at(NOW, seen(last_success=NOW - 60, last_result="succeeded", active=2))
    assert found == {
        "state": 1,
        "next_run_timestamp_seconds": instant("10:17"),
        "last_success_timestamp_seconds": NOW - 60,
        "last_result": 1,
        "consecutive_failures": 0,
        "due_times_without_success": 0,
        "active": 2,
        "paused": 0,
        "stalled": 0,
        "expected_period_seconds": 3600,
    }


def test_a_schedule_that_may_not_start_says_so_and_nothing_of_the_next_run() -> None:
    found = Scraped().at(NOW, seen(dues=None, paused=True, stalled=True, failures=3))
    assert (found["paused"], found["stalled"], found["consecutive_failures"]) == (1, 1, 3)
    assert not {"next_run_timestamp_seconds", "expected_period_seconds"} & found.keys()
    assert found["due_times_without_success"] == 0


def test_due_times_without_success_are_counted_until_a_success() -> None:
    scraped = Scraped()
    assert scraped.at(NOW, seen())["due_times_without_success"] == 0
    assert scraped.at(instant("10:16"), seen())["due_times_without_success"] == 0
    assert scraped.at(instant("10:17"), seen())["due_times_without_success"] == 1
    assert scraped.at(instant("10:18"), seen())["due_times_without_success"] == 1
    assert scraped.at(instant("14:30"), seen())["due_times_without_success"] == 5
    succeeded = seen(since=instant("14:31"))
    assert scraped.at(instant("14:32"), succeeded)["due_times_without_success"] == 0
    assert scraped.at(instant("15:20"), succeeded)["due_times_without_success"] == 1


def test_a_new_process_counts_the_due_times_that_passed_before_it_began() -> None:
    assert Scraped().at(instant("14:30"), seen())["due_times_without_success"] == 5


def test_due_times_of_a_pause_do_not_count_when_it_is_over() -> None:
    scraped = Scraped()
    scraped.at(NOW, seen())
    scraped.at(instant("15:30"), seen(dues=None, paused=True))
    assert scraped.at(instant("15:31"), seen())["due_times_without_success"] == 0
    assert scraped.at(instant("16:17"), seen())["due_times_without_success"] == 1


def test_another_timing_is_looked_at_anew() -> None:
    scraped = Scraped()
    scraped.at(NOW, seen())
    found = scraped.at(NOW, seen(dues=dues(Cron("*/5 * * * *"))))
    assert found["next_run_timestamp_seconds"] == instant("10:05")
    assert found["expected_period_seconds"] == 300


def test_a_clock_that_was_set_back_is_followed() -> None:
    scraped = Scraped()
    scraped.at(instant("14:30"), seen())
    found = scraped.at(NOW, seen())
    assert found["next_run_timestamp_seconds"] == instant("10:17")
    assert found["due_times_without_success"] == 0


@pytest.mark.parametrize(
    ("rule", "now", "period_s"),
    [
        pytest.param(Interval(1500, 0), "10:00", 1500, id="interval"),
        pytest.param(Cron("*/5 9-17 * * *"), "10:00", 300, id="in working hours"),
        pytest.param(Cron("*/5 9-17 * * *"), "18:30", 54_300, id="after them"),
        pytest.param(Cron("0 9 * * 1-5"), "10:00", 3 * 86_400, id="working days"),
        pytest.param(At(instant("11:00")), "10:00", None, id="one due time"),
        pytest.param(At(instant("09:00")), "10:00", None, id="a due time that has passed"),
    ],
)
def test_the_expected_period_is_the_longest_of_those_ahead(
    rule: Rule, now: str, period_s: int | None
) -> None:
    found = Scraped().at(instant(now), seen(dues=dues(rule)))
    assert found.get("expected_period_seconds") == period_s


def test_what_is_remembered_is_the_same_as_what_is_looked_up() -> None:
    """Scraped for a day, each schedule says what a process says that has just begun."""
    rules = [Cron("*/7 9-11 * * *"), Interval(5400, 60), Cron("0 12 * * *"), At(instant("20:00"))]
    kept = Scraped()
    for rule in rules:
        figures = seen(dues=dues(rule))
        for now in range(NOW, NOW + 86_400, 240):
            assert kept.at(now, figures) == Scraped().at(now, figures)


# --- the text -------------------------------------------------------------------------------------


def test_samples_of_a_family_stand_together_over_all_pages() -> None:
    """Or Prometheus refuses the text, or takes the last of them."""
    text = ScheduleText()
    others = seen(last_result="failed")._replace(uid="u2", name="other")
    body = join([text.page([seen()], NOW), text.page([others], NOW), namespaces({}, ["shop"])])
    names = [line.split("{")[0] for line in body.decode().splitlines() if line[0] != "#"]
    first = sorted(set(names), key=names.index)
    assert names == [name for name in first for _ in range(names.count(name))]
    assert [f"# TYPE {name} {kind}" in body.decode() for name, (kind, _) in FAMILIES.items()]


def test_every_state_of_a_namespace_is_there() -> None:
    (text,) = namespaces({("shop", "failed"): 2}, ["bank", "shop"]).values()
    lines = text.decode().splitlines()
    assert len(lines) == 12
    assert 'evenkeel_namespace_runs_total{namespace="shop",state="failed"} 2' in lines
    assert 'evenkeel_namespace_runs_total{namespace="bank",state="failed"} 0' in lines


def test_a_label_that_nobody_may_write_is_escaped_all_the_same() -> None:
    assert labels(schedule='a"b\\c\nd') == 'schedule="a\\"b\\\\c\\nd"'
    text = "x{" + labels(schedule='a"b\\c\nd') + "} 1\n"
    (family,) = text_string_to_metric_families(text)
    assert family.samples[0].labels == {"schedule": 'a"b\\c\nd'}


def test_what_is_gone_is_forgotten() -> None:
    text = ScheduleText()
    text.page([seen(), seen()._replace(uid="u2")], NOW)
    text.forget({"u2"})
    assert set(text._known) == {"u2"}
