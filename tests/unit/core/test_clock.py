"""Clock steps, stalls, restarts: no run is lost, none comes twice, nothing is believed rashly."""

import pytest
from tests.builders import clock, cron, edited, every, instant, once
from tests.unit.core.world import World

from evenkeel.core import messages
from evenkeel.core.scheduler import SCHEDULES_PER_STEP, Scheduler
from evenkeel.model import Concurrency, Cron, JobState, MissedRuns, Retry, Verdict
from evenkeel.settings import Settings

EVERY_MINUTE = "* * * * *"


def test_a_clock_set_back_an_hour_runs_nothing_twice():
    world = World().see(cron(EVERY_MINUTE)).run_until("11:00:30").set_clock("10:00:30")
    world.run_until("11:02")
    started = world.started()
    assert len(started) == len(set(started)) == 62


def test_a_clock_set_back_leaves_the_mark():
    world = World().see(every(60)).run_until("11:00:30").set_clock("10:00:30")
    world.succeed(every(60), "11:00")
    assert world.status()["internal"]["mark"] == "2026-03-02T11:00:00Z"


def test_a_clock_set_forward_by_hours_settles_what_it_skipped():
    world = World().see(cron("0 * * * *")).run_until("10:05").set_clock("15:05")
    world.run_until("15:06")
    assert world.started() == ["15:00:00"]
    assert world.ends() == [("11:00:00..14:00:00 x4", "missed", "superseded")]
    assert world.time_asked == 0


@pytest.mark.parametrize(("clock_says", "asked"), [("+1d 09:05", 0), ("+1d 11:05", 1)])
def test_a_jump_of_more_than_a_day_is_doubted_and_of_less_is_settled(clock_says, asked):
    world = World().see(cron("0 * * * *")).run_until("10:05").set_clock(clock_says)
    world.settle()
    assert world.time_asked == asked
    assert world.scheduler.state.can_tell_what_is_due is not bool(asked)
    if asked:
        assert (world.started(), world.ends()) == ([], [])
    else:
        assert world.started() == ["+1d 09:00:00"]
        assert world.ends() == [("11:00:00..+1d 08:00:00 x22", "missed", "superseded")]


def test_a_clock_set_forward_by_years_launches_nothing_until_it_is_confirmed():
    world = World().see(cron(EVERY_MINUTE)).run_until("10:01:30")
    world.set_clock("2036-03-02T10:01:30Z").run_until(world.now + 25)
    assert world.started() == ["10:01:00"]
    assert world.ends() == []
    assert world.time_asked == 3  # at once, and every ten seconds
    assert not world.scheduler.state.can_tell_what_is_due


def test_years_that_the_api_server_confirms_are_settled():
    world = World().see(cron(EVERY_MINUTE)).run_until("10:01:30")
    world.set_clock("2028-03-02T10:01:45Z").run_until(world.now + 2)
    world.tell(messages.TimeConfirmed(world.now + 5))
    world.run_until(world.now + 1)
    assert world.verdicts() > 1_000_000
    assert len(world.ends()) == 1


def test_years_that_the_api_server_denies_hold_until_the_clock_is_right_again():
    world = World().see(cron(EVERY_MINUTE)).run_until("10:01:30")
    truth = world.now
    world.set_clock("2036-03-02T10:01:30Z").run_until(world.now + 1)
    world.tell(messages.TimeConfirmed(truth + 1)).run_until(world.now + 1)
    assert world.started() == ["10:01:00"]
    world.now = truth + 12
    world.settle()
    world.tell(messages.TimeConfirmed(truth + 12)).run_until("10:03")
    assert world.started() == ["10:01:00", "10:02:00", "10:03:00"]
    assert world.ends() == []


def test_a_schedule_first_seen_by_a_clock_that_is_not_believed_waits_without_a_verdict():
    world = World().see(cron("0 12 * * *", name="other")).run_until("10:00:30")
    truth = world.now
    world.set_clock("2036-03-02T10:00:30Z").run_until(world.now + 1)
    world.see(cron(EVERY_MINUTE)).run_until(world.now + 5)
    assert world.ends() == []
    world.now = truth + 6
    world.settle()
    world.tell(messages.TimeConfirmed(truth + 6)).run_until("10:02")
    assert world.started() == ["10:01:00", "10:02:00"]


def test_a_late_confirmation_of_a_clock_that_is_believed_changes_nothing():
    world = World().see(cron(EVERY_MINUTE)).tell(messages.TimeConfirmed(0.0)).run_until("10:01")
    assert world.started() == ["10:01:00"]


def test_a_stall_shorter_than_grace_loses_nothing():
    world = World().see(every(10)).run_until("10:01:05").stall_until("10:01:34")
    assert world.started()[-3:] == ["10:01:10", "10:01:20", "10:01:30"]
    assert world.ends() == []


def test_after_a_stall_longer_than_grace_all_that_was_not_launched_is_one_set():
    world = World().see(every(10, missed_runs=MissedRuns.SKIP)).run_until("10:01:05")
    world.stall_until("10:02:05").run_until("10:02:11")
    assert world.ends() == [("10:01:10..10:02:00 x6", "missed", "not_in_time")]
    assert world.started()[-2:] == ["10:01:00", "10:02:10"]


@pytest.mark.parametrize("away", ["crash", "stall"])
def test_latest_runs_one_after_an_outage_not_its_last_seconds_besides(away):
    world = World().see(every(10)).run_until("10:01:05")
    world = world.crash(for_s=60) if away == "crash" else world.stall_until("10:02:05")
    assert world.started()[-2:] == ["10:01:00", "10:02:00"]
    assert world.ends() == [("10:01:10..10:01:50 x5", "missed", "superseded")]


def test_a_run_whose_job_exists_does_not_make_a_set_of_those_within_grace():
    seen = every(20)
    world = (
        World(writes=False).see(seen).run_until("10:01:01")
    )  # its Job is, its mark is not stored
    world.crash(for_s=45)
    assert world.started() == ["10:00:20", "10:00:40", "10:01:00", "10:01:20", "10:01:40"]
    assert world.ends() == []


def test_a_run_prepared_just_before_a_stall_is_not_launched_later_than_grace():
    world = World().see(every(60, missed_runs=MissedRuns.SKIP)).run_until("10:00:58")
    assert len(world.prepared) == 1
    world.stall_until("10:01:31")  # the look ahead reached as far; only the run itself is late
    assert world.launches == []
    assert world.ends() == [("10:01:00", "missed", "not_in_time")]


def test_a_stall_longer_than_the_index_sees_loses_nothing():
    world = World().see(cron("*/5 * * * *", missed_runs=MissedRuns.ALL)).run_until("10:01")
    world.stall_until("11:01")
    assert world.started() == [clock(instant("10:00") + 300 * k) for k in range(1, 13)]


def test_nothing_is_launched_before_the_jobs_are_listed():
    world = World(now=instant("10:02:30"))
    fresh = type(world.scheduler)(world.settings)
    world.scheduler = fresh
    world.see(cron(EVERY_MINUTE)).run_until("10:04:30")
    assert world.started() == []
    assert not fresh.ready
    world.jobs_listed()
    world.schedules_listed()
    world.settle()
    assert world.started()[-1] == "10:04:00"
    assert fresh.ready


def test_two_restarts_in_a_row_change_nothing():
    world = World().see(every(60)).run_until("10:05:30")
    before = (world.started(), world.alive(), world.ends(), world.status()["internal"]["mark"])
    world.crash().crash()
    assert (
        world.started(),
        world.alive(),
        world.ends(),
        world.status()["internal"]["mark"],
    ) == before


def test_a_single_run_missed_by_a_restart_runs_late():
    world = World().see(once("10:30")).run_until("10:10").crash(for_s=3600)
    assert world.started() == ["10:30:00"]


def test_what_waits_in_the_queue_goes_on_when_the_clock_is_believed_again():
    seen = every(60, concurrency=Concurrency.QUEUE)
    world = World().see(seen).run_until("10:02:30")
    truth = world.now
    world.set_clock("2036-03-02T10:02:30Z").run_until(world.now + 1)
    world.succeed(seen, "10:01")
    assert world.started() == ["10:01:00"]
    world.now = truth + 5
    world.settle()
    world.tell(messages.TimeConfirmed(truth + 5))
    assert world.started() == ["10:01:00", "10:02:00"]


def test_a_jump_of_years_is_an_alarm():
    world = World().see(cron(EVERY_MINUTE)).run_until("10:01:30")
    world.set_clock("2036-03-02T10:01:30Z").run_until(world.now + 25)
    assert [line.event for line in world.logged if line.level == "error"] == [
        "clock jumped forward"
    ]


def test_a_schedule_made_after_the_clock_was_set_back_is_run():
    world = World().see(cron(EVERY_MINUTE)).run_until("11:00:30").set_clock("10:00:30")
    world.see(cron(EVERY_MINUTE, name="other", created=instant("10:00:30"))).run_until("10:04:30")
    assert world.started("other") == ["10:01:00", "10:02:00", "10:03:00", "10:04:00"]


def test_a_timing_edited_after_the_clock_was_set_back_does_not_reach_behind_the_mark():
    old = cron("*/10 * * * *")
    world = World().see(old).run_until("11:00:30").set_clock("10:00:30")
    before = len(world.started())
    world.see(edited(old, rule=Cron("*/7 * * * *"))).run_until("11:08")
    assert world.started()[before:] == ["11:07:00"]


def unready(world: World) -> Scheduler:
    """A process that was just started and has been told nothing."""
    world.scheduler = Scheduler(world.settings)
    world.settle()
    return world.scheduler


def test_it_is_not_ready_before_it_knows_every_schedule_that_was_listed():
    world, seen = World(), cron(EVERY_MINUTE)
    fresh = unready(world)
    world.schedules[seen.uid] = seen
    world.jobs_listed()
    world.schedules_listed()
    world.settle()
    assert not fresh.ready
    world.see(seen)
    assert fresh.ready


def test_it_is_not_ready_before_the_past_of_every_schedule_is_settled():
    world = World(settings=Settings(inbox_size=5000))
    fresh = unready(world)
    for n in range(SCHEDULES_PER_STEP + 5):
        world.see(cron(EVERY_MINUTE, name=f"s{n}"))
    world.jobs_listed()
    world.schedules_listed()
    world.step()
    assert not fresh.ready
    world.settle()
    assert fresh.ready


def test_nothing_is_launched_before_the_jobs_of_every_namespace_are_listed():
    world = World(settings=Settings(namespaces=("shop", "bank")))
    unready(world)
    world.see(cron(EVERY_MINUTE)).tell(messages.JobsListed((), int(world.now), ns="shop"))
    assert world.run_until("10:02:30").started() == []
    world.tell(messages.JobsListed((), int(world.now), ns="bank"))
    assert world.started() == ["10:02:00"]


def test_a_schedule_deleted_before_the_jobs_are_listed_is_not_taken_up_when_they_are():
    world, seen = World(), cron(EVERY_MINUTE)
    unready(world)
    world.see(seen).gone(seen)
    world.jobs_listed()
    assert world.run_until("10:02:30").launches == []


# --- waits, when the clock is set right ---------------------------------------------------------


def answered(verdict):
    return lambda _: verdict


def test_after_a_clock_was_set_back_what_was_held_is_not_launched_before_its_instant():
    world = World().see(every(60))
    world.answering = answered(Verdict.HELD)
    world.run_until("11:00:03")
    world.answering = answered(Verdict.CREATED)
    assert list(world.alive()) == ["10:59:00", "11:00:00"]
    world.set_clock("10:00:03").run_until("10:59:30")
    assert world.started() == ["10:59:00"]  # the other's is to come, by the clock that is right
    assert world.run_until("11:00:01").started() == ["10:59:00", "11:00:00"]


def test_a_job_that_failed_while_the_clock_was_years_ahead_is_retried_after_its_delay():
    seen = every(600, retry=Retry(limit=1, delay_s=10))
    world = World().see(seen).run_until("10:10:05")
    truth = world.now
    world.set_clock("2036-03-02T10:10:05Z").settle()
    world.fail(seen, "10:10")
    world.monotonic += 3
    world.now = truth + 3
    world.tell(messages.TimeConfirmed(world.now)).run_until("10:10:14")
    assert len(world.creations) == 1
    world.run_until("10:10:16")
    assert len(world.creations) == 2


def test_an_answer_that_came_while_the_clock_was_years_ahead_does_not_hold_for_years():
    world = World(answering=lambda _: None).see(every(60)).run_until("10:01:00")
    truth = world.now
    world.set_clock("2036-03-02T10:01:00Z").settle()
    world.answer(world.in_flight[0], Verdict.HELD)
    world.answering = answered(Verdict.CREATED)
    world.monotonic += 3
    world.now = truth + 3
    world.tell(messages.TimeConfirmed(world.now)).run_until("10:03:30")
    assert world.started()[-1] == "10:03:00"
    assert world.scheduler.state.entries["uid-report"].held == []


def test_ends_and_gauges_do_not_wait_for_a_clock_that_was_set_back():
    seen = every(60)
    world = World().see(seen).run_until("10:01:05")
    world.succeed(seen, "10:01")
    world.set_clock("09:01:05").run_until("09:02:00")
    state = world.scheduler.state
    assert state.census.running == 0
    assert not state.ended
    assert not state.ended_states


def test_a_stuck_deletion_is_given_up_by_the_clock_that_is_right():
    seen = every(600)
    world = World().see(seen).run_until("10:10:05")
    world.change(world.job(seen, "10:10"), deleting=True)
    world.set_clock("09:10:05").run_until("09:12:10")
    assert world.ends() == [("10:10:00", "lost", "job_deleted")]


def test_a_pending_deadline_is_looked_at_by_the_clock_that_is_right():
    seen = every(600, pending_deadline_s=300)
    world = World(Settings(pod_start_warning_s=0)).see(seen).run_until("10:10:05")
    started = instant("09:10:00")  # the API server's clock was right all the time
    world.change(world.job(seen, "10:10"), state=JobState.WAITING, started=started)
    assert world.looked_at == []
    world.set_clock("09:10:05").run_until("09:15:04")
    assert world.looked_at == []
    world.run_until("09:15:06")
    assert len(world.looked_at) == 1


def test_a_list_from_before_the_clock_was_set_back_prunes_nothing():
    seen = cron(EVERY_MINUTE, created=instant("09:30"))
    world = World().run_until("10:29")
    listed_m = world.monotonic
    world.run_until("10:30").set_clock("09:30").see(seen)
    world.scheduler.inbox.hint("list", messages.SchedulesListed(frozenset(), listed_m))
    world.run_until("09:31:30")
    assert world.started() == ["09:31:00"]


# --- wrong from the start -----------------------------------------------------------------------

THREE_DAYS_S = 3 * 86_400


@pytest.mark.parametrize("off_by_s", [THREE_DAYS_S, -THREE_DAYS_S])
def test_a_process_that_begins_with_a_wrong_clock_waits_for_the_right_one(off_by_s):
    world = World().see(cron(EVERY_MINUTE)).run_until("10:05:30")
    mark = world.status()["internal"]["mark"]
    world.crash(for_s=off_by_s).run_until(world.now + 60)
    assert world.time_asked == 7  # at once, and every ten seconds
    assert not world.scheduler.ready
    world.now -= off_by_s
    world.tell(messages.TimeConfirmed(world.now)).run_until("10:08:30")
    assert world.started() == [f"10:0{minute}:00" for minute in range(1, 9)]
    assert world.ends() == []
    assert world.status()["internal"]["mark"] > mark


def test_after_days_away_the_clock_is_confirmed_once_and_believed():
    world = World(clock_is_confirmed=True).see(cron(EVERY_MINUTE)).see(cron("0 0 1 * *", name="b"))
    world.run_until("10:01:30").crash(for_s=THREE_DAYS_S).run_until(world.now + 60)
    assert world.time_asked == 1
    assert world.counts() == {"missed": 3 * 1440 - 1}


def test_a_schedule_that_rests_for_a_month_makes_nobody_doubt_the_clock():
    world = World().see(cron("0 0 1 * *", name="monthly")).see(cron(EVERY_MINUTE))
    for _ in range(20):
        world.now += 7_200
        world.monotonic += 7_200
        world.settle()
    world.crash(for_s=5)
    assert world.status("monthly")["internal"]["mark"] < "2026-03-03"
    assert world.time_asked == 0
    assert world.scheduler.ready


def test_a_schedule_of_the_future_makes_a_clock_that_is_days_behind_doubtful():
    ahead = float(instant("2026-03-05T10:00:00Z"))
    world = World().see(cron(EVERY_MINUTE, created=int(ahead))).run_until("10:05")
    assert world.time_asked > 0
    world.now = ahead + 300
    world.tell(messages.TimeConfirmed(world.now)).run_until(world.now + 90)
    assert world.started() != []


def test_by_a_clock_that_is_behind_a_placed_interval_counts_from_its_creation_too():
    seen = every(60, offset_s=None, created=instant("10:03"))
    world = World().see(seen).run_until("10:02").see(edited(seen, template_hash="second"))
    world.run_until("10:05:30")
    assert world.started() == ["10:03:11", "10:04:11", "10:05:11"]
