"""What /metrics says is what happened."""

from __future__ import annotations

from tests.sim.controllers import Fate
from tests.sim.network import Rule, Scripted, Weather
from tests.sim.outcome import Outcome
from tests.sim.play import play
from tests.sim.scenario import JOBS, TWENTY, right, world
from tests.sim.world import Deed, create, every

SCRAPE = Deed(10, "scrape")
"""The counters grow only once somebody has seen them at 0."""


def test_missed_runs_are_counted_by_reason() -> None:
    """A machine stood still from 45 to 645: 60 to 620 are missed, 640 runs."""
    story = world(create(1, "a", TWENTY), SCRAPE, Deed(45, "block", value=600), lasts_s=735)

    outcome = right(play(story))

    assert sample(outcome, "runs_missed_total", reason="superseded") == 29
    assert sample(outcome, "runs_total", state="missed") == 29
    assert sample(outcome, "runs_total", state="succeeded") == 7  # 20, 40, 640 to 720


def test_skipped_runs_are_counted_by_reason() -> None:
    story = world(
        create(1, "a", every(20, concurrencyPolicy="Forbid")),
        create(1, "b", every(20, concurrencyPolicy="Queue", maxQueued=1)),
        SCRAPE,
        fate=lambda job: Fate(1, 1_000),
    )

    outcome = right(play(story))

    assert sample(outcome, "runs_skipped_total", reason="overlap") == 3
    assert sample(outcome, "runs_skipped_total", reason="queue_full") == 2
    assert sample(outcome, "runs_total", state="skipped") == 5
    assert sample(outcome, "runs_running") == 2
    assert sample(outcome, "runs_waiting") == 1


def test_statuses_that_cannot_be_written_are_shown_until_they_can() -> None:
    story = world(create(1, "a", TWENTY), create(1, "b", every(1000)))

    def failing(*, until_s: float) -> float | None:
        away = Scripted(Rule("PATCH", "a/status", "500", from_s=15, until_s=until_s))
        return sample(play(story, weather=lambda number: away), "status_failing")

    assert failing(until_s=1_000) == 1
    assert failing(until_s=50) == 0


def test_a_silent_watch_is_shown_by_its_age() -> None:
    story = world(create(1, "a", TWENTY), lasts_s=85)

    def silence_s(weather: Weather) -> float:
        outcome = play(story, weather=lambda number: weather)
        return sample(outcome, "watch_silence_seconds") or 0.0

    assert 80 < silence_s(Scripted(Rule("WATCH", JOBS, "hang"))) <= 85
    assert silence_s(Weather()) < 20


def sample(outcome: Outcome, name: str, **labels: str) -> float | None:
    """Of the last process, at the end."""
    registry = outcome.processes[-1].operator.metrics.registry
    return registry.get_sample_value(f"evenkeel_{name}", labels)
