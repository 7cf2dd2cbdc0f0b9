"""Faults by name: each row of the edge contract that the simulator is the place for.

Numbers are those of the list of faults that the product must survive; what is at stake stands in
the sentence. Every outcome must also pass all oracles.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.sim.controllers import Fate
from tests.sim.network import Rule, Scripted, Weather
from tests.sim.oracles import differences, violations
from tests.sim.play import CALM, Outcome, Trouble, play
from tests.sim.server import JOB
from tests.sim.world import NEW_YEAR, Deed, World, create, delete, every, patch, template

from evenkeel.resource import rfc3339

DAY_S = 86_400
YEAR_S = 365 * DAY_S
JOBS = "/jobs"


def world(*deeds: Deed, lasts_s: float = 95, **more: object) -> World:
    fate = Fate(0.5, 3)
    return World("scenario", deeds, lasts_s, **{"fate": lambda job: fate, **more})  # type: ignore[arg-type]


def right(outcome: Outcome) -> Outcome:
    assert violations(outcome) == []
    return outcome


def with_faults(story: World, *rules: Rule, trouble: Trouble = CALM) -> Outcome:
    return right(play(story, trouble, weather=lambda number: Scripted(*rules)))


def dues(outcome: Outcome, name: str = "a") -> list[int]:
    return [job.due - outcome.world.base for job in outcome.jobs_of(name)]


def counts(outcome: Outcome, name: str = "a") -> dict[str, int]:
    return {key: value for key, value in outcome.status(name)["counts"].items() if value}


def calls(outcome: Outcome, verb: str, part: str) -> list[float]:
    return [
        request.at - outcome.world.base
        for request in outcome.server.requests
        if request.who.startswith("operator") and request.verb == verb and part in request.path
    ]


TWENTY = every(20)


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
    assert not outcome.processes[-1].operator.scheduler.state.entries


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


def test_5_a_watch_that_falls_silent_is_given_up() -> None:
    story = world(create(1, "a", every(60, concurrencyPolicy="Forbid")), lasts_s=295)

    outcome = with_faults(story, Rule("WATCH", JOBS, "hang", times=1))

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


# --- 9: clocks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_s", [-7_200.0, -30.0, 30.0, 7_200.0])
def test_9_a_clock_that_is_set_doubles_nothing(by_s: float) -> None:
    story = world(
        create(1, "a", TWENTY), Deed(50, "set clock", value=by_s), tags=frozenset({"wall"})
    )

    outcome = right(play(story))

    assert len(set(dues(outcome))) == len(dues(outcome))
    if by_s == 7_200:  # an outage of that length: the newest is caught up with, the rest counted
        assert counts(outcome)["missed"] > 300
        assert len(dues(outcome)) < 8


def test_9_ten_years_ahead_holds_launches_until_the_api_server_agrees() -> None:
    story = world(
        create(1, "a", TWENTY),
        Deed(50, "set clock", value=10 * YEAR_S),
        Deed(70, "mend clock"),
        lasts_s=135,
        tags=frozenset({"wall"}),
    )

    outcome = right(play(story))

    assert max(dues(outcome)) < 200
    assert counts(outcome).get("missed", 0) <= 2


def test_9_a_clock_that_stands_still_loses_nothing_within_grace() -> None:
    story = world(
        create(1, "a", TWENTY),
        Deed(45, "stop clock"),
        Deed(70, "mend clock"),
        tags=frozenset({"wall"}),
    )

    assert dues(right(play(story))) == [20, 40, 60, 80]


def test_9_an_edit_by_a_clock_that_is_behind_does_not_reach_behind_the_creation() -> None:
    story = world(
        Deed(5, "set clock", value=-3_600.0),
        create(10, "a", TWENTY),
        patch(20, "a", interval={"every": "10s"}),
        tags=frozenset({"wall"}),
    )

    assert dues(right(play(story))) == []


def test_9_a_machine_that_stood_still_for_ten_minutes_catches_up_by_policy() -> None:
    story = world(create(1, "a", TWENTY), Deed(45, "block", value=600), lasts_s=735)

    outcome = right(play(story))

    assert counts(outcome)["missed"] == 29  # 60 to 620; one set with those within grace
    assert dues(outcome)[:3] == [20, 40, 640]


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


# --- 13, 14: users --------------------------------------------------------------------------------


def test_13_a_schedule_made_anew_within_a_second_has_runs_of_its_own() -> None:
    story = world(
        create(1, "a", TWENTY),
        delete(30, "a"),
        create(30.5, "a", TWENTY),
        fate=lambda job: Fate(0.5, 25),
    )

    outcome = right(play(story))

    (old, new) = sorted(outcome.specs)
    assert {job.uid for job in outcome.jobs_of("a") if job.due > NEW_YEAR + 30} == {new}
    assert [job.due - NEW_YEAR for job in outcome.jobs.values() if job.uid == old] == [20]
    assert counts(outcome) == {"succeeded": 2}
    names = {item["metadata"]["ownerReferences"][0]["uid"] for item in objects(outcome)}
    assert names == {new}


def objects(outcome: Outcome) -> list[dict]:  # type: ignore[type-arg]
    return list(outcome.server.objects[JOB].values())


def test_13_the_old_ones_status_does_not_land_on_the_new_one() -> None:
    """Its last write hangs while the schedule is deleted and made anew."""
    outcome = with_faults(
        world(create(1, "a", TWENTY), delete(40.5, "a"), create(41, "a", every(20, offset=5))),
        Rule("PATCH", "a/status", "slow:5", times=1, from_s=40),
    )

    assert counts(outcome) == {"succeeded": 3}
    assert [due for due in dues(outcome) if due > 41] == [45, 65, 85]


@pytest.mark.parametrize("at_s", [39.9, 40.0, 40.001, 40.004, 40.4])
def test_14_an_edit_at_the_due_second_uses_one_spec_whole(at_s: float) -> None:
    story = world(
        create(1, "a", TWENTY),
        patch(at_s, "a", interval={"every": "30s"}, jobTemplate=template(2)),
    )

    outcome = right(play(story))

    by_old = {20, 40} if at_s >= 40 else {20}
    assert set(dues(outcome)) in (by_old | {60, 90}, {20, 60, 90})


def test_14_suspended_and_resumed_at_the_due_second_it_runs_once_at_most() -> None:
    story = world(
        create(1, "a", TWENTY),
        patch(40, "a", suspend=True),
        patch(40.001, "a", suspend=False),
    )

    outcome = right(play(story))

    assert len(set(dues(outcome))) == len(dues(outcome))
    assert set(dues(outcome)) >= {20, 60, 80}


# --- 24: Jobs that go -----------------------------------------------------------------------------


def test_24_a_job_deleted_by_hand_is_lost_and_its_place_is_free() -> None:
    story = world(
        create(1, "a", every(20, concurrencyPolicy="Forbid")),
        Deed(30, "delete job", "a"),
        fate=lambda job: Fate(1, 1_000),
        tags=frozenset({"deleted jobs"}),
    )

    outcome = right(play(story))

    assert dues(outcome) == [20, 40]
    assert counts(outcome)["lost"] == 1


def test_24_a_job_that_vanished_before_a_list_older_than_its_create_blocks_nobody() -> None:
    """The list is asked for before the create, and answered when the Job has gone again."""
    vanishing = every(60, offset=33, concurrencyPolicy="Forbid")
    vanishing["jobTemplate"] = template(ttlSecondsAfterFinished=0)
    once = {"at": rfc3339.show(NEW_YEAR + 29), "jobTemplate": template()}

    outcome = with_faults(
        world(create(1, "a", vanishing), create(1, "b", once), lasts_s=125),
        Rule("EVENT", "", "cut", times=1, from_s=28.9),  # of b's Job
        Rule("WATCH", JOBS, "410 in stream", times=1, from_s=28.9),
        Rule("GET", "/apis/batch/v1/jobs", "slow:9", times=1, from_s=28.9),
    )

    assert dues(outcome) == [33, 93]
    assert counts(outcome) == {"lost": 1, "succeeded": 1}


def test_24_a_cancelled_job_stays_until_a_status_tells_of_its_run() -> None:
    """Gone without a trace, the next process would launch the run again."""
    story = world(
        create(1, "a", every(20, concurrencyPolicy="Replace")), fate=lambda job: Fate(1, 30)
    )
    silent = Rule("PATCH", "a/status", "500", from_s=15, until_s=41)

    outcome = with_faults(story, silent, trouble=Trouble(kills=((40.5, 1.0),)))

    assert dues(outcome) == [20, 40, 60, 80]


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
    spec = every(60, missedRuns=policy, catchUpLimit=3)
    story = world(create(1, "a", spec), lasts_s=695)

    # Away from 70 to 650: due 120 ... 600 is missed (nine); 660 is not.
    outcome = right(play(story, Trouble(kills=((70, 580),))))

    assert counts(outcome)["missed"] == missed
    assert len(dues(outcome)) == 2 + launched


# --- 26, 27 ---------------------------------------------------------------------------------------


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


def test_27_a_loop_blocked_for_five_seconds_loses_nothing() -> None:
    story = world(create(1, "a", every(10)), Deed(38, "block", value=5.0))

    assert dues(right(play(story))) == [10, 20, 30, 40, 50, 60, 70, 80, 90]


# --- rows on edits, resumes, restarts -------------------------------------------------------------


def test_a_timing_edited_just_before_a_due_time_counts_from_its_first_sight() -> None:
    """Runs prepared ten seconds ahead must not take the new timing's due times with them."""
    story = world(create(1, "a", every(60)), patch(52, "a", interval={"every": "10s"}))

    assert dues(right(play(story))) == [60, 70, 80, 90]


def test_an_image_bump_between_a_missed_due_time_and_the_restart_does_not_void_it() -> None:
    story = world(create(1, "a", every(60)), patch(70, "a", jobTemplate=template(2)), lasts_s=135)

    outcome = right(play(story, Trouble(kills=((50, 60),))))

    assert dues(outcome) == [60, 120]


@pytest.mark.parametrize("at_s", [59.99, 60.0, 60.002, 60.005, 60.01])
def test_a_restart_exactly_at_a_due_second_neither_loses_nor_doubles(at_s: float) -> None:
    outcome = right(play(world(create(1, "a", every(60))), Trouble(kills=((at_s, 0.5),))))

    assert dues(outcome) == [60]


def test_an_interval_keeps_its_phase_through_any_number_of_restarts() -> None:
    """anchor + k * every, never "now + interval"."""
    kills = tuple((at + 0.5, 1.0) for at in range(5, 290, 11))

    outcome = right(play(world(create(1, "a", every(25)), lasts_s=295), Trouble(kills=kills)))

    assert dues(outcome) == list(range(25, 295, 25))


def test_an_edited_timing_is_what_the_next_process_finds_in_the_status() -> None:
    """A merge patch keeps what it does not name: the old kind of timing must be taken away."""
    interval = {"every": "20s", "offset": "0s"}
    story = world(
        create(1, "a", {"hourly": {"minute": 30}, "jobTemplate": template()}),
        patch(10, "a", hourly=None, interval=interval),
    )

    outcome = right(play(story, Trouble(kills=((45, 50 - 45 + 12),))))

    assert dues(outcome) == [20, 40, 60, 80]
    assert outcome.status("a")["timing"]["fields"].keys() >= {"interval"}
    assert "hourly" not in outcome.status("a")["timing"]["fields"]
    assert outcome.status("a")["timing"]["since"] == rfc3339.show(NEW_YEAR + 10)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe", "America/Santiago"])
def test_the_clocks_change_while_it_runs(zone: str) -> None:
    """Wildcard schedules go by real minutes: one run a minute through gap and fold."""
    changes: dict[str, str] = {
        "Europe/Berlin": "2027-03-28T00:58:00Z",
        "Australia/Lord_Howe": "2027-04-03T14:58:00Z",
        "America/Santiago": "2027-04-04T02:58:00Z",
    }
    base = rfc3339.read(changes[zone])
    assert base is not None
    spec = {"schedule": "* * * * *", "timeZone": zone, "jobTemplate": template()}

    outcome = right(play(world(create(1, "a", spec), lasts_s=275, base=base)))

    assert dues(outcome) == [60, 120, 180, 240]
