"""Schedules that arrive together are placed at once and improved as a set, before they ever run."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from tests.builders import cron, edited, every, instant
from tests.unit.core.world import World

from evenkeel import rfc3339
from evenkeel.balance import Limits, Stale, plan_rebalance
from evenkeel.core import arrivals, messages
from evenkeel.core.effects import ImproveSet
from evenkeel.core.state import OPEN_S, QUIET_S
from evenkeel.model import PlacementWish, Schedule
from evenkeel.settings import Settings

HOUR_S = 3600
DAY_S = 86_400
IMPROVED = "improved before its first run"
RARELY = Settings(loop_interval_s=60)


def a_set(count: int = 12, *, weights: Iterable[int] = (40, 1, 1, 9), **changes) -> list[Schedule]:
    """Intervals of two and six hours with weights for which the order of placing matters."""
    kinds = list(weights)
    return [
        every(
            (2 if n % 3 else 6) * HOUR_S,
            offset_s=None,
            name=f"job-{n}",
            placement=PlacementWish(weight=kinds[n % len(kinds)]),
            **changes,
        )
        for n in range(count)
    ]


def apply(world: World, given: Iterable[Schedule]) -> World:
    for each in given:
        world.see(each)
    return world


def anchors(world: World, given: Iterable[Schedule]) -> dict[str, str]:
    return {each.name: world.status(each)["placement"]["anchor"] for each in given}


def improved(world: World, given: Iterable[Schedule]) -> list[str]:
    """The names of those whose reason says that the set was improved."""
    return [each.name for each in given if IMPROVED in world.status(each)["placement"]["reason"]]


def peak_to_mean(world: World) -> float:
    return world.scheduler.state.load.distribution(int(world.now)).peak_to_mean


def first_runs(world: World, given: Iterable[Schedule]) -> dict[str, int]:
    return {each.name: instant(world.started(each.name)[0]) for each in given}


def test_each_is_placed_at_once_and_the_set_is_improved_after_five_seconds_of_quiet():
    given = a_set(40)
    world = apply(World(), given).run_until(instant("10:00") + QUIET_S - 1)
    before = anchors(world, given)
    assert improved(world, given) == []
    world.run_until(instant("10:00") + QUIET_S + 1)
    moved = improved(world, given)
    assert moved
    after = anchors(world, given)
    assert {name for name in after if after[name] != before[name]} == set(moved)


def test_the_set_is_as_even_as_a_rebalance_makes_it():
    world = apply(World(settings=RARELY), given := a_set(60)).run_until("10:01")
    assert improved(world, given)
    load, now = world.scheduler.state.load, int(world.now)
    plan = plan_rebalance(load, now, Limits(pre_schedule_s=10))
    assert peak_to_mean(world) <= plan.projected.peak_to_mean * 1.02


def test_every_first_run_lies_within_one_interval_of_the_creation():
    world = apply(World(settings=RARELY), given := a_set(40)).run_until("16:01")
    every_s = {each.name: each.timing.rule.every_s for each in given}
    for name, first in first_runs(world, given).items():
        assert instant("10:00") < first <= instant("10:00") + every_s[name] + 1


def test_no_run_is_lost_or_doubled_by_an_improvement():
    world = apply(World(settings=RARELY), given := a_set(40)).run_until("+1d 10:00")
    for each in given:
        started = [instant(moment) for moment in world.started(each.name)]
        every_s = each.timing.rule.every_s
        assert started == [started[0] + k * every_s for k in range(len(started))]
        assert len(started) in (DAY_S // every_s, DAY_S // every_s - 1)
        assert not world.status(each).get("counts", {}).get("missed")


def test_the_event_and_the_log_say_it():
    world = apply(World(), given := a_set(40)).run_until("10:00:10")
    said = [text for text in world.said("Moved") if IMPROVED in text]
    assert len(said) == len(improved(world, given)) > 0


def test_a_schedule_that_is_due_within_a_minute_stays():
    soon = every(60, offset_s=None, name="soon")
    world = apply(World(), [*(given := a_set(40)), soon]).run_until("10:00:10")
    assert improved(world, given)
    assert improved(world, [soon]) == []


def test_a_schedule_that_has_run_stays():
    early = every(2 * HOUR_S, offset_s=None, name="early")
    world = World(settings=RARELY).see(early).run_until("12:01")
    kept = anchors(world, [early])
    assert world.started("early")
    late = a_set(40, created=instant("12:01"))
    apply(world, late).run_until("12:02")
    assert improved(world, late)
    assert anchors(world, [early]) == kept


def test_a_pinned_schedule_stays():
    pinned = every(
        2 * HOUR_S, offset_s=None, name="pinned", placement=PlacementWish(weight=40, pinned=True)
    )
    world = World().see(pinned)
    kept = anchors(world.run_until("10:00:01"), [pinned])
    apply(world, given := a_set(40)).run_until("10:00:10")
    assert improved(world, given)
    assert anchors(world, [pinned]) == kept


def test_with_fixed_schedules_alone_there_is_no_set():
    world = World().see(cron("*/5 * * * *")).run_until("10:00:30")
    assert not world.scheduler.state.arrivals.members


def test_one_schedule_alone_is_no_set():
    world = World().see(alone := every(HOUR_S, offset_s=None)).run_until("10:00:30")
    assert improved(world, [alone]) == []
    assert not world.scheduler.state.arrivals.members


def test_while_schedules_come_all_the_time_the_set_is_improved_and_stays_open():
    world, given = World(), a_set(45)
    for n, each in enumerate(given):  # one a second
        world.run_until(instant("10:00") + n).see(each)
        if n == OPEN_S + 2:
            assert improved(world, given[: n - 2])
            assert world.scheduler.state.arrivals.members
    world.run_until(instant("10:00") + len(given) + QUIET_S + 1)
    assert not world.scheduler.state.arrivals.members
    plan = plan_rebalance(world.scheduler.state.load, int(world.now), Limits(pre_schedule_s=10))
    assert peak_to_mean(world) <= plan.projected.peak_to_mean * 1.02


def test_each_improvement_of_an_open_set_comes_after_twice_the_time():
    world, given = World(settings=RARELY), a_set(75)
    searches = []
    real = world._carry_out

    def count(effect):
        if isinstance(effect, ImproveSet):
            searches.append(round(world.now - instant("10:00")))
        real(effect)

    world._carry_out = count
    for n, each in enumerate(given):  # one every four seconds, for five minutes
        world.run_until(instant("10:00") + 4 * n).see(each)
    assert [round(at, -1) for at in searches] == [30, 90, 210]
    world.run_until(world.now + 1)
    assert 60 < world.scheduler.sizes()["schedules that arrived together"] <= len(given)
    world.gone(given[0])
    world.run_until(instant("10:00") + 4 * len(given) + 10)
    assert world.scheduler.sizes()["schedules that arrived together"] == 0


def test_who_is_gone_or_has_run_is_no_member_of_an_open_set_any_more():
    world, given = World(settings=RARELY), a_set(12)
    quick = every(60, offset_s=None, name="quick")
    world.see(quick)
    for n, each in enumerate(given):
        world.run_until(instant("10:00") + 4 * n).see(each)
        if n == 2:
            world.gone(given[0])
    world.run_until(world.now + 1)
    assert 32 < world.now - instant("10:00") < 60
    assert given[0].uid not in world.scheduler.state.arrivals.members
    assert world.scheduler.sizes()["schedules that arrived together"] == len(given) - 1
    for n in range(20):
        late = every(HOUR_S, offset_s=None, name=f"late-{n}")
        world.run_until(world.now + 4).see(late)
    assert world.started("quick")
    assert quick.uid not in world.scheduler.state.arrivals.members


def test_a_name_that_came_back_during_the_search_keeps_its_own_phase():
    given = a_set(40)
    world = apply(World(), given).run_until("10:00:04")
    held = []
    real = world._carry_out
    world._carry_out = lambda effect: (
        held.append(effect) if isinstance(effect, ImproveSet) else real(effect)
    )
    world.run_until("10:00:06")
    world._carry_out = real
    moved = {key for _, (key) in enumerate(held[0].latest)}
    assert len(moved) == len(given)
    before = anchors(world, given)
    again = []
    for each in given:
        world.gone(each)
        again.append(replace(each, uid=f"again-{each.name}", created=int(world.now)))
    apply(world, again).run_until("10:00:07")
    real(held[0])
    world.run_until("10:00:09")
    for each in again:
        was, now = rfc3339.read(before[each.name]), rfc3339.read(anchors(world, [each])[each.name])
        assert (was - now) % each.timing.rule.every_s == 0


def test_a_rebalance_is_refused_while_a_set_is_being_improved():
    given = a_set(40)
    world = apply(World(settings=Settings(placement_cooldown_s=0)), given).run_until("10:00:04")
    real = world._carry_out
    held = []
    world._carry_out = lambda effect: (
        held.append(effect) if isinstance(effect, ImproveSet) else real(effect)
    )
    world.run_until("10:00:06")
    assert held
    answer = world.ask(messages.Rebalance)
    assert isinstance(answer, Stale)
    assert "arrived together" in answer.sentence


def test_a_restart_ends_the_set():
    world = apply(World(), given := a_set(40)).run_until("10:00:03")
    before = anchors(world, given)
    world.crash()
    world.run_until("10:01")
    assert anchors(world, given) == before
    assert improved(world, given) == []


def test_schedules_without_a_phase_at_a_start_are_a_set():
    world = apply(World(writes=False), given := a_set(40))
    world.writes = True
    world.crash()
    world.run_until("10:00:10")
    assert improved(world, given)


def test_one_that_is_deleted_or_edited_during_the_search_is_left_alone():
    given = a_set(40)
    world = apply(World(), given).run_until("10:00:04")
    held = []
    real = world._carry_out

    def hold(effect):
        held.append(effect) if isinstance(effect, ImproveSet) else real(effect)

    world._carry_out = hold
    world.run_until("10:00:06")
    assert len(held) == 1
    world.gone(given[0])
    world.see(edited(given[1], placement=PlacementWish(weight=7)))
    world._carry_out = real
    world.run_until("10:00:07")
    replaced = anchors(world, [given[1]])
    real(held[0])
    world.run_until("10:00:08")
    assert anchors(world, [given[1]]) == replaced
    assert improved(world, given[2:])


def test_in_observe_mode_phases_stay_where_the_hash_puts_them():
    world = apply(World(settings=Settings(placement_mode="Observe")), given := a_set(40))
    before = anchors(world.run_until("10:00:01"), given)
    assert anchors(world.run_until("10:01"), given) == before


def test_a_name_that_came_back_keeps_its_own_phase():
    given = a_set(40)
    world = apply(World(settings=RARELY), given).run_until("10:01")
    kept = anchors(world, given)
    for each in given:
        world.gone(each)
    again = [
        replace(each, uid=f"again-{each.name}") for each in a_set(40, created=instant("10:02"))
    ]
    apply(world.run_until("10:02"), again).run_until("10:03")
    found = anchors(world, again)
    every_s = {each.name: each.timing.rule.every_s for each in given}
    for name in kept:
        a, b = rfc3339.read(kept[name]), rfc3339.read(found[name])
        assert (a - b) % every_s[name] == 0


@pytest.mark.parametrize("order", [1, -1])
def test_the_order_in_which_they_come_does_not_matter_for_the_evenness(order: int):
    world = apply(World(settings=RARELY), a_set(60)[::order]).run_until("10:01")
    plan = plan_rebalance(world.scheduler.state.load, int(world.now), Limits(pre_schedule_s=10))
    assert peak_to_mean(world) <= plan.projected.peak_to_mean * 1.02


def test_during_a_shutdown_nothing_is_improved():
    world = apply(World(), given := a_set(40)).run_until("10:00:03")
    before = anchors(world, given)
    world.tell(messages.Shutdown()).run_until("10:01")
    assert anchors(world, given) == before


def test_a_set_that_is_too_large_stays_as_it_was_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "IMPROVED_AT_MOST", 39)
    world = apply(World(), given := a_set(40))
    before = anchors(world.run_until("10:00:01"), given)
    assert anchors(world.run_until("10:00:10"), given) == before
    apply(
        world,
        more := [replace(each, uid=f"b-{each.name}", name=f"b-{each.name}") for each in given[:20]],
    )
    assert improved(world.run_until("10:00:20"), more)
