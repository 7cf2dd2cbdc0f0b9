"""Processes that are two at once, restarted, stopped in a herd, or away for long."""

from __future__ import annotations

import pytest
from tests.sim.controllers import Fate
from tests.sim.network import Rule, Scripted, Weather
from tests.sim.outcome import Outcome
from tests.sim.play import Trouble, play
from tests.sim.reading import since_of, timing_of
from tests.sim.scenario import DAY_S, JOBS, TWENTY, counts, dues, right, world
from tests.sim.server import Json
from tests.sim.world import NEW_YEAR, create, every, patch, template

from evenkeel import rfc3339

# --- 11, 12: two at once --------------------------------------------------------------------------


def test_11_a_process_that_was_paused_between_decision_and_create_makes_no_second_job() -> None:
    """The old one's create is sent half a minute late; by then the new one has made the Job."""
    story = world(create(1, "a", TWENTY))
    paused = Scripted(Rule("POST", JOBS, "slow:32", times=1, from_s=19.5))

    outcome = right(
        play(story, Trouble(twins=True), weather=lambda n: paused if n == 0 else Weather())
    )

    assert dues(outcome) == [20, 40, 60, 80]
    assert {job.who for job in outcome.jobs.values() if job.due == NEW_YEAR + 20} == {
        "operator 100"
    }


def test_12_two_processes_without_a_lease_make_one_job_for_each_run() -> None:
    story = world(*(create(1, f"s{number}", every(20)) for number in range(6)))

    outcome = right(play(story, Trouble(twins=True)))

    assert all(dues(outcome, f"s{number}") == [20, 40, 60, 80] for number in range(6))


# --- restarts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_s", [59.99, 60.0, 60.002, 60.005, 60.01])
def test_a_restart_exactly_at_a_due_second_neither_loses_nor_doubles(at_s: float) -> None:
    outcome = right(play(world(create(1, "a", every(60))), Trouble(kills=((at_s, 0.5),))))

    assert dues(outcome) == [60]


def test_an_interval_keeps_its_phase_through_any_number_of_restarts() -> None:
    """anchor + k * every, never "now + interval"."""
    kills = tuple((at + 0.5, 1.0) for at in range(5, 290, 11))

    outcome = right(play(world(create(1, "a", every(25)), lasts_s=295), Trouble(kills=kills)))

    assert dues(outcome) == list(range(25, 295, 25))


def test_a_placed_interval_keeps_its_phase_through_any_number_of_restarts() -> None:
    """Chosen once, and from then on read from the status."""
    placed = {"interval": {"every": "25s"}, "jobTemplate": template()}
    kills = tuple((at + 0.5, 1.0) for at in range(5, 290, 11))

    outcome = right(play(world(create(1, "a", placed), lasts_s=295), Trouble(kills=kills)))

    first, *_ = dues(outcome)
    assert 1 < first <= 1 + 25 + 10  # the first is no sooner than a run is prepared
    assert dues(outcome) == list(range(first, 295, 25))
    phases = {status["placement"]["anchor"] for _, status in statuses(outcome)[1:]}
    assert len(phases) == 1


@pytest.mark.parametrize("killed_s", [99.5, 130, 159.99, 160.005, 162])
def test_a_suspended_interval_resumes_by_its_phase_and_what_was_learned_of_it(
    killed_s: float,
) -> None:
    placed = {"interval": {"every": "20s"}, "jobTemplate": template()}
    deeds = (create(1, "a", placed), patch(100, "a", suspend=True), patch(160, "a", suspend=False))
    story = world(*deeds, lasts_s=295, fate=lambda job: Fate(1, 6))

    outcome = right(play(story, Trouble(kills=((killed_s, 0.4), (200, 0.4)))))

    first, *_ = dues(outcome)
    by_its_phase = range(first, 295, 20)
    assert dues(outcome) == [due for due in by_its_phase if not 100 < due <= 160]
    told = [status for _, status in statuses(outcome)[1:]]
    learned = [status["placement"].get("expectedSeconds", 0) for status in told]
    assert (learned[0], set(learned[1:]) - {0}, learned[-1]) == (0, {7}, 7)  # of the whole Job


def statuses(outcome: Outcome) -> list[tuple[float, Json]]:
    (stored,) = outcome.statuses.values()
    return stored


def test_an_edited_timing_is_what_the_next_process_finds_in_the_status() -> None:
    """A merge patch keeps what it does not name: the old kind of timing must be taken away."""
    interval = {"every": "20s", "offset": "0s"}
    story = world(
        create(1, "a", {"hourly": {"minute": 30}, "jobTemplate": template()}),
        patch(10, "a", hourly=None, interval=interval),
    )

    outcome = right(play(story, Trouble(kills=((45, 50 - 45 + 12),))))

    assert dues(outcome) == [20, 40, 60, 80]
    assert timing_of(outcome.status("a"))["fields"].keys() >= {"interval"}
    assert "hourly" not in timing_of(outcome.status("a"))["fields"]
    assert since_of(outcome.status("a")) == rfc3339.show(NEW_YEAR + 10)


def test_26_stopped_in_the_middle_of_a_herd_the_next_process_finishes_the_rest() -> None:
    names = [f"s{number}" for number in range(40)]
    story = world(
        *(create(1, name, every(60)) for name in names),
        lasts_s=95,
        settings={"creates_in_flight": 2},
    )

    outcome = right(play(story, Trouble(stops=((60.03, 1.0),))))

    assert all(dues(outcome, name) == [60] for name in names)
    assert {job.who for job in outcome.jobs.values()} == {"operator 0", "operator 1"}
    assert not outcome.processes[0].crashed


@pytest.mark.parametrize(
    ("fault", "left"),
    [
        # The patch of each waits; none comes through in time.
        (Rule("PATCH", "/status", "slow:60", from_s=59), "'statuses': 2, 'creates': 0"),
        # Two creates get no answer in time: their Jobs may exist, and no status tells of them.
        (Rule("POST", JOBS, "slow:60", from_s=59), "'statuses': 0, 'creates': 2"),
    ],
    ids=["statuses", "creates"],
)
def test_what_a_stopped_process_has_to_leave_it_says(fault: Rule, left: str) -> None:
    story = world(create(1, "a", every(60)), create(1, "b", every(60)), lasts_s=190)
    stuck = Scripted(fault)

    outcome = right(
        play(
            story,
            Trouble(stops=((60.02, 1.0),)),
            weather=lambda number: Weather() if number else stuck,
            verbose=True,
        )
    )

    said = [line for line in outcome.history if "log: left to the next process" in line]
    assert len(said) == 1
    assert left in said[0]
    assert dues(outcome, "a") == dues(outcome, "b") == [60, 120, 180]


# --- 25: long absences ----------------------------------------------------------------------------


@pytest.mark.parametrize("days", [1, 30, 400])
def test_25_after_any_absence_one_run_is_caught_up_with_and_the_rest_is_one_count(
    days: int,
) -> None:
    away_s = days * DAY_S
    story = world(create(1, "a", every(60)), lasts_s=away_s + 200)

    outcome = right(play(story, Trouble(kills=((70, away_s),))))

    assert counts(outcome)["missed"] == days * 1_440 - 1
    assert len(dues(outcome)) <= 5
    assert len(outcome.server.requests) < 200


def test_25_a_month_of_suspension_is_one_span_and_nothing_of_it_runs() -> None:
    story = world(
        create(1, "a", every(60)),
        patch(70, "a", suspend=True),
        patch(30 * DAY_S, "a", suspend=False),
        lasts_s=30 * DAY_S + 200,
    )

    outcome = right(play(story, Trouble(kills=((100, 30 * DAY_S - 200),))))

    assert counts(outcome)["skipped"] == 30 * 1_440 - 1
    assert [due for due in dues(outcome) if 60 < due <= 30 * DAY_S] == []


@pytest.mark.parametrize(
    ("policy", "launched", "missed"), [("Skip", 0, 9), ("Latest", 1, 8), ("All", 3, 6)]
)
def test_25_what_was_missed_goes_through_the_policy_as_one_set(
    policy: str, launched: int, missed: int
) -> None:
    limit = {"catchUpLimit": 3} if policy == "All" else {}
    spec = every(60, missedRuns=policy, **limit)
    story = world(create(1, "a", spec), lasts_s=695)

    # Away from 70 to 650: due 120 ... 600 is missed (nine); 660 is not.
    outcome = right(play(story, Trouble(kills=((70, 580),))))

    assert counts(outcome)["missed"] == missed
    assert len(dues(outcome)) == 2 + launched


def test_an_image_bump_between_a_missed_due_time_and_the_restart_does_not_void_it() -> None:
    story = world(create(1, "a", every(60)), patch(70, "a", jobTemplate=template(2)), lasts_s=135)

    outcome = right(play(story, Trouble(kills=((50, 60),))))

    assert dues(outcome) == [60, 120]
