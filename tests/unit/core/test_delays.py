"""How long after its due time each run was created, and what delayed it first."""

import pytest
from tests.builders import cron, every, instant
from tests.unit.core.test_moving import begun, crowded
from tests.unit.core.world import World

from evenkeel.model import Concurrency, MissedRuns, Retry, Verdict


def test_a_run_on_time_has_no_delay_and_no_cause() -> None:
    world = World().see(every(60)).run_until("10:02")
    assert world.delays() == [(0.0, "none"), (0.0, "none")]


@pytest.mark.parametrize(
    ("away_s", "policy", "delays"),
    [
        pytest.param(10, MissedRuns.LATEST, [(5.0, "restart")], id="within grace"),
        pytest.param(200, MissedRuns.LATEST, [(15.0, "restart")], id="the newest"),
        pytest.param(
            200,
            MissedRuns.ALL,
            [(195.0, "restart"), (135.0, "restart"), (75.0, "restart"), (15.0, "restart")],
            id="all",
        ),
    ],
)
def test_what_a_restart_finds_is_delayed_by_the_restart(
    away_s: int, policy: MissedRuns, delays: list[tuple[float, str]]
) -> None:
    world = World().see(every(60, missed_runs=policy)).at("10:00:55")
    world.crash(for_s=away_s)
    assert sorted(world.delays(), reverse=True) == delays


def test_a_queued_run_is_delayed_by_the_queue() -> None:
    seen = every(60, concurrency=Concurrency.QUEUE)
    world = World().see(seen).run_until("10:02:30")
    world.succeed(seen, "10:01")
    assert world.delays() == [(0.0, "none"), (30.0, "queue")]


def test_a_queued_run_is_delayed_by_the_queue_after_a_restart_too() -> None:
    seen = every(600, concurrency=Concurrency.QUEUE)
    world = World().see(seen).run_until("10:20:30")
    world.crash()
    world.succeed(seen, "10:10")
    assert world.delays()[-1] == (30.0, "queue")


def test_a_run_that_a_quota_held_back_is_delayed_by_that() -> None:
    full = True

    def answering(_: object) -> Verdict | None:
        return Verdict.HELD if full else Verdict.CREATED

    world = World(answering=answering).see(every(600)).run_until("10:10:02")
    full = False
    world.run_until("10:10:10")
    ((delay_s, cause),) = world.delays()
    assert (0 < delay_s <= 10, cause) == (True, "held")


def test_what_delayed_it_first_is_told() -> None:
    """Queued for half a minute, and then held for some seconds."""
    full = False

    def answering(_: object) -> Verdict | None:
        return Verdict.HELD if full else Verdict.CREATED

    seen = every(60, concurrency=Concurrency.QUEUE)
    world = World(answering=answering).see(seen).run_until("10:02:30")
    full = True
    world.succeed(seen, "10:01")
    full = False
    world.run_until("10:02:50")
    assert [cause for _, cause in world.delays()] == ["none", "queue"]


def test_a_retry_has_no_delay_of_its_own() -> None:
    seen = every(600, retry=Retry(limit=1, delay_s=20))
    world = World().see(seen).run_until("10:10:30")
    world.fail(seen, "10:10")
    world.run_until("10:11")
    assert len(world.creations) == 2
    assert len(world.delays()) == 1


def test_a_run_that_is_due_while_a_rebalance_is_carried_out_says_so() -> None:
    world, _ = crowded()
    world.see(cron("6 12 * * *", name="due"))
    world.stall_until("12:05:59")
    world.delayed.clear()
    begun(world)
    world.now = float(instant("12:06"))
    world.step()
    world.settle()
    assert [cause for _, cause in world.delays()] == ["rebalance"]
