"""No alert of docs/alerts.yaml fires in a quiet hour, judged by Prometheus' own promtool."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.promtool import STEP_S, Story
from tests.sim.controllers import Fate
from tests.sim.oracles import violations
from tests.sim.outcome import Outcome
from tests.sim.play import CALM, Trouble, play
from tests.sim.world import Deed, Json, World, create, every, template

LASTS_S = 4_200
"""An hour, and ten minutes more: the alert that waits for an hour has the time to fire."""

RESTART = Trouble(stops=((1_800.0, 10.0),))


@pytest.mark.parametrize(
    ("trouble", "states"),
    [
        pytest.param(CALM, "firing|pending", id="alone"),
        # A scrape or two find nobody, and the operator is not missed for so short a time.
        pytest.param(RESTART, "firing", id="with a planned restart"),
    ],
)
def test_none_fires_in_a_quiet_hour(tmp_path: Path, trouble: Trouble, states: str) -> None:
    """Scraped every 15 seconds of the simulator's time, by one Prometheus."""
    outcome = play(quiet(), trouble)
    assert violations(outcome) == []
    story = told_by(outcome)
    story.expect_silence(states)
    story.judge(tmp_path)


def test_they_would_fire_in_that_hour(tmp_path: Path) -> None:
    """The same hour with a schedule whose Jobs fail: a story in which nothing can fire proves
    nothing."""
    outcome = play(quiet(create(2, "fails", every(60))))
    story = told_by(outcome)
    told = {"namespace": "default", "schedule": "fails"}
    story.expect(600, {"alertname": "EvenkeelScheduleFailing", **told})
    story.expect(
        LASTS_S,
        {"alertname": "EvenkeelScheduleFailing", **told},
        {"alertname": "EvenkeelScheduleSilent", **told},
    )
    story.judge(tmp_path)


def quiet(*more: Deed) -> World:
    """Schedules of all kinds, whose Jobs take seconds or minutes."""
    deeds = [
        create(1, "often", every(20)),
        create(1, "forbids", every(60, concurrencyPolicy="Forbid")),
        create(1, "queues", every(30, concurrencyPolicy="Queue")),
        create(1, "cron", due(schedule="*/5 * * * *")),
        create(1, "zone", due(schedule="*/10 * * * *", timeZone="Europe/Berlin")),
        create(1, "hourly", due(hourly={"minute": 17})),
        create(1, "placed", due(interval={"every": "25m"})),
        create(1, "ttl", every(300, jobTemplate=template(ttlSecondsAfterFinished=60))),
        create(1, "suspended", every(60, suspend=True)),
        *more,
    ]
    scrapes = [Deed(float(at), "scrape") for at in range(3, LASTS_S, STEP_S)]
    return World(
        "quiet",
        (*deeds, *scrapes),
        LASTS_S + 5,
        fate=lambda job: Fate(1, 5, succeeds=not job["metadata"]["name"].startswith("fails")),
    )


def told_by(outcome: Outcome) -> Story:
    assert len(outcome.scrapes) >= LASTS_S / STEP_S - 3
    story = Story(LASTS_S)
    for scrape in outcome.scrapes:
        at_s = scrape.at - outcome.scrapes[0].at
        for earlier in range(scrape.number):
            story.gone(at_s, instance=f"operator-{earlier}")
        story.add(at_s, scrape.metrics, scrape.by_schedule, instance=f"operator-{scrape.number}")
    return story


def due(**rule: object) -> Json:
    return {"jobTemplate": template(), **rule}
