"""What the network and the API server do to watches, lists and calls: twice, late, never."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.sim.differences import differences
from tests.sim.network import Rule
from tests.sim.play import play
from tests.sim.scenario import JOBS, TWENTY, calls, counts, dues, right, with_faults, world
from tests.sim.world import NEW_YEAR, Deed, create, delete, every, patch, template

# --- 2: told twice --------------------------------------------------------------------------------


def test_2_the_same_sight_three_times_changes_nothing_and_writes_nothing() -> None:
    story = world(create(1, "a", TWENTY))
    again = replace(story, deeds=(*story.deeds, *(Deed(30.0 + n, "tell again") for n in range(3))))

    once, thrice = right(play(story)), right(play(again))

    assert differences(thrice, once) == []
    assert len(thrice.server.requests) == len(once.server.requests)


def test_2_every_event_of_a_watch_comes_twice() -> None:
    story = world(create(1, "a", TWENTY), patch(30, "a", jobTemplate=template(2)))

    outcome = with_faults(story, Rule("EVENT", "", "twice"))

    assert differences(outcome, right(play(story))) == []


# --- 3: order, loss -------------------------------------------------------------------------------


def test_3_objects_overtake_one_another_in_a_watch() -> None:
    story = world(create(1, "a", TWENTY), create(1, "b", TWENTY), create(1, "c", TWENTY))

    outcome = with_faults(story, Rule("EVENT", "", "swap"))

    assert differences(outcome, right(play(story))) == []


def test_3_a_deletion_that_no_watch_tells_is_found_by_the_next_list() -> None:
    """The stream hangs, the log is compacted meanwhile: DELETED never comes."""
    story = world(
        create(0, "a", every(10)),
        delete(25, "a"),
        Deed(26, "compact"),
        settings={"prune_s": 15},
    )

    outcome = with_faults(story, Rule("WATCH", "scheduledjobs", "hang"))

    assert max(job.at for job in outcome.jobs.values()) < NEW_YEAR + 25 + 15 * 1.5 + 10
    assert outcome.left is not None
    assert outcome.left.sizes["scheduler: schedules"] == 0


# --- 4: stale -------------------------------------------------------------------------------------


def test_4_an_older_sight_after_a_newer_one_is_passed_over() -> None:
    """A list from an API server that lags: generation 1 after generation 2 was seen."""
    story = world(
        create(1, "a", TWENTY),
        patch(30, "a", interval={"every": "30s"}),
        Deed(35, "tell again"),
    )

    outcome = right(play(story))

    assert dues(outcome) == [20, 60, 90]


# --- 5: watches that end --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault", ["410", "410 in stream", "empty", "500", "500 in stream", "refused"]
)
def test_5_a_watch_that_never_works_is_no_hot_loop_and_nothing_is_missed(fault: str) -> None:
    outcome = with_faults(world(create(1, "a", TWENTY)), Rule("WATCH", JOBS, fault))

    assert dues(outcome) == [20, 40, 60, 80]
    watches = [at for at, verb, _ in outcome.processes[0].connection.asked if verb == "WATCH"]
    assert len(watches) < 95 * 2


@pytest.mark.parametrize("fault", ["hang", "mute"])
def test_5_a_watch_that_falls_silent_is_given_up(fault: str) -> None:
    """Whether its client gives it up, or never notices that its connection is dead."""
    story = world(create(1, "a", every(60, concurrencyPolicy="Forbid")), lasts_s=295)

    outcome = with_faults(story, Rule("WATCH", JOBS, fault, times=1))

    # 60 was created, its end not seen until the stream was given up at about 90.
    assert counts(outcome) == {"succeeded": 4}


# --- 6: too many requests -------------------------------------------------------------------------


def test_6_a_retry_after_holds_all_creates_back_and_they_go_in_the_order_of_due_times() -> None:
    names = [f"s{number}" for number in range(8)]
    story = world(*(create(1, name, every(20)) for name in names), lasts_s=75)

    outcome = with_faults(story, Rule("POST", JOBS, "429:25", times=1, from_s=19, until_s=21))

    created = [at for at in calls(outcome, "POST", "default/jobs") if at >= 20]
    assert not [at for at in created if 21 < at < 44]
    first = sorted(outcome.jobs.values(), key=lambda job: job.at)[: 2 * len(names)]
    assert [job.due for job in first] == sorted(job.due for job in first)
    assert all(counts(outcome, name) == {"succeeded": 3} for name in names)


@pytest.mark.parametrize(
    ("spec", "late", "missed"),
    [
        ({"missedRuns": "Latest"}, [20, 40, 60, 80], 0),
        ({"missedRuns": "Skip"}, [20, 40, 60, 80], 0),
        ({"missedRuns": "All", "catchUpLimit": 1}, [20, 40, 60, 80], 0),
        ({"startingDeadlineSeconds": 45}, [40, 60, 80], 1),
        ({"startingDeadlineSeconds": 15}, [80], 3),
        ({"startingDeadlineSeconds": 15, "missedRuns": "Skip"}, [80], 3),
    ],
    ids=["Latest", "Skip", "All", "a deadline of 45 s", "of 15 s", "of 15 s, and Skip"],
)
def test_6_a_retry_after_longer_than_grace_makes_runs_late_and_misses_those_beyond_their_deadline(
    spec: dict[str, object], late: list[int], missed: int
) -> None:
    """To wait in a lane that the server has closed is not failing."""
    story = world(create(1, "a", every(20, **spec)), lasts_s=135)

    outcome = with_faults(story, Rule("POST", JOBS, "429:60", times=1, from_s=19, until_s=30))

    created = outcome.jobs.values()  # those of one lane arrive in any order
    assert sorted(job.due - NEW_YEAR for job in created) == [*late, 100, 120]
    assert all(job.at >= NEW_YEAR + 80 for job in created)
    assert counts(outcome).get("missed", 0) == missed


def test_6_a_429_again_and_again_for_longer_than_grace_is_failing() -> None:
    story = world(create(1, "a", every(60, missedRuns="Skip")), lasts_s=185)

    outcome = with_faults(story, Rule("POST", JOBS, "429:2", from_s=59, until_s=100))

    assert dues(outcome) == [120, 180]
    assert counts(outcome) == {"missed": 1, "succeeded": 2}


# --- 7: creates without an answer -----------------------------------------------------------------


@pytest.mark.parametrize("fault", ["500 done", "504 done", "lost reply", "500", "lost request"])
def test_7_a_create_without_an_answer_is_one_job_whether_it_was_done_or_not(fault: str) -> None:
    outcome = with_faults(
        world(create(1, "a", every(30))), Rule("POST", JOBS, fault, times=1, from_s=29)
    )

    assert dues(outcome) == [30, 60, 90]
    assert counts(outcome) == {"succeeded": 3}


def test_7_reading_by_name_goes_on_until_it_is_answered() -> None:
    """A time-out of the read says nothing of the Job: it is not somebody else's."""
    outcome = with_faults(
        world(create(1, "a", every(60))),
        Rule("POST", JOBS, "lost reply", times=1, from_s=59),
        Rule("GET", "jobs/a-", "lost reply", times=2),
        Rule("GET", "jobs/a-", "500", times=1),
    )

    assert counts(outcome) == {"succeeded": 1}


@pytest.mark.parametrize("fault", ["lost request", "refused"])
def test_7_an_outage_longer_than_grace_is_one_set_however_the_network_fails(fault: str) -> None:
    """Swallowed requests end as creates whose Jobs are found not to exist: no later than others."""
    outcome = with_faults(
        world(create(1, "a", every(20)), lasts_s=595),
        Rule("POST", "/apis/batch", fault, from_s=95, until_s=395),
        Rule("GET", "/apis/batch", fault, from_s=95, until_s=395),
    )

    late = [job for job in outcome.jobs.values() if job.at - job.due > 60]
    assert late == []
    assert [due for due in dues(outcome) if 100 <= due <= 340] == []
    assert counts(outcome)["missed"] == 29 - len(dues(outcome)) >= 13
