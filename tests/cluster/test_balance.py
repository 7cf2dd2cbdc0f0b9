"""Even load on the real API server: placed at once, kept over a restart, moved by a rebalance.

The operator runs in this process, so that the scheduler can be asked by message.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.cluster.world import World, due, eventually, manifest, moment, seconds, template

from evenkeel.app import Operator
from evenkeel.balance import Distribution, LoadMap, Plan, Stale
from evenkeel.core.messages import GetDistribution, PreviewRebalance, Rebalance
from evenkeel.process import operating
from evenkeel.settings import Settings

pytestmark = pytest.mark.timeout(900)

COUNT = 200
WEIGHT = 10
"""Of those that are moved. Else a herd fills the slot that it is due in, and none moves there."""
EVERY_S = 2700
SIX_HOURS_S = 21_600
STATUS = "/apis/evenkeel.dev/v1alpha1/namespaces/{}/scheduledjobs/{}/status"


def settings(ns: str) -> Settings:
    return Settings(
        health_listen="127.0.0.1:0",
        namespaces=(ns,),
        placement_cooldown_s=0,
        protection_window_s=20,
        pre_schedule_s=5,
    )


@asynccontextmanager
async def operator(world: World, ns: str) -> AsyncIterator[Operator]:
    async with operating(world.cluster.kubeconfig, settings(ns)) as running:
        await until(lambda: running.scheduler.ready)
        yield running
        running.stop()
        await running.ended


async def until(look: Callable[[], bool], *, within_s: float = 180) -> None:
    async with asyncio.timeout(within_s):
        while not look():
            await asyncio.sleep(0.05)


def apart(work: Callable[[], Any]) -> Coroutine[Any, Any, Any]:
    """Blocking calls to the API server, off the operator's loop."""
    return asyncio.to_thread(work)


def apply(world: World, ns: str, names: list[str], **spec: Any) -> None:
    objects = [manifest(name, **spec) for name in names]
    world.cluster.kubectl(
        "apply",
        "-n",
        ns,
        "-f",
        "-",
        input=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}),
    )


def anchors(world: World, ns: str) -> dict[str, str]:
    found = world.items(f"/apis/evenkeel.dev/v1alpha1/namespaces/{ns}/scheduledjobs")
    return {
        each["metadata"]["name"]: placement["anchor"]
        for each in found
        if (placement := (each.get("status") or {}).get("placement"))
    }


def recount(operator: Operator) -> tuple[int, ...]:
    load = LoadMap(operator.scheduler.state.load.start)
    load.put_all(operator.scheduler.state.load.members.values())
    return load.distribution(load.start).slots


def sample(operator: Operator, name: str, **labels: str) -> float | None:
    """As /metrics shows it."""
    return operator.metrics.registry.get_sample_value(name, labels)


def shows(operator: Operator, picture: Distribution) -> bool:
    """Whether /metrics shows it. Of an empty cluster the score is 1 as well, but not the peak."""
    return (
        sample(operator, "scheduler_peak_hour_job_count") == picture.peak_count
        and sample(operator, "scheduler_slot_job_count", hour="0") == picture.hourly[0].job_count
        and sample(operator, "scheduler_distribution_score") == picture.distribution_score
    )


async def test_200_intervals_applied_at_once_lie_evenly_and_survive_a_restart(
    world: World,
) -> None:
    ns = world.namespace("even")
    names = [f"even-{number}" for number in range(COUNT)]
    async with operator(world, ns) as running:
        await apart(lambda: apply(world, ns, names, interval={"every": "6h"}))
        await until(lambda: len(running.scheduler.state.load.members) == COUNT)
        await until(lambda: not running.scheduler.state.arrivals.members)  # improved as a set
        await until(lambda: not running.scheduler.state.arrivals.under_way)
        picture: Distribution = await running.ask(GetDistribution)
        # 200 rhythms over the 24 slots of 6 hours: none is more even than 8 or 9 a slot. What falls
        # into the rest of the current slot begins 6 hours later.
        assert set(picture.slots[1:]) <= {8, 9}
        assert picture.slots == recount(running)
        # What /metrics shows may be of a moment ago, before the set was improved.
        async with asyncio.timeout(180):
            while not shows(running, await running.ask(GetDistribution)):
                await asyncio.sleep(0.2)
        before = {
            entry.name: moment(entry.placed.anchor)
            for entry in running.scheduler.state.entries.values()
            if entry.placed
        }
        assert len(before) == COUNT
        await apart(
            lambda: eventually(
                lambda: anchors(world, ns) == before, "every phase stands in a status"
            )
        )
    assert len({seconds(anchor) % SIX_HOURS_S for anchor in before.values()}) == COUNT, "no herd"
    async with operator(world, ns) as running:
        await until(lambda: len(running.scheduler.state.load.members) == COUNT)
        again: Distribution = await running.ask(GetDistribution)
        assert again.slots == recount(running)
    assert anchors(world, ns) == before
    world.leave([ns])


async def test_a_rebalance_in_a_herd_moves_as_previewed_and_loses_or_doubles_no_run(
    world: World,
) -> None:
    ns = world.namespace("moved")
    names = [f"moved-{number}" for number in range(COUNT)]
    herd = [f"herd-{number}" for number in range(60)]
    now = int(dt.datetime.now(dt.UTC).timestamp())
    # All in one phase of three slots, their last run just over half an interval ago: they may be
    # moved, and some phase to move to begins within the next minutes whatever the time is.
    last = now - EVERY_S // 2 - 10
    heavy = {"interval": {"every": "45m"}, "placement": {"weight": WEIGHT}}
    await apart(lambda: apply(world, ns, names, **heavy, suspend=True, jobTemplate=template()))
    for name in names:
        await apart(lambda name=name: remember(world, ns, name, anchor=last, last=last))
    async with operator(world, ns) as running:
        await until(lambda: len(running.scheduler.state.load.members) == COUNT)
        herd_at = int(dt.datetime.now(dt.UTC).timestamp()) + 40
        await apart(
            lambda: apply(world, ns, herd, at=moment(herd_at), jobTemplate=template(runs_for="30s"))
        )
        stale = await running.ask(lambda ask: Rebalance(ask, "no-such-plan"))
        assert isinstance(stale, Stale)
        shown: Plan = await running.ask(PreviewRebalance)
        await until(lambda: running.clock.now() >= herd_at + 0.05)
        done = await running.ask(lambda ask: Rebalance(ask, shown.plan_id))
        if isinstance(done, Stale):  # the herd came in between: planned afresh, in its middle
            done = await running.ask(Rebalance)
        assert isinstance(done, Plan)
        assert len(done.moves) >= COUNT // 4
        assert done.projected_score >= done.current_score
        picture: Distribution = await running.ask(GetDistribution)
        assert picture.slots == recount(running)
        first = min(move.proposed_time for move in done.moves)
        wait_until = min(first + 20, running.clock.now() + 240)
        assert first < wait_until, "some of them run by the new phase within minutes"
        await until(lambda: running.clock.now() >= wait_until, within_s=300)
        moved = {
            move.key.split("/")[1] for move in done.moves if move.proposed_time <= wait_until - 5
        }
        await apart(
            lambda: eventually(
                lambda: moved <= {name for name, _ in ran(world, ns)},
                "the moved ones have run at their new time",
            )
        )
        runs = Counter(ran(world, ns))
    assert set(runs.values()) == {1}, "none twice"
    assert sum(1 for name, _ in runs if name.startswith("herd-")) == len(herd), "none lost"
    proposed = {move.key.split("/")[1]: move.proposed_time for move in done.moves}
    for name, when in runs:
        if name in proposed:
            assert when == proposed[name]
    world.leave([ns])


def ran(world: World, ns: str) -> list[tuple[str, int]]:
    """Each Job as (schedule, due)."""
    return [
        (job["metadata"]["labels"]["evenkeel.dev/schedule"], int(seconds(due(job))))
        for job in world.jobs(ns)
    ]


def remember(world: World, ns: str, name: str, *, anchor: int, last: int) -> None:
    """A schedule with a past: as an operator would have left it in the status."""
    status = {
        "lastScheduleTime": moment(last),
        "internal": {
            "mark": moment(last),
            "timing": {
                "hash": "",
                "since": moment(last - EVERY_S),
                "fields": {
                    "interval": {"every": f"{EVERY_S}s"},
                    "timeZone": "UTC",
                    "dst": {"gap": "Shift", "fold": "First"},
                },
            },
        },
        "placement": {
            "anchor": moment(anchor),
            "every": f"{EVERY_S}s",
            "placedAt": moment(last - EVERY_S),
            "weight": WEIGHT,
            "slot": "00:00",
            "load": WEIGHT,
            "reason": "before",
        },
    }
    path = STATUS.format(ns, name)
    world.call("PATCH", path, {"status": status}, "application/merge-patch+json")
    world.edit(ns, name, suspend=False)
