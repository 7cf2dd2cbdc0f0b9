"""Runs and their rows in the ledger, on a real API server: retries, and dates that change."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.harness import Cluster
from tests.cluster.ledgers import ledger, runs
from tests.cluster.operator_process import operator
from tests.cluster.world import World, eventually, names, once, seconds, template

from evenkeel.ledger.rows import RunRow
from evenkeel.model import RunState

DELAYS_S = (4, 8, 16)
RECENT = 10
"""Rows of status.recent."""


@pytest.fixture
def world(kwok_cluster: Cluster) -> Iterator[World]:
    kwok_cluster.install_crd()
    found = World(kwok_cluster)
    yield found
    found.leave()
    found.close()


@pytest.mark.timeout(900)
def test_a_run_that_fails_four_times_has_one_row_across_a_restart_and_the_loss_of_the_store(
    world: World, tmp_path: Path
) -> None:
    ns, file = world.namespace("retries"), tmp_path / "data" / "evenkeel.db"
    url = f"sqlite://{file}"
    with operator(
        world.cluster.kubeconfig,
        directory=tmp_path,
        settings={"STORE_URL": url},
        flags=("--namespace", ns),
    ) as running:
        retry = {"limit": 3, "delaySeconds": DELAYS_S[0], "factor": 2}
        world.create(
            ns,
            "fails",
            at=once(due_in=5),
            retry=retry,
            jobTemplate=template(fate="fail"),
            failedJobsHistoryLimit=10,
        )
        begins = [waits_for_attempt(world, ns, 2)]
        running.kill()
        running.start()
        begins.append(waits_for_attempt(world, ns, 3))
        for path in file.parent.iterdir():
            path.unlink()
        begins.append(waits_for_attempt(world, ns, 4))
        running.kill()
        for path in file.parent.iterdir():
            path.unlink()
        running.start()
        eventually(lambda: world.counts(ns, "fails") == {"failed": 1}, "the run has failed")

        row = eventually(lambda: ended(url, ns), "its row has its end", every_s=0.5)
        running.require_running()
    jobs = sorted(world.jobs(ns), key=lambda job: seconds(job["metadata"]["creationTimestamp"]))
    assert len(jobs) == 4
    assert [each.number for each in row.attempts] == [1, 2, 3, 4]
    assert [each.job for each in row.attempts] == names(jobs)
    assert (row.state, row.attempt) == (RunState.FAILED, 4)
    assert_backed_off(row, begins)


def waits_for_attempt(world: World, ns: str, number: int) -> float:
    """The run waits for its next attempt; the instant at which its status says that it begins."""

    def begins_at() -> float:
        assert len(world.jobs(ns)) == number - 1
        waiting = world.waiting(ns, "fails")
        assert [(row["reason"], row["attempt"]) for row in waiting] == [("retrying", number)]
        return seconds(waiting[0]["retryAt"])

    return eventually(begins_at, f"it waits for attempt {number}")


def ended(url: str, ns: str) -> RunRow | None:
    found = runs(url, ns, "fails")
    assert len(found) == 1, "one run has one row"
    return found[0] if found[0].finished else None


def assert_backed_off(row: RunRow, begins: list[float]) -> None:
    """Each delay counts from the end of the attempt before it; the API server's times are whole
    seconds."""
    for before, after, delay_s, begin in zip(
        row.attempts, row.attempts[1:], DELAYS_S, begins, strict=False
    ):
        assert before.finished is not None and after.started is not None
        assert before.finished + delay_s - 1 <= begin <= before.finished + delay_s + 1
        assert after.started >= begin - 1


@pytest.mark.timeout(900)
def test_a_date_that_is_moved_back_to_an_instant_that_ran_long_ago_runs_only_once(
    world: World, tmp_path: Path
) -> None:
    ns = world.namespace("dates")
    url = f"sqlite://{tmp_path / 'evenkeel.db'}"
    with operator(
        world.cluster.kubeconfig,
        directory=tmp_path,
        settings={"STORE_URL": url},
        flags=("--namespace", ns),
    ) as running:
        first = once(due_in=4)
        world.create(
            ns,
            "moves",
            at=first,
            missedRuns="All",
            jobTemplate=template(),
            successfulJobsHistoryLimit=0,
        )
        for number in range(1, RECENT + 2):
            eventually(
                lambda number=number: world.counts(ns, "moves") == {"succeeded": number},
                f"{number} dates have run",
            )
            world.edit(ns, "moves", at=once(due_in=2))
        number = RECENT + 2
        eventually(lambda: world.counts(ns, "moves") == {"succeeded": number}, "all dates have run")
        assert first not in {row["due"] for row in world.recent(ns, "moves")}
        eventually(lambda: world.jobs(ns) == [], "no Job is left to tell of its run")
        eventually(lambda: len(runs(url, ns, "moves")) == number, "the ledger has all runs")

        world.edit(ns, "moves", at=first)
        generation = world.schedule(ns, "moves")["metadata"]["generation"]
        eventually(
            lambda: world.status(ns, "moves").get("observedGeneration") == generation,
            "the operator has seen the old date",
        )
        time.sleep(3)
        world.edit(ns, "moves", at=once(due_in=2))  # what happens after that is seen to happen
        number += 1
        eventually(
            lambda: sum(world.counts(ns, "moves").values()) >= number, "the date after it has run"
        )

        assert world.counts(ns, "moves") == {"succeeded": number}
        assert len(set(world.created(ns))) == len(world.created(ns)) == number
        eventually(lambda: len(runs(url, ns, "moves")) == number, "the ledger has no run twice")
        found = ledger(url).audit.found
        assert (found.missing, found.extra) == (0, 0)
        running.require_running()
