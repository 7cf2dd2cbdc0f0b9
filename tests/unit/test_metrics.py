"""What /metrics shows before anything has happened."""

import pytest
from prometheus_client import generate_latest

from evenkeel.balance import LoadMap, Member
from evenkeel.model import Cron, Timing
from evenkeel.web.metrics import Metrics


def test_every_final_state_and_verdict_is_there_from_the_start() -> None:
    shown = generate_latest(Metrics().registry).decode()
    for state in ("succeeded", "failed", "skipped", "missed", "cancelled", "lost"):
        assert f'evenkeel_runs_total{{state="{state}"}} 0.0' in shown
    for verdict in ("created", "adopted", "taken", "refused", "held", "unknown"):
        assert f'evenkeel_creates_total{{verdict="{verdict}"}} 0.0' in shown


def test_no_series_tells_when_a_counter_began() -> None:
    """Beside `evenkeel_runs_total` a series `evenkeel_runs_created` reads like a number of runs."""
    metrics = Metrics()
    metrics.watch_restarts.labels("gone").inc()
    names = {line.split("{")[0].split()[0] for line in _samples(metrics)}
    assert "evenkeel_watch_restarts_total" in names
    assert not [name for name in names if name.endswith("_created")]


@pytest.mark.parametrize(
    ("lasts_s", "peak"),
    [
        pytest.param(90, ["evenkeel_expected_concurrency_peak 4.0"], id="known"),
        pytest.param(0, [], id="unknown"),
    ],
)
def test_the_busiest_moments_of_the_day_are_shown(lasts_s: int, peak: list[str]) -> None:
    """Two runs every minute. No peak is shown where nobody knows how long a run lasts."""
    metrics, load = Metrics(), LoadMap(0)
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
