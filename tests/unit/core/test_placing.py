"""A phase is chosen once and kept; it is left only on purpose, and no run is lost by it."""

from dataclasses import replace

import pytest
from tests.builders import clock, cron, edited, every, instant, rejection
from tests.unit.core.world import World

from evenkeel import rfc3339
from evenkeel.core import messages
from evenkeel.model import Cron, Interval, PlacementWish, Window
from evenkeel.settings import Settings

HOUR_S = 3600
DAY_S = 86_400
RARELY = Settings(loop_interval_s=60)
"""For days: runs are on time however rarely the loop wakes."""


def hourly(**changes):
    """An interval whose phase is the operator's to choose."""
    return every(HOUR_S, offset_s=None, **changes)


def anchor(world: World, name: str = "report") -> int:
    found = rfc3339.read(world.status(name)["placement"]["anchor"])
    assert found is not None
    return found


def phase(world: World, name: str = "report") -> int:
    return anchor(world, name) % HOUR_S


def crowd(world: World, minute: int) -> None:
    """From now on any other minute is better than this one."""
    world.see(cron(f"{minute} * * * *", name="crowd", placement=PlacementWish(weight=1000)))


def heaviest_slot(world: World) -> int:
    return world.scheduler.state.load.distribution(int(world.now)).peak


def test_it_runs_by_its_phase_and_keeps_it_over_a_restart():
    world = World(settings=RARELY).see(hourly()).run_until("13:00")
    first = instant(world.started()[0])
    assert world.started() == [clock(first + k * HOUR_S) for k in range(3)]
    kept = anchor(world)
    crowd(world, first // 60 % 60)
    world.crash()
    assert anchor(world) == kept
    world.run_until("14:00")
    assert world.started()[-1] == clock(first + 3 * HOUR_S)


def test_deleted_and_applied_again_within_a_day_it_gets_its_phase_back():
    seen = hourly()
    world = World(settings=RARELY).see(seen).run_until("10:30")
    kept = phase(world)
    world.gone(seen)
    crowd(world, kept // 60)
    world.run_until("18:00").see(hourly(uid="uid-again", created=instant("18:00")))
    assert phase(world, "again") == kept


def test_applied_again_after_more_than_a_day_it_is_placed_as_new():
    seen = hourly()
    world = World(settings=RARELY).see(seen).run_until("10:30")
    kept = phase(world)
    world.gone(seen)
    crowd(world, kept // 60)
    world.run_until("+1d 10:31").see(hourly(uid="uid-again", created=instant("+1d 10:31")))
    assert phase(world, "again") != kept


EDITS = {
    "its interval": {"rule": every(2 * HOUR_S, offset_s=None).timing.rule},
    "its weight": {"placement": PlacementWish(weight=3)},
    "its weight, which it weighed before": {"placement": PlacementWish(weight=1)},
}


@pytest.mark.parametrize("change", EDITS.values(), ids=EDITS)
def test_it_is_placed_afresh_by_an_edit_of(change):
    seen = hourly()
    world = World().see(seen).run_until("10:30")
    crowd(world, phase(world) // 60)
    kept = phase(world)
    world.see(edited(seen, **change))
    assert phase(world) != kept
    assert world.status()["placement"]["placedAt"] == "2026-03-02T10:30:00Z"
    assert len(world.said("Placed")) == 2


def test_it_is_placed_afresh_by_an_edit_of_its_window():
    night = Window(22 * HOUR_S, 6 * HOUR_S)
    seen = every(DAY_S, offset_s=None, placement=PlacementWish(window=Window(0, DAY_S // 2)))
    world = World(settings=RARELY).see(seen)
    world.see(edited(seen, placement=PlacementWish(window=night)))
    world.run_until("+2d 10:00")
    hours = {instant(due) % DAY_S // HOUR_S for due in world.started()}
    assert hours <= {22, 23, 0, 1, 2, 3, 4, 5}


def test_another_edit_leaves_its_phase():
    seen = hourly()
    world = World().see(seen).run_until("10:30")
    kept = anchor(world)
    crowd(world, phase(world) // 60)
    world.see(edited(seen, template_hash="second", priority=7))
    assert anchor(world) == kept


def test_a_derived_weight_that_changes_reweighs_and_moves_nothing():
    seen = hourly(weight_by_requests=20)
    world = World(Settings(placement_weigh="Requests")).see(seen).run_until("10:30")
    assert heaviest_slot(world) == 20
    kept = anchor(world)
    crowd(world, phase(world) // 60)
    world.see(edited(seen, weight_by_requests=500, template_hash="second"))
    assert heaviest_slot(world) == 1500
    world.crash()
    assert anchor(world) == kept
    assert "weight" not in world.status()["placement"]


def test_by_runs_a_schedule_without_a_weight_weighs_one():
    assert heaviest_slot(World().see(hourly(weight_by_requests=20))) == 1


# --- after it was off -----------------------------------------------------------------------------

KEEP_S = Settings().placement_keep_on_resume_s
WEEK_LATER = "+7d 10:00"
MORE_THAN_A_WEEK_LATER = "+7d 10:00:01"


def of_a_setting(keep_s: float) -> World:
    """Its API server tells a process that begins after days that its clock is right."""
    settings = Settings(loop_interval_s=60, placement_keep_on_resume_s=keep_s)
    return World(settings=settings, clock_is_confirmed=True)


@pytest.mark.parametrize(
    ("keep_s", "resumed", "keeps"),
    [
        (KEEP_S, "10:30", True),
        (KEEP_S, WEEK_LATER, True),
        (KEEP_S, MORE_THAN_A_WEEK_LATER, False),
        (1800, "10:30", True),
        (1800, "10:30:01", False),
        (0, "10:00", False),
        (0, "10:30", False),
    ],
)
@pytest.mark.parametrize("restarted", [False, True])
def test_resumed_it_keeps_its_phase_if_it_was_off_for_no_longer_than_the_setting_says(
    keep_s, resumed, keeps, restarted
):
    seen = hourly()
    world = of_a_setting(keep_s).see(seen)
    kept = phase(world)
    world.see(edited(seen, suspend=True)).run_until(resumed)
    crowd(world, kept // 60)
    if restarted:
        world.schedules[seen.uid] = edited(edited(seen))
        world.crash()
    else:
        world.see(edited(edited(seen)))
    assert (phase(world) == kept) is keeps
    first = instant(world.status()["nextRunTime"])
    world.run_until(float(first))
    assert world.started() == [clock(first)]


@pytest.mark.parametrize(("edit_at", "keeps"), [("13:00", True), ("13:00:01", False)])
def test_paused_it_keeps_its_phase_likewise(edit_at, keeps):
    seen = hourly(pause_after_failures=1)
    world = of_a_setting(2 * HOUR_S).see(seen)
    kept = phase(world)
    world.run_until("11:00").fail(seen, world.started()[0])
    assert world.status()["state"] == "Paused"
    crowd(world, kept // 60)
    world.run_until(edit_at).see(edited(seen, template_hash="second"))
    assert world.status()["state"] == "Scheduled"
    assert (phase(world) == kept) is keeps


def test_suspended_while_paused_it_was_off_since_it_was_paused():
    seen = hourly(pause_after_failures=1)
    world = of_a_setting(2 * HOUR_S).see(seen)
    kept = phase(world)
    world.run_until("11:00").fail(seen, world.started()[0])
    crowd(world, kept // 60)
    world.run_until("12:30").see(edited(seen, suspend=True))
    world.run_until("13:30").see(edited(edited(seen)))
    assert phase(world) != kept


def test_with_a_timing_of_its_own_it_has_no_phase_any_more():
    seen = hourly()
    world = World().see(seen).see(edited(seen, rule=Cron("0 * * * *")))
    assert "placement" not in world.status()
    assert world.run_until("12:30").started() == ["11:00:00", "12:00:00"]


def test_a_window_that_holds_no_minute_is_a_condition_and_not_a_crash():
    narrow = PlacementWish(window=Window(HOUR_S + 1, HOUR_S + 30))
    world = World(settings=RARELY).see(every(DAY_S, offset_s=None, placement=narrow))
    assert world.condition("ScheduleAccepted")[0] == "False"
    assert world.condition("Ready")[0] == "False"
    assert world.run_until("+2d 10:00").started() == []


def test_those_that_need_a_phase_are_placed_after_a_restart_when_all_others_are_known():
    world = World()
    world.scheduler = type(world.scheduler)(world.settings)
    world.see(hourly()).see(cron("17 * * * *", name="fixed"))
    world.jobs_listed()
    world.settle()
    accepted = [
        line.fields["schedule"] for line in world.logged if line.event == "schedule accepted"
    ]
    assert accepted == ["shop/fixed", "shop/report"]


def test_in_observe_mode_the_load_has_no_say():
    settings = Settings(placement_mode="Observe")
    free = World(settings=settings).see(hourly())
    crowded = World(settings=settings)
    crowd(crowded, phase(free) // 60)
    crowded.see(hourly())
    assert phase(crowded) == phase(free)
    assert "Observe mode" in crowded.status()["placement"]["reason"]


def test_intervals_that_come_together_do_not_start_together():
    world = World()
    for n in range(8):
        world.see(hourly(name=f"j{n}"))
    firsts = [instant(world.status(f"j{n}")["nextRunTime"]) for n in range(8)]
    slots = [first // 900 for first in firsts]
    assert max(map(slots.count, slots)) == 2  # the four slots of an hour
    assert len(set(firsts)) == 8


def test_what_its_owner_timed_is_placed_around_and_never_moved():
    world = World().see(cron("20 * * * *", name="fixed", placement=PlacementWish(weight=100)))
    world.see(hourly())
    assert world.status("fixed")["nextRunTime"] == "2026-03-02T10:20:00Z"
    assert not 15 <= instant(world.status()["nextRunTime"]) % HOUR_S // 60 < 30
    assert "placement" not in world.status("fixed")


def test_suspended_from_the_start_it_has_no_phase_and_no_load():
    world = World().see(hourly(suspend=True))
    assert "placement" not in world.status()
    assert sum(world.scheduler.state.load.distribution(int(world.now)).slots) == 0


def test_a_fixed_offset_takes_the_phase_away():
    seen = hourly()
    world = World().see(seen)
    world.see(edited(seen, rule=Interval(HOUR_S, 300, instant("10:00"))))
    assert world.status().get("placement") is None
    assert world.status()["nextRunTime"] == "2026-03-02T11:05:00Z"


def test_what_was_due_by_the_old_phase_is_reckoned_before_the_new_one_counts():
    seen = every(600, offset_s=None)
    world = World().see(seen)
    due = instant(world.status()["nextRunTime"])
    world.now = due + 5.0
    world.monotonic += due + 5 - instant("10:00")
    world.see(edited(seen, rule=Interval(1200)))
    assert world.started() == [clock(due)]
    assert instant(world.status()["nextRunTime"]) > due + 5


def test_a_window_is_kept_to():
    wish = PlacementWish(window=Window(22 * HOUR_S, 6 * HOUR_S))
    world = World().see(every(DAY_S, offset_s=None, placement=wish))
    second = instant(world.status()["nextRunTime"]) % DAY_S
    assert second >= 22 * HOUR_S or second < 6 * HOUR_S


def test_a_rejected_edit_keeps_the_phase_for_the_edit_that_mends_it():
    seen = hourly()
    world = World().see(seen)
    before = anchor(world)
    world.see(rejection(seen)).run_until("10:05")
    world.see(edited(edited(seen)))
    assert anchor(world) == before


def test_phases_are_remembered_for_so_many_names_only(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("evenkeel.core.placing.REMEMBERED_LIMIT", 2)
    world = World()
    for n in range(4):
        world.see(hourly(name=f"j{n}"))
        world.gone(hourly(name=f"j{n}"))
    assert list(world.scheduler.state.phases) == ["shop/j2", "shop/j3"]


WISH = hourly().placement


def test_a_phase_of_the_far_future_in_a_status_is_not_believed():
    seen = hourly()
    world = World().see(seen)
    world.statuses[seen.uid]["placement"]["anchor"] = "2999-01-01T00:00:00Z"
    world.crash()
    assert instant("10:00") < instant(world.status()["nextRunTime"]) <= instant("11:00")


# --- the load -----------------------------------------------------------------------------------


def runs_of_the_day(world: World) -> int:
    found = world.ask(messages.GetDistribution)
    return sum(hour.run_count for hour in found.hourly)


def test_suspended_paused_rejected_and_deleted_schedules_are_no_load():
    seen = cron("0 * * * *", pause_after_failures=1)
    assert runs_of_the_day(World().see(seen)) == 24
    assert runs_of_the_day(World().see(seen).see(edited(seen, suspend=True))) == 0
    assert runs_of_the_day(World().see(seen).see(rejection(seen))) == 0
    world = World(settings=RARELY).see(seen).run_until("11:00")
    world.fail(seen, "11:00")
    assert world.condition("Active") == ("False", "Paused")
    assert runs_of_the_day(world) == 0
    gone = World().see(seen)
    gone.gone(seen)
    assert runs_of_the_day(gone) == 0


def test_a_run_prepared_by_the_old_phase_is_let_go_when_it_is_placed_afresh():
    seen = hourly()
    world = World().see(seen)
    by_the_old = anchor(world) + HOUR_S
    world.run_until(float(by_the_old - 5))
    assert world.prepared
    world.see(edited(seen, placement=PlacementWish(weight=5)))
    by_the_new = anchor(world) + HOUR_S
    world.run_until(float(by_the_new))
    assert world.started() == [clock(by_the_new)]
    assert by_the_new != by_the_old


def test_a_window_that_holds_no_minute_is_told_once():
    narrow = PlacementWish(window=Window(HOUR_S + 1, HOUR_S + 30))
    seen = every(DAY_S, offset_s=None, placement=narrow)
    world = World().see(seen)
    first = world.status()["conditions"]
    assert world.condition("Ready")[0] == "False"
    world.run_until("10:05").see(seen)
    assert world.status()["conditions"] == first
    assert len([told for told in world.told if told.warning]) == 1


def test_a_window_in_another_zone_is_another_window():
    nightly = PlacementWish(window=Window(22 * HOUR_S, 23 * HOUR_S))
    seen = every(DAY_S, offset_s=None, placement=nightly)
    world = World(settings=RARELY).see(seen).run_until("10:05")
    moved = edited(seen, timing=replace(seen.timing, zone="Asia/Tokyo"))
    world.see(moved).run_until("10:06")
    assert 13 * HOUR_S <= anchor(world) % DAY_S < 14 * HOUR_S
    world.crash()
    assert 13 * HOUR_S <= anchor(world) % DAY_S < 14 * HOUR_S
