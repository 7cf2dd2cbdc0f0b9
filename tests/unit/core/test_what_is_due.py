"""A due time t counts only if t > max(created, since, resumedAt, mark) and start <= t < end."""

import pytest
from tests.builders import cron, edited, every, instant, once, rejection
from tests.unit.core.world import World

from evenkeel.core import messages
from evenkeel.core.schedule import phase
from evenkeel.model import At, Cron, Interval, MissedRuns, RunState, Timing
from evenkeel.resource.record import Memory, Pause, RecentRun, Record

EVERY_FIVE_MINUTES = "*/5 * * * *"


def test_runs_start_exactly_at_their_due_times():
    world = World().see(cron(EVERY_FIVE_MINUTES)).run_until("10:16")
    assert [(at, run.due) for run, _, at in world.creations] == [
        (instant(due), instant(due)) for due in ("10:05", "10:10", "10:15")
    ]


def test_a_due_time_at_the_creation_itself_does_not_count():
    world = World().see(cron(EVERY_FIVE_MINUTES, created=instant("10:00"))).run_until("10:04")
    assert world.started() == []


def test_a_schedule_of_generation_1_seen_late_has_been_due_since_its_creation():
    world = World(now=instant("10:17")).see(cron(EVERY_FIVE_MINUTES, created=instant("10:00")))
    assert world.started() == ["10:15:00"]
    assert world.ends() == [("10:05:00..10:10:00 x2", "missed", "superseded")]


def test_a_schedule_first_seen_after_an_edit_fires_nothing_retroactively():
    seen = cron(EVERY_FIVE_MINUTES, created=instant("10:00"), generation=2)
    world = World(now=instant("10:17")).see(seen).run_until("10:21")
    assert world.started() == ["10:20:00"]
    assert world.ends() == []


def test_the_mark_is_a_bound_that_does_not_count_itself():
    memory = Memory(mark=instant("10:10"), timing=five_minutely(), timing_since=instant("10:00"))
    world = World(now=instant("10:10:20")).see(cron(EVERY_FIVE_MINUTES), memory)
    assert world.started() == []
    assert world.run_until("10:15").started() == ["10:15:00"]


def test_resumed_at_is_a_bound_that_does_not_count_itself():
    memory = Memory(
        timing=five_minutely(), timing_since=instant("10:00"), resumed_at=instant("10:15")
    )
    world = World(now=instant("10:15:10")).see(cron(EVERY_FIVE_MINUTES), memory).run_until("10:21")
    assert world.started() == ["10:20:00"]


def test_timing_since_is_a_bound_that_does_not_count_itself():
    memory = Memory(timing=five_minutely(), timing_since=instant("10:15"))
    world = World(now=instant("10:15:10")).see(cron(EVERY_FIVE_MINUTES), memory).run_until("10:21")
    assert world.started() == ["10:20:00"]


def five_minutely() -> Timing:
    return cron(EVERY_FIVE_MINUTES).timing


def test_start_time_counts_and_end_time_does_not():
    span = {"start": instant("10:10"), "end": instant("10:20")}
    world = World().see(cron(EVERY_FIVE_MINUTES, **span)).run_until("10:40")
    assert world.started() == ["10:10:00", "10:15:00"]
    assert world.condition("Active") == ("False", "Ended")


def test_an_interval_runs_one_period_after_its_anchor_and_never_at_it():
    world = World().see(every(420)).run_until("10:22")
    assert world.started() == ["10:07:00", "10:14:00", "10:21:00"]


def test_a_single_run_is_due_once_and_then_the_schedule_has_ended():
    world = World().see(once("10:03")).run_until("10:30")
    assert world.started() == ["10:03:00"]
    assert world.condition("Active") == ("False", "Ended")


def test_a_new_future_instant_runs_again():
    first = once("10:03")
    world = World().see(first).run_until("10:10")
    world.see(edited(first, rule=once("10:12").timing.rule)).run_until("10:20")
    assert world.started() == ["10:03:00", "10:12:00"]


def test_an_instant_past_at_creation_is_missed_and_said_so():
    world = World().see(once("09:00"))
    assert world.started() == []
    assert world.ends() == [("09:00:00", "missed", "past")]
    assert world.counts() == {"missed": 1}
    assert "09:00:00" in world.said("MissSchedule")[0]
    assert world.condition("Active") == ("False", "Ended")


def test_an_instant_past_at_creation_is_missed_once_whatever_restarts_follow():
    world = World().see(once("09:00")).crash().crash()
    assert world.counts() == {"missed": 1}


def test_an_instant_moved_into_the_past_by_an_edit_is_missed():
    first = once("11:00")
    world = World().see(first).run_until("10:30")
    world.see(edited(first, rule=once("10:15").timing.rule)).run_until("11:30")
    assert world.started() == []
    assert world.ends() == [("10:15:00", "missed", "past")]


def test_an_instant_moved_back_to_one_that_has_run_gets_no_second_verdict():
    first = once("10:03")
    world = World().see(first).run_until("10:04")
    world.succeed(first, "10:03")
    second = edited(first, rule=once("10:30").timing.rule)
    world.see(second).see(edited(second, rule=first.timing.rule)).run_until("10:40")
    assert world.ends() == [("10:03:00", "succeeded", "")]


# --- edits ------------------------------------------------------------------------------------


def test_an_edit_of_the_timing_counts_from_its_first_sight():
    old = cron("0 * * * *")
    world = World().see(old).run_until("10:32")
    world.see(edited(old, rule=Cron("*/10 * * * *"))).run_until("10:41")
    assert world.started() == ["10:40:00"]


def test_what_was_due_by_the_old_timing_is_recorded_before_the_new_one_counts():
    old = cron("*/10 * * * *", missed_runs=MissedRuns.SKIP)
    world = World().see(old)
    world.now = float(instant("10:25"))  # nobody looked; the edit is what wakes the operator
    world.see(edited(old, rule=Cron("*/7 * * * *"))).run_until("10:29")
    assert world.ends() == [("10:10:00..10:20:00 x2", "missed", "not_in_time")]
    assert world.started() == ["10:28:00"]


def test_an_edit_while_the_operator_was_away_does_not_void_what_the_old_timing_owes():
    old = cron("*/10 * * * *")
    world = World().see(old).run_until("10:12")
    world.schedules[old.uid] = edited(old, rule=Cron("*/7 * * * *"))
    world.crash(for_s=20 * 60)  # 10:32; owed: 10:20 and 10:30
    assert world.started() == ["10:10:00", "10:30:00"]
    assert world.ends() == [("10:20:00", "missed", "superseded")]


def test_an_edit_just_before_an_old_due_time_loses_no_new_one():
    old = cron("5 10 * * *")
    world = World().see(old).run_until("10:04:52")  # the run of 10:05 is prepared already
    world.see(edited(old, rule=Interval(60, 58, instant("10:03")))).run_until("10:05:30")
    assert world.started() == ["10:04:58"]


def test_a_crash_just_after_such_an_edit_loses_no_new_due_time_either():
    old = cron("5 10 * * *")
    world = World().see(old).run_until("10:04:52")
    world.see(edited(old, rule=Interval(60, 58, instant("10:03"))))
    world.crash(for_s=1).run_until("10:05:00")
    assert world.started() == ["10:04:58"]


def test_an_index_built_before_an_edit_starts_nothing_by_the_old_timing():
    old, just_before = every(60), instant("10:00:49")
    world = World().see(old).run_until(just_before + 0.8)
    world.see(cron("0 12 * * *", name="other")).run_until(just_before + 0.9)  # an index is built
    world.see(edited(old, rule=Cron("0 12 * * *")))
    world.run_until(just_before + 1.1)  # 10:01 comes into sight, and it is too soon for another
    assert world.run_until("10:02").started() == []


def test_an_index_that_is_being_built_aside_during_an_edit_is_not_asked_about_it(monkeypatch):
    monkeypatch.setattr("evenkeel.core.scheduler.INLINE_SCHEDULES", 0)
    old = every(60)
    world = World().see(old).run_until("10:00:45")
    aside: list[messages.Message] = []
    monkeypatch.setattr(world.scheduler.inbox, "hint", _aside(world, aside))
    world.see(cron("0 12 * * *", name="other")).run_until("10:00:49")
    world.see(edited(old, rule=Cron("0 12 * * *"))).run_until("10:00:52")
    world.scheduler.inbox.hint("index", aside[0])
    assert world.run_until("10:02").started() == []


def _aside(world, built):
    pass_on = world.scheduler.inbox.hint
    return lambda key, message: (
        built.append(message)
        if isinstance(message, messages.IndexBuilt) and not built
        else pass_on(key, message)
    )


def test_an_image_bump_touches_nothing_that_is_due():
    old = cron(EVERY_FIVE_MINUTES)
    world = World().see(old).run_until("10:07")
    world.see(edited(old, template_hash="second", template=b'{"spec":{"template":{}}}'))
    assert world.run_until("10:16").started() == ["10:05:00", "10:10:00", "10:15:00"]


def test_an_image_bump_between_a_missed_due_time_and_the_restart_does_not_void_the_catch_up():
    old = cron("0 * * * *")
    world = World().see(old).run_until("10:30")
    world.schedules[old.uid] = edited(old, template_hash="second")
    world.crash(for_s=45 * 60)  # 11:15
    assert world.started() == ["11:00:00"]


def test_a_prepared_run_whose_image_was_bumped_is_created_from_the_new_template():
    old = cron("5 10 * * *")
    world = World().see(old).run_until("10:04:55")
    assert world.prepared
    new = edited(old, template_hash="second", template=b'{"spec":{"template":{"new":1}}}')
    world.see(new).run_until("10:05")
    assert world.launches[0].schedule.template == new.template
    assert [each.schedule.template for each in world.prepared][-1] == new.template


def test_the_same_sight_twice_changes_nothing():
    seen = cron(EVERY_FIVE_MINUTES)
    world = World().see(seen)
    revision = world.scheduler.state.entries[seen.uid].storing.revision
    world.see(seen)
    assert world.scheduler.state.entries[seen.uid].storing.revision == revision


def test_an_older_list_after_a_newer_event_is_not_believed():
    old = cron(EVERY_FIVE_MINUTES)
    world = World().see(edited(old, rule=Cron("0 12 * * *"))).see(old).run_until("10:11")
    assert world.started() == []


FAR = instant("9999-01-01T00:00:00Z")


@pytest.mark.parametrize("field", ["mark", "timing_since", "resumed_at"])
def test_what_a_status_says_of_a_far_future_is_not_believed(field):
    """Edited by hand, it would silence the schedule for ever."""
    remembered = {"timing": five_minutely(), "timing_since": instant("10:00"), field: FAR}
    world = World(now=instant("10:01"), clock_is_confirmed=True)
    world.see(cron(EVERY_FIVE_MINUTES), Memory(**remembered))
    assert world.run_until("10:06").started() == ["10:05:00"]


def test_rows_of_recent_beyond_what_a_clock_may_be_off_are_not_believed():
    """By hand, ten rows of due times to come would silence a weekly schedule for ten weeks."""
    rows = [RecentRun(instant("10:05") + k * 604_800, RunState.SUCCEEDED) for k in range(1, 10)]
    weekly = every(604_800, anchor=instant("10:05") - 604_800)
    memory = Memory(timing=weekly.timing, record=Record(recent=rows), mark=instant("10:05"))
    world = World(now=instant("10:05") + 604_800 - 2 * 86_400).see(weekly, memory)
    world.run_until(instant("10:06") + 604_800)
    assert [run.due for run, _, _ in world.creations] == [instant("10:05") + 604_800]


def test_the_next_run_is_one_that_will_be():
    """A row of a due time to come says that it has ended: nothing runs then."""
    rows = [RecentRun(instant("10:05"), RunState.SUCCEEDED)]
    memory = Memory(timing=five_minutely(), record=Record(recent=rows), mark=instant("10:00"))
    world = World(now=instant("10:01")).see(cron(EVERY_FIVE_MINUTES), memory)
    assert world.status()["nextRunTime"] == "2026-03-02T10:10:00Z"
    assert world.run_until("10:11").started() == ["10:10:00"]


def test_times_of_the_future_in_a_status_count_as_now():
    record = Record(counts_since=FAR, last_schedule=FAR, last_success=FAR, last_failure=FAR)
    memory = Memory(timing=five_minutely(), record=record, pause=Pause(FAR, "somebody", "why"))
    world = World(now=instant("10:01"), clock_is_confirmed=True)
    status = world.see(cron(EVERY_FIVE_MINUTES), memory).status()
    now = "2026-03-02T10:01:00Z"
    for field in ("countsSince", "lastScheduleTime", "lastSuccessfulTime", "lastFailureTime"):
        assert status[field] == now, field
    assert status["pause"]["since"] == now


def test_the_creation_is_a_bound_whatever_a_status_from_before_it_remembers():
    """Restored from a backup, status and all."""
    memory = Memory(mark=instant("10:00"), timing=five_minutely(), timing_since=instant("10:00"))
    seen = cron(EVERY_FIVE_MINUTES, created=instant("10:12"))
    world = World(now=instant("10:12:30")).see(seen, memory).run_until("10:16")
    assert world.started() == ["10:15:00"]
    assert world.ends() == []


def test_an_instant_at_the_creation_itself_is_past():
    world = World().see(once("10:00"))
    assert world.ends() == [("10:00:00", "missed", "past")]


# --- what must not happen -------------------------------------------------------------------------


def test_a_next_due_time_that_is_not_later_pauses_that_schedule_and_no_other(monkeypatch):
    compile_in_force = phase.compile_in_force

    def stuck(entry):
        compile_in_force(entry)
        if entry.name == "report":
            entry.dues = _StandingStill(entry.dues)

    monkeypatch.setattr(phase, "compile_in_force", stuck)
    world = World().see(cron(EVERY_FIVE_MINUTES)).see(cron(EVERY_FIVE_MINUTES, name="other"))
    world.run_until("10:06")
    assert world.condition("Ready") == ("False", "NextNotLater")
    assert world.status()["pause"]["by"] == "evenkeel"
    assert (world.started(), world.started("other")) == ([], ["10:05:00"])


class _StandingStill:
    """Due times that were computed wrongly: the next of each is itself."""

    def __init__(self, dues):
        self._dues = dues

    def __getattr__(self, name):
        return getattr(self._dues, name)

    def next_after(self, t):
        return t


def test_a_schedule_that_nobody_foresaw_is_a_condition_and_disturbs_no_other(monkeypatch):
    compile_in_force = phase.compile_in_force

    def surprise(entry):
        if entry.name == "report":
            raise RuntimeError("nobody foresaw this")
        compile_in_force(entry)

    monkeypatch.setattr(phase, "compile_in_force", surprise)
    world = (
        World(surprises=True)
        .see(cron(EVERY_FIVE_MINUTES))
        .see(cron(EVERY_FIVE_MINUTES, name="other"))
    )
    world.run_until("10:06")
    assert world.condition("Degraded") == ("True", "InternalError")
    assert world.condition("Ready") == ("Unknown", "InternalError")
    assert (world.started(), world.started("other")) == ([], ["10:05:00"])


def test_a_timing_whose_zone_is_gone_owes_nothing_and_stops_nobody():
    gone = Timing(Cron(EVERY_FIVE_MINUTES), zone="Europe/Atlantis")
    memory = Memory(mark=instant("10:00"), timing=gone, timing_since=instant("10:00"))
    world = World(now=instant("10:12")).see(cron(EVERY_FIVE_MINUTES), memory).run_until("10:16")
    assert world.started() == ["10:15:00"]


def since(world: World, kind: str) -> str:
    rows = {row["type"]: row for row in world.status()["conditions"]}
    moment: str = rows[kind]["lastTransitionTime"]
    return moment


def test_a_condition_keeps_since_when_it_holds_while_its_reason_changes():
    good = cron(EVERY_FIVE_MINUTES)
    world = World().see(good).run_until("10:06").see(rejection(good)).run_until("10:07")
    assert since(world, "Ready") == "2026-03-02T10:06:00Z"
    world.see(rejection(edited(good), "month 14 does not exist")).run_until("10:08")
    assert since(world, "Ready") == "2026-03-02T10:06:00Z"
    world.see(edited(edited(edited(good))))
    assert since(world, "Ready") == "2026-03-02T10:08:00Z"


def test_the_status_says_which_generation_it_speaks_of():
    good = cron(EVERY_FIVE_MINUTES)
    world = World().see(good).see(edited(good, priority=7))
    assert world.status()["observedGeneration"] == 2
    world.see(rejection(edited(good)))
    assert world.status()["observedGeneration"] == 3


def test_a_past_instant_that_the_timing_before_has_told_of_gets_no_second_verdict():
    seen = cron("* * * * *")
    world = World().see(seen).run_until("10:20:30")
    for minute in range(1, 21):
        world.succeed(seen, f"10:{minute:02}")
    world.see(edited(seen, rule=At(instant("10:05")))).run_until("10:21")
    assert world.verdicts() == 20


def test_an_instant_that_ran_under_a_status_that_was_never_written_is_not_missed_too():
    seen = edited(once("10:05"))
    world = World(writes=False).see(seen).run_until("10:05:30")
    world.crash(for_s=30)
    assert world.ends() == []
    assert world.alive() == {"10:05:00": "running"}
