"""The placement of one interval, by name. A slow form of the rule: test_inside_the_slot.py."""

import re
from collections import Counter
from dataclasses import replace

import pytest
from tests.unit.balance.members import (
    A_MORNING_IN_MARCH,
    HOUR_S,
    MINUTE_S,
    PRE_SCHEDULE_S,
    SLOT_S,
    every,
    fixed,
    place_into,
    runs_between,
)

from evenkeel.balance import LoadMap, Member, place
from evenkeel.balance.place import at_anchor
from evenkeel.errors import BadField
from evenkeel.model import DAY_S, Cron, Instant, Interval, Window
from evenkeel.when.zone import load_zone

NIGHT = Window(22 * HOUR_S, 6 * HOUR_S)
LUNCH = Window(12 * HOUR_S, 13 * HOUR_S)
THE_HOUR_THAT_SPRING_TAKES = Window(2 * HOUR_S, 3 * HOUR_S)
BEFORE_SPRING_IN_BERLIN: Instant = 1_806_150_000  # 2027-03-27T13:00:00Z, 12 h before 02:00 is gone


@pytest.mark.parametrize(
    "every_s",
    [1, 7, 10, 30, 45, 59, 60, 61, 90, 119, 120, 121, 3601, 5400, 86_399, 86_401, 366 * DAY_S],
)
def test_any_interval_starts_within_one_interval_of_now(every_s: int) -> None:
    load = LoadMap(A_MORNING_IN_MARCH)
    load.put(fixed(Cron("0 * * * *")))
    found, settled = place_into(load, every(every_s), A_MORNING_IN_MARCH)
    low = A_MORNING_IN_MARCH + PRE_SCHEDULE_S
    high = max(A_MORNING_IN_MARCH + every_s, low + every_s)
    assert low < found.first_run <= high
    due = runs_between(settled, A_MORNING_IN_MARCH, found.first_run + 2 * every_s + 1)
    assert due == [found.first_run + k * every_s for k in range(3)]


@pytest.mark.parametrize("every_s", [7 * MINUTE_S, HOUR_S, 100 * MINUTE_S, 36 * HOUR_S])
def test_due_times_do_not_drift_in_ten_thousand_intervals(every_s: int) -> None:
    load = LoadMap(A_MORNING_IN_MARCH)
    found, settled = place_into(load, every(every_s), A_MORNING_IN_MARCH)
    end = found.first_run + 10_000 * every_s
    due = runs_between(settled, A_MORNING_IN_MARCH, end)
    assert due == list(range(found.first_run, end, every_s))


def test_four_hourly_intervals_take_a_slot_each_and_the_next_avoid_their_seconds() -> None:
    load = LoadMap(A_MORNING_IN_MARCH)
    found = [
        place_into(load, every(HOUR_S, key=f"ns/{n}"), A_MORNING_IN_MARCH)[0] for n in range(8)
    ]
    assert Counter(place.first_run // SLOT_S % 4 for place in found) == {0: 2, 1: 2, 2: 2, 3: 2}
    assert len({place.first_run % HOUR_S for place in found}) == 8


def test_240_hourly_intervals_never_start_two_in_a_second() -> None:
    load = LoadMap(A_MORNING_IN_MARCH)
    for n in range(240):
        place_into(load, every(HOUR_S, key=f"ns/{n}"), A_MORNING_IN_MARCH)
    assert load.day.seconds.max() == 1


def test_short_intervals_use_every_second_of_the_minute_in_which_they_are_applied() -> None:
    """A quarter of a minute has passed: the rest of it is one interval earlier than the next."""
    load = LoadMap(A_MORNING_IN_MARCH)
    for n in range(100):
        place_into(load, every(5 * MINUTE_S, key=f"ns/{n}"), A_MORNING_IN_MARCH)
    assert (load.rhythm_day().minutes == 20).all()
    assert load.rhythm_seconds().max() == 1


def test_daily_intervals_applied_within_one_slot_do_not_all_get_that_slot() -> None:
    load = LoadMap(A_MORNING_IN_MARCH)
    for n in range(192):
        place_into(load, every(DAY_S, key=f"ns/{n}"), A_MORNING_IN_MARCH)
    later = A_MORNING_IN_MARCH + 3 * DAY_S
    assert load.distribution(later).slots == (2,) * 96


def test_a_heavy_schedule_is_avoided() -> None:
    load = LoadMap(A_MORNING_IN_MARCH)
    load.put(fixed(Cron("5,20,50 * * * *"), weight=100))
    found, _ = place_into(load, every(HOUR_S), A_MORNING_IN_MARCH)
    assert found.first_run // SLOT_S % 4 == 2


def test_an_interval_of_three_days_is_placed_by_the_load_of_seven_days() -> None:
    load = LoadMap(A_MORNING_IN_MARCH)
    for weekday in (0, 1, 2, 4, 5, 6):
        load.put(fixed(Cron(f"* * * * {weekday}"), key=f"ns/{weekday}"))
    found, _ = place_into(load, every(7 * DAY_S), A_MORNING_IN_MARCH)
    a_wednesday = 6  # the epoch was a Thursday
    assert found.first_run // DAY_S % 7 == a_wednesday


def test_place_does_not_put_the_member_into_the_load() -> None:
    load = LoadMap(A_MORNING_IN_MARCH)
    place(load, every(HOUR_S), A_MORNING_IN_MARCH, pre_schedule_s=PRE_SCHEDULE_S)
    assert not load.members


def test_a_changed_schedule_does_not_avoid_its_own_former_runs() -> None:
    load = LoadMap(A_MORNING_IN_MARCH)
    first, _ = place_into(load, every(HOUR_S, weight=1000), A_MORNING_IN_MARCH)
    again, _ = place_into(load, every(HOUR_S, weight=999), A_MORNING_IN_MARCH)
    assert again.first_run == first.first_run


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_a_start_time_delays_the_first_run_and_keeps_the_phase(zone: str) -> None:
    load = LoadMap(A_MORNING_IN_MARCH)
    begins = A_MORNING_IN_MARCH + 5 * DAY_S + 7
    member = every(DAY_S, zone=zone)
    late = replace(member, timing=replace(member.timing, start=begins))
    found, there = place_into(load, late, A_MORNING_IN_MARCH)
    assert begins <= found.first_run < begins + DAY_S
    assert runs_between(there, A_MORNING_IN_MARCH, found.first_run + 1) == [found.first_run]
    assert sum(load.distribution(A_MORNING_IN_MARCH).slots) == 0


class TestWindow:
    """A window limits intervals of whole days to a time of day."""

    @pytest.mark.parametrize("window", [NIGHT, LUNCH], ids=["over midnight", "at noon"])
    @pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
    @pytest.mark.parametrize("days", [1, 2, 7, 30])
    def test_the_first_run_lies_in_it(self, window: Window, zone: str, days: int) -> None:
        load = LoadMap(A_MORNING_IN_MARCH)
        for n in range(30):
            member = every(days * DAY_S, key=f"ns/{n}", zone=zone, window=window)
            found, settled = place_into(load, member, A_MORNING_IN_MARCH)
            local = (found.first_run + load_zone(zone).offset_at(found.first_run)) % DAY_S
            inside = (local - window.start_s) % DAY_S < (window.end_s - window.start_s) % DAY_S
            assert inside
            end = found.first_run + 1
            assert runs_between(settled, A_MORNING_IN_MARCH, end) == [found.first_run]

    def test_the_load_spreads_over_it(self) -> None:
        load = LoadMap(A_MORNING_IN_MARCH)
        for n in range(64):
            place_into(load, every(DAY_S, key=f"ns/{n}", window=NIGHT), A_MORNING_IN_MARCH)
        assert sorted(load.distribution(A_MORNING_IN_MARCH).slots) == [0] * 64 + [2] * 32

    def test_a_window_that_the_clock_jumps_over_is_used_once_two_days_in_a_row_have_it(
        self,
    ) -> None:
        load = LoadMap(BEFORE_SPRING_IN_BERLIN)
        member = every(DAY_S, zone="Europe/Berlin", window=THE_HOUR_THAT_SPRING_TAKES)
        found, settled = place_into(load, member, BEFORE_SPRING_IN_BERLIN)
        assert found.first_run > BEFORE_SPRING_IN_BERLIN + DAY_S
        local = (found.first_run + 2 * HOUR_S) % DAY_S
        assert 2 * HOUR_S <= local < 3 * HOUR_S
        end = found.first_run + 1
        assert runs_between(settled, BEFORE_SPRING_IN_BERLIN, end) == [found.first_run]

    def test_other_intervals_ignore_it(self) -> None:
        found, _ = place_into(
            LoadMap(A_MORNING_IN_MARCH), every(5400, window=NIGHT), A_MORNING_IN_MARCH
        )
        assert found.first_run <= A_MORNING_IN_MARCH + 5400

    def test_a_window_without_a_minute_is_refused_with_a_sentence(self) -> None:
        never = Window(HOUR_S + 1, HOUR_S + 30)
        with pytest.raises(BadField, match=r"placement\.window: holds no minute"):
            place_into(LoadMap(A_MORNING_IN_MARCH), every(DAY_S, window=never), A_MORNING_IN_MARCH)


class TestObserve:
    """In Observe mode the phase is a hash of the name, and the reason names the phase by load."""

    def test_the_phase_depends_on_the_name_alone(self) -> None:
        busy = LoadMap(A_MORNING_IN_MARCH + 5 * HOUR_S)
        busy.put(fixed(Cron("* * * * *"), weight=1000))
        phases = {
            place(
                load, every(HOUR_S), load.start, pre_schedule_s=PRE_SCHEDULE_S, observe=True
            ).first_run
            % HOUR_S
            for load in (LoadMap(A_MORNING_IN_MARCH), busy)
        }
        assert len(phases) == 1

    def test_names_spread_and_the_reason_names_what_the_load_would_do(self) -> None:
        load = LoadMap(A_MORNING_IN_MARCH)
        phases = set()
        for n in range(50):
            found = place(
                load,
                every(DAY_S, key=f"ns/{n}"),
                A_MORNING_IN_MARCH,
                pre_schedule_s=PRE_SCHEDULE_S,
                observe=True,
            )
            phases.add(found.first_run // SLOT_S % 96)
            assert "Observe mode" in found.reason
            assert len(re.findall(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found.reason)) == 2
        assert len(phases) > 30

    @pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
    @pytest.mark.parametrize("days", [1, 3])
    def test_a_window_is_kept(self, zone: str, days: int) -> None:
        for n in range(20):
            found = place(
                LoadMap(A_MORNING_IN_MARCH),
                every(days * DAY_S, key=f"ns/{n}", zone=zone, window=LUNCH),
                A_MORNING_IN_MARCH,
                pre_schedule_s=PRE_SCHEDULE_S,
                observe=True,
            )
            local = (found.first_run + load_zone(zone).offset_at(found.first_run)) % DAY_S
            assert 12 * HOUR_S <= local < 13 * HOUR_S


class TestRemembered:
    """A schedule whose name is applied again gets its phase back."""

    @pytest.mark.parametrize(
        ("every_s", "zone"),
        [(HOUR_S, "UTC"), (100 * MINUTE_S, "UTC"), (DAY_S, "Europe/Berlin"), (3 * DAY_S, "UTC")],
    )
    def test_the_due_times_are_those_of_the_former_phase(self, every_s: int, zone: str) -> None:
        load = LoadMap(A_MORNING_IN_MARCH)
        _, before = place_into(load, every(every_s, zone=zone), A_MORNING_IN_MARCH)
        load.drop(before.key)
        load.put(fixed(Cron("* * * * *"), weight=1000))
        later = A_MORNING_IN_MARCH + 5 * HOUR_S
        found = place(
            load,
            every(every_s, zone=zone),
            later,
            pre_schedule_s=PRE_SCHEDULE_S,
            remembered=before.interval.anchor,
        )
        after = at_anchor(before, found.anchor, later)
        horizon = later + PRE_SCHEDULE_S + 1
        expected = runs_between(before, horizon, horizon + 20 * every_s)
        assert runs_between(after, horizon, horizon + 20 * every_s) == expected
        assert expected[0] == found.first_run
        assert "had this phase before" in found.reason


class TestReason:
    """The sentences that the owner reads."""

    def reason(self, member: Member) -> str:
        load = LoadMap(A_MORNING_IN_MARCH)
        load.put(fixed(Cron("0 * * * *"), weight=4))
        return place_into(load, member, A_MORNING_IN_MARCH)[0].reason

    def test_a_reason_names_the_first_run_and_the_load(self) -> None:
        assert self.reason(every(HOUR_S)) == (
            "first run 2027-03-01T10:15:00Z, then every 1h; the least loaded start of 60 minutes: "
            "the busiest slot in which it runs has a load of 1 with it, "
            "and the mean slot has 1.0 without it"
        )

    @pytest.mark.parametrize("every_s", [100 * MINUTE_S, 7 * MINUTE_S, 25 * MINUTE_S])
    def test_a_reason_says_that_an_interval_does_not_divide_a_day(self, every_s: int) -> None:
        assert (
            "does not divide 24 hours, so its times shift and the load may become less even"
            in self.reason(every(every_s))
        )

    @pytest.mark.parametrize("every_s", [36 * HOUR_S, 3 * DAY_S])
    def test_a_reason_says_that_an_interval_does_not_divide_a_week(self, every_s: int) -> None:
        assert (
            "does not divide 7 days, so its times shift and the load may become less even"
            in self.reason(every(every_s))
        )

    @pytest.mark.parametrize("every_s", [MINUTE_S, HOUR_S, 90 * MINUTE_S, DAY_S, 7 * DAY_S])
    def test_the_reason_of_an_interval_that_divides_the_day_says_nothing_of_it(
        self, every_s: int
    ) -> None:
        assert "divide" not in self.reason(every(every_s))

    def test_a_reason_names_the_zone_of_local_days(self) -> None:
        assert "every 1d of Europe/Berlin" in self.reason(every(DAY_S, zone="Europe/Berlin"))


def test_the_placement_says_what_is_so() -> None:
    load = LoadMap(A_MORNING_IN_MARCH)
    load.put(fixed(Cron("0,15,30,45 * * * *"), weight=4))
    found, settled = place_into(load, every(6 * HOUR_S, weight=3), A_MORNING_IN_MARCH)
    assert found.load == 7
    assert found.slot == found.first_run // SLOT_S % 96
    assert replace(settled.interval, anchor=found.anchor) == Interval(6 * HOUR_S, 0, found.anchor)
