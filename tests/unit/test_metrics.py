"""What /metrics shows before anything has happened, and what it shows of what was counted."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from evenkeel.balance import LoadMap, Member
from evenkeel.ledger.trouble import ErrorKind
from evenkeel.model import (
    ENDED,
    Cron,
    RunState,
    ScheduleState,
    Timing,
    Verdict,
    WatchRestart,
    WriteOutcome,
)
from evenkeel.reasons import HOW_REQUESTS_END, WHY_MISSED, WHY_SKIPPED, DelayCause, Reason
from evenkeel.web.metrics import PLACEMENTS, Metrics

DOCS = Path(__file__).parents[2] / "docs"

LABELS: dict[str, tuple[str, Iterable[str]]] = {
    "evenkeel_runs": ("state", ENDED),
    "evenkeel_runs_skipped": ("reason", WHY_SKIPPED),
    "evenkeel_runs_missed": ("reason", WHY_MISSED),
    "evenkeel_run_delay_seconds": ("cause", DelayCause),
    "evenkeel_requests_ended": ("reason", HOW_REQUESTS_END),
    "evenkeel_requested_runs": ("state", ENDED),
    "evenkeel_creates": ("verdict", Verdict),
    "evenkeel_status_writes": ("outcome", WriteOutcome),
    "evenkeel_watch_restarts": ("reason", WatchRestart),
    "scheduler_placements": ("type", PLACEMENTS),
    "evenkeel_ledger_errors": ("kind", ErrorKind),
    "evenkeel_ledger_refused_rows": ("reason", ("illegal", "bad")),
}
"""Every family that has a label, and all values that the label can have."""


class Time:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.at = 1_000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(monotonic=Time())


def test_every_value_of_every_label_is_there_from_the_start(metrics: Metrics) -> None:
    """`increase` sees no first miss in a series that begins at 1."""
    found: dict[str, tuple[str, set[str]]] = {}
    for family in metrics.registry.collect():
        for sample in family.samples:
            labels = {name: value for name, value in sample.labels.items() if name != "le"}
            for name, value in labels.items():
                found.setdefault(family.name, (name, set()))[1].add(value)
            assert sample.value == 0
    assert found == {
        name: (label, set(map(str, values))) for name, (label, values) in LABELS.items()
    }


@pytest.mark.parametrize(
    ("state", "reasons"), [(RunState.SKIPPED, WHY_SKIPPED), (RunState.MISSED, WHY_MISSED)]
)
def test_every_reason_that_the_documentation_gives_for_an_end_is_counted(
    state: RunState, reasons: frozenset[Reason]
) -> None:
    text = (DOCS / "runs.md").read_text(encoding="utf-8")
    told = re.findall(rf"^\| `(\w+)` \| {state.value.capitalize()}:", text, re.MULTILINE)
    assert sorted(told) == sorted(reasons)


def test_no_series_tells_when_a_counter_began(metrics: Metrics) -> None:
    """Beside `evenkeel_runs_total` a series `evenkeel_runs_created` reads like a number of runs."""
    metrics.watch_restarts.labels("gone").inc()
    names = {line.split("{")[0].split()[0] for line in _samples(metrics)}
    assert "evenkeel_watch_restarts_total" in names
    assert not [name for name in names if name.endswith("_created")]


def test_ends_are_counted_by_state_and_reason_once_the_counters_were_seen() -> None:
    time = Time()
    metrics = Metrics(monotonic=time)
    metrics.ended("shop", RunState.MISSED, Reason.SUPERSEDED, 29)
    metrics.ended("shop", RunState.SKIPPED, Reason.OVERLAP, 2)
    metrics.ended("shop", RunState.SUCCEEDED, None, 1)

    assert "evenkeel_runs_missed_not_yet_counted 29.0" in _samples(metrics)
    assert 'evenkeel_runs_missed_total{reason="superseded"} 0.0' in _samples(metrics)

    metrics.counts.was_scraped()
    time.at += 6
    lines = _samples(metrics)
    assert "evenkeel_runs_missed_not_yet_counted 0.0" in lines
    assert 'evenkeel_runs_missed_total{reason="superseded"} 29.0' in lines
    assert 'evenkeel_runs_skipped_total{reason="overlap"} 2.0' in lines
    assert 'evenkeel_runs_total{state="missed"} 29.0' in lines
    assert 'evenkeel_runs_total{state="succeeded"} 1.0' in lines


@pytest.mark.parametrize(
    ("delay_s", "first", "below"),
    [(0.0, "0.1", ""), (0.1, "0.1", ""), (75.0, "300.0", "60.0"), (90_000.0, "+Inf", "86400.0")],
)
def test_a_delay_is_in_every_bucket_from_its_own_on(delay_s: float, first: str, below: str) -> None:
    time = Time()
    metrics = Metrics(monotonic=time)
    metrics.counts.was_scraped()
    time.at += 6
    metrics.delayed(delay_s, DelayCause.RESTART)

    def read(sample: str, **labels: str) -> float | None:
        name = f"evenkeel_run_delay_seconds_{sample}"
        return metrics.registry.get_sample_value(name, {"cause": "restart", **labels})

    assert read("bucket", le=first) == 1
    assert read("bucket", le="+Inf") == 1
    assert not below or read("bucket", le=below) == 0
    assert (read("count"), read("sum")) == (1, delay_s)


def test_a_namespace_without_a_schedule_is_forgotten(metrics: Metrics) -> None:
    for ns in ("shop", "bank"):
        metrics.ended(ns, RunState.FAILED, None, 1)
    metrics.forget_namespaces({"shop"})
    assert {key[1] for key in metrics.counts.keys("namespace")} == {"shop"}


def test_the_text_is_what_a_parser_takes(metrics: Metrics) -> None:
    metrics.delayed(3, DelayCause.HELD)
    families = list(text_string_to_metric_families(generate_latest(metrics.registry).decode()))
    assert {family.type for family in families} == {"counter", "gauge", "histogram"}
    assert all(family.documentation for family in families)


def test_the_documentation_lists_the_states_of_schedules_in_their_order() -> None:
    text = (DOCS / "metrics.md").read_text(encoding="utf-8")
    assert ", ".join(ScheduleState) in " ".join(text.split())


@pytest.mark.parametrize(
    ("lasts_s", "peak"),
    [
        pytest.param(90, ["evenkeel_expected_concurrency_peak 4.0"], id="known"),
        pytest.param(0, [], id="unknown"),
    ],
)
def test_the_busiest_moments_of_the_day_are_shown(
    metrics: Metrics, lasts_s: int, peak: list[str]
) -> None:
    """Two runs every minute. No peak is shown where nobody knows how long a run lasts."""
    load = LoadMap(0)
    for name in ("a", "b"):
        load.put(Member(key=f"ns/{name}", timing=Timing(Cron("* * * * *")), lasts_s=lasts_s))
    metrics.distribution(lambda: load.distribution(0))
    lines = _samples(metrics)
    assert "evenkeel_busiest_minute_starts 2.0" in lines
    assert "evenkeel_busiest_second_starts 2.0" in lines
    assert [line for line in lines if line.startswith("evenkeel_expected_concurrency")] == peak


def _samples(metrics: Metrics) -> list[str]:
    shown = generate_latest(metrics.registry).decode().splitlines()
    return [line for line in shown if line and not line.startswith("#")]
