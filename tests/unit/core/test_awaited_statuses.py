"""Whoever has just applied a spec waits for its first status; a restart makes nobody wait."""

import pytest
from tests.builders import cron, edited, rejection
from tests.unit.core.world import World

SCHEDULE = cron("*/5 * * * *")


def awaited(world: World) -> int:
    """How many statuses were asked for before others."""
    return sum(each.awaited for each in world.asked)


@pytest.mark.parametrize("seen", [SCHEDULE, rejection(SCHEDULE)], ids=["accepted", "rejected"])
def test_the_first_status_of_a_schedule_is_awaited(seen):
    assert awaited(World().see(seen)) == 1


@pytest.mark.parametrize(
    "edit", [edited(SCHEDULE), rejection(SCHEDULE)], ids=["accepted", "rejected"]
)
def test_the_first_status_after_an_edit_is_awaited_though_another_is_not_stored_yet(edit):
    world = World().see(SCHEDULE)
    world.writes = False
    world.run_until("10:06")
    assert awaited(world.see(edit)) == 2


def test_what_runs_bring_about_is_not_awaited():
    world = World().see(SCHEDULE).run_until("10:21")
    assert len(world.asked) > 3
    assert awaited(world) == 1


def test_after_a_restart_nobody_waits():
    world = World().see(SCHEDULE).run_until("10:06").crash().run_until("10:11")
    assert awaited(world) == 1


def test_after_a_restart_an_edit_that_came_meanwhile_is_awaited():
    world = World().see(SCHEDULE).run_until("10:06")
    world.schedules[SCHEDULE.uid] = edited(SCHEDULE)
    assert awaited(world.crash()) == 2
