"""A rebalance in the scheduler: shown, refused when it no longer fits, carried out in bites."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from tests.builders import cron, edited, every, instant
from tests.unit.core.world import World

from evenkeel.balance import Plan, Stale
from evenkeel.core import effects, moving, route
from evenkeel.core.messages import PreviewRebalance, Rebalance, Shutdown
from evenkeel.core.schedule import life
from evenkeel.model import Instant, JobState, MissedRuns, Schedule
from evenkeel.resource.record import EMPTY, Placed
from evenkeel.settings import Settings

FOUR_HOURS_S = 4 * 3600
COUNT = 50


def crowded(count: int = COUNT, **changes: Any) -> tuple[World, list[Schedule]]:
    """Every four hours each, and all in one slot: due at 10:00, and next at 14:00."""
    world = World(Settings(loop_interval_s=10))
    crowd = [every(FOUR_HOURS_S, offset_s=None, name=f"j{n:02}", **changes) for n in range(count)]
    for n, each in enumerate(crowd):
        began = instant("10:00") - 2 * FOUR_HOURS_S
        placed = Placed(
            anchor=began + n,
            every_s=FOUR_HOURS_S,
            placed_at=began,
            slot=40,
            window=None,
            reason="placed",
            load=count,
        )
        mark = instant("10:00") - 1
        world.see(replace(each, created=began), replace(EMPTY, placed=placed, mark=mark))
    world.at("10:01")
    for fact in list(world.jobs.values()):
        world.change(fact, state=JobState.SUCCEEDED, finished=int(world.now))
    world.stall_until("12:05")
    world.told.clear()
    world.logged.clear()
    return world, crowd


def anchors(world: World, crowd: list[Schedule]) -> dict[str, Instant]:
    entries = world.scheduler.state.entries
    found = {}
    for each in crowd:
        if (entry := entries.get(each.uid)) is not None and entry.placed is not None:
            found[each.key] = entry.placed.anchor
    return found


def preview(world: World) -> Plan:
    plan = world.ask(PreviewRebalance)
    assert isinstance(plan, Plan)
    return plan


def rebalance(world: World, plan_id: str | None = None) -> Plan | Stale:
    answer = world.ask(lambda ask: Rebalance(ask, plan_id))
    assert isinstance(answer, Plan | Stale)
    return answer


def begun(world: World) -> object:
    """A rebalance that has had its first bite, and who asked for it."""
    asked = object()
    assert world.scheduler.inbox.offer(Rebalance(asked, preview(world).plan_id))
    world.step()
    assert len(world.said("Moved")) == moving.MOVES_PER_STEP
    return asked


def skipped(plan: Plan) -> dict[str, str]:
    return {skip.key: skip.reason for skip in plan.skipped}


def test_a_preview_moves_nothing():
    world, crowd = crowded()
    before = anchors(world, crowd)

    plan = preview(world)

    assert len(plan.moves) > 2 * moving.MOVES_PER_STEP
    assert plan.projected_score > plan.current_score
    assert anchors(world, crowd) == before
    assert world.said("Moved") == []


def test_a_confirmed_plan_is_carried_out_as_it_was_shown():
    world, crowd = crowded()
    before = anchors(world, crowd)
    shown = preview(world)

    done = rebalance(world, shown.plan_id)

    assert isinstance(done, Plan)
    assert done.moves == shown.moves
    assert skipped(done) == skipped(shown)
    assert anchors(world, crowd) == before | {move.key: move.new_anchor for move in shown.moves}
    for move in shown.moves:
        uid = world.scheduler.state.uid_by_key[move.key]
        assert instant(world.statuses[uid]["placement"]["anchor"]) == move.new_anchor
        assert instant(world.statuses[uid]["nextRunTime"]) == move.proposed_time
        assert world.statuses[uid]["placement"]["load"] == move.load
    assert world.scheduler.state.load.distribution(int(world.now)) == done.projected


@pytest.mark.parametrize("crashes_after_s", [None, 0, 20])
def test_what_a_new_phase_has_before_the_move_never_runs(crashes_after_s):
    """Their anchors stand before the current slot, so that they count in all of it."""
    world = World(Settings(loop_interval_s=10))
    crowd = [
        every(300, offset_s=None, name=f"j{n:02}", missed_runs=MissedRuns.ALL) for n in range(20)
    ]
    began = instant("10:00")
    for n, each in enumerate(crowd):
        placed = Placed(anchor=began + n, every_s=300, placed_at=began, slot=40, reason="placed")
        world.see(replace(each, created=began), replace(EMPTY, placed=placed, mark=began))
    world.run_until("11:07")
    for fact in list(world.jobs.values()):
        world.change(fact, state=JobState.SUCCEEDED, finished=int(world.now))
    plan = rebalance(world)
    assert isinstance(plan, Plan)
    now = int(world.now)
    before = [move for move in plan.moves if move.new_anchor + 300 <= now]
    assert before
    if crashes_after_s is not None:
        world.crash(for_s=crashes_after_s)

    world.run_until("11:25")

    until = instant("11:25")
    for move in before:
        name = move.key.partition("/")[2]
        ran = [instant(due) for due in world.started(name) if instant(due) > now]
        assert ran == list(range(move.proposed_time, until + 1, 300))
        assert set(world.counts(name)) <= {"succeeded"}


def test_a_rebalance_is_counted_logged_and_told():
    world, _ = crowded()
    world.observed.clear()

    done = rebalance(world)

    assert isinstance(done, Plan)
    numbers = [(each.metric, each.value) for each in world.observed]
    assert ("rebalanced", 1) in numbers
    assert ("rebalance_moved", len(done.moves)) in numbers
    assert ("rebalance_skipped", len(done.skipped)) in numbers
    assert numbers.count(("placed_rebalance", 1)) == len(done.moves) == len(world.said("Moved"))
    lines = [line for line in world.logged if line.event == "full rebalance completed"]
    assert [(line.fields["moved"], line.fields["skipped"]) for line in lines] == [
        (len(done.moves), len(done.skipped))
    ]
    left = [
        (line.level, line.fields["job_id"], line.fields["reason"])
        for line in world.logged
        if line.event == "job skipped during rebalance"
    ]
    assert left == [("warning", skip.key, skip.reason) for skip in done.skipped]


def test_a_plan_is_carried_out_once():
    world, _ = crowded()
    shown = preview(world)
    rebalance(world, shown.plan_id)

    again = rebalance(world, shown.plan_id)

    assert again == Stale("no such plan is known any more; ask for a new preview")


def test_a_plan_for_other_phases_is_refused():
    world, crowd = crowded()
    shown = preview(world)
    world.see(edited(crowd[3], suspend=True))
    before = anchors(world, crowd)

    refused = rebalance(world, shown.plan_id)

    assert isinstance(refused, Stale)
    assert "since; ask for a new preview" in refused.sentence
    assert anchors(world, crowd) == before


def test_more_plans_than_can_be_remembered_forget_the_oldest(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(moving, "PLANS_LIMIT", 1)
    world, crowd = crowded()
    oldest = preview(world)
    world.see(edited(crowd[3], suspend=True))
    newest = preview(world)

    assert isinstance(rebalance(world, oldest.plan_id), Stale)
    assert isinstance(rebalance(world, newest.plan_id), Plan)


def test_with_many_schedules_search_and_proof_are_made_away_from_the_loop(
    monkeypatch: pytest.MonkeyPatch,
):
    world, crowd = crowded()
    inline = preview(world)
    monkeypatch.setattr(moving, "INLINE_PLACED", 10)
    assert world.scheduler.inbox.offer(PreviewRebalance(object()))
    assert effects.PlanRebalance in map(type, world.step())
    world.settle()
    away = preview(world)
    assert (away.plan_id, away.moves) == (inline.plan_id, inline.moves)
    assert world.scheduler.inbox.offer(Rebalance(object(), away.plan_id))
    assert effects.ConfirmRebalance in map(type, world.step())
    world.settle()

    moved = {move.key: move.new_anchor for move in inline.moves}
    assert anchors(world, crowd) | moved == anchors(world, crowd)


def test_a_rebalance_takes_a_bite_a_step_and_lets_due_runs_go_between():
    world, _ = crowded()
    world.see(cron("6 12 * * *", name="due"))
    world.stall_until("12:05:59")
    asked = begun(world)
    bites = [moving.MOVES_PER_STEP]
    world.now = float(instant("12:06"))

    while world.wake_at <= world.now:
        world.step()
        bites.append(len(world.said("Moved")))
        assert world.started("due") == ["12:06:00"]

    assert len(bites) > 2
    assert max(b - a for a, b in itertools.pairwise(bites)) <= moving.MOVES_PER_STEP
    assert bites[-1] == len(world.answers[asked].moves)


def ahead(world: World) -> Schedule:
    """Somebody whose move is still to come."""
    state = world.scheduler.state
    assert state.moving is not None
    schedule = world.schedules[state.uid_by_key[state.moving.ahead[0].key]]
    assert isinstance(schedule, Schedule)
    return schedule


def test_who_was_suspended_before_his_bite_is_not_moved():
    world, crowd = crowded()
    before = anchors(world, crowd)
    asked = begun(world)
    schedule = ahead(world)

    world.see(edited(schedule, suspend=True))

    done = world.answers[asked]
    assert isinstance(done, Plan)
    assert schedule.key not in {move.key for move in done.moves} | set(skipped(done))
    assert anchors(world, crowd)[schedule.key] == before[schedule.key]
    assert done.projected == world.scheduler.state.load.distribution(int(world.now))


def test_who_was_deleted_before_his_bite_is_left_out():
    world, _ = crowded()
    asked = begun(world)
    schedule = ahead(world)

    world.gone(schedule)

    done = world.answers[asked]
    assert schedule.key not in {move.key for move in done.moves} | set(skipped(done))


def test_who_was_pinned_before_his_bite_stays():
    world, crowd = crowded()
    before = anchors(world, crowd)
    asked = begun(world)
    schedule = ahead(world)

    world.see(edited(schedule, placement=replace(schedule.placement, pinned=True)))

    assert skipped(world.answers[asked])[schedule.key] == "pinned"
    assert anchors(world, crowd)[schedule.key] == before[schedule.key]


def test_who_was_placed_anew_before_his_bite_keeps_the_new_place():
    world, _ = crowded()
    asked = begun(world)
    schedule = ahead(world)

    world.see(edited(schedule, placement=replace(schedule.placement, weight=3)))

    assert skipped(world.answers[asked])[schedule.key] == "placement_cooldown"
    entry = world.scheduler.state.entries[schedule.uid]
    assert entry.placed is not None
    assert entry.placed.weight == 3
    assert entry.placed.reason in world.said("Placed")


def test_who_has_begun_to_run_before_his_bite_stays():
    world, crowd = crowded()
    before = anchors(world, crowd)
    asked = begun(world)
    schedule = ahead(world)
    entry = world.scheduler.state.entries[schedule.uid]

    route.call(world.scheduler.state, entry.uid, life.open_run, int(world.now))
    world.settle()

    assert skipped(world.answers[asked])[schedule.key] == "job_running"
    assert anchors(world, crowd)[schedule.key] == before[schedule.key]


def test_one_rebalance_at_a_time():
    world, _ = crowded()
    shown = preview(world)
    assert world.scheduler.inbox.offer(Rebalance("first", shown.plan_id))
    assert world.scheduler.inbox.offer(Rebalance("second"))

    world.settle()

    assert isinstance(world.answers["first"], Plan)
    assert world.answers["second"] == Stale(moving.ANOTHER)


def test_a_shutdown_ends_a_rebalance_first():
    world, _ = crowded()
    asked = begun(world)

    world.tell(Shutdown())

    assert world.stopped
    done = world.answers[asked]
    assert isinstance(done, Plan)
    assert len(done.moves) == len(world.said("Moved")) > 2 * moving.MOVES_PER_STEP


def test_nothing_is_moved_by_a_clock_that_is_not_believed():
    world, _ = crowded()
    begun(world)
    world.set_clock("+9d 12:05")
    moved = len(world.said("Moved"))

    world.settle()

    assert world.scheduler.state.doubts_clock
    assert len(world.said("Moved")) == moved


def test_a_crash_in_the_middle_leaves_each_with_one_whole_phase():
    world, crowd = crowded()
    before = anchors(world, crowd)
    shown = preview(world)
    assert world.scheduler.inbox.offer(Rebalance(object(), shown.plan_id))
    world.step()
    after = before | {move.key: move.new_anchor for move in shown.moves}

    world.crash()

    found = anchors(world, crowd)
    assert all(found[key] in (before[key], after[key]) for key in before)
    assert found not in (before, after)


@pytest.mark.parametrize("crash", [False, True])
def test_a_rebalance_loses_and_doubles_no_run(crash: bool):
    world, crowd = crowded()
    begun(world)
    if crash:
        world.crash()
    world.at("+1d 04:05")
    for each in crowd:
        runs = [run.due for run, _, _ in world.creations if run.uid == each.uid]
        gaps = [b - a for a, b in itertools.pairwise(runs)]
        assert FOUR_HOURS_S // 2 <= gaps[0] <= FOUR_HOURS_S * 3 // 2
        assert set(gaps[1:]) == {FOUR_HOURS_S}
        assert len(runs) >= 4


def test_a_moved_schedule_cools_down():
    world, _ = crowded()
    done = rebalance(world)
    assert isinstance(done, Plan)
    again = preview(world)
    soon = [move.key for move in done.moves if move.proposed_time < world.now + 1800]
    assert again.moves == ()
    assert {skipped(again)[key] for key in soon} == {"protection_window"}
    assert {skipped(again)[move.key] for move in done.moves if move.key not in soon} == {
        "placement_cooldown"
    }


def test_one_whose_job_runs_is_not_moved():
    world, crowd = crowded()
    world.run_until("14:01")
    plan = preview(world)
    assert skipped(plan) == {each.key: "job_running" for each in crowd}
    assert plan.moves == ()
