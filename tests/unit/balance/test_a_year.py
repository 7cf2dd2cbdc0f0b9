"""Intervals that divide neither a day nor a week, through a year with two clock changes."""

import itertools
from collections.abc import Iterator

import pytest
from tests.unit.balance.members import (
    HOUR_S,
    MINUTE_S,
    PRE_SCHEDULE_S,
    SLOT_S,
    every,
    fixed,
    place_into,
    recounted,
    runs_between,
)

from evenkeel.balance import Limits, LoadMap, Member, Placement, place, plan_rebalance
from evenkeel.model import DAY_S, Cron, Instant, Window
from evenkeel.when.zone import load_zone

NEW_YEAR: Instant = 1_798_761_600  # 2027-01-01T00:00:00Z
YEAR_S = 365 * DAY_S
BERLIN_SPRINGS: Instant = 1_806_195_600  # 2027-03-28T01:00:00Z: 02:00 becomes 03:00
BERLIN_FALLS_BACK: Instant = 1_824_944_400  # 2027-10-31T01:00:00Z: 03:00 becomes 02:00
THE_HOUR_THAT_CHANGES = Window(2 * HOUR_S, 3 * HOUR_S)

AWKWARD = [
    every(7 * MINUTE_S, key="ns/seven-minutes"),
    every(100 * MINUTE_S, key="ns/hundred-minutes", weight=5),
    every(36 * HOUR_S, key="ns/day-and-a-half", weight=3),
    every(3 * DAY_S, key="ns/three-days", weight=9),
    every(DAY_S, key="ns/nightly", zone="Europe/Berlin", window=THE_HOUR_THAT_CHANGES, weight=20),
]


@pytest.fixture
def settled() -> tuple[LoadMap, dict[str, Placement], list[Member]]:
    load = LoadMap(NEW_YEAR)
    load.put(fixed(Cron("15 2 * * *"), key="ns/fixed", zone="Europe/Berlin", weight=50))
    places = {member.key: place_into(load, member, NEW_YEAR)[0] for member in AWKWARD}
    return load, places, list(load.members.values())


def days_around(change: Instant) -> Iterator[Instant]:
    yield from range(change - 2 * DAY_S, change + 2 * DAY_S, 5 * SLOT_S)


def test_the_reasons_of_their_placements(
    settled: tuple[LoadMap, dict[str, Placement], list[Member]],
) -> None:
    _, places, _ = settled
    reasons = {key: place.reason for key, place in places.items()}
    assert reasons["ns/seven-minutes"] == (
        "first run 2027-01-01T00:01:00Z, then every 7m; the least used minutes of 7 possible "
        "starts: it runs in every slot; 7m does not divide 24 hours, so its times shift and the "
        "load may become less even"
    )
    assert "every 1h40m; the least loaded start of 100 minutes" in reasons["ns/hundred-minutes"]
    assert (
        "1d12h does not divide 7 days, so its times shift and the load may become less even"
        in reasons["ns/day-and-a-half"]
    )
    assert "3d does not divide 7 days" in reasons["ns/three-days"]
    assert "then every 1d of Europe/Berlin" in reasons["ns/nightly"]
    assert "the least loaded start of 60 minutes of its window" in reasons["ns/nightly"]


def test_each_keeps_its_phase_all_year(
    settled: tuple[LoadMap, dict[str, Placement], list[Member]],
) -> None:
    _, places, members = settled
    for member in members:
        if member.placed_at is None or member.key == "ns/nightly":
            continue
        first, every_s = places[member.key].first_run, member.interval.every_s
        end = NEW_YEAR + YEAR_S
        assert runs_between(member, NEW_YEAR, end) == list(range(first, end, every_s))


def test_a_nightly_interval_keeps_its_local_time_through_both_changes(
    settled: tuple[LoadMap, dict[str, Placement], list[Member]],
) -> None:
    _, places, members = settled
    nightly = next(member for member in members if member.key == "ns/nightly")
    berlin = load_zone("Europe/Berlin")
    due = runs_between(nightly, NEW_YEAR, NEW_YEAR + YEAR_S)
    local = {run: (run + berlin.offset_at(run)) % DAY_S for run in due}
    first = local[places["ns/nightly"].first_run]
    assert 2 * HOUR_S <= first < 3 * HOUR_S
    assert len(due) == 365
    elsewhere = {run: time for run, time in local.items() if time != first}
    assert elsewhere == {BERLIN_SPRINGS: 3 * HOUR_S}  # its hour is not there: once, right after
    gaps_s = {later - earlier for earlier, later in itertools.pairwise(due)}
    assert min(gaps_s) >= 22 * HOUR_S
    assert max(gaps_s) <= 25 * HOUR_S


@pytest.mark.parametrize("change", [BERLIN_SPRINGS, BERLIN_FALLS_BACK], ids=["spring", "autumn"])
def test_the_load_equals_a_recount_around_a_clock_change(
    settled: tuple[LoadMap, dict[str, Placement], list[Member]], change: Instant
) -> None:
    load, _, members = settled
    for now in days_around(change):
        shown = load.distribution(now)
        assert list(shown.slots) == recounted(members, now)
        assert 0 <= shown.distribution_score <= 1


@pytest.mark.parametrize("change", [BERLIN_SPRINGS, BERLIN_FALLS_BACK], ids=["spring", "autumn"])
def test_intervals_placed_at_a_clock_change_run_in_their_window_and_first_when_the_placement_says(
    settled: tuple[LoadMap, dict[str, Placement], list[Member]], change: Instant
) -> None:
    load, _, _ = settled
    night = Window(22 * HOUR_S, 6 * HOUR_S)
    berlin = load_zone("Europe/Berlin")
    for now in days_around(change):
        newcomer = every(DAY_S, key="ns/newcomer", zone="Europe/Berlin", window=night)
        found, member = place_into(load, newcomer, now)
        assert now + PRE_SCHEDULE_S < found.first_run <= now + DAY_S + HOUR_S
        assert runs_between(member, now, found.first_run + 1) == [found.first_run]
        local = (found.first_run + berlin.offset_at(found.first_run)) % DAY_S
        assert local >= 22 * HOUR_S or local < 6 * HOUR_S


@pytest.mark.parametrize("change", [BERLIN_SPRINGS, BERLIN_FALLS_BACK], ids=["spring", "autumn"])
def test_a_rebalance_at_a_clock_change_does_what_its_plan_says(
    settled: tuple[LoadMap, dict[str, Placement], list[Member]], change: Instant
) -> None:
    load, _, members = settled
    for now in range(change - DAY_S, change + DAY_S, 7 * SLOT_S):
        plan = plan_rebalance(load, now, Limits(PRE_SCHEDULE_S))
        assert plan.projected_score >= plan.current_score
        assert list(plan.current.slots) == recounted(members, now)


def test_a_restart_keeps_all_phases(
    settled: tuple[LoadMap, dict[str, Placement], list[Member]],
) -> None:
    load, _, members = settled
    later = BERLIN_SPRINGS + 3 * HOUR_S
    restarted = LoadMap(later)
    restarted.put_all(members)
    assert restarted.distribution(later) == load.distribution(later)
    newcomer = every(HOUR_S, key="ns/newcomer")
    assert place(restarted, newcomer, later, pre_schedule_s=PRE_SCHEDULE_S) == place(
        load, newcomer, later, pre_schedule_s=PRE_SCHEDULE_S
    )
