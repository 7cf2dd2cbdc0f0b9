"""A rebalance: which schedules may move, how far, that it helps, and that execution equals
preview."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.balance.members import (
    A_MORNING_IN_MARCH,
    HOUR_S,
    MINUTE_S,
    PRE_SCHEDULE_S,
    busiest_slot_of,
    every,
    fixed,
    place_into,
    recounted,
    runs_between,
)

from evenkeel.balance import (
    Limits,
    LoadMap,
    Member,
    Move,
    Plan,
    Stale,
    confirm,
    moved,
    plan_rebalance,
)
from evenkeel.model import DAY_S, Cron, Instant, Interval, Window
from evenkeel.when.zone import load_zone

HALF_HOUR_S = 30 * MINUTE_S
NIGHT = Window(22 * HOUR_S, 6 * HOUR_S)
BEFORE_SPRING_IN_BERLIN: Instant = 1_806_150_000  # 2027-03-27T13:00:00Z, 12 h before 02:00 is gone
INTERVALS_S = [
    5 * MINUTE_S, 20 * MINUTE_S, HOUR_S, HOUR_S, 61 * MINUTE_S, 3601, 100 * MINUTE_S, 6 * HOUR_S,
    DAY_S, DAY_S, 36 * HOUR_S, 3 * DAY_S, 10 * DAY_S,
]  # fmt: skip


def plan_of(
    load: LoadMap,
    now: Instant,
    *,
    cooldown_s: float = 0,
    protection_window_s: float = 0,
    running: frozenset[str] = frozenset(),
    last_runs: Mapping[str, Instant] | None = None,
) -> Plan:
    limits = Limits(PRE_SCHEDULE_S, cooldown_s, protection_window_s, running, last_runs or {})
    return plan_rebalance(load, now, limits)


def carry_out(load: LoadMap, plan: Plan, now: Instant) -> None:
    for move in plan.moves:
        load.put(moved(load.members[move.key], move, now))


def reasons(plan: Plan) -> dict[str, str]:
    return {skip.key: skip.reason for skip in plan.skipped}


def herd(count: int = 24, *, every_s: int = HOUR_S, now: Instant = A_MORNING_IN_MARCH) -> LoadMap:
    """Intervals that have run at the full hour for days. The next run is 53 minutes away."""
    load = LoadMap(now)
    anchor = (now // every_s - 3) * every_s
    load.put_all([every(every_s, key=f"ns/{n:02}", anchor=anchor) for n in range(count)])
    return load


# --- any cluster at any time ---------------------------------------------------------------------


@dataclass(frozen=True)
class Cluster:
    """Any set of schedules, with their limits."""

    members: list[Member]
    now: Instant
    running: frozenset[str]
    cooldown_s: int
    protection_window_s: int


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    now = draw(st.sampled_from([A_MORNING_IN_MARCH, BEFORE_SPRING_IN_BERLIN]))
    now += draw(st.integers(0, 2 * HOUR_S))
    members = []
    for n in range(draw(st.integers(1, 25))):
        every_s = draw(st.sampled_from(INTERVALS_S))
        whole_days = every_s % DAY_S == 0
        members.append(
            every(
                every_s,
                key=f"ns/{n:02}",
                anchor=now
                - draw(st.sampled_from([1, 60, 300, 3 * DAY_S]))
                - draw(st.integers(0, every_s)),
                weight=draw(st.sampled_from([1, 1, 3, 40])),
                zone=draw(st.sampled_from(["UTC", "Europe/Berlin"])) if whole_days else "UTC",
                window=draw(st.sampled_from([None, NIGHT])) if whole_days else None,
                pinned=draw(st.integers(0, 9)) == 0,
                placed_at=now - draw(st.sampled_from([60, 7200])),
                counts=draw(st.integers(0, 9)) != 0,
            )
        )
    members.append(fixed(Cron("0 */3 * * *"), weight=draw(st.integers(1, 50))))
    return Cluster(
        members,
        now,
        frozenset(draw(st.sets(st.sampled_from([m.key for m in members]), max_size=3))),
        draw(st.sampled_from([0, HOUR_S])),
        draw(st.sampled_from([0, HALF_HOUR_S])),
    )


def loaded(cluster: Cluster) -> LoadMap:
    load = LoadMap(cluster.now)
    load.put_all(cluster.members)
    return load


def planned(cluster: Cluster, load: LoadMap) -> Plan:
    return plan_of(
        load,
        cluster.now,
        cooldown_s=cluster.cooldown_s,
        protection_window_s=cluster.protection_window_s,
        running=cluster.running,
    )


any_cluster = settings(max_examples=80, deadline=None)


@any_cluster
@given(clusters())
def test_it_is_never_worse_and_the_preview_is_what_happens(cluster: Cluster) -> None:
    load = loaded(cluster)
    plan = planned(cluster, load)
    before = load.distribution(cluster.now)
    assert replace(plan.current, suggestion="") == replace(before, suggestion="")
    assert plan.projected_score >= plan.current_score
    assert plan.projected.peak_to_mean <= plan.current.peak_to_mean
    assert plan.score_without_protection >= plan.projected_score
    assert planned(cluster, load) == plan
    now_confirmed = confirm(
        plan, load, cluster.now, Limits(PRE_SCHEDULE_S, running=cluster.running)
    )
    assert now_confirmed == plan

    carry_out(load, plan, cluster.now)
    assert load.distribution(cluster.now) == plan.projected
    assert list(plan.projected.slots) == recounted(list(load.members.values()), cluster.now)


@any_cluster
@given(clusters())
def test_it_never_gives_the_same_slots_a_busier_minute(cluster: Cluster) -> None:
    load = loaded(cluster)
    plan = planned(cluster, load)
    slots, busiest = load.day.work.copy(), int(load.day.minutes.max())
    carry_out(load, plan, cluster.now)
    if (load.day.work == slots).all():
        assert load.day.minutes.max() <= busiest


@any_cluster
@given(clusters())
def test_protected_running_recently_placed_and_pinned_schedules_never_move(
    cluster: Cluster,
) -> None:
    load = loaded(cluster)
    plan = planned(cluster, load)
    moving = {move.key for move in plan.moves}
    stays = reasons(plan)
    placed = {m.key for m in cluster.members if m.placed_at is not None and m.counts}
    assert moving | set(stays) == placed
    assert not moving & set(stays)
    for key in placed:
        member = load.members[key]
        following = runs_between(member, cluster.now + 1, cluster.now + 11 * DAY_S)[0]
        near_s = min(cluster.protection_window_s, member.interval.every_s / 2)
        near_s = max(near_s, PRE_SCHEDULE_S)
        held = {
            "pinned": member.pinned,
            "job_running": key in cluster.running,
            "protection_window": following - cluster.now <= near_s,
            "placement_cooldown": cluster.now - member.placed_at < cluster.cooldown_s,
        }
        if any(held.values()):
            assert held[stays[key]]
        elif key in stays:
            assert stays[key] == "no_gain"


@any_cluster
@given(clusters())
def test_a_move_says_the_load_that_is_there_when_all_are_made(cluster: Cluster) -> None:
    load = loaded(cluster)
    plan = planned(cluster, load)
    carry_out(load, plan, cluster.now)
    for move in plan.moves:
        every_s = load.members[move.key].interval.every_s
        assert move.load == busiest_slot_of(load, move.proposed_time, every_s)


@any_cluster
@given(clusters())
def test_half_to_one_and_a_half_intervals_lie_between_old_and_new_phase(
    cluster: Cluster,
) -> None:
    load = loaded(cluster)
    for move in planned(cluster, load).moves:
        member = load.members[move.key]
        every_s = member.interval.every_s
        after = moved(member, move, cluster.now)
        far = cluster.now + 2 * every_s + 1
        assert runs_between(member, cluster.now + 1, far)[0] == move.current_time
        first = runs_between(after, cluster.now, far)[0]
        assert first == move.proposed_time
        assert first > cluster.now + PRE_SCHEDULE_S
        assert member.placed_at is not None
        since = max(cluster.now - every_s - HOUR_S, member.placed_at + 1)  # before, it had no phase
        if ran := runs_between(member, since, cluster.now + 1):
            assert every_s <= 2 * (first - ran[-1]) <= 3 * every_s
        else:
            assert first <= cluster.now + every_s
        if member.window is not None:
            local = (first + load_zone(member.timing.zone).offset_at(first)) % DAY_S
            assert local >= NIGHT.start_s or local < NIGHT.end_s


@any_cluster
@given(clusters(), st.integers(0, 2 * HOUR_S))
def test_and_so_they_do_when_one_rebalance_follows_another(cluster: Cluster, later_s: int) -> None:
    load = loaded(cluster)
    last_runs = {
        member.key: member.placed_at for member in cluster.members if member.placed_at is not None
    }
    begun = {key: at + 1 for key, at in last_runs.items()}
    for now in (cluster.now, cluster.now + later_s):
        load.advance(now)
        for key, since in begun.items():
            ran = runs_between(load.members[key], since, now + 1)
            last_runs[key] = ran[-1] if ran else last_runs[key]
            begun[key] = now + 1
        plan = plan_of(load, now, last_runs=last_runs)
        for move in plan.moves:
            every_s = load.members[move.key].interval.every_s
            assert every_s <= 2 * (move.proposed_time - last_runs[move.key]) <= 3 * every_s
        carry_out(load, plan, now)
        for move in plan.moves:
            after, far = load.members[move.key], move.proposed_time + 1
            assert runs_between(after, now + 1, far) == [move.proposed_time]


# --- by name ---------------------------------------------------------------------------------


@pytest.mark.parametrize("into_the_slot_s", [0, 100, 433, 850])
def test_frequent_schedules_move_at_any_time_of_a_slot(into_the_slot_s: int) -> None:
    """Their last runs lie in the current slot: moved, they must not seem to leave it empty."""
    now = A_MORNING_IN_MARCH // (15 * MINUTE_S) * (15 * MINUTE_S) + into_the_slot_s
    rng = random.Random(7)
    load = LoadMap(now)
    for n in range(200):
        for every_s in (5 * MINUTE_S, HOUR_S):
            anchor = now - DAY_S - rng.randrange(every_s)
            weight = rng.choice([1, 1, 3])
            load.put(every(every_s, key=f"ns/{every_s}-{n}", anchor=anchor, weight=weight))
    before = load.distribution(now)

    plan = plan_of(load, now)
    carry_out(load, plan, now)

    after = load.distribution(now)
    assert (after.distribution_score, after.slots) == (plan.projected_score, plan.projected.slots)
    assert after.distribution_score >= before.distribution_score
    assert after.busiest_minute.starts < before.busiest_minute.starts
    assert after.busiest_minute.starts <= 1.06 * after.busiest_minute.bound
    assert any("/300-" in move.key for move in plan.moves)


@pytest.mark.parametrize("lasts_s", [0, 100, 1000])
def test_a_plan_for_frequent_schedules_that_last_can_be_confirmed(lasts_s: int) -> None:
    """A run that begins later in its slot has more load in the next one."""
    now = A_MORNING_IN_MARCH
    load = LoadMap(now)
    for n in range(40):
        anchor = now // (5 * MINUTE_S) * (5 * MINUTE_S) - DAY_S + n
        member = every(5 * MINUTE_S, key=f"ns/{n:02}", anchor=anchor)
        load.put(replace(member, lasts_s=lasts_s))
    plan = plan_of(load, now)
    assert plan.projected.busiest_minute.starts < plan.current.busiest_minute.starts

    found = confirm(plan, load, now, Limits(PRE_SCHEDULE_S))

    assert isinstance(found, Plan)
    assert found.moves == plan.moves


def test_a_herd_is_spread() -> None:
    load = herd(24)
    plan = plan_of(load, A_MORNING_IN_MARCH)
    assert plan.current.peak_to_mean == 4
    assert set(plan.projected.slots[1:]) == {6}  # those that move have no run in the current slot
    assert plan.projected_score > 0.999
    assert plan.current.suggestion == "degraded, consider rebalancing: peak 24 -> 6"
    assert plan.projected.suggestion == "acceptable"
    carry_out(load, plan, A_MORNING_IN_MARCH)
    assert load.day.minutes.max() == 1


def test_schedules_whose_move_gains_nothing_stay() -> None:
    plan = plan_of(herd(24), A_MORNING_IN_MARCH)
    assert len(plan.moves) == 23  # a minute for each, and the full hour for one
    assert set(reasons(plan).values()) == {"no_gain"}


def test_an_even_load_is_left_alone() -> None:
    load = LoadMap(A_MORNING_IN_MARCH)
    for n in range(40):
        place_into(load, every(HOUR_S, key=f"ns/{n}"), A_MORNING_IN_MARCH)
    plan = plan_of(load, A_MORNING_IN_MARCH)
    assert plan.moves == ()
    assert set(reasons(plan).values()) == {"no_gain"}
    assert plan.current.suggestion == "acceptable"


def test_a_moved_schedule_does_not_move_again_during_the_cooldown() -> None:
    load = herd(24)
    carry_out(load, plan_of(load, A_MORNING_IN_MARCH), A_MORNING_IN_MARCH)
    load.put(fixed(Cron("5,20,35 * * * *"), weight=30))
    soon, later = A_MORNING_IN_MARCH + 600, A_MORNING_IN_MARCH + HOUR_S
    assert (
        list(reasons(plan_of(load, soon, cooldown_s=HOUR_S)).values()).count("placement_cooldown")
        == 23
    )
    assert "placement_cooldown" not in reasons(plan_of(load, later, cooldown_s=HOUR_S)).values()


@pytest.mark.parametrize(
    ("to_next_run_s", "every_s", "protected"),
    [
        pytest.param(30 * MINUTE_S, 6 * HOUR_S, True, id="30 minutes ahead"),
        pytest.param(30 * MINUTE_S + 1, 6 * HOUR_S, False, id="a second more"),
        pytest.param(10 * MINUTE_S, 20 * MINUTE_S, True, id="half of a short interval ahead"),
        pytest.param(10 * MINUTE_S + 1, 20 * MINUTE_S, False, id="more than half of it"),
    ],
)
def test_the_protection_window_is_capped_at_half_the_interval(
    to_next_run_s: int, every_s: int, protected: bool
) -> None:
    load = LoadMap(A_MORNING_IN_MARCH)
    load.put(every(every_s, anchor=A_MORNING_IN_MARCH + to_next_run_s - 5 * every_s))
    plan = plan_of(load, A_MORNING_IN_MARCH, protection_window_s=HALF_HOUR_S)
    assert (reasons(plan).get("ns/a") == "protection_window") is protected


def test_a_run_taken_up_already_is_protected_without_a_protection_window() -> None:
    load = LoadMap(A_MORNING_IN_MARCH)
    load.put(fixed(Cron("7 * * * *"), weight=50))
    load.put(every(HOUR_S, key="ns/at-once", anchor=A_MORNING_IN_MARCH + 10 - HOUR_S))
    load.put(every(HOUR_S, key="ns/soon", anchor=A_MORNING_IN_MARCH + 11 - HOUR_S))
    plan = plan_of(load, A_MORNING_IN_MARCH, protection_window_s=0)
    assert reasons(plan) == {"ns/at-once": "protection_window"}
    assert [move.key for move in plan.moves] == ["ns/soon"]


def test_what_protection_cost_is_shown() -> None:
    load = herd(24)
    everybody = frozenset(load.members)
    plan = plan_of(load, A_MORNING_IN_MARCH, running=everybody)
    assert plan.moves == ()
    assert plan.projected_score == plan.current_score < 1
    assert plan.score_without_protection > 0.999


def test_pinned_schedules_do_not_count_as_the_cost_of_protection() -> None:
    load = LoadMap(A_MORNING_IN_MARCH)
    anchor = A_MORNING_IN_MARCH // DAY_S * DAY_S
    load.put_all([every(HOUR_S, key=f"ns/{n}", anchor=anchor, pinned=True) for n in range(9)])
    plan = plan_of(load, A_MORNING_IN_MARCH, running=frozenset({"ns/1"}))
    assert set(reasons(plan).values()) == {"pinned"}
    assert plan.score_without_protection == plan.current_score


def test_a_plan_does_not_name_fixed_and_suspended_schedules() -> None:
    load = LoadMap(A_MORNING_IN_MARCH)
    load.put(fixed(Interval(HOUR_S, 0), key="ns/offset"))
    load.put(every(HOUR_S, key="ns/suspended", anchor=A_MORNING_IN_MARCH, counts=False))
    plan = plan_of(load, A_MORNING_IN_MARCH)
    assert (plan.moves, plan.skipped) == ((), ())


def test_a_move_never_takes_the_last_run_away() -> None:
    load = herd(24)
    ends = A_MORNING_IN_MARCH + HOUR_S
    for member in list(load.members.values()):
        load.put(replace(member, timing=replace(member.timing, end=ends)))
    plan = plan_of(load, A_MORNING_IN_MARCH)
    assert plan.moves
    assert all(move.proposed_time < ends for move in plan.moves)


def test_a_schedule_before_its_start_time_does_not_move() -> None:
    load = herd(24)
    for member in list(load.members.values()):
        begins = A_MORNING_IN_MARCH + 3 * HOUR_S
        load.put(replace(member, timing=replace(member.timing, start=begins)))
    assert plan_of(load, A_MORNING_IN_MARCH).moves == ()


def test_a_plan_made_from_a_snapshot_fits_the_original_load() -> None:
    load = herd(24)
    snapshot = load.snapshot()
    plan = plan_of(snapshot, A_MORNING_IN_MARCH)
    load.put(fixed(Cron("0 0 * * *")))
    assert (
        confirmed(plan, load, A_MORNING_IN_MARCH + 1) != plan
    )  # its distributions are those of now
    assert isinstance(confirmed(plan, load, A_MORNING_IN_MARCH + 1), Plan)
    assert "ns/fixed" not in snapshot.members


def test_moves_again_and_again_never_keep_a_daily_interval_from_running() -> None:
    """Every two hours somebody rebalances, and a new cron schedule has been added to its slot."""
    now = A_MORNING_IN_MARCH
    load = LoadMap(now)
    member = every(DAY_S, anchor=now - DAY_S + 3 * HOUR_S)
    load.put(member)
    last_run = now
    first_runs = []
    for round_number in range(20):
        now += 2 * HOUR_S
        current = load.members["ns/a"]
        ran = runs_between(current, last_run + 1, now + 1)
        if ran:
            last_run = ran[-1]
            first_runs.append(last_run)
        following = runs_between(current, now + 1, now + 2 * DAY_S)[0]
        minute, hour = following // 60 % 60, following // HOUR_S % 24
        load.put(fixed(Cron(f"{minute} {hour} * * *"), key=f"ns/cron-{round_number}", weight=50))
        plan = plan_of(load, now, last_runs={"ns/a": last_run})
        for move in plan.moves:
            assert move.proposed_time <= last_run + 3 * DAY_S // 2
        carry_out(load, plan, now)
    assert first_runs


# --- plans that wait to be confirmed --------------------------------------------------------------


def confirmed(
    plan: Plan, load: LoadMap, now: Instant, *, running: frozenset[str] = frozenset()
) -> Plan | Stale:
    return confirm(plan, load, now, Limits(PRE_SCHEDULE_S, running=running))


class TestConfirm:
    """A plan is carried out only if it still fits."""

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param(lambda load: load.drop("ns/03"), id="one went"),
            pytest.param(
                lambda load: place_into(load, every(HOUR_S, key="ns/new"), A_MORNING_IN_MARCH),
                id="one came",
            ),
            pytest.param(
                lambda load: load.put(replace(load.members["ns/03"], weight=2)),
                id="one weighs more",
            ),
            pytest.param(
                lambda load: load.put(replace(load.members["ns/03"], pinned=True)),
                id="one was pinned",
            ),
            pytest.param(
                lambda load: load.put(replace(load.members["ns/03"], counts=False)),
                id="one was suspended",
            ),
            pytest.param(
                lambda load: place_into(load, every(HOUR_S, key="ns/03"), A_MORNING_IN_MARCH),
                id="one was placed afresh",
            ),
            pytest.param(
                lambda load: carry_out(load, plan_of(load, A_MORNING_IN_MARCH), A_MORNING_IN_MARCH),
                id="it was carried out already",
            ),
        ],
    )
    def test_a_plan_for_other_phases_is_refused(self, change: object) -> None:
        load = herd()
        plan = plan_of(load, A_MORNING_IN_MARCH)
        change(load)  # type: ignore[operator]
        answer = confirmed(plan, load, A_MORNING_IN_MARCH + 1)
        assert isinstance(answer, Stale)
        assert "new preview" in answer.sentence

    def test_an_old_plan_is_refused(self) -> None:
        load = herd()
        plan = plan_of(load, A_MORNING_IN_MARCH)
        assert isinstance(confirmed(plan, load, A_MORNING_IN_MARCH + 300), Plan)
        assert isinstance(confirmed(plan, load, A_MORNING_IN_MARCH + 301), Stale)

    def test_a_plan_that_would_now_make_it_worse_is_refused(self) -> None:
        load = herd()
        plan = plan_of(load, A_MORNING_IN_MARCH)
        load.put(fixed(Cron("20,35,50 * * * *"), weight=1000))
        assert isinstance(confirmed(plan, load, A_MORNING_IN_MARCH + 1), Stale)

    def test_a_schedule_that_runs_meanwhile_is_skipped(self) -> None:
        load = herd()
        plan = plan_of(load, A_MORNING_IN_MARCH)
        busy = plan.moves[0].key
        answer = confirmed(plan, load, A_MORNING_IN_MARCH + 20, running=frozenset({busy}))
        assert isinstance(answer, Plan)
        assert reasons(answer)[busy] == "job_running"
        assert [move.key for move in answer.moves] == [m.key for m in plan.moves if m.key != busy]
        assert answer.plan_id == plan.plan_id

    def test_a_schedule_that_is_due_soon_is_skipped(self) -> None:
        load = herd(now=A_MORNING_IN_MARCH)
        a_minute_before = A_MORNING_IN_MARCH // HOUR_S * HOUR_S + HOUR_S - 60
        plan = plan_of(load, a_minute_before)
        answer = confirmed(plan, load, a_minute_before + 55)
        assert isinstance(answer, Plan)
        assert plan.moves
        assert not answer.moves
        assert {reasons(answer)[move.key] for move in plan.moves} == {"protection_window"}

    def test_a_first_run_that_passed_meanwhile_comes_an_interval_later(self) -> None:
        every_s = 20 * MINUTE_S
        load = herd(30, every_s=every_s)
        load.put(fixed(Cron("0,20,40 * * * *"), weight=50))
        now = A_MORNING_IN_MARCH // every_s * every_s + 9 * MINUTE_S + 30
        plan = plan_of(load, now)
        soon = min(plan.moves, key=lambda move: move.proposed_time)
        later = now + 290
        answer = confirmed(plan, load, later)
        assert isinstance(answer, Plan)
        again = next((move for move in answer.moves if move.key == soon.key), None)
        if soon.proposed_time > later + PRE_SCHEDULE_S:
            assert again == soon
        else:
            assert again is None or (again.proposed_time - soon.proposed_time) % every_s == 0
        self.assert_spacing(load, answer, later)

    def assert_spacing(self, load: LoadMap, plan: Plan, now: Instant) -> None:
        assert plan.moves
        for move in plan.moves:
            self.assert_spaced(load.members[move.key], move, now)

    def assert_spaced(self, member: Member, move: Move, now: Instant) -> None:
        every_s = member.interval.every_s
        last = runs_between(member, now - 2 * every_s, now + 1)[-1]
        assert every_s <= 2 * (move.proposed_time - last) <= 3 * every_s
        assert move.proposed_time > now + PRE_SCHEDULE_S
        after = moved(member, move, now)
        assert runs_between(after, now, move.proposed_time + 1) == [move.proposed_time]

    def test_equal_states_have_equal_ids_and_others_do_not(self) -> None:
        ids = [plan_of(herd(n), A_MORNING_IN_MARCH).plan_id for n in (24, 24, 25)]
        assert ids[0] == ids[1] != ids[2]
