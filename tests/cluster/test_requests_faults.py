"""A backfill of hundreds of due times, and an operator that does not live to see its end.

Whatever is killed and whenever: each due time has exactly one Job, the request counts right, and
the schedules beside it run as if nobody had asked for anything. The status of the request is the
truth of its progress: a ledger that is lost in the middle takes nothing from it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.harness import Cluster
from tests.cluster.job_watch import JobWatch
from tests.cluster.ledgers import ledger, rows_of_requests
from tests.cluster.many import create_all
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.requests import OVER, Requests, counted, due_in_name, twice
from tests.cluster.world import MERGE, Json, World, eventually, moment, seconds, template

MINUTE_S = 60
MAX_ACTIVE = 20
KILL_EVERY_S = 20.0
BESIDE, BESIDE_EVERY_S = 200, 240
SETTLE_S = 180.0

KEPT, LOST = "kept", "deleted in the middle"
forms = pytest.mark.parametrize(
    ("count", "store"),
    [
        pytest.param(300, LOST, id="300, ledger deleted"),
        pytest.param(300, KEPT, id="300", marks=pytest.mark.long),
        pytest.param(2_000, LOST, id="2,000, ledger deleted", marks=pytest.mark.long),
        pytest.param(2_000, KEPT, id="2,000", marks=pytest.mark.long),
    ],
)
"""Until the ledger is deleted, the first form is the second one."""


@pytest.fixture
def requests(kwok_cluster: Cluster) -> Iterator[Requests]:
    kwok_cluster.install_crd()
    world = World(kwok_cluster)
    ns = world.namespace("backfill")
    yield Requests(world, ns)
    world.leave([ns])
    world.close()


@pytest.mark.timeout(1800)
@forms
def test_a_backfill_runs_each_due_time_once_whatever_is_killed(
    requests: Requests, tmp_path: Path, count: int, store: str
) -> None:
    world, ns = requests.world, requests.ns
    file = tmp_path / "data" / "evenkeel.db"
    url = f"sqlite://{file}"
    with (
        JobWatch(world.cluster, ns) as seen,
        operator(
            world.cluster.kubeconfig,
            directory=tmp_path,
            settings={"STORE_URL": url},
            flags=("--namespace", ns),
        ) as running,
    ):
        beside = created_beside(requests)
        fill(requests, count)
        lost = file if store == LOST else None

        killed = kill_until_it_is_over(requests, running, count, lost)

        assert killed >= 2, "it was over too soon: this proves nothing"
        status = requests.ended("fill", "Succeeded")
        assert counted(status) == {"succeeded": count}
        assert (status["done"], status["total"]) == (count, count)
        assert not status.get("active")
        assert_beside_ran(seen, beside)
        if store == KEPT:
            eventually(
                lambda: rows_of_requests(url, ns, "filled") == {"succeeded": count},
                "the ledger has all of its runs",
                within_s=SETTLE_S,
            )
        eventually(lambda: ledger(url).audit.balanced, "the ledger is right", within_s=SETTLE_S)
        eventually(lambda: filled(seen) >= set(wanted(count)), "each due time has its Job")
        running.require_running()
    assert filled(seen) == set(wanted(count)), "a due time ran that nobody asked for"
    assert twice(seen.made()) == {}, "a due time ran twice"


def filled(seen: JobWatch) -> set[str]:
    return {moment(due_in_name(job)) for job in seen.made() if job.startswith("filled-")}


def fill(requests: Requests, count: int) -> None:
    """A schedule of every minute of the past, and a request for the last so many of them."""
    runs_for = template(runs_for="2500ms")
    requests.world.create(
        requests.ns, "filled", interval={"every": "1m", "offset": "0s"}, endTime=END,
        jobTemplate=runs_for,
    )  # fmt: skip
    span = {"from": wanted(count)[0], "to": END}
    requests.create(
        "fill", "filled", range=span, include="All", maxActive=MAX_ACTIVE, stopAfterFailures=0
    )


END = "2026-02-01T00:00:00Z"
"""Of the schedule that is filled: it is not due by itself any more."""


def wanted(count: int) -> list[str]:
    end = int(seconds(END))
    return [moment(end - number * MINUTE_S) for number in range(count, 0, -1)]


def kill_until_it_is_over(
    requests: Requests, running: OperatorProcess, count: int, lost: Path | None
) -> int:
    """Kill it every 20 s, and so often; with `lost`, delete the ledger once half is done. How often
    it was killed."""
    killed, kill_at = 0, time.monotonic() + KILL_EVERY_S
    give_up_at = time.monotonic() + SETTLE_S + count
    while (status := requests.status("fill")).get("state") not in OVER:
        running.require_running()
        assert time.monotonic() < give_up_at, status
        if lost is not None and status.get("done", 0) >= count // 2:
            for path in lost.parent.iterdir():
                path.unlink()
            lost = None
        if time.monotonic() >= kill_at:
            running.kill()
            running.start()
            killed += 1
            kill_at = time.monotonic() + KILL_EVERY_S * random.uniform(0.8, 1.2)
        time.sleep(0.5)
    assert lost is None, "it was over before the ledger was deleted"
    return killed


# --- the schedules beside it ----------------------------------------------------------------------


def created_beside(requests: Requests) -> dict[str, Json]:
    """Many schedules that are due now and then, by name."""
    specs = {f"beside-{number:03}": {"interval": rule(number)} for number in range(BESIDE)}
    return create_all(requests.world.cluster, requests.ns, specs)


def rule(number: int) -> Json:
    offset_s = number * BESIDE_EVERY_S // BESIDE
    return {"every": f"{BESIDE_EVERY_S}s", "offset": f"{offset_s}s"}


def assert_beside_ran(seen: JobWatch, beside: dict[str, Json]) -> None:
    """Each due time since its creation has one Job, whichever process was killed then."""
    until = int(time.time())
    wanted_of = {
        name: dues_of(number, made, until)
        for number, (name, made) in enumerate(sorted(beside.items()))
    }
    assert any(wanted_of.values()), "none was due: this proves nothing"

    def differing() -> dict[str, list[int]]:
        ran: dict[str, list[int]] = {name: [] for name in beside}
        for job in seen.made():
            name, due = job.rpartition("-")[0], due_in_name(job)
            if name in ran and due <= until:
                ran[name].append(due)
        return {name: sorted(dues) for name, dues in ran.items() if sorted(dues) != wanted_of[name]}

    def look() -> bool:
        assert (found := differing()) == {}, found
        return True

    eventually(look, "each due time has one Job", within_s=SETTLE_S)


def dues_of(number: int, made: Json, until: int) -> list[int]:
    """The due times of one of them, from its creation on."""
    offset_s = number * BESIDE_EVERY_S // BESIDE
    created = int(seconds(made["metadata"]["creationTimestamp"]))
    first = created - (created - offset_s) % BESIDE_EVERY_S + BESIDE_EVERY_S
    return list(range(first, until + 1, BESIDE_EVERY_S))


# --- statuses of requests that somebody wrote by hand ---------------------------------------------

LARGEST = 2**63 - 1


def forged(dues: list[str]) -> dict[str, Json]:
    """What no operator writes, by the name of the request that gets it."""
    waits = {"attempt": 21, "reason": "launching", "retryAt": "9999-01-01T00:00:00Z"}
    return {
        "claims-that-all-has-begun": {"plan": {"mark": "9999-12-31T23:59:59Z"}},
        "claims-another-count": {"plan": {"count": 7, "bits": "/g=="}},
        "claims-no-bits": {"plan": {"bits": "not base64"}},
        "claims-another-timing": {"plan": {"timing": {"fields": {"schedule": "*/7 * * * *"}}}},
        "claims-runs-that-nobody-planned": {
            "active": [{"due": moment(number * 60), **waits} for number in range(100)]
        },
        "claims-to-wait-for-ever": {"active": [{"due": due, **waits} for due in dues]},
        "counts-to-the-end": {
            "counts": {"succeeded": LARGEST, "failed": LARGEST},
            "consecutiveFailures": LARGEST,
            "done": LARGEST,
            "total": LARGEST,
        },
        "claims-to-be-over": {"state": "Succeeded", "finishedAt": "9999-01-01T00:00:00Z"},
    }


@pytest.mark.timeout(600)
def test_a_forged_status_of_a_request_ends_no_process_and_runs_nothing_twice(
    requests: Requests, tmp_path: Path
) -> None:
    world, ns = requests.world, requests.ns
    victims = Requests(world, world.namespace("victims"))
    dues = wanted(3)
    span = {"from": dues[0], "to": END}
    lies = forged(dues)
    flags = ("--namespace", ns, "--namespace", victims.ns)
    with operator(world.cluster.kubeconfig, directory=tmp_path, flags=flags) as running:
        for name in lies:
            timing = {"interval": {"every": "1m", "offset": "0s"}, "endTime": END}
            world.create(ns, name, **timing, jobTemplate=template(runs_for="1s"))
            requests.create(name, name, range=span, include="All", suspend=True)
        world.create(victims.ns, "it", schedule="0 0 1 1 *")
        for name in lies:
            eventually(lambda name=name: requests.status(name).get("plan"), f"{name} is planned")
        running.kill()
        for name, lie in lies.items():
            world.call("PATCH", f"{requests.path(name)}/status", {"status": lie}, MERGE)
            requests.edit(name, suspend=False)

        running.start()
        victims.create("it-now", "it")

        victims.ended("it-now", "Succeeded")
        for name in lies:
            eventually(lambda name=name: requests.state(name) in OVER, f"{name} is over")
        running.require_running()
    made = world.created(ns)
    assert twice(made) == {}
    assert {due_in_name(job) for job in made} <= {int(seconds(due)) for due in dues}
    world.leave([victims.ns])
