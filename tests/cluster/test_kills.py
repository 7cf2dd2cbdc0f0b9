"""A herd of 300 runs due at one second, and an operator that does not live to see its end.

Whatever is killed and whenever, there are exactly 300 Jobs at the end and every status tells the
truth. Creates are few at a time here, so that a herd lasts long enough to be killed in.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.cluster.faults.stage import times
from tests.cluster.harness import Cluster
from tests.cluster.herd import HERD, SETTLE_S, Herd, wait_for_jobs
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.world import World, eventually, template

from evenkeel.kube.launch_queue import STUCK

SETTINGS = {"CREATES_IN_FLIGHT": "2"}
IN_FLIGHT = 2 + STUCK
KILLED_UNTIL = HERD * 8 // 10  # a quick machine creates thirty between a look and its kill


@pytest.fixture
def herd(kwok_cluster: Cluster) -> Iterator[Herd]:
    kwok_cluster.install_crd()
    found = Herd(kwok_cluster)
    yield found
    found.world.leave([found.ns])
    found.world.close()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "kills", [10, pytest.param(100, marks=pytest.mark.long)], ids=["ten", "a hundred"]
)
def test_killed_again_and_again_in_a_herd(
    kwok_cluster: Cluster,
    herd: Herd,
    tmp_path: Path,
    kills: int,
) -> None:
    flags = ("--namespace", herd.ns)
    with operator(
        kwok_cluster.kubeconfig, directory=tmp_path, settings=SETTINGS, flags=flags
    ) as running:
        for number in range(kills):
            enough = KILLED_UNTIL * (number + 1) // (kills + 1)
            wait_for_jobs(herd, enough, running)
            time.sleep(random.uniform(0, 0.05))
            running.kill()
            running.start(wait=False)
            if herd.created() == HERD:  # this process was not served for seconds
                assert number >= kills // 2, f"the herd was over after {number} kills"
                break
        running.wait_ready()

        herd.assert_complete()  # how soon, `make bench` says: restart


VANISHING, TIMES, KILLS = 3, 15, 5


@pytest.mark.timeout(900)
def test_killed_again_and_again_while_jobs_vanish_as_soon_as_they_end(
    kwok_cluster: Cluster, tmp_path: Path
) -> None:
    """No Job is left to tell the next process of a run: none runs twice for that, each counts."""
    kwok_cluster.install_crd()
    world = World(kwok_cluster)
    ns = world.namespace("vanish")
    names = [f"run-{number}" for number in range(VANISHING)]

    def ends() -> Counter[str]:
        return sum((Counter(world.counts(ns, name)) for name in names), Counter())

    flags = ("--namespace", ns)
    settings = {"MIN_INTERVAL": "1"}
    with operator(
        kwok_cluster.kubeconfig, directory=tmp_path, settings=settings, flags=flags
    ) as running:
        vanishes = template(ttlSecondsAfterFinished=0)
        for name in names:
            rule = times(TIMES, first_in=8)
            world.create(ns, name, **rule, missedRuns="All", jobTemplate=vanishes)
        for number in range(KILLS):
            enough = VANISHING * TIMES * (number + 1) // (KILLS + 1)
            eventually(lambda n=enough: ends().total() >= n, f"{enough} runs ended", within_s=150)
            time.sleep(random.uniform(0, 1))
            running.kill()
            running.start()

        eventually(
            lambda: [sum(world.counts(ns, name).values()) for name in names] == [TIMES] * VANISHING,
            "every due time has its verdict",
            within_s=150,
        )
        eventually(lambda: world.jobs(ns) == [], "all Jobs are gone")
        assert set(ends()) <= {"succeeded", "lost"}
    created = world.created(ns)
    assert created, "the log tells of no create"
    assert len(set(created)) == len(created), "a due time ran twice"
    assert len(created) >= ends()["succeeded"]
    world.leave()
    world.close()


@pytest.fixture
def two(
    kwok_cluster: Cluster, herd: Herd, tmp_path: Path
) -> Iterator[tuple[OperatorProcess, OperatorProcess]]:
    """Operators that do not know of one another, without a Lease."""

    def one(name: str) -> AbstractContextManager[OperatorProcess]:
        return operator(
            kwok_cluster.kubeconfig,
            directory=tmp_path,
            settings=SETTINGS,
            flags=("--namespace", herd.ns),
            name=name,
            start=False,
        )

    with one("first") as first, one("second") as second:
        for each in (first, second):  # at once: the herd may be over before the second is there
            each.start(wait=False)
        for each in (first, second):
            each.wait_ready()
        yield first, second


def verdicts(*processes: OperatorProcess) -> dict[str, float]:
    """What the creates of these processes proved."""
    told = [each.metrics() for each in processes]
    return {
        word: sum(each[f'evenkeel_creates_total{{verdict="{word}"}}'] for each in told)
        for word in ("created", "adopted", "taken", "refused")
    }


def test_two_operators_at_once_share_a_herd(
    herd: Herd, two: tuple[OperatorProcess, OperatorProcess]
) -> None:
    herd.assert_complete()

    eventually(lambda: verdicts(*two)["created"] == HERD, "both have counted what they created")
    found = verdicts(*two)
    assert found["adopted"] > 0, "they never met: this proves nothing"
    assert found["taken"] == found["refused"] == 0


def test_one_of_two_that_stood_still_in_a_herd_does_no_harm_when_it_goes_on(
    herd: Herd, two: tuple[OperatorProcess, OperatorProcess]
) -> None:
    """It decided before it stood still, and what it decided the other has done meanwhile."""
    first, second = two
    wait_for_jobs(herd, HERD // 10, first)
    with first.paused():
        assert herd.created() < HERD, "the herd was over: this proves nothing"
        herd.assert_complete()

    def caught_up() -> bool:
        told = first.metrics()
        busy = ("evenkeel_creates_in_flight", "evenkeel_runs_waiting", "evenkeel_status_waiting")
        return told['evenkeel_runs_total{state="succeeded"}'] == HERD and not any(
            told[name] for name in busy
        )

    eventually(caught_up, "it has caught up", within_s=SETTLE_S)
    herd.assert_complete()
    assert verdicts(first)["adopted"] > 0, "it had nothing left to do: this proves nothing"
    found = verdicts(first, second)
    # A create whose answer came while it stood still may have been looked for by name. Creates
    # that are older than a second give their places back, so there may be more than two.
    assert HERD - IN_FLIGHT <= found["created"] <= HERD
    assert found["taken"] == found["refused"] == 0


def test_asked_to_end_in_a_herd_it_leaves_the_rest_to_the_next(
    kwok_cluster: Cluster, herd: Herd, tmp_path: Path
) -> None:
    flags = ("--namespace", herd.ns)
    with operator(
        kwok_cluster.kubeconfig, directory=tmp_path, settings=SETTINGS, flags=flags
    ) as running:
        wait_for_jobs(herd, HERD // 10, running)

        assert running.terminate(within_s=180) == 0

        left_at = herd.created()
        assert left_at < HERD, "the herd was over: this proves nothing"
        statuses = herd.statuses()
        unwritten = [status for status in statuses if "counts" not in status]
        launched = sum(bool(status.get("lastScheduleTime")) for status in statuses)
        # On a machine that is full the time it has may be over before all is written.
        left = running.events("left to the next process")
        untold = sum(each["statuses"] + each["creates"] for each in left)
        assert len(unwritten) <= untold, "a status was cut off, and no log tells of it"
        assert 0 <= left_at - launched <= untold, "a Job that no status and no log tells of"
        assert not any(status.get("counts", {}).get("missed") for status in statuses)
        running.start()

        herd.assert_complete()
