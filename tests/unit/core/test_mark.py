"""The mark is contiguous, never goes back, and no live run is ever forgotten."""

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.builders import clock, cron, edited, every, instant
from tests.unit.core.world import World, created

from evenkeel import rfc3339
from evenkeel.core import messages
from evenkeel.core.effects import RunEnded
from evenkeel.model import Concurrency, Cron, JobState, MissedRuns, Retry, RunState, Verdict
from evenkeel.resource.record import WAITING_COUNT


def waiting(world: World) -> dict[str, str]:
    """Due times that the stored status says wait, and why."""
    rows = world.status()["internal"].get("waiting", [])
    return {clock(rfc3339.read(row["due"])): row["reason"] for row in rows}


def mark(world: World) -> str:
    return clock(rfc3339.read(world.status()["internal"]["mark"]))


def test_the_mark_stays_before_a_run_whose_create_is_not_answered():
    world = World(answering=lambda _: None).see(every(60)).run_until("10:01:30")
    world.write("uid-report")
    assert mark(world) == "10:00:59"


def test_the_mark_passes_a_run_that_hangs_only_when_it_stands_in_waiting():
    world = World(answering=lambda launch: None if launch.run.due == instant("10:01") else CREATED)
    world.see(every(60)).run_until("10:03:30")
    assert world.started() == ["10:02:00", "10:03:00"]
    assert mark(world) == "10:03:00"
    assert waiting(world) == {"10:01:00": "launching"}
    world.answer(world.in_flight[0], CREATED)
    assert waiting(world) == {}


def test_a_create_that_hangs_for_long_does_not_make_a_crash_forget_the_verdicts_after_it():
    seen = every(60, concurrency=Concurrency.FORBID)
    world = World(answering=lambda _: None).see(seen).run_until("10:20:30")
    assert world.counts() == {"skipped": 19}
    world.answering = lambda _: CREATED
    world.crash()
    assert world.started() == ["10:01:00"]
    assert world.counts() == {"skipped": 19}


CREATED = Verdict.CREATED


def test_a_span_above_a_create_that_hangs_gets_no_second_verdict_after_a_crash():
    world = World(answering=lambda _: None).see(every(60)).run_until("10:01:30")
    world.stall_until("10:05:10")
    assert world.ends() == [("10:02:00..10:04:00 x3", "missed", "superseded")]
    world.answering = lambda _: CREATED
    world.crash(for_s=5)
    assert world.counts() == {"missed": 3}
    assert sorted(world.started()) == ["10:01:00", "10:05:00"]


def test_a_run_decided_above_the_mark_gets_no_second_verdict_after_a_crash():
    held_up = World(
        answering=lambda launch: None if launch.run.due == instant("10:01") else CREATED
    )
    held_up.see(every(60, concurrency=Concurrency.FORBID)).run_until("10:02:05")
    assert held_up.ends() == [("10:02:00", "skipped", "overlap")]
    held_up.answering = lambda _: CREATED
    held_up.crash(for_s=5)
    assert held_up.started() == ["10:01:00"]
    assert held_up.ends() == [("10:02:00", "skipped", "overlap")]


def test_a_run_whose_create_hangs_outlives_an_edit_of_the_timing_and_a_crash():
    seen = every(60)
    world = World(answering=lambda _: None).see(seen).run_until("10:01:05")
    world.see(edited(seen, rule=Cron("0 12 * * *")))  # since is later than its due time now
    world.answering = lambda _: CREATED
    assert world.crash(for_s=5).started() == ["10:01:00"]


def test_a_run_whose_create_hangs_outlives_a_suspension_and_a_crash():
    seen = every(60)
    world = World(answering=lambda _: None).see(seen).run_until("10:01:05")
    world.see(edited(seen, suspend=True)).see(edited(edited(seen)))
    world.answering = lambda _: CREATED
    assert world.crash(for_s=5).started() == ["10:01:00"]


def test_the_mark_is_never_ahead_of_the_clock():
    world = World().see(cron("5 10 * * *")).run_until("10:04:55")
    world.write("uid-report")
    assert rfc3339.read(world.status()["internal"]["mark"]) <= world.now


def test_a_run_that_left_the_queue_stands_in_waiting_until_its_job_is_known():
    seen = every(60, concurrency=Concurrency.QUEUE)
    world = World().see(seen).run_until("10:02:30")
    world.answering = lambda _: None
    world.succeed(seen, "10:01")  # 10:02 leaves the queue; its create hangs
    world.write(seen.uid)
    assert waiting(world) == {"10:02:00": "launching"}
    world.answering = lambda _: CREATED
    world.crash(for_s=5)
    assert world.started() == ["10:01:00", "10:02:00"]


def test_a_held_run_stands_in_waiting_while_it_is_tried_again():
    world = World(answering=lambda _: Verdict.HELD).see(every(600)).run_until("10:10:00")
    world.answering = lambda _: None
    world.run_until("10:10:02")
    assert world.in_flight
    world.write("uid-report")
    world.answering = lambda _: CREATED
    assert world.crash().started() == ["10:10:00"]


def test_more_runs_than_waiting_can_name_hold_the_mark_back():
    seen = every(60, missed_runs=MissedRuns.ALL, catch_up_limit=200)
    world = World(answering=lambda _: Verdict.HELD).see(seen)
    world.writes = False
    world.now = float(instant("13:20"))
    world.settle()
    world.write(seen.uid)
    assert len(world.status()["internal"]["waiting"]) == 128
    world.answering = lambda _: CREATED
    world.writes = True
    world.crash()
    assert len(world.started()) == len(set(world.started())) == 200


def test_a_due_time_of_the_year_9999_in_waiting_holds_no_place():
    seen = every(60, concurrency=Concurrency.FORBID)
    world = World().see(seen).run_until("10:01:30")
    world.succeed(seen, "10:01")
    world.statuses[seen.uid]["internal"]["waiting"] = [{"due": "9999-01-01T00:00:00Z"}]
    world.crash().run_until("10:03:30")
    assert "10:02:00" in world.started()


# --- at random --------------------------------------------------------------------------------

EVENTS = st.sampled_from(
    [
        *("wait", "wait", "wait", "stall", "crash", "edit", "bump", "suspend", "resume"),
        *("succeed", "fail", "delete", "cancel", "hold", "heal", "hang"),
    ]
)


@settings(deadline=None, max_examples=150, phases=[Phase.reuse, Phase.generate])
@given(
    steps=st.lists(st.tuples(EVENTS, st.integers(1, 150)), min_size=1, max_size=25),
    concurrency=st.sampled_from(Concurrency),
    missed_runs=st.sampled_from(MissedRuns),
    retries=st.integers(0, 1),
)
def test_whatever_happens_every_due_time_gets_one_verdict(steps, concurrency, missed_runs, retries):
    now = every(
        60, concurrency=concurrency, missed_runs=missed_runs, retry=Retry(limit=retries, delay_s=5)
    )
    world = World().see(now)
    for event, seconds in steps:
        now = _happen(world, now, event)
        world.run_until(world.now + seconds)
    world.answering = lambda _: CREATED
    for launch in list(world.in_flight):
        world.answer(launch, CREATED)
    if now.suspend:
        now = edited(now, suspend=False)
        world.see(now)
    world.run_until(world.now + 120)
    _every_minute_has_one_verdict(world)


def _happen(world: World, now, event: str):
    running = [fact for fact in world.jobs.values() if fact.finished is None]
    match event:
        case "succeed" if running:
            world.succeed(now, clock(running[0].run.due), running[0].attempt)
        case "fail" if running:
            world.fail(now, clock(running[0].run.due), running[0].attempt)
        case "delete" if running:
            world.remove(running[0])
        case "crash":
            world.crash(for_s=10)
        case "stall":
            world.stall_until(clock(int(world.now) + 100))
        case "bump":
            now = edited(now, template_hash=f"bump {now.generation}")
            world.see(now)
        case "edit":  # due alike, but by another timing
            rule = Cron("* * * * *" if now.generation % 2 else "*/1 * * * *")
            now = edited(now, rule=rule)
            world.see(now)
        case "suspend" | "resume":
            now = edited(now, suspend=event == "suspend")
            world.see(now)
        case "cancel":
            entry = world.scheduler.state.entries[now.uid]
            if entry.runs:
                world.cancel(now, clock(next(iter(entry.runs)).due))
        case "hold" | "heal" | "hang":
            verdict = {"hold": Verdict.HELD, "heal": CREATED, "hang": None}[event]
            world.answering = lambda _: verdict
            if event == "heal":
                for launch in list(world.in_flight):
                    world.answer(launch, CREATED)
    return now


def _every_minute_has_one_verdict(world: World) -> None:
    created = [(run, attempt) for run, attempt, _ in world.creations]
    assert len(created) == len(set(created)), "a run was created twice"
    entry = world.scheduler.state.entries["uid-report"]
    past = [run for run in entry.runs.values() if run.id.due <= world.now]
    minutes = int(world.now) // 60 - instant("10:00") // 60
    ended = [row.run for row in world.rows if isinstance(row, RunEnded)]
    assert len(set(ended)) == len(ended), "a run ended twice"
    assert world.verdicts() + len(past) == minutes, (world.ends(), world.alive())
    assert sum(world.counts().values()) == world.verdicts()
    assert all(run.state is not RunState.SCHEDULED for run in past)


def test_held_runs_that_the_status_cannot_name_are_missed_at_an_edit_not_forgotten():
    """It names 128; after a crash nobody would know of the others."""
    seen = every(60, missed_runs=MissedRuns.ALL, catch_up_limit=200)
    world = World(answering=lambda _: Verdict.HELD).see(seen)
    world.stall_until("13:20")
    assert len(world.alive()) == 200
    world.see(edited(seen, rule=Cron("0 23 * * *")))
    assert world.counts() == {"missed": 200 - WAITING_COUNT}
    assert world.ends()[0] == ("10:01:00", "missed", "catch_up_limit")
    world.answering = created
    world.crash()
    assert len(world.started()) == WAITING_COUNT


def test_what_changes_while_a_status_is_on_its_way_is_written_after_it():
    seen = every(60)
    world = World(writes=False).see(seen)
    on_its_way = world.scheduler.document(seen.uid)
    world.run_until("10:01")
    world.writes = True
    world.tell(messages.StatusWritten(seen.uid, on_its_way[3]))
    assert world.status()["activeCount"] == 1


def test_last_times_never_go_back():
    first = instant("10:01")
    world = World(answering=lambda launch: None if launch.run.due == first else CREATED)
    seen = every(60)
    world.see(seen).run_until("10:03:30")
    world.answer(world.in_flight[0], CREATED)
    assert world.status()["lastScheduleTime"] == "2026-03-02T10:03:00Z"
    world.succeed(seen, "10:03")
    older = {"state": JobState.SUCCEEDED, "finished": instant("10:02:10")}
    world.change(world.job(seen, "10:02"), **older)  # it ended before, and is seen after
    assert world.status()["lastSuccessfulTime"] == "2026-03-02T10:03:30Z"


def test_recent_tells_of_the_newest_runs_newest_first():
    world = World().see(every(60)).run_until("10:12:30")
    told = [clock(rfc3339.read(row["due"])) for row in world.status()["recent"]]
    assert told == [f"10:{minute:02}:00" for minute in range(12, 2, -1)]


def test_a_cancelled_runs_job_stays_until_a_status_tells_of_it():
    seen = every(60)
    world = World(writes=False).see(seen).run_until("10:01")
    world.cancel(seen, "10:01")
    assert len(world.jobs) == 1
    world.write(seen.uid)
    world.settle()
    assert world.jobs == {}
