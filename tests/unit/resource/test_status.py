"""The status gives back after a restart all that the rules need, and believes nothing."""

import orjson
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import clocks, cron, edited, every, instant, schedule
from tests.unit.core.world import World, merge_patch

from evenkeel.core.schedule import view
from evenkeel.core.schedule.entry import Entry
from evenkeel.model import (
    At,
    Concurrency,
    Cron,
    DayMatch,
    Fold,
    Gap,
    Hourly,
    Interval,
    Retry,
    RunState,
    Timing,
    Verdict,
)
from evenkeel.reasons import Reason
from evenkeel.resource.record import EMPTY, LARGEST_COUNT, MOST_ATTEMPTS, Memory, Shown, WaitingRun
from evenkeel.resource.status import parse, render
from evenkeel.resource.timing import timing_fields, timing_from_fields, timing_hash

INSTANTS = st.integers(0, 253_402_300_799)
RULES = (
    st.builds(Cron, st.text(min_size=1, max_size=30), st.sampled_from(DayMatch))
    | st.builds(Hourly, st.integers(0, 59))
    | st.builds(
        Interval, st.integers(1, 10**8), st.none() | st.integers(0, 10**8), st.none() | INSTANTS
    )
    | st.builds(At, INSTANTS)
)
TIMINGS = st.builds(
    Timing,
    RULES,
    zone=st.sampled_from(["UTC", "Europe/Berlin"]),
    gap=st.sampled_from(Gap),
    fold=st.sampled_from(Fold),
    start=st.none() | INSTANTS,
    end=st.none() | INSTANTS,
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=25),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner),
    max_leaves=12,
)
INTERNAL = ["mark", "timing", "suspendedSince", "resumedAt", "waiting", "templateHash"]
FIELDS = [
    "internal",
    "pause",
    "active",
    "recent",
    "counts",
    "countsSince",
    "consecutiveFailures",
    "lastScheduleTime",
    "lastSuccessfulTime",
    "lastFailureTime",
    "lastResult",
    "conditions",
    "placement",
]


@given(TIMINGS)
def test_a_timing_comes_back_as_it_was_written(timing):
    assert timing_from_fields(orjson.loads(orjson.dumps(timing_fields(timing)))) == timing


@given(TIMINGS, TIMINGS)
def test_two_timings_have_one_hash_only_when_they_are_one(one, other):
    assert (timing_hash(one) == timing_hash(other)) == (one == other)


@given(JUNK)
def test_no_status_makes_it_raise(junk):
    parse(junk)


@given(st.dictionaries(st.sampled_from(FIELDS), JUNK))
def test_no_field_of_a_status_makes_it_raise(status):
    memory = parse(status)
    assert memory.record.consecutive_failures >= 0
    assert all(count >= 0 for count in memory.record.counts.values())


@given(st.dictionaries(st.sampled_from(INTERNAL), JUNK))
def test_no_field_of_what_is_internal_makes_it_raise(internal):
    parse({"internal": internal})


@given(st.sampled_from(FIELDS), JUNK)
def test_what_does_not_fit_leaves_the_rest(field, junk):
    world = World().see(cron("* * * * *")).run_until("10:02:30")
    good = world.status()
    memory, whole = parse(good | {field: junk}), parse(good)
    if field != "internal":
        assert memory.mark == whole.mark
    if field != "counts":
        assert memory.record.counts == whole.record.counts


@given(st.dictionaries(st.sampled_from(["pause", "placement"]), JUNK), JUNK)
def test_no_inner_field_makes_it_raise(status, inner):
    parse({"recent": [inner], "active": [inner]})
    parse({"internal": {"timing": {"fields": inner}, "waiting": [inner]}})
    parse({"conditions": [inner], "counts": inner} | status)
    for rule in ("schedule", "hourly", "interval", "at"):
        timing_from_fields({rule: inner})
        timing_from_fields({rule: {"minute": inner, "every": inner, "offset": inner}})


def test_an_empty_status_remembers_nothing():
    assert parse(None) == parse({}) == EMPTY


def test_the_last_trigger_comes_back() -> None:
    status = render(Memory(trigger="2026-01-01"), Shown("Scheduled"), ns="shop")
    assert parse(merge_patch({}, status)).trigger == "2026-01-01"
    assert parse({"internal": {"trigger": ["x"]}}).trigger == ""


# --- the document round trip ------------------------------------------------------------------


def remembered(world: World, seen):
    world.write(seen.uid)
    return parse(world.status(seen)), world.scheduler.state.entries[seen.uid]


def test_the_document_gives_back_all_that_the_rules_need():
    seen = every(60, concurrency=Concurrency.QUEUE, retry=Retry(limit=2, delay_s=600))
    world = World().see(seen).run_until("10:04:30")
    world.fail(seen, "10:01")
    memory, entry = remembered(world, seen)
    assert clocks(row.due for row in memory.waiting) == [
        "10:01:00",
        "10:02:00",
        "10:03:00",
        "10:04:00",
    ]
    assert memory.waiting[0] == WaitingRun(
        instant("10:01"), 2, Reason.RETRYING, instant("10:14:30")
    )
    assert memory.waiting[1] == WaitingRun(instant("10:02"), 1, Reason.QUEUED)
    assert [
        (row.state, row.attempt) for row in memory.record.recent if row.due == instant("10:01")
    ] == [(RunState.RETRYING, 2)]
    assert memory.mark == entry.reach_mark(world.now) == instant("10:04:30") // 60 * 60
    assert (memory.timing, memory.timing_since) == (seen.timing, seen.created)
    assert memory.template_hash == "first"


def test_it_names_the_jobs_that_are_alive():
    seen = every(60)
    world = World().see(seen).run_until("10:02:30")
    memory, entry = remembered(world, seen)
    assert set(memory.active) == {run.ref for run in entry.runs.values() if run.ref}


def test_a_run_whose_create_was_announced_is_named_as_waiting():
    seen = every(60, ttl_s=0)
    world = World(answering=lambda _: None).see(seen).run_until("10:01")
    memory, _ = remembered(world, seen)
    assert memory.active == ()
    assert memory.waiting == (WaitingRun(instant("10:01"), 1, Reason.LAUNCHING),)


def test_suspension_pause_and_counts_come_back():
    seen = every(60, pause_after_failures=1)
    world = World().see(seen).run_until("10:01")
    world.fail(seen, "10:01")
    memory, entry = remembered(world, seen)
    assert memory.pause == entry.pause is not None
    assert memory.record.consecutive_failures == 1
    assert memory.record.counts["failed"] == 1
    world.see(edited(seen, suspend=True))
    memory, entry = remembered(world, seen)
    assert memory.suspended_since == entry.suspended_since == instant("10:01")
    world.run_until("10:05").see(edited(edited(seen)))
    memory, entry = remembered(world, seen)
    assert memory.suspended_since is None
    assert memory.resumed_at == entry.resumed_at == instant("10:05")


def test_conditions_and_recent_rows_come_back():
    seen = every(60)
    world = World().see(seen).run_until("10:03:30")
    world.succeed(seen, "10:02")
    memory, entry = remembered(world, seen)
    assert dict(memory.conditions) == entry.conditions
    assert memory.record == entry.record


def test_a_placement_comes_back():
    seen = every(3600, offset_s=None)
    world = World().see(seen)
    memory, entry = remembered(world, seen)
    assert memory.placed == entry.placed is not None


@given(TIMINGS, TIMINGS)
def test_the_fields_of_an_older_timing_do_not_stay_beside_a_newer_ones(old, new):
    stored: dict = {}
    for timing in (old, new):
        entry = Entry("uid", "shop", "report", schedule=schedule(Cron("* * * * *")), timing=timing)
        patch = orjson.loads(orjson.dumps(view.document(entry, now=0.0)))
        stored = merge_patch(stored, patch)
    assert parse(stored).timing == new


def test_the_document_is_bounded_whatever_happens():
    seen = every(10, keep_succeeded=100)
    world = World(answering=lambda _: Verdict.CREATED).see(seen).run_until("10:20")
    status = world.status()
    assert len(status["active"]) == 50
    assert status["activeCount"] == 120
    assert len(status["recent"]) == 10
    assert len(status["upcoming"]) == 5
    assert len(orjson.dumps(status)) < 30_000


def test_numbers_written_by_hand_stay_within_what_a_spec_may_say():
    """A delay grows with a power of the attempt, and an anchor is moved by the interval."""
    due = "2026-03-02T10:00:00Z"
    row = {"due": due, "state": "retrying", "attempt": 3_000_000_000}
    assert parse({"recent": [row]}).record.recent[0].attempt == MOST_ATTEMPTS
    assert parse({"internal": {"waiting": [row]}}).waiting[0].attempt == MOST_ATTEMPTS
    assert parse({"consecutiveFailures": 2**63 - 1}).record.consecutive_failures == LARGEST_COUNT
    assert parse({"counts": {"failed": 2**63 - 1}}).record.counts["failed"] == LARGEST_COUNT
    placement = {"anchor": due, "placedAt": due, "slot": "10:00", "reason": "", "weight": 1}
    assert parse({"placement": placement | {"every": "31622400s"}}).placed is not None
    assert parse({"placement": placement | {"every": "31622401s"}}).placed is None
    assert parse({"placement": placement | {"every": "9" * 400 + "s"}}).placed is None


def test_how_a_container_ended_comes_back_and_nonsense_does_not():
    row = {"due": "2026-03-02T10:01:00Z", "state": "failed", "exitCode": 137}
    status = {"recent": [row | {"exitReason": "OOMKilled"}]}
    (kept,) = parse(status).record.recent
    assert (kept.exit_code, kept.exit_reason) == (137, "OOMKilled")
    (shown,) = render(parse(status), Shown(1, "Scheduled"), ns="shop")["recent"]
    assert (shown["exitCode"], shown["exitReason"]) == (137, "OOMKilled")
    for wrong in (True, "3", 1.5, 10**30, None):
        (kept,) = parse({"recent": [row | {"exitCode": wrong}]}).record.recent
        assert kept.exit_code is None
