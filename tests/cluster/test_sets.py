"""Sets on the real API server: what one `kubectl apply -f directory` brings is placed at once, and
improved as a set before it runs."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.world import World, due, eventually, manifest, seconds

from evenkeel.balance import Limits, LoadMap, Member, plan_rebalance
from evenkeel.model import Instant, Interval, Timing

pytestmark = pytest.mark.timeout(900)

Json = dict[str, Any]

HOURS = (1, 2, 3, 4, 6, 12, 24)
QUICK = 8
"""So many of a set run every minute: what happens to their runs is seen within the test."""
MINUTE_S = 60
HOUR_S = 3600
GROUP = "/apis/evenkeel.dev/v1alpha1/namespaces/{}/scheduledjobs"
IMPROVED = "improved before its first run"
CLOSE = 1.02

counts = pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.long)])


def a_set(count: int, *, seed: int) -> list[Json]:
    """Intervals of mixed lengths and weights, some of a minute, in random order."""
    rng = np.random.default_rng(seed)
    weights = np.clip(np.rint(10 * rng.lognormal(0, 1, count)), 1, 1000)
    mixed = [
        manifest(
            f"set-{number:04}",
            interval={"every": f"{rng.choice(HOURS)}h"},
            placement={"weight": int(weights[number])},
        )
        for number in range(count - QUICK)
    ]
    # All Jobs of theirs stay: they tell which due times have run.
    often = {"interval": {"every": "1m"}, "successfulJobsHistoryLimit": 100}
    quick = [manifest(f"quick-{n}", **often) for n in range(QUICK)]
    given = mixed + quick
    random.Random(seed).shuffle(given)
    return given


def written(given: list[Json], directory: Path) -> Path:
    """One file each, in this order."""
    directory.mkdir(parents=True)
    for number, each in enumerate(given):
        (directory / f"{number:04}.json").write_text(json.dumps(each))
    return directory


def apply(world: World, ns: str, directory: Path) -> str:
    return world.cluster.kubectl("apply", "-n", ns, "-f", str(directory)).stdout


def placements(world: World, ns: str) -> dict[str, Json]:
    """`status.placement` by name, of those that have one."""
    return {
        each["metadata"]["name"]: {**placement, "spec": each["spec"]}
        for each in world.items(GROUP.format(ns))
        if (placement := (each.get("status") or {}).get("placement"))
    }


def load_of(placed: dict[str, Json], now: Instant) -> LoadMap:
    """The load as the statuses have it, counted here."""
    load = LoadMap(now)
    load.put_all(
        Member(
            key=name,
            timing=Timing(Interval(every_s(each), 0, int(seconds(each["anchor"])))),
            weight=each["spec"].get("placement", {}).get("weight", 1),
            placed_at=int(seconds(each["placedAt"])),
        )
        for name, each in placed.items()
    )
    return load


def every_s(placed: Json) -> int:
    text = placed["spec"]["interval"]["every"]
    return int(text[:-1]) * {"m": MINUTE_S, "h": HOUR_S}[text[-1]]


def assert_even(placed: dict[str, Json]) -> float:
    """The set is as even as a rebalance without any protection would make it."""
    now = int(time.time())
    load = load_of(placed, now)
    plan = plan_rebalance(load, now, Limits(pre_schedule_s=10))
    found = plan.current.peak_to_mean
    assert found <= plan.projected.peak_to_mean * CLOSE, (found, plan.projected.peak_to_mean)
    return found


def ran(world: World, ns: str) -> dict[str, list[int]]:
    """The due times of the Jobs of each schedule."""
    found: dict[str, list[int]] = {}
    for job in world.jobs(ns):
        name = job["metadata"]["labels"]["evenkeel.dev/schedule"]
        found.setdefault(name, []).append(int(seconds(due(job))))
    return found


def assert_runs(world: World, ns: str, placed: dict[str, Json], until: int) -> None:
    """Each due time by the final phase has one Job, and there is no other one."""

    def due_by_phase(each: Json) -> range:
        anchor, step = int(seconds(each["anchor"])), every_s(each)
        return range(anchor + step, until + 1, step)

    def all_ran() -> bool:
        runs = ran(world, ns)
        quick = sum(len(found) for name, found in runs.items() if name.startswith("quick-"))
        return quick >= QUICK and all(
            set(due_by_phase(each)) <= set(runs.get(name, ())) for name, each in placed.items()
        )

    eventually(all_ran, "each due time by its phase has a Job", every_s=1)
    runs = ran(world, ns)
    for name, each in placed.items():
        found = [moment for moment in runs.get(name, []) if moment <= until]
        assert Counter(found) == Counter(due_by_phase(each)), name


def told(world: World, ns: str) -> set[str]:
    """Who has an Event of its improvement."""
    return {
        event["involvedObject"]["name"]
        for event in world.items(f"/api/v1/namespaces/{ns}/events")
        if event["reason"] == "Moved" and IMPROVED in event["message"]
    }


def wait_for(
    running: OperatorProcess, world: World, ns: str, look: Callable[[dict[str, Json]], bool]
) -> dict[str, Json]:
    def seen() -> dict[str, Json] | None:
        running.require_running()
        found = placements(world, ns)
        return found if look(found) else None

    found = eventually(seen, "the statuses of the set", within_s=180, every_s=0.2)
    assert found is not None
    return found


def wait_until_improved(running: OperatorProcess, world: World, ns: str, count: int) -> Any:
    """The moves are logged before they are made: wait until no status changes any more. A set that
    comes slowly is improved again, five seconds after the last one has come."""
    eventually(
        lambda: b"schedules that arrived together improved" in running.log.read_bytes(),
        "the set is improved",
        within_s=180,
    )
    last: dict[str, Json] = {}

    def at_rest(found: dict[str, Json]) -> bool:
        nonlocal last
        before, last = last, {name: {**each} for name, each in found.items()}
        time.sleep(8)
        return len(found) == count and before == last

    return wait_for(running, world, ns, at_rest)


@counts
def test_a_set_is_as_even_as_a_rebalance_and_loses_and_doubles_nothing(
    world: World, tmp_path: Path, count: int
) -> None:
    ns, given = world.namespace("set"), a_set(count, seed=1)
    flags = ("--namespace", ns)
    with operator(world.cluster.kubeconfig, directory=tmp_path, flags=flags) as running:
        directory = written(given, tmp_path / "set")
        apply(world, ns, directory)
        first = wait_for(running, world, ns, lambda found: len(found) == count)
        final = wait_until_improved(running, world, ns, count)
        # By the reason: where statuses are written late, the first look may find some moved.
        moved = {name for name in final if IMPROVED in final[name]["reason"]}
        assert len(moved) >= count // 4
        assert moved >= {name for name in final if final[name]["anchor"] != first[name]["anchor"]}
        # Of a minute: due within a minute at any time, so never moved.
        assert not any(name.startswith("quick-") for name in moved)
        evenness = assert_even(final)
        assert eventually(lambda: told(world, ns), "an Event tells of it") <= moved

        unchanged = apply(world, ns, directory)
        assert unchanged.count("unchanged") == count
        time.sleep(8)
        assert placements(world, ns) == final, "the same set applied again moves nothing"

        until = int(time.time())
        time.sleep(5)
        assert_runs(world, ns, final, until)

    other = world.namespace("set-reversed")
    flags = ("--namespace", other)
    with operator(
        world.cluster.kubeconfig, directory=tmp_path, flags=flags, name="reversed"
    ) as running:
        apply(world, other, written(given[::-1], tmp_path / "reversed"))
        final = wait_until_improved(running, world, other, count)
        assert assert_even(final) <= evenness * CLOSE
    world.leave([ns, other])


@counts
def test_a_kill_between_placement_and_improvement_changes_nothing_but_the_phases(
    world: World, tmp_path: Path, count: int
) -> None:
    ns, given = world.namespace("killed"), a_set(count, seed=2)
    flags = ("--namespace", ns)
    directory = written(given, tmp_path / "set")
    with (
        ThreadPoolExecutor(1) as aside,
        operator(world.cluster.kubeconfig, directory=tmp_path, flags=flags) as running,
    ):
        applying = aside.submit(apply, world, ns, directory)
        wait_for(running, world, ns, lambda found: len(found) >= count // 5)
        running.kill()
        assert b"arrived together improved" not in running.log.read_bytes()
        stored = placements(world, ns)
        running.start()
        applying.result()
        final = wait_until_improved(running, world, ns, count)
        assert {name: final[name]["anchor"] for name in stored} == {
            name: each["anchor"] for name, each in stored.items()
        }, "a restart ends the set: who has a phase keeps it"
        until = int(time.time()) + MINUTE_S
        time.sleep(max(0.0, until + 5 - time.time()))
        assert_runs(world, ns, final, until)
    world.leave([ns])
