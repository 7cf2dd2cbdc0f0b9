"""Schedules that are seen before the Jobs were listed, or shown once more after they went."""

from dataclasses import replace

from tests.builders import cron, every
from tests.unit.core.world import World

from evenkeel.core import messages
from evenkeel.core.scheduler import Scheduler
from evenkeel.resource.record import EMPTY

# --- seen before the Jobs were listed ---------------------------------------------------------


def early(*seen):
    """A start at which nobody has listed the Jobs yet."""
    world = World()
    world.scheduler = Scheduler(world.settings)
    for each in seen:
        world.scheduler.inbox.hint(each.uid, messages.ScheduleSeen(each, EMPTY))
    world.settle()
    return world


def test_a_schedule_that_went_before_the_jobs_were_listed_never_runs():
    world = early(every(60)).run_until("10:00:05")
    world.schedules_listed()
    world.settle()
    world.jobs_listed()
    assert world.run_until("10:02:30").started() == []


def test_of_two_of_one_name_the_later_sight_is_the_one_that_is_there():
    old = every(600, offset_s=None)  # is placed, and so comes after all that is not
    new = replace(cron("* * * * *"), uid="uid-new")
    world = early(old, new)
    world.jobs_listed()
    world.settle()
    assert list(world.scheduler.state.entries) == ["uid-new"]


# --- seen after it went -----------------------------------------------------------------------


def test_a_watch_that_lags_does_not_bring_a_schedule_back_that_a_list_did_not_show():
    seen = every(60)
    world = World().see(seen).run_until("10:01:30")
    world.gone(seen)
    world.scheduler.inbox.hint(seen.uid, messages.ScheduleSeen(seen, EMPTY))
    world.run_until("10:05")
    assert world.started() == ["10:01:00"]
    assert not world.scheduler.state.entries


def test_a_deletion_is_not_remembered_for_ever():
    seen = every(60)
    world = World().see(seen).run_until("10:01:30")
    world.gone(seen)
    world.run_until("10:01:30").run_until("10:11:32")
    assert not world.scheduler.state.gone


def test_one_that_took_the_name_of_another_is_not_taken_for_gone_when_the_other_is_shown_late():
    old, new = every(60), replace(every(60), uid="uid-new")
    world = World().see(old).see(new).see(old).see(new).run_until("10:01:30")
    assert world.started("new") == ["10:01:00"]


# --- the resource is removed ------------------------------------------------------------------


def test_all_schedules_are_forgotten_with_their_resource_and_may_come_back():
    """Where only the CRD was taken away, and their data stayed, their uids are the same."""
    first, second = every(60), every(60, name="other")
    world = World().see(first).see(second).run_until("10:01:30")
    world.tell(messages.ResourceRemoved())
    assert not world.scheduler.state.entries
    created = len(world.creations)
    world.run_until("10:05:30")
    assert len(world.creations) == created

    world.see(first).run_until("10:06:30")
    assert world.started()[-1] == "10:06:00"


def test_a_schedule_that_was_not_admitted_yet_is_forgotten_too():
    world = early(every(60))
    world.tell(messages.ResourceRemoved())
    world.jobs_listed()
    world.schedules_listed()
    world.settle()
    assert world.run_until("10:02:30").started() == []
