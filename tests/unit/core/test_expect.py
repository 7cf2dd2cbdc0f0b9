"""How long a run lasts is learned from those that succeeded, changes seldom, and moves nothing."""

import itertools
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import clock, cron, every, instant
from tests.unit.core.world import World

from evenkeel.balance import Member
from evenkeel.core.schedule.expect import expected_s, learn
from evenkeel.model import Concurrency, Retry, Schedule
from evenkeel.resource.record import DURATIONS_COUNT, LONGEST_RUN_S, Record
from evenkeel.resource.status import parse
from evenkeel.settings import Settings

HOUR_S = 3600

MEDIANS = {
    "none": ([], 0),
    "two": ([60, 60], 0),
    "three": ([60, 90, 30], 60),
    "an even number": ([60, 70, 90, 30], 65),
    "half a second": ([60, 60, 61, 61], 60),
    "one that hung": ([60, 60, 86_400, 61, 59], 60),
    "ten": ([1, 2, 3, 4, 5, 7, 8, 9, 10, 11], 6),
}

CHANGES = {
    "nothing was known": (0, 1, 1),
    "the same": (100, 100, 100),
    "less than a fifth more": (100, 119, 100),
    "a fifth more": (100, 120, 120),
    "less than a fifth less": (100, 81, 100),
    "a fifth less": (100, 80, 80),
    "a second, rounded the other way": (1, 2, 1),
    "a second, rounded back": (2, 1, 2),
    "two seconds instead of four": (4, 2, 2),
    "a run that hung": (60, LONGEST_RUN_S, LONGEST_RUN_S),
}

DURATIONS = st.integers(0, 2 * LONGEST_RUN_S) | st.integers(0, 20)


@pytest.mark.parametrize(("durations", "found"), MEDIANS.values(), ids=MEDIANS)
def test_the_first_expectation_is_the_median(durations, found):
    assert expected_s(0, durations) == found


@pytest.mark.parametrize(("kept", "median", "then"), CHANGES.values(), ids=CHANGES)
def test_it_changes_by_a_fifth_or_more(kept, median, then):
    assert expected_s(kept, [median] * 3) == then


def test_too_few_change_nothing():
    assert expected_s(100, [900, 900]) == 100


def recorded(durations, *, kept: int = 0) -> list[int]:
    """What was expected after each of these runs."""
    record, found = Record(expected_s=kept), []
    for lasted_s in durations:
        learn(record, lasted_s)
        found.append(record.expected_s)
    return found


def changes(found: list[int]) -> int:
    return sum(before != after for before, after in itertools.pairwise(found))


@given(st.integers(1, LONGEST_RUN_S), st.data())
def test_nothing_changes_while_the_median_stays_within_a_fifth(kept, data):
    within = st.integers(kept - (kept - 1) // 5, kept + (kept - 1) // 5)
    durations = data.draw(st.lists(within, max_size=30))
    assert set(recorded(durations, kept=kept)) <= {kept}


@given(st.integers(1, LONGEST_RUN_S), st.integers(1, LONGEST_RUN_S - 1), st.data())
def test_what_goes_to_and_fro_around_a_threshold_changes_it_once(kept, threshold, data):
    beside = st.sampled_from([threshold, threshold + 1])
    durations = data.draw(st.lists(beside, min_size=3, max_size=60))
    assert changes([kept, *recorded(durations, kept=kept)]) <= 1


@given(st.integers(0, LONGEST_RUN_S), st.lists(DURATIONS, max_size=30), st.lists(DURATIONS))
def test_only_what_was_kept_and_the_last_ten_count(kept, last, earlier):
    last = [*last, *[60] * DURATIONS_COUNT][:DURATIONS_COUNT]
    one, other = Record(), Record()
    for lasted_s in earlier:
        learn(one, lasted_s)
    for lasted_s in last:
        learn(one, lasted_s)
        learn(other, lasted_s)
    assert one.durations == other.durations
    assert expected_s(kept, one.durations) == expected_s(kept, other.durations)


@given(st.lists(DURATIONS, min_size=3, max_size=30))
def test_it_is_never_off_by_much_more_than_a_fifth(durations):
    record = Record()
    for lasted_s in durations:
        learn(record, lasted_s)
    median = statistics.median(record.durations)
    assert abs(record.expected_s - median) <= max(record.expected_s / 5, 1) + 0.5
    assert 1 <= record.expected_s <= LONGEST_RUN_S


def test_a_job_that_ended_before_it_began_tells_nothing():
    record = Record()
    learn(record, -1)
    assert record.durations == []


# --- in the scheduler -----------------------------------------------------------------------------


def placed(**changes) -> Schedule:
    return every(HOUR_S, offset_s=None, **changes)


def run(world: World, seen: Schedule, *durations: int) -> None:
    """The next runs succeed after so many seconds each."""
    for lasted_s in durations:
        due = instant(world.status(seen)["nextRunTime"])
        world.run_until(float(due + lasted_s)).succeed(seen, clock(due))


def member(world: World, seen: Schedule) -> Member:
    return world.scheduler.state.load.members[seen.key]


def expected(world: World, seen: Schedule) -> int | None:
    return world.status(seen)["placement"].get("expectedSeconds")


def test_a_placed_interval_shows_it_after_three_runs_and_is_not_moved():
    seen = placed()
    world = World(Settings(loop_interval_s=60)).see(seen)
    anchor = world.status()["placement"]["anchor"]
    run(world, seen, 600, 700)
    assert (expected(world, seen), member(world, seen).lasts_s) == (None, 0)
    run(world, seen, 650)
    assert (expected(world, seen), member(world, seen).lasts_s) == (650, 650)
    assert world.status()["placement"]["anchor"] == anchor
    assert len(world.said("Placed")) == 1


def test_a_restart_forgets_none_of_it():
    seen = placed()
    world = World(Settings(loop_interval_s=60)).see(seen)
    run(world, seen, 600, 600, 600, 660, 660)
    world.crash()
    assert (expected(world, seen), member(world, seen).lasts_s) == (600, 600)
    assert world.status()["internal"]["durations"] == [600, 600, 600, 660, 660]
    run(world, seen, 900, 900, 900, 900, 900)
    assert expected(world, seen) == member(world, seen).lasts_s == 780  # between 660 and 900


def test_a_schedule_with_fixed_times_learns_likewise():
    seen = cron("0 * * * *")
    world = World(Settings(loop_interval_s=60)).see(seen)
    run(world, seen, 600, 700, 650)
    assert member(world, seen).lasts_s == 650
    assert "placement" not in world.status()
    world.crash()
    assert member(world, seen).lasts_s == 650


def test_runs_that_are_skipped_or_fail_push_none_out():
    seen = every(600, concurrency=Concurrency.FORBID)
    world = World(Settings(loop_interval_s=60)).see(seen)
    run(world, seen, 60, 60, 60)
    for due in [f"10:{minute}" for minute in (40, 50)]:
        world.run_until(due).fail(seen, due)
    world.run_until("13:00")  # one that hangs
    assert {row["state"] for row in world.status()["recent"]} <= {"skipped", "running"}
    world.crash()
    assert member(world, seen).lasts_s == 60


def test_a_retried_run_lasts_as_long_as_its_last_job():
    seen = placed(retry=Retry(limit=1, delay_s=600))
    world = World(Settings(loop_interval_s=10)).see(seen)
    for _ in range(3):
        due = instant(world.status()["nextRunTime"])
        world.run_until(float(due + 300)).fail(seen, clock(due))
        world.run_until(float(due + 1000)).succeed(seen, clock(due), attempt=2)
    assert expected(world, seen) == 100


LONGER_THAN_THE_INTERVAL = {
    Concurrency.ALLOW: 2 * HOUR_S,
    Concurrency.FORBID: HOUR_S,
    Concurrency.REPLACE: HOUR_S,
    Concurrency.QUEUE: HOUR_S,
}


@pytest.mark.parametrize(("policy", "lasts_s"), LONGER_THAN_THE_INTERVAL.items())
def test_where_runs_do_not_overlap_none_counts_for_longer_than_the_interval(policy, lasts_s):
    seen = placed(concurrency=policy)
    world = World().see(seen)
    world.statuses[seen.uid]["placement"]["expectedSeconds"] = 2 * HOUR_S
    world.crash()
    assert member(world, seen).lasts_s == lasts_s


def test_the_setting_ignores_what_is_learned():
    seen = placed()
    world = World(Settings(loop_interval_s=60, placement_duration="Ignore")).see(seen)
    run(world, seen, 600, 600, 600)
    assert (expected(world, seen), member(world, seen).lasts_s) == (600, 0)


HOSTILE = [-1, 0, 2**53, LONGEST_RUN_S + 1, 1e9, 60.0, "60", True, None, [60], {"a": 60}]


@pytest.mark.parametrize("written", HOSTILE, ids=repr)
def test_what_no_run_can_last_is_not_believed(written):
    status = {
        "placement": {"expectedSeconds": written},
        "internal": {"durations": [written, 60, written, 70]},
    }
    record = parse(status).record
    assert (record.expected_s, record.durations) == (0, [60, 70])


@pytest.mark.parametrize("written", [*HOSTILE, [60] * 1000, ["x"] * 3], ids=str)
def test_a_list_that_was_written_by_hand_does_no_harm(written):
    durations = parse({"internal": {"durations": written}}).record.durations
    assert durations in ([], [60], [60] * DURATIONS_COUNT)
    seen = placed()
    world = World(Settings(loop_interval_s=60)).see(seen)
    world.statuses[seen.uid]["internal"]["durations"] = written
    world.crash()
    run(world, seen, 600)
    assert world.status()["internal"]["durations"][-1] == 600
    assert len(world.status()["internal"]["durations"]) <= DURATIONS_COUNT


def test_an_expectation_that_was_written_by_hand_is_mended_by_what_is_known():
    seen = placed()
    world = World(Settings(loop_interval_s=60)).see(seen)
    run(world, seen, 600, 600, 600)
    world.statuses[seen.uid]["placement"]["expectedSeconds"] = LONGEST_RUN_S
    world.crash()
    run(world, seen, 600)
    assert expected(world, seen) == 600
