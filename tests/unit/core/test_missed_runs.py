"""What becomes of due times that nobody launched in time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import clock, cron, edited, every, instant
from tests.unit.core.world import World

from evenkeel.core.schedule.missed import WHY_NOT, Missed, Settled, Span, settle
from evenkeel.model import Concurrency, JobState, MissedRuns, Verdict
from evenkeel.reasons import ConditionReason

TEN_MINUTELY = "*/10 * * * *"

AFTER_AN_HOUR_AWAY = {
    "Latest runs the newest and counts the rest": (
        {"missed_runs": MissedRuns.LATEST},
        ["10:10:00", "11:10:00"],
        [("10:20:00..11:00:00 x5", "missed", "superseded")],
    ),
    "Skip runs none": (
        {"missed_runs": MissedRuns.SKIP},
        ["10:10:00"],
        [("10:20:00..11:10:00 x6", "missed", "not_in_time")],
    ),
    "All runs all, in order": (
        {"missed_runs": MissedRuns.ALL},
        ["10:10:00"] + [f"1{m}:00" for m in ("0:20", "0:30", "0:40", "0:50", "1:00", "1:10")],
        [],
    ),
    "All runs the newest catchUpLimit and counts the rest": (
        {"missed_runs": MissedRuns.ALL, "catch_up_limit": 2},
        ["10:10:00", "11:00:00", "11:10:00"],
        [("10:20:00..10:50:00 x4", "missed", "catch_up_limit")],
    ),
    "startingDeadline comes before missedRuns: Latest": (
        {"starting_deadline_s": 120},
        ["10:10:00"],
        [("10:20:00..11:10:00 x6", "missed", "deadline")],
    ),
    "startingDeadline comes before missedRuns: All": (
        {"missed_runs": MissedRuns.ALL, "starting_deadline_s": 30 * 60},
        ["10:10:00", "10:50:00", "11:00:00", "11:10:00"],
        [("10:20:00..10:40:00 x3", "missed", "deadline")],
    ),
    "startingDeadline comes before missedRuns: Skip": (
        {"missed_runs": MissedRuns.SKIP, "starting_deadline_s": 30 * 60},
        ["10:10:00"],
        [
            ("10:20:00..10:40:00 x3", "missed", "deadline"),
            ("10:50:00..11:10:00 x3", "missed", "not_in_time"),
        ],
    ),
}


@pytest.mark.parametrize(
    ("spec", "started", "ends"), AFTER_AN_HOUR_AWAY.values(), ids=AFTER_AN_HOUR_AWAY
)
@pytest.mark.parametrize("away", ["crash", "stall"])
def test_after_an_hour_away(away, spec, started, ends):
    world = World().see(cron(TEN_MINUTELY, **spec)).run_until("10:13")
    if away == "crash":
        world.crash(for_s=3600)
    else:
        world.stall_until("11:13")
    assert world.started() == started
    assert world.ends() == ends


def test_within_grace_a_due_time_is_late_but_not_missed():
    world = World().see(cron(TEN_MINUTELY, missed_runs=MissedRuns.SKIP)).run_until("10:05")
    assert world.stall_until("10:10:30").started() == ["10:10:00"]


def test_a_second_beyond_grace_it_is_missed():
    world = World().see(cron(TEN_MINUTELY, missed_runs=MissedRuns.SKIP)).run_until("10:05")
    world.stall_until("10:10:31")
    assert world.started() == []
    assert world.ends() == [("10:10:00", "missed", "not_in_time")]


def test_a_run_launched_late_tells_nothing_of_our_precision():
    world = World().see(cron("0 * * * *")).run_until("10:05").stall_until("11:05")
    assert world.started() == ["11:00:00"]
    assert world.lateness() == []


def test_a_year_away_is_counted_not_listed():
    world = World(clock_is_confirmed=True).see(every(60)).run_until("10:01:30")
    world.crash(for_s=365 * 86_400 + 15)
    assert world.ends()[0][0].endswith(f"x{365 * 1440 - 1}")
    assert len(world.started()) == 2


def test_a_run_later_than_its_starting_deadline_is_missed_even_within_grace():
    world = World().see(cron(TEN_MINUTELY, starting_deadline_s=5)).run_until("10:05")
    world.stall_until("10:10:06")
    assert world.ends() == [("10:10:00", "missed", "deadline")]
    assert world.said("MissSchedule") == [
        "Missed scheduled time to start a job: 2026-03-02T10:10:00Z: deadline"
    ]


@pytest.mark.parametrize("deadline_s", [0, 5])
def test_after_a_stall_the_starting_deadline_is_the_same_as_without_one(deadline_s):
    world = World().see(cron("* * * * *", starting_deadline_s=deadline_s)).run_until("10:01:30")
    world.now = instant("10:06") + deadline_s + 0.4
    world.settle()
    assert world.started() == ["10:01:00", "10:06:00"]
    assert world.ends() == [("10:02:00..10:05:00 x4", "missed", "deadline")]


@pytest.mark.parametrize("deadline_s", [0, 1])
def test_a_run_on_time_meets_any_starting_deadline(deadline_s):
    world = World().see(cron(TEN_MINUTELY, starting_deadline_s=deadline_s)).run_until("10:09:59")
    world.now = instant("10:10") + 0.4  # timers are never quite exact
    world.settle()
    assert world.started() == ["10:10:00"]


def test_a_due_time_exactly_as_late_as_its_starting_deadline_allows_is_in_time():
    spec = {"missed_runs": MissedRuns.ALL, "starting_deadline_s": 30 * 60}
    world = World().see(cron(TEN_MINUTELY, **spec)).run_until("10:13").stall_until("11:10:00")
    assert world.started() == ["10:10:00", "10:40:00", "10:50:00", "11:00:00", "11:10:00"]


# --- held creates -----------------------------------------------------------------------------


def held(_):
    return Verdict.HELD


def created(_):
    return Verdict.CREATED


def test_a_run_that_cannot_be_created_is_tried_again_within_grace():
    world = World(answering=held).see(every(600)).run_until("10:10:10")
    assert world.alive() == {"10:10:00": "held"}
    world.answering = created
    assert world.run_until("10:10:40").started() == ["10:10:00"]


def test_after_grace_all_unlaunched_due_times_are_one_set():
    world = World(answering=held).see(every(10)).run_until("10:01:02")
    assert world.started() == []
    missed = [row for row in world.ends() if row[1] == "missed"]
    assert missed and {reason for _, _, reason in missed} == {"superseded"}
    world.answering = created
    world.run_until("10:02:30")
    running = [due for due, state in world.alive().items() if state == "running"]
    assert world.verdicts() + len(running) == 15
    assert len(world.started()) == len(set(world.started()))


def test_skip_gives_up_a_held_run_after_grace():
    world = World(answering=held).see(every(600, missed_runs=MissedRuns.SKIP)).run_until("10:11:30")
    assert world.ends() == [("10:10:00", "missed", "not_in_time")]


def test_latest_keeps_trying_the_newest_for_as_long_as_it_takes():
    world = World(answering=held).see(every(3600)).run_until("11:30")
    assert world.alive() == {"11:00:00": "held"}
    world.answering = created
    assert world.run_until("11:31").started() == ["11:00:00"]


@pytest.mark.parametrize(
    ("spec", "launched"),
    [
        ({"missed_runs": MissedRuns.LATEST}, ["10:10:00"]),
        ({"missed_runs": MissedRuns.ALL, "catch_up_limit": 2}, ["10:09:00", "10:10:00"]),
    ],
    ids=["Latest", "All"],
)
def test_a_restart_in_a_catch_up_launches_no_older_ones_besides(spec, launched):
    """While no status can be stored, only the Jobs tell what an earlier process has decided."""
    world = World().see(every(60, **spec)).run_until("10:00:30")
    world.writes = False
    for _ in range(3):
        world.crash(for_s=0 if world.creations else 600)
    world.writes = True
    world.crash()
    assert world.started() == launched
    assert world.counts() == {"missed": 10 - len(launched)}


def test_held_runs_and_those_that_nobody_saw_are_one_set():
    world = World(answering=held).see(every(10)).run_until("10:00:25")
    assert {"10:00:10": "held", "10:00:20": "held"}.items() <= world.alive().items()
    world.answering = created
    world.stall_until("10:01:25")
    assert world.started() == ["10:01:20"]
    assert world.verdicts() == 7
    assert {row[1:] for row in world.ends()} == {("missed", "superseded")}


def test_of_held_runs_beyond_grace_the_newest_catch_up_limit_are_tried_on():
    """10:00:10 is beyond its grace at 10:00:40; 10:00:50 is the last one due."""
    spec = {"missed_runs": MissedRuns.ALL, "catch_up_limit": 2, "end": instant("10:00:55")}
    world = World(answering=held).see(every(10, **spec)).run_until("10:02:30")
    assert world.ends() == [
        (due, "missed", "catch_up_limit") for due in ("10:00:10", "10:00:20", "10:00:30")
    ]
    assert world.alive() == {"10:00:40": "held", "10:00:50": "held"}
    world.answering = created
    assert world.run_until("10:03:30").started() == ["10:00:40", "10:00:50"]
    assert world.counts() == {"missed": 3}


def test_what_holds_one_run_back_holds_the_schedules_others():
    world = World(answering=held).see(every(10, missed_runs=MissedRuns.ALL)).run_until("10:05")
    tries = {launch.run.due for launch in world.launches}
    asked_at = len(world.launches) / len(tries)
    assert asked_at < 8  # each by itself would have asked at 1, 2, 4, 8, 16, 30, 60 ... s
    assert sum(line.event == "create held" for line in world.logged) == 1


def test_what_was_held_together_goes_on_together():
    world = World(answering=held).see(every(20, missed_runs=MissedRuns.ALL)).run_until("10:00:41")
    assert world.alive() == {"10:00:20": "held", "10:00:40": "held"}
    world.answering = created
    world.run_until("10:01:01")
    first, *others = world.creations
    assert {when for _, _, when in others[:1]} == {first[2]}
    assert world.started() == ["10:00:20", "10:00:40", "10:01:00"]
    assert [line.event for line in world.logged if "creates" in line.event] == ["creates go on"]


def test_a_new_run_of_a_held_schedule_asks_no_sooner():
    world = World(answering=held).see(every(60, missed_runs=MissedRuns.ALL)).run_until("10:01:59")
    asked = len(world.launches)
    world.run_until("10:02:00")
    assert world.alive() == {"10:01:00": "held", "10:02:00": "held"}
    assert len(world.launches) == asked


def test_one_answered_create_tells_all_that_the_api_server_is_there_again():
    world = World(answering=lambda _: None).see(every(600)).see(every(660, name="other"))
    world.run_until("10:10:00")
    while world.now < instant("10:10:59"):
        for launch in list(world.in_flight):
            world.answer(launch, Verdict.HELD, reason=ConditionReason.UNREACHABLE)
        world.run_until(world.now + 1)
    assert world.alive() == {"10:10:00": "held"}
    tries = len(world.launches)
    world.answering = created
    world.run_until("10:11:00")  # its own next try comes some seconds later
    assert world.started("other") == ["10:11:00"]
    assert world.started() == ["10:10:00"]
    assert tries == 7


def test_after_a_429_the_pause_is_the_servers_and_does_not_grow():
    world = World(answering=lambda _: None).see(every(600)).run_until("10:10:00")
    while world.now < instant("10:10:20"):
        for launch in list(world.in_flight):
            world.answer(launch, Verdict.HELD, reason=ConditionReason.TOO_MANY_REQUESTS)
        world.run_until(world.now + 0.5)
    assert 15 <= len(world.launches) <= 21


def test_a_held_run_is_not_tried_hotly():
    world = World(answering=held).see(every(3600)).run_until("12:00")
    assert len(world.launches) < 200


def test_a_held_run_beyond_its_starting_deadline_is_missed():
    world = World(answering=held).see(every(600, starting_deadline_s=15)).run_until("10:11")
    assert world.ends() == [("10:10:00", "missed", "deadline")]


def test_grace_of_a_held_run_begins_when_it_leaves_the_queue():
    seen = every(60, concurrency=Concurrency.QUEUE, missed_runs=MissedRuns.SKIP)
    world = World().see(edited(seen)).run_until("10:01:30")
    world.run_until("10:02:50")
    world.answering = held
    world.succeed(seen, "10:01")  # 10:02 had waited 50 s for its turn
    world.run_until("10:02:55")
    world.answering = created
    assert world.run_until("10:02:59").started() == ["10:01:00", "10:02:00"]


def test_to_wait_in_a_launch_lane_is_not_failing():
    world = World(answering=lambda _: None).see(every(600, missed_runs=MissedRuns.SKIP))
    world.run_until("10:11:00")  # a minute in the lane
    world.answering = created
    world.answer(world.in_flight[0], Verdict.HELD)
    assert world.run_until("10:11:10").started() == ["10:10:00"]


# --- the pure function ------------------------------------------------------------------------


@given(
    count=st.integers(0, 60),
    border=st.integers(0, 60),
    held=st.sets(st.integers(0, 59)),
    policy=st.sampled_from(MissedRuns),
    limit=st.integers(1, 70),
)
def test_every_due_time_is_in_exactly_one_place(count, border, held, policy, limit):
    """The held are runs already: in no span, and the caller ends those that are not launched."""
    dues = [instant("10:00") + 60 * k for k in range(count)]
    waiting = [due for k, due in enumerate(dues) if k in held and k >= border]
    late, in_time = dues[:border], [due for due in dues[border:] if due not in waiting]
    settled = settle(
        too_late=_span(late),
        in_time=_span(in_time),
        newest=tuple(in_time[-(limit + 1) :]),
        held=tuple(waiting),
        policy=policy,
        catch_up_limit=limit,
    )
    covered = [due for due in settled.launch if due not in waiting]
    for missed in settled.missed:
        first, last = missed.span.first, missed.span.last
        span = [due for due in dues if first <= due <= last and due not in waiting]
        assert len(span) == missed.span.count
        covered += span
    assert sorted(covered) == late + in_time
    most = {"Skip": 0, "Latest": 1, "All": limit}[policy.value]
    candidates = sorted(waiting + in_time)
    assert list(settled.launch) == (candidates[-most:] if most else [])
    assert {missed.reason for missed in settled.missed} <= {"deadline", WHY_NOT[policy]}


def _span(dues: list[int]) -> Span | None:
    return Span(dues[0], dues[-1], len(dues)) if dues else None


def test_nothing_missed_is_nothing():
    assert settle(
        too_late=None, in_time=None, newest=(), policy=MissedRuns.ALL, catch_up_limit=5
    ) == Settled((), ())


def test_a_deadline_that_took_them_all_leaves_nothing_to_catch_up():
    late = Span(instant("10:00"), instant("10:50"), 6)
    settled = settle(
        too_late=late, in_time=None, newest=(), policy=MissedRuns.ALL, catch_up_limit=5
    )
    assert settled == Settled((), (Missed(late, "deadline"),))
    assert clock(settled.missed[0].span.last) == "10:50:00"


def test_a_stall_right_after_a_restart_loses_no_due_time():
    world = World().see(every(60)).run_until("10:05:30")
    world.writes = False  # the first status is still under way
    world.crash(for_s=1).stall_until("10:08:21")
    assert world.verdicts() + len(world.alive()) == 8


@pytest.mark.parametrize("away", ["crash", "stall"])
def test_held_runs_beyond_grace_are_one_set_after_a_restart_as_after_a_stall(away):
    seen = cron("0-2 * * * *")
    world = World().see(seen).run_until("10:59")
    for fact in list(world.jobs.values()):
        world.change(fact, state=JobState.SUCCEEDED, finished=int(world.now))
    world.answering = lambda _: Verdict.HELD
    world.run_until("11:02:20")
    before = len(world.creations)
    world.answering = lambda _: Verdict.CREATED
    world = world.crash(for_s=600) if away == "crash" else world.stall_until("11:12:20")
    world.run_until(world.now + 60)
    assert [clock(run.due) for run, _, _ in world.creations[before:]] == ["11:02:00"]


@pytest.mark.parametrize("policy", [MissedRuns.LATEST, MissedRuns.SKIP])
@pytest.mark.parametrize("period_s", [20, 300])
def test_an_outage_shorter_than_grace_loses_no_run(policy, period_s):
    """Held at 10:05:00, :01, :03, :07, :15; the next pause would reach a second beyond grace."""
    world = World().see(every(period_s, missed_runs=policy)).run_until("10:04:58")
    world.answering = lambda _: Verdict.HELD
    world.run_until("10:05:18")
    world.answering = lambda _: Verdict.CREATED
    world.run_until("10:05:45")
    assert world.ends() == []
